"""Surfaces of a file <-> the list on the object; each belongs to a material slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import bpy

from ..io_formats.scene import Surface
from . import names

_UV_NAMES = ("UV0", "UV1")
_LIGHTMAP_CODES = tuple("01234567")


def uv_place(name: str, position: int) -> int:
    """Return which UV map of the file a layer is: what its name says, else its position."""
    return _UV_NAMES.index(name) if name in _UV_NAMES else position


def write(
    thing: bpy.types.Object, surfaces: Sequence[Surface], uv_names: Sequence[str], key_names: Mapping[str, str]
) -> None:
    """Fill an object's list from the surfaces of its mesh, one a material slot.

    Parameters
    ----------
    uv_names:
        Names of the mesh's UV layers, which the surfaces hold or not.
    key_names:
        The name that each shape key has in Blender.
    """
    listed = thing.meshferry.surfaces
    for place, surface in enumerate(surfaces):
        entry = listed.add()
        entry.name = names.readable(surface.name)
        material = thing.material_slots[place].material if place < len(thing.material_slots) else None
        entry.material = material
        entry.given_name = material.name if material else ""
        entry.order = int(surface.properties.get("order", place))  # levels of detail share a file's surfaces
        if "lightmap_channel" in surface.properties:
            entry.lightmap_channel = int(surface.properties["lightmap_channel"])
        if (code := str(surface.properties.get("lightmap_resolution", ""))) in _LIGHTMAP_CODES:
            entry.lightmap_resolution = code
        for position, held in enumerate(surface.uvs or ()):
            number = uv_place(uv_names[position], position)
            if number < len(_UV_NAMES):
                setattr(entry, f"has_uv{number}", held)
        entry.has_colors = surface.has_colors
        entry.has_weights = bool(surface.has_weights)
        entry.base_name = names.readable(str(surface.properties.get("base_name", "")))
        _write_domains(entry, surface)
        for key, source_name in (surface.shape_keys or {}).items():
            shape = entry.shapes.add()
            shape.name = key_names.get(key, key)
            shape.source_name = names.readable(source_name)


def _write_domains(entry: bpy.types.PropertyGroup, surface: Surface) -> None:
    """Keep the ranges that a file quantised over, where it gives any."""
    for name in ("position_domain", "uv_domain"):
        domain = surface.properties.get(name)
        if domain is not None:
            setattr(entry, name, [float(value) for value in domain])
            entry.has_domains = True


def matched(thing: bpy.types.Object) -> list[bpy.types.PropertyGroup | None]:
    """Return for each material slot its surface in the object's list, or None.

    A surface follows its material, so that slots can be moved; slots of one material take theirs in
    order. A slot that got another material keeps the surface at its place, if no other slot has it.
    """
    slots = [slot.material for slot in thing.material_slots]
    waiting = sorted(range(len(thing.meshferry.surfaces)), key=lambda at: _rank(thing.meshferry.surfaces[at].order))
    places: list[int | None] = [None] * len(slots)
    for slot, material in enumerate(slots):
        found = next((at for at in waiting if thing.meshferry.surfaces[at].material == material), None)
        if found is not None:
            places[slot] = found
            waiting.remove(found)
    for slot, place in enumerate(places):
        if place is None and slot in waiting:
            places[slot] = slot
            waiting.remove(slot)
    return [None if place is None else thing.meshferry.surfaces[place] for place in places]


def _rank(order: int) -> float:
    return order if order >= 0 else float("inf")


def read(thing: bpy.types.Object, uv_names: Sequence[str], key_names: Sequence[str]) -> list[Surface]:
    """Return a surface for each material slot of an object; one named like the object where it has no slots.

    The only surface of a file that knows of no materials needs no slot.

    Parameters
    ----------
    uv_names:
        Names of the mesh's UV layers, in the order of ``Mesh.uvs``.
    key_names:
        Names of the mesh's shape keys. A surface that came from a file lists those of them that it held; which
        others move it, the caller knows.
    """
    entries = matched(thing)
    only = thing.meshferry.surfaces[0] if len(thing.meshferry.surfaces) == 1 else None
    if not entries and only is not None and only.material is None and not only.given_name:
        return [_surface(only, None, uv_names, key_names)]  # it came without a material, and got none since
    if not entries and len(thing.meshferry.surfaces) == 0 and len(getattr(thing.data, "polygons", ())):
        return [Surface(names.file_name(thing))]
    return [
        _surface(entry, slot.material, uv_names, key_names)
        for entry, slot in zip(entries, thing.material_slots, strict=True)
    ]


def _surface(
    entry: bpy.types.PropertyGroup | None,
    material: bpy.types.Material | None,
    uv_names: Sequence[str],
    key_names: Sequence[str],
) -> Surface:
    if entry is None:
        return Surface(names.file_name(material) if material else "")
    name = entry.name
    is_same = entry.material == material and (material is None or entry.given_name == material.name)
    if material is not None and not (is_same and (name or entry.order >= 0)):
        name = names.file_name(material)
    held = (entry.has_uv0, entry.has_uv1)
    places = [uv_place(name, position) for position, name in enumerate(uv_names)]
    shapes = {shape.name: shape.source_name for shape in entry.shapes if shape.name in key_names}
    return Surface(
        name,
        uvs=tuple(held[place] if place < len(held) else True for place in places),
        has_colors=entry.has_colors,
        has_weights=True if entry.has_weights else None,
        shape_keys=shapes if entry.order >= 0 or shapes else None,
        properties={
            **_lightmap(entry),
            "base_name": entry.base_name,
            **({"order": entry.order} if entry.order >= 0 else {}),
            **_domains(entry),
        },
    )


def _domains(entry: bpy.types.PropertyGroup) -> dict[str, tuple[float, ...]]:
    """Return the ranges that the file stored a surface's values between, if it came from such a file."""
    if not entry.has_domains:
        return {}
    return {"position_domain": tuple(entry.position_domain), "uv_domain": tuple(entry.uv_domain)}


def _lightmap(entry: bpy.types.PropertyGroup) -> dict[str, int]:
    """Return the lightmap settings that the file or somebody gave a surface; none where there never were any."""
    if not (entry.is_property_set("lightmap_channel") or entry.is_property_set("lightmap_resolution")):
        return {}
    return {"lightmap_channel": entry.lightmap_channel, "lightmap_resolution": int(entry.lightmap_resolution)}
