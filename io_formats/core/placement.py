"""Placement: models of other files, the transforms of the nodes that refer to them, and edits of these nodes.

A file that places models has nodes that refer to model files, to further files of the same kind, to lights and cameras.
Its scene has a :class:`Placement` in place of nodes, whose matrices are in Blender's space (metres, Z up). One model
may be used by thousands of nodes, and is read once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from .messages import Message, Text, listed

if TYPE_CHECKING:
    from .addon_files import SourceFile
    from .format import OutputFile
    from .scene import Scene
    from .shading import Pixels


@dataclass(frozen=True)
class SlotUse:
    """Settings for a surface of a model, or for a material slot if it has no surfaces."""

    name: str
    """Name of the surface in the model. If several surfaces have the same name, they are used in order."""
    material: str | None = None
    """Name of the material; None: as in the model's own file. Known properties are in ``Scene.materials``."""
    is_hidden: bool = False
    level: int = 0
    """Level of detail, 0 for the finest."""
    nearest: float | None = None
    """Distance in metres from which the surface is shown, if the file states it."""


@dataclass(frozen=True)
class ModelUse:
    """A model at a node, with the settings that apply to this node."""

    model: int
    """Index in ``Placement.models``."""
    slots: tuple[SlotUse, ...] = ()
    """Settings for surfaces; the others are shown as in the model's own file."""
    level: int = 0
    """The level of detail that the node shows. Surfaces of other levels are left out."""
    animation: str = ""
    """Name of the clip of the model that plays at the node, for files that are written."""


@dataclass(frozen=True)
class PartUse:
    """The content of another file at a node."""

    part: int
    """Index in ``Placement.parts``."""


class LightKind(Enum):
    """Shape of a light."""

    POINT = "point"
    SPOT = "spot"
    SUN = "sun"


@dataclass(frozen=True)
class Light:
    """A light, which shines along -Z of its node."""

    kind: LightKind
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    intensity: float = 1.0
    """Intensity in the unit of the target program, which has no known conversion to Blender's units."""
    radius: float = 0.0
    """Metres."""
    cone: float = 0.0
    """Whole angle of a spot in radians."""
    softness: float = 0.0
    """Part of the cone in which a spot fades out, 0 to 1."""


@dataclass(frozen=True)
class Camera:
    """A camera, which looks along -Z of its node, with +Y up."""

    field_of_view: float
    """Vertical angle in radians; 0 for a parallel projection."""
    height: float = 0.0
    """Visible height in metres of a parallel projection."""
    near: float = 0.1
    far: float = 1000.0
    is_main: bool = False


@dataclass(frozen=True, eq=False)
class Wire:
    """Points and edges that show something that the file describes only by numbers, such as a collider.

    Several nodes can share one.
    """

    name: str
    points: npt.NDArray[np.float32]
    """(n, 3) in the space of the node."""
    edges: npt.NDArray[np.int32]
    """(m, 2) indices of points."""
    is_selectable: bool = True


class MarkerShape(Enum):
    """Shape of the mark for a location without geometry."""

    CROSS = "cross"
    ARROW = "arrow"
    """Along +Z of the node."""
    CUBE = "cube"


@dataclass(frozen=True)
class Marker:
    """A mark for the location of a node without geometry."""

    shape: MarkerShape
    size: float = 0.25
    """Size in metres."""


Rows: TypeAlias = list[list[float]]

Content: TypeAlias = ModelUse | PartUse | Light | Camera | Wire | Marker


