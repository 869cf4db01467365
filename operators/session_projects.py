"""The projects of target programs that are open in this session of Blender."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from ..blender_data.steps import Steps, without_bpy
from ..io_formats.api import read_scene
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.projects import Projects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..io_formats.core.scene import ImportChoice, Scene


@functools.cache
def session_projects() -> Projects:
    """Return the open projects; changed ones are read again."""
    return Projects()


def reading_steps(
    path: str | Path, options: Mapping[str, Any], *, choices: Iterable[ImportChoice] = ()
) -> Steps[Scene]:
    """Read a file and what completes it in its project; return the scene. Cancelling ends the reading thread."""
    cancelled = Event()
    try:
        return (yield from without_bpy("Reading", _read, path, options, tuple(choices), cancelled))
    except GeneratorExit:
        cancelled.set()
        raise


def _read(path: str | Path, options: Mapping[str, Any], choices: tuple[ImportChoice, ...], cancelled: Event) -> Scene:
    def check() -> None:
        if cancelled.is_set():
            raise MeshferryError("Cancelled")

    projects = session_projects()
    with projects.cancelled_by(check):
        return read_scene(path, options, choices=choices, projects=projects)
