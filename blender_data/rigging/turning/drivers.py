"""Drivers that set or read channels of bones along their axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import bpy
import numpy as np

from ... import compat
from ...exporting.clips import pose_curves
from ...exporting.clips.pose_curves import CHANNELS, bone_and_channel
from ...exporting.scene_state import animated_blocks
from .turns import VECTORS, ArmatureTurns, BoneTurn, turn_in

_OF_AXES = {"ROT", "SCALE"}
"""First parts of the transform types that depend on the axes of a bone in every space."""
_LEAST = 1e-7
"""Share below which a component does not depend on another."""

Channel = tuple[Any, str, str]
"""Object, bone and channel."""


def convert(turns: ArmatureTurns) -> set[Channel]:
    """Convert the drivers of locations, quaternions and axes with angles; return the channels.

    The drivers set a custom property of the bone instead, from which new drivers compute the channel. Other keys of
    the channel would be lost, so a channel that is keyed, too, is not converted.
    """
    converted: set[Channel] = set()
    for obj in bpy.data.objects:
        if obj.type != "ARMATURE" or obj.data not in turns or obj.animation_data is None or not obj.is_editable:
            continue
        keyed: set[tuple[str, str]] = set()
        for holder in compat.action_holders(obj):
            keyed |= pose_curves.keyed_channels(holder.action, compat.slot_of(holder))
        for (bone, channel), drivers in _drivers_of(obj).items():
            turn = turn_in(turns, obj, bone)
            if turn is not None and channel in VECTORS and channel != "scale" and (bone, channel) not in keyed:
                _convert_channel(obj, bone, channel, turn, drivers)
                converted.add((obj, bone, channel))
    return converted


def _drivers_of(obj: Any) -> dict[tuple[str, str], dict[int, bpy.types.FCurve]]:
    """Return the drivers of an object by bone and channel, and by component."""
    found: dict[tuple[str, str], dict[int, bpy.types.FCurve]] = {}
    for driver in obj.animation_data.drivers:
        found.setdefault(bone_and_channel(driver.data_path), {})[driver.array_index] = driver
    return found


def _convert_channel(
    obj: Any, bone: str, channel: str, turn: BoneTurn, drivers: Mapping[int, bpy.types.FCurve]
) -> None:
    first, matrix = VECTORS[channel], turn.matrix(channel)
    driven = [index - first for index in drivers if index >= first]
    path = f'pose.bones["{bpy.utils.escape_identifier(bone)}"]'
    name = f"Former {channel}"
    posed = obj.pose.bones[bone]
    posed[name] = [float(value) for value in getattr(posed, channel)[first : first + 3]]
    for component in driven:
        driver = drivers[component + first]
        driver.data_path, driver.array_index = f'{path}["{name}"]', component
    for component in range(3):
        if np.abs(matrix[component, driven]).max(initial=0.0) <= _LEAST:
            continue
        made = obj.driver_add(f"{path}.{channel}", component + first).driver
        made.type = "SCRIPTED"
        for number, letter in enumerate("xyz"):
            variable = made.variables.new()
            variable.name = letter
            variable.targets[0].id = obj
            variable.targets[0].data_path = f'{path}["{name}"][{number}]'
        made.expression = " + ".join(
            f"({share:.9g}) * {letter}" for share, letter in zip(matrix[component].tolist(), "xyz", strict=True)
        )


def dependent(turns: ArmatureTurns, converted: Collection[Channel]) -> list[str]:
    """Return the drivers that set channels of changed bones or read their axes, as owner and path.

    Drivers of the channels ``converted`` are left out.
    """
    return [
        f"{block.name}: {driver.data_path}[{driver.array_index}]"
        for block in animated_blocks()
        for driver in block.animation_data.drivers
        if ((block, *bone_and_channel(driver.data_path)) not in converted and _is_of(turns, block, driver.data_path))
        or any(_reads_axes(turns, driver.driver.variables))
    ]


def _is_of(turns: ArmatureTurns, block: Any, path: str) -> bool:
    """Return whether a path leads from a data block to a channel of a changed bone."""
    bone, channel = bone_and_channel(path)
    return channel.split("[")[0] in CHANNELS and turn_in(turns, block, bone) is not None


def _reads_axes(turns: ArmatureTurns, variables: Iterable[Any]) -> Iterator[bool]:
    for variable in variables:
        for target in variable.targets:
            if variable.type == "SINGLE_PROP":
                yield _is_of(turns, target.id, target.data_path)
            turn = turn_in(turns, target.id, target.bone_target)
            if turn is None or not turn.is_turned:
                continue
            if variable.type == "TRANSFORMS":
                yield target.transform_space == "LOCAL_SPACE" or target.transform_type.split("_")[0] in _OF_AXES
            yield variable.type == "ROTATION_DIFF"
