"""Slots of material graphs: which input of the material each texture of a graph feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from .project.materials import ProjectMaterial
from .project.references import FoundTexture

_OF_INPUT = {
    "albedo": "albedo",
    "metalness": "metalness",
    "roughness": "roughness",
    "normal tangent space": "normal",
    "ambient occlusion": "ambient_occlusion",
    "emission": "emission",
    "opacity": "opacity",
}
_OF_WORD: Mapping[str, tuple[str, ...]] = {
    "albedo": ("albedo",),
    "diffuse": ("albedo",),
    "normal": ("normal",),
    "shading": ("metalness", "roughness"),
    "metalness": ("metalness",),
    "roughness": ("roughness",),
    "ambient_occlusion": ("ambient_occlusion",),
    "ao": ("ambient_occlusion",),
    "emission": ("emission",),
    "opacity": ("opacity",),
}
_OF_POSTFIX: Mapping[str, tuple[str, ...]] = {
    "alb": _OF_WORD["albedo"],
    "d": _OF_WORD["albedo"],
    "n": _OF_WORD["normal"],
    "sh": _OF_WORD["shading"],
    "a": _OF_WORD["ambient_occlusion"],
    "e": _OF_WORD["emission"],
}


def graph_slots(material: ProjectMaterial, find: Callable[[str], FoundTexture]) -> dict[str, str]:
    """Return the slot in the graph for each texture slot of the standard shader.

    The source of the graph shows which inputs each texture feeds. Without it, the slot's name decides, or else the
    postfix of the texture's name, which the engine's editor uses, too.
    """
    slots: dict[str, str] = {}
    for slot, use in material.textures.items():
        inputs = material.inputs.get(slot)
        if inputs is not None:
            fed = tuple(_OF_INPUT[label.lower()] for label in inputs if label.lower() in _OF_INPUT)
        else:
            fed = _OF_WORD.get(slot.lower()) or _by_postfix(find(use.reference).name)
        for name in fed:
            slots.setdefault(name, slot)
    return slots


def _by_postfix(name: str) -> tuple[str, ...]:
    return _OF_POSTFIX.get(PurePosixPath(name).stem.lower().rpartition("_")[2], ())
