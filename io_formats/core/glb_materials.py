"""Materials as glTF describes them: a GLB file with several of them -> materials -> a GLB file for each.

A GLB file has a header (magic, version 2, length) and two chunks (length, type, content): JSON and the binary buffer,
each padded to 4 bytes. Numbers are little-endian.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_MAGIC, _JSON, _BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942
_TRANSFORM = "KHR_texture_transform"
_IN_METAL_ROUGHNESS = "pbrMetallicRoughness"


class TextureUse(Enum):
    """A texture of a material, by its key in the file."""

    BASE_COLOR = "baseColorTexture"
    METALLIC_ROUGHNESS = "metallicRoughnessTexture"
    NORMAL = "normalTexture"
    OCCLUSION = "occlusionTexture"
    EMISSIVE = "emissiveTexture"


_BELOW_METAL_ROUGHNESS = (TextureUse.BASE_COLOR, TextureUse.METALLIC_ROUGHNESS)


@dataclass(frozen=True)
class TextureTransform:
    """The values of ``KHR_texture_transform``."""

    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    """Angle in radians."""
    scale: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True)
class GltfImage:
    """An image file, PNG or JPEG; other types have to be converted before they are written."""

    name: str
    data: bytes

    @property
    def mime_type(self) -> str:
        return "image/jpeg" if self.data.startswith(b"\xff\xd8\xff") else "image/png"


@dataclass
class GltfTexture:
    """An image as a material uses it."""

    image: GltfImage
    transform: TextureTransform = TextureTransform()
    values: Mapping[str, float] = field(default_factory=dict)
    """``scale`` of a normal texture, ``strength`` of an occlusion texture."""


@dataclass
class GltfMaterial:
    """A material without extensions."""

    name: str
    values: dict[str, Any]
    """The JSON of the material without textures and extensions."""
    textures: dict[TextureUse, GltfTexture] = field(default_factory=dict)
    extensions: dict[str, Any] = field(default_factory=dict)
    """JSON of the material's extensions; ``write_material`` leaves them out."""


def read_materials(data: bytes) -> dict[str, GltfMaterial]:
    """Return the material of the first primitive of each mesh of a GLB file, by the name of the mesh.

    Raises
    ------
    ValueError
        The content is not that of a GLB file of version 2 with materials.
    """
    try:
        magic, version, _, size, kind = struct.unpack_from("<5I", data)
        if (magic, version, kind) != (_MAGIC, 2, _JSON):
            raise ValueError("not a GLB file of version 2")
        content = json.loads(data[20 : 20 + size])
        buffer = memoryview(data)[28 + size :]
        views = content.get("bufferViews", [])
        images = [_image(image, views, buffer) for image in content.get("images", [])]
        textures = content.get("textures", [])
        used = {mesh["name"]: mesh["primitives"][0]["material"] for mesh in content.get("meshes", [])}
        return {name: _material(content["materials"][number], textures, images) for name, number in used.items()}
    except (struct.error, LookupError, TypeError) as problem:
        raise ValueError(f"damaged GLB file: {problem!r}") from None


def _image(image: Mapping[str, Any], views: list[Any], buffer: memoryview) -> GltfImage:
    view = views[image["bufferView"]]
    begin = view.get("byteOffset", 0)
    return GltfImage(image.get("name", ""), bytes(buffer[begin : begin + view["byteLength"]]))


def _material(given: Mapping[str, Any], textures: list[Any], images: list[GltfImage]) -> GltfMaterial:
    """Return a material of a glTF file with its textures resolved to images; its other values stay as they are."""
    values = {key: value for key, value in given.items() if key not in ("extensions", "extras")}
    shading = dict(values.get(_IN_METAL_ROUGHNESS, {}))
    made = GltfMaterial(given.get("name", ""), values, extensions=given.get("extensions", {}))
    for use in TextureUse:
        info = (shading if use in _BELOW_METAL_ROUGHNESS else values).pop(use.value, None)
        if info is None:
            continue
        texture = textures[info["index"]]
        source = texture.get("source", texture.get("extensions", {}).get("EXT_texture_webp", {}).get("source"))
        if source is None:
            continue
        others = {key: float(info[key]) for key in ("scale", "strength") if key in info}
        made.textures[use] = GltfTexture(images[source], _transform(info.get("extensions", {})), others)
    if _IN_METAL_ROUGHNESS in values:
        values[_IN_METAL_ROUGHNESS] = shading
    return made


def _transform(extensions: Mapping[str, Any]) -> TextureTransform:
    given = extensions.get(_TRANSFORM, {})
    u, v = given.get("offset", (0.0, 0.0))
    across, up = given.get("scale", (1.0, 1.0))
    return TextureTransform((float(u), float(v)), float(given.get("rotation", 0.0)), (float(across), float(up)))


def write_material(material: GltfMaterial) -> bytes:
    """Encode a GLB file with only this material, without texture transforms, meshes and scenes."""
    values = dict(material.values)
    shading = dict(values.get(_IN_METAL_ROUGHNESS, {}))
    images = list(dict.fromkeys(texture.image for texture in material.textures.values()))
    for use, texture in material.textures.items():
        owner = shading if use in _BELOW_METAL_ROUGHNESS else values
        owner[use.value] = {"index": images.index(texture.image), **texture.values}
    if shading:
        values[_IN_METAL_ROUGHNESS] = shading
    buffer = bytearray()
    views = []
    for image in images:
        views.append({"buffer": 0, "byteOffset": len(buffer), "byteLength": len(image.data)})
        buffer += image.data + bytes(-len(image.data) % 4)
    content: dict[str, Any] = {"asset": {"version": "2.0", "generator": "Meshferry"}, "materials": [values]}
    if images:
        content["textures"] = [{"source": number} for number in range(len(images))]
        content["images"] = [
            {"name": image.name, "mimeType": image.mime_type, "bufferView": number}
            for number, image in enumerate(images)
        ]
        content["bufferViews"] = views
    return encode_glb(content, bytes(buffer))


def encode_glb(content: dict[str, Any], buffer: bytes) -> bytes:
    """Encode a GLB file with this JSON and its buffer, whose length is a multiple of 4."""
    if buffer:
        content["buffers"] = [{"byteLength": len(buffer)}]
    text = json.dumps(content, separators=(",", ":")).encode()
    chunks = [(_JSON, text + b" " * (-len(text) % 4)), *([(_BINARY, buffer)] if buffer else [])]
    body = b"".join(struct.pack("<II", len(chunk), kind) + chunk for kind, chunk in chunks)
    return struct.pack("<III", _MAGIC, 2, 12 + len(body)) + body