@dataclass(frozen=True)
class Channels:
    """A transform as three channels, which an object of Blender holds exactly. All numbers are single precision."""

    location: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Euler angles in radians."""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    order: str = "XYZ"
    """Order of the rotations, as Blender's rotation modes name it: the first is the innermost."""
    quaternion: tuple[float, float, float, float] | None = None
    """The rotation as a unit quaternion (w, x, y, z), in place of ``rotation`` and ``order``."""

    def matrix(self) -> npt.NDArray[np.float64]:
        """Return the matrix (4, 4) for column vectors."""
        return self._matrix.copy()

    @cached_property
    def _matrix(self) -> npt.NDArray[np.float64]:
        rows = self._euler_rows() if self.quaternion is None else _quaternion_rows(*self.quaternion)
        x, y, z = self.scale
        placed = [(row[0] * x, row[1] * y, row[2] * z, at) for row, at in zip(rows, self.location, strict=True)]
        return np.array([*placed, (0.0, 0.0, 0.0, 1.0)])

    def _euler_rows(self) -> Rows:
        """Return the rows of the rotation matrix for the Euler angles in their order."""
        rows: Rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        for axis in map("XYZ".index, self.order):  # in plain numbers, ten times as fast as small arrays
            if not (angle := self.rotation[axis]):
                continue
            sine, cosine = math.sin(angle), math.cos(angle)
            one, other = rows[(axis + 1) % 3], rows[(axis + 2) % 3]
            rows[(axis + 1) % 3] = [cosine * a - sine * b for a, b in zip(one, other, strict=True)]
            rows[(axis + 2) % 3] = [sine * a + cosine * b for a, b in zip(one, other, strict=True)]
        return rows


def _quaternion_rows(w: float, x: float, y: float, z: float) -> Rows:
    """Return the rows of the matrix of a unit quaternion."""
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]


def _identity() -> npt.NDArray[np.float64]:
    return np.identity(4)


@dataclass
class PlacedNode:
    """A node: its transform relative to ``parent`` (index in the part, -1 for the root), and its content."""

    name: str
    parent: int = -1
    matrix: npt.NDArray[np.float64] = field(default_factory=_identity)
    """(4, 4) for column vectors."""
    content: Content | None = None
    instances: npt.NDArray[np.float64] | None = None
    """(n, 4, 4) matrices relative to the node. The model is shown at each of them instead of at the node itself."""
    is_hidden: bool = False
    """Whether the node and all nodes below it are hidden."""
    kind: str = ""
    """Type of the node in the target program."""
    properties: dict[str, str] = field(default_factory=dict)
    """Values without a counterpart in Blender, shown to the user."""
    key: str = ""
    """Identifier of the node in its file, which does not change when other parts of the file change; empty if the node
    cannot be edited."""
    channels: Channels | None = None
    """The transform that ``matrix`` comes from, if the file stores it in this form."""
    collection: int = -1
    """Index in ``PlacementPart.collections`` of the collection that contains the node; -1 for the part's own
    collection."""
    owner: str = ""
    """Path of the file that defines the node, if it is not the file of the part. The node is shown, but can only be
    changed in that file."""
    is_linkset_root: bool = False
    """Whether the node is the one to which its siblings are linked, and becomes the root again in an upload."""
    is_unplaced: bool = False
    """Whether the file does not store the node's transform, so that moving the node is not an edit."""


@dataclass(eq=False)
class EncodedPicture:
    """An image file that only Blender decodes, and whose pixels a model is made of."""

    name: str
    content: Callable[[], bytes]
    """Function that returns the content of the file, or raises ``FormatError``."""
    pixels: Pixels | None = None
    """(H, W, 4) uint8 as stored, the lowest row first; set only while the model is read."""


@dataclass
class PlacedModel:
    """A model that nodes refer to."""

    name: str
    read: Callable[[], Scene]
    """Function that returns the scene of the model, or raises ``FormatError``; it is called once."""
    path: str = ""
    """Path of the model's file or source file; empty if the model is in the file that places it."""
    source: SourceFile | None = None
    """The file that Blender has to import before ``read`` is called, if the model's own file is missing."""
    identity: str = ""
    """Identifier of the model in its project, if it is made from a source file."""
    file: str = ""
    """Path of the model's file on disk, if the model is its unmodified content; new files can refer to it."""
    is_tree: bool = False
    """Whether each node that refers to the model gets its nodes as children, with their transforms and animations.

    Otherwise the model is a single mesh, which becomes the mesh of the node itself.
    """
    picture: EncodedPicture | None = None
    """The picture that Blender has to decode before ``read`` is called."""


