"""The projects of target programs that are open in this session of Blender."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from ...blender_data.file_records import digest_of_content
from ...blender_data.steps import Step, Steps
from ...io_formats.api import LoadedFile, load_set, scene_of
from ...io_formats.projects import Projects

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene
    from ...io_formats.partner_files import FileSet

T = TypeVar("T")


class ReadingCancelledError(Exception):
    """The user cancelled the import that the thread reads for."""


@functools.cache
def session_projects() -> Projects:
    """Return the projects that this session has opened; a project whose files changed is read again."""
    return Projects()


def project_steps(label: str, function: Callable[[Projects], T]) -> Steps[T]:
    """Call a function in a thread with the projects that this session has opened; return its result.

    If the operator is cancelled, the function is stopped at its next progress report.
    """
    cancelled = Event()
    done = [0.0]

    def check(fraction: float) -> None:
        done[0] = fraction
        if cancelled.is_set():
            raise ReadingCancelledError

    def call() -> T:
        projects = session_projects()
        with projects.watched_by(check):
            return function(projects)

    try:
        future = yield Step(label, 0.0, job=call, progress=lambda: done[0])
        return call() if future is None else future.result()
    except GeneratorExit:
        cancelled.set()
        raise


def reading_steps(files: FileSet, options: Mapping[str, Any]) -> Steps[tuple[LoadedFile, str, Scene]]:
    """Read a file with its partner files, and the files of its project that complete the scene.

    Return the main file without its bytes, the digest of these bytes, and the scene. There is no digest of a file that
    may be larger than the memory; such files are never written.
    """

    def read(projects: Projects) -> tuple[LoadedFile, str, Scene]:
        loaded = load_set(files)
        digest = "" if loaded.format.reads_paths else digest_of_content(loaded.data)
        loaded.data = b""
        return loaded, digest, scene_of(loaded, options, projects=projects)

    return (yield from project_steps("Reading", read))
