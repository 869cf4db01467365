"""Use the add-on in a Blender window as a person would: menus, dialog, drop, undo; take pictures on the way.

Started by scripts/run_window_test as ``blender --python drive.py -- FOLDER``. FOLDER holds ``one/`` with a file to
drop, ``many/`` with a crowd of which one is broken, and takes ``result.txt``. A picture is asked for by a file
``NAME.request``, which the script outside answers by removing it: the picture is taken of the X screen, because
Blender's own screenshot is black under software rendering.

The steps are a generator in a timer: each ``yield`` gives Blender that many seconds to handle events and to draw.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from load_package import load_package

FOLDER = Path(sys.argv[sys.argv.index("--") + 1])
RESULT = FOLDER / "result.txt"
DRAW = 0.7
"""Seconds for a redraw with software rendering."""
PATIENCE = 60.0
"""Seconds after which a step that waits for something has failed."""

Steps = Iterator[float]


def log(line: str) -> None:
    """Say a line on the console and in the result."""
    print(line, flush=True)
    with RESULT.open("a", encoding="utf-8") as result:
        result.write(line + "\n")


def check(condition: bool, message: str) -> None:
    """Note whether something is as it should be; the steps go on, so that the pictures come all the same."""
    log(f"{'ok' if condition else 'FAILED'}: {message}")


def window() -> bpy.types.Window:
    """Return the main window."""
    return bpy.context.window_manager.windows[0]


def view3d() -> tuple[bpy.types.Area, bpy.types.Region]:
    """Return the 3D view and its main region."""
    area = next(area for area in window().screen.areas if area.type == "VIEW_3D")
    return area, next(region for region in area.regions if region.type == "WINDOW")


def point() -> tuple[int, int]:
    """Move the pointer into the middle of the 3D view; return where that is."""
    _, region = view3d()
    x, y = region.x + region.width // 2, region.y + region.height // 2
    window().event_simulate(type="MOUSEMOVE", value="NOTHING", x=x, y=y)
    return x, y


def press(key: str, **modifiers: bool) -> None:
    """Press and release a key with the pointer in the middle of the 3D view."""
    x, y = point()
    for value in ("PRESS", "RELEASE"):
        window().event_simulate(type=key, value=value, x=x, y=y, **modifiers)


def in_view3d() -> Any:
    """Return the context in which operators act on the 3D view."""
    area, region = view3d()
    return bpy.context.temp_override(window=window(), area=area, region=region)


def picture(name: str) -> Steps:
    """Have a picture of the screen taken."""
    for area in window().screen.areas:
        area.tag_redraw()
    yield DRAW
    request = FOLDER / f"{name}.request"
    request.touch()
    yield from wait_for(lambda: not request.exists(), f"picture {name}")


def wait_for(happened: Callable[[], bool], what: str) -> Steps:
    """Wait until something has happened, with an end."""
    end = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > end:
            check(False, f"waited {PATIENCE:.0f} s for: {what}")
            return
        yield 0.1


def menu_entries(menu: Any) -> dict[str, str]:
    """Return what a menu's appended functions draw: operator name and text."""
    entries: dict[str, str] = {}

    def operator(name: str, text: str = "", **_: object) -> SimpleNamespace:
        entries[name] = text
        return SimpleNamespace()

    for draw in menu.draw._draw_funcs:
        if draw.__module__.startswith("meshferry"):
            draw(SimpleNamespace(layout=SimpleNamespace(operator=operator)), bpy.context)
    return entries


def menus() -> Steps:
    """File > Import and File > Export list the entries."""
    for menu, operator in (("import", "import_scene.timbermesh"), ("export", "export_scene.timbermesh")):
        entries = menu_entries(getattr(bpy.types, f"TOPBAR_MT_file_{menu}"))
        check(operator in entries, f"File > {menu.title()} lists {operator}: {entries}")
        point()
        yield DRAW
        with in_view3d():
            bpy.ops.wm.call_menu(name=f"TOPBAR_MT_file_{menu}")
        yield from picture(f"menu-{menu}")
        press("ESC")
        yield DRAW


