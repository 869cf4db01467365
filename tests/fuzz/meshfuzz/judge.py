"""Run one case through the modules of its format: only success or a FormatError, within limits of time and memory.

Every case is recognised and read. The steps that follow on an accepted file cost twenty times as much, so a long run
takes each of them for a share of the cases (:class:`Depth`); the smoke test and replays take all.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from . import memory, timberborn_blueprint_cases, unigine_scene_cases
from .cases import Case
from .checkout import ROOT
from .invariants import check_placement, check_scene, expanded_if_small
from .project_files import reader_of

SECONDS = 2.0
_STABLE_UP_TO = 300_000
"""Files up to which the written file is read and written once more."""

_CONVERSION_BYTES = 512 * memory.MEBIBYTE
"""Memory of conversions, which do not depend on the size of the file: a few keys become thousands of frames."""

_OPERATIONS = {
    "opening": ("by_content", "read", "to_scene", "link"),
    "saving": ("files_of", "from_scene", "check mapped", "write mapped"),
    "inspecting": ("by_content", "read", "facts"),
    "checking": ("by_content", "read", "check"),
}
"""Steps that users wait for; each has its own limit of two seconds. Other steps belong to the fuzzer."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Depth:
    """The steps that follow on recognition and reading."""

    inspect: bool = True
    """Facts and checks of the document."""
    rewrite: bool = True
    """The document written, read and written again."""
    scene: bool = True
    """The document mapped to a scene."""
    export: bool = True
    """The scene mapped back to a document, checked, written and read again."""
    convert: bool = True
    """The scene written in every other format, as ``convert`` does without Blender."""


ALL_STEPS = Depth()


def sampled_depth(number: int) -> Depth:
    """Return the steps for a case of a long run: each for a fixed share of the case numbers."""
    rng = random.Random(~number)
    return Depth(*(rng.random() < share for share in (0.3, 0.3, 0.5, 0.2, 0.04)))


@dataclass
class Finding:
    """Something that must not be."""

    kind: str
    """exception, slow, memory, unstable, crash, hang"""
    signature: str
    """The same for every case that fails in the same place."""
    detail: str
    number: int
    recipe: str
    data: bytes = field(repr=False, default=b"")


@dataclass
class Verdict:
    """What became of a case."""

    outcome: str
    seconds: float = 0.0
    """Of the slowest operation."""
    growth: int = 0
    """Without conversions."""
    slowest: str = ""
    """The operation that took so many seconds."""
    steps: dict[str, float] = field(default_factory=dict)
    finding: Finding | None = None


_PLACING: dict[str, Any] = {"unigine_scene": unigine_scene_cases, "timberborn_blueprint": timberborn_blueprint_cases}
"""Modules that link and patch the cases of formats that place models of other files."""


