"""The state of a batch: which results count after which kind of end, and which process may write it."""

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from batch_stand_ins import content_hash, losses, make_task, opened
from meshferry.cli.batch.plan import Plan
from meshferry.cli.batch.state import JournalFile, State, locked
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
    [lambda output: (output / "file0.blend").unlink(), lambda output: (output / "file0.blend").write_bytes(b"shorter")],
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
def test_a_torn_last_line_of_a_journal_is_removed(tmp_path, cut):
    tasks = [make_task(0), make_task(1)]
    path = fill(tmp_path, tasks)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with opened(tmp_path, tasks) as state:
        assert [known is not None for _, known in state.tasks()] == [True, False]
        state.append(done(make_task(1), tmp_path))
    assert [line.get("target") for line in lines(tmp_path)] == [None, "file0.blend", "file1.blend"]
    assert path.stat().st_size == len(whole)


def changed(**values):
    """Return a function that replaces values in a line of a journal."""
    return lambda line: json.dumps(line | values).encode()


DEEP = b'{"target":"file0.blend","source":' + b"[" * 5000
MESSAGE = {"code": "a", "kind": "loss", "text": "", "item": "", "about": []}
DAMAGES = {
    "zeros of a power cut": (lambda _line: bytes(300), "is not a result"),
    "words": (lambda _line: b"not json", "is not a result"),
    "missing values": (lambda _line: b'{"target":"file0.blend","source":3}', "is not a result"),
    "half an object": (lambda _line: b'{"target":"file0.blend","source":"', "is not a result"),
    "a list": (lambda _line: b"[1,2]", "is not a result"),
    "too deep": (lambda _line: DEEP, "is not a result"),
    "a number of 5000 digits": (lambda _line: DEEP.replace(b"[", b"1"), "is not a result"),
    "another key": (changed(more=1), "is not a result"),
    "another status": (changed(result="x"), "is not a result"),
    "outputs": (changed(outputs=5), "wrong type"),
    "source": (changed(source=None), "wrong type"),
    "warnings": (changed(warnings=[5]), "wrong type"),
    "text of a message": (changed(messages=[MESSAGE | {"text": 5}]), "is not a result"),
    "name in a message": (changed(messages=[MESSAGE | {"about": [[]]}]), "is not a result"),
    "kind in a message": (changed(messages=[MESSAGE | {"subjects": [{"kind": [], "name": ""}]}]), "is not a result"),
    "clips": (changed(facts={"clips": [{"name": 5}]}), "wrong type"),
    "clips without names": (changed(facts={"clips": 5}), "is not a result"),
    "seconds": (changed(seconds=10**400), "the number 'seconds' is out of range"),
    "infinite seconds": (changed(seconds=float("inf")), "the number 'seconds' is out of range"),
    "no number of seconds": (changed(seconds=float("nan")), "the number 'seconds' is out of range"),
    "size": (changed(size=-(2**63)), "the number 'size' is out of range"),
    "attempts": (changed(attempts=2**63), "the number 'attempts' is out of range"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_lines_are_ignored_counted_and_removed(tmp_path, damage, reason):
    """A damaged line does not replace an earlier one of its target. If there is no other, the result is unknown."""
    tasks = [make_task(0), make_task(1)]
    path = fill(tmp_path, tasks)
    head, first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + first + second + damage(json.loads(first)) + b"\n" + damage(json.loads(second)) + b"\n")
    with opened(tmp_path, tasks) as state:
        assert all(known is not None for _, known in state.tasks())
        assert f"2 damaged lines were ignored; the first is at byte {len(head + first + second)}: " in str(state.damage)
        assert reason in str(state.damage)
        state.compact()
    assert path.read_bytes() == head + first + second
    path.write_bytes(head + damage(json.loads(first)) + b"\n" + second)
    with opened(tmp_path, tasks) as state:
        assert [known is not None for _, known in state.tasks()] == [False, True]
        assert [result.task.number for result in state.results()] == [1]
        assert reason in str(state.damage) and "1 damaged line was ignored; " in str(state.damage)
        state.append(done(tasks[0], tmp_path))
        state.compact()
    assert [line.get("target") for line in lines(tmp_path)] == [None, "file1.blend", "file0.blend"]


def test_a_line_that_another_program_has_written_anew_counts(tmp_path):
    """With blanks, and the keys in another order."""
    path = fill(tmp_path, [make_task(0)])
    head, line = lines(tmp_path)
    path.write_text(json.dumps(head) + "\n" + json.dumps(line, sort_keys=True) + "\n")
    with opened(tmp_path, [make_task(0)]) as state:
        assert next(state.tasks())[1].is_same and state.damage is None


@pytest.mark.parametrize("tail", [b"x" * 3000, b"x" * 3000 + b"\n", b'{"target":"a"' + b" " * 3000 + b"\n"])
def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch, tail):
    """No file stays open, since Windows could not remove it."""
    monkeypatch.setattr("meshferry.cli.batch.state.LONGEST_LINE", 2048)
    path = fill(tmp_path, [make_task(0)])
    streams = []

    def open_file(*arguments):
        streams.append(io.FileIO(*arguments))
        return streams[-1]

    monkeypatch.setattr("meshferry.cli.batch.state.io", SimpleNamespace(**vars(io) | {"FileIO": open_file}))
    for journal in (path, write_shard(tmp_path, "1-2.jsonl", [make_task(0)])):
        before = journal.read_bytes()
        journal.write_bytes(before + tail)
        with pytest.raises(MeshferryError, match=f"{re.escape(str(journal))}: A line has more than .* remove the file"):
            known(tmp_path, make_task(0))
        assert all(stream.closed for stream in streams)
        journal.write_bytes(before)
    assert known(tmp_path, make_task(0)).is_same


