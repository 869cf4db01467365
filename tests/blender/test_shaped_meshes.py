"""Meshes on shaped and posed avatars, evaluated by Blender, against the viewer's formula in slow code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import avatar_table
import numpy as np
import pointing_bones
import pytest
import slow_shape
import slow_skinning

pytestmark = pytest.mark.needs_bpy

TOLERANCE = 1e-5
FACING = np.array([avatar_table.turned(axis) for axis in np.identity(3)]).T
"""(3, 3): from the axes of the avatar to those of the armature in Blender."""


def imported(path: Path, armature: Any = None, **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.api import read_scene

    made = importer.import_scene(
        import_options.ImportRequest(
            bpy.context,
            read_scene(str(path), options),
            import_options.ImportOptions.of({"use_weld": False, "armature": "ACTIVE" if armature else "NEW"}),
            str(path),
            armature,
        )
    )
    bpy.context.view_layer.update()
    return made


def avatar_added(skeleton: Any = None) -> Any:
    import bpy
    from meshferry.blender_data.importing import armatures
    from meshferry.io_formats.second_life.avatar import skeletons

    return armatures.add_skeleton(bpy.context, skeleton or skeletons.avatar_skeleton(), name="Avatar")


def mesh_of(made: Any) -> Any:
    (found,) = (obj for obj in made.objects if obj.type == "MESH" and obj.vertex_groups and not obj.meshferry.lod)
    return found


def shape(avatar: Any, values: dict[int, float]) -> None:
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders

    body_shapes.set_percents(avatar, armature_sliders.percents_of(values))


def standard() -> dict[int, float]:
    """Return the values of the standard avatar (section 1)."""
    return {6: 0.22, 31: 0.0, 36: 0.0, 119: 0.0, 196: -0.5, 646: -0.3, 682: 5 / 7, 683: 0.0, 693: 0.0, 757: 0.0} | {
        759: 0.0,
        764: 3 / 11,
        795: 0.3,
    }


def random_values(seed: int) -> dict[int, float]:
    random = np.random.default_rng(seed)
    found = {}
    for number in slow_shape.OWN:
        row = slow_shape.PARAMETERS[number]
        found[number] = float(random.uniform(float(row["min"]), float(row["max"])))
    return found | {80: float(seed % 2), 11001: 0.0}


def posed(avatar: Any, seed: int) -> dict[str, Any]:
    """Turn every bone at random, and return the turns, (3, 3), in the axes of the avatar."""
    from mathutils import Matrix

    random = np.random.default_rng(seed)
    turns = {}
    for bone in avatar.pose.bones:
        axis, angle = random.normal(size=3), random.uniform(-0.7, 0.7)
        turns[bone.name] = np.array(Matrix.Rotation(angle, 3, axis / np.linalg.norm(axis)), np.float64)
        frame = np.array(bone.bone.matrix_local, np.float64)[:3, :3]
        turn = FACING @ turns[bone.name] @ FACING.T
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Matrix((frame.T @ turn @ frame).tolist()).to_quaternion()
    return turns


def evaluated(obj: Any) -> Any:
    """Return the vertices that Blender shows, (V, 3), in the space of the avatar."""
    import bpy

    bpy.context.view_layer.update()
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    points = np.empty(len(seen.data.vertices) * 3, np.float32)
    seen.data.vertices.foreach_get("co", points)
    place = np.array(seen.matrix_world, np.float64)
    return (points.reshape(-1, 3) @ place[:3, :3].T + place[:3, 3]) @ FACING


def require_joints(avatar: Any, joints: Any, about: object) -> None:
    """Compare heads and scales; ``joints`` has position and scale of each joint without the height of the floor."""
    import bpy

    bpy.context.view_layer.update()
    down = slow_skinning.floor(joints)
    for name, numbers in joints.items():
        bone, row = avatar.pose.bones[name], avatar_table.rows()[name]
        apart = FACING.T @ np.array(bone.head) - numbers[:3] + (0.0, 0.0, down)
        assert np.abs(apart).max() <= TOLERANCE, (about, name, apart)
        own = avatar_table.own_axes(row)
        rest = avatar_table.three(row, "scale") if row["kind"] == "collision_volume" else np.ones(3)
        scale = own @ np.diag(np.array(numbers[3:]) / rest) @ own.T
        found = np.array(bone.matrix @ bone.bone.matrix_local.inverted())[:3, :3]
        assert np.abs(found - scale).max() <= TOLERANCE / rest.min(), (about, name)


def moved_avatar(overrides: dict[str, Any]) -> Any:
    """Return an avatar of which some joints rest elsewhere relative to their parents."""
    from dataclasses import replace

    from meshferry.io_formats.second_life.avatar import skeletons

    skeleton = skeletons.avatar_skeleton()
    skeleton.joints = [
        replace(joint, translation=tuple((FACING @ overrides[joint.name]).tolist()))
        if joint.name in overrides
        else joint
        for joint in skeleton.joints
    ]
    return avatar_added(skeleton)


def worn_by_modifier(avatar: Any, bones: Iterable[str], *, is_locked: bool) -> Any:
    """Add a mesh that a modifier binds to bones of an avatar, which is not its parent."""
    import bpy

    data = bpy.data.meshes.new("Shirt")
    data.from_pydata([(0, 0, 1), (0.1, 0, 1), (0, 0, 1.1)], [], [(0, 1, 2)])
    obj = bpy.data.objects.new("Shirt", data)
    bpy.context.scene.collection.objects.link(obj)
    for name in bones:
        obj.vertex_groups.new(name=name).add(range(3), 1.0, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = avatar
    obj.meshferry.skin.lock_scale = is_locked
    return obj


def stated(samples: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((samples / "secondlife_shape" / "expected.json").read_text("utf-8"))["shapes"]
    return found


def values_of(samples: Path, name: str, entry: dict[str, Any]) -> dict[int, float]:
    from meshferry.io_formats.second_life.avatar import sliders

    if "values" not in entry and "u8" not in entry:
        return slow_skinning.values_of_file(samples / "secondlife_shape" / name)
    own = sliders.sliders()
    codes = {int(number): own[int(number)].decoded(code) for number, code in entry.get("u8", {}).items()}
    return codes | {int(number): value for number, value in entry.get("values", {}).items()}


@pytest.mark.slow
@pytest.mark.any_version
def test_joints_of_every_stated_shape(samples: Path) -> None:
    avatar, seen, shapes = avatar_added(), 0, stated(samples)
    for name, entry in shapes.items():
        if "joints" not in entry or "overrides" in entry:
            continue
        values = standard() if name == "standard_skeleton" else values_of(samples, name, entry)
        shape(avatar, values)
        full = slow_shape.joints(values)
        for joint, numbers in entry["joints"].items():
            assert np.abs(np.array(numbers) - full[joint]).max() <= 2e-6, (name, joint)
        require_joints(avatar, full, name)
        seen += 1
    assert seen == len(shapes) - 3  # two have overrides, one no joints


@pytest.mark.parametrize("is_locked", [False, True])
def test_joint_positions_of_a_mesh_that_is_no_child(samples: Path, is_locked: bool) -> None:
    entry = stated(samples)["overrides_locked" if is_locked else "overrides"]
    assert entry["lock_scale"] == is_locked
    avatar = moved_avatar(entry["overrides"])
    worn_by_modifier(avatar, entry["overrides"], is_locked=is_locked)
    shape(avatar, values_of(samples, "", entry))
    require_joints(avatar, entry["joints"], is_locked)


def test_stated_vertices(samples: Path) -> None:
    seen = 0
    shapes = {name: entry for name, entry in stated(samples).items() if "skinned" in entry}
    for file in next(iter(shapes.values()))["skinned"]:
        made = imported(samples / "secondlife" / file)
        (avatar,), mesh = made.armatures, mesh_of(made)
        for name, entry in shapes.items():
            values = values_of(samples, name, entry)
            shape(avatar, values)
            down = slow_skinning.floor(slow_shape.joints(values))
            points = evaluated(mesh)
            for vertex, wanted in entry["skinned"][file].items():
                apart = points[int(vertex)] - wanted + (0.0, 0.0, down)
                assert np.abs(apart).max() <= TOLERANCE, (name, file, vertex, apart)
                seen += 1
    assert seen > 150


@pytest.mark.parametrize("seed", range(4))
def test_random_shapes(seed: int) -> None:
    avatar, values = avatar_added(), random_values(seed)
    shape(avatar, values)
    require_joints(avatar, slow_shape.joints(values), seed)


def wanted_points(mesh: slow_skinning.Bound, values: dict[int, float], turns: Any, *, is_locked: bool = False) -> Any:
    joints = slow_shape.joints(values, mesh.overrides, is_locked=is_locked)
    return slow_skinning.shown(mesh, slow_skinning.worlds(joints, turns))


@pytest.mark.parametrize(
    ("file", "is_locked"),
    [
        ("benthic_rigged22.mesh", False),
        ("synthetic/synth_rig_cv.llmesh", False),
        ("synthetic/synth_rig_overrides.llmesh", True),
    ],
)
def test_posed_assets(samples: Path, file: str, is_locked: bool) -> None:
    path = samples / "secondlife" / file
    mesh, made = slow_skinning.of_asset(path.read_bytes()), imported(path)
    (avatar,), obj = made.armatures, mesh_of(made)
    assert obj.meshferry.binding is None
    for seed in range(4):
        values = random_values(seed)
        shape(avatar, values)
        turns = posed(avatar, seed)
        apart = evaluated(obj) - wanted_points(mesh, values, turns, is_locked=is_locked)
        assert np.abs(apart).max() <= TOLERANCE, (seed, np.abs(apart).max())


AVASTAR = (
    "avastar281_eyes.dae",
    "avastar281_eyelashes.dae",
    "avastar241_toenails.dae",
    "avastar232_head.dae",
    "avastar281_phys.dae",
)


def models_of(made: Any) -> list[Any]:
    return [obj for obj in made.objects if obj.type == "MESH" and obj.vertex_groups and not obj.meshferry.lod]


@pytest.mark.parametrize("file", AVASTAR)
def test_bindings_of_avastar_on_an_avatar(samples: Path, file: str) -> None:
    """Shape scales and positions in inverse binds, on a standard avatar that wears a mesh of ours, too."""
    folder = samples / "collada"
    avatar = avatar_added()
    ours, theirs = (
        (slow_skinning.of_collada((folder / name).read_bytes()), models_of(imported(folder / name, avatar)))
        for name in ("meshferry_set/tunic.dae", file)
    )
    for seed in range(2):
        values = random_values(seed) if seed else standard()
        turns = posed(avatar, seed)
        if seed:
            shape(avatar, values)
        assert all(obj.meshferry.binding is None for obj in ours[1])
        assert all(obj.meshferry.binding is not None for obj in theirs[1])
        for meshes, objects in (ours, theirs):
            for mesh, obj in zip(meshes, objects, strict=True):
                apart = np.abs(evaluated(obj) - wanted_points(mesh, values, turns)).max()
                assert apart <= TOLERANCE, (seed, obj.name, apart)


@pytest.mark.parametrize("file", AVASTAR)
def test_bindings_of_avastar_on_their_own_armature(samples: Path, file: str) -> None:
    """It has the shape of its file until another one is set."""
    path = samples / "collada" / file
    made = imported(path)
    (avatar,), objects = made.armatures, models_of(made)
    meshes = slow_skinning.of_collada(path.read_bytes())
    for mesh, obj in zip(meshes, objects, strict=True):
        points = np.column_stack((mesh.positions, np.ones(len(mesh.positions)))) @ mesh.bind_shape.T
        assert np.abs(evaluated(obj) - points[:, :3]).max() <= TOLERANCE
        assert [modifier.object for modifier in obj.modifiers] == [avatar]
    for seed in range(2):
        values = random_values(seed) if seed else standard()
        shape(avatar, values)
        turns = posed(avatar, seed)
        for mesh, obj in zip(meshes, objects, strict=True):
            apart = np.abs(evaluated(obj) - wanted_points(mesh, values, turns)).max()
            assert apart <= TOLERANCE, (seed, obj.name, apart)


MOVED = {"mChest": (0.01, -0.02, 0.03), "mElbowRight": (0.02, 0.01, 0.0), "mFaceChin": (0.0, 0.01, 0.02)} | {
    "BELLY": (0.02, 0.01, -0.01),
    "LEFT_PEC": (-0.01, 0.0, 0.02),
}
"""Distances by which joints of a rig rest elsewhere relative to their parents, in the axes of the avatar."""


def dressed_with_other_axes(moved: dict[str, Any], linear: Any) -> tuple[Any, Any, slow_skinning.Bound]:
    """Return a rig with the avatar's names and other axes, a mesh that it deforms, and what the file of both states.

    ``linear`` (3, 3) leads from the avatar's space to that of the rig.
    """
    import bpy
    from mathutils import Vector

    rig = pointing_bones.add()
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in rig.data.edit_bones:
        bone.use_connect = False
    for name, by in moved.items():
        bone = rig.data.edit_bones[name]
        for other in (bone, *bone.children_recursive):
            other.head, other.tail = (end + Vector((FACING @ by).tolist()) for end in (other.head, other.tail))
    for bone in rig.data.edit_bones:
        bone.head, bone.tail = (Vector((linear @ FACING.T @ end).tolist()) for end in (bone.head, bone.tail))
    bpy.ops.object.mode_set(mode="OBJECT")
    table = avatar_table.rows()
    overrides = {name: np.add(avatar_table.three(table[name], "pos"), by) for name, by in moved.items()}
    rests = slow_skinning.worlds(slow_shape.joints(standard(), overrides))
    names = [*MOVED, "mPelvis", "mHead", "mHipLeft", "mKneeLeft", "mShoulderLeft", "R_CLAVICLE"]
    rng = np.random.default_rng(5)
    points = np.concatenate([rests[name][:3, 3] + 0.1 * rng.normal(size=(20, 3)) for name in names])
    weights = rng.uniform(0.1, 1.0, (len(points), len(names))) ** 4
    weights /= weights.sum(axis=1, keepdims=True)
    data = bpy.data.meshes.new("body")
    data.from_pydata((points @ linear.T).tolist(), [], np.arange(len(points)).reshape(-1, 4).tolist())
    body = bpy.data.objects.new("body", data)
    bpy.context.scene.collection.objects.link(body)
    body.parent = rig
    body.modifiers.new("Armature", "ARMATURE").object = rig
    for number, name in enumerate(names):
        group = body.vertex_groups.new(name=name)
        for vertex, weight in enumerate(weights[:, number].tolist()):
            group.add([vertex], weight, "REPLACE")
    inverse_bind = np.array([np.linalg.inv(rests[name]) for name in names])
    return rig, body, slow_skinning.Bound(points, np.identity(4), names, inverse_bind, weights, overrides)


@pytest.mark.parametrize("moved", [{}, MOVED], ids=["standard", "moved"])
@pytest.mark.parametrize("is_lying", [False, True])
def test_rigs_with_other_axes_are_retargeted(clean_blender: Any, moved: dict[str, Any], is_lying: bool) -> None:
    """Copies lie where the viewer shows the mesh: at rest, posed and shaped. The rig may be turned and scaled."""
    from meshferry.blender_data.rigging import body_shapes

    bpy = clean_blender
    upright = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]) * 100.0  # Y up, faces Z, in centimetres
    rig, body, mesh = dressed_with_other_axes(moved, upright if is_lying else FACING)
    if is_lying:
        rig.rotation_mode, rig.rotation_euler, rig.scale = "XYZ", (1.7, 0.1, 0.4), (0.01, 0.01, 0.01)
    rig.location = (1.0, 2.0, 3.0)
    assert body_shapes.unfit_bones(rig)
    before = evaluated(body) @ FACING.T
    assert bpy.ops.object.second_life_retarget(proportions="KEEP") == {"FINISHED"}
    avatar, copy = bpy.context.object, bpy.data.objects["SL body"]
    assert body_shapes.unfit_bones(avatar) == [] and avatar.data.meshferry.bone_axes == "AVATAR"
    np.testing.assert_allclose(evaluated(copy) @ FACING.T, before, atol=TOLERANCE)
    avatar.matrix_world = np.identity(4).tolist()
    for seed in range(4):
        values = random_values(seed) if seed > 1 else standard()
        turns = posed(avatar, seed) if seed else {}
        shape(avatar, values)
        apart = np.abs(evaluated(copy) - wanted_points(mesh, values, turns)).max()
        assert apart <= TOLERANCE, (seed, apart)


def test_bindings_of_files_are_shown_on_retargeted_avatars(clean_blender: Any, samples: Path) -> None:
    bpy, path = clean_blender, samples / "collada" / AVASTAR[0]
    made = imported(path)
    (rig,) = made.armatures
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["mTorso"].tail.x += 0.1
    bpy.ops.object.mode_set(mode="OBJECT")
    assert bpy.ops.object.second_life_retarget(proportions="KEEP") == {"FINISHED"}
    avatar = bpy.context.object
    copies = [bpy.data.objects[f"SL {obj.name}"] for obj in models_of(made)]
    for seed in range(3):
        values = random_values(seed) if seed else standard()
        shape(avatar, values)
        turns = posed(avatar, seed)
        for mesh, obj in zip(slow_skinning.of_collada(path.read_bytes()), copies, strict=True):
            apart = np.abs(evaluated(obj) - wanted_points(mesh, values, turns)).max()
            assert apart <= TOLERANCE, (seed, obj.name, apart)
