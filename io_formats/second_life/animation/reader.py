"""Bytes -> document (animation format page, sections 2 and 9)."""

from __future__ import annotations

import math
import struct
from collections import Counter

import numpy as np

from ...core.errors import UnsupportedFormatError
from ...core.messages import Report, Text, counted, listed
from ...core.scene import AnyArray
from ...encodings.byte_reader import ByteStream
from . import writer
from .document import CONSTRAINT, MOST_JOINTS, JointKeys, SecondLifeAnimation, decode_text

VERSIONS = ((1, 0), (0, 1))
_LEAST_JOINT = 13
"""Smallest size of a joint's record in bytes: no name and no keys."""


def read(data: bytes, *, inflated_limit: int | None = None) -> SecondLifeAnimation:
    """Decode an animation of version 1.0 or 0.1.

    Parameters
    ----------
    data:
        The file.
    inflated_limit:
        Not used: nothing in these files is compressed.

    Raises
    ------
    FormatError
        The data breaks the format: it ends too early, has another version, no joints or too many, or a number that is
        NaN or infinite.
    """
    stream = ByteStream(data)
    version, subversion = struct.unpack("<HH", stream.take(4, "the version"))
    if (version, subversion) not in VERSIONS:
        raise UnsupportedFormatError("Second Life animations have version 1.0 or 0.1, not {}.{}", version, subversion)
    document = SecondLifeAnimation((version, subversion))
    document.base_priority = stream.i32("the priority")
    document.duration = _seconds(stream, "the duration")
    document.emote = _text(stream, "the name of the emote")
    document.loop_in = _seconds(stream, "the start of the loop")
    document.loop_out = _seconds(stream, "the end of the loop")
    document.loop = stream.i32("the loop switch")
    document.ease_in = _seconds(stream, "the ease-in time")
    document.ease_out = _seconds(stream, "the ease-out time")
    document.hand_pose = stream.i32("the hand pose") & 0xFFFFFFFF
    document.joints = _joints(stream, document)
    document.constraints = _constraints(stream)
    document.trailing = bytes(stream.take(stream.remaining, "the end"))
    _report_oddities(document)
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same content, ignoring bytes after the end."""
    if one == other:
        return True
    first, second = read(one), read(other)
    first.trailing = second.trailing = b""
    return writer.write(first) == writer.write(second)


def _seconds(stream: ByteStream, what: str) -> float:
    start = stream.position
    value: float = struct.unpack("<f", stream.take(4, what))[0]
    if not math.isfinite(value):
        raise stream.error("The file is damaged: {} is {}", what, value, offset=start)
    return value


def _text(stream: ByteStream, what: str) -> bytes:
    start = stream.position
    end = bytes(stream.data[start:]).find(b"\0")
    if end < 0:
        raise stream.error("The file is cut off or damaged: {} has no end", what)
    found = bytes(stream.take(end, what))
    stream.take(1, what)
    return found


def _joints(stream: ByteStream, document: SecondLifeAnimation) -> list[JointKeys]:
    start = stream.position
    count = stream.i32("the number of joints")
    if not 0 < count <= MOST_JOINTS:
        raise stream.error("The file claims {:,} joints; an animation has 1 to {}", count, MOST_JOINTS, offset=start)
    stream.require(count * _LEAST_JOINT, "the joints")
    joints = []
    for _ in range(count):
        stream.item = ""
        joint = JointKeys(_text(stream, "the name of a joint"))
        stream.item = Text("joint '{}'", decode_text(joint.name))
        joint.priority = stream.i32("the priority")
        joint.rotation = _keys(stream, document, "rotation keys")
        joint.position = _keys(stream, document, "position keys")
        joints.append(joint)
    stream.item = ""
    return joints


def _keys(stream: ByteStream, document: SecondLifeAnimation, what: str) -> AnyArray:
    count = stream.i32(Text("the number of {}", Text(what)))
    if count < 0:
        raise stream.error("The file is damaged: it claims {:,} {}", count, Text(what), offset=stream.position - 4)
    if document.has_codes:
        return stream.array(np.uint16, (count, 4), what).copy()
    start = stream.position
    values = stream.array(np.float32, (count, 4), what).copy()
    if not np.isfinite(values).all():
        raise stream.error("The file is damaged: {} are NaN or infinite", Text(what), offset=start)
    return values


def _constraints(stream: ByteStream) -> AnyArray:
    start = stream.position
    count = stream.i32("the number of constraints")
    if count < 0:
        raise stream.error("The file is damaged: it claims {:,} constraints", count, offset=start)
    found = np.frombuffer(bytes(stream.take(count * CONSTRAINT.itemsize, "the constraints")), CONSTRAINT).copy()
    for name in ("source_offset", "target_offset", "direction", "ease"):
        if not np.isfinite(found[name]).all():
            raise stream.error("The file is damaged: a constraint has numbers that are NaN or infinite", offset=start)
    return found


def _report_oddities(document: SecondLifeAnimation) -> None:
    """Warn about data that a viewer reads differently than it is written."""
    report = Report(document.warnings)
    names = Counter(joint.known or decode_text(joint.name) for joint in document.joints)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        number = counted(len(twice), "joint is", "joints are")
        report.change("joints-listed-twice", "{} listed twice; viewers use the first entry: {}", number, listed(twice))
    if document.trailing:
        number = counted(len(document.trailing), "byte follows", "bytes follow")
        report.loss("bytes-after-end", "{} its end; viewers ignore them", number)
