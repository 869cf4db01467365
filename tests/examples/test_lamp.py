"""The bundled rigged example: made by its script, right for the engine, with one of everything a mesh can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_scripts import EXAMPLES, script
from meshferry.io_formats import api
from meshferry.io_formats.core.scene import Mesh, Scene
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

LAMP = EXAMPLES / "lamp.mesh"
NOD = EXAMPLES / "lamp_nod.anim"


@pytest.fixture(scope="module")
def scene() -> Scene:
    return api.read_scene(LAMP)


@pytest.fixture(scope="module")
def mesh(scene: Scene) -> Mesh:
    found = scene.nodes[0].mesh
    assert found is not None
    return found


def test_the_files_are_what_the_script_makes(tmp_path: Path) -> None:
    script("make_lamp").main(tmp_path)
    for kept in (LAMP, NOD):
        new, old = tmp_path / kept.name, kept
        assert new.stat().st_size == old.stat().st_size
        one, other = api.read_scene(new), api.read_scene(old)
        for a, b in zip(one.nodes, other.nodes, strict=True):
            assert a.mesh is not None and b.mesh is not None
            np.testing.assert_array_equal(a.mesh.corner_point, b.mesh.corner_point)
            np.testing.assert_allclose(a.mesh.points, b.mesh.points, atol=1e-4)
        assert [joint.name for joint in one.skeletons[0].joints] == [joint.name for joint in other.skeletons[0].joints]
        for clip, kept_clip in zip(one.clips, other.clips, strict=True):
            for track, kept_track in zip(clip.transforms, kept_clip.transforms, strict=True):
                np.testing.assert_allclose(track.rotation, kept_track.rotation, atol=1e-4)


def test_the_engine_has_nothing_against_it() -> None:
    for path, known in ((LAMP, UNIGINE_MESH), (NOD, UNIGINE_ANIMATION)):
        loaded = api.load(path)
        assert loaded.format is known
        assert known.check(loaded.document) == []
        assert loaded.document.warnings == []
        assert known.write(loaded.document) == loaded.data


def test_it_holds_one_of_everything(scene: Scene, mesh: Mesh) -> None:
    assert LAMP.stat().st_size < 100_000
    assert mesh.materials == ["base", "neck", "shade", "bulb"]
    assert [surface.uvs for surface in mesh.surfaces] == [(True, False), (True, False), (True, True), (True, False)]
    assert [surface.has_colors for surface in mesh.surfaces] == [False, False, True, False]
    assert [list(surface.shape_keys or ()) for surface in mesh.surfaces] == [[], [], ["wide"], []]
    assert len(scene.skeletons[0].joints) == 7
    assert mesh.joint_weights is not None and (mesh.joint_weights > 0).sum(axis=1).max() == 2


def test_faces_look_out_and_agree_with_their_normals(mesh: Mesh) -> None:
    triangles = mesh.points[mesh.corner_point].reshape(-1, 3, 3).astype(np.float64)
    faces = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    faces /= np.linalg.norm(faces, axis=1)[:, None]
    assert mesh.normal is not None
    corners = mesh.normal.at_corners(mesh.corner_point).reshape(-1, 3, 3)
    assert np.einsum("tcj,tj->tc", corners, faces).min() > 0.7
    # A closed part that looks out has a positive volume: a sixth of the sum of its spat products.
    for surface in (0, 2, 3):
        part = triangles[mesh.material_index == surface]
        assert np.einsum("ij,ij->i", part[:, 0], np.cross(part[:, 1], part[:, 2])).sum() > 0


def test_joints_lie_inside_what_they_move(scene: Scene, mesh: Mesh) -> None:
    assert mesh.joint_indices is not None and mesh.joint_weights is not None
    np.testing.assert_allclose(mesh.joint_weights.sum(axis=1), 1, atol=1e-4)
    place, turn = np.zeros(3), np.array([1.0, 0, 0, 0])
    for number, joint in enumerate(scene.skeletons[0].joints):
        place = place + turned(turn, np.array(joint.translation))
        turn = multiplied(turn, np.array(joint.rotation))
        moved = mesh.points[((mesh.joint_indices == number) & (mesh.joint_weights > 0.2)).any(axis=1)]
        assert (moved.min(axis=0) - 1e-4 <= place).all() and (place <= moved.max(axis=0) + 1e-4).all(), joint.name


def test_the_animation_comes_back_to_its_beginning() -> None:
    animated = api.read_scene(NOD)
    clip = animated.clips[0]
    assert (clip.name, clip.frame_count, len(clip.transforms)) == ("lamp_nod", 60, 7)
    for track in clip.transforms:
        np.testing.assert_allclose(track.rotation[0], track.rotation[-1], atol=1e-4)
    assert max(np.ptp(track.rotation, axis=0).max() for track in clip.transforms) > 0.1


def turned(rotation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    w, axis = rotation[0], rotation[1:]
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


def multiplied(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    w, v, a, b = one[0], one[1:], other[0], other[1:]
    return np.array([w * a - v @ b, *(w * b + a * v + np.cross(v, b))])
