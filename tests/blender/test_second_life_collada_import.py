"""Collada files of other programs in Blender, against an independent reader and Blender's own importer (up to 4.5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from load_package import SAMPLES
from meshferry.io_formats.second_life.avatar import joints as avatar_joints
from meshferry.io_formats.second_life.collada import codec
from meshferry.io_formats.second_life.collada.document import Collada, Geometry, Group, Instance, Node, Skin
from meshferry.io_formats.second_life.collada.format import SECOND_LIFE_COLLADA
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

bpy = pytest.importorskip("bpy", reason="Blender is absent")

FOLDER = SAMPLES / "collada"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text()) if FOLDER.is_dir() else {}
REAL = [name for name in EXPECTED if "synthetic" not in name]
HAS_COLLADA = bool(getattr(bpy.app.build_options, "collada", False))

pytestmark = pytest.mark.needs_bpy
with_samples = pytest.mark.skipif(not EXPECTED, reason="no sample files")


def imported(document: Collada, path: Path | str = "", armature: Any = None, target: str = "AUTO") -> Any:
    """Import a document; ``armature`` is one of the same run."""
    from meshferry.blender_data.importing import armature_matching, import_options, importer

    scene = SECOND_LIFE_COLLADA.to_scene(document, "file")
    chosen = import_options.ImportOptions.of({"use_weld": False, "armature": target})
    found = armature_matching.choose_for_scene(bpy.context, scene, [armature] if armature else [], target)
    return importer.import_scene(import_options.ImportRequest(bpy.context, scene, chosen, str(path), found))


def sample(name: str, **general: Any) -> Any:
    return imported(codec.read((FOLDER / name).read_bytes()), FOLDER / name, **general)


def exported(made: Any) -> Any:
    """Return the scene that an export of an import gets from Blender, with default options."""
    from meshferry.blender_data import export_options
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

    source = object_selection.Source("COLLECTION", made.collection)
    options = export_options.ExportOptions.of({"missing_levels": "COPY"})
    can = SECOND_LIFE_UPLOAD.capabilities
    return exporter.export_scene(export_options.ExportRequest(bpy.context, source, options, "back", can))


def column(owner: Any, name: str, width: int, dtype: Any = np.float32) -> np.ndarray:
    found = np.empty(len(owner) * width, dtype)
    owner.foreach_get(name, found)
    return found.reshape(-1, width) if width > 1 else found


def corners(obj: Any, *, rigged: bool, from_file: bool) -> np.ndarray:
    """Return place, UVs and size of the polygon of all corners in world axes, those of the avatar for rigs."""
    mesh = obj.data
    places = column(mesh.vertices, "co", 3) @ np.array(obj.matrix_world)[:3, :3].T + np.array(obj.matrix_world)[:3, 3]
    if rigged and from_file:
        places = np.stack((-places[:, 1], places[:, 0], places[:, 2]), axis=1)
    uvs = [column(layer.uv, "vector", 2) for layer in mesh.uv_layers]
    sizes = np.repeat(
        column(mesh.polygons, "loop_total", 1, np.int32), column(mesh.polygons, "loop_total", 1, np.int32)
    )
    return np.column_stack((places[column(mesh.loops, "vertex_index", 1, np.int32)], *uvs, sizes))


def weights(obj: Any) -> dict[str, np.ndarray]:
    found = {group.name: np.zeros(len(obj.data.vertices)) for group in obj.vertex_groups}
    names = obj.vertex_groups.keys()
    for vertex in obj.data.vertices:
        for element in vertex.groups:
            found[names[element.group]][vertex.index] = element.weight
    return {name: values for name, values in found.items() if values.any()}


@with_samples
@pytest.mark.parametrize("name", REAL)
def test_samples_become_what_an_independent_reader_finds(name: str) -> None:
    made = sample(name)
    bpy.context.view_layer.update()
    meshes = [obj for obj in made.objects if obj.type == "MESH"]
    for obj, wanted in zip(meshes, EXPECTED[name]["objects"], strict=True):
        mesh = obj.data
        assert obj.name.startswith(wanted["node"]) and mesh.name.startswith(wanted["geometry"][:60])
        assert (len(mesh.vertices), len(mesh.polygons)) == (wanted["vertices"], wanted["polygons"])
        assert not mesh.validate()
        symbols = {group["symbol"] for group in wanted["groups"]} - {None, ""}
        assert len(obj.material_slots) == len(symbols)
        places = column(mesh.vertices, "co", 3) @ np.array(obj.matrix_world)[:3, :3].T
        places += np.array(obj.matrix_world)[:3, 3]
        skin = wanted.get("skin")
        if skin is None:
            box = np.stack((places.min(axis=0), places.max(axis=0)))
            assert box == pytest.approx(np.array(wanted["bounds_world"]), abs=1e-4)
            continue
        x, y, z = places.T
        box = np.stack((-y, x, z), axis=1)
        assert np.stack((box.min(axis=0), box.max(axis=0))) == pytest.approx(
            np.array(skin["bounds_avatar_axes"]), abs=1e-4
        )
        assert len(obj.vertex_groups) == skin["used_joints"]
        (armature,) = made.armatures
        assert obj.find_armature() == armature
        for joint, head in skin["heads"].items():
            if joint in armature.data.bones:
                x, y, z = armature.data.bones[joint].head_local
                assert (-y, x, z) == pytest.approx(head["avatar_axes"], abs=1e-4)


@with_samples
@pytest.mark.skipif(not HAS_COLLADA, reason=f"Blender {bpy.app.version_string} has no Collada importer")
@pytest.mark.parametrize("name", [name for name in REAL if name != "fbx_male_skeleton.dae"])
def test_corners_and_weights_are_those_of_blenders_importer(name: str) -> None:
    """Without the FBX figure, which that importer leaves on its back."""
    made = sample(name)
    bpy.context.view_layer.update()
    ours = {
        obj.data.name: (corners(obj, rigged=bool(obj.vertex_groups), from_file=True), weights(obj))
        for obj in made.objects
        if obj.type == "MESH"
    }
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert bpy.ops.wm.collada_import(filepath=str(FOLDER / name)) == {"FINISHED"}
    theirs = {obj.data.name: obj for obj in bpy.data.objects if obj.type == "MESH"}
    assert set(theirs) == set(ours)
    for key, obj in theirs.items():
        rows, groups = ours[key]
        rigged = bool(obj.vertex_groups)
        theirs_rows = corners(obj, rigged=rigged, from_file=False)
        assert len(rows) == len(theirs_rows)
        if "toenails" not in name:
            np.testing.assert_allclose(rows, theirs_rows, atol=1e-5)
        for group, values in weights(obj).items():
            np.testing.assert_allclose(groups[group], values, atol=1e-5)


@with_samples
def test_all_meshes_of_a_file_and_of_fitting_files_share_an_armature() -> None:
    first = sample("avastar281_eyes.dae")
    (armature,) = first.armatures
    assert {obj.find_armature() for obj in first.objects if obj.type == "MESH"} == {armature}
    again = sample("avastar281_eyes.dae", armature=armature)
    assert again.armatures == [armature] and not again.bones
    bpy.context.view_layer.objects.active = armature
    other = sample("avastar281_eyes.dae")
    assert other.armatures == [armature]
    assert not [message for message in other.warnings if message.is_loss and "bone" in message.code]
    # Joints of the tunic are elsewhere.
    assert sample("meshferry_set/tunic.dae").armatures != [armature]
    bpy.context.view_layer.objects.active = sample("avastar232_head.dae").armatures[0]
    forced = sample("meshferry_set/tunic.dae", target="ACTIVE")
    assert "bones-elsewhere" in {message.code for message in forced.warnings}


def test_objects_of_one_geometry_are_linked_duplicates() -> None:
    quad = Geometry("g", np.array(((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)), np.float32))
    quad.groups = [Group("polylist", "", np.arange(4, dtype=np.int32), np.array([4], np.int32))]
    nodes = [Node(name, -1, np.identity(4), instances=[Instance(0)]) for name in "ab"]
    made = imported(Collada(up_axis="Z_UP", nodes=nodes, geometries=[quad]))
    one, other = made.objects
    assert one.data == other.data and one.data.name == "g" and len(one.data.polygons) == 1


@with_samples
@pytest.mark.parametrize("name", ["avastar281_eyes.dae", "avastar232_head.dae", "avastar281_phys.dae"])
@pytest.mark.parametrize("active", [False, True])
def test_an_export_writes_the_binding_of_the_file(name: str, active: bool) -> None:
    """Feet on the floor, in another shape: no joint positions, and the inverse binds of the file."""
    made = sample(name)
    if active:  # to the same bones
        bpy.context.view_layer.objects.active = made.armatures[0]
        made = sample(name)
    document = codec.read((FOLDER / name).read_bytes())
    scene = exported(made)
    for node in scene.nodes:
        assert node.skin is None or node.skin.joint_positions is None
    upload = SECOND_LIFE_UPLOAD.from_scene(scene)
    assert not upload.boxes[1:]
    given = {
        joint: matrix
        for skin in document.skins
        for joint, matrix in zip(skin.joint_names, skin.inverse_bind, strict=True)
    }
    for instance in upload.files[0].instances:
        assert instance.skin is not None
        for joint, matrix in zip(instance.skin.joint_names, instance.skin.inverse_bind, strict=True):
            assert matrix == pytest.approx(given[joint], rel=1e-5, abs=1e-5), joint  # 6 digits in the file


BODY = ("mPelvis", "mTorso", "mChest", "mCollarLeft", "mCollarRight", "mShoulderLeft")


def dressed(scale: float) -> Collada:
    """Return a mesh of a triangle for each joint of the avatar, bound with the scale of a body shape."""
    document = Collada(up_axis="Z_UP")
    table, rests = avatar_joints.table(), avatar_joints.rest_matrices()
    for name in BODY:
        local = rests[name].copy()
        above = next((other for other in avatar_joints.ancestors(name)[1:] if other in BODY), "")
        local[:3, 3] -= rests[above][:3, 3] if above else 0.0
        position = np.array(table[name].position)
        document.nodes.append(Node(name, BODY.index(above) if above else -1, local, name, name, True, position))
    binds = np.array([rests[name] @ np.diag((scale, scale, 1.0, 1.0)) for name in BODY])
    count = len(BODY)
    points = np.concatenate([binds[:, :3, 3] + np.array(away) for away in np.identity(3) / 20]).astype(np.float32)
    corners = (np.arange(count)[:, None] + np.array((0, count, 2 * count))).reshape(-1).astype(np.int32)
    document.geometries = [Geometry("g", points, [Group("triangles", "a", corners, np.full(count, 3, np.int32))])]
    document.skins = [
        Skin(
            *(0, np.identity(4), list(BODY), np.linalg.inv(binds), np.ones(count, bool)),
            np.ones(3 * count, np.int32),
            np.tile(np.arange(count, dtype=np.int32), 3),
            np.ones(3 * count, np.float32),
        )
    ]
    document.nodes.append(Node("body", -1, np.identity(4), instances=[Instance(0, 0)]))
    return document


def uploaded(made: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the points at rest as the viewer shows them, and the other numbers of an upload."""
    (instance,) = (document := SECOND_LIFE_UPLOAD.from_scene(exported(made))).files[0].instances
    (tree,), skin = document.files[0].trees, instance.skin
    assert skin is not None
    worlds: list[np.ndarray] = []
    for node in tree.joints:
        worlds.append(node.local if node.parent < 0 else worlds[node.parent] @ node.local)
    place = {node.name: world for node, world in zip(tree.joints, worlds, strict=True)}
    moves = np.array([place[name] for name in skin.joint_names]) @ skin.inverse_bind
    of_points = np.einsum("vk,vkij->vij", skin.joint_weights, moves[skin.joint_indices])
    points = np.c_[instance.geometry.positions, np.ones(len(instance.geometry.positions))]
    numbers = {"bind": skin.inverse_bind, **{node.name: node.local for node in tree.joints}}
    return np.einsum("vij,vj->vi", of_points, points)[:, :3], numbers


