"""The animations that a file holds, to leave those of other files out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import bpy


@dataclass(frozen=True)
class FileClips:
    """The animations that a file holds."""

    origins: frozenset[str]
    """The files that its animations were imported from."""

    def holds(self, action: bpy.types.Action) -> bool:
        """Return whether an action was imported from the same file as animations of this one."""
        return any(same_path(action.meshferry.source_path, path) for path in self.origins)

    def allows(self, action: bpy.types.Action) -> bool:
        """Return whether the file holds an action, or the action was made in Blender."""
        return not action.meshferry.source_path or self.holds(action)


def same_path(one: str, other: str) -> bool:
    """Return whether two paths of files are equal after resolving ``//``."""
    return Path(bpy.path.abspath(one)) == Path(bpy.path.abspath(other))
