"""A file's binding -> the rest pose of its joints, and the transform of the mesh (formats page, sections 4.2 to 4.6).

At rest the viewer shows ``joint rest * inverse bind * bind shape * v``. In a plain file the first two cancel out. Rigs
from other programs or in another unit leave a factor common to all joints, which is applied to the transform of the
mesh here, so that mesh and joints are where the viewer shows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ...core.messages import Report, counted, listed
from ...core.scene import Skin
from ..models import space
from ..models.skin_block import SkinBlock
from . import skeleton_table
from .skeleton_table import MOST_JOINTS, Matrix
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
    turned: Matrix = np.swapaxes(np.asarray(rows, np.float64).reshape(*rows.shape[:-1], 4, 4), -1, -2)
    return turned


def rows_of(matrices: Matrix) -> Matrix:
    """Convert matrices (…, 4, 4) for column vectors to (…, 16) as in files."""
    turned: Matrix = np.swapaxes(matrices, -1, -2).reshape(*matrices.shape[:-2], 16)
    return turned


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
    known = [skeleton_table.canonical(name) for name in block.joint_names]
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
        report.change("unknown-joints-follow-root", template, number, skeleton_table.ROOT, listed(unknown))
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
    rests = skeleton_table.rest_matrices()
    usable = np.ones(len(block.joint_names), bool) if block.usable is None else block.usable
    listed_joints = zip(block.joint_names, matrices_of(block.inverse_bind), usable, strict=True)
    found = [
        np.linalg.norm(rests[known][:3, :3] @ inverse[:3, :3] @ bind_shape, axis=0)
        for name, inverse, is_usable in islice(listed_joints, MOST_LISTED)
        if is_usable and (known := skeleton_table.canonical(name)) is not None
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
    known = [skeleton_table.canonical(name) for name in names]
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
    table = skeleton_table.table()
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
    expected = skeleton_table.rest_matrices()
    axes = np.array([expected[known[place] or ""][:3, :3] for place in chosen]).reshape(-1, 3, 3)
    is_other = bool(np.abs(rests[chosen][:, :3, :3] - axes).max(initial=0.0) > _OTHER)
    return is_other or (usable is not None and not usable.all())


def _say_turned(names: Sequence[str], rests: Matrix, known: Sequence[str | None], report: Report) -> None:
    table = skeleton_table.table()
    turned = [
        joint
        for joint, rest, name in zip(names, rests, known, strict=True)
        if (name is None or table[name].is_bone) and np.abs(rest[:3, :3] - np.identity(3)).max() > _BENT
    ]
    template = (
        "{} bound with a rotation or scale, which the avatar's bones do not have; the viewer deforms the mesh there: {}"
    )
    report.change_of("bones-bound-turned", template, turned, "bone is", "bones are")
