"""A Collada file as it is stored: no unit, axis or binding is applied (page ``docs/formats/collada.md``).

Matrices are for column vectors, (4, 4) float64. Indices point into arrays of the same document; -1 means none. Names
are those of the file; ids have been resolved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...core.messages import Kind, Message, Report, Text, listed
from ...core.scene import FloatArray, IntArray
from ...geometry.transforms import Matrix


@dataclass
class Values:
    """Values of the corners of a group: normals, a UV set or colours."""

    values: FloatArray
    """(N, k) float32: 3 numbers of normals, 2 of UVs with v upwards, 4 of colours; inputs of one source share it."""
    index: IntArray
    """(C,) int32 into ``values``; -1 for a corner without a value."""
    set_number: int = 0
    """Number of the UV set in the file."""
    stride: int = 0
    """Number of values that the file stores for each entry, such as 3 for UVs with an unused third value."""


@dataclass
class Group:
    """The polygons of one primitive element, which share a material."""

    kind: str
    """Name of the element: "triangles", "polylist", "polygons", "tristrips" or "trifans"."""
    symbol: str
    """The material's symbol, or empty."""
    points: IntArray
    """(C,) int32: the position of each corner."""
    sizes: IntArray
    """(G,) int32: how many corners each polygon has, 3 or more."""
    normals: Values | None = None
    uvs: list[Values] = field(default_factory=list)
    """UV sets of the group, in the order of the file."""
    colors: list[Values] = field(default_factory=list)


@dataclass
class Geometry:
    """A mesh."""

    name: str
    """The name, or else the id."""
    positions: FloatArray
    """(P, 3) float32; NaN was replaced by 0."""
    groups: list[Group] = field(default_factory=list)


@dataclass
class Skin:
    """The binding of a geometry to n joints."""

    geometry: int
    bind_shape: Matrix
    joint_names: list[str]
    """Names as the file lists them, aliases included. Ids are resolved to names."""
    inverse_bind: Matrix
    """(n, 4, 4); the identity where ``usable`` is false."""
    usable: npt.NDArray[np.bool_]
    """(n,) whether the file has an invertible matrix for the joint."""
    counts: IntArray
    """(P,) int32: the number of influences of each position."""
    joints: IntArray
    """(K,) int32 into ``joint_names``: influences of the first position, then of the second and so on; influences that
    cannot be used are left out."""
    weights: FloatArray
    """(K,) float32, above 0, in the order of the file; their sum need not be 1."""
    is_reversed: bool = False
    """Whether the file lists weights before joints, which the viewer misreads."""


@dataclass
class Instance:
    """A geometry, or with ``skin`` a bound one, in a node."""

    geometry: int
    skin: int = -1
    materials: dict[str, int] = field(default_factory=dict)
    """The material that is bound to each symbol."""
    skeletons: list[str] = field(default_factory=list)
    """Ids of the topmost joints that the file names for the skin; empty if it names none."""


@dataclass
class Node:
    """A node of the scene; ``instance_node`` makes copies that share geometries."""

    name: str
    """The name, or else the id."""
    parent: int
    """-1 for a root; parents come before their children."""
    matrix: Matrix
    """Relative to the parent."""
    id: str = ""
    sid: str = ""
    is_joint: bool = False
    position: npt.NDArray[np.float64] | None = None
    """(3,) position of a joint relative to its parent, from the element that the viewer reads (section 5.4).

    None if the joint does not have this element, and for other nodes.
    """
    instances: list[Instance] = field(default_factory=list)


@dataclass
class Material:
    """A material, with the parts of its effect that are imported."""

    name: str
    """The name, or else the id."""
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """sRGB-encoded diffuse colour and alpha; white with an image."""
    emission: float = 0.0
    """Mean of the channels of the emission colour."""
    image: str = ""
    """Address of the diffuse texture as it is in the file, or empty."""
    has_transparency: bool = False
    """Whether the file has an explicit transparency, which is left out."""


@dataclass
class Collada:
    """A Collada file, or with ``partners`` a set of them."""

    version: str = ""
    tool: str = ""
    """The program that wrote the file, or empty."""
    meter: float = 1.0
    up_axis: str = "Y_UP"
    nodes: list[Node] = field(default_factory=list)
    geometries: list[Geometry] = field(default_factory=list)
    skins: list[Skin] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    partners: dict[str, Collada] = field(default_factory=dict)
    """Files of the other levels and of physics, by suffix: "_LOD2", "_LOD1", "_LOD0", "_PHYS"."""
    warnings: list[Message] = field(default_factory=list)

    @cached_property
    def worlds(self) -> list[Matrix]:
        """(4, 4) of each node, to the space of the file; computed once, when the nodes are complete."""
        found: list[Matrix] = []
        for node in self.nodes:
            found.append(node.matrix if node.parent < 0 else found[node.parent] @ node.matrix)
        return found


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
    (
        "group-without-vertices",
        Kind.LOSS,
        "{} left out, since the group has no VERTEX input, on which the viewer crashes: {}",
        _POLYGONS,
    ),
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
