"""The file's space, and the names and shapes of the vertex properties the game reads."""

from __future__ import annotations

from ..geometry.axes import Basis

FILE_TO_BLENDER = Basis(order=(0, 2, 1), signs=(-1, -1, 1))
"""(x, y, z) = (-X, -Z, Y); mirrored, so winding and bitangent signs turn round (page, space)."""

BLENDER_TO_FILE = FILE_TO_BLENDER.inverse

GAME_DIMENSIONS = {"position": 3, "normal": 3, "tangent": 4, "color": 4, "uv0": 2, "uv1": 2, "uv2": 2}
"""The vertex properties that the game reads, with the dimension it takes for granted."""

UV_NAMES = ("uv0", "uv1", "uv2")

DEFAULT_CLIP = "Default"
"""What the official exporter calls its single animation."""

MOST_ANIMATED = 16_384
"""Animated vertices and frames that fit the game's texture (vertex animation; usual limit of graphics cards)."""
