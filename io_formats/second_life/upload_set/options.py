"""Options of writing an upload set."""

from __future__ import annotations

from ...core.options import Option
from ..options import EXPORT_OPTIONS as SHARED

TEXTURES = Option(
    name="use_textures",
    default=True,
    label="Copy Textures",
    description="Copy the textures of the materials beside the files; packed ones are saved",
    section="File",
)

EXPORT_OPTIONS: tuple[Option, ...] = (*SHARED, TEXTURES)
