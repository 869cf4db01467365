"""Import of files as an artist or a script asks for it."""

import itertools
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import timber_mod
import unigine_scene_bytes
from meshfuzz import collada_seeds

pytestmark = pytest.mark.needs_bpy
ROOT = Path(__file__).parents[2]


def _listed(*paths):
    return [{"name": path.name} for path in paths]


def test_a_file_is_a_collection_of_its_own(clean_blender, make_file):
    bpy = clean_blender
    path = make_file("Mill.Model.timbermesh", "#Blade", "Base")
    assert bpy.ops.import_scene.timbermesh(filepath=str(path)) == {"FINISHED"}
    collection = bpy.data.collections["Mill.Model"]
    assert {obj.name for obj in collection.objects} == {"Root", "#Blade", "Base"}
    assert collection.meshferry.source_path == str(path)


def test_what_came_is_selected_and_nothing_else(clean_blender, make_file):
    bpy = clean_blender
    old = bpy.data.objects.new("Old", None)
    bpy.context.scene.collection.objects.link(old)
    bpy.context.view_layer.update()
    old.select_set(True)
    one, two = make_file("one.timbermesh", "A"), make_file("two.timbermesh", "B")
    bpy.ops.import_scene.timbermesh(directory=str(one.parent), files=_listed(one, two))
    selected = {obj.name for obj in bpy.context.selected_objects}
    assert {"A", "B"} <= selected
    assert "Old" not in selected
    assert bpy.context.view_layer.objects.active.users_collection[0].name == "one"


def test_the_first_collection_that_came_is_the_active_one(clean_blender, make_file):
    bpy = clean_blender
    one, two = make_file("one.timbermesh"), make_file("two.timbermesh")
    bpy.ops.import_scene.timbermesh(directory=str(one.parent), files=_listed(one, two))
    assert bpy.context.collection.name == "one"


def test_a_bad_file_does_not_stop_the_rest(clean_blender, make_file, broken_file):
    bpy = clean_blender
    one, two = make_file("one.timbermesh"), make_file("two.timbermesh")
    result = bpy.ops.import_scene.timbermesh(directory=str(one.parent), files=_listed(one, broken_file, two))
    assert result == {"FINISHED"}
    assert {"one", "two"} == {collection.name for collection in bpy.data.collections}


def dropped_files(folder):
    """Make files of all kinds, sets and files that place models; return their importers, and the partners of sets."""
    for name in ("tunic.llmesh", "windmill.timbermesh", "vase.data", "lamp_nod.anim"):
        (folder / name).write_bytes((ROOT / "examples" / name).read_bytes())
    for name in ("box.dae", "box_LOD2.dae", "box_PHYS.dae"):
        (folder / name).write_bytes(collada_seeds.document())
    (folder / "boxes.node").write_bytes(unigine_scene_bytes.ALL["node"])
    house = timber_mod.make(folder / "mod")
    importers = dict.fromkeys([folder / "tunic.llmesh", folder / "box.dae"], "second_life")
    importers |= dict.fromkeys([folder / "windmill.timbermesh", house], "timbermesh")
    # Last, onto the armature of an import with other choices.
    importers |= {folder / "vase.data": "mesh_serializer"}
    importers |= dict.fromkeys([folder / "boxes.node", folder / "lamp_nod.anim"], "unigine")
    return importers, [folder / "box_LOD2.dae", folder / "box_PHYS.dae"]


def test_a_file_is_opened_once_for_its_head_and_once_for_its_content(clean_blender, tmp_path):
    """Also if other importers share its extension, and if it is read with the choices of an armature."""
    from meshferry.operators.files.import_base import ImportFiles

    bpy = clean_blender
    importers, partners = dropped_files(tmp_path)
    bpy.ops.import_scene.unigine(filepath=str(ROOT / "examples" / "lamp.mesh"), use_turn=True)
    opened = Counter()
    sys.addaudithook(lambda event, values: event == "open" and opened.update([str(values[0])]))
    for path, importer in importers.items():
        if path.suffix == ".anim":
            bpy.context.view_layer.objects.active = bpy.data.objects["lamp Armature"]
        owner = MagicMock(files=[], file_formats="", option_table=())
        owner.paths.return_value = [str(path)]
        owner.known_formats = lambda owner=owner: ImportFiles.known_formats(owner)
        ImportFiles.invoke(owner, bpy.context, None)
        assert ImportFiles.known_formats(owner) != [None]
        assert opened[str(path)] == 1
        getattr(bpy.ops.import_scene, importer)(filepath=str(path), file_formats=owner.file_formats)
        assert opened[str(path)] == 2
    assert [opened[str(path)] for path in partners] == [1, 1]


def test_only_bad_files_are_an_error_with_the_cause(clean_blender, broken_file):
    with pytest.raises(RuntimeError, match=r"broken\.timbermesh: .*cut off"):
        clean_blender.ops.import_scene.timbermesh(filepath=str(broken_file))
    assert not clean_blender.data.objects
    assert not clean_blender.data.collections


def test_a_file_that_is_not_there_is_an_error(clean_blender, tmp_path):
    with pytest.raises(RuntimeError, match=r"gone\.timbermesh"):
        clean_blender.ops.import_scene.timbermesh(filepath=str(tmp_path / "gone.timbermesh"))


@pytest.mark.parametrize("arguments", [{}, {"directory": "/"}, {"filepath": "/"}])
def test_no_file_is_an_error(clean_blender, arguments):
    with pytest.raises(RuntimeError, match="No file was chosen"):
        clean_blender.ops.import_scene.timbermesh(**arguments)


