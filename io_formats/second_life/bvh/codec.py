"""Text <-> document of a BVH file (animation format page, sections 7.1 and 7.3)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Text


@dataclass
class BvhJoint:
    """A joint of the hierarchy."""

    name: str
    parent: int
    """Index of its parent, which comes before it; -1 for the root."""
    offset: tuple[float, float, float]
    """In inches, in the axes of the file; the viewer ignores it."""
    has_position: bool
    """Whether its first three channels are a position, whatever their names are; there are then six channels."""
    order: str = "ZXY"
    """Axes of the three rotations as listed in the file; the first is the outermost."""

    @property
    def channel_count(self) -> int:
        return 6 if self.has_position else 3


@dataclass
class Bvh:
    """A BVH file: its joints and frames."""

    joints: list[BvhJoint] = field(default_factory=list)
    frame_time: float = 1 / 30
    """Seconds."""
    frames: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """(F, n) numbers, in the order of the joints and their channels: inches and degrees."""
    rows_left: int = 0
    """Number of rows beyond the stated number of frames, which the viewer does not read."""

    def channels(self, number: int) -> npt.NDArray[np.float64]:
        """Return the numbers of a joint, (F, 3) or (F, 6)."""
        first = sum(joint.channel_count for joint in self.joints[:number])
        return self.frames[:, first : first + self.joints[number].channel_count]


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


_MOST_JOINTS = 1000
_DEEPEST = 200
_LEAST_FRAME_TIME = 1e-6
_MOST_FRAME_TIME = 3600
"""Largest accepted time of a frame in seconds; the whole animation must not exceed the viewer's 60 s."""


def read(data: bytes, *, inflated_limit: int | None = None) -> Bvh:
    """Decode a BVH file, which is not compressed; see :meth:`.FileFormat.read`. Messages of errors name the line."""
    lines = _Lines(data.decode("utf-8-sig", "replace"))
    lines.expect("HIERARCHY")
    document = Bvh()
    while not lines.current.startswith("MOTION"):
        _read_root(lines, document)
    if not document.joints:
        raise lines.error("there is no ROOT")
    lines.expect("MOTION")
    count = lines.number("Frames:")
    if not (count >= 1 and count.is_integer()):
        raise lines.error("the number of frames is not a whole number above 0")
    document.frame_time = lines.number("Frame Time:")
    if not _LEAST_FRAME_TIME <= document.frame_time <= _MOST_FRAME_TIME:
        lines.place -= 1
        raise lines.error("the frame time is not between {:f} and {:,} seconds", _LEAST_FRAME_TIME, _MOST_FRAME_TIME)
    document.frames = lines.table(int(count), sum(joint.channel_count for joint in document.joints))
    document.rows_left = len(lines.lines) - lines.place
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same joints and frames."""
    return one == other or write(read(one)) == write(read(other))


class _Lines:
    """The lines of a file that are not empty."""

    def __init__(self, text: str) -> None:
        numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
        self.lines = [(number, line) for number, line in numbered if line]
        self.place = 0

    @property
    def current(self) -> str:
        if self.place >= len(self.lines):
            raise FormatError("The file is cut off")
        return self.lines[self.place][1]

    def error(self, template: str, *values: object) -> FormatError:
        place = min(self.place, len(self.lines) - 1)
        number = self.lines[place][0] if self.lines else 1
        return FormatError("Line {}: {}", number, Text(template, *values))

    def next(self) -> str:
        line = self.current
        self.place += 1
        return line

    def expect(self, word: str) -> str:
        """Read a line that starts with a word; return the rest of the line."""
        line = self.current
        if not line.startswith(word):
            raise self.error("{} is missing", word)
        self.place += 1
        return line[len(word) :].strip()

    def number(self, word: str) -> float:
        rest = self.expect(word)
        try:
            return float(rest)
        except ValueError:
            self.place -= 1
            raise self.error("no number after {}", word) from None

    def table(self, rows: int, columns: int) -> npt.NDArray[np.float64]:
        """Read lines of numbers; numbers beyond the number of channels are ignored, as in the viewer."""
        found = self.lines[self.place : self.place + rows]
        if len(found) < rows:
            raise FormatError("The file is cut off: {:,} of {:,} frames are there", len(found), rows)
        table = np.empty((rows, columns))
        for row, (number, line) in enumerate(found):
            words = line.split()
            try:
                values = np.array(words[:columns], np.float64)
            except ValueError:
                raise FormatError("Line {}: not all are numbers", number) from None
            if len(values) < columns or not np.isfinite(values).all():
                raise FormatError("Line {}: {} finite numbers expected, {} there", number, columns, len(words))
            table[row] = values
        self.place += rows
        return table


def _read_root(lines: _Lines, document: Bvh) -> None:
    """Read a root with the joints below it."""
    name = lines.expect("ROOT")
    stack = [_read_joint(lines, document, name, -1)]
    while stack:
        line = lines.next()
        if line.startswith("}"):
            stack.pop()
        elif line.startswith("End Site"):
            lines.expect("{")
            lines.expect("OFFSET")
            lines.expect("}")
        elif line.startswith("JOINT"):
            if len(stack) >= _DEEPEST or len(document.joints) >= _MOST_JOINTS:
                raise lines.error("there are too many joints")
            stack.append(_read_joint(lines, document, line[len("JOINT") :].strip(), stack[-1]))
        else:
            lines.place -= 1
            raise lines.error("JOINT, End Site or } is missing")


def _read_joint(lines: _Lines, document: Bvh, name: str, parent: int) -> int:
    """Read the offset and the channels of a joint, which follow its name; add the joint and return its index."""
    lines.expect("{")
    words = lines.expect("OFFSET").split()
    try:
        x, y, z = (float(word) for word in words[:3])
    except ValueError:
        lines.place -= 1
        raise lines.error("three numbers expected after OFFSET") from None
    channels = lines.expect("CHANNELS").split()
    order = "".join(word[0] for word in channels[1:] if word[1:] == "rotation")
    if sorted(order) != ["X", "Y", "Z"] or channels[0] not in {"3", "6"}:
        lines.place -= 1
        raise lines.error("3 or 6 channels with three rotations expected")
    document.joints.append(BvhJoint(name, parent, (x, y, z), channels[0] == "6", order))
    return len(document.joints) - 1
