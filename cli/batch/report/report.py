"""The HTML pages of a report. Each page is one file with its style, script and pictures; it needs no network."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from urllib.parse import quote

from ....io_formats.core.errors import ExportError
from ....io_formats.disk.atomic_write import refusal, remove_file, replace_file
from ...reporting import counted, printable
from ..progress import time_text
from ..tasks import Result
from .cards import KINDS, Links, Sums, card, escaped, kind_of, name, names_of

ENTRIES_A_PAGE = 2000
"""Models of one page."""
_GENERATOR = "Meshferry batch report"
_BAD = "not converted"
_HEAD = 2000
"""Bytes at the start of a page that contain its ``generator``."""
_FILTERS = (("all", "All"), *((kind, kind.capitalize()) for kind in KINDS), ("warned", "With warnings"))
_SORTING = """<label for="sort">Sort by</label>
<select id="sort">
<option value="place" selected>folder</option>
<option value="name">name</option>
<option value="triangles">triangles</option>
<option value="seconds">time</option>
<option value="warnings">warnings</option>
</select>
"""


@dataclass(frozen=True)
class About:
    """Facts of the whole batch that a report shows."""

    version: str
    """``environment.described()``."""
    options: Sequence[str]
    """Options of the conversion, as given on the command line."""
    roots: Sequence[str]
    """Folders of the sources."""
    ended: float
    """End of the run, in seconds since 1970."""
    no_pictures: str = ""
    """Reason for missing pictures (``PictureRun.problem``); empty if this machine can draw."""


def write(results: Iterable[Result], about: About, output: Path, to: Path, *, a_page: int = ENTRIES_A_PAGE) -> Path:
    """Write the report; return the file to open.

    Up to ``a_page`` models are written to one file. More of them are written to pages ``NAME-001.html``, with an index
    that searches all. Pages are written one by one, so memory is bounded. Further pages of an earlier, longer report
    are removed.

    Parameters
    ----------
    results:
        The last result of each task, in the order of the plan.
    output:
        The output folder of the batch, with the outputs to link and the pictures.
    to:
        The file to write, such as ``report.html``.

    Raises
    ------
    ExportError
        A file cannot be written; files that were not replaced are unchanged.
    """
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ExportError(f"{to.parent}: the folder cannot be made: {refusal(problem)}") from None
    return _Report(about, output.absolute(), to.absolute(), a_page).write(results)


class _Report:
    """The writer of one report."""

    def __init__(self, about: About, output: Path, to: Path, a_page: int) -> None:
        self._about = about
        self._output = output
        self._to = to
        self._a_page = a_page
        self._links = Links(output, to)
        self._template = Template(_asset("template.html"))
        self._script = _asset("report.js")
        self._style = _asset("report.css")
        self._all = Sums()

    def write(self, results: Iterable[Result]) -> Path:
        chunks = _chunks(results, self._a_page)
        first, following = next(chunks, []), next(chunks, None)
        if following is None:
            self._all, cards = self._cards(first, 0)
            self._page(self._to, self._title, self._all, cards, "models")
        else:
            self._pages(itertools.chain([first, following], chunks))
        self._remove_pages_after(0 if following is None else -(-self._all.models // self._a_page))
        return self._to

    def _pages(self, chunks: Iterator[list[Result]]) -> None:
        """Write a page for each chunk and, at the end, the index of all."""
        entries: list[str] = []
        rows = _IndexRows()
        chunk: list[Result] | None = next(chunks)
        while chunk is not None:
            following = next(chunks, None)
            number = len(entries) + 1
            sums, cards = self._cards(chunk, self._all.models)
            numbers = f"{self._all.models + 1:,} to {self._all.models + sums.models:,}"
            self._page(
                self._path(number),
                f"{self._title}: models {numbers}",
                sums,
                cards,
                "models",
                pages=self._neighbours(number, is_last=following is None),
            )
            for result in chunk:
                rows.add(result)
            self._all.add_all(sums)
            entries.append(self._index_entry(number, numbers, chunk, sums))
            chunk = following
        data = rows.to_json(stem=quote(os.fsencode(self._to.stem)) + "-", suffix=self._suffix, a_page=self._a_page)
        pages = f'<ol id="found"></ol>\n<ol id="list">\n{"".join(entries)}</ol>\n'
        self._page(self._to, self._title, self._all, pages, "index", data=data)

    def _cards(self, chunk: Sequence[Result], start: int) -> tuple[Sums, str]:
        sums = Sums()
        cards = []
        for number, result in enumerate(chunk, start):
            sums.add(result)
            cards.append(card(result, number, self._output, self._links))
        return sums, "".join(cards)

    @property
    def _title(self) -> str:
        return f"Batch into {self._output.name or self._output}"

    @property
    def _suffix(self) -> str:
        return self._to.suffix or ".html"

    def _path(self, number: int) -> Path:
        return self._to.with_name(f"{self._to.stem}-{number:03}{self._suffix}")

    def _address(self, path: Path) -> str:
        return escaped(quote(os.fsencode(path.name)))

    def _neighbours(self, number: int, *, is_last: bool) -> str:
        """Return the links of a page to the index and to the previous and next page."""
        links = [f'<a href="{self._address(self._to)}">Index of all pages</a>\n']
        if number > 1:
            links.append(f'<a href="{self._address(self._path(number - 1))}" rel="prev">Previous page</a>\n')
        if not is_last:
            links.append(f'<a href="{self._address(self._path(number + 1))}" rel="next">Next page</a>\n')
        return f'<nav class="pages" aria-label="Pages">\n{"".join(links)}</nav>\n'

    def _index_entry(self, number: int, numbers: str, chunk: Sequence[Result], sums: Sums) -> str:
        """Return the entry of a page in the index."""
        bad = sums.kinds["failed"] + sums.kinds["quarantined"]
        notes = f' <span class="bad">{bad:,} {_BAD}</span>' if bad else ""
        ends = f"{name(chunk[0].task.source)} … {name(chunk[-1].task.source)}"
        address = self._address(self._path(number))
        return f'<li><a href="{address}">Models {numbers}</a> <span>{ends}</span>{notes}</li>\n'

    def _page(self, to: Path, title: str, sums: Sums, main: str, kind: str, *, pages: str = "", data: str = "") -> None:
        about = self._about
        digest = hashlib.sha256(f"\n{self._script}".encode()).digest()
        filled = self._template.substitute(
            generator=_GENERATOR,
            script_hash="sha256-" + base64.b64encode(digest).decode("ascii"),
            title=escaped(title),
            heading=escaped(title),
            when=escaped(time.strftime("%Y-%m-%d %H:%M", time.localtime(about.ended))),
            notice=f'<p class="notice">{escaped(about.no_pictures)}</p>\n' if about.no_pictures else "",
            asked=self._batch_facts(),
            totals=_totals(sums),
            filters=_filters(sums),
            sorting="" if kind == "index" else _SORTING,
            placeholder="Search names and folders" if kind == "index" else "Search names, folders and warnings",
            pages_above=pages,
            pages_below=pages,
            kind=kind,
            main=main,
            data=f'<script type="application/json" id="data">{data}</script>\n' if data else "",
            version=escaped(about.version),
            style=self._style,
            script=self._script,
        )
        replace_file(to, filled.encode("utf-8"))

    def _batch_facts(self) -> str:
        """Return the options and folders of the batch as entries of a list."""
        home = os.path.expanduser("~")
        roots = [root.replace(home, "~", 1) if root.startswith(home) else root for root in self._about.roots]
        options = shlex.join(printable(option) for option in self._about.options) or "none"
        lines = [f"<dt>Options</dt><dd><code>{escaped(options)}</code></dd>\n"]
        lines += [f"<dt>Folder</dt><dd>{name(root)}</dd>\n" for root in roots]
        return "".join(lines)

    def _remove_pages_after(self, last: int) -> None:
        """Remove the pages of an earlier, longer report."""
        pattern = re.compile(re.escape(self._to.stem) + r"-(\d{3,})" + re.escape(self._suffix))
        for path in list(self._to.parent.iterdir()):
            found = pattern.fullmatch(path.name)
            if found and int(found[1]) > last and _is_page(path):
                try:
                    remove_file(path)
                except FileNotFoundError:
                    continue
                except OSError as problem:
                    raise ExportError(f"{path}: the old page cannot be removed: {refusal(problem)}") from None


class _IndexRows:
    """The names of all models, as data that the index searches: ``["folder", "name", code, "name", code, ...]``.

    A code is twice the index of a kind of result in :data:`KINDS`, and one more if there are warnings.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._folder: str | None = None

    def add(self, result: Result) -> None:
        """Add a model; models of one folder follow each other."""
        title, folder = names_of(result)
        if folder != self._folder:
            self._parts.append(("" if self._folder is None else "],\n") + "[" + _json(folder))
            self._folder = folder
        code = 2 * KINDS.index(kind_of(result)) + bool(result.warnings)
        self._parts.append(f",{_json(title)},{code}")

    def to_json(self, *, stem: str, suffix: str, a_page: int) -> str:
        """Return all rows as JSON for a script element, with the address of a page before and after its number."""
        rows = "".join(self._parts) + ("" if self._folder is None else "]")
        head = {"stem": stem, "suffix": suffix, "a_page": a_page, "results": KINDS}
        return f'{_escape_json(json.dumps(head))[:-1]}, "models": [\n{rows}\n]}}'


