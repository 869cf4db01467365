"""The space of UNIGINE: rotation by 180° about Z, tangent frames and bounds (sections 2.3, 3.1 and 10).

A unit quaternion q rotates (0, 0, 1) to the normal and (1, 0, 0) to the tangent; the sign of its w gives the direction
of the binormal. Binormals follow v, which counts from the top in the file and from the bottom in Blender, so the
bitangent sign of the scene is the opposite of the sign of w.

Only signs and the order of components change, so rotating and rotating back gives exactly the same values. Meshes are
rotated within their nodes. Of skeletons only the root joints are rotated, since all others are relative to their
parents.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..core import scene as sc
from ..geometry import transforms

_EMPTY = 1e9


def empty_bounds() -> sc.FloatArray:
    """Return empty bounds, (10,) float32."""
    return np.array([_EMPTY] * 3 + [-_EMPTY] * 3 + [0, 0, 0, -1], np.float32)


def of_points(points: sc.FloatArray) -> sc.FloatArray:
    """Return the bounds of points, (10,) float32: box minimum, box maximum, box centre, radius of a sphere around it.

    ``points`` (P, 3) float32.
    """
    if not len(points):
        return empty_bounds()
    bounds = np.empty(10, np.float32)
    bounds[:6] = transforms.bounds(points).reshape(-1)
    bounds[6:9] = (bounds[:3] + bounds[3:6]) * np.float32(0.5)
    squares = np.zeros(len(points), np.float32)
    for axis in range(3):
        offset = points[:, axis] - bounds[6 + axis]
        offset *= offset
        squares += offset
    bounds[9] = np.sqrt(squares.max())
    return bounds


def union_of_bounds(parts: Sequence[sc.FloatArray]) -> sc.FloatArray:
    """Return bounds that enclose all ``parts``: the common box and a sphere around its centre."""
    filled = [part for part in parts if part[9] >= 0]
    if not filled:
        return empty_bounds()
    if len(filled) == 1:
        return filled[0].copy()
    table = np.stack(filled)
    bounds = np.empty(10, np.float32)
    bounds[:3], bounds[3:6] = table[:, :3].min(0), table[:, 3:6].max(0)
    bounds[6:9] = (bounds[:3] + bounds[3:6]) * np.float32(0.5)
    offsets = table[:, 6:9].astype(np.float64) - bounds[6:9]
    reach = float((np.sqrt((offsets**2).sum(1)) + table[:, 9]).max())
    corner = float(np.linalg.norm((bounds[3:6] - bounds[:3]).astype(np.float64))) / 2
    bounds[9] = min(reach, corner)
    return bounds


_ONE = 32767
_BLOCK = 1 << 13
"""Number of frames in one pass, few enough to stay in the processor's cache."""
_SMALLEST_W = 0.001
_LEAST_STORED = 30.5
"""Smallest w that is stored unchanged, in steps; frames with a smaller one are rotated to increase it. Real files
contain no w below 31, so their frames stay unchanged."""
_NEARLY_DOWN = 0.99
_MOST_LIFT = 0.03
"""Largest rotation of a frame about its normal to increase w, as the sine of half the angle."""
_HANDED_BYTE = 127
_NOISE = 0.02
"""Added before truncation, in steps. A decoded component can be 0.01 below its integer in single precision, and would
otherwise lose 1 each time a file is rewritten."""
_MISSED_STEPS = 4.0
"""Tolerance in steps for the w that readers of ms10 compute from the truncated x, y, z, since w is not stored. Beyond
it, x, y, z are adjusted."""
_STEPS = np.array(list(itertools.product((0.0, 1.0, -1.0, 2.0), repeat=3))).T
"""(3, 64) adjustments of x, y, z in steps that are tried; the first is zero."""


def decode_frames(
    stored: sc.AnyArray, *, has_sign_byte: bool = False
) -> tuple[sc.FloatArray, sc.FloatArray, npt.NDArray[np.intp]]:
    """Decode the stored quaternions to normals and tangents, and normalise them.

    Parameters
    ----------
    stored:
        (n, 4) int16 x, y, z, w / 32767.
    has_sign_byte:
        w is only the handedness (ms10); the real w follows from the other components and is not negative.

    Returns
    -------
    normals:
        (n, 3) float32 unit normals.
    tangents:
        (n, 4) float32 unit tangents along +dP/du, and the sign of the bitangent along Blender's +dP/dv.
    broken:
        Indices of quaternions without length; their normal and tangent are zero, their sign is 1.
    """
    count = len(stored)
    normals = np.empty((count, 3), np.float32)
    tangents = np.empty((count, 4), np.float32)
    broken: list[npt.NDArray[np.intp]] = []
    for start in range(0, count, _BLOCK):
        part = stored[start : start + _BLOCK]
        failed = _decode_block(part, has_sign_byte, normals[start : start + _BLOCK], tangents[start : start + _BLOCK])
        if len(failed):
            broken.append(failed + start)
    return normals, tangents, np.concatenate(broken) if broken else np.empty(0, np.intp)


