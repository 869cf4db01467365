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
    """Import an animation onto an avatar; return its joints, errors of its rests, the exported file and its axes."""
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
    paths = sorted([*folder.glob("*.anim"), *folder.glob("synthetic/[!bc]*.anim"), *folder.glob("bvh/*.bvh")])
    kept = 0
    for path in paths:
        old, *others = (animated(path, kind) for kind in KINDS)
        for kind, (poses, _skew, written, axes) in zip(KINDS[1:], others, strict=True):
            apart = np.abs(poses - old[0]).max(axis=(0, 2, 3))
            assert (apart < 1e-5 + old[1]).all(), (path.name, kind, float(apart.max()))
            assert axes == "AVATAR"
            if path.suffix == ".anim":  # other files are encoded anew, from keys that differ by rounding
                assert written == old[2], (path.name, kind)
        kept += old[2] == path.read_bytes()
    assert kept > 10
