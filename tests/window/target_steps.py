"""What exports write in a Blender window: models of a blueprint, other formats, backups, re-exports after undo."""

import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import bpy
from window import DRAW, FOLDER, Steps, check, file_dialog, in_view3d, picture, press, show_sidebar, wait_for, window

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "codec" / "helpers"))  # of the tests of the codecs
import timber_mod

LEVEL = FOLDER / "target_level"
WORLD = LEVEL / "data" / "courtyard.world"
MOST_UNDO_STEPS = 4


def targets() -> Steps:
    """Go through the exports of imported data and see that none takes a source away."""
    yield from blueprint()
    yield from other_formats()
    yield from backup()
    yield from undone()
    with in_view3d():
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.meshes, *bpy.data.collections, *bpy.data.materials])
        bpy.ops.ed.undo_push(message="Remove the world")
    yield DRAW


def activate(obj: Any) -> None:
    """Select an object alone and make it active."""
    with in_view3d():
        bpy.ops.object.select_all(action="DESELECT")
        obj.select_set(True)
        bpy.context.view_layer.objects.active = obj


def blueprint() -> Steps:
    """A blueprint has *Export Model…*, which writes a child into a file of its own; no export proposes its models."""
    building = timber_mod.make(FOLDER / "mod")
    model = FOLDER / "mod" / "Parts" / "Windmill.timbermesh"
    old = model.read_bytes()
    with in_view3d():
        bpy.ops.import_scene.timbermesh(filepath=str(building))
    roof = next(obj for obj in bpy.data.objects if obj.meshferry.node_key.endswith("/Roof"))
    activate(roof)
    yield from show_sidebar("Meshferry")
    yield from picture("target-blueprint")
    bpy.context.view_layer.objects.active = None  # fewer panels
    yield 3 * DRAW  # panels move into place
    yield from picture("target-blueprint-export")
    activate(roof)
    with in_view3d():
        check(bpy.ops.export_scene.timbermesh_blueprint.poll(), "the blueprint can be exported")
    name = yield from file_dialog(lambda: bpy.ops.export_scene.timbermesh("INVOKE_DEFAULT"), "target-collection-dialog")
    check(bool(name) and not (model.parent / name).exists(), f"an export proposes the new file '{name}'")
    with in_view3d():
        bpy.ops.export_scene.timbermesh_batch(directory=f"{model.parent}/", parts="OBJECTS", append_model_to_name=False)
    check(model.read_bytes() == old, "Export Model leaves the model that the child was read from")
    check(roof["Model"].endswith("Windmill_2"), f"the child shows the new model {roof['Model']}")
    with in_view3d():
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.meshes, *bpy.data.collections])
        bpy.ops.ed.undo_push(message="Remove the blueprint")
    yield DRAW


def other_formats() -> Steps:
    """An export of a world in another format leaves its target and is offered by name; its dialog lists the world."""
    from meshferry.operators.files import reexport  # loaded by drive.py

    shutil.copytree(FOLDER / "level", LEVEL)
    with in_view3d():
        bpy.ops.import_scene.unigine(filepath=str(WORLD))
    activate(bpy.data.objects["bench"])
    with in_view3d():
        bpy.ops.export_scene.timbermesh(filepath=str(LEVEL / "scene.timbermesh"), scope="COLLECTION")
    target, others = reexport.shown_file(bpy.context), reexport.exports_of(bpy.context)
    check(target is not None and target.path == WORLD, "the target is the world")
    check([record.path.name for record in others] == ["scene.timbermesh"], "the other export is offered by name")
    yield from picture("target-other-format")
    name = yield from file_dialog(
        lambda: bpy.ops.export_scene.unigine_scene("INVOKE_DEFAULT"), "target-world-dialog", lists="*.world"
    )
    check(name == WORLD.name, f"the dialog proposes '{name}'")


def again(name: str = "") -> Steps:
    """Press *Re-export* and confirm the list of changes."""
    with in_view3d():
        bpy.ops.export_scene.meshferry_again("INVOKE_DEFAULT")
    yield 2 * DRAW
    if name:
        yield from picture(name)
    press("RET")
    yield 2 * DRAW
    yield from wait_for(lambda: not window().modal_operators, "the end of the export")


def nodes() -> list[str]:
    """Return the names of the nodes of the world."""
    return sorted(node.get("name", "") for node in ET.parse(WORLD).iter("node"))


def backup() -> Steps:
    """The first *Re-export* names the backup of the content of others, and makes it."""
    old = WORLD.read_bytes()
    with in_view3d():
        bpy.data.objects["bench"].location.z += 1.0
        bpy.ops.ed.undo_push(message="Move")
    yield from again("target-backup-question")
    kept = WORLD.with_name(WORLD.name + ".bak")
    yield from wait_for(kept.exists, "the backup")
    check(kept.exists() and kept.read_bytes() == old != WORLD.read_bytes(), "the backup has the content of others")
    yield from picture("target-backup")


def undone() -> Steps:
    """After a re-export, undo brings a removed object back into the file and takes a copy out of it, nothing else."""
    before = nodes()
    with in_view3d():
        bpy.data.objects.remove(bpy.data.objects["bench"])
        bpy.ops.ed.undo_push(message="Delete")
    activate(bpy.data.objects["ground"])
    yield from again()
    check(nodes() == [name for name in before if name != "bench"], "the deleted node is removed")
    yield from undo_until(lambda: "bench" in bpy.data.objects, "the deleted object")
    activate(bpy.data.objects["bench"])
    yield from again("target-restored-question")
    check(nodes() == before, "the object is back in the file")
    yield from picture("target-restored")
    with in_view3d():
        bpy.ops.object.duplicate()
        bpy.ops.ed.undo_push(message="Duplicate")
    copies = len(bpy.data.objects)
    yield from again()
    check(len(nodes()) == len(before) + 1, "the copy is a node")
    yield from undo_until(lambda: len(bpy.data.objects) < copies, "the copy")
    yield from again()
    check(nodes() == before, "without the copy the file is as before")


def undo_until(is_undone: Any, what: str) -> Steps:
    """Press Ctrl+Z until something is undone; exports may have undo steps of their own."""
    for _step in range(MOST_UNDO_STEPS):
        press("Z", ctrl=True)
        yield 3 * DRAW
        if is_undone():
            break
    check(is_undone(), f"undo takes back {what}")
