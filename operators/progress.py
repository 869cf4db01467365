"""Long-running operators: progress in the status bar and at the pointer, Esc to cancel."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import bpy

from ..blender_data.export_options import MOST_BAKES
from ..blender_data.file_records import SessionFile, session_files, unasked_paths
from ..blender_data.steps import Step, Steps
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import Text, listed
from .reports import inform, refuse
from .translations import iface_, rpt_

PATIENCE = 0.5
"""Seconds of work before an operator becomes modal, with progress and Esc."""

DIALOG_WIDTH = 400
"""Width of the confirmation dialog in pixels, at a resolution scale of 1."""

TICK = 0.02
"""Seconds between two turns of work, during which Blender handles events and redraws."""

TURNS = (0.1, 1.0)
"""Minimum and maximum seconds of work in one turn; a step is never interrupted. Between these limits, a turn takes
twice as long as the last redraw, so that redrawing large scenes takes at most a third of the time.
"""


class Work:
    """Runs steps one after the other, in turns of limited time."""

    def __init__(self, steps: Steps[set[str]]) -> None:
        self._steps = steps
        self._future: Future[Any] | None = None
        self.step = Step("", 0.0)
        """The current step, for displaying progress."""
        self.result: set[str] | None = None
        """The result of the operator; None until all steps are done."""

    def run(self, seconds: float) -> bool:
        """Run steps for about this many seconds; return whether all are done."""
        end = time.monotonic() + seconds
        while self.result is None:
            if self._future is not None and not self._future.done():
                wait_for([self._future], timeout=max(0.0, end - time.monotonic()))
                if not self._future.done():
                    return False
            future, self._future = self._future, None
            try:
                self.step = self._steps.send(future)
            except StopIteration as stop:
                self.result = stop.value
                return True
            if self.step.job is not None and math.isfinite(seconds):
                self._future = _in_thread(self.step.job)
            if time.monotonic() >= end:
                return False
        return True

    def cancel(self) -> None:
        """Stop; the steps restore the original state."""
        self._steps.close()


def question_of_network(paths: list[str]) -> str:
    """Return a question about stored paths to other machines; an empty string if there are none."""
    text = Text("Open paths on other machines, which are stored in this .blend file? {}", listed(paths))
    return rpt_(text) if paths else ""


def _question_of_bakes(work: LongWork, context: bpy.types.Context) -> str:
    """Return a question if an export bakes many sets of pictures; otherwise an empty string."""
    with contextlib.suppress(MeshferryError):  # the export will report it
        sets, text = work.bakes(context)
        question = "Bake {}? This may take minutes, and Second Life asks a fee for each picture that is uploaded"
        return rpt_(Text(question, text)) if sets > MOST_BAKES else ""
    return ""


def _in_thread(job: Callable[[], Any]) -> Future[Any]:
    """Run a job in a daemon thread, so that Blender can quit meanwhile."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(job())
        except Exception as problem:  # noqa: BLE001  # raised where the result is used
            future.set_exception(problem)

    threading.Thread(target=run, name="Meshferry", daemon=True).start()
    return future


class LongWork:
    """Mixin of operators whose work may take long; subclasses do it in :meth:`steps`.

    In scripts and in background mode all steps run at once. When started by the user in a window, they run for half a
    second. If there is more to do, the operator becomes modal: it shows progress and consumes all events, so that
    nothing else changes the scene. Esc cancels, and the steps restore the original state.
    """

    confirm_text = "Export Anyway"
    """Button text of the confirmation dialog."""
    asked = ""
    """Question of the confirmation dialog, which ``draw`` shows instead of the options; empty before the dialog opens.
    """
    is_again: Any = False
    """Whether the dialog of a refused export started this run. Blender shows reports of an operator that another
    operator called only if it is modal.
    """
    _work: Work | None = None
    _timer: Any = None
    _paused = 0.0
    """Time at the end of the last turn, on the monotonic clock."""

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Do the work in steps; return the operator's result."""
        raise NotImplementedError

    def question(self, context: bpy.types.Context) -> str:
        """Return a question to the user before the work, or an empty string."""
        return ""

    def bakes(self, context: bpy.types.Context) -> tuple[int, Text]:
        """Return the largest number of sets of pictures that the work bakes, and a text about them."""
        return 0, Text("")

    def stored_paths(self, context: bpy.types.Context) -> list[Any]:
        """Return values from the .blend file, such as paths, that the work may open.

        Before the user agreed to those of them that are paths to other machines, the question must not open them.
        """
        return []

    def is_from_user(self) -> bool:
        """Return whether a user started the operator, not a script."""
        return self.is_again or self.options.is_invoke  # type: ignore[attr-defined]

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Do all the work, or, started by a user, as much as fits in ``PATIENCE`` seconds."""
        manager: Any = context.window_manager
        is_modal = self.is_from_user() and not bpy.app.background and context.window is not None
        unasked = unasked_paths(self.stored_paths(context))
        if is_modal and not self.asked and not self.is_again:
            questions = (question_of_network(unasked), self.question(context), _question_of_bakes(self, context))
            self.asked = "\n".join(filter(None, questions))
            if self.asked:  # confirming the dialog calls ``execute`` again
                return manager.invoke_props_dialog(
                    self, width=DIALOG_WIDTH, title=self.bl_label, confirm_text=iface_(self.confirm_text)
                )
        if unasked and not (self.asked or getattr(self, "is_confirmed", False)):
            return refuse(self, "Stored paths on other machines need your consent in a window: {}", listed(unasked))
        for path in unasked:
            session_files().setdefault(str(Path(path)), SessionFile())
        work = Work(self.steps(context))
        manager.progress_begin(0, 100)
        try:
            patience = 0.0 if self.is_again else PATIENCE
            done = work.run(patience if is_modal else math.inf)
        except BaseException:
            manager.progress_end()
            raise
        if done:
            manager.progress_end()
            return work.result or {"CANCELLED"}
        self._work = work
        self._paused = time.monotonic()
        self._timer = manager.event_timer_add(TICK, window=context.window)
        manager.modal_handler_add(self)
        self._show(context, work.step)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Continue the work at each tick; consume all events."""
        work = self._work
        if work is None:
            return {"CANCELLED"}
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            inform(self, "Cancelled; nothing was changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}
        try:
            least, most = TURNS
            done = work.run(min(max(least, 2 * (time.monotonic() - self._paused)), most))
            self._paused = time.monotonic()
        except BaseException:
            self._end(context)
            raise
        if not done:
            self._show(context, work.step)
            return {"RUNNING_MODAL"}
        self._end(context)
        return work.result or {"CANCELLED"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Stop; Blender calls this when it closes the window or opens another file."""
        work = self._work
        if work is not None:
            try:
                work.cancel()
            finally:
                self._end(context)

    def _show(self, context: bpy.types.Context, step: Step) -> None:
        """Show phase and progress in the status bar, and the percentage at the pointer."""
        fraction = step.fraction + (step.progress() if step.progress is not None else 0.0)
        percent = int(100 * min(max(fraction, 0.0), 1.0))
        phase = ": ".join(part for part in (step.subject, iface_(step.label)) if part)
        context.workspace.status_text_set(iface_("{} … {} % (Esc: cancel)").format(phase, percent))
        context.window_manager.progress_update(percent)

    def _end(self, context: bpy.types.Context) -> None:
        """Remove the display and the timer."""
        self._work = None
        context.window_manager.progress_end()
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
            self._timer = None
        if context.workspace is not None:
            context.workspace.status_text_set(None)
