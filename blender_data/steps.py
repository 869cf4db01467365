"""Long operations in steps: generators that report progress and can be stopped between two steps.

A function that works in steps is a generator. It yields a :class:`Step` before each part of the work and returns its
result. Closing it (``GeneratorExit`` at a ``yield``) cancels the work: ``finally`` and ``except`` blocks restore the
original state. :func:`finish` runs it without stopping.
"""

import contextlib
import gc
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ParamSpec, TypeAlias, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class Step:
    """The next part of a long operation."""

    label: str
    """Label of the phase, such as "Reading meshes"."""
    fraction: float
    """Share of the operation that is done, 0 to 1."""
    subject: str = ""
    """Name of the file or object that is being processed."""
    job: Callable[[], Any] | None = None
    """Work without bpy. The caller may run it in a thread and send its future to the generator. If the caller sends
    None, the generator runs the work itself.
    """
    progress: Callable[[], float] | None = None
    """Function that returns the share of the operation that ``job`` has completed so far, in addition to
    ``fraction``."""


Steps: TypeAlias = Generator[Step, "Future[Any] | None", T]


def finish(steps: Steps[T]) -> T:
    """Run all steps; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def without_bpy(label: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Call a function as one step that may run in a thread, since it does not use bpy; return its result."""
    job = partial(function, *args, **kwargs)
    future = yield Step(label, 0.0, job=job)
    return job() if future is None else future.result()


def scaled(steps: Steps[T], start: float, end: float, subject: str = "") -> Steps[T]:
    """Yield the steps of a part of an operation, with their progress scaled to a range; return the result of the part.

    Steps without a subject get ``subject``.
    """
    reply: Future[Any] | None = None
    try:
        while True:
            step = steps.send(reply)
            fraction = start + (end - start) * step.fraction
            inner = step.progress
            progress = partial(_scaled_progress, inner, end - start) if inner is not None else None
            reply = yield replace(step, fraction=fraction, subject=step.subject or subject, progress=progress)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        steps.close()


def _scaled_progress(progress: Callable[[], float], factor: float) -> float:
    return factor * progress()


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Pause the garbage collector: it would take 10 to 50 % of the decoding time, for lists of millions of numbers."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
