"""The avatar's skeleton: names, rest positions and axes of its joints (formats page, sections 4.3, 4.4 and 7).

Everything is in the avatar's space: metres, Z up, X forward, Y to the left, origin on the ground between the feet.
Matrices are for column vectors.

With all joints, most of a shirt's weight goes to wings, tail and collision volumes: 76 % on a tube around the torso.
"""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.options import Choice
from ...core.scene import Skeleton
from ...geometry import hierarchy
from ...geometry.transforms import Matrix, euler_matrices
from ..models.space import TO_AVATAR

MOST_JOINTS = 110
"""Maximum number of joints that one mesh may be bound to."""

ROOT = "mPelvis"


@dataclass(frozen=True)
class TableJoint:
    """One row of the table."""

    name: str
    parent: str
    """Empty for the root."""
    kind: str
    """``bone``, ``collision_volume`` or ``attachment``."""
    is_connected: bool
    position: tuple[float, float, float]
    """Relative to the parent, in metres."""
    degrees: tuple[float, float, float]
    """Rotation in degrees about x, then y, then z; zero for bones."""
    scale: tuple[float, float, float]
    end: tuple[float, float, float]
    """End of the joint, relative to its head."""
    aliases: tuple[str, ...]
    group: str
    pivot: tuple[float, float, float]
    """Older position relative to the parent, up to 11 mm from ``position``; rigs of other programs may have it."""
    is_base: bool
    """Whether the joint belongs to the original skeleton and was not added in 2016."""
    is_uneven: bool
    """Whether it is a bone that a shape can scale by different factors along its axes."""

    @property
    def is_bone(self) -> bool:
        return self.kind == "bone"

    @property
    def is_collision_volume(self) -> bool:
        return self.kind == "collision_volume"

    @functools.cached_property
    def local(self) -> Matrix:
        """(4, 4): scale, then rotation, then translation.

        Children inherit only the translation, since bones have neither rotation nor scale.
        """
        matrix = np.identity(4)
        matrix[:3, 3] = self.position
        if not self.is_bone:
            turn = euler_matrices(np.array([self.degrees[::-1]]), "ZYX")[0]
            matrix[:3, :3] = turn @ np.diag(self.scale)
        matrix.setflags(write=False)
        return matrix

    @functools.cached_property
    def axes(self) -> Matrix:
        """(3, 3): own axes at rest as columns, without the scale; the identity for bones."""
        axes = np.asarray(self.local[:3, :3] / np.linalg.norm(self.local[:3, :3], axis=0))
        axes.setflags(write=False)
        return axes


_ON_SCREEN = "attachment_hud"
"""Kind of attachment points on the screen."""


