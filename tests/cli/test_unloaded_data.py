"""Conversions of .blend files of which Blender did not load or evaluate everything, and of movement without actions."""

import pytest
from conversion_models import ROOT
from outputs import opened
from test_convert_blend import save_scene

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def cubes(tmp_path):
    """Return a .blend file with two cubes in no collection, and how to save it again after changes."""
    path = save_scene(tmp_path / "cubes.blend", {}, ["Used", "#Other"])

    def change(edit):
        bpy = opened(path)
        edit(bpy, bpy.data.objects["Used"])
        bpy.ops.wm.save_mainfile()

    return path, change


def drive(owner, path, expression, index=-1):
    curve = owner.driver_add(path, index) if index >= 0 else owner.driver_add(path)
    curve.driver.use_self = "self" in expression
    curve.driver.expression = expression


def of_location(bpy, obj):
    drive(obj, "location", "3.0 if self.name else 3.0", 0)


def of_shape_key(_bpy, obj):
    obj.shape_key_add(name="Basis")
    drive(obj.shape_key_add(name="Open"), "value", "no_such_function(1)")


def of_parent(bpy, obj):
    obj.parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(obj.parent)
    of_location(bpy, obj.parent)


def of_instance(bpy, obj):
    """Drive an object of a collection that is only shown as an instance."""
    hidden, shown = bpy.data.objects.new("Hidden", obj.data), bpy.data.collections.new("Shown")
    shown.objects.link(hidden)
    of_location(bpy, hidden)
    instance = bpy.data.objects.new("Instance", None)
    instance.instance_type, instance.instance_collection = "COLLECTION", shown
    bpy.context.scene.collection.objects.link(instance)


def of_material(bpy, obj):
    material = obj.data.materials[0]
    if bpy.app.version < (5, 0):
        material.use_nodes = True
    bsdf = material.node_tree.nodes["Principled BSDF"]
    drive(bsdf.inputs["Roughness"], "default_value", "bpy.data.objects['Used'].location.x")


def picture(bpy, obj):
    material = obj.data.materials[0]
    if bpy.app.version < (5, 0):
        material.use_nodes = True
    tree = material.node_tree
    node = tree.nodes.new("ShaderNodeTexImage")
    node.image = bpy.data.images.new("wood", 4, 4)
    node.image.filepath, node.image.source = "//gone/wood.png", "FILE"
    tree.links.new(node.outputs[0], tree.nodes["Principled BSDF"].inputs["Base Color"])


def cache(_bpy, obj):
    obj.modifiers.new("Cache", "MESH_CACHE").filepath = "//gone.pc2"


@pytest.mark.parametrize(
    ("edit", "text", "targets"),
    [
        (of_location, "1 driver without effect, since it is broken or needs a script, which is not run: 'Used'", ()),
        (of_shape_key, "1 driver without effect", ()),
        (of_parent, "which is not run: 'Parent'", ()),
        (of_instance, "which is not run: 'Hidden'", ()),
        (of_material, "1 driver without effect", ("timbermesh", "glb")),
        (picture, "1 file of the .blend file not found: '", ("timbermesh", "glb")),
        (cache, "1 file of the .blend file not found: '", ()),
    ],
)
def test_what_did_not_come_is_named_and_refused_where_strict(meshferry, cubes, tmp_path, edit, text, targets):
    path, change = cubes
    change(edit)
    for extension in ("timbermesh", "glb", "ply"):
        target = tmp_path / f"out.{extension}"
        done = meshferry("convert", path, target)
        assert done.status == 0 and (text in done.err) == (not targets or extension in targets), (extension, done.err)
        if text in done.err:
            target.unlink()
            assert meshferry("convert", path, target, "--strict").status == 1 and not target.exists()


def test_what_exported_objects_do_not_use_is_not_named(meshferry, cubes, tmp_path):
    path, change = cubes

    def edit(bpy, obj):
        unused = bpy.data.objects.new("Unused", obj.data.copy())
        unused.data.materials[0] = obj.data.materials[0].copy()
        bpy.data.collections.new("Kept").objects.link(unused)
        bpy.data.collections["Kept"].use_fake_user = True
        for break_it in (of_location, picture, cache):
            break_it(bpy, unused)
        picture(bpy, obj)
        tree = obj.data.materials[0].node_tree
        tree.links.remove(tree.nodes["Principled BSDF"].inputs["Base Color"].links[0])
        shown = bpy.data.objects.new("#Reference", None)
        shown.empty_display_type, shown.data = "IMAGE", bpy.data.images["wood"]
        bpy.context.scene.collection.objects.link(shown)

    change(edit)
    for extension in ("timbermesh", "glb"):
        done = meshferry("convert", path, tmp_path / f"out.{extension}", "--strict")
        assert (done.status, done.err) == (0, "")


def test_missing_libraries_are_named(meshferry, cubes, tmp_path):
    library = save_scene(tmp_path / "library.blend", {"Far": ["Linked"]})
    path, change = cubes

    def edit(bpy, _obj):
        with bpy.data.libraries.load(str(library), link=True) as (_there, wanted):
            wanted.collections = ["Far"]
        shown = bpy.data.objects.new("Shown", None)
        shown.instance_type, shown.instance_collection = "COLLECTION", bpy.data.collections["Far"]
        bpy.context.scene.collection.objects.link(shown)

    change(edit)
    assert meshferry("convert", path, tmp_path / "whole.timbermesh", "--strict").err == ""
    library.unlink()
    done = meshferry("convert", path, tmp_path / "out.timbermesh")
    text = "1 linked data block from missing libraries ("
    assert done.status == 0 and text in done.err and "library.blend') left out: 'Far'" in done.err
    assert meshferry("convert", path, tmp_path / "strict.glb", "--strict").status == 1


