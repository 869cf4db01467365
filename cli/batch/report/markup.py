"""Texts of files and people -> HTML in which they are nothing but text."""

from __future__ import annotations

import html
import os
from pathlib import Path
from urllib.parse import quote

from ...reporting import printable


def escaped(text: str) -> str:
    """Return a text for the inside of an element or of an attribute in quotes."""
    return html.escape(printable(text), quote=True)


def name(text: str) -> str:
    """Return a name, whose direction of writing does not turn round what stands beside it."""
    return f"<bdi>{escaped(text)}</bdi>"


class Links:
    """Addresses of files below one folder, as seen from a page in another."""

    def __init__(self, folder: Path, page: Path) -> None:
        try:
            self._start = quote(os.fsencode(os.path.relpath(folder, page.parent).replace(os.sep, "/"))) + "/"
        except ValueError:  # on another drive
            self._start = folder.absolute().as_uri() + "/"

    def to(self, path: str) -> str:
        """Return the address of a path below the folder; nothing where no system has such a name."""
        try:
            return escaped(self._start + quote(os.fsencode(path)))
        except UnicodeEncodeError:
            return ""
