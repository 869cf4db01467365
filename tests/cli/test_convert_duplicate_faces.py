"""Faces with the same vertices as others, which ``Mesh.validate`` deletes in Blender's exporters and importers."""

import json
import re
import struct

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

LEAF = [(0, 1, 2), (2, 1, 0), (1, 3, 2), (2, 3, 1), (0, 1, 2)]
"""Two triangles, the back of each, and the front of the first again."""
POINTS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0.5)]


def write_leaf(path):
    """Write a two-sided leaf as a file of UNIGINE, whose corners have normals of their own."""
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene

    triangles = np.array(LEAF, np.int32)
    points = np.array(POINTS, np.float32)
    edges = points[triangles[:, 1:]] - points[triangles[:, :1]]
    normals = np.cross(edges[:, 0], edges[:, 1])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    mesh = Mesh(
        points=points,
        corner_point=triangles.ravel(),
        material_index=np.zeros(len(LEAF), np.int32),
        materials=["leaf"],
        normal=Layer("normal", np.repeat(normals, 3, axis=0).astype(np.float32), per_corner=True),
    )
    api.write_scene(Scene("leaf", [Node("leaf", mesh=mesh)]), path, registry.by_extension(path.suffix))
    return path


def open_meshes(path):
    """Open a .blend file; return its meshes."""
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(path))
    return [obj.data for obj in bpy.data.objects if obj.type == "MESH"]


def triangles_of(mesh, *, with_normals):
    """Return the corners of all faces and their normals, in an order of their own."""
    corners = [tuple(np.round(mesh.vertices[v].co, 4) + 0.0) for face in mesh.polygons for v in face.vertices]
    normals = [tuple(np.round(normal.vector, 1) + 0.0) for normal in mesh.corner_normals]
    if not with_normals:
        normals = corners
    return sorted(
        sorted(zip(corners[at : at + 3], normals[at : at + 3], strict=True)) for at in range(0, len(corners), 3)
    )


def glb_json(data):
    (size,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[20 : 20 + size])


def stated_faces(path):
    """Return how many faces a file has, by the specification of its format; None for binary ones of nested blocks."""
    data = path.read_bytes()
    if path.suffix in {".glb", ".gltf"}:
        content = json.loads(data) if path.suffix == ".gltf" else glb_json(data)
        primitives = [primitive for mesh in content["meshes"] for primitive in mesh["primitives"]]
        return sum(content["accessors"][primitive["indices"]]["count"] for primitive in primitives) // 3
    if path.suffix == ".ply":
        return int(re.search(rb"element face (\d+)", data)[1])
    return len(re.findall(rb"^f ", data, re.MULTILINE)) if path.suffix == ".obj" else None


@pytest.mark.parametrize("kind", ["glb", "gltf", "ply", "fbx", "obj"])
def test_two_sided_triangles_are_written_and_read_back(meshferry, tmp_path, kind):
    source = write_leaf(tmp_path / "leaf.mesh")
    done = meshferry("convert", "--json", source, tmp_path / f"leaf.{kind}")
    (entry,) = done.entries
    assert entry["facts"]["triangles"] == len(LEAF)
    assert "missing_faces" not in entry["facts"] and not [text for text in entry["warnings"] if "valid" in text]
    assert stated_faces(tmp_path / f"leaf.{kind}") in {len(LEAF), None}
    assert meshferry("convert", source, tmp_path / "wanted.blend").status == 0
    back = meshferry("convert", tmp_path / f"leaf.{kind}", tmp_path / "back.blend")
    assert back.status == 0 and "left out" not in back.err
    with_normals = kind != "ply"  # which has one normal a vertex
    (wanted,) = [triangles_of(mesh, with_normals=with_normals) for mesh in open_meshes(tmp_path / "wanted.blend")]
    (found,) = [triangles_of(mesh, with_normals=with_normals) for mesh in open_meshes(tmp_path / "back.blend")]
    assert found == wanted


