"""Rigs as Second Life's viewer reads them: its own formula, over the oracle's matrices, brings meshes where they were.

At rest the viewer shows ``v * bind shape * sum of w * inverse bind * joint`` (row vectors), with joints where the table
has them, or where the file moves them to.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import avatar_rest
import numpy as np
import pytest
import second_life_judge as judge
import second_life_oracle as oracle
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.second_life.asset.codec import Asset
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.avatar import skeletons
from meshferry.io_formats.second_life.avatar.joints import facing_of, rest_matrices
from meshferry.io_formats.second_life.models.models import models_of
from meshferry.io_formats.second_life.models.space import TO_AVATAR

Array = np.ndarray[Any, Any]

JOINTS = ("mPelvis", "mTorso", "mChest", "mShoulderLeft", "mWristRight", "BELLY", "L_HAND", "mHead")


def avatar_space(vectors: Array) -> Array:
    """Return vectors of Blender, where the avatar faces -Y, as they are in its own space."""
    x, y, z = np.moveaxis(np.asarray(vectors, np.float64), -1, 0)
    return np.stack((-y, x, z), axis=-1)


def joint_cloud(skeleton: sc.Skeleton, names: tuple[str, ...] = JOINTS, seed: int = 3) -> sc.Mesh:
    """Return triangles around joints, each vertex weighted to up to four of them."""
    rng = np.random.default_rng(seed)
    numbers = [joint.name for joint in skeleton.joints]
    width = min(4, len(names))
    points, indices, weights = [], [], []
    heads = avatar_rest.heads()
    for name in names:
        head = avatar_rest.in_blender(heads[name])
        points.append(head + rng.normal(scale=0.1, size=(30, 3)))
        chosen = np.array([rng.permutation(len(names))[:width] for _ in range(30)])
        indices.append(np.array([numbers.index(names[place]) for place in chosen.reshape(-1)]).reshape(-1, width))
        some = rng.dirichlet((2.0,) * width, 30) * (rng.random((30, width)) < 0.7)
        some[:, 0] += 0.2
        weights.append(some / some.sum(axis=1, keepdims=True))
    count = 30 * len(names)
    return sc.Mesh(
        np.concatenate(points).astype(np.float32),
        np.arange(count, dtype=np.int32),
        np.zeros(count // 3, np.int32),
        ["skin"],
        joint_indices=np.concatenate(indices).astype(np.int32),
        joint_weights=np.concatenate(weights).astype(np.float32),
    )


def rigged(skeleton: sc.Skeleton | None = None, mesh: sc.Mesh | None = None, **node: Any) -> sc.Scene:
    skeleton = skeleton or skeletons.avatar_skeleton()
    mesh = mesh or joint_cloud(skeleton)
    return sc.Scene("rig", [sc.Node("Body", mesh=mesh, skeleton=0, **node)], [skeleton])


def written(scene: sc.Scene, **options: Any) -> oracle.Asset:
    return oracle.decode(SECOND_LIFE_MESH.write(SECOND_LIFE_MESH.from_scene(scene, options)))


def skin_of(asset: oracle.Asset) -> oracle.Skin:
    assert asset.skin is not None
    return asset.skin


def shown(asset: oracle.Asset, worlds: dict[str, Array] | None = None, level: str = "high_lod") -> Array:
    """Return where the viewer shows the vertices, (V, 3), at rest or with joints somewhere else."""
    skin = skin_of(asset)
    if worlds is None:
        moved = {}
        if skin.overrides is not None:
            moved = dict(
                zip(
                    (n.replace("_", " ") if n not in avatar_rest.rows() else n for n in skin.joints),
                    skin.overrides[:, 3, :3],
                    strict=True,
                )
            )
        worlds = avatar_rest.worlds(moved)
    return avatar_rest.skinned(asset, worlds, level)


def expected(scene: sc.Scene) -> Array:
    """Return where the vertices lie in avatar space as the scene has them."""
    node = scene.nodes[0]
    assert node.mesh is not None
    w, x, y, z = node.rotation
    turn = np.array(
        (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )
    )
    points = (node.mesh.points * np.array(node.scale)) @ turn.T + np.array(node.translation)
    return avatar_space(points)


# -- out ----------------------------------------------------------------------------------------


def test_at_rest_the_mesh_is_where_it_was() -> None:
    scene = rigged()
    asset = written(scene)
    np.testing.assert_allclose(shown(asset), expected(scene), atol=1e-4)
    skin = skin_of(asset)
    assert set(skin.joints) == set(JOINTS)
    assert (skin.overrides, skin.pelvis_offset, skin.lock_scale) == (None, None, False)
    worlds = avatar_rest.worlds()
    for name, inverse in zip(skin.joints, skin.inverse_bind, strict=True):
        np.testing.assert_allclose(inverse, np.linalg.inv(worlds[name]), atol=2e-6, err_msg=name)
    np.testing.assert_array_equal(skin.bind_shape[:3, :3], np.diag(np.diag(skin.bind_shape[:3, :3])))
    assert scene.warnings == []


def test_a_posed_joint_moves_what_hangs_on_it_around_its_head() -> None:
    skeleton = skeletons.avatar_skeleton()
    mesh = joint_cloud(skeleton, ("mShoulderLeft",))
    scene = rigged(skeleton, mesh)
    asset = written(scene)
    worlds = avatar_rest.worlds()
    turn = np.identity(4)
    turn[:3, :3] = avatar_rest.about(0, 40) @ avatar_rest.about(2, -25)
    head = worlds["mShoulderLeft"][3, :3]
    worlds["mShoulderLeft"] = turn @ worlds["mShoulderLeft"]
    around = (expected(scene) - head) @ turn[:3, :3] + head
    np.testing.assert_allclose(shown(asset, worlds), around, atol=1e-4)


def test_the_transform_of_the_object_goes_into_the_points() -> None:
    skeleton = skeletons.avatar_skeleton()
    half = np.sqrt(0.5)
    scene = rigged(
        skeleton,
        rotation=(float(np.cos(0.4)), float(np.sin(0.4) * half), 0.0, float(np.sin(0.4) * half)),
        scale=(0.5, 2.0, 1.5),
        translation=(0.1, -0.2, 0.3),
    )
    normals = np.random.default_rng(5).normal(size=(240, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    mesh.normal = sc.Layer("normal", normals.astype(np.float32))
    asset = written(scene)
    np.testing.assert_allclose(shown(asset), expected(scene), atol=1e-4)
    (face,) = asset.levels["high_lod"]
    # A normal stays square to what was square to it: two directions in the surface, moved as points are.
    shape = skin_of(asset).bind_shape[:3, :3]
    in_avatar = face.normals @ np.linalg.inv(shape).T
    first = np.cross(normals, (0.3, 0.5, 0.9))
    second = np.cross(normals, first)
    base = expected(scene)
    for direction in (first, second):
        moved = replace(scene.nodes[0], mesh=replace(mesh, points=(mesh.points + direction).astype(np.float32)))
        along = expected(sc.Scene("", [moved])) - base
        cosine = np.einsum("ij,ij->i", along, in_avatar)
        cosine /= np.linalg.norm(along, axis=1) * np.linalg.norm(in_avatar, axis=1)
        np.testing.assert_allclose(cosine, 0, atol=1e-3)
    assert (np.linalg.det(shape) > 0) and np.all(np.diag(shape) > 0)


def turned_about_z(skeleton: sc.Skeleton, degrees: float) -> sc.Skeleton:
    """Return a skeleton turned about Z, joint by joint, without rotating any."""
    turn = avatar_rest.about(2, degrees)
    joints = [
        replace(joint, translation=tuple((np.array(joint.translation) @ turn).tolist())) for joint in skeleton.joints
    ]
    return replace(skeleton, joints=joints)


@pytest.mark.parametrize("degrees", [90, 180, 270, 37, -100.5])
def test_facing_is_read_from_the_rig(degrees: float) -> None:
    skeleton = skeletons.avatar_skeleton(with_collision_volumes=False)
    names = tuple(name for name in JOINTS if name.startswith("m"))
    mesh = joint_cloud(skeleton, names)
    straight = written(rigged(skeleton, mesh))
    turn = avatar_rest.about(2, degrees)
    other = replace(mesh, points=(mesh.points.astype(np.float64) @ turn).astype(np.float32))
    asset = written(rigged(turned_about_z(skeleton, degrees), other))
    np.testing.assert_allclose(shown(asset), shown(straight), atol=1e-4)
    np.testing.assert_allclose(skin_of(asset).inverse_bind, skin_of(straight).inverse_bind, atol=1e-6)
    if degrees % 90 == 0:
        turned = skin_of(asset).bind_shape[3, :3]
        np.testing.assert_allclose(turned, skin_of(straight).bind_shape[3, :3], atol=1e-7)


@pytest.mark.parametrize(
    ("names", "is_clear"),
    [
        (("mElbowLeft", "mWristLeft", "mHandThumb1Left", "mHandPinky1Left"), True),
        (("mAnkleRight", "mFootRight", "mToeRight"), True),
        (("mShoulderRight", "mElbowRight"), True),
        (("mTorso", "mChest", "mNeck", "mHead"), True),
        (("mHead",), False),
        (("mHead", "mSkull"), False),  # above each other, so that all turns are alike
    ],
)
@pytest.mark.parametrize("size", [1.0, 0.025])
@pytest.mark.parametrize("quarters", range(4))
def test_facing_without_a_pair_is_that_nearest_to_the_table(
    names: tuple[str, ...], is_clear: bool, size: float, quarters: int
) -> None:
    turn = np.linalg.matrix_power(TO_AVATAR, quarters)
    heads = {name: size * (turn[:3, :3].T @ rest_matrices()[name][:3, 3]) + (1, 2, 3) for name in names}
    np.testing.assert_array_equal(facing_of(heads), turn if is_clear else TO_AVATAR)


def test_a_rig_that_is_nearly_straight_is_not_turned() -> None:
    """Half a degree comes from a careless artist; numbers stay as they are."""
    skeleton = turned_about_z(skeletons.avatar_skeleton(), 0.5)
    head = skeleton.joints[[joint.name for joint in skeleton.joints].index("mHead")]
    scene = rigged(skeleton, joint_cloud(skeleton, ("mPelvis", "mHead")))
    np.testing.assert_allclose(shown(written(scene)), expected(scene), atol=1e-4)
    assert head.translation != (0.0, 0.0, 0.0)


def test_directions_of_bones_do_not_matter() -> None:
    """Bones that point somewhere, as in Blender, give the very same file."""
    straight = skeletons.avatar_skeleton(with_collision_volumes=False)
    names = tuple(name for name in JOINTS if name.startswith("m"))
    mesh = joint_cloud(straight, names)
    rng = np.random.default_rng(7)
    worlds: list[Array] = []
    joints = []
    heads: list[Array] = []
    for joint in straight.joints:
        q = rng.normal(size=4)
        q /= np.linalg.norm(q)
        w, x, y, z = q
        turn = np.array(
            (
                (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
                (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
                (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
            )
        )
        above = worlds[joint.parent] if joint.parent >= 0 else np.identity(3)
        head = np.array(joint.translation) + (heads[joint.parent] if joint.parent >= 0 else 0)
        between = head - (heads[joint.parent] if joint.parent >= 0 else 0)
        local = tuple((above.T @ between).tolist())
        relative = above.T @ turn
        trace = np.sqrt(max(1 + np.trace(relative), 1e-12)) / 2
        rotation = (
            trace,
            (relative[2, 1] - relative[1, 2]) / (4 * trace),
            (relative[0, 2] - relative[2, 0]) / (4 * trace),
            (relative[1, 0] - relative[0, 1]) / (4 * trace),
        )
        worlds.append(turn)
        heads.append(head)
        joints.append(replace(joint, translation=local, rotation=rotation))
    asset = written(rigged(replace(straight, joints=joints), mesh))
    plain = written(rigged(straight, mesh))
    assert skin_of(asset).joints == skin_of(plain).joints
    np.testing.assert_allclose(skin_of(asset).inverse_bind, skin_of(plain).inverse_bind, atol=1e-5)
    for inverse in skin_of(asset).inverse_bind:
        np.testing.assert_array_equal(inverse[:3, :3], np.identity(3))


def renamed(skeleton: sc.Skeleton, names: dict[str, str]) -> sc.Skeleton:
    return replace(
        skeleton, joints=[replace(joint, name=names.get(joint.name, joint.name)) for joint in skeleton.joints]
    )


def test_aliases_are_written_by_their_own_names() -> None:
    skeleton = skeletons.avatar_skeleton(with_attachments=True)
    scene = rigged(
        renamed(skeleton, {"mPelvis": "hip", "mTorso": "avatar_mTorso", "mShoulderLeft": "lShldr"}),
        joint_cloud(skeleton, ("mPelvis", "mTorso", "mShoulderLeft", "Left Hand")),
    )
    asset = written(scene)
    assert set(skin_of(asset).joints) == {"mPelvis", "mTorso", "mShoulderLeft", "Left_Hand"}
    worlds = avatar_rest.worlds()
    worlds["Left_Hand"] = worlds["Left Hand"]
    np.testing.assert_allclose(shown(asset, worlds), expected(scene), atol=1e-4)


def test_names_that_the_viewer_does_not_know_stay_for_the_checks() -> None:
    skeleton = skeletons.avatar_skeleton()
    skin = skin_of(written(rigged(renamed(skeleton, {"mHead": "Bone.003"}), joint_cloud(skeleton))))
    assert "Bone.003" in skin.joints
    assert "mHead" not in skin.joints
    assert skin.overrides is None, "the joints beside it lie where they should"


def moved_joint(skeleton: sc.Skeleton, name: str, by: tuple[float, float, float]) -> sc.Skeleton:
    return replace(
        skeleton,
        joints=[
            replace(joint, translation=tuple((np.array(joint.translation) + by).tolist()))
            if joint.name == name
            else joint
            for joint in skeleton.joints
        ],
    )


@pytest.mark.parametrize(("choice", "writes"), [("AUTO", True), ("ALWAYS", True), ("NEVER", False)])
def test_joints_that_lie_elsewhere_are_moved(choice: str, writes: bool) -> None:
    scene = rigged(moved_joint(skeletons.avatar_skeleton(), "mChest", (0.01, 0.02, 0.05)))
    asset = written(scene, joint_positions=choice, use_lock_scale=True)
    skin = skin_of(asset)
    assert (skin.overrides is not None) == writes == skin.lock_scale
    chest = skin.joints.index("mChest")
    head = avatar_rest.heads()["mChest"] + avatar_space(np.array((0.01, 0.02, 0.05)))
    np.testing.assert_allclose(np.linalg.inv(skin.inverse_bind[chest])[3, :3], head, atol=1e-6)
    if skin.overrides is None:
        assert scene.warnings == []
        return
    np.testing.assert_allclose(shown(asset), expected(scene), atol=1e-4)
    pos = avatar_rest.three(avatar_rest.rows()["mChest"], "pos")
    wanted = pos + avatar_space(np.array((0.01, 0.02, 0.05)))
    np.testing.assert_allclose(skin.overrides[chest][3, :3], wanted, atol=1e-6)
    np.testing.assert_array_equal(skin.overrides[:, :3, :3], skin.inverse_bind[:, :3, :3])
    assert skin.pelvis_offset == 0.0


def test_joints_are_moved_from_a_tenth_of_a_millimetre_on() -> None:
    near = written(rigged(moved_joint(skeletons.avatar_skeleton(), "mChest", (0.0, 0.0, 0.00009))))
    assert skin_of(near).overrides is None
    far = written(rigged(moved_joint(skeletons.avatar_skeleton(), "mChest", (0.0, 0.0, 0.00011))))
    assert skin_of(far).overrides is not None


def with_pivots(skeleton: sc.Skeleton, joints: str) -> sc.Skeleton:
    """Return a skeleton with all bones, or some, at the older position that the table has for them."""
    rows = avatar_rest.rows()
    found = []
    for joint in skeleton.joints:
        if rows[joint.name]["pivot_x"] and joints in joint.name:
            place = avatar_rest.in_blender(avatar_rest.three(rows[joint.name], "pivot"))
            found.append(replace(joint, translation=tuple(place.tolist())))
        else:
            found.append(joint)
    return replace(skeleton, joints=found)


@pytest.mark.parametrize("joints", ["", "Left"])
def test_joints_at_the_other_position_of_the_table_are_standard(joints: str) -> None:
    """The table has two positions for each joint, up to 11 mm apart; rigs of other programs are made with either."""
    used = (*JOINTS, "mToeLeft", "mToeRight")
    skeleton = with_pivots(skeletons.avatar_skeleton(), joints)
    scene = rigged(skeleton, joint_cloud(skeleton, used))
    asset = written(scene)
    assert skin_of(asset).overrides is None and scene.warnings == []
    moved = moved_joint(skeleton, "mChest", (0.0, 0.0, 0.1))
    skin = skin_of(written(rigged(moved, joint_cloud(moved, used))))
    assert skin.overrides is not None
    for name, override in zip(skin.joints, skin.overrides[:, 3, :3], strict=True):
        # The viewer moves a joint that is 0.1 mm from ``pos``, so all others have exactly that.
        away = np.linalg.norm(override - avatar_rest.three(avatar_rest.rows()[name], "pos"))
        assert away == pytest.approx(0.1, abs=1e-3) if name == "mChest" else away < 1e-7, name


def test_moved_joints_above_those_that_are_used_are_listed() -> None:
    """A hat on a head whose chest is elsewhere: the chest must be moved too, or the hat is at the wrong place."""
    skeleton = moved_joint(skeletons.avatar_skeleton(), "mChest", (0.0, 0.0, 0.1))
    mesh = joint_cloud(skeleton, ("mHead",))
    scene = rigged(skeleton, mesh)
    asset = written(scene)
    assert skin_of(asset).joints == ["mChest", "mHead"]
    np.testing.assert_allclose(shown(asset), expected(scene), atol=1e-4)


@pytest.mark.parametrize("missing", ["mSpine", "mNeck"])
def test_armatures_without_the_joints_in_between_move_nothing(missing: str) -> None:
    """Old rigs have no mSpine1 to mSpine4: chest and torso hang on each other; others may have a head on the chest."""
    full = skeletons.avatar_skeleton()
    heads: dict[int, Array] = {}
    for number, joint in enumerate(full.joints):
        heads[number] = np.array(joint.translation) + (heads[joint.parent] if joint.parent >= 0 else 0)
    kept = [number for number, joint in enumerate(full.joints) if not joint.name.startswith(missing)]
    joints = []
    for number in kept:
        above = full.joints[number].parent
        while above >= 0 and above not in kept:
            above = full.joints[above].parent
        place = heads[number] - (heads[above] if above >= 0 else 0)
        parent = kept.index(above) if above >= 0 else -1
        joints.append(replace(full.joints[number], parent=parent, translation=tuple(place.tolist())))
    skeleton = replace(full, joints=joints)
    scene = rigged(skeleton, joint_cloud(skeleton))
    asset = written(scene)
    assert skin_of(asset).overrides is None
    np.testing.assert_allclose(shown(asset), expected(scene), atol=1e-4)
    always = skin_of(written(scene, joint_positions="ALWAYS"))
    assert always.overrides is not None
    for name in ("mTorso", "mHead"):
        position = always.overrides[always.joints.index(name)][3, :3]
        np.testing.assert_allclose(position, avatar_rest.three(avatar_rest.rows()[name], "pos"), atol=1e-6)


def test_weights_are_four_the_strongest_first_and_add_up() -> None:
    skeleton = skeletons.avatar_skeleton()
    mesh = joint_cloud(skeleton, ("mTorso",))
    names = [joint.name for joint in skeleton.joints]
    used = [names.index(name) for name in ("mPelvis", "mTorso", "mChest", "mNeck", "mHead", "mSkull")]
    mesh.joint_indices = np.tile(np.array(used, np.int32), (30, 1))
    mesh.joint_weights = np.tile(np.array((0.1, 0.9, 0.3, 0.05, 0.6, 0.0), np.float32), (30, 1))
    scene = rigged(skeleton, mesh)
    asset = written(scene)
    (face,) = asset.levels["high_lod"]
    assert face.weights is not None
    joints = skin_of(asset).joints
    assert [joints[joint] for joint, _ in face.weights[0]] == ["mTorso", "mHead", "mChest", "mPelvis"]
    np.testing.assert_allclose(
        [weight / 65535 for _, weight in face.weights[0]], np.array((0.9, 0.6, 0.3, 0.1)) / 1.9, atol=1e-5
    )
    assert "mNeck" not in joints, "its weight is one too many"
    assert "mSkull" not in joints
    assert any("30 vertices have more than 4 weights" in text for text in scene.warnings)


def test_vertices_without_weights_follow_the_first_joint_and_are_counted() -> None:
    skeleton = skeletons.avatar_skeleton()
    mesh = joint_cloud(skeleton, ("mTorso", "mHead"))
    assert mesh.joint_weights is not None
    mesh.joint_weights[5:8] = 0
    scene = rigged(skeleton, mesh)
    asset = written(scene)
    (face,) = asset.levels["high_lod"]
    assert face.weights is not None
    assert face.weights[5:8] == [[(0, 65535)]] * 3
    assert any("3 vertices have no weights" in text for text in scene.warnings)


def test_weights_to_joints_that_are_not_there_are_refused() -> None:
    scene = rigged()
    mesh = scene.nodes[0].mesh
    assert mesh is not None and mesh.joint_indices is not None
    mesh.joint_indices[7, 0] = 999
    with pytest.raises(ExportError, match="Body: vertices are weighted to bones that its armature does not have"):
        written(scene)


def test_levels_use_joints_of_their_own() -> None:
    skeleton = skeletons.avatar_skeleton()
    scene = rigged(skeleton, joint_cloud(skeleton, ("mTorso",)))
    level = replace(scene.nodes[0], lod=1, mesh=joint_cloud(skeleton, ("mTorso", "mPelvis")), lod_of=0)
    scene.nodes.append(level)
    asset = written(scene)
    assert set(skin_of(asset).joints) == {"mPelvis", "mTorso"}
    np.testing.assert_allclose(shown(asset, level="medium_lod"), expected(sc.Scene("", [level])), atol=1e-4)


def test_a_mesh_on_an_armature_without_weights_is_static() -> None:
    scene = rigged()
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    mesh.joint_weights = mesh.joint_indices = None
    assert written(scene).skin is None


def test_physics_of_a_rigged_mesh_lies_around_it() -> None:
    scene = rigged()
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    shape = replace(mesh, joint_weights=None, joint_indices=None)
    scene.nodes.append(replace(scene.nodes[0], role=sc.Role.PHYSICS, skeleton=None, mesh=shape, shape_of=0))
    asset = written(scene)
    assert asset.physics_mesh is not None
    (face,) = asset.physics_mesh
    assert face.weights is None
    np.testing.assert_array_equal(face.stored, asset.levels["high_lod"][0].stored)


# -- in -----------------------------------------------------------------------------------------


def rigged_sample(samples: Path, name: str = "synthetic/synth_rig_cv.llmesh") -> Asset:
    asset: Asset = SECOND_LIFE_MESH.read((samples / "secondlife" / name).read_bytes())
    return asset


def placed_points(scene: sc.Scene) -> Array:
    return expected(scene)


def through_another_space(asset: Asset, change: Array) -> Asset:
    """Return an asset whose rig was made in another space: only the product of its matrices is the same."""
    asset = copy.deepcopy(asset)
    skin = asset.blocks["skin"]
    skin["bind_shape_matrix"] = (np.array(skin["bind_shape_matrix"]).reshape(4, 4) @ change).reshape(-1).tolist()
    skin["inverse_bind_matrix"] = [
        (np.linalg.inv(change) @ np.array(matrix).reshape(4, 4)).reshape(-1).tolist()
        for matrix in skin["inverse_bind_matrix"]
    ]
    return asset


def spaces() -> dict[str, Array]:
    scaled, turned, moved = np.identity(4), np.identity(4), np.identity(4)
    scaled[:3, :3] *= 100
    turned[:3, :3] = avatar_rest.about(0, -90)
    moved[3, :3] = (0.3, -0.5, 0.2)
    return {"centimetres": scaled, "y up": turned, "elsewhere": moved, "all": scaled @ turned @ moved}


@pytest.mark.parametrize("space", sorted(spaces()))
def test_rigs_made_in_another_space_land_on_the_avatar(samples: Path, space: str) -> None:
    plain = rigged_sample(samples)
    scene = SECOND_LIFE_MESH.to_scene(plain, "thing")
    asset = through_another_space(plain, spaces()[space])
    other = SECOND_LIFE_MESH.to_scene(asset, "thing")
    np.testing.assert_allclose(placed_points(other), placed_points(scene), atol=1e-4)
    for mine, theirs in zip(other.skeletons[0].joints, scene.skeletons[0].joints, strict=True):
        np.testing.assert_allclose(mine.translation, theirs.translation, atol=1e-4, err_msg=mine.name)
        np.testing.assert_allclose(mine.scale, theirs.scale, atol=1e-4, err_msg=mine.name)
        np.testing.assert_allclose(np.abs(mine.rotation), np.abs(theirs.rotation), atol=1e-4, err_msg=mine.name)
    other.as_imported = True
    again = written(other)
    judge.same_asset(oracle.decode(SECOND_LIFE_MESH.write(asset)), again)


def test_a_rig_that_moves_all_joints_alike_stays_where_it_moves_them() -> None:
    """A tall avatar's pelvis and all above it are higher; the file states that, so the rig is not moved."""
    scene = rigged(moved_joint(skeletons.avatar_skeleton(), "mPelvis", (0.0, 0.0, 0.3)))
    again = SECOND_LIFE_MESH.to_scene(SECOND_LIFE_MESH.from_scene(scene), "thing")
    np.testing.assert_allclose(placed_points(again), placed_points(scene), atol=1e-4)
    pelvis = next(joint for joint in again.skeletons[0].joints if joint.name == "mPelvis")
    np.testing.assert_allclose(pelvis.translation, (0.0, 0.0, 1.367), atol=1e-6)
    assert again.warnings == []


