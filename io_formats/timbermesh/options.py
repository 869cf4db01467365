"""Options of reading and writing a Timbermesh file."""

from __future__ import annotations

from ..core.options import Choice, Option

COMPRESSION = Option(
    name="compression",
    default="BALANCED",
    label="Compression",
    description="How hard to compress; the game loads all of them",
    section="File",
    choices=(
        Choice("FAST", "Fast", "Largest file"),
        Choice("BALANCED", "Balanced", "Small where the file is small, fast where it is large"),
        Choice("SMALL", "Small", "Smallest file, slow on large models"),
    ),
)
STRIP_SUFFIXES = Option(
    name="use_strip_suffixes",
    default=False,
    label="Strip .001",
    description="Take Blender's number suffixes off material names; the game looks for the exact name",
    section="File",
)
BLENDER_NAMES = Option(
    name="use_blender_names",
    default=False,
    label="Blender Names",
    description="Write material names such as Material and Wood.001 as they are, with a warning. "
    "Otherwise they stop the export, since the game fails to load the model",
    section="File",
)

IMPORT_OPTIONS: tuple[Option, ...] = ()
EXPORT_OPTIONS: tuple[Option, ...] = (COMPRESSION, STRIP_SUFFIXES, BLENDER_NAMES)
