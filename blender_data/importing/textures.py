"""Textures of materials -> images: from a file that is searched for, from packed data, or as a name for later.

Their paths may be from other systems or URLs; images may be moved or converted.
"""

import functools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import unquote

import bpy

from ...io_formats.core.messages import Named, Report, Text, counted, listed, of_kind
from ...io_formats.core.shading import Texture
from ...io_formats.disk.reach import Reach, is_picture
from ...io_formats.disk.special_files import special_kind
from .. import names
from .project_images import ProjectImages

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
        """Yield where a texture may be: at its path as stated, or relative to the folder of the file."""
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


_MOST_NAMED = 5
"""Largest number of missing textures that a message names; with more, it only states their number."""


class TextureLoader:
    """Find or create the images of one import.

    Parameters
    ----------
    folder:
        Folder of the imported file, for relative paths and for textures that were moved there.
    keep:
        Called with each new image, so that it is removed if the import fails.
    report:
        Gets messages about missing or damaged textures.
    project:
        Images of textures that are read from a project.
    reach:
        The folders from which the file may bring in images; None for all.
    """

    def __init__(
        self,
        folder: Path | None,
        keep: Callable[[Any], Any],
        report: Report,
        project: ProjectImages,
        reach: Reach | None = None,
    ) -> None:
        self._files = TextureFiles(folder, reach)
        self._reach = reach
        self._missing: dict[str, str] = {}
        """For each texture that was not found, the first material that uses it."""
        self._keep = keep
        self._report = report
        self._project = project
        self._known: dict[tuple[str, str, bytes | None], bpy.types.Image] = {}

    def image(self, material: str, texture: Texture, *, is_color: bool = True) -> bpy.types.Image | None:
        """Return the image of a material's texture; if it is missing, an empty image with its name and path.

        Blender shows such an image in pink, and File > External Data > Find Missing Files can locate the file. For a
        texture of a project that cannot be read, return None.
        """
        if texture.read is not None:
            return self._project.image(texture, is_color=is_color)
        key = (texture.name, texture.path, texture.data)
        if key not in self._known:
            self._known[key] = self._load(material, texture)
        return self._known[key]

    def _load(self, material: str, texture: Texture) -> bpy.types.Image:
        """Return the image of a texture; an empty image of its name if there is no file, which is reported."""
        label = texture.name or last_part(texture.path)
        if texture.data is not None:
            image = self._empty(label, texture.path or f"//{label}")
            image.pack(data=texture.data, data_len=len(texture.data))
            return self._checked(material, label, image)
        path = self._files.find(texture.path, texture.name)
        if path is None and self._files.refusal:
            image = self._empty(label, f"//{label}")
            return image if self._files.refusal == "outside" else self._checked(material, label, image, is_read=False)
        if path is None:
            self._missing.setdefault(texture.path or label, material)
            return self._empty(label, texture.path if may_be_opened(texture.path) else f"//{label}")
        there = next((image for image in bpy.data.images if _is_file(image, path)), None)
        if there is not None:
            return there
        try:
            image = self._keep(bpy.data.images.load(str(path)))
        except RuntimeError:  # Blender could not open the file
            image = self._empty(label, str(path))
        return self._checked(material, label, image)

    def report_missing(self) -> None:
        """Report the textures that were not found, all at once, and those that may not be read."""
        outside = list(self._files.outside)
        if self._reach is not None and self._reach.is_asked:
            self._reach.report_outside(outside, self._report)
        elif outside:
            self._report.note(
                "textures-from-elsewhere",
                "{} shown from outside of the file's folder: {}",
                counted(len(outside), "texture is", "textures are"),
                listed(of_kind("file", (str(path) for path in {path.parent: 0 for path in outside})), _MOST_NAMED),
            )
        self._files.outside.clear()
        if len(self._missing) == 1:
            path, material = next(iter(self._missing.items()))
            self._report.loss(
                "missing-texture",
                "its texture '{}' was not found; put it beside the file, or use File > External Data > Find Missing "
                "Files",
                Named("image", path),
                item=Text("Material '{}'", Named("material", material)),
            )
        else:
            template = "{} not found; put them beside the file, or use File > External Data > Find Missing Files: {}"
            names = of_kind("image", self._missing)
            self._report.loss_of("missing-texture", template, names, "texture was", "textures were", most=_MOST_NAMED)
        self._missing.clear()

    def _empty(self, label: str, path: str) -> bpy.types.Image:
        image = self._keep(bpy.data.images.new(names.fit(label), 1, 1))
        image.source = "FILE"
        image.filepath_raw = path.replace("\0", "")
        return image

    def _checked(self, material: str, label: str, image: bpy.types.Image, *, is_read: bool = True) -> bpy.types.Image:
        if not is_read or not all(image.size):
            item = Text("Material '{}'", Named("material", material))
            text = "its texture '{}' cannot be read as an image"
            self._report.loss("unreadable-image", text, Named("image", label), item=item)
        return image


def _is_file(image: bpy.types.Image, path: Path) -> bool:
    if image.source != "FILE" or image.library is not None or image.packed_file is not None or not image.filepath_raw:
        return False
    return Path(bpy.path.abspath(image.filepath_raw)) == path
