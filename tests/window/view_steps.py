"""What the user sees after an import or File > New: the view, the sidebar, dialogs on small screens."""

from typing import Any

import bpy
from window import DRAW, FOLDER, Steps, check, drop, in_view3d, picture, show_sidebar, view3d, wait_for, window

LARGE = 4000.0
"""Size of a model that reaches beyond the clip end of Blender's views, in metres."""


def _state() -> tuple[Any, ...]:
    region = view3d()[0].spaces.active.region_3d
    return region.view_perspective, tuple(region.view_location), region.view_distance


def _exported_cube(size: float) -> str:
    """Export a cube of a size and remove it; return the path of its file."""
    path = str(FOLDER / f"cube_{size:.0f}.mesh")
    bpy.ops.mesh.primitive_cube_add(size=size, location=(size, 0.0, 0.0))
    bpy.ops.export_scene.unigine_mesh(filepath=path)
    bpy.data.objects.remove(bpy.context.object)
    return path


def framing() -> Steps:
    """An import frames the new objects, however large; a camera view and a local view stay as they are."""
    space = view3d()[0].spaces.active
    clip_range = space.clip_start, space.clip_end
    with in_view3d():
        bpy.ops.mesh.primitive_cube_add()
        small, large = _exported_cube(1.0), _exported_cube(LARGE)
        bpy.ops.import_scene.unigine(filepath=large)
    center = bpy.context.object.matrix_world.translation
    check((space.region_3d.view_location - center).length < 0.01 * LARGE, "a large model is framed")
    check(space.clip_end > 2 * LARGE, f"the view reaches over it ({space.clip_end:g} m)")
    yield from picture("view-large")
    with in_view3d():
        bpy.ops.import_scene.unigine(filepath=small)
    check(space.region_3d.view_distance < 10.0, "a small model is framed")
    yield from picture("view-small")
    with in_view3d():
        bpy.ops.view3d.localview()
        before = _state()
        bpy.ops.import_scene.unigine(filepath=large)
        check(_state() == before, "a local view stays")
        bpy.ops.view3d.localview()
        bpy.ops.object.camera_add()
        bpy.context.scene.camera = bpy.context.object
        bpy.ops.view3d.view_camera()
        before = _state()
        bpy.ops.import_scene.unigine(filepath=large)
        check(_state() == before, "a camera view stays")
        bpy.ops.view3d.view_camera()
        space.clip_start, space.clip_end = clip_range
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.meshes, *bpy.data.cameras, *bpy.data.collections])
        bpy.ops.ed.undo_push(message="Remove the models")
    yield DRAW


def _tab() -> str:
    """Return the open tab of the sidebar, or an empty text if the sidebar is closed."""
    area, _ = view3d()
    sidebar = next(region for region in area.regions if region.type == "UI")
    return str(sidebar.active_panel_category) if area.spaces.active.show_region_ui else ""


def sidebar() -> Steps:
    """Empties and the collection of an import have the tab with the last report."""
    with in_view3d():
        bpy.ops.import_scene.unigine(filepath=str(FOLDER / "level" / "data" / "courtyard.world"))
    layer = bpy.context.view_layer
    layer.objects.active = next(obj for obj in layer.objects if obj.type == "EMPTY" and obj.visible_get())
    yield from show_sidebar("Meshferry")
    check(_tab() == "Meshferry", "an empty has the tab")
    yield from picture("sidebar-empty")
    layer.objects.active = None
    yield 2 * DRAW
    check(_tab() == "Meshferry", "a collection has the tab")
    yield from picture("sidebar-collection")
    with in_view3d():
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.collections])
        bpy.ops.ed.undo_push(message="Remove the world")
    yield DRAW


def scaled_dialog() -> Steps:
    """With large texts, the import dialog is not higher than the window."""
    view = bpy.context.preferences.view
    view.ui_scale = 1.3
    yield 2 * DRAW
    yield from drop(FOLDER / "rig", "dialog-scaled")
    view.ui_scale = 1.0
    with in_view3d():
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.armatures, *bpy.data.actions, *bpy.data.collections])
        bpy.ops.ed.undo_push(message="Remove the model")
    yield 2 * DRAW


def unused_name() -> Steps:
    """A note stands in place of the file name where the names come from the objects."""
    with in_view3d():
        for name in ("Left", "Right"):
            bpy.ops.mesh.primitive_cube_add()
            bpy.context.object.name = name
        bpy.data.objects["Left"].select_set(True)
        bpy.ops.export_scene.unigine_mesh("INVOKE_DEFAULT")
    yield 2 * DRAW
    browser = next(area for area in window().screen.areas if area.type == "FILE_BROWSER")
    name = browser.spaces.active.params.filename
    check(name == "(2 files, named as listed).mesh", f"the file browser shows '{name}'")
    yield from picture("export-note")
    with bpy.context.temp_override(window=window(), area=browser):
        bpy.ops.file.cancel()
    yield DRAW
    with in_view3d():
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.meshes])
    yield DRAW


def starting_file() -> Steps:
    """File > New > Second Life Avatar frames the avatar and opens its tab."""
    from meshferry.operators.families.second_life import starting_file as menu  # loaded by drive.py

    menu.FILE = FOLDER / "start" / "start.blend"
    space = view3d()[0].spaces.active
    space.show_region_ui = False
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.read_homefile(use_empty=True, load_ui=False)  # without changes, so that Blender does not ask
    yield DRAW
    with bpy.context.temp_override(window=window()):
        bpy.ops.wm.second_life_avatar_new("INVOKE_DEFAULT")

    yield from wait_for(lambda: "Avatar" in bpy.data.objects and _tab() == "Second Life", "the tab of the avatar")
    _, location, distance = _state()
    check(0.5 < location[2] < 1.5 and distance < 8.0, f"the avatar is framed from {distance:.1f} m")
    yield from picture("second-life-starting-file")
