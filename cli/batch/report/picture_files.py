"""Pictures of models on disk: which there are, and which are still to be drawn."""

from __future__ import annotations

import re
from pathlib import Path

from ..tasks import PICTURES_FOLDER, STATE_FOLDER, Result, Status

SUFFIXES = (".webp", ".png")
"""Of pictures: the second where a build of Blender lacks the first."""
CANNOT_DRAW = "Blender cannot draw a picture"
"""How the refusals begin that are about this machine, not about a file."""
_MAGIC = {b"RIFF": "image/webp", b"\x89PNG": "image/png"}
"""Kinds of pictures by their first bytes."""
_LARGEST = 1 << 20
"""Bytes; no picture of ours comes near it."""
_HASH = re.compile("[0-9a-f]{16,128}")
_TRIALS = 2
"""Pictures that are tried on a machine on which none has come about yet."""
_REMEDY = "Drawing needs OpenGL 4.3; on Debian and Ubuntu without a graphics card: apt install libegl1 libgl1-mesa-dri"


def picture_file(output: Path, hashed: str) -> Path:
    """Return where the picture of a source with this hash (``Result.hash``) lies, below the output folder.

    Where there is none yet, it is the place to draw it.
    """
    folder = output / STATE_FOLDER / PICTURES_FOLDER
    there = (folder / (hashed + suffix) for suffix in SUFFIXES)
    return next((path for path in there if path.is_file()), folder / (hashed + SUFFIXES[0]))


def read_picture(output: Path, hashed: str) -> tuple[str, bytes] | None:
    """Return the media type and the content of the picture of a source with this hash; None: there is none, or half."""
    if not _HASH.fullmatch(hashed):
        return None
    try:
        data = picture_file(output, hashed).read_bytes()
    except OSError:
        return None
    kind = _MAGIC.get(data[:4])
    is_cut = data.startswith(b"RIFF") and len(data) < 8 + int.from_bytes(data[4:8], "little")
    return (kind, data) if kind and not is_cut and len(data) <= _LARGEST else None


class PictureRun:
    """Which pictures are still to be drawn, in the order of the plan; given up where this machine cannot draw."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._can_draw = False
        self._failed = 0
        self.problem = ""
        """Why there are no further pictures, to be said once; empty: there are."""

    def wants(self, result: Result) -> bool:
        """Tell whether a picture should be drawn of what ``result`` (of a conversion, now or earlier) tells of.

        Files that could not be read, or killed their process, have none; pictures that somebody broke are drawn anew.
        """
        if self.problem or not _HASH.fullmatch(result.hash):
            return False
        if not result.status.is_good and not (result.facts and result.status is Status.FAILED):
            return False
        return read_picture(self._output, result.hash) is None

    def note(self, result: Result) -> None:
        """Learn how a task of the kind PICTURE ended."""
        if result.status.is_good:
            self._can_draw = True
        elif result.status.is_quarantined or result.error.startswith(CANNOT_DRAW):
            self._failed += 1
            if self._failed >= _TRIALS and not self._can_draw and not self.problem:
                self.problem = f"There are no pictures of models: {result.error or result.status.value}. {_REMEDY}"
