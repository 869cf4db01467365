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

from __future__ import annotations

from collections.abc import Sequence

from .findings import Finding


class MeshferryError(ValueError):
    """Base of all expected failures; its text is what the user reads."""


class FormatError(MeshferryError):
    """A file that cannot be read, or a document that cannot be written.

    Parameters
    ----------
    message:
        What is wrong, in one sentence without a full stop.
    offset:
        Byte offset in the (inflated) data where it was noticed, if there is one.
    item:
        The damaged or unsupported part of the file, e.g. ``node 'Roof'``.
    file:
        Name of the file; added by the caller that knows it (see :meth:`in_file`).
    """

    def __init__(self, message: str, *, offset: int | None = None, item: str = "", file: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.item = item
        self.file = file

    def in_file(self, file: str) -> FormatError:
        """Name the file and return the same error, for ``raise error.in_file(name)``."""
        self.file = self.file or file
        return self

    def __str__(self) -> str:
        text = f"{self.item}: {self.message}" if self.item else self.message
        if self.offset is not None:
            text = f"{text} (at byte {self.offset:,})"
        return f"{self.file}: {text}" if self.file else text


class UnsupportedFormatError(FormatError):
    """The content belongs to no format that Meshferry reads, or to a version it does not know."""


class MissingLibraryError(MeshferryError):
    """A library that a format needs is not installed; the text says how to get it."""


class ExportError(MeshferryError):
    """A scene that cannot be written; the text names the object and the way out.

    Parameters
    ----------
    message:
        The text, in one line.
    findings:
        The broken rules, if the checks of the format refused the scene.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


def refusal(problem: Exception) -> str:
    """Return the error text of the operating system."""
    return getattr(problem, "strerror", None) or str(problem)
