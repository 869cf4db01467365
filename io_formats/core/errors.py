"""The errors of ``io_formats``.

::

    ValueError
    └── MeshferryError               any expected failure; the text is for the user
        ├── FormatError              a file that cannot be read, or a document that cannot be encoded
        │   └── UnsupportedFormatError   no registered format, or an unknown version
        ├── ExportError              a scene that cannot be written
        └── MissingLibraryError      a library that a format needs is not installed

A codec raises :class:`FormatError` for everything that can be wrong with a file. It names the file, the location and
the cause. Any other exception from a codec is a bug.
"""

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Self

from .messages import Message, Text, joined


class MeshferryError(ValueError):
    """Base of all expected failures.

    Parameters
    ----------
    template, values:
        What is wrong, as for :class:`~.messages.Text`, in one sentence without a full stop.
    offset:
        Byte offset in the (inflated) data where it was noticed, if there is one.
    item:
        The damaged or unsupported part of the file, e.g. ``node 'Roof'``.
    file:
        Path or name of the file; a caller that knows it may add it (see :meth:`in_file`).
    """

    def __init__(
        self, template: str, *values: object, offset: int | None = None, item: str = "", file: str | PurePath = ""
    ) -> None:
        super().__init__(template, *values)
        self.message = Text(template, *values)
        self.offset = offset
        self.item = item
        self.file = str(file)

    def in_file(self, file: str) -> Self:
        """Set the file name of this error and return the error, for ``raise error.in_file(name)``."""
        self.file = self.file or file
        return self

    def sentence(self, *, with_file: bool = True) -> Text:
        """Return the text for the user."""
        text = Text("{}: {}", self.item, self.message) if self.item else self.message
        if self.offset is not None:
            text = Text("{} (at byte {:,})", text, self.offset)
        return Text("{}: {}", self.file, text) if self.file and with_file else text

    def __str__(self) -> str:
        return str(self.sentence())


class FormatError(MeshferryError):
    """A file that cannot be read, or a document that cannot be written."""


class UnsupportedFormatError(FormatError):
    """The content belongs to no format that Meshferry reads, or to a version it does not know."""


class MissingLibraryError(MeshferryError):
    """A library that a format needs is not installed; the text says how to get it."""


class ExportError(MeshferryError):
    """A scene that cannot be written; the text names the object and the way out.

    Parameters
    ----------
    findings:
        The broken rules, if the checks of the format refused the scene.
    """

    def __init__(
        self, template: str, *values: object, findings: Sequence[Message] = (), file: str | PurePath = ""
    ) -> None:
        super().__init__(template, *values, file=file)
        self.findings = tuple(findings)

    @classmethod
    def of(cls, *findings: Message) -> Self:
        """Return an error with the text of findings, which it contains so that their elements can be selected."""
        return cls(joined(findings, "; "), findings=findings)


_LONGEST_PATH = 259
"""Characters of a path that programs of Windows may use, unless program and system allow longer ones."""
_LONGEST_NAME = 255
"""Characters of a file name on Windows."""


def refusal(problem: Exception) -> str:
    """Return the error text of the operating system.

    Windows reports a path or name that is too long as missing or invalid, so the limit is added.
    """
    text = getattr(problem, "strerror", None) or str(problem)
    if sys.platform == "win32" and isinstance(problem, OSError) and problem.errno in {errno.ENOENT, errno.EINVAL}:
        for path in map(os.path.abspath, filter(None, (problem.filename, problem.filename2))):
            if max(map(len, path.split(os.sep))) > _LONGEST_NAME:
                return f"{text}; Windows allows {_LONGEST_NAME} characters in a name"
            if len(path) > _LONGEST_PATH:
                return f"{text}; the path has {len(path)} characters, and Windows may allow only {_LONGEST_PATH}"
    return text
