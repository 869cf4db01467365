"""Options of a batch that stand in a file."""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path

import pytest
from meshferry.cli import main
from meshferry.cli.batch import sources
from meshferry.io_formats.core.errors import MeshferryError


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    made.add_argument("paths", nargs="*")
    made.add_argument("--to")
    made.add_argument("--jobs", type=int)
    made.add_argument("--strict", action="store_true")
    made.add_argument("--tangents", action=argparse.BooleanOptionalAction)
    made.add_argument("--report", nargs="?", const="")
    made.add_argument("--mesh-version")
    made.add_argument("--options")
    sources.add_arguments(made)
    return made


TOML = """
sources = ["models", "a b", "-o", "--to=glb"]
to = "blend"
jobs = 4
strict = true
tangents = false
report = true
mesh_version = "ms12"
match = ["*.mesh", "-x*"]
"""


@pytest.mark.parametrize("language", ["toml", "json"])
def test_options_out_of_a_file(tmp_path: Path, language: str) -> None:
    path = tmp_path / f"options.{language}"
    path.write_text(TOML if language == "toml" else json.dumps(tomllib.loads(TOML)), encoding="utf-8")
    given = main.read_options_file(path, parser())
    found, more = parser().parse_known_args([*given, "more", "--to", "glb", "--match", "z"])
    assert found.paths == ["models", "a b", "\0-o", "\0--to=glb"]
    assert more == ["more"]
    assert (found.to, found.jobs, found.strict, found.tangents) == ("glb", 4, True, False)
    assert (found.report, found.mesh_version, found.match) == ("", "ms12", ["*.mesh", "-x*", "z"])


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("mesh-verison = 'x'", "there is no option 'mesh-verison'; did you mean 'mesh-version'?"),
        ("options = 'x'", "there is no option 'options'"),
        ("help = true", "there is no option 'help'"),
        ("to = true", "'to' is neither true nor false; it needs a value"),
        ("strict = 'yes'", "'strict' is either true or false"),
        ("to = [1, [2]]", "'to' is neither a text"),
        ("to = 1979-05-27", "'to' is neither a text"),
        ("[to]\nx = 1", "'to' is neither a text"),
        ("to = ", "this is neither TOML nor JSON"),
        ('{"to": }', "this is neither TOML nor JSON"),
        ('{"a":' * 100_000, "this is neither TOML nor JSON"),
        ("\udcff", "this is not UTF-8 text"),
    ],
)
def test_options_that_are_none(tmp_path: Path, text: str, refusal: str) -> None:
    path = tmp_path / "options.toml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(MeshferryError) as caught:
        main.read_options_file(path, parser())
    assert str(caught.value).startswith(f"{path}: {refusal}") and "mean 'options'" not in str(caught.value)
    with pytest.raises(MeshferryError, match="cannot be read"):
        main.read_options_file(tmp_path / "nowhere.toml", parser())
