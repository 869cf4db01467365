"""The registered formats, and the choice of a format by name, extension or content.

``FAMILIES`` and ``FORMATS`` are lists of all; they are made on first use. The families that have the extension of a
file are enough for most files, so that a program that reads one file starts faster.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import Any, TypeAlias

from .core.errors import UnsupportedFormatError
from .core.format import Family, Format
from .core.recognition import Match, NearMiss, likely_text, signature_text

HEAD_SIZE = 4096
"""Number of bytes that ``sniff`` is given."""

GROUP = "meshferry.formats"
"""Group of the entry points of packages that offer formats."""
Offer: TypeAlias = Callable[[ModuleType], Family]
"""Function of another package; it is called with the package of Meshferry, whose name differs in Blender."""

_OWN = {
    "timbermesh.family": (".timbermesh", ".meshy", ".blueprint.json"),
    "unigine.family": (".mesh", ".anim", ".skeleton", ".mesh_skinned", ".world", ".node"),
    "second_life.family": (
        *(".llmesh", ".mesh", ".anim", ".slm", ".dae", ".zae"),
        *(".xml", ".llsd", ".bvh", ".bodypart", ".oar", ".iar"),
    ),
    "mesh_serializer.format": (".mesh", ".data", ".bin", ".bytes", ".3d"),
}
"""The modules of the families that are part of Meshferry, and the extensions of their formats."""
_offered: list[Family] = []
FAMILIES: list[Family]
FORMATS: list[Format]
asked: set[str] = set()
"""Names of the packages and add-ons whose families were added, or failed."""


def __getattr__(name: str) -> Any:
    """Return a list that is made on first use."""
    if name in ("FAMILIES", "FORMATS"):
        return _families() if name == "FAMILIES" else _all()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _own(module: str) -> Family:
    family: Family = import_module(f".{module}", __package__).FAMILY
    return family


@cache
def _lists() -> tuple[list[Family], list[Format]]:
    """Return the families and formats; first ours, to which :func:`add` adds others."""
    families = [*map(_own, _OWN)]
    return families, [known for family in families for known in family.formats]


def _families() -> list[Family]:
    _ask_packages()
    return _lists()[0]


def _all() -> list[Format]:
    _ask_packages()
    return _lists()[1]


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
            if family not in _offered:
                _require_usable(family)
                _lists()[1].extend(family.formats)
                for families in (_offered, _lists()[0], added):
                    families.append(family)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (the module is not ours)
            text = f"The formats of '{name}' are ignored: {type(problem).__name__}: {problem}"
            warnings.warn(text, stacklevel=2)
    return added


def _require_usable(family: Family) -> None:
    """Raise an error for a family that cannot be used. Operators of Blender have the names, which are thus unique."""
    if not isinstance(family, Family):
        raise TypeError(f"{family!r} is not an instance of {Family}")
    families, known_formats = _lists()
    formats, ours = [one.name for one in known_formats], {option for one in known_formats for option in one.options()}
    named: list[tuple[Family | Format, list[str]]] = [(family, [known.name for known in families])]
    named += [(known, formats) for known in family.formats]
    for part, others in named:
        if not re.fullmatch("[a-z][a-z0-9_]{0,30}", part.name):
            raise ValueError(f"the name '{part.name}' is too long or has other characters than a to z, 0 to 9 and _")
        if part.name in others:
            raise ValueError(f"there is another '{part.name}'")
        others.append(part.name)
        str.strip(part.label)  # these calls fail for values of other types
    for known in family.formats:
        replace(known.capabilities)
        for option in known.options():
            if option not in ours and not option.name.startswith(f"{family.name}_"):
                raise ValueError(f"the name of the option '{option.name}' does not begin with '{family.name}_'")
        for extension in known.extensions or [""]:
            if extension != "." + extension.lower()[1:]:
                raise ValueError(f"the extension '{extension}' has no dot or is not in lower case")


def _has_entry_points(folder: str) -> bool:
    """Return whether a folder of Python's path has a package with formats."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or os.curdir):
            if name.endswith((".dist-info", ".egg-info")):
                path = os.path.join(folder, name, "entry_points.txt")
                with contextlib.suppress(OSError), open(path, "rb") as stream:
                    if GROUP.encode() in stream.read():
                        return True
    return False


