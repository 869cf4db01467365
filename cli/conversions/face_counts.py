"""Face counts read from the headers of files, without decoding their geometry.

Comparing this with the imported objects shows faces that Blender's importers drop without a message. Only their
importers are checked: Blender's exporters drop the surfaces of known types of objects (see ``BlenderFormat.left_out``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_TRIANGLES, _STRIP, _FAN = 4, 5, 6
"""Primitive modes of glTF that have faces."""
_HEADER_BYTES = 1 << 16


def stored_faces(path: Path) -> int | None:
    """Return the number of faces in a .glb, .gltf, .ply or .obj file. None for other files and damaged ones.

    Faces of a mesh that several objects use count once for each object. USD files are not counted: their importer
    leaves out invisible and instanced objects intentionally. The importer of FBX files leaves out no faces.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    extension = path.suffix.lower()
    try:
        if extension in {".glb", ".gltf"}:
            return _gltf_faces(gltf_json(path))
        if extension == ".ply":
            return _ply_faces(path)
        if extension == ".obj":
            return _obj_faces(path)
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # Blender's importer reports the damage
    return None


def gltf_json(path: Path) -> Any:
    """Return the JSON of a .gltf or .glb file; both may be named otherwise.

    Raises
    ------
    ValueError
        The file is damaged.
    """
    with path.open("rb") as file:
        head = file.read(20)
        if head.startswith(b"glTF"):
            return json.loads(file.read(int.from_bytes(head[12:16], "little")))
        return json.loads(head + file.read())


def _gltf_faces(content: Any) -> int:
    accessors = content.get("accessors", [])
    faces = [
        sum(_primitive_faces(primitive, accessors) for primitive in mesh["primitives"])
        for mesh in content.get("meshes", [])
    ]
    return sum(faces[node["mesh"]] for node in content.get("nodes", []) if "mesh" in node)


def _primitive_faces(primitive: Any, accessors: Any) -> int:
    vertices = primitive["indices"] if "indices" in primitive else primitive["attributes"]["POSITION"]
    count = int(accessors[vertices]["count"])
    mode = primitive.get("mode", _TRIANGLES)
    if mode == _TRIANGLES:
        return count // 3
    return max(0, count - 2) if mode in (_STRIP, _FAN) else 0


def _ply_faces(path: Path) -> int:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES).partition(b"end_header")[0]
    stated = re.search(rb"^element face (\d+)\s*$", header, re.MULTILINE)
    return int(stated[1]) if stated else 0


def _obj_faces(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\nf ") for chunk in _overlapping(file))


def _overlapping(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content in chunks, each starting with the end of the previous one, so that no match is cut in two."""
    tail = b"\n"
    while chunk := file.read(1 << 20):
        chunk = tail + chunk
        yield chunk
        tail = chunk[-2:]
