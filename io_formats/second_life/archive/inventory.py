"""The items of an inventory, and the folders that hold them (docs/formats/opensim_archives.md, section Container)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .document import Group
from .xml_text import LONGEST_NAME, Allowance, name_of, parse_member, text_of, uuid_of

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
