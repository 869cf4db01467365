"""Rigs of Collada documents other than avatars, and skeletons without a mesh, judged by the formula of Collada."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.scene import Node as SceneNode
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.geometry.transforms import matrix_of_transform
from meshferry.io_formats.second_life.avatar import joints
from meshferry.io_formats.second_life.avatar.joints import world_matrices
from meshferry.io_formats.second_life.collada.document import Collada, Geometry, Group, Instance, Node, Skin
from meshferry.io_formats.second_life.collada.format import SECOND_LIFE_COLLADA
from meshferry.io_formats.second_life.collada.mapping import facts
from meshferry.io_formats.second_life.collada.rigs import asset_matrix

NAMES = ("Root", "Arm", "Hand")
TURNED = np.array(((1, 0, 0, 0), (0, 0, -1, 0), (0, 1, 0, 0), (0, 0, 0, 1)), np.float64)
SHEARED = np.array(((1, 0.4, 0, 1), (0, 1, 0, 0), (0, 0, 1.5, 0), (0, 0, 0, 1)), np.float64)
ABOVE = {
    "plain": np.identity(4),
    "moved": np.array(((1, 0, 0, 3), (0, 1, 0, -2), (0, 0, 1, 1), (0, 0, 0, 1)), np.float64),
    "scaled": np.diag((0.01, 0.01, 0.01, 1.0)),
    "turned": TURNED,
    "mirrored": np.diag((-1.0, 1.0, 1.0, 1.0)),
    "sheared": SHEARED,
    "all": SHEARED @ np.diag((0.01, 0.01, 0.01, 1.0)) @ TURNED,
}


def at(*place: float) -> np.ndarray:
    matrix = np.identity(4)
    matrix[:3, 3] = place
    return matrix


def turned_by(angle: float) -> np.ndarray:
    matrix = np.identity(4)
    matrix[:2, :2] = ((np.cos(angle), -np.sin(angle)), (np.sin(angle), np.cos(angle)))
    return matrix


def add_rig(
    document: Collada,
    above: np.ndarray,
    *,
    pose: float = 0.0,
    prefix: str = "",
    bind: np.ndarray | None = None,
    seed: int = 0,
) -> None:
    """Add a node that holds three joints, and a mesh bound to them whose file space is another one than theirs."""
    random = np.random.default_rng(seed)
    nodes, first = document.nodes, len(document.nodes)
    nodes.append(Node(f"{prefix}Rig", -1, above))
    rest = above.copy()
    binds = []
    for number, name in enumerate(NAMES):
        local = at(*random.normal(0, 1, 3)) @ TURNED
        rest = rest @ local
        binds.append((np.identity(4) if bind is None else bind) @ np.linalg.inv(above) @ rest)
        posed = local @ turned_by(pose * (number + 1))
        nodes.append(Node(name, first + number, posed, f"{prefix}{name}", name, is_joint=True, position=local[:3, 3]))
    points = random.normal(0, 1, (12, 3)).astype(np.float32)
    group = Group("triangles", "a", np.arange(12, dtype=np.int32), np.full(4, 3, np.int32))
    document.geometries.append(Geometry("mesh", points, [group]))
    shares = random.random((12, 2)).astype(np.float32) + 0.1
    document.skins.append(
        Skin(
            len(document.geometries) - 1,
            at(0, 0.5, 0) @ TURNED,
            list(NAMES),
            np.linalg.inv(binds),
            np.ones(3, bool),
            np.full(12, 2, np.int32),
            np.stack([np.arange(12) % 3, (np.arange(12) + 1) % 3], axis=1).reshape(-1).astype(np.int32),
            (shares / shares.sum(axis=1)[:, None]).reshape(-1).astype(np.float32),
        )
    )
    number = len(document.skins) - 1
    instance = Instance(number, number, skeletons=[f"{prefix}Root"])
    nodes.append(Node(f"{prefix}Body", -1, at(9, 9, 9), instances=[instance]))


def expected(document: Collada, part: int, tree: int) -> np.ndarray:
    """Return the points of a mesh by the formula of Collada, with the joints below a node, in Blender's space."""
    skin = document.skins[document.nodes[part].instances[0].skin]
    points = np.c_[document.geometries[skin.geometry].positions, np.ones(12)] @ skin.bind_shape.T
    moves = [document.worlds[tree + 1 + number] @ skin.inverse_bind[number] for number in range(3)]
    weights = np.zeros((12, 3))
    weights[np.repeat(np.arange(12), 2), skin.joints] = skin.weights
    return (np.einsum("vj,jab,vb->va", weights, moves, points) @ asset_matrix(document).T)[:, :3]


def shown(node: SceneNode) -> np.ndarray:
    assert node.mesh is not None
    matrix = matrix_of_transform(node.translation, node.rotation, node.scale)
    return node.mesh.points @ matrix[:3, :3].T + matrix[:3, 3]


def heads(scene: Scene, number: int) -> dict[str, np.ndarray]:
    skeleton = scene.skeletons[number]
    worlds = world_matrices(skeleton)
    return {joint.label or joint.name: head for joint, head in zip(skeleton.joints, worlds[:, :3, 3], strict=True)}


