"""The driver of a batch: what is handed out, what is left alone, and what ends a run; without worker processes."""

import errno
import gzip
import io
import os
import sys
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from batch_stand_ins import Heard, PretendedWorkers, content_hash, make_task, plan_of
from meshferry.cli.batch import output_folder, runner, sources
from meshferry.cli.batch.progress import SLOWEST_KEPT, Summary
from meshferry.cli.batch.state import State
from meshferry.cli.batch.tasks import DISK_FULL, Result, Status, TaskKind
from meshferry.cli.environment import available_cores
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.disk import locks
from meshferry.io_formats.disk.atomic_write import temporary_file

OPTIONS = "options"


def go(output, tasks, *, workers=None, options=OPTIONS, checksum=False, root=None):
    """Run a plan; return the totals, the tasks given to the workers and the reported progress."""
    workers = workers or PretendedWorkers(output)
    heard = Heard()
    plan = plan_of(output, tasks, root=root, options=options)
    with State(output, plan) as state:
        run = runner.Run(state, plan, output=output, progress=heard, checksum=checksum)
        totals = run.convert(workers, plan.count)
        state.compact()
    return totals, workers.asked, heard


def tasks_of(count):
    return [make_task(number) for number in range(count)]


def numbers(asked):
    return [loaded.task.number for loaded in asked]


def test_everything_is_done_in_the_order_of_the_plan(tmp_path):
    totals, asked, heard = go(tmp_path, tasks_of(7))
    assert numbers(asked) == list(range(7))
    assert all(
        loaded.kind is TaskKind.CONVERT and loaded.known_hash == "" and loaded.content is None for loaded in asked
    )
    assert totals.by_status == {Status.DONE: 7} and totals.skipped == 0 and totals.warned == 7
    assert heard.begun == [("converting", 7)]
    assert [result.task.number for result in heard.results] == list(range(7))


def test_a_second_run_asks_nobody(tmp_path):
    go(tmp_path, tasks_of(7))
    totals, asked, heard = go(tmp_path, tasks_of(7))
    assert asked == [] and totals.skipped == 7 and not totals.by_status
    assert heard.left_alone == [f"file{number}.blend" for number in range(7)]


def test_done_again_is_what_is_new_changed_failed_or_lost(tmp_path):
    def fate(loaded):
        return Result(loaded.task, Status.FAILED, error="It is broken") if loaded.task.number == 2 else None

    go(tmp_path, tasks_of(6), workers=PretendedWorkers(tmp_path, fate))
    (tmp_path / "file3.blend").unlink()
    tasks = tasks_of(8)
    tasks[1] = make_task(1, size=101, modified=2000)
    tasks[4] = make_task(4, modified=2000)
    totals, asked, _ = go(tmp_path, tasks)
    assert numbers(asked) == [1, 2, 3, 4, 6, 7]
    assert {loaded.task.number: loaded.known_hash for loaded in asked if loaded.known_hash} == {
        1: content_hash(make_task(1)),
        4: content_hash(make_task(4)),
    }
    assert totals.by_status == {Status.DONE: 5, Status.UNCHANGED: 1} and totals.skipped == 2
    assert go(tmp_path, tasks)[1] == [], "what was only touched is not read a second time"


def test_other_options_do_everything_again(tmp_path):
    go(tmp_path, tasks_of(3))
    assert numbers(go(tmp_path, tasks_of(3), options="others")[1]) == [0, 1, 2]
    assert go(tmp_path, tasks_of(3), options="others")[1] == []


def test_with_checksums_everything_is_looked_at_and_nothing_done(tmp_path):
    go(tmp_path, tasks_of(3))
    totals, asked, _ = go(tmp_path, tasks_of(3), checksum=True)
    assert [loaded.known_hash for loaded in asked] == [content_hash(task) for task in tasks_of(3)]
    assert totals.by_status == {Status.UNCHANGED: 3}


def test_bad_files_stop_nothing_and_are_counted_by_cause(tmp_path):
    def fate(loaded):
        number = loaded.task.number
        if number % 10 == 3:
            error = f"'mesh {number}' ends early (at byte {number:,}00)"
            return Result(loaded.task, Status.FAILED, error=error, error_cause="'…' ends early")
        if number == 5:
            return Result(loaded.task, Status.FAILED, error="It is not a mesh")
        if number == 7:
            return Result(loaded.task, Status.CRASHED, error="SIGSEGV", attempts=2)
        if number == 8:
            return Result(loaded.task, Status.TIMED_OUT, error="It took longer than 600 s")
        return None

    totals, asked, _ = go(tmp_path, tasks_of(40), workers=PretendedWorkers(tmp_path, fate))
    assert len(asked) == 40
    assert totals.by_status == {Status.DONE: 33, Status.FAILED: 5, Status.CRASHED: 1, Status.TIMED_OUT: 1}
    assert (totals.failed, totals.in_quarantine) == (7, 2)
    assert totals.quarantined == [("file7.mesh", "SIGSEGV"), ("file8.mesh", "It took longer than 600 s")]
    causes = [(cause.count, cause.text, cause.example) for cause in totals.commonest_causes()]
    assert causes == [(4, "'mesh 3' ends early (at byte 300)", "file3.mesh"), (1, "It is not a mesh", "file5.mesh")]
    assert numbers(go(tmp_path, tasks_of(40))[1]) == [3, 5, 7, 8, 13, 23, 33]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    def fate(loaded):
        if loaded.task.number == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, tasks_of(9), workers=PretendedWorkers(tmp_path, fate))
    totals, asked, _ = go(tmp_path, tasks_of(9))
    assert numbers(asked) == [5, 6, 7, 8] and totals.skipped == 5


