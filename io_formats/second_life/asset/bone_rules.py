"""Check the bones of models and the weights for them (formats page, sections 4.1, 4.3 and 4.4)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.messages import Details, Elements, Message, Text, counted, error, listed, of_kind, warning
from ...core.scene import Mesh, Node
from ...geometry.connectivity import places
from ..avatar import joints as avatar_joints
from ..avatar.other_rigs import armature_tilt
from ..models.models import Model

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CheckedModel:
    """A model to check, and findings about its finest level or another node."""

    model: Model
    sizes: Mapping[str, int]
    stored: bool

    def about(self, node: Node | None = None, *, is_fixable: bool = False, **members: Flags) -> Details:
        """Return the details of a finding about a node, by default the finest level.

        The keyword argument ``triangles`` or ``vertices`` marks the elements that a report selects.
        """
        names = ((node or self.model.finest).name,) if is_fixable else ()
        return Details(item=self.item(node), elements=_elements(node, members), is_fixable=is_fixable, names=names)

    def item(self, node: Node | None = None) -> str:
        """Return the name of the object concerned, or for a part without an object, the part and its model."""
        name = self.model.name
        if node is None or node is self.model.finest:
            return Text("Object '{}'", name) if name else ""
        if name and node.name and node.name != name and not node.generated_from:
            return Text("Object '{}'", node.name)
        part = self.model.part_name(node)
        return Text("Object '{}', {}", name, part) if name else part.capitalized()

    def level_nodes(self, *, made: bool = True) -> Iterator[tuple[int, Node, Mesh]]:
        """Yield the existing levels, the finest first; with ``made``, also those that an export generates."""
        for number, node in enumerate(self.model.levels):
            if node is not None and node.mesh is not None and (made or not node.generated_from):
                yield number, node, node.mesh


def _elements(node: Node | None, members: Mapping[str, Flags]) -> Elements | None:
    """Return triangles or vertices of a node as elements, if it is an object in Blender."""
    for kind, marked in members.items():
        if node is not None and not node.generated_from:
            return Elements(kind, node.name, tuple(np.flatnonzero(marked).tolist()))
    return None


_WEIGHT_STEP = 2 / 65535
_TURNED = 0.01
_LEANS = np.radians(1.0)
"""Angle above which an avatar does not stand upright. Leaning by up to 10° counts as 0, since proportions cause as
much."""

_WEAKEST = 10
"""Number of joints that the message about too many joints names."""
_EXTRAS = {
    "Tail": ("the tail", 0.25, 0.5),
    "Wing": ("the wings", 0.25, 0.5),
    "Limb": ("the hind limbs", 0.25, 0.5),
    "Collision": ("collision volumes", 0.01, 0.1),
}
"""Label of each group of joints, and two shares: of all weights, and of the weights of the vertices concerned. Weights
below both are likely to be a mistake. Automatic weights of a shirt for all bones reach 21 % and 42 % on wings. A tail
is weighted for its own bones, and fitted meshes have 10 % and more of their weights on volumes."""


class BoneRules(CheckedModel):
    """The rules for joints and weights."""

    def joints(self) -> Iterator[Message]:
        """Check the joints of the mesh and how it is bound to them (sections 4.3 and 4.4)."""
        skeleton, skin = self.model.skeleton, self.model.finest.skin
        if skeleton is None:
            return
        if not self.stored and (angle := armature_tilt(skeleton)) > _LEANS:
            yield warning(
                "avatar-not-upright",
                "it does not stand upright, but leans by {:.0f}°, and is exported as it is; "
                "rotate it with its meshes until its head is above its feet",
                np.degrees(angle),
                item=Text("Armature '{}'", skeleton.name),
                names=(skeleton.name,),
            )
        used = np.unique(np.concatenate([_used_joints(mesh) for _number, _node, mesh in self.level_nodes()]))
        names = [skeleton.joints[joint].name for joint in used.tolist() if joint < len(skeleton.joints)]
        unknown = [name for name in names if avatar_joints.canonical(name) is None]
        if unknown:
            yield error(
                "unknown-bones",
                "{} it that the avatar does not have: {}; the uploader leaves out the whole rig",
                counted(len(unknown), "bone moves", "bones move"),
                listed(of_kind("bone", unknown)),
                item=self.item(),
                elements=Elements("bones", skeleton.name, tuple(unknown)),
            )
        known = {avatar_joints.canonical(name) for name in names} - {None}
        if len(known) > avatar_joints.MOST_JOINTS:
            weakest, vertices = self._weakest_joints()
            yield error(
                "too-many-joints",
                "{} bones move it; a mesh may have {}. Those with the least weight: {}",
                *(len(known), avatar_joints.MOST_JOINTS, listed(of_kind("bone", weakest), len(weakest))),
                **self.about(self.model.finest, vertices=vertices),
            )
        if self.stored and skin is not None:
            if len(skin.joint_names) > avatar_joints.MOST_JOINTS:
                template, count = "it is bound to {} joints; a mesh may have {}", len(skin.joint_names)
                yield warning("too-many-joints", template, count, avatar_joints.MOST_JOINTS, item=self.item())
            idle = [name for name in skin.joint_names if avatar_joints.canonical(name) is None and name not in unknown]
            if idle:
                template = "it lists joints that the avatar does not have: {}"
                yield warning("unknown-joints-listed", template, listed(of_kind("bone", idle)), item=self.item())
            if _is_turned(skin.bind_shape):
                template = "its bind shape matrix has a rotation; the uploader warns about it, but the mesh works"
                yield warning("turned-bind-shape", template, item=self.item())

    def _weakest_joints(self) -> tuple[list[str], Flags]:
        """Return the joints with the least weight in the finest level, the least first, and the vertices they move."""
        skeleton, mesh = self.model.skeleton, self.model.mesh
        if skeleton is None or mesh.joint_indices is None or mesh.joint_weights is None:
            return [], np.zeros(len(mesh.points), bool)
        weights = np.maximum(mesh.joint_weights, 0.0)
        total = np.bincount(mesh.joint_indices.reshape(-1), weights.reshape(-1), len(skeleton.joints))
        used = np.flatnonzero(total > 0)
        weakest = used[np.argsort(total[used], kind="stable")][:_WEAKEST]
        moved = np.isin(mesh.joint_indices, weakest) & (weights > 0)
        return [skeleton.joints[number].name for number in weakest.tolist()], np.any(moved, axis=1)

    def weights(self) -> Iterator[Message]:
        """Check for vertices without weights, and for points at one position with different weights (section 4.1)."""
        if self.model.skeleton is None:
            return
        for _number, node, mesh in self.level_nodes(made=False):
            used = np.zeros(len(mesh.points), bool)
            used[mesh.corner_point] = True
            if mesh.joint_weights is None or mesh.joint_indices is None:
                is_static = self.model.mesh.joint_weights is None
                effect = Text("it is written without its rig" if is_static else "all follow the first joint")
                yield warning("no-weights", "no vertex has weights; {}", effect, **self.about(node))
                continue
            loose = used & ~(mesh.joint_weights > 0).any(axis=1)
            if loose.any():
                number = counted(int(loose.sum()), "vertex has", "vertices have")
                template = "{} no weights and will follow the first joint"
                yield warning("vertices-without-weights", template, number, **self.about(node, vertices=loose))
            if not self.stored:
                torn = used & _disagreeing(mesh)
                if torn.any():
                    yield warning(
                        "weights-differ-at-position",
                        "{} at the position of another vertex with different weights; the uploader gives both the "
                        "weights of the last one",
                        counted(int(torn.sum()), "vertex is", "vertices are"),
                        **self.about(node, vertices=torn),
                    )

    def stray_weights(self) -> Iterator[Message]:
        """Check for small weights for tail, wings, hind limbs and collision volumes beside the main weights."""
        skeleton, mesh = self.model.skeleton, self.model.mesh
        if self.stored or skeleton is None or mesh.joint_weights is None or mesh.joint_indices is None:
            return
        names = [avatar_joints.canonical(joint.name) or "" for joint in skeleton.joints]
        groups = [avatar_joints.table()[name].group if name else "" for name in names]
        weights = np.maximum(mesh.joint_weights, 0.0)
        total = weights.sum(axis=1)
        for group, (name, of_all, of_vertex) in _EXTRAS.items():
            is_extra = np.array([other == group for other in groups], bool)[mesh.joint_indices]
            extra = np.where(is_extra, weights, 0.0).sum(axis=1)
            stray = extra > 0
            if not stray.any():
                continue
            share = float(extra.sum() / total.sum())
            if not (share < of_all and float((extra[stray] / total[stray]).mean()) < of_vertex):
                continue
            joints = [names[joint] for joint in np.unique(mesh.joint_indices[is_extra & (weights > 0)]).tolist()]
            yield warning(
                "stray-weights",
                "{} {} a little, with {:.1%} of its weights: {}; if that is a mistake, set Bones for Automatic Weights "
                "to Body and use Bind to Avatar, or remove these vertex groups",
                counted(int(stray.sum()), "vertex follows", "vertices follow"),
                Text(name),
                share,
                listed(of_kind("bone", joints)),
                **self.about(self.model.finest, vertices=stray),
            )


def _used_joints(mesh: Mesh) -> npt.NDArray[np.int32]:
    """Return the joints with weights."""
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return np.empty(0, np.int32)
    return np.unique(mesh.joint_indices[mesh.joint_weights > 0])


def _is_turned(matrix: npt.NDArray[np.float64]) -> bool:
    """Return whether a matrix rotates by more than the uploader accepts.

    Its limit is a difference of 0.01 between the quaternion and the identity.
    """
    linear = matrix[:3, :3]
    length = np.linalg.norm(linear, axis=0)
    if not np.isfinite(linear).all() or not (length > 0).all():
        return False
    cosine = (np.trace(linear / length) - 1) / 2
    half = np.arccos(np.clip(cosine, -1, 1)) / 2
    return bool(2 * np.sin(half / 2) > _TURNED)


def _disagreeing(mesh: Mesh) -> Flags:
    """Return which points are at the same position as another point with different weights, (P,)."""
    none = np.zeros(len(mesh.points), bool)
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return none
    place = places(mesh.points)
    shared = np.flatnonzero(np.bincount(place)[place] > 1)
    if not len(shared):
        return none
    weights = np.maximum(mesh.joint_weights[shared], 0).astype(np.float64)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
    # Hash of each point's weights that does not depend on the order of its joints or on entries with weight 0.
    joints = mesh.joint_indices[shared].astype(np.float64)
    print_of = np.column_stack([(weights * np.sin(joints * factor + factor)).sum(axis=1) for factor in (1.37, 2.91)])
    order = np.argsort(place[shared], kind="stable")
    ordered = place[shared][order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    leader = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    differs = (np.abs(print_of[order] - print_of[order][leader]) > 4 * _WEIGHT_STEP).any(axis=1)
    torn_places = np.zeros(int(place.max()) + 1, bool)
    torn_places[ordered[differs]] = True
    return torn_places[place]
