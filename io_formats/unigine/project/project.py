"""A UNIGINE project: its folder, its files by reference, its materials, and those of its meshes (section 4.6)."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element

from ...core.messages import Message, Named, Report
from ...disk.rooted_files import MOST_FILES, RootedFiles, path_key, plain_path
from ...encodings.xml_files import parse_xml
from ...passes.lods import without_level
from ...projects import Projects
from .fbx_assets import LOWER, SOURCE_EXTENSION, FbxSource, SourceMesh
from .guids import (
    ASSET_PREFIX,
    META,
    RUNTIMES,
    Found,
    FoundTexture,
    GuidIndex,
    Rule,
    add_mounts,
    is_guid,
    path_in_project,
    plain_reference,
)
from .project_materials import MaterialLibrary, ProjectMaterial, engine_path

SCENE_EXTENSIONS = (".node", ".world")
SurfaceUses = dict[str, "Counter[str]"]


def mesh_key(reference: str | None) -> str:
    """Return the key of a mesh for a reference to it: its GUID, or its path in the project."""
    plain = plain_reference(reference)
    return plain if is_guid(plain) or not plain else path_key(plain_path(path_in_project(plain)))


def uses_of_meshes(files: RootedFiles, check: Callable[[float], object]) -> dict[str, SurfaceUses]:
    """Count how often each material is assigned to each surface of each mesh, in all scene files of the project.

    Meshes are identified by :func:`mesh_key`.
    """
    found: dict[str, SurfaceUses] = defaultdict(lambda: defaultdict(Counter))
    keys = sorted(key for key in files.paths if key.endswith(SCENE_EXTENSIONS))
    for number, key in enumerate(keys):
        check(number / len(keys))
        root = files.parsed(files.paths[key], parse_xml)
        for node in root.iter("node") if root is not None else ():
            _add_uses(node, found)
    return {mesh: dict(surfaces) for mesh, surfaces in found.items()}


def _add_uses(node: Element, found: dict[str, SurfaceUses]) -> None:
    mesh = mesh_key(node.findtext("mesh_name"))
    if mesh:
        for surface in node.iterfind("surface"):
            material = plain_reference(surface.get("material"))
            if material:
                found[mesh].setdefault(surface.get("name", ""), Counter())[material] += 1


IMAGES = (".png", ".tga", ".jpg", ".jpeg", ".tif", ".tiff", ".psd", ".dds", ".exr", ".hdr", ".bmp")
"""Extensions of source images."""
_CONTAINERS = (".fbx", ".glb", ".gltf", ".obj", ".dae", ".stl")
"""Extensions of assets with several runtimes, each of which has a name inside the asset."""
_GUID_LENGTH = 40


class Project:
    """A UNIGINE project. Its files are listed when it is opened; everything else is computed on first use.

    Parameters
    ----------
    files:
        The files of the project's folder, usually named ``data``.
    projects:
        The projects that are open, which share results with other processes and know whether work is cancelled.
    """

    def __init__(self, files: RootedFiles, projects: Projects | None = None) -> None:
        self.files = files
        self.root = files.root
        self._projects = projects or Projects()
        if self._projects.has_mounts:
            add_mounts(files)
        self._guids = GuidIndex(files, self._projects)
        self._materials = MaterialLibrary(files, self._guids, self._projects.check)

    @property
    def unreadable(self) -> dict[str, str]:
        """Reasons why files could not be read so far, by path."""
        return self.files.unreadable

    def report_causes(self, paths: Iterable[str], report: Report) -> None:
        """Report the reasons for those of the paths whose files could not be read."""
        for path in paths:
            if path in self.unreadable:
                report.loss("unreadable-file", "{}", self.unreadable[path])

    def is_current(self) -> bool:
        """Return whether the files of the project are still the same as when they were listed."""
        return self.files.is_current()

    def relative(self, path: Path) -> str | None:
        """Return the path of a file relative to the project's folder, spelt as in the list of files.

        None if it is not listed.
        """
        full = os.path.join(os.path.realpath(path.parent), path.name)
        try:
            return self.files.find(os.path.relpath(full, self.root))
        except ValueError:  # the file is on another drive
            return None

    def find(self, reference: str) -> Found:
        """Return the file that a reference means."""
        plain = plain_reference(reference)
        if not plain:
            return Found(None, Rule.EMPTY)
        return self._find_guid(plain) if is_guid(plain) else self._find_path(plain)

    def _find_guid(self, guid: str) -> Found:
        """Return the file of a GUID: its runtime, its asset, or the source of a missing runtime."""
        index = self._guids
        if guid in index.runtimes:
            return Found(index.runtimes[guid], Rule.RUNTIME)
        if asset := index.asset(guid):
            return Found(asset, Rule.ASSET)
        if source := index.source_of(guid):
            return Found(source, Rule.SOURCE_OF_MISSING_RUNTIME)
        if listed := index.listed(guid):
            return Found(listed, Rule.ASSET)
        own = engine_path(guid)
        return _engine_file(own) if own else Found(None, Rule.MISSING)

    def asset_of(self, runtime: str) -> str | None:
        """Return the path of the asset from which a runtime was made, or None."""
        return self._guids.source_of(runtime)

    def reference_to(self, path: str) -> str:
        """Return the GUID by which other files refer to the file at a path; empty if it has none.

        For an asset with a primary runtime, this is the GUID of the runtime, which differs from that of the asset.
        """
        if runtime := self._guid_in_name(path):
            return runtime
        meta = self._guids.meta_of(path)
        if meta is None:
            return ""
        return meta.primary.guid if meta.primary is not None else meta.guid

    def _find_path(self, reference: str) -> Found:
        """Return the file of a path: at the path itself, in a container, above the project, or by its name alone."""
        path = path_in_project(reference)
        found = self.files.find(path)
        if found is not None:
            runtime = None
            if not reference.startswith(ASSET_PREFIX) and found.lower().endswith((*IMAGES, *_CONTAINERS)):
                runtime = self._guids.runtime_of(found)
            return Found(runtime or found, Rule.PATH)
        if (inside := self._in_container(path)) is not None:
            return Found(inside, Rule.PATH)
        if (above := self.files.find_above(path)) is not None:
            return Found(above, Rule.OUTSIDE)
        if path_key(path).startswith("core/"):
            return _engine_file(path)
        named = self._by_name.get(path_key(path).rsplit("/", 1)[-1])
        return Found(named, Rule.FILE_NAME) if named else Found(None, Rule.MISSING)

    def _in_container(self, path: str) -> str | None:
        """Return the runtime that a path such as ``x.fbx/y.mesh`` means, or None."""
        asset, _, alias = path.replace("\\", "/").rpartition("/")
        found = self.files.find(asset) if asset else None
        return self._guids.runtime_of(found, alias) if found is not None else None

    @cached_property
    def _by_name(self) -> dict[str, str | None]:
        """Path of each file by its name in lower case; None if several files have this name."""
        found: dict[str, str | None] = {}
        for key, path in self.files.paths.items():
            name = key.rsplit("/", 1)[-1]
            found[name] = None if name in found else path
        return found

    def source_mesh(self, reference: str) -> SourceMesh | None:
        """Return the FBX file that a missing runtime mesh was made from; None if there is no such file."""
        guid = plain_reference(reference)
        container = self._guids.container(guid) if is_guid(guid) else None
        path = self.files.find(container[0][: -len(META)]) if container is not None else None
        if container is None or path is None or not path.lower().endswith(SOURCE_EXTENSION):
            return None
        full = self.files.location(path)
        try:
            file = self._projects.source(full, lambda: FbxSource(full, path, partial(self.files.read, path)))
        except OSError:  # deleted since the folder was listed
            return None
        return SourceMesh(file, guid, PurePosixPath(self._guids.alias_of(guid)).stem, container[1])

    def texture(self, reference: str) -> FoundTexture:
        """Return the source image and the runtime of the texture to which a reference leads."""
        plain = plain_reference(reference)
        found = self.find(plain)
        if found.path is None:
            name, is_green_up = ("", False) if found.engine_name else self._stated(plain)
            return FoundTexture(reference.strip(), None, None, found.rule, is_green_up, name, found.engine_name)
        guid = self._guid_in_name(found.path)
        source = self._guids.source_of(guid) if guid else self._source_of_path(plain)
        has_source = source is not None and source.lower().endswith(IMAGES)
        file = source if has_source and source else found.path
        meta = self._guids.meta_of(file)
        alias = self._guids.alias_of(self._guid_in_name(file)) if not has_source else ""
        return FoundTexture(
            reference=reference.strip(),
            file=file,
            runtime=None if found.rule is Rule.SOURCE_OF_MISSING_RUNTIME else found.path,
            rule=found.rule,
            is_green_up=meta is not None and meta.is_green_inverted,
            name=alias or PurePosixPath(file).name,
        )

    def _stated(self, reference: str) -> tuple[str, bool]:
        """Return a missing texture's file name, or an empty text, and whether green points up in its source image."""
        if is_guid(reference):
            return self._guids.stated(reference)
        return PurePosixPath(path_in_project(reference)).name, False

    def _source_of_path(self, reference: str) -> str | None:
        """Return the source image at the path in a reference; :meth:`find` returns its runtime instead."""
        return None if is_guid(reference) else self.files.find(path_in_project(reference))

    def _guid_in_name(self, path: str) -> str:
        """Return the GUID in the file name of a runtime, or an empty string for any other file."""
        name = path.rsplit("/", 1)[-1][:_GUID_LENGTH].lower()
        return name if RUNTIMES in path.lower() and is_guid(name) else ""

    def material(self, reference: str) -> ProjectMaterial | None:
        """Return a material with everything that it inherits from its parents, or None if it is missing.

        The result is cached and shared, so the caller must not change it.
        """
        return self._materials.find(reference)

    def material_named(self, name: str) -> str:
        """Return the reference of the only material with a name, ignoring case; empty if none or several have it."""
        return self._materials.by_name(name) or ""

    def add_library(self, reference: str) -> Message | None:
        """Add a library of materials that a world of SDK 2.0 refers to; return an error message, or None."""
        found = self.find(reference)
        report = Report()
        if found.path is None:
            report.loss("missing-library", "library of materials '{}' is missing", Named("material", reference.strip()))
        elif problem := self._materials.add_library(found.path):
            report.loss("unreadable-file", "{}", problem)
        return next(iter(report.messages), None)

    def materials_of_mesh(self, path: Path, surfaces: Sequence[str]) -> dict[str, str]:
        """Return the reference of the material of each surface of a mesh file, by the surface's name (section 4.6).

        Surfaces without a material are left out.
        """
        relative = self.relative(path)
        guids = self._guids_of_mesh(path, relative)
        aliases = [self._guids.alias_of(guid) for guid in guids]
        source = next((asset for guid in guids if (asset := self._guids.source_of(guid))), None)
        keys = [*guids, *([path_key(relative)] if relative else [])]
        keys += [path_key(f"{source}/{alias}") for alias in aliases if alias and source]
        used = _joined([self._uses[key] for key in keys if key in self._uses])
        containers = [container for guid in guids if (container := self._guids.container(guid)) is not None]
        stated = containers[0][1].materials if containers else {}
        found: dict[str, str] = {}
        for surface in surfaces:
            plain = without_level(surface)
            reference = (
                (used[surface].most_common(1)[0][0] if surface in used else None)
                or next((stated[name] for name in _stated_names(surface, plain) if name in stated), None)
                or self._materials.by_name(surface)
                or self._materials.by_name(plain)
            )
            if reference:
                found[surface] = reference
        return found

    def name_of_runtime(self, path: Path) -> str:
        """Return the name of a runtime in its asset, without extension; empty if the file is not a runtime."""
        relative = self.relative(path)
        guid = self._guid_in_name(relative) if relative else ""
        return PurePosixPath(self._guids.alias_of(guid)).stem if guid else ""

    def _guids_of_mesh(self, path: Path, relative: str | None) -> list[str]:
        """Return the GUIDs of a mesh: for a runtime that in its file name, otherwise those that the project states."""
        name = path.name[:_GUID_LENGTH].lower()
        if is_guid(name):
            return [name]
        return self._guids.guids_of(relative) if relative else []

    @cached_property
    def _uses(self) -> dict[str, SurfaceUses]:
        """How often each material is assigned to each surface of each mesh, by :func:`mesh_key`."""
        found, unreadable = self._projects.shared(self.root, "uses", self._find_uses)
        self.files.unreadable |= unreadable
        return {
            mesh: {surface: Counter(counts) for surface, counts in surfaces.items()} for mesh, surfaces in found.items()
        }

    def _find_uses(self) -> list[Any]:
        uses = uses_of_meshes(self.files, self._projects.check)
        unreadable = {path: cause for path, cause in self.unreadable.items() if path.lower().endswith(SCENE_EXTENSIONS)}
        return [uses, unreadable]


