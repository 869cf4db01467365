"""A Collada file as it is stored: no unit, axis or binding is applied (page ``docs/formats/collada.md``).

Matrices are for column vectors, (4, 4) float64. Indices point into arrays of the same document; -1 means none. Names
are those of the file; ids have been resolved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...core.messages import Message
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
