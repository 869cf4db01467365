"""Which rigged meshes of a set share a skeleton, and its joints among the nodes (format page, section 5.5).

A file has a skeleton for each tree of joints, or for several trees that one mesh names together. The avatar is the
exception: the viewer looks up its joints by their names in the whole file, so that all its meshes share one skeleton
unless they bind its joints at different places.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...core.errors import FormatError
from ...geometry.transforms import Matrix
from ..avatar import joints as avatar_joints
from .document import Collada, Skin
from .partners import Model, Part

_SAME_BIND = 1e-3
"""Largest difference of bind matrices that count as equal, relative to their largest entry if that is above 1."""
_MOST_SKELETONS = 256
_MOST_LINKED = 1_000_000
"""Largest number of topmost joints to which all meshes together are linked."""


class JointIndex:
    """The joints among the nodes of a document."""

    def __init__(self, document: Collada) -> None:
        self.document, self.nodes = document, document.nodes
        self.roots: list[int] = []
        """The topmost joint among each node and its ancestors; -1 if none of them is a joint."""
        self.below: dict[int, list[int]] = {}
        """The joints of the tree of each topmost joint, parents first."""
        for number, node in enumerate(self.nodes):
            above = self.roots[node.parent] if node.parent >= 0 else -1
            self.roots.append(number if above < 0 and node.is_joint else above)
            if node.is_joint:
                self.below.setdefault(self.roots[number], []).append(number)
        self._named: dict[str, list[int]] = {}
        for is_joint in (True, False):
            for key in ("sid", "name", "id"):
                for number, node in enumerate(self.nodes):
                    if node.is_joint is is_joint and (name := str(getattr(node, key))):
                        self._named.setdefault(avatar_joints.canonical(name) or name, []).append(number)
        self._ids: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            self._ids.setdefault(node.id, []).append(number)
        self._near: dict[str, dict[int, int]] = {}
        """For each id, a node that has it below each node."""
        self._below: dict[int, set[int]] = {}
        self._linked = 0

    def find(self, name: str, roots: Container[int] = ()) -> int:
        """Return the node of a joint, found by sid, else by name or id; -1 if there is none.

        Nodes below the joints ``roots`` come first, then joints.
        """
        found = self._named.get(avatar_joints.canonical(name) or name, [])
        return next((number for number in found if self.roots[number] in roots), found[0] if found else -1)

    def find_near(self, node_id: str, near: int) -> int:
        """Return the node with an id; of several copies, the one with the nearest ancestor in common with a node."""
        below = self._near.setdefault(node_id, {})
        for number in self._ids.pop(node_id, ()):
            above = number
            while above >= 0:
                below.setdefault(above, number)
                above = self.nodes[above].parent
        while near >= 0 and near not in below:
            near = self.nodes[near].parent
        return below.get(near, next(iter(below.values()), self.find(node_id)))

    def joints_below(self, number: int) -> set[int]:
        """Return the topmost joints below a node that is neither a joint nor below one.

        Raises
        ------
        FormatError
            All calls together return too many joints.
        """
        if number not in self._below:
            self._below[number] = set()
            for other in range(number + 1, len(self.nodes)):  # each node is followed by those below it
                if self.nodes[other].parent < number:
                    break
                if self.roots[other] == other:
                    self._below[number].add(other)
        self._linked += len(self._below[number])
        if self._linked > _MOST_LINKED:
            raise FormatError("The meshes are linked to more than {:,} joints", _MOST_LINKED)
        return self._below[number]


@dataclass(eq=False)
class RigGroup:
    """The meshes that share a skeleton, and the topmost joints of this skeleton."""

    index: JointIndex
    roots: set[int] = field(default_factory=set)
    """Nodes of the document; empty if the joints have no nodes."""
    parts: list[Part] = field(default_factory=list)

    @property
    def joint_nodes(self) -> list[int]:
        """The joints of the skeleton among the nodes, parents first."""
        return sorted(number for root in self.roots for number in self.index.below[root])

    @property
    def skins(self) -> list[Skin]:
        """The different skins of the meshes."""
        return list({id(skin): skin for skin in map(skin_of, self.parts)}.values())

    @property
    def names(self) -> set[str]:
        """Names of the joints in skins and nodes."""
        nodes = [self.index.nodes[number] for number in self.joint_nodes]
        found = {name for node in nodes for name in (node.sid, node.name, node.id)}
        return found.union(*(skin.joint_names for skin in self.skins))

    def add(self, other: RigGroup) -> None:
        """Add the joints and meshes of another group, which is empty afterwards."""
        self.roots |= other.roots
        self.parts += other.parts
        other.roots, other.parts = set(), []


def skin_of(part: Part) -> Skin:
    """Return the skin of a rigged object."""
    return part.document.skins[part.instance.skin]


def rig_groups(document: Collada, models: Iterable[Model]) -> list[RigGroup]:
    """Return the skeletons of a set with the meshes of each.

    Raises
    ------
    FormatError
        There are too many skeletons, or links to them.
    """
    indices = {id(found): JointIndex(found) for found in (document, *document.partners.values())}
    groups: list[RigGroup] = []
    of_root: dict[tuple[int, int], RigGroup] = {}
    for model in models:
        rigged = [part for part in (model.main, *model.parts.values()) if part.instance.skin >= 0]
        if not rigged:
            continue
        index = indices[id(rigged[0].document)]
        roots = _roots_of(rigged[0], index)
        keys = [(id(index), root) for root in roots or {-1}]
        joined = list(dict.fromkeys(of_root[key] for key in keys if key in of_root))
        if not joined and index.document is not document:
            joined = [group for group in groups[:1] if group.names.issuperset(skin_of(rigged[0]).joint_names)]
        if not joined:
            joined = [RigGroup(index)]
            groups += joined
        for other in joined[1:]:
            keys += [(id(index), root) for root in other.roots]
            joined[0].add(other)
        joined[0].parts += rigged
        if joined[0].index is index:
            joined[0].roots |= roots
            of_root.update(dict.fromkeys(keys, joined[0]))
    groups = _with_unused([group for group in groups if group.parts], indices[id(document)])
    if len(groups) > _MOST_SKELETONS:
        raise FormatError("The file has more than {:,} skeletons", _MOST_SKELETONS)
    return _with_one_avatar(groups)


def _roots_of(part: Part, index: JointIndex) -> set[int]:
    """Return the topmost joints of a rigged object: those of its ``<skeleton>`` links, and of its joints elsewhere.

    Joints elsewhere do not count if none is where the links lead.
    """
    linked: set[int] = set()
    for number in {index.find_near(link, part.node) for link in part.instance.skeletons} - {-1}:
        linked |= {index.roots[number]} if index.roots[number] >= 0 else index.joints_below(number)
    listed = {index.find(word, linked) for word in skin_of(part).joint_names} - {-1}
    of_joints = {index.roots[number] for number in listed if index.roots[number] >= 0}
    return linked | of_joints if of_joints & linked or not linked else linked


def _with_unused(groups: list[RigGroup], index: JointIndex) -> list[RigGroup]:
    """Add the joints that no mesh uses: to the skeleton beside them, such as control bones, or as skeletons."""
    held = {root: group for group in reversed(groups) if group.index is index for root in group.roots}
    beside = {index.nodes[root].parent: group for root, group in held.items()}
    for root in index.below:
        if root not in held:
            group = beside.setdefault(index.nodes[root].parent, RigGroup(index))
            groups += [] if group.parts or group.roots else [group]
            group.roots.add(root)
    return groups


def _with_one_avatar(groups: Sequence[RigGroup]) -> list[RigGroup]:
    """Join the groups of avatar joints that do not bind a joint at different places."""
    kept: list[RigGroup] = []
    avatars: list[tuple[RigGroup, dict[str, Matrix]]] = []
    for group in groups:
        is_avatar = any(avatar_joints.canonical(name) is not None for name in group.names)
        binds = binds_of(group.skins, lambda word: avatar_joints.canonical(word) or word) if is_avatar else {}
        alike = (first for first, others in avatars if first.index is group.index and _agree(others, binds))
        first = next(alike, None) if is_avatar else None
        if first is not None:
            first.add(group)
            continue
        kept.append(group)
        avatars += [(group, binds)] if is_avatar else []
    return kept


def binds_of(skins: Iterable[Skin], name_of: Callable[[str], str]) -> dict[str, Matrix]:
    """Return the (4, 4) bind matrices in bind space, by names; of several skins that list a joint the first decides."""
    found: dict[str, Matrix] = {}
    for skin in skins:
        for number in np.flatnonzero(skin.usable).tolist():
            name = name_of(skin.joint_names[number])
            if name not in found:
                found[name] = np.linalg.inv(skin.inverse_bind[number])
    return found


def _agree(one: dict[str, Matrix], other: dict[str, Matrix]) -> bool:
    """Return whether common joints are bound at the same places."""
    return all(
        np.abs(one[name] - other[name]).max() <= _SAME_BIND * max(1.0, float(np.abs(one[name]).max()))
        for name in one.keys() & other.keys()
    )