@cache
def _ask_packages() -> None:
    """Add the families of installed packages. Since these may use Meshferry, it is fully imported before."""
    if any(map(_has_entry_points, sys.path)):
        from importlib.metadata import entry_points  # loading it takes as long as most commands

        for point in entry_points(group=GROUP):
            add([(point.value, lambda package: point.load()(package))])  # noqa: B023, PLW0108 (called at once)


def of_file(name: str) -> Iterator[Format]:
    """Yield the formats that have the extension of a file name; other families are not imported."""
    _ask_packages()
    name = name.lower()
    own = (_own(module) for module, extensions in _OWN.items() if name.endswith(extensions))
    for family in chain(own, _offered):
        yield from (known for known in family.formats if name.endswith(tuple(known.extensions)))


def find(name: str) -> Format | None:
    """Return the format of that name, or None."""
    return next((known for known in _all() if known.name == name), None)


def by_name(name: str) -> Format:
    """Return the format of that name.

    Raises
    ------
    UnsupportedFormatError
        There is no such format.
    """
    found = find(name)
    if found is None:
        raise UnsupportedFormatError("There is no format '{}'; known are {}", name, ", ".join(f.name for f in _all()))
    return found


def labels_of(name: str) -> tuple[str, ...]:
    """Return the label of the format of that name, and the program that its files are made for; empty if unknown."""
    labels = ((f.label, one.program or one.label) for one in _families() for f in one.formats if f.name == name)
    return tuple(dict.fromkeys(next(labels, ())))


def by_extension(extension: str) -> Format | None:
    """Return the format to write for an extension (with or without its dot), or None."""
    wanted = "." + extension.lower().lstrip(".")
    return next((known for known in _all() if wanted in known.written_extensions), None)


def extension_of(path: str | os.PathLike[str]) -> str:
    """Return the extension of a file in lower case: a registered one even if it has several dots, else the last."""
    name = os.fspath(path).lower()
    known = {extension for known in _all() for extension in known.extensions if extension.count(".") > 1}
    return next((extension for extension in known if name.endswith(extension)), os.path.splitext(name)[1])


def patched_by_extension(extension: str) -> Format | None:
    """Return the format with this extension that writes changes into its imported files, or None."""
    wanted = "." + extension.lower().lstrip(".")
    return next((known for known in _all() if known.is_patched and wanted in known.extensions), None)


def of_same_family(target: Format, extension: str, source: str) -> Format:
    """Return the format to write for an extension that families share: that of the source's family, else ``target``.

    ``source`` is the name of the source's format.
    """
    own = next((one.formats for one in _families() if any(known.name == source for known in one.formats)), ())
    return next((known for known in own if extension.lower() in known.written_extensions), target)


def by_content(head: bytes, size: int, name: str = "") -> Format:
    """Return the format that recognises the content; those that have the extension of its name are asked first.

    Raises
    ------
    UnsupportedFormatError
        No format recognises the content. The message names the likely file type.
    """
    found, match, misses = _recognised(of_file(name), head, size)
    if match < Match.LENGTH:
        found, match, misses = _recognised(_all(), head, size)
    signature = next((miss.text for miss in misses if miss.has_signature), "") or signature_text(head)
    if found is not None and (match is Match.SIGNATURE or not signature):
        return found
    raise UnsupportedFormatError(signature or _unknown_text(head, size, misses))


def _recognised(formats: Iterable[Format], head: bytes, size: int) -> tuple[Format | None, Match, list[NearMiss]]:
    """Return the format with the strongest evidence for a content, the evidence, and explanations of others."""
    best, best_match, misses = None, Match.NONE, []
    for candidate in formats:
        try:
            found = candidate.sniff(head, size)
        except Exception as problem:
            if not any(candidate in family.formats for family in _offered):
                raise
            warnings.warn(f"The format '{candidate.name}' fails: {type(problem).__name__}: {problem}", stacklevel=1)
            continue
        if isinstance(found, NearMiss):
            misses.append(found)
        elif found > best_match:
            best, best_match = candidate, found
        if best_match is Match.SIGNATURE:
            break
    return best, best_match, misses


def _unknown_text(head: bytes, size: int, misses: Sequence[NearMiss]) -> str:
    """Return a sentence about a file without a known signature."""
    if size == 0:
        return "The file is empty"
    return likely_text(head) or next((miss.text for miss in misses), "not a format that Meshferry reads")