@pytest.mark.parametrize("where", ["journal", "output"])
def test_a_full_disk_ends_the_run_in_words(tmp_path, where):
    full = os.strerror(errno.ENOSPC)

    def fate(loaded):
        if loaded.task.number < 2:
            return None
        if where == "journal":
            raise MeshferryError(f"the journal cannot be written: {full}")
        error = f"the file cannot be written: {full}"
        return Result(loaded.task, Status.FAILED, error=error, error_code=DISK_FULL)

    workers = PretendedWorkers(tmp_path, fate)
    with pytest.raises(MeshferryError, match="disk is full" if where == "output" else full):
        go(tmp_path, tasks_of(9), workers=workers)
    assert numbers(workers.asked) == [0, 1, 2]
    assert numbers(go(tmp_path, tasks_of(9))[1]) == [2, 3, 4, 5, 6, 7, 8]


def archive_of(path, members):
    """Write an archive of OpenSim with these meshes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), 1))


def test_archives_are_opened_once_and_hand_over_content(tmp_path, monkeypatch):
    names = [f"assets/{number:08}-0000-0000-0000-000000000000_mesh.llmesh" for number in range(5)]
    archive_of(tmp_path / "region.oar", {name: name.encode() for name in names})
    tasks = [make_task(0)]
    tasks += [make_task(1 + n, f"region/{n}.blend", path="region.oar", member=name) for n, name in enumerate(names)]
    opened = []
    real = sources.ArchiveReader

    def opening(path):
        opened.append(path)
        return real(path)

    monkeypatch.setattr(runner, "ArchiveReader", opening)
    totals, asked, _ = go(tmp_path, tasks)
    assert [loaded.content for loaded in asked] == [None, *(name.encode() for name in names)]
    assert opened == [tmp_path / "region.oar"] and totals.by_status[Status.DONE] == 6
    opened.clear()
    assert go(tmp_path, tasks)[0].skipped == 6 and opened == [], "what is done is not even opened"
    (tmp_path / "region" / "3.blend").unlink()
    assert [loaded.content for loaded in go(tmp_path, tasks)[1]] == [names[3].encode()]


def test_a_broken_archive_fails_what_lies_behind_the_break_and_nothing_else(tmp_path):
    names = [f"assets/{number:08}-0000-0000-0000-000000000000_mesh.llmesh" for number in range(4)]
    path = tmp_path / "region.oar"
    archive_of(path, {name: os.urandom(400_000) for name in names})
    path.write_bytes(path.read_bytes()[:1_000_000])
    tasks = [make_task(n, f"region/{n}.blend", path="region.oar", member=name) for n, name in enumerate(names)]
    totals, asked, heard = go(tmp_path, [*tasks, make_task(9)])
    assert numbers(asked) == [0, 1, 9]
    assert totals.by_status == {Status.DONE: 3, Status.FAILED: 2}
    failed = [result for result in heard.results if result.status is Status.FAILED]
    assert [result.task.number for result in failed] == [2, 3] and all(result.error for result in failed)


def test_pictures_are_drawn_once_of_what_has_none(tmp_path):
    from meshferry.cli.batch.report_pictures import picture_file

    tasks = tasks_of(4)
    drawn = []

    def draw(loaded):
        if loaded.kind is TaskKind.CONVERT:
            return None
        drawn.append(loaded.task.number)
        place = picture_file(tmp_path, content_hash(loaded.task))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"RIFF\x04\x00\x00\x00WEBP")
        return Result(loaded.task, Status.DONE, hash=content_hash(loaded.task), kind=TaskKind.PICTURE)

    workers = PretendedWorkers(tmp_path, draw)
    plan = plan_of(tmp_path, tasks)
    with State(tmp_path, plan) as state:
        run = runner.Run(state, plan, output=tmp_path, progress=Heard())
        run.convert(workers, 4)
        before = state.journal_path.read_bytes()
        assert run.draw(workers, state.results(), 4) == "" and drawn == [0, 1, 2, 3]
        assert run.draw(workers, state.results(), 4) == "" and drawn == [0, 1, 2, 3]
        first, second, *_ = (tmp_path / "meshferry-batch" / "pictures").iterdir()
        first.write_bytes(b"")
        second.write_bytes(b"RIFF\x04")
        assert run.draw(workers, state.results(), 4) == "" and len(drawn) == 6, "damaged pictures are drawn anew"
        assert state.journal_path.read_bytes() == before, "pictures are not results of a conversion"
    assert run.summary.by_status == {Status.DONE: 4}


@pytest.mark.slow
def test_nothing_is_held_as_a_whole(tmp_path):
    class Idle:
        """Does nothing to a task at once."""

        def run(self, tasks):
            for loaded in tasks:
                error = f"File {loaded.task.number} is missing"
                yield Result(loaded.task, Status.FAILED, error=error, error_cause="File … is missing")

    class Mute(Heard):
        def ended(self, result):
            pass

    def peak(count):
        output = tmp_path / str(count)
        plan = plan_of(output, tasks_of(count))
        with State(output, plan) as state:
            run = runner.Run(state, plan, output=output, progress=Mute())
            tracemalloc.start()
            totals = run.convert(Idle(), count)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert totals.failed == count and len(totals.slowest) == SLOWEST_KEPT and len(totals.causes) == 1
        return most

    assert peak(12_000) < 2 * peak(3000)


def test_totals_stay_small_however_many_causes_there_are():
    totals = Summary()
    for number in range(5000):
        word = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        totals.add(Result(make_task(number), Status.FAILED, error=f"Cause {word}"))
        totals.add(Result(make_task(number), Status.CRASHED, error=f"Crash {word}"))
    assert sum(cause.count for cause in totals.causes.values()) == 5000
    assert len(totals.causes) < 1100 and len(totals.quarantined) == 100 and totals.in_quarantine == 5000


def test_leftovers_of_killed_runs_are_swept_and_nothing_else(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    state = tmp_path / "meshferry-batch"
    state.mkdir()
    gone = []
    for place in (deep / "x.mesh", tmp_path / ("long" * 30 + ".mesh"), state / "journal.jsonl"):
        handle, name = temporary_file(place)
        os.close(handle)
        gone.append(name)
    names = [f".windmill.meshferry-0123abcd.part{end}" for end in ("", ".blend", ".blend@")]
    for name in names:
        (deep / name).write_bytes(b"half")
        gone.append(deep / name)
    abandoned = deep / ".house.dae.meshferry-abcdefgh.part"
    abandoned.mkdir()
    (abandoned / "meshferry-plan.json").write_text('{"chosen": "house.dae", "members": []}')
    (abandoned / "0").write_bytes(b"half")
    gone.append(abandoned)
    kept = [deep / "x.mesh", deep / ".hidden.mesh", deep / "movie.part", deep / ".config.part", deep / ".x.short.part"]
    kept += [deep / ".movie.mp4.abcdefgh.part", deep / ".lamp.0123abcd.part.blend"]  # of other programs
    for place in kept:
        place.write_bytes(b"keep")
    handle, name = temporary_file(deep / "y.mesh")
    under_way = locks.hold(deep / ".y.meshferry-0123abcd.part")
    kept += [Path(name), deep / ".y.meshferry-0123abcd.part", deep / ".y.meshferry-0123abcd.part.blend"]
    kept[-1].write_bytes(b"half")
    others = deep / ".notes.txt.meshferry-abcdefgh.part"
    others.mkdir()
    kept.append(others / "mine.txt")
    kept[-1].write_text("keep")
    os.utime(others, (1, 1))
    output_folder.remove_leftovers(tmp_path)
    assert [str(place) for place in gone if os.path.lexists(place)] == []
    assert [place for place in kept if not place.exists()] == []
    os.close(handle)
    under_way.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, and links need a privilege")
def test_fifos_and_links_with_names_of_leftovers_are_neither_opened_nor_followed(tmp_path):
    os.mkfifo(tmp_path / ".fifo.meshferry-0123abcd.part")
    (tmp_path / ".fifo.meshferry-0123abcd.part.blend").write_bytes(b"its lock file is a FIFO")
    (tmp_path / ".link.meshferry-0123abcd.part").symlink_to(tmp_path / "new")
    (tmp_path / ".both.meshferry-0123abcd.part.blend").symlink_to(tmp_path / "new")
    before = sorted(os.listdir(tmp_path))
    output_folder.remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == before


def test_what_other_machines_may_be_writing_is_not_swept(tmp_path):
    shards = tmp_path / "meshferry-batch" / "shards"
    shards.mkdir(parents=True)
    (shards / "1-9.jsonl").touch()
    young, old = tmp_path / ".a.mesh.meshferry-abcdefgh.part", tmp_path / ".b.mesh.meshferry-abcdefgh.part"
    for place in (young, old):
        place.touch()
    os.utime(old, (1, 1))
    output_folder.remove_leftovers(tmp_path)
    assert young.exists() and not old.exists()


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_a_container_s_share_limits_the_processes(tmp_path, files, most):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = available_cores(tmp_path / "nothing")
    assert available_cores(tmp_path) == (machine if most is None else min(machine, most)) >= 1
