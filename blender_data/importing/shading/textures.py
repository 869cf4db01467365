"""Textures of materials -> images: from their file, from packed data, or as a name to be found later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import Any

import bpy

from ....io_formats.core.messages import Report, Text
from ....io_formats.core.shading import Texture
from ... import names
from .project_images import ProjectImages


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
    """

    def __init__(
        self,
        folder: Path | None,
        keep: Callable[[Any], Any],
        report: Report,
        project: ProjectImages,
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._report = report
        self._project = project
        self._known: dict[tuple[str, str, bytes | None], bpy.types.Image] = {}

    def image(self, material: str, texture: Texture, *, is_color: bool = True) -> bpy.types.Image | None:
        """Return the image of a material's texture; if it is missing, an empty image with its name and path.

        Blender shows such an image in pink, and File > External Data > Find Missing Files can locate the file. Textures
        of a project that cannot be read have no image.
        """
        if texture.read is not None:
            return self._project.image(texture, is_color=is_color)
        key = (texture.name, texture.path, texture.data)
        if key not in self._known:
            self._known[key] = self._load(material, texture)
        return self._known[key]

    def _load(self, material: str, texture: Texture) -> bpy.types.Image:
        label = texture.name or _last_part(texture.path)
        if texture.data is not None:
            image = self._empty(label, texture.path or f"//{label}")
            image.pack(data=texture.data, data_len=len(texture.data))
            return self._checked(material, label, image)
        path = self._find(texture)
        if path is None:
            self._report.loss(
                "missing-texture",
                "its texture '{}' was not found; put it beside the file, or use File > External Data > Find Missing "
                "Files",
                texture.path or label,
                item=Text("Material '{}'", material),
            )
            return self._empty(label, texture.path)
        there = next((image for image in bpy.data.images if _is_file(image, path)), None)
        if there is not None:
            return there
        try:
            image = self._keep(bpy.data.images.load(str(path)))
        except RuntimeError:  # Blender could not open the file
            image = self._empty(label, str(path))
        return self._checked(material, label, image)

    def _empty(self, label: str, path: str) -> bpy.types.Image:
        image = self._keep(bpy.data.images.new(names.fit(label), 1, 1))
        image.source = "FILE"
        image.filepath_raw = path.replace("\0", "")
        return image

    def _checked(self, material: str, label: str, image: bpy.types.Image) -> bpy.types.Image:
        if not all(image.size):
            item = Text("Material '{}'", material)
            self._report.loss("unreadable-image", "its texture '{}' cannot be read as an image", label, item=item)
        return image

    def _find(self, texture: Texture) -> Path | None:
        """Return the path of the texture file, as stored or beside the imported file, or None if it does not exist.

        Network paths are ignored, since a file from the internet must not make the computer contact other machines.
        """
        places = []
        if texture.path and not texture.path.startswith(("\\\\", "//")):
            path = Path(texture.path)
            if path.is_absolute():
                places.append(path)
            elif self._folder is not None:
                places.append(self._folder / texture.path.replace("\\", "/"))
        if self._folder is not None:
            places += [self._folder / name for name in (_last_part(texture.path), texture.name) if name]
        return next((place for place in places if _exists(place)), None)


def _last_part(path: str) -> str:
    """Return the file name of a Windows or POSIX path."""
    return PureWindowsPath(path).name


def _exists(place: Path) -> bool:
    try:
        return place.is_file()
    except (OSError, ValueError):  # too long, or contains NUL
        return False


def _is_file(image: bpy.types.Image, path: Path) -> bool:
    if image.source != "FILE" or image.library is not None or image.packed_file is not None or not image.filepath_raw:
        return False
    return Path(bpy.path.abspath(image.filepath_raw)) == path
