"""Document -> bytes (animation format page, section 2)."""

from __future__ import annotations

import struct

import numpy as np

from .document import CONSTRAINT, JointKeys, SecondLifeAnimation


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
