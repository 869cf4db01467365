"""Export of collections, selections and scenes, one by one and in batches."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_bpy


def _cube(bpy, collection, name="Cube"):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    obj = bpy.data.objects.new(name, mesh)
    collection.objects.link(obj)
    return obj


def _collection(bpy, name, *, filled=True):
    collection = bpy.data.collections.new(name)
    bpy.context.scene.collection.children.link(collection)
    if filled:
        _cube(bpy, collection, f"#{name}")
    return collection


def _activate(bpy, collection):
    layer = bpy.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children[collection.name]


def _nodes(path):
    from meshferry.io_formats.api import read_scene

    return {node.name for node in read_scene(path).nodes}


@pytest.mark.parametrize(
    ("name", "suffix", "expected"),
    [
        ("Lodge.Folktails", ".Model", "Lodge.Folktails.Model.timbermesh"),
        ("Lodge.Folktails.Model", ".Model", "Lodge.Folktails.Model.timbermesh"),
        ("Lodge.Folktails", "", "Lodge.Folktails.timbermesh"),
        ("Lodge.timbermesh", ".Model", "Lodge.Model.timbermesh"),
        ("A/B:C", ".Model", "A_B_C.Model.timbermesh"),
        (" ", ".Model", "Untitled.Model.timbermesh"),
        ("Mühle 水車", ".Model", "Mühle 水車.Model.timbermesh"),
    ],
)
def test_names_of_files(clean_blender, name, suffix, expected):
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
    from meshferry.operators.files.export_dialog import suggested_file_name

    assert suggested_file_name(name, TIMBERMESH, suffix) == expected


def test_the_number_of_a_second_import_stays_out_of_the_name(clean_blender):
    from meshferry.operators.files.export_dialog import plain_name

    again = clean_blender.data.collections.new("Mill.Model.001")
    assert plain_name(again) == "Mill.Model.001"
    again.meshferry.source_path = "/models/Mill.Model.timbermesh"
    assert plain_name(again) == "Mill.Model"
    again.name = "Mill.002"
    assert plain_name(again) == "Mill.002"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/m/Lodge.Folktails.Model", "/m/Lodge.Folktails.Model.timbermesh"),
        ("/m/Lodge.TIMBERMESH", "/m/Lodge.timbermesh"),
        ("/m/Lodge.meshy", "/m/Lodge.timbermesh"),
        ("/m/Lodge.timbermesh", "/m/Lodge.timbermesh"),
        ("/m/.timbermesh", "/m/.timbermesh.timbermesh"),
    ],
)
def test_extensions_are_added_and_nothing_is_cut(clean_blender, path, expected):
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
    from meshferry.operators.files.export_dialog import with_extension

    assert with_extension(path, TIMBERMESH) == expected


def test_a_named_collection_goes_before_the_active_one_and_the_selection(clean_blender, tmp_path):
    bpy = clean_blender
    lodge, mill = _collection(bpy, "Lodge"), _collection(bpy, "Mill")
    _activate(bpy, mill)
    path = tmp_path / "out.timbermesh"
    assert bpy.ops.export_scene.timbermesh(filepath=str(path), collection=lodge.name, scope="SCENE") == {"FINISHED"}
    assert "#Lodge" in _nodes(path)
    assert "#Mill" not in _nodes(path)


def test_the_active_collection_is_the_default(clean_blender, tmp_path):
    bpy = clean_blender
    _collection(bpy, "Lodge")
    _activate(bpy, _collection(bpy, "Mill"))
    path = tmp_path / "out.timbermesh"
    bpy.ops.export_scene.timbermesh(filepath=str(path))
    assert "#Mill" in _nodes(path)
    assert "#Lodge" not in _nodes(path)


def test_selection_and_scene(clean_blender, tmp_path):
    bpy = clean_blender
    _collection(bpy, "Lodge")
    _collection(bpy, "Mill")
    bpy.context.view_layer.update()
    bpy.data.objects["#Mill"].select_set(True)
    path = tmp_path / "out.timbermesh"
    bpy.ops.export_scene.timbermesh(filepath=str(path), scope="SELECTION")
    assert "#Mill" in _nodes(path)
    assert "#Lodge" not in _nodes(path)
    bpy.ops.export_scene.timbermesh(filepath=str(path), scope="SCENE")
    assert {"#Mill", "#Lodge"} <= _nodes(path)


def test_an_unknown_collection_is_an_error_and_writes_nothing(clean_blender, tmp_path):
    path = tmp_path / "out.timbermesh"
    with pytest.raises(RuntimeError, match="There is no collection 'Gone'"):
        clean_blender.ops.export_scene.timbermesh(filepath=str(path), collection="Gone")
    assert not path.exists()


def test_a_failed_export_leaves_the_old_file(clean_blender, tmp_path):
    bpy = clean_blender
    empty = _collection(bpy, "Empty", filled=False)
    path = tmp_path / "out.timbermesh"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match=r"out\.timbermesh: "):
        bpy.ops.export_scene.timbermesh(filepath=str(path), collection=empty.name)
    assert path.read_bytes() == b"old"


def test_a_folder_that_is_not_there_is_an_error(clean_blender, tmp_path):
    _collection(clean_blender, "Lodge")
    with pytest.raises(RuntimeError, match=r"out\.timbermesh: "):
        clean_blender.ops.export_scene.timbermesh(filepath=str(tmp_path / "no" / "out.timbermesh"), collection="Lodge")


def test_a_name_without_extension_never_replaces_a_file(clean_blender, tmp_path):
    _collection(clean_blender, "Lodge")
    path = tmp_path / "Lodge.Model.timbermesh"
    clean_blender.ops.export_scene.timbermesh(filepath=str(path.with_suffix("")), collection="Lodge")
    assert path.exists()
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="exists already"):
        clean_blender.ops.export_scene.timbermesh(filepath=str(path.with_suffix("")), collection="Lodge")
    assert path.read_bytes() == before


@pytest.mark.parametrize("filepath", ["", "/"])
def test_no_file_name_is_an_error(clean_blender, filepath):
    with pytest.raises(RuntimeError, match="No file name"):
        clean_blender.ops.export_scene.timbermesh(filepath=filepath)


def test_a_collection_named_once_is_forgotten(clean_blender, tmp_path):
    bpy = clean_blender
    _collection(bpy, "Lodge")
    _activate(bpy, _collection(bpy, "Mill"))
    path = tmp_path / "out.timbermesh"
    bpy.ops.export_scene.timbermesh(filepath=str(path), collection="Lodge")
    bpy.ops.export_scene.timbermesh(filepath=str(path))
    assert "#Mill" in _nodes(path)


def test_the_exporter_of_a_collection(clean_blender, tmp_path):
    bpy = clean_blender
    lodge = _collection(bpy, "Lodge")
    _activate(bpy, lodge)
    bpy.ops.collection.exporter_add(name="IO_FH_timbermesh")
    path = tmp_path / "Lodge.timbermesh"
    exporter = lodge.exporters[0]
    if hasattr(exporter, "filepath"):
        exporter.filepath = str(path)
    else:
        exporter.export_properties.filepath = str(path)
    bpy.ops.collection.export_all()
    assert "#Lodge" in _nodes(path)
    bpy.ops.collection.export_all()


# -- batches ------------------------------------------------------------------------------------------------------


def test_a_batch_writes_a_file_for_each_collection(clean_blender, tmp_path):
    bpy = clean_blender
    names = [_collection(bpy, name).name for name in ("Lodge.Folktails", "Mill.Model")]
    result = bpy.ops.export_scene.timbermesh_batch(directory=str(tmp_path), collections="\n".join(names))
    assert result == {"FINISHED"}
    assert {path.name for path in tmp_path.iterdir()} == {"Lodge.Folktails.Model.timbermesh", "Mill.Model.timbermesh"}


def test_a_batch_without_model_in_the_names(clean_blender, tmp_path):
    _collection(clean_blender, "Lodge")
    clean_blender.ops.export_scene.timbermesh_batch(
        directory=str(tmp_path), collections="Lodge", append_model_to_name=False
    )
    assert [path.name for path in tmp_path.iterdir()] == ["Lodge.timbermesh"]


def test_a_collection_that_fails_does_not_stop_the_batch(clean_blender, tmp_path):
    bpy = clean_blender
    _collection(bpy, "Lodge")
    _collection(bpy, "Empty", filled=False)
    _collection(bpy, "Mill")
    names = "Lodge\nEmpty\nGone\nMill"
    assert bpy.ops.export_scene.timbermesh_batch(directory=str(tmp_path), collections=names) == {"FINISHED"}
    assert {path.name for path in tmp_path.iterdir()} == {"Lodge.Model.timbermesh", "Mill.Model.timbermesh"}


def test_a_batch_in_which_all_fail_is_an_error(clean_blender, tmp_path):
    with pytest.raises(RuntimeError, match=r"Exported 0 of 2 files; Gone: .*and 1 more"):
        clean_blender.ops.export_scene.timbermesh_batch(directory=str(tmp_path), collections="Gone\nAway")
    assert not list(tmp_path.iterdir())


def test_a_batch_keeps_files_when_asked(clean_blender, tmp_path):
    _collection(clean_blender, "Lodge")
    _collection(clean_blender, "Mill")
    old = tmp_path / "Lodge.Model.timbermesh"
    old.write_bytes(b"old")
    clean_blender.ops.export_scene.timbermesh_batch(
        directory=str(tmp_path), collections="Lodge\nMill", use_replace=False
    )
    assert old.read_bytes() == b"old"
    assert (tmp_path / "Mill.Model.timbermesh").exists()
    clean_blender.ops.export_scene.timbermesh_batch(directory=str(tmp_path), collections="Lodge", use_replace=True)
    assert old.read_bytes() != b"old"


@pytest.mark.parametrize("other", ["A/B", "Ä_b", "A\N{COMBINING DIAERESIS}_B", "a_ß"])
def test_two_collections_never_write_the_same_file(clean_blender, tmp_path, other):
    """Nor files that some system takes for the same."""
    first = {"A/B": "A:B", "a_ß": "a_SS"}.get(other, "Ä:B")
    for name in (first, other):
        _collection(clean_blender, name)
    clean_blender.ops.export_scene.timbermesh_batch(directory=str(tmp_path), collections=f"{first}\n{other}")
    (path,) = tmp_path.iterdir()
    assert f"#{first}" in _nodes(path)


@pytest.mark.parametrize("directory", ["", "/no/such/folder"])
def test_a_batch_needs_a_folder(clean_blender, directory):
    with pytest.raises(RuntimeError, match="folder"):
        clean_blender.ops.export_scene.timbermesh_batch(directory=directory, collections="Lodge")


def test_a_batch_without_names_takes_the_active_collection(clean_blender, tmp_path):
    _activate(clean_blender, _collection(clean_blender, "Lodge"))
    clean_blender.ops.export_scene.timbermesh_batch(directory=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["Lodge.Model.timbermesh"]


def test_the_summary_counts_what_was_replaced(clean_blender, tmp_path, capfd):
    _collection(clean_blender, "Lodge")
    for _ in range(2):
        clean_blender.ops.export_scene.timbermesh_batch(directory=str(tmp_path), collections="Lodge")
    assert "1 file replaced" in capfd.readouterr().out


def test_relative_paths_are_taken_from_the_blend_file(clean_blender, tmp_path):
    _collection(clean_blender, "Lodge")
    clean_blender.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    clean_blender.ops.export_scene.timbermesh(filepath="//out.timbermesh", collection="Lodge")
    clean_blender.ops.export_scene.timbermesh_batch(directory="//", collections="Lodge")
    assert {"out.timbermesh", "Lodge.Model.timbermesh"} <= {path.name for path in Path(tmp_path).iterdir()}


def test_a_note_stands_in_place_of_a_file_name_that_is_not_used(clean_blender, tmp_path):
    from meshferry.operators.format_operators import EXPORTERS

    bpy = clean_blender
    made = []
    for name in ("Left", "Right"):
        mesh = bpy.data.meshes.new(name)
        mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
        made.append(bpy.data.objects.new(name, mesh))
        bpy.context.scene.collection.objects.link(made[-1])
        made[-1].select_set(True)
    bpy.context.view_layer.objects.active = made[0]

    class Dialog(EXPORTERS["mesh_serializer"].__mro__[1]):
        """The operator without Blender's properties."""

        format = EXPORTERS["mesh_serializer"].format
        collection = unused_name = shown_extension = ""
        suggested_name, filepath, file_extension = "Left.data", str(tmp_path / "Left.data"), ".data"
        scope, mesh_files, use_hidden, use_instances, name_suffix = "AUTO", "EACH", False, True, ""

    dialog, note = Dialog(), tmp_path / "(2 files, named as listed).data"
    assert dialog.check(bpy.context)
    assert dialog.filepath == str(note)
    dialog.filepath = str(tmp_path / "typed.data")
    assert dialog.check(bpy.context)
    assert dialog.filepath == str(note)
    assert not dialog.check(bpy.context)
    dialog.file_extension = ".bytes"
    dialog.check(bpy.context)
    assert dialog.filepath == str(note.with_suffix(".bytes"))
    dialog.mesh_files = "JOINED"
    dialog.check(bpy.context)
    assert dialog.filepath == str(tmp_path / "Left.bytes")
    dialog.filepath = str(tmp_path / "typed.bytes")
    for mesh_files, expected in (("EACH", note.with_suffix(".bytes")), ("JOINED", tmp_path / "typed.bytes")):
        dialog.mesh_files = mesh_files
        dialog.check(bpy.context)
        assert dialog.filepath == str(expected)
