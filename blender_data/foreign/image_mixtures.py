"""Materials that mix images, which other programs' formats do not hold."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from ...io_formats.core.messages import Report
from .. import compat
from ..exporting.reading.shader_nodes import Socket, output_of, sources


def report_mixtures(materials: Iterable[bpy.types.Material], report: Report) -> None:
    """Report the materials with a mixture of images by a factor that is not constant."""
    names = [material.name for material in materials if _has_mixture(material)]
    report.loss_of("image-mixture", "{} with a mixture of images, which the file does not hold: {}", names, "material")


def _has_mixture(material: bpy.types.Material) -> bool:
    tree = compat.node_tree(material)
    output = output_of(tree) if tree is not None else None
    if output is None:
        return False
    nodes = [found.node for found in sources(Socket(output.inputs["Surface"]))]
    has_image = any(node.type == "TEX_IMAGE" for node in nodes)
    return has_image and any(_mixes(node) for node in nodes if node.type == "MIX")


def _mixes(node: bpy.types.Node) -> bool:
    """Return whether a Mix node blends two colours by a linked factor."""
    return bool(node.blend_type == "MIX" and any(entry.is_linked for entry in node.inputs if entry.type == "VALUE"))
