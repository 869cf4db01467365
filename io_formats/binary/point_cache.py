r"""PC2 point caches, which Blender's Mesh Cache modifier plays.

Little-endian: ``POINTCACHE2\0``, int32 version 1, int32 points, float32 first frame, float32 frames
per sample, int32 samples; then float32 (samples, points, 3).
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt


def encode_point_cache(points: npt.NDArray[np.float32]) -> bytes:
    """Encode sampled points, (F, P, 3) float32, with one sample for each frame from frame 0 on."""
    head = struct.pack("<12siiffi", b"POINTCACHE2\0", 1, points.shape[1], 0.0, 1.0, points.shape[0])
    return head + np.ascontiguousarray(points, "<f4").tobytes()
