"""Registering and unregistering leaves Blender as it was."""

import pytest

pytestmark = pytest.mark.needs_bpy


def _traces(bpy):
    menus = ("TOPBAR_MT_file_import", "TOPBAR_MT_file_export", "OUTLINER_MT_collection")
    owners = ("Object", "Collection", "Action", "Material", "Mesh", "WindowManager")
    return {
        "types": {name for name in dir(bpy.types) if "meshferry" in name.lower() or "timbermesh" in name.lower()},
        "entries": {
            name: sum(draw.__module__.startswith("meshferry") for draw in getattr(bpy.types, name).draw._draw_funcs)
            for name in menus
        },
        "properties": {
            owner: [name for name in dir(getattr(bpy.types, owner)) if name.startswith("meshferry")] for owner in owners
        },
    }


def test_twice_leaves_nothing(clean_blender, registered_addon):
    bpy = clean_blender
    registered = _traces(bpy)
    assert {"IMPORT_SCENE_OT_timbermesh", "EXPORT_SCENE_OT_timbermesh", "IO_FH_timbermesh"} <= registered["types"]
    assert set(registered["entries"].values()) == {1}
    try:
        for _ in range(2):
            registered_addon.unregister()
            left = _traces(bpy)
            assert not left["types"]
            assert not any(left["entries"].values())
            assert not any(left["properties"].values())
            registered_addon.register()
            assert _traces(bpy) == registered
    finally:
        if not hasattr(bpy.types, "IMPORT_SCENE_OT_timbermesh"):
            registered_addon.register()


def test_file_handler_names_the_operators_and_extensions(clean_blender):
    from meshferry.io_formats.formats import TIMBERMESH

    handler = clean_blender.types.IO_FH_timbermesh
    assert handler.bl_file_extensions == ";".join(TIMBERMESH.extensions)
    for idname in (handler.bl_import_operator, handler.bl_export_operator):
        module, name = idname.split(".")
        assert getattr(getattr(clean_blender.ops, module), name).get_rna_type()


@pytest.mark.parametrize(
    ("operator", "label"),
    [("import_scene.timbermesh", "Import Timbermesh"), ("export_scene.timbermesh", "Export Timbermesh")],
)
def test_search_finds_operators_by_their_format(clean_blender, operator, label):
    module, name = operator.split(".")
    assert getattr(getattr(clean_blender.ops, module), name).get_rna_type().name == label


@pytest.mark.parametrize("group", ["Object", "Collection", "Action", "Material", "Mesh"])
def test_every_kept_property_says_what_it_is(clean_blender, group):
    pointer = getattr(clean_blender.types, group).bl_rna.properties["meshferry"]
    for identifier, kept in pointer.fixed_type.properties.items():
        if identifier not in {"rna_type", "bl_rna"} and not (group != "Mesh" and identifier == "name"):
            assert kept.name, identifier
            assert kept.description, identifier
