"""Rigged assets posed in Blender, against the viewer's formula over the file's own matrices.

``v * bind_shape * sum of w * inverse_bind * joint_world`` (formats page, section 4.2), computed here from what an
oracle reads, the table of joints and turns that the test makes up; only the places of the joints are the
armature's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import avatar_table
import numpy as np
import pytest
import second_life_oracle

pytestmark = pytest.mark.needs_bpy

Array = Any

RIGGED = (
    "benthic_rigged22.mesh",
    "hippolyzer_testslm.mesh",
    "synthetic/synth_rig_cv.llmesh",
    "synthetic/synth_rig_overrides.llmesh",
)
LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
ON_THE_TABLE = 0.005
"""Metres by which joints of real rigs lie off the table."""

TURN = np.array(((0.0, 1.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
"""From the avatar's space (X forward) to Blender's (-Y forward)."""


def imported(path: Path, **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.api import read_scene

    own = {name: options.pop(name) for name in ("skeleton_joints", "skeleton_rest") if name in options}
    made = importer.import_scene(
        import_options.ImportRequest(
            bpy.context,
            read_scene(str(path), own),
            import_options.ImportOptions.of({"use_weld": False, **options}),
            str(path),
        )
    )
    for layer in bpy.context.view_layer.layer_collection.children[made.collection.name].children:
        layer.hide_viewport = False
    bpy.context.view_layer.update()
    return made


def levels_of(made: Any) -> dict[int, Any]:
    return {obj.meshferry.lod: obj for obj in made.objects if obj.type == "MESH" and obj.vertex_groups}


def evaluated(obj: Any) -> Array:
    import bpy

    shown = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    points = np.empty(len(shown.data.vertices) * 3, np.float32)
    shown.data.vertices.foreach_get("co", points)
    place = np.array(shown.matrix_world, np.float64)
    return points.reshape(-1, 3) @ place[:3, :3].T + place[:3, 3]


def about(point: Array, rotation: Array) -> Array:
    """Return a (4, 4) turn about a point."""
    made = np.identity(4)
    made[:3, :3] = rotation
    made[:3, 3] = point - rotation @ point
    return made


def rotation(axis: Array, angle: float) -> Array:
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array(((0, -z, y), (z, 0, -x), (-y, x, 0)))
    return np.identity(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def pose(armature: Any, seed: int) -> dict[str, Array]:
    """Turn every bone a little, and return what became of each joint's space: (4, 4), in Blender's axes."""
    from mathutils import Matrix

    rng = np.random.default_rng(seed)
    moved: dict[str, Array] = {}
    for bone in armature.data.bones:  # parents first
        turn = rotation(rng.normal(size=3), rng.uniform(-0.6, 0.6))
        above = moved[bone.parent.name] if bone.parent else np.identity(4)
        moved[bone.name] = above @ about(np.array(bone.head_local, np.float64), turn)
        frame = np.array(bone.matrix_local, np.float64)[:3, :3]
        own = Matrix((frame.T @ turn @ frame).tolist()).to_quaternion()
        armature.pose.bones[bone.name].rotation_quaternion = own
    return moved


def volume_axes(name: str) -> Array:
    """Return rotation and scale of a collision volume, (3, 3), in the avatar's space: the table's (section 4.3)."""
    row = avatar_table.rows()[name]
    if row["kind"] != "collision_volume":
        return np.identity(3)
    x, y, z = np.radians(avatar_table.three(row, "rot"))
    axes = [rotation(np.array(axis), angle) for axis, angle in (((1, 0, 0), x), ((0, 1, 0), y), ((0, 0, 1), z))]
    return axes[2] @ axes[1] @ axes[0] @ np.diag(avatar_table.three(row, "scale"))


def viewer(asset: Any, faces: Any, armature: Any, moved: dict[str, Array]) -> Array:
    """Return where the viewer would put the vertices of a level, in Blender's axes."""
    skin = asset.skin
    joints = []
    for name, inverse_bind in zip(skin.joints, skin.inverse_bind, strict=True):
        rest = np.identity(4)
        rest[:3, :3] = volume_axes(name)
        rest[:3, 3] = TURN.T[:3, :3] @ np.array(armature.data.bones[name].head_local, np.float64)
        joints.append(moved[name] @ TURN @ rest @ inverse_bind.T @ skin.bind_shape.T)
    matrices = np.array(joints)
    found = []
    for face in faces:
        if face.no_geometry:
            continue
        weights = asset.weights_of(face)
        weights /= weights.sum(axis=1, keepdims=True)
        points = np.column_stack((face.positions.astype(np.float64), np.ones(len(face.positions))))
        found.append(np.einsum("vj,jab,vb->va", weights, matrices, points)[:, :3])
    return np.concatenate(found)


@pytest.mark.parametrize("joints", ["AVATAR", "USED"])
@pytest.mark.parametrize("name", RIGGED)
def test_a_posed_mesh_lies_where_the_viewer_puts_it(samples: Path, name: str, joints: str) -> None:
    import bpy

    path = samples / "secondlife" / name
    asset = second_life_oracle.decode(path.read_bytes())
    made = imported(path, skeleton_joints=joints)
    (armature,) = made.armatures
    shown = levels_of(made)
    assert len(shown) == len(asset.levels) == 4
    for seed in (None, 1, 2):
        moved = {bone.name: np.identity(4) for bone in armature.data.bones}
        if seed is not None:
            moved = pose(armature, seed)
        bpy.context.view_layer.update()
        for level, key in enumerate(LEVELS):
            expected = viewer(asset, asset.levels[key], armature, moved)
            np.testing.assert_allclose(evaluated(shown[level]), expected, atol=1e-4, err_msg=f"{key}, pose {seed}")


