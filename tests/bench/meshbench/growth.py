"""How time grows with size: the slope of a line through the logarithms."""

from __future__ import annotations

import math
import statistics

from .measure import Row

STEEPEST = 1.1
"""Exponent up to which growth counts as linear; caches make large models a little slower for everybody."""


def growth(points: list[tuple[int, list[Row]]]) -> list[Row]:
    """Return the exponent of time over triangles for import and export: 1 is linear."""
    rows = []
    for number, name in enumerate(("import", "export")):
        found = [(triangles, measured[number].value) for triangles, measured in points]
        logs = [(math.log(triangles), math.log(seconds)) for triangles, seconds in found]
        slope = statistics.linear_regression([x for x, _ in logs], [y for _, y in logs]).slope
        detail = ", ".join(f"{_short(triangles)} {seconds:.3f} s" for triangles, seconds in found)
        rows.append(Row(f"{name}, growth (exponent)", slope, STEEPEST, detail, {"points": found}))
    return rows


def _short(triangles: int) -> str:
    return f"{triangles / 1e6:g}M" if triangles >= 1_000_000 else f"{triangles // 1000}k"
