"""Positions of joints relative to their parents: those of the avatar, of an imported file, or of the armature.

The avatar table has two positions for a joint, ``pos`` and ``pivot``, up to 11 mm apart. The viewer uses ``pos``, but
rigs of other programs use either of them. So a joint at one of these positions counts as standard. A joint also counts
as standard at the position where a file without joint positions binds it, since for such a file the viewer keeps the
avatar's own joints.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Container, Iterable, Mapping

import numpy as np

from ...core.messages import Report, Text, counted, joined
from ...core.scene import Skin
from ..models import space
from . import skeleton_table
from .skeleton_table import Matrix
from .skeletons import rest_worlds
from .skins import rests_of

MOVED = 1e-4
"""Distance in metres from its standard position beyond which a joint counts as moved, as in the viewer."""
ADVISED = 5e-3
"""Distance in metres of a joint from its standard position above which an export advises to store joint positions."""
_SHARED = 0.005
"""Largest distance in metres between a bone and the bind position of its joint at which a file can use an armature that
was imported before. Such bones count as unmoved while the armature is unchanged."""
_DAMAGED = 1e-6
"""Tolerance for comparing an inverse bind matrix with the identity, which marks an unusable matrix."""
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
        self.is_aligned = skin is not None and skin.is_aligned
        self.as_imported = as_imported if self.is_aligned else ()
        self.imported_rests: dict[str, Matrix] = {}
        """(4, 4) rest matrices of the joints listed by the file, in avatar space."""
        self.stored: dict[str, Matrix] = {}
        """(3,) joint positions of the file."""
        self.has_file = skin is not None
        if skin is not None:
            names = [skeleton_table.canonical(name) for name in skin.joint_names]
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
        joint = skeleton_table.table()[name]
        position = self.written(name)
        return min(_distance(position, np.array(joint.position)), _distance(position, np.array(joint.pivot)))

    def written(self, name: str) -> Matrix:
        """Return the position of a joint for a file, (3,): that of the table for a standard joint."""
        relative = self.relative(name)
        joint = skeleton_table.table()[name]
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
        table = skeleton_table.table()
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
    for name, joint in skeleton_table.table().items():
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
    return head - heads.get(skeleton_table.ROOT, np.zeros(3))


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
    relative: Matrix = heads[name] - _origin(name, heads)
    return relative


def _origin(name: str, heads: Mapping[str, Matrix]) -> Matrix:
    """Return the position of a joint's parent in the table.

    Where the armature lacks an ancestor, the offset of that joint in the table is used.
    """
    table = skeleton_table.table()
    between = np.zeros(3)
    above = table[name].parent
    while above in table and above not in heads:
        between = between + np.array(table[above].position)
        above = table[above].parent
    origin: Matrix = heads.get(above, np.zeros(3)) + between
    return origin


def _distance(a: Matrix, b: Matrix) -> float:
    return float(np.linalg.norm(a - b))
