"""``meshferry batch`` as people and programs meet it: what is refused, said, printed as JSON, and how runs go on."""

import argparse
import contextlib
import dataclasses
import errno
import io
import json
import os
import re
import shutil
import sqlite3
import struct
import sys
from pathlib import Path

import pytest
from batch_stand_ins import PretendedWorkers
from meshferry.cli.batch import progress, runner, shard
from meshferry.cli.batch.progress import Summary
from meshferry.cli.batch.state import locked
from meshferry.cli.batch.tasks import DISK_FULL, Result, Status, Task, TaskKind
from meshferry.cli.conversions import conversion_arguments
from meshferry.cli.conversions.settings import Settings
from meshferry.io_formats.core.errors import MeshferryError
from outputs import names_in

pytest.importorskip("rich")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, and links need a privilege")


@pytest.fixture
def library(tmp_path):
    """Return a folder of five files whose content is never read."""
    folder = tmp_path / "library"
    for name in (
        "a.timbermesh",
        "b.timbermesh",
        "props/c.timbermesh",
        "props/d.timbermesh",
        "props/[bold]e.timbermesh",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def pretend(monkeypatch):
    """Let pretended workers do the work; return what decides the fate of tasks, by the name of the source."""
    fates = {}

    def fate(loaded):
        found = fates.get(loaded.task.path.rpartition("/")[2])
        if isinstance(found, BaseException):
            raise found
        if isinstance(found, Result):
            return dataclasses.replace(found, task=loaded.task, kind=loaded.kind)
        if loaded.kind is TaskKind.PICTURE:
            return Result(loaded.task, Status.DONE, kind=loaded.kind)
        return None

    def local_pool(arguments, plan, output, processes=()):
        return PretendedWorkers(output, fate)

    monkeypatch.setattr(runner, "local_pool", local_pool)
    monkeypatch.setattr(shard, "local_pool", local_pool)
    return fates


def failed(error, ended=Status.FAILED, **more):
    return Result(Task(0, 0, "", "", "", 0, 0), ended, error=error, **more)


def test_the_tree_is_kept_and_the_end_is_said_in_plain_words(meshferry, library, pretend, tmp_path):
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out")
    assert (result.status, result.err) == (0, "")
    assert [name for name in names_in(tmp_path / "out") if "meshferry-batch" not in name] == [
        "a.blend",
        "b.blend",
        "props/[bold]e.blend",
        "props/c.blend",
        "props/d.blend",
    ]
    speed = r"[\d,.]+ files a (second|minute)(; [\d.]+ m?s in all)?"
    assert re.match(rf"Converted 5 of 5 files in [\d.]+ m?s, {speed}\n", result.out)
    assert "\x1b" not in result.out and result.out.isascii()
    assert "props/[bold]e.timbermesh" in result.out, "names are not parsed as markup"
    assert str(tmp_path / "out" / "meshferry-batch" / "journal.jsonl") in result.out


def test_what_a_killed_run_left_is_gone_after_the_next(meshferry, library, pretend, tmp_path):
    left = tmp_path / "out" / "props" / ".c.meshferry-0123abcd.part.blend"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a file")
    assert meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out").status == 0
    assert not left.exists()


COMMANDS = ("batch", "dry run", "continue", "shard")
KINDS = ("link", "FIFO", "folder")
STATE_FILES = ("journal.jsonl", "journal.jsonl.lock", "plan.sqlite", "shards/1-2~1.jsonl", "shards/1-2~1.jsonl.lock")


def run_planted(meshferry, library, out, command, plant):
    """Plant something in the state of an output folder, which is new or that of an earlier run; run a command there."""
    run = ("batch", library, "--to", "blend", "-o", out)
    if command in {"continue", "shard"}:
        meshferry(*run)
    plant()
    before = {path: path.lstat().st_mtime_ns for path in out.rglob("*")}
    if command == "shard":
        result = meshferry("batch", "--plan", out, "--range", "1-2")
    else:
        result = meshferry(*run, *(["--dry-run"] if command == "dry run" else []))
    if command == "dry run":
        assert {path: path.lstat().st_mtime_ns for path in out.rglob("*")} == before
    return result


@POSIX
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in ("", "projects", "shards", "pictures", "report.html") for kind in KINDS[:2]]
    + [(name, kind) for name in STATE_FILES for kind in KINDS],
)
def test_nothing_but_own_files_is_accepted_in_the_state(meshferry, library, pretend, tmp_path, name, kind, command):
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "out" / "meshferry-batch" / name
    (elsewhere / "sub").mkdir(parents=True)
    (elsewhere / "sub" / "1-2~1.jsonl").write_text("keep")
    (elsewhere / "file").write_text("keep")
    before = names_in(elsewhere)

    def plant():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.rename(tmp_path / "moved")
        if name.endswith(".lock") and "shards" in name:
            path.with_suffix("").write_text("")
        if kind == "link":
            path.symlink_to(elsewhere / ("file" if "." in name else "sub"))
        else:
            (os.mkfifo if kind == "FIFO" else os.mkdir)(path)

    result = run_planted(meshferry, library, tmp_path / "out", command, plant)
    assert names_in(elsewhere) == before and (elsewhere / "file").read_text() == "keep"
    if command == "dry run" and name.startswith("shards/"):
        assert result.status == 0
    else:
        assert result.status == 2 and result.out == "" and result.err.count("\n") == 1
        assert result.err.startswith(str(path)) and re.search(
            f"is a {kind}|not a regular file|Is a directory", result.err
        )


