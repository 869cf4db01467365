"""``meshferry inspect``: facts, records, verification, exit status."""

import errno
import os
import re
import zlib

import pytest

KEYS = [
    "file",
    "format",
    "version",
    "nodes",
    "vertices",
    "triangles",
    "surfaces",
    "materials",
    "uv_layers",
    "color_layers",
    "bones",
    "shape_keys",
    "clips",
    "warnings",
    "messages",
]


def test_facts_for_programs(meshferry, windmill):
    done = meshferry("inspect", "--json", windmill)
    assert done.status == 0
    assert done.err == ""
    (entry,) = done.entries
    assert list(entry) == KEYS
    assert entry["file"] == str(windmill)
    assert entry["format"] == "timbermesh"
    assert (entry["nodes"], entry["triangles"], entry["surfaces"], entry["materials"]) == (2, 24, 3, 2)
    assert entry["clips"] == [{"name": "Default", "kind": "node", "frames": 60, "fps": 24.0}]
    assert entry["warnings"] == []


def test_facts_for_people(meshferry, windmill):
    done = meshferry("inspect", windmill)
    assert done.status == 0
    assert f"{windmill}: Timbermesh\n  2 nodes, 24 triangles, " in done.out
    assert "animation 'Default', node, 60 frames at 24 fps" in done.out


def test_verification_compares_content(meshferry, windmill):
    packed_otherwise = zlib.compress(zlib.decompress(windmill.read_bytes()), 1)
    windmill.write_bytes(b"\x78\x9c" + packed_otherwise[2:])
    done = meshferry("inspect", "--verify", "--json", windmill)
    assert done.status == 0
    assert done.entries[0]["identical"] is True


def test_a_difference_is_a_failure(meshferry, windmill, monkeypatch):
    from meshferry.io_formats.timbermesh.model import codec

    encode = codec.write
    monkeypatch.setattr(codec, "write", lambda document: encode(type(document)(nodes=document.nodes[:1])))
    done = meshferry("inspect", "--verify", "--json", windmill)
    assert done.status == 1
    assert done.entries[0]["identical"] is False
    assert done.entries[0]["error"] in done.err


def test_a_bad_file_does_not_stop_the_rest(meshferry, windmill, broken, tmp_path):
    done = meshferry("inspect", "--json", broken, tmp_path / "absent.timbermesh", windmill)
    assert done.status == 1
    bad, absent, good = done.entries
    assert list(bad) == ["file", "error"]
    assert "not a format that Meshferry reads" in bad["error"]
    assert "No such file" in absent["error"]
    assert good["nodes"] == 2
    assert [line.split(": ")[0] for line in done.err.splitlines()] == [bad["file"], absent["file"]]


def test_folders_and_patterns(meshferry, write_windmill, tmp_path):
    for name in ("models/a.timbermesh", "models/deep/b.MESHY", "models/notes.txt"):
        write_windmill(name)
    below = meshferry("inspect", "--json", tmp_path / "models")
    assert [entry["file"] for entry in below.entries] == [
        str(tmp_path / "models" / "a.timbermesh"),
        str(tmp_path / "models" / "deep" / "b.MESHY"),
    ]
    pattern = meshferry("inspect", "--json", tmp_path / "models" / "*.timbermesh")
    assert [entry["file"] for entry in pattern.entries] == [str(tmp_path / "models" / "a.timbermesh")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("empty", "There are no .* files in this folder"),
        ("*.nothing", "No file matches this pattern"),
        ("missing.timbermesh", "The file cannot be read: No such file or directory"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("check",),
        ("convert", "--to", "meshy", "-o", "out"),
        pytest.param(("batch", "--to", "meshy", "-o", "out"), marks=[pytest.mark.slow, pytest.mark.needs_workers]),
    ],
    ids=lambda command: command[0],
)
def test_paths_that_mean_no_file_do_not_stop_the_rest(meshferry, windmill, monkeypatch, command, path, text):
    monkeypatch.chdir(windmill.parent)
    (windmill.parent / "empty").mkdir()
    done = meshferry(command[0], path, windmill, *command[1:], "--json")
    assert done.status == 1
    errors = [line for line in done.err.splitlines() if ": " in line]
    assert len(errors) == 1 and re.search(f"{re.escape(path)}: {text}", errors[0]), done.err
    good = [entry for entry in done.entries if str(windmill) in entry.values() and not entry.get("error")]
    assert len(good) == 1
    assert meshferry(command[0], path, *command[1:]).status == 1


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_a_path_that_is_too_long_is_no_defect(meshferry, command):
    done = meshferry(command, "a/" * 2100 + "x.mesh")
    assert done.status == 1 and "Unexpected" not in done.err and len(done.err.splitlines()) == 1


def test_an_error_of_the_system_is_no_defect(meshferry, windmill, monkeypatch):
    from meshferry.io_formats.timbermesh.model import codec

    def fail(data, **options):
        raise OSError(errno.EIO, os.strerror(errno.EIO), "disk" * 100)

    monkeypatch.setattr(codec, "read", fail)
    assert meshferry("inspect", windmill).err == f"{windmill}: {('disk' * 100)[:200]}…: {os.strerror(errno.EIO)}\n"


def test_a_defect_is_one_line_and_its_place_on_demand(meshferry, windmill, monkeypatch):
    from meshferry.io_formats.timbermesh.model import codec

    def fail(data, **options):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(codec, "read", fail)
    done = meshferry("inspect", windmill)
    assert done.status == 1
    assert len(done.err.splitlines()) == 1
    assert re.search(r"Unexpected error: ZeroDivisionError: division by zero \(Meshferry \d", done.err)
    assert "Traceback" in meshferry("inspect", "--debug", windmill).err


def sample_facts(samples):
    """Yield the rows of the table of facts, which the protobuf library gave, not our reader."""
    for line in (samples / "timbermesh" / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 11 and cells[1].isdigit():
            yield cells


def test_real_files_have_the_facts_that_others_counted(meshferry, samples):
    done = meshferry("inspect", "--verify", "--json", samples / "timbermesh")
    assert done.status == 0, done.err
    found = {entry["file"].replace("\\", "/").rsplit("/", 1)[1]: entry for entry in done.entries}
    rows = list(sample_facts(samples))
    assert len(rows) == len(found) == 18
    for name, _bytes, nodes, _roots, vertices, triangles, materials, submeshes, layers, animations, _use in rows:
        entry = found[name]
        numbers = [entry[key] for key in ("nodes", "vertices", "triangles", "materials", "surfaces")]
        assert numbers == [int(cell) for cell in (nodes, vertices, triangles, materials, submeshes)], name
        assert entry["uv_layers"] == layers.count("uv"), name
        assert entry["color_layers"] == layers.count("color"), name
        assert entry["identical"] is True, name
        clip = re.match(r"(node|VERTEX) `(.+)` (\d+) frames at (\d+)", animations)
        expected = [(clip[1].lower(), clip[2], int(clip[3]), int(clip[4]))] if clip else []
        assert [(one["kind"], one["name"], one["frames"], one["fps"]) for one in entry["clips"]] == expected, name


def test_a_name_never_breaks_the_line_that_tells_of_it(capsys):
    from meshferry.cli.output import Reporter
    from meshferry.io_formats.core.errors import MeshferryError

    Reporter().fail("a\nb\x1b[2Jc.mesh", MeshferryError("It is\nbroken"))
    assert capsys.readouterr().err == "a\\nb\\x1b[2Jc.mesh: It is\\nbroken\n"
