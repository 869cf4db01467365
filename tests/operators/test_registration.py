"""Registering and unregistering leaves Blender as it was."""

import fnmatch
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytestmark = pytest.mark.needs_bpy


def _traces(bpy):
    menus = (
        "TOPBAR_MT_file_import",
        "TOPBAR_MT_file_export",
        "OUTLINER_MT_collection",
        "VIEW3D_MT_armature_add",
        "VIEW3D_MT_object",
    )
    owners = ("Object", "Collection", "Action", "Material", "Mesh", "Bone", "WindowManager")
    return {
        "types": {
            name
            for name in dir(bpy.types)
            if any(
                own in name.lower() for own in ("meshferry", "timbermesh", "unigine", "second_life", "mesh_serializer")
            )
        },
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
    assert {"IMPORT_SCENE_OT_unigine", "EXPORT_SCENE_OT_unigine_mesh", "IO_FH_unigine"} <= registered["types"]
    assert {"IMPORT_SCENE_OT_second_life", "EXPORT_SCENE_OT_second_life_upload"} <= registered["types"]
    assert {"IMPORT_SCENE_OT_mesh_serializer", "EXPORT_SCENE_OT_mesh_serializer"} <= registered["types"]
    # One of those for imports draws nothing: it looks for add-ons that offer formats.
    assert list(registered["entries"].values()) == [6, 5, 5, 1, 3]
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


@pytest.mark.parametrize(
    ("name", "extensions"),
    [
        ("IO_FH_timbermesh", ".timbermesh;.meshy"),
        ("IO_FH_unigine", ".mesh;.mesh_skinned"),
        ("IO_FH_unigine_scene", ".node"),
        ("IO_FH_second_life", ".llmesh"),
        ("IO_FH_second_life_bundle", ".slm"),
        ("IO_FH_second_life_upload", ".dae"),
        ("IO_FH_second_life_request", ".llsd"),
        ("IO_FH_mesh_serializer", ".data;.bin;.bytes;.3d"),
    ],
)
def test_collections_are_exported_by_the_file_handler_of_each_format(clean_blender, name, extensions):
    handler = getattr(clean_blender.types, name)
    assert handler.bl_file_extensions == extensions
    assert getattr(clean_blender.ops.export_scene, handler.bl_export_operator.split(".")[1]).get_rna_type()


def test_one_file_handler_imports_all_extensions(clean_blender):
    """With two, Blender would ask for one of them and ignore the files of the other."""
    from meshferry.io_formats.registry import FORMATS

    types = clean_blender.types
    handlers = [getattr(types, name) for name in dir(types) if name.startswith("IO_FH_")]
    own = [cls for cls in handlers if cls.__module__.startswith("meshferry")]
    (importing,) = [cls for cls in own if getattr(cls, "bl_import_operator", "")]
    assert (importing.bl_idname, importing.bl_import_operator) == ("IO_FH_meshferry", "import_scene.meshferry")
    endings = {"." + name.rpartition(".")[2] for known in FORMATS if known.is_read for name in known.extensions}
    assert set(importing.bl_file_extensions.split(";")) == endings
    assert len(importing.bl_file_extensions) < 512, "the limit of Blender"
    assert not any(getattr(cls, "poll_drop", None) for cls in own if cls is not importing)


@pytest.mark.parametrize(
    ("operator", "label"),
    [
        ("import_scene.timbermesh", "Import Timbermesh"),
        ("export_scene.timbermesh", "Export Timbermesh"),
        ("import_scene.unigine", "Import UNIGINE"),
        ("export_scene.unigine_mesh", "Export UNIGINE"),
        ("export_scene.unigine_anim", "Export .anim"),
        ("import_scene.second_life", "Import Second Life"),
        ("export_scene.second_life_upload", "Export SL Upload"),
        ("export_scene.second_life_mesh", "Export SL Mesh"),
        ("export_scene.second_life_bundle", "Export SL Bundle"),
        ("export_scene.second_life_request", "Export SL Request"),
        ("import_scene.mesh_serializer", "Import Unity Mesh"),
        ("export_scene.mesh_serializer", "Export Unity Mesh"),
        ("export_scene.mesh_serializer_check", "Check Unity MeshSerializer2"),
        ("object.second_life_avatar_add", "Add Second Life Avatar"),
    ],
)
def test_search_finds_operators_by_their_format(clean_blender, operator, label):
    module, name = operator.split(".")
    assert getattr(getattr(clean_blender.ops, module), name).get_rna_type().name == label


def test_labels_fit_the_button_of_the_file_dialog(clean_blender):
    """Longer labels end in "…" there at 1280 pixels, such as "Export UNIGINE Mesh"."""
    found = [
        getattr(module, name).get_rna_type()
        for module in (clean_blender.ops.import_scene, clean_blender.ops.export_scene)
        for name in dir(module)
        if name.startswith(("timbermesh", "unigine", "second_life", "mesh_serializer"))
    ]
    labels = [kind.name for kind in found if "filter_glob" in kind.properties]
    assert len(labels) >= 10
    assert not [label for label in labels if sum(0.5 if letter in " .fijlt" else 1 for letter in label) > 16]


def test_menus_name_every_kind_of_file(clean_blender):
    from meshferry.operators.format_operators import FAMILY_OPERATORS

    assert [built.importer.entry_text for built in FAMILY_OPERATORS.values()] == [
        "Timbermesh (.timbermesh, .blueprint.json)",
        "UNIGINE (.mesh, .anim, .skeleton, .node, .world)",
        "Second Life (.llmesh, .slm, .dae, .anim, .bvh, .xml, .oar, .iar)",
        "Unity MeshSerializer2 (.data)",
    ]


def test_a_family_with_many_exports_has_a_submenu(clean_blender):
    from meshferry.operators.format_operators import FAMILY_OPERATORS

    drawn = {}
    for name, built in FAMILY_OPERATORS.items():
        (entry,) = [entry for entry in built.entries if entry.menu == "TOPBAR_MT_file_export"]
        layout = MagicMock()
        entry.draw(SimpleNamespace(layout=layout), clean_blender.context)
        drawn[name] = [call.args[0] for call in (*layout.operator.call_args_list, *layout.menu.call_args_list)]
    assert {name: len(found) for name, found in drawn.items()} == {
        "timbermesh": 2,
        "unigine": 3,
        "second_life": 1,
        "mesh_serializer": 1,
    }
    layout = MagicMock()
    clean_blender.types.SECOND_LIFE_MT_export.draw(SimpleNamespace(layout=layout), clean_blender.context)
    assert drawn["second_life"] == ["SECOND_LIFE_MT_export"] and layout.operator.call_count == 6


def test_a_blueprint_is_exported_only_where_there_is_one(clean_blender):
    assert not clean_blender.ops.export_scene.timbermesh_blueprint.poll()
    with pytest.raises(RuntimeError, match="Choose an object of an imported blueprint"):
        clean_blender.ops.export_scene.timbermesh_blueprint(filepath="a.blueprint.json")


@pytest.mark.parametrize("group", ["Object", "Collection", "Action", "Material", "Mesh", "Bone"])
def test_every_kept_property_says_what_it_is(clean_blender, group):
    pointer = getattr(clean_blender.types, group).bl_rna.properties["meshferry"]
    for identifier, kept in pointer.fixed_type.properties.items():
        if identifier not in {"rna_type", "bl_rna"} and not (group != "Mesh" and identifier == "name"):
            assert kept.name, identifier
            assert kept.description, identifier


@pytest.mark.parametrize("name", ["import_scene.timbermesh", "export_scene.timbermesh_blueprint"])
def test_the_file_browser_lists_blueprints(clean_blender, name):
    """Blender compares 15 characters of each pattern: ``*.blueprint.json`` would match nothing."""
    module, _, operator = name.partition(".")
    kind = getattr(getattr(clean_blender.ops, module), operator).get_rna_type()
    assert _is_listed("House.Folktails.blueprint.json", kind.properties["filter_glob"].default)


def _is_listed(name, patterns):
    return any(fnmatch.fnmatch(name, pattern[:15]) for pattern in patterns.split(";"))


@pytest.mark.parametrize("name", ["a.node", "A.WORLD", "a.mesh.world", ""])
def test_the_file_browser_lists_the_file_that_is_replaced(clean_blender, name):
    """The changes of an imported .world go into it, although new files are .node files."""
    from meshferry.operators.files.export_dialog import ExportDialog
    from meshferry.operators.format_operators import EXPORTERS

    cls = EXPORTERS["unigine_scene"]
    operator = SimpleNamespace(filepath=f"/x/{name}" if name else "", usual_names=cls.usual_names)
    operator.filter_glob, operator.given = cls.usual_names, list
    operator.properties = SimpleNamespace(is_property_set=lambda _name: True)
    manager = SimpleNamespace(fileselect_add=lambda _operator: None)
    ExportDialog.invoke(operator, SimpleNamespace(window_manager=manager), None)
    assert not name or _is_listed(name, operator.filter_glob)
    assert operator.filter_glob.startswith("*.node") and operator.filter_glob.count(";") == ("world" in name.lower())
