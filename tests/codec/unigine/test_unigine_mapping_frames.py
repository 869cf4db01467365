"""Tangent frames against quaternion algebra written out, and against the geometry of real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.scene import Mesh
from meshferry.io_formats.geometry.normals import vertex_tangents
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.space import decode_frames, encode_frames

Array = np.ndarray[Any, Any]


def rotation(q: Array) -> Array:
    """Return the matrix of a quaternion x, y, z, w of any length, from v + 2 w (k x v) + 2 k x (k x v)."""
    x, y, z, w = q / np.linalg.norm(q)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * k + 2 * k @ k


def random_frames(count: int, seed: int = 0) -> Array:
    q = np.random.default_rng(seed).normal(size=(count, 4))
    return np.trunc(q / np.linalg.norm(q, axis=1, keepdims=True) * 32767).astype(np.int16)


def test_decoding_is_the_rotation_of_the_page() -> None:
    stored = random_frames(300)
    normals, tangents, broken = decode_frames(stored)
    assert normals.dtype == tangents.dtype == np.float32
    assert not len(broken)
    for row, normal, tangent in zip(stored, normals, tangents, strict=True):
        matrix = rotation(row.astype(float))
        np.testing.assert_allclose(normal, matrix[:, 2], atol=1e-6)
        np.testing.assert_allclose(tangent[:3], matrix[:, 0], atol=1e-6)
        # The page's binormal follows v from the top; Blender's bitangent, sign * normal x tangent, v from the bottom.
        binormal = np.sign(row[3]) * matrix[:, 1]
        np.testing.assert_allclose(tangent[3] * np.cross(normal, tangent[:3]), -binormal, atol=1e-5)


def test_short_quaternions_are_normalised_and_those_without_length_told() -> None:
    stored = np.array([[0, 0, 16384, -16384], [0, 0, 0, 0], [0, 3, 0, -4]], np.int16)
    normals, tangents, broken = decode_frames(stored)
    assert broken.tolist() == [1]
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), [1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(tangents[:, :3], axis=1), [1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(tangents[0], [0, -1, 0, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("normal", "tangent", "sign", "stored"),
    [
        # The page: 0.70710678 becomes 23169, not 23170; the sign of w is that of the binormal along v from the top.
        ((0, 0, 1), (1, 0, 0), -1, (0, 0, 0, 32767)),
        ((0, 0, 1), (1, 0, 0), 1, (0, 0, 0, -32767)),
        ((0, 0, 1), (1, 0, 0), 0, (0, 0, 0, -32767)),
        ((0, -1, 0), (1, 0, 0), -1, (23169, 0, 0, 23169)),
        ((0, -1, 0), (1, 0, 0), 1, (-23169, 0, 0, -23169)),
        ((1, 0, 0), (0, 0, -1), -1, (0, 23169, 0, 23169)),
        ((1, 0, 0), (0, 1, 0), -1, (16383, 16383, 16383, 16383)),
        # The other half turns: w would be 0, which could not say the handedness.
        ((0, 0, -1), (1, 0, 0), -1, (32767, 0, 0, 32)),
        ((0, 0, -1), (-1, 0, 0), 1, (0, -32767, 0, -32)),
        ((0, 0, 1), (-1, 0, 0), -1, (0, 0, 32767, 32)),
    ],
)
def test_encoding_by_hand(normal: Any, tangent: Any, sign: float, stored: Any) -> None:
    found = encode_frames(np.float32([normal]), np.float32([[*tangent, sign]]))[0]
    if abs(stored[3]) == 32:  # half a turn may go either way round
        found[:3] = found[:3] * np.sign(found[:3].sum()) * np.sign(sum(stored[:3]))
    assert found.tolist() == list(stored)


def test_encoding_any_frame() -> None:
    rng = np.random.default_rng(1)
    normals = rng.normal(size=(3000, 3))
    normals[:500, 2] = -np.abs(normals[:500, 2]) * 50  # nearly straight down
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    loose = rng.normal(size=(3000, 3))  # neither perpendicular nor of unit length
    signs = rng.choice([-1.0, 1.0], 3000)
    stored = encode_frames(normals.astype(np.float32), np.column_stack((loose, signs)).astype(np.float32))
    found, tangents, _ = decode_frames(stored)
    wanted = loose - normals * (loose * normals).sum(axis=1, keepdims=True)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    small = np.abs(stored[:, 3]) <= 33  # w is at least 0.001
    assert (np.abs(found - normals).max(axis=1) < np.where(small & (normals[:, 2] < -0.99), 2.1e-3, 2e-4)).all()
    assert (np.abs(tangents[:, :3] - wanted).max(axis=1) < np.where(small, 0.062, 2e-4)).all()
    np.testing.assert_array_equal(tangents[:, 3], signs)
    assert np.abs(stored[:, 3]).min() >= 32
    assert stored.min() > -32768


def test_half_turns_keep_their_normals() -> None:
    """Frames whose w would be 0 turn a little about their normals; those that point down cannot."""
    rng = np.random.default_rng(2)
    axes = rng.normal(size=(1000, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    axes = axes[np.abs(axes[:, 2]) > 0.1]
    normals = 2 * axes * axes[:, 2:] - (0, 0, 1)  # z and x turned by 180° about each axis
    tangents = np.column_stack((2 * axes * axes[:, :1] - (1, 0, 0), np.ones(len(axes))))
    stored = encode_frames(normals.astype(np.float32), tangents.astype(np.float32))
    assert (np.abs(stored[:, 3]) <= 33).all()
    found, turned, _ = decode_frames(stored)
    np.testing.assert_allclose(found, normals, atol=1e-4)
    np.testing.assert_allclose(turned[:, :3], tangents[:, :3], atol=0.062)


def test_without_tangents_only_straight_down_is_bent() -> None:
    """Normals within 0.002 of it: no tangent makes their w as large as a file holds it."""
    rng = np.random.default_rng(4)
    normals = np.column_stack((rng.normal(size=(2000, 2)) * 0.004, np.full(2000, -1.0)))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    found, _, _ = decode_frames(encode_frames(normals.astype(np.float32), np.zeros((2000, 4), np.float32)))
    missed = np.linalg.norm(found - normals, axis=1)
    tilt = np.hypot(normals[:, 0], normals[:, 1])
    assert (missed < np.maximum(0.00205 - tilt, 0) + 1e-4).all()


def test_tangents_that_say_nothing() -> None:
    normals = np.float32([[0, 0, 1], [0, 0, -1], [0.6, 0, -0.8]])
    for tangents in (np.zeros((3, 4), np.float32), np.column_stack((normals, np.ones(3, np.float32)))):
        found, turned, broken = decode_frames(encode_frames(normals, tangents))
        assert not len(broken)
        np.testing.assert_allclose(found, normals, atol=2.1e-3)
        np.testing.assert_allclose((turned[:, :3] * normals).sum(axis=1), 0, atol=2.1e-3)


@pytest.mark.parametrize("has_sign_byte", [False, True])
def test_frames_stay_when_rewritten(has_sign_byte: bool) -> None:
    stored = random_frames(2000, seed=3)
    if has_sign_byte:
        stored[:, 3] = np.where(stored[:, 3] < 0, -127, 127)
    once = encode_frames(*decode_frames(stored, has_sign_byte=has_sign_byte)[:2], has_sign_byte=has_sign_byte)
    twice = encode_frames(*decode_frames(once, has_sign_byte=has_sign_byte)[:2], has_sign_byte=has_sign_byte)
    np.testing.assert_array_equal(once, twice)
    step = np.abs(once[:, :3].astype(int) - stored[:, :3]).max(axis=1)
    assert (step[np.abs(stored[:, 3]) > 40] <= 1).all()


def test_ms10_keeps_w_positive_beside_its_sign_byte() -> None:
    # x, y, z are those of the rotation with w >= 0, whatever the handedness.
    for byte in (-127, 127):
        normals, tangents, _ = decode_frames(np.array([[0, 0, 23169, byte]], np.int16), has_sign_byte=True)
        np.testing.assert_allclose(normals, [[0, 0, 1]], atol=1e-4)
        np.testing.assert_allclose(tangents, [[0, 1, 0, -np.sign(byte)]], atol=1e-4)
        assert encode_frames(normals, tangents, has_sign_byte=True).tolist() == [[0, 0, 23169, byte]]
    # Truncated components of a small w would make 0.006 of 0.002.
    q = np.array([0.6, 0.64, np.sqrt(1 - 0.6**2 - 0.64**2 - 0.002**2), 0.002])
    matrix = rotation(q)
    frame = np.float32([matrix[:, 2]]), np.float32([[*matrix[:, 0], -1]])
    normals, tangents, _ = decode_frames(encode_frames(*frame, has_sign_byte=True), has_sign_byte=True)
    np.testing.assert_allclose(normals, frame[0], atol=2e-3)
    np.testing.assert_allclose(tangents, frame[1], atol=2e-3)


def test_binormals_run_along_v_of_the_file() -> None:
    """One square, seen from the front, with its picture upright, mirrored and turned."""
    points = np.float32([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    corners = np.array([0, 1, 2, 0, 2, 3], np.int32)
    normals = np.tile(np.float32([0, 0, 1]), (4, 1))
    for uv_axes in ([[1, 0], [0, 1]], [[-1, 0], [0, 1]], [[0, 1], [-1, 0]], [[0, 1], [1, 0]]):
        uv = (points[:, :2] @ np.float32(uv_axes)).astype(np.float32)  # Blender's, v from the bottom
        stored = encode_frames(normals, vertex_tangents(points, normals, uv, corners))[0]
        matrix = rotation(stored.astype(float))
        gradient = np.linalg.inv(np.float64(uv_axes).T)  # columns: dP/du, dP/dv
        np.testing.assert_allclose(matrix[:2, 0], gradient[:, 0], atol=2.1e-3)
        np.testing.assert_allclose(np.sign(stored[3]) * matrix[:2, 1], -gradient[:, 1], atol=2.1e-3)


# -- real files ---------------------------------------------------------------------------------


def sample_mesh(samples: Path, name: str) -> Mesh:
    document = UNIGINE_MESH.read((samples / "unigine" / name).read_bytes())
    mesh = UNIGINE_MESH.to_scene(document, "x").nodes[0].mesh
    assert mesh is not None
    return mesh


@pytest.mark.parametrize(
    "name", ["mr02_box", "ms10_box", "ms12_box_lm00", "ms14_box", "ms11_plane_no_uv", "ms13_quad_no_uv", "ms14_plane"]
)
def test_flat_faces_have_their_normals_and_boxes_face_outward(samples: Path, name: str) -> None:
    mesh = sample_mesh(samples, f"{name}.mesh")
    triangles = mesh.points[mesh.corner_point].reshape(-1, 3, 3).astype(np.float64)
    edges = triangles[:, [1, 2, 0]] - triangles
    edges /= np.linalg.norm(edges, axis=2, keepdims=True)
    assert mesh.normal is not None
    normals = mesh.normal.at_corners(mesh.corner_point).reshape(-1, 3, 3)
    # Frames of a half turn stand off in the files themselves: 0.002 since w is never below 0.001, and 0.012 in ms10,
    # where w follows from truncated numbers. Others do not.
    tilted = np.abs(np.einsum("tci,tei->tce", normals, edges)).max(axis=2)
    assert tilted.max() < (0.0125 if name == "ms10_box" else 2.1e-3)
    assert (tilted < 1e-3).mean() > 0.5
    faces = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    faces /= np.linalg.norm(faces, axis=1, keepdims=True)
    assert np.einsum("tci,ti->tc", normals, faces).min() > 0.999
    if "box" in name:
        outward = triangles.mean(axis=1) - mesh.points.mean(axis=0)
        assert (np.einsum("ti,ti->t", faces, outward) > 0).all()


def test_handedness_and_tangents_agree_with_the_uvs(samples: Path) -> None:
    """Of all corners of a file 88 % and more, as the page says: the rest are seams of mirrored halves."""
    cosines = {}
    for path in sorted((samples / "unigine").glob("ms1*.mesh")):
        mesh = sample_mesh(samples, path.name)
        if not mesh.uvs or mesh.tangent is None:
            continue
        held = [surface.uvs is not None and surface.uvs[0] for surface in mesh.surfaces]
        wanted = np.asarray(held)[mesh.material_index]
        points = mesh.points[mesh.corner_point].reshape(-1, 3, 3).astype(np.float64)[wanted]
        uv = mesh.uvs[0].at_corners(mesh.corner_point).reshape(-1, 3, 2).astype(np.float64)[wanted]
        tangents = mesh.tangent.at_corners(mesh.corner_point).reshape(-1, 3, 4)[wanted]
        (u1, v1), (u2, v2) = (uv[:, 1] - uv[:, 0]).T, (uv[:, 2] - uv[:, 0]).T
        area = u1 * v2 - u2 * v1
        real = np.abs(area) > 1e-9
        agree = np.sign(area)[real, None] == tangents[real][:, :, 3]
        # The cat's UVs are unwrapped on 268 of 4,194 triangles, a quarter of which meet mirrored neighbours.
        assert agree.mean() >= (0.75 if "cat" in path.stem else 0.88), path.name
        along_u = ((points[:, 1] - points[:, 0]) * v2[:, None] - (points[:, 2] - points[:, 0]) * v1[:, None])[real]
        along_u *= np.sign(area[real])[:, None]
        length = np.linalg.norm(along_u, axis=1)
        cosine = np.einsum("tci,ti->tc", tangents[real][:, :, :3], along_u)[length > 1e-12]
        cosines[path.stem] = float((cosine / length[length > 1e-12, None]).mean())
    assert len(cosines) >= 20
    assert np.median(list(cosines.values())) > 0.95
    assert min(cosines.values()) > 0.5


def test_frames_that_cannot_be_lifted_keep_their_tangents() -> None:
    """Straight down, nothing helps: the floor of a cube keeps its tangent where it is."""
    angle = np.float32([0, 1e-6, 1, 2, 3, 3.1415927, 5])
    tangents = np.column_stack((np.cos(angle), np.sin(angle), np.full(7, 1e-7), np.ones(7))).astype(np.float32)
    tangents[5] = (1, 1e-42, 0, 1)
    normals = np.tile(np.float32([1e-7, 0, -1]), (7, 1))
    with np.errstate(all="raise", under="ignore"):
        found, turned, _ = decode_frames(encode_frames(normals, tangents))
    np.testing.assert_allclose(turned[:, :3], tangents[:, :3], atol=2.1e-3)
    np.testing.assert_allclose(found, normals, atol=2.1e-3)
