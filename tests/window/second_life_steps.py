"""Second Life in a Blender window: a garment dropped, its levels, weights and checks in the sidebar, the upload set."""

import shutil
from pathlib import Path
from typing import Any

import bpy
from window import (
    DRAW,
    FOLDER,
    Steps,
    check,
    drop,
    file_dialog,
    in_view3d,
    menu_entries,
    open_menu,
    picture,
    press,
    search_menus,
    show_sidebar,
    undo,
    wait_for,
)

EXPORTS = tuple(f"export_scene.second_life_{kind}" for kind in ("upload", "mesh", "bundle", "request"))


def menus() -> Steps:
    """File > Import and File > Export list the entries, Add > Armature the avatar."""
    check("import_scene.second_life" in menu_entries(bpy.types.TOPBAR_MT_file_import), "File > Import lists it")
    entries = menu_entries(bpy.types.TOPBAR_MT_file_export)
    check({"SECOND_LIFE_MT_export", *EXPORTS} <= set(entries), f"File > Export > Second Life: {', '.join(EXPORTS)}")
    yield from open_menu("VIEW3D_MT_armature_add", "second-life-menu-add", ("object.second_life_avatar_add",))
    yield from open_menu("SECOND_LIFE_MT_object", "second-life-menu-object", ())
    yield from open_menu("SECOND_LIFE_MT_export", "second-life-menu-export", ())


def avatar() -> Steps:
    """Add > Armature > Second Life Avatar adds it, undo takes it away."""
    before = set(bpy.data.objects.keys())
    with in_view3d():
        bpy.ops.object.second_life_avatar_add("INVOKE_DEFAULT", True)
    _look_from("FRONT")
    yield from picture("second-life-avatar")
    check(len(bpy.context.object.data.bones) == 159, "the avatar has its bones and collision volumes")
    hidden = sorted(group.name for group in bpy.context.object.data.collections if not group.is_visible)
    check(hidden == ["Collision Volumes", "Limb", "Tail", "Wing"], f"hidden at first: {hidden}")
    yield from bound_shirt(set(bpy.data.objects.keys()))
    yield from undo(before, "the avatar")


def bound_shirt(before: set[str]) -> Steps:
    """A tube is bound to the avatar, follows its pose and passes the check; undo takes the binding away alone."""
    with in_view3d():
        bpy.ops.mesh.primitive_cylinder_add(
            "EXEC_DEFAULT", True, radius=0.19, depth=0.6, end_fill_type="NOTHING", location=(0, 0, 1.25)
        )
    shirt = bpy.context.object
    yield from search_menus("bind to avatar", "second-life-menu-search")
    yield from wait_for(lambda: shirt.parent is not None, "Bind to Avatar, chosen in the menu search")
    check(shirt.parent is not None and all(vertex.groups for vertex in shirt.data.vertices), "the tube is bound")
    bone = shirt.parent.pose.bones["mTorso"]
    bone.rotation_quaternion = (0.95, 0.0, 0.0, 0.3)
    with in_view3d():
        bpy.ops.export_scene.second_life_check()
    found = bpy.context.window_manager.meshferry_check.findings
    check(not any("weights" in finding.message for finding in found), "the check finds no weights to complain about")
    yield from show_sidebar("Second Life")
    yield from picture("second-life-bound")
    bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
    name = shirt.name
    press("Z", ctrl=True)
    yield from wait_for(lambda: bpy.data.objects[name].parent is None, "undo to take back the binding")
    check(not bpy.data.objects[name].vertex_groups, "one undo took back the binding")
    yield from undo(before, "the tube")


