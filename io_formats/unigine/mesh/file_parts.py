"""Split a scene with several objects into one scene for each file: one node, its skeleton and its clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import ExportError
from ...core.import_choices import all_choices
from ...core.messages import Text, joined
from ...core.options import MESH_FILES, resolve
from ...core.scene import Node, Scene
from ...passes.flatten import meshes_in_one_space
from ...passes.join_meshes import join
from ...passes.lods import coarser_nodes, join_levels
from .options import EXPORT_OPTIONS


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return a scene for each file, named after it: one for each object, or with ``mesh_files`` one of all objects.

    Coarser levels of detail go into the file of the finest one. The returned scenes share ``scene.warnings``.

    Raises
    ------
    ExportError
        Objects to be joined, or levels of one object, have different armatures.
    """
    chosen = resolve(EXPORT_OPTIONS, options)
    whole: list[Node] = []
    for number, node in enumerate(scene.nodes):
        finest = node.lod_of
        if node.mesh is None or (_is_mesh(scene, finest) and finest != number):
            continue
        coarser = coarser_nodes(scene, number)
        skeleton = _common_skeleton(scene, [node, *coarser], "levels of detail")
        choices = all_choices([node, *coarser])
        whole.append(replace(join_levels(node, coarser), skeleton=skeleton, choices=choices))
    if MESH_FILES.text(chosen) == "JOINED" and len(whole) > 1:
        skeleton = _common_skeleton(scene, whole, "objects to be joined into one file")
        mesh = join(meshes_in_one_space(whole))
        joined = replace(whole[0], name=scene.name, mesh=mesh, skeleton=skeleton, choices=all_choices(whole))
        return [_part(scene, joined, scene.name)]
    return [_part(scene, node, node.name) for node in whole]


def _is_mesh(scene: Scene, number: int | None) -> bool:
    return number is not None and 0 <= number < len(scene.nodes) and scene.nodes[number].mesh is not None


def _common_skeleton(scene: Scene, nodes: Sequence[Node], what: str) -> int | None:
    """Return the skeleton that the nodes share, or None; raise ExportError if they have different ones."""
    found: dict[int, str] = {}
    for node in nodes:
        if node.skeleton is not None:
            found.setdefault(node.skeleton, node.name)
    if len(found) > 1:
        named = joined(
            (Text("'{}' on '{}'", name, scene.skeletons[number].name) for number, name in found.items()), " and "
        )
        raise ExportError(
            "The {} are deformed by different armatures ({}); a file holds only one. Export them separately",
            what,
            named,
        )
    return next(iter(found), None)


def _part(scene: Scene, node: Node, name: str) -> Scene:
    """Return a scene with only this node, its skeleton and its clips."""
    kept = replace(node, parent=-1, lod=0, lod_of=None, skeleton=None if node.skeleton is None else 0)
    part = replace(scene, name=name, nodes=[kept], skeletons=[], clips=[])
    if node.skeleton is None:
        return part
    part.skeletons = [scene.skeletons[node.skeleton]]
    for clip in scene.clips:
        tracks = [replace(track, skeleton=0) for track in clip.transforms if track.skeleton == node.skeleton]
        if tracks or not (clip.transforms or clip.vertices):
            part.clips.append(replace(clip, transforms=tracks, vertices=[]))
    return part