def test_the_content_decides_not_the_extension(clean_blender, make_file):
    path = make_file("mill.timbermesh")
    renamed = path.rename(path.with_suffix(".dat"))
    assert clean_blender.ops.import_scene.timbermesh(filepath=str(renamed)) == {"FINISHED"}


def test_a_foreign_file_is_named_for_what_it_is(clean_blender, tmp_path):
    path = tmp_path / "really.timbermesh"
    path.write_bytes(b"glTF" + bytes(100))
    with pytest.raises(RuntimeError, match="glTF"):
        clean_blender.ops.import_scene.timbermesh(filepath=str(path))


def test_the_same_file_twice_in_the_list_comes_once(clean_blender, make_file):
    path = make_file("mill.timbermesh")
    clean_blender.ops.import_scene.timbermesh(directory=str(path.parent), files=_listed(path, path))
    assert len(clean_blender.data.collections) == 1


def test_paths_relative_to_the_blend_file(clean_blender, make_file, tmp_path):
    make_file("mill.timbermesh")
    clean_blender.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    assert clean_blender.ops.import_scene.timbermesh(filepath="//mill.timbermesh") == {"FINISHED"}


def test_options_reach_the_importer(clean_blender, make_file, monkeypatch):
    from meshferry.blender_data.importing import importer

    seen = []

    def import_steps(request):
        seen.append((request.options, request.source_path))
        return imported(request)

    imported = importer.import_steps
    monkeypatch.setattr(importer, "import_steps", import_steps)
    path = make_file("mill.timbermesh")
    clean_blender.ops.import_scene.timbermesh(filepath=str(path), normals="NONE", frame_start=7)
    ((options, source_path),) = seen
    assert options.normals == "NONE"
    assert options.frame_start == 7
    assert source_path == str(path)


def test_a_script_gets_the_defaults_of_the_window(clean_blender):
    from meshferry.blender_data.importing.import_options import NORMALS, WELD

    properties = clean_blender.ops.import_scene.timbermesh.get_rna_type().properties
    assert properties["normals"].default == NORMALS.default != NORMALS.headless_default
    assert properties["use_weld"].default == WELD.default != WELD.headless_default


def test_importing_while_editing_leaves_edit_mode(clean_blender, make_file):
    bpy = clean_blender
    bpy.ops.import_scene.timbermesh(filepath=str(make_file("one.timbermesh", "A")))
    bpy.context.view_layer.objects.active = bpy.data.objects["A"]
    bpy.ops.object.mode_set(mode="EDIT")
    assert bpy.ops.import_scene.timbermesh(filepath=str(make_file("two.timbermesh", "B"))) == {"FINISHED"}
    assert bpy.context.mode == "OBJECT"


def test_files_of_all_formats_are_imported_together(clean_blender, tmp_path):
    """An animation finds the mesh beside it, and files that no format recognises are named."""
    bpy = clean_blender
    importers, _partners = dropped_files(tmp_path)
    (tmp_path / "lamp.mesh").write_bytes((ROOT / "examples" / "lamp.mesh").read_bytes())
    (tmp_path / "walk.bvh").write_bytes(b"HIERARCHY\nROOT Hips\n{\n}\nMOTION\n")
    (tmp_path / "table.data").write_bytes(b"a table\n")
    chosen = [tmp_path / name for name in ("walk.bvh", "lamp_nod.anim", "table.data", "vase.data", "lamp.mesh")]
    chosen += [path for path in importers if path.parent == tmp_path and path not in chosen]
    assert bpy.ops.import_scene.meshferry(directory=str(tmp_path), files=_listed(*chosen)) == {"FINISHED"}
    assert {"lamp", "vase", "tunic", "boxes", "box", "windmill"} <= set(bpy.data.collections.keys())
    assert bpy.data.objects["lamp Armature"].animation_data.action.name.startswith("lamp_nod")
    kept = bpy.context.window_manager.meshferry_report
    lines = f"{kept.summary}\n{kept.lines}"
    assert f"{len(chosen) - 2} of {len(chosen)} files" in lines
    assert "walk.bvh: " in lines and "Motion Capture" in lines and "table.data: " in lines


@pytest.mark.parametrize(
    ("names", "shown", "hidden"),
    [
        (["vase.data"], {"axes"}, {"armature", "bone_direction", "region"}),
        (["tunic.llmesh"], {"armature", "skeleton_rest"}, {"bone_direction", "axes", "region"}),
        (["lamp.mesh", "tunic.llmesh"], {"bone_direction", "skeleton_rest", "use_turn"}, {"axes"}),
        (["lamp.mesh", "make_lamp.py"], {"bone_direction", "use_turn"}, {"axes", "region"}),
    ],
)
def test_a_drop_has_the_options_of_the_formats_that_take_part(clean_blender, names, shown, hidden):
    from meshferry.io_formats.api import format_of
    from meshferry.operators.files.import_base import ImportDropped

    operator = clean_blender.types.IMPORT_SCENE_OT_meshferry
    known = [format_of(str(ROOT / "examples" / name)) for name in names]
    table = ImportDropped.options_for(operator, known)
    found = {option.name for option in table}
    assert shown <= found and not hidden & found
    assert found <= {option.name for option in operator.option_table}
    dropped = SimpleNamespace(importers=operator.importers, known_formats=lambda: known)
    families = {"vase.data": "MESH_SERIALIZER", "tunic.llmesh": "SECOND_LIFE", "lamp.mesh": "UNIGINE"}
    prefix = ImportDropped.panel_prefix.fget(dropped)
    assert prefix == "_".join(families[name] for name in names if name in families)
    sections = [option.section for option in table]
    assert len(list(itertools.groupby(sections))) == len(set(sections))
