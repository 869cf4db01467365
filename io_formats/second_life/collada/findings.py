"""What is left out or repaired in a Collada file, counted for one message each."""

from __future__ import annotations

import numpy as np

from ...core.messages import Report, Text, counted, listed

_MOST_NAMES = 5


class Findings:
    """Counts by code, with the names of what they were found in."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._names: dict[str, dict[str, None]] = {}

    def add(self, code: str, name: str, number: int | np.integer = 1) -> None:
        """Count findings; none is not counted."""
        if number:
            self._counts[code] = self._counts.get(code, 0) + int(number)
            self._names.setdefault(code, {})[name] = None

    def count(self, code: str) -> int:
        """Return how often something was found."""
        return self._counts.get(code, 0)

    def names(self, code: str) -> Text:
        """Return the names of what something was found in."""
        return listed(list(self._names[code]), _MOST_NAMES)

    def report(self, report: Report) -> None:
        """Report what was found."""
        self._report_losses(report)
        self._report_changes(report)
        self._report_notes(report)

    def _report_losses(self, report: Report) -> None:
        if number := self.count("link-missing"):
            template = "{} nothing in this file: {}"
            links = counted(number, "link leads to", "links lead to")
            report.loss("link-missing", template, links, self.names("link-missing"))
        if number := self.count("polygons-skipped"):
            polygons = counted(number, "polygon was", "polygons were")
            template = "{} left out, for vertices that do not exist or fewer than 3 different ones: {}"
            report.loss("polygons-skipped", template, polygons, self.names("polygons-skipped"))
        if number := self.count("lists-cut-off"):
            template = "{} shorter than stated; the whole polygons were imported: {}"
            lists = counted(number, "list of polygons is", "lists of polygons are")
            report.loss("lists-cut-off", template, lists, self.names("lists-cut-off"))
        if number := self.count("corner-values-skipped"):
            template = "{} normals, UVs or colours that do not exist; they have none: {}"
            corners = counted(number, "corner uses", "corners use")
            report.loss("corner-values-skipped", template, corners, self.names("corner-values-skipped"))
        if number := self.count("mesh-without-positions"):
            template = "{} left out, which have no vertices: {}"
            meshes, names = counted(number, "mesh was", "meshes were"), self.names("mesh-without-positions")
            report.loss("mesh-without-positions", template, meshes, names)
        if number := self.count("influences-skipped"):
            template = "{} left out, for joints or weights that do not exist: {}"
            influences = counted(number, "influence was", "influences were")
            report.loss("influences-skipped", template, influences, self.names("influences-skipped"))
        if number := self.count("skin-without-joints"):
            template = "{} no joints, so that the mesh is not rigged: {}"
            skins, names = counted(number, "skin has", "skins have"), self.names("skin-without-joints")
            report.loss("skin-without-joints", template, skins, names)

    def _report_changes(self, report: Report) -> None:
        if number := self.count("vertices-not-finite"):
            template = "{} NaN, infinite or huge coordinates; moved to the origin: {}"
            vertices = counted(number, "vertex has", "vertices have")
            report.change("vertices-not-finite", template, vertices, self.names("vertices-not-finite"))
        if number := self.count("weights-disagree"):
            template = "{} lists of weights that do not fit the vertices, so that viewers refuse the file: {}"
            skins = counted(number, "skin has", "skins have")
            report.change("weights-disagree", template, skins, self.names("weights-disagree"))
        if number := self.count("bind-shape-unusable"):
            template = "{} a bind shape matrix that cannot be used; the identity was taken: {}"
            skins = counted(number, "skin has", "skins have")
            report.change("bind-shape-unusable", template, skins, self.names("bind-shape-unusable"))
        if number := self.count("bind-matrix-unusable"):
            template = "{} no usable inverse bind matrix; bound where the standard avatar has them: {}"
            joints, names = counted(number, "joint has", "joints have"), self.names("bind-matrix-unusable")
            report.change("bind-matrix-unusable", template, joints, names)
        if number := self.count("invalid-transform"):
            template = "{} without a valid transform, kept at the parent's place: {}"
            report.change("invalid-transform", template, counted(number, "node"), self.names("invalid-transform"))

    def _report_notes(self, report: Report) -> None:
        if number := self.count("node-holds-itself"):
            template = "{} stops where it holds itself: {}"
            report.note("node-holds-itself", template, counted(number, "node"), self.names("node-holds-itself"))
        if number := self.count("holes-left-out"):
            template = "{} in polygons left out: {}"
            report.note("holes-left-out", template, counted(number, "hole"), self.names("holes-left-out"))
        if number := self.count("lines-left-out"):
            template = "{} of lines left out: {}"
            report.note("lines-left-out", template, counted(number, "list"), self.names("lines-left-out"))
        if number := self.count("values-fewer-than-stated"):
            template = "{} fewer values than the file states: {}"
            lists = counted(number, "list has", "lists have")
            report.note("values-fewer-than-stated", template, lists, self.names("values-fewer-than-stated"))
        if number := self.count("geometry-without-object"):
            template = "{} left out, which no object uses: {}"
            meshes, names = counted(number, "mesh was", "meshes were"), self.names("geometry-without-object")
            report.note("geometry-without-object", template, meshes, names)
