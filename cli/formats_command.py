"""``meshferry formats``: list all formats and their capabilities."""

from __future__ import annotations

import argparse
from typing import Any

from ..io_formats.core.capabilities import Capabilities
from ..io_formats.core.messages import counted
from ..io_formats.registry import FORMATS, Format
from .conversions.blender_formats import ANY_NUMBER, BLENDER_FORMATS, BlenderFormat
from .reporting import Reporter

_NAMES = {
    "normals": "normals",
    "materials": "materials",
    "custom_layers": "custom layers",
    "node_hierarchy": "node hierarchy",
    "shape_keys": "shape keys",
    "skeletons": "skeletons",
    "node_clips": "node animation",
    "joint_clips": "bone animation",
    "vertex_clips": "vertex animation",
    "levels_of_detail": "levels of detail",
    "physics": "physics shapes",
    "placement": "models of other files",
    "joins_objects": "all objects as one mesh",
    "joins_clips": "one animation",
    "placed_models": "place and size of each object",
}


def add_parser(subparsers: Any, parents: list[argparse.ArgumentParser]) -> None:
    """Add the sub command."""
    parser = subparsers.add_parser(
        "formats", parents=parents, allow_abbrev=False, help="list the formats and what each can hold"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:  # noqa: ARG001 (all commands are called alike)
    """Print the list."""
    for known in FORMATS:
        reporter.record(
            {
                "name": known.name,
                "label": known.label,
                "extensions": known.extensions,
                "reads": list(known.extensions) if known.is_read else [],
                "writes": list(known.written_extensions),
                "is_set": known.is_set,
                "needs_blender": False,
                "holds": _record(known.capabilities),
            }
        )
        _tell(known, _use(known), reporter)
    for kind in BLENDER_FORMATS:
        reporter.record(
            {
                "name": kind.name,
                "label": kind.label,
                "extensions": kind.extensions,
                "reads": list(kind.extensions),
                "writes": list(kind.extensions),
                "is_set": kind.is_set,
                "needs_blender": True,
                "holds": _record(kind.capabilities),
            }
        )
        beside = "; several files beside each other" if kind.is_set else ""
        _tell(kind, f"converted from and to through Blender{beside}", reporter)
    return 0


def _record(capabilities: Capabilities) -> dict[str, bool | int | float]:
    """Return the capabilities under their JSON keys, which stay the same whatever the fields are called."""
    return {
        "uv_layers": capabilities.uv_layers,
        "color_layers": capabilities.color_layers,
        "custom_layers": capabilities.custom_layers,
        "normals": capabilities.normals,
        "splits_vertices": capabilities.splits_vertices,
        "materials": capabilities.materials,
        "project_textures": capabilities.project_textures,
        "node_hierarchy": capabilities.node_hierarchy,
        "shape_keys": capabilities.shape_keys,
        "skeletons": capabilities.skeletons,
        "influences": capabilities.influences,
        "node_clips": capabilities.node_clips,
        "joint_clips": capabilities.joint_clips,
        "vertex_clips": capabilities.vertex_clips,
        "keyed_clips": capabilities.keyed_clips,
        "levels_of_detail": capabilities.levels_of_detail,
        "surfaces": capabilities.surfaces,
        "physics": capabilities.physics,
        "placed_models": capabilities.lod_models,
        "placement": capabilities.placement,
        "opaque_colors": capabilities.opaque_colors,
        "gltf_materials": capabilities.gltf_materials,
        "joins_objects": capabilities.joins_objects,
        "joins_clips": capabilities.joins_clips,
        "longest_clip": capabilities.longest_clip,
        "knows_joint": capabilities.knows_joint is not None,
    }


def _tell(known: Format | BlenderFormat, use: str, reporter: Reporter) -> None:
    extensions = ", ".join(known.extensions)
    reporter.result(f"{known.label} ({extensions})\n  {use}\n  holds {described(known.capabilities)}")


def _use(known: Format) -> str:
    """Describe the extensions of a format, and whether its files are read and written."""
    if not known.is_read:
        use = "written only"
    elif not known.is_written:
        use = "read only"
    elif known.only_read:
        use = f"read and written; {', '.join(known.only_read)} read only"
    else:
        use = "read and written"
    return f"{use}; several files beside each other" if known.is_set else use


def described(capabilities: Capabilities) -> str:
    """Describe the capabilities of a format."""
    held = _record(capabilities)
    parts = [
        _amount(capabilities.uv_layers, "UV layer"),
        _amount(capabilities.color_layers, "colour layer")
        + (" without alpha" if capabilities.opaque_colors >= capabilities.color_layers > 0 else ""),
        _amount(capabilities.influences, "weight", " a vertex"),
    ]
    parts += [name for key, name in _NAMES.items() if held[key]]
    return ", ".join(part for part in parts if part) or "bare triangles"


def _amount(number: int, noun: str, more: str = "") -> str:
    if not number:
        return ""
    return (f"any number of {noun}s" if number >= ANY_NUMBER else counted(number, noun)) + more
