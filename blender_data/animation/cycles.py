"""Clips that loop since *Cycles* modifiers repeat their f-curves."""

from collections.abc import Iterable, Sequence

import bpy

from ...io_formats.core.messages import Report, Text, listed
from ...io_formats.core.scene import Clip
from .. import arrays
from . import pose_curves

_SAME_FRAME = 1e-2
"""Largest difference in frames between periods that count as equal."""


def loop(clip: Clip, curves: Sequence[bpy.types.FCurve], period: float, report: Report) -> None:
    """Loop a clip if f-curves repeat every ``period`` key frames; warn if only some do."""
    found = without_repetition(curves, period)
    if found == []:
        clip.loop = (0.0, clip.duration)
    elif found:
        paths = [curve.data_path for curve in found]
        text = (
            "does not loop, although it has Cycles modifiers: the curves of {} do not repeat without limit on both "
            "sides with its length of {:g} frames"
        )
        moved = listed(list(dict.fromkeys(pose_curves.bone_and_channel(path)[0] or path for path in paths)))
        report.warning("cycles-without-loop", text, moved, period, item=Text("Animation '{}'", clip.name))


def without_repetition(curves: Iterable[bpy.types.FCurve], period: float) -> list[bpy.types.FCurve] | None:
    """Return the changing f-curves that do not repeat in a loop of ``period`` key frames.

    None if no f-curve that changes has a *Cycles* modifier.
    """
    moving = [curve for curve in curves if pose_curves.varies(curve)]
    if not any(modifier.type == "CYCLES" and not modifier.mute for curve in moving for modifier in curve.modifiers):
        return None
    return [curve for curve in moving if not _repeats(curve, period)]


def _repeats(curve: bpy.types.FCurve, period: float) -> bool:
    """Return whether an f-curve repeats without limit, before and after its keys, with this period."""
    used = [modifier for modifier in curve.modifiers if not modifier.mute]
    if len(used) != 1 or used[0].type != "CYCLES" or used[0] != curve.modifiers[0]:
        return False  # others need not repeat, and Blender disables a Cycles modifier below another one
    cycles = used[0]
    keys = arrays.read(curve.keyframe_points, "co", 2)
    length, offset = (keys[-1] - keys[0]).tolist()
    modes = {cycles.mode_before, cycles.mode_after}
    if modes == {"MIRROR"}:
        length *= 2
    elif not modes <= {"REPEAT", "REPEAT_OFFSET"} or ("REPEAT_OFFSET" in modes and abs(offset) > pose_curves.STILL):
        return False
    is_limited = cycles.cycles_before or cycles.cycles_after or cycles.use_restricted_range
    if is_limited or (cycles.use_influence and cycles.influence < 1.0) or length <= 0:
        return False
    count = round(period / length)
    return count > 0 and abs(count * length - period) <= _SAME_FRAME
