"""Meshes and animations in the archives of OpenSim regions (.oar) and inventories (.iar), read without unpacking them.

Such an archive is a gzipped tar file. Its assets are called ``assets/<uuid>_<type>.<extension>``, a mesh
``assets/<uuid>_mesh.llmesh``, an animation ``assets/<uuid>_animation.bvh``, although its content is not BVH
(``OpenSim/Framework/Serialization/ArchiveConstants.cs``). Other members are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path

from ....io_formats.core.errors import FormatError
from ....io_formats.disk.file_names import file_name
from ....io_formats.second_life.opensim import container as opensim_container
from ...reporting import shortened

EXTENSIONS = (".oar", ".iar")
"""Extensions of archives in a searched folder."""
_BY_NAME = (*EXTENSIONS, ".tar.gz", ".tgz", ".tar")
"""Extensions of archives that are named one by one: users also repack them."""
ENDINGS = {".llmesh": ".llmesh", ".anim": "_animation.bvh"}
"""Extensions of files -> endings of the names that such files have as members of archives."""


def is_archive(path: str | Path) -> bool:
    """Return whether a path has the extension of an archive."""
    return str(path).lower().endswith(_BY_NAME)


def place_of(archive: str, member: str) -> str:
    """Return the output path of a member: ``land/assets/x.llmesh`` for ``assets/x.llmesh`` in ``land.oar``.

    Every part of the member's name is made a valid file name, so the path stays below the archive's folder.
    """
    stem = next((archive[: -len(end)] for end in _BY_NAME if archive.lower().endswith(end)), archive)
    parts = [part for part in member.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
    *folders, name = parts or ["_"]
    ending = next((ending for ending in ENDINGS.values() if name.lower().endswith(ending)), "")
    plain = file_name(name[: len(name) - len(ending)]) + ending
    return "/".join([stem, *map(file_name, folders), plain])


def endings_of(extensions: Iterable[str]) -> tuple[str, ...]:
    """Return the ends of the names of members that are files of these extensions."""
    return tuple(ENDINGS[extension] for extension in extensions if extension in ENDINGS)


def archive_members(
    path: str | Path,
    on_skip: Callable[[str], None] | None = None,
    endings: Iterable[str] = tuple(ENDINGS.values()),
) -> Generator[tuple[str, bytes], None, None]:
    """Yield the names and contents of the meshes and animations in an archive in their order, each name once.

    Parameters
    ----------
    on_skip:
        Called with a message for each skipped asset: too large, a link, or a repeated name.
    endings:
        Ends of the names of members to read.

    Raises
    ------
    FormatError
        The archive is unreadable from some offset on; members yielded before are valid.
    """
    wanted = tuple(endings)

    def limit_of(name: str) -> int:
        return opensim_container.LARGEST_ASSET if name.lower().endswith(wanted) else 0

    def skip(name: str, reason: str) -> None:
        if on_skip is not None and limit_of(name):
            on_skip(f"{shortened(name)} is left out: {reason}")

    try:
        for name, content in opensim_container.archive_members(opensim_container.file_opener(path), limit_of, skip):
            if content is not None:
                yield name, content
    except FormatError as problem:
        raise problem.in_file(str(path)) from None


class ArchiveReader:
    """Reads members of an archive by name.

    Any order works, but another one than that of the archive is slow: each time, it is read again from its start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._members = archive_members(path)
        self._passed: set[str] = set()
        self._end = FormatError("It is not in the archive any more")
        """The error for all members that were not found before the end of the archive."""

    def content(self, name: str) -> bytes:
        """Return the content of a member.

        Raises
        ------
        FormatError
            The member is missing, or the archive cannot be read up to it.
        """
        if name in self._passed:
            self._members, self._passed = archive_members(self._path), set()
        try:
            for found, content in self._members:
                self._passed.add(found)
                if found == name:
                    return content
        except FormatError as problem:
            self._end = problem
        raise FormatError(self._end.message, offset=self._end.offset, file=f"{self._path}: {shortened(name)}")
