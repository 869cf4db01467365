"""Check that a document can be written: its version can hold it, and its arrays fit together."""

from __future__ import annotations

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Text
from . import array_checks, surface_arrays
from .document import MeshFile, Surface, Weights
from .versions import ANIMATED_VERSIONS, SINGLE_TARGET_VERSION, SKINNED_VERSIONS, SOUP_VERSION, WRITTEN_VERSIONS


def check_version(document: MeshFile) -> None:
    """Raise ExportError if the version cannot be written or cannot hold the document."""
    version = document.version
    if version not in WRITTEN_VERSIONS:
        raise ExportError("Version {} cannot be written; choose one of {}", version, ", ".join(WRITTEN_VERSIONS))
    if document.bones and version not in SKINNED_VERSIONS:
        raise ExportError("{} holds no bones; choose ms13 or ms14, or export without the armature", version)
    if document.animations and version not in ANIMATED_VERSIONS:
        raise ExportError("{} holds no animations; choose {} or write an .anim", version, ", ".join(ANIMATED_VERSIONS))
    if document.surfaces and version == SOUP_VERSION:
        raise ExportError("{} holds triangle soup and no indices; the surfaces are not converted", version)
    if document.soup and version != SOUP_VERSION:
        raise ExportError("Triangle soup cannot be written as {}", version)
    if version == SINGLE_TARGET_VERSION:
        for surface in document.surfaces:
            if len(surface.targets) > 1:
                raise ExportError("Surface '{}': {} holds no morph targets; choose ms13 or ms14", surface.name, version)


def check_written_surface(surface: Surface, bones: int) -> None:
    """Raise ExportError for arrays that do not fit together, which the reader would reject."""
    label = Text("Surface '{}'", surface.name)
    vertices, triangle_vertices = surface_arrays.pool_sizes(surface)
    problem = surface_arrays.broken_arrays(surface)
    if problem:
        raise ExportError("{}: {}", label, problem)
    for values, width, what in ((surface.uv0, 2, "UV0"), (surface.uv1, 2, "UV1"), (surface.colors, 4, "colours")):
        if values is not None and values.shape != (triangle_vertices, width):
            raise ExportError("{}: its {} are not those of its {:,} triangle vertices", label, what, triangle_vertices)
    corners = len(surface.c_indices)
    if corners != len(surface.t_indices) or corners % 3:
        raise ExportError("{}: {:,} and {:,} corners are not triangles", label, corners, len(surface.t_indices))
    if surface.weights is not None:
        _check_weights(surface.weights, vertices, bones, label)


def _check_weights(weights: Weights, vertices: int, bones: int, label: str) -> None:
    counts, used = weights.counts, weights.bones
    if len(counts) != vertices or not (int(counts.sum(dtype=np.int64)) == len(used) == len(weights.values)):
        raise ExportError("{}: its weights are not those of its {:,} vertices", label, vertices)
    if len(counts) and int(counts.max()) > surface_arrays.MOST_WEIGHTS:
        raise ExportError("{}: a vertex has more than {} bones", label, surface_arrays.MOST_WEIGHTS)
    if len(used) and array_checks.highest_index(used) >= bones:
        raise ExportError("{}: a vertex is weighted to a bone that does not exist", label)
