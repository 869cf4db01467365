"""Prims: the viewer's own numbers in the samples, and a slow construction written from the format page alone."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_prims
from meshferry.io_formats.second_life.opensim.prim_faces import face_count, faces_of, mesh_of, planar_uvs
from meshferry.io_formats.second_life.opensim.prim_paths import path_of, profile_of
from meshferry.io_formats.second_life.opensim.prims import PrimShape, ShapeFace, parameters_of
from shape_checks import doubled_areas, require_same_face
from surface_checks import closest

FIELDS = {"".join(word.capitalize() for word in name.split("_")): name for name in PrimShape.__dataclass_fields__}
"""Fields of a shape by their names in archives."""
PLAIN = dict.fromkeys(FIELDS, 0) | {"ProfileCurve": 1, "PathCurve": 16, "PathScaleX": 100, "PathScaleY": 100}
LEAST_AREA = 1e-7
"""Smaller triangles do not count in the boxes of the samples."""
HOLES = (0, 16, 32, 48)


def shape_of(values: Mapping[str, int]) -> PrimShape:
    return PrimShape(**{FIELDS[name]: value for name, value in values.items()})


def test_profile_and_path_are_computed_once() -> None:
    """A region counts the faces of its prims before it builds them."""
    shape = shape_of(PLAIN | {"ProfileBegin": 12_345, "ProfileHollow": 4_321, "PathTwist": 17})
    count = face_count(shape)
    computed = [function.cache_info().misses for function in (profile_of, path_of)]
    first, again = faces_of(shape), faces_of(shape)
    assert [function.cache_info().misses for function in (profile_of, path_of)] == computed
    assert len(first) == count
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.points, other.points)


# -- the viewer's numbers --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(samples: Path) -> list[tuple[dict[str, Any], list[ShapeFace]]]:
    found = json.loads(gzip.decompress((samples / "secondlife_prims" / "expected.json.gz").read_bytes()))
    return [(prim, faces_of(shape_of(prim["values"]))) for prim in found["prims"]]


def pairs_of(expected) -> Iterator[tuple[str, dict[str, Any], ShapeFace]]:
    for prim, faces in expected:
        for number, (wanted, face) in enumerate(zip(prim["faces"], faces, strict=True)):
            yield f"{prim['name']}, face {number}", wanted, face


def test_faces_have_the_order_areas_and_bounds_of_the_viewer(expected) -> None:
    assert len(expected) == 272
    count = 0
    for about, wanted, face in pairs_of(expected):
        count += 1
        assert face.role == wanted["role"], about
        areas = doubled_areas(face.points, face.triangles) / 2
        assert areas.sum() == pytest.approx(wanted["area"], abs=2e-4, rel=2e-4), about
        large = areas > LEAST_AREA
        points = face.points[face.triangles[large]].reshape(-1, 3) if large.any() else face.points
        assert np.abs(np.stack((points.min(0), points.max(0))) - wanted["box"]).max() < 1e-4, about
        if not large.any():
            continue
        uvs = face.uvs[face.triangles]
        shown = uvs[large].reshape(-1, 2)
        assert np.abs(np.stack((shown.min(0), shown.max(0))) - wanted["uv_bounds"]).max() < 1e-4, about
        mean = (uvs.mean(axis=1) * areas[:, None]).sum(axis=0) / areas.sum()
        assert np.abs(mean - wanted["uv_mean"]).max() < 1e-4, about
    assert count == 1282


def test_sampled_triangles_are_on_the_surface_with_their_uvs_and_normals(expected) -> None:
    wrong_normals = normals = 0
    for about, wanted, face in pairs_of(expected):
        if not wanted["samples"]:
            continue
        points, uvs, directions = (np.array([sample[key] for sample in wanted["samples"]]) for key in ("p", "uv", "n"))
        # The triangle with the nearest centre, where UVs decide between triangles in the same place.
        corners = face.points[face.triangles], face.uvs[face.triangles]
        gaps = [
            np.abs(found.mean(axis=1) - sampled.mean(axis=1)[:, None]).max(axis=2)
            for found, sampled in zip(corners, (points, uvs), strict=True)
        ]
        nearest = face.triangles[np.maximum(gaps[0] / 5e-5, gaps[1] / 5e-4).argmin(axis=1)]
        rotated = np.stack([np.roll(nearest, -shift, axis=1) for shift in range(3)])
        distance = np.linalg.norm(face.points[rotated] - points, axis=3).max(axis=2)
        best = rotated[distance.argmin(axis=0), np.arange(len(nearest))]
        is_same = (distance.min(axis=0) < 5e-5) & (np.abs(face.uvs[best] - uvs).max(axis=(1, 2)) < 5e-4)
        for sample in np.flatnonzero(~is_same):
            check_on_surface(points[sample], uvs[sample], face, about)
        if face.role in ("top", "bottom") or wanted["area"] <= 1e-4:
            continue
        assert is_same.all(), about
        gap = np.abs(face.normals[best] - directions).max(axis=2)
        normals += gap.size
        wrong_normals += int((gap > 0.01).sum())
    assert normals > 18_000
    assert wrong_normals <= 0.01 * normals


def check_on_surface(points, uvs, face: ShapeFace, about: str) -> None:
    """Require that the corners and the centre of a triangle are on the face with the same UVs."""
    points = np.concatenate([points, points.mean(axis=0, keepdims=True)])
    uvs = np.concatenate([uvs, uvs.mean(axis=0, keepdims=True)])
    weights, distance = closest(points, face.points[face.triangles])
    found = np.einsum("kmi,mij->kmj", weights, face.uvs[face.triangles])
    gap = np.maximum(distance / 5e-5, np.abs(found - uvs[:, None]).max(axis=2) / 5e-4)
    assert (gap.min(axis=1) <= 1).all(), (about, gap.min(axis=1))


# -- the page --------------------------------------------------------------------------------------------------------


def require_as_page(**changes: int) -> None:
    values = PLAIN | changes
    wanted = slow_prims.faces_of(values)
    faces = faces_of(shape_of(values))
    assert [face.role for face in faces] == [face.role for face in wanted], changes
    for number, (face, other) in enumerate(zip(faces, wanted, strict=True)):
        require_same_face(face, other, (number, changes))


def random_cut(numbers: random.Random) -> int:
    """Return no cut, any cut, or one at or near a corner."""
    corner = numbers.choice((12500, 25000, 37500, 16667, 33333, 6250, 2083, 8333, 47917)) + numbers.randint(-6, 6)
    return numbers.choice((0, 0, numbers.randint(0, 50000), corner))


def random_values(numbers: random.Random, profile: int, hole: int, path: int) -> dict[str, int]:
    values = {"ProfileCurve": profile | hole, "PathCurve": path}
    for name in ("ProfileBegin", "ProfileEnd", "ProfileHollow", "PathBegin", "PathEnd"):
        values[name] = random_cut(numbers)
    ranges = {
        "PathScaleX": (0, 200),
        "PathScaleY": (0, 200),
        "PathShearX": (-60, 300),
        "PathShearY": (-60, 300),
        "PathTwist": (-100, 100),
        "PathTwistBegin": (-100, 100),
        "PathRadiusOffset": (-100, 100),
        "PathTaperX": (-100, 100),
        "PathTaperY": (-100, 100),
        "PathRevolutions": (0, 200),
        "PathSkew": (-100, 100),
    }
    return values | {name: numbers.randint(*limits) for name, limits in ranges.items() if numbers.random() < 0.4}


ALL_SHAPES = [(profile, hole, path) for path in (16, 32, 48, 64, 128) for profile in range(6) for hole in HOLES]


def test_all_profiles_holes_and_paths_are_as_the_page_says() -> None:
    numbers = random.Random(1)
    for profile, hole, path in ALL_SHAPES:
        values = random_values(numbers, profile, hole, path)
        # One revolution, since the slow construction takes long.
        require_as_page(**values | {"PathRevolutions": 0, "ProfileHollow": values["ProfileHollow"] or 25000})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_prims_are_as_the_page_says(seed: int) -> None:
    numbers = random.Random(seed)
    for _ in range(4):
        for profile, hole, path in ALL_SHAPES:
            require_as_page(**random_values(numbers, profile, hole, path))


@pytest.mark.parametrize(
    "changes",
    [
        {"ProfileCurve": 5},
        {"ProfileCurve": 5, "ProfileHollow": 20000},
        {"ProfileCurve": 5, "ProfileBegin": 10000, "PathTwist": 50},
        {"ProfileCurve": 5, "PathCurve": 32, "PathEnd": 10000},
        {"ProfileCurve": 5, "PathCurve": 33},
        {"ProfileHollow": 25000, "PathScaleX": 150},
        {"ProfileCurve": 17, "ProfileHollow": 25000, "PathScaleX": 150},
        {"ProfileCurve": 3, "ProfileHollow": 25000, "PathScaleY": 50, "ProfileBegin": 9000},
        {"PathCurve": 48, "PathTwist": 100, "PathTwistBegin": -100},
        {"PathCurve": 48, "PathTwist": 30, "PathRevolutions": 100, "PathScaleX": 0, "PathScaleY": 0},
        {"PathCurve": 128, "PathTwist": 100, "PathTwistBegin": -100, "PathShearX": 50, "PathBegin": 20000},
        {"PathCurve": 128, "PathScaleX": 200, "PathScaleY": 150},
        {"PathShearX": 206, "PathShearY": 50},
        {"PathCurve": 32, "PathScaleX": 200, "PathScaleY": 200, "PathRevolutions": 200, "PathSkew": 0},
        {"PathCurve": 32, "PathScaleY": 160, "PathRadiusOffset": 100, "PathTaperY": 60},
        {"PathCurve": 32, "PathScaleY": 160, "PathRadiusOffset": -100, "PathTaperY": 60},
        {"PathCurve": 32, "PathScaleY": 160, "PathRadiusOffset": -100, "PathTaperY": -60},
        {"PathCurve": 32, "PathScaleY": 150, "PathRadiusOffset": 100, "PathTaperY": 0},
        {"PathCurve": 32, "PathRevolutions": 100, "PathSkew": -10},
        {"PathCurve": 32, "PathScaleX": 195, "PathRevolutions": 1, "PathSkew": 2},
        {"PathCurve": 144, "PathScaleX": 150},
        {"ProfileCurve": 65, "PathScaleX": 150},
        {"ProfileCurve": 17},
        {"PathBegin": 5000},
        {"ProfileBegin": 50000, "ProfileEnd": 20000},
        {"ProfileBegin": 20000, "ProfileEnd": 50000},
        {"ProfileHollow": 50000},
        {"ProfileHollow": 50001},
        # Poles up to 0.001 wide have the normal of a pole.
        {"ProfileCurve": 5, "PathCurve": 32, "ProfileBegin": 60, "ProfileEnd": 60},
        {"ProfileCurve": 5, "PathCurve": 32, "ProfileBegin": 300, "ProfileEnd": 300},
        # A hole that is larger than its outline, where the shorter of two segments decides.
        {"ProfileCurve": 36, "ProfileHollow": 47500, "ProfileBegin": 36220, "ProfileEnd": 8849},
    ],
)
def test_special_prims_are_as_the_page_says(changes: dict[str, int]) -> None:
    require_as_page(**changes)


@pytest.mark.parametrize("profile", [0, 1, 3, 5])
@pytest.mark.parametrize("hollow", [0, 25000])
def test_cuts_close_to_corners_are_as_the_page_says(profile: int, hollow: int) -> None:
    side = {0: 2083, 1: 12500, 3: 16667, 5: 4167}[profile]
    for gap in (-20, -2, -1, 0, 1, 2, 20):
        for begin, end in ((side + gap, 0), (0, side + gap), (side + gap, 2 * side - gap)):
            require_as_page(
                ProfileCurve=profile, ProfileHollow=hollow, ProfileBegin=begin, ProfileEnd=end, PathScaleX=150
            )


def test_a_dropped_begin_point_leaves_a_side_too_many() -> None:
    faces = faces_of(shape_of(PLAIN | {"ProfileBegin": 12499}))
    outer = [face for face in faces if face.role == "outer"]
    # Four sides although three are left: the last runs over the centre to the first points.
    assert len(outer) == 4
    assert (np.abs(outer[3].points[:, :2]).max(axis=1) < 1e-9).any()
    require_as_page(ProfileBegin=12499)


@pytest.mark.parametrize("curve", [*range(0, 160, 5), 143, 144, 250, 255])
def test_odd_paths_are_as_the_page_says(curve: int) -> None:
    require_as_page(ProfileCurve=curve * 7 % 256, PathCurve=curve, PathScaleY=150, PathBegin=9000, ProfileHollow=9000)


def steps_of(twist: int, revolutions: int) -> int:
    """Return the number of rows of a circle that is not cut, less one."""
    begin = min(100, twist)
    changes = {"PathCurve": 32, "PathTwistBegin": begin, "PathTwist": begin - twist, "PathRevolutions": revolutions}
    return len(path_of(parameters_of(shape_of(PLAIN | changes))).position) - 1


def require_steps(twists: range) -> int:
    """Check the numbers of rows; return how many are less than the exact ones."""
    fewer = 0
    for twist in twists:
        delta = slow_prims.Fraction(twist, 100)
        for revolutions in range(201):
            found = steps_of(twist, revolutions)
            assert found == slow_prims.circle_rows(delta, revolutions), (twist, revolutions)
            exact = (24 + 49 * twist // 400) * (1000 + 15 * revolutions) // 1000
            fewer += found == exact - 1
    return fewer


def test_rows_of_circles_are_counted_in_single_precision() -> None:
    assert require_steps(range(9, 41, 16)) > 0


@pytest.mark.slow
def test_rows_of_all_circles_are_counted_in_single_precision() -> None:
    assert require_steps(range(201)) == 139


# -- what holds for all prims ----------------------------------------------------------------------------------------


def require_valid(values: Mapping[str, int]) -> None:
    faces = faces_of(shape_of(values))
    assert faces, values
    assert sum(len(face.points) for face in faces) < 20_000, values
    for face in faces:
        count = len(face.points)
        assert face.points.shape == face.normals.shape == (count, 3)
        assert face.uvs.shape == (count, 2)
        assert face.triangles.dtype == np.int32
        assert all(np.isfinite(array).all() for array in (face.points, face.normals, face.uvs)), values
        assert np.abs(face.points).max() < 10, values
        assert np.abs(np.linalg.norm(face.normals, axis=1) - 1).max() < 1e-9, values
        if len(face.triangles):
            assert 0 <= face.triangles.min() <= face.triangles.max() < count, values
            assert doubled_areas(face.points, face.triangles).min() > 0.9e-12, values


def require_valid_with_any_integers(seed: int, count: int) -> None:
    numbers = random.Random(seed)
    for _ in range(count):
        reach = numbers.choice((100, 256, 70_000, 10**9, 10**40))
        values = {name: numbers.randint(-reach, reach) for name in FIELDS}
        if numbers.random() < 0.7:
            values["ProfileCurve"], values["PathCurve"] = numbers.randrange(64), numbers.choice((16, 32, 48, 64, 128))
        require_valid(values)


def test_any_integers_make_a_prim() -> None:
    require_valid_with_any_integers(0, 100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_sets_of_any_integers_make_a_prim(seed: int) -> None:
    require_valid_with_any_integers(seed, 1000)


# -- meshes ----------------------------------------------------------------------------------------------------------


def test_a_mesh_has_a_slot_for_each_face_also_for_one_without_triangles() -> None:
    faces = faces_of(shape_of(PLAIN | {"PathScaleX": 200, "PathScaleY": 200}))
    assert [face.role for face in faces] == ["top", "outer", "outer", "outer", "outer", "bottom"]
    mesh = mesh_of(faces, "pyramid")
    assert mesh.name == "pyramid"
    assert mesh.materials == ["0", "1", "2", "3", "4", "5"]
    assert sorted(set(mesh.material_index.tolist())) == [1, 2, 3, 4, 5]
    assert [mesh.points.dtype, mesh.corner_point.dtype, mesh.material_index.dtype] == [np.float32, np.int32, np.int32]
    assert len(np.unique(mesh.corner_point)) == len(mesh.points)
    assert mesh.normal is not None
    first = 0
    for number, face in enumerate(faces):
        corners = mesh.corner_point.reshape(-1, 3)[mesh.material_index == number]
        assert len(corners) == len(face.triangles)
        assert np.abs(mesh.points[corners] - face.points[face.triangles]).max(initial=0) < 1e-7
        assert np.abs(mesh.normal.values[corners] - face.normals[face.triangles]).max(initial=0) < 1e-7
        assert np.abs(mesh.uvs[0].values[corners] - face.uvs[face.triangles]).max(initial=0) < 1e-7
        # Faces do not share points, the triangles of a face do.
        assert len(np.unique(corners)) == len(np.unique(face.triangles))
        assert corners.min(initial=first) >= first
        first = corners.max(initial=first - 1) + 1
    assert [layer.name for layer in mesh.uvs] == ["UVMap"]


def test_a_mesh_without_triangles_keeps_its_slots() -> None:
    faces = [face for face in faces_of(shape_of(PLAIN | {"PathScaleX": 200, "PathScaleY": 200})) if face.role == "top"]
    mesh = mesh_of(faces, "")
    assert (len(mesh.points), len(mesh.corner_point), mesh.materials) == (0, 0, ["0"])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"PathTwist": 70, "PathShearX": 30},
        {"PathScaleX": 200, "PathScaleY": 200},
        {"ProfileHollow": 30000},
        {"ProfileHollow": 30000, "ProfileBegin": 9000, "PathEnd": 5000},
        {"ProfileCurve": 0},
        {"ProfileCurve": 3},
        {"ProfileCurve": 5, "PathCurve": 32},
        {"ProfileCurve": 5, "PathCurve": 32, "PathBegin": 9000},
        {"ProfileCurve": 0, "PathCurve": 32, "PathScaleY": 160},
        {"ProfileCurve": 49, "ProfileHollow": 9000, "PathScaleX": 130},
        {"ProfileCurve": 32, "ProfileHollow": 25000, "PathCurve": 32, "PathScaleY": 160, "PathSkew": 20},
        {"ProfileCurve": 3, "ProfileHollow": 40000, "ProfileEnd": 9000},
        {"PathCurve": 32, "PathScaleY": 160, "PathRevolutions": 120, "PathTwist": 20},
    ],
)
def test_points_of_faces_that_meet_are_equal(changes: dict[str, int]) -> None:
    mesh = mesh_of(faces_of(shape_of(PLAIN | changes)), "")
    _, place = np.unique(mesh.points, axis=0, return_inverse=True)
    triangles = place.reshape(-1)[mesh.corner_point].reshape(-1, 3)
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert (edges[:, 0] != edges[:, 1]).all()
    # Each edge is used once in each direction: the surface is closed, and all triangles agree on the outside.
    directions, uses = np.unique(edges, axis=0, return_counts=True)
    assert (uses == 1).all()
    assert {tuple(edge) for edge in directions.tolist()} == {(end, start) for start, end in directions.tolist()}
    a, b, c = mesh.points[mesh.corner_point.reshape(-1, 3).T].astype(np.float64)
    assert np.einsum("ij,ij->", np.cross(a, b), c) > 0


def test_planar_uvs_follow_the_page() -> None:
    numbers = np.random.default_rng(3)
    points, normals = numbers.uniform(-0.5, 0.5, (200, 3)), numbers.normal(size=(200, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    normals[:6] = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    normals[6:8] = [[0.5, 0, 0.75**0.5], [-0.5, 0, 0.75**0.5]]
    size = (2.0, 3.0, 0.5)
    for found, point, normal in zip(planar_uvs(points, normals, size), points, normals, strict=True):
        if abs(normal[0]) >= 0.5:
            across = np.array((0.0, np.sign(normal[0]), 0.0))
        else:
            across = np.array((-1.0, 0.0, 0.0)) if normal[1] > 0 else np.array((1.0, 0.0, 0.0))
        place = point * size
        wanted = 0.5 + 2 * across @ place, 0.5 - 2 * np.cross(across, normal) @ place
        assert np.abs(found - wanted).max() < 1e-12
