"""Bytes <-> document of a UNIGINE skeleton (docs/formats/unigine.md, sections 7 and 11)."""

from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.messages import Text
from ...core.scene import FloatArray
from ...encodings.byte_reader import ByteStream
from .. import bones
from .. import values as unigine_values
from ..bones import Bone


@dataclass
class Profile:
    """A named list of numbers: a blend mask, a time profile or a weight profile of a skeleton."""

    name: str
    values: FloatArray


@dataclass
class SkeletonFile:
    """A skeleton file."""

    version: str = "sn10"
    bones: list[Bone] = field(default_factory=list)
    transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """(nb, 10) float32 local bind transforms: translation, rotation (x, y, z, w), scale."""
    blend_masks: list[Profile] = field(default_factory=list)
    time_profiles: list[Profile] = field(default_factory=list)
    weight_profiles: list[Profile] = field(default_factory=list)
    retargeting: list[tuple[int, float]] = field(default_factory=list)
    """Retargeting of each bone: mode (0 pose, 1 bind, 2 proportion) and length (negative for the default)."""
    warnings: list[Any] = field(default_factory=list)
    """Warnings of the reader (section 11); not part of the file."""


_MAGIC = b"sn10"


def write(document: SkeletonFile) -> bytes:
    """Encode a skeleton file.

    Raises
    ------
    ExportError
        A value cannot be stored.
    """
    retargeting = np.array(document.retargeting, [("mode", "<i4"), ("length", "<f4")])
    return b"".join(
        (
            _MAGIC,
            _count(document.bones),
            bones.encode_table(document.bones),
            bones.encode_transforms(document.transforms, document.bones),
            _MAGIC,
            _profiles(document.blend_masks),
            _profiles(document.time_profiles),
            _profiles(document.weight_profiles),
            _count(document.retargeting),
            retargeting.tobytes(),
            _MAGIC,
        )
    )


def _count(entries: Sized) -> bytes:
    return len(entries).to_bytes(4, "little")


def _profiles(profiles: list[Profile]) -> bytes:
    parts = [_count(profiles)]
    for profile in profiles:
        values = np.ascontiguousarray(profile.values, "<f4")
        parts += (unigine_values.encode_long_string(profile.name), len(values).to_bytes(4, "little"), values.tobytes())
    return b"".join(parts)


_MODES = 3


def read(data: bytes, *, inflated_limit: int | None = None) -> SkeletonFile:
    """Decode a skeleton file of sn10, which is not compressed; see :meth:`.FileFormat.read`."""
    stream = ByteStream(data)
    stream.expect(_MAGIC, "the magic")
    document = SkeletonFile()
    document.bones = bones.read_table(stream, stream.i32("the number of bones"))
    document.transforms = bones.read_transforms(stream, document.bones).copy()
    stream.expect(_MAGIC, "the magic after the bind transforms")
    document.blend_masks = _read_profiles(stream, "blend mask")
    document.time_profiles = _read_profiles(stream, "time profile")
    document.weight_profiles = _read_profiles(stream, "weight profile")
    document.retargeting = _read_retargeting(stream)
    stream.expect(_MAGIC, "the magic at the end")
    stream.expect_end()
    bones.report_oddities(document.bones, document.transforms, stream.report)
    document.warnings = stream.report.messages
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same content, even if compact integers are stored in different lengths."""
    return one == other or write(read(one)) == write(read(other))


def _read_count(stream: ByteStream, size: int, what: str) -> int:
    """Read a 32-bit count of entries that take at least ``size`` bytes each."""
    start = stream.position
    count = stream.i32(Text("the number of {}s", Text(what)))
    if count < 0 or count * size > stream.remaining:
        raise stream.error("The file is cut off or damaged: it claims {:,} {}s", count, Text(what), offset=start)
    return count


def _read_profiles(stream: ByteStream, what: str) -> list[Profile]:
    """Read named lists of numbers; ``what`` names the kind in messages."""
    profiles = []
    for number in range(_read_count(stream, 8, what)):
        name = unigine_values.read_long_string(stream, Text("the name of {} {}", Text(what), number))
        count = _read_count(stream, 4, Text("value of {} '{}'", Text(what), name))
        start = stream.position
        values = stream.array(np.float32, count, Text("the values of {} '{}'", Text(what), name)).copy()
        if not np.isfinite(values).all():
            raise stream.error("A value of {} '{}' is NaN or infinite", Text(what), name, offset=start)
        profiles.append(Profile(name, values))
    return profiles


def _read_retargeting(stream: ByteStream) -> list[tuple[int, float]]:
    count = _read_count(stream, 8, "retargeting entry")
    start = stream.position
    table = stream.array([("mode", "<i4"), ("length", "<f4")], count, "the retargeting entries")
    modes, lengths = table["mode"], table["length"]
    wrong = np.flatnonzero((modes < 0) | (modes >= _MODES) | ~np.isfinite(lengths))
    if len(wrong):
        place = int(wrong[0])
        template = "Retargeting entry {} has mode {} and length {}"
        raise stream.error(template, place, modes[place], lengths[place], offset=start + 8 * place)
    return list(zip(modes.tolist(), lengths.tolist(), strict=True))