def _decode_block(
    stored: sc.AnyArray, has_sign_byte: bool, normals: sc.FloatArray, tangents: sc.FloatArray
) -> npt.NDArray[np.intp]:
    """Decode a block into ``normals`` and ``tangents``; return the indices of quaternions without length."""
    x, y, z, w = np.ascontiguousarray(stored.T).astype(np.float32)
    tangents[:, 3] = np.where(w < 0, np.float32(1), np.float32(-1))
    xx, yy, zz = x * x, y * y, z * z
    if has_sign_byte:
        rest = np.maximum(np.float32(_ONE * _ONE) - xx - yy - zz, 0)
        w = np.sqrt(rest)
    squared = xx + yy
    squared += zz
    squared += w * w
    failed = np.flatnonzero(squared == 0)
    if len(failed):
        squared[failed] = 1
    # with 2 / |q|² instead of 2, the formula also normalises
    twice = np.float32(2) / squared
    tx, ty, tz = x * twice, y * twice, z * twice
    normals[:, 0] = tx * z + ty * w
    normals[:, 1] = ty * z - tx * w
    normals[:, 2] = 1 - (tx * x + ty * y)
    tangents[:, 0] = 1 - (ty * y + tz * z)
    tangents[:, 1] = tx * y + tz * w
    tangents[:, 2] = tx * z - ty * w
    if len(failed):
        normals[failed] = 0
        tangents[failed] = (0, 0, 0, 1)
    return failed


def encode_frames(normals: sc.FloatArray, tangents: sc.FloatArray, *, has_sign_byte: bool = False) -> sc.AnyArray:
    """Encode frames as quaternions, (n, 4) int16, for ``decode``.

    Parameters
    ----------
    normals:
        (n, 3) float32, unit length.
    tangents:
        (n, 4) float32: direction, which is made perpendicular to the normal (any if it is parallel to it), and
        the sign of the bitangent along Blender's +dP/dv; sign 0 means either and becomes 1.
    has_sign_byte:
        Store only the handedness in w (ms10).
    """
    count = len(normals)
    stored = np.empty((count, 4), np.int16)
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        _encode_block(normals[block], tangents[block], has_sign_byte, stored[block])
    return stored


def _encode_block(normals: sc.FloatArray, tangents: sc.FloatArray, has_sign_byte: bool, stored: sc.AnyArray) -> None:
    """Encode normals (n, 3) and tangents (n, 4) as quaternions into ``stored`` (n, 4), see the format page."""
    nx, ny, nz = np.ascontiguousarray(normals.T)
    tx, ty, tz, side = np.ascontiguousarray(tangents.T)
    # If the normal points down, first rotate everything by 180° about x, since the shortest rotation to -z is
    # undefined.
    down = nz < 0
    turn = np.where(down, np.float32(-1), np.float32(1))
    ny, nz, ty, tz = ny * turn, nz * turn, ty * turn, tz * turn
    # The shortest rotation of z to the normal is (-ny, nx, 0, 1 + nz). It follows a rotation about z given by the part
    # of the tangent perpendicular to the normal: (c, s) are its coordinates in the rotated x and y.
    lift = nz + 1
    along = (nx * tx + ny * ty) / lift + tz
    c, s = _half_turn(tx - nx * along, ty - ny * along)
    aimless = down & (tx == 0)
    if aimless.any():
        # Without a tangent, any direction is valid. Normals that point nearly straight down get the direction with the
        # largest w: a w below 0.001 cannot be stored, and increasing it would bend the normal.
        aimless &= (ty == 0) & (tz == 0) & (nz > np.float32(_NEARLY_DOWN)) & (nx * nx + ny * ny > 0)
        reach = np.sqrt(nx * nx + ny * ny)[aimless]
        c[aimless], s[aimless] = ny[aimless] / reach, -nx[aimless] / reach
    x, y, z, w = nx * s - ny * c, nx * c + ny * s, lift * s, lift * c
    x, y, z, w = np.where(down, w, x), np.where(down, -z, y), np.where(down, y, z), np.where(down, -x, w)
    squared = x * x
    squared += y * y
    squared += z * z
    squared += w * w
    unit = np.float32(_ONE) / np.sqrt(squared)
    unit[w < 0] *= -1  # q and -q are the same rotation; use the one with positive w
    np.multiply(w, unit, out=w)
    handedness = np.where(side >= 0, np.float32(-1), np.float32(1))
    if has_sign_byte:
        stored[:, :3] = _beside_a_sign_byte(np.stack((x * unit, y * unit, z * unit)), w).T
        stored[:, 3] = handedness * np.float32(_HANDED_BYTE)
        return
    _lift_w(x, y, z, w, unit)
    np.maximum(w, np.float32(_SMALLEST_W * _ONE), out=w)
    unit *= handedness  # the sign of the stored w is the handedness
    for column, component in enumerate((x, y, z)):
        stored[:, column] = _truncated(component * unit)
    stored[:, 3] = _truncated(w * handedness)


