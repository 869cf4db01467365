"""Data of skeletons that Blender cannot show, as JSON in a property of the armature (section 7).

These are rest transforms that differ from the bind transforms, blend masks, profiles and retargeting. Values are listed
by joint, so that they follow their joints if others are added or removed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.scene import FloatArray, Skeleton
from ..bones import IDENTITY, Bone
from .codec import Profile, SkeletonFile

DEFAULT_RETARGETING = (0, -1.0)
"""Copy the pose as it is, with the bone length of the bind pose."""
_PROFILES = ("blend_masks", "time_profiles", "weight_profiles")
_SAME_BIND = 1e-5
_MODES = range(3)


@dataclass
class StoredData:
    """The stored data, in the order of the bones of a new file."""

    rest: FloatArray
    """(nb, 10) float32 local rest transforms."""
    retargeting: list[tuple[int, float]]
    profiles: dict[str, list[Profile]] = field(default_factory=dict)
    """Profiles by the name of the field of :class:`.SkeletonFile`."""


def text_of_skeleton(document: SkeletonFile) -> str:
    """Return the text that stores the data of a skeleton file; empty if everything has its default."""
    kinds = {kind: [[one.name, one.values.tolist()] for one in getattr(document, kind)] for kind in _PROFILES}
    lists: dict[str, Any] = {kind: found for kind, found in kinds.items() if found}
    if document.retargeting != [DEFAULT_RETARGETING] * len(document.bones):
        lists["retargeting"] = document.retargeting
    return _text(document.bones, lists) if lists else ""


def text_of_rest(bones: Sequence[Bone], bind: FloatArray, rest: FloatArray) -> str:
    """Return the text that stores rest transforms; empty if they equal the bind transforms, or if there are none."""
    if not len(rest) or np.array_equal(bind, rest):
        return ""
    return _text(bones, {"bind": bind.tolist(), "rest": rest.tolist()})


def _text(bones: Sequence[Bone], lists: dict[str, Any]) -> str:
    return json.dumps({"joints": [bone.name for bone in bones], **lists})


def stored_data(skeleton: Skeleton | None, bones: Sequence[Bone], bind: FloatArray) -> StoredData:
    """Return the stored data of a skeleton for a file with these bones; new bones get the defaults.

    A rest transform applies as long as the bone has the bind transform with which it was imported.

    Raises
    ------
    ExportError
        The stored text is damaged.
    """
    if skeleton is None or not skeleton.file_data:
        return StoredData(bind.copy(), [DEFAULT_RETARGETING] * len(bones))
    try:
        return _parsed(json.loads(skeleton.file_data), [bone.name for bone in bones], bind)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        template = "'{}': its stored skeleton data is damaged; clear Skeleton Data in the sidebar"
        raise ExportError(template, skeleton.name) from None


def _parsed(lists: dict[str, Any], names: list[str], bind: FloatArray) -> StoredData:
    known = lists["joints"]
    place = {name: index for index, name in enumerate(known)}

    def by_bone(values: list[Any], default: Any) -> list[Any]:
        if known == names or len(values) != len(known):
            return values
        return [values[place[name]] if name in place else default for name in names]

    retargeting = lists.get("retargeting", [DEFAULT_RETARGETING] * len(known))
    found = StoredData(bind.copy(), [(int(mode), float(length)) for mode, length in by_bone(retargeting, (0, -1.0))])
    for kind in _PROFILES:
        profiles = lists.get(kind, [])
        found.profiles[kind] = [
            Profile(str(name), np.array(by_bone(values, 1.0), np.float32)) for name, values in profiles
        ]
    numbers = [values for profiles in found.profiles.values() for values in (one.values for one in profiles)]
    lengths = np.array([length for _, length in found.retargeting], np.float32)
    is_finite = all(np.isfinite(values).all() for values in (*numbers, lengths))
    if not is_finite or any(mode not in _MODES for mode, _ in found.retargeting):
        raise ValueError
    if "rest" in lists:
        before, rest = (np.array(by_bone(lists[key], IDENTITY), np.float32) for key in ("bind", "rest"))
        stays = np.abs(before - bind).max(axis=1) <= _SAME_BIND
        stays &= [name in place for name in names]
        found.rest[stays] = rest[stays]
    return found


def skeleton_file(skeleton: Skeleton | None, bones: list[Bone], transforms: FloatArray) -> SkeletonFile:
    """Return a skeleton file with these bones and bind transforms, and with the stored data of a skeleton."""
    found = stored_data(skeleton, bones, transforms)
    made = SkeletonFile(bones=bones, transforms=transforms, retargeting=found.retargeting)
    for kind, profiles in found.profiles.items():
        setattr(made, kind, profiles)
    return made
