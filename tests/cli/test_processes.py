"""The command line as its users start it: processes with a true exit status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "cli" / "convert.py"


@pytest.fixture
def library_path(tmp_path):
    """A folder from which Python imports the checkout under its name, without links, which need rights on Windows."""
    folder = tmp_path / "library"
    (folder / "meshferry").mkdir(parents=True)
    code = f"__path__ = [{str(ROOT)!r}]\nexec(open({str(ROOT / '__init__.py')!r}, encoding='utf-8').read())\n"
    (folder / "meshferry" / "__init__.py").write_text(code, encoding="utf-8")
    return str(folder)


@pytest.mark.slow
def test_module(run_python, library_path, windmill, broken):
    good = run_python("-m", "meshferry", "inspect", windmill, PYTHONPATH=library_path)
    assert (good.status, good.err) == (0, "")
    assert "24 triangles" in good.out
    assert run_python("-m", "meshferry", "inspect", windmill, broken, PYTHONPATH=library_path).status == 1
    assert run_python("-m", "meshferry", "inspect", PYTHONPATH=library_path).status == 2
    version = run_python("-m", "meshferry", "--version", PYTHONPATH=library_path)
    assert version.status == 0
    assert version.out.startswith("Meshferry 0.")


@pytest.mark.slow
def test_script_understands_convert_and_the_other_commands(run_script, windmill, broken, tmp_path):
    target = tmp_path / "out.meshy"
    done = run_script("--", windmill, target)
    assert (done.status, done.err) == (0, "")
    assert target.exists()
    assert run_script(windmill, tmp_path / "again.meshy").status == 0
    assert "24 triangles" in run_script("--", "inspect", windmill).out
    assert run_script("--", "check", windmill).status == 0
    assert run_script("--", "convert", broken, tmp_path / "no.meshy").status == 1
    assert run_script("--").status == 2
    assert run_script("--version").out.startswith("Meshferry ")


def test_script_says_which_library_is_missing_and_how_to_get_it(run_script, windmill, tmp_path):
    hidden = tmp_path / "site"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in HIDDEN: raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "import os\n"
        "HIDDEN = os.environ['HIDDEN'].split()\n"
        "sys.meta_path.insert(0, Hide())\n",
        encoding="utf-8",
    )
    without_protobuf = run_script("--", "inspect", windmill, PYTHONPATH=str(hidden), HIDDEN="google")
    assert without_protobuf.status == 1
    assert f'"{sys.executable}" -m pip install protobuf' in without_protobuf.err
    assert "Traceback" not in without_protobuf.err
    without_all = run_script("--", "inspect", windmill, PYTHONPATH=str(hidden), HIDDEN="google numpy")
    assert without_all.status == 1
    assert f'"{sys.executable}" -m pip install numpy protobuf' in without_all.err
    assert "Traceback" not in without_all.err
    without_blender = run_script("--", windmill, tmp_path / "a.blend", PYTHONPATH=str(hidden), HIDDEN="bpy")
    assert without_blender.status == 1
    assert 'pip install "bpy==4.5.*"' in without_blender.err
    assert "Traceback" not in without_blender.err


def test_help_loads_neither_blender_nor_other_commands(run_python, library_path):
    code = (
        "import sys; from meshferry.cli.main import main; status = main(['convert', '--help']); "
        "assert not {'bpy', 'meshferry.cli.batch_command'} & set(sys.modules); sys.exit(status)"
    )
    done = run_python("-c", code, PYTHONPATH=library_path)
    assert (done.status, done.err) == (0, "")
    assert "--weld" in done.out


def test_the_driver_of_a_batch_starts_without_numpy(run_python, library_path):
    """NumPy takes a third of the time from the start of the command to the start of the first worker."""
    code = (
        "import sys, meshferry.cli.main, meshferry.cli.batch_command, meshferry.cli.batch.runner; "
        "sys.exit('numpy' in sys.modules)"
    )
    assert run_python("-c", code, PYTHONPATH=library_path).status == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
def test_a_reader_that_goes_away_stops_nothing(run_script, write_windmill, tmp_path):
    for number in range(5):
        write_windmill(f"in/{number}.timbermesh")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, str(SCRIPT), "--", str(tmp_path / "in"), "--to", "meshy", "-o", str(tmp_path / "out")]
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            command, check=False, stdout=pipe, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list((tmp_path / "out").iterdir())) == 5


@pytest.mark.skipif(
    sys.platform == "win32" or not Path("/dev/full").exists(), reason="Windows and macOS have no /dev/full"
)
def test_a_full_disk_behind_the_output_is_a_failure(run_script, windmill):
    command = [sys.executable, str(SCRIPT), "--", "inspect", "--json", str(windmill)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, check=False, stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"The output cannot be written: No space left")


def test_a_console_that_knows_few_letters(run_script, write_windmill, tmp_path):
    path = write_windmill("風車.timbermesh")
    done = run_script("--", path, tmp_path / "風.meshy", PYTHONIOENCODING="cp1252", PYTHONUTF8="0")
    assert done.status == 0, done.err
    assert "\\u98a8" in done.out


def test_an_interruption(meshferry, windmill, monkeypatch):
    from meshferry.io_formats.timbermesh.model import codec

    def interrupt(data, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(codec, "read", interrupt)
    done = meshferry("inspect", windmill)
    assert (done.status, done.err) == (130, "Interrupted\n")


@pytest.mark.slow
@pytest.mark.needs_bpy
def test_to_blend_and_back_with_the_wheel(run_script, windmill, tmp_path):
    """Also that the process ends: classes left registered crash or hang some versions."""
    there = run_script("--", "--json", windmill, tmp_path / "windmill.blend")
    assert (there.status, there.err) == (0, "")
    assert there.entries[0]["facts"]["triangles"] == 24
    back = run_script("--", "--json", tmp_path / "windmill.blend", tmp_path / "back.timbermesh")
    assert (back.status, back.err) == (0, "")
    assert back.entries[0]["facts"]["triangles"] == 24
    failed = run_script("--", tmp_path / "windmill.blend", tmp_path / "no" / "back.timbermesh")
    assert failed.status == 2  # refused: there is no such folder


@pytest.mark.slow
@pytest.mark.needs_bpy
def test_json_is_alone_on_standard_output(run_script, windmill, broken, tmp_path):
    """Of each command, also if it loads Blender, whose library prints at its end on Windows."""
    from meshferry.cli.main import COMMANDS

    blend, out = tmp_path / "windmill.blend", tmp_path / "out"
    batch = ["batch", windmill, broken, "--to", "blend"]
    runs = [
        (0, ["convert", windmill, blend]),
        (0, ["convert", blend, tmp_path / "windmill.glb"]),
        (0, ["convert", tmp_path / "windmill.glb", tmp_path / "again.timbermesh"]),
        (1, ["convert", windmill, broken, "--to", "blend", "-o", out]),
        (0, ["convert", windmill, "--to", "fbx", "-o", out, "--dry-run"]),
        (1, [*batch, "-o", out, "--jobs", 2]),
        (0, [*batch, "-o", out, "--dry-run"]),
        (0, ["batch", "--plan", out, "--range", "1-2"]),
        (1, ["inspect", windmill, blend, broken, "--verify"]),
        (1, ["check", windmill, blend, broken]),
        (1, ["building", blend, "--mod", out]),
        (0, ["formats"]),
        (2, ["convert", windmill]),
    ]
    for status, arguments in runs:
        done = run_script("--", *arguments, "--json")
        assert (done.status, arguments) == (status, arguments), done.err
        assert all(isinstance(entry, dict) for entry in done.entries)
        assert done.entries or status == 2
    assert {arguments[0] for _, arguments in runs} == set(COMMANDS)


@pytest.fixture
def blender():
    """Return a function that runs a real Blender: the one around this test, or that of BLENDER_EXECUTABLE."""
    bpy = sys.modules.get("bpy")
    executable = (bpy.app.binary_path if bpy else "") or os.environ.get("BLENDER_EXECUTABLE")
    if not executable:
        pytest.skip("no real Blender: BLENDER_EXECUTABLE is not set")

    def run(*arguments):
        command = [executable, "-b", "--factory-startup", *(str(argument) for argument in arguments)]
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=300,
        )

    return run


def test_script_in_a_real_blender_has_a_true_exit_status(blender, broken, tmp_path):
    failed = blender("--python", SCRIPT, "--", broken, tmp_path / "no.meshy")
    assert failed.returncode == 1
    assert f"{broken}: " in failed.stderr
    assert blender("--python", SCRIPT, "--", "nothing").returncode == 2
    assert blender("--python", SCRIPT).returncode == 2
    assert blender("--python", SCRIPT, "--", "formats").returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes streams")
@pytest.mark.parametrize(
    "closed",
    [
        *(pytest.param(one, marks=[pytest.mark.slow, pytest.mark.any_version]) for one in (">&-", "2>&-")),
        ">&- 2>&- <&-",
    ],
)
@pytest.mark.needs_bpy
@pytest.mark.needs_workers
def test_closed_streams_change_nothing(windmill, tmp_path, closed):
    """Blender prints to the first and second file descriptor, which must not be those of other files."""
    target = tmp_path / "out.glb"
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, str(SCRIPT), "--", str(windmill), str(target)]
    # Blender 5.2 sets this variable in this process, and prints a line to standard output in one that inherits it.
    environment = {name: value for name, value in os.environ.items() if name != "OCIO"}
    done = subprocess.run(command, check=False, capture_output=True, timeout=120, env=environment)
    said = b"" if closed.startswith(">&-") else f"{windmill} -> {target}".encode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(said) and bool(said) == bool(done.stdout)
    assert target.read_bytes().startswith(b"glTF")
