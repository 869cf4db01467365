"""Reset the open .blend file to an empty one after an import, 20 times as fast as loading an empty file."""

from __future__ import annotations

from typing import Any

import bpy

_STAYING = frozenset({"scenes", "screens", "window_managers", "workspaces"})
"""Types of data blocks that an empty file contains and no import creates."""
_OTHERWISE = frozenset({"all_ids", "libraries", "shape_keys"})
"""Collections of ``bpy.data`` that are not emptied: the list of all data, libraries, and shape keys (which are removed
with their meshes)."""
_PLAIN = frozenset({"BOOLEAN", "INT", "FLOAT", "STRING", "ENUM"})
"""Types of properties that are restored."""


class EmptyFile:
    """The state of an empty open file, to which the file is reset after each import.

    Resetting removes all data blocks except the scene, and restores the settings of the scene, its rendering and its
    units. Other changes remain, so it must only be used after imports (:func:`.importing.importer.import_scene`) and
    Blender's exporters.
    """

    def __init__(self, context: bpy.types.Context) -> None:
        scene: Any = context.scene  # an open file has a scene
        self._settings = [_values(owner) for owner in _owners(scene)]
        self._own_keys = frozenset(scene.keys())
        kinds = (prop.identifier for prop in bpy.types.BlendData.bl_rna.properties if prop.type == "COLLECTION")
        self._kinds = [kind for kind in kinds if kind not in _STAYING | _OTHERWISE]
        self._staying = self._count_staying()

    def restore(self, context: bpy.types.Context) -> bool:
        """Remove everything that was imported. Return False, without changes, if the file is in an unexpected state."""
        if len(bpy.data.libraries) or self._count_staying() != self._staying:
            return False
        bpy.data.batch_remove([block for kind in self._kinds for block in getattr(bpy.data, kind)])
        scene: Any = context.scene
        for owner, values in zip(_owners(scene), self._settings, strict=True):
            for name, value in values.items():
                if getattr(owner, name) != value:
                    setattr(owner, name, value)
        for key in set(scene.keys()) - self._own_keys:
            if key not in scene.bl_rna.properties:  # up to 4.5 registered properties become keys when read
                del scene[key]
        return True

    def _count_staying(self) -> list[int]:
        return [len(getattr(bpy.data, kind)) for kind in sorted(_STAYING)]


def _owners(scene: bpy.types.Scene) -> tuple[Any, ...]:
    return scene, scene.render, scene.unit_settings


def _values(owner: Any) -> dict[str, Any]:
    """Return the writable scalar properties of an owner, by name."""
    return {
        prop.identifier: getattr(owner, prop.identifier)
        for prop in owner.bl_rna.properties
        if prop.type in _PLAIN
        and not prop.is_readonly
        and not getattr(prop, "is_array", False)
        and not getattr(prop, "is_deprecated", False)
    }
