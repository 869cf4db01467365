"""Check that a document can be written: its version can hold it, and its arrays fit together."""

from __future__ import annotations

import numpy as np

from ...core.errors import ExportError
from . import array_checks, surface_arrays
from .document import MeshFile, Surface, Weights
from .versions import ANIMATED_VERSIONS, SKINNED_VERSIONS, SOUP_VERSION, WRITTEN_VERSIONS

SINGLE_TARGET_VERSION = "ms15"


def check_version(document: MeshFile) -> None:
    """Raise ExportError if the version cannot be written or cannot hold the document."""
    version = document.version
    if version not in WRITTEN_VERSIONS:
        raise ExportError(f"Version {version} cannot be written; choose one of {', '.join(WRITTEN_VERSIONS)}")
    if document.bones and version not in SKINNED_VERSIONS:
        raise ExportError(f"{version} holds no bones; choose ms13 or ms14, or export without the armature")
    if document.animations and version not in ANIMATED_VERSIONS:
        raise ExportError(f"{version} holds no animations; choose {', '.join(ANIMATED_VERSIONS)} or write an .anim")
    if document.surfaces and version == SOUP_VERSION:
        raise ExportError(f"{version} holds triangle soup and no indices; the surfaces are not converted")
    if document.soup and version != SOUP_VERSION:
        raise ExportError(f"Triangle soup cannot be written as {version}")
    if version == SINGLE_TARGET_VERSION:
        for surface in document.surfaces:
            if len(surface.targets) > 1:
                raise ExportError(f"Surface '{surface.name}': {version} holds no morph targets; choose ms13 or ms14")


def check_surface(surface: Surface, bones: int) -> None:
    """Raise ExportError for arrays that do not fit together, which the reader would reject."""
    label = f"Surface '{surface.name}'"
    vertices, triangle_vertices = pools(surface)
    for target in surface.targets:
        if target.positions.shape != (vertices, 3) or target.tangents.shape != (triangle_vertices, 4):
            raise ExportError(f"{label}: morph target '{target.name}' has another number of vertices than the base")
        if vertices and not np.isfinite(array_checks.box_of(target.positions)).all():
            raise ExportError(f"{label}: the position of a vertex is NaN or infinite")
    for values, width, what in ((surface.uv0, 2, "UV0"), (surface.uv1, 2, "UV1"), (surface.colors, 4, "colours")):
        if values is not None and values.shape != (triangle_vertices, width):
            raise ExportError(f"{label}: its {what} are not those of its {triangle_vertices:,} triangle vertices")
    corners = len(surface.c_indices)
    if corners != len(surface.t_indices) or corners % 3:
        raise ExportError(f"{label}: {corners:,} and {len(surface.t_indices):,} corners are not triangles")
    for indices, pool in ((surface.c_indices, vertices), (surface.t_indices, triangle_vertices)):
        if corners and array_checks.highest(indices) >= pool:
            raise ExportError(f"{label}: a corner uses a vertex that does not exist")
    if surface.weights is not None:
        _check_weights(surface.weights, vertices, bones, label)


def pools(surface: Surface) -> tuple[int, int]:
    """Return the numbers of coordinate and of triangle vertices."""
    if not surface.targets:
        return 0, 0
    return len(surface.targets[0].positions), len(surface.targets[0].tangents)


def _check_weights(weights: Weights, vertices: int, bones: int, label: str) -> None:
    counts, used = weights.counts, weights.bones
    if len(counts) != vertices or not (int(counts.sum(dtype=np.int64)) == len(used) == len(weights.values)):
        raise ExportError(f"{label}: its weights are not those of its {vertices:,} vertices")
    if len(counts) and int(counts.max()) > surface_arrays.MOST_WEIGHTS:
        raise ExportError(f"{label}: a vertex has more than {surface_arrays.MOST_WEIGHTS} bones")
    if len(used) and array_checks.highest(used) >= bones:
        raise ExportError(f"{label}: a vertex is weighted to a bone that does not exist")