def bound_elsewhere(asset: Any) -> dict[str, Array]:
    """Return the offsets of a file's joints from the table, if over 5 mm, as (3,) in Blender's axes.

    The offset of the pelvis is the location of the whole rig and is left out.
    """
    heads = avatar_table.heads()
    off = {
        name: avatar_table.turned(np.linalg.inv(inverse)[3, :3]) - heads[name]
        for name, inverse in zip(asset.skin.joints, asset.skin.inverse_bind, strict=True)
    }
    return {name: by - off["mPelvis"] for name, by in off.items() if np.linalg.norm(by - off["mPelvis"]) > ON_THE_TABLE}


@pytest.mark.parametrize("rest", ["FILE", "TABLE"])
@pytest.mark.parametrize("name", RIGGED)
def test_a_decoded_rig_lands_on_the_avatar(samples: Path, name: str, rest: str) -> None:
    """Heads within 5 mm of the table unless the file moves them; what a joint moves is within half a metre of it.

    One file overrides nothing, but has the arms and the top of the head up to 5 cm off the table: its own mesh fits
    there, so that is where its bones are unless the table is asked for.
    """
    path = samples / "secondlife" / name
    asset = second_life_oracle.decode(path.read_bytes())
    made = imported(path, skeleton_rest=rest)
    (armature,) = made.armatures
    elsewhere = bound_elsewhere(asset)
    assert bool(elsewhere) == (asset.skin.overrides is not None or name == "benthic_rigged22.mesh"), elsewhere
    assert len(elsewhere) <= 9
    table, heads = avatar_table.rows(), avatar_table.heads()

    def moves(joint: str) -> bool:
        return rest == "FILE" and (joint in elsewhere or (joint in table and moves(table[joint]["parent"])))

    assert set(asset.skin.joints) <= {bone.name for bone in armature.data.bones}
    for bone in armature.data.bones:
        off = np.array(bone.head_local) - heads[bone.name]
        if not moves(bone.name):
            assert np.linalg.norm(off) < ON_THE_TABLE, bone.name
        elif bone.name in elsewhere:
            assert np.linalg.norm(off - elsewhere[bone.name]) < ON_THE_TABLE, bone.name
    body = levels_of(made)[0]
    points = evaluated(body)
    for group in body.vertex_groups:
        held = [vertex.index for vertex in body.data.vertices if any(e.group == group.index for e in vertex.groups)]
        apart = np.linalg.norm(points[held] - np.array(armature.data.bones[group.name].head_local), axis=1)
        assert apart.min() < 0.5, group.name
    # The avatar faces -Y: of what comes in pairs the left one is at +X.
    places = {bone.name: bone.head_local.x for bone in armature.data.bones}
    apart = [place - places[bone.replace("Left", "Right")] for bone, place in places.items() if "Left" in bone]
    assert len(apart) > 40 and np.mean(apart) > 0.1  # the avatar itself has one lip's sides changed about


def test_joint_positions_of_the_file_move_the_bones(samples: Path) -> None:
    """Overrides are relative to the parent (section 4.5); what hangs on the joints goes along."""
    path = samples / "secondlife" / "synthetic" / "synth_rig_overrides.llmesh"
    asset = second_life_oracle.decode(path.read_bytes())
    (armature,) = imported(path).armatures
    places = dict(zip(asset.skin.joints, asset.skin.overrides[:, 3, :3], strict=True))
    for name in ("mTorso", "mChest"):
        bone = armature.data.bones[name]
        wanted = avatar_table.turned(places[name])
        np.testing.assert_allclose(bone.head_local - bone.parent.head_local, wanted, atol=1e-5)
        default = avatar_table.turned(avatar_table.three(avatar_table.rows()[name], "pos"))
        assert np.linalg.norm(wanted - default) > 1e-3


def test_a_rig_on_the_standard_avatar_keeps_the_shape_of_the_mesh(samples: Path) -> None:
    path = samples / "secondlife" / "synthetic" / "synth_rig_overrides.llmesh"
    as_bound = levels_of(imported(path))[0]
    shape = evaluated(as_bound)
    made = imported(path, skeleton_rest="TABLE", armature="NEW")
    heads = avatar_table.heads()
    for bone in made.armatures[0].data.bones:
        np.testing.assert_allclose(bone.head_local, heads[bone.name], atol=1e-6)
    np.testing.assert_allclose(evaluated(levels_of(made)[0]), shape, atol=1e-5)


def test_meshes_of_one_run_share_an_avatar_and_of_two_do_not(samples: Path) -> None:
    import bpy

    folder = samples / "secondlife"
    body, one_joint = "synthetic/synth_rig_cv.llmesh", "hippolyzer_testslm.mesh"

    def import_run(*names: str) -> list[Any]:
        before = set(bpy.data.objects)
        files = [{"name": name} for name in names]
        assert bpy.ops.import_scene.second_life(directory=str(folder), files=files) == {"FINISHED"}
        return [obj for obj in bpy.data.objects if obj not in before]

    (first,) = [obj for obj in import_run(body) if obj.type == "ARMATURE"]
    made = import_run(body, one_joint)
    (second,) = [obj for obj in made if obj.type == "ARMATURE"]
    assert second != first
    assert {obj.parent for obj in made if obj.type == "MESH"} == {second}
    assert len([obj for obj in made if obj.type == "MESH" and obj.vertex_groups]) == 8
