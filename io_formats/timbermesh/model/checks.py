"""Check a model against the rules of Timberborn's loader (docs/formats/timbermesh.md, what the game rejects)."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ...core.messages import Message, Named, Report, Text, joined, of_kind
from ..game_names import SLOT_KEYWORDS, MaterialNames, material_names, without_suffix
from . import codec
from .codec import GAME_DIMENSIONS, MOST_ANIMATED
from .format import WriteOptions

_DEFAULT_NAME = "Material"
"""Name of the material in Blender's start-up scene."""
_MOST_SUGGESTIONS = 20
"""Largest number of unknown names that are compared with all known ones; real models have at most 18 materials."""


def check_in_context(model: codec.Model, options: WriteOptions, path: Path | None) -> list[Message]:
    """Return the names of materials that the game does not load.

    Parameters
    ----------
    path:
        Path of the model's file, which may be in the folder of a mod.
    """
    meshes = [mesh for node in model.nodes for mesh in node.meshes]
    shown = {mesh.material for mesh in meshes if len(mesh.indices)}
    names = dict.fromkeys(of_kind("material", (mesh.material for mesh in meshes)))
    if not any(name.strip() for name in names):
        return []
    known = material_names(options.game, path)
    found = Report([*known.warnings])
    suggestions = 0
    for name in names:
        # A model of a published mod has such a name on a mesh without triangles, and the game loads it.
        report = found.about(Text("Material '{}'", name))
        if _has_blender_name(name, report.error if name in shown else report.warning) or known.is_known(name):
            continue
        suggestions += 1
        _check_unknown(name, known, report, has_suggestion=suggestions <= _MOST_SUGGESTIONS)
    return found.messages


def _has_blender_name(name: str, report: Callable[..., None]) -> bool:
    """Report a name that Blender gave a material; return whether it is one."""
    plain, allowed = without_suffix(name), "use_blender_names"
    if plain == _DEFAULT_NAME:
        text = "Blender's default name makes the game fail; give it the name of one of the game's materials"
        report("blender-default-name", text, allowed_by=allowed, file_name=name)
    elif plain != name:
        text = "Blender's number suffix makes the game fail; rename it to '{}', or turn on Strip .001"
        fix = {"is_fixable": True, "names": (name,), "new_name": plain}
        report("blender-name-suffix", text, Named("material", plain), allowed_by=allowed, file_name=name, **fix)
    return plain != name or plain == _DEFAULT_NAME


def _check_unknown(name: str, known: MaterialNames, report: Report, *, has_suggestion: bool) -> None:
    """Warn about a name that is not known, unless the known names are incomplete and none is similar."""
    near = known.nearest(name) if has_suggestion else None
    if near is not None:
        template = "unknown material, perhaps '{}' is meant; the game does not load a model with unknown materials"
        if known.is_complete:
            template = "unknown material; nearest: '{}'. The game does not load a model with unknown materials"
        suggested = Named("material", near)
        report.warning("unknown-material", template, suggested, is_fixable=True, names=(name,), new_name=near)
    elif known.is_complete:
        report.warning("unknown-material", "unknown material; the game does not load a model with unknown materials")


_SLOT = "#Slot#"


def check(model: codec.Model) -> list[Message]:
    """Return errors for data that the game rejects, and warnings for data that it shows differently than expected."""
    found = Report()
    parents = {node.parent for node in model.nodes}
    if not model.nodes:
        found.error("model-without-nodes", "the model has no nodes")
    for index, node in enumerate(model.nodes):
        report = found.about(Text("Node '{}'", node.name))
        _check_transform(report, node)
        if not node.name:
            found.error("no-name", "it has no name", item=Text("Node {}", index))
        if not -1 <= node.parent < len(model.nodes):
            report.error("no-such-parent", "its parent {} does not exist", node.parent)
        if index not in parents and not _has_triangles(node) and not node.name.startswith("#") and node.parent != -1:
            report.warning("empty-leaf", "an empty leaf whose name does not begin with #; the game deletes it")
        _check_mesh(report, node)
        _check_animations(report, node)
    _check_names(found, model)
    return found.messages


def _has_triangles(node: codec.Node) -> bool:
    return any(len(mesh.indices) for mesh in node.meshes)


def _check_transform(report: Report, node: codec.Node) -> None:
    for what, value in (("position", node.position), ("rotation", node.rotation), ("scale", node.scale)):
        if value is None:
            report.error("missing-transform", "its {} is missing", Text(what))
        elif not np.isfinite(value).all():
            report.error("nan-transform", "its {} is NaN or infinite", Text(what))
    if node.scale is not None and not all(node.scale):
        report.error("zero-scale", "its scale is zero, so nothing of it is shown")
    if node.rotation is not None and not any(node.rotation):
        report.error("zero-rotation", "its rotation is all zero")


def _check_mesh(report: Report, node: codec.Node) -> None:
    _check_properties(report, node)
    for mesh in node.meshes:
        part = report.about(Text("{}, material '{}'", report.item, Named("material", mesh.material)))
        if len(mesh.indices) % 3:
            part.error("incomplete-triangles", "{} indices are not a multiple of 3", len(mesh.indices))
        elif not len(mesh.indices):
            part.warning("no-triangles", "it has no triangles")
        if len(mesh.indices) and (int(mesh.indices.min()) < 0 or int(mesh.indices.max()) >= node.vertex_count):
            part.error("no-such-vertex", "triangles name vertices that do not exist")


