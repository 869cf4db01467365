"""The arrays of the library are what Blender shows after an import of the same file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import meshferry
import numpy as np
import pytest
from load_package import ROOT
from meshferry.io_formats.core.scene import NORMAL_TOLERANCE
from meshferry.io_formats.geometry.vertices import split_mesh

pytestmark = [pytest.mark.needs_bpy, pytest.mark.slow]
EXAMPLES = ROOT / "examples"
IMPORTERS = {".timbermesh": "timbermesh", ".mesh": "unigine", ".llmesh": "second_life", ".data": "mesh_serializer"}
IMPORTERS |= {".node": "unigine", ".oar": "second_life", ".dae": "second_life", ".json": "timbermesh"}


def imported(bpy: Any, path: Path, **options: Any) -> dict[str, Any]:
    """Import a file; return Blender's objects by name."""
    operator = getattr(bpy.ops.import_scene, IMPORTERS[path.suffix])
    if "use_weld" in operator.get_rna_type().properties:
        options["use_weld"] = False
    assert operator(filepath=str(path), **options) == {"FINISHED"}
    bpy.context.view_layer.update()
    return {obj.name: obj for obj in bpy.data.objects}


def shown(bpy: Any, obj: Any) -> Any:
    """Return the points of an object in the world, after its modifiers."""
    evaluated = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    points = np.empty(len(evaluated.data.vertices) * 3, np.float32)
    evaluated.data.vertices.foreach_get("co", points)
    matrix = np.array(evaluated.matrix_world)
    return points.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]


@pytest.mark.parametrize("name", ["windmill.timbermesh", "lamp.mesh", "tunic.llmesh", "vase.data"])
def test_meshes_equal_those_of_an_import(name: str, clean_blender: Any) -> None:
    objects = imported(clean_blender, EXAMPLES / name, normals="EXACT")
    found = 0
    for node in meshferry.read(EXAMPLES / name).walk():
        if node.mesh is None or node.role != "render" or node.level:
            continue
        obj = next(obj for own, obj in objects.items() if own in (node.name, f"{node.name}.001") and obj.type == "MESH")
        clean_blender.context.scene.frame_set(0)
        data, mesh = obj.data, node.mesh
        assert np.allclose(np.array(obj.matrix_world), node.world_matrix, atol=1e-6)
        points = np.empty(len(data.vertices) * 3, np.float32)
        data.vertices.foreach_get("co", points)
        assert np.array_equal(points.reshape(-1, 3), mesh.points)
        data.calc_loop_triangles()
        faces = np.array([tuple(triangle.vertices) for triangle in data.loop_triangles])
        if (np.diff([*[p.loop_start for p in data.polygons], len(data.loops)]) == 3).all():
            assert np.array_equal(faces, mesh.triangles)
            assert np.allclose([loop.uv for loop in data.uv_layers[0].data], mesh.uvs[0].reshape(-1, 2))
            normals = np.array([corner.vector for corner in data.corner_normals])
            assert np.abs(normals - mesh.normals.reshape(-1, 3)).max() < 1e-2
        assert len(faces) == len(mesh.triangles)
        found += 1
    assert found


def test_joints_are_where_bones_are(clean_blender: Any) -> None:
    for name in ("lamp.mesh", "tunic.llmesh"):
        imported(clean_blender, EXAMPLES / name)
        skeleton = meshferry.read(EXAMPLES / name).skeletons[0]
        armature = next(obj for obj in clean_blender.data.objects if obj.type == "ARMATURE" and name[:4] in obj.name)
        heads = {bone.name: np.array(armature.matrix_world @ bone.head_local) for bone in armature.data.bones}
        assert np.abs([heads[joint] for joint in skeleton.names] - skeleton.rest[:, :3, 3]).max() < 1e-5


def test_posed_points_are_those_of_the_armature_modifier(clean_blender: Any) -> None:
    bpy = clean_blender
    lamp = imported(bpy, EXAMPLES / "lamp.mesh")["lamp"]
    bpy.context.view_layer.objects.active = lamp.parent
    assert bpy.ops.import_scene.unigine(filepath=str(EXAMPLES / "lamp_nod.anim"), armature="ACTIVE") == {"FINISHED"}
    scene = meshferry.read(EXAMPLES / "lamp.mesh")
    scene.add_clips(meshferry.read(EXAMPLES / "lamp_nod.anim"))
    start = bpy.context.scene.frame_start
    for frame in (0, 13, 40):
        bpy.context.scene.frame_set(start + frame)
        (points,) = scene.posed(scene.clips[0], frame / 30).values()
        assert np.abs(shown(bpy, lamp) - points).max() < 1e-4, frame


