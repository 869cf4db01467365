"""Import and export of MeshSerializer2 files as an artist or a script asks for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest
from meshfuzz.mesh_serializer_seeds import pack

pytestmark = pytest.mark.needs_bpy


def _write(path: Path, **kind: Any) -> Path:
    path.write_bytes(pack(made.crate(**kind)))
    return path


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _triangles(path: Path) -> int:
    return len(made.unpack(path.read_bytes()).triangles)


def _select(bpy: Any, *objects: Any) -> None:
    bpy.context.view_layer.update()
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


def _grid(bpy: Any, name: str, cells: int) -> Any:
    """Add a flat grid of squares, without UVs and with one normal."""
    number = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)
    corners = np.stack((number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]), axis=-1).reshape(-1)
    mesh = bpy.data.meshes.new(name)
    mesh.vertices.add(number.size)
    mesh.loops.add(len(corners))
    mesh.polygons.add(len(corners) // 4)
    points = np.zeros((number.size, 3), np.float32)
    points[:, 0], points[:, 1] = number.reshape(-1) % (cells + 1), number.reshape(-1) // (cells + 1)
    mesh.vertices.foreach_set("co", points.reshape(-1))
    mesh.loops.foreach_set("vertex_index", corners.astype(np.int32))
    mesh.polygons.foreach_set("loop_start", np.arange(0, len(corners), 4, dtype=np.int32))
    mesh.update(calc_edges=True)
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


# -- import -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["crate.data", "crate.bin", "crate.BYTES", "crate.3d", "crate.mesh", "crate", "crate.x"]
)
def test_a_file_is_known_by_its_content(clean_blender: Any, tmp_path: Path, name: str) -> None:
    bpy = clean_blender
    assert bpy.ops.import_scene.mesh_serializer(filepath=str(_write(tmp_path / name))) == {"FINISHED"}
    (obj,) = bpy.data.objects
    assert tuple(obj.dimensions) == pytest.approx((2, 4, 1), abs=1e-5)
    assert min(corner[2] for corner in obj.bound_box) == pytest.approx(0, abs=1e-6)
    assert not obj.material_slots, "the format knows of no materials"
    assert len(obj.data.vertices) == 8, "welded"
    assert bpy.context.object == obj
    assert bpy.context.collection.meshferry.file_format == "mesh_serializer"


def test_the_importers_of_others_take_it_too(clean_blender: Any, tmp_path: Path, make_file: Any) -> None:
    bpy = clean_blender
    assert bpy.ops.import_scene.unigine(filepath=str(_write(tmp_path / "one.mesh"))) == {"FINISHED"}
    assert bpy.ops.import_scene.second_life(filepath=str(_write(tmp_path / "two.mesh"))) == {"FINISHED"}
    assert bpy.ops.import_scene.mesh_serializer(filepath=str(make_file("mill.timbermesh", "#Blade"))) == {"FINISHED"}
    assert {"one", "two", "#Blade"} <= set(bpy.data.objects.keys())


def test_axes_are_an_option(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    stored = made.crate()
    stored.bounds = stored.bounds + np.array([[10], [0], [0]], np.float32)
    path = tmp_path / "aside.data"
    path.write_bytes(pack(stored))
    for axes, side in (("UNITY", -10), ("SWAP_YZ", 10)):
        bpy.ops.import_scene.mesh_serializer(filepath=str(path), axes=axes)
        corners = np.array([corner[:] for corner in bpy.context.object.bound_box])
        assert corners.mean(axis=0) == pytest.approx((side, 0, 0.5), abs=1e-4)


def test_what_is_no_model_is_refused_in_one_line(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    foreign = tmp_path / "buffer.bin"
    foreign.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(RuntimeError, match=r"buffer\.bin: ") as refused:
        bpy.ops.import_scene.mesh_serializer(filepath=str(foreign))
    assert len(str(refused.value).strip().splitlines()) == 1
    assert not bpy.data.objects


def test_options_are_asked_for_where_there_is_a_model(clean_blender: Any, tmp_path: Path) -> None:
    """A dropped file that is not a model is rejected before the options; a ``.mesh`` gets the options of its family."""
    from bpy.types import IMPORT_SCENE_OT_meshferry as operator

    (tmp_path / "buffer.bin").write_bytes(bytes(range(256)) * 40)
    for name in ("crate.bin", "crate.mesh"):
        _write(tmp_path / name)

    def drop(*names: str, is_set: bool = True) -> tuple[str, set[str]]:
        paths = [str(tmp_path / name) for name in names]
        asked = SimpleNamespace(
            paths=lambda: paths,
            invoke_popup=lambda _context: "asked",
            execute=lambda _context: "executed",
            properties=SimpleNamespace(is_property_set=lambda _name: is_set and bool(names)),
            options_for=lambda known: operator.options_for(operator, known),
            shown_options=(),
            file_formats="",
            known_formats=lambda: operator.known_formats(asked),
        )
        answer: str = operator.invoke(asked, clean_blender.context, None)
        return answer, {option.name for option in asked.shown_options}

    own = {"axes", "normals", "use_weld"}
    assert drop()[0] == "asked", "File > Import gives no file"
    assert drop("buffer.bin")[0] == "executed"
    assert drop("buffer.bin", is_set=False)[0] == "asked", "the path of the last import, which Blender proposes"
    assert drop("crate.bin") == drop("buffer.bin", "crate.bin") == drop("crate.mesh") == ("asked", own)


def test_a_broken_file_does_not_stop_the_rest(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    broken = made.crate()
    broken.triangles = broken.triangles + np.uint16(5)
    (tmp_path / "broken.data").write_bytes(pack(broken))
    _write(tmp_path / "crate.data")
    files = [{"name": "broken.data"}, {"name": "crate.data"}]
    assert bpy.ops.import_scene.mesh_serializer(directory=str(tmp_path), files=files) == {"FINISHED"}
    assert [obj.name for obj in bpy.data.objects] == ["crate"]


def test_every_file_can_be_listed() -> None:
    from bpy.types import IMPORT_SCENE_OT_mesh_serializer as operator

    parameters = SimpleNamespace(filter_glob=operator.usual_names, use_filter=True)
    dialog = SimpleNamespace(usual_names=operator.usual_names, use_all_files=True)
    context = SimpleNamespace(space_data=SimpleNamespace(params=parameters))
    assert operator.usual_names == "*.data;*.bin;*.bytes;*.3d;*.mesh"
    assert operator.check(dialog, context)
    assert (parameters.filter_glob, parameters.use_filter) == ("", False)
    dialog.use_all_files = False
    assert operator.check(dialog, context)
    assert (parameters.filter_glob, parameters.use_filter) == (operator.usual_names, True)
    assert not operator.check(dialog, context)


# -- export -------------------------------------------------------------------------------------------------------


@pytest.fixture
def crates(clean_blender: Any, tmp_path: Path) -> list[Any]:
    """Return two imported crates, both selected."""
    bpy = clean_blender
    (tmp_path / "in").mkdir()
    names = ["red.data", "green.bin"]
    for name in names:
        _write(tmp_path / "in" / name)
    bpy.ops.import_scene.mesh_serializer(directory=str(tmp_path / "in"), files=[{"name": name} for name in names])
    return [bpy.data.objects["red"], bpy.data.objects["green"]]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("given", "chosen", "written"),
    [
        ("box", {}, "box.data"),
        ("box.data", {}, "box.data"),
        ("box.bytes", {}, "box.bytes"),
        ("box.3D", {}, "box.3d"),
        ("box", {"file_extension": ".bin"}, "box.bin"),
        ("box.mesh", {}, "box.data"),
        ("box.v2", {}, "box.v2.data"),
    ],
)
def test_the_name_says_the_extension(
    clean_blender: Any, crates: list[Any], out: Path, given: str, chosen: dict[str, str], written: str
) -> None:
    _select(clean_blender, crates[0])
    result = clean_blender.ops.export_scene.mesh_serializer(filepath=str(out / given), **chosen)
    assert result == {"FINISHED"}
    assert _files(out) == {written}
    assert _triangles(out / written) == 12


def test_path_and_chosen_extension_agree_in_the_dialog() -> None:
    from meshferry.operators.families.mesh_serializer import agreed

    assert agreed("/a/box.data", ".data", ".data") == ("/a/box.data", ".data")
    assert agreed("/a/box.data", ".bytes", ".data") == ("/a/box.bytes", ".bytes"), "chosen"
    assert agreed("/a/box.bin", ".data", ".data") == ("/a/box.bin", ".bin"), "typed"
    assert agreed("/a/box", ".3d", ".data") == ("/a/box", ".3d"), "it gets the chosen one"


def test_several_objects_become_files_named_after_them(clean_blender: Any, crates: list[Any], out: Path) -> None:
    assert clean_blender.ops.export_scene.mesh_serializer(filepath=str(out / "any.bytes")) == {"FINISHED"}
    assert _files(out) == {"red.bytes", "green.bytes"}


def test_objects_are_joined_when_asked(clean_blender: Any, crates: list[Any], out: Path) -> None:
    crates[1].location.x = 5
    clean_blender.ops.export_scene.mesh_serializer(filepath=str(out / "both.data"), mesh_files="JOINED")
    assert _files(out) == {"both.data"}
    stored = made.unpack((out / "both.data").read_bytes())
    assert len(stored.triangles) == 24
    assert np.ptp(stored.points[:, 0]) == pytest.approx(7, abs=1e-3), "each where it stands beside the other"


def test_what_is_lost_is_said_with_the_objects_name(
    clean_blender: Any, crates: list[Any], out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bpy = clean_blender
    _select(bpy, crates[0])
    mesh = crates[0].data
    for name in ("Wood", "Iron"):
        mesh.materials.append(bpy.data.materials.new(name))
    mesh.color_attributes.new("Tint", "BYTE_COLOR", "CORNER")
    mesh.uv_layers.new(name="Light")
    crates[0].shape_key_add(name="Basis")
    crates[0].shape_key_add(name="Bulge")
    capfd.readouterr()
    bpy.ops.export_scene.mesh_serializer(filepath=str(out / "red.data"))
    said = capfd.readouterr().out
    for what in ("material", "Tint", "Light"):
        assert any(what in line and "red" in line for line in said.splitlines()), (what, said)


def test_an_untouched_object_is_exported_without_a_warning(
    clean_blender: Any, crates: list[Any], out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _select(clean_blender, crates[0])
    capfd.readouterr()
    clean_blender.ops.export_scene.mesh_serializer(filepath=str(out / "red.data"))
    said = capfd.readouterr().out
    assert "Info: red.data: 1 object, 12 triangles" in said
    assert "arning" not in said


def test_a_mesh_too_large_is_refused_with_its_numbers_or_split(clean_blender: Any, out: Path) -> None:
    bpy = clean_blender
    _select(bpy, _grid(bpy, "Field", 260))
    with pytest.raises(RuntimeError, match=r"Field.*(68,121|135,200)"):
        bpy.ops.export_scene.mesh_serializer(filepath=str(out / "field.data"))
    assert not _files(out)
    assert bpy.ops.export_scene.mesh_serializer(filepath=str(out / "field.data"), large_meshes="SPLIT") == {"FINISHED"}
    names = sorted(_files(out))
    assert names == [f"Field_{number}.data" for number in range(1, len(names) + 1)]
    assert len(names) >= 3
    assert sum(_triangles(out / name) for name in names) == 135_200


def test_the_names_shown_are_those_that_are_written(clean_blender: Any, crates: list[Any], out: Path) -> None:
    from bpy.types import EXPORT_SCENE_OT_mesh_serializer as operator
    from meshferry.io_formats.api import file_names
    from meshferry.io_formats.core.scene import Scene
    from meshferry.operators.files.export_files import object_names

    bpy = clean_blender
    crates[0].name = "Crate:1"

    def shown(**values: Any) -> set[str]:
        given = {"use_hidden": False, "use_instances": True, "mesh_files": "EACH"} | values
        asked = SimpleNamespace(collection="", scope="SELECTION", filename_ext=".data", name_suffix="", **given)
        source, _name = operator.source(asked, bpy.context, "")
        return {
            f"{name}.data" for name in file_names([Scene(name) for name in object_names(asked, bpy.context, source)])
        }

    bpy.ops.export_scene.mesh_serializer(filepath=str(out / "any.data"))
    assert _files(out) == shown() == {"Crate_1.data", "green.data"}
    assert len(shown(mesh_files="JOINED")) == 1


def test_the_exporter_of_a_collection(clean_blender: Any, crates: list[Any], out: Path) -> None:
    bpy = clean_blender
    collection = crates[0].users_collection[0]
    layer = bpy.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children[collection.name]
    bpy.ops.collection.exporter_add(name="IO_FH_mesh_serializer")
    exporter = collection.exporters[0]
    holder = exporter if hasattr(exporter, "filepath") else exporter.export_properties
    holder.filepath = str(out / "exported.bytes")
    bpy.ops.collection.export_all()
    assert _triangles(out / "exported.bytes") == 12


# -- the sidebar --------------------------------------------------------------------------------------------------


def test_the_check_finds_what_an_export_would_say(clean_blender: Any, crates: list[Any]) -> None:
    bpy = clean_blender
    _select(bpy, crates[0])
    found = bpy.context.window_manager.meshferry_check
    bpy.ops.export_scene.mesh_serializer_check()
    assert (found.subject, found.format, len(found.findings)) == ("red", "mesh_serializer", 0)
    crates[0].data.materials.append(bpy.data.materials.new("Wood"))
    crates[0].scale = (1000, 1000, 1000)
    bpy.ops.export_scene.mesh_serializer_check()
    said = [finding.message for finding in found.findings]
    assert "material 'Wood' of object 'red' not carried over" in said, said
    assert any("steps of 61 mm" in text for text in said), said
    assert not any(finding.is_error for finding in found.findings)
    _select(bpy, _grid(bpy, "Field", 260))
    bpy.ops.export_scene.mesh_serializer_check()
    assert [finding.is_error for finding in found.findings] == [True]
    assert "68,121 vertices" in found.findings[0].message


def test_the_ranges_of_a_file_can_be_seen_and_put_away(clean_blender: Any, crates: list[Any], out: Path) -> None:
    from meshferry.operators.families.mesh_serializer import kept_of

    bpy = clean_blender
    _select(bpy, crates[0])
    kept = kept_of(crates[0])
    assert tuple(kept.position_domain) == pytest.approx((-1, -2, 0, 1, 2, 1))
    kept.position_domain[5] = 3.0
    assert bpy.types.MESH_SERIALIZER_PT_kept.poll(bpy.context)
    for used, top in ((True, 3.0), (False, 1.0)):  # a third of the range is one of its steps
        kept.has_domains = used
        bpy.ops.export_scene.mesh_serializer(filepath=str(out / "red.data"))
        assert made.unpack((out / "red.data").read_bytes()).bounds[1, 1] == pytest.approx(top)
    assert kept_of(crates[0]) is not None, "put away, not lost"


@pytest.mark.parametrize("way", ["operator", "command"])
def test_tangents_that_no_file_holds_are_not_computed(
    clean_blender: Any, tmp_path: Path, monkeypatch: Any, way: str
) -> None:
    from meshferry.blender_data.exporting.reading import mesh_reading
    from meshferry.cli.main import main

    bpy = clean_blender
    bpy.ops.mesh.primitive_monkey_add(calc_uvs=True)
    calls = []
    monkeypatch.setattr(mesh_reading, "_tangents", lambda *_args: calls.append(1))
    target = tmp_path / "monkey.data"
    if way == "operator":
        bpy.ops.export_scene.mesh_serializer(filepath=str(target))
    else:
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "monkey.blend"))
        assert main(["convert", str(tmp_path / "monkey.blend"), str(target)]) == 0
    assert _triangles(target)
    assert not calls
