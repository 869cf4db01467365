"""One result of a batch -> its card on a page, and its place in the sums."""

from __future__ import annotations

import base64
import html
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from ...reporting import counted, grouped, printable
from ..progress import time_text
from ..tasks import Result, Status
from .pictures import read_picture

KINDS = ("done", "unchanged", "failed", "quarantined")
"""Kinds of results that can be picked out, in the order of their buttons."""
_SAID = {
    Status.DONE: "Done",
    Status.UNCHANGED: "Unchanged",
    Status.FAILED: "Failed",
    Status.CRASHED: "Crashed",
    Status.TIMED_OUT: "Timed out",
}
_COUNTS = (
    ("nodes", "object", ""),
    ("triangles", "triangle", ""),
    ("vertices", "vertex", "vertices"),
    ("materials", "material", ""),
    ("bones", "bone", ""),
    ("shape_keys", "shape key", ""),
    ("clips", "animation", ""),
)
"""Facts of a model that are shown, and what people call one and several."""
_JOINED = "\N{NO-BREAK SPACE}"
"""Between a number and what it counts, and before the dot after both: lines break behind it."""
_WARNINGS_SHOWN = 40
"""Of one model; what is said of several things in it is one."""
_FILES_SHOWN = 40
_ERROR_SHOWN = 200
"""Letters of a longer reason that are shown at once."""
_LONGEST = 2000
"""Letters of one message."""


@dataclass
class Sums:
    """What a page, or a whole report, holds."""

    models: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    warned: int = 0
    triangles: int = 0
    vertices: int = 0
    seconds: float = 0.0

    def add(self, result: Result) -> None:
        """Count a result."""
        self.models += 1
        self.kinds[kind_of(result)] += 1
        self.warned += bool(result.warnings)
        self.triangles += fact(result.facts, "triangles")
        self.vertices += fact(result.facts, "vertices")
        self.seconds += seconds_of(result)

    def add_all(self, other: Sums) -> None:
        """Count what was counted elsewhere."""
        self.models += other.models
        for kind in KINDS:
            self.kinds[kind] += other.kinds[kind]
        self.warned += other.warned
        self.triangles += other.triangles
        self.vertices += other.vertices
        self.seconds += other.seconds


def escaped(text: str) -> str:
    """Escape a text for an element or for an attribute in quotes."""
    return html.escape(printable(text), quote=True)


def name(text: str) -> str:
    """Escape a name; its writing direction does not affect the text beside it."""
    return f"<bdi>{escaped(text)}</bdi>"


class Links:
    """Addresses of files below one folder, relative to a page in another folder."""

    def __init__(self, folder: Path, page: Path) -> None:
        try:
            self._start = quote(os.fsencode(os.path.relpath(folder, page.parent).replace(os.sep, "/"))) + "/"
        except ValueError:  # on another drive
            self._start = folder.absolute().as_uri() + "/"

    def to(self, path: str) -> str:
        """Return the address of a path below the folder; an empty string if no system has such a name."""
        try:
            return escaped(self._start + quote(os.fsencode(path)))
        except UnicodeEncodeError:
            return ""


def kind_of(result: Result) -> str:
    """Return the one of :data:`KINDS` that a result is."""
    return "quarantined" if result.status.is_quarantined else result.status.value


def fact(facts: Mapping[str, Any], key: str) -> int:
    """Return a number among the facts of a model, or how many there are of a list; 0: it is not said."""
    value = facts.get(key, 0)
    if isinstance(value, list):
        return len(value)
    return int(value) if isinstance(value, (int, float)) and abs(value) < 1e18 else 0


def seconds_of(result: Result) -> float:
    """Return how long a result took; 0: that is not said."""
    return result.seconds if math.isfinite(result.seconds) else 0.0


