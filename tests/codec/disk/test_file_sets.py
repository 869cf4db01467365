"""Sets of files: whole or not at all, killed at every step, and what the next export says of one that was."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import oracle
import pytest
from meshferry.cli.batch import output_folder
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.format import OutputFile
from meshferry.io_formats.disk import file_sets
from meshferry.io_formats.disk.file_sets import write_outputs

ROOT = Path(__file__).resolve().parents[3]
POSIX = os.name == "posix"
NAMES = ("hut_LOD2.dae", "hut_PHYS.dae", "hut.dae")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def outputs(text: bytes, names: Sequence[str] = NAMES) -> list[OutputFile]:
    return [OutputFile(name, text + b" " + name.encode()) for name in names]


def expected(text: bytes, names: Sequence[str] = NAMES) -> dict[str, bytes]:
    return {output.name: output.data for output in outputs(text, names)}


def test_new_and_replaced_sets(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        assert file_sets.write_outputs(tmp_path / "hut.dae", outputs(text)) == []
        assert contents(tmp_path) == expected(text)
        assert len(list(tmp_path.iterdir())) == 3


def test_a_set_of_one_is_a_file(tmp_path: Path) -> None:
    assert write_outputs(str(tmp_path / "hut.dae"), outputs(b"one", ["other.dae"])) == []
    assert contents(tmp_path) == {"hut.dae": b"one other.dae"}


def test_the_chosen_file_is_called_as_chosen_and_the_others_end_alike(tmp_path: Path) -> None:
    """Who looks for ``hut_LOD2.DAE`` beside ``hut.DAE`` must find it where letter case counts."""
    members = [OutputFile("hut_LOD2.dae", b"1"), OutputFile("hut_wood.png", b"2"), OutputFile("hut.dae", b"3")]
    file_sets.write_outputs(tmp_path / "hut.DAE", members)
    assert contents(tmp_path) == {"hut.DAE": b"3", "hut_LOD2.DAE": b"1", "hut_wood.png": b"2"}


def test_the_chosen_file_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda one, other: (order.append(Path(other).name), real(one, other)))
    file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"one"))
    assert order == list(NAMES)


def test_copies(tmp_path: Path) -> None:
    source = tmp_path / "wood.png"
    source.write_bytes(b"x" * 3_000_000)
    folder = tmp_path / "out"
    folder.mkdir()
    members = [OutputFile("hut_wood.png", copy_of=source), OutputFile("hut.dae", b"new")]
    file_sets.write_outputs(folder / "hut.dae", members)
    assert contents(folder) == {"hut.dae": b"new", "hut_wood.png": source.read_bytes()}
    source.unlink()
    with pytest.raises(ExportError, match=r"wood\.png: the file cannot be copied to hut_wood\.png: No such file"):
        file_sets.write_outputs(folder / "hut.dae", [members[0], OutputFile("hut.dae", b"newer")])
    assert contents(folder)["hut.dae"] == b"new"
    assert len(list(folder.iterdir())) == 2


def test_a_copy_onto_itself_is_left_alone(tmp_path: Path) -> None:
    source = tmp_path / "wood.png"
    source.write_bytes(b"wood")
    before = source.stat()
    file_sets.write_outputs(tmp_path / "hut.dae", [OutputFile("wood.png", copy_of=source), OutputFile("hut.dae", b"")])
    assert source.read_bytes() == b"wood"
    assert source.stat().st_ino == before.st_ino
    assert source.stat().st_mtime_ns == before.st_mtime_ns


def test_a_later_time_of_change(tmp_path: Path) -> None:
    members = [OutputFile("hut.dae", b"1"), OutputFile("wood.png", b"2"), OutputFile("hut.slm", b"3", delay=2.0)]
    file_sets.write_outputs(tmp_path / "hut.slm", members)
    times = {path.name: path.stat().st_mtime for path in tmp_path.iterdir()}
    assert times["hut.slm"] - times["hut.dae"] == pytest.approx(2.0, abs=1e-3)
    assert times["wood.png"] == times["hut.dae"]


@pytest.mark.skipif(not POSIX, reason="rights of POSIX systems")
def test_rights_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    (tmp_path / "hut_LOD2.dae").write_bytes(b"")
    (tmp_path / "hut_LOD2.dae").chmod(0o664)
    mask = os.umask(0o027)
    try:
        file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"one"))
    finally:
        os.umask(mask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"hut_LOD2.dae": 0o664, "hut_PHYS.dae": 0o640, "hut.dae": 0o640}


@pytest.mark.skipif(not POSIX, reason="symbolic links need rights on Windows")
def test_links_stay_links(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "real.dae").write_bytes(b"old")
    (folder / "hut.dae").symlink_to(elsewhere / "real.dae")
    (folder / "hut_LOD2.dae").symlink_to(elsewhere / "later.dae")
    file_sets.write_outputs(folder / "hut.dae", outputs(b"new"))
    assert (folder / "hut.dae").is_symlink()
    assert contents(elsewhere) == {"later.dae": b"new hut_LOD2.dae", "real.dae": b"new hut.dae"}
    assert len(list(folder.iterdir())) == 3


# -- obsolete files -----------------------------------------------------------------------------


def _with_obsolete() -> list[OutputFile]:
    names = ("hut_PHYS.dae", "hut_LOD1.dae", "hut_LOD0.dae")
    chosen = OutputFile("hut.dae", b"<own> new", obsolete=names, own_mark=b"<own>")
    return [OutputFile("hut_LOD2.dae", b"<own> new"), chosen]


def test_files_of_an_earlier_export_are_removed_and_others_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hut_PHYS.DAE").write_bytes(b"<own> old")
    (tmp_path / "hut_LOD1.DAE").write_bytes(b"another program")
    there: list[bool] = []
    real = os.replace
    monkeypatch.setattr(
        os, "replace", lambda one, other: (there.append((tmp_path / "hut_PHYS.DAE").exists()), real(one, other))
    )
    said = file_sets.write_outputs(tmp_path / "hut.DAE", _with_obsolete())
    assert there == [True, False], "removed before the chosen file is new"
    assert contents(tmp_path) == {
        "hut.DAE": b"<own> new",
        "hut_LOD1.DAE": b"another program",
        "hut_LOD2.DAE": b"<own> new",
    }
    assert len(said) == 2
    assert said[0].startswith("hut_PHYS.DAE: removed")
    assert said[1].startswith("hut_LOD1.DAE: not of this export")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(not POSIX, reason="symbolic links need rights on Windows")
@pytest.mark.parametrize(
    ("link", "to", "is_refused"),
    [
        ("out/hut.dae", "victim/file", True),
        ("out/hut_LOD2.dae", "victim/file", True),
        ("out/hut_LOD2.dae", "victim/new", True),
        ("out/sub", "victim", True),
        ("out/hut.dae", "out/second", True),  # which leads out
        ("out/hut.dae", "out/kept", False),
        ("out/sub", "out/other", False),
        ("out/sub", "victim/back", False),
        ("link", "out", False),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_links_must_not_lead_out_of_the_given_folder(
    tmp_path: Path, link: str, to: str, count: int, *, is_refused: bool
) -> None:
    for folder in ("out/other", "victim"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("out/kept", "victim/file"):
        (tmp_path / file).write_bytes(b"precious")
    (tmp_path / "out" / "second").symlink_to(tmp_path / "victim" / "file")
    (tmp_path / "victim" / "back").symlink_to(tmp_path / "out" / "other")
    (tmp_path / link).symlink_to(tmp_path / to)
    within = tmp_path / ("link" if link == "link" else "out")
    path = within / ("sub/hut.dae" if link == "out/sub" else "hut.dae")
    files = outputs(b"new", NAMES[-count:])
    if is_refused and (count == 3 or "LOD2" not in link):
        with pytest.raises(ExportError, match="is a link that leads out of") as caught:
            write_outputs(path, files, within=within)
        assert str(caught.value).startswith(f"{tmp_path / link} is a link")
    else:
        write_outputs(path, files, within=within)
        assert path.read_bytes() == b"new hut.dae"
    assert sorted(file.name for file in (tmp_path / "victim").iterdir()) == ["back", "file"]
    assert (tmp_path / "victim" / "file").read_bytes() == b"precious"
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("wood.png", True),
        ("textures/wood.png", True),
        ("hut.wood.png", False),
        ("textures/hut.wood.png", False),
        ("hut/wood.png", False),
        (".hut.dae.written.json", False),
        ("Hut_2_wood.png", False),
    ],
)
def test_files_of_the_user_keep_the_names_of_companions(tmp_path: Path, name: str, *, is_kept: bool) -> None:
    chosen = OutputFile("hut.dae", b"new", own_prefix="Hut_2_")
    for _ in range(2):  # a new file is written, and again if its content is the same
        write_outputs(tmp_path / "hut.dae", [OutputFile(name, b"old"), chosen._replace(data=b"old")])
    (tmp_path / name).write_bytes(b"of the user")
    files = [OutputFile(name, b"new"), chosen]
    if is_kept:
        with pytest.raises(ExportError, match="exists with other content, and its name does not begin with 'hut'"):
            write_outputs(tmp_path / "hut.dae", files)
    else:
        write_outputs(tmp_path / "hut.dae", files)
    assert (tmp_path / name).read_bytes() == (b"of the user" if is_kept else b"new")
    assert (tmp_path / "hut.dae").read_bytes() == (b"old" if is_kept else b"new")


@pytest.mark.skipif(not POSIX, reason="symbolic links need rights on Windows")
def test_obsolete_links_stay(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"<own> old")
    (tmp_path / "hut_PHYS.dae").symlink_to(tmp_path / "elsewhere")
    assert len(file_sets.write_outputs(tmp_path / "hut.dae", _with_obsolete())) == 1
    assert (tmp_path / "hut_PHYS.dae").is_symlink()


def test_obsolete_files_come_back_if_the_chosen_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hut_PHYS.dae").write_bytes(b"<own> old")
    (tmp_path / "hut.dae").write_bytes(b"<own> old")
    before = contents(tmp_path)
    _failing(monkeypatch, "replace", 2, OSError(28, "No space left on device"))
    with pytest.raises(ExportError, match=r"hut\.dae: the file cannot be written"):
        file_sets.write_outputs(tmp_path / "hut.dae", _with_obsolete())
    assert contents(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == 2


def test_new_folders_are_removed_if_no_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [OutputFile("new/a.mesh", b"1"), OutputFile("there/b.mesh", b"2"), OutputFile("s.node", b"3")]
    (tmp_path / "there").mkdir()
    _failing(monkeypatch, "replace", 3, OSError(28, "No space left on device"))
    with pytest.raises(ExportError, match="No space left"):
        file_sets.write_outputs(tmp_path / "s.node", outputs)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
    monkeypatch.undo()
    file_sets.write_outputs(tmp_path / "s.node", outputs)
    assert (tmp_path / "new" / "a.mesh").read_bytes() == b"1"


# -- refusals -----------------------------------------------------------------------------------


def _failing(monkeypatch: pytest.MonkeyPatch, function: str, call: int, problem: BaseException) -> None:
    """Let a call of a function of ``os`` fail, once."""
    real: Callable[..., object] = getattr(os, function)
    count = 0

    def fails(*arguments: object, **more: object) -> object:
        nonlocal count
        count += 1
        if count == call:
            raise problem
        return real(*arguments, **more)

    monkeypatch.setattr(os, function, fails)


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("function", ["replace", "fsync"])
@pytest.mark.parametrize("has_links", [True, False])
def test_a_failure_at_any_step_leaves_all_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int, has_links: bool
) -> None:
    (tmp_path / "hut_LOD2.dae").write_bytes(b"old level")
    (tmp_path / "hut.dae").write_bytes(b"old")
    before = contents(tmp_path)
    if not has_links:

        def refuses(*_arguments: object) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", refuses)
    _failing(monkeypatch, function, call, OSError(28, "No space left on device"))
    with pytest.raises(ExportError, match="No space left on device") as caught:
        file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"new"))
    assert str(tmp_path) in str(caught.value)
    assert "already replaced" not in str(caught.value)
    assert contents(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == 2


def test_what_cannot_be_taken_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hut_LOD2.dae").write_bytes(b"old level")
    real = os.replace
    done: list[str] = []

    def twice(one: str, other: str) -> None:
        if len(done) >= 2:
            raise PermissionError(13, "Permission denied")
        done.append(other)
        real(one, other)

    monkeypatch.setattr(os, "replace", twice)
    with pytest.raises(ExportError, match=r"hut\.dae: .*Permission denied; .* already replaced: hut_LOD2\.dae$"):
        file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"new"))
    assert contents(tmp_path) == {"hut_LOD2.dae": b"new hut_LOD2.dae"}


def test_an_interruption_leaves_all_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"old"))
    _failing(monkeypatch, "replace", 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"new"))
    assert contents(tmp_path) == expected(b"old")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "hut_PHYS.dae").mkdir()
    (tmp_path / "hut.dae").write_bytes(b"old")
    with pytest.raises(ExportError, match=r"hut_PHYS\.dae: the file cannot be written: a folder has this name"):
        file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"new"))
    assert contents(tmp_path) == {"hut.dae": b"old"}


def test_two_outputs_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="two of them have this name"):
        file_sets.write_outputs(tmp_path / "hut.dae", [OutputFile("HUT.dae", b"1"), OutputFile("hut.dae", b"2")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_names_that_no_system_takes(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match="cannot be written"):
        file_sets.write_outputs(tmp_path / name, outputs(b"new"))
    assert not list(tmp_path.iterdir())


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"the folder does not exist: .*nowhere$"):
        file_sets.write_outputs(tmp_path / "nowhere" / "hut.dae", outputs(b"new"))


# -- kills --------------------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from load_package import load_package
load_package()
from meshferry.io_formats.disk import file_sets
from meshferry.io_formats.core.format import OutputFile

folder, step, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
events = ("open", "os.rename", "os.link", "os.mkdir", "os.chmod", "os.remove", "os.rmdir", "os.truncate")
seen = 0

def watch(event, arguments):
    global seen
    if event in events and str(folder) in (paths := " ".join(map(str, arguments))) and ".part" in paths:
        seen += 1
        if seen == step:
            os._exit(9)

sys.addaudithook(watch)
file_sets.write_outputs(folder / names[-1], [OutputFile(name, b"new " + name.encode()) for name in names])
"""


