"""What ``meshferry inspect`` prints about a Collada file."""

from __future__ import annotations

from typing import Any

from .document import Collada, Geometry


def facts(document: Collada) -> dict[str, Any]:
    """Return counts as sums over all objects: a mesh with three objects counts three times.

    ``nodes`` counts the meshes in nodes, including partner files, ``materials`` the material symbols, and ``bones`` the
    joints that the skins list. ``partners`` counts the files of other levels and of physics.
    """
    instances = [instance for node in document.nodes for instance in node.instances]
    geometries = [document.geometries[instance.geometry] for instance in instances]
    groups = [group for geometry in geometries for group in geometry.groups]
    partners = {suffix: facts(partner) for suffix, partner in document.partners.items()}
    shared = ("nodes", "vertices", "triangles")
    return {
        "version": document.version,
        "nodes": len(instances) + sum(found["nodes"] for found in partners.values()),
        "vertices": sum(len(geometry.positions) for geometry in geometries),
        "triangles": sum(_triangles(geometry) for geometry in geometries),
        "surfaces": len(groups),
        "materials": len({group.symbol for group in groups if group.symbol}),
        "uv_layers": max((len(group.uvs) for group in groups), default=0),
        "color_layers": max((len(group.colors) for group in groups), default=0),
        "bones": len({name for skin in document.skins for name in skin.joint_names}),
        "tool": document.tool,
        "meter": document.meter,
        "up_axis": document.up_axis,
        "partners": {suffix: {key: found[key] for key in shared} for suffix, found in partners.items()},
        "warnings": [*document.warnings, *(text for found in partners.values() for text in found["warnings"])],
    }


def _triangles(geometry: Geometry) -> int:
    return sum(int((group.sizes - 2).sum()) for group in geometry.groups)
