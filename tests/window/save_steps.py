"""Re-export on save in a Blender window: the question, the timer, what it waits for, what is written and reported."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import bpy
from window import DRAW, FOLDER, Steps, check, in_view3d, log, picture, press, show_sidebar, wait_for, window

PLACE = FOLDER / "saved"
MESH = PLACE / "lamp.mesh"
BLEND = PLACE / "lamp.blend"
WRITTEN = "Re-export on save: lamp.mesh written"
UNCHANGED = "Re-export on save: 1 file unchanged"


def settings() -> Any:
    """Return the preferences of the add-on, which is registered by hand."""
    addons = bpy.context.preferences.addons
    if "meshferry" not in addons:
        addons.new().module = "meshferry"
    return addons["meshferry"].preferences


def report() -> str:
    """Return the last report, which the sidebar shows."""
    return str(bpy.context.window_manager.meshferry_report.summary)


def save(path: Path = BLEND, *, copy: bool = False) -> None:
    """Save as a user does, and forget the last report."""
    bpy.context.window_manager.meshferry_report.summary = ""
    with in_view3d():
        bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=copy)


def is_waiting() -> bool:
    """Return whether the export waits for its start."""
    from meshferry.operators.files import save_queue  # loaded by drive.py

    return bool(bpy.app.timers.is_registered(save_queue.start_when_idle))


def saved(expected: str, what: str, path: Path = BLEND, **options: Any) -> Steps:
    """Save, and see what is reported."""
    before = MESH.read_bytes()
    save(path, **options)
    yield from ended(expected, what)
    is_written = MESH.read_bytes() != before
    check(is_written == expected.startswith(WRITTEN), f"{what}: the file {'changed' if is_written else 'stays'}")


def ended(expected: str, what: str) -> Steps:
    """Wait for the report of an export."""
    yield from wait_for(lambda: bool(report()) and not window().modal_operators, f"the report: {what}")
    check(report().startswith(expected), f"{what}: {report()}")
    yield DRAW


def mesh() -> Any:
    """Return the lamp."""
    return next(obj for obj in bpy.data.objects if obj.type == "MESH")


def edit() -> None:
    """Move some vertices, as a step for Undo."""
    with in_view3d():
        for vertex in list(mesh().data.vertices)[:12]:
            vertex.co.z += 0.1
        bpy.ops.ed.undo_push(message="Edit")


def exports_on_save() -> Steps:
    """Go through all that a user may do around a save."""
    shutil.copytree(FOLDER / "rig", PLACE)
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.read_homefile(use_empty=False, use_factory_startup=True, load_ui=False)
    yield 2 * DRAW
    settings().use_export_on_save = True
    yield from asked()
    yield from repeated_saves()
    yield from other_saves()
    yield from busy()
    yield from failing()
    yield from closed()
    yield from hostile()
    settings().use_export_on_save = False
    bpy.context.preferences.addons.remove(bpy.context.preferences.addons["meshferry"])


def asked() -> Steps:
    """The first save after an export asks; Allow exports."""
    with in_view3d():
        bpy.data.batch_remove(list(bpy.data.objects))
        bpy.ops.import_scene.unigine(filepath=str(MESH))
        mesh().shape_key_clear()
        bpy.context.view_layer.objects.active = mesh()
        bpy.ops.export_scene.unigine_mesh(filepath=str(MESH))
    before = MESH.read_bytes()
    save()
    yield 4 * DRAW
    yield from picture("on-save-question")
    check(MESH.read_bytes() == before and not report(), "nothing is written before the answer")
    press("RET")
    yield from ended(UNCHANGED, "allowed")
    yield from show_sidebar("Meshferry")
    yield from picture("on-save-sidebar")


def repeated_saves() -> Steps:
    """Only saves after edits write the file, and no save changes the .blend file."""
    for number in range(7):
        if number % 3 == 1:
            edit()
        yield from saved(WRITTEN if number % 3 == 1 else UNCHANGED, f"save {number}")
        check(not bpy.data.is_dirty, f"save {number}: the .blend file has no unsaved change")


def other_saves() -> Steps:
    """Save Copy, Save As and Undo."""
    edit()
    before = MESH.read_bytes()
    save(PLACE / "copy.blend", copy=True)
    yield 2 * DRAW
    check(MESH.read_bytes() == before and not report() and not is_waiting(), "Save Copy exports nothing")
    yield from saved(WRITTEN, "save after Save Copy")
    before = MESH.read_bytes()
    press("Z", ctrl=True)
    yield 2 * DRAW
    yield from saved(WRITTEN, "save after Undo")
    press("Z", ctrl=True, shift=True)
    yield 2 * DRAW
    yield from saved(WRITTEN, "save after Redo")
    check(MESH.read_bytes() == before, "Redo brings the content back")
    edit()
    before = MESH.read_bytes()
    save(PLACE / "other.blend")
    yield 4 * DRAW
    yield from picture("on-save-save-as")
    press("ESC")
    yield 2 * DRAW
    check(MESH.read_bytes() == before and not report(), "Save As, declined: nothing is written")
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.open_mainfile(filepath=str(BLEND))
    yield 2 * DRAW


def busy() -> Steps:
    """The export waits outside of Object mode, during modal operators and playback; several saves become one export."""
    before = MESH.read_bytes()
    with in_view3d():
        bpy.context.view_layer.objects.active = mesh()
        bpy.ops.object.mode_set(mode="EDIT")
        mesh().data.update()
        bpy.ops.mesh.select_all(action="SELECT")
        bpy.ops.transform.translate(value=(0.0, 0.0, 0.25))
    for _save in range(3):
        save()
        yield DRAW
    check(MESH.read_bytes() == before and is_waiting(), "it waits in Edit mode")
    press("G")
    yield DRAW
    check(bool(window().modal_operators), "a modal operator runs")
    with in_view3d():
        save()
    yield DRAW
    check(MESH.read_bytes() == before and is_waiting(), "it waits during a modal operator")
    press("ESC")
    yield DRAW
    with in_view3d():
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.screen.animation_play()
    yield DRAW
    check(MESH.read_bytes() == before and is_waiting(), "it waits during playback")
    with in_view3d():
        bpy.ops.screen.animation_cancel()
    yield from ended(WRITTEN, "after the waiting")
    bpy.context.window_manager.meshferry_report.summary = ""
    yield from wait_for(lambda: not is_waiting(), "the end of the timer")
    check(not report() and not window().modal_operators, "once")


def failing() -> Steps:
    """A file that another program changed stays, and the report says so."""
    content = MESH.read_bytes()
    MESH.write_bytes(content + b"\0")
    edit()
    yield from saved("Re-export on save: lamp.mesh: The file was changed since", "changed by another program")
    yield from picture("on-save-failure")
    MESH.write_bytes(content)
    yield from saved(WRITTEN, "after the failure")


def closed() -> Steps:
    """A .blend file that is opened again before the export reports what is missing."""
    edit()
    before = MESH.read_bytes()
    save()
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.open_mainfile(filepath=str(BLEND))
    yield from ended("Not re-exported after the last save: lamp.mesh", "opened again")
    check(MESH.read_bytes() == before, "nothing was written")
    yield from picture("on-save-missed")
    yield from saved(WRITTEN, "the next save")


def hostile() -> Steps:
    """A .blend file of another user writes nothing, also in place of an allowed one."""
    outside = PLACE / "outside"
    outside.mkdir()
    letter = Path(shutil.copyfile(MESH, outside / "letter.mesh"))
    edit()
    for owner in (*bpy.data.objects, *bpy.data.collections):
        if owner.meshferry.file.path:
            owner.meshferry.file.path = str(letter)
    save(PLACE / "download.blend", copy=True)
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.open_mainfile(filepath=str(BLEND))
    yield DRAW
    shutil.copyfile(PLACE / "download.blend", BLEND)
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.open_mainfile(filepath=str(BLEND))
    yield DRAW
    before = letter.read_bytes(), MESH.read_bytes()
    save()
    yield 4 * DRAW
    yield from picture("on-save-hostile")
    press("ESC")
    yield DRAW
    save()
    yield 4 * DRAW
    check((letter.read_bytes(), MESH.read_bytes()) == before, "a hostile .blend file writes nothing")
    check(not report() and not is_waiting(), "and is asked about once")
    log("re-export on save ended")
