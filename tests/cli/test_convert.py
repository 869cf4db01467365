"""``meshferry convert`` without Blender: what is refused, what is written, what is said."""

import sys

import pytest


def read(path):
    from meshferry.io_formats import api

    return api.read_scene(path)


def test_one_file(meshferry, windmill, tmp_path):
    target = tmp_path / "out.meshy"
    done = meshferry("convert", windmill, target)
    assert (done.status, done.err) == (0, "")
    assert done.out == (
        f"{windmill} -> {target}: 2 objects, 24 triangles, 2 materials, 1 animation ('Default', 60 frames at 24 fps)\n"
    )
    assert read(target).triangle_count == 24


def test_record(meshferry, windmill, tmp_path):
    done = meshferry("convert", "--json", windmill, tmp_path / "out.timbermesh")
    (entry,) = done.entries
    assert list(entry) == ["input", "output", "facts", "warnings", "messages"]
    assert (entry["input"], entry["output"]) == (str(windmill), str(tmp_path / "out.timbermesh"))
    assert entry["facts"]["clips"] == [{"name": "Default", "kind": "node", "frames": 60, "fps": 24.0}]
    assert done.err == ""


def test_a_folder_keeps_its_tree_and_bad_files_do_not_stop_the_rest(meshferry, write_windmill, broken, tmp_path):
    for name in ("in/a.timbermesh", "in/deep/down/Lodge.Folktails.Model.meshy"):
        write_windmill(name)
    bad = broken.rename(tmp_path / "in" / "deep" / "broken.timbermesh")
    done = meshferry("convert", tmp_path / "in", "--to", "timbermesh", "-o", tmp_path / "out")
    assert done.status == 1
    assert done.out.splitlines()[-1] == "Converted 2 of 3 files"
    assert done.err.startswith(f"{bad}: ")
    assert len(done.err.splitlines()) == 1
    written = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert written == ["a.timbermesh", "deep/down/Lodge.Folktails.Model.timbermesh"]


def test_an_output_folder_inside_the_input_is_not_searched(meshferry, write_windmill, tmp_path):
    write_windmill("models/a.timbermesh")
    for _again in range(2):
        done = meshferry("convert", "--json", tmp_path / "models", "--to", "meshy", "-o", tmp_path / "models" / "out")
        assert [entry["input"] for entry in done.entries] == [str(tmp_path / "models" / "a.timbermesh")]


