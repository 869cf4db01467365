"""A box on two bones and animations of them, as files of UNIGINE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from boxes import make_box

BONES = ("Root", "Arm")


def make_clip(name: str, frames: int, bones: Sequence[str] = BONES) -> Any:
    """Return an animation in which the last bone rises by 1 a frame and the others rest."""
    from meshferry.io_formats.core.scene import Clip, TransformTrack

    tracks = []
    for joint in range(len(bones)):
        rise = np.zeros((frames, 3), np.float32)
        rise[:, 2] = np.arange(frames) if joint == len(bones) - 1 else 0
        rise[:, 1] = joint
        rotation = np.zeros((frames, 4), np.float32)
        rotation[:, 0] = 1
        tracks.append(TransformTrack(joint, rise, rotation, np.ones((frames, 3), np.float32), skeleton=0))
    return Clip(name, 0.0, frames, transforms=tracks)


def make_skeleton(bones: Sequence[str] = BONES) -> Any:
    """Return a chain of bones, each a metre along Y from the one before."""
    from meshferry.io_formats.core.scene import Joint, Skeleton

    joints = [Joint(name, index - 1, translation=(0.0, float(index > 0), 0.0)) for index, name in enumerate(bones)]
    return Skeleton("rig", joints)


def make_rig(name: str, clips: Sequence[Any] = (), bones: Sequence[str] = BONES) -> Any:
    """Return a scene of a box that hangs on the first of some bones, with animations inside."""
    from meshferry.io_formats.core.scene import Layer, Node, Scene, Surface

    mesh = make_box(["Steel", "Wood"])
    mesh.surfaces = [Surface(material, lightmap_channel=1) for material in mesh.materials]
    mesh.uvs = [Layer("UV0", np.ascontiguousarray(mesh.points[:, :2]))]
    mesh.joint_indices = np.zeros((len(mesh.points), 4), np.int32)
    mesh.joint_weights = np.zeros((len(mesh.points), 4), np.float32)
    mesh.joint_weights[:, 0] = 1
    return Scene(name, [Node(name, mesh=mesh, skeleton=0)], [make_skeleton(bones)], list(clips))


def write_mesh(path: Path, clips: Sequence[Any] = (), bones: Sequence[str] = BONES) -> Path:
    """Write the box, as ms12 with animations inside or as ms13 without."""
    from meshferry.io_formats import api
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    options = {"mesh_version": "MS12", "use_embedded_animation": True} if clips else {"mesh_version": "MS13"}
    path.parent.mkdir(parents=True, exist_ok=True)
    api.write_scene(make_rig(path.stem, clips, bones), path, UNIGINE_MESH, options)
    return path


SKELETON = "0123456789abcdef0123456789abcdef01234567"
"""GUID of a skeleton file, which animations of an13 refer to."""


def write_animation(path: Path, frames: int = 5, bones: Sequence[str] = BONES, version: str = "AN11") -> Path:
    from meshferry.io_formats import api
    from meshferry.io_formats.core.scene import Scene
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    scene = Scene(path.stem, [], [make_skeleton(bones)], [make_clip(path.stem, frames, bones)])
    path.parent.mkdir(parents=True, exist_ok=True)
    skeleton = SKELETON if version == "AN13" else ""
    api.write_scene(scene, path, UNIGINE_ANIMATION, {"animation_version": version, "skeleton": skeleton})
    return path
