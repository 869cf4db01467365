"""Names that Timberborn knows, to warn of misspellings (docs/formats/timbermesh.md, names seen)."""

from __future__ import annotations

import re
from collections.abc import Iterable

SLOT_KEYWORDS = ("Entrance", "Bot", "Seat")
"""Keywords after ``#Slot#``, matched by prefix."""

FACTIONS = ("Folktails", "IronTeeth")

_COLORS = {
    "BaseWood": ("Brown", "DarkBrown", "LightBrown", "Grey", "White", "Indigo", "DarkRed", "Yellow", "Green"),
    "IrregularPlanks": (
        "Grey",
        "Brown",
        "DarkBrown",
        "LightBrown",
        "Mossy",
        "Indigo",
        "White",
        "Yellow",
        "MetalForged",
    ),
    "Plaster": ("White", "Black", "Orange"),
}
_BASES = (
    "BaseMetal",
    "PaintedMetal",
    "WindowsAtlas",
    "PlasteredWood",
    "ThatchedRoof",
    "RoofPlanks",
    "Details",
    "Paper",
)

WITHOUT_FACTION = ("Dirt", "Water", "BeaverCarryingModels", "BeaverAdult")


OTHERS = "Others"
"""Name of the group of materials without a faction."""

_SUFFIX = re.compile(r"\.\d{3,}$")


def without_suffix(name: str) -> str:
    """Return a name without the number suffix that Blender adds to make a name unique."""
    return _SUFFIX.sub("", name)


def known_collections() -> dict[str, tuple[str, ...]]:
    """Return the stock material names whose spelling is certain, by faction."""
    bases = (*(f"{base}_{color}" for base, colors in _COLORS.items() for color in colors), *_BASES)
    factions = {faction: tuple(f"{base}.{faction}" for base in bases) for faction in FACTIONS}
    return {**factions, OTHERS: WITHOUT_FACTION}


def misspelt_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt name probably means, or None.

    A name counts as misspelt if it differs from a known one by one edit or only in case, dots, underscores and
    spaces. Other names may belong to a mod.
    """
    plain = plain_name(name)
    for candidate in known:
        if plain_name(candidate) == plain or (abs(len(candidate) - len(name)) <= 1 and _one_edit(name, candidate)):
            return candidate
    return None


def plain_name(name: str) -> str:
    """Return a name in lower case, with underscores for dots and spaces."""
    return name.replace(".", "_").replace(" ", "_").lower()


def _one_edit(one: str, other: str) -> bool:
    """Return whether one insertion, deletion, replacement or swap of adjacent letters turns one name into the other."""
    if len(one) > len(other):
        one, other = other, one
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    return swapped or one[start + 1 :] == other[start + 1 :]
