"""Files of images for Blender's own exporters, and the images of materials that a written file does not hold."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...io_formats.core.format import OutputFile
from ...io_formats.core.messages import Report, of_kind
from ...io_formats.disk.file_names import cautious_key, free_name
from ...io_formats.encodings.image_files import extension_of
from .. import arrays, compat
from ..armature_modifiers import MESHABLE
from ..exporting.object_selection import shown_by
from ..exporting.reading.material_reading import (
    file_name_of,
    image_path,
    images_of,
    materials_of,
    pack_pixels,
    packed_content,
    slot_of_faces,
)
from ..exporting.reading.shader_nodes import Socket, output_of, sources
from .outside_files import paths_of
from .unsupported_data import mixes

_EXTENSIONS = bpy.path.extensions_image | bpy.path.extensions_movie
_TILE = "<UDIM>"
_TILE_IN_NAME = re.compile(r"[._-]?<(UDIM|UVTILE)>")
_EMBEDDED = re.compile(rb"\x07ContentR(.{4})", re.DOTALL)
"""Matches the name, type and size of an embedded file in an .fbx file; the file follows."""


@dataclass(frozen=True)
class ImageFiles:
    """What exporters get of an image."""

    name: str
    """Name of the image before the export."""
    is_still: bool
    """Whether it is one image of a sequence."""
    paths: list[Path]
    """One, or one for each tile."""


@contextlib.contextmanager
def own_image_files(
    folder: Path, owner: str, images: Iterable[bpy.types.Image]
) -> Iterator[dict[bpy.types.Image, ImageFiles]]:
    """Temporarily store images in a folder, with the extension of their content; yield their files.

    No two names are equal regardless of case, since exporters treat images of equal names as one image. Exporters that
    write images beside the file use these names; ``owner``, the name of the exported file, then precedes them. Another
    file in the folder may have a different image of the same name: ``crate.wood.png`` and ``lamp.wood.png`` are both
    kept. The part after ``owner`` has no dots, so files of different names never share an image name.

    A sequence of images becomes its first image.
    """
    kept = []
    made: dict[bpy.types.Image, ImageFiles] = {}
    places: dict[object, tuple[Path, list[Path]]] = {}
    taken: set[str] = set()
    for image in sorted(images, key=lambda image: image.source != "TILED"):  # the numbers of tiles come last in names
        pack_pixels(image)
        contents = _contents(image)
        if not contents:
            continue
        name = _name_parts(image, contents[0][1], owner)
        key = (name, *(one if isinstance(one, Path) else hashlib.blake2b(one).digest() for _, one in contents))
        if key not in places:
            place = folder / str(len(places)) / free_name(*name, taken)
            files = [place.with_name(place.name.replace(_TILE, str(tile))) for tile, _ in contents]
            taken.update(cautious_key(file.name) for file in files)
            place.parent.mkdir()
            for file, (_, content) in zip(files, contents, strict=True):
                if isinstance(content, Path):
                    shutil.copyfile(content, file)
                else:
                    file.write_bytes(content)
            places[key] = place, files
        place, files = places[key]
        is_still = image.source == "SEQUENCE" and len(set(paths_of(image))) > 1
        made[image] = ImageFiles(image.name, is_still, files)
        is_packed = image.packed_file is not None
        kept.append((image, is_packed, image.name, image.filepath, image.source))
        if is_packed:  # first, since a new path would make Blender look for the old file
            image.unpack(method="REMOVE")
        if image.source == "SEQUENCE":
            image.source = "FILE"
        image.filepath = str(place)
        image.name = place.name
    try:
        yield made
    finally:
        for image, is_packed, name, path, source in kept:
            if is_packed:
                image.pack()
            image.source = source
            image.filepath = path
            image.name = name


def _contents(image: bpy.types.Image) -> list[tuple[int, bytes | Path]]:
    """Return the files of an image by the number of their tile: the content if it is packed, otherwise the path."""
    found: list[tuple[int, bytes | Path | None]] = []
    if image.source == "TILED":
        found = [(one.tile_number, bytes(one.packed_file.data)) for one in image.packed_files if one.packed_file]
        paths = zip((tile.number for tile in image.tiles), map(Path, paths_of(image)), strict=True)
        found = found or list(paths)
    elif image.source in {"FILE", "GENERATED", "SEQUENCE", "MOVIE"}:
        path = image_path(image)
        found = [(0, packed_content(image, Report()) or (Path(path) if path else None))]
    return [(tile, one) for tile, one in found if isinstance(one, bytes) or (one is not None and one.is_file())]


def _name_parts(image: bpy.types.Image, content: bytes | Path, owner: str) -> tuple[str, str]:
    """Return the start and the end of the name of an image's file."""
    name = file_name_of(image, image.filepath)
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in _EXTENSIONS:
        stem, suffix = name, "." + image.file_format.lower().replace("jpeg", "jpg")
    if isinstance(content, Path):
        with content.open("rb") as file:
            content = file.read(64)
    if image.source != "MOVIE":
        suffix = extension_of(content, suffix)
    stem = _TILE_IN_NAME.sub("", stem)
    if owner:
        stem = f"{owner}.{bpy.path.clean_name(stem.removeprefix(owner + '.').replace('.', '_'))}"
    return stem, f".{_TILE}" * (image.source == "TILED") + suffix


