"""Edits of placed nodes: what another program changed in the nodes of a file, and the bytes with these changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .messages import Message, Text, listed
from .placement import Channels

ADDED = "+"
"""Start of the keys of added nodes until the file gives them others."""
Matrix = npt.NDArray[np.float64]
"""(4, 4) for column vectors."""


@dataclass(frozen=True)
class SlotMaterial:
    """The material that a surface of an object has now."""

    slot: int
    """Index in ``ModelUse.slots`` of the node."""
    name: str
    identity: str = ""
    """``Material.identity``; empty if the material is not one of the project's."""


@dataclass(eq=False)
class PlacedObject:
    """An object that represents a node, or that is added as a copy of a node."""

    name: str
    """Name for the file."""
    title: str
    """Name for messages."""
    key: str = ""
    """Key of the node that it represents. If several objects have one key, all but one are copies of the node."""
    source: str = ""
    """Key of the node that a new object is a copy of, if it has no ``key``."""
    parent: int = -1
    """Index of the nearest ancestor that is in the list, -1 = none."""
    given_parent: str | None = ""
    """Key of the parent that the object had when it was last in agreement with the file, empty for none.

    None if that is not known.
    """
    matrix: Matrix = field(default_factory=lambda: np.identity(4))
    """Relative to the parent."""
    shear: Matrix | None = None
    """Matrix after which ``matrix`` is that of the file, if the object could not hold all of it; zeros if none does."""
    is_place_kept: bool = False
    """Whether the node keeps its place, since the object's place is animated or constrained."""
    is_hidden: bool | None = False
    """Whether the object is hidden; None if that is not written."""
    is_likely_copy: bool = False
    """Whether the object looks like a copy by its name."""
    materials: tuple[SlotMaterial, ...] = ()
    channels: Channels | None = None
    """The transform of the object, if its node has ``channels``; ``matrix`` is theirs."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The values now of those ``properties`` of the node that the object has."""


@dataclass(eq=False)
class NodeEdit:
    """The changes of one node. None in a field: unchanged."""

    key: str
    """Key of the node; for an added one, ``ADDED`` and the index of its object."""
    title: str
    """Name for messages."""
    source: str = ""
    """Key of the node that an added node is a copy of; empty for one that has only ``properties``.

    A format may copy the nodes below it, too. Those that other edits add as copies of these are not copied twice.
    """
    is_removed: bool = False
    """Remove the node with all below it that is not moved to another parent."""
    parent: str | None = None
    """Key of the new parent, empty for none. Always set for added nodes."""
    matrix: Matrix | None = None
    """Relative to the parent that the node has then. Elements that are not changed are exactly those of the file."""
    name: str | None = None
    is_hidden: bool | None = None
    """Whether the node itself is hidden, whatever its parents are."""
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
    """The key that each added node got, by that of its edit."""
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
