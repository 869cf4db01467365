"""Check a file against the limits of the original reader and of Unity (formats page, sections 2 and 4 to 6)."""

from __future__ import annotations

import numpy as np

from ..core.messages import Message, Report, counted
from ..geometry.vertices import count_loose, repeats_corners
from .document import MOST_SAFE, Document, Variant

_COARSE = 0.001
"""Position steps above this, in metres, leave visible gaps."""


def check(document: Document) -> list[Message]:
    """Return warnings about data that other programs reject or show differently. None of it prevents writing."""
    report = Report()
    _check_counts(document, report)
    _check_triangles(document, report)
    _check_directions(document, report)
    if document.variant is not Variant.CURRENT:
        report.warning("other-variant", "the file is a variant that programs for MeshSerializer2 do not read")
    step = _step(document)
    if step > _COARSE:
        template = "positions are rounded to steps of {:.3g} mm; a smaller model has finer steps"
        report.warning("coarse-positions", template, 1000 * step)
    return report.messages


def _check_counts(document: Document, report: Report) -> None:
    vertices, triangles = len(document.positions), len(document.triangles)
    if not vertices or not triangles:
        report.warning("no-triangles", "it has no triangles, so nothing is shown")
        return
    if max(vertices, triangles) > MOST_SAFE:
        template = "{:,} vertices and {:,} triangles; the original reader refuses more than {:,} of either"
        report.warning("large-mesh", template, vertices, triangles, MOST_SAFE)
    loose = count_loose(document.triangles, vertices)
    if loose:
        report.warning("loose-vertices", "{} to no triangle", counted(loose, "vertex belongs", "vertices belong"))


def _check_triangles(document: Document, report: Report) -> None:
    repeated = int(np.count_nonzero(repeats_corners(document.triangles)))
    if repeated:
        report.warning("repeated-corners", "{} a vertex twice", counted(repeated, "triangle uses", "triangles use"))


def _check_directions(document: Document, report: Report) -> None:
    zero = 128 if document.position_bounds is not None else 0
    if document.normals is None:
        report.warning("no-normals", "it has no normals, which lit materials need")
    else:
        none = int(np.count_nonzero((document.normals == zero).all(axis=1)))
        if none:
            report.warning("normals-without-direction", "{} no direction", counted(none, "normal has", "normals have"))
    if document.tangents is not None and zero:
        sides = document.tangents[:, 3]
        odd = int(np.count_nonzero((sides != 1) & (sides != 255)))
        if odd:
            number = counted(odd, "tangent does", "tangents do")
            report.warning("tangents-without-side", "{} not define the side of the bitangent", number)


def _step(document: Document) -> float:
    """Return the coarsest step of positions in metres, or 0 if they are stored as floats."""
    if document.position_bounds is None:
        return 0.0
    bounds = document.position_bounds.astype(np.float64).reshape(-1, 2)
    return float((bounds[:, 1] - bounds[:, 0]).max()) / 65535
