"""A scene's skeleton -> the binding of a file (formats page, sections 4.3 to 4.5).

Only the heads of bones are used: the bones of the avatar have no rotation at rest, so direction and roll of Blender's
bones must be ignored. Collision volumes and attachment points get rotation and scale of the avatar table. The facing
direction of the avatar is derived from its left and right joints.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Report
from ...core.scene import Joint, Skeleton, Skin
from ...geometry.transforms import Matrix
from ..avatar import joints
from ..avatar.joint_positions import JointPositions, position_of_unknown, report_offsets
from ..avatar.joints import _STRAIGHT, MOST_JOINTS, world_matrices
from ..models import space
from ..models.faces import FaceArrays
from ..options import ModelWriteOptions

MOST_INDICES = 255
"""Number of joints that the weights of a file can refer to: a byte, of which 255 ends a list."""
_EXACT = 1e-6
"""Tolerance for matrices that equal the file's except for rounding to single precision."""


@dataclass
class Rig:
    """The binding of a mesh to n joints, as written to a file; matrices for column vectors, in avatar space."""

    joint_names: list[str]
    """Names of the joints, in the order in which weights refer to them. Known names are spelt as in the table (with
    ``_`` for spaces)."""
    rest: Matrix
    """(n, 4, 4) float64: for bones, translations to their heads."""
    inverse_bind: Matrix
    """(n, 4, 4) float64: inverse of ``rest``."""
    index: npt.NDArray[np.int32]
    """(J,) index in ``joint_names`` of each joint of the scene's skeleton; -1 for unused joints."""
    joint_positions: Matrix | None = None
    """(n, 3) positions of the joints relative to their parents in the table, in metres; None for the avatar's own."""
    offsets: dict[str, float] = field(default_factory=dict)
    """Distances of the joints that ``joint_positions`` moves from their standard positions, in metres."""
    pelvis_offset: float = 0.0
    lock_scale: bool = False
    bind_shape: Matrix | None = None
    """(4, 4) bind shape matrix of the imported file; None to use the transform of the unit cube."""
    given_alternative: Matrix | None = None
    """(n, 4, 4) ``alt_inverse_bind`` of the imported file, or None to compute it."""

    @property
    def alt_inverse_bind(self) -> Matrix | None:
        """(n, 4, 4): the inverse bind matrices with joint positions as translations; None without joint positions."""
        if self.given_alternative is not None:
            return self.given_alternative
        if self.joint_positions is None:
            return None
        matrices = self.inverse_bind.copy()
        matrices[:, :3, 3] = self.joint_positions
        return matrices

    @property
    def unknown(self) -> list[str]:
        """Joint names that the viewer does not know."""
        return [name for name in self.joint_names if joints.canonical(name) is None]


def used_joints(faces: Iterable[FaceArrays], joint_count: int, name: str = "") -> tuple[list[int], int]:
    """Return the joints with weights, in order, and the number of vertices without weights.

    Raises
    ------
    ExportError
        A weight refers to a joint that the skeleton does not have.
    """
    used = np.zeros(joint_count, bool)
    unweighted = 0
    for face in faces:
        if face.joint_indices is None or face.joint_weights is None:
            unweighted += len(face.positions)
            continue
        named = face.joint_indices[face.joint_weights > 0]
        if len(named) and not 0 <= named.min() <= named.max() < joint_count:
            raise ExportError(
                "{}: vertices are weighted to bones that its armature does not have; remove those vertex groups", name
            )
        used[named] = True
        unweighted += int(np.count_nonzero(~(face.joint_weights > 0).any(axis=1)))
    return np.flatnonzero(used).tolist(), unweighted