def save_shapes(path):
    """Save a metaball, a curve with a tube around it, one without, and a triangle."""
    import bpy
    from meshferry.cli.conversions.blend_files import BlendSession

    with BlendSession() as session:
        session.start_empty()
        ball = bpy.data.metaballs.new("Ball")
        ball.elements.new()
        curves = [bpy.data.curves.new(name, "CURVE") for name in ("Tube", "Line")]
        for curve in curves:
            curve.splines.new("POLY").points.add(1)
            curve.splines[0].points[1].co = (1, 0, 0, 1)
        curves[0].bevel_depth = 0.1
        mesh = bpy.data.meshes.new("Flat")
        mesh.from_pydata(POINTS[:3], [], LEAF[:1])
        for data in (ball, *curves, mesh):
            bpy.context.scene.collection.objects.link(bpy.data.objects.new(data.name, data))
        session.save(path, compress=False)
    return path


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [("glb", "Ball"), ("gltf", "Ball"), ("fbx", "Ball"), ("obj", ""), ("ply", ""), ("usd", "Tube"), ("usdz", "Tube")],
)
def test_surfaces_that_the_exporter_leaves_out_are_reported(meshferry, tmp_path, kind, left_out):
    import bpy

    if kind.startswith("usd") and "usd_export" not in dir(bpy.ops.wm):
        pytest.skip("this Blender is built without USD")
    source = save_shapes(tmp_path / "shapes.blend")
    for more in (("--dry-run",), ()):
        (entry,) = meshferry("convert", "--json", *more, source, tmp_path / f"shapes.{kind}").entries
        reports = [text for text in entry["warnings"] if "Blender's exporter" in text]
        missing = entry["facts"].get("missing_faces", 0)
        faces = "triangles" if kind in {"glb", "gltf"} else "faces"
        assert reports == ([f"{missing} {faces} not carried over by Blender's exporter: '{left_out}'"] * bool(left_out))
        assert (missing > 0) == bool(left_out)
    strict = meshferry("convert", "--strict", source, tmp_path / f"strict.{kind}")
    assert ("Blender's exporter" in strict.err) == bool(left_out)
    assert not (left_out and (tmp_path / f"strict.{kind}").exists())
    assert meshferry("convert", tmp_path / f"shapes.{kind}", tmp_path / "back.blend").status == 0
    assert open_meshes(tmp_path / "back.blend")
    found = {obj.name for obj in bpy.data.objects if obj.type == "MESH" and obj.data.polygons}
    assert kind == "ply" or found & {"Ball", "Tube", "Flat"} == {"Ball", "Tube", "Flat"} - {
        left_out
    }  # PLY has no names


def test_faces_that_the_importer_drops_are_reported(meshferry, tmp_path):
    source = write_leaf(tmp_path / "leaf.mesh")
    assert meshferry("convert", source, tmp_path / "leaf.glb").status == 0
    data = bytearray((tmp_path / "leaf.glb").read_bytes())
    content = glb_json(data)
    (primitive,) = content["meshes"][0]["primitives"]
    view = content["bufferViews"][content["accessors"][primitive["indices"]]["bufferView"]]
    start = 28 + struct.unpack_from("<I", data, 12)[0] + view["byteOffset"]
    data[start + 6 : start + 12] = data[start : start + 6]  # the second triangle is the first again
    (tmp_path / "twice.glb").write_bytes(data)
    for target in ("twice.timbermesh", "twice.blend", "twice.obj"):
        done = meshferry("convert", tmp_path / "twice.glb", tmp_path / target)
        assert done.status == 0
        assert "1 of 5 triangles left out by Blender's importer" in done.err
        strict = meshferry("convert", "--strict", tmp_path / "twice.glb", tmp_path / f"strict.{target}")
        assert strict.status == 1


