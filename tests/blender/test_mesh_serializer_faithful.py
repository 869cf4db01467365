"""MeshSerializer2 files through Blender and back: what nobody touched is stored as it was, what was edited is right.

What files hold is read by ``mesh_serializer_made``: our own reader and writer have no say in it.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

SAMPLES = (
    "3dify__model.bin",
    "nickwelp__NameThisTrack_InsideWall.data",
    "nickwelp__meshes_Road1.data",
    "nickwelp__texasLand_OutsideWall.data",
    "tedmx__SerializedMesh.data",
    "zootyducky__SerializedMesh.data",
)


def imported(data: bytes, name: str = "given", **options: Any) -> Any:
    """Import a file's bytes as the shell does; return what was made."""
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.formats import MESH_SERIALIZER
    from meshferry.io_formats.options import resolve

    scene = MESH_SERIALIZER.to_scene(MESH_SERIALIZER.read(data), name)
    return importer.import_scene(bpy.context, scene, resolve(import_options.IMPORT_OPTIONS, options))


def exported(*things: Any, file_options: dict[str, Any] | None = None, **options: Any) -> Any:
    """Export objects to one file; return what it holds, and what was said."""
    import bpy
    from meshferry.blender_data.exporting import export_options, exporter
    from meshferry.io_formats.formats import MESH_SERIALIZER
    from meshferry.io_formats.options import resolve

    bpy.context.view_layer.update()
    source = exporter.Source("OBJECTS", objects=things)
    values = resolve(export_options.EXPORT_OPTIONS, options)
    scene = exporter.export_scene(bpy.context, source, values, "back", MESH_SERIALIZER.capabilities)
    said = list(scene.warnings)
    (part,) = MESH_SERIALIZER.files_of(scene, file_options)
    part.warnings = []
    data = MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(part, file_options))
    return SimpleNamespace(stored=made.unpack(data), said=said + part.warnings, data=data)


def has_exact_normals() -> bool:
    from meshferry.blender_data import compat

    return compat.HAS_FREE_NORMALS


def assert_same(before: made.Stored, after: made.Stored) -> int:
    """See that two files hold the same triangles, stored alike; return how many vertices have other directions.

    Where Blender has no exact normals (before 4.5), its tangent space may change them: few at all, by 3 steps at most;
    those of triangles without area, which have no tangent space, by more.
    """
    np.testing.assert_array_equal(before.bounds, after.bounds)
    np.testing.assert_array_equal(before.proper, after.triangles)
    np.testing.assert_array_equal(before.positions, after.positions)
    assert (before.uvs is None) == (after.uvs is None)
    if before.uvs is not None:
        np.testing.assert_array_equal(before.uv_bounds, after.uv_bounds)
        np.testing.assert_array_equal(before.uvs, after.uvs)
    assert (before.normals is None, before.tangents is None) == (after.normals is None, after.tangents is None)
    steps = np.abs(before.normals.astype(int) - after.normals.astype(int)).max(axis=1)
    differ = steps > 0
    corners = before.points[before.triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    has_area = np.ones(len(steps), bool)
    has_area[before.triangles[areas < 1e-9]] = False
    assert steps[has_area].max(initial=0) <= 3
    if before.tangents is not None:
        np.testing.assert_array_equal(before.tangents[~differ], after.tangents[~differ])
    return int(np.count_nonzero(differ))


# -- unchanged ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_real_file_comes_back(name: str, samples: Path) -> None:
    path = samples / "unity_meshserializer" / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    before = made.unpack(path.read_bytes())
    (thing,) = imported(path.read_bytes(), path.stem).objects
    after = exported(thing)
    differing = assert_same(before, after.stored)
    print(f"{name}: {differing} of {len(before.positions)} vertices have other normals; said: {after.said}")
    assert differing <= (0 if has_exact_normals() else 2)
    if not differing and len(before.proper) == len(before.triangles):
        assert after.data == path.read_bytes()