def names_of(result: Result) -> tuple[str, str]:
    """Return the name of a source and the folder that it lies in, or the archive and the folder in that."""
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
        Place in the whole report, from 0; addresses of cards end with it.
    links:
        To the output folder ``output``.
    """
    kind = kind_of(result)
    title, folder = names_of(result)
    facts = result.facts
    parts = [f"<h2>{name(title)}</h2>\n"]
    if folder:
        parts.append(f'<p class="folder">{name(folder)}</p>\n')
    counts = [counted(n, one, several) for key, one, several in _COUNTS if (n := fact(facts, key))]
    if counts:
        said = f"{_JOINED}· ".join(count.replace(" ", _JOINED) for count in counts)
        parts.append(f'<p class="counts">{escaped(said)}</p>\n')
    parts.append(f'<p class="result"><b>{_SAID[result.status]}</b>{_written(result, links)}{_time(result)}</p>\n')
    if result.error:
        parts.append(_error(_shortened(result.error)))
    parts += [_files(result, links), _warnings(result)]
    return (
        f'<article id="m{number}" data-result="{kind}" data-triangles="{fact(facts, "triangles")}" '
        f'data-seconds="{seconds_of(result):.4f}" data-warnings="{len(result.warnings)}">\n'
        f"{_picture(result, output)}<div>\n{''.join(parts)}</div>\n</article>\n"
    )


def _picture(result: Result, output: Path) -> str:
    found = read_picture(output, result.hash)
    if found is None:
        icon = "none" if result.status.is_good else "broken"
        return f'<svg aria-hidden="true"><use href="#{icon}"/></svg>\n'
    media_type, data = found
    source = f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
    return f'<img src="{source}" width="96" height="96" alt="">\n'


def _written(result: Result, links: Links) -> str:
    """Return the file that a source became, as a link."""
    if not result.outputs or not result.status.is_good:
        return ""
    return f" → {_link(result.outputs[-1], links, PurePosixPath(result.task.path).parent)}"


def _link(path: str, links: Links, folder: PurePosixPath | None = None) -> str:
    """Return the link to an output; its folder is said unless it is that of the source."""
    shown = PurePosixPath(path).name if PurePosixPath(path).parent == folder else path
    address = links.to(path)
    return f'<a href="{address}">{name(shown)}</a>' if address else name(shown)


def _time(result: Result) -> str:
    seconds = seconds_of(result)
    return f' <span class="time">{escaped(time_text(seconds))}</span>' if seconds else ""


def _error(text: str) -> str:
    """Return why a source did not become a file; of a long text the beginning, which opens."""
    if len(text) <= _ERROR_SHOWN:
        return f'<p class="error">{escaped(text)}</p>\n'
    start = text[:_ERROR_SHOWN].rpartition(" ")[0] or text[:_ERROR_SHOWN]
    return (
        f'<details class="error"><summary>{escaped(start)} …</summary>\n'
        f"<p>{escaped(text[len(start) :].lstrip())}</p>\n</details>\n"
    )


def _files(result: Result, links: Links) -> str:
    """Return the files that a source became, where they are several."""
    if len(result.outputs) < 2:
        return ""
    shown = "".join(f"<li>{_link(path, links)}</li>\n" for path in result.outputs[:_FILES_SHOWN])
    return f"<details><summary>{counted(len(result.outputs), 'file')}</summary>\n<ul>\n{shown}</ul>\n</details>\n"


def _warnings(result: Result) -> str:
    lines = [_shortened(text) for text in grouped(result.warnings)]
    if not lines:
        return ""
    if len(lines) > _WARNINGS_SHOWN:
        lines[_WARNINGS_SHOWN:] = [f"and {len(lines) - _WARNINGS_SHOWN} more kinds of warnings"]
    shown = "".join(f"<li>{escaped(text)}</li>\n" for text in lines)
    said = counted(len(result.warnings), "warning")
    return f'<details class="warnings"><summary>{said}</summary>\n<ul>\n{shown}</ul>\n</details>\n'


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
