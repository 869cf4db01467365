"""Small Timbermesh documents and scenes that the tests of the codec start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.timbermesh.model import codec

IDENTITY: dict[str, Any] = {"position": (0.0, 0.0, 0.0), "rotation": (0.0, 0.0, 0.0, 1.0), "scale": (1.0, 1.0, 1.0)}


def node(name: str = "Root", parent: int = -1, **fields: Any) -> codec.Node:
    """Return a node with a whole transform and the empty properties that the official exporter writes."""
    fields.setdefault("properties", [])
    return codec.Node(parent=parent, name=name, **(IDENTITY | fields))


def vertex_properties(count: int = 4) -> list[codec.VertexProperty]:
    """Return a flat fan on the floor of file space: normals up, tangents along X."""
    angle = np.linspace(0, 1.5 * np.pi, count)
    positions = np.column_stack((np.cos(angle), np.zeros(count), -np.sin(angle)))
    uv = positions[:, [0, 2]] * 0.5 + 0.5
    return [
        codec.VertexProperty.of("position", positions.astype(np.float32)),
        codec.VertexProperty.of("normal", np.tile(np.float32([0, 1, 0]), (count, 1))),
        codec.VertexProperty.of("tangent", np.tile(np.float32([1, 0, 0, -1]), (count, 1))),
        codec.VertexProperty.of("uv0", uv.astype(np.float32)),
    ]


def mesh_node(name: str = "Root", parent: int = -1, **fields: Any) -> codec.Node:
    """Return a node with two triangles over four vertices."""
    given: dict[str, Any] = {
        "vertex_count": 4,
        "properties": vertex_properties(),
        "meshes": [codec.Mesh(np.array([0, 1, 2, 0, 2, 3], np.int32), "BaseWood_Brown.Folktails")],
    }
    return node(name, parent, **(given | fields))


def node_animation(frames: int = 3, name: str = "Default", **fields: Any) -> codec.NodeAnimation:
    given: dict[str, Any] = {
        "name": name,
        "framerate": 24.0,
        "positions": np.arange(frames * 3, dtype=np.float32).reshape(frames, 3),
        "rotations": np.tile(np.float32([0, 0, 0, 1]), (frames, 1)),
        "scales": np.ones((frames, 3), np.float32),
        "present": np.ones((frames, 3), bool),
    }
    return codec.NodeAnimation(**(given | fields))


def vertex_animation(
    frames: int = 3, moving: int = 4, vertices: int = 4, name: str = "Default", **fields: Any
) -> codec.VertexAnimation:
    made = []
    for frame in range(frames):
        offsets = np.full((vertices, 3), frame * 0.25, np.float32)
        rotations = np.tile(np.float32([0, 0, 0, 1]), (vertices, 1))
        made.append(
            codec.VertexAnimationFrame(
                [codec.VertexProperty.of("offset", offsets), codec.VertexProperty.of("rotation", rotations)]
            )
        )
    given: dict[str, Any] = {"name": name, "framerate": 24.0, "animated_vertex_count": moving, "frames": made}
    return codec.VertexAnimation(**(given | fields))


def model(*nodes: codec.Node) -> codec.Model:
    return codec.Model(nodes=list(nodes) or [mesh_node()])


def replaced(
    node: codec.Node, name: str, change: Callable[[codec.VertexProperty], codec.VertexProperty | None]
) -> codec.Node:
    """Put one vertex property of a node through ``change``; None takes it away."""
    properties = []
    for found in node.properties:
        new = change(found) if found.name == name else found
        if new is not None:
            properties.append(new)
    node.properties = properties
    return node


def with_values(node: codec.Node, name: str, values: Any) -> codec.Node:
    """Give a vertex property other float32 values."""
    new = codec.VertexProperty.of(name, np.asarray(values, np.float32))
    if node.find(name) is None:
        node.properties.append(new)
        return node
    return replaced(node, name, lambda _: new)


def grid_mesh(size: int = 4, *, seed: int = 0, materials: int = 2) -> sc.Mesh:
    """Return a bumpy grid, (size+1)² points, with corner UVs split along a seam, corner colours and point normals."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(size + 1), np.arange(size + 1))
    points = np.column_stack((x.ravel(), y.ravel(), rng.uniform(-0.2, 0.2, x.size))).astype(np.float32)
    corner = np.arange(size) + np.arange(size)[:, None] * (size + 1)
    a = corner.ravel()
    b, c, d = a + 1, a + size + 2, a + size + 1
    corner_point = np.stack((a, b, c, a, c, d), axis=1).astype(np.int32).ravel()
    uv = (points[corner_point, :2] / size).astype(np.float32)
    half = np.repeat(np.arange(len(corner_point) // 3) % 2 == 1, 3)
    uv[half] += 1
    colors = rng.integers(0, 256, (len(points), 4), dtype=np.uint8)[corner_point]
    from meshferry.io_formats.geometry.normals import vertex_normals

    return sc.Mesh(
        points=points,
        corner_point=corner_point,
        material_index=(np.arange(len(corner_point) // 3) % materials).astype(np.int32),
        materials=[f"Material{i}.Folktails" for i in range(materials)],
        normal=sc.Layer("normal", vertex_normals(points, corner_point)),
        uvs=[sc.Layer("UVMap", uv, per_corner=True)],
        colors=[sc.Layer("Color", colors, per_corner=True)],
    )
