"""Find out which animations belong to a file, so that an export leaves out those of other files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import bpy


@dataclass(frozen=True)
class FileClips:
    """The animations that belong to a file."""

    origins: frozenset[str]
    """Paths of the files from which the animations were imported."""

    def holds(self, action: bpy.types.Action) -> bool:
        """Return whether an action was imported from the same file as the animations in this set."""
        return any(same_path(action.meshferry.source_path, path) for path in self.origins)

    def allows(self, action: bpy.types.Action) -> bool:
        """Return whether an action belongs to the file or was made in Blender."""
        return not action.meshferry.source_path or self.holds(action)


def same_path(one: str, other: str) -> bool:
    """Return whether two paths of files are equal after resolving ``//``."""
    return Path(bpy.path.abspath(one)) == Path(bpy.path.abspath(other))
