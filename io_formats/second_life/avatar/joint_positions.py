"""Positions of joints relative to their parents, and the rest pose and mesh transform that a file's binding gives.

At rest the viewer shows ``joint rest * inverse bind * bind shape * v``. In a plain file the first two cancel out. Rigs
from other programs or in another unit leave a factor common to all joints, which is applied to the transform of the
mesh here, so that mesh and joints are where the viewer shows them.

The avatar table has two positions for a joint, ``pos`` and ``pivot``, up to 11 mm apart. The viewer uses ``pos``, but
rigs of other programs use either of them. So a joint at one of these positions counts as standard. A joint also counts
as standard at the position where a file without joint positions binds it, since for such a file the viewer keeps the
avatar's own joints.
"""

import functools
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ...core.messages import Report, Text, counted, joined, listed, of_kind
from ...core.scene import Skin
from ...geometry.transforms import Matrix
from ..models import space
from ..models.skin_block import SkinBlock
from . import joints
from .joints import MOST_JOINTS
from .skeletons import rest_worlds

MOST_LISTED = 1024
"""Maximum number of joints listed by a file; a few more than weights can refer to are accepted."""
_FURTHEST = 1e9
"""Limit of coordinates in metres; beyond it, single precision is useless."""
_AWAY = 0.005
"""Tolerance for joint positions in metres: joints of real rigs differ from the table by this much unintentionally."""
_UNTURNED = 1e-3
"""Tolerance for elements of a 3 × 3 matrix: up to this difference from the identity it counts as rounding."""
_BENT = 1e-2
_OTHER = 4e-5
"""Difference of the axes of joints from those of the table that is rounding: real rigs have up to 2e-5."""


@dataclass
class Binding:
    """A decoded skin block; matrices for column vectors, in avatar space."""

    rests: Matrix
    """(n, 4, 4): the rest matrices of the joints, in the order of the file."""
    mesh_place: Matrix
    """(4, 4) transform from the unit cube to the mesh at rest, in metres."""
    skin: Skin
    """The file's own matrices, in Blender's space."""


def matrices_of(rows: Matrix) -> Matrix:
    """Convert a file's matrices (…, 16) to matrices (…, 4, 4) for column vectors."""
    return np.swapaxes(np.asarray(rows, np.float64).reshape(*rows.shape[:-1], 4, 4), -1, -2)


def rows_of(matrices: Matrix) -> Matrix:
    """Convert matrices (…, 4, 4) for column vectors to (…, 16) as in files."""
    return np.swapaxes(matrices, -1, -2).reshape(*matrices.shape[:-2], 16)


def binding_of(block: SkinBlock, report: Report, *, is_aligned: bool = False) -> Binding | None:
    """Decode a skin block; oddities are reported in ``report``.

    Return None if it lists more joints than weights can refer to, or joints with extreme coordinates.

    Parameters
    ----------
    is_aligned:
        Whether the caller has already applied the factor that is common to all joints of the file, so that the matrices
        bind them in avatar space. Otherwise the factor is computed from these joints.
    """
    if len(block.joint_names) > MOST_LISTED:
        template = "the rig is left out: it lists {:,} joints, {} are possible"
        report.loss("rig-left-out", template, len(block.joint_names), MOST_JOINTS)
        return None
    inverse_bind = matrices_of(block.inverse_bind)
    bind_shape = matrices_of(block.bind_shape)
    alternative = None if block.alt_inverse_bind is None else matrices_of(block.alt_inverse_bind)
    positions = None if alternative is None else alternative[:, :3, 3]
    known = [joints.canonical(name) for name in block.joint_names]
    rests, common = rests_of(block.joint_names, inverse_bind, positions, block.usable, report, is_aligned=is_aligned)
    place = common @ bind_shape
    if not (np.abs(rests).max() < _FURTHEST and np.abs(place).max() < _FURTHEST):
        report.loss("rig-left-out", "the rig is left out: the coordinates of its joints are too large to use")
        return None
    _say_turned(block.joint_names, rests, known, report)
    unknown = [name for name, found in zip(block.joint_names, known, strict=True) if found is None]
    if unknown:
        number = counted(len(unknown), "joint is", "joints are")
        template = "{} unknown to the viewer, which moves them with '{}': {}"
        report.change("unknown-joints-follow-root", template, number, joints.ROOT, listed(of_kind("bone", unknown)))
    skin = Skin(
        list(block.joint_names),
        space.to_blender(inverse_bind),
        space.to_blender(bind_shape),
        joint_positions=None if positions is None else positions @ space.TO_BLENDER[:3, :3].T,
        is_aligned=is_aligned,
        differs_from_rest=_has_other_axes(known, rests, block.usable),
    )
    if alternative is not None:
        skin.alt_inverse_bind = space.to_blender(alternative)
        skin.pelvis_offset, skin.lock_scale = block.pelvis_offset, block.lock_scale
    return Binding(rests, place, skin)


