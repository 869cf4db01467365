"""Document -> bytes (docs/formats/unigine.md, section 8)."""

from __future__ import annotations

import numpy as np

from ...core.errors import ExportError
from .. import bones, frames, values
from .document import AnimationFile
from .versions import WRITTEN_VERSIONS

_NO_SYNC_MARKERS = bytes(12)


def write(document: AnimationFile) -> bytes:
    """Encode an animation file with the same bytes as the engine.

    Raises
    ------
    ExportError
        The version is an12, which is only known from outdated documentation, or a value cannot be stored.
    """
    if document.version not in WRITTEN_VERSIONS:
        raise ExportError("{} is read but not written; choose an13, which the same SDK reads", document.version)
    return encode_animation(document)


def encode_animation(document: AnimationFile) -> bytes:
    """Encode a document of any version."""
    magic = document.version.encode("ascii")
    if document.version == "an10":
        parts = _quantized(document, magic)
    elif document.version == "an11":
        parts = _flagged(document, magic)
    else:
        parts = _referring(document, magic)
    return b"".join((magic, *parts, magic))


def _quantized(document: AnimationFile, magic: bytes) -> list[bytes]:
    if not isinstance(document.frames, frames.DeltaFrames):
        raise ExportError("an an10 needs frames of the delta kind")
    return [
        np.ascontiguousarray(document.bounds, "<f4").tobytes(),
        values.encode_integer(len(document.bones)),
        bones.encode_table(document.bones),
        values.encode_integer(1),
        values.encode_string(document.name),
        magic,
        bones.encode_transforms(document.transforms, document.bones),
        frames.write_quantized_frames(document.frames),
    ]


def _flagged(document: AnimationFile, magic: bytes) -> list[bytes]:
    stored = _flagged_frames(document)
    return [
        values.encode_integer(len(document.bones)),
        bones.encode_table(document.bones),
        magic,
        bones.encode_transforms(document.transforms, document.bones),
        frames.encode_bone_indices(stored.bone_indices),
        frames.encode_flagged_frames(stored),
    ]


def _referring(document: AnimationFile, magic: bytes) -> list[bytes]:
    stored = _flagged_frames(document)
    return [
        len(document.bones).to_bytes(4, "little"),
        bones.encode_table(document.bones),
        values.encode_long_string(document.skeleton_guid),
        values.encode_long_string(document.skeleton_path),
        frames.encode_bone_indices(stored.bone_indices),
        document.fps.to_bytes(4, "little", signed=True),
        bytes((document.root_motion,)),
        _NO_SYNC_MARKERS if document.version == "an13" else b"",
        magic,
        frames.encode_flagged_frames(stored),
    ]


def _flagged_frames(document: AnimationFile) -> frames.FlaggedFrames:
    if not isinstance(document.frames, frames.FlaggedFrames):
        raise ExportError("an {} needs frames of the flagged kind", document.version)
    return document.frames