def test_a_result_that_is_too_large_for_a_line_is_stored_without_its_details(tmp_path, monkeypatch):
    """Otherwise the next run would refuse the journal. The source is converted again."""
    deep = []
    for _ in range(5000):
        deep = [deep]
    monkeypatch.setattr("meshferry.cli.batch.state.LONGEST_LINE", 2048)
    for values in ({"error": "e" * 3000}, {"warnings": losses("w" * 3000)}, {"facts": {"deep": deep}}):
        monkeypatch.setattr("meshferry.cli.batch.state._LONGEST_ERROR", 100)
        store(tmp_path, [done(make_task(0), tmp_path, **values)])
        assert known(tmp_path, make_task(0)) is None
        last = lines(tmp_path)[-1]
        assert (last["result"], last["warnings"], last["facts"], last["outputs"]) == ("done", [], {}, {})


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


def killed(tmp_path):
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
holder = opened(output, [make_task(number) for number in range(9)])
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
        holder.kill()
        holder.wait()


@pytest.mark.needs_workers
def test_a_killed_run_loses_nothing_and_blocks_no_other(tmp_path):
    killed(tmp_path)
    with opened(tmp_path, [make_task(number) for number in range(9)]) as state:
        assert [known is not None for _, known in state.tasks()] == [True] * 5 + [False] * 4
        state.compact()
    assert [line["target"] for line in lines(tmp_path)[1:]] == [f"file{number}.blend" for number in range(5)]


def test_a_state_that_cannot_be_read_is_named(tmp_path):
    path = fill(tmp_path, [make_task(0)])
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(MeshferryError, match=r"journal\.jsonl: .*Permission denied"):
        known(tmp_path, make_task(0))


def test_a_preview_of_a_running_batch_knows_its_results_and_writes_nothing(tmp_path):
    tasks = [make_task(0), make_task(1)]
    with opened(tmp_path, tasks) as state:
        state.append(done(tasks[0], tmp_path))
        path = tmp_path / "meshferry-batch" / "journal.jsonl"
        with path.open("ab") as stream:
            stream.write(b'{"target":"file1.bl')  # the run is writing it
        before = digests(tmp_path)
        with State(tmp_path, Plan(path.parent), is_preview=True) as preview:
            assert [known is not None for _, known in preview.tasks()] == [True, False]
        assert digests(tmp_path) == before


def test_a_full_temporary_folder_is_an_error(tmp_path, monkeypatch):
    fill(tmp_path, [make_task(0)])
    monkeypatch.setattr("meshferry.cli.batch.state._INDEX", "SELECT * FROM missing")
    with pytest.raises(MeshferryError, match=r"journal\.jsonl: no index in the temporary folder: "):
        known(tmp_path, make_task(0))


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
    with opened(tmp_path, tasks) as state:
        state.append(done(tasks[0], tmp_path, seconds=7.0))
        state.compact()
    _, *kept = lines(tmp_path)
    assert [line["target"] for line in kept] == [f"file{number}.blend" for number in (2, 4, 1, 3, 0)]
    assert [line["seconds"] for line in kept] == [0.0, 0.0, 9.0, 8.0, 7.0]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["journal.jsonl", "plan.sqlite"]
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


@pytest.mark.parametrize(("time", "seconds"), [("2000-01-01T00:00:00Z", 1.0), ("9999-01-01T00:00:00Z", 2.0)])
def test_the_later_result_of_shard_and_journal_counts(tmp_path, time, seconds):
    task = make_task(0)
    fill(tmp_path, [task], seconds=1.0)
    path = write_shard(tmp_path, "1-2.jsonl", [task])
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"time": time, "seconds": 2.0}) + "\n")
    with opened(tmp_path, [task]) as state:
        assert [result.seconds for result in state.results()] == [seconds]


def test_a_shard_that_is_still_written_to_stays(tmp_path):
    from meshferry.io_formats.disk import locks

    path = write_shard(tmp_path, "1-2.jsonl", [make_task(0)])
    (tmp_path / "file0.blend").unlink()
    with locks.hold(path.with_name("1-2.jsonl.lock")), opened(tmp_path, [make_task(0)]) as state:
        assert list(state.results()) == []
    assert path.exists()