@np.errstate(over="ignore", invalid="ignore")  # files may contain extreme numbers
def size_at_rest(block: SkinBlock) -> tuple[float, float, float]:
    """Return the lengths in metres of the unit cube's axes at rest: the median over all joints that the viewer knows.

    Rigs in another unit, such as centimetres, have bind shapes of 100 times the size and inverse binds of a hundredth,
    or the reverse. Only the product is in metres. Its lengths do not depend on the rotation of a joint.
    """
    bind_shape = matrices_of(block.bind_shape)[:3, :3]
    rests = joints.rest_matrices()
    usable = np.ones(len(block.joint_names), bool) if block.usable is None else block.usable
    listed_joints = zip(block.joint_names, matrices_of(block.inverse_bind), usable, strict=True)
    found = [
        np.linalg.norm(rests[known][:3, :3] @ inverse[:3, :3] @ bind_shape, axis=0)
        for name, inverse, is_usable in islice(listed_joints, MOST_LISTED)
        if is_usable and (known := joints.canonical(name)) is not None
    ]
    lengths = np.median(found, axis=0) if found else np.linalg.norm(bind_shape, axis=0)
    return tuple(np.nan_to_num(lengths, nan=0.0).tolist())


def rests_of(
    names: Sequence[str],
    inverse_bind: Matrix,
    positions: Matrix | None,
    usable: npt.NDArray[np.bool_] | None,
    report: Report,
    *,
    is_aligned: bool = False,
) -> tuple[Matrix, Matrix]:
    """Return the rest matrices of a file's joints, (n, 4, 4), and the factor that was common to all, (4, 4).

    Parameters
    ----------
    inverse_bind, positions:
        (n, 4, 4) and (n, 3) in the avatar's axes; None without joint positions.
    usable:
        (n,) whether each inverse bind matrix can be inverted; None if all can.
    is_aligned:
        Whether the factor is known to be the identity.
    """
    known = [joints.canonical(name) for name in names]
    usable = np.ones(len(known), bool) if usable is None else usable
    moved = () if positions is None else zip(known, positions, strict=True)
    expected = rest_worlds({}, {name: position for name, position in moved if name is not None})
    common = np.identity(4) if is_aligned else _common(known, usable, inverse_bind, expected, report)
    rests = common @ _inverse(inverse_bind)
    for broken in np.flatnonzero(~usable).tolist():
        rests[broken] = expected.get(known[broken] or "", np.identity(4))
    return rests, common


# Singular matrices give NaN or infinity here; `binding_of` replaces those marked unusable and leaves out the rig for
# any other.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _inverse(matrices: Matrix) -> Matrix:
    """Invert affine matrices (n, 4, 4).

    ``numpy.linalg.inv`` is not used: it would start threads, which takes far longer.
    """
    x, y, z = (matrices[:, :3, column] for column in range(3))
    rows = np.stack((np.cross(y, z), np.cross(z, x), np.cross(x, y)), axis=1)
    inverted = np.zeros_like(matrices)
    inverted[:, :3, :3] = rows / (rows[:, 0] * x).sum(axis=1)[:, None, None]
    inverted[:, :3, 3] = -(inverted[:, :3, :3] * matrices[:, None, :3, 3]).sum(axis=2)
    inverted[:, 3, 3] = 1.0
    return inverted


