"""``meshferry convert``: convert files between formats, including .blend files."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import counted, summed_up
from . import inputs, interruption
from .conversions.blend_files import BlendSession, redirected
from .conversions.conversion import Conversion
from .conversions.conversion_arguments import (
    add_conversion_arguments,
    require_known_options,
    settings_of,
    useless_options,
)
from .conversions.convert_plan import ConversionPlan, Outcome, plan_conversions
from .conversions.settings import ConversionContext, FileNames, option_tables
from .option_arguments import AddParser, require_usable_paths
from .output import Reporter, printable, summary, warnings_entry

if TYPE_CHECKING:
    from .batch.workers.pool import IsolatedConversion

_DESCRIPTION = """\
Convert files between the formats, and to and from .blend, .glb, .gltf, .fbx, .obj, .ply and .usd files.

  convert windmill.timbermesh windmill.blend      into one file
  convert a.timbermesh b.timbermesh both.blend    a collection for each
  convert models --to blend -o blends             a folder with all below it
  convert windmill.blend --to timbermesh -o out   a file for each collection
  convert robot.mesh idle.anim robot.blend        animations go onto the bones of the mesh
  convert gun.mesh --to anim -o out               the animations in a mesh; several by their names
  convert gun.mesh idle.anim out.mesh --mesh-version ms12 --embedded-animation
                                                  animations into a mesh
  convert chair.obj chair.mesh                    and the same with .glb, .gltf, .fbx, .ply, .usd, .usdz
  convert models --to glb -o out --dry-run        what would be written, and what would be lost
  convert house.blend house.dae                   an upload set for Second Life: with house_LOD2.dae and so on
  convert 98a6e63e-12e2-481a-93db-93e6fa4f8b6d ear.blend
                                                  a file without extension: the content decides

A folder gives whatever can become the target: meshes where meshes are written, and animations where those are; a mesh
and the animation of its name become one .blend file, or one of Blender's other formats. --to takes a format's name,
too. What the target cannot hold is reported. Conversions between the formats of Meshferry need no Blender.
Files of the same name are replaced, inputs never. A bad file does not stop the rest, even if Blender crashes on it.
Exit status: 0 all converted, 1 any failed, 2 refused before anything was written; after Ctrl+C 130, after SIGTERM 143,
after SIGHUP 129.
"""


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    parser = add(
        "convert",
        help="convert files, also to and from .blend, .glb, .fbx, .obj, .ply, .usd",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] IN… (OUT | --to EXTENSION -o FOLDER)",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="IN… OUT",
        help="files, folders (searched to the bottom) or patterns, and the file to write (not with --to)",
    )
    parser.add_argument("--to", metavar="EXTENSION", help="kind of file to write for each file read, such as blend")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="where --to writes; subfolders are kept")
    add_conversion_arguments(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="read everything and report what would be written and lost, but write nothing, not even folders",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Convert every file; return 1 if any failed."""
    settings = settings_of(vars(arguments))
    require_usable_paths(settings.options, option_tables())
    plan = plan_conversions(arguments.paths, arguments.to, arguments.output, settings, warn=reporter.warn)
    if plan.jobs:
        require_known_options(settings, plan.jobs[0].format)
        for text in useless_options(settings, plan):
            reporter.warn("convert", text)
    failed = reporter.fail_inputs("input", plan.problems)
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(BlendSession(show_chatter=reporter.debug))
        context = ConversionContext(settings, session, FileNames(plan.taken))
        conversion = Conversion(context, several=len(plan.jobs) > 1)
        importer: Conversion | IsolatedConversion = conversion
        if _is_isolated(plan, reporter):
            from .batch.workers.pool import IsolatedConversion  # other runs do not need it

            importer = IsolatedConversion(conversion, shows_log=reporter.debug)
            stack.callback(importer.end)
        for job in plan.jobs:
            failed_sources = set()
            interruption.check()
            outcomes = (importer if job.uses_importer else conversion).run(job)
            for outcome in outcomes if reporter.debug else _with_blender_errors(outcomes, reporter):
                _report(outcome, reporter, dry_run=settings.dry_run)
                if outcome.problem is not None:
                    failed_sources.add(outcome.source)
                interruption.check()
            failed += len(failed_sources)
    if plan.source_count > 1:
        verb = "Could convert" if settings.dry_run else "Converted"
        reporter.say(f"{verb} {plan.source_count - failed:,} of {counted(plan.source_count, 'file')}")
    if not failed:
        try:
            context.clips.require_all()
        except MeshferryError as problem:
            failed += 1
            reporter.fail("convert", problem)
    return 1 if failed else 0


def _with_blender_errors(outcomes: Iterator[Outcome], reporter: Reporter) -> Iterator[Outcome]:
    """Yield outcomes; note what Blender printed to standard error before each, such as errors of drivers.

    The names in it may contain line breaks and codes that control the terminal.
    """
    while True:
        with tempfile.TemporaryFile() as log:
            with redirected(2, log):
                outcome = next(outcomes, None)
            log.seek(0)
            for line in filter(str.strip, log.read().decode(errors="replace").splitlines()):
                reporter.note(f"Blender: {line}")
        if outcome is None:
            return
        yield outcome


def _is_isolated(plan: ConversionPlan, reporter: Reporter) -> bool:
    """Return whether a crash of one of Blender's own importers would lose more than the only file of this run."""
    sources = [source for job in plan.jobs for source in job.sources]
    return any(job.uses_importer for job in plan.jobs) and (len(sources) > 1 or reporter.as_json)


def _report(outcome: Outcome, reporter: Reporter, *, dry_run: bool) -> None:
    entry: dict[str, Any] = {"input": str(outcome.source), "output": str(outcome.target)}
    if dry_run:
        entry["dry_run"] = True
    if outcome.files:
        entry["files"] = [str(path) for path in outcome.files]
    if outcome.collection:
        entry["collection"] = outcome.collection
    if outcome.facts is not None:
        entry["facts"] = outcome.facts
    entry |= warnings_entry(outcome.warnings)
    if outcome.problem is not None:
        entry["error"] = reporter.fail(outcome.source, outcome.problem)
    elif outcome.facts is not None:
        part = f" (collection '{outcome.collection}')" if outcome.collection and inputs.is_blend(outcome.source) else ""
        beside = f" and {counted(len(outcome.files) - 1, 'file')} beside it" if len(outcome.files) > 1 else ""
        arrow = "would become" if dry_run else "->"
        source, target = printable(outcome.source), printable(outcome.target)
        reporter.say(f"{source}{printable(part)} {arrow} {target}{beside}: {printable(summary(outcome.facts))}")
        for text in summed_up(outcome.warnings):
            reporter.warn(outcome.source, text)
    reporter.record(entry)
