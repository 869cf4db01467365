"""Bytes or file -> the objects of an archive (docs/formats/opensim_archives.md, section Container)."""

import functools
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

from ...core.errors import FormatError, UnsupportedFormatError
from ...core.messages import Named, Report, Text, counted, joined, listed
from . import container
from .container import LONGEST_NAME, Allowance, ContentStore, integer, name_of, parse_member, text_of, uuid_of
from .document import Archive, Group, Linkset
from .object_xml import ObjectReader

FOLDER = "inventory/"
_OBJECT = "6"
_DEEPEST = 32
"""Number of nested folders; further ones are left out of the path of an item."""
_MOST_GROUPS = 200_000
_ID = re.compile(r"__[0-9a-f-]{36}(?:\.xml)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of an inventory."""

    name: str
    folders: tuple[str, ...]
    """Names of the folders that contain it, as in the archive."""
    asset: str
    """UUID of the object; empty for another kind of item."""


def read_item(path: str, data: bytes, allowance: Allowance) -> Item:
    """Decode an item.

    Raises
    ------
    FormatError
        The XML is not well-formed, is too large, or has a document type.
    """
    root = parse_member(data, allowance)
    *folders, file = path.removeprefix(FOLDER).split("/")
    is_object = text_of(root.find("AssetType")).strip() == _OBJECT
    name = name_of(root.find("Name")) or plain_name(file) or "Object"
    return Item(name, tuple(folders[:_DEEPEST]), uuid_of(root.find("AssetID")) if is_object else "")


def plain_name(part: str) -> str:
    """Return the name of a folder or item from a part of its path: without UUID, and with ``&`` and ``/`` restored."""
    return _ID.sub("", part).replace("&#47;", "/").replace("&amp;", "&")[:LONGEST_NAME].strip()


class Folders:
    """Adds the groups of items to a list, and in front of them those of their folders."""

    def __init__(self, groups: list[Group]) -> None:
        self._groups = groups
        self._known: dict[tuple[str, ...], int] = {(): -1}

    def add(self, item: Item, group: Group) -> None:
        """Add the group of an item."""
        group.parent = self._index(item.folders)
        self._groups.append(group)

    def _index(self, folders: tuple[str, ...]) -> int:
        """Return the index of the group of a folder; beyond the largest number of groups, of one that contains it."""
        parent = -1
        for depth in range(1, len(folders) + 1):
            path = folders[:depth]
            index = self._known.get(path)
            if index is None:
                if len(self._groups) >= _MOST_GROUPS:
                    break
                index = self._known[path] = len(self._groups)
                self._groups.append(Group(plain_name(path[-1]), parent=parent))
            parent = index
        return parent


REGIONS = "regions/"
_STEP = 256.0
"""Metres from a region to the next one."""
_LARGEST_SIZE = 8192
"""Metres of a side of the largest region that OpenSim accepts."""
_SUPPORTED = {"", "0", "1"}
_FOLDER = re.compile(REGIONS + r"(?:(\d{1,6})_(\d{1,6})_)?(.*)/", re.DOTALL)
"""Folder of a region among several; its column and row are counted from 1."""


@dataclass
class Control:
    """The content of the control file."""

    version: str = ""
    size: tuple[int, int] = (256, 256)
    """Size of the region, if there is only one."""
    regions: list[Group] = field(default_factory=list)
    """The regions without their content; empty if there is only one."""


def read_control(data: bytes, allowance: Allowance) -> Control:
    """Decode the control file ``archive.xml``.

    Raises
    ------
    FormatError
        It is not well-formed, or (``UnsupportedFormatError``) states another major version than 0 and 1.
    """
    root = parse_member(data, allowance)
    major = root.get("major_version", "").strip()
    version = f"{major}.{root.get('minor_version', '0').strip()}"[:20] if major else ""
    if major not in _SUPPORTED:
        raise UnsupportedFormatError("The archive is of version {}; newer ones than 0 and 1 are not read", version)
    control = Control(version, _size(root.find("region_info/size_in_meters")))
    for row, regions in enumerate(root.iterfind("regions/row")):
        for column, region in enumerate(regions.iterfind("region")):
            folder = text_of(region.find("dir"))
            if folder:
                size = _size(region.find("size_in_meters"))
                control.regions.append(_region(f"{REGIONS}{folder}/", column, row, size))
    return control


def unlisted_region(folder: str, control: Control) -> Group:
    """Return a region that the control file does not list; its folder states its place."""
    found = _FOLDER.fullmatch(folder)
    if found is None:
        return Group("", size=control.size)
    column, row = (max(int(text) - 1, 0) if text else 0 for text in found.groups()[:2])
    return _region(folder, column, row, control.size)


def _region(folder: str, column: int, row: int, size: tuple[int, int]) -> Group:
    found = _FOLDER.fullmatch(folder)
    name = found[3].replace("_", " ").strip() if found else ""
    return Group(name, origin=(column * _STEP, row * _STEP, 0.0), folder=folder, size=size)


def _size(element: Element | None) -> tuple[int, int]:
    """Return the lengths of a region from west to east and from south to north; 256 m if they are not valid."""
    width, _, depth = text_of(element).partition(",")
    size = integer(width, 0), integer(depth, 0)
    return size if all(0 < side <= _LARGEST_SIZE for side in size) else (256, 256)


CONTROL, OBJECTS, SETTINGS, TERRAINS, PARCELS = "archive.xml", "objects/", "settings/", "terrains/", "landdata/"
_REGION_PARTS = {OBJECTS: ".xml", SETTINGS: ".xml", TERRAINS: ".r32", PARCELS: ".xml"}
"""Folders of a region -> extensions of the files in them."""
_LIMITS = {OBJECTS: 64 * 2**20, SETTINGS: 2**20, TERRAINS: 64 * 2**20, PARCELS: 2**20, CONTROL: 2**20}
_ITEM_LIMIT = 2**20
_OBJECT_ASSET = re.compile(r"assets/([0-9a-f-]{36})_object\.xml", re.IGNORECASE)
_OBJECT_MEMORY = 2**26
"""Bytes of the objects of an inventory that are held in memory until all items are known."""
_GROUND_BUDGET = 256 * 2**20
"""Bytes of settings and heights of all regions."""
_REGION_FOLDER = re.compile(REGIONS + r"[^/]+/")
_PLACE_IN_NAME = re.compile(r"(?:_-?\d+--?\d+--?\d+)?(?:__[0-9a-f-]{36})?\.xml$", re.IGNORECASE)
"""End of the name of an object's file: its position and its UUID."""
_DRIVE = re.compile(r"[A-Za-z]:")
_SHOWN = 200
"""Length of names in messages."""
_MOST_NAMED = 8
"""Largest number of left out files that the message names."""


def read(data: bytes, *, inflated_limit: int | None = None) -> Archive:
    """Read the objects of an archive (``docs/formats/opensim_archives.md``).

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Maximum inflated size (default: the larger of 1 GiB and 100 times the file size).

    Raises
    ------
    FormatError
        The file is not an archive of OpenSim, is cut off or damaged, is of a newer version, or inflates to more than
        the limit.
    """
    return _Reader(lambda: io.BytesIO(data), inflated_limit).read()


def read_path(path: Path, *, inflated_limit: int | None = None) -> Archive:
    """Read the objects of the archive at a path like :func:`read`, without loading the file into memory."""
    try:
        document = _Reader(container.file_opener(path), inflated_limit).read()
    except FormatError as problem:
        raise problem.in_file(str(path)) from None
    document.path = str(path.absolute())
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two archives have the same files in the same order."""
    return one == other or list(_digests(one)) == list(_digests(other))


def _digests(data: bytes) -> Iterator[tuple[str, bytes]]:
    for name, content in container.archive_members(lambda: io.BytesIO(data), lambda _name: container.LARGEST_ASSET):
        yield name, hashlib.sha256(content or b"").digest()


class _Reader:
    """Collects what the members of an archive contain, and makes the document when all are known."""

    def __init__(self, open_archive: container.Opener, inflated_limit: int | None) -> None:
        self._document = Archive([], open_archive, inflated_limit)
        self._report = Report(self._document.warnings)
        self._allowance = Allowance()
        self._objects = ObjectReader(self._allowance)
        self._control: Control | None = None
        self._linksets: dict[str, list[Linkset]] = {}
        """The objects of each region by its folder; each region with any content has an entry."""
        self._left_out: dict[str, Counter[str]] = {}
        self._ground: dict[tuple[str, str], tuple[str, bytes]] = {}
        """Names and contents of settings and heights, by the region's folder and ``SETTINGS`` or ``TERRAINS``."""
        self._ground_budget = _GROUND_BUDGET
        self._items: list[Item] = []
        self._other_items: list[str] = []
        self._assets = ContentStore(_OBJECT_MEMORY)
        """Objects of an inventory by their UUID."""
        self._skipped: list[Text] = []
        """Names of the first members that are left out, with reasons."""
        self._skipped_count = 0
        self._damaged: list[str] = []
        self._cause: Text | None = None
        """What is wrong with the first damaged object."""

    def read(self) -> Archive:
        with self._assets:
            members = container.archive_members(
                self._document.open,
                self._limit_of,
                self._skip,
                inflated_limit=self._document.inflated_limit,
                report=self._report,
            )
            for name, content in members:
                if _leads_outside(name):
                    self._skip(name, Text("its name leads out of the archive"))
                elif content is not None:
                    self._add(name.removeprefix("./"), content)
            if not (self._control or self._linksets or self._items or self._other_items):
                raise UnsupportedFormatError("This is not an archive of OpenSim: it has no objects or items")
            self._read_items()
        self._finish_regions()
        self._report_all()
        return self._document

    def _limit_of(self, name: str) -> int:
        """Return the largest size of a member that is read; 0 for members that are not wanted."""
        path = name.removeprefix("./")
        if _leads_outside(name):
            return 0
        if path == CONTROL:
            return _LIMITS[CONTROL]
        _, kind = _region_part(path)
        if kind:
            return _LIMITS[kind]
        if path.startswith(FOLDER):
            return _ITEM_LIMIT if path.endswith(".xml") else 0
        # The objects among the assets of a region are in the contents of others, which are not read. Their archives
        # have them at the end.
        is_wanted = not self._linksets and _OBJECT_ASSET.fullmatch(path)
        return _LIMITS[OBJECTS] if is_wanted else 0

    def _skip(self, name: str, reason: Text) -> None:
        self._skipped_count += 1
        if len(self._skipped) < _MOST_NAMED:
            self._skipped.append(Text("'{}' ({})", Named("file", _readable(name)), reason))

    def _add(self, path: str, content: bytes) -> None:
        """Read a member."""
        folder, kind = _region_part(path)
        asset = _OBJECT_ASSET.fullmatch(path)
        if path == CONTROL:
            self._read_control(content)
        elif kind:
            self._linksets.setdefault(folder, [])
            self._add_region_part(path, folder, kind, content)
        elif asset:
            self._assets.add(asset[1].lower(), content)
        else:
            self._add_item(path, content)

    def _read_control(self, content: bytes) -> None:
        try:
            self._control = read_control(content, self._allowance)
        except UnsupportedFormatError:
            raise
        except FormatError as problem:
            template = "archive.xml was not read, so regions may be at wrong places: {}"
            self._report.loss("control-file-damaged", template, problem.sentence())
            self._control = Control()

    def _add_region_part(self, path: str, folder: str, kind: str, content: bytes) -> None:
        """Add a member in a folder of a region, by kind: its parcels, terrain, settings or objects."""
        name = _readable(path[len(folder) + len(kind) :])
        if kind == PARCELS:
            self._left_out.setdefault(folder, Counter())["parcel"] += 1
        elif kind != OBJECTS:
            key = folder, kind
            if key in self._ground:
                self._skip(path, Text("the region has another file of this kind"))
            elif len(content) > self._ground_budget:
                self._skip(path, Text("the heights of all regions are too large"))
            else:
                self._ground_budget -= len(content)
                self._ground[key] = name.rpartition(".")[0], content
        else:
            left_out = self._left_out.setdefault(folder, Counter())
            name = _PLACE_IN_NAME.sub("", name).strip() or "Object"
            self._linksets[folder] += self._read_object(name, content, left_out, is_item=False)

    def _read_object(self, name: str, content: bytes, left_out: dict[str, int], *, is_item: bool) -> list[Linkset]:
        if self._objects.is_full:
            self._objects.leave_out(name)
            return []
        try:
            return self._objects.linksets(content, name, left_out, is_item=is_item)
        except FormatError as problem:
            self._damaged.append(name)
            self._cause = self._cause or problem.sentence()
            return []

    def _add_item(self, path: str, content: bytes) -> None:
        try:
            item = read_item(_readable(path, None), content, self._allowance)
        except FormatError as problem:
            self._damaged.append(_readable(plain_name(path.rpartition("/")[2])))
            self._cause = self._cause or problem.sentence()
            return
        if item.asset:
            self._items.append(item)
        else:
            self._other_items.append(item.name)

    def _read_items(self) -> None:
        """Read the objects of the items of an inventory."""
        folders = Folders(self._document.groups)
        missing = []
        for item in self._items:
            content = self._assets.get(item.asset)
            if content is None:
                missing.append(item.name)
                continue
            group = Group(item.name)
            group.linksets = self._read_object(item.name, content, group.left_out, is_item=True)
            if group.linksets:
                folders.add(item, group)
        nouns = ("object of an item is", "objects of items are")
        self._report.loss_of("item-object-missing", "{} not in the archive: {}", missing, *nouns)
        if self._other_items:
            items = counted(len(self._other_items), "inventory item")
            self._report.note("items-left-out", "{} left out, not objects: {}", items, listed(self._other_items))

    def _finish_regions(self) -> None:
        """Make the groups of the regions."""
        document = self._document
        control = self._control or Control()
        document.version = control.version
        document.is_inventory = bool(self._items or self._other_items) and not self._linksets
        groups = {group.folder: group for group in reversed(control.regions)}
        listed_first = dict.fromkeys(group.folder for group in control.regions)
        for folder in (*listed_first, *(folder for folder in self._linksets if folder not in listed_first)):
            group = groups.get(folder) or unlisted_region(folder, control)
            settings_name, group.settings = self._ground.get((folder, SETTINGS), ("", b""))
            terrain_name, terrain = self._ground.get((folder, TERRAINS), ("", b""))
            group.name = settings_name or terrain_name or group.name or "Region"
            group.linksets = self._linksets.get(folder, [])
            group.left_out = dict(self._left_out.get(folder, {}))
            if len(terrain) == 4 * group.size[0] * group.size[1]:
                group.terrain = terrain
            elif terrain:
                template = (
                    "The ground is left out: its file has {:,} bytes, which is not 4 for each of {:,} x {:,} points"
                )
                self._report.loss("terrain-size", template, len(terrain), *group.size, item=group.name)
            document.groups.append(group)

    def _report_all(self) -> None:
        report = self._report
        if self._control is None:
            report.change(
                "control-file-missing", "There is no archive.xml; regions stand where the names of their folders say"
            )
        if self._skipped:
            files = counted(self._skipped_count, "file")
            report.loss("members-left-out", "{} of the archive left out: {}", files, joined(self._skipped))
        if self._damaged and self._cause:
            objects = counted(len(self._damaged), "unreadable object is", "unreadable objects are")
            report.loss("objects-unreadable", "{} left out: {} ({})", objects, listed(self._damaged), self._cause)
        self._objects.report(report)


# The last result is cached: each member's name is examined for its limit, then with its content.
@functools.lru_cache(maxsize=1)
def _region_part(path: str) -> tuple[str, str]:
    """Return the folder of a region (empty for a single one) and the folder in it; both empty for other members."""
    found = _REGION_FOLDER.match(path)
    folder = found[0] if found else ""
    kind, slash, _ = path[len(folder) :].partition("/")
    kind += slash
    return (folder, kind) if kind in _REGION_PARTS and path.endswith(_REGION_PARTS[kind]) else ("", "")


@functools.lru_cache(maxsize=1)
def _leads_outside(name: str) -> bool:
    """Return whether the name of a member is absolute or leads out of the archive's folder."""
    return name.startswith(("/", "\\")) or bool(_DRIVE.match(name)) or ".." in re.split(r"[/\\]", name)


def _readable(name: str, length: int | None = _SHOWN) -> str:
    """Return a name without bytes that are not UTF-8, and of limited length."""
    return name[:length].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