@pytest.mark.parametrize(
    ("through", "scale", "changes"),
    [
        ("own", 1.0, {}),
        ("own", 1.0, {"scale": (2, 2, 2)}),
        ("own", 0.9, {"scale": (1.003, 1.003, 1.003)}),
        ("own", 0.9, {"scale": (1, 1, 1.1)}),
        ("own", 1.0, {"scale": (-1, 1, 1)}),
        ("own", 1.0, {"rotation_euler": (0.5, 0, 0)}),
        ("own", 1.0, {"rotation_euler": (0, 0, np.pi / 2)}),
        ("own", 0.9, {"rotation_euler": (0, 0, np.pi / 2)}),
        ("own", 0.9, {"rotation_euler": (0.2, 0.1, 2.5), "scale": (0.5, 0.5, 0.5)}),
        ("parent", 1.0, {"scale": (2, 2, 2)}),
        ("parent", 0.9, {"scale": (-1, 1, 1)}),
    ],
    ids=str,
)
def test_the_transform_of_an_imported_armature_moves_joints_as_if_applied(
    clean_blender: Any, through: str, changes: dict[str, Any], scale: float
) -> None:
    made = imported(dressed(scale))
    (rig,), obj = made.armatures, made.objects[-1]
    at_rest, _ = uploaded(made)
    moved = rig
    if through == "parent":
        moved = bpy.data.objects.new("Parent", None)
        bpy.context.scene.collection.objects.link(moved)
        rig.parent = moved
    moved.rotation_mode = "XYZ"
    for name, value in changes.items():
        setattr(moved, name, value)
    bpy.context.view_layer.update()
    found, numbers = uploaded(made)
    if scale == 1.0:  # otherwise the viewer replaces the shape by that of the avatar
        world = np.array(rig.matrix_world)
        heads = {bone.name: world[:3, :3] @ np.array(bone.head_local) for bone in rig.data.bones}
        turn = avatar_joints.facing_of(heads)[:3, :3]
        shown = column(obj.data.vertices, "co", 3) @ np.array(obj.matrix_world)[:3, :3].T @ turn.T
        np.testing.assert_allclose(np.unique(found.round(4), axis=0), np.unique(shown.round(4), axis=0), atol=2e-4)
    if through == "parent":
        rig.parent = None
        rig.matrix_world = moved.matrix_world
    for each in (rig, obj):
        each.select_set(True)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.transform_apply()
    applied, of_applied = uploaded(made)
    if changes.get("rotation_euler") == (0, 0, np.pi / 2):  # a turn keeps the binding of the file, unless applied
        np.testing.assert_allclose(found, at_rest, atol=1e-5)
        return
    np.testing.assert_allclose(found, applied, atol=1e-5)
    assert numbers.keys() == of_applied.keys()
    for name, matrix in numbers.items():
        np.testing.assert_allclose(matrix, of_applied[name], atol=2e-5, err_msg=name)


