"""bytes -> document (docs/formats/timberborn_blueprints.md)."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

from ...core.errors import FormatError
from .document import Blueprint
from .json_text import BOM, MOST_BYTES, MOST_DEPTH, MOST_DIGITS, MOST_VALUES, parse
from .merging import Merger


def read(data: bytes, *, inflated_limit: int | None = None) -> Blueprint:
    """Decode a blueprint.

    Raises
    ------
    FormatError
        The file is not JSON, not an object, or exceeds a limit.
    """
    content = _content(data)
    if not isinstance(content, dict):
        raise FormatError("The outermost value is not an object")
    return Blueprint(Merger().merged({}, content), hashlib.sha256(data).hexdigest())


def _content(data: bytes) -> Any:
    """Return the values of a file.

    Python's JSON parser is tried first: most files are strict JSON, which it parses in a tenth of the time.
    """
    if len(data) <= MOST_BYTES and b"\\u" not in data:  # may be half of a surrogate pair
        try:
            found = json.loads(data.removeprefix(BOM), parse_float=_number, parse_int=_number, strict=False)
        except (ValueError, RecursionError):
            return parse(data).plain()
        if not _is_large(found):
            return found
    return parse(data).plain()


def _number(text: str) -> float:
    if len(text) > MOST_DIGITS:
        raise ValueError
    return float(text)


def _is_large(value: Any) -> bool:
    """Return whether a value may exceed a limit of the parser."""
    level, number = [value], 0
    for _depth in range(MOST_DEPTH):
        number += len(level)
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = list(itertools.chain.from_iterable(inner))
    return bool(level) or number > MOST_VALUES


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have equal values, whatever their spelling and blanks."""
    return repr(parse(one).plain()) == repr(parse(other).plain())
