"""Animations and models on older avatars, on new ones, and on older ones whose bones were aligned before or after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import older_avatar
import pytest
from test_second_life_animations_in_blender import exported, imported

pytestmark = pytest.mark.needs_bpy

KINDS = ("old", "new", "aligned before", "aligned after")
FRAMES = (1, 2, 3, 5, 8, 13, 21, 34, 55)


def animated(path: Path, kind: str) -> tuple[Any, Any, bytes, Any]:
    """Import an animation onto an avatar alone; return what its joints do, their rests' errors, and the exported file."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True)
    avatar = older_avatar.add() if kind != "new" else None
    if kind == "new":
        bpy.ops.object.second_life_avatar_add()
        avatar = bpy.context.object
    skew = older_avatar.skews(avatar)
    if kind == "aligned before":
        assert bpy.ops.object.second_life_align_bones() == {"FINISHED"}
    imported(path, onto=avatar)
    if kind == "aligned after":
        assert bpy.ops.object.second_life_align_bones() == {"FINISHED"}
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found.append(older_avatar.joints(avatar))
    return np.array(found), skew, exported(avatar), avatar.animation_data.action.meshferry.bone_axes


@pytest.mark.slow
def test_every_animation_poses_all_avatars_alike_and_is_written_alike(samples: Path) -> None:
    folder = samples / "secondlife_animation"
    for path in sorted([*folder.glob("*.anim"), *folder.glob("bvh/*.bvh")]):
        old, *others = (animated(path, kind) for kind in KINDS)
        for kind, (poses, _skew, written, axes) in zip(KINDS[1:], others, strict=True):
            apart = np.abs(poses - old[0]).max(axis=(0, 2, 3))
            print(path.name, kind, apart.max(), (apart - old[1]).max(), written == old[2], old[2] == path.read_bytes())
            assert (apart < 1e-5 + old[1]).all(), (path.name, kind)
            assert axes == "AVATAR"
