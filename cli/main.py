"""The command line: ``meshferry inspect | convert | batch | check | building | formats``, and its options from a file.

It is the same as a plain command, as ``blender --command meshferry`` and as
``blender -b --python cli/convert.py -- …``.
"""

import argparse
import difflib
import functools
import importlib
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..io_formats.core.errors import FormatError, MeshferryError
from ..io_formats.disk.special_files import read_bytes
from . import environment, interruption
from .output import Reporter, make_streams_safe, printable

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


COMMANDS = ("inspect", "convert", "batch", "check", "building", "formats")

OK, FAILED, REFUSED = 0, 1, 2
"""Exit statuses; :func:`.interruption.status` gives that of an interrupted run."""


def main(argv: Sequence[str] | None = None, *, program: str = "meshferry") -> int:
    """Run the command line.

    Parameters
    ----------
    argv:
        The arguments. Default: those of the process.
    program:
        Command that the user typed, for help texts.

    Returns
    -------
    int
        Exit status: 0 success, 1 at least one failure, 2 invalid arguments, 130 after Ctrl+C, 143 after SIGTERM,
        129 after SIGHUP.
    """
    make_streams_safe()
    with interruption.handled():
        return _main(argv, program)


def _main(argv: Sequence[str] | None, program: str) -> int:
    missing = environment.missing_libraries()
    if "numpy" in missing:  # the other libraries are needed only for some formats
        print(f"Meshferry needs NumPy. {environment.how_to_install(missing)}", file=sys.stderr)
        return FAILED
    if "bpy" in sys.modules:
        importlib.import_module("...blender_data.addon_formats.offered_families", __name__).add()
    try:
        given = sys.argv[1:] if argv is None else list(argv)
        arguments = _parse(build_parser(program, *given[:1]), given)
    except SystemExit as done:  # argparse has printed help or an error
        return done.code if isinstance(done.code, int) else REFUSED
    reporter = Reporter(as_json=arguments.json, quiet=arguments.quiet, debug=arguments.debug)
    try:
        interruption.check()
        status: int = arguments.run(arguments, reporter)
        interruption.check()
    except KeyboardInterrupt:
        reporter.fail("", MeshferryError("Interrupted"))
        return interruption.status()
    except MeshferryError as problem:
        reporter.fail("", problem)
        return REFUSED
    except Exception as problem:  # noqa: BLE001 (a defect is one line, and its place with --debug)
        reporter.fail("", problem)
        return FAILED
    finally:
        reporter.close()
    return FAILED if status == OK and reporter.is_output_lost else status


class _Parser(argparse.ArgumentParser):
    """Argument parser that escapes control characters in its messages."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or an error. argparse would ignore that help cannot be written."""
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        reporter = Reporter()
        reporter.result(message.removesuffix("\n"))
        if reporter.is_output_lost:
            self.exit(FAILED)


def build_parser(program: str = "meshferry", command: str = "") -> argparse.ArgumentParser:
    """Return the parser of one command, of none for ``--version``, or of all if there is no command of this name.

    The modules of the other commands are not imported, which makes the start faster.
    """
    parser = _Parser(
        prog=program,
        allow_abbrev=False,
        description="Carry meshes, armatures, shape keys and animations between Blender and game formats.",
    )
    parser.add_argument("--version", action="version", version=environment.described())
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = functools.partial(subparsers.add_parser, parents=[_shared_arguments()], allow_abbrev=False)
    names = [command] if command in COMMANDS else COMMANDS
    for name in names if command != "--version" else ():
        importlib.import_module(f".{name}_command", __package__).add_parser(add)
    return parser


def _parse(parser: argparse.ArgumentParser, given: list[str]) -> argparse.Namespace:
    """Parse arguments with options in any position: argparse accepts files only up to the first option after them.

    Arguments after ``--`` are files, even if they begin with a hyphen.
    """
    if "--" in given:
        end = given.index("--")
        given = [*given[:end], *map(literal_source, given[end + 1 :])]
    arguments, rest = parser.parse_known_args(given)
    if getattr(arguments, "options", None):
        try:
            filed = [text for path in arguments.options for text in read_options_file(path, arguments.parser)]
        except MeshferryError as problem:
            arguments.parser.error(str(problem))
        typed = arguments
        arguments, rest = parser.parse_known_args([given[0], *filed, *given[1:]])
        arguments.typed = typed
    if any(text.startswith("-") for text in rest) or (rest and "paths" not in arguments):
        parser.error(f"unrecognized arguments: {' '.join(rest).replace(LITERAL, '')}")
    if "paths" in arguments:
        arguments.paths = [text.removeprefix(LITERAL) for text in [*arguments.paths, *rest]]
    return arguments


def _shared_arguments() -> _Parser:
    shared = _Parser(add_help=False, allow_abbrev=False)
    shared.add_argument("--json", action="store_true", help="print one JSON object a line instead of sentences")
    shared.add_argument(
        "-q", "--quiet", action="store_true", help="print what was asked for and failures, nothing else"
    )
    shared.add_argument("--debug", action="store_true", help="print where errors happened, and Blender's own output")
    return shared
