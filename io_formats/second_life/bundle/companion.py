"""The Collada file beside a bundle: the viewer's file picker selects it, and the viewer opens the bundle instead.

Formats page, section 8: the file picker does not show bundles. The viewer looks for a newer bundle beside the selected
file. If its setting is off, it uploads the selected file: the models at their finest level.
"""

from __future__ import annotations

from ..upload_set import scene_mapping as upload_set_mapping
from ..upload_set import writer as upload_set_writer
from .document import Bundle
from .scene_mapping import to_scene


def companion_of(bundle: Bundle) -> bytes:
    """Encode the models of a bundle at their finest level, as Collada without textures.

    Raises
    ------
    ExportError
        A model cannot be written as Collada.
    """
    scene = to_scene(bundle, "")
    for material in scene.materials:
        material.texture = None  # the viewer reads textures from the bundle alone
    return upload_set_writer.write(upload_set_mapping.from_scene(scene))
