"""Skins of a group of meshes -> a skeleton, and the binding of each mesh to it (format page, section 5)."""

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.messages import Named, Report, counted, listed, of_kind
from ...core.scene import AnyArray, FloatArray, IntArray, Joint, Layer, Mesh, Skeleton
from ...core.scene import Skin as SceneSkin
from ...geometry.normals import unit
from ...geometry.transforms import Matrix, matrices_to_quaternions, matrix_of_linear
from ..avatar import joints as avatar_joints
from ..avatar.joint_positions import MOVED, binding_of, millimetres, rows_of
from ..avatar.skeletons import bound_skeleton
from ..models import space
from ..models.faces import strongest
from ..models.skin_block import SkinBlock
from .document import MOST_NAMED, Collada, Findings, Skin
from .format import ReadOptions
from .rig_groups import RigGroup, binds_of

_LEAST_UNIT = 3.0
"""Limit for scales due to the shape of an avatar, between 1/3 and this value. Other scales mean another unit."""
_NEAR = 0.02
"""Median distance of the joints from the avatar's, in metres, up to which no other transform is tried."""

_UP = {"X_UP": ((0, -1, 0), (0, 0, -1), (1, 0, 0)), "Y_UP": ((1, 0, 0), (0, 0, -1), (0, 1, 0))}
_QUARTER = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
"""Rotation by 90° about Z, from a figure that faces -Y to the avatar, which faces +X."""


@dataclass
class BindSpace:
    """The transform from the bind space of a file to avatar space."""

    to_avatar: Matrix
    """(4, 4) from bind space to avatar space."""
    of_axes: Matrix
    """(4, 4): the factor of ``to_avatar`` that remains if the rotation and scale that align the joints' axes with the
    avatar's are left out; the identity for "bind"."""
    found_by: str = "bind"
    """"bind" if the transform follows from the bind matrices alone, as in the viewer. Otherwise the viewer shows the
    mesh turned or scaled: "asset" if unit and up axis are needed; either with ", facing -Y" if the figure faces -Y."""


def asset_matrix(document: Collada) -> Matrix:
    """Return the transform by unit and up axis of a file, (4, 4), to Blender's metres and axes."""
    return matrix_of_linear(np.array(_UP.get(document.up_axis, np.identity(3)), np.float64) * document.meter)


def bind_space(binds: Mapping[str, Matrix], asset: Matrix) -> BindSpace:
    """Return the transform from bind space to avatar space.

    Parameters
    ----------
    binds:
        (4, 4) bind matrices of joints by their name in the table.
    asset:
        Result of :func:`asset_matrix`. It is returned if the file has no known joints.
    """
    if not binds:
        return BindSpace(asset, np.identity(4), "asset")
    names = list(binds)
    bound = np.stack([binds[name] for name in names])
    expected = np.stack([avatar_joints.rest_matrices()[name] for name in names])
    turn, factor = _turn_and_factor(bound[:, :3, :3], expected[:, :3, :3])
    of_binds = matrix_of_linear(turn * factor)
    quarter = matrix_of_linear(_QUARTER)
    candidates = [
        BindSpace(of_binds, np.identity(4)),
        BindSpace(asset, asset @ matrix_of_linear(turn.T / factor), "asset"),
        BindSpace(quarter @ of_binds, quarter, "bind, facing -Y"),
        BindSpace(quarter @ asset, quarter @ asset @ matrix_of_linear(turn.T / factor), "asset, facing -Y"),
    ]
    heads = bound[:, :3, 3]
    apart = [
        float(np.median(np.linalg.norm(heads @ found.to_avatar[:3, :3].T - expected[:, :3, 3], axis=1)))
        for found in candidates
    ]
    nearest = int(np.argmin(apart))
    return candidates[nearest if apart[0] > _NEAR and apart[nearest] < apart[0] / 2 else 0]


def _turn_and_factor(bound: Matrix, expected: Matrix) -> tuple[Matrix, float]:
    """Return the rotation by multiples of 90°, (3, 3), and the scale that map the joints' axes to the expected ones."""
    lengths, usual = (np.linalg.norm(axes, axis=1) for axes in (bound, expected))
    axes, wanted = bound / lengths[:, None], expected / usual[:, None]
    turn = np.rint(np.median(axes @ np.swapaxes(wanted, 1, 2), axis=0)).T + 0.0
    if not np.array_equal(turn @ turn.T, np.identity(3)) or np.linalg.det(turn) < 0:
        turn = np.identity(3)
    scale = float(np.median(lengths / usual))
    return turn, 1.0 if 1 / _LEAST_UNIT <= scale <= _LEAST_UNIT else 1 / scale


