"""The bundled garment: made by its script, fit to upload, sitting on the avatar's joints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from example_scripts import EXAMPLES, script
from meshferry.io_formats import api
from meshferry.io_formats.core.scene import Mesh, Role, Scene
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.models.models import Model, models_of

TUNIC = EXAMPLES / "tunic.llmesh"


@pytest.fixture(scope="module")
def scene() -> Scene:
    return api.read_scene(TUNIC)


@pytest.fixture(scope="module")
def model(scene: Scene) -> Model:
    (found,) = models_of(scene)
    return found


def in_metres(mesh: Mesh, model: Model) -> np.ndarray:
    node = model.finest
    assert node.rotation == (1.0, 0.0, 0.0, 0.0)
    return np.asarray(mesh.points * np.float32(node.scale) + np.float32(node.translation))


def test_the_file_is_what_the_script_makes(tmp_path: Path, scene: Scene) -> None:
    script("make_tunic").main(tmp_path)
    new = api.read_scene(tmp_path / TUNIC.name)
    for one, other in zip(new.nodes, scene.nodes, strict=True):
        assert one.mesh is not None and other.mesh is not None
        np.testing.assert_array_equal(one.mesh.corner_point, other.mesh.corner_point)
        np.testing.assert_allclose(one.mesh.points, other.mesh.points, atol=1e-4)


def test_the_sleeves_begin_inside_of_the_body() -> None:
    made = script("make_tunic")
    height, width, depth, forward = np.array(made.BODY).T
    (_mesh, points), sides = made.sleeve(0, 1), made.SIDES[0]
    x, y, z = points[:sides].T
    across, along = (np.interp(z, height, values) for values in (width, depth))
    assert (((x - np.interp(z, height, forward)) / along) ** 2 + (y / across) ** 2).max() < 1.0


def test_the_uploader_has_nothing_against_it() -> None:
    loaded = api.load(TUNIC)
    assert loaded.format is SECOND_LIFE_MESH
    assert not [str(finding) for finding in SECOND_LIFE_MESH.check(loaded.document)]
    assert not loaded.document.warnings


def test_it_has_one_of_everything(model: Model) -> None:
    counts = [level.mesh.triangle_count for level in model.levels if level is not None and level.mesh is not None]
    assert len(counts) == 4 and counts == sorted(counts, reverse=True) and counts[0] > 20 * counts[3]
    assert len(model.hulls) == 3 and model.base_hull is not None
    assert all(hull.role is Role.HULL for hull in model.hulls)
    assert model.mesh.materials == ["tunic_face_1", "tunic_face_2"], "assets do not hold the names of materials"
    weights = model.mesh.joint_weights
    assert weights is not None and np.allclose(weights.sum(axis=1), 1, atol=1e-4)
    assert model.finest.skin is not None and "BELLY" in model.finest.skin.joint_names


def test_each_joint_moves_what_is_near_it(model: Model) -> None:
    """In Blender's space the avatar faces -Y, so that its left is +X."""
    assert model.skeleton is not None and model.mesh.joint_indices is not None and model.mesh.joint_weights is not None
    points = in_metres(model.mesh, model)
    heads = {"mShoulderLeft": (0.164, 0.036, 1.521), "mElbowRight": (-0.412, 0.036, 1.521), "mChest": (0, 0.015, 1.356)}
    for name, head in heads.items():
        joint = [joint.name for joint in model.skeleton.joints].index(name)
        strong = (model.mesh.joint_weights * (model.mesh.joint_indices == joint)).sum(axis=1) > 0.8
        assert strong.any()
        assert np.linalg.norm(points[strong] - np.array(head), axis=1).max() < 0.35, name


def test_normals_point_out(model: Model) -> None:
    mesh = model.mesh
    assert mesh.normal is not None
    points = in_metres(mesh, model)[mesh.corner_point].reshape(-1, 3, 3)
    faces = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    faces /= np.linalg.norm(faces, axis=1, keepdims=True)
    normals = mesh.normal.at_corners(mesh.corner_point).reshape(-1, 3, 3) / np.float32(model.finest.scale)
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    assert ((normals * faces[:, None]).sum(axis=2) > 0.5).all()
    body = points.mean(axis=1)
    around = np.abs(body[:, 0]) < 0.1
    assert ((faces * (body - (0, 0.005, 0)))[around][:, :2].sum(axis=1) > 0).mean() > 0.99
