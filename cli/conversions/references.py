"""Files to which a glTF, OBJ or USD file refers, and which Blender's importers would read with it.

Images are not among them; they are judged after the import (``outside_files``).
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...io_formats.core.errors import FormatError
from ...io_formats.disk.reach import Reach, as_option
from ...io_formats.disk.special_files import require_regular
from .face_counts import gltf_json

_LIBRARY = re.compile(rb"mtllib((?:\\[\0-\t\x0b-\x20]*\n|[^\n])*)")
"""Matches what Blender reads as the name of a library: a line that a backslash may continue."""
_BLANK = bytes(range(33))


def require_within(path: Path, reach: Reach, bpy: Any) -> None:
    """Raise a FormatError if a file refers to buffers, layers or material libraries beyond reach.

    Layers and material libraries may also be below the folder above, as images may.
    """
    extension = path.suffix.lower()
    found: Iterable[str]
    if extension in {".gltf", ".glb"}:
        found, above = _buffers(path), False
    elif extension == ".obj":
        found, above = _libraries(path) if path.stat().st_size else (), True
    elif extension in {".usd", ".usda", ".usdc", ".usdz"}:
        found, above = _layers(path, bpy), True
    else:
        return
    for place in found:
        if reach.brings_in(place, above=above):
            text = "It refers to {}, outside of its folder; to read from there, add {}"
            raise FormatError(text, os.path.normpath(place), as_option([place]), file=str(path))
        require_regular(place)


def _buffers(path: Path) -> Iterator[str]:
    try:
        content = gltf_json(path)
        uris = [buffer.get("uri") for buffer in content.get("buffers", [])]
        uris += [uri for image in content.get("images", []) if (uri := image.get("uri") or "").startswith("data:")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # Blender's importer reports the damage
    for uri in uris:
        # Blender takes an address of data without this mark for the path of a file.
        if isinstance(uri, str) and not (uri.startswith("data:") and ";base64," in uri):
            yield str(path.absolute().parent / unquote(uri))


def _libraries(path: Path) -> Iterator[str]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = dict.fromkeys(_LIBRARY.findall(content))
    yield str(path.with_suffix(".mtl"))  # which Blender reads unasked
    for name in names:
        plain = re.sub(rb"\\[\0-\t\x0b-\x20]*\n", b"  ", name).strip(_BLANK + b'"').partition(b"\0")[0]
        yield str(path.absolute().parent / os.fsdecode(plain))


def _layers(path: Path, bpy: Any) -> Iterator[str]:
    """Yield the layers of a USD file, and those that other variants and value clips name; of archives, the archive.

    ``UsdUtils.ComputeAllDependencies`` passes over names that are computed, and ends the process at a damaged layer.
    """
    bpy.utils.expose_bundled_modules()
    from pxr import Ar, Sdf, Tf, Usd, UsdUtils  # type: ignore[import-not-found]

    try:
        stage = Usd.Stage.Open(str(path.absolute()))
    except Tf.ErrorException:
        return  # Blender's importer reports the damage
    for layer in (used for used in stage.GetUsedLayers() if used.realPath):
        named = (name for names in UsdUtils.ExtractExternalReferences(layer.realPath) for name in names)
        found = [layer.ComputeAbsolutePath(name) for name in named if Sdf.FileFormat.FindByExtension(name)]
        for place in (layer.realPath, *found):
            yield Ar.SplitPackageRelativePathOuter(place)[0]
