"""Check an animation against the rules of UNIGINE (docs/formats/unigine.md, sections 8, 11 and 12)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...core.findings import Finding, error, warning
from ...core.messages import counted, listed
from ..bones import Bone
from ..frames import DeltaFrames
from .document import AnimationFile
from .versions import SKELETON_VERSIONS


def check(document: AnimationFile) -> list[Finding]:
    """Return errors for an animation that cannot be played and warnings for suspicious data."""
    item = f"Animation '{document.name}'" if document.name else "The animation"
    findings = check_bones(document.bones)
    if not document.bones:
        findings.append(error(item, "it has no bones, so it moves nothing"))
    frame_count = document.frames.frame_count if document.frames else 0
    animated = document.frames.bone_indices if document.frames else np.empty(0, np.int16)
    if not frame_count:
        findings.append(warning(item, "it has no frames; the mesh stays in its bind pose"))
    elif document.bones and not len(animated):
        findings.append(warning(item, "it animates no bone"))
    twice = [document.bones[index].name for index, times in Counter(animated.tolist()).items() if times > 1]
    if twice:
        number = counted(len(twice), "bone is", "bones are")
        findings.append(warning(item, f"{number} animated twice: {listed(twice)}"))
    if document.version in SKELETON_VERSIONS:
        if document.fps <= 0:
            findings.append(error(item, f"its frame rate is {document.fps}, so it never plays"))
        if not document.skeleton_guid and not document.skeleton_path:
            advice = "enter its GUID or path in the sidebar of the armature"
            findings.append(warning(item, f"it names no skeleton, which {document.version} refers to; {advice}"))
    if isinstance(document.frames, DeltaFrames) and frame_count and not document.frames.mask:
        findings.append(warning(item, "it animates no channel: nothing moves"))
    return findings


def check_bones(bones: list[Bone]) -> list[Finding]:
    """Return warnings about duplicate and empty bone names: UNIGINE finds bones by name."""
    findings = []
    names = Counter(bone.name for bone in bones)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        number = counted(len(twice), "bone name is", "bone names are")
        findings.append(warning("", f"{number} used twice, and UNIGINE finds bones by name: {listed(twice)}"))
    if "" in names:
        findings.append(warning("", f"{counted(names[''], 'bone has', 'bones have')} no name"))
    return findings
