"""The registered formats, and the choice of a format by name, extension or content."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from .core.errors import UnsupportedFormatError
from .core.format import Family, Format
from .core.recognition import Match, NearMiss, likely_text, signature_text
from .mesh_serializer import format as mesh_serializer_format
from .second_life import family as second_life_family
from .timbermesh import family as timbermesh_family
from .unigine import family as unigine_family

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

HEAD_SIZE = 4096
"""Number of bytes that ``sniff`` is given."""

GROUP = "meshferry.formats"
"""Group of the entry points of packages that offer formats."""
Offer: TypeAlias = Callable[[ModuleType], Family]
"""Function of another package; it is called with the package of Meshferry, whose name differs in Blender."""

FAMILIES: list[Family] = [
    timbermesh_family.FAMILY,
    unigine_family.FAMILY,
    second_life_family.FAMILY,
    mesh_serializer_format.FAMILY,
]
FORMATS: list[Format] = [known for family in FAMILIES for known in family.formats]
asked: set[str] = set()
"""Names of the packages and add-ons whose families were added, or failed."""


def add(offers: Iterable[tuple[str, Offer]]) -> list[Family]:
    """Add the families that others offer, each once, and return them; warn about offers that fail.

    Parameters
    ----------
    offers:
        Functions with the names that warnings state. Those asked before are left out.
    """
    added: list[Family] = []
    package = sys.modules[__name__.rpartition(".io_formats")[0]]
    for name, offer in offers:
        if name in asked:
            continue
        asked.add(name)
        try:
            family = offer(package)
            formats = [known for known in family.formats if known.name]
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (the module is not ours)
            text = f"The formats of '{name}' are ignored: {type(problem).__name__}: {problem}"
            warnings.warn(text, stacklevel=2)
            continue
        if family.name not in {known.name for known in FAMILIES}:
            FAMILIES.append(family)
            FORMATS.extend(formats)
            added.append(family)
    return added


def _offered_by_packages() -> Iterator[tuple[str, Offer]]:
    """Yield the functions of entry points of installed packages."""
    if not any(map(_has_entry_points, sys.path)):
        return
    from importlib.metadata import entry_points  # loading it takes as long as most commands

    for point in entry_points(group=GROUP):
        yield point.value, partial(_family, point)


def _family(point: EntryPoint, package: ModuleType) -> Family:
    return point.load()(package)  # type: ignore[no-any-return]


def _has_entry_points(folder: str) -> bool:
    """Return whether a folder of Python's path has a package with formats."""
    try:
        found = [name for name in os.listdir(folder or os.curdir) if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for name in found:
        with contextlib.suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as stream:
            if GROUP.encode() in stream.read():
                return True
    return False


add(_offered_by_packages())


def large_extensions() -> tuple[str, ...]:
    """Return the extensions of files that may be larger than the memory."""
    return tuple(extension for known in FORMATS if known.reads_paths for extension in known.extensions)


def find(name: str) -> Format | None:
    """Return the format of that name, or None."""
    return next((known for known in FORMATS if known.name == name), None)


def by_name(name: str) -> Format:
    """Return the format of that name.

    Raises
    ------
    UnsupportedFormatError
        There is no such format.
    """
    found = find(name)
    if found is None:
        raise UnsupportedFormatError("There is no format '{}'; known are {}", name, ", ".join(f.name for f in FORMATS))
    return found


def labels_of(name: str) -> tuple[str, ...]:
    """Return the label of the format of that name, and the program that its files are made for; empty if unknown."""
    for family in FAMILIES:
        for known in family.formats:
            if known.name == name:
                return tuple(dict.fromkeys((known.label, family.program or family.label)))
    return ()


def by_extension(extension: str) -> Format | None:
    """Return the format to write for an extension (with or without its dot), or None."""
    wanted = "." + extension.lower().lstrip(".")
    for candidate in FORMATS:
        if wanted in candidate.written_extensions:
            return candidate
    return None


def extension_of(path: str | os.PathLike[str]) -> str:
    """Return the extension of a file in lower case: a registered one even if it has several dots, else the last."""
    name = os.fspath(path).lower()
    known = {extension for known in FORMATS for extension in known.extensions if extension.count(".") > 1}
    return next((extension for extension in known if name.endswith(extension)), os.path.splitext(name)[1])


def patched_by_extension(extension: str) -> Format | None:
    """Return the format with this extension that writes changes into its imported files, or None."""
    wanted = "." + extension.lower().lstrip(".")
    return next((known for known in FORMATS if known.is_patched and wanted in known.extensions), None)


def of_same_family(target: Format, extension: str, source: str) -> Format:
    """Return the format to write for an extension that families share: that of the source's family, else ``target``.

    ``source`` is the name of the source's format.
    """
    family = next((family for family in FAMILIES if any(known.name == source for known in family.formats)), None)
    own = () if family is None else family.formats
    return next((known for known in own if extension.lower() in known.written_extensions), target)


def by_content(head: bytes, size: int) -> Format:
    """Return the format that recognises the content.

    Raises
    ------
    UnsupportedFormatError
        No format recognises the content. The message names the likely file type.
    """
    best: Format | None = None
    best_match = Match.NONE
    misses: list[NearMiss] = []
    for candidate in FORMATS:
        found = candidate.sniff(head, size)
        if isinstance(found, NearMiss):
            misses.append(found)
        elif found is Match.SIGNATURE:
            return candidate
        elif found > best_match:
            best, best_match = candidate, found
    signature = next((miss.text for miss in misses if miss.has_signature), "") or signature_text(head)
    if best is not None and not signature:
        return best
    raise UnsupportedFormatError(signature or _unknown_text(head, size, misses))


def _unknown_text(head: bytes, size: int, misses: Sequence[NearMiss]) -> str:
    """Return a sentence about a file without a known signature."""
    if size == 0:
        return "The file is empty"
    return likely_text(head) or next((miss.text for miss in misses), "not a format that Meshferry reads")
