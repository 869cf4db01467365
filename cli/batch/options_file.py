"""Options of the command line from a TOML or JSON file."""

from __future__ import annotations

import argparse
import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...io_formats.core.errors import FormatError, MeshferryError
from ...io_formats.disk.special_files import read_bytes

SOURCES = "sources"
"""Key of the input files and folders in an options file."""
LITERAL = "\0"
"""Start of sources that would begin with a hyphen: argparse would take them for options. Paths never contain it."""


def literal_source(source: str) -> str:
    """Return a source in a form that is not parsed as an option."""
    return LITERAL + source if source.startswith("-") else source


def read_options_file(path: str | Path, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a file as arguments, to insert before those of the command line, which override them.

    The names are those of the flags (``to = "blend"``, ``jobs = 4``, ``strict = true``, ``match = ["*.mesh", "x*"]``);
    ``sources`` are the files and folders, returned in the form of :func:`literal_source`. ``false`` means ``--no-…`` if
    that flag exists.

    Raises
    ------
    MeshferryError
        The file cannot be read, or a key is not an option of ``parser``.
    """
    arguments: list[str] = []
    named: list[str] = []
    for name, value in _content(path).items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | int | float) for item in values):
            raise MeshferryError("{}: '{}' is neither a text, a number, true, false nor a list of these", path, name)
        if name == SOURCES:
            named += [literal_source(str(item)) for item in values]
        else:
            for item in values:
                arguments += _arguments(path, name, item, parser)
    return [*named, *arguments]


def _content(path: str | Path) -> Mapping[str, Any]:
    """Return the values of a TOML or JSON file."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except FormatError as problem:
        raise MeshferryError(str(problem)) from None
    except UnicodeDecodeError:
        raise MeshferryError("{}: this is not UTF-8 text", path) from None
    except (ValueError, RecursionError) as problem:
        raise MeshferryError("{}: this is neither TOML nor JSON: {}", path, problem) from None
    return dict(found)


def _arguments(
    path: str | Path, name: str, value: str | float | bool, parser: argparse.ArgumentParser
) -> Iterator[str]:
    flag = f"--{name.lstrip('-').replace('_', '-')}"
    actions = parser._option_string_actions
    action = actions.get(flag)
    if action is None or flag in {"--options", "--help"}:
        near = difflib.get_close_matches(flag, actions, 1) if action is None else []
        hint = f"; did you mean '{near[0].lstrip('-')}'?" if near else ""
        raise MeshferryError("{}: there is no option '{}'{}", path, name, hint)
    if not isinstance(value, bool):
        if action.nargs == 0:
            raise MeshferryError("{}: '{}' is either true or false", path, name)
        yield f"{flag}={value}"
    elif action.nargs not in {0, "?"}:
        raise MeshferryError("{}: '{}' is neither true nor false; it needs a value", path, name)
    elif value:
        yield flag
    elif (opposite := flag.replace("--", "--no-", 1)) in action.option_strings:
        yield opposite
