"""The starting file of File > New: made by its script, opened by Blender as a new file, ready for an upload."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = {"Avatar", "Mannequin", "Tunic", "Tunic_LOD2", "Tunic_LOD1", "Tunic_LOD0", "Tunic_PHYS"}


@pytest.fixture
def starting_file(clean_blender: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import make_starting_file

    path = tmp_path / "start.blend"
    make_starting_file.main(path)
    for name in ("make_starting_file", "make_tunic"):
        monkeypatch.delitem(sys.modules, name)
    return path


def entries(menu: Any) -> list[Any]:
    """Return the buttons that the module draws."""
    drawn: list[Any] = []

    def operator(name: str, **_: Any) -> Any:
        drawn.append(SimpleNamespace(name=name))
        return drawn[-1]

    layout = SimpleNamespace(operator=operator, operator_context="EXEC_DEFAULT")
    menu.draw_new_entry(SimpleNamespace(layout=layout), None)
    # The operator asks to save only if it is invoked.
    assert not drawn or layout.operator_context == "INVOKE_DEFAULT"
    return drawn


def test_the_entry_opens_a_new_file_that_can_be_uploaded(
    clean_blender: Any, starting_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meshferry.operators.families.second_life import starting_file as menu

    bpy = clean_blender
    monkeypatch.setattr(menu, "FILE", tmp_path / "absent.blend")
    assert entries(menu) == []
    monkeypatch.setattr(menu, "FILE", starting_file)
    (entry,) = entries(menu)
    assert entry.name == "wm.second_life_avatar_new"
    assert bpy.ops.wm.second_life_avatar_new() == {"FINISHED"}
    assert bpy.data.filepath == "" and not bpy.data.is_saved
    assert {obj.name for obj in bpy.data.objects} == OBJECTS
    assert {obj.name for obj in bpy.context.view_layer.objects if obj.visible_get()} == {"Avatar", "Mannequin", "Tunic"}
    assert bpy.context.object.name == "Tunic"
    avatar = bpy.data.objects["Avatar"]
    assert avatar.meshferry.active_body == bpy.data.objects["Mannequin"].meshferry.body == "Mannequin"
    assert (avatar.show_in_front, avatar.data.display_type) == (True, "STICK")
    assert bpy.ops.export_scene.second_life_check() == {"FINISHED"}
    assert not len(bpy.context.window_manager.meshferry_check.findings)
    folder = tmp_path / "out"
    folder.mkdir()
    assert bpy.ops.export_scene.second_life_upload(filepath=str(folder / "Tunic.dae"), scope="SELECTION") == {
        "FINISHED"
    }
    names = {f"Tunic{suffix}.dae" for suffix in ("", "_LOD2", "_LOD1", "_LOD0", "_PHYS")}
    assert {path.name for path in folder.iterdir()} == names


def test_only_the_starting_file_is_shown(
    clean_blender: Any, starting_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meshferry.operators.families.second_life import starting_file as menu

    bpy = clean_blender
    shown: list[Any] = []
    monkeypatch.setattr(menu, "show_when_drawn", lambda: shown.append(None))
    loaded = bpy.app.handlers.load_post
    saved = tmp_path / "saved.blend"
    monkeypatch.setattr(menu, "FILE", starting_file)
    for path, expected in ((starting_file, 1), (None, 1)):
        loaded.append(menu.show_avatar)
        bpy.ops.wm.read_homefile(**({"filepath": str(path)} if path else {"use_empty": True}))
        assert len(shown) == expected and menu.show_avatar not in loaded
    bpy.ops.wm.second_life_avatar_new()
    bpy.ops.wm.save_as_mainfile(filepath=str(saved))
    loaded.append(menu.show_avatar)
    bpy.ops.wm.open_mainfile(filepath=str(saved))
    assert len(shown) == 1 and menu.show_avatar not in loaded


def test_the_file_names_no_machine_and_no_source(clean_blender: Any, starting_file: Path) -> None:
    bpy = clean_blender
    plain = starting_file.with_name("plain.blend")
    bpy.ops.wm.open_mainfile(filepath=str(starting_file))
    assert not any(
        collection.meshferry.from_file or collection.meshferry.source_path for collection in bpy.data.collections
    )
    bpy.ops.wm.read_homefile(filepath=str(starting_file))
    bpy.ops.wm.save_as_mainfile(filepath=str(plain), compress=False, copy=True)
    content = plain.read_bytes()
    for folder in (ROOT, starting_file.parent):
        assert str(folder).encode() not in content
