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

_LIBRARY = re.compile(rb"mtllib[ \t]+([^\r\n]+)")


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
        uris = [buffer.get("uri") for buffer in gltf_json(path).get("buffers", [])]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # Blender's importer reports the damage
    for uri in uris:
        if isinstance(uri, str) and not uri.startswith("data:"):
            yield str(path.absolute().parent / unquote(uri))


def _libraries(path: Path) -> Iterator[str]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = dict.fromkeys(_LIBRARY.findall(content))
    for name in names:
        yield str(path.absolute().parent / name.decode("utf-8", "surrogateescape").strip(' \t"'))


def _layers(path: Path, bpy: Any) -> Iterator[str]:
    """Yield the layers of a USD file; members of archives count as their archive."""
    bpy.utils.expose_bundled_modules()
    from pxr import Tf, UsdUtils  # type: ignore[import-not-found]

    try:
        layers, _assets, _missing = UsdUtils.ComputeAllDependencies(str(path.absolute()))
    except Tf.ErrorException:
        return  # Blender's importer reports the damage
    for layer in layers:
        if layer.realPath:
            yield re.sub(r"\[.*", "", layer.realPath)
