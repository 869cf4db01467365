"""The Collada file beside a bundle: what is picked in the viewer, which then opens the bundle in its stead.

Formats page, section 8: the viewer's file picker does not show bundles. It looks for one beside the picked file,
newer than that. Should it not be set to, it uploads what was picked: the models in their finest level.
"""

from __future__ import annotations

from ..upload_set import scene_mapping as upload_set_mapping
from ..upload_set import writer as upload_set_writer
from .document import Bundle
from .scene_mapping import to_scene


def companion_of(bundle: Bundle) -> bytes:
    """Return the models of a bundle in their finest level, as Collada without textures.

    Raises
    ------
    ExportError
        A model cannot be written so.
    """
    scene = to_scene(bundle, "")
    for material in scene.materials:
        material.texture = None  # their files lie elsewhere, and the bundle says where
    return upload_set_writer.write(upload_set_mapping.from_scene(scene))