def test_plain_files_are_for_uploads_if_the_avatar_faces_x(clean_blender: Any) -> None:
    from meshferry.cli.conversions.scene_writing import turned_rigs
    from meshferry.io_formats.registry import by_name

    made = imported(dressed(1.0))
    (rig,), obj = made.armatures, made.objects[-1]
    for degrees, is_turned in ((0, True), (90, False), (180, True), (37, True)):
        rig.rotation_mode, rig.rotation_euler = "XYZ", (0, 0, np.radians(degrees))
        bpy.context.view_layer.update()
        notes = turned_rigs([obj], by_name("second_life_upload"))
        assert [message.is_note for message in notes] == [True] * is_turned
        assert all("convert to .dae" in message and "'body'" in message for message in notes)


def test_the_word_of_a_joint_goes_back_and_its_name_is_shown(clean_blender: Any) -> None:
    document = dressed(1.0)
    document.skins[0].joint_names[2] = "DEF-spine_002"
    document.nodes[2].id = document.nodes[2].sid = "DEF-spine_002"
    document.nodes[2].name = "DEF-spine.002"
    made = imported(document)
    assert {"DEF-spine.002", "mPelvis"} <= set(made.armatures[0].data.bones.keys())
    assert "DEF-spine.002" in made.objects[-1].vertex_groups
    (instance,) = SECOND_LIFE_UPLOAD.from_scene(exported(made)).files[0].instances
    assert instance.skin is not None and "DEF-spine_002" in instance.skin.joint_names
    assert "unknown-joints" in {message.code for message in made.warnings}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Chair_LOD3", "refused"),
        ("Chair_lod3", "refused"),
        ("Chair-LOD2", "call it 'Chair_LOD2'"),
        ("Chair_LOW", "call it 'Chair_LOD1'"),
        ("Chair.phys", "call it 'Chair_PHYS'"),
        ("Stool_LOW", ""),
        ("Chair_LOD2", ""),
        ("Chair_HIGH", ""),
    ],
)
def test_names_that_are_nearly_those_of_levels(clean_blender: Any, name: str, said: str) -> None:
    from meshferry.blender_data import export_options
    from meshferry.blender_data.exporting import object_selection
    from meshferry.blender_data.exporting.models import model_objects
    from meshferry.io_formats.core.errors import ExportError
    from meshferry.io_formats.core.messages import Report

    for each in ("Chair", name):
        mesh = bpy.data.meshes.new(each)
        mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
        bpy.context.scene.collection.objects.link(bpy.data.objects.new(each, mesh))
    source, report = object_selection.Source("SCENE", None), Report()
    options = export_options.ExportOptions.of({})
    if said == "refused":
        with pytest.raises(ExportError, match=f"'Chair' and '{name}' are both the highest level"):
            model_objects.find_models(bpy.context, source, options, report)
        return
    model_objects.find_models(bpy.context, source, options, report)
    assert [message.code for message in report.messages] == ["name-like-level"] * bool(said)
    assert all(said in message and f"'{name}'" in message.item for message in report.messages)