def plant_super_journal(path, victim):
    """Write the journal of an interrupted transaction beside a database: opening that would delete a third file."""
    pages, name, magic = path.stat().st_size // 4096, os.fsencode(victim), bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 0, pages, 512, 4096)
    record = struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">2I", len(name), sum(name)) + magic
    Path(f"{path}-journal").write_bytes(header.ljust(512, b"\0") + record)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["state.sqlite", "plan.sqlite", "plan.sqlite.new"])
def test_planted_databases_have_no_effect(meshferry, library, pretend, tmp_path, name, command):
    """Each with a journal that deletes a file, a log and its index; those that are not rewritten have an endless view.

    SQLite ignores Ctrl+C while it executes a statement.
    """
    victim, path = tmp_path / "victim", tmp_path / "out" / "meshferry-batch" / name
    victim.write_text("precious")
    endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    planted = {}

    def plant():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with contextlib.closing(sqlite3.connect(path)) as database:
                for view in ("results", "head", "tasks"):
                    database.execute(f"CREATE VIEW {view} AS {endless}")
        plant_super_journal(path, victim)
        shutil.copy(path, f"{path}-wal")
        Path(f"{path}-shm").write_bytes(bytes(32768))
        kept = [path.name] * (name != "plan.sqlite") + [f"{path.name}-{end}" for end in ("journal", "wal", "shm")]
        planted.update({other: path.with_name(other).read_bytes() for other in kept})

    result = run_planted(meshferry, library, tmp_path / "out", command, plant)
    assert (result.status, result.err) == (0, "")
    assert victim.read_text() == "precious"
    assert {other: path.with_name(other).read_bytes() for other in planted} == planted


@pytest.mark.parametrize("options", [(), ("--report",), ("--dry-run",), ("--quiet", "--json")])
def test_a_number_out_of_range_in_the_journal_is_named(meshferry, library, pretend, tmp_path, options):
    run = ("batch", library, "--to", "blend", "-o", tmp_path / "out")
    meshferry(*run)
    path = tmp_path / "out" / "meshferry-batch" / "journal.jsonl"
    path.write_bytes(re.sub(b'"seconds":0.5', b'"seconds":1' + b"0" * 400, path.read_bytes(), count=1))
    result = meshferry(*run, *options)
    reason = "1 damaged line was ignored; the first is at byte {}: the number 'seconds' is out of range"
    assert result.status == 0 and result.err == f"{path}: {reason.format(len(path.read_bytes().splitlines()[0]) + 1)}\n"
    if "--dry-run" not in options:
        assert meshferry(*run).err == "" and len(path.read_bytes().splitlines()) == 6


