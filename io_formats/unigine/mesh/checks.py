"""Check a mesh against the rules of UNIGINE (docs/formats/unigine.md, sections 11 and 12)."""

from __future__ import annotations

import numpy as np

from ...core.findings import Finding, error, warning
from ...core.messages import counted, listed
from ..animation.checks import check_bones
from . import array_checks
from .document import MeshFile, Surface
from .reader import soup_name
from .refusals import MOST_SURFACES
from .versions import BLOCK_VERSIONS

MOST_SURFACE_BONES = 128
"""Most bones for one surface, in SDKs before 2.20."""
MOST_TARGETS = 7
"""Most morph targets that are active at the same time, in SDKs before 2.20."""
_PROVEN_POOL = 65536
"""Number of vertices from which a surface of ms14 or later is reported: no known file has so many, and the
documentation of their indices is unclear."""


def check(document: MeshFile) -> list[Finding]:
    """Return what keeps a mesh from loading (errors) and what may look wrong (warnings)."""
    findings: list[Finding] = []
    surfaces = document.surfaces or document.soup
    if not surfaces:
        findings.append(warning("", "the mesh has no surfaces; nothing is shown"))
    if len(surfaces) > MOST_SURFACES:
        findings.append(error("", f"{len(surfaces):,} surfaces; UNIGINE allows {MOST_SURFACES:,}"))
    names = [surface.name for surface in document.surfaces] or [soup_name(surface) for surface in document.soup]
    findings += [warning("", text) for text in array_checks.double_names(names, "surface")]
    if "" in names:
        findings.append(warning("", f"{counted(names.count(''), 'surface has', 'surfaces have')} no name"))
    findings += check_bones(document.bones)
    findings += _check_common(document)
    for surface in document.surfaces:
        findings += _check_surface(document, surface)
    return findings


def _check_common(document: MeshFile) -> list[Finding]:
    """Check properties of all surfaces, with one finding for each kind."""
    findings = []
    empty = [surface.name for surface in document.surfaces if not len(surface.c_indices)]
    if empty:
        number = counted(len(empty), "surface has", "surfaces have")
        findings.append(warning("", f"{number} no triangles: {listed(empty)}"))
    bare = [surface.name for surface in document.surfaces if surface.uv0 is None and len(surface.c_indices)]
    if bare:
        number = counted(len(bare), "surface has", "surfaces have")
        findings.append(warning("", f"{number} no first UV map, which textures and normal maps need: {listed(bare)}"))
    flat = {surface.name: _repeated_corners(surface) for surface in document.surfaces}
    if any(flat.values()):
        number = counted(sum(flat.values()), "triangle has", "triangles have")
        findings.append(warning("", f"{number} a corner twice: {listed([name for name in flat if flat[name]])}"))
    return findings


def _repeated_corners(surface: Surface) -> int:
    a, b, c = surface.c_indices.reshape(-1, 3).T
    return int(np.count_nonzero((a == b) | (b == c) | (c == a)))


def _check_surface(document: MeshFile, surface: Surface) -> list[Finding]:
    findings = []
    item = f"Surface '{surface.name}'"
    if not surface.targets:
        return [error(item, "it has no vertices at all, not even a base shape")]
    base = surface.targets[0]
    if len(base.positions) and array_checks.boxes_disagree(surface.bounds[:6], array_checks.box_of(base.positions)):
        findings.append(warning(item, "its bounds disagree with its vertices; it may vanish at the edge of the view"))
    if document.version != "ms10":
        bent = sum(array_checks.bent_tangents(target.tangents) for target in surface.targets)
        if bent:
            findings.append(warning(item, f"{counted(bent, 'tangent is', 'tangents are')} not of unit length"))
    if surface.weights is not None:
        findings += _check_weights(item, surface)
    if len(surface.targets) - 1 > MOST_TARGETS:
        text = f"{len(surface.targets) - 1} morph targets; SDKs before 2.20 play {MOST_TARGETS} at a time"
        findings.append(warning(item, text))
    if document.version in BLOCK_VERSIONS and max(len(base.positions), len(base.tangents)) >= _PROVEN_POOL:
        text = f"no file of {document.version} with {_PROVEN_POOL:,} vertices or more a surface is known; split it"
        findings.append(warning(item, text))
    return findings


def _check_weights(item: str, surface: Surface) -> list[Finding]:
    findings = []
    weights = surface.weights
    if weights is None:
        return []
    loose = int(np.count_nonzero(weights.counts == 0))
    if loose:
        number = counted(loose, "vertex has", "vertices have")
        findings.append(warning(item, f"{number} no weights; no bone moves them"))
    uneven = array_checks.uneven_weights(weights.counts, weights.values)
    if uneven:
        number = counted(uneven, "vertex has", "vertices have")
        findings.append(warning(item, f"{number} weights that do not sum to 1"))
    bones = len(np.unique(weights.bones))
    if bones > MOST_SURFACE_BONES:
        text = f"{bones} bones move it; SDKs before 2.20 allow {MOST_SURFACE_BONES} for each surface"
        findings.append(warning(item, text))
    return findings
