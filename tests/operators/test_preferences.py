"""The add-on's preferences hide what is not in use from the window, and nothing else."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytestmark = pytest.mark.needs_bpy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def settings(clean_blender):
    """Return the preferences of the add-on as enabled in Blender; afterwards it is registered by hand again."""
    addons = clean_blender.context.preferences.addons
    addon = addons.new()
    addon.module = "meshferry"
    yield addon.preferences
    addons.remove(addon)


def _entries(bpy):
    """Return the operators that the add-on's functions draw in Blender's menus."""
    layout = MagicMock()
    collection, active = bpy.context.scene.collection, bpy.context.object
    context = SimpleNamespace(selected_ids=[], id=None, collection=collection, object=active, scene=bpy.context.scene)
    menus = ("TOPBAR_MT_file_import", "TOPBAR_MT_file_export", "OUTLINER_MT_collection")
    for menu in (*menus, "VIEW3D_MT_armature_add", "VIEW3D_MT_object"):
        for draw in getattr(bpy.types, menu).draw._draw_funcs:
            if draw.__module__.startswith("meshferry"):
                draw(SimpleNamespace(layout=layout), context)
    return [call.args[0].lower() for call in (*layout.operator.call_args_list, *layout.menu.call_args_list)]


def _panels(bpy):
    names = [name for name in dir(bpy.types) if "_PT_sidebar" in name]
    own = ("TIMBERMESH", "UNIGINE", "SECOND_LIFE", "MESH_SERIALIZER")
    return {name.partition("_PT_")[0] for name in names if name.startswith(own) and _shown(bpy, name)}


def _shown(bpy, name):
    return getattr(bpy.types, name).poll(bpy.context)


@pytest.mark.parametrize(
    ("family", "example"),
    [
        ("timbermesh", "windmill.timbermesh"),
        ("unigine", "lamp.mesh"),
        ("second_life", "tunic.llmesh"),
        ("mesh_serializer", "vase.data"),
    ],
)
def test_a_format_that_is_not_in_use_is_hidden_but_works(settings, clean_blender, family, example):
    bpy = clean_blender
    mesh = bpy.data.meshes.new("own")
    own = bpy.data.objects.new("own", mesh)
    bpy.context.scene.collection.objects.link(own)
    bpy.context.view_layer.objects.active = own
    entries, panels = _entries(bpy), _panels(bpy)
    assert any(family in entry for entry in entries)
    assert family.upper() in panels
    setattr(settings, f"use_{family}", False)
    assert _entries(bpy) == [entry for entry in entries if family not in entry]
    assert _panels(bpy) == panels - {family.upper()}
    assert getattr(bpy.ops.import_scene, family)(filepath=str(EXAMPLES / example)) == {"FINISHED"}
    assert _panels(bpy) == {family.upper()}, "an import keeps its panels"
    assert _shown(bpy, "MESHFERRY_PT_file")
    assert hasattr(bpy.types, "IO_FH_meshferry")


def test_objects_that_were_exported_to_a_hidden_format_keep_its_panels(settings, clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.mesh.primitive_cube_add()
    settings.use_unigine = False
    assert "UNIGINE" not in _panels(bpy)
    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "a.mesh"))
    assert "UNIGINE" in _panels(bpy)
    assert not any("unigine" in entry for entry in _entries(bpy)), "menu entries are hidden all the same"


def test_without_preferences_every_format_is_in_use(clean_blender):
    from meshferry.operators import preferences

    assert preferences.preferences() is None
    assert all(preferences.is_used(family) for family in preferences.FAMILIES)


@pytest.mark.parametrize("has_pages", [False, True])
def test_the_preferences_open_guides_as_pages_or_in_a_checkout_their_sources(
    settings, clean_blender, tmp_path, monkeypatch, has_pages
):
    from meshferry.operators import preferences

    names = [*(family.guide for family in preferences.FAMILIES), *preferences.OTHER_GUIDES.values()]
    for name in names:
        assert (preferences.GUIDES / name).read_text("utf-8").startswith("# ")
        (tmp_path / name).touch()
        if has_pages:
            (tmp_path / name).with_suffix(".html").touch()
    monkeypatch.setattr(preferences, "GUIDES", tmp_path)
    layout = MagicMock()
    layout.column.return_value = layout.split.return_value = layout
    layout.operator.side_effect = lambda *_args, **_kwargs: drawn.append(SimpleNamespace()) or drawn[-1]
    drawn = []
    preferences.MeshferryPreferences.draw(SimpleNamespace(layout=layout), clean_blender.context)
    assert {call.args for call in layout.operator.call_args_list} == {("wm.url_open" if has_pages else "wm.path_open",)}
    if has_pages:
        assert [button.url for button in drawn] == [(tmp_path / name).with_suffix(".html").as_uri() for name in names]
    else:
        assert [button.filepath for button in drawn] == [str(tmp_path / name) for name in names]


def test_the_page_shows_each_folder_once(settings, clean_blender):
    from meshferry.operators import preferences

    layout = MagicMock()
    layout.column.return_value = layout.split.return_value = layout
    preferences.MeshferryPreferences.draw(SimpleNamespace(layout=layout), clean_blender.context)
    shown = [call.args[1] for call in layout.prop.call_args_list]
    assert sorted(shown) == sorted(set(shown))
    assert {"unigine_project", "timberborn_folder", "use_frame_imported"} <= set(shown)
    assert preferences.frames_imported()
    settings.use_frame_imported = False
    assert not preferences.frames_imported()
