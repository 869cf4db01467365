"""The state of a batch: which results count after which kind of end, and which process may write it."""

import contextlib
import errno
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from batch_stand_ins import content_hash, losses, make_task, opened
from meshferry.cli.batch.journal import JournalFile
from meshferry.cli.batch.plan import Plan
from meshferry.cli.batch.state import State, _open, locked
from meshferry.cli.batch.tasks import Result, Status
from meshferry.io_formats.core.errors import MeshferryError

ROOT = Path(__file__).resolve().parents[2]


def done(task, output, **values):
    """Return the result of a task whose output is written here."""
    path = output / task.target
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    fields = {"hash": content_hash(task), "outputs": [task.target], "facts": {"triangles": 12}, "warnings": losses("w")}
    return Result(task, Status.DONE, **(fields | values))


def digests(folder):
    """Return the contents of all files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lines(output):
    return [json.loads(line) for line in (output / "meshferry-batch" / "journal.jsonl").read_bytes().splitlines()]


def store(output, results, **values):
    """Store results; return the path of the journal."""
    with opened(output, [result.task for result in results], **values) as state:
        for result in results:
            state.append(result)
    return output / "meshferry-batch" / "journal.jsonl"


def fill(output, tasks, **values):
    return store(output, [done(task, output, **values) for task in tasks])


def known(output, task, options="options"):
    with opened(output, [task], options=options) as state:
        return next(state.tasks())[1]


def test_a_journal_line_has_everything(tmp_path):
    task = make_task(0, "a/b.blend", path="a/b.mesh", size=7, modified=8)
    result = done(task, tmp_path, outputs=["a/b_LOD1.blend", "a/b.blend"], seconds=1.25, attempts=2)
    (tmp_path / "a" / "b_LOD1.blend").write_bytes(b"xy")
    store(tmp_path, [result])
    header, line = lines(tmp_path)
    assert header["journal"] == 1 and header["meshferry"] and header["options"]
    assert line.pop("time").endswith("Z") and line.pop("options") == header["options"]
    assert line == {
        "target": "a/b.blend",
        "source": "a/b.mesh",
        "member": "",
        "size": 7,
        "modified": 8,
        "hash": content_hash(task),
        "result": "done",
        "outputs": {"a/b_LOD1.blend": 2, "a/b.blend": 10},
        "warnings": ["w"],
        "messages": [{"code": "any-loss", "kind": "loss", "text": "w", "item": "", "about": [], "subjects": []}],
        "facts": {"triangles": 12},
        "error": "",
        "error_code": "",
        "error_cause": "",
        "seconds": 1.25,
        "attempts": 2,
    }


def test_a_result_is_valid_until_something_changes(tmp_path):
    fill(tmp_path, [make_task(0)])
    assert known(tmp_path, make_task(0)) == (content_hash(make_task(0)), True)


@pytest.mark.parametrize("changed", [{"size": 101}, {"modified": 1001}])
def test_a_source_with_another_size_or_date_is_compared(tmp_path, changed):
    fill(tmp_path, [make_task(0)])
    assert known(tmp_path, make_task(0, **changed)) == (content_hash(make_task(0)), False)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda output: (output / "file0.blend").unlink(),
        lambda output: (output / "file0.blend").write_bytes(b"shorter"),
    ],
    ids=["missing", "of another size"],
)
def test_a_result_without_its_output_is_not_valid(tmp_path, spoil):
    fill(tmp_path, [make_task(0)])
    spoil(tmp_path)
    assert known(tmp_path, make_task(0)) is None


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (make_task(0), "other options"),
        (make_task(0, path="elsewhere.mesh"), "options"),
        (make_task(0, member="inside"), "options"),
        (make_task(1), "options"),
    ],
    ids=["other options", "another source", "inside an archive", "another target"],
)
def test_a_result_of_something_else_is_not_valid(tmp_path, task, options):
    fill(tmp_path, [make_task(0)])
    assert known(tmp_path, make_task(0)) is not None
    assert known(tmp_path, task, options) is None


@pytest.mark.parametrize("status", [Status.FAILED, Status.CRASHED, Status.TIMED_OUT])
def test_the_last_result_counts_even_if_it_is_a_failure(tmp_path, status):
    task = make_task(0)
    store(tmp_path, [done(task, tmp_path)])
    store(tmp_path, [Result(task, status, error="no")])
    assert known(tmp_path, task) is None


def test_an_unchanged_file_keeps_its_result_and_gets_its_new_date(tmp_path):
    fill(tmp_path, [make_task(0)])
    touched = make_task(0, modified=2000)
    store(tmp_path, [Result(touched, Status.UNCHANGED, hash=content_hash(touched))])
    last = lines(tmp_path)[-1]
    assert (last["result"], last["modified"], last["outputs"]) == ("unchanged", 2000, {"file0.blend": 10})
    assert last["facts"] == {"triangles": 12} and last["warnings"] == ["w"]
    assert known(tmp_path, touched).is_same


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_torn_last_line_of_a_journal_is_not_imported(tmp_path, cut):
    """Without the state."""
    tasks = [make_task(0), make_task(1)]
    path = fill(tmp_path, tasks)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    (path.parent / "state.sqlite").unlink()
    with opened(tmp_path, tasks) as state:
        assert [known is not None for _, known in state.tasks()] == [True, False]
        state.append(done(make_task(1), tmp_path))
    assert [line.get("target") for line in lines(tmp_path)] == [None, "file0.blend", "file1.blend"]
    assert path.stat().st_size == len(whole)


GARBAGE = {
    "zeros of a power cut": b"\x00" * 300 + b"\n",
    "words": b"not json\n",
    "wrong types": b'{"target":"file0.blend","source":3}\n',
    "half an object": b'{"target":"file0.blend"\n',
    "a list": b"[1,2]\n",
    "too deep": b'{"target":"file0.blend","outputs":{"a":' + b"[" * 5000 + b"\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_damaged_lines_are_ignored_and_removed(tmp_path, garbage):
    tasks = [make_task(0), make_task(1)]
    path = fill(tmp_path, tasks)
    with path.open("ab") as stream:
        stream.write(garbage)
    with opened(tmp_path, tasks) as state:
        assert all(known is not None for _, known in state.tasks())
        state.compact()
    assert [line.get("target") for line in lines(tmp_path)] == [None, "file0.blend", "file1.blend"]


@pytest.mark.skipif(sys.platform == "win32", reason="all names are text there")
def test_names_that_are_not_utf_8_survive(tmp_path):
    task = make_task(0, 'b\udcffse \u00e9 "quoted"\n.blend', path="\udcff.mesh")
    fill(tmp_path, [task])
    assert known(tmp_path, task).is_same
    assert lines(tmp_path)[1]["target"] == task.target
    with opened(tmp_path, [task]) as state:
        assert [result.task for result in state.results()] == [task]


def test_two_runs_on_one_folder_are_refused(tmp_path):
    with locked(tmp_path), pytest.raises(MeshferryError, match="another batch is writing to this folder"):
        locked(tmp_path).__enter__()
    with locked(tmp_path):
        pass


def killed(tmp_path, text):
    """Run a program with an open state until it prints a line, and kill it."""
    program = f"""