def test_a_planted_plan_with_other_tables_is_refused(meshferry, library, pretend, tmp_path):
    """A shard opens the plan that it finds; as a view, its tasks might never end."""

    def plant():
        with contextlib.closing(sqlite3.connect(tmp_path / "out" / "meshferry-batch" / "plan.sqlite")) as plan:
            plan.executescript("ALTER TABLE tasks RENAME TO t; CREATE VIEW tasks AS SELECT * FROM t")

    result = run_planted(meshferry, library, tmp_path / "out", "shard", plant)
    assert result.status == 2 and "This is not a plan of a batch" in result.err


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("", "The folder after -o is empty"),
        pytest.param(
            "a/" * 2100,
            "a/…: the folder cannot be used: ",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="for Windows, a path that is too long is missing"),
        ),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_output_folder_that_cannot_be_is_refused(meshferry, library, tmp_path, monkeypatch, folder, said, options):
    monkeypatch.chdir(tmp_path)
    before = names_in(tmp_path)
    result = meshferry("batch", library, "--to", "blend", "-o", folder, *options)
    assert result.status == 2 and said in result.err and "Unexpected" not in result.err
    assert names_in(tmp_path) == before


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_file_of_the_kind_to_write_is_refused(meshferry, library, tmp_path, options):
    (library / "a.BLEND").write_bytes(b"")
    result = meshferry("batch", library, library / "a.BLEND", "--to", "blend", "-o", tmp_path / "out", *options)
    assert result.status == 2 and result.err == f"{library / 'a.BLEND'} is a .blend file already\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("is_in_file", [True, False])
def test_sources_that_begin_with_a_hyphen(meshferry, pretend, tmp_path, monkeypatch, is_in_file):
    names = ["-o", "--to", "--", "plain"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"x{name}.timbermesh").write_bytes(name.encode())
    (tmp_path / "options.json").write_text(json.dumps({"sources": names}))
    monkeypatch.chdir(tmp_path)
    options = ["--to", "blend", "-o", "out", *(["--options=options.json"] if is_in_file else [])]
    given = options if is_in_file else ["plain", *options, "--", "-o", "--to", "--"]
    result = meshferry("batch", *given, "--dry-run") if is_in_file else meshferry("batch", "--dry-run", *given)
    assert (result.status, result.err) == (0, "")
    assert sorted(line.split()[0] for line in result.out.splitlines()[:-1]) == sorted(
        os.path.join(tmp_path, name, f"x{name}.timbermesh") for name in names
    )


def test_a_second_run_has_nothing_to_do(meshferry, library, pretend, tmp_path):
    command = ("batch", library, "--to", "blend", "-o", tmp_path / "out")
    meshferry(*command)
    pretend["a.timbermesh"] = AssertionError("no worker should be asked")
    result = meshferry(*command)
    assert result.status == 0 and result.out.startswith("Nothing was to do for 5 files\n")


def test_failures_are_said_at_once_and_grouped_at_the_end(meshferry, library, pretend, tmp_path):
    pretend["a.timbermesh"] = failed("It ends early (at byte 12)", error_cause="It ends early")
    pretend["b.timbermesh"] = failed("It ends early (at byte 1,200)", error_cause="It ends early")
    pretend["c.timbermesh"] = failed("SIGSEGV, a segmentation fault", Status.CRASHED)
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out")
    assert result.status == 1
    assert result.err.splitlines() == [
        f"{library / 'a.timbermesh'}: It ends early (at byte 12)",
        f"{library / 'b.timbermesh'}: It ends early (at byte 1,200)",
        f"{library / 'props' / 'c.timbermesh'}: SIGSEGV, a segmentation fault",
    ]
    assert "Converted 2 of 5 files" in result.out
    assert re.search(r"^ *2  It ends early \(at byte 12\) +a\.timbermesh$", result.out, re.MULTILINE)
    assert re.search(r"^ *1  crashed +in quarantine$", result.out, re.MULTILINE)
    assert re.search(r"^ *props/c\.timbermesh +SIGSEGV, a segmentation fault$", result.out, re.MULTILINE)


