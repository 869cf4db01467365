"""Check an animation against the rules of the viewer's uploader (animation format page, sections 3 to 6 and 10)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...core.messages import OWN_FORMAT, Message, Named, Text, counted, error, listed, of_kind, warning
from ..avatar import joints as avatar_joints
from . import codec
from . import keys as animation_keys
from .codec import LONGEST_CHAIN, MOST_CONSTRAINTS, SecondLifeAnimation, decode_text
from .document_builder import MOST_BYTES, bone_items, largest_joints, moment_item
from .format import LONGEST, is_emote

_REFUSED = ("mRoot", "mScreen")
_HIGHEST_PRIORITY = 6
_LAST_HAND = 13
_GROUND = "GROUND"
"""Name that a file stores as the target of a constraint to the ground, which is not a volume."""
_LAST_TYPE = 1


def check(document: SecondLifeAnimation) -> list[Message]:
    """Return errors for what the viewer refuses, and warnings for what it changes or ignores.

    Errors of a file do not prevent writing it in its own format again.
    """
    findings = (_joints, _length, _priorities, _constraints, _playback, _positions, _loop)
    item = Text("The animation")
    return [replace(found, item=item, allowed_by=OWN_FORMAT) for part in findings for found in part(document)]


def _joints(document: SecondLifeAnimation) -> Iterator[Message]:
    names = [decode_text(joint.name) for joint in document.joints]
    refused = [name for name in names if name in _REFUSED]
    if refused:
        template = "viewers refuse animations of these joints: {}"
        yield error("refused-joints", template, listed(of_kind("bone", refused)), elements=bone_items(refused))
    unknown = [name for name in names if name not in _REFUSED and not avatar_joints.is_animatable(name)]
    if unknown:
        template = "the avatar has no joint {}, so the upload is refused"
        yield error("unknown-animated-joints", template, listed(of_kind("bone", unknown)), elements=bone_items(unknown))
    if not any(joint.key_count for joint in document.joints):
        yield error("animation-without-keys", "it has no keys", elements=bone_items(names) if names else None)


def _length(document: SecondLifeAnimation) -> Iterator[Message]:
    if not 0 <= document.duration <= LONGEST:
        template = "it is {:.1f} s long; viewers take 0 to {:.0f} s"
        yield error("animation-too-long", template, document.duration, LONGEST, elements=moment_item(LONGEST))
    size = len(codec.write(document))
    if size > MOST_BYTES:
        template = "it has {:,} bytes; an upload may have {:,}"
        yield error("animation-too-large", template, size, MOST_BYTES, elements=largest_joints(document.joints))


def _playback(document: SecondLifeAnimation) -> Iterator[Message]:
    loop_in, loop_out, duration = document.loop_in, document.loop_out, document.duration
    if not 0 <= loop_in <= loop_out <= duration and document.loop:
        template = "its loop from {:.2f} to {:.2f} s is not within its length of {:.2f} s"
        time = moment_item(min(max(loop_out, 0.0), duration))
        yield warning("loop-beyond-animation", template, loop_in, loop_out, duration, elements=time)
    if not document.loop and document.ease_in + document.ease_out > duration:
        template = "ease in and ease out together are longer than the animation"
        yield warning("ease-beyond-animation", template, elements=moment_item(max(duration - document.ease_out, 0.0)))
    emote = decode_text(document.emote)
    if not is_emote(emote):
        yield warning("unknown-expression", "viewers may not know the expression '{}'", Named("animation", emote))


def _constraints(document: SecondLifeAnimation) -> Iterator[Message]:
    if len(document.constraints) > MOST_CONSTRAINTS:
        template = "it has {} constraints; viewers ignore all if there are over {}"
        yield warning("too-many-constraints", template, len(document.constraints), MOST_CONSTRAINTS)
    elif unusable := unusable_constraints(document):
        yield error(
            "unusable-constraints",
            "viewers refuse {}, for which a volume or an animated joint is missing: {}",
            counted(len(unusable), "constraint"),
            listed(of_kind("bone", {_name(document.constraints[number]["source"]): 0 for number in unusable})),
        )
    if any(chain > LONGEST_CHAIN for chain in document.constraints["chain_length"].tolist()):
        template = "a constraint bends more than {} joints, which can crash viewers"
        yield error("constraint-chain-too-long", template, LONGEST_CHAIN)


def _loop(document: SecondLifeAnimation) -> Iterator[Message]:
    """Warn if a looped animation jumps from its end to its start."""
    opened = [jump for jump in animation_keys.loop_jumps(document) if not jump.is_closed]
    if opened:
        names = [jump.joint for jump in opened]
        yield warning(
            "loop-jumps",
            "the loop jumps by up to {:.1f}° and {:.0f} mm from its end to its start: {}",
            max(jump.degrees for jump in opened),
            max(jump.millimetres for jump in opened),
            listed(names),
            elements=bone_items(names),
        )


def _priorities(document: SecondLifeAnimation) -> Iterator[Message]:
    if not 0 <= document.base_priority <= _HIGHEST_PRIORITY:
        template = "its priority is {}, but must be 0 to {}"
        yield error("invalid-priority", template, document.base_priority, _HIGHEST_PRIORITY)
    high = [decode_text(joint.name) for joint in document.joints if not -1 <= joint.priority <= _HIGHEST_PRIORITY]
    if high:
        template = "the priority must be -1 to {}: {}"
        yield error("invalid-joint-priority", template, _HIGHEST_PRIORITY, listed(high), elements=bone_items(high))
    if document.hand_pose > _LAST_HAND:
        template = "hand pose {} does not exist; the highest is {}"
        yield error("unknown-hand-pose", template, document.hand_pose, _LAST_HAND)


def _positions(document: SecondLifeAnimation) -> Iterator[Message]:
    moved, far, times = [], [], []
    for joint in document.joints:
        if not len(joint.position):
            continue
        name = decode_text(joint.name)
        if joint.known != avatar_joints.ROOT:
            moved.append(name)
        keys = animation_keys.position_keys(document, joint)
        beyond = abs(keys.values).max(axis=1) > codec.FARTHEST * 0.9999
        if beyond.any():
            far.append(name)
            times.append(round(float(keys.times[beyond][0]) * 1000))
    if moved:
        template = "positions of joints deform avatars with joint positions of their own, even after it has stopped: {}"
        yield warning("joint-positions", template, listed(of_kind("bone", moved)), elements=bone_items(moved))
    if far:
        first = min(times) / 1000
        template = "positions end at {:.0f} m, from {:.2f} s on: {}"
        yield warning(
            "far-positions", template, codec.FARTHEST, first, listed(of_kind("bone", far)), elements=moment_item(first)
        )


def unusable_constraints(document: SecondLifeAnimation) -> list[int]:
    """Return the constraints that viewers refuse, by index.

    Their type or a volume does not exist, they bend too many joints, or a joint that they bend is not in the file.
    """
    joints = {joint.known for joint in document.joints}
    return [number for number, found in enumerate(document.constraints) if not _is_usable(found, joints)]


def _is_usable(constraint: Any, joints: set[str]) -> bool:
    source, target, length = _name(constraint["source"]), _name(constraint["target"]), int(constraint["chain_length"])
    if not _is_volume(source) or not (target == _GROUND or _is_volume(target)):
        return False
    chain = avatar_joints.ancestors(source)[1 : length + 2]
    return constraint["type"] <= _LAST_TYPE and length <= LONGEST_CHAIN and joints.issuperset(chain)


def _is_volume(name: str) -> bool:
    joint = avatar_joints.table().get(name)
    return joint is not None and joint.is_collision_volume


def _name(stored: Any) -> str:
    """Decode a stored name: the bytes before its first zero byte."""
    return decode_text(stored.tobytes().partition(b"\0")[0])
