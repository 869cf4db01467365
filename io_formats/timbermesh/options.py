"""Options of reading and writing a Timbermesh file."""

from __future__ import annotations

from ..core.options import Choice, Option

COMPRESSION = Option(
    name="compression",
    default="BALANCED",
    label="Compression",
    description="Compression level; the game loads all of them",
    section="File",
    choices=(
        Choice("FAST", "Fast", "Largest file"),
        Choice("BALANCED", "Balanced", "Smallest size for small models, fast for large ones"),
        Choice("SMALL", "Small", "Smallest size; slow for large models"),
    ),
)
STRIP_SUFFIXES = Option(
    name="use_strip_suffixes",
    default=False,
    label="Strip .001",
    description="Remove Blender's number suffixes from material names; the game looks for the exact name",
    section="File",
)
BLENDER_NAMES = Option(
    name="use_blender_names",
    default=False,
    label="Blender Names",
    description="Write material names such as Material and Wood.001 as they are, with a warning. "
    "Otherwise the export fails, because the game does not load such a model. "
    "Names that came so from the imported file are always written, with a warning",
    section="File",
)


def _probe_game(folder: str) -> None:
    from .materials.material_collections import game_collections

    game_collections(folder)


GAME = Option(
    name="game",
    default="",
    label="Timberborn",
    description="Folder of the game, for the names of materials in Check and for its blueprints that others nest",
    section="Preferences",
    is_path=True,
    preference="timberborn_folder",
    probe=_probe_game,
)

IMPORT_OPTIONS: tuple[Option, ...] = ()
EXPORT_OPTIONS: tuple[Option, ...] = (COMPRESSION, STRIP_SUFFIXES, BLENDER_NAMES, GAME)