@dataclass(frozen=True)
class PlacedCollection:
    """A group of nodes that is shown and hidden as a whole."""

    name: str
    parent: int = -1
    """Index of the group that contains this one, which comes before it; -1 for none."""
    is_hidden: bool = False
    is_guide: bool = False
    """Whether it contains guides that the target program does not show, such as colliders."""


@dataclass
class PlacementPart:
    """The nodes of one file; parents come before their children."""

    name: str
    nodes: list[PlacedNode] = field(default_factory=list)
    path: str = ""
    file: str = ""
    """Path of the file on disk, if its nodes can be edited there; empty for the first part."""
    digest: str = ""
    """SHA-256 of its content."""
    has_one_root: bool = False
    """Whether new nodes without a parent are put below the only root."""
    collections: list[PlacedCollection] = field(default_factory=list)
    not_held: frozenset[str] = frozenset()
    """Names of the fields of ``NodeEdit`` that the file cannot store; changes of them are ignored."""
    model_property: str = ""
    """Name of the property that holds the path of a node's model, if a new object with this property becomes a node."""

    @property
    def only_root(self) -> str:
        """Key of the only node without a parent; empty if there are several."""
        roots = [node.key for node in self.nodes if node.parent < 0]
        return roots[0] if len(roots) == 1 else ""


@dataclass
class Placement:
    """The content of a file that places models; the first part is the file's own."""

    parts: list[PlacementPart]
    models: list[PlacedModel] = field(default_factory=list)


ADDED = "+"
"""Prefix of the keys of added nodes until the file assigns their keys."""
Matrix = npt.NDArray[np.float64]
"""(4, 4) for column vectors."""


@dataclass(frozen=True)
class SlotMaterial:
    """The current material of a surface of an object."""

    slot: int
    """Index in ``ModelUse.slots`` of the node."""
    name: str
    identity: str = ""
    """``Material.identity``; empty if the material is not one of the project's."""


@dataclass(eq=False)
class PlacedObject:
    """An object that represents a node, or that is added as a copy of a node."""

    name: str
    """Name that the node gets in the file."""
    title: str
    """Name of the object for messages."""
    key: str = ""
    """Key of the node that the object represents. If several objects have the same key, all but one are copies of the
    node."""
    source: str = ""
    """Key of the node that a new object is a copy of, if it has no ``key``."""
    parent: int = -1
    """Index of the nearest ancestor that is in the list, -1 = none."""
    given_parent: str | None = ""
    """Key of the parent that the object had at the last import or export; empty without a parent.

    None if that is not known.
    """
    matrix: Matrix = field(default_factory=lambda: np.identity(4))
    """(4, 4) matrix relative to the parent."""
    shear: Matrix | None = None
    """Matrix by which ``matrix`` must be multiplied to get that of the file, if the object's transform could not
    represent all of it; zeros if there is none."""
    is_place_kept: bool = False
    """Whether the transform of the node is not changed, because that of the object is animated or constrained."""
    is_hidden: bool | None = False
    """Whether the object is hidden; None if visibility is not written."""
    is_known: bool = False
    """Whether the last export wrote the node from this object."""
    is_likely_copy: bool = False
    """Whether the object looks like a copy by its name."""
    materials: tuple[SlotMaterial, ...] = ()
    channels: Channels | None = None
    """Transform of the object as channels, if its node has ``channels``; ``matrix`` is computed from them."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Current values of the node's ``properties`` that the object has."""