import os, sys
sys.path[:0] = {[str(ROOT / "tests"), str(ROOT / "tests" / "cli")]!r}
from load_package import load_package
load_package()
from pathlib import Path
from batch_stand_ins import opened
from test_batch_state import done, make_task
output = Path(sys.argv[1])
holder = opened(output, [make_task(number) for number in range(9)], has_journal={"--no-journal" not in text})
state = holder.__enter__()
for number in range(5):
    state.append(done(make_task(number), output))
print("stored", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "stored\n"
        with pytest.raises(MeshferryError, match="another batch"):
            locked(tmp_path).__enter__()
        assert not (tmp_path / "meshferry-batch" / "state.sqlite-shm").exists(), "works on disks without shared memory"
        holder.kill()
        holder.wait()


@pytest.mark.needs_workers
@pytest.mark.parametrize("options", ["", "--no-journal"])
def test_a_killed_run_loses_nothing_and_blocks_no_other(tmp_path, options):
    killed(tmp_path, options)
    with opened(tmp_path, [make_task(number) for number in range(9)]) as state:
        assert [known is not None for _, known in state.tasks()] == [True] * 5 + [False] * 4
        state.compact()
    assert [line["target"] for line in lines(tmp_path)[1:]] == [f"file{number}.blend" for number in range(5)]


def test_without_a_journal_there_is_none_and_the_next_run_writes_it(tmp_path):
    path = store(tmp_path, [done(make_task(0), tmp_path)], has_journal=False)
    assert not path.exists() and known(tmp_path, make_task(0)).is_same
    with opened(tmp_path, [make_task(0)]) as state:
        state.compact()
    assert [line.get("target") for line in lines(tmp_path)] == [None, "file0.blend"]


def test_results_of_a_run_without_a_journal_are_added_by_the_next_run(tmp_path):
    """Also if the journal has as many lines as there are results."""
    task = make_task(0)
    fill(tmp_path, [task], seconds=1.0)
    store(tmp_path, [done(task, tmp_path, seconds=2.0)], has_journal=False)
    with opened(tmp_path, [task]):
        pass
    assert [line["seconds"] for line in lines(tmp_path)[1:]] == [2.0]


def test_results_that_a_power_cut_removed_from_the_state_are_read_from_the_journal(tmp_path):
    tasks = [make_task(number) for number in range(3)]
    path = fill(tmp_path, tasks)
    run_sql(path.with_name("state.sqlite"), "DELETE FROM results WHERE id > 1")
    before = path.read_bytes()
    with opened(tmp_path, tasks) as state:
        assert all(known is not None for _, known in state.tasks())
    assert path.read_bytes() == before


def run_sql(path, statements):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(statements)


def replace_database(path, statements):
    path.unlink()
    run_sql(path, statements)


def overwrite(path, start, content):
    data = bytearray(path.read_bytes())
    data[start : start + len(content)] = content
    path.write_bytes(data)


DAMAGES = {
    "empty": lambda path: os.truncate(path, 0),
    "10 bytes": lambda path: os.truncate(path, 10),
    "100 bytes": lambda path: os.truncate(path, 100),
    "4096 bytes": lambda path: os.truncate(path, 4096),
    "random": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "text": lambda path: path.write_bytes(b"not a database" * 1000),
    "first page": lambda path: overwrite(path, 0, bytes(4096)),
    "other tables": lambda path: replace_database(path, "CREATE TABLE things (a)"),
    "other columns": lambda path: replace_database(path, "CREATE TABLE results (a); CREATE TABLE journal (b)"),
    "further column": lambda path: run_sql(path, "ALTER TABLE results ADD COLUMN more"),
    "view": lambda path: run_sql(path, "ALTER TABLE results RENAME TO r; CREATE VIEW results AS SELECT * FROM r"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_state_is_made_anew_from_the_journal(tmp_path, tmp_path_factory, damage):
    task = make_task(0)
    path = fill(tmp_path, [task])
    damage(path.with_name("state.sqlite"))
    before = digests(tmp_path)
    with State(tmp_path, Plan(tmp_path), preview=tmp_path_factory.mktemp("preview")) as state:
        assert next(state.tasks())[1].is_same
    assert digests(tmp_path) == before
    assert known(tmp_path, task).is_same
    fill(tmp_path, [make_task(1)])
    assert known(tmp_path, task).is_same and len(lines(tmp_path)) == 3


@pytest.mark.parametrize("name", ["state.sqlite", "state.sqlite-wal", "journal.jsonl", "journal.jsonl.lock"])
def test_a_folder_in_place_of_a_file_of_the_state_is_refused(tmp_path, name):
    path = fill(tmp_path, [make_task(0)]).with_name(name)
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(MeshferryError, match=f"{re.escape(name)} is a folder.*remove it"):
        known(tmp_path, make_task(0))


def test_a_state_that_cannot_be_read_is_named(tmp_path):
    path = fill(tmp_path, [make_task(0)]).with_name("state.sqlite")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(MeshferryError, match=r"state\.sqlite: .*Permission denied"):
        known(tmp_path, make_task(0))


def test_a_damaged_state_is_closed_before_it_is_removed(tmp_path, monkeypatch):
    """Windows cannot remove open files."""
    connections = []

    def connect(*values, **options):
        connections.append(sqlite3_connect(*values, **options))
        return connections[-1]

    def unlink(path, **options):
        for connection in connections:
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                connection.execute("SELECT 1")
        path_unlink(path, **options)

    path = fill(tmp_path, [make_task(0)]).with_name("state.sqlite")
    path.write_bytes(b"not a database" * 1000)
    sqlite3_connect, path_unlink = sqlite3.connect, Path.unlink
    with locked(tmp_path), monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        patch.setattr(Path, "unlink", unlink)
        _open(path).close()
    assert len(connections) == 2


@pytest.mark.parametrize(
    ("value", "is_known"),
    [
        ("replace(entry, 'source', 'sourcX')", False),
        ("'{'", False),
        ("5", False),
        ("json_set(CAST(entry AS TEXT), '$.outputs', 5)", False),
        ("json_set(CAST(entry AS TEXT), '$.result', 'x')", False),
        ("entry || ' '", True),
    ],
    ids=["key", "JSON", "number", "outputs", "result", "sound"],
)
def test_a_damaged_result_is_converted_again(tmp_path, value, is_known):
    path = store(tmp_path, [done(make_task(0), tmp_path)], has_journal=False)
    with contextlib.closing(sqlite3.connect(path.with_name("state.sqlite"))) as database:
        database.execute(f"UPDATE results SET entry = {value}")
        database.commit()
    assert (known(tmp_path, make_task(0)) is not None) == is_known


def test_damage_inside_the_state_names_the_remedy(tmp_path):
    path = fill(tmp_path, [make_task(number) for number in range(50)])
    state = path.with_name("state.sqlite")
    data = state.read_bytes()
    state.write_bytes(data[:4096] + b"\xaa" * (len(data) - 4096))
    with pytest.raises(MeshferryError, match=r"state\.sqlite: .*malformed; delete state\.sqlite"):
        known(tmp_path, make_task(0))
    state.unlink()
    assert known(tmp_path, make_task(0)).is_same


def test_a_preview_knows_the_results_of_a_killed_run_and_writes_nothing(tmp_path):
    """The results of such a run are in the log of the database."""
    task = make_task(0)
    with opened(tmp_path / "running", [task]) as state:
        state.append(done(task, tmp_path / "running"))
        shutil.copytree(tmp_path / "running", tmp_path / "killed")
    before = digests(tmp_path / "killed")
    plan = Plan(tmp_path / "killed")
    (tmp_path / "preview").mkdir()
    with State(tmp_path / "killed", plan, preview=tmp_path / "preview") as state:
        assert next(state.tasks())[1].is_same
    assert digests(tmp_path / "killed") == before


def test_an_interrupted_compaction_ends_without_another_error(tmp_path, monkeypatch):
    def interrupted(*_values):
        raise KeyboardInterrupt

    task = make_task(0)
    with opened(tmp_path, [task]) as state:
        state.append(done(task, tmp_path))
        state.append(done(task, tmp_path))
        monkeypatch.setattr("meshferry.cli.batch.state.replace_file", interrupted)
        with pytest.raises(KeyboardInterrupt):
            state.compact()
    assert known(tmp_path, task).is_same


def test_disks_that_refuse_a_write_ahead_log_are_used_without_one(tmp_path, monkeypatch):
    """A disk without locks, as SQLite reports it."""
    real = sqlite3.connect
    opened = []

    class NoLocks(sqlite3.Connection):
        def execute(self, statement, *values):
            if "WAL" in statement:
                raise sqlite3.OperationalError("locking protocol")
            return super().execute(statement, *values)

    def connect(path, **options):
        opened.append(path)
        return real(path, factory=sqlite3.Connection if "nolock" in path else NoLocks, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    fill(tmp_path, [make_task(0)])
    assert any("state.sqlite?nolock=1" in path for path in opened)
    assert known(tmp_path, make_task(0)).is_same


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(MeshferryError, match="the journal cannot be written"):
        locked(tmp_path / "out").__enter__()


def test_a_refused_run_leaves_nothing(tmp_path):
    (tmp_path / "there").mkdir()
    for output in (tmp_path / "there", tmp_path / "new" / "folders"):
        with locked(output):
            pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["there"] and list((tmp_path / "there").iterdir()) == []


def test_compaction_keeps_the_last_line_of_each_target_in_their_order(tmp_path):
    tasks = [make_task(number) for number in range(5)]
    path = fill(tmp_path, tasks)
    path.chmod(0o640)
    with opened(tmp_path, tasks, options="second") as state:
        state.append(done(tasks[1], tmp_path, seconds=9.0))
        state.append(done(tasks[3], tmp_path, seconds=8.0))
        state.compact()
        state.append(done(tasks[0], tmp_path, seconds=7.0))
        state.compact()
    _, *kept = lines(tmp_path)
    assert [line["target"] for line in kept] == [f"file{number}.blend" for number in (2, 4, 1, 3, 0)]
    assert [line["seconds"] for line in kept] == [0.0, 0.0, 9.0, 8.0, 7.0]
    assert sorted(entry.name for entry in path.parent.iterdir()) == [*("journal.jsonl", "plan.sqlite", "state.sqlite")]
    assert sys.platform == "win32" or path.stat().st_mode & 0o777 == 0o640


def test_a_run_without_tasks_leaves_the_journal_unchanged(tmp_path):
    path = fill(tmp_path, [make_task(0)])
    before = path.read_bytes()
    with opened(tmp_path, [make_task(0)]) as state:
        state.compact()
    assert path.read_bytes() == before


def test_a_full_disk_leaves_complete_lines(tmp_path):
    class Full:
        """Takes a few bytes of a line."""

        def __init__(self, stream):
            self.stream = stream
            self.writes = 0

        def write(self, data):
            self.writes += 1
            if self.writes > 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.stream.write(bytes(data[:20]))

        def __getattr__(self, name):
            return getattr(self.stream, name)

    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path)
    journal.write(b"a whole line\n")
    journal._stream = Full(journal._stream)
    with pytest.raises(MeshferryError, match=os.strerror(errno.ENOSPC)):
        journal.write(b"another, longer whole line\n")
    journal.close()
    assert path.read_bytes() == b"a whole line\n"


def test_results_are_in_the_order_of_the_plan(tmp_path):
    tasks = [make_task(number) for number in range(4)]
    fill(tmp_path, [tasks[2], tasks[0]])
    with opened(tmp_path, tasks) as state:
        state.append(Result(tasks[3], Status.FAILED, error="It is not a mesh"))
        results = list(state.results())
    assert [(result.task.number, result.status, result.error) for result in results] == [
        (0, Status.DONE, ""),
        (2, Status.DONE, ""),
        (3, Status.FAILED, "It is not a mesh"),
    ]
    assert results[0].outputs == ["file0.blend"] and results[0].facts == {"triangles": 12}


def write_shard(output, name, tasks, *, torn=False):
    """Write the journal of a shard as another machine does."""
    made = fill(output / "elsewhere", tasks).read_bytes().partition(b"\n")[2]
    for task in tasks:
        done(task, output)
    path = output / "meshferry-batch" / "shards" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made[:-5] if torn else made)
    return path


def test_shards_are_merged_once_without_torn_lines(tmp_path):
    tasks = [make_task(number) for number in range(4)]
    fill(tmp_path, tasks[:1])
    write_shard(tmp_path, "1-2.jsonl", tasks[:2])
    folder = write_shard(tmp_path / ".", "3-4.jsonl", tasks[2:], torn=True).parent
    with opened(tmp_path, tasks) as state:
        assert [known is not None for _, known in state.tasks()] == [True, True, True, False]
        state.compact()
    assert [line["target"] for line in lines(tmp_path)[1:]] == ["file0.blend", "file1.blend", "file2.blend"]
    assert list(folder.iterdir()) == []


def test_a_shard_that_is_still_written_to_stays(tmp_path):
    from meshferry.io_formats.disk import locks

    path = write_shard(tmp_path, "1-2.jsonl", [make_task(0)])
    (tmp_path / "file0.blend").unlink()
    with locks.hold(path.with_name("1-2.jsonl.lock")), opened(tmp_path, [make_task(0)]) as state:
        assert list(state.results()) == []
    assert path.exists()