def _common(
    known: Sequence[str | None],
    usable: npt.NDArray[np.bool_],
    inverse_bind: Matrix,
    expected: Mapping[str, Matrix],
    report: Report,
) -> Matrix:
    """Return the product of rest and inverse bind that (nearly) all joints share, (4, 4), or the identity."""
    table = joints.table()
    common = np.identity(4)
    bones = [place for place, name in enumerate(known) if name and table[name].is_bone and usable[place]]
    others = [place for place, name in enumerate(known) if name and usable[place]]
    chosen = bones or others
    if not chosen:
        return common
    left = np.stack([expected[known[place] or ""] @ inverse_bind[place] for place in chosen])
    linear = np.median(left[:, :3, :3], axis=0)
    size = max(float(np.abs(linear).max()), 1e-30)
    if np.abs(linear - np.identity(3)).max() > _UNTURNED:
        off = np.abs(left[:, :3, :3] - linear).max(axis=(1, 2))
        if np.count_nonzero(off <= _BENT * size) * 2 >= len(chosen) and abs(np.linalg.det(linear / size)) > 1e-9:
            common[:3, :3] = linear
    shift = left[:, :3, 3]
    if np.count_nonzero(np.linalg.norm(shift, axis=1) <= _AWAY) * 2 < len(chosen):
        middle = np.median(shift, axis=0)
        if np.count_nonzero(np.linalg.norm(shift - middle, axis=1) <= _AWAY) * 2 >= len(chosen):
            common[:3, 3] = middle
            away = float(np.linalg.norm(middle))
            template = "its rig is {:.3g} m away from the avatar; moved to it, as in the viewer"
            report.change("rig-moved-to-avatar", template, away)
    return common


def _has_other_axes(known: Sequence[str | None], rests: Matrix, usable: npt.NDArray[np.bool_] | None) -> bool:
    """Return whether a joint is bound by an unusable matrix, or with other axes or another scale than in the table."""
    chosen = [place for place, name in enumerate(known) if name is not None and (usable is None or usable[place])]
    expected = joints.rest_matrices()
    axes = np.array([expected[known[place] or ""][:3, :3] for place in chosen]).reshape(-1, 3, 3)
    is_other = bool(np.abs(rests[chosen][:, :3, :3] - axes).max(initial=0.0) > _OTHER)
    return is_other or (usable is not None and not usable.all())


def _say_turned(names: Sequence[str], rests: Matrix, known: Sequence[str | None], report: Report) -> None:
    table = joints.table()
    turned = [
        joint
        for joint, rest, name in zip(names, rests, known, strict=True)
        if (name is None or table[name].is_bone) and np.abs(rest[:3, :3] - np.identity(3)).max() > _BENT
    ]
    template = (
        "{} bound with a rotation or scale, which the avatar's bones do not have; the viewer deforms the mesh there: {}"
    )
    report.change_of("bones-bound-turned", template, of_kind("bone", turned), "bone is", "bones are")


MOVED = 1e-4
"""Distance in metres from its standard position beyond which a joint counts as moved, as in the viewer."""
ADVISED = 5e-3
"""Distance in metres of a joint from its standard position above which an export advises to store joint positions."""
_SHARED = 0.005
"""Largest distance in metres between a bone and the bind position of its joint at which a file can use an armature that
was imported before. Such bones count as unmoved while the armature is unchanged."""
_DAMAGED = 1e-6
"""Tolerance for comparing an inverse bind matrix with the identity, which marks an unusable matrix."""
_TURNED = 0.25
"""Tolerance for the elements of the rotation from the space of an imported binding to the avatar's."""
_MOST_NAMED = 4


