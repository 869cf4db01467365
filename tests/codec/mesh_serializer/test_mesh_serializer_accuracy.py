"""How much rounding costs, against the truncation of the original writer: both over 200 random meshes."""

from __future__ import annotations

from dataclasses import dataclass

import mesh_serializer_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest
from example_scripts import EXAMPLES
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER

Floats = npt.NDArray[np.float64]
MESHES = 200


@dataclass
class Errors:
    """Of all values of one mesh: how far they are off, in metres, and in steps of the written file."""

    metres: Floats
    steps: Floats


def random_mesh(seed: int) -> Mesh:
    """Return a mesh of 600 to 1,200 points; sizes from millimetres to kilometres, some far from the origin."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(600, 1200))
    size = 10 ** rng.uniform(-3, 3, 3)
    points = (rng.random((count, 3)) * size + rng.uniform(-3, 3, 3) * size).astype(np.float32)
    uvs = (rng.random((count, 2)) * 10 ** rng.uniform(-1, 1, 2) + rng.uniform(-2, 2, 2)).astype(np.float32)
    corners = np.concatenate([rng.permutation(count) for _ in range(3)]).astype(np.int32)
    corners = corners[: len(corners) // 3 * 3]
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Mesh(
        points,
        corners,
        np.zeros(len(corners) // 3, np.int32),
        [""],
        Layer("normal", normals.astype(np.float32)),
        uvs=[Layer("UVMap", uvs)],
    )


def truncated(values: npt.NDArray[np.float32], margin: float, *, clamped: bool) -> Floats:
    """Write values (n, k) as the original writer does, and read them again: section 2."""
    least, most = values[0].astype(np.float64) - margin, values[0].astype(np.float64) + margin
    least = np.minimum(least, values.min(axis=0)).astype(np.float32).astype(np.float64)
    most = np.maximum(most, values.max(axis=0)).astype(np.float32).astype(np.float64)
    steps = (values - least) / (most - least) * 65535
    if clamped:
        steps = np.clip(steps, 0, 65535)
    found: Floats = np.floor(steps) / 65535 * (most - least) + least
    return found


def errors_of(found: Floats, wanted: npt.NDArray[np.float32], bounds: oracle.Row) -> Errors:
    off = np.abs(found - wanted)
    extent = np.diff(np.reshape(bounds, (-1, 2)))[:, 0]
    return Errors(off, off / extent * 65535)


@pytest.fixture(scope="module")
def measured() -> list[tuple[Errors, Errors, Errors, Errors]]:
    """Return errors of positions and UVs as rounded, and of both as truncated, for each mesh."""
    found = []
    for seed in range(MESHES):
        mesh = random_mesh(seed)
        scene = Scene("Thing", [Node("Thing", mesh=mesh)])
        plain = oracle.read(MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(scene)))
        assert len(plain.positions) == len(mesh.points)  # all are used, so they keep their order
        in_file = np.column_stack((-mesh.points[:, 0], mesh.points[:, 2], -mesh.points[:, 1]))
        uvs = mesh.uvs[0].values
        found.append(
            (
                errors_of(np.array(plain.positions), in_file, plain.position_bounds),
                errors_of(np.array(plain.uvs), uvs, plain.uv_bounds),
                errors_of(truncated(in_file, 0.0005, clamped=True), in_file, plain.position_bounds),
                errors_of(truncated(uvs, 0.001, clamped=False), uvs, plain.uv_bounds),
            )
        )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("what", ["positions", "UVs"])
def test_rounding_beats_truncation(measured: list[tuple[Errors, Errors, Errors, Errors]], what: str) -> None:
    place = ("positions", "UVs").index(what)
    most = max(errors[place].steps.max() for errors in measured)
    ratios = [errors[place].steps.mean() / errors[place + 2].steps.mean() for errors in measured]
    truncating = max(errors[place + 2].steps.max() for errors in measured)
    print(
        f"\n{what}: at most {most:.4f} steps off (truncated: {truncating:.3f}), "
        f"on average {np.mean(ratios):.4f} of truncation's error, at most {max(ratios):.4f} in one of {len(measured)}"
    )
    assert most <= 0.501
    assert max(ratios) <= 0.55


def test_our_own_reading_adds_no_more_than_single_precision() -> None:
    for seed in range(20):
        mesh = random_mesh(seed)
        data = MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(Scene("Thing", [Node("Thing", mesh=mesh)])))
        again = MESH_SERIALIZER.to_scene(MESH_SERIALIZER.read(data), "Thing").nodes[0].mesh
        assert again is not None
        extent = np.ptp(mesh.points.astype(np.float64), axis=0)
        blur = np.abs(mesh.points).max(axis=0) * 2.0**-24
        off = np.abs(again.points.astype(np.float64) - mesh.points)
        assert (off <= 0.501 * extent / 65535 + blur).all()


def test_extreme_points_are_exact() -> None:
    for seed in range(20):
        mesh = random_mesh(seed)
        plain = oracle.read(
            MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(Scene("Thing", [Node("Thing", mesh=mesh)])))
        )
        in_file = np.column_stack((-mesh.points[:, 0], mesh.points[:, 2], -mesh.points[:, 1]))
        least, most = np.reshape(plain.position_bounds, (3, 2)).T
        assert (least == in_file.min(axis=0)).all() and (most == in_file.max(axis=0)).all()
        steps = np.array(plain.position_steps)
        assert (steps.min(axis=0) == 0).all() and (steps.max(axis=0) == 65535).all()


def test_normals_are_the_nearest_bytes() -> None:
    for seed in range(20):
        mesh = random_mesh(seed)
        assert mesh.normal is not None
        plain = oracle.read(
            MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(Scene("Thing", [Node("Thing", mesh=mesh)])))
        )
        stored = (np.array(plain.normal_bytes, np.float64) - 128) / 127
        in_file = np.column_stack((-mesh.normal.values[:, 0], mesh.normal.values[:, 2], -mesh.normal.values[:, 1]))
        assert np.abs(stored - in_file).max() <= 0.501 / 127
        assert min(min(row) for row in plain.normal_bytes) >= 1


def test_uv_steps_finer_than_single_precision_come_back() -> None:
    """Several steps have the same UV as float, so that the stored steps decide."""
    document = MESH_SERIALIZER.read((EXAMPLES / "vase.data").read_bytes())
    document.uv_bounds = np.array((1000, 1000.001, 1000, 1000.001), np.float32)
    scene = MESH_SERIALIZER.to_scene(document, "vase")
    (part,) = MESH_SERIALIZER.files_of(scene)
    np.testing.assert_array_equal(MESH_SERIALIZER.from_scene(part).uvs, document.uvs)