def _check_properties(report: Report, node: codec.Node) -> None:
    count = node.vertex_count
    if count < 0:
        report.error("negative-vertex-count", "its vertex count is {}", count)
        return
    times = Counter(found.name for found in node.properties)
    for name in (name for name, number in times.items() if number > 1):
        template = "vertex property '{}' occurs {:,} times; the game takes the first"
        report.warning("repeated-property", template, Named("layer", name), times[name])
    for name, needed in GAME_DIMENSIONS.items():
        found = node.find(name)
        if found is None:
            continue
        if len(found.data) < count * needed * 4:
            template = "vertex property '{}' is shorter than its {:,} vertices"
            report.error("property-size", template, Named("layer", name), count)
        elif found.scalar_type not in (
            codec.ScalarType.FLOAT32,
            codec.ScalarType.UNSPECIFIED,
        ) or found.dimension not in (needed, 0):
            template = "vertex property '{}' is not {} × float32; the game reads garbage"
            report.error("property-type", template, Named("layer", name), needed)
        elif name == "position" and not np.isfinite(np.frombuffer(found.data, "<f4", count * 3)).all():
            report.error("nan-coordinates", "some vertices have NaN or infinite positions")
    if count and "position" not in times:
        report.error("no-positions", "its vertices have no position")
    if count and "normal" not in times:
        report.warning("no-normals", "it has no normals, and the game does not compute them: it will look unlit")


def _check_animations(report: Report, node: codec.Node) -> None:
    animations = [(a.name, a.framerate, a.frame_count) for a in node.node_animations]
    vertex_animations = [(a.name, a.framerate, len(a.frames)) for a in node.vertex_animations]
    for group in (animations, vertex_animations):
        for name, repeats in Counter(name for name, _, _ in group).items():
            if repeats > 1:
                _of_animation(report, name).error("repeated-animation", "two animations of the node have this name")
        for name, framerate, frames in group:
            part = _of_animation(report, name)
            if not name:
                part.error("no-name", "it has no name")
            if frames == 0:
                part.error("no-frames", "it has no frames")
            if not framerate > 0 or not np.isfinite(framerate):
                part.error("invalid-frame-rate", "its frame rate is {:g}, so it never ends", framerate)
    for animation in node.node_animations:
        part = _of_animation(report, animation.name)
        if not animation.present.all():
            part.error("incomplete-frames", "frames without position, rotation or scale")
        if not all(np.isfinite(rows).all() for rows in (animation.positions, animation.rotations, animation.scales)):
            part.error("nan-animation", "some frames hold NaN or infinite values")
    for moved in node.vertex_animations:
        part = report.about(Text("{}, vertex animation '{}'", report.item, Named("animation", moved.name)))
        _check_vertex_animation(part, node, moved)


def _of_animation(report: Report, name: str) -> Report:
    return report.about(Text("{}, animation '{}'", report.item, Named("animation", name)))


def _check_vertex_animation(report: Report, node: codec.Node, animation: codec.VertexAnimation) -> None:
    count = animation.animated_vertex_count
    if not 0 < count <= node.vertex_count:
        report.error("no-such-vertex", "{} animated vertices of {:,}", count, node.vertex_count)
    for frame in animation.frames:
        # the game uses the first property of each name
        stored = {found.name: found.data for found in reversed(frame.properties)}
        offset, rotation = stored.get("offset", b""), stored.get("rotation", b"")
        if len(offset) < count * 12 or len(rotation) < count * 16:
            report.error("incomplete-frames", "a frame lacks offset or rotation for its {} vertices", count)
            break
        if count > 0 and not np.isfinite(np.frombuffer(offset, "<f4", count * 3)).all():
            report.error("nan-animation", "some frames hold NaN or infinite values")
            break
    if count > MOST_ANIMATED or len(animation.frames) > MOST_ANIMATED:
        template = "{:,} vertices and {:,} frames; more than {:,} may not fit the graphics card"
        report.warning("large-vertex-animation", template, count, len(animation.frames), MOST_ANIMATED)
    if len(node.meshes) > 1:
        template = "only its first material of {} will move; give an animated node one material"
        report.warning("animated-materials", template, len(node.meshes))


def _check_names(report: Report, model: codec.Model) -> None:
    names = Counter(node.name for node in model.nodes)
    for single in ("#MiscStart", "#MiscEnd"):
        if names[single] > 1:
            template = "{} nodes have this name; the game expects at most one"
            report.warning("repeated-marker", template, names[single], item=Text("Node '{}'", single))
    for name in names:
        part = report.about(Text("Node '{}'", name))
        if name.startswith(_SLOT) and not name[len(_SLOT) :].startswith(SLOT_KEYWORDS):
            part.warning("unknown-slot", "unknown slot; the game knows {}", joined(SLOT_KEYWORDS))
        if name.lower().startswith(_SLOT.lower()) and not name.startswith(_SLOT):
            part.warning("slot-spelling", "the game expects the prefix '{}' in exactly this spelling", _SLOT)
