"""MeshSerializer2 files through Blender and back: unchanged values are stored exactly, edited values correctly.

What files hold is read by ``mesh_serializer_made``: our own reader and writer have no say in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest
from mesh_serializer_ways import corners_of, exported, has_exact_normals, imported

pytestmark = pytest.mark.needs_bpy

SAMPLES = (
    "3dify__model.bin",
    "nickwelp__NameThisTrack_InsideWall.data",
    "nickwelp__meshes_Road1.data",
    "nickwelp__texasLand_OutsideWall.data",
    "tedmx__SerializedMesh.data",
    "zootyducky__SerializedMesh.data",
)


# -- unchanged ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_real_file_comes_back(name: str, samples: Path) -> None:
    path = samples / "unity_meshserializer" / name
    if not path.exists():
        pytest.skip(f"{path} is absent")
    before = made.unpack(path.read_bytes())
    (thing,) = imported(path.read_bytes(), path.stem).objects
    after = exported(thing)
    differing = made.assert_same(before, after.stored)
    print(f"{name}: {differing} of {len(before.positions)} vertices have other normals; said: {after.said}")
    assert differing <= (0 if has_exact_normals() else 2)
    if not differing and len(before.proper) == len(before.triangles):
        assert after.data == path.read_bytes()


def flat() -> made.Stored:
    """Return one square on the ground as the wiki's writer does: 0.001 thick, and every y in the middle."""
    stored = made.crate()
    top = slice(12, 16)  # the side that looks up
    stored.positions, stored.normals, stored.uvs = stored.positions[top], stored.normals[top], stored.uvs[top]
    stored.positions[:, 1] = 32767
    stored.bounds[1] = (-0.0005, 0.0005)
    stored.triangles = stored.triangles[6:8] - np.uint16(12)
    return stored


def triangle() -> made.Stored:
    """Return a single triangle without UVs, of odd numbers that no writer would choose for bounds."""
    stored = flat()
    stored.positions, stored.normals, stored.triangles = stored.positions[:3], stored.normals[:3], stored.triangles[:1]
    stored.positions = np.array([[17, 40000, 3], [65535, 12, 65000], [9, 8, 64999]], np.uint16)
    stored.bounds = np.array([[-1e-3, 4e-3], [100, 100.5], [-7, 1e3]], np.float32)
    stored.uvs = stored.uv_bounds = None
    return stored


def without_directions() -> made.Stored:
    """Return a crate of which some normals are zero, as in three real files."""
    stored = made.crate()
    stored.normals[[0, 5, 23]] = 128
    return stored


def with_doubtful_triangles() -> made.Stored:
    """Return a crate with a triangle twice, one turned over, and one that uses a vertex twice."""
    stored = made.crate()
    more = np.array([stored.triangles[0], stored.triangles[1][::-1], [4, 4, 5]], np.uint16)
    stored.triangles = np.concatenate((stored.triangles[:5], more, stored.triangles[5:]))
    return stored


def with_far_uvs() -> made.Stored:
    """Return a crate whose UVs lie where four steps share a float."""
    stored = made.crate()
    stored.uvs = np.random.default_rng(4).integers(0, 65536, stored.uvs.shape).astype(np.uint16)
    stored.uvs[:2] = ((0, 0), (65535, 65535))
    stored.uv_bounds = np.array([[1000, 1001], [1000, 1001]], np.float32)
    return stored


@pytest.mark.parametrize(
    "make",
    [
        flat,
        triangle,
        without_directions,
        with_doubtful_triangles,
        made.crate,
        lambda: made.crate(tangents=True),
        lambda: made.crate((1e-3, 2e3, 5.0)),
        with_far_uvs,
    ],
    ids=["flat", "one triangle", "zero normals", "twins", "crate", "tangents", "thin", "far UVs"],
)
def test_a_made_file_comes_back(make: Any) -> None:
    before = make()
    (thing,) = imported(made.pack(before)).objects
    assert made.assert_same(before, exported(thing).stored) <= (0 if has_exact_normals() else 4)


