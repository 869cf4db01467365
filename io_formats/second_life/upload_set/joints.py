"""Build the tree of an armature's joints, in which the viewer looks up joint positions (section 10.1)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..avatar import skeleton_table
from ..avatar.rigging import Rig
from . import names
from .document import JointNode, JointTree, Matrix


def tree_of(name: str, rigs: Iterable[Rig]) -> JointTree:
    """Return the joints of bindings to one armature and their ancestors up to the avatar's root, parents first.

    Bones are translations relative to their parents: those of the binding if it moves joints, otherwise those of the
    table. Collision volumes and attachment points have the table's rotation and scale.
    """
    table = skeleton_table.table()
    positions: dict[str, Matrix] = {}
    spelled: dict[str, str] = {}
    wanted: set[str] = set()
    unknown: dict[str, Matrix] = {}
    for rig in rigs:
        for number, joint in enumerate(rig.joint_names):
            known = skeleton_table.canonical(joint)
            position = None if rig.joint_positions is None else rig.joint_positions[number]
            if known is None:
                head = rig.rest[number, :3, 3] - skeleton_table.rest_matrices()[skeleton_table.ROOT][:3, 3]
                unknown[joint] = head if position is None else position
                wanted.add(skeleton_table.ROOT)
                continue
            wanted.update(skeleton_table.ancestors(known))
            spelled.setdefault(known, joint)
            if position is not None:
                positions[known] = position
    order = [joint for joint in table if joint in wanted]
    number_of = {joint: number for number, joint in enumerate(order)}
    nodes: list[JointNode] = []
    for joint in order:
        local = table[joint].local.copy()
        if joint in positions:
            local[:3, 3] = positions[joint]
        parent = number_of.get(table[joint].parent, -1)
        nodes.append(JointNode(spelled.get(joint, joint.replace(" ", "_")), parent, local))
    for joint, head in unknown.items():
        local = np.identity(4)
        local[:3, 3] = head
        nodes.append(JointNode(names.joint(joint), number_of[skeleton_table.ROOT], local))
    return JointTree(name, nodes)
