"""What the command line prints: names with characters that act, and the reason why Blender cannot be loaded."""

import importlib
import re
import sys

import pytest

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


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (ImportError("libX11.so.6: cannot open shared object file: No such file or directory"), "apt install libx11-6"),
        (ImportError("libosl.so.1: failed to map segment from shared object"), "not enough memory to load"),
        (ImportError("bpy/__init__.so: cannot allocate memory"), "not enough memory to load"),
        (MemoryError(), "not enough memory to load"),
        (
            ImportError("/lib/libc.so.6: version `GLIBC_2.28' not found"),
            "bpy cannot be loaded: /lib/libc",
        ),
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
