"""A file -> a small picture of its model, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...blend_files import BlendSession
from ..work import Result


def render(
    session: BlendSession,
    source: Path,
    to: Path,
    *,
    content: bytes | None = None,
    read_options: Mapping[str, Any] | None = None,
) -> None:
    """Draw the model of a file into ``to``, whole or not at all; its folder is made where needed.

    Parameters
    ----------
    source:
        Any file that can be converted.
    to:
        As :func:`picture_file` names it.
    content:
        What is in the file, where somebody has it already, out of an archive say; ``source`` then only names it.
    read_options:
        As the conversion has them.

    Raises
    ------
    MeshferryError
        The file cannot be read, there is nothing to see in it, or this machine cannot draw.
    """
    raise NotImplementedError


def picture_file(output: Path, hashed: str) -> Path:
    """Return where the picture of a source with this hash (``Result.hash``) lies, below the output folder."""
    raise NotImplementedError


class PictureRun:
    """Which pictures are still to be drawn, in the order of the plan; given up where this machine cannot draw."""

    def __init__(self, output: Path) -> None:
        self.problem = ""
        """Why there are no further pictures, to be said once; empty: there are."""

    def wants(self, result: Result) -> bool:
        """Tell whether a picture should be drawn of what ``result`` (of a conversion, now or earlier) tells of."""
        raise NotImplementedError

    def note(self, result: Result) -> None:
        """Learn how a task of the kind PICTURE ended."""
        raise NotImplementedError
