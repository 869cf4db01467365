"""Names of the levels of detail."""

from __future__ import annotations

LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
"""Names of the levels of detail, the finest (``lod`` 0) first."""

LEVEL_LABELS = ("High", "Medium", "Low", "Lowest")
LEVEL_TEXTS = ("high level", "medium level", "low level", "lowest level")
"""Names of the levels in sentences, in the same order."""
