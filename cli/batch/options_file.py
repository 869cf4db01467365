"""Options of the command line out of a file, in TOML or JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def read(path: str | Path, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a file as arguments, to stand in front of those of the command line.

    The names are those of the flags (``to = "blend"``, ``jobs = 4``, ``strict = true``, ``match = ["*.mesh", "x*"]``);
    ``sources`` are the files and folders.

    Raises
    ------
    MeshferryError
        The file cannot be read, or has something in it that is no option of ``parser``.
    """
    raise NotImplementedError


def expanded(argv: Sequence[str], parser: argparse.ArgumentParser, flag: str = "--options") -> list[str]:
    """Return arguments with the content of the files that ``--options`` names in front, so that the others win."""
    raise NotImplementedError
