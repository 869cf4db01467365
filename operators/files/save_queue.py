"""Start the export on save: the handlers and the timer of the preference *Re-export on Save*.

A save only queues. The export starts from a timer as soon as Blender is idle: in Object mode, without a modal operator,
a render or playback. Handlers and timer exist only while the preference is on, and never in background mode.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import bpy

from ...blender_data import file_records
from ...io_formats.core.errors import MeshferryError

WAIT = 0.3
"""Seconds between two looks whether Blender is idle."""

_SESSION = "meshferry_on_save"
_JOBS = ("RENDER", "OBJECT_BAKE", "COMPOSITE")


@dataclass
class SaveSession:
    """The state of exports on save since the .blend file was opened."""

    trusted: str = ""
    """Path of the .blend file if the user's list applies: it is as it was last saved, or the user agreed since."""
    stamp: list[int] = field(default_factory=list)
    """That of the .blend file when it was opened or last saved; see :class:`.file_records.AllowedExports`."""
    is_due: bool = False
    """Whether a save happened since the last export on save."""
    declined: set[str] = field(default_factory=set)
    """Files, as :func:`file_records.file_key`, about which the user is not asked again."""

    def is_trusted(self) -> bool:
        """Return whether the user's list applies to the open .blend file."""
        return bool(self.trusted) and self.trusted == bpy.data.filepath


def session() -> SaveSession:
    """Return the state since the open .blend file was loaded; it is stored like that of ``file_records``."""
    found: SaveSession | None = bpy.app.driver_namespace.get(_SESSION)
    if found is None:
        path = bpy.data.filepath
        stamp = file_records.stamp_of(path)
        is_as_saved = bool(stamp) and stamp == file_records.exports_of_blend(path).stamp
        found = SaveSession(path if is_as_saved else "", stamp)
        bpy.app.driver_namespace[_SESSION] = found
    return found


def switch(*, on: bool) -> None:
    """Add the handlers, or remove them and the timer."""
    for handlers, handler in ((bpy.app.handlers.save_post, after_save), (bpy.app.handlers.load_post, after_load)):
        for known in [known for known in handlers if known is handler]:
            handlers.remove(known)
        if on and is_interactive():
            handlers.append(handler)
    for timer in (start_when_idle, report_missed):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)
    if is_interactive():  # once asked for this namespace, Blender as a Python module hangs at exit
        bpy.app.driver_namespace.pop(_SESSION, None)


def is_interactive() -> bool:
    """Return whether Blender has a window; in background mode nothing is exported on save."""
    return not bpy.app.background


@bpy.app.handlers.persistent
def after_save(path: str, *_others: Any) -> None:
    """Queue the export of a saved .blend file, unless only a copy was saved."""
    if not bpy.data.filepath or os.path.abspath(path) != os.path.abspath(bpy.data.filepath):
        return
    if not session().is_trusted():
        session().trusted = ""  # Save As: the list of the new path was for another content
    session().stamp = file_records.stamp_of(bpy.data.filepath)
    queue()


def queue() -> None:
    """Export the open .blend file's files as soon as Blender is idle."""
    session().is_due = True
    if session().is_trusted():
        _mark(is_pending=True)
    if not bpy.app.timers.is_registered(start_when_idle):
        bpy.app.timers.register(start_when_idle, first_interval=WAIT)


def start_when_idle() -> float | None:
    """Start the export, then the question about further files; return the seconds until the next look, or None."""
    window = idle_window()
    if window is None:
        return WAIT
    with bpy.context.temp_override(window=window):
        if session().is_due:
            session().is_due = False
            if bpy.ops.export_scene.meshferry_on_save.poll():
                bpy.ops.export_scene.meshferry_on_save("INVOKE_DEFAULT")
                return WAIT
            done()
        if bpy.ops.wm.meshferry_allow_on_save.poll():
            ask()
    return None


def ask() -> None:
    """Ask about the files that the user has not allowed."""
    bpy.ops.wm.meshferry_allow_on_save("INVOKE_DEFAULT")


def done() -> None:
    """Note that no file waits for its export any more, unless the .blend file was saved meanwhile."""
    _mark(is_pending=session().is_due)


def idle_window() -> Any | None:
    """Return the window in which the export can start, or None while Blender is busy or outside of Object mode."""
    windows = bpy.context.window_manager.windows
    is_busy = (
        any(window.modal_operators or window.screen.is_animation_playing for window in windows)
        or any(bpy.app.is_job_running(job) for job in _JOBS)
        or any(obj.mode != "OBJECT" for obj in bpy.data.objects)
    )
    return None if is_busy or not windows else windows[0]


@bpy.app.handlers.persistent
def after_load(path: str, *_others: Any) -> None:
    """Look whether the loaded .blend file is the saved one, and report if its last export did not take place."""
    if os.path.abspath(path) != os.path.abspath(bpy.data.filepath):
        session().trusted = ""  # recovered: the content comes from a temporary folder, which other users may write to
    session()
    if is_pending() and not bpy.app.timers.is_registered(report_missed):
        bpy.app.timers.register(report_missed, first_interval=WAIT)


def report_missed() -> float | None:
    """Report that the last export did not take place; return the seconds until the next look, or None."""
    window = idle_window()
    if window is None:
        return WAIT
    if is_pending() and not session().is_due:
        with bpy.context.temp_override(window=window):
            bpy.ops.wm.meshferry_missed_on_save("INVOKE_DEFAULT")
    return None


def is_pending() -> bool:
    """Return whether files of the open .blend file still wait for the export of its last save."""
    return file_records.exports_of_blend(bpy.data.filepath).is_pending


def _mark(*, is_pending: bool) -> None:
    """Store that files wait for their export, or no longer, and how the .blend file was saved."""
    allowed = file_records.exports_of_blend(bpy.data.filepath)
    if not allowed.digests:
        return
    allowed.is_pending = is_pending
    if session().is_trusted():
        allowed.stamp = session().stamp
    try:
        allowed.store()
    except MeshferryError as problem:
        print(f"Meshferry: the list of exports on save was not stored: {problem}")
