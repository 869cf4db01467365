"""Bytes -> document (docs/formats/unigine.md, sections 8 and 11)."""

from __future__ import annotations

import numpy as np

from ...core.errors import UnsupportedFormatError
from ...encodings.byte_reader import ByteStream
from .. import bones, frames, values
from . import writer
from .document import AnimationFile
from .versions import VERSIONS

_SYNC_MARKERS_SIZE = 12
"""Bytes between root motion and the second magic number in an13: zero in all known files, probably counts of sync
markers."""


def read(data: bytes, *, inflated_limit: int | None = None) -> AnimationFile:
    """Decode an animation file of an10 to an13.

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Not used: nothing in these files is compressed.

    Raises
    ------
    FormatError
        The data breaks the format.
    """
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
    return one == other or writer.encode_animation(read(one)) == writer.encode_animation(read(other))


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
        if any(stream.take(_SYNC_MARKERS_SIZE, "the sync markers")):
            raise stream.error("The animation has sync markers, which are not supported", offset=start)
    stream.expect(version.encode("ascii"), "the magic before the frames")
    document.frames = frames.read_flagged_frames(stream, indices)
    return document
