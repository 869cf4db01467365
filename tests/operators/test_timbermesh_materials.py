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

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


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
        ("Material 'BaseWood_Bown.Folktails'", "unknown-material"),
        ("Material 'BaseMetal.Folktail'", "unknown-material"),
        ("Material 'Zq'", ""),
    ]
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
    assert one.message.endswith(" (linked from another file)")


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


def choose(name: str, by: str = "material_name") -> None:
    import bpy

    assert bpy.ops.object.timbermesh_material_choose(**{by: name}) == {"FINISHED"}


def test_a_slot_gets_a_name_of_the_game(game: Path, box: Any, clean_blender: Any) -> None:
    bpy = clean_blender
    choose("Dirt")
    (slot,) = box.material_slots
    dirt = slot.material
    assert dirt.name == "Dirt"
    choose("BaseMetal.Folktails")
    assert slot.material is not dirt and slot.material.name == "BaseMetal.Folktails"
    assert dirt.name == "Dirt"
    own = bpy.data.materials.new("My wood")
    slot.material = own
    choose("Windows.IronTeeth", by="found")
    assert (slot.material, own.name) == (own, "Windows.IronTeeth")
    slot.material = other = bpy.data.materials.new("Other")
    choose("Dirt")
    assert (slot.material, other.name) == (dirt, "Other")


def test_a_menu_that_gives_a_name_opens_no_search(clean_blender: Any) -> None:
    from meshferry.operators.families.timbermesh.material_names import OBJECT_OT_timbermesh_material_choose as Choose

    manager = MagicMock()
    for name, result in (("Dirt", "executed"), ("", {"RUNNING_MODAL"})):
        owner = SimpleNamespace(material_name=name, execute=lambda _context: "executed")
        assert Choose.invoke(owner, SimpleNamespace(window_manager=manager), None) == result
        assert manager.invoke_search_popup.called is not bool(name)


def test_names_are_listed_by_collection_and_include_the_mod(game: Path, box: Any, tmp_path: Path) -> None:
    from meshferry.operators.families.timbermesh import material_names

    def listed(collection: str) -> list[str]:
        layout = MagicMock()
        layout.row.return_value = layout
        context = SimpleNamespace(object=box, timbermesh_collection=collection)
        menu = material_names.TIMBERMESH_MT_collection if collection else material_names.TIMBERMESH_MT_materials
        menu.draw(SimpleNamespace(layout=layout), context)
        return [call.kwargs["text"] for call in (layout.operator if collection else layout.menu).call_args_list]

    assert listed("") == ["Common", "Folktails", "IronTeeth"]
    assert listed("Folktails") == ["BaseWood_Brown.Folktails", "BaseMetal.Folktails"]
    assert [name for name, _label, _text in material_names._choices(None, None)][:2] == ["Dirt", "Water"]
    models = make_mod(tmp_path / "mod", Folktails=blueprint("Folktails", ["Ice"], "Materials#append"))
    box.users_collection[0].meshferry.file.path = str(models / "Lodge.timbermesh")
    box.users_collection[0].meshferry.file.owner = "Lodge"
    assert listed("Folktails")[-1] == "Ice"


def test_the_built_in_list_serves_without_the_game(box: Any) -> None:
    choose("BaseWood_Grey.IronTeeth", by="found")
    assert box.material_slots[0].material.name == "BaseWood_Grey.IronTeeth"


@pytest.fixture
def example(game: Path, clean_blender: Any) -> Path:
    """Write the example models: materials of the game with a texture, and one that is not of the game."""
    bpy = clean_blender
    made = []
    for name in ("BaseMetal.Folktails", "Dirt", "Material"):
        material = bpy.data.materials.new(name)
        material.use_nodes = True
        node = material.node_tree.nodes.new("ShaderNodeTexImage")
        node.image = bpy.data.images.new(f"{name}.png", 4, 4)
        node.image.pack()
        made.append(material)
    path = game / WINDOWS / "TimberbornExampleModels.blend"
    bpy.data.libraries.write(str(path), set(made))
    for material in made:
        bpy.data.materials.remove(material)
    bpy.data.batch_remove(bpy.data.images)
    return path


