"""The journal of a batch: what is believed after which kind of end, and who may write it."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from batch_stand_ins import content_hash, make_task
from meshferry.cli.batch.journal.journal import HeldError, Journal
from meshferry.cli.batch.journal.journal_index import Index
from meshferry.cli.batch.tasks import Result, Status
from meshferry.io_formats.core.errors import MeshferryError

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = "0123456789abcdef"


def done(task, output, **values):
    """Return the result of a work whose output is written here."""
    place = output / task.target
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"x" * 10)
    fields = {"hash": content_hash(task), "outputs": [task.target], "facts": {"triangles": 12}, "warnings": ["w"]}
    return Result(task, Status.DONE, **(fields | values))


def lines(output):
    return [json.loads(line) for line in (output / "meshferry-batch" / "journal.jsonl").read_bytes().splitlines()]


def filled(output, tasks, **values):
    with Journal(output) as journal:
        journal.start(OPTIONS)
        for task in tasks:
            journal.append(done(task, output, **values))
    return output / "meshferry-batch" / "journal.jsonl"


def known(output, task, options=OPTIONS):
    with Journal(output) as journal:
        journal.start(options)
        return journal.known(task)


def test_a_line_tells_everything_of_a_file(tmp_path):
    task = make_task(0, "a/b.blend", path="a/b.mesh", size=7, modified=8)
    result = done(task, tmp_path, outputs=["a/b_LOD1.blend", "a/b.blend"], seconds=1.25, attempts=2)
    (tmp_path / "a" / "b_LOD1.blend").write_bytes(b"xy")
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        journal.append(result)
    header, line = lines(tmp_path)
    assert header["options"] == OPTIONS and header["journal"] == 1 and header["meshferry"]
    assert line.pop("time").endswith("Z")
    assert line == {
        "target": "a/b.blend",
        "source": "a/b.mesh",
        "member": "",
        "size": 7,
        "modified": 8,
        "hash": content_hash(task),
        "options": OPTIONS,
        "result": "done",
        "outputs": {"a/b_LOD1.blend": 2, "a/b.blend": 10},
        "warnings": ["w"],
        "facts": {"triangles": 12},
        "error": "",
        "seconds": 1.25,
        "attempts": 2,
    }


def test_what_was_done_is_known_as_long_as_nothing_changed(tmp_path):
    task = make_task(0)
    filled(tmp_path, [task])
    found = known(tmp_path, task)
    assert found.is_same and found.hash == content_hash(task)


@pytest.mark.parametrize("changed", [{"size": 101}, {"modified": 1001}])
def test_a_source_with_another_size_or_date_is_to_be_looked_at(tmp_path, changed):
    filled(tmp_path, [make_task(0)])
    found = known(tmp_path, make_task(0, **changed))
    assert not found.is_same and found.hash == content_hash(make_task(0))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda output: (output / "file0.blend").unlink(),
        lambda output: (output / "file0.blend").write_bytes(b"shorter"),
    ],
    ids=["gone", "of another size"],
)
def test_without_its_output_nothing_is_known(tmp_path, spoil):
    filled(tmp_path, [make_task(0)])
    spoil(tmp_path)
    assert known(tmp_path, make_task(0)) is None


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (make_task(0), "other options"),
        (make_task(0, path="elsewhere.mesh"), OPTIONS),
        (make_task(0, member="inside"), OPTIONS),
        (make_task(1), OPTIONS),
    ],
    ids=["other options", "another source", "inside an archive", "another target"],
)
def test_what_was_done_otherwise_is_not_known(tmp_path, task, options):
    filled(tmp_path, [make_task(0)])
    assert known(tmp_path, make_task(0)) is not None
    assert known(tmp_path, task, options) is None


@pytest.mark.parametrize("ended", [Status.FAILED, Status.CRASHED, Status.TIMED_OUT])
def test_the_last_line_counts_also_where_it_is_of_a_failure(tmp_path, ended):
    task = make_task(0)
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        journal.append(done(task, tmp_path))
        journal.append(Result(task, ended, error="no"))
    assert known(tmp_path, task) is None


def test_an_unchanged_file_keeps_what_was_known_and_gets_its_new_date(tmp_path):
    filled(tmp_path, [make_task(0)])
    touched = make_task(0, modified=2000)
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        journal.append(Result(touched, Status.UNCHANGED, hash=content_hash(touched)))
    last = lines(tmp_path)[-1]
    assert (last["result"], last["modified"], last["outputs"]) == ("unchanged", 2000, {"file0.blend": 10})
    assert last["facts"] == {"triangles": 12} and last["warnings"] == ["w"]
    assert known(tmp_path, touched).is_same


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_torn_last_line_is_cut_off_and_not_believed(tmp_path, cut):
    path = filled(tmp_path, [make_task(0), make_task(1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        assert journal.known(make_task(0)) is not None
        assert journal.known(make_task(1)) is None
        journal.append(done(make_task(1), tmp_path))
    assert [line.get("target") for line in lines(tmp_path)] == [None, "file0.blend", "file1.blend"]
    assert path.stat().st_size == len(whole)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 300 + b"\n",
        b"not json\n",
        b'{"target":"file0.blend","source":3}\n',
        b'{"target":"file0.blend"\n',
        b"[1,2]\n",
        b'{"target":"file0.blend","outputs":{"a":' + b"[" * 5000 + b"\n",
    ],
    ids=["zeros of a power cut", "words", "wrong types", "half an object", "a list", "too deep"],
)
def test_lines_that_somebody_broke_are_no_reason_to_stop(tmp_path, garbage):
    path = filled(tmp_path, [make_task(0), make_task(1)])
    with path.open("ab") as stream:
        stream.write(garbage)
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        assert journal.known(make_task(1)) is not None
        journal.compact()
        assert "file1.blend" in [entry.target for entry in journal.entries()]
    assert garbage.strip() not in path.read_bytes() or b'"target"' in garbage


def test_names_that_are_no_text_survive(tmp_path):
    task = make_task(0, 'b\udcffse \u00e9 "quoted"\n.blend', path="\udcff.mesh")
    if sys.platform == "win32":
        pytest.skip("all names are text there")
    filled(tmp_path, [task])
    assert known(tmp_path, task).is_same
    assert lines(tmp_path)[1]["target"] == task.target


def test_two_runs_on_one_folder_refuse_in_words(tmp_path):
    with Journal(tmp_path), pytest.raises(HeldError, match="another batch is writing to this folder"):
        Journal(tmp_path).__enter__()
    with Journal(tmp_path):
        pass


def test_a_killed_holder_blocks_nobody(tmp_path):
    program = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from load_package import load_package
load_package()
from pathlib import Path
from meshferry.cli.batch.journal.journal import Journal
journal = Journal(Path(sys.argv[1])).__enter__()
journal.start("x")
print("held", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HeldError):
            Journal(tmp_path).__enter__()
        holder.kill()
        holder.wait()
    with Journal(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(MeshferryError, match="the journal cannot be written"):
        Journal(tmp_path / "out").__enter__()


def test_what_is_refused_before_it_began_leaves_nothing(tmp_path):
    (tmp_path / "there").mkdir()
    for output in (tmp_path / "there", tmp_path / "new" / "folders"):
        with Journal(output):
            pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["there"] and list((tmp_path / "there").iterdir()) == []


def test_compaction_keeps_each_target_once_in_the_order_of_the_last_lines(tmp_path):
    tasks = [make_task(number) for number in range(5)]
    path = filled(tmp_path, tasks)
    with Journal(tmp_path) as journal:
        journal.start("second")
        journal.append(done(tasks[1], tmp_path, seconds=9.0))
        journal.append(done(tasks[3], tmp_path, seconds=8.0))
        journal.compact()
        journal.append(done(tasks[0], tmp_path, seconds=7.0))
        journal.compact()
        assert [entry.seconds for entry in journal.entries()] == [0.0, 0.0, 9.0, 8.0, 7.0]
    header, *kept = lines(tmp_path)
    assert header["options"] == "second"
    assert [line["target"] for line in kept] == [f"file{number}.blend" for number in (2, 4, 1, 3, 0)]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["journal.jsonl", "journal.jsonl.lock"]


def test_a_run_that_does_nothing_leaves_the_journal_as_it_was(tmp_path):
    path = filled(tmp_path, [make_task(0)])
    before = path.read_bytes()
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        assert journal.known(make_task(0)).is_same
        journal.compact()
    assert path.read_bytes() == before


def test_a_full_disk_leaves_whole_lines(tmp_path):
    path = filled(tmp_path, [make_task(0)])
    before = path.read_bytes()

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

    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        journal._lines = Full(journal._lines)
        with pytest.raises(MeshferryError, match=os.strerror(errno.ENOSPC)):
            journal.append(done(make_task(1), tmp_path))
    assert path.read_bytes() == before


def test_results_come_back_in_the_order_of_the_plan(tmp_path):
    tasks = [make_task(number) for number in range(4)]
    filled(tmp_path, [tasks[2], tasks[0]])
    with Journal(tmp_path) as journal:
        journal.start(OPTIONS)
        journal.append(Result(tasks[3], Status.FAILED, error="It is no mesh"))
        results = list(journal.results(tasks))
    assert [(result.task.number, result.status, result.error) for result in results] == [
        (0, Status.DONE, ""),
        (2, Status.DONE, ""),
        (3, Status.FAILED, "It is no mesh"),
    ]
    assert results[0].outputs == ["file0.blend"] and results[0].facts == {"triangles": 12}


def shard_of(output, name, tasks, *, torn=False):
    """Write the journal of a part of the plan as another machine would."""
    place = output / "meshferry-batch" / "shards" / name
    with Journal(output, place) as shard:
        shard.start(OPTIONS)
        for task in tasks:
            shard.append(done(task, output))
    if torn:
        place.write_bytes(place.read_bytes()[:-5])
    return place


def test_shards_are_taken_over_once_without_torn_lines(tmp_path):
    tasks = [make_task(number) for number in range(4)]
    filled(tmp_path, tasks[:1])
    first = shard_of(tmp_path, "1-2.jsonl", tasks[:2])
    second = shard_of(tmp_path, "3-4.jsonl", tasks[2:], torn=True)
    with Journal(tmp_path) as journal:
        assert journal.take_over_shards() == 3
        journal.start(OPTIONS)
        assert [journal.known(task) is not None for task in tasks] == [True, True, True, False]
        journal.compact()
    assert [line["target"] for line in lines(tmp_path)[1:]] == ["file0.blend", "file1.blend", "file2.blend"]
    assert not first.exists() and not second.exists()
    assert list(first.parent.iterdir()) == []


def test_a_shard_that_is_being_written_stays(tmp_path):
    place = tmp_path / "meshferry-batch" / "shards" / "1-2.jsonl"
    with Journal(tmp_path) as journal, Journal(tmp_path, place) as shard:
        shard.start(OPTIONS)
        shard.append(done(make_task(0), tmp_path))
        assert journal.take_over_shards() == 0
    assert place.exists()


def test_the_index_finds_the_last_of_many_lines(tmp_path):
    path = filled(tmp_path, [])
    with path.open("ab") as stream:
        offsets = {}
        for number in range(3000):
            target = f"{number % 1000:03}.blend"
            offsets[target] = stream.tell()
            stream.write(json.dumps({"target": target, "n": number}, separators=(",", ":")).encode() + b"\n")
    index = Index.read(path)
    assert {target: index.find(target) for target in offsets} == offsets
    assert (len(index), index.superseded, index.find("none.blend")) == (1000, 2000, -1)
    assert list(index.in_order()) == sorted(offsets.values())
