"""Surfaces of a file <-> the list of surfaces on the object; each belongs to a material slot."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import bpy

from ...io_formats.core.scene import Surface
from .. import names
from ..properties import store_fields, stored_fields

UV_NAMES = ("UV0", "UV1")
"""UV maps with these names become the first and second UV channel, whatever their order in Blender."""


def uv_place(name: str, position: int) -> int:
    """Return the file's index of a UV layer: according to its name, or else its position in the list."""
    return UV_NAMES.index(name) if name in UV_NAMES else position


def write(
    obj: bpy.types.Object, surfaces: Sequence[Surface], uv_names: Sequence[str], key_names: Mapping[str, str]
) -> None:
    """Fill an object's list of surfaces from those of its mesh, one for each material slot.

    Parameters
    ----------
    uv_names:
        Names of the mesh's UV layers, for storing which of them each surface uses.
    key_names:
        The name that each shape key has in Blender.
    """
    listed = obj.meshferry.surfaces
    for place, surface in enumerate(surfaces):
        entry = listed.add()
        entry.name = names.readable(surface.name)
        material = obj.material_slots[place].material if place < len(obj.material_slots) else None
        entry.material = material
        entry.given_name = material.name if material else ""
        # Levels of detail of a file share its surfaces, so the index in the file can differ from the slot.
        store_fields(entry, replace(surface, order=place) if surface.order is None else surface)
        for position, held in enumerate(surface.uvs or ()):
            number = uv_place(uv_names[position], position)
            if number < len(UV_NAMES):
                setattr(entry, f"has_uv{number}", held)
        for key, source_name in (surface.shape_keys or {}).items():
            shape = entry.shapes.add()
            shape.name = key_names.get(key, key)
            shape.source_name = names.readable(source_name)


@dataclass(frozen=True)
class WrittenSurface:
    """A surface of an object as an export will write it."""

    name: str
    """Name of the surface in the file; if empty, the object's name is used."""
    entry: bpy.types.PropertyGroup | None
    """Settings of the surface in the object's list; None for the defaults."""
    has_own_name: bool
    """Whether the name comes from the settings, not from the material or the object."""


def written(obj: bpy.types.Object) -> list[WrittenSurface]:
    """Return a surface for each material slot of an object, or one for a mesh without slots.

    Panels, checks and exports all use the names from this function.
    """
    slots = obj.material_slots
    if slots:
        return [_written(entry, slot.material) for entry, slot in zip(matched(obj), slots, strict=True)]
    if (only := slotless(obj)) is not None:
        return [WrittenSurface(only.name, only, has_own_name=True)]
    has_faces = len(getattr(obj.data, "polygons", ())) > 0
    return [WrittenSurface(names.name_in_file(obj), None, has_own_name=False)] if has_faces else []


def unused(obj: bpy.types.Object) -> list[bpy.types.PropertyGroup]:
    """Return settings in an object's list that belong to no material slot, and are therefore not exported."""
    only = slotless(obj)
    used = {entry.as_pointer() for entry in (only, *matched(obj)) if entry is not None}
    return [entry for entry in obj.meshferry.surfaces if entry.as_pointer() not in used]


def slotless(obj: bpy.types.Object) -> bpy.types.PropertyGroup | None:
    """Return the settings of an object without slots: the only ones in its list, if these never had a material."""
    stored = obj.meshferry.surfaces
    if len(obj.material_slots) or len(stored) != 1 or stored[0].material is not None or stored[0].given_name:
        return None
    return stored[0]


def matched(obj: bpy.types.Object) -> list[bpy.types.PropertyGroup | None]:
    """Return for each material slot its settings in the object's list, or None.

    Settings belong to a material, so slots can be moved. Slots with the same material get theirs in order. A slot whose
    material was replaced keeps the settings at its index, unless another slot has them.
    """
    stored = obj.meshferry.surfaces
    slots = [slot.material for slot in obj.material_slots]
    waiting: dict[bpy.types.Material | None, deque[int]] = {}
    for at in sorted(range(len(stored)), key=lambda at: (stored[at].order < 0, stored[at].order)):
        waiting.setdefault(stored[at].material, deque()).append(at)
    places = [found.popleft() if (found := waiting.get(material)) else None for material in slots]
    left = {at for found in waiting.values() for at in found}
    places = [slot if place is None and slot in left else place for slot, place in enumerate(places)]
    return [None if place is None else stored[place] for place in places]


def _written(entry: bpy.types.PropertyGroup | None, material: bpy.types.Material | None) -> WrittenSurface:
    """Return the surface to export for a slot.

    Its name is that in the settings, as long as their material is unchanged.
    """
    if entry is not None:
        is_same = material is not None and entry.material == material and entry.given_name == material.name
        if material is None or (is_same and (entry.name or entry.order >= 0)):
            return WrittenSurface(entry.name, entry, has_own_name=True)
    return WrittenSurface(names.name_in_file(material) if material else "", entry, has_own_name=False)


def read(obj: bpy.types.Object, uv_names: Sequence[str], key_names: Sequence[str]) -> list[Surface]:
    """Return the surfaces that :func:`written` lists, with their settings.

    Parameters
    ----------
    uv_names:
        Names of the mesh's UV layers, in the order of ``Mesh.uvs``.
    key_names:
        Names of the mesh's shape keys. An imported surface lists the keys of its file; the caller adds others that move
        its points.
    """
    return [_surface(surface, uv_names, key_names) for surface in written(obj)]


def _surface(surface: WrittenSurface, uv_names: Sequence[str], key_names: Sequence[str]) -> Surface:
    """Return the surface of a slot with the settings of its entry in the list of surfaces."""
    entry = surface.entry
    if entry is None:
        return Surface(surface.name)
    held = (entry.has_uv0, entry.has_uv1)
    places = [uv_place(name, position) for position, name in enumerate(uv_names)]
    shapes = {shape.name: shape.source_name for shape in entry.shapes if shape.name in key_names}
    return Surface(
        surface.name,
        uvs=tuple(held[place] if place < len(held) else True for place in places),
        shape_keys=shapes if entry.order >= 0 or shapes else None,
        **stored_fields(entry, Surface),
    )