def _lift_w(x: sc.FloatArray, y: sc.FloatArray, z: sc.FloatArray, w: sc.FloatArray, unit: sc.FloatArray) -> None:
    """Increase values of w that are too small to be stored, by rotating frames about their normals by 3.5° at most.

    Storing a larger w than the real one would bend the normal by twice the difference, which is worse than a rotated
    tangent. For normals that point down there is no such rotation: z and w are both nearly 0, whatever the tangent.
    """
    least = np.float32(_SMALLEST_W * _ONE)
    low = np.flatnonzero(w < np.float32(_LEAST_STORED))
    if not len(low):
        return
    scale = unit[low]
    one, other, up, real = x[low], y[low], z[low], w[low]
    along = up * scale
    # q rotated about its own z axis; s is the sine of half the angle: w' = c w - s z
    s = (real - least) / np.where(np.abs(along) < 1, np.float32(np.inf), along)
    s[np.abs(s) > 2 * _MOST_LIFT] = 0  # the rotation would be too large, so leave the tangent unchanged
    np.clip(s, -_MOST_LIFT, _MOST_LIFT, out=s)
    c = np.sqrt(1 - s * s)
    x[low], y[low], z[low] = c * one + s * other, c * other - s * one, c * up + s * (real / scale)
    w[low] = c * real - s * along


