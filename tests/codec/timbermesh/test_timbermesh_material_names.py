"""Names of materials from the game's archive and from mods; damaged and hostile archives."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from game_folders import COLLECTIONS, MACOS, WINDOWS, blueprint, make_game, make_mod
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.messages import Message, Report
from meshferry.io_formats.timbermesh.game_files import find_archive, find_example_models
from meshferry.io_formats.timbermesh.game_names import FACTIONS, game_collections, material_names, mod_collections
from meshferry.io_formats.timbermesh.model import codec
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from models import mesh_node, model

ENTRY = "MaterialCollections/MaterialCollection.Folktails.blueprint.json"


def checked(names: list[str], game: Path | str = "", file: Path | None = None) -> list[Message]:
    meshes = [codec.Mesh(np.array([0, 1, 2], np.int32), name) for name in names]
    return TIMBERMESH.check(model(mesh_node(meshes=meshes)), {"game": str(game)}, file)


def test_names_are_the_last_parts_of_paths(tmp_path: Path) -> None:
    assert game_collections(make_game(tmp_path)) == {
        "Common": ("Dirt", "Water"),
        "Folktails": ("BaseWood_Brown.Folktails", "BaseMetal.Folktails"),
        "IronTeeth": ("BaseWood_Brown.IronTeeth", "Windows.IronTeeth"),
    }


def test_names_that_blender_cannot_show_are_ignored(tmp_path: Path) -> None:
    paths = ["a/Good.mat", "b\\Also.Good", "a/", " ", "bad\nline", "\ud800", "x" * 201, 7, None, ["nested"], "a/Good"]
    game = make_game(tmp_path, {"Odd": paths})  # type: ignore[dict-item]
    assert game_collections(game) == {"Odd": ("Good", "Also.Good")}


@pytest.mark.parametrize("below", [WINDOWS, MACOS])
@pytest.mark.parametrize("where", ["library", "above", "itself", "inside", "archive", "other"])
def test_any_folder_that_leads_to_the_archive(tmp_path: Path, below: str, where: str) -> None:
    game = make_game(tmp_path / "steamapps/common/Timberborn", below=below)
    archive = game / below / "Blueprints.zip"
    sibling = archive.parents[2] / "Managed" / "Deep"
    sibling.mkdir(parents=True)
    chosen = {
        "library": tmp_path,
        "above": game.parent,
        "itself": game,
        "inside": archive.parent,
        "archive": archive,
        "other": sibling,
    }
    assert find_archive(chosen[where]) == archive
    assert find_example_models(chosen[where]) is None
    archive.with_name("TimberbornExampleModels.blend").write_bytes(b"")
    assert find_example_models(chosen[where]) == archive.with_name("TimberbornExampleModels.blend")


@pytest.mark.parametrize("folder", ["", "missing", "~missing/x", "a\0b"])
def test_other_folders_are_one_error(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=r"is not a folder of Timberborn: it has no Blueprints\.zip"):
        game_collections(folder or tmp_path)


def test_a_changed_archive_is_read_again(tmp_path: Path) -> None:
    for seconds, name in enumerate(("Fire", "Wood", "Woods")):
        game = make_game(tmp_path, {"Folktails": [name]}, method=0)
        os.utime(game / WINDOWS / "Blueprints.zip", (seconds, seconds))
        assert game_collections(game) == {"Folktails": (name,)}


def archive_of(entries: dict[str, bytes], method: int = 8) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as target:
        for name, content in entries.items():
            target.writestr(name, content)
    return stream.getvalue()


def good() -> bytes:
    return archive_of({ENTRY: blueprint("Folktails", ["a/Wood"] * 50).encode()})


def encrypted() -> bytes:
    data = bytearray(good())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def with_wrong_size() -> bytes:
    """An entry of 2 MiB that states 100 bytes."""
    data = bytearray(archive_of({ENTRY: bytes(2 << 20)}))
    struct.pack_into("<I", data, 22, 100)
    struct.pack_into("<I", data, data.index(b"PK\1\2") + 24, 100)
    return bytes(data)


def with_flipped_content() -> bytes:
    data = bytearray(good())
    data[30 + len(ENTRY) + 6] ^= 255
    return bytes(data)


def with_many_entries() -> bytes:
    """A directory of 100,000 entries without content."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0) + b"name"
    count = 100_000
    size = count * len(entry)
    return entry * count + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count & 65535, count & 65535, size, 0, 0)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "The zip file is damaged"),
    "not a zip": (lambda: b"MZ" * 500, "The zip file is damaged"),
    "cut off": (lambda: good()[:-30], "The zip file is damaged"),
    "flipped": (with_flipped_content, "The zip file is damaged"),
    "encrypted": (encrypted, "The zip file is encrypted"),
    "large entry": (lambda: archive_of({ENTRY: b" " * (1 << 21)}), "more than 1,048,576 bytes"),
    "larger than stated": (with_wrong_size, "The zip file is damaged"),
    "many entries": (with_many_entries, "too many entries"),
    "unbounded method": (lambda: archive_of({ENTRY: b"{}"}, zipfile.ZIP_BZIP2), "unusual compression"),
    "no collections": (lambda: archive_of({"a.blueprint.json": b"{}"}), "no material collections"),
    "other JSON": (lambda: archive_of({ENTRY: b"[1]"}), "no material collections"),
    "not JSON": (lambda: archive_of({ENTRY: b"{"}), "not valid JSON"),
    "not text": (lambda: archive_of({ENTRY: b"\xff\xfe"}), "not valid JSON"),
    "deep": (lambda: archive_of({ENTRY: b"[" * 1_000_000}), "nested too deeply"),
    "long number": (lambda: archive_of({ENTRY: b"9" * 500_000}), "not valid JSON"),
}


