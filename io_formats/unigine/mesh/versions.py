"""Versions of mesh files, by their magic numbers."""

from __future__ import annotations

SOUP_VERSION = "mr02"
SHORT_TANGENT_VERSION = "ms10"
"""Version whose tangents store a sign byte instead of the component w."""
SINGLE_TARGET_VERSION = "ms15"
"""Version that stores only the base shape, without other morph targets."""
STREAM_VERSIONS = ("ms10", "ms11", "ms12", "ms13")
BLOCK_VERSIONS = ("ms14", "ms15", "sk10")
READ_VERSIONS = (SOUP_VERSION, *STREAM_VERSIONS, *BLOCK_VERSIONS)
WRITTEN_VERSIONS = (SOUP_VERSION, *STREAM_VERSIONS, "ms14", "ms15")
ANIMATED_VERSIONS = ("ms10", "ms11", "ms12")
"""Versions that can hold animations."""
LIGHTMAP_VERSIONS = ("ms12", "ms13", "ms14", "ms15")
SKINNED_VERSIONS = (*STREAM_VERSIONS, "ms14", "sk10")