class JointPositions:
    """The positions of an armature's joints in avatar space, compared with those of the avatar and of a file.

    Parameters
    ----------
    heads:
        (3,) positions of the armature's joints, by name in the table.
    skin:
        The imported binding of the mesh, or None.
    turn:
        (4, 4) from the space of the skin to the avatar's.
    as_imported:
        Names of the joints whose bones were not moved since the import of the armature.
    """

    def __init__(
        self, heads: Mapping[str, Matrix], skin: Skin | None, turn: Matrix, as_imported: Container[str] = ()
    ) -> None:
        self.heads = heads
        # The front of the joints has changed if the rotation of an armature was applied, or the joints are mirrored.
        if skin is not None and (skin.turned is None or np.abs(turn @ skin.turned - space.TO_AVATAR).max() > _TURNED):
            skin = None
        self.is_aligned = skin is not None and skin.is_aligned
        self.as_imported = as_imported if self.is_aligned else ()
        self.imported_rests: dict[str, Matrix] = {}
        """(4, 4) rest matrices of the joints listed by the file, in avatar space."""
        self.stored: dict[str, Matrix] = {}
        """(3,) joint positions of the file."""
        self.has_file = skin is not None and not skin.is_changed
        if skin is not None:
            names = [joints.canonical(name) for name in skin.joint_names]
            for name, rest in zip(names, _imported_rests(skin, turn), strict=True):
                if name is not None and np.isfinite(rest).all():
                    self.imported_rests.setdefault(name, rest)
            if skin.joint_positions is not None:
                given = skin.joint_positions @ turn[:3, :3].T
                self.stored = {name: position for name, position in zip(names, given, strict=True) if name is not None}

    @functools.cached_property
    def _imported_heads(self) -> dict[str, Matrix]:
        """Positions of the joints in the imported file; empty if the armature was not imported."""
        if not self.has_file:
            return {}
        worlds = rest_worlds(self.imported_rests)
        return {name: worlds[name][:3, 3] for name in self.heads}

    def relative(self, name: str) -> Matrix:
        """Return the position of a joint of the armature, (3,), relative to its parent in the table."""
        return _relative(name, self.heads)

    def is_unmoved(self, name: str) -> bool:
        """Return whether a joint has the position, relative to its parent, that the import gave it."""
        # doubled: the joint and its parent may each be off
        tolerance = 2 * _SHARED if name in self.as_imported else MOVED
        return self.has_file and _distance(self.relative(name), _relative(name, self._imported_heads)) <= tolerance

    def offset(self, name: str) -> float:
        """Return the distance of the written position of a joint from the nearest standard one, in metres."""
        joint = joints.table()[name]
        position = self.written(name)
        return min(_distance(position, np.array(joint.position)), _distance(position, np.array(joint.pivot)))

    def written(self, name: str) -> Matrix:
        """Return the position of a joint for a file, (3,): that of the table for a standard joint."""
        relative = self.relative(name)
        joint = joints.table()[name]
        if self.is_unmoved(name):
            if name in self.stored:
                return self.stored[name]
            if not self.stored:
                return np.array(joint.position)
        is_standard = min(_distance(relative, np.array(place)) for place in (joint.position, joint.pivot)) <= MOVED
        return np.array(joint.position) if is_standard else relative

    def moved(self, among: Iterable[str]) -> list[str]:
        """Return the joints of the armature that a file has to move, in the order of the table.

        ``among`` are names of joints; joints that the imported file moves are added to them.
        """
        wanted = {*among, *(name for name in self.stored if name in self.heads and self.is_unmoved(name))}
        table = joints.table()
        return [
            name
            for name in table
            if name in wanted
            and name in self.heads
            and _distance(self.written(name), np.array(table[name].position)) > MOVED
        ]

    def keeps_stored(self) -> bool:
        """Return whether the joint positions stored in the imported file are still valid for the armature."""
        return any(name in self.heads and self.is_unmoved(name) for name in self.stored)

    def imported_rest(self, name: str) -> Matrix | None:
        """Return the rest matrix of a joint in the file, (4, 4), or None if its bone is not there any more."""
        rest = self.imported_rests.get(name)
        tolerance = _SHARED if name in self.as_imported else MOVED
        return rest if rest is not None and _distance(rest[:3, 3], self.heads[name]) <= tolerance else None


