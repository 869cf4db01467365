"""What is unusual about the objects of a Collada file, reported once for all of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...core.messages import Report, Text, counted, listed
from ...core.scene import FloatArray, Mesh
from ...geometry.polygons import folded
from ..models.faces import MOST_FACES, MOST_INFLUENCES
from .document import Geometry
from .mesh_builder import uv_sets

MOST_NAMED = 5
"""Number of names in a message; of more, only the number is given."""
_UV_NUMBERS = 2


class Oddities:
    """Names of the objects by what is unusual about them."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}

    def add(self, what: str, name: str) -> None:
        """Add an object."""
        self._names.setdefault(what, {})[name] = None

    def add_geometry(self, geometry: Geometry, name: str) -> None:
        """Add what is unusual about the geometry of an object."""
        symbols = [group.symbol for group in geometry.groups]
        if len(set(symbols)) < len(symbols):
            self.add("symbol-twice", name)
        if len(set(symbols)) > MOST_FACES:
            self.add("many-materials", name)
        if any(group.kind in {"tristrips", "trifans"} for group in geometry.groups):
            self.add("strips", name)
        if any(folded(geometry.positions, group.points, group.sizes).any() for group in geometry.groups):
            self.add("concave", name)
        if any(uvs.stride > _UV_NUMBERS for group in geometry.groups for uvs in group.uvs):
            self.add("uv-numbers", name)
        if len(uv_sets(geometry)) > 1:
            self.add("uv-sets", name)

    def add_weights(self, mesh: Mesh, weights: FloatArray, name: str) -> None:
        """Add what is unusual about the weights (P, k) of an object."""
        if weights.shape[1] > MOST_INFLUENCES:
            self.add("influences", name)
        has_weights = np.asarray((weights > 0).any(axis=1))
        if not has_weights[mesh.corner_point].all():
            self.add("unweighted", name)

    def report(self, report: Report) -> None:
        """Report what was found."""
        self._report_changes(report)
        self._report_notes(report)

    def _report_changes(self, report: Report) -> None:
        if found := self._texts("mirrored"):
            report.change("mirrored-objects", "{} mirrored, which the viewer refuses or undoes: {}", *found)
        if found := self._texts("symbol-twice"):
            template = "{} with several groups of one material, which are separate faces in the viewer: {}"
            report.change("material-symbol-twice", template, *found)
        if found := self._texts("many-materials"):
            report.change("over-8-materials", "{} with more than 8 materials, which the viewer splits: {}", *found)
        if found := self._texts("unweighted"):
            template = "{} with vertices without weights, which the viewer moves with the first joint: {}"
            report.change("vertices-without-weights", template, *found)

    def _report_notes(self, report: Report) -> None:
        if found := self._texts("sheared"):
            report.note("shear-applied", "{} with shear, which was applied to a copy of the mesh: {}", *found)
        if found := self._texts("moved-rig"):
            report.note("transform-of-rigged-mesh", "{} rigged, so that its transform has no effect: {}", *found)
        if found := self._texts("strips"):
            report.note("strips-and-fans", "{} with strips or fans, which the viewer does not read: {}", *found)
        if found := self._texts("concave"):
            template = "{} with concave polygons, which the viewer fills from their first corner, so wrongly: {}"
            report.note("concave-polygons", template, *found)
        if found := self._texts("uv-numbers"):
            report.note("uvs-of-three-numbers", "{} with UVs of three numbers, which the viewer misreads: {}", *found)
        if found := self._texts("uv-sets"):
            template = "{} with several UV maps; the one that the viewer shows is active: {}"
            report.note("several-uv-sets", template, *found)
        if found := self._texts("reversed-weights"):
            template = "{} with weights listed before joints, which the viewer misreads: {}"
            report.note("weights-before-joints", template, *found)
        if found := self._texts("influences"):
            template = "{} with vertices of more than 4 weights, of which uploads take the strongest: {}"
            report.note("more-than-4-weights", template, *found)

    def _texts(self, what: str) -> tuple[Text, Text] | tuple[()]:
        """Return how many objects there are and their names; nothing if there are none."""
        names: Iterable[str] = self._names.get(what, {})
        found = list(names)
        return (counted(len(found), "object"), listed(found, MOST_NAMED)) if found else ()
