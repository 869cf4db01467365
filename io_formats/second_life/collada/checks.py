"""Check a Collada file against what the viewer's uploader does with it."""

from __future__ import annotations

from dataclasses import replace

from ...core.messages import Kind, Message
from . import scene_mapping
from .document import Collada

_REFUSED = ("mirrored-objects", "vertices-not-finite", "weights-disagree")
"""Codes of what the viewer refuses the file for."""
_MISREAD = ("strips-and-fans", "uvs-of-three-numbers", "weights-before-joints", "more-than-4-weights")
"""Codes of notes about what is imported, but shown otherwise or not at all by the viewer."""


def check(document: Collada) -> list[Message]:
    """Return what an import reports and the viewer refuses or shows otherwise.

    Raises
    ------
    FormatError
        The document cannot be imported.
    """
    messages = scene_mapping.to_scene(document, "").warnings
    kinds = dict.fromkeys(_REFUSED, Kind.ERROR) | dict.fromkeys(_MISREAD, Kind.WARNING)
    found = [
        replace(message, kind=kinds.get(message.code, Kind.WARNING if message.is_loss else message.kind))
        for message in messages
    ]
    return [message for message in found if not message.is_note]
