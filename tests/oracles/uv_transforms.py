"""Where an image is sampled: transforms of UV coordinates, each transcribed from its own specification.

Points are (N, 2) float64, with v up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]

POINTS: Points = np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.3, 0.8), (-1.5, 2.25)])


def of_mapping(mapping: Any, points: Points = POINTS) -> Points:
    """Return what a neutral mapping states (``core/shading.py``)."""
    sine, cosine = math.sin(mapping.rotation), math.cos(mapping.rotation)
    u, v = points.T
    rotated = np.stack((u * cosine + v * sine, v * cosine - u * sine), axis=1)
    return rotated * mapping.scale + mapping.offset


def of_face(
    repeats: tuple[float, float], offsets: tuple[float, float], rotation: float, points: Points = POINTS
) -> Points:
    """Return what a face of a part shows (docs/formats/opensim_archives.md, Faces)."""
    s, t = (points - 0.5).T
    turned = np.stack(
        (s * math.cos(rotation) + t * math.sin(rotation), -s * math.sin(rotation) + t * math.cos(rotation)), axis=1
    )
    return turned * repeats + offsets + 0.5


def of_node(node: Any, points: Points = POINTS) -> Points:
    """Return what a Mapping node computes (Blender manual, Mapping Node), rotated about Z only."""
    location, rotation, scale = (
        np.array(node.inputs[name].default_value, np.float64) if name in node.inputs else np.zeros(3)
        for name in ("Location", "Rotation", "Scale")
    )
    assert not rotation[:2].any()
    sine, cosine = math.sin(rotation[2]), math.cos(rotation[2])
    matrix = np.array([(cosine, -sine), (sine, cosine)])
    if node.vector_type == "TEXTURE":  # the inverse of the transform of a point
        return (points - location[:2]) @ matrix / scale[:2]
    return (points * scale[:2]) @ matrix.T + location[:2] * (node.vector_type == "POINT")


def of_gltf(info: dict[str, Any], points: Points = POINTS) -> Points:
    """Return what a texture of a glTF file shows (KHR_texture_transform), where v is down.

    The sign of the rotation is that of the Khronos viewer, three.js and Blender's importer.
    """
    given = info.get("extensions", {}).get("KHR_texture_transform", {})
    rotation = given.get("rotation", 0.0)
    sine, cosine = math.sin(rotation), math.cos(rotation)
    scaled = np.stack((points[:, 0], 1.0 - points[:, 1]), axis=1) * given.get("scale", (1.0, 1.0))
    u, v = scaled.T
    moved = np.stack((u * cosine + v * sine, v * cosine - u * sine), axis=1) + given.get("offset", (0.0, 0.0))
    return np.stack((moved[:, 0], 1.0 - moved[:, 1]), axis=1)
