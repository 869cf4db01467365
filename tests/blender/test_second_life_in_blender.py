"""What every sample becomes in Blender, against the facts that a decoder of its own wrote down for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

Array = Any

LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
PLACES = 2e-6
"""Tolerance of positions in the facts, and of the rest."""
VALUES = 2e-5


def facts(samples: Path) -> dict[str, Any]:
    path = samples / "secondlife" / "expected.json"
    if not path.is_file():
        pytest.skip(f"no facts at {path}")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def imported(path: Path, **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.api import read_scene

    scene = read_scene(str(path), {})
    made = importer.import_scene(
        import_options.ImportRequest(bpy.context, scene, import_options.ImportOptions.of(options), str(path))
    )
    bpy.context.view_layer.update()
    return made


def column(owner: Any, name: str, width: int, dtype: Any = np.float32) -> Array:
    found = np.empty(len(owner) * width, dtype)
    owner.foreach_get(name, found)
    return found.reshape(-1, width) if width > 1 else found


def as_in_file(points: Array, *, rigged: bool) -> Array:
    """Undo the turn of rigged meshes to Blender's front."""
    return np.column_stack((-points[:, 1], points[:, 0], points[:, 2])) if rigged else points


def check_faces(obj: Any, expected: list[dict[str, Any]], joints: list[str]) -> None:
    """Compare the material slots of an object with the faces of a level; vertices lie face by face in a row."""
    mesh = obj.data
    assert len(obj.material_slots) == len(expected)
    slot = column(mesh.polygons, "material_index", 1, np.int32)
    corners = column(mesh.loops, "vertex_index", 1, np.int32).reshape(-1, 3)
    points = as_in_file(column(mesh.vertices, "co", 3), rigged=bool(joints))
    start = 0
    for number, face in enumerate(expected):
        own = corners[slot == number]
        if face.get("no_geometry"):
            assert not len(own)
            continue
        assert len(own) == face["triangles"]
        assert (own[0] - start).tolist() == face["first_triangle"]
        assert (own[-1] - start).tolist() == face["last_triangle"]
        part = points[start : start + face["vertices"]]
        np.testing.assert_allclose(part.min(axis=0), face["aabb_min"], rtol=PLACES, atol=PLACES)
        np.testing.assert_allclose(part.max(axis=0), face["aabb_max"], rtol=PLACES, atol=PLACES)
        np.testing.assert_allclose(part.mean(axis=0), face["centroid"], atol=VALUES)
        if "uv0" in face:
            at_corner = column(mesh.uv_layers[0].uv, "vector", 2)[(slot == number).repeat(3)]
            uv = np.empty((face["vertices"], 2), np.float32)
            uv[own.reshape(-1) - start] = at_corner
            tolerance = VALUES * (1 + np.abs(face["uv_max"]).max())
            np.testing.assert_allclose(uv[0], face["uv0"], atol=tolerance)
            np.testing.assert_allclose(uv.min(axis=0), face["uv_min"], atol=tolerance)
            np.testing.assert_allclose(uv.max(axis=0), face["uv_max"], atol=tolerance)
        if "first_vertex_weights" in face:
            groups = {obj.vertex_groups[entry.group].name: entry.weight for entry in mesh.vertices[start].groups}
            wanted = {joints[joint]: weight / 65535 for joint, weight in face["first_vertex_weights"] if weight}
            assert groups == pytest.approx(wanted, abs=VALUES)
        start += face["vertices"]
    assert start == len(points)


def check_model(objects: list[Any], expected: dict[str, Any]) -> None:
    """Compare the objects of a model with the facts of its asset."""
    rigged = "skin" in expected
    shown = {LEVELS[obj.meshferry.lod]: obj for obj in objects if obj.meshferry.role == "RENDER"}
    finest = shown["high_lod"]
    if finest.meshferry.physics_object is not None:
        shown["physics_mesh"] = finest.meshferry.physics_object
    assert set(shown) == set(expected["lods"])
    for key, obj in shown.items():
        check_faces(obj, expected["lods"][key], expected["skin"]["joint_names"] if rigged else [])
    convex = expected.get("physics_convex") or {"hulls": [], "base_hull_points": 0}
    hulls = [obj for obj in objects if obj.meshferry.role == "HULL"]
    assert [len(hull.data.vertices) for hull in hulls] == convex["hulls"]
    base = [obj for obj in objects if obj.meshferry.role == "BASE_HULL"]
    assert [len(hull.data.vertices) for hull in base] == [convex["base_hull_points"]] * bool(convex["base_hull_points"])
    matrices = [np.array(obj.matrix_world) for obj in objects]
    assert all(np.array_equal(matrix, np.array(finest.matrix_world)) for matrix in matrices)
    if rigged:
        assert [joint.name for joint in finest.meshferry.skin.joints] == expected["skin"]["joint_names"]
        assert all(obj.parent is not None for obj in objects)


def test_assets(samples: Path) -> None:
    import bpy

    checked = 0
    for name, expected in facts(samples).items():
        if "lods" not in expected:
            continue
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        made = imported(samples / "secondlife" / name, use_weld=False)
        check_model([obj for obj in made.objects if obj.type == "MESH"], expected)
        stored = expected["lods"]["high_lod"][0].get("normalized_scale")
        if stored and "skin" not in expected:
            np.testing.assert_allclose(made.objects[0].scale, stored, rtol=1e-6)
        checked += 1
    assert checked == 26


def test_a_bundle(samples: Path) -> None:
    """Its crate is 2 x 1 x 0.5 m large and stands at (0, 0, 1)."""
    name = "synthetic/synth_scene.slm"
    expected = facts(samples)[name]
    made = imported(samples / "secondlife" / name, use_weld=False)
    finest = [obj for obj in made.objects if obj.meshferry.role == "RENDER" and not obj.meshferry.lod_of]
    assert [obj.name for obj in finest] == [one["label"] for one in expected["instances"]]
    for obj, one in zip(finest, expected["instances"], strict=True):
        parts = [part for part in made.objects if obj in (part, part.meshferry.lod_of, part.meshferry.shape_of)]
        check_model(parts, expected["meshes"][one["mesh_id"]])
        np.testing.assert_allclose(np.array(obj.matrix_world).T.reshape(-1), one["transform"], atol=1e-6)
        assert [slot.name for slot in obj.material_slots] == one["materials"]
    corners = np.array([finest[0].matrix_world @ vertex.co for vertex in finest[0].data.vertices])
    np.testing.assert_allclose(np.ptp(corners, axis=0), (2.0, 1.0, 0.5), atol=1e-5)
    np.testing.assert_allclose((corners.min(axis=0) + corners.max(axis=0)) / 2, (0.0, 0.0, 1.0), atol=1e-5)
