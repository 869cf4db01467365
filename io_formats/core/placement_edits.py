"""Edits of placed nodes: what another program changed in the nodes of a file, and the bytes with these changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .messages import Message, Text, listed
from .placement import Channels

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


def edit_texts(edits: Sequence[NodeEdit], most: int = 8) -> list[Text]:
    """Return a line for each kind of edit, with the first names."""
    kinds = {
        "Moved: {}": [edit for edit in edits if edit.matrix is not None and edit.parent is None],
        "New parent: {}": [edit for edit in edits if edit.parent is not None and not edit.is_added],
        "Added: {}": [edit for edit in edits if edit.is_added],
        "Removed: {}": [edit for edit in edits if edit.is_removed],
        "Renamed: {}": [edit for edit in edits if edit.name is not None and not edit.is_added],
        "Hidden: {}": [edit for edit in edits if edit.is_hidden is True],
        "Shown: {}": [edit for edit in edits if edit.is_hidden is False],
        "Other material: {}": [edit for edit in edits if edit.materials],
        "Other properties: {}": [edit for edit in edits if edit.properties and not edit.is_added],
    }
    return [Text(text, listed([edit.title for edit in found], most)) for text, found in kinds.items() if found]
