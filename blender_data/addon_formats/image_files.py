"""Files of images for Blender's own exporters, and the images of materials that a written file does not hold."""

import contextlib
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import bpy
import numpy as np

from ...io_formats.core.format import OutputFile
from ...io_formats.core.messages import Report
from ...io_formats.disk.file_names import cautious_key, free_name
from ...io_formats.encodings.image_files import extension_of
from .. import arrays
from ..armature_modifiers import MESHABLE
from ..exporting.object_selection import shown_by
from ..exporting.reading import material_reading
from ..exporting.reading.material_reading import file_name_of, report_lost_images, shown_images
from .outside_files import paths_of

_EXTENSIONS = bpy.path.extensions_image | bpy.path.extensions_movie
_OF_FILES = {"FILE", "MOVIE", "SEQUENCE", "TILED"}
"""Sources of images that are read from files."""
_TILE = "<UDIM>"
_TILE_IN_NAME = re.compile(r"[._-]?<(UDIM|UVTILE)>")

Files = Mapping[bpy.types.Image, tuple[str, Sequence[Path]]]
"""Names of images and their files: several of tiles, and all of a sequence, of which an exporter gets the first."""


@contextlib.contextmanager
def own_image_files(folder: Path, owner: str, images: Iterable[bpy.types.Image]) -> Iterator[Files]:
    """Temporarily store images in a folder, with the extension of their content; yield their files.

    No two names are equal regardless of case, since exporters treat images of equal names as one image. Exporters that
    write images beside the file use these names; ``owner``, the name of the exported file, then precedes them. Another
    file in the folder may have a different image of the same name: ``crate.wood.png`` and ``lamp.wood.png`` are both
    kept. The part after ``owner`` has no dots, so files of different names never share an image name.
    """
    names = {image: image.name for image in bpy.data.images}
    kept = []
    made: dict[bpy.types.Image, tuple[str, Sequence[Path]]] = {}
    places: dict[object, tuple[Path, list[Path]]] = {}
    taken: set[str] = set()
    try:
        for image in sorted(images, key=lambda image: image.source != "TILED"):  # tiles get numbers, others free names
            material_reading.pack_pixels(image)
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
                    file.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
                places[key] = place, files
            place, files = places[key]
            is_packed, is_sequence = image.packed_file is not None, image.source == "SEQUENCE"
            made[image] = (
                names[image],
                [Path(path) for path in dict.fromkeys(paths_of(image))] if is_sequence else files,
            )
            kept.append((image, is_packed, {key: getattr(image, key) for key in ("source", "filepath")}))
            if is_packed:  # first, since a new path would make Blender look for the old file
                image.unpack(method="REMOVE")
            if is_sequence:
                image.source = "FILE"
            image.filepath = str(place)
        _rename({image: Path(image.filepath).name for image in made})
        yield made
    finally:
        for image, is_packed, before in kept:
            if is_packed:
                image.pack()
            for key, value in before.items():
                setattr(image, key, value)
        _rename(names)


def _rename(names: Mapping[bpy.types.Image, str]) -> None:
    """Rename images; they may exchange names, of which Blender would number those still taken."""
    for number, image in enumerate(names):
        image.name = f"{number}/"
    for image, name in names.items():
        image.name = name


def _contents(image: bpy.types.Image) -> list[tuple[int, bytes | Path]]:
    """Return the files of an image by the number of their tile: the content if it is packed, otherwise the path."""
    paths = [Path(path) for path in paths_of(image)]
    if image.source == "TILED" and image.packed_file is not None:
        return [(one.tile_number, bytes(one.packed_file.data)) for one in image.packed_files if one.packed_file]
    if image.source == "TILED":
        return [(tile.number, path) for tile, path in zip(image.tiles, paths, strict=True) if path.is_file()]
    content = material_reading.packed_content(image, Report())
    return [(0, content)] if content else [(0, path) for path in paths[:1] if path.is_file()]


def _name_parts(image: bpy.types.Image, content: bytes | Path, owner: str) -> tuple[str, str]:
    """Return the start and the end of the name of an image's file."""
    name = file_name_of(image, image.filepath)
    stem, suffix = os.path.splitext(name)
    if suffix.lower() not in _EXTENSIONS:
        stem, suffix = name, "." + image.file_format.lower().replace("jpeg", "jpg")
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
                slots = material_reading.materials_of(seen, data) or [None]
                used = np.unique(material_reading.slot_of_faces(data).clip(0, len(slots) - 1)).tolist()
                found |= {slots[slot].original: None for slot in used if slots[slot] is not None}
    return list(found)


def report_not_written(
    materials: Iterable[bpy.types.Material],
    files: Files,
    outputs: Sequence[OutputFile],
    gltf_names: Collection[str] | None,
    report: Report,
) -> None:
    """Report the images of materials that the written files do not hold, or of which they hold only a still.

    Parameters
    ----------
    files:
        Files of the images, which have temporary names.
    gltf_names:
        Names of the images in a glTF file, ``a-b`` for one of several combined; None for other formats.
    """
    written = {output.data for output in outputs}

    def is_held(image: bpy.types.Image) -> bool:
        _, paths = files[image]
        if gltf_names is not None:
            is_whole = image.source != "MOVIE" and (len(paths) == 1 or image.source == "TILED")
            stems = [os.path.splitext(name)[0] for name in (image.name, *(path.name for path in paths))]
            return is_whole and any(f"-{stem}-" in f"-{name}-" for stem in stems for name in gltf_names)
        contents = (path.read_bytes() for path in paths)
        return all(content in written or content in outputs[-1].data for content in contents)

    used = {image for material in materials for image in shown_images(material)}
    lost = [files[image][0] for image in used & files.keys() if not is_held(image)]
    # Missing files of a .blend file are reported when it is read.
    missing = {image for image in used - files.keys() if not bpy.data.filepath or image.source not in _OF_FILES}
    report_lost_images([*lost, *(image.name for image in missing)], report)
