"""The registered formats, and the choice of a format by name, extension or content."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator, Sequence

from .core.errors import UnsupportedFormatError
from .core.format import Family, Format
from .core.recognition import Match, NearMiss, likely_text, signature_text
from .mesh_serializer import format as mesh_serializer_format
from .second_life import family as second_life_family
from .timbermesh import family as timbermesh_family
from .unigine import family as unigine_family

HEAD_SIZE = 4096
"""Number of bytes that ``sniff`` is given."""

EXTERNAL_FORMATS = "MESHFERRY_FORMATS"
"""Environment variable with the names of modules, separated by commas, that each define another ``FAMILY``.

Worker processes inherit it.
"""


def _external_families() -> Iterator[Family]:
    """Yield the families of the modules named in an environment variable; warn about modules that fail."""
    for name in filter(None, os.environ.get(EXTERNAL_FORMATS, "").replace(" ", "").split(",")):
        try:
            family = importlib.import_module(name).FAMILY
            all(known.name for known in family.formats)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (the module is not ours)
            warnings.warn(
                f"{EXTERNAL_FORMATS}: module '{name}' is ignored: {type(problem).__name__}: {problem}", stacklevel=2
            )
        else:
            yield family


FAMILIES: tuple[Family, ...] = (
    timbermesh_family.FAMILY,
    unigine_family.FAMILY,
    second_life_family.FAMILY,
    mesh_serializer_format.FAMILY,
    *_external_families(),
)
FORMATS: tuple[Format, ...] = tuple(known for family in FAMILIES for known in family.formats)


LARGE_EXTENSIONS = tuple(extension for known in FORMATS if known.reads_paths for extension in known.extensions)
"""Extensions of files that may be larger than the memory."""


def by_name(name: str) -> Format:
    """Return the format of that name."""
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    raise UnsupportedFormatError("There is no format '{}'; known are {}", name, ", ".join(f.name for f in FORMATS))


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
