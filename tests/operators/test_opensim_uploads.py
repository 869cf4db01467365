"""Uploads to OpenSim from Blender: which object becomes the root of the linkset, through all ways of exporting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import opensim_uploads
import pytest

pytestmark = pytest.mark.needs_bpy
pytest.importorskip("llsd")

PLACES = {"A": (0.0, 0.0, 0.0), "B": (4.0, 0.0, 0.0), "C": (0.0, 4.0, 1.0), "D": (4.0, 4.0, 0.0)}


def build(bpy: Any, parents: str = "", marked: str = "", active: str | None = None, empties: str = "") -> None:
    """Make a cube for each letter of ``PLACES``, all with the same mesh, and an empty for each letter of ``empties``.

    ``parents`` has pairs of letters: child and parent.
    """
    mesh = None
    for name, place in PLACES.items():
        bpy.ops.mesh.primitive_cube_add(size=1)
        obj = bpy.context.object
        mesh = obj.data = mesh or obj.data
        obj.name, obj.location = name, place
        obj.meshferry.is_linkset_root = name in marked
    for name in empties:
        bpy.context.scene.collection.objects.link(bpy.data.objects.new(name, None))
    bpy.context.view_layer.update()
    objects = bpy.data.objects
    for child, parent in parents.split():
        objects[child].parent = objects[parent]
        objects[child].matrix_parent_inverse = objects[parent].matrix_world.inverted()
    bpy.context.view_layer.objects.active = objects[active] if active else None
    for obj in objects:
        obj.select_set(True)
    bpy.context.view_layer.update()


def uploaded(bpy: Any, folder: Path, **options: Any) -> list[opensim_uploads.Prim]:
    """Return the linkset that a released server makes of an export."""
    path = folder / "x.llsd"
    options = {"server": "OPENSIM", "missing_levels": "COPY", **options}
    assert bpy.ops.export_scene.second_life_request(filepath=str(path), **options) == {"FINISHED"}
    return opensim_uploads.upload(opensim_uploads.parse(path.read_bytes()), is_released=True)


RULES = {
    "neither mark, parent nor active object: the first by name": ({}, "A"),
    "the active object": ({"active": "C"}, "C"),
    "the parent of the others": ({"parents": "AD BD CD", "active": "B"}, "D"),
    "the parent over several steps": ({"parents": "AB BC CD", "active": "B"}, "D"),
    "the parent through an empty": ({"parents": "AE BE CE ED", "empties": "E", "active": "B"}, "D"),
    "an empty is not a part, though the parent of all": ({"parents": "AE BE CE DE", "empties": "E"}, "A"),
    "an active empty is not a part": ({"empties": "E", "active": "E"}, "A"),
    "a parent of some": ({"parents": "AD BD", "active": "C"}, "C"),
    "the marked one before parent and active object": ({"parents": "AD BD CD", "marked": "C", "active": "B"}, "C"),
    "several marked: the parent of these": ({"parents": "BC CD", "marked": "BC", "active": "B"}, "C"),
    "several marked, but not their parent": ({"parents": "BD CD", "marked": "BC"}, "B"),
    "several marked: the active one": ({"marked": "BCD", "active": "C"}, "C"),
    "several marked, another active: the first by name": ({"marked": "CD", "active": "B"}, "C"),
    "several marked, no active object: the first by name": ({"marked": "CD"}, "C"),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_root_of_the_linkset(rule: str, clean_blender: Any, tmp_path: Path) -> None:
    made, root = RULES[rule]
    build(clean_blender, **made)
    prims = uploaded(clean_blender, tmp_path)
    order = [prim.name for prim in prims]
    assert order[0] == root
    assert sorted(order) == list(PLACES)
    for prim in prims:
        np.testing.assert_allclose(prim.position, PLACES[prim.name], atol=1e-6)
        assert prim.scale == [1.0, 1.0, 1.0]


def test_second_life_ignores_marks_and_parents(clean_blender: Any, tmp_path: Path) -> None:
    build(clean_blender, parents="AD BD CD", marked="D", active="C")
    path = tmp_path / "x.llsd"
    clean_blender.ops.export_scene.second_life_request(filepath=str(path))
    body = opensim_uploads.parse(path.read_bytes())
    assert [instance["mesh_name"] for instance in body["instance_list"]] == ["C", "A", "B", "D"]
    assert {instance["mesh"] for instance in body["instance_list"]} == {0}


def test_an_active_level_of_detail_stands_for_its_object(clean_blender: Any, tmp_path: Path) -> None:
    build(clean_blender)
    level = clean_blender.data.objects["C"].copy()
    level.name = "C_LOD1"
    clean_blender.context.scene.collection.objects.link(level)
    clean_blender.context.view_layer.objects.active = level
    assert [prim.name for prim in uploaded(clean_blender, tmp_path)] == ["C", "A", "B", "D"]


def test_a_mirrored_and_scaled_root(clean_blender: Any, tmp_path: Path) -> None:
    build(clean_blender, marked="D", active="A", parents="AE BE", empties="E")
    root, empty = (clean_blender.data.objects[name] for name in "DE")
    root.scale, empty.scale = (-2.0, 1.0, 3.0), (-1.0, 1.0, 1.0)
    prims = uploaded(clean_blender, tmp_path)
    assert prims[0].name == "D"
    np.testing.assert_allclose(prims[0].scale, (2.0, 1.0, 3.0), rtol=1e-6)
    np.testing.assert_allclose(prims[0].position, PLACES["D"], atol=1e-6)
    shown = {prim.name: prim.position for prim in prims}
    np.testing.assert_allclose(shown["B"], (-4.0, 0.0, 0.0), atol=1e-6)


def test_faces_show_their_materials(clean_blender: Any, tmp_path: Path) -> None:
    """Materials of Blender: textured, coloured and none."""
    bpy = clean_blender
    build(bpy)
    white = tmp_path / "grain.j2c"
    made = bpy.data.images.new("grain", 32, 32)
    settings = bpy.context.scene.render.image_settings
    settings.file_format, settings.color_mode, settings.jpeg2k_codec = "JPEG2000", "RGB", "J2K"
    made.save_render(str(white), scene=bpy.context.scene)
    wood, red = (bpy.data.materials.new(name) for name in ("wood", "red"))
    for material in (wood, red):
        material.use_nodes = True
    image = wood.node_tree.nodes.new("ShaderNodeTexImage")
    image.image = bpy.data.images.load(str(white))
    shader = wood.node_tree.nodes["Principled BSDF"]
    wood.node_tree.links.new(image.outputs["Color"], shader.inputs["Base Color"])
    red.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = (1.0, 0.0, 0.0, 1.0)
    cube = bpy.data.objects["A"]
    cube.data = cube.data.copy()
    for material in (wood, red):
        cube.data.materials.append(material)
    cube.data.polygons[0].material_index = 1
    root, *others = uploaded(bpy, tmp_path)
    (texture, color, _), (plain, other_color, _) = root.looks
    assert texture == white.read_bytes()
    assert (color, other_color) == ((255,) * 4, (255, 0, 0, 255))
    assert {prim.looks[0][0] for prim in others} == {plain} != {None}
    assert plain != texture


def import_archive(bpy: Any, path: Path) -> None:
    assert bpy.ops.import_scene.second_life(filepath=str(path)) == {"FINISHED"}


@pytest.mark.slow
def test_the_root_of_an_imported_archive_is_kept(clean_blender: Any, samples: Path, tmp_path: Path) -> None:
    """Each linkset of the sample region is uploaded alone, with its first and last part as the active object."""
    from meshferry.blender_data import names

    bpy = clean_blender
    folder = samples / "opensim_archives"
    import_archive(bpy, folder / "region.oar")
    parts = json.loads((folder / "expected.json").read_bytes())["region.oar"]["parts"]
    roots = {part["name"]: part for part in parts if part["root"]}
    compared = []
    for empty in [obj for obj in bpy.data.objects if obj.type == "EMPTY"]:
        meshes = [obj for obj in empty.children if obj.type == "MESH" and obj.visible_get()]
        root = roots.get(names.name_in_file(empty))
        for obj in bpy.context.view_layer.objects:
            obj.select_set(obj in meshes or obj == empty)
        if root is None or len(meshes) < 2:
            continue
        for active in (meshes[0], meshes[-1]):
            bpy.context.view_layer.objects.active = active
            prims = uploaded(bpy, tmp_path, scope="SELECTION")
            assert len(prims) == len(meshes)
            assert prims[0].name == root["name"]
            if root["kind"] == "mesh":  # these fill their sizes
                np.testing.assert_allclose(prims[0].position, root["position"], atol=1e-4)
                np.testing.assert_allclose(prims[0].scale, root["size"], rtol=1e-5)
        compared.append(root["linkset"])
    assert sorted(compared) == ["blank and missing", "linkset of five", "prims", "sculpts", "shared asset"]


def test_a_copy_of_the_root_is_marked_too(clean_blender: Any, samples: Path, tmp_path: Path) -> None:
    bpy = clean_blender
    import_archive(bpy, samples / "opensim_archives" / "region.oar")
    marked = [obj for obj in bpy.data.objects if obj.meshferry.is_linkset_root]
    assert marked and all(obj.parent is not None and obj.parent.type == "EMPTY" for obj in marked)
    assert len({obj.parent for obj in marked}) == len(marked)
    assert marked[0].copy().meshferry.is_linkset_root


def test_collections_and_the_command_line_have_the_option(clean_blender: Any, tmp_path: Path) -> None:
    from meshferry.cli import main

    bpy = clean_blender
    build(bpy, parents="AD BD CD", active="B")
    parts = bpy.data.collections.new("Parts")
    bpy.context.scene.collection.children.link(parts)
    for name in PLACES:
        parts.objects.link(bpy.data.objects[name])
        bpy.context.scene.collection.objects.unlink(bpy.data.objects[name])
    bpy.context.view_layer.active_layer_collection = bpy.context.view_layer.layer_collection.children["Parts"]
    bpy.ops.collection.exporter_add(name="IO_FH_second_life_request")
    exporter, path = parts.exporters[0], tmp_path / "Parts.llsd"
    (exporter if hasattr(exporter, "filepath") else exporter.export_properties).filepath = str(path)
    exporter.export_properties.server = "OPENSIM"
    bpy.ops.collection.export_all()
    blend = tmp_path / "parts.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(blend), check_existing=False)
    assert main.main(["convert", str(blend), str(tmp_path / "shell.llsd"), "--server", "OPENSIM"]) == 0
    for file in (path, tmp_path / "shell.llsd"):
        prims = opensim_uploads.upload(opensim_uploads.parse(file.read_bytes()), is_released=True)
        assert [prim.name for prim in prims] == ["D", "B", "A", "C"]
