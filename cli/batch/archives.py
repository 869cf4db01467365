"""Meshes inside the archives of OpenSim regions and inventories, read without anything being unpacked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

EXTENSIONS = (".oar", ".iar")
"""What counts as an archive in a folder."""


@dataclass(frozen=True, slots=True)
class Member:
    """A mesh inside an archive."""

    name: str
    """As the archive has it."""
    size: int
    modified: int
    """The archive's, in nanoseconds since 1970: OpenSim gives what is inside no date of its own."""
    content: bytes


def is_archive(path: str | Path) -> bool:
    """Tell from a path's extension whether it is that of an archive."""
    raise NotImplementedError


def members(path: str | Path, told: Callable[[str], None] | None = None) -> Iterator[Member]:
    """Yield the meshes in an archive, in its order; each name once, of several the first.

    ``told`` gets what is left out: what is too large, links, names that come again.

    Raises
    ------
    FormatError
        The archive cannot be read, or not from some place on; what was yielded before is good.
    """
    raise NotImplementedError


class ArchiveReader:
    """An archive whose members are asked for by name, in its order: the content for tasks.

    A context manager. Asking out of order is right, too, and slow: the archive is read again from its start.
    """

    def __init__(self, path: str | Path) -> None:
        raise NotImplementedError

    def content(self, name: str) -> bytes:
        """Return what is in a member.

        Raises
        ------
        FormatError
            It is not there (any more), or the archive cannot be read up to it.
        """
        raise NotImplementedError
