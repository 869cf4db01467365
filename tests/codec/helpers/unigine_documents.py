"""Small UNIGINE meshes as documents and as scenes, which the tests of the mapping start from."""

from __future__ import annotations

from typing import Any

import numpy as np
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.unigine import space
from meshferry.io_formats.unigine.bones import Bone
from meshferry.io_formats.unigine.mesh import document as doc

UP = (0, 0, 0, 32767)
"""Normal along z, tangent along x, binormal along y."""


def stable_frames(count: int, seed: int) -> np.ndarray[Any, Any]:
    """Return random tangent frames that stay the same when they are decoded and encoded."""
    q = np.random.default_rng(seed).normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    frames = np.trunc(q * 32767).astype(np.int16)
    for _ in range(3):
        normals, tangents, _ = space.decode_frames(frames)
        frames = space.encode_frames(normals, tangents)
    return frames


def fan(name: str, triangles: int = 4, *, seed: int = 0, **fields: Any) -> doc.Surface:
    """Return a bumpy fan in which corners share points, and more triangle vertices than points."""
    rng = np.random.default_rng(seed)
    angle = np.linspace(0, 5, triangles + 1)
    positions = np.vstack(([0, 0, 1], np.column_stack((np.cos(angle), np.sin(angle), rng.uniform(0, 0.3, len(angle))))))
    ring = np.arange(triangles)
    c_indices = np.column_stack((np.zeros(triangles), ring + 1, ring + 2)).astype(np.uint8).ravel()
    # The middle is split: each triangle has a vertex of its own there.
    t_indices = np.column_stack((ring, ring + triangles, ring + triangles + 1)).astype(np.uint8).ravel()
    count = 2 * triangles + 1
    given: dict[str, Any] = {
        "bounds": np.zeros(10, np.float32),
        "targets": [doc.Target("", positions.astype(np.float32), stable_frames(count, seed))],
        "uv0": (rng.integers(0, 64, (count, 2)) / 64).astype(np.float32),
        "c_indices": c_indices,
        "t_indices": t_indices,
    }
    return doc.Surface(name, **(given | fields))


def with_target(surface: doc.Surface, name: str, *, seed: int = 7) -> doc.Surface:
    """Give a surface another morph target, moved and turned against the base."""
    base = surface.targets[0]
    moved = base.positions + np.random.default_rng(seed).uniform(0.1, 0.2, base.positions.shape).astype(np.float32)
    surface.targets.append(doc.Target(name, moved, stable_frames(len(base.tangents), seed)))
    return surface


def with_weights(surface: doc.Surface, bones: int = 2) -> doc.Surface:
    """Give each coordinate vertex one weight or two."""
    count = len(surface.targets[0].positions)
    counts = (np.arange(count) % 2 + 1).astype(np.uint8)
    values = np.concatenate([[65535] if n == 1 else [40000, 25534] for n in counts]).astype(np.uint16)
    numbers = np.concatenate([[0] if n == 1 else [bones - 1, 0] for n in counts]).astype(np.int16)
    surface.weights = doc.Weights(counts, numbers, values)
    return surface


def mesh_file(*surfaces: doc.Surface, version: str = "ms13", bones: int = 0) -> doc.MeshFile:
    """Return a file of some surfaces and a chain of bones."""
    transforms = np.tile(np.float32([0, 0, 1, 0, 0, 0, 1, 1, 1, 1]), (bones, 1))
    return doc.MeshFile(
        version,
        bones=[Bone(f"bone {number}", number - 1) for number in range(bones)],
        transforms=transforms,
        surfaces=list(surfaces),
    )


def quad(**fields: Any) -> sc.Mesh:
    """Return two triangles on the floor, 2 wide, with UVs that follow x and y."""
    points = np.float32([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    given: dict[str, Any] = {
        "points": points,
        "corner_point": np.array([0, 1, 2, 0, 2, 3], np.int32),
        "material_index": np.zeros(2, np.int32),
        "materials": ["Floor"],
        "normal": sc.Layer("normal", np.tile(np.float32([0, 0, 1]), (4, 1))),
        "uvs": [sc.Layer("UVMap", points[:, :2] / 2 + np.float32(0.5))],
    }
    return sc.Mesh(**(given | fields))


def weighted(mesh: sc.Mesh, indices: Any, weights: Any) -> sc.Mesh:
    """Give every point of a mesh these joints and weights."""
    mesh.joint_indices = np.tile(np.int32([indices]), (len(mesh.points), 1))
    mesh.joint_weights = np.tile(np.float32([weights]), (len(mesh.points), 1))
    return mesh


def scene_of(mesh: sc.Mesh, *, name: str = "Thing", joints: int = 0) -> sc.Scene:
    """Return a scene of one object, on an armature where it has joints."""
    skeletons = [sc.Skeleton("Rig", [sc.Joint(f"bone {n}", n - 1) for n in range(joints)])] if joints else []
    return sc.Scene(name, [sc.Node(name, mesh=mesh, skeleton=0 if joints else None)], skeletons)


def at_corners(mesh: sc.Mesh) -> sc.Mesh:
    """Return a mesh that has a value a corner in each layer, as they come out of Blender."""
    return mesh.with_layers(
        lambda layer: sc.Layer(layer.name, np.ascontiguousarray(layer.at_corners(mesh.corner_point)), per_corner=True)
    )