def refused(done, tmp_path, before):
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    assert snapshot(tmp_path) == before


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_input_is_never_overwritten(meshferry, write_windmill, tmp_path):
    one, other = write_windmill("a.timbermesh"), write_windmill("a.meshy")
    before = snapshot(tmp_path)
    refused(meshferry("convert", one, one), tmp_path, before)
    refused(meshferry("convert", one, "--to", "timbermesh", "-o", tmp_path), tmp_path, before)
    done = meshferry("convert", other, one, "--to", "timbermesh", "-o", tmp_path)
    refused(done, tmp_path, before)
    assert "would overwrite" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_an_input_is_not_overwritten_through_a_link(meshferry, windmill, tmp_path):
    link = tmp_path / "link.meshy"
    link.symlink_to(windmill)
    before = windmill.read_bytes()
    assert meshferry("convert", windmill, link).status == 2
    assert windmill.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize(
    ("to", "link"),
    [
        ("dae", "windmill.dae"),
        ("dae", "below"),
        ("slm", "windmill.dae"),
        pytest.param("gltf", "windmill.bin", marks=pytest.mark.needs_bpy),
        pytest.param("blend", "windmill.blend", marks=pytest.mark.needs_bpy),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_link_planted_in_the_output_folder_is_refused(meshferry, write_windmill, tmp_path, to, link, options):
    source = write_windmill("in/below/windmill.timbermesh" if link == "below" else "in/windmill.timbermesh")
    victim, out = tmp_path / "victim", tmp_path / "out"
    (victim.mkdir if link == "below" else victim.touch)()
    (tmp_path / "real").mkdir()
    out.symlink_to("real")  # a linked output folder is the user's own
    (out / link).symlink_to(victim)
    before = snapshot(tmp_path)
    done = meshferry("convert", tmp_path / "in", "--to", to, "-o", out, *options)
    assert done.status == 1 and f"{out / link} is a link that leads out of" in done.err
    assert snapshot(tmp_path) == before
    if (to, link) == ("dae", "windmill.dae"):  # a link that the user names is followed
        assert meshferry("convert", source, out / link).status == 0 and victim.stat().st_size


def test_two_inputs_for_one_output_are_refused_before_anything_is_written(meshferry, write_windmill, tmp_path):
    paths = [write_windmill("one/a.timbermesh"), write_windmill("two/a.meshy")]
    before = snapshot(tmp_path)
    done = meshferry("convert", *paths, "--to", "timbermesh", "-o", tmp_path / "out")
    refused(done, tmp_path, before)
    assert "would both become" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["windmill.timbermesh"], "No output given for"),
        (["windmill.timbermesh", "out.stl"], "Nothing here writes '.stl' files"),
        (["windmill.timbermesh", "out"], "has no known extension"),
        (["windmill.timbermesh", "."], "is a folder"),
        (["windmill.timbermesh", "--to", "blend"], "--to needs -o FOLDER"),
        (["windmill.timbermesh", "-o", "out"], "-o needs --to EXTENSION"),
        (["windmill.timbermesh", "--to", "stl", "-o", "out"], "Nothing here writes"),
        (["windmill.timbermesh", "--to", "meshy", "-o", "windmill.timbermesh"], "is a file, not a folder"),
        (["windmill.timbermesh", "b.timbermesh", "out.meshy"], "2 files cannot become one"),
        (["a.blend", "b.blend"], "is a .blend file already"),
        (["windmill.timbermesh", "--to", "meshy", "-o", ""], "The folder after -o is empty"),
        pytest.param(
            ["windmill.timbermesh", "--to", "meshy", "-o", "a/" * 2100],
            "a/…: the folder cannot be used: ",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="for Windows, a path that is too long is missing"),
        ),
        (["windmill.timbermesh", "--to", "meshy", "-o", "nul\0"], "the folder cannot be used: "),
        (["windmill.timbermesh", ""], "The last path is empty"),
        (["windmill.timbermesh", "a/" * 2100 + "out.meshy"], "the folder does not exist"),
    ],
)
def test_arguments_that_make_no_sense(meshferry, windmill, monkeypatch, arguments, said):
    monkeypatch.chdir(windmill.parent)
    before = snapshot(windmill.parent)
    done = meshferry("convert", *arguments)
    assert said in done.err
    refused(done, windmill.parent, before)


@pytest.mark.parametrize("name", ["con.meshy", "NUL.blend", "com1.tower.meshy"])
def test_names_of_devices_are_refused_on_windows(meshferry, windmill, tmp_path, monkeypatch, name):
    monkeypatch.setattr("meshferry.io_formats.disk.file_names.sys.platform", "win32")
    done = meshferry("convert", windmill, tmp_path / name)
    assert done.status == 2 and f"{name}: Windows reserves this name for a device" in done.err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_folder_that_is_not_there(meshferry, windmill, tmp_path, more):
    done = meshferry("convert", windmill, tmp_path / "absent" / "out.timbermesh", *more)
    assert done.status == 2
    assert f"the folder does not exist: {tmp_path / 'absent'}" in done.err
    assert not (tmp_path / "absent").exists()


@pytest.fixture
def surprising(windmill):
    """A file that is read with a warning: a normal that is none."""
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    document = TIMBERMESH.read(windmill.read_bytes())
    normals = document.nodes[0].find("normal")
    normals.data = b"\0" * len(normals.data)
    path = windmill.with_name("surprising.timbermesh")
    path.write_bytes(TIMBERMESH.write(document))
    return path


def test_warnings_are_said_once(meshferry, surprising, tmp_path):
    done = meshferry("convert", surprising, tmp_path / "out.timbermesh")
    assert done.status == 0
    assert done.err.startswith(f"{surprising}: warning: ")
    assert len(done.err.splitlines()) == len(set(done.err.splitlines()))
    assert meshferry("convert", "--json", surprising, tmp_path / "out.timbermesh").entries[0]["warnings"]
    quiet = meshferry("convert", "--quiet", surprising, tmp_path / "out.timbermesh")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")