@functools.cache
def rows_of(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a bundled table."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def three(row: Mapping[str, str], key: str, default: float = 0.0) -> tuple[float, float, float]:
    """Return the values of the columns of a vector, which are empty where they have the default."""
    x, y, z = (float(row[f"{key}_{axis}"] or default) for axis in "xyz")
    return (x, y, z)


@functools.cache
def table() -> dict[str, TableJoint]:
    """Return all joints by name, parents before children, without attachments to the screen."""
    found: dict[str, TableJoint] = {}
    for row in rows_of("skeleton.csv"):
        if row["kind"] == _ON_SCREEN:
            continue  # attachment points on the screen, to which no mesh can be bound
        found[row["name"]] = TableJoint(
            row["name"],
            row["parent"],
            row["kind"],
            row["connected"] == "true",
            three(row, "pos"),
            three(row, "rot"),
            three(row, "scale", 1.0),
            three(row, "end"),
            tuple(row["aliases"].split()),
            row["group"],
            three(row, "pivot") if row["pivot_x"] else three(row, "pos"),
            row["support"] == "base",
            row["uneven"] == "true",
        )
    return found


@functools.cache
def _names() -> dict[str, str]:
    """Return the joint for each accepted name: its own, its aliases, and with ``_`` for spaces."""
    found: dict[str, str] = {}
    for joint in table().values():
        for name in (*joint.aliases, joint.name.replace(" ", "_")):
            found.setdefault(name, joint.name)
    found.update((name, name) for name in table())
    return found


def canonical(name: str) -> str | None:
    """Return the table's name of a joint from its name or alias, or None if the viewer does not know it."""
    return _names().get(name)


@functools.cache
def aliases() -> dict[str, tuple[str, ...]]:
    """Return the other accepted names of each joint."""
    found: dict[str, list[str]] = {name: [] for name in table()}
    for accepted, name in _names().items():
        if accepted != name:
            found[name].append(accepted)
    return {name: tuple(accepted) for name, accepted in found.items()}


@functools.cache
def screen_attachments() -> frozenset[str]:
    """Return the names of attachment points on the screen, with spaces and with ``_``; animations may name them."""
    names = [row["name"] for row in rows_of("skeleton.csv") if row["kind"] == _ON_SCREEN]
    return frozenset([*names, *(name.replace(" ", "_") for name in names)])


def is_animatable(name: str) -> bool:
    """Return whether viewers accept an animation of a joint: one of the table, or an attachment point on the screen."""
    return canonical(name) is not None or name in screen_attachments()


@functools.cache
def rest_matrices() -> dict[str, Matrix]:
    """Return each joint's rest matrix in avatar space, (4, 4); for bones a translation."""
    found: dict[str, Matrix] = {}
    for joint in table().values():
        # Some attachments have the parent mRoot, which is not in the table: its matrix is the identity.
        above = found.get(joint.parent, np.identity(4))
        matrix = above @ joint.local
        matrix.setflags(write=False)
        found[joint.name] = matrix
    return found


def ancestors(name: str) -> list[str]:
    """Return a joint and its ancestors, the root last."""
    chain = [name]
    while (parent := table()[chain[-1]].parent) in table():
        chain.append(parent)
    return chain


_SIDES = (("Left", "Right"), ("LEFT", "RIGHT"), ("L_", "R_"), ("Right", "Left"), ("RIGHT", "LEFT"), ("R_", "L_"))


def other_side(name: str) -> str | None:
    """Return the joint on the other side of the body, or None if it is in the middle or unknown."""
    for one, other in _SIDES:
        swapped = name.replace(one, other, 1)
        if swapped != name and swapped in table():
            return swapped
    return None


def is_left(name: str) -> bool:
    """Return whether a joint is the left one of a pair."""
    return other_side(name) is not None and ("Left" in name or "LEFT" in name or name.startswith("L_"))


def left_of(heads: Mapping[str, Matrix]) -> Matrix | None:
    """Return the direction to the avatar's left: the median of left joints minus their right ones, (3,).

    Return None without a pair. A limb of which a mesh moves the joints on one side does not change the median.

    ``heads`` are the positions of joints by canonical name, in any space. In avatar space the result is +Y for any limb
    lengths.
    """
    pairs = [
        heads[name] - heads[other]
        for name in heads
        if name in table() and is_left(name) and (other := other_side(name)) is not None and other in heads
    ]
    if not pairs:
        return None
    left: Matrix = np.median(pairs, axis=0)
    return left if np.linalg.norm(left) > 1e-6 else None


BODY = "BODY"
HANDS_AND_FACE = "HANDS_FACE"
EVERYTHING = "EVERYTHING"

_FACE_GROUPS = frozenset({"Face", "Eyes", "Ears", "Nose", "Mouth", "Lips"})
_HAND_GROUP = "Hand"
_EYES = frozenset({"mEyeLeft", "mEyeRight"})
"""Joints of the classic skeleton that turn with the avatar's gaze. Skin that is weighted to them would move with it."""


CHOICES = (
    Choice(
        BODY,
        "Body",
        "The bones of the classic avatar without its eyes; fingers, face, wings, tail and hind limbs get no weights",
    ),
    Choice(HANDS_AND_FACE, "Body, Hands and Face", "Also the bones of fingers, eyes and face"),
    Choice(EVERYTHING, "Everything", "All bones and collision volumes"),
)


def is_chosen(joint: TableJoint, choice: str) -> bool:
    """Return whether a joint takes part in automatic weights; ``choice`` is the key of one of ``CHOICES``."""
    if choice == EVERYTHING:
        return True
    if not joint.is_bone:
        return False
    if joint.is_base and joint.name not in _EYES:
        return True
    return choice == HANDS_AND_FACE and (
        joint.name in _EYES or joint.group in _FACE_GROUPS or joint.group == _HAND_GROUP
    )


_QUARTER = np.radians(1.0)
"""Tolerance for snapping a rig to multiples of 90°, in radians."""


def facing_of(heads: Mapping[str, Matrix]) -> Matrix:
    """Return the same as :func:`facing` for the positions of joints, (3,), by their names in the table."""
    left = left_of(heads)
    if left is None:
        return _nearest_quarter(heads)
    if np.hypot(left[0], left[1]) < 0.1 * np.linalg.norm(left):
        return TO_AVATAR.copy()
    angle = np.pi / 2 - np.arctan2(left[1], left[0])
    quarters = round(angle / (np.pi / 2))
    if abs(angle - quarters * np.pi / 2) <= _QUARTER:
        cosine, sine = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    else:
        cosine, sine = float(np.cos(angle)), float(np.sin(angle))
    turn = np.identity(4)
    turn[:2, :2] = ((cosine, -sine), (sine, cosine))
    return turn


_ALIKE, _LEAST = 0.01, 1e-4
"""Differences up to which the distances of turned joints are alike: a share of them, and metres."""


def _nearest_quarter(heads: Mapping[str, Matrix]) -> Matrix:
    """Return the rotation by a multiple of 90° about Z that moves joints nearest to those of the table, (4, 4).

    It is that of a figure that faces -Y if several rotations are alike, as for a single joint. Location and size of the
    joints do not count.
    """
    names = [name for name in heads if name in rest_matrices()]
    if len(names) < 2:
        return TO_AVATAR.copy()
    given = np.array([heads[name] for name in names])
    wanted = np.array([rest_matrices()[name][:3, 3] for name in names])
    given, wanted = given - given.mean(axis=0), wanted - wanted.mean(axis=0)
    given = given * (np.linalg.norm(wanted) / max(float(np.linalg.norm(given)), 1e-9))
    turns = [np.linalg.matrix_power(TO_AVATAR, quarters) for quarters in (1, 2, 3, 4)]
    apart = [float(np.sqrt(((given @ turn[:3, :3].T - wanted) ** 2).sum(axis=1).mean())) for turn in turns]
    first, second = np.argsort(apart)[:2].tolist()
    is_clear = apart[second] - apart[first] > max(_ALIKE * apart[first], _LEAST)
    return turns[first if is_clear else 0].copy()


_STRAIGHT = 1e-4
"""Tolerance for the elements of a 3 × 3 matrix up to which an imported joint has the same axes as the avatar's
joint."""


def world_matrices(skeleton: Skeleton) -> Matrix:
    """Return the rest matrix of every joint in the space of the skeleton, (J, 4, 4) float64."""
    return hierarchy.placed_matrices(skeleton.joints)


def facing(skeleton: Skeleton) -> Matrix:
    """Return the rotation about Z, (4, 4), from a skeleton's space to the avatar's, in which it faces +X.

    Its left joints are rotated to +Y. Rotations within 1° of a multiple of 90° are snapped to it, so that values stay
    exact. A skeleton without a pair of joints gets the multiple of 90° at which it is nearest to the table.
    """
    heads: dict[str, Matrix] = {}
    for joint, world in zip(skeleton.joints, world_matrices(skeleton), strict=True):
        known = canonical(joint.name)
        if known is not None:
            heads.setdefault(known, world[:3, 3])
    return facing_of(heads)
