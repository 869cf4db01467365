"""Drivers that set or read channels of bones along their axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bpy

from ...exporting.clips.pose_curves import CHANNELS, bone_and_channel
from ...exporting.scene_state import animated_blocks
from .turns import ArmatureTurns, turn_in

_OF_AXES = {"ROT", "SCALE"}
"""First parts of the transform types that depend on the axes of a bone in every space."""


def dependent(turns: ArmatureTurns) -> list[str]:
    """Return the drivers that set channels of changed bones or read their axes, as owner and path."""
    return [
        f"{block.name}: {driver.data_path}[{driver.array_index}]"
        for block in animated_blocks()
        for driver in block.animation_data.drivers
        if _sets_axes(turns, block, driver.data_path) or any(_reads_axes(turns, _variables(driver)))
    ]


def _variables(driver: bpy.types.FCurve) -> Iterable[Any]:
    return driver.driver.variables


def _sets_axes(turns: ArmatureTurns, block: Any, path: str) -> bool:
    """Return whether a path leads from a data block to a channel of a changed bone."""
    bone, channel = bone_and_channel(path)
    return channel.split("[")[0] in CHANNELS and turn_in(turns, block, bone) is not None


def _reads_axes(turns: ArmatureTurns, variables: Iterable[Any]) -> Iterable[bool]:
    for variable in variables:
        for target in variable.targets:
            if variable.type == "SINGLE_PROP":
                yield _sets_axes(turns, target.id, target.data_path)
            turn = turn_in(turns, target.id, target.bone_target)
            if turn is None or not turn.is_turned:
                continue
            if variable.type == "TRANSFORMS":
                yield target.transform_space == "LOCAL_SPACE" or target.transform_type.split("_")[0] in _OF_AXES
            yield variable.type == "ROTATION_DIFF"