def used_materials(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Material]:
    """Return the materials of the faces of objects and of those that they show as instances."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    found: dict[bpy.types.Material, None] = {}
    for obj in dict.fromkeys((*objects, *shown_by(objects))):
        seen = obj.evaluated_get(depsgraph)
        with arrays.mesh_of(seen) if obj.type in MESHABLE else contextlib.nullcontext() as data:
            if data is not None and len(data.polygons):
                slots = materials_of(seen, data) or [None]
                used = np.unique(slot_of_faces(data).clip(0, len(slots) - 1)).tolist()
                found |= {slots[slot].original: None for slot in used if slots[slot] is not None}
    return list(found)


def report_lost_images(
    materials: Iterable[bpy.types.Material],
    files: Mapping[bpy.types.Image, ImageFiles],
    outputs: Sequence[OutputFile],
    gltf_names: Collection[str] | None,
    report: Report,
) -> None:
    """Report the images of materials that the written files do not hold, or of which they hold only a still.

    Parameters
    ----------
    files:
        Files of the images, as long as they have these names.
    gltf_names:
        Names of the images in a glTF file, which may be several combined in one; None for other formats.
    """
    held = _embedded_files(outputs) if gltf_names is None else set()
    lost: list[str] = []
    for image in {image for material in materials for image in _images_of(material)} & files.keys():
        own = files[image]
        if gltf_names is None:
            is_held = all(path.read_bytes() in held for path in own.paths)
        else:
            stems = {os.path.splitext(image.name)[0], *(path.stem for path in own.paths)}
            is_held = image.source != "MOVIE" and any(f"-{stem}-" in f"-{name}-" for stem in stems for name in gltf_names)
        if own.is_still or not is_held:
            lost.append(own.name)
    text = "{} of the materials left out or written as a still: {}"
    report.loss_of("images-left-out", text, of_kind("image", sorted(lost)), "image")


def _images_of(material: bpy.types.Material) -> set[bpy.types.Image]:
    """Return the images with an effect on a material, without those of mixtures, which are reported by material."""
    tree = compat.node_tree(material)
    output = output_of(tree) if tree is not None else None
    entries = [output.inputs[name] for name in ("Surface", "Displacement")] if output is not None else []
    nodes = [found.node for entry in entries for found in sources(Socket(entry))]
    mixed = {image for node in nodes if mixes(node) for entry in node.inputs for image in images_of(entry)}
    images = {node.image for node in nodes if node.type in {"TEX_IMAGE", "TEX_ENVIRONMENT"}} - {None}
    return {image for image in images if image not in mixed or image.source in {"SEQUENCE", "MOVIE"}}


def _embedded_files(outputs: Sequence[OutputFile]) -> set[bytes]:
    """Return the contents of written files, and of the files in an .fbx file or archive."""
    found = {output.data for output in outputs}
    data = outputs[-1].data
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {archive.read(name) for name in archive.namelist()}
    for start in _EMBEDDED.finditer(data) if data.startswith(b"Kaydara") else ():
        found.add(data[start.end() : start.end() + int.from_bytes(start[1], "little")])
    return found
