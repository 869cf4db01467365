"""Files that crash Blender's own importers: the process of those jobs dies, and ``convert`` goes on."""

import os
import shutil
import signal
import sys

import conversion_models as models
import pytest

pytestmark = [
    pytest.mark.needs_bpy,
    pytest.mark.skipif(sys.platform == "win32", reason="the tests send signals to single processes"),
]

TRIANGLE = """ply
format ascii 1.0
element vertex {count}
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
3 0 1 2
"""


@pytest.fixture
def in_one_process():
    """Run Blender's importers as users do, in a process of their own."""


@pytest.fixture
def write_ply(tmp_path):
    def write(name, count=3):
        path = tmp_path / name
        path.write_text(TRIANGLE.format(count=count), encoding="ascii")
        return path

    return write


@pytest.fixture
def calls(monkeypatch):
    """Return a dictionary of functions to run when the worker begins a source; they are given its process."""
    from meshferry.cli.batch.workers.pool import IsolatedConversion

    by_name = {}
    begin = IsolatedConversion._begin

    def called(worker, source):
        if source is not None:
            by_name.pop(source.name, lambda process: None)(worker._process)
        begin(worker, source)

    monkeypatch.setattr(IsolatedConversion, "_begin", called)
    return by_name


def kill(process):
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["blend", "mesh"])
def test_a_file_that_aborts_blender(meshferry, write_ply, tmp_path, kind):
    files = write_ply("bad.ply", 999999999999), write_ply("good.ply")
    done = meshferry("convert", *files, "--to", kind, "-o", tmp_path / "out", "--json")
    bad, good = done.entries
    assert done.status == 1
    assert (bad["input"], bad["output"]) == (str(files[0]), str(tmp_path / "out" / f"bad.{kind}"))
    assert bad["error"] and "facts" not in bad
    assert done.err == f"{files[0]}: {bad['error']}\n"
    assert good["facts"]["triangles"] == 1 and "error" not in good
    assert [path.name for path in tmp_path.glob("out/*")] == [f"good.{kind}"]


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.parametrize("to", [("--to", "blend", "-o"), ()])
def test_a_killed_worker_is_replaced(meshferry, write_ply, calls, tmp_path, to):
    """Also if all sources are imported into one file, which is then written without the one."""
    files = [write_ply(f"{letter}.ply") for letter in "abc"]
    out = tmp_path / "out"
    calls["a.ply"] = calls["b.ply"] = kill
    done = meshferry("convert", *files, *to, out if to else tmp_path / "all.blend")
    assert done.status == 1
    lost = "The process died of a signal: Killed, perhaps for lack of memory"
    assert [line.split(" (")[0] for line in done.err.splitlines()] == [f"{path}: {lost}" for path in files[:2]]
    assert done.out.splitlines()[-1] == "Converted 1 of 3 files"
    assert [path.name for path in tmp_path.rglob("*.blend")] == ["c.blend" if to else "all.blend"]


@pytest.mark.slow
@pytest.mark.any_version
def test_scenes_whose_models_may_come_from_source_files(meshferry, calls, tmp_path):
    """Blender's FBX importer reads these in the same process."""
    scene = '<nodes version="2.19"><node type="NodeDummy" id="1" name="lone"/></nodes>'
    files = [tmp_path / f"{letter}.node" for letter in "ab"]
    for path in files:
        path.write_text(scene, encoding="ascii")
    calls["a.node"] = kill
    done = meshferry("convert", *files, "--to", "blend", "-o", tmp_path / "out")
    assert done.status == 1
    assert done.err.startswith(f"{files[0]}: The process died of a signal")
    assert [path.name for path in tmp_path.rglob("*.blend")] == ["b.blend"]


