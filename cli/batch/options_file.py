"""Options of the command line from a TOML or JSON file."""

from __future__ import annotations

import argparse
import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...io_formats import api
from ...io_formats.core.errors import FormatError, MeshferryError

SOURCES = "sources"
"""Key of the input files and folders in an options file."""
_FLAG = "--options"
_LARGEST = 2**20
"""Maximum size of an options file in bytes."""


def read(path: str | Path, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a file as arguments, to insert before those of the command line.

    The names are those of the flags (``to = "blend"``, ``jobs = 4``, ``strict = true``, ``match = ["*.mesh", "x*"]``);
    ``sources`` are the files and folders. ``false`` means ``--no-…`` if that flag exists.

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
            raise MeshferryError(f"{path}: '{name}' is neither a text, a number, true, false nor a list of these")
        if name == SOURCES:
            named += map(str, values)
        else:
            for item in values:
                arguments += _arguments(path, name, item, parser)
    return [*named, *arguments]


def expanded(argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Replace ``--options`` by the options of the files, inserted before the other arguments, which override them.

    Parameters
    ----------
    argv:
        The arguments of the command, without its name.
    parser:
        The parser of the command.

    Raises
    ------
    MeshferryError
        As for :func:`read`, or ``--options`` has no value.
    """
    before: list[str] = []
    after: list[str] = []
    rest = iter(argv)
    for text in rest:
        if text == "--":
            after += [text, *rest]
        elif text == _FLAG:
            path = next(rest, None)
            if path is None:
                raise MeshferryError(f"{_FLAG} needs the name of a file")
            before += read(path, parser)
        elif text.startswith(f"{_FLAG}="):
            before += read(text.removeprefix(f"{_FLAG}="), parser)
        else:
            after.append(text)
    return [*before, *after]


def _content(path: str | Path) -> Mapping[str, Any]:
    """Return the values of a TOML or JSON file."""
    try:
        data = api.read_bytes(path)
        if len(data) > _LARGEST:
            raise MeshferryError(f"{path}: an options file may have at most {_LARGEST:,} bytes")
        text = data.decode("utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except FormatError as problem:
        raise MeshferryError(str(problem)) from None
    except UnicodeDecodeError:
        raise MeshferryError(f"{path}: this is not UTF-8 text") from None
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as problem:
        raise MeshferryError(f"{path}: this is neither TOML nor JSON: {problem}") from None
    if not isinstance(found, dict):
        raise MeshferryError(f"{path}: the file has no option names")
    return found


def _arguments(
    path: str | Path, name: str, value: str | float | bool, parser: argparse.ArgumentParser
) -> Iterator[str]:
    flag = f"--{name.lstrip('-').replace('_', '-')}"
    actions = parser._option_string_actions
    action = actions.get(flag)
    if action is None or flag in {_FLAG, "--help"}:
        near = difflib.get_close_matches(flag, actions, 1)
        hint = f"; did you mean '{near[0].lstrip('-')}'?" if near else ""
        raise MeshferryError(f"{path}: there is no option '{name}'{hint}")
    if not isinstance(value, bool):
        if action.nargs == 0:
            raise MeshferryError(f"{path}: '{name}' is either true or false")
        yield f"{flag}={value}"
    elif value and action.nargs in {0, "?"}:
        yield flag
    elif value or action.nargs not in {0, "?"}:
        raise MeshferryError(f"{path}: '{name}' is neither true nor false; it needs a value")
    elif (opposite := flag.replace("--", "--no-", 1)) in action.option_strings:
        yield opposite
