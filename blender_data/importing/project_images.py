"""Textures of a project -> images: packed into the .blend file, or linked to image files."""

import stat
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import bpy

from ...io_formats.core.errors import FormatError, MeshferryError
from ...io_formats.core.messages import Report, Text, counted, listed, of_kind
from ...io_formats.core.shading import Color, Texture
from ...io_formats.disk.atomic_write import replace_file
from ...io_formats.disk.file_names import file_name
from ...io_formats.encodings import image_files
from ...io_formats.encodings.image_files import JPEG_2000, extension_of, image_kind
from .. import image_decoding, names

_NUMBERS = "Non-Color"
"""Colour space of images whose values are not colours."""
_FOLDER = "textures"
"""Name of the folder beside the .blend file for image files that the project does not contain as image files."""
_MOST_NAMES = 5


class ProjectImages:
    """Create the images of one import on first use.

    A file that is used both for colours and for data gets two images. An image of an earlier import is used again while
    its file is unchanged.

    Parameters
    ----------
    is_linked:
        Whether images refer to image files instead of being packed. Files that the project does not contain as images
        are written beside the .blend file.
    keep:
        Called with each new image, so that it is removed if the import fails.
    keep_file:
        Called with each new file or folder, for the same reason.
    report:
        Gets messages, possibly several times the same.
    """

    def __init__(
        self, *, is_linked: bool, keep: Callable[[Any], Any], keep_file: Callable[[Path], None], report: Report
    ) -> None:
        self._keep = keep
        self._keep_file = keep_file
        self._report = report
        self._is_linked = is_linked
        self._folder = Path(bpy.data.filepath).parent / _FOLDER if bpy.data.filepath else None
        self._known: dict[tuple[str, bool], bpy.types.Image | None] | None = None
        self._unreadable: dict[str, Text] = {}
        self.means: dict[bpy.types.Image, Color | None] = {}
        """Mean colours of images that were packed, where known; Blender would copy their contents for them later."""
        self._packed = 0
        """Number of images that take long to decode and were not decoded."""

    def image(self, texture: Texture, *, is_color: bool) -> bpy.types.Image | None:
        """Return the image of a texture, or None if its files cannot be read.

        :meth:`report` lists such textures.
        """
        if self._known is None:
            self._known = _existing_images()
        key = (texture.source, is_color)
        if key not in self._known:
            try:
                self._known[key] = self._make(texture, is_color=is_color)
            except FormatError as problem:
                self._known[key] = None
                self._unreadable[texture.name] = problem.message
        return self._known[key]

    def report(self) -> None:
        """Report once the textures that could not be read."""
        reasons: dict[Text, list[str]] = {}
        for name, reason in self._unreadable.items():
            reasons.setdefault(reason, []).append(name)
        for reason, found in reasons.items():
            number = counted(len(found), "texture")
            names = listed(of_kind("image", found), _MOST_NAMES)
            self._report.loss("textures-left-out", "{} left out: {}: {}", number, reason, names)
        self._unreadable.clear()
        if self._packed:
            number = counted(self._packed, "JPEG 2000 image is", "JPEG 2000 images are")
            self._report.note(
                "packed-undecoded", "{} packed undecoded; the first preview or render decodes them", number
            )
            self._packed = 0

    def _make(self, texture: Texture, *, is_color: bool) -> bpy.types.Image:
        """Return the image of a texture, linked to its file or packed; one that is not a colour is read as numbers."""
        if bpy.app.version < texture.first_version:
            raise FormatError("Blender before {}.{} may crash on it", *texture.first_version)
        label = PurePath(texture.name).stem if texture.name.lower().endswith(".texture") else texture.name
        if self._is_linked and texture.path and _is_image(Path(texture.path)):
            image = self._keep(bpy.data.images.load(texture.path))
        else:
            image = self._from_content(label, texture)
        if image.name != names.fit(label):  # naming thousands of images takes seconds
            image.name = names.fit(label)
        if not is_color:
            image.colorspace_settings.name = _NUMBERS
        image.alpha_mode = "CHANNEL_PACKED"
        image.meshferry.source_path = names.readable(texture.source)
        image.meshferry.source_state = _state_of(texture.source)
        return image

    def _from_content(self, label: str, texture: Texture) -> bpy.types.Image:
        """Return an image of a texture's content: packed as it is, or written beside the .blend file."""
        content = texture.read() if texture.read is not None else b""
        if self._is_linked and self._folder is not None:
            if extension_of(content, "") in JPEG_2000:  # few other programs read it
                pixels = image_decoding.decode(content, texture.name)[::-1]
                content = image_files.encode_png(pixels[..., :3] if texture.has_alpha is False else pixels)
                label = PurePath(label).stem
            name = label if texture.path else _with_extension(label, content)
            return self._keep(bpy.data.images.load(str(self._written(self._folder, name, content))))
        if self._is_linked:
            text = "Textures are packed, because the .blend file has no folder before it is saved"
            self._report.change("textures-packed", text)
        self._packed += extension_of(content, "") in JPEG_2000
        image = self._keep(bpy.data.images.new(names.fit(label), 1, 1))
        image.source = "FILE"
        image.filepath_raw = texture.path or f"//{_FOLDER}/{_with_extension(label, content)}"
        image.pack(data=content, data_len=len(content))
        self.means[image] = image_decoding.mean_of_dds(content)
        return image

    def _written(self, folder: Path, name: str, content: bytes) -> Path:
        """Return the path of a file with this content in a folder.

        If necessary the file is written; a file with other content is never replaced.
        """
        for number in range(1, 1000):
            stem, suffix = file_name(PurePath(name).stem), PurePath(name).suffix
            path = folder / (f"{stem}{suffix}" if number == 1 else f"{stem}_{number}{suffix}")
            try:
                if not path.exists():
                    if not folder.is_dir():
                        folder.mkdir()
                        self._keep_file(folder)
                    replace_file(path, content, within=folder)
                    self._keep_file(path)
                    return path
                if path.stat().st_size == len(content) and path.read_bytes() == content:
                    return path
            except (OSError, MeshferryError) as problem:
                raise FormatError("'{}' cannot be written ({})", folder, problem) from None
        raise FormatError("'{}' has too many files of this name", folder)


def _with_extension(label: str, content: bytes) -> str:
    """Return a file name for an image file, with the extension of its content."""
    extension = extension_of(content, "")
    return label if label.lower().endswith(extension) else f"{label}{extension}"


def _existing_images() -> dict[tuple[str, bool], bpy.types.Image | None]:
    """Return the images of earlier imports whose files are unchanged."""
    found: dict[tuple[str, bool], bpy.types.Image | None] = {}
    states: dict[str, str] = {}
    for image in bpy.data.images:
        source = image.meshferry.source_path
        if not source or image.library is not None or image.is_dirty:
            continue
        state = states.setdefault(source, _state_of(source))
        if state and state == image.meshferry.source_state:
            found[source, image.colorspace_settings.name != _NUMBERS] = image
    return found


def _state_of(path: str) -> str:
    """Return size and modification time of a file as text, or an empty string if it does not exist.

    For a member of an archive, whose path begins with that of the archive, they are those of the archive.
    """
    for file in (Path(path), *Path(path).parents):
        try:
            status = file.stat()
        except OSError:
            continue
        return "" if stat.S_ISDIR(status.st_mode) else f"{status.st_size} {status.st_mtime_ns}"
    return ""


def _is_image(path: Path) -> bool:
    """Return whether Blender can open a file as an image."""
    try:
        return bool(image_kind(path.read_bytes()))
    except OSError:
        return False
