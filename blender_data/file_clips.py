"""The animations that a file holds, to leave those of other files out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import bpy


@dataclass(frozen=True)
class FileClips:
    """The animations that a file holds."""

    origins: frozenset[str]
    """The files that the objects and their own actions were imported from."""
    names: frozenset[str] | None = None
    """Names of the clips in a file that was exported from Blender; None for an imported file."""

    def holds(self, action: bpy.types.Action) -> bool:
        """Return whether the file holds the clip of an action."""
        if self.names is None:
            return self._is_own(action)
        return (action.meshferry.clip_name or action.name) in self.names

    def allows(self, action: bpy.types.Action) -> bool:
        """Return whether an action came with the objects, was made in Blender, or its clip is in the file."""
        return not action.meshferry.source_path or self._is_own(action) or self.holds(action)

    def _is_own(self, action: bpy.types.Action) -> bool:
        return any(same_path(action.meshferry.source_path, path) for path in self.origins)


def same_path(one: str, other: str) -> bool:
    """Return whether two paths of files are equal after resolving ``//``."""
    return Path(bpy.path.abspath(one)) == Path(bpy.path.abspath(other))
