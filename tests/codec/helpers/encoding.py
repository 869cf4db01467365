"""Encode whole scenes without writing files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meshferry.io_formats import api
from meshferry.io_formats.core.messages import Message, distinct
from meshferry.io_formats.core.scene import Scene


def encode_scene(
    scene: Scene, target: Any, options: Mapping[str, Any] | None = None, *, ignore_errors: bool = False
) -> tuple[bytes, list[Message]]:
    """Return the bytes of the one file that a scene becomes, and the messages without notes."""
    files = api.split(scene, target, options)
    (part,) = files.parts
    encoded = api.encode_part(part, target, options, ignore_errors=ignore_errors)
    messages = distinct([*files.messages, *encoded.messages])
    return encoded.outputs[-1].data, [message for message in messages if not message.is_note]