def agree(document: Collada, trees: Sequence[int], skeletons: int = 0) -> None:
    """Check points and bones of the meshes, each with the node above its joints, against the formula."""
    scene = SECOND_LIFE_COLLADA.to_scene(document, "file")
    parts = [number for number, node in enumerate(document.nodes) if node.instances]
    assert len(scene.skeletons) == (skeletons or len(set(trees)))
    for node, part, tree in zip(scene.nodes, parts, trees, strict=True):
        wanted = expected(document, part, tree)
        size = np.abs(wanted).max()
        np.testing.assert_allclose(shown(node), wanted, rtol=0, atol=2e-6 * size)
        assert node.skeleton is not None
        found = heads(scene, node.skeleton)
        for number, name in enumerate(NAMES):
            head = (asset_matrix(document) @ document.worlds[tree + 1 + number])[:3, 3]
            np.testing.assert_allclose(found[name], head, rtol=0, atol=1e-6 * max(size, np.abs(head).max()))
        linear = world_matrices(scene.skeletons[node.skeleton])[:, :3, :3]
        np.testing.assert_allclose(np.linalg.det(linear), 1.0, atol=1e-6)


@pytest.mark.parametrize(("axis", "meter"), [("Z_UP", 1.0), ("Y_UP", 0.01)])
@pytest.mark.parametrize("pose", [0.0, 0.4])
@pytest.mark.parametrize("above", ABOVE)
def test_a_rig_is_where_its_nodes_move_it(above: str, pose: float, axis: str, meter: float) -> None:
    for bind in (None, ABOVE[above]):
        document = Collada(up_axis=axis, meter=meter)
        add_rig(document, ABOVE[above], pose=pose, bind=bind)
        agree(document, [0])


def test_each_skeleton_has_an_armature() -> None:
    document = Collada(up_axis="Z_UP")
    add_rig(document, ABOVE["moved"], prefix="a", seed=1)
    add_rig(document, ABOVE["turned"], prefix="b", seed=2)
    agree(document, [0, 5])
    document.nodes[9].instances[0].skeletons = ["aRoot"]  # two meshes of one skeleton
    agree(replace(document), [0, 0], skeletons=2)


@pytest.mark.parametrize("links", [["aRig"], ["aRig", "aHand"], ["aHand"]])
def test_a_link_may_lead_to_any_node_of_a_skeleton(links: list[str]) -> None:
    """It says where the search for the joints starts; Collada does not ask for a joint there."""
    document = Collada(up_axis="Z_UP")
    for prefix, above in (("a", "moved"), ("b", "turned")):
        add_rig(document, ABOVE[above], prefix=prefix, seed=len(document.nodes))
        document.nodes[-5].id = f"{prefix}Rig"
    document.nodes[9].instances[0].skeletons = ["bRig"]
    document.nodes[4].instances[0].skeletons = links
    agree(document, [0, 5])


def test_a_skin_of_joints_in_two_trees_has_one_skeleton() -> None:
    document = Collada(up_axis="Z_UP")
    add_rig(document, ABOVE["moved"])
    document.nodes[3] = replace(document.nodes[3], parent=-1, matrix=document.worlds[3])
    del document.worlds
    agree(document, [0])
    assert len(SECOND_LIFE_COLLADA.to_scene(document, "file").skeletons[0].joints) == 3


def test_joints_of_one_sid_or_none_are_bones() -> None:
    """Sids are unique among the children of a node only. Flat joints have axes of their own."""
    nodes = [Node("", -1, np.identity(4), sid="Hand", is_joint=True)]
    nodes += [Node("", 0, at(0, 0, 1), sid=sid, is_joint=True) for sid in ("Tip", "Tip", "", "")]
    nodes += [Node("mPelvis", -1, np.zeros((4, 4)), is_joint=True), Node("mTorso", 5, at(0, 0, 1), is_joint=True)]
    hand, avatar = SECOND_LIFE_COLLADA.to_scene(Collada(nodes=nodes[:5]), ""), Collada(nodes=nodes[5:])
    avatar.nodes[1].parent = 0
    assert [joint.name for joint in hand.skeletons[0].joints] == ["Hand", "Tip", "Tip.001", "Joint", "Joint.001"]
    found = SECOND_LIFE_COLLADA.to_scene(avatar, "", {"skeleton_joints": "USED"}).skeletons[0].joints
    assert {"mPelvis", "mTorso"} <= {joint.name for joint in found}


def test_meshes_of_one_skin_follow_the_joints_that_each_names() -> None:
    """Copies of a node hold joints and mesh with equal ids; a file without links has its joints beside the mesh."""
    document = Collada(up_axis="Z_UP")
    for number in range(3):
        add_rig(document, at(0, 2 * number, 0), prefix="S")
        document.nodes[5 * number + 4].instances[0].skin = 0
        document.nodes[5 * number + 4].parent = 5 * number
    agree(document, [0, 5, 10])