@pytest.mark.slow
@pytest.mark.any_version
def test_a_killed_worker_in_a_strict_conversion(meshferry, write_ply, calls, tmp_path):
    files = [write_ply(f"{letter}.ply") for letter in "ab"]
    calls["b.ply"] = kill
    done = meshferry("convert", *files, tmp_path / "all.blend", "--strict", "--json")
    assert [entry["input"] for entry in done.entries] == [str(files[1]), str(files[0])]
    assert "another file failed" in done.entries[1]["error"]
    assert not (tmp_path / "all.blend").exists()


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.parametrize(("name", "status", "joint"), [("SIGINT", 130, False), ("SIGTERM", 143, True)])
def test_a_signal_ends_a_run_between_files(meshferry, write_ply, calls, tmp_path, name, status, joint):
    files = [write_ply(f"{letter}.ply") for letter in "ab"]
    calls["a.ply"] = lambda process: signal.raise_signal(getattr(signal, name))
    to = (tmp_path / "all.glb",) if joint else ("--to", "glb", "-o", tmp_path / "out")
    done = meshferry("convert", *files, *to)
    assert (done.status, done.err.splitlines()[-1]) == (status, "Interrupted")
    assert not list(tmp_path.rglob("*.glb"))


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_while_a_file_is_written(run_script, tmp_path, write_ply, signals):
    """The first one ends the run after the file, the second one at once; no temporary file is left."""
    from test_interruption import hooked, leftovers

    files = [write_ply(f"{letter}.ply") for letter in "ab"]
    code = f"""
def install():
    import os, signal, time
    from io_scene_fbx import export_fbx_bin
    def interrupted(*arguments, original=export_fbx_bin.save, **options):
        for _ in range({signals}):
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(0.8)
        return original(*arguments, **options)
    export_fbx_bin.save = interrupted
"""
    environment = hooked(tmp_path, code, "io_scene_fbx.export_fbx_bin")
    done = run_script("--", *files, "--to", "fbx", "-o", tmp_path / "out", **environment)
    assert (done.status, done.err.splitlines()[-1]) == (143, "Interrupted"), done.err
    assert "Traceback" not in done.err
    assert [path.name for path in tmp_path.glob("out/*")] == (["a.fbx"] if signals == 1 else [])
    assert leftovers(tmp_path) == []


@pytest.fixture
def sources(meshferry, tmp_path):
    """Return files of several formats, with animations of equal and of different names."""
    from meshferry.io_formats import api
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    folder = tmp_path / "in"
    for name in ("robot", "crab"):
        api.write_scene(models.make_timbermesh(), tmp_path / f"{name}.timbermesh", TIMBERMESH)
        assert meshferry("convert", tmp_path / f"{name}.timbermesh", tmp_path / f"{name}.glb").status == 0
        folder.mkdir(exist_ok=True)
        shutil.move(tmp_path / f"{name}.glb", folder / f"{name}.glb")
    shutil.move(tmp_path / "crab.timbermesh", folder / "plain.timbermesh")
    shutil.copy(folder / "crab.glb", folder / "robot.Lid.glb")
    (folder / "broken.obj").write_bytes(b"no mesh at all")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--to", "mesh", "--mesh-files", "each"), marks=pytest.mark.slow),
        *(
            pytest.param(arguments, marks=[pytest.mark.slow, pytest.mark.any_version])
            for arguments in (
                ("--to", "timbermesh", "--rename-clip", "Move=Walk", "--dry-run"),
                ("--to", "gltf"),
                ("all.blend", "--rename-clip", "Gone=Walk"),
            )
        ),
    ],
    ids=" ".join,
)
def test_the_process_makes_no_difference(meshferry, sources, tmp_path, monkeypatch, arguments):
    from meshferry.cli import convert_command

    found = []
    for is_isolated in (True, False):
        monkeypatch.setattr(convert_command, "_is_isolated", lambda *_given, is_isolated=is_isolated: is_isolated)
        out = tmp_path / "out"
        out.mkdir()
        to = (*arguments, "-o", out) if arguments[0].startswith("-") else (out / arguments[0], *arguments[1:])
        done = meshferry("convert", sources, *to, "--json")
        files = [path for path in out.rglob("*") if path.is_file() and path.suffix != ".blend"]
        found.append((done, {path.relative_to(out): path.read_bytes() for path in files}))
        shutil.rmtree(out)
    assert found[0] == found[1]
    assert bool(found[0][1]) == (arguments[-1] in {"each", "gltf"})
