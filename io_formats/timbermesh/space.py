"""The coordinate system of the file, and the names and dimensions of the vertex properties that the game reads."""

from __future__ import annotations

from ..geometry.transforms import Basis

FILE_TO_BLENDER = Basis(order=(0, 2, 1), signs=(-1, -1, 1))
"""(x, y, z) = (-X, -Z, Y). It mirrors, so winding and bitangent signs are flipped (format page, space)."""

BLENDER_TO_FILE = FILE_TO_BLENDER.inverse

GAME_DIMENSIONS = {"position": 3, "normal": 3, "tangent": 4, "color": 4, "uv0": 2, "uv1": 2, "uv2": 2}
"""The vertex properties that the game reads, with the dimension that it assumes."""

UV_NAMES = ("uv0", "uv1", "uv2")

DEFAULT_CLIP = "Default"
"""Name of the single animation that the official exporter writes."""

MOST_ANIMATED = 16_384
"""Most animated vertices, and most frames, that the game's texture holds: the usual size limit of graphics cards."""