def test_materials_of_the_example_models_replace_plain_ones(example: Path, box: Any, clean_blender: Any) -> None:
    bpy = clean_blender
    give(box, "BaseMetal.Folktails", "Material", "Water")
    append = bpy.ops.object.timbermesh_materials_append
    assert append() == {"FINISHED"}
    assert [slot.material.name for slot in box.material_slots] == ["BaseMetal.Folktails", "Material", "Water"]
    assert sorted(bpy.data.materials.keys()) == ["BaseMetal.Folktails", "Dirt", "Material", "Water"]
    assert sorted(bpy.data.images.keys()) == ["BaseMetal.Folktails.png", "Dirt.png"]
    assert not bpy.data.libraries
    images = {node.image for node in box.material_slots[0].material.node_tree.nodes if node.type == "TEX_IMAGE"}
    assert images == {bpy.data.images["BaseMetal.Folktails.png"]}
    before = list(bpy.data.materials)
    assert append() == {"CANCELLED"}
    assert list(bpy.data.materials) == before


@pytest.mark.parametrize("content", [None, b"", b"BLENDER-v405" + bytes(40), "truncated", "other"])
def test_an_unusable_example_file_is_one_error(example: Path, clean_blender: Any, content: Any) -> None:
    bpy = clean_blender
    if content is None:
        example.unlink()
    elif content == "other":
        bpy.data.libraries.write(str(example), {bpy.data.meshes.new("Mesh")})
    else:
        example.write_bytes(example.read_bytes()[:3000] if content == "truncated" else content)
    before = len(bpy.data.materials), len(bpy.data.images), len(bpy.data.libraries)
    with pytest.raises(RuntimeError, match=r"TimberbornExampleModels\.blend"):
        bpy.ops.object.timbermesh_materials_append()
    assert (len(bpy.data.materials), len(bpy.data.images), len(bpy.data.libraries)) == before


@pytest.mark.parametrize("name", ["Paper.Folktails.001", "Material"])
def test_names_that_the_file_has_are_warnings_and_new_ones_errors(
    clean_blender: Any, tmp_path: Path, capfd: Any, name: str
) -> None:
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    bpy = clean_blender
    path = tmp_path / "windmill.timbermesh"
    document = TIMBERMESH.read((EXAMPLES / path.name).read_bytes())
    document.nodes[0].meshes[0].material = name
    path.write_bytes(TIMBERMESH.write(document))
    bpy.ops.import_scene.timbermesh(filepath=str(path))
    capfd.readouterr()
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert f"windmill.timbermesh: nothing changed, 1 warning: Material '{name}'" in capfd.readouterr().out
    bpy.context.view_layer.active_layer_collection = bpy.context.view_layer.layer_collection.children[0]
    assert bpy.ops.export_scene.timbermesh_check() == {"FINISHED"}
    findings = bpy.context.window_manager.meshferry_check.findings
    assert [(one.item, one.is_error) for one in findings] == [(f"Material '{name}'", False)]
    obj = next(obj for obj in bpy.data.objects if name in [slot.name for slot in obj.material_slots])
    obj.material_slots[name].material = bpy.data.materials[name].copy()
    with pytest.raises(RuntimeError, match=f"Material '{obj.active_material.name}'.*makes the game fail"):
        bpy.ops.export_scene.meshferry_again()


def test_names_from_files_of_other_formats_are_errors(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(EXAMPLES / "lamp.mesh"))
    material = next(obj.active_material for obj in bpy.data.objects if obj.active_material)
    material.name = "Metal.001"
    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "lamp.mesh"), scope="SCENE")
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.import_scene.unigine(filepath=str(tmp_path / "lamp.mesh"))
    with pytest.raises(RuntimeError, match=r"Material 'Metal\.001'"):
        bpy.ops.export_scene.timbermesh(filepath=str(tmp_path / "lamp.timbermesh"), scope="SCENE")
