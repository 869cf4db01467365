"""Body shapes in Blender: joints where the viewer has them, by the numbers that the samples state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import avatar_table
import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

TOLERANCE = 1e-5
FACING = np.array([avatar_table.turned(axis) for axis in np.identity(3)]).T
"""(3, 3): from the axes of the avatar to those of the armature in Blender."""
HEADS = avatar_table.heads()
REST = {
    name: (
        avatar_table.own_axes(row),
        avatar_table.three(row, "scale") if row["kind"] == "collision_volume" else np.ones(3),
    )
    for name, row in avatar_table.rows().items()
}
"""Axes (3, 3) and scale (3,) of each joint at rest."""


def added() -> Any:
    import bpy
    from meshferry.blender_data.importing import armatures
    from meshferry.io_formats.second_life.avatar import skeletons

    return armatures.add_skeleton(bpy.context, skeletons.avatar_skeleton(), name="Avatar")


def require_joints(avatar: Any, wanted: dict[str, list[float]], about: str) -> None:
    """Compare heads and whole scale matrices of the posed bones; ``wanted`` has position and scale of each joint."""
    import bpy

    bpy.context.view_layer.update()
    root, rest = np.array(avatar.pose.bones["mPelvis"].head), HEADS["mPelvis"]
    for name, numbers in wanted.items():
        bone, own, bound = avatar.pose.bones[name], *REST[name]
        moved = np.array(bone.head) - root + rest - FACING @ numbers[:3]
        assert np.abs(moved).max() <= TOLERANCE, (about, name, moved)
        scale = own @ np.diag(np.array(numbers[3:]) / bound) @ own.T
        found = np.array(bone.matrix @ bone.bone.matrix_local.inverted())[:3, :3]
        assert np.abs(found - scale).max() <= TOLERANCE / bound.min(), (about, name, found, scale)


def test_stated_shapes(clean_blender: Any, samples: Path) -> None:
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders, sliders

    stated = json.loads((samples / "secondlife_shape" / "expected.json").read_text("utf-8"))["shapes"]
    avatar, own, seen = added(), sliders.sliders(), 0
    assert body_shapes.unfit_bones(avatar) == []
    for about, shape in stated.items():
        if "joints" not in shape or "overrides" in shape or ("values" not in shape and "u8" not in shape):
            continue
        codes = {int(number): own[int(number)].decoded(code) for number, code in shape.get("u8", {}).items()}
        values = codes | {int(number): value for number, value in shape.get("values", {}).items()}
        body_shapes.set_percents(avatar, armature_sliders.percents_of(values))
        require_joints(avatar, shape["joints"], about)
        seen += 1
    assert seen > 30


def test_a_slider_shapes_and_the_standard_avatar_takes_it_back(clean_blender: Any) -> None:
    from meshferry.blender_data.rigging import body_shapes

    avatar = added()
    height = body_shapes.property_name(33)
    setattr(avatar, height, 100.0)
    assert avatar.pose.bones["mHipLeft"].scale.y > 1.1
    setattr(avatar, height, 0.0)
    assert avatar.pose.bones["mHipLeft"].scale.y < 0.95
    body_shapes.set_percents(avatar, {slider.number: slider.standard for slider in body_shapes.sliders()})
    for bone in avatar.pose.bones:
        assert (tuple(bone.scale), tuple(bone.location)) == ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), bone.name


def test_shape_files(clean_blender: Any, samples: Path) -> None:
    """The real files, loaded onto one avatar one after another."""
    folder = samples / "secondlife_shape"
    avatar, seen = added(), 0
    clean_blender.context.view_layer.objects.active = avatar
    for about, shape in json.loads((folder / "expected.json").read_text("utf-8"))["shapes"].items():
        if (folder / about).is_file():
            assert clean_blender.ops.object.second_life_load_shape(filepath=str(folder / about)) == {"FINISHED"}
            require_joints(avatar, shape["joints"], about)
            seen += 1
    assert seen == 20