@pytest.mark.parametrize("name", ["synthetic/synth_rig_cv.llmesh", "synthetic/synth_rig_overrides.llmesh"])
@pytest.mark.parametrize("rest", ["FILE", "TABLE"])
def test_an_imported_rig_that_is_written_anew_is_shown_in_the_same_place(samples: Path, name: str, rest: str) -> None:
    data = (samples / "secondlife" / name).read_bytes()
    scene = SECOND_LIFE_MESH.to_scene(SECOND_LIFE_MESH.read(data), "thing", {"skeleton_rest": rest})
    scene.warnings.clear()
    asset = written(scene)
    if rest == "FILE":
        np.testing.assert_allclose(shown(asset), shown(oracle.decode(data)), atol=1e-4)
        if "overrides" in name:
            assert (skin_of(asset).pelvis_offset, skin_of(asset).lock_scale) == (pytest.approx(0.05), True)
    np.testing.assert_allclose(shown(asset), placed_points(scene), atol=1e-4)


def loosely_bound(asset: Asset) -> Asset:
    """Return an asset bound to joints up to 5 cm from the avatar's and, in two cases, turned by 8 degrees."""
    asset = copy.deepcopy(asset)
    rng = np.random.default_rng(8)
    skin = asset.blocks["skin"]
    for number, rows in enumerate(skin["inverse_bind_matrix"]):
        joint = np.linalg.inv(np.array(rows).reshape(4, 4))
        if skin["joint_names"][number] in ("mChest", "L_HAND"):
            joint[:3, :3] = joint[:3, :3] @ avatar_rest.about(1, 8)
        joint[3, :3] += rng.uniform(-0.03, 0.03, 3) * (number % 3 == 0)
        skin["inverse_bind_matrix"][number] = np.linalg.inv(joint).reshape(-1).tolist()
    return asset


