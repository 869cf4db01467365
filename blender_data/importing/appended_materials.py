"""Materials that are copied from another .blend file, in place of materials of the same names without textures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy

from ...io_formats.core.errors import MeshferryError
from ...io_formats.disk.special_files import special_kind
from .. import names


@dataclass(frozen=True)
class Appended:
    """Names of materials, grouped by what :func:`append_materials` did with them."""

    added: list[str]
    replaced: list[str]
    kept: list[str]
    """Names of existing materials that were not replaced: they have textures, or are linked."""


def append_materials(path: Path, is_wanted: Callable[[str], bool]) -> Appended:
    """Copy the materials whose names ``is_wanted`` accepts from a .blend file.

    Raises
    ------
    MeshferryError
        The file cannot be opened, or has none of these materials.
    """
    if kind := special_kind(path):
        raise MeshferryError("'{}' is a {}, not a .blend file", path, kind)
    existing = {names.name_in_file(material): material for material in bpy.data.materials}
    kept: list[str] = []
    libraries = set(bpy.data.libraries)
    try:
        with bpy.data.libraries.load(str(path), link=False) as (source, target):
            wanted = [name for name in source.materials if is_wanted(name)]
            kept = [name for name in wanted if name in existing and not _is_replaceable(existing[name])]
            target.materials = [name for name in wanted if name not in kept]
    except (OSError, RuntimeError) as problem:
        raise MeshferryError("'{}' cannot be opened: {}", path, problem) from None
    finally:
        for library in set(bpy.data.libraries) - libraries:
            if not library.users_id:  # Blender leaves an entry for the file although nothing is linked from it
                bpy.data.libraries.remove(library)
    if not wanted:
        raise MeshferryError("'{}' has none of the materials", path)
    added: list[str] = []
    replaced: list[str] = []
    for name, material in zip((name for name in wanted if name not in kept), target.materials, strict=True):
        if material is None:  # the file is damaged
            continue
        if name in existing:
            existing[name].user_remap(material)
            bpy.data.materials.remove(existing[name])
            material.name = name
        (replaced if name in existing else added).append(name)
    return Appended(added, replaced, kept)


def _is_replaceable(material: Any) -> bool:
    """Return whether a material may be replaced: it is local to the open file and uses no texture."""
    nodes = material.node_tree.nodes if material.node_tree is not None else ()
    return bool(material.is_editable) and not any(node.type == "TEX_IMAGE" for node in nodes)
