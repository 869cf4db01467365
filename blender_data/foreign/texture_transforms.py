"""Rotated images -> Mapping nodes as glTF stores them, where coordinates are scaled before they are rotated.

Blender's exporter leaves out the transforms of most other nodes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import bpy
import numpy as np

from ...io_formats.core.messages import Report
from .. import compat
from ..exporting.reading.material_reading import occlusion_inputs
from ..exporting.shading.node_sources import Socket, output_of, source, sources

_INPUTS = ("Location", "Rotation", "Scale")
_PERPENDICULAR = 1e-5
"""Largest cosine between the columns of a matrix that consists of a scale and then a rotation."""
_MIDDLE = np.full(2, 0.5)


@contextlib.contextmanager
def scaled_before_rotated(materials: Iterable[bpy.types.Material], report: Report) -> Iterator[None]:
    """Let Mapping nodes before images scale before they rotate, within a ``with`` block.

    Where that is not possible, the rotation is left out so that the middle of the image keeps its place, and the
    material is reported.
    """
    before: dict[Any, tuple[str, list[tuple[float, ...]]]] = {}
    is_exact: dict[Any, bool] = {}
    lost: list[str] = []
    for material in materials:
        nodes = _mapping_nodes(material)
        for node in nodes:
            if node not in is_exact:
                before[node] = node.vector_type, [_values(node, name) for name in _INPUTS]
                is_exact[node] = _convert(node)
        if not all(map(is_exact.__getitem__, nodes)):
            lost.append(material.name)
    text = "{} with rotated images that are scaled unevenly; glTF stores them without rotation: {}"
    report.loss_of("glb-texture-transform", text, lost, "material")
    try:
        yield
    finally:
        for node, (kind, values) in before.items():
            if node.vector_type != kind:
                node.vector_type = kind
                for name, value in zip(_INPUTS, values, strict=True):
                    node.inputs[name].default_value = value


def _mapping_nodes(material: bpy.types.Material) -> list[Any]:
    """Return the Mapping nodes directly before the images of a material."""
    tree = compat.node_tree(material)
    output = output_of(tree) if tree is not None else None
    if tree is None or output is None:
        return []
    found: dict[Any, None] = {}
    for socket in (output.inputs["Surface"], *occlusion_inputs(tree)):
        for reached in sources(Socket(socket)):
            if reached.node.type == "TEX_IMAGE":
                entry = source(reached.input("Vector"))
                if not entry.is_value and entry.node.type == "MAPPING":
                    found[entry.node] = None
    return list(found)


def _values(node: Any, name: str) -> tuple[float, ...]:
    return tuple(node.inputs[name].default_value) if name in node.inputs else ()


def _convert(node: Any) -> bool:
    """Convert a rotated Mapping node of type TEXTURE to one of type POINT; return False if it cannot be exact."""
    ahead = source(Socket(node.inputs["Vector"]))
    if not ahead.is_value and ahead.node.type == "MAPPING":
        return False
    if node.vector_type != "TEXTURE" or any(node.inputs[name].is_linked for name in _INPUTS):
        return True
    location, rotation, scale = (np.array(_values(node, name), np.float64) for name in _INPUTS)
    if not rotation[2] or rotation[:2].any() or node.id_data.library is not None:
        return True
    inverse = np.divide(1.0, scale, out=np.zeros(3), where=scale != 0.0)
    sine, cosine = math.sin(rotation[2]), math.cos(rotation[2])
    matrix = inverse[:2, None] * np.array([(cosine, sine), (-sine, cosine)])
    offset = -matrix @ location[:2]
    lengths = np.linalg.norm(matrix, axis=0)
    is_exact = bool(abs(matrix[:, 0] @ matrix[:, 1]) <= _PERPENDICULAR * lengths.prod())
    if not is_exact:
        offset += (matrix - np.diag(inverse[:2])) @ _MIDDLE
        matrix = np.diag(inverse[:2])
    (x, other_y), (other_x, y) = matrix.T
    angle = math.atan2(other_y, x) if lengths[0] else math.atan2(-other_x, y)
    if math.cos(angle) < 0.0:
        angle -= math.copysign(math.pi, angle)
    sine, cosine = math.sin(angle), math.cos(angle)
    node.vector_type = "POINT"
    node.inputs["Location"].default_value = (*offset, -location[2] * inverse[2])
    node.inputs["Rotation"].default_value = (0.0, 0.0, angle)
    node.inputs["Scale"].default_value = (x * cosine + other_y * sine, y * cosine - other_x * sine, inverse[2])
    return is_exact
