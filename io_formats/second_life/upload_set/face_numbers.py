"""The faces that the viewer makes of materials: their numbers are those of scripts and of the viewer's build window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.scene import Scene
from ..models.faces import MOST_FACES
from . import names
from .level_faces import sort_key
from .textures import Materials


def face_numbers(symbols: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the part of a mesh, and the number of the face in it, for each material.

    The viewer sorts faces by the names of their materials, ignoring case, and splits them into parts of 8.
    """
    ordered = sorted(dict.fromkeys(symbols), key=sort_key)
    return {symbol: divmod(number, MOST_FACES) for number, symbol in enumerate(ordered)}


def faces_of_slots(slots: Sequence[str], model: str) -> list[tuple[str, int, int]]:
    """Return the material, the part and the number of each face, in the viewer's order.

    Parameters
    ----------
    slots:
        The materials of all slots with triangles; may be empty names.
    model:
        Name of the model, for slots without a material.
    """
    symbols = Materials(Scene(""), is_copied=False).slot_symbols(slots, range(len(slots)), names.model_name(model, ()))
    name_of = dict(zip(reversed(symbols), reversed(slots), strict=True))
    return [(name_of[symbol], part, number) for symbol, (part, number) in face_numbers(symbols).items()]
