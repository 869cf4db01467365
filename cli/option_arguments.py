"""Option tables -> command line arguments -> values; the tables alone say which options there are."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..io_formats.options import Option


@dataclass(frozen=True)
class OptionTable:
    """Some options under one heading of the help.

    Parameters
    ----------
    key:
        Short name; put in front of a flag that another table already has for a different option.
    title:
        Heading in the help, which says when these options count.
    """

    key: str
    title: str
    options: tuple[Option, ...]


def add_arguments(parser: argparse.ArgumentParser, tables: Sequence[OptionTable]) -> None:
    """Add an argument for every option of the tables; options left out by the user leave no trace."""
    added = set()
    for table in tables:
        group = parser.add_argument_group(table.title)
        for option, flag in _flags(table, tables):
            if flag not in added:
                _add_argument(group, option, flag)
                added.add(flag)


def given_values(arguments: argparse.Namespace, table: OptionTable, tables: Sequence[OptionTable]) -> dict[str, Any]:
    """Return the options of one table that the user gave, for :func:`..io_formats.options.resolve`."""
    return {
        option.name: getattr(arguments, _destination(flag))
        for option, flag in _flags(table, tables)
        if hasattr(arguments, _destination(flag))
    }


def given_flags(arguments: argparse.Namespace, table: OptionTable, tables: Sequence[OptionTable]) -> list[str]:
    """Return the flags of one table that the user gave."""
    return [f"--{flag}" for _option, flag in _flags(table, tables) if hasattr(arguments, _destination(flag))]


def _flags(wanted: OptionTable, tables: Sequence[OptionTable]) -> list[tuple[Option, str]]:
    """Return each option of a table with its flag, without the dashes.

    Tables may share an option; where two give one name to different options, the later one's flag says whose it is.
    """
    owners: dict[str, Option] = {}
    for table in tables:
        flags = []
        for option in table.options:
            flag = option.name.removeprefix("use_").replace("_", "-")
            if owners.setdefault(flag, option) != option:
                flag = f"{table.key}-{flag}"
                owners[flag] = option
            flags.append((option, flag))
        if table == wanted:
            return flags
    raise KeyError(wanted.key)


def _destination(flag: str) -> str:
    return "option:" + flag


def _add_argument(group: argparse._ArgumentGroup, option: Option, flag: str) -> None:
    settings: dict[str, Any] = {"dest": _destination(flag), "default": argparse.SUPPRESS, "help": _help(option)}
    if isinstance(option.default, bool):
        settings["action"] = argparse.BooleanOptionalAction
    elif option.choices:
        settings["type"] = _choice_parser(option)
        settings["metavar"] = "{" + ",".join(choice.key.lower() for choice in option.choices) + "}"
    elif isinstance(option.default, (int, float)):
        settings["type"] = _number_parser(option)
        settings["metavar"] = "N"
    elif option.is_path:
        settings["type"] = _absolute_path
        settings["metavar"] = "PATH"
    else:
        settings["metavar"] = "TEXT"
    group.add_argument("--" + flag, **settings)


def _help(option: Option) -> str:
    text = option.description
    if option.choices:
        text += ". " + "; ".join(f"{choice.key.lower()}: {choice.description}" for choice in option.choices)
    default = option.default_for(headless=True)
    if isinstance(default, bool):
        said = "on" if default else "off"
    elif option.choices:
        said = str(default).lower()
    else:
        said = f"{default:g}" if isinstance(default, float) else str(default)
    return (text + (f" (default: {said})" if said else "")).replace("%", "%%")


def _choice_parser(option: Option) -> Callable[[str], str]:
    keys = {choice.key.lower(): choice.key for choice in option.choices}

    def parse(text: str) -> str:
        key = keys.get(text.lower().replace("-", "_"))
        if key is None:
            raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(keys)}")
        return key

    return parse


def _number_parser(option: Option) -> Callable[[str], int | float]:
    kind: type[int] | type[float] = int if isinstance(option.default, int) else float

    def parse(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"'{text}' is not {noun}") from None
        if not math.isfinite(number):
            raise argparse.ArgumentTypeError(f"'{text}' is not a finite number")
        if option.minimum is not None and number < option.minimum:
            raise argparse.ArgumentTypeError(f"{text} is below the least, {option.minimum:g}")
        if option.maximum is not None and number > option.maximum:
            raise argparse.ArgumentTypeError(f"{text} is above the most, {option.maximum:g}")
        return number

    return parse


def _absolute_path(text: str) -> str:
    """Return a path that does not depend on the folder a .blend file lies in."""
    return str(Path(text).expanduser().absolute()) if text else ""
