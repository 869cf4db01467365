"""Textures of materials -> images: from their file, from packed data, or as a name to be found later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy

from ....io_formats.core.messages import Report, Text, counted, listed
from ....io_formats.core.shading import Texture
from ....io_formats.disk.reach import Reach
from ... import names
from .project_images import ProjectImages
from .texture_files import TextureFiles, last_part, may_be_opened

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
                listed([str(folder) for folder in dict.fromkeys(path.parent for path in outside)], _MOST_NAMED),
            )
        self._files.outside.clear()
        if len(self._missing) == 1:
            path, material = next(iter(self._missing.items()))
            self._report.loss(
                "missing-texture",
                "its texture '{}' was not found; put it beside the file, or use File > External Data > Find Missing "
                "Files",
                path,
                item=Text("Material '{}'", material),
            )
        elif self._missing:
            self._report.loss(
                "missing-texture",
                "{} textures were not found; put them beside the file, or use File > External Data > Find Missing "
                "Files: {}",
                len(self._missing),
                listed(list(self._missing), _MOST_NAMED),
            )
        self._missing.clear()

    def _empty(self, label: str, path: str) -> bpy.types.Image:
        image = self._keep(bpy.data.images.new(names.fit(label), 1, 1))
        image.source = "FILE"
        image.filepath_raw = path.replace("\0", "")
        return image

    def _checked(self, material: str, label: str, image: bpy.types.Image, *, is_read: bool = True) -> bpy.types.Image:
        if not is_read or not all(image.size):
            item = Text("Material '{}'", material)
            self._report.loss("unreadable-image", "its texture '{}' cannot be read as an image", label, item=item)
        return image


def _is_file(image: bpy.types.Image, path: Path) -> bool:
    if image.source != "FILE" or image.library is not None or image.packed_file is not None or not image.filepath_raw:
        return False
    return Path(bpy.path.abspath(image.filepath_raw)) == path
