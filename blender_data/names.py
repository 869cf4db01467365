"""Names in files <-> names of data blocks, which Blender truncates and makes unique."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import bpy

from . import compat

_NUMBER = re.compile(r"\.\d{3,}$")
_ANY_NUMBER = re.compile(r"\.\d+$")


def fit(name: str) -> str:
    """Return a valid name of a data block: without NUL, truncated between two characters."""
    clean = readable(name.replace("\0", "")).strip() or "Unnamed"
    encoded = clean.encode("utf-8")
    # Four bytes are left for a number such as '.001', which Blender may append.
    most = compat.MAX_NAME_BYTES - 4
    return clean if len(encoded) <= most else encoded[:most].decode("utf-8", "ignore")


def readable(name: str) -> str:
    """Return a name with question marks in place of bytes that are not valid UTF-8."""
    return name.encode("utf-8", "replace").decode("utf-8")


def distinct(wanted: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Return names for new data blocks, with the numbers that Blender would give them if they were created in turn.

    ``taken`` are names of existing data blocks.
    """
    used, numbers = set(taken), dict[str, int]()
    given = []
    for name in wanted:
        if name in used:
            base = _ANY_NUMBER.sub("", name)
            number = numbers.get(base, 0) + 1
            while (numbered := f"{base}.{number:03d}") in used:
                number += 1
            numbers[base] = number
            # If the number does not fit, Blender finds a name.
            name = numbered if len(numbered.encode()) <= compat.MAX_NAME_BYTES else name  # noqa: PLW2901
        used.add(name)
        given.append(name)
    return given


def in_order(name: str) -> bytes:
    """Return the key by which Blender sorts data blocks: bytes, without regard to the case of ASCII letters."""
    return name.encode().lower()


MAX_INNER_BYTES = 63
"""Largest length of names of bones, vertex groups and shape keys in UTF-8 bytes."""


def fit_all(wanted: Sequence[str], empty: str) -> list[str]:
    """Return valid and unique names for bones, vertex groups or shape keys, truncated between two characters.

    Valid unique names are kept. Invalid names, and all but the first of equal names, are changed. ``empty`` replaces
    empty names.
    """
    fitting = [_cut(name.replace("\0", ""), MAX_INNER_BYTES) for name in wanted]
    taken: set[str] = set()
    kept = []
    for name, fit_name in zip(wanted, fitting, strict=True):
        kept.append(bool(name) and fit_name == name and name not in taken)
        if kept[-1]:
            taken.add(name)
    given = []
    numbers: dict[str, int] = {}
    for fit_name, is_kept in zip(fitting, kept, strict=True):
        name = fit_name or empty
        while not is_kept and name in taken:
            numbers[fit_name] = numbers.get(fit_name, 0) + 1
            suffix = f".{numbers[fit_name]:03d}"
            name = _cut(fit_name or empty, MAX_INNER_BYTES - len(suffix)) + suffix
        taken.add(name)
        given.append(name)
    return given


def _cut(name: str, most: int) -> str:
    return name.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def without_number(name: str) -> str:
    """Return a name without the number that Blender adds to the second of equal names, such as ``.001``."""
    return _NUMBER.sub("", name) or name


def remember(block: bpy.types.ID, source_name: str) -> None:
    """Store the name that a data block has in the file, if its name in Blender differs."""
    if block.name != source_name:
        block.meshferry.source_name = readable(source_name)
        block.meshferry.given_name = block.name


def name_in_file(block: bpy.types.ID) -> str:
    """Return the name to write: that of the imported file until the data block is renamed."""
    kept = block.meshferry
    return kept.source_name if kept.given_name and kept.given_name == block.name else block.name


def take_over(old: bpy.types.ID, new: bpy.types.ID) -> None:
    """Give a data block the name of another one; the other block gets a new name."""
    name = old.name
    old.name = "Replaced"
    new.name = name


MARK = "#"
"""First character of the names of objects that become nodes of their own; other objects may be merged into their
parents."""


def set_own_node(obj: Any, is_own: bool) -> None:
    """Add # at the start of an object's name or remove it, both in Blender and in the stored name of the file."""
    kept = obj.meshferry.given_name == obj.name and obj.meshferry.source_name
    obj.name = _marked(obj.name, is_own)
    if kept:
        obj.meshferry.source_name = _marked(kept, is_own)
        obj.meshferry.given_name = obj.name


def _marked(name: str, is_own: bool) -> str:
    plain = name.lstrip(MARK)
    return MARK + plain if is_own else plain or name
