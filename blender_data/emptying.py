"""An empty file emptied again after imports: a thirtieth of the time that it takes Blender to read an empty one."""

from __future__ import annotations

import bpy

from .time_line import TimeLine

_STAYING = frozenset({"scenes", "screens", "window_managers", "workspaces"})
"""Kinds of data blocks that an empty file has, and no import makes."""
_OTHERWISE = frozenset({"all_ids", "libraries", "shape_keys"})
"""Lists of all kinds; what is linked from other files, which ends it; what goes with the mesh that it belongs to."""


class EmptyFile:
    """An open file without objects, as it was when this was made, for imports to work in one after the other.

    An import adds data blocks and sets the frames of the scene (:func:`.importing.importer.import_scene`); for whatever
    else might be done to the file, this is no remedy.
    """

    def __init__(self, context: bpy.types.Context) -> None:
        self._time_line = TimeLine(context.scene)
        kinds = (prop.identifier for prop in bpy.types.BlendData.bl_rna.properties if prop.type == "COLLECTION")
        self._kinds = [kind for kind in kinds if kind not in _STAYING | _OTHERWISE]
        self._staying = self._count_staying()

    def restore(self, context: bpy.types.Context) -> bool:
        """Remove what was imported; return False, with everything as it is, where the file is not what it was."""
        if len(bpy.data.libraries) or self._count_staying() != self._staying:
            return False
        bpy.data.batch_remove([block for kind in self._kinds for block in getattr(bpy.data, kind)])
        self._time_line.restore(context.scene)
        return True

    def _count_staying(self) -> list[int]:
        return [len(getattr(bpy.data, kind)) for kind in sorted(_STAYING)]
