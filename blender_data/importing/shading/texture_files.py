"""Search for the image files that a file names: paths of other systems, addresses, moved and converted images."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote

from ....io_formats.disk.special_files import special_kind

_FOLDER = "textures"
_EXTENSIONS = (".png", ".tga", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".dds", ".gif", ".webp", ".targa")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_FORMAT_IN_NAME = re.compile(r"_(?:png|tga|targa|jpe?g|bmp|tiff?|dds|gif)\Z", re.IGNORECASE)
"""Exporters add the format of the original image to the name."""


class TextureFiles:
    """Image files for one imported file.

    Parameters
    ----------
    folder:
        Folder of the imported file, or None.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, path: str, name: str) -> Path | None:
        """Return the image file for a stored path or address and the name of the image, or None.

        The path is tried first, then its name beside the file and in a folder ``textures``, without regard to case, and
        then with other image extensions. Network paths are ignored, since a file from the internet must not make the
        computer contact other machines.
        """
        local = local_path(path)
        for place in self._places(path) if local == path else (*self._places(path), *self._places(local)):
            if _exists(place):
                return place
        wanted = [part for part in dict.fromkeys((last_part(local), last_part(path), name)) if part]
        for given in (*wanted, *_other_names(wanted)):
            found = self._beside.get(given.casefold())
            if found is not None and _exists(found):
                return found
        return None

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
        """The entries of the file's folder and of that of textures, by name without case; the first one counts."""
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
    """Return whether Windows would contact another machine for a path. Two slashes mean a relative path in Blender."""
    return path.startswith(("\\\\", "\\/", "/\\"))


def may_be_opened(path: str) -> bool:
    """Return whether Blender may try to open a path that is stored in an image."""
    if path.startswith("//"):  # relative to the .blend file; as a path on Windows, another machine
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
    """Yield the names with other image extensions, with and without a format at the end of the name."""
    for name in names:
        stem = PureWindowsPath(name).stem
        for base in dict.fromkeys((stem, _FORMAT_IN_NAME.sub("", stem))):
            for extension in _EXTENSIONS:
                yield base + extension


def _exists(place: Path) -> bool:
    try:
        return place.is_file()
    except (OSError, ValueError):  # too long, or contains NUL
        return False
