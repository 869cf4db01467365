"""Conversions through the road of the command line, which also has the formats of Blender."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..cli.conversions import blender_formats
from ..cli.conversions.blend_files import BlendSession
from ..cli.conversions.conversion import Conversion
from ..cli.conversions.conversion_arguments import require_known_options
from ..cli.conversions.convert_plan import plan_conversions
from ..cli.conversions.settings import ConversionContext, FileNames, Settings, option_tables
from ..cli.option_arguments import flags_of
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import Message, distinct
from .files import option_of


def run(
    sources: Sequence[str], target: str, strict: bool, options: Mapping[str, Any]
) -> tuple[tuple[Path, ...], tuple[Message, ...]]:
    """Convert files to one; return the files written, the chosen one last, and the messages."""
    settings = Settings(options=_flags(options), strict=strict)
    plan = plan_conversions([*sources, target], None, None, settings)
    for problem in plan.problems:
        raise problem
    require_known_options(settings, plan.jobs[0].format)
    _keep_open_file(plan.jobs[0].format.needs_blender or any(map(blender_formats.by_path, plan.jobs[0].sources)))
    messages: list[Message] = []
    files: list[Path] = []
    with BlendSession() as session:
        context = ConversionContext(settings, session, FileNames(plan.taken))
        for outcome in Conversion(context, several=False).run(plan.jobs[0]):
            if isinstance(outcome.problem, MeshferryError):
                raise outcome.problem.in_file(os.fspath(outcome.source))
            if outcome.problem is not None:
                raise outcome.problem
            messages += outcome.warnings
            files += outcome.files or [outcome.target]
    return tuple(dict.fromkeys(files)), tuple(distinct(messages))


def _flags(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options by flag; where tables share a keyword, the others have the prefix of theirs."""
    flags = {flag.replace("-", "_"): (flag, option) for _, option, flag in flags_of(option_tables())}
    found = {}
    for keyword, value in options.items():
        option = option_of(keyword, {name: option for name, (_, option) in flags.items()}, "conversions")
        name = keyword if keyword in flags else next(name for name, (_, one) in flags.items() if one is option)
        found[flags[name][0]] = option.parsed(value)
    return found


def _keep_open_file(needs_blender: bool) -> None:
    """Raise an error if a conversion would replace the file that a user has open in Blender."""
    bpy = sys.modules.get("bpy")
    if needs_blender and bpy is not None and hasattr(bpy, "app") and not bpy.app.background:
        raise MeshferryError("This conversion would replace the file that is open in Blender; run it in the background")
