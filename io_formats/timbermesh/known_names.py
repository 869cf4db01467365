"""Names that Timberborn knows, to warn of misspellings (docs/formats/timbermesh.md, names seen)."""

from __future__ import annotations

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


def known_materials() -> list[str]:
    """Return the stock material names whose spelling is certain."""
    colored = [f"{base}_{color}" for base, colors in _COLORS.items() for color in colors]
    return [f"{name}.{faction}" for name in (*colored, *_BASES) for faction in FACTIONS] + list(WITHOUT_FACTION)


def near_material(name: str) -> str | None:
    """Return the known name that a misspelt name probably means, or None.

    A name is taken for misspelt if it differs from a known one by one edit or only in case, dots, underscores and
    spaces. Other names may belong to a mod.
    """
    known = known_materials()
    if not name.strip() or name in known:
        return None
    plain = _plain(name)
    for candidate in known:
        if _plain(candidate) == plain or (abs(len(candidate) - len(name)) <= 1 and _one_edit(name, candidate)):
            return candidate
    return None


def _plain(name: str) -> str:
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
