"""Output of the command line: sentences for users, and JSON objects, one per line, for programs."""

import errno
import json
import math
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from ..io_formats.core.errors import FormatError, MeshferryError, MissingLibraryError, refusal
from ..io_formats.core.messages import Message, Text, counted, distinct
from . import environment

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, line separators, bidirectional controls, lone surrogates and noncharacters."""

CLOSED_READER = frozenset({errno.EPIPE, errno.EINVAL, errno.EBADF})
"""Errors of writing to a pipe without a reader. EINVAL: on Windows. EBADF: closed before Blender reused its
descriptor."""

_LONGEST_SHOWN = 200

CLIPS_NAMED = 3
"""Largest number of animations in a summary; of more, only the number is given."""


class Reporter:
    """Prints all output of one run.

    Results go to standard output (on request as JSON), warnings and failures to standard error. A closed reader, such
    as ``head``, stops the output but not the work.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, debug: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.debug = debug
        self.is_output_lost = False
        """Whether writing to standard output failed, for example because the disk is full, so that the output is
        incomplete.
        """
        self._library_is_missing = False

    def say(self, text: str) -> None:
        """Print a result for users."""
        if not self.quiet and not self.as_json:
            self._print(text, sys.stdout)

    def record(self, entry: Mapping[str, Any]) -> None:
        """Print the JSON record of one file."""
        if self.as_json:
            # json.dumps escapes all but ASCII, so that the records are the same on every console.
            self._print(json.dumps(plain(entry)), sys.stdout)

    def result(self, text: str) -> None:
        """Print requested output, even in quiet mode."""
        if not self.as_json:
            self._print(text, sys.stdout)

    def warn(self, file: object, text: str) -> None:
        """Print a warning about a loss or irregularity; it is also in the JSON record."""
        if not self.quiet and not self.as_json:
            self._print(f"{printable(file)}: warning: {printable(text)}", sys.stderr)

    def note(self, text: str) -> None:
        """Print progress to standard error."""
        if not self.quiet:
            self._print(text, sys.stderr)

    def fail(self, file: object, problem: BaseException) -> str:
        """Print ``file: cause`` in one line, with a traceback if requested, and return the cause.

        By default, the file is taken from the error.
        """
        text = cause(problem)
        file = str(file) or (problem.file if isinstance(problem, FormatError) else "")
        if isinstance(problem, MissingLibraryError):
            self._library_is_missing = True
        self._print(f"{printable(file)}: {text}" if file else text, sys.stderr)
        if self.debug:
            self._print("".join(traceback.format_exception(problem)).rstrip(), sys.stderr)
        return text

    def fail_inputs(self, key: str, problems: Sequence[FormatError]) -> int:
        """Report paths without a matching file, in records under this key. Return their number."""
        for problem in problems:
            self.record({key: problem.file, "error": self.fail(problem.file, problem)})
        return len(problems)

    def close(self) -> None:
        """Print how to install missing libraries, if there are any, and flush both streams."""
        missing = environment.missing_libraries() if self._library_is_missing else []
        if missing:
            self._print(environment.how_to_install(missing), sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            self._print("", stream, end="")

    def _print(self, text: str, stream: TextIO | None, end: str = "\n") -> None:
        if stream is None or stream.closed:  # without a console, as in pythonw or a service
            return
        try:
            stream.write("\n".join(map(printable, text.split("\n"))) + end)
            stream.flush()
        except OSError as problem:
            _discard(stream)
            if problem.errno not in CLOSED_READER and stream is sys.stdout:
                self.is_output_lost = True
                self.fail("", MeshferryError("The output cannot be written: {}", problem.strerror or problem))


def _discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that flushing it at exit does not fail."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def make_streams_safe() -> None:
    """Escape characters that a console cannot print, and open closed standard streams on the null device.

    Otherwise the next opened file would get the descriptor of a closed stream, and Blender would print into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if number and getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (to the end of the process)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def printable(name: object) -> str:
    """Escape characters of a text that would control the terminal, break the line or reverse the text."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], str(name))


def shortened(name: object) -> str:
    """Return a name in a printable form of limited length."""
    text = printable(name)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def one_line(text: str) -> str:
    """Replace each run of whitespace in a text, including line breaks, by one space."""
    return " ".join(text.split())


def cause(problem: BaseException) -> str:
    """Return the message of an exception in one line, without the file name."""
    if isinstance(problem, FormatError):
        return printable(problem.sentence(with_file=False))
    if isinstance(problem, MeshferryError):
        return printable(str(problem))
    if isinstance(problem, MemoryError):
        return "There is not enough memory for this file"
    if isinstance(problem, OSError) and problem.strerror:  # such as a disk that fails: not a defect of this program
        return one_line(": ".join([*([shortened(problem.filename)] if problem.filename else []), refusal(problem)]))
    if isinstance(problem, UnicodeEncodeError) and sys.getfilesystemencoding() != "utf-8":
        name = shortened(problem.object)
        return f"The locale has no characters for {name}; use one with UTF-8, or set PYTHONUTF8 to 1"
    return unexpected(problem)


def unexpected(problem: BaseException) -> str:
    """Return a message for an unexpected exception in one line: cause, versions and a request to report it."""
    what = one_line(f"{type(problem).__name__}: {problem}").rstrip(": ")
    # Users publish these reports, so they must not contain the user's name.
    what = what.replace(os.path.expanduser("~"), "~")
    return (
        f"Unexpected error: {what} ({environment.described()}). "
        "This is a defect of Meshferry: please report this line with the file; --debug adds where it happened"
    )


def error_cause(problem: BaseException) -> str:
    """Return the message of an exception without names and numbers, so that errors of one cause have equal texts."""
    return _skeleton(problem.message) if isinstance(problem, MeshferryError) else type(problem).__name__


def _skeleton(text: Text) -> str:
    """Return a text with an ellipsis for each value that is not a text."""
    values = [_skeleton(value) if isinstance(value, Text) else "…" for value in text.values]
    return re.sub(r"\{:[^}]*\}", "{}", text.template).format(*values) if values else text.template


def warnings_entry(warnings: Sequence[Message]) -> dict[str, Any]:
    """Return messages for a JSON record: as sentences, and as objects for programs."""
    messages = distinct(warnings)
    return {"warnings": list(map(str, messages)), "messages": [message.as_json() for message in messages]}


def clip_text(clip: Mapping[str, Any], *, with_kind: bool = False) -> str:
    """Describe an animation, such as ``'Default', 60 frames at 24 fps``; an unknown rate is left out.

    Animations whose keys have times of their own have a length instead of frames.
    """
    kind = f"{clip['kind']}, " if with_kind else ""
    rate = f" at {clip['fps']:g} fps" if clip["fps"] else ""
    name = f"'{clip['name']}'" if clip["name"] else "unnamed"
    length: str = counted(clip["frames"], "frame")
    if "seconds" in clip:
        length, rate = f"{clip['seconds']:.4g} s", f", keys{rate}" if rate else ""
    return f"{name}, {kind}{length}{rate}"


def summary(facts: Mapping[str, Any]) -> str:
    """Return ``5 objects, 1,284 triangles, 2 materials, 1 animation ('Default', 60 frames at 24 fps)``.

    For files with only bones and animations, the numbers of objects, triangles and materials are left out.
    """
    clips: Sequence[Mapping[str, Any]] = facts["clips"]
    parts: list[str] = []
    if facts["nodes"] or not (facts["bones"] or clips):
        parts = [
            counted(facts["nodes"], "object"),
            counted(facts["triangles"], "triangle"),
            counted(facts["materials"], "material"),
        ]
    parts += [counted(facts[key], noun) for key, noun in (("bones", "bone"), ("shape_keys", "shape key")) if facts[key]]
    parts += [counted(facts["body_shapes"], "body shape")] if "body_shapes" in facts else []
    if clips:
        named = "; ".join(clip_text(clip) for clip in clips[:CLIPS_NAMED])
        more = f" and {len(clips) - CLIPS_NAMED} more" if len(clips) > CLIPS_NAMED else ""
        parts.append(f"{counted(len(clips), 'animation')} ({named}{more})")
    return ", ".join(parts)


def plain(value: Any) -> Any:
    """Convert a value for JSON: NumPy numbers to Python numbers, NaN and infinity to null."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
