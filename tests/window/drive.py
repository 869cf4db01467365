"""Use the add-on in a Blender window as a person would: menus, dialogs, drops, undo; take pictures on the way.

Started by scripts/run_window_test as ``blender --python drive.py -- FOLDER``. FOLDER holds ``one/`` with a file to
drop, ``many/`` with a crowd of which one is broken, ``rig/`` with a mesh and its animation, ``worn/`` with a garment,
``kept/`` with a mesh as Unity projects keep it, ``dance/`` with an animation of the avatar, ``level/`` with a UNIGINE
project, ``start/`` with the file of File > New, and takes ``result.txt``.
A picture is asked for by a file ``NAME.request``, which the script outside answers by removing it: the picture is taken
of the X screen, because Blender's own screenshot is black under software rendering.

The steps are a generator in a timer: each ``yield`` gives Blender that many seconds to handle events and to draw.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import animation_steps
import mesh_serializer_steps
import save_steps
import second_life_steps
import target_steps
import timbermesh_steps
import unigine_steps
import view_steps
from load_package import load_package
from window import DRAW, Steps, check, in_view3d, log, window

HANDLERS = (
    "IO_FH_meshferry",
    "IO_FH_timbermesh",
    "IO_FH_unigine",
    "IO_FH_unigine_scene",
    "IO_FH_second_life",
    "IO_FH_second_life_upload",
    "IO_FH_mesh_serializer",
)


def steps() -> Steps:
    """Everything, from registration to the end."""
    addon = load_package()
    addon.register()
    try:
        with in_view3d():
            bpy.data.batch_remove([*bpy.data.objects, *bpy.data.meshes])
            bpy.ops.ed.undo_push(message="Start without the default cube")
        for name in HANDLERS:
            check(hasattr(bpy.types, name), f"the file handler {name} is registered")
        yield 2 * DRAW
        yield from timbermesh_steps.menus()
        yield from timbermesh_steps.import_dialog()
        yield from timbermesh_steps.drops()
        yield from timbermesh_steps.mixed()
        yield from timbermesh_steps.cancelled()
        yield from timbermesh_steps.refused()
        yield from timbermesh_steps.building()
        yield from unigine_steps.dialogs()
        yield from unigine_steps.rig()
        yield from unigine_steps.level()
        yield from target_steps.targets()
        yield from second_life_steps.menus()
        yield from second_life_steps.avatar()
        yield from second_life_steps.garment()
        yield from second_life_steps.other_name()
        yield from animation_steps.dance()
        yield from mesh_serializer_steps.menus()
        yield from mesh_serializer_steps.dialogs()
        yield from mesh_serializer_steps.model()
        yield from view_steps.framing()
        yield from view_steps.sidebar()
        yield from view_steps.scaled_dialog()
        yield from view_steps.unused_name()
        yield from save_steps.exports_on_save()
        yield from view_steps.starting_file()
    finally:
        addon.unregister()
    check(not any(hasattr(bpy.types, name) for name in HANDLERS), "unregistered, nothing of it is left")
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
bpy.app.timers.register(lambda: tick(running), first_interval=1.0, persistent=True)
