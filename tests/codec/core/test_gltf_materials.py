"""Materials of GLB files: read from bytes made by hand, written for an independent reader."""

from __future__ import annotations

import json
import struct
from typing import Any

import glb_oracle
import pytest
from meshferry.io_formats.core.glb_materials import TextureTransform, TextureUse, read_materials, write_material

PNG, JPEG = b"\x89PNG pixels", b"\xff\xd8\xff pixels."
CONTENT: dict[str, Any] = {
    "asset": {"version": "2.0"},
    "extensionsUsed": ["KHR_texture_transform", "EXT_texture_webp"],
    "materials": [
        {"name": "unused"},
        {
            "name": "Leather",
            "extras": {"note": 1},
            "doubleSided": True,
            "alphaMode": "MASK",
            "alphaCutoff": 0.25,
            "extensions": {"KHR_materials_clearcoat": {"clearcoatFactor": 1}},
            "normalTexture": {"index": 1, "scale": 0.5},
            "pbrMetallicRoughness": {
                "metallicFactor": 0.5,
                "baseColorTexture": {
                    "index": 0,
                    "texCoord": 1,
                    "extensions": {"KHR_texture_transform": {"scale": [2, 3], "rotation": 1.5}},
                },
                "metallicRoughnessTexture": {"index": 2},
            },
        },
    ],
    "meshes": [{"name": "mesh", "primitives": [{"attributes": {}, "material": 1}]}],
    "textures": [{"source": 0}, {"extensions": {"EXT_texture_webp": {"source": 1}}}, {"sampler": 0}],
    "images": [{"name": "base", "bufferView": 1, "mimeType": "image/png"}, {"bufferView": 0, "mimeType": "image/webp"}],
    "bufferViews": [
        {"buffer": 0, "byteLength": len(JPEG)},
        {"buffer": 0, "byteOffset": len(JPEG), "byteLength": len(PNG)},
    ],
}


def glb(content: Any, *, magic: bytes = b"glTF", version: int = 2) -> bytes:
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    buffer = JPEG + PNG
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(buffer), b"BIN\0") + buffer
    return struct.pack("<4sII", magic, version, 12 + len(chunks)) + chunks


def test_a_material_is_written_without_what_the_target_ignores() -> None:
    found = read_materials(glb(CONTENT))
    assert list(found) == ["mesh"]
    material = found["mesh"]
    assert material.extensions.keys() == {"KHR_materials_clearcoat"}
    assert material.textures.keys() == {TextureUse.BASE_COLOR, TextureUse.NORMAL}  # the third has no image
    assert material.textures[TextureUse.BASE_COLOR].transform == TextureTransform((0, 0), 1.5, (2, 3))
    data = write_material(material)
    content, _ = glb_oracle.read_glb(data)
    assert glb_oracle.images_of(data) == [PNG, JPEG]
    assert [image["mimeType"] for image in content["images"]] == ["image/png", "image/jpeg"]
    assert content["materials"] == [
        {
            "name": "Leather",
            "doubleSided": True,
            "alphaMode": "MASK",
            "alphaCutoff": 0.25,
            "normalTexture": {"index": 1, "scale": 0.5},
            "pbrMetallicRoughness": {"metallicFactor": 0.5, "baseColorTexture": {"index": 0}},
        }
    ]
    assert content.keys() == {"asset", "materials", "textures", "images", "bufferViews", "buffers"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"glTF", "damaged"),
        (glb(CONTENT, magic=b"FTlg"), "version 2"),
        (glb(CONTENT, version=1), "version 2"),
        (glb({**CONTENT, "materials": []}), "damaged"),
        (glb({**CONTENT, "bufferViews": []}), "damaged"),
        (glb({**CONTENT, "meshes": [1]}), "damaged"),
    ],
)
def test_other_files_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_materials(data)