def test_programs_get_an_object_a_file_and_a_summary(meshferry, library, pretend, tmp_path):
    out = tmp_path / "out"
    pretend["b.timbermesh"] = failed("It is not a mesh")
    result = meshferry("batch", library, "--to", "blend", "-o", out, "--json")
    *files, last = result.entries
    assert len(files) == 5 and result.status == 1
    (good,) = (entry for entry in files if entry["input"].endswith("a.timbermesh"))
    assert good.pop("seconds") == 0.5
    assert good == {
        "input": str(library / "a.timbermesh"),
        "output": str(out / "a.blend"),
        "result": "done",
        "files": [str(out / "a.blend")],
        "facts": {"triangles": 12},
        "warnings": ["Roof: no UV layer"],
        "messages": [
            {
                "code": "any-loss",
                "kind": "loss",
                "text": "Roof: no UV layer",
                "item": "Roof",
                "about": ["Roof"],
                "subjects": [{"kind": "object", "name": "Roof"}],
            }
        ],
    }
    (bad,) = (entry for entry in files if entry["result"] == "failed")
    assert bad["error"] == "It is not a mesh" and bad["input"] == str(library / "b.timbermesh")
    summary = last["summary"]
    assert {key: summary[key] for key in ("files", "done", "failed", "skipped", "left")} == {
        "files": 5,
        "done": 4,
        "failed": 1,
        "skipped": 0,
        "left": 0,
    }
    assert summary["causes"] == [{"error": "It is not a mesh", "count": 1, "first": "b.timbermesh"}]
    again = meshferry("batch", library, "--to", "blend", "-o", out, "--json").entries
    assert [entry.get("result") for entry in again].count("skipped") == 4


def test_quiet_runs_say_failures_alone(meshferry, library, pretend, tmp_path):
    pretend["b.timbermesh"] = failed("It is not a mesh")
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out", "--quiet")
    assert (result.status, result.out) == (1, "")
    assert result.err == f"{library / 'b.timbermesh'}: It is not a mesh\n"


def test_ctrl_c_ends_tidily_and_the_same_command_goes_on(meshferry, library, pretend, tmp_path):
    command = ("batch", library, "--to", "blend", "-o", tmp_path / "out")
    pretend["c.timbermesh"] = KeyboardInterrupt()
    result = meshferry(*command)
    assert result.status == 130
    assert result.err.splitlines() == ["Finished files are kept; run the same command again to continue", "Interrupted"]
    assert re.search(r"^ *\d  left +run the same command again to convert them$", result.out, re.MULTILINE)
    del pretend["c.timbermesh"]
    again = meshferry(*command, "--json")
    assert again.status == 0 and again.entries[-1]["summary"]["skipped"] >= 1
    assert again.entries[-1]["summary"]["skipped"] + again.entries[-1]["summary"]["done"] == 5


@pytest.mark.parametrize(("first", "status"), [("a.timbermesh", 2), ("d.timbermesh", 1)])
def test_without_workers_or_room_the_run_ends_in_one_sentence(meshferry, library, pretend, tmp_path, first, status):
    pretend[first] = MeshferryError("No worker starts: there is no Blender")
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out")
    assert (result.status, result.err) == (status, "No worker starts: there is no Blender\n")
    assert bool(result.out) == (status == 1)