def test_joints_that_no_skin_lists_are_bones() -> None:
    document = Collada(up_axis="Y_UP")
    add_rig(document, ABOVE["turned"])
    nodes = document.nodes
    control = Node("Foot.Control", 0, at(0, 0.3, 0.1), "c", "Foot_Control", is_joint=True)
    pole = Node("Knee.Pole", 0, at(0, -1, 0.5), "p", "Knee_Pole", is_joint=True)
    tip = Node("Tip", 1, at(0, 0, 2), "t", "Tip", is_joint=True)
    lone = Node("Other", -1, at(5, 0, 0), "o", "Other", is_joint=True)
    nodes += [control, pole, tip, lone]
    scene = SECOND_LIFE_COLLADA.to_scene(document, "file")
    first, second = scene.skeletons
    parent_of = {joint.label or joint.name: joint.parent for joint in first.joints}
    assert set(parent_of) == {*NAMES, "Foot.Control", "Knee.Pole", "Tip"}
    assert first.joints[parent_of["Tip"]].name == "Root" and parent_of["Knee.Pole"] == -1
    assert [joint.name for joint in second.joints] == ["Other"]
    found = heads(scene, 0)
    for number, name in ((5, "Foot.Control"), (6, "Knee.Pole"), (7, "Tip")):
        np.testing.assert_allclose(found[name], (asset_matrix(document) @ document.worlds[number])[:3, 3], atol=1e-6)
    assert {joint.name for joint in first.joints} >= {"Foot_Control", "Knee_Pole"}


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("turn", [np.identity(4), np.diag((-1.0, -1.0, 1.0, 1.0))])
def test_an_armature_alone_is_imported(turn: np.ndarray, flat: bool) -> None:
    """Avastar writes joints beside each other, with translations relative to their real parents."""
    table, document = joints.table(), Collada(up_axis="Z_UP", nodes=[Node("Avatar", -1, turn)])
    chain = [*reversed(joints.ancestors("mCollarLeft")), "mShoulderLeft", "mCollarRight", "mShoulderRight"]
    for name in chain:
        above = 0 if flat or name == "mPelvis" else 1 + chain.index(table[name].parent)
        document.nodes.append(Node(name, above, at(*table[name].position), name, name, is_joint=True))
    scene = SECOND_LIFE_COLLADA.to_scene(document, "file", {"skeleton_joints": "USED"})
    found = heads(scene, 0)
    assert set(found) == set(chain) and facts(document)["bones"] == len(chain) and not scene.nodes
    for name in chain:
        x, y, z = joints.rest_matrices()[name][:3, 3]
        np.testing.assert_allclose(found[name], (y, -x, z), atol=1e-6)


@pytest.mark.parametrize(
    ("word", "sid", "name", "found", "label"),
    [
        ("DEF-arm_L_001", "DEF-arm_L_001", "DEF-arm.L.001", "DEF-arm_L_001", "DEF-arm.L.001"),
        ("Arm", "Arm", "", "Arm", ""),
        ("Arm", "Arm", "Twice", "Arm", ""),
        ("b7", "b7", "mElbowLeft", "mElbowLeft", ""),
        ("hip", "hip", "Bone.001", "mPelvis", ""),
        ("id7", "mChest", "Bone.001", "mChest", ""),
    ],
)
def test_names_of_bones(word: str, sid: str, name: str, found: str, label: str) -> None:
    document = Collada(up_axis="Z_UP")
    add_rig(document, np.identity(4))
    document.skins[0].joint_names[1] = word
    document.nodes[2] = replace(document.nodes[2], sid=sid, name=name, id=word)
    document.nodes.append(Node("Twice", 0, np.identity(4), "x", "y", is_joint=True))
    scene = SECOND_LIFE_COLLADA.to_scene(document, "file")
    (joint,) = [joint for joint in scene.skeletons[0].joints if joint.name == found]
    assert joint.label == label
    codes = {message.code for message in scene.warnings}
    assert ("unknown-joints" in codes) == (found in joints.table())  # Root and Hand, and words that are only sids


def test_the_number_of_skeletons_is_bounded() -> None:
    """Links in a small file can multiply a rig, whose armatures take seconds each hundred."""
    document = Collada(up_axis="Z_UP")
    for number in range(2000):
        document.nodes.append(Node(f"{number}", -1, np.identity(4), f"{number}", f"{number}", is_joint=True))
        document.nodes.append(Node("", number, np.identity(4), instances=[Instance(0, 0, skeletons=[f"{number}"])]))
    add_rig(document, np.identity(4))
    started = time.monotonic()
    with pytest.raises(FormatError, match="more than 256 skeletons"):
        SECOND_LIFE_COLLADA.to_scene(document, "file")
    linked = Collada(up_axis="Z_UP", nodes=[Node("", -1, np.identity(4), "all")])
    linked.nodes += [Node("J", 0, np.identity(4), is_joint=True)] * 2000
    linked.nodes += [Node("", -1, np.identity(4), instances=[Instance(0, 0, skeletons=["all"])])] * 2000
    linked.geometries, linked.skins = document.geometries, document.skins
    with pytest.raises(FormatError, match="linked to more than"):
        SECOND_LIFE_COLLADA.to_scene(linked, "file")
    assert time.monotonic() - started < 10
