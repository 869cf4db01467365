"""Existing files that an export may replace, because their content is unchanged since an earlier export.

A hidden file beside the scene, the manifest, lists the digests of the files that were written with the scene.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from ...core.errors import ExportError, FormatError
from ...core.format import OutputFile
from ...core.messages import listed
from ...disk.file_names import cautious_key
from ...disk.special_files import read_bytes

_ENDING = ".written.json"
_MOST_NAMED = 3


def with_manifest(folder: Path | None, outputs: list[OutputFile]) -> list[OutputFile]:
    """Return the files of a set with its manifest as the first one; the scene file is the last one.

    Raises
    ------
    ExportError
        A file exists that no earlier export wrote, or that was changed since, or one whose name differs only in case.
    """
    name = f".{outputs[-1].name}{_ENDING}"
    known = _read(folder / name) if folder is not None else {}
    digests = {output.name: hashlib.sha256(output.data).hexdigest() for output in outputs}
    allowed = {output: {digest, *known.get(output, ())} for output, digest in digests.items()}
    refused = _others(folder, allowed) if folder is not None else []
    if refused:
        template = "{} exists and was not written by this export, or changed since; rename or remove it first"
        if len(refused) > 1:
            template = "{} exist and were not written by this export, or changed since; rename or remove them first"
        raise ExportError(template, listed(refused, _MOST_NAMED))
    content = {**known, **{name: _digests(digest, known.get(name, [])) for name, digest in digests.items()}}
    data = json.dumps({"files": dict(sorted(content.items()))}, indent=1, ensure_ascii=True).encode() + b"\n"
    return [OutputFile(name, data), *outputs]


def _others(folder: Path, allowed: Mapping[str, set[str]]) -> list[str]:
    """Return the existing files with names as in a set, ignoring case, whose digests are not among the allowed ones."""
    found: list[str] = []
    listings: dict[str, dict[str, str]] = {}
    for name, digests in allowed.items():
        path = PurePosixPath(name)
        parent = str(path.parent)
        if parent not in listings:
            listings[parent] = _names(folder / parent)
        there = listings[parent].get(cautious_key(path.name))
        if there is not None and not (there == path.name and _is_known(folder / name, digests)):
            found.append(str(path.with_name(there)))
    return found


def _digests(digest: str, known: list[str]) -> list[str]:
    """Return the new digest and the last one before it.

    Both are valid, since an export may be terminated before it replaces the file. The next export of the same content
    lists both again, so that the manifest stays the same, too.
    """
    return known[:2] if known[:1] == [digest] else [digest, *known[:1]]


def _read(path: Path) -> dict[str, list[str]]:
    """Return the digests by file name, empty if there is no valid manifest."""
    try:
        found = json.loads(read_bytes(path))["files"]
        return {str(name): [str(digest) for digest in digests] for name, digests in found.items()}
    except (OSError, FormatError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _names(folder: Path) -> dict[str, str]:
    """Return the names in a folder by their keys, which are equal for names that differ only in case."""
    try:
        return {cautious_key(name): name for name in os.listdir(folder)}
    except OSError:
        return {}


def _is_known(path: Path, digests: set[str]) -> bool:
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest() in digests
    except (OSError, FormatError):
        return False
