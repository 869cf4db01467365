"""Document -> bytes (docs/formats/unigine.md, section 7)."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np

from .. import bones
from .. import values as unigine_values
from .document import Profile, SkeletonFile

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
