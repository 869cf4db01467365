"""Files of the game for modders, and of mods (docs/formats/timbermesh.md, material names)."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from ..core.errors import FormatError
from ..disk.rooted_files import path_key
from ..encodings.zip_files import open_archive, read_entry

LARGEST_ENTRY = 1 << 20
"""Largest size of an entry in bytes. The largest blueprint of the game has a third of it."""


class GameArchive:
    """The blueprints in the archive, by their paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = _stamp(path)
        with open_archive(path) as archive:
            self._names = {path_key(info.filename): info.filename for info in archive.infolist()}
        self.folders = {key.rpartition("/")[0] for key in self._names}
        """Keys of the folders with blueprints."""

    @property
    def keys(self) -> Iterable[str]:
        """Keys of the paths of all entries."""
        return self._names.keys()

    def is_current(self) -> bool:
        """Return whether the archive has not changed."""
        return _stamp(self.path) == self._stamp

    def read(self, path: str) -> bytes | None:
        """Return the content of an entry, or None if there is none of this path.

        Raises
        ------
        FormatError
            The archive is damaged.
        """
        key = path_key(path)
        name = self._names.get(key) or self._names.get(f"blueprints/{key}")
        if name is None:
            return None
        with open_archive(self.path) as archive:
            return read_entry(archive, archive.getinfo(name), LARGEST_ENTRY)

    def has_folder(self, path: str) -> bool:
        """Return whether blueprints are in the folder of a path."""
        folder = path_key(path).rpartition("/")[0]
        return bool(folder) and not self.folders.isdisjoint({folder, f"blueprints/{folder}"})


def _stamp(path: Path) -> tuple[int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return 0, 0
    return info.st_size, info.st_mtime_ns


ARCHIVE = "Blueprints.zip"
EXAMPLE_MODELS = "TimberbornExampleModels.blend"
MANIFEST = "manifest.json"
"""File in the main folder of a mod."""

_INSTALLATIONS = (
    "steamapps/common/Timberborn/Timberborn_Data/StreamingAssets/Modding",
    "steamapps/common/Timberborn/Timberborn.app/Contents/Resources/Data/StreamingAssets/Modding",
)
"""Folders from a library of games down to the archive, on Windows and Linux and on macOS."""
_SUFFIXES = [parts[start:] for path in _INSTALLATIONS for parts in [path.split("/")] for start in range(len(parts) + 1)]
_MOST_LEVELS = 8
"""Number of folders in which the archive is searched: the chosen folder and its parents."""
_MOD_LEVELS = 8
"""Number of parent folders of a model in which a manifest is searched."""


def find_archive(folder: str | Path) -> Path:
    """Return the path of the game's archive of blueprints.

    Only the known paths are tested, below ``folder`` and below each folder above it. ``folder`` may also be a file,
    such as the archive itself or the game's program.

    Raises
    ------
    FormatError
        None of these paths has the archive.
    """
    start = Path(os.path.abspath(os.path.expanduser(folder)))
    for above in islice((start, *start.parents), _MOST_LEVELS):
        for parts in _SUFFIXES:
            path = above.joinpath(*parts, ARCHIVE)
            if os.path.isfile(path):
                return path
    raise FormatError("'{}' is not a folder of Timberborn: it has no {}", folder, ARCHIVE)


def find_example_models(folder: str | Path) -> Path | None:
    """Return the path of the .blend file with the game's example models, or None if the game has none."""
    try:
        path = find_archive(folder).with_name(EXAMPLE_MODELS)
    except FormatError:
        return None
    return path if os.path.isfile(path) else None


def mod_folder(file: Path) -> Path | None:
    """Return the folder of the mod that a file belongs to: the nearest folder above it with a manifest."""
    folders = islice(Path(os.path.abspath(file)).parents, _MOD_LEVELS)
    return next((folder for folder in folders if os.path.isfile(folder / MANIFEST)), None)
