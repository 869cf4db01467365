"""The measured level: 1,000 places of 50 meshes with 100 textures of 2048², as a UNIGINE world and as a GLB file.

The textures are read and not decoded by either importer, so their content is noise of a usual size.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from . import models, peers

MESHES, PLACES, TRIANGLES, SIZE = 50, 1000, 5000, 2048
ROWS_OF_NOISE = 900
"""Rows of a PNG image that do not compress: it then has 1.3 bytes a pixel, as images of real materials (1.3 to 1.8)."""


def make(folder: Path) -> tuple[Path, Path]:
    """Make both files unless they are there; return their paths."""
    data = folder / "level" / "data"
    world, gltf = data / "level.world", folder / "level" / "level.glb"
    if world.exists() and gltf.exists():
        return world, gltf
    (data / ".runtimes").mkdir(parents=True, exist_ok=True)
    models.empty_file()
    models.build(TRIANGLES, uv_maps=2, use_colors=False)
    bpy.data.meshes[models.OBJECT_NAME].materials.pop()
    bpy.ops.export_scene.unigine_mesh(filepath=str(data / "0.mesh"), collection=models.COLLECTION_NAME)
    peers.export_gltf(gltf, export_tangents=False)
    content, buffer = _parts(gltf.read_bytes())
    gltf.write_bytes(_repeated(content, buffer))
    _project(data)
    return world, gltf


def count_places() -> None:
    """Check that everything was imported."""
    assert sum(obj.type == "MESH" for obj in bpy.data.objects) >= PLACES
    assert len(bpy.data.images) >= 2 * MESHES


def _project(data: Path) -> None:
    noise = np.random.default_rng(1)
    mesh = (data / "0.mesh").read_bytes()
    for number in range(MESHES):
        (data / f"{number}.mesh").write_bytes(mesh)
        (data / f"{number}.mat").write_text(
            f'<material version="2.19.0.3" guid="{number:040x}" base_material="mesh_base">'
            f'<texture name="albedo">{number}_alb.texture</texture>'
            f'<texture name="normal">{number}_n.texture</texture></material>',
            encoding="utf-8",
        )
        for kind, code, block in (("alb", 21, 8), ("n", 25, 16)):
            pixels = noise.bytes(SIZE * SIZE // 16 * block)
            head = struct.pack("<4s4B4H", b"tx11", 0, code, 4, 1, 1, SIZE, SIZE, 1)
            (data / f"{number}_{kind}.texture").write_bytes(head + struct.pack("<q", len(pixels)) + pixels)
    nodes = "".join(
        f'<node type="ObjectMeshStatic" id="{number + 1}" name="place {number}">'
        f'<mesh_name>{number % MESHES}.mesh</mesh_name><surface name="Clay" material="{number % MESHES:040x}"/>'
        f"<transform>1 0 0 0 0 1 0 0 0 0 1 0 {number % 32 * 25} {number // 32 * 15} 0 1</transform></node>"
        for number in range(PLACES)
    )
    (data / "level.world").write_text(
        f'<?xml version="1.0" encoding="utf-8"?><world version="2.19.0.3"><editor>{nodes}</editor></world>', "utf-8"
    )


def _parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack_from("<I", data, 12)[0]
    return json.loads(data[20 : 20 + size]), data[28 + size :]


def _repeated(content: dict[str, Any], buffer: bytes) -> bytes:
    """Return the GLB of one mesh with copies of it, each with a material of two images, at all places."""
    noise = np.random.default_rng(2)
    primitives = content["meshes"][0]["primitives"]
    views, accessors = content["bufferViews"], content["accessors"]
    chunks: list[bytes] = []
    made: dict[str, list[dict[str, Any]]] = {
        key: [] for key in ("bufferViews", "accessors", "meshes", "materials", "images")
    }
    for number in range(MESHES):
        start, first_view, first = sum(map(len, chunks)), len(made["bufferViews"]), len(made["accessors"])
        chunks.append(buffer + b"\0" * (-len(buffer) % 4))
        made["bufferViews"] += [{**view, "byteOffset": view.get("byteOffset", 0) + start} for view in views]
        made["accessors"] += [{**accessor, "bufferView": accessor["bufferView"] + first_view} for accessor in accessors]
        parts = [
            {
                "attributes": {key: first + index for key, index in part["attributes"].items()},
                "indices": first + part["indices"],
                "material": number,
            }
            for part in primitives
        ]
        made["meshes"].append({"name": f"{number}", "primitives": parts})
        for kind in ("alb", "n"):
            image = _png(noise)
            view = {"buffer": 0, "byteOffset": sum(map(len, chunks)), "byteLength": len(image)}
            made["images"].append(
                {"name": f"{number}_{kind}", "mimeType": "image/png", "bufferView": len(made["bufferViews"])}
            )
            made["bufferViews"].append(view)
            chunks.append(image + b"\0" * (-len(image) % 4))
        shading = {"baseColorTexture": {"index": 2 * number}}
        made["materials"].append(
            {"name": f"{number}", "pbrMetallicRoughness": shading, "normalTexture": {"index": 2 * number + 1}}
        )
    nodes = [
        {"name": f"place {number}", "mesh": number % MESHES, "translation": [number % 32 * 25, 0, -(number // 32) * 15]}
        for number in range(PLACES)
    ]
    data = b"".join(chunks)
    text = json.dumps(
        {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": list(range(PLACES))}],
            "nodes": nodes,
            "textures": [{"source": number} for number in range(2 * MESHES)],
            "buffers": [{"byteLength": len(data)}],
            **made,
        }
    ).encode()
    text += b" " * (-len(text) % 4)
    size = 28 + len(text) + len(data)
    head = struct.pack("<4sIII4s", b"glTF", 2, size, len(text), b"JSON")
    return head + text + struct.pack("<I4s", len(data), b"BIN\0") + data


def _png(noise: np.random.Generator) -> bytes:
    row = 1 + 3 * SIZE
    rows = bytearray(row * SIZE)
    pixels = np.frombuffer(rows, np.uint8).reshape(SIZE, row)
    pixels[:ROWS_OF_NOISE, 1:] = noise.integers(0, 256, (ROWS_OF_NOISE, 3 * SIZE), np.uint8)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(rows), 1)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
