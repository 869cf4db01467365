"""The HTML pages of a report, with a card for each result. Each page is one file and needs no network."""

import base64
import hashlib
import html
import itertools
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from string import Template
from typing import Any
from urllib.parse import quote

from ...io_formats.core.errors import ExportError, refusal
from ...io_formats.core.messages import counted, summed_up
from ...io_formats.disk.atomic_write import make_folder, remove_file, replace_file
from ...io_formats.disk.reach import command_text
from ...io_formats.disk.special_files import open_regular
from ..output import printable
from .progress import time_text
from .report_pictures import read_picture
from .tasks import Result

KINDS = ("done", "unchanged", "failed", "quarantined")
"""Kinds of results that the filter buttons select, in the order of the buttons."""
_COUNTS = (
    ("nodes", "object", ""),
    ("triangles", "triangle", ""),
    ("vertices", "vertex", "vertices"),
    ("materials", "material", ""),
    ("bones", "bone", ""),
    ("shape_keys", "shape key", ""),
    ("clips", "animation", ""),
)
"""Facts that a card shows, each with its noun in the singular and in the plural if that is irregular."""
_JOINED = "\N{NO-BREAK SPACE}"
"""Separator within a count ("5 bones") and before the dot that follows it, so that lines break only after the dot."""
_LISTED = 40
"""Largest number of output files, and of kinds of warnings, that the card of one model lists."""
_ERROR_SHOWN = 200
"""Characters of a longer error that are shown before it is unfolded."""
_LONGEST = 2000
"""Characters after which a message is cut off."""


def sums_of(results: Iterable[Result]) -> Counter[str]:
    """Return counts of results: ``models`` (all), ``warned`` (with warnings), each kind; and sums of other facts."""
    sums: Counter[str] = Counter()
    for result in results:
        sums["models"] += 1
        sums[kind_of(result)] += 1
        sums["warned"] += bool(result.warnings)
        sums["triangles"] += fact(result.facts, "triangles")
        sums["vertices"] += fact(result.facts, "vertices")
        sums["microseconds"] += round(1e6 * seconds_of(result))
    return sums


def escape(text: str) -> str:
    """Escape a text for an element or for an attribute in quotes."""
    return html.escape(printable(text), quote=True)


def escape_name(text: str) -> str:
    """Escape a name; its writing direction does not affect the text beside it."""
    return f"<bdi>{escape(text)}</bdi>"


class Links:
    """Addresses of files below one folder, relative to a page in another folder."""

    def __init__(self, folder: Path, page: Path) -> None:
        try:
            self._start = quote(os.fsencode(os.path.relpath(folder, page.parent).replace(os.sep, "/"))) + "/"
        except ValueError:  # on another drive
            self._start = folder.absolute().as_uri() + "/"

    def element(self, path: str, shown: str = "") -> str:
        """Return a link to a path below the folder; its text is the path by default."""
        text = escape_name(shown or path)
        try:
            address = escape(self._start + quote(os.fsencode(path)))
        except UnicodeEncodeError:
            return text
        return f'<a href="{address}">{text}</a>'


def kind_of(result: Result) -> str:
    """Return the kind of a result, from :data:`KINDS`."""
    return "quarantined" if result.status.is_quarantined else result.status.value


def fact(facts: Mapping[str, Any], key: str) -> int:
    """Return a number from the facts of a model, or the length of a list; 0 if the fact is missing."""
    value = facts.get(key, 0)
    if isinstance(value, list):
        return len(value)
    return int(value) if isinstance(value, (int, float)) and abs(value) < 1e18 else 0


def seconds_of(result: Result) -> float:
    """Return the duration of a task; 0 if it is not finite."""
    return result.seconds if math.isfinite(result.seconds) else 0.0


def names_of(result: Result) -> tuple[str, str]:
    """Return the name of a source and its folder; for a member of an archive, the archive and the folder inside it."""
    if result.task.member:
        folder, _, last = result.task.member.rpartition("/")
        return last, f"{result.task.path}: {folder}" if folder else result.task.path
    folder, _, last = result.task.path.rpartition("/")
    return last, folder


