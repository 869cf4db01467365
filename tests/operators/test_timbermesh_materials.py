"""Names of materials from the game's folder: checks, fixes, choices, and materials of the example models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from game_folders import WINDOWS, blueprint, make_game, make_mod

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def settings(clean_blender: Any) -> Iterator[Any]:
    """Return the preferences of the add-on as enabled in Blender."""
    addons = clean_blender.context.preferences.addons
    addon = addons.new()
    addon.module = "meshferry"
    yield addon.preferences
    addons.remove(addon)


@pytest.fixture
def game(settings: Any, tmp_path: Path) -> Path:
    """Return the folder of a game, which is set in the preferences."""
    folder = make_game(tmp_path / "game")
    settings.timberborn_folder = str(folder)
    return folder


@pytest.fixture
def box(clean_blender: Any) -> Any:
    """Return an active cube without materials, in an active collection of its own."""
    collection = clean_blender.data.collections.new("Lodge")
    clean_blender.context.scene.collection.children.link(collection)
    layer = clean_blender.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children["Lodge"]
    clean_blender.ops.mesh.primitive_cube_add()
    clean_blender.context.object.name = "#Box"
    return clean_blender.context.object


def give(box: Any, *names: str) -> list[Any]:
    """Give the box slots with new materials of these names, and a face for each."""
    import bpy

    for number, name in enumerate(names):
        box.data.materials.append(bpy.data.materials.new(name))
        box.data.polygons[number].material_index = number
    return [slot.material for slot in box.material_slots]


def found() -> list[Any]:
    import bpy

    assert bpy.ops.export_scene.timbermesh_check() == {"FINISHED"}
    return [one for one in bpy.context.window_manager.meshferry_check.findings if "aterial" in one.message]


def test_unknown_materials_are_renamed_or_replaced(game: Path, box: Any, clean_blender: Any) -> None:
    bpy = clean_blender
    wood, metal, other = give(box, "BaseWood_Bown.Folktails", "BaseMetal.Folktail", "Zq")
    kept = bpy.data.materials.new("BaseMetal.Folktails")
    assert [(one.item, one.fix) for one in found()] == [
        ("Material 'BaseWood_Bown.Folktails'", "rename_material"),
        ("Material 'BaseMetal.Folktail'", "rename_material"),
        ("Material 'Zq'", ""),
    ]
    bpy.ops.ed.undo_push(message="Before")
    assert bpy.ops.object.meshferry_finding_fix(index=-1) == {"FINISHED"}
    assert [slot.material for slot in box.material_slots] == [wood, kept, other]
    assert (wood.name, metal.users) == ("BaseWood_Brown.Folktails", 0)
    assert [one.item for one in found()] == ["Material 'Zq'"]


def test_linked_materials_are_named_and_stay(game: Path, box: Any, clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    library = str(tmp_path / "library.blend")
    bpy.data.libraries.write(library, {bpy.data.materials.new("BaseMetal.Folktail")})
    bpy.data.materials.remove(bpy.data.materials["BaseMetal.Folktail"])
    with bpy.data.libraries.load(library, link=True) as (there, here):
        here.materials = there.materials
    box.data.materials.append(here.materials[0])
    (one,) = found()
    assert (one.item, one.fix) == ("Material 'BaseMetal.Folktail'", "")


def test_a_mod_around_the_exported_file_counts(
    game: Path, box: Any, clean_blender: Any, tmp_path: Path, capfd: Any
) -> None:
    bpy = clean_blender
    give(box, "Glass.Mine")
    assert [one.item for one in found()] == ["Material 'Glass.Mine'"]
    path = make_mod(tmp_path / "mod", Mine=blueprint("Mine", ["Glass.Mine"])) / "Lodge.timbermesh"
    for folder, is_known in ((tmp_path, False), (path.parent, True)):
        capfd.readouterr()
        place = str(folder / "Lodge.timbermesh")
        assert bpy.ops.export_scene.timbermesh(filepath=place, collection="Lodge") == {"FINISHED"}
        assert ("unknown material" not in capfd.readouterr().out, not found()) == (is_known, is_known)


def test_the_preferences_name_a_wrong_folder(settings: Any, clean_blender: Any, tmp_path: Path) -> None:
    from meshferry.operators import preferences

    def labels() -> list[str]:
        layout = MagicMock()
        layout.column.return_value = layout.split.return_value = layout
        owner = SimpleNamespace(layout=layout)
        preferences.MeshferryPreferences.draw(owner, clean_blender.context)
        assert "timberborn_folder" in [call.args[1] for call in layout.prop.call_args_list]
        return [call.kwargs["text"] for call in layout.label.call_args_list if call.kwargs.get("icon") == "ERROR"]

    assert labels() == []
    settings.timberborn_folder = str(tmp_path)
    (text,) = labels()
    assert "is not a folder of Timberborn" in text
    settings.timberborn_folder = str(make_game(tmp_path))
    assert labels() == []
    (tmp_path / WINDOWS / "Blueprints.zip").write_bytes(b"PK")
    (text,) = labels()
    assert "The zip file is damaged" in text
