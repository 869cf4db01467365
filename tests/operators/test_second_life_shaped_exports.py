"""Exports, tools and animations of shaped avatars: the shape of an avatar in Blender gets into no file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from second_life_models import Drawn
from shirts import make_shirt, weights_of

pytestmark = pytest.mark.needs_bpy

ENDS = {"low": 0.0, "high": 100.0}


def set_shape(rig: Any, shape: str) -> None:
    """Set all sliders: to the standard avatar, to an end, or at random; a number is the seed."""
    from meshferry.blender_data.rigging import body_shapes

    sliders = body_shapes.shapes().sliders()
    if shape == "standard":
        percents = {slider.number: slider.standard for slider in sliders}
    elif shape in ENDS:
        percents = {slider.number: ENDS[shape] for slider in sliders}
    else:
        rng = np.random.default_rng(int(shape))
        percents = {slider.number: float(rng.uniform(0, 100)) for slider in sliders}
    body_shapes.set_percents(rig, percents)


def pose(rig: Any) -> None:
    """Turn all bones at random, and move the pelvis."""
    rng = np.random.default_rng(4)
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1.0, *rng.normal(size=3) * 0.1)
    rig.pose.bones["mPelvis"].location += type(rig.pose.bones["mPelvis"].location)((0.1, 0.2, 0.3))


def state_of(rig: Any) -> Any:
    channels = [
        (*bone.location, *bone.rotation_quaternion, *bone.scale, *np.ravel(bone.matrix)) for bone in rig.pose.bones
    ]
    return rig.data.pose_position, channels


def dressed(bpy: Any, avatar: Any = None) -> Any:
    """Dress an avatar in a fitted shirt and a belt with a modifier after that of the armature; add one by default."""
    if avatar is None:
        bpy.ops.object.second_life_avatar_add()
    rig = avatar or bpy.context.object
    shirt = make_shirt(cloth="single")
    bpy.ops.mesh.primitive_cylinder_add(radius=0.2, depth=0.1, location=(0, 0, 1.05), vertices=12)
    belt = bpy.context.object
    belt.name = "belt"
    choose(bpy, belt, shirt)
    assert bpy.ops.object.second_life_bind() == {"FINISHED"}
    assert bpy.ops.object.second_life_fitted_mesh(factor=0.7) == {"FINISHED"}
    belt.modifiers.new("Smooth", "SUBSURF")
    bpy.ops.mesh.primitive_cube_add(size=0.2, location=(0, 0, 1.9))
    hat = bpy.context.object
    hat.name = "hat"
    hat.parent, hat.parent_type, hat.parent_bone = rig, "BONE", "mHead"
    bpy.context.view_layer.update()
    hat.matrix_world.translation = (0, 0, 1.9)
    choose(bpy, hat, belt, shirt)
    bpy.context.view_layer.update()
    return rig


def choose(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[-1]


def exporter(operator: str, suffix: str, *chosen: tuple[str, ...], **options: Any) -> Callable[[Any, Path], Any]:
    """Return a function that exports each set of objects by itself and returns the files."""

    def export(bpy: Any, folder: Path) -> Any:
        for names in chosen or (("belt", "shirt"), ("hat",)):
            choose(bpy, *(bpy.data.objects[name] for name in names))
            path = folder / f"{names[0]}{suffix}"
            assert getattr(bpy.ops.export_scene, operator)(filepath=str(path), scope="SELECTION", **options)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    return export


def figures(bpy: Any, _folder: Path) -> Any:
    from meshferry.operators.families.second_life.objects import chosen_models
    from meshferry.operators.families.second_life.weight_section import draw_weight

    assert bpy.ops.object.second_life_weigh() == {"FINISHED"}
    layout = Drawn()
    draw_weight(layout, bpy.context, chosen_models(bpy.context))
    return layout.lines


def made_levels(bpy: Any, _folder: Path) -> Any:
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"FINISHED"}
    found = [obj for obj in bpy.data.objects if obj.name.endswith("_LOD1")]
    assert len(found) == 3
    return [([tuple(vertex.co) for vertex in obj.data.vertices], weights_of(obj)) for obj in found]


def bound(bpy: Any, _folder: Path) -> Any:
    assert bpy.ops.object.second_life_bind(use_as_shown=False) == {"FINISHED"}
    return [weights_of(obj) for obj in bpy.context.selected_objects]


def fitted(bpy: Any, _folder: Path) -> Any:
    assert bpy.ops.object.second_life_fitted_mesh(factor=0.2, use_as_shown=False) == {"FINISHED"}
    return [weights_of(obj) for obj in bpy.context.selected_objects]


def transferred(bpy: Any, _folder: Path) -> Any:
    other = make_shirt("other", cloth="thick")
    choose(bpy, other)
    assert bpy.ops.object.second_life_transfer_weights(source="shirt", use_mirror=True, use_as_shown=False) == {
        "FINISHED"
    }
    return weights_of(other)


MADE = {"missing_levels": "MAKE", "physics_shape": "PARTS"}
EXPORTERS: dict[str, Callable[[Any, Path], Any]] = {
    "upload set": exporter("second_life_upload", ".dae", **MADE),
    "mesh": exporter("second_life_mesh", ".llmesh", **MADE),
    "bundle": exporter("second_life_bundle", ".slm", **MADE),
    "request": exporter("second_life_request", ".llsd", **MADE),
    "unigine": exporter("unigine_mesh", ".mesh", ("belt", "shirt")),
    "figures": figures,
    "levels": made_levels,
    "automatic weights": bound,
    "fitted mesh": fitted,
    "transfer": transferred,
}
STATES = {"low": False, "high": True, "1": True}
"""Shapes, and whether the avatar is posed."""


@pytest.mark.parametrize("kind", EXPORTERS)
def test_no_shape_and_no_pose_changes_an_export(clean_blender, tmp_path, kind) -> None:
    found = {}
    for shape, is_posed in {"standard": False, **STATES}.items():
        clean_blender.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        rig = dressed(clean_blender)
        set_shape(rig, shape)
        if is_posed:
            pose(rig)
        clean_blender.context.view_layer.update()
        before = state_of(rig)
        folder = tmp_path / shape
        folder.mkdir()
        found[shape] = EXPORTERS[kind](clean_blender, folder)
        clean_blender.context.view_layer.update()
        assert state_of(rig) == before, shape
    for shape in STATES:
        assert found[shape] == found["standard"], shape
    assert found["standard"]
