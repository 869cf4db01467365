"""File > New > Second Life Avatar: a new file with the avatar, a mannequin, and a garment with levels and physics."""

from pathlib import Path
from typing import Any

import bpy

from ... import selection
from ...layouts import button
from ...preferences import drawn_for
from ...registration import MenuEntry
from .panel import main_panel

FILE = Path(__file__).with_name("starting_file.blend")
"""Only packages have it; ``examples/make_starting_file.py`` makes it."""
SCENE = "Second Life Avatar"
"""Name of its scene, by which :func:`show_avatar` knows it."""

TURN = 0.1
"""Seconds in which Blender draws the sidebar for the first time, so that its tabs are known."""
MOST_TURNS = 20


class WM_OT_second_life_avatar_new(bpy.types.Operator):
    """Open the starting file and show it."""

    bl_idname = "wm.second_life_avatar_new"
    bl_label = "New Second Life Avatar"
    bl_description = (
        "Open a new file with the avatar, a mannequin, and a garment with all its levels of detail and physics, ready "
        "for an upload"
    )

    @classmethod
    def poll(cls, _context: bpy.types.Context) -> bool:
        """Require the file."""
        return FILE.is_file()

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file with Blender's own operator, which asks to save the current one first, as for its templates."""
        if show_avatar not in bpy.app.handlers.load_post:
            bpy.app.handlers.load_post.append(show_avatar)
        bpy.ops.wm.read_homefile("INVOKE_DEFAULT", filepath=str(FILE), load_ui=False)
        return {"FINISHED"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Open the file without asking."""
        bpy.ops.wm.read_homefile(filepath=str(FILE), load_ui=False)
        return {"FINISHED"}


@bpy.app.handlers.persistent
def show_avatar(*_: Any) -> None:
    """Show the avatar after its file was loaded. The user may instead have cancelled and opened another file later."""
    bpy.app.handlers.load_post.remove(show_avatar)
    if not bpy.data.filepath and bpy.context.scene.name == SCENE:
        show_when_drawn()


def show_when_drawn() -> None:
    """Call :func:`is_shown` every :data:`TURN` seconds until it succeeds, at most :data:`MOST_TURNS` times."""
    turns = iter(range(MOST_TURNS))
    bpy.app.timers.register(lambda: TURN if next(turns, None) is not None and not is_shown() else None)


def is_shown() -> bool:
    """Frame the avatar and open its tab in the largest 3D view; return whether the tab is open.

    The tabs of a sidebar are known only after it was drawn.
    """
    view = next(iter(selection.views(bpy.context)), None)
    if view is None:
        return True
    if not view.space.show_region_ui:
        view.space.show_region_ui = True
    sidebar = view.region("UI")
    try:
        sidebar.active_panel_category = main_panel.bl_category
    except (AttributeError, TypeError):  # no tabs at all, or not this one
        return False
    if view.space.region_3d.view_perspective == "CAMERA":
        view.space.region_3d.view_perspective = "PERSP"  # the file has no camera
    view.frame(only_selected=False)
    sidebar.tag_redraw()
    return True


@drawn_for("second_life")
def draw_new_entry(self: Any, _context: bpy.types.Context) -> None:
    """Draw the entry."""
    if FILE.is_file():
        self.layout.operator_context = "INVOKE_DEFAULT"  # otherwise it does not ask
        button(self.layout, WM_OT_second_life_avatar_new, text=SCENE, icon="OUTLINER_OB_ARMATURE")


ENTRIES = (MenuEntry("TOPBAR_MT_file_new", draw_new_entry),)
