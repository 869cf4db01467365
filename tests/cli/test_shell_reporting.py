"""What the command line prints: names with characters that act, and the reason why Blender cannot be loaded."""

import dataclasses
import importlib
import io
import os
import re
import sys
import tarfile
from pathlib import Path

import pytest
from meshfuzz import collada_seeds as seeds

ROOT = Path(__file__).resolve().parents[2]

NAMES = ["red\x1b[31m\x07.timbermesh", "line\nbreak\u2028.timbermesh", "turned\u202eknil\u2066.timbermesh"]
SURROGATE = "half\udcff.timbermesh"
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
@pytest.mark.parametrize("name", [*NAMES, SURROGATE], ids=ascii)
@pytest.mark.parametrize("command", ["inspect", "check", "convert"])
def test_no_character_of_a_name_acts(meshferry, windmill, tmp_path, monkeypatch, command, name):
    if sys.platform == "darwin" and name == SURROGATE:
        pytest.skip("the file system takes no such names")
    windmill.rename(tmp_path / name)
    (tmp_path / f"broken {name}").write_bytes(b"not a model")
    monkeypatch.chdir(tmp_path)
    names = [name, f"broken {name}"]
    arguments = [command, *names, *(("--to", "meshy", "-o", "out") if command == "convert" else ())]
    done = meshferry(*arguments)
    shown = name.encode("unicode_escape").decode()
    assert not ACTING.search(done.out + done.err)
    assert any(line.startswith(shown) for line in done.out.splitlines())
    assert [line for line in done.err.splitlines() if line.startswith(f"broken {shown}: ")]
    entries = meshferry(*arguments, "--json").entries
    assert [entry.get("file", entry.get("input")) for entry in entries] == names
    assert not ACTING.search(meshferry(command, "--bad" + name).err)


def test_names_outside_the_encoding_of_the_locale_are_no_defect(monkeypatch):
    from meshferry.cli import output

    problem = UnicodeEncodeError("ascii", "out/Ж.mesh", 4, 5, "ordinal not in range(128)")
    assert "defect" in output.cause(problem)
    monkeypatch.setattr(output.sys, "getfilesystemencoding", lambda: "ascii")
    assert "Ж.mesh" in output.cause(problem) and "PYTHONUTF8" in output.cause(problem)
    assert "defect" not in output.cause(problem)


def test_line_breaks_in_messages_are_escaped():
    from meshferry.cli.output import cause
    from meshferry.io_formats.core.errors import ExportError, FormatError

    assert cause(FormatError("bone 'a\nb\r\u2028' is twice there", item="x\ny")) == (
        r"x\ny: bone 'a\nb\r\u2028' is twice there"
    )
    assert cause(ExportError("bone 'a\n  b'")) == r"bone 'a\n  b'"


def test_a_line_break_in_the_name_of_a_bone_is_shown(meshferry, tmp_path):
    from meshferry.io_formats import api

    lamp = api.load(ROOT / "examples" / "lamp.mesh")
    lamp.document.bones[1] = dataclasses.replace(lamp.document.bones[1], name="two\nlines")
    path = tmp_path / "lamp.mesh"
    path.write_bytes(lamp.format.write(lamp.document))
    done = meshferry("convert", path, tmp_path / "lamp.dae")
    assert done.status == 1 and r"'two\nlines'" in done.err and len(done.err.splitlines()) == 1


def test_what_blender_prints_is_escaped_and_marked_as_its_output(capfd):
    from meshferry.cli.conversions.scene_writing import Outcome
    from meshferry.cli.convert_command import _with_blender_errors
    from meshferry.cli.output import Reporter

    def convert():
        for name in (b"a", b"b"):
            os.write(2, b"Error in PyDriver: %s\x1b[31m\n\nfake: error\xff\xc2\x85x" % name)
            yield Outcome(Path(), Path())

    seen = [capfd.readouterr().err for _ in _with_blender_errors(convert(), Reporter())]
    expected = "Blender: Error in PyDriver: {}\\x1b[31m\nBlender: fake: error\ufffd\nBlender: x\n"
    assert seen == [expected.format("a"), expected.format("b")]
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"


@pytest.mark.needs_bpy
def test_names_in_errors_of_drivers_are_escaped(meshferry, clean_blender, tmp_path):
    bpy = clean_blender
    name = "\x1b]0;title\x07\nfake: error"
    obj = bpy.data.objects.new(name, bpy.data.meshes.new(name))
    obj.data.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    bpy.context.scene.collection.objects.link(obj)
    driver = obj.driver_add("location", 0).driver
    driver.type, driver.expression = "SCRIPTED", "missing + 1"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"))
    done = meshferry("convert", tmp_path / "a.blend", tmp_path / "a.obj")
    assert done.status == 0 and r'name="\x1b]0;title\x07' in done.err
    assert "\x1b" not in done.err and "\nfake" not in done.err


def test_inspect_escapes_texts_of_files(meshferry, tmp_path):
    (tmp_path / "a.dae").write_bytes(seeds.document().replace(b'version="1.4.1"', b'version="1&#10;fake: error"'))
    assert r"Collada 1\nfake: error" in meshferry("inspect", tmp_path / "a.dae").out


@pytest.mark.skipif(
    sys.platform == "win32" or not os.path.exists("/dev/full"), reason="Windows and macOS have no /dev/full"
)
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [(["--help"], ""), (["--version"], "1"), (["batch", "--help"], "1"), (["formats"], ""), (["formats"], "1")],
)
def test_output_that_cannot_be_written_is_a_failure(run_python, arguments, unbuffered):
    program = (
        "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1);"
        "from meshferry.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = run_python("-c", program, *arguments, PYTHONUNBUFFERED=unbuffered)
    assert (done.status, done.err) == (1, "The output cannot be written: No space left on device\n")


@pytest.mark.parametrize("first", ["archive.xml", "assets/x_mesh.llmesh"])
@pytest.mark.parametrize("command", ["inspect", "convert"])
def test_an_archive_of_opensim_is_named_with_the_command_for_it(meshferry, tmp_path, command, first):
    path = tmp_path / "region.oar"
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo(first), io.BytesIO())
    done = meshferry(command, path, *([tmp_path / "x.data"] if command == "convert" else []))
    assert done.status == 1 and "This is an archive of OpenSim; " in done.err and "'meshferry batch'" in done.err


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (ImportError("libX11.so.6: cannot open shared object file: No such file or directory"), "apt install libx11-6"),
        (ImportError("libosl.so.1: failed to map segment from shared object"), "not enough memory to load"),
        (ImportError("bpy/__init__.so: cannot allocate memory"), "not enough memory to load"),
        (MemoryError(), "not enough memory to load"),
        (ImportError("/lib/libc.so.6: version `GLIBC_2.28' not found"), "bpy cannot be loaded: /lib/libc"),
        (ImportError("libgomp.so.1: cannot allocate memory in static TLS block"), "bpy cannot be loaded: libgomp"),
    ],
    ids=str,
)
def test_the_reason_why_blender_cannot_be_loaded(monkeypatch, problem, expected):
    from meshferry.cli.conversions.blend_files import BlendSession
    from meshferry.io_formats.core.errors import MeshferryError

    def refuse(name):
        raise problem

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MeshferryError, match=re.escape(expected)) as raised:
        BlendSession().load()
    assert ("apt install" in str(raised.value)) == expected.startswith("apt install")
