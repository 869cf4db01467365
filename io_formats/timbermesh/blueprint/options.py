"""Options of reading a blueprint."""

from __future__ import annotations

import os

from ...core.errors import MeshferryError
from ...core.options import Option
from ..model.format import GAME


def _require_folder(path: str) -> None:
    """Raise MeshferryError for a path that is not a folder."""
    if not os.path.isdir(path):
        raise MeshferryError("{}: The folder of the mod does not exist", path)


MOD = Option(
    name="mod",
    default="",
    label="Mod Folder",
    description="Folder of the Timberborn mod for blueprints without a manifest.json above them",
    section="Preferences",
    is_path=True,
    preference="timberborn_mod",
    probe=_require_folder,
)

IMPORT_OPTIONS: tuple[Option, ...] = (MOD, GAME)
