"""Compare the nodes of a file with their objects; return the edits that bring the file up to date.

Transforms are compared in double precision, location and axes separately, each with a tolerance relative to its own
size: objects hold them in single precision. Channels are compared number by number, exactly.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.messages import Named, Report, counted, listed
from ..core.placement import ADDED, Channels, Matrix, ModelUse, NodeEdit, PlacedNode, PlacedObject, PlacementPart
from ..core.scene import Scene

_LOCATION, _LEAST = 2.4e-7, 1e-7
"""Tolerance of each coordinate of a location, relative to it: two steps of single precision; and in metres."""
_AXES = 1e-6
"""Tolerance of an axis, relative to its length: the matrix becomes a quaternion and scales in single precision."""
_CLEAN = math.radians(1e-4)
"""Tolerance for rotations by multiples of 90 degrees, in radians."""
_MOST_NAMES = 5


def is_same_place(one: Matrix, other: Matrix) -> bool:
    """Return whether two matrices (4, 4) are equal within the precision of an object's transform."""
    return bool(same_elements(one, other).all())


def same_elements(now: Matrix, base: Matrix) -> npt.NDArray[np.bool_]:
    """Return which elements of matrices (…, 4, 4) count as equal: whole axes, and each coordinate of the location."""
    same = np.ones(base.shape, bool)
    change, axes = now - base, base[..., :3, :3]
    same[..., :3, :3] = np.linalg.norm(change[..., :3, :3], axis=-2, keepdims=True) <= _AXES * np.linalg.norm(
        axes, axis=-2, keepdims=True
    )
    same[..., :3, 3] = np.abs(change[..., :3, 3]) <= _LOCATION * np.abs(base[..., :3, 3]) + _LEAST
    return same


def merged_channels(now: Channels, base: Channels) -> Channels:
    """Return channels in which all numbers that count as unchanged are exactly those of ``base``."""

    def merged(numbers: Sequence[float], old: Sequence[float], *, is_angle: bool = False) -> tuple[float, float, float]:
        x, y, z = (
            before if after == before or (is_angle and _is_same_turn(after, before)) else after
            for after, before in zip(numbers, old, strict=True)
        )
        return x, y, z

    return replace(
        now,
        location=merged(now.location, base.location),
        rotation=merged(now.rotation, base.rotation, is_angle=True),
        scale=merged(now.scale, base.scale),
    )


def _is_same_turn(now: float, base: float) -> bool:
    """Return whether an angle is near that of the file, which is a multiple of 90 degrees."""
    clean = float(np.float32(math.radians(90.0 * round(math.degrees(base) / 90.0))))
    return base == clean and abs(now - base) <= _CLEAN


def node_edits(
    base: Scene, part: PlacementPart, objects: Sequence[PlacedObject], report: Report, unshown: Collection[str] = ()
) -> list[NodeEdit]:
    """Return the edits of the nodes of a file that the objects show, in the order of the objects, removals last.

    Parameters
    ----------
    base:
        The scene of the file, for its materials.
    part:
        The nodes of the file. Those without a key are not edited.
    objects:
        All objects that represent nodes of the file or are added, in any order.
    report:
        Gets what is not written.
    unshown:
        Keys of nodes that have no objects, though they were not removed.
    """
    comparison = _Comparison(base, part, objects, report)
    comparison.removed = [key for key in comparison.removed if key not in unshown]
    return comparison.edits()