def _stated_names(surface: str, plain: str) -> list[str]:
    """Return the names under which a container may list a surface, in the order to try them.

    ``plain`` is the name without the suffix of the level of detail.
    """
    return [surface, surface.translate(LOWER), plain, plain.translate(LOWER)]


def _joined(uses: Iterable[SurfaceUses]) -> SurfaceUses:
    """Combine the uses of one mesh that were counted under several references."""
    total: SurfaceUses = {}
    for surfaces in uses:
        for name, counts in surfaces.items():
            total.setdefault(name, Counter()).update(counts)
    return total


def _engine_file(path: str) -> Found:
    return Found(None, Rule.ENGINE, PurePosixPath(path.replace("\\", "/")).stem)


_MARKS = (".runtimes", "guids.db", "root_mount.umount")
_USUAL_NAME = "data"
MOST_LONE_FILES = 20_000
"""Maximum number of files that are listed around a file outside of any project."""
_META_HEAD = 400
_MOST_FOLDERS_LOOKED_AT = 64
_CONTENT = (".world", ".node", ".umount", ".mat")


def open_project(path: Path, projects: Projects, chosen: str = "", *, is_scene: bool = False) -> Project | None:
    """Return the project that a file belongs to, or None outside of any project.

    Parameters
    ----------
    path:
        A file.
    projects:
        The projects that are open.
    chosen:
        Folder of the project for files outside of any project, or empty.
    is_scene:
        Whether the file itself shows that its folder is part of a project, as ``.node`` and ``.world`` do.

    Raises
    ------
    TooManyFilesError
        The project has more files than the limit.
    """
    folder = Path(os.path.abspath(path)).parent
    root = projects.root_of(folder, lambda: project_folder(Path(os.path.realpath(folder))))
    if root is None and chosen:
        root = chosen_folder(Path(chosen))
    if root is None and not is_scene and not _has_asset_meta(path):
        return None
    is_partial = root is None
    real = Path(os.path.realpath(folder))
    place = root or data_folder(real) or real
    return projects.open(place, lambda: _open(place, projects, is_partial=is_partial))