def test_faces_of_one_and_two_corners_in_fbx_files_are_removed(meshferry, tmp_path):
    """Blender's importer makes them, and crashed when their triangles were read."""
    import bpy

    objects = make_leaf_in_blender()
    objects[0].data.validate()
    bpy.ops.export_scene.fbx(filepath=str(tmp_path / "leaf.fbx"), use_mesh_modifiers=False)
    data = bytearray((tmp_path / "leaf.fbx").read_bytes())
    faces = len(objects[0].data.polygons)
    first = data.index(b"PolygonVertexIndexi") + len(b"PolygonVertexIndexi") + 12
    data[first : first + 4] = bytes(255 - byte for byte in data[first : first + 4])  # a face ends at its first corner
    (tmp_path / "leaf.fbx").write_bytes(data)
    done = meshferry("convert", tmp_path / "leaf.fbx", tmp_path / "leaf.timbermesh")
    assert done.status == 0
    assert f"2 of {2 * (faces - 1) + 2} faces left out by Blender's importer" in done.err


def make_leaf_in_blender():
    """Return two objects of one leaf, with a shape key, weights and smooth shading."""
    import bpy

    mesh = bpy.data.meshes.new("leaf")
    mesh.from_pydata(POINTS, [], LEAF)
    mesh.shade_smooth()
    mesh.uv_layers.new().uv.foreach_set("vector", np.arange(2 * len(mesh.loops), dtype=np.float32))
    objects = [bpy.data.objects.new(f"leaf {number}", mesh) for number in range(2)]
    for obj in objects:
        bpy.context.scene.collection.objects.link(obj)
    objects[0].shape_key_add(name="Basis")
    objects[0].shape_key_add(name="Bent").points[3].co = (1, 1, 2)
    objects[0].vertex_groups.new(name="tip").add([3], 0.25, "REPLACE")
    bpy.context.view_layer.update()
    return objects


def content_of(mesh):
    """Return what the corners of a mesh hold, whichever vertices they belong to."""
    vertices = [vertex for face in mesh.polygons for vertex in face.vertices]
    return {
        "place": [tuple(mesh.vertices[vertex].co) for vertex in vertices],
        "bent": [tuple(mesh.shape_keys.key_blocks["Bent"].points[vertex].co) for vertex in vertices],
        "weights": [[group.weight for group in mesh.vertices[vertex].groups] for vertex in vertices],
        "uv": [tuple(element.vector) for element in mesh.uv_layers[0].uv],
    }


def normals_of(mesh):
    return np.array([normal.vector for normal in mesh.corner_normals])


def test_only_a_copy_of_the_mesh_gets_more_vertices():
    import bpy
    from meshferry.blender_data.addon_formats import unsupported_data

    objects = make_leaf_in_blender()
    mesh = objects[0].data
    before, normals, order = content_of(mesh), normals_of(mesh), [tuple(face.vertices) for face in mesh.polygons]
    blocks = {kind: sorted(block.name for block in getattr(bpy.data, kind)) for kind in ("meshes", "shape_keys")}
    with unsupported_data.separated_faces(objects):
        copy = objects[0].data
        assert copy is not mesh and objects[1].data == copy and copy.name == "leaf"
        assert len(copy.vertices) == 4 + 4 + 3  # the backs share vertices among themselves
        assert content_of(copy) == before
        is_known = normals.any(axis=1)  # opposite sides of one vertex cancel each other out
        assert normals_of(copy)[is_known] == pytest.approx(normals[is_known], abs=2e-3)
        assert not copy.validate() and len(copy.polygons) == len(LEAF)
    assert [obj.data for obj in objects] == [mesh, mesh] and mesh.name == "leaf"
    assert [tuple(face.vertices) for face in mesh.polygons] == order and not mesh.has_custom_normals
    assert blocks == {kind: sorted(block.name for block in getattr(bpy.data, kind)) for kind in blocks}


def test_faces_with_the_same_vertices_are_found_in_any_order():
    import bpy
    from meshferry.blender_data.addon_formats.unsupported_data import duplicate_ranks

    mesh = bpy.data.meshes.new("mixed")
    faces = [(0, 1, 2, 3), (1, 2, 3), (3, 2, 1, 0), (0, 1, 2), (2, 3, 1), (1, 3, 0, 2), (3, 1, 2)]
    mesh.from_pydata(POINTS, [], faces)
    sets = [frozenset(face) for face in faces]
    assert duplicate_ranks(mesh).tolist() == [sets[:at].count(one) for at, one in enumerate(sets)]
    assert duplicate_ranks(bpy.data.meshes.new("empty")).tolist() == []
