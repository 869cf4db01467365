"""Conversions through the road of the command line, which also has the formats of Blender."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ..cli.conversions import blender_formats
from ..cli.conversions.blend_files import BlendSession
from ..cli.conversions.conversion import Conversion
from ..cli.conversions.conversion_arguments import require_known_options
from ..cli.conversions.convert_plan import known_kind, plan_conversions
from ..cli.conversions.settings import ConversionContext, FileNames, Settings, option_tables
from ..cli.option_arguments import flags_of
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import Message, distinct
from .files import Written, paths_of, values_of


def convert(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    format: str = "",  # noqa: A002 (the word that callers expect)
    strict: bool = False,
    **options: Any,
) -> Written:
    """Convert a file like the command line: also to and from .blend, .glb, .fbx and others where ``bpy`` is installed.

    Parameters
    ----------
    source:
        A path, or several: a mesh and animations for its bones, or files that become collections of one .blend file.
    format:
        Name or extension of a format. If ``path`` is a folder or has no extension, each part of each file becomes a
        file in this folder, as with ``--to FORMAT -o FOLDER``. Without a format, the extension of ``path`` decides.
    strict, options:
        As for :func:`read` and :func:`write`; those of both and of Blender's import and export.

    Raises
    ------
    MeshferryError
        A file cannot be converted. Formats of Blender cannot be converted in its window.
    """
    flags = {flag.replace("-", "_"): (flag, option) for _, option, flag in flags_of(option_tables())}
    files, (target,) = list(map(str, paths_of(source, "a path or a list of paths"))), map(str, paths_of(path, "a path"))
    settings = Settings(options=values_of(flags, options, "conversions"), strict=strict)
    is_folder = os.path.isdir(target) or not os.path.splitext(target)[1]
    to, folder = (format, target) if format and is_folder else (None, None)
    plan = plan_conversions(files if folder else [*files, target], to, folder, settings)
    for problem in plan.problems:
        raise problem
    jobs, bpy = plan.jobs, sys.modules.get("bpy")
    if format and not folder:
        jobs = (replace(jobs[0], format=known_kind(format)[1], is_named=True),)
    for job in jobs:
        require_known_options(settings, job.format)
        in_blender = job.format.needs_blender or any(map(blender_formats.by_path, job.sources))
        if in_blender and bpy is not None and hasattr(bpy, "app") and not bpy.app.background:
            raise MeshferryError("This conversion would replace the file open in Blender; run it in the background")
    messages: list[Message] = []
    made: list[Path] = []
    with BlendSession() as session:
        conversion = Conversion(ConversionContext(settings, session, FileNames(plan.taken)), several=len(jobs) > 1)
        for outcome in chain.from_iterable(map(conversion.run, jobs)):
            if (cause := outcome.problem) is not None:
                raise cause.in_file(os.fspath(outcome.source)) if isinstance(cause, MeshferryError) else cause
            messages += outcome.warnings
            made += outcome.files or [outcome.target]
    return Written(tuple(dict.fromkeys(made)), tuple(distinct(messages)))
