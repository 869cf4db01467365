"""Which objects a Second Life upload is about: the models that are chosen, whatever level or shape of them is active."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..blender_data.exporting.object_selection import MESHABLE, armature_of
from ..io_formats.formats import SECOND_LIFE
from .sidebar import concerns

LEVEL_PROPERTIES = ("medium_level", "low_level", "lowest_level")
"""Properties of the finest object that point to its coarser levels."""


def is_wanted(context: Any) -> bool:
    """Tell whether what is active may go to Second Life: not what was imported from another family's file."""
    item = context.object
    return item is not None and item.type in {*MESHABLE, "ARMATURE"} and concerns(context, *SECOND_LIFE)


def finest_of(item: Any, among: Iterable[Any]) -> Any:
    """Return the object that one is a coarser level, the physics or a hull of; one that stands for itself: itself.

    ``among`` are the objects whose pickers may name it.
    """
    kept = item.meshferry
    for owner in (kept.lod_of, kept.shape_of):
        if owner is not None:
            return owner
    pickers = (*LEVEL_PROPERTIES, "physics_object")
    return next((one for one in among if any(getattr(one.meshferry, name) == item for name in pickers)), item)


def models_among(objects: Iterable[Any]) -> list[Any]:
    """Return those of some objects that are models, rather than levels or physics of another of them."""
    given = [item for item in objects if item.type in MESHABLE or item.instance_type != "NONE"]
    return [item for item in given if finest_of(item, given) not in given or finest_of(item, given) == item]


def chosen_models(context: Any) -> list[Any]:
    """Return the models of the selection and of the active object, that first, the others by name.

    A level or a physics object stands for its model, an armature for all that it deforms.
    """
    selected = list(context.view_layer.objects.selected)
    active = context.view_layer.objects.active
    if active is not None:
        selected = [active, *sorted((item for item in selected if item != active), key=lambda item: item.name)]
    found: dict[Any, None] = {}
    everything = context.scene.objects
    for item in selected:
        parts = [item] if item.type in MESHABLE else []
        if item.type == "ARMATURE":
            parts = sorted((one for one in everything if armature_of(one) == item), key=lambda one: one.name)
        for part in parts:
            found.setdefault(finest_of(part, everything))
    return list(found)