@pytest.mark.parametrize(("make", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_is_one_message(tmp_path: Path, make: Callable[[], bytes], said: str) -> None:
    archive = make_game(tmp_path) / WINDOWS / "Blueprints.zip"
    archive.write_bytes(make())
    with pytest.raises(FormatError) as caught:
        game_collections(tmp_path)
    text = str(caught.value)
    assert text.startswith(f"{archive}: ") and said in text and "\n" not in text
    (warned,) = checked(["Dirt", "Own"], tmp_path)
    assert str(warned) == f"{text}; only the built-in list of material names was used"


def test_unknown_names_are_reported_with_the_nearest(tmp_path: Path) -> None:
    game = make_game(tmp_path)
    known = [path.rpartition("/")[2] for paths in COLLECTIONS.values() for path in paths]
    assert checked([*known, "", "  "], game) == []
    found = checked(["BaseWood_Bron.Folktails", "windows.ironteeth", "Zq"], game)
    assert [(one.item, one.is_fixable, one.names, one.new_name) for one in found] == [
        ("Material 'BaseWood_Bron.Folktails'", True, ("BaseWood_Bron.Folktails",), "BaseWood_Brown.Folktails"),
        ("Material 'windows.ironteeth'", True, ("windows.ironteeth",), "Windows.IronTeeth"),
        ("Material 'Zq'", False, (), ""),
    ]
    assert "unknown material; nearest: 'BaseWood_Brown.Folktails'" in found[0].message
    assert all("the game does not load a model with unknown materials" in one.message.lower() for one in found)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Sand.Folktails", None),
        ("PaperLanternRed", None),
        ("BaseMetal.Folktail", "BaseMetal.Folktails"),
        ("BaseMetal_IronTeth", "BaseMetal.IronTeeth"),
        ("BaseMetal", "BaseMetal.IronTeeth"),
        ("basewood brown.ironteeth", "BaseWood_Brown.IronTeeth"),
        ("BaseWood.Brwn.Folktails", "BaseWood_Brown.Folktails"),
        ("Paper_White.Folktails", None),
        ("PaintedMetals.Emberpelts", "PaintedMetal.Folktails"),
    ],
)
def test_the_part_before_the_faction_decides(tmp_path: Path, name: str, near: str | None) -> None:
    bases = ("BaseWood_Brown", "BaseMetal", "Paper", "PaintedMetal")
    game = make_game(tmp_path, {faction: [f"{base}.{faction}" for base in bases] for faction in FACTIONS})
    (found,) = checked([name], game)
    assert found.new_name == (near or "")


