"""Sources -> the plan of a batch: what becomes what, with no two files in one place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from .plan_file import BatchFile, Plan
from .work import Source

Clashes = Literal["refuse", "number"]


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
        or ``number`` the later ones (``x.blend``, ``x_2.blend``), in the order of the sources.
    batch:
        What was asked for; its roots and counts are filled in.

    Raises
    ------
    MeshferryError
        Files would clash, or overwrite a source, or the plan cannot be written. Nothing is left behind.
    """
    raise NotImplementedError
