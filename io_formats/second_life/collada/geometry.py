"""Geometries of a Collada file: positions, and the polygons of each material."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.scene import FloatArray, IntArray
from . import numbers, primitives
from .document import Geometry, Group, Values
from .findings import Findings
from .sources import Sources
from .tree import Tree, inputs_of, name_of

_OF_CORNERS = {"NORMAL": 3, "TEXCOORD": 2, "COLOR": 4}
_WIDTHS = {"POSITION": 3, **_OF_CORNERS}
_MOST_INPUTS = 8
"""Maximum number of inputs with one semantic, such as UV sets, since Blender meshes have at most 8."""
_LARGEST_COORDINATE = 1e9
"""Limit for coordinates; larger numbers overflow in the areas and lengths from which normals are computed."""

_Usable = tuple[FloatArray, npt.NDArray[np.bool_] | None, int]
_NONE: _Usable = np.empty((0, 3), np.float32), None, 0


@dataclass
class _Input:
    """An input of a primitive element."""

    meaning: str
    source: str | None
    offset: int = 0
    set_number: int = 0


class GeometryReader:
    """Reads the geometries that objects use, each once.

    Parameters
    ----------
    tree, sources, findings:
        Elements, sources and findings of the file.
    most_vertices:
        Maximum number of vertices of all geometries; it protects against small files that use one long array many
        times.
    """

    def __init__(self, tree: Tree, sources: Sources, findings: Findings, most_vertices: int) -> None:
        self.most_vertices = most_vertices
        self._vertices = 0
        self._usable: dict[tuple[str | None, str], _Usable] = {}
        self._tree = tree
        self._sources = sources
        self._findings = findings
        self._numbers: dict[Element, int] = {}
        self.geometries: list[Geometry] = []

    def number(self, element: Element) -> int:
        """Return the index of a geometry in the document, reading it if needed; -1 if it has no mesh."""
        if element not in self._numbers:
            geometry = self._read(element)
            self._numbers[element] = -1 if geometry is None else len(self.geometries)
            self.geometries += [] if geometry is None else [geometry]
        return self._numbers[element]

    def is_read(self, element: Element) -> bool:
        """Return whether a geometry has been read, because an object uses it."""
        return element in self._numbers

    def _read(self, element: Element) -> Geometry | None:
        mesh, name = element.find("mesh"), name_of(element)
        vertices = None if mesh is None else mesh.find("vertices")
        inputs = [] if vertices is None else list(inputs_of(vertices))
        source = next((given.get("source") for meaning, given in inputs if meaning == "POSITION"), None)
        positions, finite, _ = _NONE if source is None else self._values(source, "POSITION", name)
        if mesh is None or not len(positions):
            self._findings.add("mesh-without-positions", name)
            return None
        self._vertices += len(positions)
        if self._vertices > self.most_vertices:
            raise FormatError("The meshes of the file have more than {:,} vertices", self.most_vertices)
        if finite is not None:
            self._findings.add("vertices-not-finite", name, np.count_nonzero(~finite))
        geometry = Geometry(name, positions)
        of_vertices = [_Input(meaning, given.get("source")) for meaning, given in inputs if meaning in _OF_CORNERS]
        for primitive in mesh:
            if primitive.tag in primitives.KINDS:
                group = self._group(primitive, of_vertices, geometry)
                geometry.groups += [group] if len(group.sizes) else []
        lines = sum(len(mesh.findall(kind)) for kind in primitives.LINES)
        self._findings.add("lines-left-out", name, lines)
        return geometry

    def _group(self, element: Element, of_vertices: list[_Input], geometry: Geometry) -> Group:
        given, stride = _inputs(element)
        sizes, rows = primitives.polygons_of(element, stride, self._findings, geometry.name)
        offset = next((one.offset for one in given if one.meaning in ("VERTEX", "POSITION")), None)
        if offset is None:
            sizes, rows, offset = sizes[:0], rows[:0], 0
        kept = primitives.valid_polygons(sizes, rows[:, offset], len(geometry.positions))
        if not kept.all():
            self._findings.add("polygons-skipped", geometry.name, np.count_nonzero(~kept))
            sizes, rows = sizes[kept], rows[np.repeat(kept, sizes)]
        group = Group(element.tag, element.get("material", ""), np.ascontiguousarray(rows[:, offset]), sizes)
        for one in of_vertices:
            one.offset = offset
        for one in (*of_vertices, *given):
            if one.meaning in _OF_CORNERS and len(sizes):
                self._add_values(group, one, rows, geometry.name)
        return group

    def _add_values(self, group: Group, given: _Input, rows: IntArray, owner: str) -> None:
        values, usable, stride = self._values(given.source, given.meaning, owner)
        if not len(values):
            return
        # if each corner has a single index, this is the index array of the positions
        index = np.ascontiguousarray(rows[:, given.offset])
        outside = (index < 0) | (index >= len(values))
        if outside.any():
            self._findings.add("corner-values-skipped", owner, np.count_nonzero(outside & (index != -1)))
            index = np.where(outside, np.int32(-1), index)
        if usable is not None:
            index = np.where(usable[index], index, np.int32(-1))
        found = Values(values, index, given.set_number, stride)
        if given.meaning == "NORMAL":
            group.normals = found
        else:
            (group.uvs if given.meaning == "TEXCOORD" else group.colors).append(found)

    def _values(self, source: str | None, meaning: str, owner: str) -> _Usable:
        """Return the values of a source, a mask of usable values (None if all are), and their stride in the file."""
        key = (source, meaning)
        if key not in self._usable:
            values, stride = self._sources.rows(source, _WIDTHS[meaning], owner)
            usable = np.asarray((np.abs(values) < _LARGEST_COORDINATE).all(axis=1))
            if meaning == "NORMAL":
                usable &= values.any(axis=1)
            if usable.all():
                self._usable[key] = values, None, stride
            else:
                self._usable[key] = np.where(usable[:, None], values, np.float32(0)), usable, stride
        return self._usable[key]


def _inputs(element: Element) -> tuple[list[_Input], int]:
    """Return the inputs of a primitive element, and how many indices a corner has.

    At most ``_MOST_INPUTS`` inputs with the same semantic are returned.
    """
    found: dict[str, list[_Input]] = {meaning: [] for meaning in ("VERTEX", *_WIDTHS)}
    stride = 1
    for meaning, given in inputs_of(element):
        offset, set_number = numbers.integer(given.get("offset")), numbers.integer(given.get("set"))
        stride = max(stride, offset + 1)
        if len(found.get(meaning, "x" * _MOST_INPUTS)) < _MOST_INPUTS:
            found[meaning].append(_Input(meaning, given.get("source"), offset, set_number))
    return [one for inputs in found.values() for one in inputs], stride