@pytest.mark.parametrize("space", ["plain", *sorted(spaces())])
def test_a_rig_without_joint_positions_stays_without_and_poses_alike(space: str) -> None:
    """The avatar keeps its own joints, wherever the file binds the mesh: so the binding decides what a pose does."""
    given = loosely_bound(SECOND_LIFE_MESH.from_scene(rigged(mesh=joint_cloud(skeletons.avatar_skeleton()))))
    given = through_another_space(given, spaces().get(space, np.identity(4)))
    before = oracle.decode(SECOND_LIFE_MESH.write(given))
    scene = SECOND_LIFE_MESH.to_scene(given, "thing")
    scene.warnings.clear()
    after = written(scene)
    assert skin_of(after).overrides is None
    assert not any("joint positions" in text for text in scene.warnings)
    for seed in (1, 2):
        worlds = avatar_rest.posed_worlds(seed)
        assert np.abs(shown(before, worlds) - shown(before)).max() > 0.1
        np.testing.assert_allclose(shown(after, worlds), shown(before, worlds), atol=2e-4)


def test_joint_positions_of_a_file_are_kept_until_their_joint_is_moved() -> None:
    """Also those of joints without weights, and where the file binds the mesh elsewhere than it moves the joint."""
    skeleton = moved_joint(skeletons.avatar_skeleton(), "mChest", (0.0, 0.02, 0.05))
    given = SECOND_LIFE_MESH.from_scene(rigged(skeleton, joint_cloud(skeleton, ("mTorso", "mChest", "mHead"))))
    skin = given.blocks["skin"]
    skin["alt_inverse_bind_matrix"][skin["joint_names"].index("mHead")][12:15] = (0.01, 0.0, 0.09)
    spare = np.linalg.inv(avatar_rest.worlds()["mWristLeft"])
    skin["joint_names"].append("mWristLeft")
    skin["inverse_bind_matrix"].append(spare.reshape(-1).tolist())
    skin["alt_inverse_bind_matrix"].append([*spare.reshape(-1).tolist()[:12], 0.0, 0.3, 0.0, 1.0])
    before = skin_of(oracle.decode(SECOND_LIFE_MESH.write(given)))
    assert before.overrides is not None
    wanted = dict(zip(before.joints, before.overrides[:, 3, :3], strict=True))
    scene = SECOND_LIFE_MESH.to_scene(given, "thing")
    for by in (0.0, 0.04):
        scene.skeletons[0] = moved_joint(scene.skeletons[0], "mTorso", (0.0, 0.0, by))
        after = skin_of(written(scene))
        assert after.overrides is not None and set(after.joints) == set(wanted)
        for name, override in zip(after.joints, after.overrides[:, 3, :3], strict=True):
            expected_place = wanted[name] + (0.0, 0.0, by if name == "mTorso" else 0.0)
            np.testing.assert_allclose(override, expected_place, atol=1e-6, err_msg=name)


