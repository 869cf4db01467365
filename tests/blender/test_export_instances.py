"""Collection instances of skinned models keep their weights and bones, and stand where the instance shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_export import TETRA_FACES, add, add_nodes, bpy, mesh_of, node_group, square, tetra
from helpers_models import joint_worlds, rig, scene_of, skinned
from meshferry.blender_data.addon_formats import addon_export
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.core.scene import Role
from scene_snapshot import changes, snapshot

pytestmark = pytest.mark.needs_bpy

PLACE = {"location": (3, 1, 2), "rotation_euler": (0, 0, 0.7), "scale": (2, 2, 2)}
OFFSET = (0.5, 0, 0.25)


def library(path: Path | None = None) -> Any:
    """Return a collection of a posed rig with a mesh that no scene shows; with a path it is linked from that file."""
    armature = rig(location=(1, 0, 0))
    tube = skinned(armature)
    armature.pose.bones["Upper"].location = (0.3, 0.2, 0.1)
    made = bpy.data.collections.new("Library")
    made.instance_offset = OFFSET
    for obj in (armature, tube):
        made.objects.link(obj)
        for home in tuple(obj.users_collection):
            if home != made:
                home.objects.unlink(obj)
    if path is None:
        return made
    bpy.data.libraries.write(str(path), {made})
    bpy.data.collections.remove(made)
    for obj in (armature, tube):
        bpy.data.objects.remove(obj)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.collections = ["Library"]
    return wanted.collections[0]


def expected(kind: str) -> Any:
    """Export the same model with objects of its own, in the place of the instance."""
    place = add("Place", **PLACE)
    armature = rig(name="Own", location=np.subtract((1, 0, 0), OFFSET), parent=place)
    tube = skinned(armature, name="OwnTube")
    scene = scene_of(kind, [tube])
    for obj in (tube, armature, place):
        bpy.data.objects.remove(obj)
    return scene


@pytest.mark.parametrize("way", ["local", "linked", "nested"])
@pytest.mark.parametrize("kind", ["UNIGINE_MESH", "SECOND_LIFE_UPLOAD"])
def test_an_instance_of_a_skinned_model_has_its_bones(clean_blender: Any, tmp_path: Path, kind: str, way: str) -> None:
    wanted = expected(kind)
    shown = library(tmp_path / "library.blend" if way == "linked" else None)
    if way == "nested":
        outer = bpy.data.collections.new("Outer")
        inside = bpy.data.objects.new("Inside", None)
        inside.instance_type, inside.instance_collection = "COLLECTION", shown
        outer.objects.link(inside)
        shown = outer
    instance = add("Robot", instance_type="COLLECTION", instance_collection=shown, **PLACE)
    bpy.context.view_layer.update()
    before = snapshot()
    scene = scene_of(kind, [instance])
    # Copies refer to linked objects directly, which Blender notes for good; the file holds the same either way.
    assert not {path for path in changes(before, snapshot()) if not path.endswith(".is_library_indirect")}
    (skeleton,), (other,) = scene.skeletons, wanted.skeletons
    assert [joint.name for joint in skeleton.joints] == [joint.name for joint in other.joints]
    for world, right in zip(joint_worlds(skeleton), joint_worlds(other), strict=True):
        np.testing.assert_allclose(world, right, atol=1e-5)
    finest = scene.nodes[0]
    assert finest.name == "Robot"
    assert finest.skeleton == 0
    np.testing.assert_allclose(placed(finest), placed(wanted.nodes[0]), atol=1e-5)
    np.testing.assert_array_equal(finest.mesh.joint_weights, wanted.nodes[0].mesh.joint_weights)
    np.testing.assert_array_equal(finest.mesh.joint_indices, wanted.nodes[0].mesh.joint_indices)


def placed(node: Any) -> Any:
    """Return the points of a node in the space of its skeleton."""
    from mathutils import Matrix, Quaternion

    matrix = Matrix.LocRotScale(node.translation, Quaternion(node.rotation), node.scale)
    return node.mesh.points @ np.array(matrix)[:3, :3].T + np.array(matrix)[:3, 3]


def test_an_instance_with_two_armatures_is_refused(clean_blender: Any) -> None:
    shown = library()
    second = rig(name="Second")
    for obj in (second, skinned(second, name="Sleeve")):
        shown.objects.link(obj)
    instance = add("Robot", instance_type="COLLECTION", instance_collection=shown)
    with pytest.raises(ValueError, match="'Robot' is an instance of a collection with 2 armatures"):
        scene_of("UNIGINE_MESH", [instance])
    assert "Tube.001" not in bpy.data.objects


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("kind", ["UNIGINE_MESH", "SECOND_LIFE_UPLOAD"])
def test_an_instance_shows_no_levels_of_detail_and_says_so(clean_blender: Any, kind: str, hidden: bool) -> None:
    """The originals are in an excluded collection, but are not reported as left out."""
    scene = bpy.context.scene
    shown = bpy.data.collections.new("Shown")
    scene.collection.children.link(shown)
    finest, level = add("Box", mesh_of("Box"), shown), add("Coarse", mesh_of("Coarse"), shown)
    level.meshferry.lod_of, level.meshferry.lod = finest, 1
    level.hide_set(hidden)
    instance = add("Instance", instance_type="COLLECTION", instance_collection=shown)
    bpy.context.view_layer.layer_collection.children["Shown"].exclude = True
    bpy.context.view_layer.update()
    found = scene_of(kind, [instance, finest, level])
    assert found.nodes[0].mesh.triangle_count == len(TETRA_FACES)
    told = [text for text in found.warnings if "left out" in text]
    assert told == ["'Coarse': levels of detail and physics shapes of collection instances are left out"]


@pytest.mark.parametrize("is_linked", [False, True])
def test_disabled_objects_of_instances_are_unlinked_unless_others_need_them(
    clean_blender: Any, tmp_path: Path, is_linked: bool
) -> None:
    """Blender's glTF exporter would write them like the others."""
    shown = bpy.data.collections.new("Shown")
    parent, armature = add("Parent", mesh_of("Parent"), shown), add("Rig", bpy.data.armatures.new("Rig"), shown)
    add("Child", mesh_of("Child"), shown, parent=parent)
    for disabled in (parent, armature, add("Off", mesh_of("Off"), shown)):
        disabled.hide_viewport = True
    if is_linked:
        bpy.data.libraries.write(str(tmp_path / "library.blend"), {shown})
        clean_blender.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
        with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, wanted):
            wanted.collections = ["Shown"]
        (shown,) = wanted.collections
    instance = add("Instance", instance_type="COLLECTION", instance_collection=shown)
    found = [obj.name for obj in addon_export.disabled_in_instances([instance])]
    assert found == ([] if is_linked else ["Off"])
    addon_export.unlink_disabled([instance])
    left = [obj.name for obj in shown.objects]
    assert left == ["Parent", "Rig", "Child", *(["Off"] if is_linked else [])]


