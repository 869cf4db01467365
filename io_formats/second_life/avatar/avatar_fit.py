"""Transforms that move a model from the joints of another rig to those of the standard avatar.

All positions and matrices are in the avatar's space as Blender shows it: it faces -Y with its left at +X. Matrices are
for column vectors.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ...core.errors import MeshferryError
from ...core.messages import Text, listed
from ...geometry.transforms import Floats
from ..models import space
from . import joints, skeletons

_UP: Floats = np.array((0.0, 0.0, 1.0))
_SPINE = ("mHead", "mNeck", "mChest", "mTorso")
_MAIN_CHILDREN = frozenset({"mTorso", "mChest", "mNeck", "mHead", "mHandMiddle1Left", "mHandMiddle1Right"})
"""For a parent with several children, the child that the parent points to."""
_UPRIGHT = ("Torso",)
"""Groups whose joints have different positions inside the body in each rig: rotating the body by them would tilt it."""
_LEVEL = ("mCollar", "mFoot", "mToe")
"""Prefixes of the names of joints that are scaled but not rotated to fit: collar bones of other rigs start at the
breastbone, and soles must stay level."""
_ARM, _LEG = ("mShoulder", "mElbow", "mWrist"), ("mHip", "mKnee", "mAnkle")
_LEAST_SINE = 0.2
"""Smallest rise from a joint to its child, relative to their distance, for stretching along the vertical axis. Below
it, they are beside rather than above each other."""

_ALONG = np.cos(np.radians(1.0))
"""Cosine of the angle up to which the avatar's left counts as an axis of the rig, so that values stay exact."""
_MOST_DEGREES = 10.0
"""Smallest angle in degrees between a limb and that of the avatar with which animations look wrong."""


def avatar_axes(heads: Mapping[str, Floats]) -> Floats:
    """Return the axes, (3, 3) as columns, of the avatar that is to replace a rig.

    Left is the direction of the left joints from the right ones; up is the axis of the rig nearest to the spine.

    Parameters
    ----------
    heads:
        Position of each mapped joint along the axes of the rig.

    Raises
    ------
    MeshferryError
        Joints are missing that define the directions.
    """
    left = joints.left_of(heads)
    top = next((name for name in _SPINE if name in heads), None)
    if left is None or top is None or joints.ROOT not in heads:
        raise MeshferryError(
            "The bone table must name the bones of mPelvis, of the spine or head, and of joints on both sides"
        )
    spine = heads[top] - heads[joints.ROOT]
    axis = int(np.abs(spine).argmax())
    up = np.identity(3)[axis] * np.sign(spine[axis])
    left = left - up * (left @ up)
    if np.linalg.norm(left) < 1e-6 or not np.isfinite(left).all():
        raise MeshferryError("The left and right bones of the armature are above each other, so its front is unknown")
    left /= np.linalg.norm(left)
    if np.abs(left).max() > _ALONG:
        left = np.rint(left)
    return np.column_stack((left, np.cross(up, left), up))


def standard_heads() -> dict[str, Floats]:
    """Return the position of each joint of the standard avatar, (3,)."""
    turn = space.TO_BLENDER[:3, :3]
    return {name: turn @ matrix[:3, 3] for name, matrix in joints.rest_matrices().items()}


