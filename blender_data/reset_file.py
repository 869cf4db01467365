"""An empty file emptied again after imports: a twentieth of the time that it takes Blender to read an empty one."""

from __future__ import annotations

from typing import Any

import bpy

_STAYING = frozenset({"scenes", "screens", "window_managers", "workspaces"})
"""Kinds of data blocks that an empty file has, and no import makes."""
_OTHERWISE = frozenset({"all_ids", "libraries", "shape_keys"})
"""Collections of ``bpy.data`` that need other treatment: all data, linked libraries, and shape keys."""
_PLAIN = frozenset({"BOOLEAN", "INT", "FLOAT", "STRING", "ENUM"})
"""Types of properties that are compared and restored."""


class EmptyFile:
    """An open file without objects in its original state, reused for one import after the other.

    It removes all data blocks except the scene, and restores the values of the scene, its render and unit settings.
    Other changes remain, so use it only after imports (:func:`.importing.importer.import_scene`) and Blender's
    exporters.
    """

    def __init__(self, context: bpy.types.Context) -> None:
        self._settings = [_values(owner) for owner in _owners(context.scene)]
        self._own_keys = frozenset(context.scene.keys())
        kinds = (prop.identifier for prop in bpy.types.BlendData.bl_rna.properties if prop.type == "COLLECTION")
        self._kinds = [kind for kind in kinds if kind not in _STAYING | _OTHERWISE]
        self._staying = self._count_staying()

    def restore(self, context: bpy.types.Context) -> bool:
        """Remove everything that was imported. Return False, without changes, if the file is in an unexpected state."""
        if len(bpy.data.libraries) or self._count_staying() != self._staying:
            return False
        bpy.data.batch_remove([block for kind in self._kinds for block in getattr(bpy.data, kind)])
        scene = context.scene
        for owner, values in zip(_owners(scene), self._settings, strict=True):
            for name, value in values.items():
                if getattr(owner, name) != value:
                    setattr(owner, name, value)
        for key in set(scene.keys()) - self._own_keys:
            if key not in scene.bl_rna.properties:  # until 4.5 declared properties are keys, too, once they are read
                del scene[key]
        return True

    def _count_staying(self) -> list[int]:
        return [len(getattr(bpy.data, kind)) for kind in sorted(_STAYING)]


def _owners(scene: bpy.types.Scene) -> tuple[Any, ...]:
    return scene, scene.render, scene.unit_settings


def _values(owner: Any) -> dict[str, Any]:
    """Return the numbers, switches and texts of an owner that can be set, by name."""
    return {
        prop.identifier: getattr(owner, prop.identifier)
        for prop in owner.bl_rna.properties
        if prop.type in _PLAIN
        and not prop.is_readonly
        and not getattr(prop, "is_array", False)
        and not getattr(prop, "is_deprecated", False)
    }