_MOST_STORED = 64
"""Largest number of weights of a vertex that are read, so that a damaged file cannot ask for endless memory."""
_SHARE_DISTANCE = 0.005
"""Largest distance of joints in metres from the bones of an armature that the meshes can share."""
_UNMOVED = 1e-5
"""Tolerance for the elements of matrices up to which they count as equal to the identity."""
_POSED = 1e-3
"""Tolerance for the transforms of joints up to which the nodes move all of them alike, relative to their size."""
_FLAT = 1e-30
"""Determinant of a joint's axes below which they cannot be used."""
_NAMELESS = "Joint"
"""Name of joints that have neither sid, name nor id."""
_SHAPED = 1e-3
"""Largest relative deviation of a joint's scale from its default. Above it, an avatar's shape is assumed."""


class Rig:
    """The joints that the skins of a group bind meshes to.

    The first skin that lists a joint decides where it is; in all real files it is the same in all skins. The joints of
    a rig other than an avatar's are where the nodes place them, as are those of an avatar without a mesh.
    """

    def __init__(self, group: RigGroup, name: str, options: ReadOptions, report: Report) -> None:
        self.report = report
        self.group = group
        self.document = group.index.document
        self.at_table = options.skeleton_rest == "TABLE"
        self._names: dict[str, str] = {}
        self.words: dict[str, str] = {}
        """The word of the file for each joint, by the name of the joint."""
        self.nodes: dict[str, int] = {}
        """The node of each joint that has one."""
        used: dict[str, None] = {}
        for skin in group.skins:
            names = self.names(skin)
            used.update(dict.fromkeys(names[number] for number in np.unique(skin.joints).tolist()))
        listed_names = list(self.words)
        self._add_other_nodes()
        self.binds = binds_of(group.skins, self.name) if group.parts else self._binds_of_nodes()
        """(4, 4) bind matrices in bind space; joints without a usable matrix are not included."""
        listed_names = listed_names if group.parts else list(self.words)
        self.used = used or dict.fromkeys(listed_names)
        self.known = [joint for joint in listed_names if joint in avatar_joints.table()]
        self.space: BindSpace = bind_space(
            {joint: self.binds[joint] for joint in self.known if joint in self.binds}, asset_matrix(self.document)
        )
        self.turn = space.TO_BLENDER if self.known else np.identity(4)
        """Rotation from avatar space to Blender's; the identity for a rig of another kind, which keeps its facing
        direction."""
        from_axes = np.linalg.inv(self.space.of_axes)
        self.rests = {joint: self.space.to_avatar @ bind @ from_axes for joint, bind in self.binds.items()}
        """(4, 4) rest matrices in avatar space, for the joints that have a bind matrix in the file, and for those that
        the avatar does not have and the nodes place."""
        self._place_by_nodes()
        self.skeleton, self.number_of = self._skeleton(name, listed_names, options)
        names_of_nodes = Counter(self.document.nodes[number].name for number in group.joint_nodes)
        for joint in self.skeleton.joints:
            number = self.nodes.get(joint.name, -1)
            label = self.document.nodes[number].name if number >= 0 else ""
            if joint.name not in avatar_joints.table() and names_of_nodes[label] == 1:
                joint.label = label

    # -- joints ---------------------------------------------------------------------------------

    def name(self, word: str) -> str:
        """Return the name of a joint in a skin: canonical if its word, or the sid or name of its node, is known."""
        if word not in self._names:
            number = self.group.index.find(word, self.group.roots)
            node = None if number < 0 else self.document.nodes[number]
            spellings = (word,) if node is None else (word, node.sid, node.name)
            found = next(filter(None, map(avatar_joints.canonical, spellings)), word)
            self._names[word] = found
            self.words.setdefault(found, word)
            if number >= 0:
                self.nodes.setdefault(found, number)
        return self._names[word]

    def names(self, skin: Skin) -> list[str]:
        """Return the names of the joints of a skin."""
        return [self.name(word) for word in skin.joint_names]

    def _add_other_nodes(self) -> None:
        """Add the joints among the nodes that no skin lists."""
        taken, roots = set(self.nodes.values()), self.group.index.roots
        counts: dict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        for number in self.group.joint_nodes:
            node = self.document.nodes[number]
            spellings = [spelling for spelling in (node.sid, node.name, node.id) if spelling]
            known = [name for name in map(avatar_joints.canonical, spellings) if name is not None]
            names = [*known[:1], *(spellings or [_NAMELESS])]
            name = next((name for name in names if name not in self.words), "")
            if not name and not known and roots[self.nodes.get(names[0], number)] == roots[number]:
                # A sid is unique among the children of a node only, such as that of a finger in each hand.
                numbered = (f"{names[0]}.{count:03d}" for count in counts[names[0]])
                name = next(name for name in numbered if name not in self.words)
            if number not in taken and name:
                self.words[name] = (spellings or names)[0]
                self.nodes[name] = number

    def _binds_of_nodes(self) -> dict[str, Matrix]:
        """Return the matrices of the nodes, (4, 4), in place of bind matrices."""
        table, worlds = avatar_joints.table(), self.document.worlds
        found: dict[str, Matrix] = {}
        for joint in (joint for joint in dict.fromkeys([*table, *self.nodes]) if joint in self.nodes):
            number = self.nodes[joint]
            world, holder = worlds[number].copy(), self.document.nodes[number].parent
            known = avatar_joints.ancestors(joint)[1:] if joint in table else []
            above = next((name for name in known if name in found), "")
            if above and self._joint_above(number) != above:
                # Avastar writes joints beside each other, with translations relative to their real parents.
                world[:3, 3] += found[above][:3, 3] - (worlds[holder][:3, 3] if holder >= 0 else 0.0)
            if abs(np.linalg.det(world[:3, :3])) < _FLAT:
                world[:3, :3] = np.identity(3)
            found[joint] = world
        return found

    def _joint_above(self, number: int, among: Container[str] | None = None) -> str:
        """Return the nearest joint above a node, of those in ``among`` if given; empty if there is none."""
        above = self.document.nodes[number].parent
        while above >= 0:
            name = self._joint_at.get(above, "")
            if name and (among is None or name in among):
                return name
            above = self.document.nodes[above].parent
        return ""

    @functools.cached_property
    def _joint_at(self) -> dict[int, str]:
        """The joint of each node."""
        return {number: joint for joint, number in self.nodes.items()}

    def _place_by_nodes(self) -> None:
        """Place joints by their nodes: all of a rig other than an avatar's, and those that an avatar does not have."""
        placed = {joint: self.space.to_avatar @ self.document.worlds[number] for joint, number in self.nodes.items()}
        if not self.known:
            self.rests.update(placed)
            return
        for joint, number in sorted(self.nodes.items(), key=lambda item: item[1]):
            if joint not in self.rests and joint not in avatar_joints.table():
                above = self._joint_above(number, self.rests)
                self.rests[joint] = np.identity(4)
                self.rests[joint][:3, 3] = placed[joint][:3, 3]
                if above:
                    self.rests[joint][:3, 3] += (self.rests[above] - placed[above])[:3, 3]

    def _moves(self, skin: Skin) -> tuple[Matrix, Matrix]:
        """Return the transform by which the nodes move the joints from where a skin binds them.

        Returns
        -------
        The transform that the joints have in common, (4, 4), and the transform of each, (n, 4, 4).
        """
        places = np.where(skin.usable, [self.nodes.get(name, -1) for name in self.names(skin)], -1)
        found = np.array([self.document.worlds[max(place, 0)] for place in places.tolist()]) @ skin.inverse_bind
        known = np.flatnonzero(places >= 0)
        chosen = np.intersect1d(skin.joints, known) if np.isin(skin.joints, known).any() else known
        common = np.median(found[chosen], axis=0) if len(chosen) else np.identity(4)
        if np.abs(common - np.identity(4)).max() < _UNMOVED:
            common = np.identity(4)
        found[places < 0] = common
        return common, found

    # -- skeleton -------------------------------------------------------------------------------

    def _skeleton(self, name: str, names: Iterable[str], options: ReadOptions) -> tuple[Skeleton, dict[str, int]]:
        """Return the skeleton, and the index in it of each joint that it has."""
        name = self._name() or name
        if not self.known:
            return self._other_skeleton(name, list(self.words))
        table = avatar_joints.table()
        whole = options.skeleton_joints == "AVATAR"
        needed = {above for joint in self.used if joint in table for above in avatar_joints.ancestors(joint)}
        chosen = [joint for joint in names if joint in self.used or (joint in table and table[joint].is_bone and whole)]
        chosen += [joint for joint in names if joint in needed and table[joint].is_bone]
        chosen += [joint for joint in self.words if whole and joint not in table]
        chosen = list(dict.fromkeys(chosen))
        expected = avatar_joints.rest_matrices()
        rests = np.array([self.rests.get(joint, expected.get(joint, np.identity(4))) for joint in chosen])
        parents = {joint: above for joint, above in self._parents(chosen).items() if above and joint not in table}
        skeleton, numbers = bound_skeleton(
            name, chosen, rests, whole_avatar=whole, rest_of_file=not self.at_table, parents=parents
        )
        skeleton.share_distance = _SHARE_DISTANCE
        return skeleton, dict(zip(chosen, numbers, strict=True))

    def _name(self) -> str:
        """Return the name of the node that holds the joints, or an empty text."""
        nodes = self.document.nodes
        above = next((nodes[number].parent for number in self.group.joint_nodes), -1)
        return nodes[above].name if above >= 0 else ""

    def _parents(self, chosen: Sequence[str]) -> dict[str, str]:
        """Return, for each chosen joint, the name of its nearest chosen ancestor in the node tree, or an empty text."""
        among = set(chosen)
        return {joint: self._joint_above(self.nodes[joint], among) if joint in self.nodes else "" for joint in chosen}

    def _other_skeleton(self, name: str, joints: list[str]) -> tuple[Skeleton, dict[str, int]]:
        """Return the skeleton of a rig other than an avatar's, with the positions and axes of the bind matrices."""
        number_of = {joint: number for number, joint in enumerate(joints)}
        rests = np.array([self.rests.get(joint, np.identity(4)) for joint in joints])
        names_above = self._parents(joints)
        parents = [number_of.get(names_above[joint], -1) for joint in joints]
        lengths = np.linalg.norm(rests[:, :3, :3], axis=1)
        rests[:, :3, :3] /= np.where(lengths > 0, lengths, 1)[:, None]
        rests[:, :3, :3] = _rotations(rests[:, :3, :3])
        rotations = matrices_to_quaternions(rests[:, :3, :3])
        skeleton = Skeleton(name)
        for number, joint in enumerate(joints):
            above = parents[number]
            local = rests[number] if above < 0 else np.linalg.pinv(rests[above]) @ rests[number]
            rotation = rotations[number] if above < 0 else matrices_to_quaternions(local[None, :3, :3])[0]
            skeleton.joints.append(
                Joint(joint, above, tuple(local[:3, 3].tolist()), tuple(rotation.tolist()))  # type: ignore[arg-type]
            )
        return skeleton, number_of

    # -- binding --------------------------------------------------------------------------------

    def place(self, skin: Skin) -> Matrix:
        """Return the transform, (4, 4), from the space of a geometry to Blender's, in which the creator modelled it."""
        moved = np.identity(4) if self.known else self._moves(skin)[0]
        return self.turn @ self.space.to_avatar @ moved @ skin.bind_shape

    def skin(self, skin: Skin) -> SceneSkin | None:
        """Return the binding of a mesh in Blender's space; None if the import does not use the file's own matrices.

        The binding also includes joints of the file's other skins that are ancestors of a joint of this skin.
        """
        if self.at_table or not self.known:
            return None
        names = list(dict.fromkeys(self.names(skin)))
        above = {above for name in names if name in self.known for above in avatar_joints.ancestors(name)}
        names += [joint for joint in self.rests if joint in above and joint not in names]
        usable = np.array([joint in self.rests for joint in names])
        rests = np.array([self.rests.get(joint, np.identity(4)) for joint in names])
        inverse_bind = np.linalg.inv(rests)
        block = SkinBlock(
            names, rows_of(inverse_bind), rows_of(np.identity(4)), usable=None if usable.all() else usable
        )
        positions = self._positions(names)
        if positions is not None:
            inverse_bind[:, :3, 3] = positions
            block.alt_inverse_bind = rows_of(inverse_bind)
        binding = binding_of(block, Report(), is_aligned=True)
        return None if binding is None else binding.skin

    def _positions(self, names: Sequence[str]) -> Matrix | None:
        """Return the positions of joints relative to their parents, (n, 3), or None if the nodes move no joint."""
        table = avatar_joints.table()
        unknown = np.zeros(3)
        expected = [np.array(table[joint].position) if joint in table else unknown for joint in names]
        best: tuple[int, Matrix] | None = None
        for turned in (False, True):
            given = [self._node_position(joint, turned=turned) for joint in names]
            found = np.array([usual if place is None else place for place, usual in zip(given, expected, strict=True)])
            count = len(self._moved(names, found))
            if best is None or count < best[0]:
                best = count, found
        return best[1] if best is not None and best[0] else None

    def _node_position(self, joint: str, *, turned: bool) -> Matrix | None:
        """Return the position of a joint, (3,), as the viewer determines it from the nodes.

        In a rig with other axes, the nodes are below rotated ones; with ``turned`` the position is rotated to the
        avatar's axes.
        """
        number = self.nodes.get(joint, -1)
        position = self.document.nodes[number].position if number >= 0 else None
        if position is None or not turned:
            return position
        above = self.document.nodes[number].parent
        if above >= 0:
            position = self.document.worlds[above][:3, :3] @ position
        return self.space.to_avatar[:3, :3] @ position

    def _moved(self, names: Sequence[str], positions: Matrix) -> dict[str, float]:
        """Return, for each joint that is moved, its distance from the nearer of its two standard positions."""
        table = avatar_joints.table()
        found: dict[str, float] = {}
        for joint, position in zip(names, positions, strict=True):
            if joint in table:
                usual = np.array((table[joint].position, table[joint].pivot))
                distance = float(np.linalg.norm(usual - position, axis=1).min())
                if distance > MOVED:
                    found[joint] = distance
        return found

    # -- vertices -------------------------------------------------------------------------------

    def weights(self, skin: Skin, points: int) -> tuple[IntArray, FloatArray]:
        """Return the joints in the skeleton and the weights of all points, (P, k), as in the file."""
        joints, weights = influences(skin, points)
        number_of = np.array([self.number_of.get(joint, 0) for joint in self.names(skin)], np.int32)
        return (number_of[joints] if len(number_of) else joints), weights

    def at_standard(self, mesh: Mesh, skin: Skin) -> Mesh:
        """Return a mesh deformed as the viewer shows it on the standard avatar. ``mesh`` has the points of the file."""
        expected = avatar_joints.rest_matrices()
        inverse = np.where(skin.usable[:, None, None], skin.inverse_bind, np.identity(4))
        bound = [
            self.turn @ (expected[joint] @ inverse[number] if joint in expected else self.space.to_avatar)
            for number, joint in enumerate(self.names(skin))
        ]
        found = strongest(*influences(skin, len(mesh.points)), Report())
        return mesh if found is None else _deformed(mesh, *found, np.array(bound) @ skin.bind_shape)

    def in_pose(self, mesh: Mesh, skin: Skin) -> Mesh | None:
        """Return a mesh deformed by the nodes of a rig other than an avatar's; None if these only move it as a whole.

        ``mesh`` has the points of the file.
        """
        if self.known:
            return None
        common, moves = self._moves(skin)
        size = max((float(np.abs(bind[:3, 3]).max()) for bind in self.binds.values()), default=0.0)
        slack = _POSED * float(np.abs(common[:3, :3]).max())
        apart = np.abs(moves - common)[np.unique(skin.joints)]
        if apart[:, :, :3].max(initial=0.0) <= slack and apart[:, :, 3].max(initial=0.0) <= slack * max(size, 1e-3):
            return None
        return _deformed(mesh, *influences(skin, len(mesh.points)), self.space.to_avatar @ moves @ skin.bind_shape)

    # -- messages -------------------------------------------------------------------------------

    def report_unusual(self, findings: Findings) -> None:
        """Report unusual properties of the rig, each once, as messages or as findings."""
        report = self.report
        if not self.known or not self.group.parts:
            return
        for joint in self.used:
            if avatar_joints.canonical(self.words[joint]) is None:
                findings.add("unknown-joints", Named("bone", self.words[joint]))
            elif self._is_shaped(joint):
                findings.add("bound-with-shape", Named("bone", joint))
            if joint in self.known and self._node_position(joint, turned=False) is None:
                findings.add("joints-without-node", Named("bone", joint))
        if self.space.found_by != "bind" and self.binds:
            template = "its joints are bound in other axes or another unit; the viewer would show it turned or scaled"
            report.change("rig-turned-or-scaled", template)
        self._report_positions()
        aliases = dict.fromkeys(
            joint
            for skin in self.group.skins
            for joint in skin.joint_names
            if avatar_joints.canonical(joint) not in {None, joint, joint.replace("_", " ")}
        )
        if aliases:
            names = listed(of_kind("bone", aliases), MOST_NAMED)
            report.note("joint-aliases", "joints under other names: {}", names)

    def _is_shaped(self, joint: str) -> bool:
        """Return whether a joint of the table is bound with another scale than that in the table."""
        if joint not in self.rests:
            return False
        bound, usual = (
            np.linalg.norm(axes[:3, :3], axis=0) for axes in (self.rests[joint], avatar_joints.rest_matrices()[joint])
        )
        return bool(np.abs(bound / usual - 1).max() > _SHAPED)

    def _report_positions(self) -> None:
        joints = [joint for joint in self.known if joint in self.rests]
        positions = self._positions(joints)
        moved = {} if positions is None else self._moved(joints, positions)
        if moved:
            template = "{} by its nodes, by up to {} (joint positions): {}"
            names = listed(of_kind("bone", sorted(moved, key=lambda joint: -moved[joint])), MOST_NAMED)
            number = counted(len(moved), "joint is moved", "joints are moved")
            largest = millimetres(max(moved.values()))
            self.report.note("joint-positions-in-file", template, number, largest, names)


