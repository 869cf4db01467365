"""``meshferry formats``: list all formats and their capabilities."""

import argparse

from ..io_formats.core.capabilities import ANY_NUMBER, Capabilities
from ..io_formats.core.messages import counted
from .conversions.blender_formats import AnyFormat, all_formats
from .option_arguments import AddParser
from .output import Reporter

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

_RENAMED = {"lod_models": "placed_models"}
"""JSON keys of fields that have other names."""


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    parser = add("formats", help="list the formats and what each can hold")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:  # noqa: ARG001 (all commands are called alike)
    """Print the list."""
    for known in all_formats():
        read, use = known.extensions if known.is_read else (), _use(known)
        reporter.record(
            {
                "name": known.name,
                "label": known.label,
                "extensions": known.extensions,
                "reads": read,
                "writes": known.written_extensions,
                "is_set": known.is_set,
                "needs_blender": known.needs_blender,
                "holds": _record(known.capabilities),
            }
        )
        extensions = ", ".join(known.extensions)
        reporter.result(f"{known.label} ({extensions})\n  {use}\n  holds {described(known.capabilities)}")
    return 0


def _record(capabilities: Capabilities) -> dict[str, bool | int | float]:
    """Return the capabilities under their JSON keys, which stay the same if a field is renamed."""
    held = vars(capabilities) | {"knows_joint": capabilities.knows_joint is not None}
    return {_RENAMED.get(name, name): value for name, value in held.items() if name not in ("meshes", "tangents")}


def _use(known: AnyFormat) -> str:
    """Describe the extensions of a format, and whether its files are read and written."""
    if known.needs_blender:
        use = "converted from and to through Blender"
    elif not known.is_read:
        use = "written only"
    elif not known.is_written:
        use = "read only"
    elif only_read := [name for name in known.extensions if name not in known.written_extensions]:
        use = f"read and written; {', '.join(only_read)} read only"
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
