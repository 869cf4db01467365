"""Errors for data that a mesh file cannot store, raised before anything is written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.errors import ExportError
from ...core.scene import Mesh, Node, Scene
from .versions import ANIMATED_VERSIONS, SKINNED_VERSIONS

MOST_SURFACES = 32767
_FARTHEST = 1e18
"""Limit of coordinates in metres; the squares of larger ones overflow in the bounds."""
_LONGEST_NAME = 4095
"""Maximum length of a name in UTF-8 bytes."""


def refuse_unstorable(scene: Scene, node: Node, mesh: Mesh, version: str, *, embeds: bool) -> None:
    """Raise ExportError for data that the version, or any mesh file, cannot store.

    Raises
    ------
    ExportError
        Bones, weights or shape keys in a version for static meshes; embedded animations in a version without them; NaN
        or infinite coordinates; more surfaces than the engine allows; names that are too long.
    """
    if version not in SKINNED_VERSIONS:
        held = [
            what
            for what, is_there in (
                ("an armature", node.skeleton is not None and bool(scene.skeletons[node.skeleton].joints)),
                ("shape keys", bool(mesh.shape_keys)),
            )
            if is_there
        ]
        if held:
            raise ExportError(
                "'{}' has {}, which {} cannot hold; choose ms14 or ms13, or remove {}",
                node.name,
                " and ".join(held),
                version,
                "it" if held == ["an armature"] else "them",
            )
    if embeds and scene.clips and version not in ANIMATED_VERSIONS:
        raise ExportError(
            "{} holds no animations; choose ms12 or write the animations as .anim files (turn Animations Inside off)",
            version,
        )
    for points in (mesh.points, *(key.points for key in mesh.shape_keys)):
        if not np.isfinite(points).all():
            raise ExportError("'{}' has vertices with NaN or infinite coordinates; delete them", node.name)
        if points.size and max(-points.min(), points.max()) > _FARTHEST:
            raise ExportError("'{}' has vertices too far away to have bounds; delete them", node.name)
    if len(mesh.materials) > MOST_SURFACES:
        raise ExportError(
            "'{}' has {:,} material slots; UNIGINE allows {:,} surfaces. Remove slots or separate the object",
            node.name,
            len(mesh.materials),
            MOST_SURFACES,
        )
    for name in _names(scene, node, mesh):
        if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
            raise ExportError(
                "The name '{:…<41}' is too long for the file; {:,} bytes at most", name[:40], _LONGEST_NAME
            )


def _names(scene: Scene, node: Node, mesh: Mesh) -> Iterator[str]:
    yield node.name
    yield from mesh.materials
    for surface in mesh.surfaces:
        yield surface.name
        yield from (surface.shape_keys or {}).values()
    yield from (key.name for key in mesh.shape_keys)
    yield from (joint.name for skeleton in scene.skeletons for joint in skeleton.joints)
    yield from (clip.name for clip in scene.clips)
