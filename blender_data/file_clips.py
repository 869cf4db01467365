"""The animations that a file holds, to leave those of other files out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import bpy


@dataclass(frozen=True)
class FileClips:
    """The animations that a file holds."""

    path: str
    """The file from which some actions may have been imported."""
    names: frozenset[str] = frozenset()
    """Names of further clips that the file holds."""

    def holds(self, action: bpy.types.Action) -> bool:
        """Return whether the file holds the clip of an action."""
        kept = action.meshferry
        return (kept.clip_name or action.name) in self.names or same_path(kept.source_path, self.path)

    def allows(self, action: bpy.types.Action) -> bool:
        """Return whether the file holds the clip of an action, or the action was made in Blender."""
        return not action.meshferry.source_path or self.holds(action)


def same_path(one: str, other: str) -> bool:
    """Return whether two paths of files are equal after resolving ``//``."""
    return Path(bpy.path.abspath(one)) == Path(bpy.path.abspath(other))