def snapped(heads: Mapping[str, Matrix], kept: Collection[str]) -> dict[str, Matrix]:
    """Return the positions of an armature's joints on the standard avatar, (3,) in avatar space.

    Parameters
    ----------
    heads:
        Current positions by name in the table.
    kept:
        Joints that keep their position relative to their parent, because a file moves them.
    """
    found: dict[str, Matrix] = {}
    for name, joint in joints.table().items():
        if name in heads:
            relative = _relative(name, heads) if name in kept else np.array(joint.position)
            found[name] = _origin(name, found) + relative
    return found


def described(offsets: Mapping[str, float]) -> Text:
    """Describe offsets, the largest first, for example ``'mChest' by 51 mm, 'mHead' by 3.2 mm and 2 more``."""
    order = sorted(offsets, key=lambda name: -offsets[name])
    some = joined([Text("'{}' by {}", name, millimetres(offsets[name])) for name in order[:_MOST_NAMED]])
    return Text("{} and {} more", some, len(order) - _MOST_NAMED) if len(order) > _MOST_NAMED else some


def millimetres(metres: float) -> str:
    """Format a distance in millimetres, with its unit."""
    return f"{metres * 1000:.{0 if metres >= 0.01 else 1}f} mm"


def report_offsets(offsets: Mapping[str, float], report: Report) -> None:
    """Warn about joints for which a file stores another position than the standard one."""
    report.change(
        "joint-positions-stored",
        "{} not where the standard avatar has them: {}; the file stores their positions (joint positions)",
        counted(len(offsets), "joint is", "joints are"),
        described(offsets),
    )


def position_of_unknown(head: Matrix, heads: Mapping[str, Matrix]) -> Matrix:
    """Return the position of a joint that the avatar does not have; the viewer moves it with the root."""
    return head - heads.get(joints.ROOT, np.zeros(3))


def _imported_rests(skin: Skin, turn: Matrix) -> Matrix:
    """Return the rest matrices of the joints of an imported binding, (n, 4, 4), in avatar space."""
    # The import also converted the local axes of joints to Blender's, which TO_AVATAR reverts; ``turn`` reverts the
    # space.
    inverse_bind = space.TO_AVATAR @ skin.inverse_bind @ np.linalg.inv(turn)
    positions = None if skin.joint_positions is None else skin.joint_positions @ turn[:3, :3].T
    # For a joint of a damaged file whose matrix cannot be used, the import stored the identity.
    usable = np.abs(skin.inverse_bind - np.identity(4)).max(axis=(1, 2)) > _DAMAGED
    known = usable if usable.any() else None
    return rests_of(skin.joint_names, inverse_bind, positions, known, Report(), is_aligned=skin.is_aligned)[0]


def _relative(name: str, heads: Mapping[str, Matrix]) -> Matrix:
    """Return a joint's position relative to its parent in the table."""
    return heads[name] - _origin(name, heads)


def _origin(name: str, heads: Mapping[str, Matrix]) -> Matrix:
    """Return the position of a joint's parent in the table.

    Where the armature lacks an ancestor, the offset of that joint in the table is used.
    """
    table = joints.table()
    between = np.zeros(3)
    above = table[name].parent
    while above in table and above not in heads:
        between = between + np.array(table[above].position)
        above = table[above].parent
    return heads.get(above, np.zeros(3)) + between


def _distance(a: Matrix, b: Matrix) -> float:
    return float(np.linalg.norm(a - b))
