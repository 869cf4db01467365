"""What every step in a Blender window needs: waiting, keys, pictures, drops, and a note of what is as it should be."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bpy

FOLDER = Path(sys.argv[sys.argv.index("--") + 1])
RESULT = FOLDER / "result.txt"
DRAW = 0.3
"""Seconds for a redraw. Blender draws before it calls the timer again, however slow the rendering is."""
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

    def draw_menu(name: str, layout: Any) -> None:
        entries[name] = ""
        getattr(bpy.types, name).draw(SimpleNamespace(layout=layout), bpy.context)

    def operator(name: str, text: str = "", **_: object) -> SimpleNamespace:
        entries[name] = text
        return SimpleNamespace()

    for draw in menu.draw._draw_funcs:
        if draw.__module__.startswith("meshferry"):
            layout = SimpleNamespace(operator=operator, separator=lambda **_: None)
            layout.row = lambda layout=layout, **_: layout
            layout.menu = lambda name, layout=layout, **_: draw_menu(name, layout)
            draw(SimpleNamespace(layout=layout), bpy.context)
    return entries


def open_menu(menu: str, picture_name: str, operators: tuple[str, ...]) -> Steps:
    """Open a menu of Blender's own and see that it lists operators."""
    entries = menu_entries(getattr(bpy.types, menu)) if operators else {}
    for operator in operators:
        check(operator in entries, f"{menu} lists {operator}: {entries.get(operator)}")
    point()
    yield DRAW
    with in_view3d():
        bpy.ops.wm.call_menu(name=menu)
    yield from picture(picture_name)
    press("ESC")
    yield DRAW


def search_menus(text: str, picture_name: str) -> Steps:
    """Type a text into the menu search (F3), have a picture taken and choose the first entry that it finds."""
    press("F3")
    yield 2 * DRAW
    for letter in text:
        key = "SPACE" if letter == " " else letter.upper()
        window().event_simulate(type=key, value="PRESS", unicode=letter)
        window().event_simulate(type=key, value="RELEASE")
        yield 0.1
    yield from picture(picture_name)
    press("RET")
    yield DRAW


def file_dialog(open_it: Callable[[], Any], picture_name: str, lists: str = "") -> Generator[float, None, str]:
    """Open a file dialog with its options, have a picture taken and cancel it; return the proposed name.

    ``lists`` is a pattern of files that the dialog must list.
    """
    with in_view3d():
        open_it()
    yield 2 * DRAW
    browsers = [(w, a) for w in bpy.context.window_manager.windows for a in w.screen.areas if a.type == "FILE_BROWSER"]
    check(len(browsers) == 1, f"the dialog for {picture_name} is open")
    yield from picture(picture_name)
    name = ""
    for browser_window, browser in browsers:
        parameters = browser.spaces.active.params
        name = parameters.filename
        check(not lists or lists in parameters.filter_glob.split(";"), f"the dialog lists {parameters.filter_glob}")
        with bpy.context.temp_override(window=browser_window, area=browser):
            bpy.ops.file.cancel()
    yield DRAW
    return name


def drop(folder: Path, name: str, *chosen: str) -> Steps:
    """Drop the chosen files of a folder, or every file, on the 3D view and confirm the dialog."""
    files = [{"name": path.name} for path in sorted(folder.iterdir()) if not chosen or path.name in chosen]
    before = len(bpy.data.objects)
    with in_view3d():
        bpy.ops.wm.drop_import_file("INVOKE_DEFAULT", directory=f"{folder}/", files=files)
    yield from picture(f"{name}-dialog")
    if len(bpy.data.objects) == before:
        press("RET")
        yield from wait_for(
            lambda: len(bpy.data.objects) > before and not window().modal_operators,
            f"objects of {len(files)} dropped files",
        )
    with in_view3d():
        bpy.ops.view3d.view_all()
    yield from picture(name)
    press("ESC")  # closes the popup about files that failed
    yield DRAW


def undo(names: set[str], what: str) -> Steps:
    """Undo once and see that these objects alone are left."""
    press("Z", ctrl=True)
    yield from wait_for(lambda: set(bpy.data.objects.keys()) == names, f"undo to take back {what}")
    check(set(bpy.data.objects.keys()) == names, f"one undo took back {what}")


def show_sidebar(category: str) -> Steps:
    """Show a tab of the sidebar of the 3D view."""
    area, _ = view3d()
    area.spaces.active.show_region_ui = True
    yield DRAW
    sidebar = next(region for region in area.regions if region.type == "UI")
    sidebar.active_panel_category = category
    yield DRAW