def test_models_of_other_scenes(meshferry, cubes, tmp_path):
    """They are a note, and an error if the scene that the file opens has none."""
    path, change = cubes

    def add_scenes(bpy, obj):
        bpy.data.scenes.new("Same").collection.objects.link(obj)
        bpy.data.scenes.new("Empty").collection.objects.link(bpy.data.objects.new("Nothing", None))
        bpy.data.scenes.new("Second").collection.objects.link(bpy.data.objects.new("Far", obj.data))

    change(add_scenes)
    for extension in ("timbermesh", "glb"):
        done = meshferry("convert", path, tmp_path / f"out.{extension}", "--strict")
        assert done.status == 0 and "1 scene with other models is not: 'Second'" in done.err
    change(lambda bpy, _obj: setattr(bpy.context.window, "scene", bpy.data.scenes["Empty"]))
    for extension in ("timbermesh", "glb"):
        done = meshferry("convert", path, tmp_path / f"empty.{extension}")
        assert done.status == 1 and "The scene 'Empty', which the file opens, has no models" in done.err


def key(owner, path, values, frames=(1, 20)):
    for frame, value in zip(frames, values, strict=True):
        setattr(owner, path, value)
        owner.keyframe_insert(path, frame=frame)


def by_driver(_bpy, obj):
    drive(obj, "rotation_euler", "frame / 10", 2)


def by_constraint(bpy, obj):
    moving = bpy.data.objects.new("Moving", None)
    bpy.context.scene.collection.objects.link(moving)
    drive(moving, "location", "frame", 0)
    obj.constraints.new("COPY_LOCATION").target = moving


def by_modifier(_bpy, obj):
    obj.modifiers.new("Wave", "WAVE")


def by_key(_bpy, obj):
    obj.shape_key_add(name="Basis")
    drive(obj.shape_key_add(name="Open"), "value", "frame / 20")


def by_action(_bpy, obj):
    key(obj, "location", [(0, 0, 0), (1, 2, 3)])


def by_both(_bpy, obj):
    by_driver(_bpy, obj)
    by_action(_bpy, obj)


def by_static_driver(_bpy, obj):
    drive(obj, "rotation_euler", "sqrt(2)", 2)


@pytest.mark.parametrize("extension", ["glb", "fbx", "usdc", "obj"])
@pytest.mark.parametrize(
    ("edit", "is_lost"),
    [
        (by_driver, True),
        (by_constraint, True),
        (by_modifier, True),
        (by_key, True),
        (by_action, False),
        (by_both, False),
        (by_static_driver, False),
    ],
)
def test_movement_that_blenders_exporters_leave_out(meshferry, cubes, tmp_path, extension, edit, is_lost):
    path, change = cubes
    change(edit)
    change(lambda bpy, obj: bpy.data.objects.remove(bpy.data.objects["#Other"]))
    change(lambda bpy, obj: setattr(obj.data.materials[0], "name", "Paper"))
    done = meshferry("convert", path, tmp_path / f"out.{extension}", "--strict")
    is_lost = is_lost or (extension == "obj" and edit in (by_action, by_both))
    named = "movement" in done.err or "holds no animation" in done.err or "not carried over as animation" in done.err
    assert (done.status, named) == (int(is_lost), is_lost), done.err


def without_faces(bpy, obj, *, instances):
    """Add geometry nodes that leave nothing, or only instances."""
    group = bpy.data.node_groups.new("G", "GeometryNodeTree")
    for way in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
    nodes = [group.nodes.new(f"NodeGroup{way}") for way in ("Input", "Output")]
    if instances:
        spread, shape = group.nodes.new("GeometryNodeInstanceOnPoints"), group.nodes.new("GeometryNodeMeshCube")
        group.links.new(nodes[0].outputs[0], spread.inputs["Points"])
        group.links.new(shape.outputs[0], spread.inputs["Instance"])
        group.links.new(spread.outputs[0], nodes[1].inputs[0])
    obj.modifiers.new("N", "NODES").node_group = group


@pytest.mark.parametrize("instances", [False, True])
def test_meshes_of_which_modifiers_leave_nothing(meshferry, cubes, tmp_path, instances):
    """An object that shows instances instead has lost nothing."""
    path, change = cubes
    change(lambda bpy, obj: without_faces(bpy, obj, instances=instances))
    for extension in ("timbermesh", "node") if instances else ("timbermesh", "node", "obj", "fbx"):
        done = meshferry("convert", path, tmp_path / f"out.{extension}")
        lines = [line for line in done.err.splitlines() if "Used: it has no faces" in line]
        assert done.status == 0 and len(lines) == (not instances), (extension, done.err)
        assert instances or meshferry("convert", path, tmp_path / f"out.{extension}", "--strict").status == 1


@pytest.mark.slow
def test_frames_of_an_export_with_keys_between_them(meshferry, tmp_path):
    """The keys of the dance have another rate than the scene."""
    example = ROOT / "examples" / "dance.anim"
    assert meshferry("convert", example, tmp_path / "dance.blend").status == 0
    done = meshferry("convert", tmp_path / "dance.blend", tmp_path / "dance.anim")
    assert "97 frames at 24 fps" in done.out