def test_strict_writes_nothing_that_came_with_a_warning(meshferry, surprising, windmill, tmp_path):
    (tmp_path / "out").mkdir()
    old = tmp_path / "out" / "surprising.meshy"
    old.write_bytes(b"old")
    done = meshferry("convert", "--strict", surprising, windmill, "--to", "meshy", "-o", tmp_path / "out")
    assert done.status == 1
    assert old.read_bytes() == b"old"
    assert (tmp_path / "out" / "windmill.meshy").exists()
    assert "strict" in done.err


def test_what_the_game_makes_of_it_is_no_loss(meshferry, windmill, tmp_path):

    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    document = TIMBERMESH.read(windmill.read_bytes())
    document.nodes[0].meshes[0].material = "Paper.Folktails.001"
    windmill.write_bytes(TIMBERMESH.write(document))
    done = meshferry("convert", "--strict", windmill, tmp_path / "out.timbermesh")
    assert done.status == 0
    assert "Paper.Folktails.001" in done.err


def test_format_options_reach_the_format(meshferry, windmill, tmp_path):

    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    document = TIMBERMESH.read(windmill.read_bytes())
    document.nodes[0].meshes[0].material = "Paper.Folktails.001"
    windmill.write_bytes(TIMBERMESH.write(document))
    target = tmp_path / "out.timbermesh"
    assert meshferry("convert", windmill, target, "--strip-suffixes").status == 0
    assert "Paper.Folktails.001" not in {name for node in read(target).nodes for name in node.mesh.materials}


def test_options_without_effect_are_pointed_out(meshferry, windmill, tmp_path):
    done = meshferry("convert", windmill, tmp_path / "out.meshy", "--merging", "keep", "--collection", "A")
    assert done.status == 0
    assert [line.split(" has ")[0] for line in done.err.splitlines()] == [
        "convert: warning: --merging",
        "convert: warning: --collection",
    ]


def test_options_may_stand_anywhere(meshferry, windmill, tmp_path):
    done = meshferry("convert", "--strict", windmill, "--compression", "small", tmp_path / "out.meshy", "--json")
    assert (done.status, done.err) == (0, "")
    assert done.entries[0]["output"] == str(tmp_path / "out.meshy")
    assert meshferry("convert", windmill, "--no-such-option", tmp_path / "out.meshy").status == 2
    assert meshferry("formats", "surplus").status == 2


def test_formats(meshferry):
    from meshferry.io_formats.registry import FORMATS

    done = meshferry("formats")
    assert done.status == 0
    assert all(known.label in done.out and known.extensions[0] in done.out for known in FORMATS)
    entry = meshferry("formats", "--json").entries[0]
    assert entry["name"] == "timbermesh"
    assert entry["holds"]["uv_layers"] == 3
    # keys of the output stay, whatever the fields of the capabilities are called
    keys = "uv_layers color_layers custom_layers normals splits_vertices materials project_textures"
    keys += " ambient_occlusion node_hierarchy"
    keys += " shape_keys skeletons sliders influences node_clips joint_clips vertex_clips keyed_clips levels_of_detail"
    keys += " surfaces physics placed_models placement opaque_colors gltf_materials bakes_materials joins_objects"
    keys += " joins_clips longest_clip knows_joint"
    assert list(entry["holds"]) == keys.split()


def test_names_that_no_console_can_show(meshferry, write_windmill, tmp_path):
    path = write_windmill("ветряк 風車.timbermesh")
    done = meshferry("convert", "--json", path, tmp_path / "ветряк.meshy")
    assert done.status == 0
    assert done.out.isascii()
    assert done.entries[0]["input"] == str(path)


@pytest.mark.parametrize(
    "command",
    [("convert",), pytest.param(("batch", "--jobs", "1"), marks=pytest.mark.needs_workers)],
    ids=lambda command: command[0],
)
def test_both_commands_name_files_alike(meshferry, write_windmill, tmp_path, command):
    for name in ("mill", "mill.#Sails", "deep/mill"):  # the file of the second is called as a part of the first
        write_windmill(f"in/{name}.timbermesh")
    given = [tmp_path / "in", "--to", "data", "-o", tmp_path / "out", *command[1:]]
    for _again in range(2):
        assert meshferry(command[0], *given).status == 0
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.glob("out/**/*.data")) == [
        "deep/mill.#Sails.data",
        "deep/mill.mill.data",
        "mill.#Sails.#Sails.data",
        "mill.#Sails.mill_#Sails.data",
        "mill.#Sails_2.data",
        "mill.mill.data",
    ]
