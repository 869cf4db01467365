"""Options of the command line out of a file, in TOML or JSON."""

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
"""Name of the files and folders in an options file."""
_FLAG = "--options"
_LARGEST = 2**20
"""Bytes."""


def read(path: str | Path, parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a file as arguments, to be put before those of the command line.

    The names are those of the flags (``to = "blend"``, ``jobs = 4``, ``strict = true``, ``match = ["*.mesh", "x*"]``);
    ``sources`` are the files and folders. ``false`` means ``--no-…`` if that flag exists.

    Raises
    ------
    MeshferryError
        The file cannot be read, or has a name that is not an option of ``parser``.
    """
    arguments: list[str] = []
    named: list[str] = []
    for name, value in _content(path).items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(one, str | int | float) for one in values):
            raise MeshferryError(f"{path}: '{name}' is neither a text, a number, true, false nor a list of these")
        if name == SOURCES:
            named += map(str, values)
        else:
            for one in values:
                arguments += _arguments(path, name, one, parser)
    return [*named, *arguments]


def expanded(argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Return arguments after those from the files that ``--options`` names, so that the arguments override the files.

    Parameters
    ----------
    argv:
        The arguments of the command, without its name.
    parser:
        The command's.

    Raises
    ------
    MeshferryError
        As :func:`read`, or ``--options`` names nothing.
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
            raise MeshferryError(f"{path}: a file of options has less than {_LARGEST:,} bytes")
        text = data.decode("utf-8-sig")
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except FormatError as problem:
        raise MeshferryError(str(problem)) from None
    except UnicodeDecodeError:
        raise MeshferryError(f"{path}: this is not UTF-8 text") from None
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as problem:
        raise MeshferryError(f"{path}: this is neither TOML nor JSON: {problem}") from None
    if not isinstance(found, dict):
        raise MeshferryError(f"{path}: there are no names of options in it")
    return found


def _arguments(
    path: str | Path, name: str, value: str | float | bool, parser: argparse.ArgumentParser
) -> Iterator[str]:
    flag = f"--{name.lstrip('-').replace('_', '-')}"
    known = parser._option_string_actions
    action = known.get(flag)
    if action is None or flag in {_FLAG, "--help"}:
        near = difflib.get_close_matches(flag, known, 1)
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
