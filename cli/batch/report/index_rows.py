"""The names of all models of a report, as data that the index of its pages searches."""

from __future__ import annotations

import json
import tempfile
from types import TracebackType
from typing import IO

from ...reporting import printable
from .cards import KINDS


class IndexRows:
    """Collects rows outside of memory, grouped by folder: ``["folder", "name", code, "name", code, ...]``.

    A code is twice the number of a kind of result in :data:`KINDS`, and one more where there are warnings.
    """

    def __init__(self) -> None:
        self._lines: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed at the end of the block)
        self._folder: str | None = None

    def __enter__(self) -> IndexRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()

    def add(self, title: str, folder: str, kind: str, *, warned: bool) -> None:
        """Add a model after those that were added."""
        code = 2 * KINDS.index(kind) + warned
        start = ""
        if folder != self._folder:
            start = ("" if self._folder is None else "],\n") + "[" + _json(folder)
            self._folder = folder
        self._lines.write(f"{start},{_json(title)},{code}".encode())

    def data(self, *, stem: str, suffix: str, a_page: int) -> str:
        """Return all as JSON that can stand inside of a script element.

        Parameters
        ----------
        stem, suffix:
            Address of a page before and after its number.
        a_page:
            Models on a page.
        """
        self._lines.seek(0)
        rows = self._lines.read().decode("utf-8") + ("" if self._folder is None else "]")
        head = {"stem": stem, "suffix": suffix, "a_page": a_page, "results": KINDS}
        return f'{_safe(json.dumps(head))[:-1]}, "models": [\n{rows}\n]}}'


def _json(text: str) -> str:
    return _safe(json.dumps(printable(text), ensure_ascii=False))


def _safe(text: str) -> str:
    """Return JSON without what could end a script element, or begin a comment in it."""
    return (
        text.replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )
