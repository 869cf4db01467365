"""Conversion of tasks inside a worker process. This module does not depend on processes and messages."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from ....io_formats import api
from ....io_formats.core.errors import FormatError, MeshferryError, refusal
from ....io_formats.core.projects import Projects
from ....io_formats.disk.file_names import PathTable
from ...conversions import blender_formats
from ...conversions.blend_files import BlendSession
from ...conversions.blender_formats import BlenderFormat
from ...conversions.clip_choice import ClipChoice
from ...conversions.conversion import Conversion
from ...conversions.conversion_arguments import add_conversion_arguments, settings_of
from ...conversions.convert_plan import ConversionJob, is_format_name, known_kind
from ...conversions.file_naming import FileNames
from ...conversions.outcomes import Settings
from ...inputs import file_key
from ...reporting import cause, plain
from ..plan import PlannedNames
from ..tasks import PROJECTS_FOLDER, STATE_FOLDER, LoadedTask, Result, Status, TaskKind
from .messages import Setup
from .resources import limited_cores

_HASH_SIZE = 16
_LARGE = 64 * 2**20
"""Bytes above which a file is read twice, for its hash and its content, instead of kept in memory."""
_LAYERS = frozenset({"uv_layers", "color_layers"})
"""Facts whose maximum is used when the facts of several scenes are merged; other numbers are added."""


class ThreadLimitedSession(BlendSession):
    """A Blender session with a limited number of threads; 0 for the default, one for each core.

    For small files, the threads of all cores busy-wait for each other, which doubles the processor time.
    """

    def __init__(self, threads: int = 0, number: int = 0) -> None:
        # Blender's output becomes the log of the worker: the last output before a crash.
        super().__init__(show_chatter=True)
        self._threads = threads
        self._number = number

    def load(self) -> Any:
        """Load Blender as :class:`BlendSession` does."""
        if self._bpy is not None or "bpy" in sys.modules:
            return super().load()
        with limited_cores(self._threads, self._number):
            return super().load()


class Converter:
    """Converter of tasks. All tasks share one Blender, which is loaded when the first one needs it."""

    def __init__(self, setup: Setup, session: BlendSession) -> None:
        self._output = Path(setup.output).absolute()
        settings = parse_settings(setup.argv)
        store = self._output / STATE_FOLDER / PROJECTS_FOLDER
        projects = Projects(is_fixed=True, store=store, has_mounts=settings.projects.has_mounts)
        self._settings = replace(settings, projects=projects)
        self._format = known_kind(setup.extension)[1]
        self._is_named = is_format_name(setup.extension)
        self._roots = setup.roots
        self._index = PlannedNames(Path(setup.plan))
        self._session = session

    def prepare(self) -> None:
        """Load Blender if the batch writes files of Blender's formats."""
        if isinstance(self._format, BlenderFormat):
            self._session.load()

    def convert(self, loaded: LoadedTask) -> Result:
        """Execute a task. Errors of the file are returned in the result, not raised."""
        began = time.perf_counter()
        task = loaded.task
        result = Result(task, Status.DONE, kind=loaded.kind)
        try:
            source = Path(self._roots[task.root], task.path, task.member)
            content, result.hash = _content_and_hash(source, loaded)
            if loaded.kind is TaskKind.PICTURE:
                self._draw(source, content, result)
            elif loaded.known_hash == result.hash:
                result.status = Status.UNCHANGED
            else:
                self._convert(source, content, result)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (scripts of importers may call exit)
            result.status = Status.FAILED
            result.error = cause(problem)
        self._index.close()
        result.seconds = time.perf_counter() - began
        return result

    def _convert(self, source: Path, content: bytes | None, result: Result) -> None:
        target = self._output / result.task.target
        names = PartNames(target, self._output, self._index)
        clips = self._settings.clips
        # Each file needs its own ClipChoice, which remembers the names of animations. Outputs are not flushed to disk:
        # the journal stores their sizes, so a file that a power cut has truncated is converted again.
        settings = replace(
            self._settings,
            clips=ClipChoice(clips.patterns, clips.new_names),
            is_flushed=False,
            **self._asset_settings(result),
        )
        conversion = Conversion(settings, self._session, names, several=True)
        job = ConversionJob((source,), target, self._format, in_folder=True, is_named=self._is_named, content=content)
        outcomes = list(conversion.run(job))
        good = [outcome for outcome in outcomes if outcome.problem is None and outcome.facts is not None]
        paths = dict.fromkeys(path for outcome in good for path in (outcome.files or [outcome.target]))
        result.outputs = [path.relative_to(self._output).as_posix() for path in paths if path != target]
        if target in paths:
            result.outputs.append(result.task.target)
        result.warnings = list(dict.fromkeys(text for outcome in outcomes for text in outcome.warnings))
        result.facts = _merge_facts([plain(outcome.facts) for outcome in outcomes if outcome.facts is not None])
        problems = [cause(outcome.problem) for outcome in outcomes if outcome.problem is not None]
        result.error = "; ".join(dict.fromkeys(problems))
        result.status = Status.FAILED if problems else Status.DONE

    def _asset_settings(self, result: Result) -> dict[str, Any]:
        """Return the settings for the asset that a task makes, whose picture was drawn before if that was possible."""
        if not self._settings.makes_assets:
            return {}
        from .. import catalogs
        from ..report import pictures

        has_picture = pictures.read_picture(self._output, result.hash) is not None
        return {
            "asset_catalog": catalogs.catalog_id(result.task.target),
            "asset_picture": pictures.picture_file(self._output, result.hash) if has_picture else None,
        }

    def _draw(self, source: Path, content: bytes | None, result: Result) -> None:
        from ..report import pictures

        to = pictures.picture_file(self._output, result.hash)
        if pictures.read_picture(self._output, result.hash) is None:
            options, projects = self._settings.read_options, self._settings.projects
            pictures.render(self._session, source, to, content=content, read_options=options, projects=projects)
        result.outputs = [to.relative_to(self._output).as_posix()]


