"""Which joints of the avatar take part in automatic weights.

With all joints, most of a shirt's weight goes to wings, tail and collision volumes: 76 % on a tube around the torso.
"""

from __future__ import annotations

from ...core.options import Choice
from .skeleton_table import TableJoint

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
