"""Bytes <-> document of a Second Life animation (animation format page, sections 2 and 9)."""

import itertools
import math
import struct
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.errors import UnsupportedFormatError
from ...core.messages import Message, Named, Report, Text, counted, of_kind
from ...core.scene import AnyArray, FloatArray
from ...encodings.byte_reader import ByteStream
from ...geometry.transforms import Floats, euler_matrices, matrices_to_quaternions
from ..avatar import joints

FORMAT = "second_life_animation"
"""Name of the format in the registry."""
MOST_JOINTS = 216
"""Largest number of joints that a file may list."""
MOST_CONSTRAINTS = 10
"""Number of constraints above which viewers ignore all of them."""
LONGEST_CHAIN = 3
"""Number of joints above which the chain of a constraint can crash viewers."""

CONSTRAINT = np.dtype(
    [
        ("chain_length", "u1"),
        ("type", "u1"),
        ("source", "u1", 16),
        ("source_offset", "<f4", 3),
        ("target", "u1", 16),
        ("target_offset", "<f4", 3),
        ("direction", "<f4", 3),
        ("ease", "<f4", 4),
    ]
)
"""A constraint, 86 bytes (section 6). Names end at their first zero byte; the bytes after it are kept."""


@dataclass
class JointKeys:
    """The keys of one joint.

    A row of ``rotation`` and ``position`` is a key: its time, then x, y and z. Version 1.0 has uint16 codes, version
    0.1 float32 values: seconds, degrees and metres.
    """

    name: bytes
    """Name of the joint without its final zero byte."""
    priority: int = -1
    """Priority of the joint; -1 to use the priority of the animation."""
    rotation: AnyArray = field(default_factory=lambda: np.empty((0, 4), np.uint16))
    """(n, 4) keys of the rotation: time, x, y, z."""
    position: AnyArray = field(default_factory=lambda: np.empty((0, 4), np.uint16))
    """(m, 4) keys of the position: time, x, y, z."""

    @property
    def known(self) -> str:
        """Name in the avatar table of the joint that ``name`` refers to; empty if the avatar has no such joint."""
        return joints.canonical(decode_text(self.name)) or ""

    @property
    def key_count(self) -> int:
        return len(self.rotation) + len(self.position)


@dataclass
class SecondLifeAnimation:
    """An animation file of version 1.0 or 0.1; times are in seconds."""

    version: tuple[int, int] = (1, 0)
    base_priority: int = 0
    duration: float = 0.0
    emote: bytes = b""
    """Name of a face expression that starts with the animation."""
    loop_in: float = 0.0
    loop_out: float = 0.0
    loop: int = 0
    """If not 0, the animation repeats from ``loop_in`` to ``loop_out``."""
    ease_in: float = 0.0
    ease_out: float = 0.0
    hand_pose: int = 1
    joints: list[JointKeys] = field(default_factory=list)
    constraints: AnyArray = field(default_factory=lambda: np.empty(0, CONSTRAINT))
    """(n,) constraints of dtype ``CONSTRAINT``."""
    trailing: bytes = b""
    """Bytes after the end, which viewers ignore."""
    warnings: list[Message] = field(default_factory=list)
    """Warnings of the reader (section 9); not part of the file."""

    @property
    def has_codes(self) -> bool:
        """Whether keys are 16-bit codes (version 1.0)."""
        return self.version == (1, 0)

    def known_joints(self) -> dict[str, JointKeys]:
        """Return the first entry of each joint that the avatar has, by its name in the avatar table."""
        found: dict[str, JointKeys] = {}
        for joint in self.joints:
            if joint.known:
                found.setdefault(joint.known, joint)
        return found