def card(result: Result, number: int, output: Path, links: Links) -> str:
    """Return the card of a result.

    Parameters
    ----------
    number:
        Index in the whole report, from 0; the id of the card contains it.
    output:
        The output folder.
    links:
        Addresses of files in the output folder.
    """
    title, folder = names_of(result)
    facts, seconds = result.facts, seconds_of(result)
    counts = (counted(n, one, several) for key, one, several in _COUNTS if (n := fact(facts, key)))
    time = f' <span class="time">{escape(time_text(seconds))}</span>' if seconds else ""
    parts = (
        _picture(result, output),
        f"<div>\n<h2>{escape_name(title)}</h2>\n",
        _paragraph("folder", escape_name(folder) if folder else ""),
        _paragraph("counts", f"{_JOINED}· ".join(count.replace(" ", _JOINED) for count in counts)),
        _paragraph("result", f"<b>{result.status.value.capitalize()}</b>{_target(result, links)}{time}"),
        _error(_shortened(result.error)),
        _folded("file", result.outputs if len(result.outputs) > 1 else (), links.element),
        _folded("warning", result.warnings, lambda text: escape(_shortened(text)), summed_up(result.warnings)),
    )
    return (
        f'<article id="m{number}" data-result="{kind_of(result)}" data-triangles="{fact(facts, "triangles")}" '
        f'data-seconds="{seconds:.4f}" data-warnings="{len(result.warnings)}">\n{"".join(parts)}</div>\n</article>\n'
    )


def _picture(result: Result, output: Path) -> str:
    found = read_picture(output, result.hash)
    if found is None:
        icon = "none" if result.status.is_good else "broken"
        return f'<svg aria-hidden="true"><use href="#{icon}"/></svg>\n'
    media_type, data = found
    source = f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
    return f'<img src="{source}" width="96" height="96" alt="">\n'


def _paragraph(style: str, content: str) -> str:
    return f'<p class="{style}">{content}</p>\n' if content else ""


def _target(result: Result, links: Links) -> str:
    """Return a link to the main output; its text is the path, or the name if it is in the folder of the source."""
    if not result.outputs or not result.status.is_good:
        return ""
    path = PurePosixPath(result.outputs[-1])
    is_beside = path.parent == PurePosixPath(result.task.path).parent
    return f" → {links.element(result.outputs[-1], path.name if is_beside else '')}"


def _error(text: str) -> str:
    """Return the error of a source; a long one is folded after its beginning."""
    if len(text) <= _ERROR_SHOWN:
        return _paragraph("error", escape(text))
    start = text[:_ERROR_SHOWN].rpartition(" ")[0] or text[:_ERROR_SHOWN]
    return (
        f'<details class="error"><summary>{escape(start)} …</summary>\n'
        f"<p>{escape(text[len(start) :].lstrip())}</p>\n</details>\n"
    )


def _folded(noun: str, texts: Sequence[str], element: Callable[[str], str], kinds: Sequence[str] | None = None) -> str:
    """Return a folded list of texts, or of their kinds; only its first items are shown."""
    items = texts if kinds is None else kinds
    if not items:
        return ""
    shown = "".join(f"<li>{element(text)}</li>\n" for text in items[:_LISTED])
    if more := len(items) - len(items[:_LISTED]):
        shown += f"<li>and {more:,} more {'' if kinds is None else 'kinds of '}{noun}s</li>\n"
    title = counted(len(texts), noun)
    return f'<details class="{noun}s"><summary>{title}</summary>\n<ul>\n{shown}</ul>\n</details>\n'


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


ENTRIES_A_PAGE = 2000
"""Models of one page."""
_GENERATOR = "Meshferry batch report"
_BAD = "not converted"
_HEAD = 2000
"""Bytes at the start of a page that contain its ``generator``."""
_FILTERS = (("models", "All"), *((kind, kind.capitalize()) for kind in KINDS), ("warned", "With warnings"))


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