def _json(text: str) -> str:
    return _escape_json(json.dumps(printable(text), ensure_ascii=False))


def _escape_json(text: str) -> str:
    """Escape characters that would end a script element or begin a comment in it."""
    for character in "<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text("utf-8")


def _chunks(results: Iterable[Result], size: int) -> Iterator[list[Result]]:
    stream = iter(results)
    while chunk := list(itertools.islice(stream, size)):
        yield chunk


def _is_page(path: Path) -> bool:
    """Return whether a file is a page of a report."""
    try:
        with path.open("rb") as stream:
            return f'content="{_GENERATOR}"'.encode() in stream.read(_HEAD)
    except OSError:
        return False


def _totals(sums: Sums) -> str:
    converted = sums.kinds["done"] + sums.kinds["unchanged"]
    shown = {
        "models" if sums.models != 1 else "model": f"{sums.models:,}",
        "converted": f"{converted:,}",
        _BAD: f"{sums.models - converted:,}",
        "triangles": f"{sums.triangles:,}",
        "vertices": f"{sums.vertices:,}",
        "processing time": time_text(sums.seconds),
    }
    bad = ' class="bad"'
    return "".join(
        f"<div{bad if label == _BAD and value != '0' else ''}><dt>{escaped(label)}</dt><dd>{value}</dd></div>\n"
        for label, value in shown.items()
    )


def _filters(sums: Sums) -> str:
    """Return the filter buttons, without those that would select no model."""
    numbers = {"all": sums.models, **sums.kinds, "warned": sums.warned}
    return "".join(
        f'<button type="button" data-filter="{key}" aria-pressed="{"true" if key == "all" else "false"}" '
        f'title="{counted(numbers[key], "model")}">{label} <b>{numbers[key]:,}</b></button>\n'
        for key, label in _FILTERS
        if numbers[key] or key == "all"
    )