def test_a_full_disk_is_no_failure_of_each_file(meshferry, library, pretend, tmp_path):
    pretend["b.timbermesh"] = failed(f"The file cannot be written: {os.strerror(errno.ENOSPC)}", error_code=DISK_FULL)
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out")
    assert result.status == 1 and result.err.splitlines()[-1].endswith(
        "the disk is full; make room and run the same command again"
    )
    assert "left" in result.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "blend", "-o", "OUT"], "There is nothing to convert: give files"),
        (["LIBRARY", "-o", "OUT"], "Give the type of the files to write with --to EXTENSION"),
        (["LIBRARY", "--to", "blend"], "Give the folder to write into with -o FOLDER"),
        (["LIBRARY", "--to", "gif", "-o", "OUT"], "Nothing here writes '.gif' files"),
        (["LIBRARY", "--to", "blend", "-o", "FILE"], "is a file, not a folder"),
        (["LIBRARY", "LIBRARY/../other", "--to", "blend", "-o", "OUT"], "a.timbermesh"),
        (["--to", "blend", "-o", "OUT", "--report", "LIBRARY"], "is not an .html file"),
        (["LIBRARY", "--to", "blend", "-o", "OUT", "--jobs", "0"], "is not a number from 1 on"),
        (["LIBRARY", "--to", "blend", "-o", "OUT", "--time-limit", "nan"], "is not a number from 0 on"),
        (["LIBRARY", "--to", "blend", "-o", "OUT", "--options", "NONE"], "NONE"),
        (["LIBRARY", "--to", "blend", "-o", "OUT", "--options"], "--options: expected one argument"),
        (["LIBRARY", "--to", "blend", "-o", "OUT", "--wled"], "--wled"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    meshferry, library, pretend, tmp_path, arguments, said
):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.timbermesh").write_bytes(b"the same name")
    (tmp_path / "file").write_bytes(b"x")
    names = {"LIBRARY": str(library), "OUT": str(tmp_path / "out"), "FILE": str(tmp_path / "file")}
    spelt = [re.sub("LIBRARY|OUT|FILE", lambda found: names[found[0]], text) for text in arguments]
    before = names_in(tmp_path)
    result = meshferry("batch", *spelt)
    assert result.status == 2 and said in result.err and "Traceback" not in result.err
    assert names_in(tmp_path) == before and not (tmp_path / "out").exists()


def test_what_cannot_be_searched_is_said_and_the_rest_goes_on(meshferry, library, pretend, tmp_path):
    result = meshferry("batch", library, tmp_path / "*.none", "--to", "blend", "-o", tmp_path / "out")
    assert result.status == 1 and "*.none" in result.err
    assert "Converted 5 of 5 files" in result.out and "could not be searched" in result.out


def test_a_dry_run_lists_the_files_and_writes_nothing(meshferry, library, pretend, tmp_path):
    out = tmp_path / "out"
    command = ("batch", library, "--to", "blend", "-o", out)
    before = names_in(tmp_path)
    first = meshferry(*command, "--dry-run")
    assert first.status == 0 and first.out.splitlines()[-1] == "5 files to convert"
    assert f"{library / 'props' / 'c.timbermesh'} would become {out / 'props' / 'c.blend'}" in first.out.splitlines()
    assert names_in(tmp_path) == before and not out.exists()
    meshferry(*command)
    (out / "b.blend").unlink()
    before = {path: (tmp_path / path).read_bytes() for path in names_in(tmp_path)}
    (entry,) = meshferry(*command, "--dry-run", "--json").entries
    assert entry == {"input": str(library / "b.timbermesh"), "output": str(out / "b.blend"), "dry_run": True}
    assert meshferry(*command, "--dry-run").out.splitlines()[-1] == "1 file to convert; 4 done before"
    assert {path: (tmp_path / path).read_bytes() for path in names_in(tmp_path)} == before


def test_two_runs_on_one_folder_refuse_in_words(meshferry, library, pretend, tmp_path):
    with locked(tmp_path / "out"):
        result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out")
    assert result.status == 2 and "another batch is writing to this folder" in result.err


