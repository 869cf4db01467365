"""Levels of detail through Blender and back into one file, and objects joined where they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.options import resolve
from meshferry.io_formats.passes.lods import separate
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

pytestmark = pytest.mark.needs_bpy

NAMES = ["bark_lod_0", "bark_lod_1", "leaf_lod_0", "sign", "leaf_lod_1"]


def scene_of_levels() -> sc.Scene:
    """Return a triangle for each surface, each higher than the one before."""
    count = len(NAMES)
    points = np.tile(np.float32([[0, 0, 0], [1, 0, 0], [0, 1, 0]]), (count, 1))
    points[:, 2] = np.repeat(np.arange(count), 3)
    index = np.arange(3 * count, dtype=np.int32)
    mesh = sc.Mesh(
        points,
        index,
        np.arange(count, dtype=np.int32),
        materials=NAMES,
        normal=sc.Layer("normal", np.tile(np.float32([0, 0, 1]), (3 * count, 1)), index),
        uvs=[sc.Layer("UV0", points[:, :2].copy(), index)],
        surfaces=[sc.Surface(name, uvs=(True,), has_colors=False) for name in NAMES],
    )
    return sc.Scene("tree", [sc.Node("tree", mesh=mesh)])


def exported(collection: Any, **options: Any) -> sc.Scene:
    import bpy
    from meshferry.blender_data import export_options
    from meshferry.blender_data.export_options import EXPORT_OPTIONS
    from meshferry.blender_data.exporting import exporter, object_selection

    source = object_selection.Source("COLLECTION", collection)
    chosen = resolve(EXPORT_OPTIONS, {"use_hidden": True, **options})
    return exporter.export_scene(
        export_options.ExportRequest(
            bpy.context, source, export_options.ExportOptions.of(chosen), "file", UNIGINE_MESH.capabilities
        )
    )


def test_levels_of_detail_go_back_into_their_file() -> None:
    import bpy
    from meshferry.blender_data.importing import import_options, importer

    made = importer.import_scene(
        import_options.ImportRequest(bpy.context, separate(scene_of_levels()), import_options.ImportOptions.of())
    )
    assert sorted((obj.name, obj.meshferry.lod) for obj in bpy.data.objects) == [("tree", 0), ("tree_lod_1", 1)]
    parts = UNIGINE_MESH.files_of(exported(made.collection), {})
    assert [part.name for part in parts] == ["tree"]
    document = UNIGINE_MESH.from_scene(parts[0], {})
    assert [surface.name for surface in document.surfaces] == NAMES
    heights = [surface.targets[0].positions[:, 2].tolist() for surface in document.surfaces]
    assert heights == [[height] * 3 for height in range(len(NAMES))]


@pytest.mark.parametrize("space", ["TURNED_AND_SCALED", "OWN", "WORLD"])
def test_joined_objects_stand_as_in_the_scene(space: str) -> None:
    import bpy

    data = bpy.data.meshes.new("triangle")
    data.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    collection = bpy.data.collections.new("pair")
    bpy.context.scene.collection.children.link(collection)
    for name, location, angle in (("a", (3, 4, 5), 0.0), ("b", (13, 4, 5), np.pi / 2)):
        obj = bpy.data.objects.new(name, data)
        obj.location, obj.rotation_euler = location, (0, 0, angle)
        collection.objects.link(obj)
    bpy.context.view_layer.update()
    scene = exported(collection, space=space)
    (part,) = UNIGINE_MESH.files_of(scene, {"mesh_files": "JOINED"})
    assert part.name == "file"
    mesh = part.nodes[0].mesh
    assert mesh is not None
    origin = np.array((3, 4, 5) if space == "WORLD" else (0, 0, 0))
    wanted = origin + np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [10, 0, 0], [10, 1, 0], [9, 0, 0]])
    np.testing.assert_allclose(mesh.points, wanted, atol=1e-5)
    assert [part.name for part in UNIGINE_MESH.files_of(scene, {})] == ["a", "b"]