def fit_matrices(heads: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return for each mapped joint the transform, (4, 4), that fits its vertices to the standard avatar.

    Limbs rotate and stretch from joint to joint, the spine only shifts and stretches, and all other parts are scaled by
    one common factor. Joints of the face and collision volumes move with the joint above, since their positions do not
    follow the surface.
    """
    wanted, children = standard_heads(), _children(heads)
    size = _size(heads, wanted, children)
    turns: dict[str, Floats] = {}
    found: dict[str, Floats] = {}
    for name, below in children.items():
        turn = turns.get(_nearest(name, turns), np.identity(3))
        turns[name], found[name] = _fit(name, _main_child(below), heads, wanted, size, turn)
    root = found[joints.ROOT]
    return {name: found.get(name, found.get(_nearest(name, found), root)) for name in heads}


def aims(heads: Mapping[str, Floats]) -> dict[str, str]:
    """Return, for each mapped joint of the body that points to another joint, the name of that joint."""
    found = {name: _main_child(below) for name, below in _children(heads).items()}
    return {name: child for name, child in found.items() if child}


def rest_turns(heads: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the rotation of each mapped joint from the avatar's rest pose to that of the rig, (3, 3).

    Limbs and fingers turn until they point in the same directions as those of the rig. The spine is upright and soles
    are level in both, so they do not turn. ``heads`` are the positions of the mapped joints.
    """
    wanted, pointed = standard_heads(), aims(heads)
    turns: dict[str, Floats] = {}
    for name in (name for name in joints.table() if name in heads):
        if joints.table()[name].group in _UPRIGHT or name.startswith((*_LEVEL, "mAnkle")):
            turns[name] = np.identity(3)
            continue
        turn = turns.get(_nearest(name, turns), np.identity(3))
        if child := pointed.get(name):
            turn = _swing(turn @ (wanted[child] - wanted[name]), heads[child] - heads[name]) @ turn
        turns[name] = turn
    return turns


def joint_ends(heads: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the end of each joint of an armature, (3,), in the space of ``heads``, which may be any.

    The directions and lengths of bones play no part. A joint ends at the head of the joint that the table connects to
    it. Without one, its end is that of the standard avatar in the size and direction of the armature and of its limb.
    """
    linear = _similarity(heads)
    back = np.linalg.inv(linear)
    turns = rest_turns({name: back @ head for name, head in heads.items()})
    found = {}
    for name, head in heads.items():
        child = next((child for child in skeletons.connected_bones(name) if child in heads), None)
        if child is not None and np.linalg.norm(heads[child] - head) > 0:
            found[name] = heads[child]
        else:
            end = space.TO_BLENDER[:3, :3] @ joints.table()[name].end
            found[name] = head + linear @ turns[name] @ end
    return found


def _similarity(heads: Mapping[str, Floats]) -> Floats:
    """Return the rotation and even scale, (3, 3), that bring the standard avatar nearest to the joints at ``heads``.

    Directions that these joints do not define are not rotated.
    """
    standard = standard_heads()
    wanted, given = (np.array([places[name] for name in heads]) for places in (standard, heads))
    wanted, given = wanted - wanted.mean(axis=0), given - given.mean(axis=0)
    size = float(np.sqrt((given**2).sum() / max((wanted**2).sum(), 1e-12))) or 1.0
    u, _s, v = np.linalg.svd(given.T @ wanted / size + 1e-9 * np.identity(3))
    found: Floats = u @ np.diag((1.0, 1.0, np.linalg.det(u @ v))) @ v * size
    return found


def leg_ratio(heads: Mapping[str, Floats]) -> float:
    """Return the length of the avatar's legs relative to those of a rig; 1 if the rig has none."""
    pairs = _limb_bones(heads, _LEG)
    ours, theirs = (
        sum(float(np.linalg.norm(places[child] - places[name])) for name, child in pairs)
        for places in (standard_heads(), heads)
    )
    return ours / theirs if theirs > 0 else 1.0


def swings(before: Floats, after: Floats) -> Floats:
    """Return the shortest rotations (F, 3, 3) of directions ``before`` (F, 3) to directions ``after``.

    Opposite directions give the identity.
    """
    before, after = (
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12) for vectors in (before, after)
    )
    x, y, z = np.cross(before, after).T
    cosine = (before * after).sum(axis=1)
    zero = np.zeros_like(x)
    skew = np.array(((zero, -z, y), (z, zero, -x), (-y, x, zero))).transpose(2, 0, 1)
    share = np.where(cosine > -1 + 1e-6, 1 / np.maximum(1 + cosine, 1e-6), 0.0)[:, None, None]
    found: Floats = np.identity(3) + skew + skew @ skew * share
    return np.where((cosine > -1 + 1e-6)[:, None, None], found, np.identity(3))


def rest_angles(heads: Mapping[str, Floats]) -> dict[str, float]:
    """Return the angle in degrees between each mapped arm or leg joint and that of the standard avatar."""
    wanted = standard_heads()
    found = {}
    for name, child in _limb_bones(heads, _ARM, _LEG):
        along, rest = heads[child] - heads[name], wanted[child] - wanted[name]
        cosine = along @ rest / max(float(np.linalg.norm(along) * np.linalg.norm(rest)), 1e-12)
        found[name] = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return found


def pose_text(heads: Mapping[str, Floats]) -> Text:
    """Return a warning about limbs whose rest pose differs from the avatar's, or an empty text."""
    turned = {joint: angle for joint, angle in rest_angles(heads).items() if angle > _MOST_DEGREES}
    if not turned:
        return Text("")
    return Text(
        "The rest pose differs from the avatar's by up to {:.0f}° at {}, and animations will be off by as much: "
        "apply a "
        "T-pose as the rest pose first, or use Fit to Avatar",
        max(turned.values()),
        listed(list(turned)),
    )


def _limb_bones(heads: Mapping[str, Floats], *limbs: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of a mapped joint and the next mapped joint of the same limb, for limbs of both sides."""
    sides = [[f"{part}{side}" for part in limb] for side in ("Left", "Right") for limb in limbs]
    return [pair for limb in sides for pair in pairwise(limb) if pair[0] in heads and pair[1] in heads]


def _children(heads: Mapping[str, Floats]) -> dict[str, list[str]]:
    """Return, for each mapped joint that positions vertices, the next such joints below it; parents come first."""
    children: dict[str, list[str]] = {name: [] for name in joints.table() if name in heads and _drives(name)}
    for name in children:
        if above := _nearest(name, children):
            children[above].append(name)
    return children


def _drives(name: str) -> bool:
    """Return whether a joint positions the vertices that are weighted to it."""
    return joints.table()[name].is_bone and "mHead" not in joints.ancestors(name)[1:]


def _nearest(name: str, among: Mapping[str, object]) -> str:
    """Return the nearest ancestor of a joint among some joints, or an empty string."""
    return next((one for one in joints.ancestors(name)[1:] if one in among), "")


def _main_child(children: list[str]) -> str:
    """Return the child that a joint points to, or an empty string if none is preferred."""
    preferred = [name for name in children if name in _MAIN_CHILDREN]
    return (preferred or (children if len(children) == 1 else [""]))[0]


def _size(heads: Mapping[str, Floats], wanted: Mapping[str, Floats], children: Mapping[str, list[str]]) -> float:
    """Return the size of the avatar relative to the rig: the ratio of the summed lengths of all limbs."""
    pairs = [(name, child) for name, below in children.items() for child in below]
    limbs = [pair for pair in pairs if joints.table()[pair[0]].group in {"Arms", "Legs"}] or pairs
    before = sum(float(np.linalg.norm(heads[child] - heads[name])) for name, child in limbs)
    after = sum(float(np.linalg.norm(wanted[child] - wanted[name])) for name, child in limbs)
    if before <= 0 or after <= 0:
        raise MeshferryError("All mapped bones of the armature are at one position")
    return after / before


def _fit(
    name: str, child: str, heads: Mapping[str, Floats], wanted: Mapping[str, Floats], size: float, turn: Floats
) -> tuple[Floats, Floats]:
    """Return the rotation, (3, 3), and the transform, (4, 4), of one joint; ``turn`` is the rotation of its parent."""
    start, end = heads[name], wanted[name]
    hips = ("mHipLeft", "mHipRight")
    if name == joints.ROOT and all(hip in heads for hip in hips):
        # In other rigs the root may be anywhere between back and belly; the hip joints are well-defined.
        start, end = (np.mean([places[hip] for hip in hips], axis=0) for places in (heads, wanted))
    is_level = name.startswith(_LEVEL)
    if is_level and name.startswith("mCollar") and child:
        start, end = heads[child], wanted[child]
    is_upright = joints.table()[name].group in _UPRIGHT
    if is_level or is_upright:
        turn = np.identity(3)
    linear = size * turn
    if child and not is_level:
        before, after = heads[child] - start, wanted[child] - end
        length = float(np.linalg.norm(before))
        if length > 0 and not is_upright:
            turn = _swing(turn @ before, after) @ turn
            linear = size * turn
        axis = _UP if is_upright else before / max(length, 1e-12)
        if axis @ before > _LEAST_SINE * length:
            linear = linear + np.outer(after - linear @ before, axis) / (axis @ before)
    matrix = np.identity(4)
    matrix[:3, :3] = linear
    matrix[:3, 3] = end - linear @ start
    return turn, matrix


def _swing(before: Floats, after: Floats) -> Floats:
    """Return the shortest rotation of one direction onto another, (3, 3)."""
    before, after = (vector / max(float(np.linalg.norm(vector)), 1e-12) for vector in (before, after))
    if before @ after > -1 + 1e-6:
        return np.asarray(swings(before[None], after[None])[0])
    # opposite directions: rotate by 180° about any perpendicular axis
    across = np.cross(before, np.identity(3)[int(np.abs(before).argmin())])
    across /= np.linalg.norm(across)
    return 2 * np.outer(across, across) - np.identity(3)
