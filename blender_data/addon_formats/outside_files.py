"""Files that the open .blend file brings in by path: those beyond the reach of the source are removed before an export.

Blender's exporters copy the content of these files into the output, whatever they hold.
"""

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import bpy

from ...io_formats.core.messages import Report
from ...io_formats.disk.reach import Reach, is_local, is_picture, report_no_pictures
from ...io_formats.disk.rooted_files import is_inside
from ...io_formats.disk.special_files import open_regular

_COLLECTIONS = ("libraries", "images", "movieclips", "cache_files", "volumes", "fonts", "sounds")
"""Collections of ``bpy.data`` whose data blocks have the path of a file."""
_PICTURES = (bpy.types.Image, bpy.types.MovieClip)
_IMPORT_NODES = "GeometryNodeImport"
"""Start of the types of nodes that read a file and make geometry of it."""
_COMPUTED = os.path.join(os.sep, "path-computed-by-nodes")
"""Stands for a path that may be that of any file."""
_PATHS = {"FILE_PATH", "DIR_PATH"}
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
"""Matches a string in JSON."""
_DIGITS = re.compile(r"\d+(?=\D*\Z)")


def file_blocks() -> set[bpy.types.ID]:
    """Return the data blocks that may bring in a file."""
    return {block for name in _COLLECTIONS for block in getattr(bpy.data, name)}


def leave_out(reach: Reach, report: Report, *, is_blend: bool, known: Collection[bpy.types.ID] = ()) -> None:
    """Remove what the open file brings in from beyond reach, and images that are not pictures; report them by path.

    Parameters
    ----------
    is_blend:
        Whether a .blend file was opened: what is packed into it is its own, and see :attr:`.Reach.is_given`.
        Importers pack the files that they read and keep their paths.
    known:
        Data blocks of :func:`file_blocks` from before an import, which stay.
    """
    is_free = is_blend and not reach.is_given
    outside: list[str] = []
    no_pictures: list[str] = []
    removed: list[bpy.types.ID] = []
    for block in file_blocks().difference(known):
        if is_blend and getattr(block, "packed_file", None) is not None:
            continue
        is_image = isinstance(block, _PICTURES)
        for path in paths_of(block):
            if not is_local(path) or (not is_free and _brings_in(reach, path, above=is_image)):
                outside.append(path)
            elif is_image and os.path.exists(path) and not is_picture(path):
                no_pictures.append(path)
            else:
                continue
            removed.append(block)
            break
    if is_blend:
        outside += _leave_out_nodes(reach)
        outside += _leave_out_modifiers(reach, is_free=is_free)
    bpy.data.batch_remove(removed)
    reach.report_outside(sorted(outside), report)
    report_no_pictures(sorted(no_pictures), report)


def _brings_in(reach: Reach, path: str, *, above: bool = False) -> bool:
    """Return whether a path is beyond reach; Blender itself extracts archives to its temporary folder."""
    return reach.brings_in(path, above=above) and not path.startswith(bpy.app.tempdir)


def _absolute(path: str, block: bpy.types.ID) -> str:
    """Return the path of a file that a data block stores, which may be relative to its library."""
    return str(bpy.path.abspath(path, library=block.library)) if path else ""


def paths_of(block: Any) -> Iterator[str]:
    """Yield the paths of a data block's files: several for tiles and sequences of images."""
    path = _absolute(block.filepath, block)
    source = getattr(block, "source", "")
    if source == "TILED":
        for tile in block.tiles:
            column, row = (tile.number - 1001) % 10, (tile.number - 1001) // 10
            yield path.replace("<UDIM>", str(tile.number)).replace("<UVTILE>", f"u{column + 1}_v{row + 1}")
    elif path:
        yield path
    if source == "SEQUENCE" and is_local(path) and (number := _DIGITS.search(name := Path(path).name)):
        frame = re.compile(re.escape(name[: number.start()]) + r"\d+" + re.escape(name[number.end() :]))
        folder = Path(path).parent
        yield from (str(folder / found) for found in _names_in(folder) if frame.fullmatch(found))
    yield from (_absolute(layer.filepath, block) for layer in getattr(block, "layers", ()))  # of caches


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _leave_out_nodes(reach: Reach) -> list[str]:
    """Remove nodes that read a file beyond reach, or one whose path other nodes compute; return the paths."""
    removed: list[str] = []
    for tree in bpy.data.node_groups:
        for node in [node for node in tree.nodes if node.bl_idname.startswith(_IMPORT_NODES)]:
            # Blender 4.5 takes a relative path in a library for one of the open file.
            paths = [_absolute(path, block) for path in _paths_in(node) for block in (tree, bpy.context.scene)]
            beyond = next((path for path in paths if not reach.allows(path) or reach.brings_in(path)), None)
            if beyond is not None:
                removed.append(beyond)
                tree.nodes.remove(node)
    return removed


def _paths_in(node: bpy.types.Node) -> Iterator[str]:
    """Yield the paths that a node may read: linked ones, and its own, which it reads if the link is muted."""
    for socket in node.inputs:
        if socket.bl_idname == "NodeSocketStringFilePath":
            before: Any = [link.from_node for link in socket.links]  # type: ignore[union-attr]
            linked = [each.string if each.bl_idname == "FunctionNodeInputString" else _COMPUTED for each in before]
            yield from filter(None, [*linked, str(socket.default_value)])


def _leave_out_modifiers(reach: Reach, *, is_free: bool) -> list[str]:
    """Remove modifiers that read a cache beyond reach; return the paths."""
    removed: list[str] = []
    for obj in bpy.data.objects:
        for modifier in list(obj.modifiers):
            paths = [] if is_free else [_absolute(path, obj) for path in _stored_paths(modifier)]
            paths += _paths_in_bakes(modifier, obj)
            outside = [path for path in paths if _brings_in(reach, path)]
            if outside:
                removed += outside
                obj.modifiers.remove(modifier)
    return removed


def _stored_paths(modifier: bpy.types.Modifier) -> Iterator[str]:
    """Yield the paths of files and folders in a modifier and in its caches."""
    particles = getattr(modifier, "particle_system", None)
    holders = [modifier, particles, *getattr(modifier, "bakes", ())]
    holders += [getattr(holder, "point_cache", None) for holder in (modifier, particles)]
    holders.append(getattr(modifier, "domain_settings", None))
    for holder in holders:
        for found in holder.bl_rna.properties if holder is not None else ():
            if found.type == "STRING" and found.subtype in _PATHS and getattr(holder, found.identifier):
                yield getattr(holder, found.identifier)


def _paths_in_bakes(modifier: Any, obj: bpy.types.Object) -> Iterator[str]:
    """Yield the files elsewhere of which the bakes of a modifier are made: Blender takes names in them for paths."""
    for bake in getattr(modifier, "bakes", ()):
        own = bake.directory if bake.use_custom_path else os.path.join(modifier.bake_directory, str(bake.bake_id))
        folder = Path(_absolute(own, obj))
        real = os.path.realpath(folder)
        for text in folder.glob("meta/*.json") if own and is_local(folder) else ():
            with contextlib.suppress(OSError, ValueError), os.fdopen(open_regular(text), "rb") as stream:
                for name in set(_STRING.findall(stream.read())):
                    place = str(folder / "blobs") + os.sep + json.loads(name)
                    if not is_inside(os.path.realpath(place), real):
                        yield place
