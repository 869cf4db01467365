"""What OpenSim makes of an upload request: the handler of its released servers, and that of its main line since 2025.

LLSD XML is read with the standard library alone. The handlers follow docs/users/second_life.md; colours are
compared in single precision and cut to bytes, as there.
"""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Any

import numpy as np
import second_life_oracle

Look = tuple[bytes | None, tuple[int, ...], bool]
"""Texture (None: plain white), colour in bytes, and whether the face is full bright."""


def parse(data: bytes) -> Any:
    """Return the value of an LLSD XML document."""
    (value,) = ET.fromstring(data)
    return _value(value)


def _value(element: ET.Element) -> Any:
    text = element.text or ""
    match element.tag:
        case "map":
            children = list(element)
            return {key.text: _value(value) for key, value in zip(children[::2], children[1::2], strict=True)}
        case "array":
            return [_value(child) for child in element]
        case "binary":
            return base64.b64decode(text)
        case "boolean":
            return text in ("1", "true")
        case "integer":
            return int(text)
        case "real":
            return float(text)
        case "string" | "uuid":
            return text
    raise AssertionError(f"unknown element {element.tag}")


@dataclass
class Prim:
    """A prim of the linkset that a server makes; the first one is the root."""

    name: str
    mesh: bytes
    position: list[float]
    rotation: list[float]
    scale: list[float]
    looks: list[Look]


def upload(body: dict[str, Any], *, is_released: bool) -> list[Prim]:
    """Return the linkset that a server makes of the body of an upload.

    Raises
    ------
    IndexError
        A released server answers with error 500.
    """
    meshes: list[bytes] = body["mesh_list"]
    sides = [len(second_life_oracle.decode(mesh).levels["high_lod"]) for mesh in meshes]
    prims = []
    for number, instance in enumerate(body["instance_list"]):
        mesh = meshes[instance["mesh"]]
        side_count = sides[number if is_released else instance["mesh"]]
        looks = _looks(instance["face_list"], body["texture_list"], is_released=is_released)
        prims.append(
            Prim(
                *(instance["mesh_name"], mesh, instance["position"], instance["rotation"], instance["scale"]),
                looks[:side_count],
            )
        )
    return prims


def _looks(faces: list[dict[str, Any]], textures: list[bytes], *, is_released: bool) -> list[Look]:
    stored: list[dict[str, Any]] = []
    for face in faces:
        own: dict[str, Any] = {}
        color = np.array(face["diffuse_color"], np.float32)
        if np.any(color != 1):  # white, the value of new faces, is not stored
            own["color"] = color
        if face["fullbright"]:
            own["bright"] = True
        image = face.get("image", 0 if is_released else -1)
        if 0 <= image < len(textures):
            own["texture"] = textures[image]
        stored.append(own)
    default = {"color": np.ones(4, np.float32), "bright": False, "texture": None}
    if is_released:
        default |= stored[-1]
    shown = [default | own for own in stored]
    return [
        (look["texture"], tuple((look["color"] * np.float32(255)).astype(np.uint8).tolist()), look["bright"])
        for look in shown
    ]