def test_without_rich_a_terminal_gets_lines(meshferry, library, pretend, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr("meshferry.cli.batch.progress._is_terminal", lambda _stream: True)
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out")
    assert result.status == 0, result.err
    assert result.out.startswith("Converted 5 of 5 files")


def test_options_may_stand_in_a_file_and_the_command_line_wins(meshferry, library, pretend, tmp_path):
    options = tmp_path / "nightly.toml"
    options.write_text(
        f'sources = ["{library.as_posix()}"]\nto = "blend"\noutput = "{(tmp_path / "one").as_posix()}"\nmatch = "a*"\n'
    )
    assert meshferry("batch", "--options", options).status == 0
    assert meshferry("batch", "--options", options, "-o", tmp_path / "two").status == 0
    (second := tmp_path / "second.json").write_text(json.dumps({"output": str(tmp_path / "three"), "skip": ["b*"]}))
    assert meshferry("batch", f"--options={options}", "--options", second).status == 0
    for name in ("one", "two", "three"):
        assert [path.name for path in (tmp_path / name).glob("*.blend")] == ["a.blend"]
    options.write_text('too = "blend"\n')
    refused = meshferry("batch", "--options", options)
    assert refused.status == 2 and f"{options}: there is no option 'too'" in refused.err


def test_a_changed_option_does_everything_again_however_it_is_spelt(meshferry, library, pretend, tmp_path):
    command = ("batch", library, "--to", "blend", "-o", tmp_path / "out", "--json")
    done = [
        meshferry(*command, *options).entries[-1]["summary"]["done"]
        for options in (["--weld", "--strict"], ["--strict", "--weld"], ["--no-weld", "--strict"])
    ]
    assert done == [5, 0, 5]


def test_options_without_effect_are_named(meshferry, library, pretend, tmp_path):
    command = ("batch", library, "--to", "blend", "-o", tmp_path / "out", "--weld", "-q", "-j", "1")
    done = meshferry(*(text for text in command if text != "-q"), "--collection", "x")
    assert (done.status, done.err) == (0, "batch: warning: --collection has no effect when writing .blend files\n")
    done = meshferry(*command, "--mesh-version", "ms12", "--mesh-files", "joined")
    text = "'--mesh-version', '--mesh-files' have no effect when writing Blender files; leave them out\n"
    assert (done.status, done.out, done.err) == (2, "", text)
    assert meshferry(*command).status == 0
    options = tmp_path / "options.toml"
    options.write_text('mesh-version = "ms12"\n', encoding="utf-8")
    done = meshferry(*(text for text in command if text != "-q"), "--options", options)
    assert done.status == 0 and "batch: warning: --mesh-version has no effect" in done.err


def test_the_library_of_materials_is_never_written_over(meshferry, library, pretend, tmp_path):
    materials = tmp_path / "out" / "props" / "c.blend"
    materials.parent.mkdir(parents=True)
    materials.write_bytes(b"materials")
    result = meshferry("batch", library, "--to", "blend", "-o", tmp_path / "out", "--material-library", materials)
    assert result.status == 2 and f"would overwrite the material library {materials}" in result.err
    assert materials.read_bytes() == b"materials"


def test_a_report_is_written_where_it_is_asked_for(meshferry, library, pretend, tmp_path):
    pretend["b.timbermesh"] = failed("It is not a mesh")
    command = ("batch", library, "--to", "blend", "-o", tmp_path / "out")
    said = meshferry(*command, "--report")
    page = tmp_path / "out" / "meshferry-batch" / "report.html"
    assert f"Report: {page}" in said.out
    text = page.read_text(encoding="utf-8")
    assert all(name in text for name in ("a.timbermesh", "d.timbermesh", "[bold]e.timbermesh", "It is not a mesh"))
    meshferry(*command, "--report", tmp_path / "other.html")
    assert (tmp_path / "other.html").is_file()


def test_where_there_is_no_terminal_a_line_comes_now_and_then(meshferry, library, pretend, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    command = ("batch", library, "--to", "blend", "-o", tmp_path / "out")
    said = meshferry(*command).err
    assert "finding: 5 files so far\n" in said and re.search(r"^converting: 3 of 5 files, .* left$", said, re.MULTILINE)
    assert "\x1b" not in said and "\r" not in said
    assert meshferry(*command, "--checksum", "--quiet").err == ""


class Terminal(io.StringIO):
    """Text stream that claims to be a terminal."""

    def __init__(self, encoding):
        super().__init__()
        self.characters = encoding

    @property
    def encoding(self):
        return self.characters

    def isatty(self):
        return True


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_on_a_terminal_a_bar_turns_out_of_the_way_of_records(library, pretend, tmp_path, monkeypatch, encoding):
    from meshferry.cli.main import main

    monkeypatch.setenv("TERM", "xterm-256color")
    pretend["b.timbermesh"] = failed("It is not a mesh")
    shown, printed = Terminal(encoding), io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdout", printed)
    assert main(["batch", str(library), "--to", "blend", "-o", str(tmp_path / "out"), "--json"]) == 1
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.getvalue())
    assert "converting" in plain and "5/5" in plain and "1 failed" in plain
    assert "It is not a mesh" in plain
    assert not re.search(r"finding[^\r\n]*\n[^\r\n]*converting", plain), "one bar at a time"
    *records, last = [json.loads(line) for line in printed.getvalue().splitlines()]
    assert len(records) == 5 and last["summary"]["done"] == 4
    assert shown.getvalue().count("\x1b[?25l") == shown.getvalue().count("\x1b[?25h"), "the cursor comes back"
    assert encoding == "utf-8" or shown.getvalue().isascii()


def accepted(action):
    """Return a value, other than most defaults, that an option takes."""
    if action.metavar.startswith("{"):
        return action.metavar.strip("{}").split(",")[-1]
    if action.metavar != "N":
        return "-some thing, with 'signs'"
    for text in ("0.0625", "3", "1", "128"):
        with contextlib.suppress(argparse.ArgumentTypeError):
            action.type(text)
            return text
    raise AssertionError(action.option_strings)


def test_every_option_of_a_conversion_comes_back_as_an_argument():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    conversion_arguments.add_conversion_arguments(parser)
    parser.add_argument("--to")
    given = [["--to=blend"], ["--strict"], ["--collection=-odd name"], ["--rename-clip", "a=b=c"], ["--no-mounts"]]
    given.append([f"--files-from={Path(__file__).parent}"])
    for action in parser._actions:
        if action.dest.startswith("option:"):
            flag = action.option_strings[-1]  # of switches, the one with --no-
            given.append([flag] if action.nargs == 0 else [f"{flag}={accepted(action)}"])
    arguments = parser.parse_args([text for group in given for text in group])
    settings = conversion_arguments.settings_of(vars(arguments))
    spelt = settings.spelled()
    again = parser.parse_args([*given[0], *spelt])
    assert vars(again) == vars(arguments) and len(vars(arguments)) == len(given) > 40
    assert conversion_arguments.settings_of(vars(again)) == settings
    assert Settings(**json.loads(json.dumps(dataclasses.asdict(settings)))).spelled() == spelt
    turned = parser.parse_args([text for group in given[::-1] for text in group])
    assert conversion_arguments.settings_of(vars(turned)).spelled() == spelt


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0154, "15 ms"),
        (0.9999, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (3599.6, "1 h 0 min"),
        (3900, "1 h 5 min"),
    ],
)
def test_times_are_said_as_people_say_them(seconds, text):
    assert progress.time_text(seconds) == text


