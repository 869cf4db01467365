"""Option tables -> command-line arguments -> values; only the tables define options."""

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.format import Format
from ..io_formats.core.options import Choice, Option, Value

AddParser = Callable[..., argparse.ArgumentParser]
"""Adds the parser of a command, given its name and texts."""
_PREFIX = "option:"
"""Start of the names of parsed arguments that are options of tables."""


@dataclass(frozen=True)
class OptionTable:
    """Options under one heading of the help.

    Parameters
    ----------
    key:
        Short name, used as a prefix for a flag that another table has for a different option.
    title:
        Heading in the help, which states when these options are used.
    action, label:
        Action and files, such as "reading" and "Timbermesh", for the heading of options that several tables share.
    """

    key: str
    title: str
    options: tuple[Option, ...]
    action: str = ""
    label: str = ""


def format_table(action: str, key: str, label: str, options: tuple[Option, ...]) -> OptionTable:
    """Return the table of a format's options for reading or for writing its files."""
    return OptionTable(key, f"options for {action} {label} files", options, action, label)


def add_arguments(parser: argparse.ArgumentParser, tables: Sequence[OptionTable]) -> None:
    """Add one argument for each option of the tables; options that the user leaves out set no attribute."""
    owners: dict[str, list[OptionTable]] = {}
    options: dict[str, Option] = {}
    for table, option, flag in flags_of(tables):
        owners.setdefault(flag, []).append(table)
        options[flag] = option
    groups: dict[str, Any] = {}
    for flag, option in options.items():
        title = _heading(owners[flag])
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add_argument(groups[title], option, flag)


def add_mounts_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-mounts``, a policy of the machine and therefore not an option of a format."""
    parser.add_argument(
        "--mounts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="read folders outside of a UNIGINE project that its .umount files name, which may be any folders of this "
        "machine; switch it off for projects from others (default: yes)",
    )


def _heading(tables: Sequence[OptionTable]) -> str:
    """Return the heading of an option that these tables share."""
    if len(tables) == 1 or not all(table.label for table in tables):
        return tables[0].title
    actions = list(dict.fromkeys(table.action for table in tables))
    labels = list(dict.fromkeys(table.label for table in tables))
    return f"options for {_listed(actions)} {_listed(labels)} files"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def given_options(parsed: Mapping[str, Any]) -> dict[str, Value]:
    """Return the values of the options that the user gave, by flag without dashes, from all parsed arguments."""
    return {name.removeprefix(_PREFIX): value for name, value in parsed.items() if name.startswith(_PREFIX)}


def preferred_options(known: Format) -> tuple[Option, ...]:
    """Return the options of a format that the preferences of Blender hold, such as folders."""
    return tuple(option for option in known.options() if option.preference)


def values_of(given: Mapping[str, Value], tables: Sequence[OptionTable]) -> dict[str, dict[str, Value]]:
    """Return the values of given options by the keys of their tables and by their names in these."""
    found: dict[str, dict[str, Value]] = {table.key: {} for table in tables}
    for table, option, flag in flags_of(tables):
        if flag in given:
            found[table.key][option.name] = given[flag]
    return found


def require_usable_paths(given: Mapping[str, Value], tables: Sequence[OptionTable]) -> None:
    """Raise an error for a given path that its option cannot use.

    Raises
    ------
    MeshferryError
        The message names the path.
    """
    for _, option, flag in flags_of(tables):
        if option.probe is not None and given.get(flag):
            option.probe(str(given[flag]))


def spell_options(given: Mapping[str, Value], tables: Sequence[OptionTable]) -> list[str]:
    """Return given options as arguments, in the order of the tables and in normalised spelling."""
    flags = dict.fromkeys(flag for _, _, flag in flags_of(tables))
    return [_spelt(flag, given[flag]) for flag in flags if flag in given]


def _spelt(flag: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag}={value!r}" if isinstance(value, float) else f"--{flag}={value}"


def flags_of(tables: Sequence[OptionTable]) -> Iterator[tuple[OptionTable, Option, str]]:
    """Yield each option of the tables with its table and its flag, without the dashes.

    Tables may share an option. If two tables have different options of one name, the flag of the later table gets its
    key as a prefix.
    """
    owners: dict[str, Option] = {}
    for table in tables:
        for option in table.options:
            flag = option.keyword.replace("_", "-")
            if owners.setdefault(flag, option) != option:
                flag = f"{table.key}-{flag}"
                owners[flag] = option
            yield table, option, flag


def _add_argument(group: argparse._ArgumentGroup, option: Option, flag: str) -> None:
    settings: dict[str, Any] = {"dest": _PREFIX + flag, "default": argparse.SUPPRESS, "help": _help(option)}
    if isinstance(option.default, bool):
        settings["action"] = argparse.BooleanOptionalAction
    else:
        settings["type"] = _parser(option)
        kind = "N" if isinstance(option.default, (int, float)) else "PATH" if option.is_path else "TEXT"
        keys = ",".join(choice.key.lower() for choice in option.choices)
        settings["metavar"] = f"{{{keys}}}" if keys else kind
    group.add_argument("--" + flag, **settings)


def _help(option: Option) -> str:
    text = option.description
    if option.choices:
        text += ". " + "; ".join(_described(choice) for choice in option.choices)
    default = option.default_for(headless=True)
    if isinstance(default, bool):
        said = "on" if default else "off"
    elif option.choices:
        said = str(default).lower()
    else:
        said = f"{default:g}" if isinstance(default, float) else str(default)
    return (text + (f" (default: {said})" if said else "")).replace("%", "%%")


def _described(choice: Choice) -> str:
    """Return the help text of a choice: ``key: text``, or ``ms13 (SDK 2.19): text`` if the label adds to the key."""
    key = choice.key.lower()
    known, colon, more = choice.label.partition(": ")
    return f"{key} ({more}): {choice.description}" if colon and known == key else f"{key}: {choice.description}"


def _parser(option: Option) -> Callable[[str], Value]:
    def parse(text: str) -> Value:
        try:
            return option.parsed(text)
        except MeshferryError as problem:
            raise argparse.ArgumentTypeError(str(problem.message)) from None

    return parse


def number(kind: type[int] | type[float], least: int) -> Callable[[str], int | float]:
    """Return the argument type of finite numbers that are not less than a limit."""

    def parse(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
        if not math.isfinite(number) or number < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} on")
        return number

    return parse
