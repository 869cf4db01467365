"""Second Life Animation: names, capabilities, options, and recognition by plausible values (format page, section 1)."""

import math
import struct

from ...core.capabilities import Capabilities
from ...core.format import FileFormat, modules_of
from ...core.options import Choice, Options, option
from ...core.recognition import Match, NearMiss
from ..options import _knows_joint

LONGEST = 60.0
"""Length in seconds above which the viewer refuses an animation."""


class WriteOptions(Options):
    """The options for writing animations."""

    animation_priority: str = option(
        "Priority",
        "Which animation moves a joint if several play: the one of the highest priority",
        default="ACTION",
        section="Animation",
        choices=(
            Choice("ACTION", "As in the Action", "The priority stored with the action; 3 if it has none"),
            *(
                Choice(str(number), str(number), said)
                for number, said in enumerate(
                    (
                        "Idle movements",
                        "Low",
                        "Walking and running in many sets",
                        "Gestures and dances",
                        "Most poses",
                        "Above what the upload window of the viewer offers for .bvh",
                        "The highest",
                    )
                )
            ),
        ),
    )
    use_positions: bool = option(
        "Positions",
        "Also store positions of joints other than the pelvis. They deform avatars whose bodies have joint "
        "positions of their own, even after the animation has stopped",
        default=False,
        section="Animation",
    )
    use_avatar_proportions: bool = option(
        "Fit Pelvis",
        "Scale the movement of the pelvis by the length of the legs, so that the feet of the standard "
        "avatar stay on the ground",
        default=True,
        section="Animation",
    )
    use_key_reduction: bool = option(
        "Reduce Keys", "Leave out keys that follow from others within 0.1° and 1 mm", default=True, section="Animation"
    )


_VERSIONS = (b"\x01\x00\x00\x00", b"\x00\x00\x01\x00")
_LONGEST = 3600.0
"""Largest duration in seconds that is plausible. Viewers refuse more than 60 s, which the checks report."""
_MOST_LETTERS = 256
"""Largest plausible length of the name of an emote or a joint, in bytes."""


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return whether the file starts with the header of an animation and the name of a joint.

    For an animation that is cut off within its header, or has an implausible one, the result is a NearMiss.
    """
    if _is_plausible(head, "<ffiffIix"):
        return Match.LENGTH
    return NearMiss("This is a Second Life animation") if _is_plausible(head, "<ff") else Match.NONE


def _is_plausible(head: bytes, layout: str) -> bool:
    """Return whether version, priority, duration and the values after the emote's name are plausible.

    ``layout`` is the ``struct`` format of these last values.
    """
    if len(head) < 12 or head[:4] not in _VERSIONS:
        return False
    priority, duration = struct.unpack_from("<if", head, 4)
    end = head.find(b"\0", 12) + 1
    if not (-1 <= priority <= 100 and 0 <= duration <= _LONGEST and 0 < end <= 13 + _MOST_LETTERS):
        return False
    if end + struct.calcsize(layout) > len(head):
        return False
    loop_in, loop_out, *others = struct.unpack_from(layout, head, end)
    times = (loop_in, loop_out, *others[1:3])
    joints = others[-1] if others else 1
    return all(math.isfinite(time) and abs(time) <= _LONGEST for time in times) and -1 <= joints <= 10_000


_ANIMATION = Capabilities(
    meshes=False, skeletons=True, joint_clips=True, keyed_clips=True, longest_clip=LONGEST, knows_joint=_knows_joint
)
SECOND_LIFE_ANIMATION = FileFormat(
    name="second_life_animation",
    label="Second Life Animation",
    extensions=(".anim",),
    capabilities=_ANIMATION,
    modules=modules_of(__package__),
    export_options=WriteOptions,
)


HAND_POSES = (
    "Spread",
    "Relaxed",
    "Point Both",
    "Fist",
    "Relaxed Left",
    "Point Left",
    "Fist Left",
    "Relaxed Right",
    "Point Right",
    "Fist Right",
    "Salute Right",
    "Typing",
    "Peace Right",
    "Palm Right",
)
"""Label of each hand pose; the index is the number in the file."""

EMOTES = {
    "": "None",
    "express_open_mouth": "Aaaaah",
    "express_afraid_emote": "Afraid",
    "express_anger_emote": "Angry",
    "express_toothsmile": "Big Smile",
    "express_bored_emote": "Bored",
    "express_cry_emote": "Cry",
    "express_disdain": "Disdain",
    "express_embarrassed_emote": "Embarrassed",
    "express_frown": "Frown",
    "express_kiss": "Kiss",
    "express_laugh_emote": "Laugh",
    "express_tongue_out": "Plllppt",
    "express_repulsed_emote": "Repulsed",
    "express_sad_emote": "Sad",
    "express_shrug_emote": "Shrug",
    "express_smile": "Smile",
    "express_surprise_emote": "Surprise",
    "express_wink_emote": "Wink",
    "express_worry_emote": "Worry",
}
"""Label of each face expression by its name in files; viewers ignore case."""
NO_EMOTE = "closed_mouth"
"""Name that has the same effect as an empty name: no expression."""


def emote_label(name: str) -> str:
    """Return the label of an expression, or its name if the table has no label."""
    return EMOTES.get("" if name.lower() == NO_EMOTE else name.lower(), name)


def is_emote(name: str) -> bool:
    """Return whether viewers know an expression."""
    return name.lower() in {*EMOTES, NO_EMOTE}


def hand_pose_label(number: int) -> str:
    """Return the label of a hand pose, or its number as text if the table has no label."""
    return HAND_POSES[number] if number < len(HAND_POSES) else str(number)
