"""The command that converts a shard on another machine, and where it writes its results."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from ....io_formats.core.errors import MeshferryError
from ..settings import BatchSettings
from ..tasks import SHARDS_FOLDER, STATE_FOLDER

WITH_PARENT = "--end-with-parent"
"""Flag of a shard that ends when the process that started it ends."""


def worker_command(settings: BatchSettings) -> tuple[str, ...]:
    """Return ``--worker-command``, which must not be empty, as a list of arguments."""
    is_windows = sys.platform == "win32"  # backslashes are part of paths there
    try:
        words = shlex.split(settings.worker_command, posix=not is_windows)
    except ValueError as problem:
        raise MeshferryError("--worker-command {}: {}", settings.worker_command, problem) from None
    if not words:
        raise MeshferryError("--worker-command is empty; give the command of this program")
    return tuple(word.strip('"') if is_windows else word for word in words)


def shard_options(settings: BatchSettings) -> tuple[str, ...]:
    """Return the arguments for every shard of a run."""
    options = [f"--time-limit={settings.time_limit:g}", f"--recycle={settings.recycle}"]
    return (*options, *(["--checksum"] if settings.checksum else []))


def journals_of(output: Path, lines: range) -> tuple[Path, str]:
    """Return the folder for the journals of a shard, and the start of their names, which a number follows."""
    return output / STATE_FOLDER / SHARDS_FOLDER, f"{lines[0]}-{lines[-1]}~"
