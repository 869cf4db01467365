"""The skin block <-> arrays (formats page, sections 4.2, 4.5 and 4.6)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.messages import Report, Text, listed, of_kind
from .llsd import as_real, sorted_map
from .llsd_arrays import Reals, as_reals, singles

_LEFT_OUT = "The rig is left out: {}"
_IDENTITY = np.identity(4).reshape(16)


@dataclass
class SkinBlock:
    """The binding of a mesh to n joints. Matrices are as in the file: 16 numbers, rows of a matrix for row vectors.

    ``reshape(-1, 4, 4).transpose(0, 2, 1)`` gives matrices for column vectors.
    """

    joint_names: list[str]
    """In the order of the weights' indices."""
    inverse_bind: Reals
    """(n, 16); the identity for unusable joints."""
    bind_shape: Reals
    """(16,)."""
    alt_inverse_bind: Reals | None = None
    """(n, 16): the translation is the position of a joint relative to its parent, in metres."""
    pelvis_offset: float = 0.0
    lock_scale: bool = False
    usable: npt.NDArray[np.bool_] | None = None
    """(n,) whether a joint's matrix is usable; weights of other joints are left out. None for all."""


def skin_of(value: Any, report: Report) -> SkinBlock | None:
    """Decode a skin block; errors are reported in ``report``.

    Return None if the whole binding is unusable: the numbers of matrices and joints differ, the bind shape matrix is
    singular, or all joints' matrices are. The mesh is then imported without a rig.
    """
    if not isinstance(value, dict):
        report.loss("rig-left-out", _LEFT_OUT, Text("it is not a map"))
        return None
    names = value.get("joint_names")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        report.loss("rig-left-out", _LEFT_OUT, Text("the names of its joints are missing or damaged"))
        return None
    inverse_bind = _matrices(value.get("inverse_bind_matrix"))
    if inverse_bind is None or len(inverse_bind) != len(names):
        count = Text("no") if inverse_bind is None else Text("{:,}", len(inverse_bind))
        report.loss("rig-left-out", _LEFT_OUT, Text("it has {} bind matrices for {:,} joints", count, len(names)))
        return None
    bind_shape = _matrices([value.get("bind_shape_matrix")])
    if bind_shape is None or not _usable(bind_shape)[0]:
        report.loss("rig-left-out", _LEFT_OUT, Text("its bind shape matrix cannot be used"))
        return None
    usable = _usable(inverse_bind)
    if not usable.all():
        broken = [name for name, good in zip(names, usable, strict=True) if not good]
        if len(broken) == len(names):
            report.loss("rig-left-out", _LEFT_OUT, Text("the bind matrix of no joint can be used"))
            return None
        template = "joints are left out whose bind matrix cannot be used: {}"
        report.loss("joints-without-bind-matrix", template, listed(of_kind("bone", broken)), item=Text("Rig"))
        inverse_bind[~usable] = _IDENTITY
    block = SkinBlock(list(names), inverse_bind, bind_shape[0], usable=None if usable.all() else usable)
    _set_overrides(block, value, report)
    return block


def _set_overrides(block: SkinBlock, value: dict[str, Any], report: Report) -> None:
    """Decode the joint positions of a skin block, if it has usable ones, and what belongs to them."""
    if "alt_inverse_bind_matrix" not in value:
        return
    count = len(block.joint_names)
    matrices = _matrices(value["alt_inverse_bind_matrix"])
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = matrices is not None and np.isfinite(matrices.astype(np.float32)).all()
    if matrices is None or len(matrices) != count or not is_finite:
        template = "joint positions are ignored, they are not {:,} matrices of finite numbers"
        report.loss("joint-positions-damaged", template, count, item=Text("Rig"))
        return
    block.alt_inverse_bind = matrices
    block.lock_scale = value.get("lock_scale_if_joint_position") is True
    offset = as_real(value.get("pelvis_offset", 0.0))
    if offset is not None and abs(offset) < np.finfo(np.float32).max:
        block.pelvis_offset = offset
    else:
        template = "the height of the pelvis is NaN or infinite and is ignored"
        report.loss("nan-pelvis-height", template, item=Text("Rig"))


def _matrices(value: Any) -> Reals | None:
    """Return (n, 16) numbers, possibly NaN, or None if the value is not a list of matrices."""
    if not isinstance(value, list):
        return None
    rows = [as_reals(matrix, 16) for matrix in value]
    found = [row for row in rows if row is not None]
    return np.stack(found) if found and len(found) == len(rows) else None


def _usable(matrices: Reals) -> npt.NDArray[np.bool_]:
    """Return whether each matrix (n, 16) is affine, invertible, and finite in single precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.asarray(np.isfinite(matrices.astype(np.float32)).all(axis=1))
    square = np.where(finite[:, None], matrices, _IDENTITY).reshape(-1, 4, 4)
    axes = square[:, :3, :3]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lengths = np.linalg.norm(axes, axis=2)
        # Test only the directions: a rig in another unit has small axes, but is valid.
        directions = axes / np.where(lengths > 0, lengths, 1)[:, :, None]
        triple = np.cross(directions[:, 0], directions[:, 1]) * directions[:, 2]
        flat = np.abs(triple.sum(axis=1)) < 1e-6
    singular = (lengths < 1e-12).any(axis=1) | flat
    off = np.abs(square[:, :, 3] - (0, 0, 0, 1)).max(axis=1)
    return np.asarray(finite & ~singular & (off <= 1e-4))


def block_of(skin: SkinBlock) -> dict[str, Any]:
    """Encode a skin block: keys sorted, numbers in single precision."""
    values: dict[str, Any] = {
        "joint_names": list(skin.joint_names),
        "inverse_bind_matrix": singles(skin.inverse_bind),
        "bind_shape_matrix": singles(skin.bind_shape),
    }
    if skin.alt_inverse_bind is not None:
        values["alt_inverse_bind_matrix"] = singles(skin.alt_inverse_bind)
        values["pelvis_offset"] = singles(skin.pelvis_offset)
        if skin.lock_scale:
            values["lock_scale_if_joint_position"] = True
    return sorted_map(values)