@dataclass(eq=False)
class NodeEdit:
    """The changes of one node. A field with the value None is unchanged."""

    key: str
    """Key of the node; for an added one, ``ADDED`` and the index of its object."""
    title: str
    """Name for messages."""
    source: str = ""
    """Key of the node of which an added node is a copy; empty for an added node that has only ``properties``.

    A format may also copy the nodes below it. Nodes that other edits add as copies of these are not copied twice.
    """
    is_removed: bool = False
    """Whether the node is removed, with all nodes below it that are not moved to another parent."""
    content: str = ""
    """Text of a removed node that is put back with its key below ``parent``, from ``Patched.removed``. Such edits form
    a patch of their own; the node that it gives is changed by a further one."""
    parent: str | None = None
    """Key of the new parent, empty for none. Always set for added nodes."""
    matrix: Matrix | None = None
    """Matrix relative to the new parent. Elements that are unchanged are exactly those of the file."""
    name: str | None = None
    is_hidden: bool | None = None
    """Whether the node itself is hidden, independent of its parents."""
    materials: Mapping[int, str] = field(default_factory=dict)
    """``Material.identity`` by index in ``ModelUse.slots``."""
    channels: Channels | None = None
    """The transform, if the node has ``channels``. Numbers that are not changed are exactly those of the file."""
    before: Channels | None = None
    """The transform that ``channels`` replaces. For an added node, the transform of the copied node."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The changed ``PlacedNode.properties``."""

    @property
    def is_added(self) -> bool:
        """Whether the node is new."""
        return bool(self.source) or self.key.startswith(ADDED)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is changed."""
        fields = (self.parent, self.matrix, self.name, self.is_hidden)
        changes = (self.is_removed, self.is_added, self.materials, self.properties)
        return not (any(changes) or any(value is not None for value in fields))


@dataclass(frozen=True)
class Patched:
    """The bytes of a file with edits."""

    data: bytes
    keys: Mapping[str, str]
    """The key in the file of each added node, by the key in its edit."""
    messages: Sequence[Message] = ()
    removed: Mapping[str, str] = field(default_factory=dict)
    """Text of each removed node, by its key, without nodes that have texts of their own."""


@dataclass(frozen=True)
class NewNode:
    """A node for an object that was made in Blender, as text that an edit can add to the file."""

    key: str
    text: str
    """``NodeEdit.content``; the transform is relative to the world."""
    kind: str
    """``PlacedNode.kind``"""
    surfaces: Sequence[tuple[str, str]]
    """Name and ``Material.identity`` of each surface; without a material, that is empty."""


@dataclass(frozen=True)
class NewNodes:
    """Nodes to add to a file, and the files that these need."""

    nodes: Sequence[NewNode]
    models: Sequence[str]
    """File of each model, relative to the folder of the file, with ``/``."""
    outputs: Sequence[OutputFile]
    messages: Sequence[Message] = ()


@dataclass(frozen=True)
class KnownFiles:
    """Files beside a file that places models. Names are relative to its folder, with ``/``."""

    own: Collection[str] = ()
    """Files that earlier exports made for it and that did not change since. Only these may be replaced."""
    used: Collection[str] = ()
    """Files of models in use, which get no other model."""
    of_models: Mapping[int, str] = field(default_factory=dict)
    """Files of the models that have one already, by index."""


def edit_texts(edits: Sequence[NodeEdit], most: int = 8) -> list[Text]:
    """Return a line for each kind of edit, with the first names."""
    kinds = {
        "Moved: {}": [edit for edit in edits if edit.matrix is not None and edit.parent is None],
        "New parent: {}": [edit for edit in edits if edit.parent is not None and not (edit.is_added or edit.content)],
        "Restored: {}": [edit for edit in edits if edit.content],
        "Added: {}": [edit for edit in edits if edit.is_added],
        "Removed: {}": [edit for edit in edits if edit.is_removed],
        "Renamed: {}": [edit for edit in edits if edit.name is not None and not edit.is_added],
        "Hidden: {}": [edit for edit in edits if edit.is_hidden is True],
        "Shown: {}": [edit for edit in edits if edit.is_hidden is False],
        "Other material: {}": [edit for edit in edits if edit.materials],
        "Other properties: {}": [edit for edit in edits if edit.properties and not edit.is_added],
    }
    return [Text(text, listed([edit.title for edit in found], most)) for text, found in kinds.items() if found]
