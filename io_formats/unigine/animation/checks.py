"""Check an animation against the rules of UNIGINE (docs/formats/unigine.md, sections 8, 11 and 12)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...core.messages import Message, Report, Text, counted, listed
from ..bones import check_bones
from ..frames import DeltaFrames
from .document import AnimationFile
from .versions import SKELETON_VERSIONS


def check(document: AnimationFile) -> list[Message]:
    """Return errors for an animation that cannot be played and warnings for suspicious data."""
    found = Report()
    check_bones(document.bones, found)
    report = found.about(Text("Animation '{}'", document.name) if document.name else Text("The animation"))
    if not document.bones:
        report.error("no-bones", "it has no bones, so it moves nothing")
    frame_count = document.frames.frame_count if document.frames else 0
    animated = document.frames.bone_indices if document.frames else np.empty(0, np.int16)
    if not frame_count:
        report.warning("no-frames", "it has no frames; the mesh stays in its bind pose")
    elif document.bones and not len(animated):
        report.warning("animates-no-bone", "it animates no bone")
    twice = [document.bones[index].name for index, times in Counter(animated.tolist()).items() if times > 1]
    if twice:
        number = counted(len(twice), "bone is", "bones are")
        report.warning("bone-animated-twice", "{} animated twice: {}", number, listed(twice))
    if document.version in SKELETON_VERSIONS:
        if document.fps <= 0:
            report.error("invalid-frame-rate", "its frame rate is {}, so it never plays", document.fps)
        if not document.skeleton_guid and not document.skeleton_path:
            advice = Text("enter its GUID or path in the sidebar of the armature")
            report.warning(
                "names-no-skeleton", "it names no skeleton, which {} refers to; {}", document.version, advice
            )
    if isinstance(document.frames, DeltaFrames) and frame_count and not document.frames.mask:
        report.warning("animates-no-channel", "it animates no channel: nothing moves")
    return found.messages
