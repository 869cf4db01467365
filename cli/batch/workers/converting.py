"""Conversion of tasks inside a worker process, without the messages to the driver."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....io_formats.core.errors import FormatError, refusal
from ....io_formats.core.messages import distinct
from ....io_formats.disk.file_names import PathTable
from ....io_formats.disk.special_files import read_bytes
from ....io_formats.partner_files import FileSet, PartnerFiles, file_set
from ....io_formats.projects import Projects
from ...conversions import blender_formats
from ...conversions.blend_files import BlendSession, CannotDrawError
from ...conversions.blender_formats import BlenderFormat
from ...conversions.conversion import Conversion
from ...conversions.convert_plan import ConversionJob, is_format_name, known_kind
from ...conversions.settings import ConversionContext, FileNames
from ...inputs import file_key
from ...reporting import cause, error_cause, plain
from ..plan import PlannedNames
from ..tasks import CANNOT_DRAW, DISK_FULL, PROJECTS_FOLDER, STATE_FOLDER, LoadedTask, Result, Status, TaskKind
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
        self._settings = setup.settings
        store = self._output / STATE_FOLDER / PROJECTS_FOLDER
        self._projects = Projects(
            is_fixed=True, store=store, has_mounts=setup.settings.mounts, reach_of=setup.settings.reach_of
        )
        self._format = known_kind(setup.settings.to)[1]
        self._is_named = is_format_name(setup.settings.to)
        self._roots = setup.roots
        self._index = PlannedNames(Path(setup.plan))
        self._session = session
        self._finder = PartnerFiles()

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
            files = FileSet(source) if task.member else file_set(source, self._settings.read_options, self._finder)
            content, result.hash = _content_and_hash(files, loaded)
            if loaded.kind is TaskKind.PICTURE:
                self._draw(source, content, result)
            elif loaded.known_hash == result.hash:
                result.status = Status.UNCHANGED
            else:
                self._convert(files, content, result)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 (scripts of importers may call exit)
            _set_errors(result, [problem])
        self._index.close()
        result.seconds = time.perf_counter() - began
        return result

    def _convert(self, files: FileSet, content: bytes | None, result: Result) -> None:
        target = self._output / result.task.target
        names = PartNames(target, self._output, self._index)
        context = ConversionContext(self._settings, self._session, names, self._projects)
        job = ConversionJob(
            (files.path,),
            target,
            self._format,
            self._output,
            is_named=self._is_named,
            content=content,
            sets={files.path: files},
            # The state stores the sizes of the outputs, so a file that a power cut has truncated is converted again.
            is_flushed=False,
            **self._asset_marks(result),
        )
        outcomes = list(Conversion(context, several=True).run(job))
        good = [outcome for outcome in outcomes if outcome.problem is None and outcome.facts is not None]
        paths = dict.fromkeys(path for outcome in good for path in (outcome.files or [outcome.target]))
        result.outputs = [path.relative_to(self._output).as_posix() for path in paths if path != target]
        if target in paths:
            result.outputs.append(result.task.target)
        result.warnings = distinct(text for outcome in outcomes for text in outcome.warnings)
        result.facts = _merge_facts([plain(outcome.facts) for outcome in outcomes if outcome.facts is not None])
        _set_errors(result, [outcome.problem for outcome in outcomes if outcome.problem is not None])

    def _asset_marks(self, result: Result) -> dict[str, Any]:
        """Return catalog and preview picture for the asset of a task; None if the picture could not be drawn."""
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
            pictures.render(
                self._session, source, to, content=content, settings=self._settings, projects=self._projects
            )
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


def _set_errors(result: Result, problems: Sequence[BaseException]) -> None:
    """Store status and error in a result if there are problems."""
    if not problems:
        return
    result.status = Status.FAILED
    result.error = "; ".join(dict.fromkeys(map(cause, problems)))
    result.error_cause = "; ".join(dict.fromkeys(map(error_cause, problems)))
    if any(map(_is_disk_full, problems)):
        result.error_code = DISK_FULL
    elif any(isinstance(problem, CannotDrawError) for problem in problems):
        result.error_code = CANNOT_DRAW


def _is_disk_full(problem: BaseException | None) -> bool:
    """Return whether an exception, or the one that it was raised for, reports a full disk or an exceeded quota."""
    while problem is not None:
        if isinstance(problem, OSError) and problem.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _content_and_hash(files: FileSet, loaded: LoadedTask) -> tuple[bytes | None, str]:
    """Return the content of a file, and the hash of its set.

    The content is None if the file is large or Blender opens it.
    """
    content, found = _content_and_digest(files.path, loaded)
    for path in files.partners.values():
        with contextlib.suppress(FormatError):  # the conversion reports it
            found.update(read_bytes(path))
    return content, found.hexdigest()


def _content_and_digest(source: Path, loaded: LoadedTask) -> tuple[bytes | None, Any]:
    content = loaded.content
    if content is None and loaded.task.size <= _LARGE and blender_formats.by_path(source) is None:
        content = read_bytes(source)
    if content is not None:
        return content, hashlib.blake2b(content, digest_size=_HASH_SIZE)
    try:
        with source.open("rb") as stream:
            return None, hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_HASH_SIZE))
    except (OSError, ValueError) as problem:
        raise FormatError("The file cannot be read: {}", refusal(problem), file=str(source)) from None


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