def _open(root: Path, projects: Projects, *, is_partial: bool) -> Project:
    """Return the project in a folder. The list of its files may come from another process."""
    most = MOST_LONE_FILES if is_partial else MOST_FILES
    listed: list[RootedFiles] = []

    def list_files() -> list[str]:
        listed.append(RootedFiles(root, most=most, is_partial=is_partial, check=projects.check))
        return list(listed[0].paths.values())

    paths = projects.shared(root, f"files {most}", list_files)
    return Project(listed[0] if listed else RootedFiles(root, known=paths), projects)


def open_folder(folder: Path, projects: Projects) -> Project:
    """Return the project of a folder; outside of any project, a project of the files below the folder.

    Raises
    ------
    TooManyFilesError
        The folder has more files than the limit.
    """
    place = project_folder(folder) or chosen_folder(folder) or folder
    return projects.open(place, lambda: _open(place, projects, is_partial=False))


def _has_asset_meta(path: Path) -> bool:
    """Return whether a file has the ``.meta`` file of a UNIGINE asset; other engines use the same extension."""
    meta = f"{path}.meta"
    try:
        with open(meta, "rb") as stream:
            return b"<asset" in stream.read(_META_HEAD)
    except OSError:
        return False


def project_folder(folder: Path) -> Path | None:
    """Return the nearest project folder among a folder and its ancestors, or None."""
    for candidate in (folder, *folder.parents):
        if any(os.path.exists(os.path.join(candidate, mark)) for mark in _MARKS):
            return candidate
    data = data_folder(folder)
    return data if data is not None and _has_project_files(data) else None


def data_folder(folder: Path) -> Path | None:
    """Return the nearest folder with the usual name of project folders among a folder and its ancestors, or None."""
    return next((found for found in (folder, *folder.parents) if found.name.lower() == _USUAL_NAME), None)


def chosen_folder(folder: Path) -> Path | None:
    """Return the data folder of the project that the user chose, or None if there is no such folder."""
    folder = Path(os.path.realpath(folder))
    for candidate in (folder, folder / _USUAL_NAME):
        if any(os.path.exists(candidate / mark) for mark in _MARKS):
            return candidate
    usual = folder / _USUAL_NAME
    return usual if usual.is_dir() else folder if folder.is_dir() else None


def _has_project_files(folder: Path) -> bool:
    """Return whether a folder or one of its subfolders has scenes or materials, as in projects of SDK 2.0."""
    folders = [str(folder)]
    looked_at = 0
    while folders and looked_at < _MOST_FOLDERS_LOOKED_AT:
        looked_at += 1
        current = folders.pop(0)
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.name.lower().endswith(_CONTENT):
                        return True
                    if current == str(folder) and entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return False
