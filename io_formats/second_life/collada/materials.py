"""Materials of a Collada file: diffuse colour, image and emission of their effects."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import Element

import numpy as np

from . import numbers
from .document import Material
from .tree import Tree, name_of, text_of

_SHADERS = ("lambert", "phong", "blinn", "constant")
_MOST_STEPS = 4
"""Maximum number of links that are followed from a texture to its image."""


class MaterialReader:
    """Reads the materials that objects use, each once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._numbers: dict[Element, int] = {}
        self._effects: dict[Element, Material] = {}
        self.materials: list[Material] = []

    def number(self, element: Element) -> int:
        """Return the index of a material in the document, reading it if needed."""
        if element not in self._numbers:
            self._numbers[element] = len(self.materials)
            self.materials.append(self._read(element))
        return self._numbers[element]

    def _read(self, element: Element) -> Material:
        link = element.find("instance_effect")
        effect = None if link is None else self._tree.target(link.get("url"), "effect")
        if effect is None:
            return Material(name_of(element))
        if effect not in self._effects:
            self._effects[effect] = self._read_effect(effect)
        return replace(self._effects[effect], name=name_of(element))

    def _read_effect(self, effect: Element) -> Material:
        material = Material("")
        shader = next((shader for kind in _SHADERS for shader in effect.iter(kind)), None)
        if shader is None:
            return material
        texture = shader.find("diffuse/texture")
        if texture is not None:
            material.image = self._image(effect, texture.get("texture", ""))
            material.color = (1.0, 1.0, 1.0, 1.0)
        elif color := _color(shader.find("diffuse/color")):
            material.color = color
        if emitted := _color(shader.find("emission/color")):
            material.emission = float(np.mean(emitted[:3]))
        material.has_transparency = _has_transparency(shader)
        return material

    def _image(self, effect: Element, name: str) -> str:
        """Return the address that a texture's name leads to, by parameters of the effect or as the id of an image."""
        parameters = {element.get("sid"): element for element in reversed(list(effect.iter("newparam")))}
        for _ in range(_MOST_STEPS):
            parameter = parameters.get(name)
            if parameter is None:
                break
            surface = parameter.find("surface")
            where = surface.find("init_from") if surface is not None else parameter.find("sampler2D/source")
            instance = parameter.find("sampler2D/instance_image")
            name = instance.get("url", "") if where is None and instance is not None else text_of(where)
        image = self._tree.target(name, "image")
        start = None if image is None else image.find("init_from")
        reference = None if start is None else start.find("ref")
        return text_of(start if reference is None else reference)


def _color(element: Element | None) -> tuple[float, float, float, float] | None:
    """Return a colour with alpha; None if there is none."""
    values = np.nan_to_num(numbers.exact_floats(text_of(element)), nan=0.0, posinf=1.0, neginf=0.0)
    if len(values) < 3:
        return None
    red, green, blue, alpha = (*values[:3].clip(0.0, 1.0).tolist(), *values[3:4].clip(0.0, 1.0).tolist(), 1.0)[:4]
    return red, green, blue, alpha


def _has_transparency(shader: Element) -> bool:
    """Return whether a shader has transparency other than what exporters write for opaque materials."""
    transparent = shader.find("transparent")
    if transparent is not None:
        color = _color(transparent.find("color"))
        amount = numbers.exact_floats(text_of(shader.find("transparency/float")))
        factor = float(amount[0]) if len(amount) else 1.0
        if color is None:
            return transparent.find("texture") is not None
        if transparent.get("opaque", "A_ONE") == "RGB_ZERO":
            return any(part * factor > 0.0 for part in color[:3])
        return color[3] * factor < 1.0
    amount = numbers.exact_floats(text_of(shader.find("transparency/float")))
    return len(amount) > 0 and 0.0 < float(amount[0]) < 1.0
