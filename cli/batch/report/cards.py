"""Cards of the report: the HTML of one result, and the sums of several."""

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
"""Kinds of results that the filter buttons select, in the order of the buttons."""
_LABELS = {
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
"""Facts that a card shows, each with its noun in the singular and in the plural if that is irregular."""
_JOINED = "\N{NO-BREAK SPACE}"
"""Separator within a count ("5 bones") and before the dot that follows it, so that lines break only after the dot."""
_WARNINGS_SHOWN = 40
"""Warnings of one model that are shown; equal warnings of several objects count as one."""
_FILES_SHOWN = 40
"""Output files of one model that are listed."""
_ERROR_SHOWN = 200
"""Characters of a longer error that are shown before it is unfolded."""
_LONGEST = 2000
"""Characters after which a message is cut off."""


@dataclass
class Sums:
    """Sums of a page or of a whole report."""

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
        """Add the sums of a page."""
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
        """Return the address of a path below the folder; an empty string if the name cannot be encoded."""
        try:
            return escaped(self._start + quote(os.fsencode(path)))
        except UnicodeEncodeError:
            return ""


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
    kind = kind_of(result)
    title, folder = names_of(result)
    facts = result.facts
    parts = [f"<h2>{name(title)}</h2>\n"]
    if folder:
        parts.append(f'<p class="folder">{name(folder)}</p>\n')
    counts = [counted(n, one, several) for key, one, several in _COUNTS if (n := fact(facts, key))]
    if counts:
        text = f"{_JOINED}· ".join(count.replace(" ", _JOINED) for count in counts)
        parts.append(f'<p class="counts">{escaped(text)}</p>\n')
    parts.append(f'<p class="result"><b>{_LABELS[result.status]}</b>{_written(result, links)}{_time(result)}</p>\n')
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
    """Return a link to the main output of a source."""
    if not result.outputs or not result.status.is_good:
        return ""
    return f" → {_link(result.outputs[-1], links, PurePosixPath(result.task.path).parent)}"


def _link(path: str, links: Links, folder: PurePosixPath | None = None) -> str:
    """Return a link to an output; it shows the folder unless that is the folder of the source."""
    shown = PurePosixPath(path).name if PurePosixPath(path).parent == folder else path
    address = links.to(path)
    return f'<a href="{address}">{name(shown)}</a>' if address else name(shown)


def _time(result: Result) -> str:
    seconds = seconds_of(result)
    return f' <span class="time">{escaped(time_text(seconds))}</span>' if seconds else ""


def _error(text: str) -> str:
    """Return the error of a source; a long one is folded after its beginning."""
    if len(text) <= _ERROR_SHOWN:
        return f'<p class="error">{escaped(text)}</p>\n'
    start = text[:_ERROR_SHOWN].rpartition(" ")[0] or text[:_ERROR_SHOWN]
    return (
        f'<details class="error"><summary>{escaped(start)} …</summary>\n'
        f"<p>{escaped(text[len(start) :].lstrip())}</p>\n</details>\n"
    )


def _files(result: Result, links: Links) -> str:
    """Return the list of outputs if a source has several."""
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
    title = counted(len(result.warnings), "warning")
    return f'<details class="warnings"><summary>{title}</summary>\n<ul>\n{shown}</ul>\n</details>\n'


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
