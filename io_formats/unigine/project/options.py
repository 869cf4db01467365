"""Options of imports from UNIGINE projects."""

from __future__ import annotations

import os

from ...core.errors import MeshferryError
from ...core.options import Option


def _require_folder(path: str) -> None:
    """Raise MeshferryError for a path that is not a folder."""
    if not os.path.isdir(path):
        raise MeshferryError("{}: The folder of the project does not exist", path)


PROJECT_MATERIALS = Option(
    name="use_project_materials",
    default=True,
    label="Project Materials",
    description="Take materials and textures from the UNIGINE project that the file is in, if it is in one",
    section="Materials",
)
PROJECT_FOLDER = Option(
    name="project",
    default="",
    label="UNIGINE Project",
    description="Folder of the UNIGINE project for files outside of any project",
    section="Materials",
    is_path=True,
    preference="unigine_project",
    probe=_require_folder,
)
