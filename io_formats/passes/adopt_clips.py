"""Transfer animations of one scene to a skeleton of another, by the names of bones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..core.errors import ExportError
from ..core.messages import Message, Named, Report, counted, listed
from ..core.scene import Clip, Joint, Scene, Skeleton

_SAME_BIND = 1e-4
"""Tolerance for comparing bind transforms."""


def adopt_clips(scene: Scene, other: Scene) -> list[Message]:
    """Add the bone animations of another scene to a scene; return the messages.

    Transforms of joints are absolute and local to their parents, so they are used unchanged. Tracks of bones that the
    scene's skeleton lacks are left out with a warning, and so are clips whose names the scene already has.

    Raises
    ------
    ExportError
        The scene has no bones, the other scene has no bone animation, or they have no bones in common.
    """
    clips = [clip for clip in other.clips if clip.transforms or not clip.frame_count]
    if not clips or not other.skeletons:
        raise ExportError("There is no animation of bones in '{}'", other.name)
    if not scene.skeletons:
        raise ExportError("'{}' has no bones that '{}' could animate", scene.name, other.name)
    report = Report()
    for number, skeleton in enumerate(other.skeletons):
        mine = [clip for clip in clips if _skeleton_of(clip) == number]
        if mine:
            _adopt(scene, mine, skeleton, number, report)
    return report.messages


def _adopt(scene: Scene, clips: Sequence[Clip], skeleton: Skeleton, number: int, report: Report) -> None:
    maps = [joint_map(skeleton.joints, known.joints) for known in scene.skeletons]
    best = max(range(len(maps)), key=lambda index: len(maps[index]))
    owner, where = scene.skeletons[best], maps[best]
    if not where:
        raise ExportError("'{}' has no bone of '{}'", owner.name, skeleton.name)
    if skeleton.has_bind and _differ(skeleton, owner, where):
        template = "its rest pose differs from that of '{}'; the frames were not changed"
        report.change("other-rest-pose", template, owner.name, item=skeleton.name)
    taken = {clip.name for clip in scene.clips}
    for clip in clips:
        if clip.name in taken:
            report.change(
                "repeated-animation", "there is another animation of this name", item=Named("animation", clip.name)
            )
        taken.add(clip.name)
        tracks = [track for track in clip.transforms if track.skeleton == number]
        lost = [skeleton.joints[track.target].name for track in tracks if track.target not in where]
        if lost:
            bones, template = counted(len(lost), "bone"), "{} not in '{}' left out: {}"
            report.loss("unknown-bones", template, bones, owner.name, listed(lost), item=Named("animation", clip.name))
        kept = [replace(track, target=where[track.target], skeleton=best) for track in tracks if track.target in where]
        scene.clips.append(replace(clip, transforms=kept, vertices=[]))


def joint_map(joints: Sequence[Joint], known: Sequence[Joint]) -> dict[int, int]:
    """Return, by index, the joint with the same name in another table for each joint.

    Repeated names are matched in order.
    """
    places: dict[str, list[int]] = {}
    for index, joint in enumerate(known):
        places.setdefault(joint.name, []).append(index)
    found = {}
    for index, joint in enumerate(joints):
        if places.get(joint.name):
            found[index] = places[joint.name].pop(0)
    return found


def _skeleton_of(clip: Clip) -> int:
    return next((track.skeleton for track in clip.transforms if track.skeleton is not None), 0)


def _differ(skeleton: Skeleton, owner: Skeleton, where: dict[int, int]) -> bool:
    """Return whether bind transforms of common joints differ by more than rounding."""
    return any(
        not _close(_numbers(skeleton.joints[mine]), _numbers(owner.joints[other])) for mine, other in where.items()
    )


def _numbers(joint: Joint) -> tuple[float, ...]:
    return (*joint.translation, *joint.rotation, *joint.scale)


def _close(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(abs(a - b) <= _SAME_BIND * max(1.0, abs(a)) for a, b in zip(one, other, strict=True))