def import_dialog() -> Steps:
    """File > Import > Timbermesh opens the file dialog with its options; cancelling it imports nothing."""
    before = set(bpy.data.objects.keys())
    with in_view3d():
        bpy.ops.import_scene.timbermesh("INVOKE_DEFAULT")
    yield DRAW
    browsers = [(w, a) for w in bpy.context.window_manager.windows for a in w.screen.areas if a.type == "FILE_BROWSER"]
    check(len(browsers) == 1, "the import dialog is open")
    yield from picture("import-dialog")
    for browser_window, browser in browsers:
        with bpy.context.temp_override(window=browser_window, area=browser):
            bpy.ops.file.cancel()
    yield DRAW
    check(set(bpy.data.objects.keys()) == before, "cancelled, nothing was imported")


def drop(folder: Path, name: str) -> Steps:
    """Drop every file of a folder on the 3D view and confirm the dialog."""
    files = [{"name": path.name} for path in sorted(folder.iterdir())]
    before = len(bpy.data.objects)
    with in_view3d():
        bpy.ops.wm.drop_import_file("INVOKE_DEFAULT", directory=f"{folder}/", files=files)
    yield from picture(f"{name}-dialog")
    if len(bpy.data.objects) == before:
        press("RET")
        yield from wait_for(lambda: len(bpy.data.objects) > before, f"objects of {len(files)} dropped files")
    with in_view3d():
        bpy.ops.view3d.view_all()
    yield from picture(name)


def drops() -> Steps:
    """A drop imports, undo takes all of it back; of many files the broken one alone is missing."""
    before = set(bpy.data.objects.keys())
    meshes = set(bpy.data.meshes.keys())
    yield from drop(FOLDER / "one", "drop-one")
    objects_of_one = len(set(bpy.data.objects.keys()) - before)
    check(objects_of_one > 0, f"one dropped file gave {objects_of_one} objects")

    press("Z", ctrl=True)
    yield from wait_for(lambda: set(bpy.data.objects.keys()) == before, "undo to take the objects back")
    check(set(bpy.data.meshes.keys()) == meshes, "after undo no mesh is left behind")
    yield from picture("drop-one-undone")

    many = len(list((FOLDER / "many").iterdir()))
    yield from drop(FOLDER / "many", "drop-many")
    came = len(set(bpy.data.objects.keys()) - before)
    check(
        came == objects_of_one * (many - 1), f"{many} dropped, one broken: {came / max(objects_of_one, 1):g} imported"
    )

    press("Z", ctrl=True)
    yield from wait_for(lambda: set(bpy.data.objects.keys()) == before, "one undo to take all files back")
    check(set(bpy.data.objects.keys()) == before, "one undo took all of them back")


def steps() -> Steps:
    """Everything, from registration to the end."""
    addon = load_package()
    addon.register()
    try:
        with in_view3d():
            bpy.data.batch_remove([*bpy.data.objects, *bpy.data.meshes])
            bpy.ops.ed.undo_push(message="Start without the default cube")
        handler = getattr(bpy.types, "IO_FH_timbermesh", None)
        check(handler is not None, "the file handler IO_FH_timbermesh is registered")
        yield 2 * DRAW
        yield from menus()
        yield from import_dialog()
        yield from drops()
    finally:
        addon.unregister()
    check(not hasattr(bpy.types, "IO_FH_timbermesh"), "unregistered, nothing of it is left")
    log("done")


def tick(running: Steps) -> float | None:
    """Take one step; at the end, or after a failure, close Blender."""
    try:
        return next(running)
    except StopIteration:
        pass
    except Exception:
        log(f"FAILED: {traceback.format_exc()}")
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.quit_blender()
    return None


view_preferences = bpy.context.preferences.view
view_preferences.show_splash = False
view_preferences.smooth_view = 0
view_preferences.filebrowser_display_type = "SCREEN"  # a window of its own would lie half outside the screen
running = steps()
bpy.app.timers.register(lambda: tick(running), first_interval=1.0)
