"""Check a Collada file for data that the viewer's uploader rejects or reads differently."""

from __future__ import annotations

from dataclasses import replace

from ...core.messages import Kind, Message
from . import scene_mapping
from .document import Collada

_REFUSED = ("mirrored-objects", "vertices-not-finite", "weights-disagree")
"""Codes of findings because of which the viewer rejects the file."""
_MISREAD = ("strips-and-fans", "uvs-of-three-numbers", "weights-before-joints", "more-than-4-weights")
"""Codes of notes about data that is imported although the viewer shows it differently or not at all."""


def check(document: Collada) -> list[Message]:
    """Return the messages of an import except notes.

    Those because of which the viewer rejects the file are errors.

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
