"""Tangents that are made without Blender are those of Blender's MikkTSpace."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy


def smooth_object() -> object:
    """Return the mesh of an uneven sphere of triangles, smooth, with bent UVs and a seam."""
    import bmesh
    import bpy

    shape = bmesh.new()
    layer = shape.loops.layers.uv.new("UVMap")
    bmesh.ops.create_uvsphere(shape, u_segments=16, v_segments=9, radius=1, calc_uvs=True)
    bmesh.ops.triangulate(shape, faces=shape.faces)
    for vert in shape.verts:
        vert.co.x *= 1.7 + 0.3 * np.sin(5 * vert.co.z)
    for face in shape.faces:
        face.smooth = True
        for loop in face.loops:
            u, v = loop[layer].uv
            loop[layer].uv = (u + 0.3 * v * v, 0.7 * v + 0.2 * u * u)
    mesh = bpy.data.meshes.new("Sphere")
    shape.to_mesh(mesh)
    shape.free()
    return mesh


def test_as_blender_makes_them() -> None:
    import bpy
    from meshferry.io_formats.geometry.normals import vertex_tangents

    mesh = smooth_object()
    mesh.calc_tangents(uvmap="UVMap")
    points = np.array([mesh.vertices[loop.vertex_index].co[:] for loop in mesh.loops], np.float32)
    normals = np.array([loop.normal[:] for loop in mesh.loops], np.float32)
    uvs = np.array([element.uv[:] for element in mesh.uv_layers[0].data], np.float32)
    wanted = np.array([(*loop.tangent, loop.bitangent_sign) for loop in mesh.loops])
    rows = np.column_stack((points, normals, uvs)).round(5)
    _, first, vertex = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    vertex = vertex.reshape(-1).astype(np.int32)
    found = vertex_tangents(points[first], normals[first], uvs[first], vertex)[vertex]
    bpy.data.meshes.remove(mesh)
    away = np.degrees(np.arccos(np.clip(np.einsum("ij,ij->i", found[:, :3], wanted[:, :3]), -1, 1)))
    assert away.max() < 0.1, away.max()
    assert (found[:, 3] == wanted[:, 3]).all()
