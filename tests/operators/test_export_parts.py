"""Export of the parts of a layout, each around its own origin; judged by an independent reading of the files."""

import math

import numpy as np
import pytest
import timbermesh_oracle as oracle
from layout_parts import add_object, expected_points, make_mesh, points_of_file

pytestmark = pytest.mark.needs_bpy


def _export(bpy, folder, **options):
    bpy.context.view_layer.update()
    bpy.ops.export_scene.timbermesh_batch(directory=str(folder), **{"parts": "OBJECTS", **options})


def _turned(angle, scale=(1, 1, 1), location=(0, 0, 0)):
    cos, sin = math.cos(angle), math.sin(angle)
    matrix = np.array([[cos, -sin, 0, 0], [sin, cos, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) @ np.diag([*scale, 1])
    matrix[:3, 3] = location
    return matrix


@pytest.mark.parametrize("merging", ["MERGE", "KEEP"])
def test_each_object_is_written_around_its_location_with_its_own_rotation_and_scale(clean_blender, tmp_path, merging):
    bpy = clean_blender
    roof = add_object(bpy, "Roof", make_mesh(bpy, "Roof"), (10, 20, 5), math.radians(30), (2, 1, 0.5))
    add_object(bpy, "Beam", make_mesh(bpy, "Beam"), (1, 2, 3), math.radians(60), parent=roof)
    above = add_object(bpy, "Layout", None, (100, 0, 0), math.radians(90))
    wall = add_object(bpy, "Wall", make_mesh(bpy, "Wall"), (0, 7, 0), parent=above)
    above.select_set(False)
    _export(bpy, tmp_path, merging=merging)
    own = _turned(math.radians(30), (2, 1, 0.5))
    if merging == "MERGE":  # a mesh holds the shear of the beam, a node does not
        expected = expected_points(own) + expected_points(own @ _turned(math.radians(60), location=(1, 2, 3)))
        assert np.allclose(points_of_file(tmp_path / "Roof.Model.timbermesh"), sorted(expected), atol=2e-4)
    assert points_of_file(tmp_path / "Wall.Model.timbermesh") == expected_points(_turned(math.radians(90)))
    assert len(list(tmp_path.iterdir())) == 2
    assert wall.parent is above
    assert tuple(wall.location) == (0, 7, 0)


def test_the_world_as_origin_keeps_distances(clean_blender, tmp_path):
    bpy = clean_blender
    mesh = make_mesh(bpy, "Wall")
    for name, x in (("Wall", 3), ("Wall.001", 9)):
        add_object(bpy, name, mesh, (x, 0, 0))
    _export(bpy, tmp_path, around="WORLD")
    assert points_of_file(tmp_path / "Wall.Model.timbermesh") == expected_points(_turned(0, location=(3, 0, 0)))
    assert points_of_file(tmp_path / "Wall.001.Model.timbermesh") == expected_points(_turned(0, location=(9, 0, 0)))


@pytest.mark.parametrize("parts", ["OBJECTS", "COLLECTIONS"])
def test_an_empty_named_origin_is_the_origin_and_is_not_written(clean_blender, tmp_path, parts):
    """Its location and rotation count; the scale that it has from its parent belongs to the model."""
    bpy = clean_blender
    collection = bpy.data.collections.new("Lodge")
    bpy.context.scene.collection.children.link(collection)
    lodge = add_object(bpy, "Lodge", make_mesh(bpy, "Lodge"), (5, 5, 0), 0.0, (2, 2, 2), collection=collection)
    mark = add_object(bpy, "#Origin.002", None, (1, 0, 0), math.radians(90), parent=lodge, collection=collection)
    _export(bpy, tmp_path, parts=parts, collections="Lodge", merging="KEEP")
    (path,) = tmp_path.iterdir()
    # the mark is at (7, 5, 0), turned by 90 degrees
    back = np.linalg.inv(_turned(math.radians(90), location=(7, 5, 0)))
    assert points_of_file(path) == expected_points(back @ _turned(0, (2, 2, 2), (5, 5, 0)))
    assert not any("Origin" in node.name for node in oracle.parse(path.read_bytes()).nodes)
    assert mark.name == "#Origin.002"


def test_several_origins_in_a_part_stop_only_that_part(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    for name in ("Lodge", "Mill"):
        collection = bpy.data.collections.new(name)
        bpy.context.scene.collection.children.link(collection)
        add_object(bpy, name, make_mesh(bpy, name), collection=collection)
        for _ in range(2 if name == "Lodge" else 1):
            add_object(bpy, "#Origin", collection=collection)
    _export(bpy, tmp_path, parts="COLLECTIONS", collections="Lodge\nMill")
    assert [path.name for path in tmp_path.iterdir()] == ["Mill.Model.timbermesh"]
    assert "Several empties mark an origin" in capfd.readouterr().out


def test_a_collection_is_written_around_its_offset(clean_blender, tmp_path):
    bpy = clean_blender
    collection = bpy.data.collections.new("Lodge")
    bpy.context.scene.collection.children.link(collection)
    add_object(bpy, "Lodge", make_mesh(bpy, "Lodge"), (5, 5, 1), collection=collection)
    for offset in ((0, 0, 0), (4, 5, 0)):
        collection.instance_offset = offset
        _export(bpy, tmp_path, parts="COLLECTIONS", collections="Lodge")
        assert points_of_file(tmp_path / "Lodge.Model.timbermesh") == expected_points(
            _turned(0, location=np.subtract((5, 5, 1), offset))
        )


def test_objects_that_share_their_mesh_become_one_file(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    mesh = make_mesh(bpy, "Wall")
    for number, x in enumerate((3, 9, 12)):
        add_object(
            bpy, f"Wall.{number:03}" if number else "Wall", mesh, (x, 0, 0), rotation=math.radians(90) * (x == 12)
        )
    other = add_object(bpy, "Shorter", mesh, (20, 0, 0))
    modifier = other.modifiers.new("Array", "ARRAY")
    modifier.count = 2
    painted = add_object(bpy, "Painted", mesh, (30, 0, 0))
    mesh.materials.append(None)
    painted.material_slots[0].link = "OBJECT"
    painted.material_slots[0].material = bpy.data.materials.new("BaseWood_Brown.Folktails")
    _export(bpy, tmp_path)
    names = ["Painted.Model.timbermesh", "Shorter.Model.timbermesh", "Wall.Model.timbermesh"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert points_of_file(tmp_path / names[2]) == expected_points(np.identity(4))
    said = capfd.readouterr().out
    assert "'Wall.002'" in said
    assert "'Wall.001'" not in said


def test_an_animated_object_keeps_its_movement_around_its_rest(clean_blender, tmp_path):
    bpy = clean_blender
    arm = add_object(bpy, "#Arm", make_mesh(bpy, "Arm"), (10, 0, 0))
    for frame, height in ((1, 0.0), (10, 2.0)):
        arm.location.z = height
        arm.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(7)
    _export(bpy, tmp_path)
    path = tmp_path / "Arm.Model.timbermesh"
    node = next(node for node in oracle.parse(path.read_bytes()).nodes if node.name == "#Arm")
    assert (node.position.x, node.position.y, node.position.z) == (0, 0, 0)
    heights = [frame.position.y for frame in node.nodeAnimations[0].frames]
    assert heights[0] == 0
    assert heights[-1] == pytest.approx(2.0)


def test_without_selected_objects_nothing_is_written(clean_blender, tmp_path):
    with pytest.raises(RuntimeError, match="Select the objects to export"):
        _export(clean_blender, tmp_path)