def _killed(folder: Path, step: int) -> bool:
    """Write a set in a process that dies at its n-th step on the temporary folder; tell whether it came to that."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(step), *NAMES],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=oracle.environment(),
        cwd=ROOT / "tests",
    )
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 9


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_whole_files_and_the_next_export_tells(tmp_path: Path) -> None:
    old = expected(b"old")
    old.pop("hut_PHYS.dae")  # one that is not there yet
    new = expected(b"new")
    states = set()
    step = 1
    while True:
        folder = tmp_path / str(step)
        folder.mkdir()
        for name, data in old.items():
            (folder / name).write_bytes(data)
        if not _killed(folder, step):
            break
        left = contents(folder)
        assert left.keys() <= new.keys()
        assert left.keys() >= old.keys()
        assert all(left[name] in (old.get(name), new[name]) for name in left)
        fresh = [name for name in NAMES if left.get(name) == new[name]]
        assert fresh == list(NAMES[: len(fresh)])  # the chosen file last
        states.add(len(fresh))
        # A folder without a plan may be another's, in the breath between making both.
        for leftover in folder.glob(".*.part"):
            os.utime(leftover, (0, 0))
        said = file_sets.write_outputs(folder / "hut.dae", outputs(b"next"))
        assert contents(folder) == expected(b"next")
        assert len(list(folder.iterdir())) == 3, f"leftovers after a kill at step {step}"
        if 0 < len(fresh) < 3:
            assert len(said) == 1
            assert "The last export of 'hut.dae' was interrupted" in said[0]
            assert f"from it: {', '.join(fresh)}" in said[0]
            assert "all are replaced now" in said[0]
            assert ("missing: hut_PHYS.dae" in said[0]) == (len(fresh) == 1)
            assert said[0].count("older: hut.dae") == 1
        else:
            assert said == []
        assert file_sets.write_outputs(folder / "hut.dae", outputs(b"again")) == []
        step += 1
    assert contents(folder) == new
    assert states == {0, 1, 2, 3}


_steps = [1]
"""The last one is the first step that is not known to come before the first rename."""


def _half_renamed(folder: Path) -> None:
    """Make what a kill between two renames leaves."""
    file_sets.write_outputs(folder / "hut.dae", outputs(b"old"))
    while contents(folder)["hut_LOD2.dae"] == b"old hut_LOD2.dae":
        for leftover in folder.glob(".*.part"):
            shutil.rmtree(leftover)
        assert _killed(folder, _steps[-1])
        _steps.append(_steps[-1] + 1)
    _steps.pop()


def test_files_that_the_next_export_does_not_write_are_named(tmp_path: Path) -> None:
    _half_renamed(tmp_path)
    said = file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"one", ["hut.dae"]))
    assert len(said) == 1
    assert said[0].endswith("not replaced now: hut_LOD2.dae, hut_PHYS.dae")


def test_a_failed_export_keeps_what_is_known_of_the_interrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _half_renamed(tmp_path)
    with monkeypatch.context() as patch:
        _failing(patch, "fsync", 1, OSError(28, "No space left on device"))
        with pytest.raises(ExportError):
            file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"one"))
    assert len(file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"two"))) == 1


def test_another_files_export_is_not_told(tmp_path: Path) -> None:
    _half_renamed(tmp_path)
    assert file_sets.write_outputs(tmp_path / "hut.dae.dae", outputs(b"one", ["a.dae", "hut.dae.dae"])) == []
    assert len(file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"two"))) == 1


@pytest.mark.skipif(not POSIX, reason="another lock on Windows")
def test_an_export_that_is_going_on_is_left_alone(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / ".meshferry-abcdefgh.part"
    folder.mkdir()
    (folder / "1").write_bytes(b"other")
    with (folder / "meshferry-plan.json").open("w") as plan:
        fcntl.flock(plan, fcntl.LOCK_EX)
        members = [["hut_LOD2.dae", str(folder / "0")], ["hut.dae", str(folder / "1")]]
        plan.write(json.dumps({"chosen": "hut.dae", "members": members}))
        plan.flush()
        program = (
            "import sys; from pathlib import Path; from load_package import load_package; load_package();"
            "from meshferry.io_formats.disk import file_sets;"
            "from meshferry.io_formats.core.format import OutputFile;"
            "print(file_sets.write_outputs(Path(sys.argv[1]), [OutputFile('a', b''), OutputFile('hut.dae', b'')]))"
        )
        arguments = [sys.executable, "-c", program, str(tmp_path / "hut.dae")]
        done = subprocess.run(
            arguments,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env=oracle.environment(),
            cwd=ROOT / "tests",
        )
        assert done.stdout.strip() == "[]"
        assert folder.is_dir()
    assert len(file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"two"))) == 1
    assert not folder.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"chosen": 3}',
        '{"chosen": "hut.dae", "members": [1]}',
        '{"chosen": "hut.dae", "members": [[]]}',
        '{"chosen": "hut.dae", "members": [["a", 1]]}',
        '{"chosen": "hut.dae", "members": [["a", "\\u0000"]]}',
        "[" * 100_000,
    ],
)
def test_a_plan_that_makes_no_sense_stops_nothing(tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".meshferry-abcdefgh.part"
    folder.mkdir()
    (folder / "meshferry-plan.json").write_text(text)
    assert file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"one")) == []
    assert contents(tmp_path) == expected(b"one")


@pytest.mark.skipif(not POSIX, reason="links need a privilege")
def test_a_planted_plan_removes_nothing_but_files_with_names_of_this_module(tmp_path: Path) -> None:
    folder, textures, elsewhere = tmp_path / "out", tmp_path / "out" / "textures", tmp_path / "elsewhere"
    staging = folder / ".meshferry-abcdefgh.part"
    for each in (staging / "below", textures, elsewhere):
        each.mkdir(parents=True)
    name = ".wood.meshferry-01234567.part"
    kept = [elsewhere / "download.zip.part", elsewhere / name, folder / "download.zip.part", folder / "0"]
    kept += [staging / "mine.txt", staging / "below" / "0"]
    gone = [folder / name, textures / name, staging / "0", staging / "1.old"]
    for path in (*kept, *gone):
        path.write_bytes(b"content")
    (folder / "link").symlink_to(elsewhere)
    members = [["x", str(path)] for path in (*kept, *gone, folder / "link" / name, staging / ".." / ".." / "elsewhere")]
    (staging / "meshferry-plan.json").write_text(json.dumps({"chosen": "hut.dae", "members": members}))
    file_sets.write_outputs(folder / "hut.dae", outputs(b"one"))
    assert [path for path in kept if not path.exists()] == []
    assert [path for path in gone if path.exists()] == []
    assert contents(folder).keys() == {*NAMES, "download.zip.part", "0"}


@pytest.mark.skipif(not POSIX, reason="no FIFOs, and links need a privilege")
@pytest.mark.parametrize("is_removed_by", ["export", "batch"])
@pytest.mark.parametrize("kind", ["no mark", "link", "fifo", "linked plan"])
def test_a_folder_without_a_plan_of_this_version_is_left_alone(tmp_path: Path, kind: str, is_removed_by: str) -> None:
    folder, real = tmp_path / ".meshferry-abcdefgh.part", tmp_path / "elsewhere"
    real.mkdir()
    plan = real / ("plan.json" if kind in {"no mark", "linked plan"} else "meshferry-plan.json")
    plan.write_text(json.dumps({"chosen": "hut.dae", "members": []}))
    (real / "0").write_bytes(b"content")
    if kind == "link":
        folder.symlink_to(real)
    else:
        shutil.copytree(real, folder)
    if kind == "fifo":
        (folder / plan.name).unlink()
        os.mkfifo(folder / plan.name)
    if kind == "linked plan":
        (folder / "meshferry-plan.json").symlink_to(plan)
    os.utime(folder, (0, 0))
    if is_removed_by == "batch":
        output_folder.remove_leftovers(tmp_path)
    else:
        assert file_sets.write_outputs(tmp_path / "hut.dae", outputs(b"one")) == []
    assert (folder / "0").read_bytes() == b"content"
