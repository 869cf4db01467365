"""Encode whole scenes without writing files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
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
    encoded = encode_with_errors(part, target, options) if ignore_errors else api.encode_part(part, target, options)
    messages = distinct([*files.messages, *encoded.messages])
    return encoded.outputs[-1].data, [message for message in messages if not message.is_note]


def encode_with_errors(
    part: Scene, target: Any, options: Mapping[str, Any] | None = None, *, path: str | None = None
) -> api.EncodedFile:
    """Encode one of the scenes of ``files_of``, even if rules of the target program are broken."""
    findings = target.check_scene(part)
    document, checked = api.check_part(part, target, options, path=path)
    name = api.scene_name(Path(path)) if path is not None else part.name
    return api.EncodedFile(part, target.write_files(document, name), [*part.warnings, *findings, *checked])
