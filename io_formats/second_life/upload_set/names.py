"""Convert names to the form required by the viewer's Collada reader (formats page, sections 10 and 10.1)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

_SUFFIX = re.compile(r"_(?:LOD[0-9]*|PHYS)\Z")
_CUTS = re.compile(r"_(?=LOD|PHYS)")
"""The viewer truncates names at ``_LOD`` and ``_PHYS``, wherever they occur."""


def model_name(name: str, taken: set[str]) -> str:
    """Return a unique name for an object's geometry, without spaces, ``_LOD`` and ``_PHYS``.

    Names are compared ignoring case: ``taken`` holds casefolded names, to which the result is added.
    """
    plain = _CUTS.sub("-", _SUFFIX.sub("", re.sub(r"\s", "_", printable(name)))) or "object"
    return unique_name(plain, taken)


def material_symbol(name: str, taken: set[str]) -> str:
    """Return the name of a material in the files: letters, digits and ``_ - .``, as required by XML."""
    plain = re.sub(r"[^\w.-]", "_", printable(name)) or "material"
    return unique_name(plain if plain[0].isalpha() or plain[0] == "_" else "_" + plain, taken)


def joint_word(name: str) -> str:
    """Return the name of a joint with its spaces replaced, since spaces separate the names in a list."""
    return re.sub(r"\s", "_", printable(name)) or "_"


def unique_identifier(name: str, taken: set[str]) -> str:
    """Return a unique id of characters that need no encoding in a URL."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_"
    return unique_name(plain if plain[0].isalpha() or plain[0] == "_" else "_" + plain, taken)


def unique_name(plain: str, taken: set[str]) -> str:
    """Return a unique name, numbered if necessary, and add it to the casefolded ``taken``."""
    name, number = plain, 2
    while name.casefold() in taken:
        name = f"{plain}_{number}"
        number += 1
    taken.add(name.casefold())
    return name


def file_names(names: Iterable[str], stem: str) -> list[str]:
    """Return unique file names for the additional files of a set, from names with extensions.

    The name of the set precedes them, since two sets in a folder may have different files with the same name.
    """
    before = set_prefix(stem)
    taken: dict[str, set[str]] = {}
    found: list[str] = []
    for name in names:
        plain, dot, extension = name.rpartition(".")
        own = plain if plain.startswith(before) else before + plain
        found.append(unique_name(own, taken.setdefault(extension.casefold(), set())) + dot + extension)
    return found


def set_prefix(stem: str) -> str:
    """Return the prefix of the names of a set's additional files."""
    return f"{plain_file_name(stem)}_" if stem else ""


def texture_name(name: str, extension: str) -> str:
    """Return the name of a texture file in characters that need no encoding in a URL."""
    stem = name[: -len(extension)] if name.lower().endswith(extension) else name
    return plain_file_name(stem) + extension


def plain_file_name(name: str) -> str:
    """Return the stem of a file name in ASCII letters; a hash is added if letters of other alphabets are lost."""
    spaced = re.sub(r"\s", "_", name)
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", spaced)[:100].strip(".")
    if plain != spaced:
        plain = f"{plain.strip('_')}_{zlib.crc32(name.encode('utf-8', 'replace')):08x}".lstrip("_")
    return plain or "texture"


def printable(name: str) -> str:
    """Return a name without characters that XML cannot hold."""
    return "".join(letter if letter.isprintable() else "_" for letter in name)