def test_animated_nodes_and_vertices_move_as_in_blender(clean_blender: Any) -> None:
    bpy = clean_blender
    objects = imported(bpy, EXAMPLES / "windmill.timbermesh")
    scene = meshferry.read(EXAMPLES / "windmill.timbermesh")
    start = bpy.context.scene.frame_start
    for frame in (0, 7, 30):
        bpy.context.scene.frame_set(start + frame)
        for node, points in scene.posed(scene.clips[0], frame / scene.clips[0].fps).items():
            if node.mesh is not None:
                assert np.abs(shown(bpy, objects[node.name]) - points).max() < 2e-4, (node, frame)


@pytest.mark.parametrize("name", ["content.node", "lamp.node", "animation.node", "table.node", "two_regions.oar"])
def test_placed_models_stand_where_an_import_puts_them(name: str, samples: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    paths = [
        path for folder in ("unigine_scenes", "opensim_archives") for path in sorted((samples / folder).rglob(name))
    ]
    assert paths
    for path in paths:
        scene = meshferry.read(path)
        mine = [corners(node) for node in scene.nodes if node.mesh is not None]
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
        imported(bpy, path)
        theirs = []
        for instance in bpy.context.evaluated_depsgraph_get().object_instances:
            if instance.object.type == "MESH" and instance.object.original.data is not None:
                points = np.empty(len(instance.object.data.vertices) * 3, np.float32)
                instance.object.data.vertices.foreach_get("co", points)
                matrix = np.array(instance.matrix_world)
                theirs.append(points.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3])
        if any(message.code == "unreadable-model" for message in scene.messages):
            assert len(mine) < len(theirs), path  # only Blender imports the model's source file
            continue
        one, other = (np.concatenate(some) for some in (mine, theirs))
        assert len(one) == len(other)
        for axis in range(3):
            assert np.abs(np.sort(one[:, axis]) - np.sort(other[:, axis])).max() < 1e-3, path


def corners(node: meshferry.Node) -> Any:
    matrix = node.world_matrix
    return node.mesh.points @ matrix[:3, :3].T + matrix[:3, 3]


def test_gltf_looks_the_same_in_blender(tmp_path: Path, clean_blender: Any) -> None:
    """Blender's own importer shows the posed points, and the shape key."""
    bpy = clean_blender
    scene = meshferry.read(EXAMPLES / "lamp.mesh")
    scene.add_clips(meshferry.read(EXAMPLES / "lamp_nod.anim"))
    path = tmp_path / "lamp.glb"
    path.write_bytes(scene.to_gltf()[0])
    bpy.context.scene.render.fps = 30
    assert bpy.ops.import_scene.gltf(filepath=str(path)) == {"FINISHED"}
    (lamp,) = (obj for obj in bpy.data.objects if obj.type == "MESH" and obj.data.shape_keys)
    assert [key.name for key in lamp.data.shape_keys.key_blocks] == ["Basis", "wide"]
    (mesh,) = scene.meshes
    _, split = split_mesh(replace(mesh._core, tangent=None, custom=[]), NORMAL_TOLERANCE)
    point, uvs = mesh.triangles.reshape(-1)[split.vertex_corner], np.empty(len(lamp.data.loops) * 2, np.float32)
    lamp.data.uv_layers[0].uv.foreach_get("vector", uvs)
    assert np.allclose(np.sort(uvs.reshape(-1, 2), axis=0), np.sort(mesh.uvs[0].reshape(-1, 2), axis=0))
    for frame in (0, 13, 40):
        bpy.context.scene.frame_set(frame)
        (points,) = scene.posed(scene.clips[0], frame / 30).values()
        found = shown(bpy, lamp)
        assert len(found) == len(point)
        for axis in range(3):
            assert np.abs(np.sort(found[:, axis]) - np.sort(points[point][:, axis])).max() < 1e-3, frame