def test_long_lists_are_cut_in_words(tmp_path):
    totals = Summary(60, 61.0, tmp_path / "journal.jsonl")
    for number in range(30):
        task = Task(number, 0, f"{number}.mesh", "", f"{number}.blend", 1, 1)
        totals.add(Result(task, Status.FAILED, error="Cause " + "x" * number))
        totals.add(Result(task, Status.TIMED_OUT, error="It took longer than 600 s"))
    text = totals.text()
    assert "and 20 other causes" in text and "and 10 more files" in text
    assert "Converted 0 of 60 files in 1 min 1 s, 59.0 files a minute\n" in text
    totals.converting = 20.0
    text = totals.text()
    assert "Converted 0 of 60 files in 20.0 s, 3.0 files a second; 1 min 1 s in all\n" in text


@pytest.mark.slow
@pytest.mark.needs_workers
def test_a_real_batch_goes_on_with_what_is_new_changed_or_failed(meshferry, write_windmill, tmp_path):
    library, out = tmp_path / "library", tmp_path / "out"
    for number in range(18):
        write_windmill(f"library/{number % 3}/mill{number}.timbermesh")
    (library / "broken.timbermesh").write_bytes(b"no mesh at all")
    listed = tmp_path / "list.txt"
    listed.write_text(f"{library}\n{library / 'missing.timbermesh'}\n")
    command = ("batch", "--list", listed, "--base", library, "--to", "mesh", "-o", out, "--jobs", "1", "--json")
    command += ("--mesh-files", "joined")

    def run(*options):
        result = meshferry(*command, *options)
        *entries, last = result.entries
        results = {os.path.relpath(entry["input"], library): entry["result"] for entry in entries}
        counts = {key: last["summary"][key] for key in ("done", "unchanged", "failed", "skipped")}
        return result, {name for name, ended in results.items() if ended == "done"}, counts

    def counted(done=0, unchanged=0, skipped=0):
        return {"done": done, "unchanged": unchanged, "failed": 2, "skipped": skipped}

    first, done, counts = run()
    assert first.status == 1 and len(done) == 18 and counts == counted(done=18)
    assert f"{library / 'missing.timbermesh'}: " in first.err and f"{library / 'broken.timbermesh'}: " in first.err
    outputs = {path: path.read_bytes() for path in out.rglob("*.mesh")}
    assert len(outputs) == 18 and out / "0" / "mill0.mesh" in outputs
    journal = (out / "meshferry-batch" / "journal.jsonl").read_text().splitlines()
    assert len(journal) == 21 and sorted(json.loads(line).get("result", "") for line in journal)[1:19] == ["done"] * 18

    assert run()[2] == counted(skipped=18), "what failed is tried again, nothing else"

    changed = library / "1" / "mill1.timbermesh"
    changed.write_bytes((library / "2" / "mill2.timbermesh").read_bytes())
    os.utime(library / "0" / "mill3.timbermesh", (1, 1))
    (out / "0" / "mill6.mesh").unlink()
    write_windmill("library/1/new.timbermesh")
    _, done, counts = run()
    assert done == {
        os.path.join(*name) for name in (("1", "mill1.timbermesh"), ("0", "mill6.timbermesh"), ("1", "new.timbermesh"))
    }
    assert counts == counted(done=3, unchanged=1, skipped=15)
    assert (out / "0" / "mill6.mesh").read_bytes() == outputs[out / "0" / "mill6.mesh"]

    assert run("--checksum")[2] == counted(unchanged=19)
    assert run("--mesh-version", "ms12")[2] == counted(done=19)
    lines = (out / "meshferry-batch" / "journal.jsonl").read_text().splitlines()
    targets = [json.loads(line).get("target") for line in lines]
    assert len(targets) == len(set(targets)) == 22, "each target once, after the line of the options"
    assert not [path for path in out.rglob(".*") if path.suffix == ".part"]


def test_a_new_name_for_no_animation_is_an_error(meshferry, tmp_path):
    """Also where all files were converted by an earlier run, whose journal has the names."""
    (tmp_path / "lib").mkdir()
    shutil.copy(Path(__file__).resolve().parents[2] / "examples" / "lamp_nod.anim", tmp_path / "lib")
    command = ["batch", tmp_path / "lib", "--to", "anim", "--jobs", "1", "-o"]
    for _ in range(2):
        assert meshferry(*command, tmp_path / "good", "--rename-clip", "lamp_nod=hello").status == 0
        done = meshferry(*command, tmp_path / "bad", "--rename-clip", "nod=hello", "--rename-clip", "lamp_nod=bye")
        assert done.status == 1
        assert done.err.splitlines()[-1] == "batch: --rename-clip: no file has an animation 'nod'"
    lost = meshferry(
        *command[:2], "--to", "skeleton", "--jobs", "1", "-o", tmp_path / "c", "--rename-clip", "nod=hello"
    )
    assert lost.status == 0
