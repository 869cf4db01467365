"""Names and places that no artist means to give, and files that are not there."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CON", "CON_"),
        ("nul.txt", "nul_.txt"),
        ("lpt1 .x", "lpt1_ .x"),
        ("com¹", "com¹_"),
        ("falcon", "falcon"),
        ("console", "console"),
        ("я" * 300, "я" * 100),
        ("..", "_"),
    ],
)
def test_names_that_some_system_refuses(clean_blender, name, expected):
    from meshferry.io_formats.api import file_names
    from meshferry.io_formats.core.scene import Scene
    from meshferry.io_formats.disk.file_names import file_name
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
    from meshferry.operators.files import export_dialog

    assert file_name(name) == expected
    if name.strip(" ."):
        assert export_dialog.suggested_file_name(name, UNIGINE_MESH) == f"{expected}.mesh"
    twice = file_names([Scene(name), Scene(name)])
    assert len({each.casefold() for each in twice}) == 2


def _triangles(bpy, *names):
    for name in names:
        mesh = bpy.data.meshes.new(name)
        mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
        obj = bpy.data.objects.new(name, mesh)
        bpy.context.scene.collection.objects.link(obj)
        obj.select_set(True)
        bpy.context.view_layer.objects.active = obj


def test_a_path_that_the_system_refuses_is_one_sentence(clean_blender, tmp_path):
    bpy = clean_blender
    _triangles(bpy, "a")
    with pytest.raises(
        RuntimeError, match=r"cannot be written: (File name too long|.*; Windows allows 255 characters in a name)"
    ):
        bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / ("q" * 300 + ".mesh")))
    assert not list(tmp_path.iterdir())


def test_a_long_name_from_a_file_does_not_stop_the_export_of_several(clean_blender, tmp_path):
    bpy = clean_blender
    _triangles(bpy, "a", "b")
    kept = bpy.data.objects["a"].meshferry
    kept.source_name, kept.given_name = "й" * 400, "a"
    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "any.mesh"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.mesh", "й" * 100 + ".mesh"]