def test_a_mirrored_binding_goes_into_the_points_and_is_told(samples: Path) -> None:
    plain = rigged_sample(samples)
    asset = copy.deepcopy(plain)
    mirror = np.diag((-1.0, 1.0, 1.0, 1.0))
    skin = asset.blocks["skin"]
    skin["bind_shape_matrix"] = (mirror @ np.array(skin["bind_shape_matrix"]).reshape(4, 4)).reshape(-1).tolist()
    scene = SECOND_LIFE_MESH.to_scene(asset, "thing")
    assert any("mirrors or shears" in text for text in scene.warnings)
    straight = placed_points(SECOND_LIFE_MESH.to_scene(plain, "thing"))
    np.testing.assert_allclose(placed_points(scene), straight * (-1, 1, 1), atol=1e-5)
    assert min(scene.nodes[0].scale) > 0
    scene.as_imported = True
    np.testing.assert_allclose(shown(written(scene)), placed_points(scene), atol=1e-4)


def test_unknown_joints_hang_on_the_pelvis_and_are_told(samples: Path) -> None:
    asset = rigged_sample(samples)
    asset.blocks["skin"]["joint_names"][4] = "Tail_extra"
    scene = SECOND_LIFE_MESH.to_scene(asset, "thing")
    joint = scene.skeletons[0].joints[-1]
    assert joint.name == "Tail_extra"
    assert scene.skeletons[0].joints[joint.parent].name == "mPelvis"
    assert any("'Tail_extra'" in text for text in scene.warnings)
    scene.as_imported = True
    assert skin_of(written(scene)).joints == asset.blocks["skin"]["joint_names"]


