"""Base colour and opacity in the parameters of material graphs, whose names the authors choose freely."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

_BASE_COLORS = (
    "albedo_color",
    "albedo_tint",
    "base_color",
    "base_tint",
    "diffuse_color",
    "diffuse_tint",
    "albedo",
    "diffuse",
    "main_color",
    "color",
    "tint",
)
"""Usual names of the base colour, the most likely first."""
_COLOR_WORDS = ("albedo", "diffuse", "base", "tint")
"""Words in other names of the base colour, the most likely first."""
_OTHER_COLORS = ("emissi", "specular", "detail", "coat", "clearcoat", "sheen", "subsurface", "sss", "fresnel", "rim")
"""Beginnings of words in the names of colours that are not the base colour."""
_NO_COLORS = (
    *("uv", "transform", "tiling", "offset", "scale", "size", "speed"),
    *("position", "direction", "rotation", "normal", "mask", "channel"),
)
"""Beginnings of words in the names of vectors that are not colours."""
_OPACITY_WORDS = ("opacity", "transparency", "alpha")
_NO_OPACITIES = ("pow", "contrast", "threshold", "test", "clip", "exponent")


def base_colors(parameters: Mapping[str, str]) -> list[str]:
    """Return the names of the parameters that may be the base colour: none, one, or several equally likely ones."""
    words = {name: _words(name) for name, value in parameters.items() if len(_numbers(value)) in (3, 4)}
    for exact in _BASE_COLORS:
        if found := [name for name, parts in words.items() if "_".join(parts) == exact]:
            return found[:1]
    left = [name for name, parts in words.items() if not _has_word(parts, _OTHER_COLORS + _NO_COLORS)]
    named = ([name for name in left if _has_word(words[name], (word,))] for word in _COLOR_WORDS)
    return next((found for found in named if found), [])


def opacity_parameter(parameters: Mapping[str, str]) -> float | None:
    """Return the opacity, 0 to 1: the value of the only parameter whose name means opacity, transparency or alpha."""
    words = {name: _words(name) for name, value in parameters.items() if len(_numbers(value)) == 1}
    left = [name for name, parts in words.items() if not _has_word(parts, _OTHER_COLORS + _NO_OPACITIES)]
    for word in _OPACITY_WORDS:
        found = [name for name in left if words[name] == [word]] or [name for name in left if word in words[name]]
        if len(found) == 1:
            value = min(max(_numbers(parameters[found[0]])[0], 0.0), 1.0)
            return 1.0 - value if word == "transparency" else value
    return None


def _words(name: str) -> list[str]:
    """Return the words of a name such as ``albedo_tint``, ``Albedo Tint`` or ``albedoTint`` in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W_]+", spaced.lower().replace("colour", "color"))


def _has_word(words: Iterable[str], starts: tuple[str, ...]) -> bool:
    return any(word.startswith(starts) for word in words)


def _numbers(text: str) -> list[float]:
    """Parse the numbers of a value; return an empty list if a part of it is not a finite number."""
    try:
        found = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        return []
    return found if all(map(math.isfinite, found)) else []
