"""Findings about a Collada file (data left out, repaired or unusual), with one message for each kind."""

from __future__ import annotations

import numpy as np

from ...core.messages import Kind, Message, Report, Text, listed

MOST_NAMED = 5
"""Largest number of names in a message; further names are only counted."""

_LINKS = ("{:,} link leads to", "{:,} links lead to")
_POLYGONS = ("{:,} polygon was", "{:,} polygons were")
_POLYGON_LISTS = ("{:,} list of polygons is", "{:,} lists of polygons are")
_CORNERS = ("{:,} corner uses", "{:,} corners use")
_MESHES = ("{:,} mesh was", "{:,} meshes were")
_INFLUENCES = ("{:,} influence was", "{:,} influences were")
_SKINS = ("{:,} skin has", "{:,} skins have")
_VERTICES = ("{:,} vertex has", "{:,} vertices have")
_NODES = ("{:,} node", "{:,} nodes")
_HOLES = ("{:,} hole", "{:,} holes")
_LISTS = ("{:,} list", "{:,} lists")
_SHORT_LISTS = ("{:,} list has", "{:,} lists have")
_JOINTS = ("{:,} joint is", "{:,} joints are")
_JOINTS_HAVE = ("{:,} joint has", "{:,} joints have")
_OBJECTS = ("{:,} object", "{:,} objects")
_MESSAGES: tuple[tuple[str, Kind, str, tuple[str, str]], ...] = (
    # Messages of the reader
    ("link-missing", Kind.LOSS, "{} nothing in this file: {}", _LINKS),
    (
        "polygons-skipped",
        Kind.LOSS,
        "{} left out, for vertices that do not exist or fewer than 3 different ones: {}",
        _POLYGONS,
    ),
    ("lists-cut-off", Kind.LOSS, "{} shorter than stated; the whole polygons were imported: {}", _POLYGON_LISTS),
    ("corner-values-skipped", Kind.LOSS, "{} normals, UVs or colours that do not exist; they have none: {}", _CORNERS),
    ("mesh-without-positions", Kind.LOSS, "{} left out for lack of vertices: {}", _MESHES),
    ("influences-skipped", Kind.LOSS, "{} left out, for joints or weights that do not exist: {}", _INFLUENCES),
    ("skin-without-joints", Kind.LOSS, "{} no joints, so that the mesh is not rigged: {}", _SKINS),
    ("vertices-not-finite", Kind.CHANGE, "{} NaN, infinite or huge coordinates; moved to the origin: {}", _VERTICES),
    (
        "weights-disagree",
        Kind.CHANGE,
        "{} lists of weights that do not fit the vertices, so that viewers refuse the file: {}",
        _SKINS,
    ),
    (
        "bind-shape-unusable",
        Kind.CHANGE,
        "{} a bind shape matrix that cannot be used; the identity was taken: {}",
        _SKINS,
    ),
    (
        "bind-matrix-unusable",
        Kind.CHANGE,
        "{} no usable inverse bind matrix; bound where the standard avatar has them: {}",
        _JOINTS_HAVE,
    ),
    ("invalid-transform", Kind.CHANGE, "{} without a valid transform, kept at the parent's place: {}", _NODES),
    ("transform-left-out", Kind.LOSS, "{} without its look-at or skew transform, which is left out: {}", _NODES),
    ("node-holds-itself", Kind.NOTE, "{} stops where it holds itself: {}", _NODES),
    ("holes-left-out", Kind.NOTE, "{} in polygons left out: {}", _HOLES),
    ("lines-left-out", Kind.NOTE, "{} of lines left out: {}", _LISTS),
    ("values-fewer-than-stated", Kind.NOTE, "{} fewer values than the file states: {}", _SHORT_LISTS),
    ("geometry-without-object", Kind.NOTE, "{} left out, which no object uses: {}", _MESHES),
    # Messages of the scene builder
    ("unknown-joints", Kind.CHANGE, "{} unknown to the viewer, which does not bind the mesh then: {}", _JOINTS),
    ("bound-with-shape", Kind.NOTE, "{} bound with the scale of an avatar shape: {}", _JOINTS),
    (
        "joints-without-node",
        Kind.CHANGE,
        "{} no position in the nodes, so that the viewer moves them onto their parent: {}",
        _JOINTS_HAVE,
    ),
    ("mirrored-objects", Kind.CHANGE, "{} mirrored, which the viewer refuses or undoes: {}", _OBJECTS),
    (
        "material-symbol-twice",
        Kind.CHANGE,
        "{} with several groups of one material, which are separate faces in the viewer: {}",
        _OBJECTS,
    ),
    ("over-8-materials", Kind.CHANGE, "{} with more than 8 materials, which the viewer splits: {}", _OBJECTS),
    (
        "vertices-without-weights",
        Kind.CHANGE,
        "{} with vertices without weights, which the viewer moves with the first joint: {}",
        _OBJECTS,
    ),
    ("shear-applied", Kind.NOTE, "{} with shear or a scale of 0, applied to a copy of the mesh: {}", _OBJECTS),
    ("transform-of-rigged-mesh", Kind.NOTE, "{} rigged, so that its transform has no effect: {}", _OBJECTS),
    ("strips-and-fans", Kind.NOTE, "{} with strips or fans, which the viewer does not read: {}", _OBJECTS),
    (
        "concave-polygons",
        Kind.NOTE,
        "{} with concave polygons, which the viewer fills from their first corner, so wrongly: {}",
        _OBJECTS,
    ),
    ("uvs-of-three-numbers", Kind.NOTE, "{} with UVs of three numbers, which the viewer misreads: {}", _OBJECTS),
    ("several-uv-sets", Kind.NOTE, "{} with several UV maps; the one that the viewer shows is active: {}", _OBJECTS),
    (
        "weights-before-joints",
        Kind.NOTE,
        "{} with weights listed before joints, which the viewer misreads: {}",
        _OBJECTS,
    ),
    (
        "more-than-4-weights",
        Kind.NOTE,
        "{} with vertices of more than 4 weights, of which uploads take the strongest: {}",
        _OBJECTS,
    ),
)
"""Code, kind and template of each message, in the order of a report, with its first value for one and for more."""


class Findings:
    """Counts of findings, by message code and by the name of the mesh, node or other element concerned."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}

    def add(self, code: str, name: str, number: int | np.integer = 1) -> None:
        """Add a number of findings to an element; with 0 nothing is added to its count."""
        if number:
            counts = self._counts.setdefault(code, {})
            counts[name] = counts.get(name, 0) + int(number)

    def add_object(self, name: str, *codes: str) -> None:
        """Count an object for each code, once even if several parts of it are concerned."""
        for code in codes:
            self._counts.setdefault(code, {})[name] = 1

    def report(self, report: Report) -> list[Text]:
        """Add one message for each code that was counted, and return their sentences."""
        found: list[Text] = []
        for code, kind, template, (one, more) in _MESSAGES:
            if counts := self._counts.get(code):
                number = sum(counts.values())
                text = Text(template, Text(more if number > 1 else one, number), listed(list(counts), MOST_NAMED))
                report.add(Message(kind, "", text, code=code))
                found.append(text)
        return found
