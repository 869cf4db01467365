"""Messages between ``convert`` and the worker that runs its jobs. The worker calls functions of its driver."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.core.messages import Message
from ...conversions.blender_formats import BlenderFormat
from ...conversions.convert_plan import ConversionJob, known_kind
from ...conversions.scene_writing import Outcome
from ...conversions.settings import Settings
from ...output import cause

BEGIN, CLAIM, END, INTERRUPTED, IS_TAKEN, OF_PART, REPORT = (
    *("begin", "claim", "end", "interrupted", "is_taken", "of_part", "report"),
)
"""Names of calls. All but ``END`` and ``INTERRUPTED``, after which the job is over, wait for their value."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Settings of a run of ``convert``."""

    settings: Settings
    several: bool
    """Whether the run has several jobs."""
    libraries: Sequence[str]
    """Folders from which the driver imports modules."""


def encode_job(job: ConversionJob) -> dict[str, Any]:
    """Return a job, without content, as data for JSON."""
    return {
        "sources": [str(source) for source in job.sources],
        "target": str(job.target),
        "format": job.format.extensions[0] if isinstance(job.format, BlenderFormat) else job.format.name,
        "folder": job.folder and str(job.folder),
        "is_named": job.is_named,
    }


def parse_job(data: dict[str, Any]) -> ConversionJob:
    """Return the job of :func:`encode_job`."""
    sources, target = tuple(map(Path, data["sources"])), Path(data["target"])
    folder = data["folder"] and Path(data["folder"])
    return ConversionJob(sources, target, known_kind(data["format"])[1], folder, data["is_named"])


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as data for JSON, with the traceback of its problem for ``--debug``."""
    problem = outcome.problem
    return {
        "source": str(outcome.source),
        "target": str(outcome.target),
        "collection": outcome.collection,
        "facts": outcome.facts,
        "warnings": [message.as_json() for message in outcome.warnings],
        "files": [str(path) for path in outcome.files],
        "problem": None if problem is None else cause(problem),
        "is_missing": isinstance(problem, MissingLibraryError),
        "trace": "" if problem is None else "".join(traceback.format_exception(problem)).rstrip(),
    }


def parse_outcome(data: dict[str, Any]) -> Outcome:
    """Return the outcome of :func:`encode_outcome`. Its problem has the type of the driver's own errors."""
    source, target = Path(data.pop("source")), Path(data.pop("target"))
    text, trace = data.pop("problem"), data.pop("trace")
    kind = MissingLibraryError if data.pop("is_missing") else MeshferryError
    problem = None if text is None else kind(text)
    if problem is not None:
        problem.add_note(trace)
    files = [Path(path) for path in data.pop("files")]
    warnings = [Message.from_json(message) for message in data.pop("warnings")]
    return Outcome(source, target, **data, warnings=warnings, files=files, problem=problem)
