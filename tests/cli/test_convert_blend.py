"""``meshferry convert`` to and from .blend files."""

import errno
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from outputs import names_in, opened

pytestmark = pytest.mark.needs_bpy

SUMMARY = "2 objects, 24 triangles, 2 materials, 1 animation ('Default', 60 frames at 24 fps)"


def save_scene(path, collections, loose=()):
    """Write a .blend file of cubes: names by collection, and some in no collection."""
    import bpy

    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    scene = bpy.context.scene.collection

    def add_cube(owner, name):
        mesh = bpy.data.meshes.new(name)
        corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
        faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        mesh.from_pydata(corners, [], faces)
        material = bpy.data.materials.get("Paper.Folktails") or bpy.data.materials.new("Paper.Folktails")
        mesh.materials.append(material)
        owner.objects.link(bpy.data.objects.new(name, mesh))

    for collection, names in collections.items():
        owner = bpy.data.collections.new(collection)
        scene.children.link(owner)
        for name in names:
            add_cube(owner, name)
    for name in loose:
        add_cube(scene, name)
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)
    return path


def triangles(path):
    from meshferry.io_formats import api

    return api.read_scene(path).triangle_count


def test_there(meshferry, windmill, tmp_path):
    target = tmp_path / "windmill.blend"
    done = meshferry("convert", windmill, target)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{windmill} -> {target}: {SUMMARY}\n"
    bpy = opened(target)
    (collection,) = bpy.context.scene.collection.children
    assert collection.name == "windmill"
    assert collection.meshferry.from_file
    assert {one.name for one in bpy.data.objects} == {"windmill", "#Sails"}
    assert {one.name for one in bpy.data.materials} == {"BaseWood_Brown.Folktails", "Paper.Folktails"}
    assert not bpy.data.cameras
    assert names_in(tmp_path) == ["windmill.blend", "windmill.timbermesh"]


def test_keys_outside_the_imported_frames_are_exported_and_no_loss(meshferry, windmill, tmp_path):
    blend, target = tmp_path / "windmill.blend", tmp_path / "back.timbermesh"
    assert meshferry("convert", windmill, blend).status == 0
    bpy = opened(blend)
    moved = next(one for one in bpy.data.objects if one.animation_data and one.animation_data.action)
    end = moved.animation_data.action.frame_range[1]
    moved.keyframe_insert("location", frame=end + 10)
    bpy.ops.wm.save_mainfile()
    done = meshferry("convert", "--strict", blend, target)
    assert (done.status, f"to {end + 10:g}, since keys are outside the imported frames" in done.err) == (0, True)


def test_there_and_back(meshferry, windmill, tmp_path):
    assert meshferry("convert", windmill, tmp_path / "windmill.blend").status == 0
    target = tmp_path / "back.timbermesh"
    done = meshferry("convert", tmp_path / "windmill.blend", target)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{tmp_path / 'windmill.blend'} (collection 'windmill') -> {target}: {SUMMARY}\n"
    facts = [meshferry("inspect", "--json", path).entries[0] for path in (windmill, target)]
    for entry in facts:
        del entry["file"], entry["vertices"]
    assert facts[0] == facts[1]


def test_several_become_collections_of_one_file_and_files_again(meshferry, write_windmill, tmp_path):
    sources = [write_windmill("one.timbermesh"), write_windmill("two.timbermesh")]
    done = meshferry("convert", *sources, tmp_path / "both.blend")
    assert done.status == 0
    assert done.out.splitlines()[-1] == "Converted 2 of 2 files"
    bpy = opened(tmp_path / "both.blend")
    assert {one.name for one in bpy.context.scene.collection.children} == {"one", "two"}

    back = meshferry("convert", tmp_path / "both.blend", "--to", "timbermesh", "-o", tmp_path / "out", "--json")
    assert back.status == 0
    assert [entry["collection"] for entry in back.entries] == ["one", "two"]
    assert names_in(tmp_path / "out") == ["both.one.timbermesh", "both.two.timbermesh"]
    assert triangles(tmp_path / "out" / "both.two.timbermesh") == 24

    whole = meshferry("convert", tmp_path / "both.blend", tmp_path / "whole.timbermesh")
    assert whole.status == 0
    assert triangles(tmp_path / "whole.timbermesh") == 48

    one = meshferry("convert", tmp_path / "both.blend", tmp_path / "only.timbermesh", "--collection", "two")
    assert one.status == 0
    assert triangles(tmp_path / "only.timbermesh") == 24


def test_files_of_similar_names_do_not_collide_on_their_way_through_one_file(meshferry, write_windmill, tmp_path):
    sources = [write_windmill(f"{name}.timbermesh") for name in ("a.b", "a_b", "A.B c")]
    assert meshferry("convert", *sources, tmp_path / "all.blend").status == 0
    done = meshferry("convert", tmp_path / "all.blend", "--to", "timbermesh", "-o", tmp_path / "out")
    assert (done.status, done.err) == (0, "")
    names = ["all.A_B c.timbermesh", "all.a_b.timbermesh", "all.a_b_2.timbermesh"]
    assert names_in(tmp_path / "out") == names