def decode_text(raw: bytes) -> str:
    """Decode bytes of the file as UTF-8, or as Latin-1 if they are not valid UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


MOST = 65535
FARTHEST = 5.0
"""Largest coordinate of a position key, in metres."""
_NEARLY_HALF_TURN = 0.2
"""Quaternion component w below which one step of a code rotates the joint noticeably, since w is computed from the
other three components."""

Codes = npt.NDArray[np.uint16]


def values_of(codes: AnyArray, reach: float) -> FloatArray:
    """Decode codes over -``reach`` to ``reach`` in float32 like the viewer: both middle codes are exactly 0."""
    low, width = np.float32(-reach), np.float32(2 * reach)
    values = codes.astype(np.float32) * np.float32(1 / MOST) * width + low
    values[np.abs(values) < width / np.float32(MOST)] = 0
    return values


def codes_of(values: Floats, reach: float) -> Codes:
    """Encode values to the nearest codes over -``reach`` to ``reach``; values beyond are clamped."""
    return np.rint((np.clip(values, -reach, reach) + reach) / (2 * reach) * MOST).astype(np.uint16)


def times_of(codes: AnyArray, duration: float) -> Floats:
    """Decode time codes (n,) to seconds in float32, as the viewer does, returned as float64."""
    seconds = codes.astype(np.float32) * np.float32(1 / MOST) * np.float32(duration)
    return np.asarray(seconds, np.float64)


def time_codes_of(seconds: Floats, duration: float) -> Codes:
    """Encode seconds (n,) to the nearest time codes; 0 for an animation without duration."""
    if duration <= 0:
        return np.zeros(len(seconds), np.uint16)
    return np.rint(np.clip(seconds / duration, 0, 1) * MOST).astype(np.uint16)


def rotations_of(codes: AnyArray) -> Floats:
    """Decode rotation codes (…, 3) to unit quaternions (…, 4; w, x, y, z) float64, w >= 0."""
    vector = values_of(codes, 1.0).astype(np.float64)
    rest = 1 - (vector * vector).sum(axis=-1, keepdims=True)
    found = np.concatenate((np.sqrt(np.maximum(rest, 0)), vector), axis=-1)
    unit: Floats = found / np.linalg.norm(found, axis=-1, keepdims=True)
    return unit


_CORNERS = np.array(list(itertools.product((0, 1), repeat=3)), np.float64)


def rotation_codes_of(rotations: Floats) -> Codes:
    """Encode unit quaternions (n, 4; w, x, y, z) to codes (n, 3).

    The nearest codes are used. Near half turns, w is poorly determined; the eight surrounding codes are compared there,
    and the code is used that turns the joint least away from the given rotation.
    """
    rotations = np.where(rotations[:, :1] < 0, -rotations, rotations)
    codes = codes_of(rotations[:, 1:], 1.0)
    steep = np.flatnonzero(rotations[:, 0] < _NEARLY_HALF_TURN)
    if len(steep):
        exact = (np.clip(rotations[steep, 1:], -1, 1) + 1) / 2 * MOST
        around = np.clip(np.floor(exact)[:, None] + _CORNERS, 0, MOST)
        decoded = rotations_of(around.reshape(-1, 3)).reshape(-1, 8, 4)
        closeness = np.abs((decoded * rotations[steep, None]).sum(axis=-1))
        best = closeness.argmax(axis=1)
        codes[steep] = around[np.arange(len(steep)), best].astype(np.uint16)
    return codes


def encode_values(values: Floats) -> Codes:
    """Encode unit quaternions (…, 4; w, x, y, z), or positions (…, 3), to codes (…, 3)."""
    if values.shape[-1] == 3:
        return codes_of(values, FARTHEST)
    return rotation_codes_of(values.reshape(-1, 4)).reshape(*values.shape[:-1], 3)


def decode_values(codes: AnyArray, *, is_rotation: bool) -> Floats:
    """Decode codes (…, 3) to unit quaternions (…, 4; w, x, y, z), w >= 0, or to positions (…, 3)."""
    return rotations_of(codes) if is_rotation else values_of(codes, FARTHEST).astype(np.float64)


def euler_rotations(degrees: AnyArray) -> Floats:
    """Convert the Euler angles of version 0.1, (n, 3) degrees, to unit quaternions (n, 4; w, x, y, z): Rx Ry Rz."""
    return matrices_to_quaternions(euler_matrices(degrees.astype(np.float64), "XYZ"))


def write(document: SecondLifeAnimation) -> bytes:
    """Encode an animation; an unchanged document that was read from a file gives the bytes of the file."""
    version, subversion = document.version
    parts = [
        struct.pack("<HHif", version, subversion, document.base_priority, document.duration),
        document.emote + b"\0",
        struct.pack("<ff", document.loop_in, document.loop_out),
        struct.pack("<i", document.loop),
        struct.pack("<ff", document.ease_in, document.ease_out),
        struct.pack("<II", document.hand_pose, len(document.joints)),
        *(_joint(joint, "<u2" if document.has_codes else "<f4") for joint in document.joints),
        struct.pack("<i", len(document.constraints)),
        np.ascontiguousarray(document.constraints, CONSTRAINT).tobytes(),
        document.trailing,
    ]
    return b"".join(parts)


def _joint(joint: JointKeys, kind: str) -> bytes:
    return b"".join(
        (
            joint.name + b"\0",
            struct.pack("<ii", joint.priority, len(joint.rotation)),
            np.ascontiguousarray(joint.rotation, kind).tobytes(),
            struct.pack("<i", len(joint.position)),
            np.ascontiguousarray(joint.position, kind).tobytes(),
        )
    )


VERSIONS = ((1, 0), (0, 1))
_LEAST_JOINT = 13
"""Smallest size of a joint's record in bytes: no name and no keys."""


def read(data: bytes, *, inflated_limit: int | None = None) -> SecondLifeAnimation:
    """Decode an animation of version 1.0 or 0.1, which is not compressed; see :meth:`.FileFormat.read`.

    FormatError is raised if it ends too early, has another version, no joints or too many, or a number that is NaN or
    infinite.
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
    return write(first) == write(second)


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
        stream.item = Text("joint '{}'", Named("bone", decode_text(joint.name)))
        joint.priority = stream.i32("the priority")
        joint.rotation = _keys(stream, document, "rotation keys")
        joint.position = _keys(stream, document, "position keys")
        joints.append(joint)
    stream.item = ""
    return joints


def _keys(stream: ByteStream, document: SecondLifeAnimation, what: str) -> AnyArray:
    """Read the keys of a channel, (n, 4): 16-bit codes, or floats in files of the first version."""
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
    twice = of_kind("bone", (name for name, times in names.items() if times > 1))
    template = "{} listed twice; viewers use the first entry: {}"
    report.change_of("joints-listed-twice", template, twice, "joint is", "joints are")
    if document.trailing:
        number = counted(len(document.trailing), "byte follows", "bytes follow")
        report.loss("bytes-after-end", "{} its end; viewers ignore them", number)
