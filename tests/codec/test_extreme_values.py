"""Scenes whose values overflow: the writers of all formats report or refuse them, and NumPy is silent."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats import api
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.scene import Joint, Layer, Mesh, Node, Role, Scene, Skeleton
from meshferry.io_formats.passes.flatten import fit
from meshferry.io_formats.registry import FORMATS
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH

LIMIT = np.finfo(np.float32).max
WRITTEN = [known for known in FORMATS if known.is_written and known.capabilities.meshes]


@pytest.mark.parametrize("target", WRITTEN, ids=lambda known: known.name)
@pytest.mark.parametrize("scale", [1.0, 1e30])
@pytest.mark.parametrize("weight", [LIMIT, np.nan])
def test_numpy_prints_no_warnings(target: Any, scale: float, weight: float) -> None:
    """Its warnings would stand on the console without the name of the file."""
    points = np.array([(LIMIT, LIMIT, 0), (-LIMIT, 1e-38, 1), (0, LIMIT, 2), (1, 2, 3)], np.float32)
    corners = np.array([0, 1, 2, 0, 2, 3, 1, 2, 3], np.int32)
    mesh = Mesh(points, corners, np.zeros(3, np.int32), materials=["Wood"], normal=Layer("normal", points.copy()))
    mesh.uvs = [Layer("UV", points[:, :2].copy())]
    mesh.joint_indices = np.zeros((4, 2), np.int32)
    mesh.joint_weights = np.full((4, 2), weight, np.float32)
    nodes = [Node("root", scale=(scale, 1.0, 1.0)), Node("model", 0, mesh=mesh)]
    skinned = Node("skinned", mesh=mesh, skeleton=0)
    rig = Skeleton("Rig", [Joint("mPelvis", -1, (float(LIMIT), 0.0, 0.0))])
    for scene in (Scene("model", nodes), Scene("skinned", [skinned], [rig])):
        with warnings.catch_warnings(), contextlib.suppress(ExportError):
            warnings.simplefilter("error")
            fit(scene, target.capabilities)
            for part in api.files_of(scene, target):
                part.as_imported = True  # errors become warnings
                with contextlib.suppress(ExportError):
                    api.check_part(part, target)
                api.encode_part(part, target)


@pytest.mark.parametrize("far", [np.inf, np.nan])
def test_a_hull_with_a_loose_point_that_is_not_finite(far: float) -> None:
    """The rule about NaN and infinite coordinates skips points without triangles."""
    corners = np.array([0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2], np.int32)
    points = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], np.float32)
    mesh = Mesh(points, corners, np.zeros(4, np.int32), materials=["Wood"])
    hull = Mesh(np.vstack((points, np.full((1, 3), far, np.float32))), corners, np.zeros(4, np.int32))
    nodes = [Node("model", mesh=mesh), Node("hull", mesh=hull, role=Role.HULL, shape_of=0)]
    assert not any("hull is flat" in str(finding) for finding in SECOND_LIFE_MESH.check_scene(Scene("model", nodes)))