class Judge:
    """Judges cases in this process; one case after another, so that peaks belong to the case."""

    def __init__(self) -> None:
        from meshferry.io_formats import registry
        from meshferry.io_formats.core import errors

        self.formats = registry
        self.refusal: type[Exception] = errors.MeshferryError
        self.give_back = memory.trimmer()
        self.base = 0
        self.peak: int | None = None
        """Peak memory of the present case before its conversions."""
        warnings.simplefilter("error")  # NumPy's complaints are noise in an artist's console
        warnings.simplefilter("default", DeprecationWarning)

    def judge(self, case: Case, depth: Depth = ALL_STEPS) -> Verdict:
        """Run one case and return its outcome, time and memory."""
        before = memory.reset_peak()
        if before > self.base + 8 * memory.MEBIBYTE:
            gc.collect()
            self.give_back()
            before = memory.reset_peak()
            self.base = before
        verdict = Verdict("accepted")
        self.peak = None
        try:
            self._run_steps(case, verdict, depth)
        except self.refusal:
            verdict.outcome = "refused"
        except MemoryError as problem:
            verdict.finding = finding("memory", case, problem)
        except Unstable as problem:
            verdict.finding = finding("unstable", case, problem)
        except Exception as problem:
            verdict.finding = finding("exception", case, problem)
        others = {step: (step,) for step in verdict.steps if step.startswith("as ")}
        verdict.seconds, verdict.slowest = max(
            (sum(verdict.steps.get(step, 0.0) for step in steps), name)
            for name, steps in {**_OPERATIONS, **others}.items()
        )
        growth = max(0, memory.peak() - before)
        verdict.growth = growth if self.peak is None else max(0, self.peak - before)
        if verdict.finding is None:
            verdict.finding = self._excess(case, verdict, growth)
        return verdict

    def _excess(self, case: Case, verdict: Verdict, growth: int) -> Finding | None:
        """Compare time and memory with the limits."""
        if verdict.seconds > SECONDS:
            steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in verdict.steps.items())
            detail = f"{verdict.slowest} took {verdict.seconds:.1f} s ({steps})"
            return Finding("slow", f"slow {verdict.slowest}", detail, case.number, case.recipe, case.data)
        if verdict.growth > memory.ALLOWED_BASE and verdict.growth > memory.allowed(case.data):
            detail = (
                f"{verdict.growth / memory.MEBIBYTE:.0f} MiB for a file of {len(case.data):,} bytes that inflates to "
                f"{memory.inflated_size(case.data):,}; allowed {memory.allowed(case.data) / memory.MEBIBYTE:.0f} MiB"
            )
            return Finding("memory", "memory", detail, case.number, case.recipe, case.data)
        if growth > _CONVERSION_BYTES:
            detail = f"conversions took {growth / memory.MEBIBYTE:.0f} MiB"
            return Finding("memory", "memory of conversions", detail, case.number, case.recipe, case.data)
        return None

    def _run_steps(self, case: Case, verdict: Verdict, depth: Depth) -> None:
        def timed(step: str, work: Callable[[], Result]) -> Result:
            started = time.process_time()  # what else the machine does is not the reader's fault
            try:
                return work()
            finally:
                verdict.steps[step] = verdict.steps.get(step, 0.0) + time.process_time() - started

        data = case.data
        if (reader := reader_of(data)) is not None:
            timed("read", lambda: reader(data))
            verdict.outcome = "accepted, whole"
            return
        found = timed("by_content", lambda: self.formats.by_content(data[: self.formats.HEAD_SIZE], len(data)))
        document = timed("read", lambda: found.read(data))
        refusals: list[Exception] = []

        def room(step: str, work: Callable[[], Any]) -> Any:
            """Run a later room; a refusal of one must not keep the others from being tried."""
            try:
                return timed(step, work)
            except self.refusal as problem:
                refusals.append(problem)
                return None

        if depth.inspect:
            room("facts", lambda: found.facts(document))
            room("check", lambda: found.check(document))
        is_written = found.is_written
        written = room("write", lambda: found.write(document)) if depth.rewrite and is_written else None
        if written is not None and len(written) < _STABLE_UP_TO and len(data) < _STABLE_UP_TO:
            self._written_again(found, data, written, timed)
        rng = random.Random(case.number)
        reading, writing = chosen(found.import_options.table(), rng), chosen(found.export_options.table(), rng)
        scene = room("to_scene", lambda: found.to_scene(document, "Case", reading)) if depth.scene else None
        if scene is not None:
            check_scene(scene)
            if scene.placement is not None:
                check_placement(scene.placement)
                placing = _PLACING.get(found.name)
                linked = scene if placing is None else room("link", lambda: placing.link(document, data, reading))
                check_placement(room("expand", lambda: expanded_if_small(linked.placement)) if linked else None)
                if placing is not None:
                    room("patch", lambda: placing.patch(found, data, scene, rng))
            if depth.export and is_written:
                self._exported(found, scene, writing, room, timed)
            self.peak = memory.peak()
            for other in self.formats.FORMATS if depth.convert and scene.placement is None else ():
                if other.is_written and other is not found:
                    work = functools.partial(self._convert, found, document, reading, other, rng)
                    with contextlib.suppress(self.refusal):  # few scenes fit all formats
                        for written in timed(f"as {other.name}", work):
                            self._read_again(written, timed)
        verdict.outcome = "accepted, " + ("in part" if refusals else "whole")

    def _exported(
        self, found: Any, scene: Any, options: dict[str, Any], room: Callable[..., Any], timed: Callable[..., Any]
    ) -> None:
        """Write a scene as its own format and require that the file can be read."""
        for part in room("files_of", lambda: found.files_of(scene, options)) or ():
            mapped = room("from_scene", lambda part=part: found.from_scene(part, options))
            if mapped is None:
                continue
            room("check mapped", lambda mapped=mapped: found.check(mapped))
            room("facts mapped", lambda mapped=mapped: found.facts(mapped))
            again = room("write mapped", lambda mapped=mapped: found.write_files(mapped, "case")[-1].data)
            if again is not None and len(again) < _STABLE_UP_TO:
                self._read_again(again, timed)

    def _convert(
        self, found: Any, document: Any, reading: dict[str, Any], other: Any, rng: random.Random
    ) -> list[bytes]:
        """Return the files of another format that a document becomes, without those that are not read again."""
        from meshferry.io_formats import api
        from meshferry.io_formats.core.capabilities import losses
        from meshferry.io_formats.passes.flatten import fit

        options = chosen(other.export_options.table(), rng)
        scene = found.to_scene(document, "Case", reading)  # a new one, as fitting changes it
        if not other.capabilities.meshes:
            scene.nodes = []
        losses(scene, other.capabilities)
        fit(scene, other.capabilities, found.capabilities)
        path = "case" + other.extensions[0]
        ignores = rng.random() < 0.5
        chosen_files = []
        for part in api.files_of(scene, other, options):
            if ignores:
                document, _ = api.check_part(part, other, options, path=path)
                outputs = other.write_files(document, "case")
            else:
                outputs = api.encode_part(part, other, options, path=path).outputs
            chosen_files.append(outputs[-1].data)
        return [data for data in chosen_files if len(data) < _STABLE_UP_TO] if other.is_read else []

    def _read_again(self, written: bytes, timed: Callable[..., Any]) -> None:
        """Require that what we write of a scene can be read."""
        try:
            found = self.formats.by_content(written[: self.formats.HEAD_SIZE], len(written))
            timed("read again", lambda: found.read(written))
        except self.refusal as problem:
            raise Unstable(f"our own file of a scene is refused: {problem}") from None

    def _written_again(self, found: Any, data: bytes, written: bytes, timed: Callable[..., Any]) -> None:
        """Require of an accepted file that what we write of it can be read and written again without a change."""
        try:
            again = timed("write again", lambda: found.write(found.read(written)))
        except self.refusal as problem:
            raise Unstable(f"our own file is refused: {problem}") from None
        if again != written:
            raise Unstable("writing what was written and read changes it")
        timed("same_content", lambda: found.same_content(data, written))


def chosen(options: Iterable[Any], rng: random.Random) -> dict[str, Any]:
    """Return a value for each option that has some to choose from: the defaults half of the time."""
    values: dict[str, Any] = {}
    for option in options:
        if isinstance(option.default, bool):
            values[option.name] = rng.random() < 0.5
        elif option.choices:
            values[option.name] = rng.choice([choice.key for choice in option.choices])
    return values if rng.random() < 0.5 else {}


class Unstable(Exception):
    """A document that does not survive its own writer."""


def finding(kind: str, case: Case, problem: BaseException) -> Finding:
    """Make a finding of an exception; the signature is its type and the innermost line of the package."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(str(ROOT)) and "/tests/" not in frame.filename]
    place = own[-1] if own else frames[-1]
    where = f"{Path(place.filename).relative_to(ROOT) if own else Path(place.filename).name}:{place.lineno}"
    text = "".join(traceback.format_exception(problem)[-12:])
    if isinstance(problem, Unstable):
        where = str(problem)[:60]
    return Finding(kind, f"{type(problem).__name__} at {where}", text, case.number, case.recipe, case.data)
