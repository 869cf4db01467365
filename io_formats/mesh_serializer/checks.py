"""Check a file against the limits of the original reader and of Unity (formats page, sections 2 and 4 to 6)."""

from __future__ import annotations

import numpy as np

from ..core.findings import Finding, warning
from ..core.messages import counted
from .document import MOST_SAFE, Document, Variant

_COARSE = 0.001
"""Position steps above this, in metres, leave visible gaps."""


def check(document: Document) -> list[Finding]:
    """Return warnings about data that other programs reject or show differently. None of it prevents writing."""
    found = [*_counts(document), *_triangles(document), *_directions(document)]
    if document.variant is not Variant.CURRENT:
        found.append("the file is a variant that programs for MeshSerializer2 do not read")
    step = _step(document)
    if step > _COARSE:
        found.append(f"positions are rounded to steps of {1000 * step:.3g} mm; a smaller model has finer steps")
    return [warning("", text) for text in found]


def _counts(document: Document) -> list[str]:
    vertices, triangles = len(document.positions), len(document.triangles)
    if not vertices or not triangles:
        return ["it has no triangles, so nothing is shown"]
    found = []
    if max(vertices, triangles) > MOST_SAFE:
        found.append(
            f"{vertices:,} vertices and {triangles:,} triangles; the original reader refuses more than {MOST_SAFE:,} "
            "of either"
        )
    used = np.zeros(vertices, bool)
    used[document.triangles] = True
    loose = vertices - int(np.count_nonzero(used))
    if loose:
        found.append(f"{counted(loose, 'vertex belongs', 'vertices belong')} to no triangle")
    return found


def _triangles(document: Document) -> list[str]:
    a, b, c = document.triangles.T
    repeated = int(np.count_nonzero((a == b) | (b == c) | (c == a)))
    return [f"{counted(repeated, 'triangle uses', 'triangles use')} a vertex twice"] if repeated else []


def _directions(document: Document) -> list[str]:
    found = []
    zero = 128 if document.position_bounds is not None else 0
    if document.normals is None:
        found.append("it has no normals, which lit materials need")
    else:
        none = int(np.count_nonzero((document.normals == zero).all(axis=1)))
        if none:
            found.append(f"{counted(none, 'normal has', 'normals have')} no direction")
    if document.tangents is not None and zero:
        sides = document.tangents[:, 3]
        odd = int(np.count_nonzero((sides != 1) & (sides != 255)))
        if odd:
            found.append(f"{counted(odd, 'tangent does', 'tangents do')} not define the side of the bitangent")
    return found


def _step(document: Document) -> float:
    """Return the coarsest step of positions in metres, or 0 if they are stored as floats."""
    if document.position_bounds is None:
        return 0.0
    bounds = document.position_bounds.astype(np.float64).reshape(-1, 2)
    return float((bounds[:, 1] - bounds[:, 0]).max()) / 65535