@pytest.mark.parametrize("kind", ["UNIGINE_MESH", "SECOND_LIFE_UPLOAD"])
def test_copies_in_a_linked_scene_are_refused(clean_blender: Any, tmp_path: Path, kind: str) -> None:
    add("Robot", instance_type="COLLECTION", instance_collection=library())
    path = tmp_path / "scene.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.scenes = ["Scene"]
    scene = wanted.scenes[0]
    objects = len(bpy.data.objects)
    with (
        bpy.context.temp_override(scene=scene, view_layer=scene.view_layers[0]),
        pytest.raises(MeshferryError, match=r"linked from .*scene\.blend"),
    ):
        scene_of(kind, [scene.objects["Robot"]])
    assert len(bpy.data.objects) == objects


def _faces(obj: Any) -> None:
    obj.instance_type = "FACES"


def _verts(obj: Any) -> None:
    obj.instance_type = "VERTS"


def _particles(obj: Any) -> None:
    obj.modifiers.new("Hair", "PARTICLE_SYSTEM")
    settings = obj.particle_systems[0].settings
    settings.type, settings.count, settings.render_type = "HAIR", 3, "OBJECT"
    settings.instance_object = bpy.data.objects["Leaf"]


def _emitter(obj: Any) -> None:
    obj.modifiers.new("Dust", "PARTICLE_SYSTEM").show_viewport = False


def _nodes(obj: Any) -> None:
    """Show the mesh and instances of it."""
    group, entry, leave = node_group()
    instances, join = group.nodes.new("GeometryNodeInstanceOnPoints"), group.nodes.new("GeometryNodeJoinGeometry")
    for name in ("Points", "Instance"):
        group.links.new(entry.outputs[0], instances.inputs[name])
    instances.inputs["Scale"].default_value = (0.1, 0.1, 0.1)
    for made in (instances.outputs[0], entry.outputs[0]):
        group.links.new(made, join.inputs[0])
    group.links.new(join.outputs[0], leave.inputs[0])
    add_nodes(obj, group)


def _nothing(_obj: Any) -> None:
    pass


@pytest.mark.parametrize("is_shown", [True, False])
@pytest.mark.parametrize(
    "kind", ["TIMBERMESH", "UNIGINE_MESH", "MESH_SERIALIZER", "SECOND_LIFE_UPLOAD", "UNIGINE_SCENE"]
)
@pytest.mark.parametrize("make", [_faces, _verts, _particles, _emitter, _nodes, _nothing])
def test_a_hidden_instancer_is_in_no_file(clean_blender: Any, make: Any, kind: str, is_shown: bool) -> None:
    """Blender decides what it shows of an object: see ``DepsgraphObjectInstance.show_self``."""
    mesh = mesh_of("Base")
    if kind == "UNIGINE_SCENE":
        add("Ahead", mesh, location=(20, 0, 0))  # an object that shows the same mesh
    base = add("Base", mesh)
    tetra("Leaf", parent=base if make in {_faces, _verts} else None, location=(9, 0, 0), scale=(0.1, 0.1, 0.1))
    make(base)
    base.show_instancer_for_viewport = is_shown
    square("Floor")
    bpy.context.view_layer.update()
    instances = bpy.context.evaluated_depsgraph_get().object_instances
    in_view = {found.object.original for found in instances if found.show_self and not found.is_instance}
    assert (base in in_view) == (is_shown or make is _nothing)
    scene = scene_of(kind)
    if scene.placement is not None:
        first = next(node for node in scene.placement.parts[0].nodes if node.name == "Base")
        assert (first.content is not None) == (is_shown or make is _nothing)
        return
    nodes = [node for node in scene.nodes if node.mesh is not None and not node.lod and node.role is Role.RENDER]
    corners = [placed(node)[node.mesh.corner_point] for node in nodes]
    triangles = np.concatenate(corners).reshape(-1, 3, 3)
    extent = np.ptp(triangles[np.abs(triangles).max(axis=(1, 2)) < 4], axis=1).max(axis=1)
    assert np.count_nonzero(extent > 2.5) == (3 if is_shown or make is _nothing else 0)  # the high faces of the base
