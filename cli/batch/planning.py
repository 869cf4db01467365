"""Sources -> the plan of a batch: what becomes what, with no two files in one place.

A million sources are gone through once, and of each no more than three hashes of 64 bits stay in memory: what it is,
what it becomes, and, for those in the output folder, what it must not be replaced by. The lines themselves go to a file
beside the plan, which takes its place at the end; only where something clashes it is read once more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from ...io_formats.errors import MeshferryError
from ...io_formats.replacing import copy_mode, refusal, replace_file, temporary_file
from .. import inputs
from ..convert_plan import renamed
from .plan_file import BatchFile, Plan, line_of
from .target_index import target_hash, write_index
from .work import BATCH_FILE, PLAN_FILE, STATE_FOLDER, Source, Work

Clashes = Literal["refuse", "number"]

_NAMED = 3
"""Clashes that a refusal names before it says how many more there are."""
_Lines = NDArray[np.int64]
_Hashes = NDArray[np.uint64]


def make_plan(sources: Iterable[Source], folder: Path, extension: str, clashes: Clashes, batch: BatchFile) -> Plan:
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
        What happens where two sources would become one file, also one whose name differs in case alone: ``refuse``
        or ``number`` the later ones (``x.blend``, ``x_2.blend``), in the order of the sources. A number never gives
        the name of another target.
    batch:
        What was asked for; its roots and counts are filled in.

    Raises
    ------
    MeshferryError
        Files would clash, or overwrite a source, or the plan cannot be written. Nothing is left behind.
    """
    if folder.exists() and not folder.is_dir():
        raise MeshferryError(f"{folder} is a file, not a folder")
    state = folder / STATE_FOLDER
    missing = [path for path in (state, *state.parents) if not path.exists()]
    try:
        state.mkdir(parents=True, exist_ok=True)
        for left_over in state.glob(f".{PLAN_FILE}.*.part"):  # of a run that was killed
            left_over.unlink(missing_ok=True)
        with _temporary(state / PLAN_FILE) as draft:
            found = _Draft(draft, folder, extension)
            for source in sources:
                found.add(source)
            draft.flush()
            found.settle(clashes)
        _put_in_place(found, state, batch)
    except BaseException as problem:
        for path in missing:
            with contextlib.suppress(OSError):
                path.rmdir()
        if isinstance(problem, OSError):
            raise MeshferryError(f"{state}: the plan cannot be written: {refusal(problem)}") from None
        raise
    return Plan.open(state)
