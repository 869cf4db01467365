"""Check a model against the rules of Timberborn's loader (docs/formats/timbermesh.md, what the game rejects)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..core.findings import Finding, error, warning
from . import document as doc
from .known_names import SLOT_KEYWORDS
from .space import GAME_DIMENSIONS, MOST_ANIMATED

_SLOT = "#Slot#"


def check(model: doc.Model) -> list[Finding]:
    """Return what the game would reject (errors) and what would show differently than expected (warnings)."""
    findings: list[Finding] = []
    parents = {node.parent for node in model.nodes}
    if not model.nodes:
        findings.append(error("", "the model has no nodes"))
    for index, node in enumerate(model.nodes):
        item = f"Node '{node.name}'"
        findings += _check_transform(item, node)
        if not node.name:
            findings.append(error(f"Node {index}", "it has no name"))
        if not -1 <= node.parent < len(model.nodes):
            findings.append(error(item, f"its parent {node.parent} does not exist"))
        if index not in parents and not _has_triangles(node) and not node.name.startswith("#") and node.parent != -1:
            findings.append(warning(item, "an empty leaf whose name does not begin with #; the game deletes it"))
        findings += _check_mesh(item, node)
        findings += _check_animations(item, node)
    findings += _check_names(model)
    return findings


def _has_triangles(node: doc.Node) -> bool:
    return any(len(mesh.indices) for mesh in node.meshes)


def _check_transform(item: str, node: doc.Node) -> list[Finding]:
    findings: list[Finding] = []
    for what, value in (("position", node.position), ("rotation", node.rotation), ("scale", node.scale)):
        if value is None:
            findings.append(error(item, f"its {what} is missing"))
        elif not np.isfinite(value).all():
            findings.append(error(item, f"its {what} is NaN or infinite"))
    if node.scale is not None and not all(node.scale):
        findings.append(error(item, "its scale is zero, so nothing of it is shown"))
    if node.rotation is not None and not any(node.rotation):
        findings.append(error(item, "its rotation is all zero"))
    return findings


def _check_mesh(item: str, node: doc.Node) -> list[Finding]:
    findings = _check_properties(item, node)
    count = node.vertex_count
    for mesh in node.meshes:
        where = f"{item}, material '{mesh.material}'"
        if len(mesh.indices) % 3:
            findings.append(error(where, f"{len(mesh.indices)} indices are not a multiple of 3"))
        elif not len(mesh.indices):
            findings.append(warning(where, "it has no triangles"))
        if len(mesh.indices) and (int(mesh.indices.min()) < 0 or int(mesh.indices.max()) >= count):
            findings.append(error(where, "triangles name vertices that do not exist"))
    return findings


def _check_properties(item: str, node: doc.Node) -> list[Finding]:
    findings: list[Finding] = []
    count = node.vertex_count
    if count < 0:
        return [error(item, f"its vertex count is {count}")]
    seen: set[str] = set()
    for found in node.properties:
        needed = GAME_DIMENSIONS.get(found.name)
        if found.name in seen:
            findings.append(warning(item, f"vertex property '{found.name}' occurs twice; the game takes the first"))
        seen.add(found.name)
        if needed is None:
            continue
        if len(found.data) < count * needed * 4:
            findings.append(error(item, f"vertex property '{found.name}' is shorter than its {count:,} vertices"))
        elif found.scalar_type not in (doc.ScalarType.FLOAT32, doc.ScalarType.UNSPECIFIED) or found.dimension not in (
            needed,
            0,
        ):
            findings.append(
                error(item, f"vertex property '{found.name}' is not {needed} × float32; the game reads garbage")
            )
        elif found.name == "position" and not np.isfinite(np.frombuffer(found.data, "<f4", count * 3)).all():
            findings.append(error(item, "some vertices have NaN or infinite positions"))
    if count and "position" not in seen:
        findings.append(error(item, "its vertices have no position"))
    if count and "normal" not in seen:
        findings.append(warning(item, "it has no normals, and the game does not compute them: it will look unlit"))
    return findings


def _check_animations(item: str, node: doc.Node) -> list[Finding]:
    findings: list[Finding] = []
    animations = [(a.name, a.framerate, a.frame_count) for a in node.node_animations]
    vertex_animations = [(a.name, a.framerate, len(a.frames)) for a in node.vertex_animations]
    for group in (animations, vertex_animations):
        for name, repeats in Counter(name for name, _, _ in group).items():
            if repeats > 1:
                findings.append(error(f"{item}, animation '{name}'", "two animations of the node have this name"))
        for name, framerate, frames in group:
            where = f"{item}, animation '{name}'"
            if not name:
                findings.append(error(where, "it has no name"))
            if frames == 0:
                findings.append(error(where, "it has no frames"))
            if not framerate > 0 or not np.isfinite(framerate):
                findings.append(error(where, f"its frame rate is {framerate:g}, so it never ends"))
    for animation in node.node_animations:
        if not animation.present.all():
            findings.append(
                error(f"{item}, animation '{animation.name}'", "frames without position, rotation or scale")
            )
        if not all(np.isfinite(rows).all() for rows in (animation.positions, animation.rotations, animation.scales)):
            findings.append(error(f"{item}, animation '{animation.name}'", "some frames hold NaN or infinite values"))
    for moved in node.vertex_animations:
        findings += _check_vertex_animation(f"{item}, vertex animation '{moved.name}'", node, moved)
    return findings


def _check_vertex_animation(where: str, node: doc.Node, animation: doc.VertexAnimation) -> list[Finding]:
    findings: list[Finding] = []
    count = animation.animated_vertex_count
    if not 0 < count <= node.vertex_count:
        findings.append(error(where, f"{count} animated vertices of {node.vertex_count:,}"))
    for frame in animation.frames:
        # the game uses the first property of each name
        stored = {found.name: found.data for found in reversed(frame.properties)}
        offset, rotation = stored.get("offset", b""), stored.get("rotation", b"")
        if len(offset) < count * 12 or len(rotation) < count * 16:
            findings.append(error(where, f"a frame lacks offset or rotation for its {count} vertices"))
            break
        if count > 0 and not np.isfinite(np.frombuffer(offset, "<f4", count * 3)).all():
            findings.append(error(where, "some frames hold NaN or infinite values"))
            break
    if count > MOST_ANIMATED or len(animation.frames) > MOST_ANIMATED:
        findings.append(
            warning(
                where,
                f"{count:,} vertices and {len(animation.frames):,} frames; "
                f"more than {MOST_ANIMATED:,} may not fit the graphics card",
            )
        )
    if len(node.meshes) > 1:
        findings.append(
            warning(
                where, f"only its first material of {len(node.meshes)} will move; give an animated node one material"
            )
        )
    return findings


def _check_names(model: doc.Model) -> list[Finding]:
    findings: list[Finding] = []
    names = Counter(node.name for node in model.nodes)
    for single in ("#MiscStart", "#MiscEnd"):
        if names[single] > 1:
            findings.append(
                warning(f"Node '{single}'", f"{names[single]} nodes have this name; the game expects at most one")
            )
    for name in names:
        if name.startswith(_SLOT) and not name[len(_SLOT) :].startswith(SLOT_KEYWORDS):
            findings.append(warning(f"Node '{name}'", f"unknown slot; the game knows {', '.join(SLOT_KEYWORDS)}"))
        if name.lower().startswith(_SLOT.lower()) and not name.startswith(_SLOT):
            findings.append(
                warning(f"Node '{name}'", f"the game expects the prefix '{_SLOT}' in exactly this spelling")
            )
    return findings
