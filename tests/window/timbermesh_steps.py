"""Timbermesh in a Blender window: menus, import dialog, drops of one file and of many, undo."""

import json
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
    open_menu,
    picture,
    press,
    undo,
    wait_for,
    window,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def menus() -> Steps:
    """File > Import and File > Export list the entries."""
    yield from open_menu("TOPBAR_MT_file_import", "menu-import", ("import_scene.timbermesh", "import_scene.unigine"))
    yield from open_menu(
        "TOPBAR_MT_file_export",
        "menu-export",
        (
            "export_scene.timbermesh",
            "export_scene.unigine_mesh",
            "export_scene.unigine_anim",
            "export_scene.unigine_scene",
        ),
    )


def import_dialog() -> Steps:
    """File > Import > Timbermesh opens the file dialog with its options; cancelling it imports nothing."""
    before = set(bpy.data.objects.keys())
    yield from file_dialog(lambda: bpy.ops.import_scene.timbermesh("INVOKE_DEFAULT"), "import-dialog")
    check(set(bpy.data.objects.keys()) == before, "cancelled, nothing was imported")


def drops() -> Steps:
    """A drop imports, undo takes all of it back; of many files the broken one alone is missing."""
    before = set(bpy.data.objects.keys())
    meshes = set(bpy.data.meshes.keys())
    yield from drop(FOLDER / "one", "drop-one")
    objects_of_one = len(set(bpy.data.objects.keys()) - before)
    check(objects_of_one > 0, f"one dropped file gave {objects_of_one} objects")
    properties = next(area for area in window().screen.areas if area.type == "PROPERTIES").spaces.active
    shown, properties.context = properties.context, "MATERIAL"
    yield from picture("material-icons")
    properties.context = shown
    yield from undo(before, "the objects of one file")
    check(set(bpy.data.meshes.keys()) == meshes, "after undo no mesh is left behind")
    yield from picture("drop-one-undone")

    many = len(list((FOLDER / "many").iterdir()))
    yield from drop(FOLDER / "many", "drop-many")
    came = len(set(bpy.data.objects.keys()) - before)
    check(
        came == objects_of_one * (many - 1), f"{many} dropped, one broken: {came / max(objects_of_one, 1):g} imported"
    )
    yield from undo(before, "all files")


def mixed() -> Steps:
    """Files of several families and one of none come by one drop, without a menu of importers."""
    before = set(bpy.data.objects.keys())
    folder = FOLDER / "mixed"
    folder.mkdir()
    names = ("lamp.mesh", "lamp_nod.anim", "tunic.llmesh", "vase.data", "windmill.timbermesh")
    for name in names:
        shutil.copy(EXAMPLES / name, folder)
    (folder / "table.data").write_bytes(b"a table\n")
    yield from drop(folder, "drop-mixed")
    came = {collection.name for collection in bpy.data.collections}
    check({"lamp", "tunic", "vase", "windmill"} <= came, f"all formats were imported together: {sorted(came)}")
    rig = bpy.data.objects.get("lamp Armature")
    action = rig.animation_data.action if rig is not None and rig.animation_data is not None else None
    check(action is not None and action.name.startswith("lamp_nod"), "the animation found its mesh")
    check("table.data: " in bpy.context.window_manager.meshferry_report.summary, "the file of no format is named")
    yield from undo(before, "the files of all formats")


