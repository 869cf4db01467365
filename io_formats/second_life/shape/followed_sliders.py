"""Sliders that have no effect on a worn mesh, from the joints of its weights."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..avatar import skeleton_table
from . import parameters

_LEAST_SHARE = 0.1
"""Share of the weights of a mesh from which on a bone counts as one that it covers."""
_OF_HEADS = frozenset({"mHead", "mNeck"})
"""Bones whose volumes are ignored: hair, hats and jewellery usually follow the bones alone."""


@dataclass(frozen=True)
class Unfollowed:
    """What of a shape a mesh does not follow."""

    volumes: tuple[str, ...]
    """Collision volumes for which the body has weights and the mesh has none."""
    sliders: tuple[str, ...]
    """Labels of the sliders without effect on the mesh, in the order of their ids."""


def unfollowed_sliders(shares: Mapping[str, float], body: Collection[str], locked: Collection[str] = ()) -> Unfollowed:
    """Return what of a shape a mesh does not follow, compared with a body.

    The mesh is compared at the bones that have at least a tenth of its weights, except head and neck. It does not
    follow the volumes of such a bone if the body has weights for some of them and the mesh for none. A mesh with
    weights for a single joint is rigid, and compared with nothing.

    Parameters
    ----------
    shares:
        Share of the weights of the mesh for each joint with weights.
    body:
        Joints with weights of the body; empty without one.
    locked:
        Joints to which the mesh gives positions and whose scale it locks, so that no slider changes them.
    """
    table = skeleton_table.table()
    covered = {
        name for name, share in shares.items() if share >= _LEAST_SHARE and table[name].is_bone and len(shares) > 1
    }
    followed = {table[name].parent for name in shares if table[name].is_collision_volume}
    missing = [
        name
        for name, joint in table.items()
        if joint.is_collision_volume and name in body and joint.parent in covered - followed - _OF_HEADS
    ]
    own = {above for name in shares for above in skeleton_table.ancestors(name)}
    held = own.intersection(locked)
    labels = [
        parameters.parameters()[number].label
        for number, joints in _joints_of_sliders().items()
        if not joints.isdisjoint({*missing, *held}) and joints.isdisjoint(own - held)
    ]
    return Unfollowed(tuple(missing), tuple(dict.fromkeys(labels)))


@functools.cache
def _joints_of_sliders() -> Mapping[int, frozenset[str]]:
    """Return the joints that each slider changes, by its id: with a bone also its volumes, which take its scale."""
    table = skeleton_table.table()
    of_parameter: dict[int, set[str]] = {}
    for effect in parameters.effects():
        joints = of_parameter.setdefault(effect.parameter, set())
        joints.add(effect.joint)
        if any(effect.scale):
            joints.update(name for name, one in table.items() if one.is_collision_volume and one.parent == effect.joint)
    found = {number: set(of_parameter.get(number, ())) for number in parameters.sliders()}
    for ramp in parameters.driven_ramps():
        if ramp.driver in found:
            found[ramp.driver] |= of_parameter.get(ramp.driven, set())
    return {number: frozenset(joints) for number, joints in found.items() if joints and number != parameters.MALE}