def write_report(
    results: Iterable[Result], about: About, output: Path, to: Path, *, a_page: int = ENTRIES_A_PAGE
) -> Path:
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
    make_folder(to.parent)
    output, to = output.absolute(), to.absolute()
    pages = _Pages(about, output, to)
    links = Links(output, to)
    entries: list[str] = []
    rows: list[str] = []
    total: Counter[str] = Counter()
    for number, (chunk, is_last) in enumerate(_chunks(results, a_page), 1):
        sums = sums_of(chunk)
        start = total["models"]
        total.update(sums)
        cards = "".join(card(result, index, output, links) for index, result in enumerate(chunk, start))
        if is_last and not start:
            pages.write(to, "", sums, cards)
            break
        span = f"{start + 1:,} to {total['models']:,}"
        pages.write(
            pages.path(number), f": models {span}", sums, cards, pages=pages.neighbours(number, is_last=is_last)
        )
        entries.append(pages.entry(number, span, chunk, sums))
        rows += _index_rows(chunk)
    else:
        head = {"stem": quote(os.fsencode(to.stem)) + "-", "suffix": to.suffix, "a_page": a_page, "results": KINDS}
        models = ",\n".join(rows)
        data = f'{_json(head)[:-1]}, "models": [\n{models}\n]}}'
        found = f'<ol id="found"></ol>\n<ol id="list">\n{"".join(entries)}</ol>\n'
        pages.write(to, "", total, found, data=data)
    pages.remove_after(len(entries))
    return to


class _Pages:
    """The pages of one report."""

    def __init__(self, about: About, output: Path, to: Path) -> None:
        self._to = to
        self._title = f"Batch into {output.name or output}"
        self._template = Template(_asset("template.html"))
        script = _asset("report.js")
        digest = hashlib.sha256(f"\n{script}".encode()).digest()
        self._shared = {
            "generator": _GENERATOR,
            "script_hash": "sha256-" + base64.b64encode(digest).decode("ascii"),
            "when": escape(time.strftime("%Y-%m-%d %H:%M", time.localtime(about.ended))),
            "notice": f'<p class="notice">{escape(about.no_pictures)}</p>\n' if about.no_pictures else "",
            "asked": _batch_facts(about),
            "version": escape(about.version),
            "style": _asset("report.css"),
            "script": script,
        }

    def write(self, to: Path, part: str, sums: Counter[str], main: str, *, pages: str = "", data: str = "") -> None:
        """Write a page of models, or the index if it has data to search.

        Parameters
        ----------
        part:
            Addition to the title.
        pages:
            Links to other pages.
        """
        filled = self._template.substitute(
            self._shared,
            title=escape(self._title + part),
            totals=_totals(sums),
            filters=_filters(sums),
            sorting=" hidden" if data else "",
            placeholder="Search names and folders" if data else "Search names, folders and warnings",
            pages=pages,
            kind="index" if data else "models",
            main=main,
            data=f'<script type="application/json" id="data">{data}</script>\n' if data else "",
        )
        replace_file(to, filled.encode("utf-8"), within=None if to == self._to else to.parent)

    def path(self, number: int) -> Path:
        """Return the path of a page; the index is number 0."""
        return self._to.with_stem(f"{self._to.stem}-{number:03}") if number else self._to

    def _link(self, number: int, text: str, relation: str = "") -> str:
        return f'<a href="{escape(quote(os.fsencode(self.path(number).name)))}"{relation}>{text}</a>'

    def neighbours(self, number: int, *, is_last: bool) -> str:
        """Return the links of a page to the index and to the previous and next page."""
        links = self._link(0, "Index of all pages") + "\n"
        if number > 1:
            links += self._link(number - 1, "Previous page", ' rel="prev"') + "\n"
        if not is_last:
            links += self._link(number + 1, "Next page", ' rel="next"') + "\n"
        return f'<nav class="pages" aria-label="Pages">\n{links}</nav>\n'

    def entry(self, number: int, span: str, chunk: Sequence[Result], sums: Counter[str]) -> str:
        """Return the entry of a page in the index."""
        bad = sums["failed"] + sums["quarantined"]
        notes = f' <span class="bad">{bad:,} {_BAD}</span>' if bad else ""
        ends = f"{escape_name(chunk[0].task.source)} … {escape_name(chunk[-1].task.source)}"
        return f"<li>{self._link(number, f'Models {span}')} <span>{ends}</span>{notes}</li>\n"

    def remove_after(self, last: int) -> None:
        """Remove the pages of an earlier, longer report, backwards so that the next report continues if interrupted."""
        old = itertools.takewhile(_is_page, map(self.path, itertools.count(last + 1)))
        for path in reversed(list(old)):
            try:
                remove_file(path)
            except OSError as problem:
                raise ExportError("{}: the old page cannot be removed: {}", path, refusal(problem)) from None


