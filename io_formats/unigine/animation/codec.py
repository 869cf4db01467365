"""Bytes <-> document of a UNIGINE animation (docs/formats/unigine.md, sections 8 and 11)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.errors import ExportError, UnsupportedFormatError
from ...core.scene import FloatArray
from ...encodings.byte_reader import ByteStream
from .. import bones, frames, values
from ..bones import Bone
from ..frames import DeltaFrames, FlaggedFrames
from .format import VERSIONS, WRITTEN_VERSIONS


@dataclass
class AnimationFile:
    """An animation file of any version."""

    version: str
    """The magic number, e.g. ``an11``."""
    bones: list[Bone] = field(default_factory=list)
    transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """(nb, 10) float32 local bind transforms: translation, rotation (x, y, z, w), scale; empty in an12 and an13."""
    frames: DeltaFrames | FlaggedFrames | None = None
    """``DeltaFrames`` in an10, ``FlaggedFrames`` in the other versions."""
    name: str = ""
    """an10: name of the animation."""
    bounds: FloatArray = field(default_factory=lambda: np.zeros(10, np.float32))
    """an10: (10,) float32, the bounds of the mesh that the animation belongs to, or empty bounds."""
    skeleton_guid: str = ""
    """an12 and an13: identifier of the skeleton file."""
    skeleton_path: str = ""
    """an12 and an13: path of the skeleton file in the project."""
    fps: int = 0
    """an12 and an13: frames per second."""
    root_motion: bool = False
    """an12 and an13: whether movement of the root bone moves the whole figure."""
    warnings: list[Any] = field(default_factory=list)
    """Warnings of the reader (section 11); not part of the file."""
    findings: list[Any] = field(default_factory=list)
    """Findings about the skeleton file; not part of the file."""


_NO_SYNC_MARKERS = bytes(12)
"""Bytes between root motion and the second magic number in an13: zero in all known files, probably counts of sync
markers."""


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
    """Return the parts of an an10 file."""
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
    """Return the parts of a file with flagged frames and its own bind transforms."""
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
    """Return the parts of a file that refers to a skeleton file."""
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


def read(data: bytes, *, inflated_limit: int | None = None) -> AnimationFile:
    """Decode an animation file of an10 to an13, which is not compressed; see :meth:`.FileFormat.read`."""
    stream = ByteStream(data)
    magic = bytes(stream.take(4, "the magic"))
    version = magic.decode("ascii", "replace")
    if version == "an10":
        document = _read_quantized(stream)
    elif version == "an11":
        document = _read_flagged(stream)
    elif version in VERSIONS:
        document = _read_referring(stream, version)
    else:
        raise UnsupportedFormatError("Not a UNIGINE animation of {}: it starts with {!r}", ", ".join(VERSIONS), magic)
    stream.expect(magic, "the magic at the end")
    stream.expect_end()
    bones.report_oddities(document.bones, document.transforms, stream.report)
    document.warnings = stream.report.messages
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same content, even if compact integers are stored in different lengths."""
    return one == other or encode_animation(read(one)) == encode_animation(read(other))


def _read_quantized(stream: ByteStream) -> AnimationFile:
    """Read an10 after its first magic number (section 8.1)."""
    document = AnimationFile("an10")
    document.bounds = stream.array(np.float32, 10, "the bounds").copy()
    document.bones = bones.read_table(stream, values.read_integer(stream, "the number of bones"))
    start = stream.position
    count = values.read_integer(stream, "the number of animations")
    if count != 1:
        raise stream.error("The file claims {:,} animations, but an an10 holds one", count, offset=start)
    document.name = values.read_string(stream, "the name of the animation")
    stream.expect(b"an10", "the magic before the bind transforms")
    document.transforms = bones.read_transforms(stream, document.bones).copy()
    document.frames = frames.read_quantized_frames(stream, len(document.bones))
    return document


def _read_flagged(stream: ByteStream) -> AnimationFile:
    """Read an11 after its first magic number (section 8.2)."""
    document = AnimationFile("an11")
    document.bones = bones.read_table(stream, values.read_integer(stream, "the number of bones"))
    stream.expect(b"an11", "the magic before the bind transforms")
    document.transforms = bones.read_transforms(stream, document.bones).copy()
    indices = frames.read_bone_indices(stream, len(document.bones))
    document.frames = frames.read_flagged_frames(stream, indices)
    return document


def _read_referring(stream: ByteStream, version: str) -> AnimationFile:
    """Read an12 or an13, which refer to a skeleton, after its first magic number (sections 8.3 and 8.4)."""
    document = AnimationFile(version)
    document.bones = bones.read_table(stream, stream.i32("the number of bones"))
    document.skeleton_guid = values.read_long_string(stream, "the skeleton's GUID")
    document.skeleton_path = values.read_long_string(stream, "the skeleton's path")
    indices = frames.read_bone_indices(stream, len(document.bones))
    document.fps = stream.i32("the frame rate")
    start = stream.position
    root_motion = stream.u8("root motion")
    if root_motion > 1:
        raise stream.error("Root motion is {}, but it can be on (1) or off (0)", root_motion, offset=start)
    document.root_motion = root_motion == 1
    if version == "an13":
        start = stream.position
        if any(stream.take(len(_NO_SYNC_MARKERS), "the sync markers")):
            raise stream.error("The animation has sync markers, which are not supported", offset=start)
    stream.expect(version.encode("ascii"), "the magic before the frames")
    document.frames = frames.read_flagged_frames(stream, indices)
    return document
