"""Search for image files to which a file refers.

Their paths may be from other systems or URLs; images may be moved or converted.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote

from ....io_formats.disk.reach import Reach, is_picture
from ....io_formats.disk.special_files import special_kind

_FOLDER = "textures"
_EXTENSIONS = (".png", ".tga", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".dds", ".gif", ".webp", ".targa")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_FORMAT_IN_NAME = re.compile(r"_(?:png|tga|targa|jpe?g|bmp|tiff?|dds|gif)\Z", re.IGNORECASE)
"""Matches the format of the original image, which exporters append to the name of a converted image."""


class TextureFiles:
    """Searches the image files to which one imported file refers.

    Parameters
    ----------
    folder:
        Folder of the imported file, or None.
    reach:
        The folders from which the file may bring in images; None for all.
    """

    def __init__(self, folder: Path | None, reach: Reach | None = None) -> None:
        self._folder = folder
        self._reach = reach
        self.outside: dict[Path, None] = {}
        """Images beyond reach; they are found nevertheless if the reach is not asked."""
        self.refusal = ""
        """Why the last image was not found although there is a file: it is ``outside`` or ``no picture``."""

    def find(self, path: str, name: str) -> Path | None:
        """Return the image file for a stored path or address and the name of the image, or None.

        The path is tried first, then its name beside the file and in a folder ``textures``, without regard to case, and
        then with other image extensions. Network paths are ignored, since a file from the internet must not make the
        computer contact other machines.
        """
        self.refusal = ""
        local = local_path(path)
        for place in self._places(path) if local == path else (*self._places(path), *self._places(local)):
            if self._is_usable(place):
                return place
        wanted = [part for part in dict.fromkeys((last_part(local), last_part(path), name)) if part]
        for given in (*wanted, *_other_names(wanted)):
            found = self._beside.get(given.casefold())
            if found is not None and self._is_usable(found):
                return found
        return None

    def _is_usable(self, place: Path) -> bool:
        """Return whether a path is that of an image that the file may bring in."""
        if self._reach is not None and self._reach.brings_in(place, above=True):
            self.outside[place] = None
            if self._reach.is_asked:
                self.refusal = "outside"
                return False
        if not _exists(place):
            return False
        if not is_picture(place):
            self.refusal = "no picture"
            return False
        return True

    def _places(self, path: str) -> Iterator[Path]:
        plain = path.replace("\\", "/")
        if not plain or plain.startswith("//") or _ADDRESS.match(plain):
            return
        if plain.startswith("/.."):  # seen in Collada files of Lightwave
            plain = plain[1:]
        if Path(path).is_absolute():
            yield Path(path)
        elif self._folder is not None:
            yield self._folder / plain

    @functools.cached_property
    def _beside(self) -> dict[str, Path]:
        """Entries of the file's folder and of its folder ``textures``, by lower-case name.

        The first of equal names is used.
        """
        found: dict[str, Path] = {}
        for folder in (self._folder, self._folder / _FOLDER) if self._folder is not None else ():
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            for name in names:
                found.setdefault(name.casefold(), folder / name)
        return found


def is_network_path(path: str) -> bool:
    """Return whether Windows would contact another machine for a path.

    Paths that start with two slashes are relative paths of Blender.
    """
    return path.startswith(("\\\\", "\\/", "/\\"))


def may_be_opened(path: str) -> bool:
    """Return whether Blender may try to open a path that is stored in an image."""
    if path.startswith("//"):  # in Blender a path relative to the .blend file, in Windows a path to another machine
        return True
    return not is_network_path(path) and not special_kind(path)


def local_path(path: str) -> str:
    """Return the path in a file URL such as ``file:///C:/my%20image.png``. Other paths are only percent-decoded."""
    plain = unquote(path)
    if plain[:5].lower() == "file:":
        plain = plain[5:]
        plain = plain.removeprefix("//") if not plain.startswith("////") else plain[2:]
        if re.match(r"/[A-Za-z]:", plain):
            plain = plain[1:]
    return plain


def last_part(path: str) -> str:
    """Return the file name of a Windows or POSIX path."""
    return PureWindowsPath(path).name


def _other_names(names: list[str]) -> Iterator[str]:
    """Yield the names with other image extensions, both with and without a format at the end of the stem."""
    for name in names:
        stem = PureWindowsPath(name).stem
        for base in dict.fromkeys((stem, _FORMAT_IN_NAME.sub("", stem))):
            for extension in _EXTENSIONS:
                yield base + extension


def _exists(place: Path) -> bool:
    try:
        return place.is_file()
    except (OSError, ValueError):  # the path is too long or contains a NUL character
        return False