class _Comparison:
    """One comparison. Nodes are identified by their keys, added nodes by ``+`` and the index of their object."""

    def __init__(self, base: Scene, part: PlacementPart, objects: Sequence[PlacedObject], report: Report) -> None:
        self.part = part
        self.objects = objects
        self.report = report
        self.nodes: dict[str, PlacedNode] = {node.key: node for node in part.nodes if node.key}
        self.above = {node.key: self._above(node) for node in part.nodes}
        self.identities = {material.name: material.identity for material in base.materials}
        self.names: dict[int, str] = self._choose()
        self.index = {key: number for number, key in self.names.items()}
        self.removed = [key for key in self.nodes if key not in self.index]
        self.parents = {key: self._parent_of(number) for number, key in self.names.items()}
        self.lost: dict[str, list[str]] = {}
        self.others: dict[str, list[str]] = {}
        """Names of the changed nodes of other files, by file."""

    def edits(self) -> list[NodeEdit]:
        """Return the edits, and report changes that are not written."""
        hidden: dict[str, bool] = {}
        found = {key: self._edit(number, key, hidden) for number, key in self._parents_first()}
        edits = [found[key] for key in self.names.values()]
        edits += [NodeEdit(key, self.nodes[key].name, is_removed=True) for key in self.removed]
        edits = [edit for edit in edits if not (edit.is_empty or self._is_of_other_file(edit))]
        self._report()
        return edits

    def _above(self, node: PlacedNode) -> str:
        """Return the key of the nearest ancestor with a key."""
        while node.parent >= 0:
            node = self.part.nodes[node.parent]
            if node.key:
                return node.key
        return ""

    def _is_of_other_file(self, edit: NodeEdit) -> bool:
        """Return whether an edit is one of a node of another file, which is reported unless its parent is removed."""
        node = self.nodes.get(edit.key)
        if node is None or not node.owner:
            return False
        if not (edit.is_removed and self.above[edit.key] in self.removed):
            self.others.setdefault(node.owner, []).append(edit.title)
        return True

    def _choose(self) -> dict[int, str]:
        """Return the node key of each object. A node gets one object; other objects with its key become added nodes."""
        by_key: dict[str, list[int]] = {}
        for number, placed in enumerate(self.objects):
            by_key.setdefault(placed.key, []).append(number)
        names: dict[int, str] = {}
        originals: dict[str, int] = {"": -1}
        for key, node in self.nodes.items():
            candidates = [one for one in by_key.get(key, []) if not self._is_copy_elsewhere(one, node, originals)]
            if candidates:
                chosen = candidates[0]
                if len(candidates) > 1:
                    chosen = min(candidates, key=lambda number: self._strangeness(number, node, originals))
                originals[key] = chosen
                names[chosen] = key
        for number, placed in enumerate(self.objects):
            is_new = not (placed.key or placed.source) and bool(placed.properties)
            if number not in names and (is_new or (placed.key or placed.source) in self.nodes):
                names[number] = f"{ADDED}{number}"
        gone = [placed.title for placed in self.objects if placed.key and placed.key not in self.nodes]
        text = "{} not in the file any more, so not written: {}"
        self.report.loss_of("node-gone-from-file", text, gone, most=_MOST_NAMES)
        return dict(sorted(names.items()))

    def _is_copy_elsewhere(self, number: int, node: PlacedNode, originals: Mapping[str, int]) -> bool:
        """Return whether an object is a copy below another object than the node, in a file that cannot change parents.

        The object above may be a copy, too.
        """
        placed, key = self.objects[number], self.above[node.key]
        if node.channels is None or not key or placed.parent < 0 or placed.parent == originals.get(key):
            return False
        above = self.objects[placed.parent]
        return placed.is_likely_copy or above.key == key or (above.is_known and not placed.is_known)

    def _strangeness(self, number: int, node: PlacedNode, originals: Mapping[str, int]) -> tuple[object, ...]:
        """Return a sort key that puts the object to which a node belongs before its copies."""
        placed = self.objects[number]
        is_below = placed.parent == originals.get(self.above[node.key], -1)
        if node.channels is not None:  # such a file cannot change a parent
            return not placed.is_known, not is_below, placed.is_likely_copy, number
        is_there = is_same_place(_in_file(placed, placed.matrix), node.matrix)
        return not placed.is_known, not (is_below and is_there), not is_there, placed.is_likely_copy, number

    def _parent_of(self, number: int) -> str:
        """Return the key of the parent that the node of an object gets."""
        placed, key = self.objects[number], self.names[number]
        base, above = self.above.get(key), placed.parent
        parent = self.objects[above].key if above >= 0 else ""
        if base is not None and self.names.get(above, parent) == placed.given_parent:
            return self._remaining(base)
        while above >= 0 and above not in self.names:
            above = self.objects[above].parent
        if above >= 0:
            return self.names[above]
        if base is not None and base not in self.index:
            return self._remaining(base)
        return self._root(key)

    def _remaining(self, key: str) -> str:
        """Return the nearest node that remains: this one or one of its ancestors."""
        while key and key not in self.index:
            key = self.above[key]
        return key

    def _root(self, key: str) -> str:
        """Return the parent of nodes without a parent: none, or the only root."""
        roots = [node.key for node in self.part.nodes if node.parent < 0]
        is_below = self.part.has_one_root and len(roots) == 1 and roots[0] != key
        return roots[0] if is_below and roots[0] in self.index else ""

    def _parents_first(self) -> Iterator[tuple[int, str]]:
        """Yield the objects with their keys, parents first. Parents that form a loop are replaced by the root."""
        done: set[str] = {""}
        for start in self.names.values():
            chain = [start]
            while self.parents[chain[-1]] not in done:
                above = self.parents[chain[-1]]
                if above in chain:  # some node keeps a parent in the file that its object lost
                    loop = chain[chain.index(above) :]
                    lost = [key for key in loop if self.objects[self.index[key]].parent < 0]
                    self.parents[[chain[-1], *lost][-1]] = ""
                    chain = [start]
                else:
                    chain.append(above)
            for key in reversed(chain):
                if key not in done:
                    done.add(key)
                    yield self.index[key], key

    def _edit(self, number: int, key: str, hidden: dict[str, bool]) -> NodeEdit:
        """Return what to change in the file for one object, whose node has the key, or gets it as a new node."""
        placed = self.objects[number]
        is_added = key not in self.nodes
        source = (placed.key or placed.source) if is_added else key
        node = self.nodes.get(source) or PlacedNode(placed.name, channels=Channels())
        edit = NodeEdit(key, placed.title, source=node.key if is_added else "")
        if is_added or self.parents[key] != self.above[key]:
            edit.parent = self.parents[key]
        if is_added or (placed.name != node.name and "name" not in self.part.not_held):
            edit.name = placed.name
        if node.channels is not None:
            self._set_channels(edit, placed, node)
        elif not node.is_unplaced:
            self._set_matrix(edit, number, node)
        if "is_hidden" not in self.part.not_held:
            self._set_hidden(edit, placed, node, hidden)
        if "materials" not in self.part.not_held:
            self._set_materials(edit, placed, node)
        changed = {name: value for name, value in placed.properties.items() if value != node.properties.get(name)}
        edit.properties = dict(placed.properties) if is_added and not source else changed
        return edit

    def _set_channels(self, edit: NodeEdit, placed: PlacedObject, node: PlacedNode) -> None:
        """Set the transform of a node whose file has channels."""
        now, base = placed.channels, node.channels
        if node.is_unplaced or now is None or base is None or (placed.is_place_kept and not edit.is_added):
            return
        changed = merged_channels(now, base)
        if changed == replace(base, order=changed.order):
            return
        if not np.isfinite([changed.location, changed.rotation, changed.scale]).all():
            self.lost.setdefault("no finite transform", []).append(placed.title)
        elif 0.0 in changed.scale and 0.0 not in base.scale:
            self.lost.setdefault("a scale of zero", []).append(placed.title)
        elif edit.parent is None or edit.is_added:
            edit.channels, edit.before, edit.matrix = changed, base, changed.matrix()

    def _set_matrix(self, edit: NodeEdit, number: int, node: PlacedNode) -> None:
        """Set the changed matrix of an edit; elements that count as equal keep their values in the file."""
        placed = self.objects[number]
        if placed.is_place_kept and not edit.source:
            if edit.parent is not None:
                edit.parent = None
                self.parents[edit.key] = self.above[edit.key]
            return
        local = _in_file(placed, self._local(number, self.parents[edit.key]))
        if not local.any():
            return
        same = same_elements(local, node.matrix)
        if same.all() and not edit.source:
            return
        changed = np.where(same, node.matrix, local)
        if not np.isfinite(changed).all():
            self.lost.setdefault("no finite transform", []).append(placed.title)
            return
        if np.linalg.det(changed) == 0.0 and np.linalg.det(node.matrix) != 0.0:
            self.lost.setdefault("a scale of zero", []).append(placed.title)
            return
        edit.matrix = changed

    def _local(self, number: int, parent: str) -> Matrix:
        """Return the matrix of an object relative to another node, computed through their nearest common ancestor."""
        above = self.index[parent] if parent else -1
        chain = {-1}
        while above >= 0:
            chain.add(above)
            above = self.objects[above].parent
        matrix, at = self.objects[number].matrix, self.objects[number].parent
        while at not in chain:
            matrix, at = self.objects[at].matrix @ matrix, self.objects[at].parent
        if at == (above := self.index[parent] if parent else -1):
            return matrix
        down = np.identity(4)
        while above != at:
            down, above = self.objects[above].matrix @ down, self.objects[above].parent
        try:
            return np.linalg.solve(down, matrix).astype(np.float64)
        except np.linalg.LinAlgError:
            return matrix

    def _set_hidden(self, edit: NodeEdit, placed: PlacedObject, node: PlacedNode, hidden: dict[str, bool]) -> None:
        """Hide or show a node as its object is; ``hidden`` holds whether each node above is hidden in the file."""
        is_below_hidden = hidden.get(self.parents[edit.key], False)
        own = node.is_hidden
        if placed.is_hidden is not None and not is_below_hidden:
            own = placed.is_hidden
        elif placed.is_hidden is False and is_below_hidden:
            self.lost.setdefault("a hidden parent", []).append(placed.title)
        if own != node.is_hidden:
            edit.is_hidden = own
        hidden[edit.key] = own or is_below_hidden

    def _set_materials(self, edit: NodeEdit, placed: PlacedObject, node: PlacedNode) -> None:
        """Set the materials that differ from those of the file, by slot; note those that are not in the project."""
        slots = node.content.slots if isinstance(node.content, ModelUse) else ()
        changed: dict[int, str] = {}
        for now in placed.materials:
            if now.slot >= len(slots):
                continue
            base = slots[now.slot]
            identity = self.identities.get(base.material or "", "")
            if now.identity == identity and (identity or now.name == (base.material or base.name)):
                continue
            if now.identity:
                changed[now.slot] = now.identity
            else:
                name = Named("layer", f"{placed.title}: {now.name}")
                self.lost.setdefault("a material that is not in the project", []).append(name)
        edit.materials = changed

    def _report(self) -> None:
        """Report the changes that were not written, by cause, and those that belong to other files."""
        templates = {
            "a scale of zero": ("place-not-written", "{} with a scale of zero, whose place is not written: {}"),
            "no finite transform": (
                "place-not-written",
                "{} with NaN or infinite numbers in the transform, so the place is not written: {}",
            ),
            "a hidden parent": ("shown-below-hidden", "{} shown here, but hidden in the file with a parent: {}"),
            "a material that is not in the project": (
                "material-not-written",
                "{} with a material that is not in the project, so not written: {}",
            ),
        }
        for cause, names in self.lost.items():
            code, template = templates[cause]
            number = counted(len(names), "surface" if cause.startswith("a material") else "object")
            (self.report.note if code == "shown-below-hidden" else self.report.loss)(
                code, template, number, listed(names, _MOST_NAMES)
            )
        for owner, names in self.others.items():
            template = "{} of {}, which this file does not hold; open that file to change them: {}"
            number = counted(len(names), "changed object")
            self.report.loss("belongs-to-other-file", template, number, owner, listed(names, _MOST_NAMES))


def _in_file(placed: PlacedObject, matrix: Matrix) -> Matrix:
    """Return the matrix of the file for a matrix of an object."""
    if placed.shear is None:
        return matrix
    with np.errstate(invalid="ignore"):  # infinite numbers are reported
        return matrix @ placed.shear