def garment() -> Steps:
    """A garment comes with armature and levels; the sidebar shows, weighs and checks it, one button exports it."""
    before = set(bpy.data.objects.keys())
    yield from file_dialog(
        lambda: bpy.ops.import_scene.second_life("INVOKE_DEFAULT", directory=f"{FOLDER / 'worn'}/"),
        "second-life-import-dialog",
    )
    yield from drop(FOLDER / "worn", "second-life-garment")
    tunic = bpy.data.objects.get("tunic")
    check(tunic is not None and tunic.find_armature() is not None, "the garment hangs on an armature")
    if tunic is None:
        return
    check(bpy.context.object == tunic, "the garment is the active object")
    _look_from("FRONT")
    yield from show_sidebar("Second Life")
    yield from levels(tunic)
    with in_view3d():
        bpy.ops.object.second_life_weigh()
        bpy.ops.export_scene.second_life_check()
    (weight,) = bpy.context.window_manager.meshferry_weights.models
    check(weight.is_exact and weight.download > 0, f"as it came, it weighs {weight.download:.2f}")
    found = bpy.context.window_manager.meshferry_check
    check(found.subject == "tunic" and not any(one.is_error for one in found.findings), "the check finds no error")
    yield from picture("second-life-sidebar")
    yield from upload()
    yield from undo(before, "the garment, its armature and levels")
    check(not bpy.data.armatures, "after undo no armature is left behind")


def other_name() -> Steps:
    """An asset called as other families call their files gets the options of its own family."""
    before = set(bpy.data.objects.keys())
    folder = FOLDER / "other_name"
    folder.mkdir()
    shutil.copy(FOLDER / "worn" / "tunic.llmesh", folder / "tunic.mesh")
    yield from drop(folder, "second-life-other-name")
    tunic = bpy.data.objects.get("tunic")
    check(tunic is not None and tunic.meshferry.low_level is not None, "an asset called .mesh comes with its levels")
    yield from undo(before, "the garment of another name")


def levels(tunic: Any) -> Steps:
    """The eyes of the sidebar show one level at a time."""
    for part, obj in (("LOWEST", tunic.meshferry.lowest_level), ("HIGH", tunic)):
        with in_view3d():
            bpy.ops.object.second_life_level_show(part=part)
        shown = [one.name for one in bpy.data.objects if one.type == "MESH" and one.visible_get()]
        check(shown == [obj.name], f"of the levels, {shown} is shown")
        if part == "LOWEST":
            yield from picture("second-life-lowest-level")
    yield DRAW


def upload() -> Steps:
    """The dialog names the files; the button of the sidebar exports without it, and asks before it replaces."""
    out = FOLDER / "upload"
    out.mkdir()
    path = str(out / "tunic.dae")
    cloth = bpy.data.objects["tunic"].material_slots[0].material
    shader = next(node for node in cloth.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    shader.inputs["Metallic"].default_value = 1.0
    yield from file_dialog(
        lambda: bpy.ops.export_scene.second_life_upload("INVOKE_DEFAULT", filepath=path), "second-life-export-dialog"
    )
    bpy.context.window_manager.operator_properties_last("export_scene.second_life_upload").filepath = path
    yield from _press_the_button()
    yield from wait_for((out / "tunic.dae").exists, "the upload set")
    expected = {f"tunic{suffix}.dae" for suffix in ("", "_LOD2", "_LOD1", "_LOD0")} | {"tunic_face_1.glb"}
    check(expected <= _written(out).keys(), f"the upload set is {sorted(_written(out))}")
    yield from picture("second-life-uploaded")
    before = _written(out)
    yield from _press_the_button()
    yield from picture("second-life-replace")
    press("ESC")
    yield DRAW
    check(_written(out) == before, "cancelled, nothing was replaced")


def _press_the_button() -> Steps:
    with in_view3d():
        bpy.ops.export_scene.second_life_upload("INVOKE_DEFAULT", use_last_folder=True, scope="SELECTION")
    yield 2 * DRAW


def _written(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def _look_from(side: str) -> None:
    with in_view3d():
        bpy.ops.view3d.view_axis(type=side)
        bpy.ops.view3d.view_all()
