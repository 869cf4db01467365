"""Codes for geometry and weights of an object that the viewer reads differently."""

from __future__ import annotations

import numpy as np

from ...core.scene import FloatArray, Mesh
from ...geometry.triangles import folded_polygons
from ..models.faces import MOST_FACES, MOST_INFLUENCES
from .document import Geometry
from .mesh_builder import uv_sets

_UV_NUMBERS = 2


def of_geometry(geometry: Geometry) -> list[str]:
    """Return the codes of ``Findings`` that apply to a geometry."""
    groups, symbols = geometry.groups, {group.symbol for group in geometry.groups}
    return _applying(
        {
            "material-symbol-twice": len(symbols) < len(groups),
            "over-8-materials": len(symbols) > MOST_FACES,
            "strips-and-fans": any(group.kind in {"tristrips", "trifans"} for group in groups),
            "concave-polygons": any(
                folded_polygons(geometry.positions, group.points, group.sizes).any() for group in groups
            ),
            "uvs-of-three-numbers": any(uvs.stride > _UV_NUMBERS for group in groups for uvs in group.uvs),
            "several-uv-sets": len(uv_sets(geometry)) > 1,
        }
    )


def of_weights(mesh: Mesh, weights: FloatArray) -> list[str]:
    """Return the codes of ``Findings`` that apply to the weights of a mesh, (P, k)."""
    has_weights = np.asarray((weights > 0).any(axis=1))
    return _applying(
        {
            "more-than-4-weights": weights.shape[1] > MOST_INFLUENCES,
            "vertices-without-weights": not has_weights[mesh.corner_point].all(),
        }
    )


def _applying(rules: dict[str, bool]) -> list[str]:
    return [code for code, applies in rules.items() if applies]