def _beside_a_sign_byte(vectors: sc.FloatArray, w: sc.FloatArray) -> sc.FloatArray:
    """Truncate x, y, z (3, n), adjusted by one or two steps where the w computed from them would be wrong.

    A small w depends on the last bits of the other components: truncation alone would rotate some frames by a degree.
    """
    whole = _truncated(vectors)
    wanted = w.astype(np.float64) ** 2

    def miss(candidates: npt.NDArray[np.float64], target: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        rest = float(_ONE * _ONE) - np.einsum("i...,i...->...", candidates, candidates)
        missed: npt.NDArray[np.float64] = np.abs(np.sqrt(np.maximum(rest, 0)) - np.sqrt(target))
        return missed

    wrong = np.flatnonzero(miss(whole.astype(np.float64), wanted) > _MISSED_STEPS)
    if len(wrong):
        toward = np.where(vectors[:, wrong] < 0, -1.0, 1.0)
        tried = whole[:, wrong, None] + toward[:, :, None] * _STEPS[:, None, :]
        np.clip(tried, -_ONE, _ONE, out=tried)
        best = miss(tried, wanted[wrong, None]).argmin(axis=1)
        whole[:, wrong] = tried[:, np.arange(len(wrong)), best]
    return whole


def _half_turn(c: sc.FloatArray, s: sc.FloatArray) -> tuple[sc.FloatArray, sc.FloatArray]:
    """Return the cosine and sine, (n,), of half the angle of the vectors (c, s), which may have any length.

    The vector (0, 0) has the angle 0.
    """
    length = np.sqrt(c * c + s * s)
    flat = length < np.float32(1e-12)
    if flat.any():
        c, s, length = np.where(flat, np.float32(1), c), np.where(flat, np.float32(0), s), np.where(flat, 1, length)
    # (length + c, s) and (s, length - c) both have half the angle; use the one that is not near zero.
    ahead = c >= 0
    reach = length + np.abs(c)
    return np.where(ahead, reach, s), np.where(ahead, s, reach)


def _truncated(values: sc.FloatArray) -> sc.FloatArray:
    return np.trunc(values + np.copysign(np.float32(_NOISE), values))


_Array = TypeVar("_Array", bound=sc.AnyArray)

# The rotation by 180° about Z is the quaternion k = (0, 0, 0, 1): k q = (-z, -y, x, w), and back conj(k) q = (z, y, -x,
# -w). Rotating back with k instead of conj(k) would be the same rotation, but give -q instead of q.
_ORDER = [3, 2, 1, 0]
_THERE = (-1.0, -1.0, 1.0, 1.0)
_BACK = (1.0, 1.0, -1.0, -1.0)


def rotate_180(scene: sc.Scene, *, back: bool = False) -> sc.Scene:
    """Return the scene rotated by 180° about Z, or rotated back; the given scene is not modified.

    Points, normals, tangents and shape keys of meshes, vertex animations, the bind transforms of root joints and their
    tracks are rotated. Transforms of nodes are not: meshes are rotated within them.
    """
    return replace(
        scene,
        nodes=[replace(node, mesh=turned_mesh(node.mesh)) if node.mesh else node for node in scene.nodes],
        skeletons=[_turned_skeleton(skeleton, back) for skeleton in scene.skeletons],
        clips=[_turned_clip(clip, scene, back) for clip in scene.clips],
    )


def turned_mesh(mesh: sc.Mesh) -> sc.Mesh:
    """Return a mesh rotated by 180° about Z. Applying it twice is the identity."""
    return replace(
        mesh,
        points=_vectors(mesh.points),
        normal=_layer(mesh.normal),
        tangent=_layer(mesh.tangent),
        shape_keys=[_shape_key(key) for key in mesh.shape_keys],
    )


def _vectors(values: _Array) -> _Array:
    """Rotate (…, 3 or more) by negating x and y."""
    changed = values.copy()
    # np.negative is not used: NumPy 2.4 writes wrong values with some strides.
    np.multiply(values[..., :2], values.dtype.type(-1), out=changed[..., :2])
    return changed


def _rotations(values: _Array, back: bool) -> _Array:
    """Rotate quaternions (…, 4), w first."""
    changed: _Array = values[..., _ORDER] * np.asarray(_BACK if back else _THERE, values.dtype)
    return changed


def _layer(layer: sc.Layer | None) -> sc.Layer | None:
    return replace(layer, values=_vectors(layer.values)) if layer is not None else None


def _shape_key(key: sc.ShapeKey) -> sc.ShapeKey:
    return replace(key, points=_vectors(key.points), normal=_layer(key.normal), tangent=_layer(key.tangent))


def _turned_skeleton(skeleton: sc.Skeleton, back: bool) -> sc.Skeleton:
    return replace(skeleton, joints=[_turned_joint(joint, back) for joint in skeleton.joints])


def _turned_joint(joint: sc.Joint, back: bool) -> sc.Joint:
    """Return a joint rotated by 180 degrees about z; only roots change their local transform."""
    changed = replace(joint)
    if joint.inverse_bind is not None:
        # The inverse of a rotated matrix is the old inverse times the inverse rotation, which equals the rotation.
        changed.inverse_bind = joint.inverse_bind * np.array((-1, -1, 1, 1), joint.inverse_bind.dtype)
    if joint.parent < 0:
        x, y, z = joint.translation
        changed.translation = (-x, -y, z)
        w, *axis = (joint.rotation[place] * sign for place, sign in zip(_ORDER, _BACK if back else _THERE, strict=True))
        changed.rotation = (w, axis[0], axis[1], axis[2])
    return changed


def _turned_clip(clip: sc.Clip, scene: sc.Scene, back: bool) -> sc.Clip:
    return replace(
        clip,
        transforms=[_turned_track(track, scene, back) for track in clip.transforms],
        vertices=[_turned_vertices(track) for track in clip.vertices],
    )


def _turned_track(track: sc.TransformTrack, scene: sc.Scene, back: bool) -> sc.TransformTrack:
    if track.skeleton is None or scene.skeletons[track.skeleton].joints[track.target].parent >= 0:
        return track
    return replace(track, translation=_vectors(track.translation), rotation=_rotations(track.rotation, back))


def _turned_vertices(track: sc.VertexTrack) -> sc.VertexTrack:
    return replace(
        track,
        points=_vectors(track.points),
        normals=_vectors(track.normals) if track.normals is not None else None,
        tangents=_vectors(track.tangents) if track.tangents is not None else None,
    )
