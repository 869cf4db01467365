"""Sources -> the plan of a batch: what becomes what, with no two files in one place.

The lines go to a file beside the plan, which takes its place at the end, so a plan is whole or not there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Literal

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk.atomic_write import copy_mode, refusal, remove_file, rename_over, replace_file, temporary_file
from ....io_formats.disk.file_names import NameRules
from ..tasks import BATCH_FILE, PLAN_FILE, STATE_FOLDER, Source
from .plan_draft import Draft
from .plan_file import BatchFile, Plan
from .target_index import write_index

Clashes = Literal["refuse", "number"]

_BUFFER = 2**18


def make_plan(
    sources: Iterable[Source],
    folder: Path,
    extension: str,
    clashes: Clashes,
    batch: BatchFile,
    rules: NameRules | None = None,
) -> Plan:
    """Decide where every source goes, and keep it in the folder ``meshferry-batch`` of the output folder.

    Who calls it holds the lock of the journal. A plan that is there already stays as it is until the new one is whole.

    Parameters
    ----------
    sources:
        Gone through once. A source that comes twice counts once.
    folder:
        The output folder.
    extension:
        Of the files to write, with its dot.
    clashes:
        What happens where two sources would become one file: ``refuse`` or ``number`` the later ones (``x.blend``,
        ``x_2.blend``), in the order of the sources. A number never gives the name of another target.
    batch:
        What was asked for; its roots and counts are filled in.
    rules:
        Which names are those of one file; default: the output folder is probed where it matters.

    Raises
    ------
    MeshferryError
        Files would clash, or overwrite a source, or the plan cannot be written. Nothing is left behind.
    """
    if folder.exists() and not folder.is_dir():
        raise MeshferryError(f"{folder} is a file, not a folder")
    state = folder / STATE_FOLDER
    made = [path for path in (state, *state.parents) if not path.exists()]
    try:
        state.mkdir(parents=True, exist_ok=True)
        _write(sources, folder, extension, clashes, batch, rules)
    except BaseException as problem:
        for path in made:
            with contextlib.suppress(OSError):  # not empty: somebody else's
                path.rmdir()
        if isinstance(problem, OSError):
            raise MeshferryError(f"{state}: the plan cannot be written: {refusal(problem)}") from None
        raise
    return Plan.open(state)


def _write(
    sources: Iterable[Source],
    folder: Path,
    extension: str,
    clashes: Clashes,
    batch: BatchFile,
    rules: NameRules | None,
) -> None:
    """Write the three files of a plan, its head last."""
    state = folder / STATE_FOLDER
    with ExitStack() as opened:
        stream, path = opened.enter_context(_temporary(state / PLAN_FILE))
        draft = Draft(stream, folder, extension, rules)
        for source in sources:
            draft.add(source)
        draft.resolve(numbers=clashes == "number")
        if draft.is_to_be_changed:
            final, path = opened.enter_context(_temporary(state / PLAN_FILE))
            draft.copy(final)
            stream = final
        stream.flush()
        os.fsync(stream.fileno())
        size = stream.tell()
        stream.close()
        write_index(folder, itertools.chain(draft.targets, draft.sources_inside))
        rename_over(path, state / PLAN_FILE)
    filled = dataclasses.replace(batch, roots=tuple(draft.roots), count=len(draft.targets), plan_size=size)
    replace_file(state / BATCH_FILE, filled.to_json().encode("ascii"))


@contextlib.contextmanager
def _temporary(place: Path) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file beside a place, which is gone at the end unless it was put there."""
    handle, path = temporary_file(place)
    try:
        with os.fdopen(handle, "w+b", buffering=_BUFFER) as stream:
            copy_mode(place, path)
            yield stream, path
    finally:
        with contextlib.suppress(OSError):
            remove_file(path)