def test_a_collection_that_is_not_there(meshferry, tmp_path):
    save_scene(tmp_path / "scene.blend", {"Barn": ["Wall"]})
    done = meshferry("convert", tmp_path / "scene.blend", tmp_path / "out.timbermesh", "--collection", "Bran")
    assert done.status == 1
    assert "There is no collection 'Bran' in the scene; there are 'Barn'" in done.err


def test_several_collections_for_one_file_are_refused(meshferry, tmp_path):
    save_scene(tmp_path / "scene.blend", {"A": ["#a"], "B": ["#b"]})
    chosen = ["--collection", "A", "--collection", "B"]
    done = meshferry("convert", tmp_path / "scene.blend", tmp_path / "out.timbermesh", *chosen)
    assert done.status == 1
    assert "2 collections cannot become one file" in done.err


@pytest.mark.parametrize(
    ("collections", "loose", "expected"),
    [
        ({"Barn": ["Wall", "Roof"], "Empty": []}, [], {"scene.timbermesh": 24}),
        ({"Barn": ["Wall"], "Shed": ["Door"]}, [], {"scene.Barn.timbermesh": 12, "scene.Shed.timbermesh": 12}),
        ({"Barn": ["Wall"]}, ["Tree"], {"scene.timbermesh": 24}),
        ({}, ["Tree"], {"scene.timbermesh": 12}),
        ({"a/b": ["Wall"], "c:d": ["Door"]}, [], {"scene.a_b.timbermesh": 12, "scene.c_d.timbermesh": 12}),
    ],
)
def test_what_of_a_scene_that_came_from_no_file(meshferry, tmp_path, collections, loose, expected):
    save_scene(tmp_path / "scene.blend", collections, loose)
    done = meshferry("convert", tmp_path / "scene.blend", "--to", "timbermesh", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert {name: triangles(tmp_path / "out" / name) for name in names_in(tmp_path / "out")} == expected


def test_collections_of_two_files_do_not_overwrite_each_other(meshferry, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("first", "second"):
        save_scene(tmp_path / "in" / f"{name}.blend", {"Barn": ["Wall"], name: ["Door"]})
    done = meshferry("convert", tmp_path / "in", "--to", "timbermesh", "-o", tmp_path / "out")
    assert (done.status, done.err) == (0, "")
    names = [f"{source}.{part}.timbermesh" for source in ("first", "second") for part in ("Barn", source)]
    assert names_in(tmp_path / "out") == names


def test_a_bad_file_among_several_is_left_out(meshferry, windmill, broken, tmp_path):
    done = meshferry("convert", broken, windmill, tmp_path / "both.blend")
    assert done.status == 1
    assert done.err.startswith(f"{broken}: ")
    bpy = opened(tmp_path / "both.blend")
    assert [one.name for one in bpy.context.scene.collection.children] == ["windmill"]


def test_strict_leaves_the_old_file(meshferry, windmill, broken, tmp_path):
    old = tmp_path / "both.blend"
    old.write_bytes(b"old")
    done = meshferry("convert", "--strict", broken, windmill, old, "--json")
    assert done.status == 1
    assert all("error" in entry for entry in done.entries)
    assert old.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([broken.name, windmill.name, old.name])


def test_a_failure_leaves_the_old_file(meshferry, windmill, tmp_path, monkeypatch):
    from meshferry.blender_data.importing import importer

    def fail(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr(importer, "import_scene", fail)
    old = tmp_path / "windmill.blend"
    old.write_bytes(b"old")
    done = meshferry("convert", windmill, old)
    assert done.status == 1
    assert "Unexpected error: ZeroDivisionError (Meshferry" in done.err
    assert old.read_bytes() == b"old"


def test_what_the_system_refuses_is_one_line(meshferry, windmill, tmp_path, monkeypatch):
    from meshferry.cli.conversions.blend_files import BlendSession

    done = meshferry("convert", windmill, tmp_path / ("x" * 250 + ".blend"))
    assert done.status == 1 and "x.blend: the file cannot be written: " in done.err and "Unexpected" not in done.err
    whole = BlendSession._run

    def without_saving(self, operator, **arguments):
        if "compress" not in arguments:
            whole(self, operator, **arguments)

    monkeypatch.setattr(BlendSession, "_run", without_saving)
    done = meshferry("convert", windmill, tmp_path / "mill.blend")
    assert done.status == 1 and "mill.blend: the file cannot be written: Blender gave up" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of processes")
@pytest.mark.parametrize("free", [10**5, 10**12])
@pytest.mark.parametrize("options", [(), ("--compressed-blend",)])
def test_a_truncated_file_does_not_replace_the_old_one(meshferry, windmill, tmp_path, monkeypatch, options, free):
    """With a limit of the size of files, Blender behaves as on a full disk."""
    import resource

    old = tmp_path / "windmill.blend"
    old.write_bytes(b"old")
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        done = meshferry("convert", windmill, old, *options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = os.strerror(errno.ENOSPC) if free < 10**6 else "Blender gave up, as it does on a full disk"
    assert done.status == 1
    reasons = f"({said}|{os.strerror(errno.EFBIG)})"  # Blender reports some truncated files itself
    assert re.search(rf"windmill\.blend: the file cannot be written: {reasons}", done.err)
    assert old.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([windmill.name, old.name])


def test_a_read_only_disk_is_no_defect(meshferry, windmill, tmp_path, monkeypatch):
    from meshferry.cli.conversions import blend_files
    from meshferry.io_formats.disk import locks

    def fail(*_arguments):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(locks, "hold", fail)
    monkeypatch.setattr(blend_files, "remove_file", fail)
    done = meshferry("convert", windmill, tmp_path / "mill.blend")
    reason = os.strerror(errno.EROFS)
    assert done.err == f"{windmill}: {tmp_path / 'mill.blend'}: the file cannot be written: {reason}\n"


@pytest.mark.parametrize("content", [None, b"nonsense"])
def test_blender_prints_nothing_about_a_bad_material_library(meshferry, windmill, tmp_path, content):
    library = tmp_path / "wood.blend"
    if content is not None:
        library.write_bytes(content)
    done = meshferry("convert", windmill, tmp_path / "mill.blend", "--material-library", library, "--json")
    assert [entry["error"] for entry in done.entries if "'wood.blend' cannot be opened" in entry["error"]]


def test_a_folder_that_is_not_there(meshferry, windmill, tmp_path):
    done = meshferry("convert", windmill, tmp_path / "absent" / "out.blend")
    assert done.status == 2
    assert "the folder does not exist" in done.err
    assert not (tmp_path / "absent").exists()


def test_a_file_that_is_no_blend(meshferry, tmp_path):
    (tmp_path / "fake.blend").write_bytes(b"nothing of the kind")
    done = meshferry("convert", tmp_path / "fake.blend", tmp_path / "absent.blend", "--to", "meshy", "-o", tmp_path)
    assert done.status == 1
    fake, absent = done.err.splitlines()
    assert fake.startswith(f"{tmp_path / 'fake.blend'}: Blender cannot open it")
    assert absent.startswith(f"{tmp_path / 'absent.blend'}: The file cannot be read: No such file")


def test_options_reach_import_and_export(meshferry, windmill, tmp_path):
    assert meshferry("convert", windmill, tmp_path / "still.blend", "--no-node-animation").status == 0
    assert not opened(tmp_path / "still.blend").data.actions
    assert meshferry("convert", windmill, tmp_path / "moving.blend", "--compressed-blend").status == 0
    assert (tmp_path / "moving.blend").read_bytes()[:7] != b"BLENDER"
    done = meshferry("convert", "--json", tmp_path / "moving.blend", tmp_path / "still.timbermesh", "--clips", "none")
    assert done.entries[0]["facts"]["clips"] == []


def test_a_material_library_is_not_overwritten(meshferry, windmill, tmp_path):
    library = tmp_path / "wood.blend"
    library.write_bytes(b"old")
    done = meshferry("convert", windmill, library, "--material-library", library)
    assert done.status == 2
    assert library.read_bytes() == b"old"


def test_a_blend_file_keeps_its_rights(meshferry, windmill, tmp_path):
    target = tmp_path / "windmill.blend"
    target.write_bytes(b"old")
    target.chmod(0o640)
    before = target.stat().st_mode
    assert meshferry("convert", windmill, target).status == 0
    assert target.stat().st_mode == before


@pytest.mark.skipif(sys.platform == "win32", reason="no open file can be removed there")
@pytest.mark.parametrize("name", ["a.meshy", "a.blend", "a.dae"])
def test_a_batch_in_the_same_folder_leaves_files_under_way_alone(meshferry, windmill, tmp_path, monkeypatch, name):
    from meshferry.cli.batch import output_folder

    replace, swept = os.replace, []

    def replace_after_sweep(old, new):
        output_folder.remove_leftovers(tmp_path)
        swept.append(not os.path.exists(old))
        replace(old, new)

    monkeypatch.setattr(os, "replace", replace_after_sweep)
    monkeypatch.setattr(Path, "replace", replace_after_sweep)
    assert meshferry("convert", windmill, tmp_path / name).status == 0
    assert (tmp_path / name).exists() and swept and not any(swept)
    assert not list(tmp_path.glob(".*"))