def test_points_alone_come_with_a_warning_and_are_refused() -> None:
    from meshferry.io_formats.core.errors import ExportError

    before = made.crate()
    before.triangles = before.triangles[:0]
    result = imported(made.pack(before), "cloud")
    (thing,) = result.objects
    assert (len(thing.data.vertices), len(thing.data.polygons)) == (24, 0)
    assert [text for text in result.warnings if text.startswith("cloud: ") and "only points" in text]
    with pytest.raises(ExportError, match="'cloud' has no faces"):
        exported(thing)


# -- changed ------------------------------------------------------------------------------------------------------


def assert_placed(stored: made.Stored, wanted: Any) -> None:
    """See that a file's corners lie, one by one, within half a step of where they are wanted, (T, 3, 3)."""
    away = np.abs(corners_of(stored) - wanted) / stored.step
    assert away.max() <= 0.505
    given = np.cross(*(wanted[:, k] - wanted[:, 0] for k in (1, 2)))
    ours = np.cross(*(corners_of(stored)[:, k] - corners_of(stored)[:, 0] for k in (1, 2)))
    assert (np.einsum("ij,ij->i", given, ours) > 0).all(), "wound as before"


@pytest.mark.parametrize("name", ["zootyducky__SerializedMesh.data", "nickwelp__NameThisTrack_InsideWall.data"])
def test_a_moved_object_is_stored_as_before(name: str, samples: Path) -> None:
    data = (samples / "unity_meshserializer" / name).read_bytes()
    (thing,) = imported(data).objects
    thing.location = (3, -4, 5)
    assert made.assert_same(made.unpack(data), exported(thing).stored) <= (0 if has_exact_normals() else 2)


@pytest.mark.parametrize(
    ("change", "matrix"),
    [
        ({"scale": (2.0, 2.0, 2.0)}, np.diag([2, 2, 2])),
        ({"scale": (0.5, 3.0, 1.0)}, np.diag([0.5, 3, 1])),
        ({"rotation_euler": (0, 0, np.pi / 2)}, [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    ],
)
def test_a_changed_object_is_right_to_half_a_step(change: dict[str, Any], matrix: Any, samples: Path) -> None:
    data = (samples / "unity_meshserializer" / "zootyducky__SerializedMesh.data").read_bytes()
    before = made.unpack(data)
    (thing,) = imported(data).objects
    thing.rotation_mode = "XYZ"
    for name, value in change.items():
        setattr(thing, name, value)
    after = exported(thing).stored
    x, y, z = np.moveaxis(corners_of(before), -1, 0)
    turned = np.stack((-x, -z, y), axis=-1) @ np.array(matrix, np.float64).T
    assert_placed(after, np.stack((-turned[..., 0], turned[..., 2], -turned[..., 1]), axis=-1))
    np.testing.assert_array_equal(after.uvs[after.triangles], before.uvs[before.triangles])


def test_one_moved_vertex_leaves_the_others_where_they_are(samples: Path) -> None:
    data = (samples / "unity_meshserializer" / "tedmx__SerializedMesh.data").read_bytes()
    before = made.unpack(data)
    (thing,) = imported(data).objects
    thing.data.vertices[3].co.x += 0.01
    wanted = before.points
    wanted[3, 0] -= 0.01
    after = exported(thing).stored
    assert_placed(after, wanted[before.triangles])
    np.testing.assert_array_equal(after.uvs, before.uvs)


def test_normals_that_were_turned_round_are_mentioned_and_those_of_the_file_are_not() -> None:
    if not has_exact_normals():
        pytest.skip("this Blender has no exact normals")
    before = made.crate()
    before.normals[:12] = 256 - before.normals[:12].astype(int)  # half of them point inwards, as in some real files
    (thing,) = imported(made.pack(before)).objects
    assert not exported(thing).said
    normals = thing.data.attributes["custom_normal"].data
    values = np.empty(72, np.float32)
    normals.foreach_get("vector", values)
    normals.foreach_set("vector", np.concatenate((values[:36], -values[36:])))
    thing.data.update()
    (said,) = exported(thing).said
    assert "100% of its normals point backwards" in said
