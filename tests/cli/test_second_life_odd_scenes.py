"""Odd .blend files on their way to Second Life: what comes out is right, or one sentence says why nothing does."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import second_life_oracle as oracle

pytestmark = pytest.mark.needs_bpy

JOINTS = {
    "mPelvis": (0, 0, 1.067),
    "mTorso": (0, 0, 1.151),
    "mChest": (0, 0.015, 1.356),
    "mHipLeft": (0.127, -0.034, 1.026),
    "mHipRight": (-0.129, -0.034, 1.026),
}
"""Places on the standard avatar, which faces -Y."""


def cube(bpy, name="Box", materials=("wood",), **more):
    bpy.ops.mesh.primitive_cube_add(size=1, **more)
    obj = bpy.context.object
    obj.name = obj.data.name = name
    for material in materials:
        obj.data.materials.append(material and (bpy.data.materials.get(material) or bpy.data.materials.new(material)))
    for number, polygon in enumerate(obj.data.polygons):
        polygon.material_index = number % max(len(materials), 1)
    return obj


def rig(bpy, joints=None, size=1.0):
    bpy.ops.object.armature_add()
    made = bpy.context.object
    bpy.ops.object.mode_set(mode="EDIT")
    bones = made.data.edit_bones
    bones.remove(bones[0])
    for name, place in (joints or JOINTS).items():
        bone = bones.new(name)
        bone.head = [size * number for number in place]
        bone.tail = [bone.head.x, bone.head.y, bone.head.z + 0.1 * size]
        if bone != bones[0]:
            bone.parent = bones[0]
    bpy.ops.object.mode_set(mode="OBJECT")
    return made


def bind(obj, armature, **weights):
    for name, weight in weights.items():
        group = obj.vertex_groups.new(name=name.replace("__", " "))
        group.add(range(len(obj.data.vertices)), weight, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = armature
    obj.parent = armature


@pytest.fixture
def convert(meshferry, tmp_path):
    """Return a function that fills an empty scene, saves and converts it; it returns the result and the files."""

    def run(fill, kind, *options):
        import bpy

        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        fill(bpy)
        path = tmp_path / "odd.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        out = tmp_path / kind
        done = meshferry("convert", "--json", path, "--to", kind, "-o", out, *options)
        return done, sorted(out.iterdir()) if out.is_dir() else []

    return run


def bounds(asset):
    """Where the high level is in its own space, in metres; a rigged one in that of the avatar, X forward."""
    faces = [face for face in asset.levels["high_lod"] if not face.no_geometry]
    points = np.concatenate([face.positions for face in faces])
    placed = np.hstack((points, np.ones((len(points), 1)))) @ (
        np.diag([*asset.scale, 1]) if asset.skin is None else asset.skin.bind_shape
    )
    return [placed[:, :3].min(axis=0).round(4).tolist(), placed[:, :3].max(axis=0).round(4).tolist()]


def looks_outward(asset):
    """Require that every triangle of a convex mesh runs counter-clockwise seen from outside, and its normals agree."""
    for face in asset.levels["high_lod"]:
        if face.no_geometry:
            continue
        corners = face.positions[face.triangles].astype(float) * asset.scale
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert (np.einsum("ij,ij->i", across, corners.mean(axis=1)) > 0).all()
        normals = (face.normals[face.triangles].astype(float) / asset.scale).sum(axis=1)
        assert (np.einsum("ij,ij->i", across, normals) > 0).all()


def no_uv(bpy):
    obj = cube(bpy)
    obj.data.uv_layers.remove(obj.data.uv_layers[0])


def empty_slots(bpy):
    cube(bpy, materials=(None, "wood", None))


def mirrored(bpy):
    cube(bpy).scale = (-1, 1, 1)


def sheared(bpy):
    bpy.ops.object.empty_add()
    empty = bpy.context.object
    empty.scale, empty.rotation_euler = (-1, 2, 1), (0, 0, 0.5)
    obj = cube(bpy)
    obj.parent, obj.rotation_euler = empty, (0, 0, 0.7)


def foreign_names(bpy):
    cube(bpy, "Häuschen 家", ("Стекло", "<&>\"'", "x\x01y"))


def no_faces_beside(bpy):
    cube(bpy)
    edges = bpy.data.meshes.new("edges")
    edges.from_pydata([(0, 0, 0), (9, 9, 9)], [(0, 1)], [])
    bpy.context.collection.objects.link(bpy.data.objects.new("edges", edges))


@pytest.mark.parametrize("fill", [no_uv, empty_slots, mirrored, sheared, foreign_names, no_faces_beside])
def test_a_static_box_is_a_box(fill, convert):
    done, (path,) = convert(fill, "llmesh")
    assert done.status == 0, done.err
    asset = oracle.decode(path.read_bytes())
    if fill is not sheared:
        assert bounds(asset) == [[-0.5] * 3, [0.5] * 3]
    looks_outward(asset)
    assert len({len(faces) for faces in asset.levels.values()}) == 1
    # Levels that were made of a box are less than a box; what one stands on is not.
    assert asset.hulls is not None
    assert len(asset.hulls.base) == 8
    done, paths = convert(fill, "dae")
    assert done.status == 0, done.err
    assert len(paths) == 4
    for path in paths:
        texts = [element.text or "" for element in ET.parse(path).iter()]
        assert not any(re.search(r"\b(?:nan|inf)\b", text) for text in texts)


def upright(bpy):
    bind(cube(bpy, location=(0, 0, 1)), rig(bpy), mPelvis=0.5, mTorso=0.5)


def in_centimetres(bpy):
    armature = rig(bpy, size=100)
    armature.scale = (0.01,) * 3
    bind(cube(bpy, location=(0, 0, 100), scale=(100, 100, 100)), armature, mPelvis=0.5, mTorso=0.5)


def facing_right(bpy):
    armature = rig(bpy)
    armature.rotation_euler.z = math.pi / 2
    bind(cube(bpy, location=(0, 0, 1)), armature, mPelvis=0.5, mTorso=0.5)


def posed(bpy):
    armature = rig(bpy)
    bind(cube(bpy, location=(0, 0, 1)), armature, mPelvis=0.5, mTorso=0.5)
    armature.pose.bones["mTorso"].rotation_quaternion = (0.7, 0.7, 0, 0)


def somewhere_else(bpy):
    upright(bpy)
    bpy.data.objects["Armature"].location = (50, 60, 70)


@pytest.mark.parametrize("fill", [upright, in_centimetres, facing_right, posed, somewhere_else])
def test_a_rigged_box_is_on_the_avatar(fill, convert):
    done, (path,) = convert(fill, "llmesh")
    assert done.status == 0, done.err
    asset = oracle.decode(path.read_bytes())
    assert bounds(asset) == [[-0.5, -0.5, 0.5], [0.5, 0.5, 1.5]]
    looks_outward(asset)
    assert asset.skin is not None
    assert sorted(asset.skin.joints) == ["mPelvis", "mTorso"]
    for joint, inverse in zip(asset.skin.joints, asset.skin.inverse_bind, strict=True):
        expected = np.eye(4)
        expected[3, 2] = -JOINTS[joint][2]
        np.testing.assert_allclose(inverse, expected, atol=1e-5)
    assert asset.skin.overrides is None
    for face in asset.levels["high_lod"]:
        np.testing.assert_allclose(asset.weights_of(face), 0.5, atol=2 / 65535)


def test_names_of_other_rigs_are_joints(convert):
    def fill(bpy):
        joints = {"hip": JOINTS["mPelvis"], "abdomen": JOINTS["mTorso"], "lThigh": JOINTS["mHipLeft"]}
        joints["rThigh"] = JOINTS["mHipRight"]
        bind(cube(bpy, location=(0, 0, 1)), rig(bpy, joints), hip=0.25, abdomen=0.75)

    done, (path,) = convert(fill, "llmesh")
    assert done.status == 0, done.err
    asset = oracle.decode(path.read_bytes())
    assert sorted(asset.skin.joints) == ["mPelvis", "mTorso"]
    weights = asset.weights_of(asset.levels["high_lod"][0])
    np.testing.assert_allclose(weights[:, asset.skin.joints.index("mTorso")], 0.75, atol=2 / 65535)


def test_twelve_materials_are_two_objects_in_one_box(convert):
    def fill(bpy):
        bpy.ops.mesh.primitive_grid_add(x_subdivisions=12, y_subdivisions=1, size=2)
        obj = bpy.context.object
        obj.name = "Many"
        for number in range(12):
            obj.data.materials.append(bpy.data.materials.new(f"m{number:02}"))
        for number, polygon in enumerate(obj.data.polygons):
            polygon.material_index = number

    done, paths = convert(fill, "llmesh")
    assert done.status == 0, done.err
    assert [path.name for path in paths] == ["odd.Many.llmesh", "odd.Many_b.llmesh"]
    one, other = (oracle.decode(path.read_bytes()) for path in paths)
    assert [len(part.levels["high_lod"]) for part in (one, other)] == [8, 4]
    assert (one.header.get("submodel_id"), other.header["submodel_id"]) == (None, 1)
    assert one.scale == other.scale == (2, 2, 1)
    assert bounds(one)[0][0] == -1
    assert bounds(other)[1][0] == 1
    done, paths = convert(fill, "slm", "--many-materials", "refuse")
    assert done.status == 1
    assert "Many" in done.entries[0]["error"]


def test_levels_by_name_are_found_wherever_they_lie(convert):
    def fill(bpy):
        cube(bpy)
        for number, place in enumerate(((5, 0, 0), (0, 5, 0), (0, 0, 5))):
            cube(bpy, f"Box_LOD{number}", location=place).hide_set(number == 1)
        bpy.data.objects["Box_LOD0"].hide_viewport = True
        cube(bpy, "Box_PHYS", (), location=(9, 9, 9))

    done, (path,) = convert(fill, "llmesh")
    assert done.status == 0, done.err
    asset = oracle.decode(path.read_bytes())
    for level in oracle.LEVELS:
        (face,) = asset.levels[level]
        assert len(face.triangles) == 12
        np.testing.assert_allclose(np.abs(face.positions), 0.5)
    assert asset.physics_mesh is not None


def not_a_number(bpy):
    cube(bpy).data.vertices[0].co.x = math.nan


def physics_not_a_number(bpy):
    cube(bpy)
    cube(bpy, "Box_PHYS").data.vertices[0].co.x = math.nan


def unknown_bone(bpy):
    armature = rig(bpy, JOINTS | {"wing.L": (0.5, 0, 1.2), "wing.R": (-0.5, 0, 1.2)})
    bind(cube(bpy, location=(0, 0, 1)), armature, **{"wing.L": 1.0})


def zero_scale(bpy):
    cube(bpy).scale = (0, 1, 1)


def giant(bpy):
    cube(bpy).scale = (1000, 1, 1)


def materials_of_a_level(bpy):
    cube(bpy)
    cube(bpy, "Box_LOD1", ("wood", "iron"))


def nothing(_bpy):
    pass


def edges_alone(bpy):
    edges = bpy.data.meshes.new("edges")
    edges.from_pydata([(0, 0, 0), (9, 9, 9)], [(0, 1)], [])
    bpy.context.collection.objects.link(bpy.data.objects.new("edges", edges))


NO_UPLOAD = (
    (not_a_number, "'Box'.*NaN"),
    (physics_not_a_number, "'Box_PHYS'.*NaN"),
    (unknown_bone, "'Box'.*'wing.L'"),
    (zero_scale, "'Box'.*zero scale"),
    (giant, "'Box'.*1000"),
    (materials_of_a_level, "'Box_LOD1'.*'iron'"),
    (nothing, "nothing to export"),
    (edges_alone, "edges.*no faces"),
)


@pytest.mark.parametrize(
    ("fill", "words", "kind"),
    [
        (*one, kind)
        for number, one in enumerate(NO_UPLOAD)
        for kind in (("dae", "llsd") if number % 2 else ("llmesh", "slm"))
    ],
)
def test_what_no_upload_takes_is_refused_in_one_sentence(fill, words, kind, convert):
    done, paths = convert(fill, kind)
    assert done.status == 1
    (entry,) = done.entries
    assert re.search(words, entry["error"]), entry["error"]
    assert "defect" not in entry["error"]
    assert paths == []
