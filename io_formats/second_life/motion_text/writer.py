"""Document -> text (animation format page, sections 7.1 and 7.3)."""

from __future__ import annotations

import numpy as np

from .document import Bvh

_POSITION = "Xposition Yposition Zposition "
_END = ("End Site", "{", "\tOFFSET 0.000000 0.000000 0.000000", "}")


def write(document: Bvh) -> bytes:
    """Encode a BVH file: tabs, six decimals, line ends as on Linux."""
    lines = ["HIERARCHY"]
    depth_of: list[int] = []
    open_joints: list[int] = []
    has_children = {joint.parent for joint in document.joints}
    for number, joint in enumerate(document.joints):
        while open_joints and open_joints[-1] != joint.parent:
            open_joints.pop()
            lines.append("\t" * len(open_joints) + "}")
        depth = len(open_joints)
        depth_of.append(depth)
        indent, inner = "\t" * depth, "\t" * (depth + 1)
        lines += [
            f"{indent}{'JOINT' if depth else 'ROOT'} {joint.name}",
            f"{indent}{{",
            f"{inner}OFFSET {' '.join(f'{value:.6f}' for value in joint.offset)}",
            f"{inner}CHANNELS {joint.channel_count} {_POSITION if joint.has_position else ''}"
            + " ".join(f"{axis}rotation" for axis in joint.order),
        ]
        open_joints.append(number)
        if number not in has_children:
            lines += [inner + line for line in _END]
    lines += ["\t" * depth + "}" for depth in range(len(open_joints) - 1, -1, -1)]
    # With six decimals, 60 s at 24 frames per second would be 60.0005 s, which viewers refuse.
    lines += ["MOTION", f"Frames: {len(document.frames)}", f"Frame Time: {document.frame_time:.12f}"]
    row = " ".join(["%.6f"] * document.frames.shape[1])
    lines += [row % tuple(frame) for frame in np.asarray(document.frames).tolist()]
    return ("\n".join(lines) + "\n").encode("utf-8")
