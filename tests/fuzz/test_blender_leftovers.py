"""A few imports that fail, of the two thousand that ``blender_leftovers.py`` runs."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from blender_leftovers import Leftovers
from meshfuzz import timbermesh_seeds


@pytest.mark.slow
@pytest.mark.needs_bpy
@pytest.mark.parametrize(
    "kind",
    [
        "timbermesh",
        *(pytest.param(kind, marks=pytest.mark.any_version) for kind in ("unigine", "second_life")),
        pytest.param("second_life_animation", marks=pytest.mark.any_version),
    ],
)
def test_failed_imports_leave_nothing(tmp_path: Path, kind: str) -> None:
    report = Leftovers(tmp_path, 5, (kind,), use_samples=False).run(70)
    assert not report.leftovers, report.leftovers[0]
    assert not report.surprises, report.surprises[0]
    assert report.outcomes["failed, broken off"] > 20


@pytest.mark.needs_bpy
def test_vertices_without_triangles(tmp_path: Path) -> None:
    import bpy

    mesh = timbermesh_seeds.mesh_node("Points", 5)
    mesh = [part for part in mesh if part.number != 8]
    path = tmp_path / "points.timbermesh"
    path.write_bytes(zlib.compress(timbermesh_seeds.model(mesh)))
    for options in ({"normals": "EXACT", "use_weld": False}, {"normals": "EDITABLE", "use_weld": True}):
        assert bpy.ops.import_scene.timbermesh(filepath=str(path), **options) == {"FINISHED"}
        assert len(bpy.context.object.data.vertices) == 5