def _batch_facts(about: About) -> str:
    """Return the options and folders of the batch as entries of a list."""
    home = os.path.expanduser("~")
    roots = [root.replace(home, "~", 1) if root.startswith(home) else root for root in about.roots]
    options = command_text([printable(option) for option in about.options]) or "none"
    lines = [f"<dt>Options</dt><dd><code>{escape(options)}</code></dd>\n"]
    lines += [f"<dt>Folder</dt><dd>{escape_name(root)}</dd>\n" for root in roots]
    return "".join(lines)


def _index_rows(chunk: Iterable[Result]) -> Iterator[str]:
    """Yield the names of models as data that the index searches: ``["folder", "name", code, "name", code, ...]``.

    A code is twice the index of a kind of result in :data:`KINDS`, and one more if there are warnings.
    """
    for folder, results in itertools.groupby(chunk, lambda result: names_of(result)[1]):
        row: list[str | int] = [printable(folder)]
        for result in results:
            row += (printable(names_of(result)[0]), 2 * KINDS.index(kind_of(result)) + bool(result.warnings))
        yield _json(row)


def _json(value: object) -> str:
    """Return JSON for a script element, in which ``<`` could end the element or begin a comment."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ": ")).replace("<", "\\u003c")


def _asset(file: str) -> str:
    return Path(__file__).with_name(file).read_text("utf-8")


def _chunks(results: Iterable[Result], size: int) -> Iterator[tuple[list[Result], bool]]:
    """Yield the results of each page, and whether it is the last one; at least one page."""
    stream = iter(results)
    chunk = list(itertools.islice(stream, size))
    while following := list(itertools.islice(stream, size)):
        yield chunk, False
        chunk = following
    yield chunk, True


def _is_page(path: Path) -> bool:
    """Return whether a file is a page of a report."""
    try:
        with os.fdopen(open_regular(path, follows_links=True), "rb") as stream:
            return f'content="{_GENERATOR}"'.encode() in stream.read(_HEAD)
    except OSError:
        return False


def _totals(sums: Counter[str]) -> str:
    converted = sums["done"] + sums["unchanged"]
    bad = sums["models"] - converted
    shown = (
        ("", "models" if sums["models"] != 1 else "model", f"{sums['models']:,}"),
        ("", "converted", f"{converted:,}"),
        (' class="bad"' if bad else "", _BAD, f"{bad:,}"),
        ("", "triangles", f"{sums['triangles']:,}"),
        ("", "vertices", f"{sums['vertices']:,}"),
        ("", "processing time", time_text(sums["microseconds"] / 1e6)),
    )
    return "".join(f"<div{style}><dt>{label}</dt><dd>{value}</dd></div>\n" for style, label, value in shown)


def _filters(sums: Counter[str]) -> str:
    """Return the filter buttons as HTML; a filter that no model passes has no button."""
    return "".join(
        f'<button type="button" data-filter="{"all" if key == "models" else key}" '
        f'aria-pressed="{"true" if key == "models" else "false"}" '
        f'title="{counted(sums[key], "model")}">{label} <b>{sums[key]:,}</b></button>\n'
        for key, label in _FILTERS
        if sums[key] or key == "models"
    )
