"""Which names a folder takes for one, and that a probe leaves nothing behind."""

from __future__ import annotations

import os
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from meshferry.io_formats.disk import file_names
from meshferry.io_formats.disk.file_names import CAUTIOUS, NameRules, PathTable

PAIRS = {"case": ("Ä", "ä"), "sharp s": ("straße", "strasse"), "composition": ("\u00e9", "e\u0301")}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    file_names.rules_of.cache_clear()
    yield
    file_names.rules_of.cache_clear()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_probe_tells_what_this_folder_does(tmp_path: Path, pair: str) -> None:
    """Two real files are the judge: those of names that are one are one file."""
    for name in PAIRS[pair]:
        (tmp_path / name).write_bytes(b"")
    count = len(os.listdir(tmp_path))
    rules = file_names.rules_of(str(tmp_path / "not" / "there"))
    assert len({rules.key(name) for name in PAIRS[pair]}) == count
    assert len(os.listdir(tmp_path)) == count


@pytest.mark.parametrize(
    ("fold", "rules", "same"),
    [
        (lambda name: name, NameRules(False, False, False), set()),
        # NTFS folds one character to one; APFS and ext4 with casefold compose too, and fold by the full rules.
        (
            lambda name: "".join(c.upper() if len(c.upper()) == 1 else c for c in name),
            NameRules(True, False, False),
            {"case"},
        ),
        (lambda name: unicodedata.normalize("NFD", name), NameRules(False, False, True), {"composition"}),
        (
            lambda name: unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold()),
            CAUTIOUS,
            set(PAIRS),
        ),
    ],
    ids=["exact", "case", "composition", "all"],
)
def test_other_systems(fold, rules: NameRules, same: set[str]) -> None:
    written = f".{file_names._PROBE}x-ß-\u00e9"
    assert file_names._rules_by(written, lambda name: fold(name) == fold(written)) == rules
    for pair, (one, other) in PAIRS.items():
        assert (rules.key(one) == rules.key(other)) == (pair in same)


def test_without_a_probe_names_may_be_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(**_values: object) -> None:
        raise PermissionError

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    assert file_names.rules_of(str(tmp_path)) == CAUTIOUS


def test_a_folder_is_probed_only_where_it_matters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probed: list[str] = []
    monkeypatch.setattr(file_names, "rules_of", lambda folder: probed.append(folder) or NameRules(False, False, False))
    table: PathTable[int] = PathTable()
    for number, name in enumerate(("straße", "b", "c")):
        table.add(tmp_path / name, number)
    assert [table.find(tmp_path / name) for name in ("straße", "b", "d")] == [0, 1, None] and not probed
    assert table.find(tmp_path / "strasse") is None and probed == [str(tmp_path)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="folders of Linux tell all of these names apart")
def test_conversions_keep_names_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.cli.main import main

    lamp = (Path(__file__).resolve().parents[3] / "examples" / "lamp.mesh").read_bytes()
    monkeypatch.chdir(tmp_path)
    names = [name for pair in PAIRS.values() for name in pair]
    Path("in").mkdir()
    for name in names:
        Path("in", f"{name}.mesh").write_bytes(lamp)
    assert main(["convert", "in", "--to", "timbermesh", "-o", "a/new/out"]) == 0
    assert main(["batch", "in", "--to", "timbermesh", "-o", "b/new/out", "--jobs", "1"]) == 0
    for output in ("a/new/out", "b/new/out"):
        assert {path.stem for path in Path(output).glob("*.timbermesh")} == set(names)
    file_names.rules_of.cache_clear()
    monkeypatch.setattr(file_names, "_rules_by", lambda name, finds: CAUTIOUS)
    for command in ("convert", "batch"):
        assert main([command, "in", "--to", "timbermesh", "-o", f"{command}-out"]) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="folders of Linux tell these names apart")
def test_a_search_finds_names_that_only_other_folders_take_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meshferry.cli import inputs

    for name in ("straße.mesh", "strasse.mesh", "Straße.mesh"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(inputs.sys, "platform", "darwin")
    assert len(inputs.expand([str(tmp_path), str(tmp_path / "straße.mesh")], (".mesh",)).files) == 3
