"""Replace a mesh by the mesh of a new import, in all objects that use it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Any

import bpy

from .. import compat, names
from . import action_update


def replace_mesh(old: bpy.types.Mesh, new: bpy.types.Mesh, users: Iterable[bpy.types.Object]) -> None:
    """Replace a mesh by a new one, which gets the old one's name, custom properties, and materials of equal surfaces.

    Shape keys of the same names keep their values, ranges, drivers and animation. Materials that the user linked to an
    object instead of the mesh stay in the slots of their surfaces.

    Parameters
    ----------
    users:
        The objects that use the old mesh.
    """
    before = _slot_names(old)
    _keep_materials(old, new, before)
    _keep_shape_keys(old, new)
    for label, value in compat.custom_properties(old).items():
        new[label] = value
    new.use_fake_user, old.use_fake_user = old.use_fake_user, False
    for obj in users:
        slots = zip(before, obj.material_slots, strict=False)
        own = [(name, slot.material) for name, slot in slots if slot.link == "OBJECT"]
        obj.data = new
        for slot in obj.material_slots:
            slot.link = "DATA"
        _link_materials(obj, own, _slot_names(new))
    if old.users:
        old.user_remap(new)  # for drivers and nodes; it searches all data blocks, 25 ms in a scene of 1,000 objects
    names.take_over(old, new)
    if old.shape_keys is not None and new.shape_keys is not None:
        names.take_over(old.shape_keys, new.shape_keys)


def _slot_names(mesh: bpy.types.Mesh) -> list[str]:
    """Return, for each slot, the name of its material in the file; for a slot that the user added, the current name."""
    stored: list[str] = json.loads(mesh.meshferry.slot_names or "[]")
    current = [names.name_in_file(material) if material is not None else "" for material in mesh.materials]
    return [*stored[: len(current)], *current[len(stored) :]]


def _keep_materials(old: bpy.types.Mesh, new: bpy.types.Mesh, before: list[str]) -> None:
    """Use the materials of old slots in the new slots that have the same material in the file."""
    waiting: dict[str, deque[Any]] = {}
    for name, material in zip(before, old.materials, strict=True):
        waiting.setdefault(name, deque()).append(material)
    for place, name in enumerate(_slot_names(new)):
        found = waiting.get(name)
        if found:
            new.materials[place] = found.popleft()


def _link_materials(obj: bpy.types.Object, own: list[tuple[str, Any]], after: list[str]) -> None:
    for name, material in own:
        if name in after:
            slot = obj.material_slots[after.index(name)]
            after[after.index(name)] = "\0"
            slot.link, slot.material = "OBJECT", material


def _keep_shape_keys(old: bpy.types.Mesh, new: bpy.types.Mesh) -> None:
    if old.shape_keys is None or new.shape_keys is None:
        return
    for key in new.shape_keys.key_blocks[1:]:
        before = old.shape_keys.key_blocks.get(key.name)
        if before is not None:
            key.slider_min, key.slider_max = before.slider_min, before.slider_max
            key.value, key.mute = before.value, before.mute
    action_update.copy_animation(old.shape_keys, new.shape_keys)
