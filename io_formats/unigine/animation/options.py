"""Options of reading and writing a UNIGINE animation."""

from __future__ import annotations

from ...core.options import IMPORT_CHOICES, Choice, Option
from ..options import ANIMATION_RATE, TURN

IMPORT_OPTIONS: tuple[Option, ...] = (TURN, ANIMATION_RATE)

VERSION = Option(
    name="animation_version",
    default="AN11",
    label="Version",
    description="Version of the file. Each SDK reads its own and older ones",
    section="File",
    choices=(
        Choice("AN11", "an11: SDK 2.19, 2.20", "Full precision; no frame rate"),
        Choice("AN13", "an13: SDK 2.21", "With frame rate, root motion and a reference to a skeleton; no bind pose"),
        Choice("AN10", "an10: SDK 2.0 to 2.18", "Rounded to 16 bits; no frame rate"),
    ),
)

EXPORT_OPTIONS: tuple[Option, ...] = (VERSION, IMPORT_CHOICES, TURN)