def test_stock_names_that_this_version_of_the_game_lacks_are_unknown(tmp_path: Path) -> None:
    assert checked(["Paper.IronTeeth"]) == []
    assert len(checked(["Paper.IronTeeth"], make_game(tmp_path))) == 1


def test_many_and_long_unknown_names_take_no_time(tmp_path: Path) -> None:
    game = make_game(tmp_path, {"Large": [f"Material_{number}" for number in range(300)]})
    found = checked(["M" * 100_000, *(f"Materiel_{number}" for number in range(300))], game)
    assert len(found) == 301
    assert not found[0].is_fixable
    assert sum(one.is_fixable for one in found) == 19


def test_a_mod_adds_names(tmp_path: Path) -> None:
    game = make_game(tmp_path / "game")
    models = make_mod(
        tmp_path / "mod",
        Folktails=blueprint("Folktails", ["materials/mine/copper"], "Materials#append"),
        Mine=blueprint("Mine", ["Glass.Mine"]),
        Patch='{"MaterialCollectionSpec": {"Materials#remove": ["Materials/Water"], "Materials#append": ["Ice"]}}',
    )
    file = models / "Lodge.timbermesh"
    names = ["Copper", "Glass.Mine", "Ice", "Water", "BaseMetal.Folktails"]
    assert checked(names, game, file) == []
    assert [one.item for one in checked(names, game, tmp_path / "Lodge.timbermesh")] == [
        f"Material '{name}'" for name in names[:3]
    ]
    known = material_names(str(game), file)
    assert known.collections["Folktails"][-1] == "copper"
    assert (known.collections["Mine"], known.collections["Patch"]) == (("Glass.Mine",), ("Ice",))


def test_without_the_game_a_mod_gives_suggestions(tmp_path: Path) -> None:
    models = make_mod(tmp_path / "mod", Mine=blueprint("Mine", ["Glass.Mine"]))
    (found,) = checked(["Glas.Mine", "Other.Mine", "Glass.Mine"], file=models / "Lodge.timbermesh")
    assert found.new_name == "Glass.Mine" and "perhaps" in found.message


def test_the_nearest_manifest_above_the_file_counts_up_to_a_limit(tmp_path: Path) -> None:
    outer = make_mod(tmp_path / "outer", Outer=blueprint("Outer", ["Outer"]))
    inner = make_mod(outer / "inner", Inner=blueprint("Inner", ["Inner"]))
    assert "Outer" not in material_names(file=inner / "x.timbermesh").collections
    assert "Inner" in material_names(file=inner / "x.timbermesh").collections
    assert "Outer" in material_names(file=outer / "x.timbermesh").collections
    assert "Outer" not in material_names(file=outer / "1/2/3/4/5/6/7/x.timbermesh").collections


def test_broken_files_of_a_mod_are_warnings(tmp_path: Path) -> None:
    models = make_mod(tmp_path / "mod", Broken="{", Large=" " * (1 << 21), Mine=blueprint("Mine", ["Glass"]))
    found = checked(["Glass"], make_game(tmp_path / "game"), models / "Lodge.timbermesh")
    assert len(found) == 2
    assert any("Broken.blueprint.json': The file is not valid JSON" in str(one) for one in found)
    assert any("Large.blueprint.json': The file has more than" in str(one) for one in found)


def test_a_large_mod_is_searched_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.io_formats.timbermesh import game_names

    monkeypatch.setattr(game_names, "_MOST_ENTRIES", 20)
    models = make_mod(tmp_path / "mod", Mine=blueprint("Mine", ["Glass"]))
    for number in range(30):
        (models / f"{number}.txt").touch()
    if os.name != "nt":
        os.symlink(tmp_path, models / "loop")
    report = Report()
    assert mod_collections(tmp_path / "mod", report) == {"Mine": ("Glass",)}
    assert len(report.messages) == 1 and "only the first 20 files" in report.messages[0]
