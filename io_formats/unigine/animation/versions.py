"""Versions of animation files, by their magic numbers."""

from __future__ import annotations

VERSIONS = ("an10", "an11", "an12", "an13")
WRITTEN_VERSIONS = ("an10", "an11", "an13")
SKELETON_VERSIONS = ("an12", "an13")
"""Versions that refer to a skeleton and store their frame rate, but no bind transforms."""
