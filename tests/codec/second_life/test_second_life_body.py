"""The classic avatar's meshes: files written from the format page alone, what they mean, and damaged ones."""

from __future__ import annotations

import struct
from typing import Any

import classic_meshes
import numpy as np
import pytest
from classic_meshes import name64, written
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.second_life.avatar import classic_body, sliders

POINTS = [(0.1, 0.2, 1.0), (0.3, 0.2, 1.5), (-0.5, 0.25, 1.25), (0.5, 0.5, 0.5)]
FACES = [(0, 1, 2), (2, 1, 3)]
WEIGHTED: dict[str, Any] = {"weights": [1.0, 1.25, 2.0, 1.5], "joints": ["mNeck", "mHead"]}


@pytest.mark.parametrize("detail", [False, True])
@pytest.mark.parametrize("weighted", [{}, WEIGHTED], ids=["rigid", "weighted"])
@pytest.mark.parametrize("morphs", [{}, {"Fat_Head": {3: (1.0, 2.0, 3.0), 1: (0.5, 0.0, 0.0)}, "Square_Jaw": {}}])
def test_everything_is_read(detail: bool, weighted: dict[str, Any], morphs: Any) -> None:
    data = written(POINTS, FACES, **weighted, morphs=morphs, remaps=[(0, 3)], detail=detail)
    found = classic_body.read_linden_mesh(data, "head.llm")
    np.testing.assert_allclose(found.positions, POINTS)
    np.testing.assert_allclose(found.uvs, np.array(POINTS)[:, :2])
    np.testing.assert_allclose(np.linalg.norm(found.normals, axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(found.triangles, FACES)
    assert list(found.morphs) == list(morphs)
    if morphs:
        assert found.morphs["Fat_Head"].vertices.tolist() == [3, 1]
        np.testing.assert_allclose(found.morphs["Fat_Head"].positions, [(1, 2, 3), (0.5, 0, 0)])
    if weighted:
        assert found.joints == ("mChest", "mNeck", "mHead")
        of_vertex = [
            {found.joints[joint]: weight for joint, weight in zip(*row, strict=True) if weight}
            for row in zip(found.joint_indices.tolist(), found.joint_weights.tolist(), strict=True)
        ]
        assert of_vertex == [{"mNeck": 1}, {"mNeck": 0.75, "mHead": 0.25}, {"mHead": 1}, {"mNeck": 0.5, "mHead": 0.5}]


@pytest.mark.parametrize("file", classic_meshes.LISTS)
def test_weights_count_the_joints_of_the_page(file: str) -> None:
    joints = classic_meshes.JOINTS[file]
    found = classic_body.read_linden_mesh(written(POINTS, FACES, weights=[1.0] * 4, joints=joints[::-1]), file)
    assert [joint or "-" for joint in found.joints] == classic_meshes.LISTS[file].split()


GOOD = written(POINTS, FACES, **WEIGHTED, morphs={"Fat_Head": {3: (1.0, 2.0, 3.0)}})
LAST_FACE = struct.pack("<3h", 2, 1, 3)
FACES_AT = GOOD.index(struct.pack("<H3h", 2, 0, 1, 2))
MORPH_AT = GOOD.index(name64("Fat_Head"))
DAMAGED = {
    "other file": (b"PNG" + GOOD[3:], "does not begin with"),
    "vertices": (GOOD[:63] + b"\xff\xff" + GOOD[65:], "bytes expected for positions"),
    "faces": (GOOD[:FACES_AT] + b"\xff\xff" + GOOD[FACES_AT + 2 :], "bytes expected for faces"),
    "face beyond": (GOOD.replace(LAST_FACE, struct.pack("<3h", 2, 1, 4)), "A face uses vertex 4 of 4"),
    "face below": (GOOD.replace(LAST_FACE, struct.pack("<3h", 2, 1, -1)), "A face uses vertex -1 of 4"),
    "joint": (GOOD.replace(b"mHead", b"mHeat"), "no joint 'mHeat'"),
    "joint without end": (GOOD.replace(name64("mHead"), b"m" * 64), "has no end within 64 bytes"),
    "weight": (GOOD.replace(struct.pack("<f", 1.5), struct.pack("<f", 3.5)), "Vertex 3 has the weight 3.5"),
    "weight below": (GOOD.replace(struct.pack("<f", 1.5), struct.pack("<f", -1.5)), "Vertex 3 has the weight -1.5"),
    "nan": (GOOD.replace(struct.pack("<f", 0.3), struct.pack("<f", float("nan"))), "NaN or infinite"),
    "morph without end": (GOOD.replace(name64("Fat_Head"), b"F" * 64), "has no end within 64 bytes"),
    "morph count": (
        GOOD[: MORPH_AT + 64] + struct.pack("<i", 2**31 - 1) + GOOD[MORPH_AT + 68 :],
        "morph target 'Fat_Head': The file is cut off or damaged",
    ),
    "negative count": (GOOD[: MORPH_AT + 64] + struct.pack("<i", -1) + GOOD[MORPH_AT + 68 :], "negative number"),
    "morph beyond": (
        GOOD[: MORPH_AT + 68] + struct.pack("<I", 4) + GOOD[MORPH_AT + 72 :],
        "morph target 'Fat_Head': It uses vertex 4 of 4",
    ),
    "no end of morphs": (GOOD.replace(name64("End Morphs"), b""), "cut off or damaged"),
    "more": (GOOD + b"\0", "1 bytes follow"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files_get_one_error(damage: str) -> None:
    data, cause = DAMAGED[damage]
    assert data != GOOD
    with pytest.raises(FormatError) as caught:
        classic_body.read_linden_mesh(data, "head.llm")
    assert str(caught.value).startswith("head.llm: ") and cause in str(caught.value), str(caught.value)


def test_files_that_end_early_get_an_error() -> None:
    for size in range(len(GOOD)):
        with pytest.raises(FormatError, match=r"^head\.llm: "):
            classic_body.read_linden_mesh(GOOD[:size], "head.llm")


def test_morph_targets_that_the_viewer_makes_are_not_missed() -> None:
    """No folder of a viewer has the eight morph targets of its physics; one that sliders move is missed."""
    made = {morph.name for morph in sliders.morphs() if "_Physics_" in morph.name}
    assert len(made) == 8
    files = classic_meshes.folder_of_viewer()
    for name in made:
        files = {file: data.replace(name64(name), name64("Another")) for file, data in files.items()}
    lacking = files["avatar_head.llm"].replace(name64("Fat_Head"), name64("Other"))
    for changed, said in ((files, []), ({**files, "avatar_head.llm": lacking}, ["'Fat_Head'"])):
        warnings = [str(message) for message in classic_body.scene_of(changed).warnings]
        assert len(warnings) == len(said) and all(text in "".join(warnings) for text in said)
        assert not any(name in text for text in warnings for name in made)


def test_the_scene_has_all_parts_bound_to_the_avatar() -> None:
    scene = classic_body.scene_of(classic_meshes.folder_of_viewer())
    names = {joint.name: number for number, joint in enumerate(scene.skeletons[0].joints)}
    meshes = {node.name: node.mesh for node in scene.nodes}
    assert list(meshes) == ["Head", "Upper Body", "Lower Body", "Eyelashes", "Left Eye", "Right Eye"]
    assert [str(message) for message in scene.warnings] == []
    for part, mesh in meshes.items():
        assert mesh is not None and mesh.joint_indices is not None and mesh.joint_weights is not None
        np.testing.assert_allclose(mesh.joint_weights.sum(axis=1), 1.0)
        if part.endswith("Eye"):
            side = part.split()[0]
            assert (mesh.joint_indices == names[f"mEye{side}"]).all()
            assert np.sign(mesh.points[:, 0].mean()) == (1 if side == "Left" else -1)
            assert mesh.points[:, 2].min() > 1.6
    table = classic_meshes.morph_names("headMesh")
    head = meshes["Head"]
    assert head is not None and [key.name for key in head.shape_keys] == table
    moved = head.shape_keys[5].points - head.points
    np.testing.assert_allclose(moved[:6], [(0.002, -0.006, -0.001 * vertex) for vertex in range(6)], atol=1e-6)
    assert not moved[6:].any()


def test_values_of_shape_keys() -> None:
    default = classic_body.morph_weights({})
    assert default["Head"]["Express_Closed_Mouth"] == 1.0
    fat = classic_body.morph_weights({637: sliders.parameters()[637].maximum})
    assert fat["Upper Body"]["Fat_Torso"] == sliders.parameters()[634].maximum
    assert fat["Lower Body"]["Fat_Legs"] == sliders.parameters()[635].maximum
    assert default["Upper Body"]["Fat_Torso"] == 0.0


def test_a_body_without_weights_is_refused() -> None:
    files = classic_meshes.folder_of_viewer()
    with pytest.raises(FormatError, match=r"avatar_head\.llm: It has no weights"):
        classic_body.scene_of({**files, "avatar_head.llm": files["avatar_eye.llm"]})
