"""Option tables become arguments, and arguments become values, with no names written twice."""

import argparse

import pytest
from meshferry.cli.option_arguments import OptionTable, add_arguments, flags_of, format_table, given_options, values_of
from meshferry.io_formats.core.options import Choice, Option

SHAPE = Option(
    "shape", "ROUND", "Shape", "50% of it", choices=(Choice("ROUND", "R", "x"), Choice("VERY_FLAT", "F", "y"))
)
WELD = Option("use_weld", True, "Weld", "Join", headless_default=False)
COUNT = Option("count", 1, "Count", "How many", minimum=0, maximum=9)
RATE = Option("rate", 0.5, "Rate", "How fast")
LIBRARY = Option("library", "", "Library", "A file", is_path=True)
TABLE = OptionTable("one", "first options", (SHAPE, WELD, COUNT, RATE, LIBRARY))
OTHER_COUNT = Option("count", 5, "Count", "Something else")
OTHER = OptionTable("two", "second options", (WELD, OTHER_COUNT))
TABLES = [TABLE, OTHER]


def parse(*argv):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_arguments(parser, TABLES)
    return parser.parse_args(argv)


def values(*argv, table=TABLE):
    return values_of(given_options(vars(parse(*argv))), TABLES)[table.key]


def test_what_the_user_leaves_out_is_left_to_the_defaults():
    assert values() == {}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--shape", "very_flat"], {"shape": "VERY_FLAT"}),
        (["--shape", "very-flat"], {"shape": "VERY_FLAT"}),
        (["--shape", "ROUND"], {"shape": "ROUND"}),
        (["--weld"], {"use_weld": True}),
        (["--no-weld"], {"use_weld": False}),
        (["--count", "9"], {"count": 9}),
        (["--rate", "0.25"], {"rate": 0.25}),
        (["--library", ""], {"library": ""}),
    ],
)
def test_each_kind_of_option(argv, expected):
    assert values(*argv) == expected


def test_paths_no_longer_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert values("--library", "wood.blend") == {"library": str(tmp_path / "wood.blend")}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--shape", "square"], "is not one of round, very_flat"),
        (["--count", "10"], "10 is above the most, 9"),
        (["--count", "-1"], "-1 is below the least, 0"),
        (["--count", "1.5"], "is not a whole number"),
        (["--rate", "nan"], "is not a finite number"),
        (["--rate", "fast"], "is not a number"),
    ],
)
def test_wrong_values_are_refused_in_plain_words(argv, said, capsys):
    with pytest.raises(SystemExit) as refusal:
        parse(*argv)
    assert refusal.value.code == 2
    assert said in capsys.readouterr().err


def test_tables_share_an_option_and_part_where_only_the_name_is_shared():
    argv = ["--no-weld", "--count", "3", "--two-count", "4"]
    assert values(*argv) == {"use_weld": False, "count": 3}
    assert values(*argv, table=OTHER) == {"use_weld": False, "count": 4}
    flags = {flag: option for table, option, flag in flags_of(TABLES) if table is OTHER}
    assert flags == {"weld": WELD, "two-count": OTHER_COUNT}


def test_help_tells_descriptions_choices_and_the_default_of_the_command_line(capsys):
    with pytest.raises(SystemExit):
        parse("--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "50% of it. round: x; very_flat: y (default: round)" in said
    assert "Join (default: off)" in said
    assert "second options" in said


def test_an_option_that_formats_share_stands_once_under_all_their_names(capsys):
    tables = [
        format_table("reading", "read-a", "Alpha", (WELD,)),
        format_table("writing", "a", "Alpha", (SHAPE, WELD)),
        format_table("reading", "read-b", "Beta", (WELD,)),
    ]
    parser = argparse.ArgumentParser()
    add_arguments(parser, tables)
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    said = capsys.readouterr().out
    assert said.count("Join") == 1
    assert "options for reading and writing Alpha and Beta files:\n  --weld" in said
    assert "options for writing Alpha files:\n  --shape" in said
    given = given_options(vars(parser.parse_args(["--no-weld"])))
    assert list(values_of(given, tables).values()) == [{"use_weld": False}] * 3


def test_a_choice_says_what_its_label_adds_to_its_key(capsys):
    parser = argparse.ArgumentParser()
    versions = (Choice("MS13", "ms13: SDK 2.19", "The richest"), Choice("MS12", "Old", "The oldest"))
    add_arguments(parser, [OptionTable("one", "options", (Option("version", "MS13", "V", "Of it", choices=versions),))])
    with pytest.raises(SystemExit):
        parser.parse_args(["--help"])
    assert "ms13 (SDK 2.19): The richest; ms12: The oldest" in " ".join(capsys.readouterr().out.split())


def test_every_real_option_is_an_argument():
    from meshferry.blender_data.export_options import EXPORT_OPTIONS
    from meshferry.blender_data.importing.import_options import IMPORT_OPTIONS
    from meshferry.cli.main import build_parser
    from meshferry.io_formats.registry import FORMATS

    parser = build_parser()
    for options in (IMPORT_OPTIONS, EXPORT_OPTIONS, *(f.options() for f in FORMATS)):
        for option in options:
            flag = "--" + option.keyword.replace("_", "-")
            argv = ["convert", "a", "b", flag]
            if not isinstance(option.default, bool):
                argv.append(str(option.default))
            assert parser.parse_args(argv).command == "convert"
