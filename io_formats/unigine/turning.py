"""Rotate a scene by 180° about Z and back: in UNIGINE a figure faces +Y, in Blender -Y (section 10).

Only signs and the order of components change, so rotating and rotating back gives exactly the same values. Meshes are
rotated within their nodes. Of skeletons only the root joints are rotated, since all others are relative to their
parents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..core.scene import AnyArray, Clip, Joint, Layer, Mesh, Scene, ShapeKey, Skeleton, TransformTrack, VertexTrack

_Array = TypeVar("_Array", bound=AnyArray)

# The rotation by 180° about Z is the quaternion k = (0, 0, 0, 1): k q = (-z, -y, x, w), and back conj(k) q = (z, y, -x,
# -w). Rotating back with k instead of conj(k) would be the same rotation, but give -q instead of q.
_ORDER = [3, 2, 1, 0]
_THERE = (-1.0, -1.0, 1.0, 1.0)
_BACK = (1.0, 1.0, -1.0, -1.0)


def rotate_180(scene: Scene, *, back: bool = False) -> Scene:
    """Return the scene rotated by 180° about Z, or rotated back; the given scene is not modified.

    Points, normals, tangents and shape keys of meshes, vertex animations, the bind transforms of root joints and their
    tracks are rotated. Transforms of nodes are not: meshes are rotated within them.
    """
    return replace(
        scene,
        nodes=[replace(node, mesh=turned_mesh(node.mesh)) if node.mesh else node for node in scene.nodes],
        skeletons=[_turned_skeleton(skeleton, back) for skeleton in scene.skeletons],
        clips=[_turned_clip(clip, scene, back) for clip in scene.clips],
    )


def turned_mesh(mesh: Mesh) -> Mesh:
    """Return a mesh rotated by 180° about Z. Applying it twice is the identity."""
    return replace(
        mesh,
        points=_vectors(mesh.points),
        normal=_layer(mesh.normal),
        tangent=_layer(mesh.tangent),
        shape_keys=[_shape_key(key) for key in mesh.shape_keys],
    )


def _vectors(values: _Array) -> _Array:
    """Rotate (…, 3 or more) by negating x and y."""
    changed = values.copy()
    # np.negative is not used: NumPy 2.4 writes wrong values with some strides.
    np.multiply(values[..., :2], values.dtype.type(-1), out=changed[..., :2])
    return changed


def _rotations(values: _Array, back: bool) -> _Array:
    """Rotate quaternions (…, 4), w first."""
    changed: _Array = values[..., _ORDER] * np.asarray(_BACK if back else _THERE, values.dtype)
    return changed


def _layer(layer: Layer | None) -> Layer | None:
    return replace(layer, values=_vectors(layer.values)) if layer is not None else None


def _shape_key(key: ShapeKey) -> ShapeKey:
    return replace(key, points=_vectors(key.points), normal=_layer(key.normal), tangent=_layer(key.tangent))


def _turned_skeleton(skeleton: Skeleton, back: bool) -> Skeleton:
    return replace(skeleton, joints=[_turned_joint(joint, back) for joint in skeleton.joints])


def _turned_joint(joint: Joint, back: bool) -> Joint:
    changed = replace(joint)
    if joint.inverse_bind is not None:
        # The inverse of a rotated matrix is the old inverse times the inverse rotation, which equals the rotation.
        changed.inverse_bind = joint.inverse_bind * np.array((-1, -1, 1, 1), joint.inverse_bind.dtype)
    if joint.parent < 0:
        x, y, z = joint.translation
        changed.translation = (-x, -y, z)
        w, *axis = (joint.rotation[place] * sign for place, sign in zip(_ORDER, _BACK if back else _THERE, strict=True))
        changed.rotation = (w, axis[0], axis[1], axis[2])
    return changed


def _turned_clip(clip: Clip, scene: Scene, back: bool) -> Clip:
    return replace(
        clip,
        transforms=[_turned_track(track, scene, back) for track in clip.transforms],
        vertices=[_turned_vertices(track) for track in clip.vertices],
    )


def _turned_track(track: TransformTrack, scene: Scene, back: bool) -> TransformTrack:
    if track.skeleton is None or scene.skeletons[track.skeleton].joints[track.target].parent >= 0:
        return track
    return replace(track, translation=_vectors(track.translation), rotation=_rotations(track.rotation, back))


def _turned_vertices(track: VertexTrack) -> VertexTrack:
    return replace(
        track,
        points=_vectors(track.points),
        normals=_vectors(track.normals) if track.normals is not None else None,
        tangents=_vectors(track.tangents) if track.tangents is not None else None,
    )
