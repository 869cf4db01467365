"""No code reads a sentence: marks around the templates of all messages change nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import timber_mod
from load_package import SAMPLES
from marked_messages import Templates, differences, of_commands, of_operators, unmarked_sentences
from meshfuzz import collada_seeds
from translation_template import ROOT

EXAMPLES = ("lamp.mesh", "lamp_nod.anim", "tunic.llmesh", "vase.data")
FOLDERS = sorted(path.name for path in SAMPLES.glob("*") if path.is_dir())
KEYS = json.loads((ROOT / "translations" / "template.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``convert`` run Blender's own importers in this process, since no marks are in others."""
    from meshferry.cli import convert_command

    monkeypatch.setattr(convert_command, "_is_isolated", lambda *_: False)


def made_files(folder: Path) -> Path:
    """Make a Collada file, a mod with a broken blueprint, and files that are cut off."""
    for name in EXAMPLES:
        data = (ROOT / "examples" / name).read_bytes()
        (folder / f"cut_{name}").write_bytes(data[: len(data) // 2])
    (folder / "rigged.dae").write_bytes(collada_seeds.files()["rigged"])
    timber_mod.make(folder / "mod")
    (folder / "mod" / "Modules" / "Module.blueprint.json").write_text("{")
    return folder


def compare_commands(path: Path, targets: list[str], folder: Path) -> None:
    """Run the commands with and without marks."""
    templates = Templates()
    plain = list(of_commands(path, targets, folder / "plain"))
    with templates.marked():
        marked = list(of_commands(path, targets, folder / "marked"))
    assert not differences(plain, marked)
    records = [json.loads(line) for _name, _status, text in marked for line in text.splitlines() if line[:1] == "{"]
    assert records and not unmarked_sentences(records)
    assert templates.used and not templates.composed


def compare_operators(bpy: Any, path: Path, importer: str, folder: Path) -> None:
    """Run the operators with and without marks; their templates must be keys of translations."""
    templates = Templates()
    plain = list(of_operators(bpy, path, importer, folder / "plain"))
    with templates.marked():
        marked = list(of_operators(bpy, path, importer, folder / "marked"))
    assert not differences(plain, marked)
    names = {name for label, found in plain if label == "names" for name in found}
    unknown = templates.used - KEYS.keys() - names
    assert not unknown, f"{path.name}: {unknown}"


def test_commands_do_not_read_sentences(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    compare_commands(made_files(tmp_path / "in"), ["unigine_scene"], tmp_path)


@pytest.mark.needs_bpy
@pytest.mark.parametrize(("importer", "name"), [("second_life", "rigged.dae"), ("unigine", "lamp.mesh")])
def test_operators_do_not_read_sentences(clean_blender: Any, tmp_path: Path, importer: str, name: str) -> None:
    (tmp_path / "in").mkdir()
    made = made_files(tmp_path / "in") / name
    compare_operators(clean_blender, made if made.exists() else ROOT / "examples" / name, importer, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "folder"), list(enumerate(FOLDERS)), ids=FOLDERS)
def test_commands_do_not_read_sentences_of_samples(tmp_path: Path, number: int, folder: str) -> None:
    """Each folder is converted to some of the formats; tests/cli/test_messages.py converts some files to all."""
    from meshferry.io_formats.registry import FORMATS

    targets = [known.name for known in FORMATS if known.is_written]
    compare_commands(SAMPLES / folder, targets[number % 4 :: 4], tmp_path)


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.needs_bpy
@pytest.mark.parametrize("folder", FOLDERS)
def test_operators_do_not_read_sentences_of_samples(clean_blender: Any, tmp_path: Path, folder: str) -> None:
    from meshferry.io_formats.api import format_of
    from meshferry.io_formats.registry import FAMILIES

    importers = {known.name: family.name for family in FAMILIES for known in family.formats}
    known = [(path, format_of(path)) for path in sorted((SAMPLES / folder).rglob("*"))]
    for number, (path, found) in enumerate([one for one in known if one[1] is not None][::5]):
        (tmp_path / str(number)).mkdir()
        compare_operators(clean_blender, path, importers[found.name], tmp_path / str(number))
