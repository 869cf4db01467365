"""Tables of bones and joints: bundled ones, files of users, and the transforms from another rig to the avatar."""

from __future__ import annotations

import avatar_rest
import numpy as np
import pytest
from meshferry.io_formats.core.errors import FormatError, MeshferryError
from meshferry.io_formats.geometry.transforms import euler_matrices
from meshferry.io_formats.second_life.avatar import avatar_fit, joints, other_rigs
from meshferry.io_formats.second_life.models import space

CLASSIC = {f"m{part}" for part in ("Pelvis", "Torso", "Chest", "Neck", "Head")} | {
    f"m{part}{side}"
    for part in ("Collar", "Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle", "Foot")
    for side in ("Left", "Right")
}


@pytest.mark.parametrize("name", other_rigs.BUNDLED)
def test_bundled_tables_reach_every_classic_joint_and_finger(name):
    (table,) = (table for table in other_rigs.bundled_tables() if table.name == name)
    fingers = {joint for joint in avatar_rest.rows() if joint.startswith("mHand")}
    assert set(table.joints.values()) >= CLASSIC | fingers
    assert set(table.joints.values()) <= set(avatar_rest.rows())


@pytest.mark.parametrize(
    ("bones", "name", "joint"),
    [
        (("spine", "spine.001", "hand.L", "thigh.R", "shin.R"), "Rigify", "mPelvis"),
        (("DEF-spine.001", "DEF-thigh.L.001", "ORG-hand.L", "DEF-f_index.01.L"), "Rigify", "mTorso"),
        (("mixamorig:Hips", "mixamorig:Spine", "mixamorig:LeftArm", "mixamorig:Head"), "Mixamo", "mPelvis"),
        (("mixamorig12:Spine2", "mixamorig12:Hips", "mixamorig12:LeftArm", "mixamorig12:Head"), "Mixamo", "mChest"),
        (("mixamorig_LeftFoot", "mixamorig_Hips", "mixamorig_LeftArm", "mixamorig_Head"), "Mixamo", "mAnkleLeft"),
        (("LeftForeArm", "Hips", "Spine", "Head"), "Mixamo", "mElbowLeft"),
    ],
)
def test_rigs_are_recognised_with_any_prefix(bones, name, joint):
    table = other_rigs.best_table(bones)
    assert table is not None and table.name == name
    assert table.joint_of(bones[0]) == joint and len(table.mapping(bones)) == len(bones)


def test_other_rigs_have_no_table():
    assert other_rigs.best_table(("Bone", "Bone.001", "spine", "Head", "root")) is None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"a,b\n", r"table\.csv: the first line of a bone table must be 'bone,joint'"),
        (b"", "the first line"),
        (b"bone,joint\nhip,mPelvis\narm,mArm\n", r"table\.csv: line 3: 'mArm' is not a joint"),
        (b"bone,joint\n,mPelvis\n", "line 2: the bone is missing"),
        (b"bone,joint\na\n", "line 2: '' is not a joint"),
        (b"bone,joint\na,mHead\na,mNeck\n", "line 3: bone 'a' is repeated"),
        (b'bone,joint\n"a,mHead\n', "not a CSV file"),
        (b"bone,joint\n\xff,mHead\n", "not a CSV file in UTF-8"),
    ],
)
def test_damaged_tables_are_refused_with_the_line(text, cause):
    with pytest.raises(FormatError, match=cause):
        other_rigs.parse_bone_table(text, "table.csv")


def test_tables_of_spreadsheets_and_saved_ones_are_read():
    table = other_rigs.parse_bone_table(b'\xef\xbb\xbfjoint,bone,note\r\nhip,"H\xc3\xbcfte, 1",x\r\n', "table.csv")
    assert table.joints == {"Hüfte, 1": "mPelvis"}  # 'hip' is an alias
    assert (
        other_rigs.parse_bone_table(other_rigs.bone_table_text(table.joints).encode(), "again").joints == table.joints
    )
    with pytest.raises(MeshferryError, match="'arm': 'mArm' is not a joint"):
        other_rigs.checked_bone_table({"arm": "mArm"}, "list")


