"""A small UNIGINE scene that the tests of operators import and export."""

from __future__ import annotations

from typing import Any

import numpy as np


def flag_scene(
    name: str,
    *,
    bones: bool = True,
    frames: int = 0,
    clip: str = "",
    helpers: float = 0.0,
    scale: float = 1.0,
    joint: int = 1,
) -> Any:
    """Return a scene of a flag, three triangles with the surfaces Cloth, Cloth and Pole, that hangs on two bones.

    With ``helpers`` there are the bones Control, of that length, and Handle at its end, which deform nothing.
    The mesh has its largest weights on ``joint``.

    With ``frames`` there is an animation that moves the second bone and scales Control by ``scale``, and no mesh.
    """
    from meshferry.io_formats.core import scene as sc

    made = sc.Scene(name)
    if bones or frames:
        joints = [sc.Joint("Root"), sc.Joint("Tip", 0, translation=(0.0, 0.0, 1.0))]
        if helpers:
            joints += [sc.Joint("Control"), sc.Joint("Handle", 2, translation=(0.0, helpers, 0.0))]
        made.skeletons = [sc.Skeleton(name, joints)]
    if frames:
        rise = np.linspace(0, 1, frames, dtype=np.float32)
        moved = np.stack([np.zeros_like(rise), np.zeros_like(rise), 1 + rise], axis=1)
        still = np.tile(np.array([[1, 0, 0, 0]], np.float32), (frames, 1))
        track = sc.TransformTrack(1, moved, still, np.ones((frames, 3), np.float32), skeleton=0)
        tracks = [track]
        if helpers:
            scales = np.full((frames, 3), scale, np.float32)
            tracks.append(sc.TransformTrack(2, np.zeros_like(moved), still, scales, skeleton=0))
        made.clips = [sc.Clip(clip or name, 0.0, frames, transforms=tracks)]
        return made
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0]], np.float32)
    corners = np.array([0, 1, 2, 0, 2, 3, 0, 3, 4], np.int32)
    normals = np.repeat(np.array([[0, -1, 0], [0, -1, 0], [-1, 0, 0]], np.float32), 3, axis=0)
    mesh = sc.Mesh(
        points,
        corners,
        np.arange(3, dtype=np.int32),
        ["Cloth", "Cloth", "Pole"],
        normal=sc.Layer("normal", normals, per_corner=True),
        uvs=[sc.Layer("UV0", points[:, [0, 2]].copy())],
        surfaces=[sc.Surface("Cloth"), sc.Surface("Cloth"), sc.Surface("Pole")],
    )
    if bones:
        mesh.joint_indices = np.tile(np.array([[0, joint, 0, 0]], np.int32), (5, 1))
        mesh.joint_weights = np.tile(np.array([[0.25, 0.75, 0, 0]], np.float32), (5, 1))
    made.nodes = [sc.Node(name, mesh=mesh, skeleton=0 if bones else None)]
    return made