def cancelled() -> Steps:
    """While many files are imported, the status bar shows progress; other keys do nothing, and Esc cancels."""
    from meshferry.operators import progress

    before, collections = set(bpy.data.objects.keys()), len(bpy.data.collections)
    folder = FOLDER / "many"
    files = [{"name": path.name} for path in sorted(folder.iterdir())]
    progress.PATIENCE = 0.0
    progress.TURNS = (0.0, 0.0)
    with in_view3d():
        bpy.ops.wm.drop_import_file("INVOKE_DEFAULT", directory=f"{folder}/", files=files)
    yield 2 * DRAW
    press("RET")
    yield from wait_for(lambda: len(bpy.data.objects) > len(before), "the first file of a long import")
    running = [operator.bl_idname for operator in window().modal_operators]
    check(running == ["IMPORT_SCENE_OT_meshferry"], f"a long import goes on in the window: {running}")
    press("A")
    press("DEL")
    yield DRAW
    check(before < set(bpy.data.objects.keys()), "meanwhile keys do nothing")
    yield from picture("import-progress")
    press("ESC")
    yield from wait_for(lambda: not window().modal_operators, "Esc to cancel the import")
    check(set(bpy.data.objects.keys()) == before, "Esc left the objects that were there before")
    check(len(bpy.data.collections) == collections, "and no collection")
    progress.PATIENCE, progress.TURNS = 0.5, (0.1, 1.0)


def refused() -> Steps:
    """A refused export lists its errors until they are mended; *Export Again* then writes the file."""
    dialog = bpy.types.WM_OT_meshferry_refused_export
    opened: list[Any] = []
    invoke = dialog.invoke
    dialog.invoke = lambda self, context, event: (opened.append(event), invoke(self, context, event))[1]
    before = set(bpy.data.objects.keys())
    path = FOLDER / "refused.timbermesh"
    with in_view3d():
        bpy.ops.mesh.primitive_cube_add()
        bpy.context.object.data.materials.append(bpy.data.materials.new("Material"))
        bpy.ops.ed.undo_push(message="Add a cube")
        bpy.ops.wm.meshferry_refused_export(
            "INVOKE_DEFAULT", export="EXPORT_SCENE_OT_timbermesh", arguments=json.dumps({"filepath": str(path)})
        )
    yield 2 * DRAW
    press("RET")
    yield from wait_for(lambda: len(opened) == 2, "the dialog of the refused export")
    yield from picture("export-refused")
    press("RET")
    yield from wait_for(lambda: len(opened) == 3, "the dialog again, since the error was not mended")
    check(not path.exists(), "nothing was written")
    bpy.data.objects["Cube"].active_material.name = "Oak"
    yield 2 * DRAW
    press("RET")
    yield from wait_for(path.exists, "the file of the mended export")
    yield from wait_for(lambda: not window().modal_operators, "the end of the export")
    dialog.invoke = invoke
    yield from undo(before, "the cube")


def building() -> Steps:
    """*New Timberborn Building* asks for its values and lists its files; *Show Cells* shows its cells."""
    before, mod = set(bpy.data.objects.keys()), FOLDER / "mod"
    material = bpy.data.materials.new("BaseMetal.Folktails")
    with in_view3d():
        collection = bpy.data.collections.new("Hut.Folktails")
        bpy.context.scene.collection.children.link(collection)
        bpy.context.view_layer.active_layer_collection = bpy.context.view_layer.layer_collection.children[-1]
        bpy.ops.mesh.primitive_cube_add(size=2, location=(-1, -1, 1))
        bpy.context.object.data.materials.append(material)
        bpy.context.object.name = "Walls"
        door = bpy.data.objects.new("Entrance", None)
        door.location = -0.5, 0, 0
        collection.objects.link(door)
        bpy.ops.ed.undo_push(message="Add a hut")
        bpy.ops.export_scene.timbermesh_building("INVOKE_DEFAULT", collections="Hut.Folktails", mod=str(mod))
    yield from picture("building-dialog")
    press("RET")
    yield 2 * DRAW
    yield from picture("building-files")
    press("RET")
    yield from wait_for(lambda: any(mod.rglob("*.blueprint.json")), "the files of the building")
    yield from wait_for(lambda: not window().modal_operators, "the end of the export")
    with in_view3d():
        bpy.ops.object.timbermesh_cells("INVOKE_DEFAULT", True, collection="Hut.Folktails")
        bpy.ops.view3d.view_all()
    shown = set(bpy.data.objects.keys())
    check({"Cells", "Entrance Cell"} <= shown, "the cells are shown")
    yield from picture("building-cells")
    yield from undo(shown - {"Cells", "Entrance Cell"}, "the cells")
    yield from undo(before, "the hut")