def _rotations(axes: Matrix) -> Matrix:
    """Return the rotations nearest to axes (n, 3, 3), which may be sheared or mirrored; rotations stay exact."""
    mirrored = np.linalg.det(axes) < 0
    axes = np.where(mirrored[:, None, None], axes * (-1.0, 1.0, 1.0), axes)
    is_exact = np.abs(np.swapaxes(axes, 1, 2) @ axes - np.identity(3)).max(axis=(1, 2), initial=0.0) < _UNMOVED
    left, _, right = np.linalg.svd(axes)
    return np.asarray(np.where(is_exact[:, None, None], axes, left @ right))


def _deformed(mesh: Mesh, joints: IntArray, weights: FloatArray, matrices: Matrix) -> Mesh:
    """Return a mesh deformed by matrices (n, 4, 4); vertices without weights follow the first, as in the viewer."""
    if not len(matrices):
        return mesh
    weights = weights.copy()
    weights[~weights.any(axis=1), 0] = 1.0
    weights /= weights.sum(axis=1)[:, None]
    of_joints = matrices[:, :3].astype(np.float32)
    blended = np.zeros((len(joints), 3, 4), np.float32)
    for column in range(joints.shape[1]):
        blended += weights[:, column, None, None] * of_joints[joints[:, column]]
    points = np.einsum("pij,pj->pi", blended[:, :, :3], mesh.points) + blended[:, :, 3]
    normal = mesh.normal
    if normal is not None:
        directions = normal.at_corners(mesh.corner_point)
        turned = np.einsum("cij,cj->ci", blended[mesh.corner_point, :, :3], directions)
        normal = Layer(normal.name, unit(turned.astype(np.float32)), per_corner=True)
    return replace(mesh, points=points.astype(np.float32), normal=normal)


def influences(skin: Skin, points: int) -> tuple[IntArray, FloatArray]:
    """Return the indices in ``skin.joint_names`` and the weights of all points, (P, k); unused entries are 0."""
    counts = np.zeros(points, np.intp)
    counts[: len(skin.counts)] = skin.counts[:points]
    most = min(int(counts.max(initial=0)), _MOST_STORED)
    column = np.arange(max(most, 1))
    held = column < counts[:, None]
    chosen: slice | AnyArray = slice(None)
    # the file is damaged, or a vertex has more weights than are read
    if int(np.count_nonzero(held)) != len(skin.joints):
        source = (np.cumsum(counts) - counts)[:, None] + column
        held &= source < len(skin.joints)
        chosen = source[held]
    joints, weights = np.zeros(held.shape, np.int32), np.zeros(held.shape, np.float32)
    joints[held], weights[held] = skin.joints[chosen], skin.weights[chosen]
    return joints, weights