def test_bones_without_a_joint_take_that_of_their_nearest_parent():
    bones = ["Hair", "root", "Hips", "Skirt", "Skirt2", "Head"]
    parents = [5, -1, 1, 2, 3, 2]
    table = other_rigs.parse_bone_table(b"bone,joint\nHips,mPelvis\nHead,mHead\nSkirt2,mHead\n", "table")
    joints, unmapped = other_rigs.joints_of(bones, parents, table)
    assert joints["Skirt"] == "mPelvis" and joints["Hair"] == "mHead" and joints["root"] == "mPelvis"
    assert unmapped == ["Hair", "root", "Skirt"]
    assert other_rigs.first_bones(bones, parents, [True] * 6, table) == {"mPelvis": 2, "mHead": 5}
    only_skirt = [bone == "Skirt2" for bone in bones]
    assert other_rigs.first_bones(bones, parents, only_skirt, table)["mHead"] == bones.index("Skirt2")
    assert "Hair" in other_rigs.unmapped_text(["Skirt", "Hair"]) and not other_rigs.unmapped_text([])


def rest():
    heads = {name: avatar_rest.in_blender(head) for name, head in avatar_rest.heads().items()}
    return {name: heads[name] for name in CLASSIC}


def test_a_rig_at_the_avatars_joints_is_not_moved():
    for name, matrix in avatar_fit.fit_matrices(rest()).items():
        np.testing.assert_allclose(matrix, np.identity(4), atol=1e-12, err_msg=name)


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_limbs_turn_and_stretch_onto_the_joints(side):
    wanted, heads = rest(), rest()
    bend = np.array([[0.8, 0, 0.6], [0, 1, 0], [-0.6, 0, 0.8]])
    bend = bend if side == "Left" else bend.T
    shoulder = heads[f"mShoulder{side}"]
    for part in ("Elbow", "Wrist"):
        heads[f"m{part}{side}"] = shoulder + 1.3 * bend @ (wanted[f"m{part}{side}"] - shoulder)
    found = avatar_fit.fit_matrices(heads)
    for part, child in (("Shoulder", "Elbow"), ("Elbow", "Wrist")):
        for end in (part, child):
            moved = found[f"m{part}{side}"] @ [*heads[f"m{end}{side}"], 1]
            np.testing.assert_allclose(moved[:3], wanted[f"m{end}{side}"], atol=1e-12)
        assert np.linalg.det(found[f"m{part}{side}"][:3, :3]) > 0
    # A hand whose fingers are not mapped turns with its arm.
    np.testing.assert_allclose(
        found[f"m{'Wrist'}{side}"][:3, :3] @ bend @ [1, 0, 0], [found["mHead"][0, 0], 0, 0], atol=1e-9
    )
    assert "37°" in avatar_fit.pose_text(heads) and f"'mElbow{side}'" in avatar_fit.pose_text(heads)
    assert not avatar_fit.pose_text(wanted)


def test_the_front_is_found_from_left_and_up():
    heads = rest()
    turn = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
    axes = avatar_fit.avatar_axes({name: turn @ head for name, head in heads.items()})
    np.testing.assert_allclose(axes, turn, atol=1e-9)
    lying = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    slight = euler_matrices(np.array([[0.0, 0.0, 0.9]]), "XYZ")[0]  # of a rig that is not symmetrical
    axes = avatar_fit.avatar_axes({name: lying @ slight @ head for name, head in heads.items()})
    np.testing.assert_array_equal(axes, lying)
    for lacking in ("mPelvis", "Left"):
        with pytest.raises(MeshferryError, match="bone table"):
            avatar_fit.avatar_axes({name: head for name, head in heads.items() if lacking not in name})


def test_joints_end_at_the_next_joint_or_as_the_avatar_does() -> None:
    table, standard = joints.table(), avatar_fit.standard_heads()
    ends = {name: standard[name] + space.TO_BLENDER[:3, :3] @ table[name].end for name in standard}
    for name, end in avatar_fit.joint_ends(standard).items():
        np.testing.assert_allclose(end, ends[name], atol=1e-6, err_msg=name)
    # A rig without fingers, in another size and direction: its hand goes on where the avatar's would.
    turn = euler_matrices(np.array([[0.5, 1.0, 2.0]]), "XYZ")[0]
    rig = {name: 100 * turn @ head + 3 for name, head in standard.items() if "mHand" not in name}
    for name, end in avatar_fit.joint_ends(rig).items():
        np.testing.assert_allclose(end, 100 * turn @ ends[name] + 3, atol=1e-4, err_msg=name)
    # Lowered arms: so are the hands.
    lowered = euler_matrices(np.array([[0.0, 0.8, 0.0]]), "XYZ")[0]
    shoulder = standard["mShoulderLeft"]
    rig = {name: head for name, head in standard.items() if "mHand" not in name}
    for name in ("mElbowLeft", "mWristLeft"):
        rig[name] = shoulder + lowered @ (rig[name] - shoulder)
    expected = shoulder + lowered @ (ends["mWristLeft"] - shoulder)
    np.testing.assert_allclose(avatar_fit.joint_ends(rig)["mWristLeft"], expected, atol=5e-3)