@pytest.mark.parametrize("broken", ["count", "bind shape", "all joints"])
def test_a_useless_binding_leaves_the_mesh_and_is_told(samples: Path, broken: str) -> None:
    asset = rigged_sample(samples)
    skin = asset.blocks["skin"]
    if broken == "count":
        skin["inverse_bind_matrix"].pop()
    elif broken == "bind shape":
        skin["bind_shape_matrix"][3] = float("nan")
    else:
        skin["inverse_bind_matrix"] = [[0.0] * 16] * 5
    scene = SECOND_LIFE_MESH.to_scene(asset, "thing")
    (model,) = models_of(scene)
    assert model.skeleton is None
    assert model.mesh.joint_weights is None
    assert any("rig is left out" in text for text in scene.warnings)


def test_a_joint_that_cannot_be_used_is_left_out(samples: Path) -> None:
    asset = rigged_sample(samples)
    asset.blocks["skin"]["inverse_bind_matrix"][3] = [0.0] * 16
    scene = SECOND_LIFE_MESH.to_scene(asset, "thing")
    mesh = scene.nodes[0].mesh
    assert mesh is not None and mesh.joint_weights is not None and mesh.joint_indices is not None
    names = [joint.name for joint in scene.skeletons[0].joints]
    assert not mesh.joint_weights[mesh.joint_indices == names.index("BELLY")].any()
    np.testing.assert_allclose(mesh.joint_weights.sum(axis=1)[mesh.joint_weights.any(axis=1)], 1, atol=1e-4)
    assert any("'BELLY'" in text for text in scene.warnings)


@pytest.mark.parametrize("name", ["synthetic/synth_rig_cv.llmesh", "benthic_rigged22.mesh"])
def test_an_import_that_hangs_on_another_bone_gets_a_binding_anew(samples: Path, name: str) -> None:
    """The second one is half a metre away from the avatar in its file, and at the avatar in the scene."""
    scene = SECOND_LIFE_MESH.to_scene(rigged_sample(samples, name), "thing")
    scene.as_imported = True
    mesh = scene.nodes[0].mesh
    assert mesh is not None and mesh.joint_indices is not None
    names = [joint.name for joint in scene.skeletons[0].joints]
    mesh.joint_indices[mesh.joint_indices == names.index("mChest")] = names.index("mSpine4")
    asset = written(scene)
    assert "mSpine4" in skin_of(asset).joints
    assert any("binding was computed again" in text for text in scene.warnings)
    skin = skin_of(asset)
    assert skin.overrides is None, "its file moves no joints"
    at_rest = dict(zip(skin.joints, np.linalg.inv(skin.inverse_bind), strict=True))
    np.testing.assert_allclose(shown(asset, at_rest), placed_points(scene), atol=1e-4)
