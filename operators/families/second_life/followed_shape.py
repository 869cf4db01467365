"""Findings of Check: meshes that do not follow the shape of the avatar as its body does."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ....blender_data.armature_modifiers import armature_of
from ....blender_data.rigging import bodies, joint_weights
from ....io_formats.core.messages import Message, counted, listed, warning
from ....io_formats.second_life.avatar.armature_sliders import unfollowed_sliders
from .avatar_joints import is_avatar, known_bones, moved_by_file

_LEAST = 0.05
"""Weight of a vertex from which on a body counts as weighted for a joint."""
_MOST = 6
"""Number of sliders that a message names."""


def shape_findings(objects: Iterable[Any], others: Iterable[Any]) -> Iterator[Message]:
    """Yield a warning for each mesh on which shape sliders have no effect.

    Compared are meshes bound to an avatar with a body (*Use as Body*), by the rule of
    :func:`.followed_sliders.unfollowed`, and meshes with *Lock Scale* and joint positions. ``others`` are the objects
    among which the bodies are found.
    """
    candidates = list(others)
    of_bodies: dict[Any, set[str]] = {}
    for obj in objects:
        avatar = armature_of(obj) if obj.type == "MESH" and not obj.meshferry.body else None
        if avatar is None or not is_avatar(avatar):
            continue
        if avatar not in of_bodies:
            of_bodies[avatar] = body_joints(avatar, candidates)
        yield from findings_of(obj, avatar, of_bodies[avatar])


def findings_of(obj: Any, avatar: Any, body: set[str]) -> Iterator[Message]:
    """Yield the warnings about one mesh; ``body`` are the joints with weights of the avatar's body."""
    shares = weight_shares(obj, known_bones(avatar))
    found = unfollowed_sliders(shares, body)
    if found.volumes and found.sliders:
        yield warning(
            "does-not-follow-shape",
            "it has no weights for {}, which the body has, so that {} no effect on it: {}. Transfer the weights of the "
            "body, or use Fitted Mesh",
            listed(list(found.volumes), _MOST),
            counted(len(found.sliders), "shape slider has", "shape sliders have"),
            listed(list(found.sliders), _MOST),
            item=obj.name,
        )
    locked = moved_by_file(obj) if obj.meshferry.skin.lock_scale else set()
    found = unfollowed_sliders(shares, (), locked)
    if locked and found.sliders:
        yield warning(
            "scale-locked",
            "it locks the scale of {}, so that {} no effect: {}",
            counted(len(locked), "joint"),
            counted(len(found.sliders), "shape slider has", "shape sliders have"),
            listed(list(found.sliders), _MOST),
            item=obj.name,
        )


def weight_shares(obj: Any, joint_of: dict[str, str]) -> dict[str, float]:
    """Return the share of a mesh's weights for each joint with weights."""
    weights = joint_weights.read(obj, set(joint_of))
    totals = weights.values.sum(axis=0, dtype=np.float64)
    whole = max(float(totals.sum()), 1e-12)
    return {joint_of[name]: total / whole for name, total in zip(weights.joints, totals.tolist(), strict=True) if total}


def body_joints(avatar: Any, objects: Iterable[Any]) -> set[str]:
    """Return the joints with weights of an avatar's active body; none without a body."""
    joint_of, joints = known_bones(avatar), set()
    for obj in bodies.active_meshes(avatar, objects):
        weights = joint_weights.read(obj, set(joint_of))
        strong = (weights.values >= _LEAST).any(axis=0)
        joints |= {joint_of[name] for name, used in zip(weights.joints, strong.tolist(), strict=True) if used}
    return joints