class PartNames(FileNames):
    """Names of the outputs of one source.

    Other processes name their outputs at the same time, so the names depend only on the target and the plan.
    """

    def __init__(self, target: Path, output: Path, index: PlannedNames) -> None:
        super().__init__(PathTable())
        self._target = target
        self._output = output
        self._index = index

    def is_taken(self, path: Path) -> bool:
        """Return whether a path is a source, the target of another task, or used by another output of this source."""
        if file_key(path) == file_key(self._target):
            return False
        source = os.path.join(file_key(path.parent), path.name)  # links are resolved in the plan's paths of sources
        with contextlib.suppress(ValueError):  # on another drive, so not below the output folder
            source = os.path.relpath(source, file_key(self._output)).replace(os.sep, "/")
        target = path.relative_to(self._output).as_posix()
        return target in self._index or source in self._index or super().is_taken(path)


def parse_settings(argv: Sequence[str]) -> Settings:
    """Return the settings of :func:`given_conversion`.

    Raises
    ------
    MeshferryError
        An option is unknown, since the worker is of another version, or a file that it names is missing.
    """
    parser = _Parser(allow_abbrev=False)
    add_conversion_arguments(parser)
    return settings_of(parser.parse_args(argv))


class _Parser(argparse.ArgumentParser):
    """Argument parser that raises its errors, so that the driver can report them."""

    def error(self, message: str) -> NoReturn:
        raise MeshferryError(f"A worker refuses the options: {message}")


def _content_and_hash(source: Path, loaded: LoadedTask) -> tuple[bytes | None, str]:
    """Return the content of a file and its hash. The content is None if the file is large or Blender opens it."""
    content = loaded.content
    if content is None and loaded.task.size <= _LARGE and blender_formats.by_path(source) is None:
        content = api.read_bytes(source)
    if content is not None:
        return content, hashlib.blake2b(content, digest_size=_HASH_SIZE).hexdigest()
    try:
        with source.open("rb") as stream:
            return None, hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_HASH_SIZE)).hexdigest()
    except (OSError, ValueError) as problem:
        raise FormatError(f"The file cannot be read: {refusal(problem)}", file=str(source)) from None


def _merge_facts(facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge the facts of several scenes."""
    if len(facts) < 2:
        return facts[0] if facts else {}
    found: dict[str, Any] = {}
    for name in dict.fromkeys(itertools.chain(*facts)):
        values = [one[name] for one in facts if name in one]
        if isinstance(values[0], list):
            found[name] = list(itertools.chain(*values))
        else:
            found[name] = max(values) if name in _LAYERS else sum(values)
    return found
