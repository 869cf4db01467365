"""Cards of the report: the HTML of one result, and the sums of several."""

from __future__ import annotations

import base64
import html
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from ....io_formats.core.messages import counted, summed_up
from ...reporting import printable
from ..progress import time_text
from ..tasks import Result
from .pictures import read_picture

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
