"""Find out which materials the nodes of a project assign to the surfaces of its meshes (section 4.6)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from xml.etree.ElementTree import Element

from ...disk.rooted_files import RootedFiles, path_key, plain_path
from ...encodings.xml_files import parse_xml
from .references import is_guid, path_in_project, plain_reference

SCENE_EXTENSIONS = (".node", ".world")
SurfaceUses = dict[str, "Counter[str]"]


def mesh_key(reference: str | None) -> str:
    """Return the key of a mesh for a reference to it: its GUID, or its path in the project."""
    plain = plain_reference(reference)
    return plain if is_guid(plain) or not plain else path_key(plain_path(path_in_project(plain)))


def uses_of_meshes(files: RootedFiles, check: Callable[[float], object]) -> dict[str, SurfaceUses]:
    """Count how often each material is assigned to each surface of each mesh, in all scene files of the project.

    Meshes are identified by :func:`mesh_key`.
    """
    found: dict[str, SurfaceUses] = defaultdict(lambda: defaultdict(Counter))
    keys = sorted(key for key in files.paths if key.endswith(SCENE_EXTENSIONS))
    for number, key in enumerate(keys):
        check(number / len(keys))
        root = files.parsed(files.paths[key], parse_xml)
        for node in root.iter("node") if root is not None else ():
            _add_uses(node, found)
    return {mesh: dict(surfaces) for mesh, surfaces in found.items()}


def _add_uses(node: Element, found: dict[str, SurfaceUses]) -> None:
    mesh = mesh_key(node.findtext("mesh_name"))
    if mesh:
        for surface in node.iterfind("surface"):
            material = plain_reference(surface.get("material"))
            if material:
                found[mesh].setdefault(surface.get("name", ""), Counter())[material] += 1