def rig_of(
    skeleton: Skeleton,
    used: Sequence[int],
    turn: Matrix,
    options: ModelWriteOptions,
    *,
    skin: Skin | None = None,
    report: Report,
) -> Rig:
    """Return the binding to the used joints.

    Parameters
    ----------
    skeleton:
        In the space of the mesh's points before ``turn``, the result of :func:`facing` for it.
    used:
        Indices of joints, from :func:`used_joints`. If empty, the first known joint is used.
    skin:
        The imported binding of the mesh, whose pelvis offset is kept.
    report:
        Gets a warning about joints that the file moves.

    Raises
    ------
    ExportError
        More joints than weights can refer to.
    """
    heads = (turn @ world_matrices(skeleton))[:, :3, 3]
    known = [joints.canonical(joint.name) for joint in skeleton.joints]
    place_of = {name: head for name, head in zip(reversed(known), reversed(heads), strict=True) if name is not None}
    chosen = list(used) or [next((number for number, name in enumerate(known) if name is not None), 0)]
    as_imported = {name for name, joint in zip(known, skeleton.joints, strict=True) if name and joint.is_as_imported}
    places = JointPositions(place_of, skin, turn, as_imported)
    choice = options.joint_positions
    above = {joint for number in chosen if known[number] for joint in joints.ancestors(known[number] or "")}
    moved = [] if choice == "NEVER" else places.moved(above)
    writes = choice == "ALWAYS" or (choice == "AUTO" and (bool(moved) or places.keeps_stored()))
    if choice == "AUTO":
        chosen = _with_moved(chosen, known, moved)
    offsets = {name: places.offset(name) for name in moved}
    if offsets and choice == "AUTO":
        report_offsets(offsets, report)
    names = [_written(joint) for joint in skeleton.joints]
    first: dict[str, int] = {}  # joints with equal names share an index in the file
    for number in chosen:
        first.setdefault(names[number], number)
    place = {name: number for number, name in enumerate(first)}
    index = np.array([place.get(name, -1) for name in names], np.int32)
    if len(first) > MOST_INDICES:
        raise ExportError(
            "The mesh is bound to {} joints; at most {} are possible, so limit its vertex groups",
            len(first),
            MOST_JOINTS,
        )
    rest = np.array([_rest(known[number], heads[number], places) for number in first.values()]).reshape(-1, 4, 4)
    positions = [_position(known[number], heads[number], places, choice) for number in first.values()]
    return Rig(
        list(first),
        rest,
        np.asarray(np.linalg.inv(rest), np.float64),
        index,
        joint_positions=np.array(positions).reshape(-1, 3) if writes else None,
        offsets=offsets if writes else {},
        pelvis_offset=float((skin.pelvis_offset if skin else None) or 0.0),
        lock_scale=writes and bool(options.use_lock_scale or (skin and skin.lock_scale)),
    )


def _with_moved(chosen: list[int], known: Sequence[str | None], moved: Sequence[str]) -> list[int]:
    """Return the chosen joints and the moved ones, since a file stores positions only of the joints that it lists.

    The moved ones are left out if the total exceeds the maximum number of joints.
    """
    listed = {known[number] for number in chosen}
    more = [known.index(name) for name in moved if name not in listed]
    return sorted({*chosen, *more}) if len(chosen) + len(more) <= MOST_JOINTS else chosen


def rig_as_imported(skeleton: Skeleton, skin: Skin, used: Sequence[int]) -> Rig | None:
    """Return the imported binding of a mesh unchanged, or None if the mesh uses joints that are not in it."""
    place: dict[str, int] = {}
    for number, name in enumerate(skin.joint_names):
        place.setdefault(name, number)
        known = joints.canonical(name)
        if known is not None:
            place.setdefault(known, number)
    index = np.array(
        [place.get(joint.name, place.get(joints.canonical(joint.name) or "", -1)) for joint in skeleton.joints],
        np.int32,
    )
    if any(index[number] < 0 for number in used):
        return None
    inverse_bind = space.to_avatar(skin.inverse_bind)
    positions = skin.joint_positions
    alternative = skin.alt_inverse_bind
    return Rig(
        list(skin.joint_names),
        np.asarray(np.linalg.pinv(inverse_bind), np.float64),
        inverse_bind,
        index,
        joint_positions=None if positions is None else positions @ space.TO_AVATAR[:3, :3].T,
        pelvis_offset=float(skin.pelvis_offset or 0.0),
        lock_scale=skin.lock_scale,
        bind_shape=space.to_avatar(skin.bind_shape),
        given_alternative=None if alternative is None else space.to_avatar(np.asarray(alternative, np.float64)),
    )


def _written(joint: Joint) -> str:
    """Return the name under which a joint is written."""
    known = joints.canonical(joint.name)
    return joint.name if known is None else known.replace(" ", "_")


def _rest(known: str | None, head: Matrix, places: JointPositions) -> Matrix:
    """Return a joint's rest matrix: rotation and scale of the table (none for bones), and the position of its head.

    A joint that the imported file binds with other axes keeps these axes, so that a pose deforms the mesh in the same
    way.
    """
    rest = np.identity(4)
    if known is None:
        rest[:3, 3] = head
        return rest
    if not joints.table()[known].is_bone:
        rest[:3, :3] = joints.rest_matrices()[known][:3, :3]
    imported = places.imported_rest(known)
    if imported is not None:
        tolerance = _EXACT if places.is_aligned else _STRAIGHT
        is_moved = places.is_aligned and np.abs(imported[:3, 3] - head).max() > tolerance
        if is_moved or np.abs(imported[:3, :3] - rest[:3, :3]).max() > tolerance:
            return imported
    rest[:3, 3] = head
    return rest


def _position(known: str | None, head: Matrix, places: JointPositions, choice: str) -> Matrix:
    """Return a joint's position relative to its parent, as written to a file."""
    if known is None:
        return position_of_unknown(head, places.heads)
    keeps = places.is_unmoved(known) and known in places.stored
    return places.relative(known) if choice == "ALWAYS" and not keeps else places.written(known)
