"""Part of a plan, done by a machine that knows nothing else: which lines, what is skipped, where it stands."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from batch_mills import ROOT, TO, journal_lines, shard_journals, write_library, written
from meshferry.cli import environment
from meshferry.cli.batch import shard
from meshferry.cli.batch.plan import Plan
from meshferry.cli.batch.progress import Progress
from meshferry.cli.batch.runner import make_plan
from meshferry.cli.batch.tasks import BatchSettings, SourceChoice
from meshferry.cli.conversions.settings import Settings
from meshferry.cli.output import Reporter
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.disk import locks

pytestmark = pytest.mark.any_version


@pytest.mark.parametrize("text", ["", "a", "7", "1-", "1-3:2", "1,5", "1-2-3", "9-1", "-1-3", "9" * 5000])
def test_other_texts_are_not_ranges(text):
    with pytest.raises(MeshferryError, match="is not a range"):
        shard.parse_range(text, 1000)


@pytest.mark.parametrize("text", ["0-4", "7-11", "11-11"])
def test_lines_past_the_plan_are_refused(text):
    with pytest.raises(MeshferryError, match=r"goes past the plan, whose lines are 1-10"):
        shard.parse_range(text, 10)


def test_a_missing_plan_is_named(tmp_path, capsys):
    from meshferry.cli.main import main

    assert main(["batch", "--plan", str(tmp_path), "--range", "1-1"]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'meshferry-batch'}: There is no plan of a batch here\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with six models, a broken one, and an output folder with the plan for them."""
    folder = tmp_path_factory.mktemp("shards")
    write_library(folder / "lib", 6)
    (folder / "lib" / "part0" / "broken.mesh").write_bytes(b"no model at all")
    quiet = Progress(Reporter(quiet=True), folder / "out")
    sources = SourceChoice(paths=[str(folder / "lib")])
    make_plan(BatchSettings(conversion=Settings(TO), sources=sources), folder / "out", quiet)
    return folder


@pytest.fixture
def library(made, tmp_path):
    """Return the folder of models, and an output folder with the plan for them."""
    shutil.copytree(made / "out", tmp_path / "out")
    return made / "lib", tmp_path / "out"


def plan_targets(out):
    return [task.target for task in Plan(out / "meshferry-batch").tasks()]


def test_a_shard_does_its_lines_and_no_others(library, meshferry):
    _, out = library
    done = meshferry("batch", "--plan", out, "--range", "2-4")
    assert done.status == 0, done.err
    targets = plan_targets(out)
    wanted = targets[1:4]
    (name,) = shard_journals(out)
    lines = journal_lines(out, f"shards/{name}")
    assert [line["target"] for line in lines] == wanted
    assert not (out / "meshferry-batch" / "journal.jsonl").exists() or not journal_lines(out)
    assert {name for line in lines for name in line["outputs"]} == set(written(out))


def test_a_broken_file_is_in_the_journal_and_no_failure_of_the_shard(library, meshferry):
    _, out = library
    done = meshferry("batch", "--plan", out, "--range", "1-7", "--json")
    assert done.status == 0
    results = {entry["target"]: entry["result"] for entry in done.entries}
    assert list(results) == plan_targets(out)
    assert results.pop("part0/broken.mesh") == "failed" and set(results.values()) == {"done"}
    assert "broken.mesh" in done.err


def test_a_shard_goes_on_where_it_was(library, meshferry):
    _, out = library
    meshferry("batch", "--plan", out, "--range", "2-5")
    (name,) = shard_journals(out)
    path = out / "meshferry-batch" / "shards" / name
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(content[:2]) + content[2][:20])  # killed while it wrote its third line
    before = {name: (out / name).stat().st_mtime_ns for name in written(out)}
    again = meshferry("batch", "--plan", out, "--range", "2-5", "--json")
    assert [entry["target"] for entry in again.entries] == plan_targets(out)[1:5]
    # The two with a line were left alone, the others were done again.
    untouched = [name for name, time in before.items() if (out / name).stat().st_mtime_ns == time]
    assert len(untouched) == 2
    assert [line["target"] for line in journal_lines(out, f"shards/{name}")] == plan_targets(out)[1:5]


@pytest.mark.slow
def test_what_the_folder_s_journal_knows_is_not_done_again(library, meshferry):
    lib, out = library
    meshferry("batch", lib, "--to", TO, "-o", out, "--jobs", 1)
    done = meshferry("batch", "--plan", out, "--range", "1-7")
    assert "6 done before, 1 failed" in done.out
    (out / plan_targets(out)[3]).unlink()
    done = meshferry("batch", "--plan", out, "--range", "1-7")
    assert "1 file converted, 5 done before, 1 failed" in done.out


@pytest.mark.slow
def test_two_machines_may_do_the_same_shard_at_once(library, meshferry):
    lib, out = library
    folder, name = shard.journals_of(out, range(2, 4))
    folder.mkdir(parents=True)
    first, second = (folder / f"{name}{number}.jsonl" for number in (1, 2))
    with locks.hold(first.with_name(first.name + ".lock")):
        done = meshferry("batch", "--plan", out, "--range", "2-3")
        assert done.status == 0 and second.exists() and not first.exists()
    # The next run merges both and counts each file once.
    shutil.copy(second, first)
    again = meshferry("batch", lib, "--to", TO, "-o", out, "--jobs", 1, "--json")
    assert again.entries[-1]["summary"]["skipped"] == 2 and shard_journals(out) == []
    targets = [line["target"] for line in journal_lines(out)]
    assert sorted(targets) == sorted(plan_targets(out))


@pytest.mark.slow
def test_together_the_shards_are_the_batch(library, tmp_path, meshferry):
    lib, out = library
    for lines in ("1-3", "4-7"):
        assert meshferry("batch", "--plan", out, "--range", lines).status == 0
    summary = meshferry("batch", lib, "--to", TO, "-o", out, "--jobs", 1, "--json").entries[-1]["summary"]
    assert (summary["skipped"], summary["failed"], summary["left"]) == (6, 1, 0)
    alone = tmp_path / "alone"
    meshferry("batch", lib, "--to", TO, "-o", alone, "--jobs", 1)
    assert written(out) == written(alone) and len(written(out)) == 6


def test_a_plan_beside_the_state_is_not_used(library, meshferry):
    """A stranger may have put it into the output folder."""
    _, out = library
    shutil.copy(out / "meshferry-batch" / "plan.sqlite", out / "plan.sqlite")
    (out / "meshferry-batch" / "plan.sqlite").unlink()
    done = meshferry("batch", "--plan", out, "--range", "1-2")
    assert done.status == 2 and "There is no plan of a batch here" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plan", "{out}"], "--plan and --range need each other"),
        (["--range", "1-2", "{lib}", "--to", "mesh", "-o", "{out}"], "--plan and --range need each other"),
        (["--plan", "{out}", "--range", "1-99"], "goes past the plan, whose lines are 1-7"),
        (["--plan", "{out}", "--range", "x"], "is not a range"),
        (["--plan", "{lib}", "--range", "1-1"], "no plan"),
        (["--plan", "{out}", "--range", "1-1", "{lib}"], "cannot be combined with --plan"),
        (["--plan", "{out}", "--range", "1-1", "-o", "{out}"], "--output cannot be combined with --plan"),
        (["--plan", "{out}", "--range", "1-1", "--weld"], "Options of the conversion cannot be combined with --plan"),
    ],
)
def test_what_makes_no_sense_is_refused(library, meshferry, arguments, said):
    lib, out = library
    done = meshferry("batch", *(argument.format(lib=lib, out=out) for argument in arguments))
    assert done.status == 2 and said in done.err and written(out) == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the parent is killed as POSIX does it")
def test_a_shard_ends_with_who_started_it():
    child = (
        f"import sys, time; sys.path.insert(0, {str(ROOT / 'tests')!r}); import load_package; "
        "load_package.load_package(); from meshferry.cli.batch import shard; import threading; "
        "threading.Thread(target=shard._exit_with_parent, daemon=True).start(); print('up', flush=True); time.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], stderr=subprocess.PIPE)"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    process.kill()
    began = time.monotonic()
    process.stdout.read()  # to the end of the last one who could write there
    assert time.monotonic() - began < 30


def test_a_machine_with_another_version_is_refused(library, meshferry, monkeypatch):
    _, out = library
    monkeypatch.setattr(environment, "version", lambda: "9.9.9")
    done = meshferry("batch", "--plan", out, "--range", "1-2")
    assert done.status == 2 and "9.9.9" in done.err and "all machines need the same" in done.err


def test_a_machine_without_a_library_fails_no_files(library, meshferry, monkeypatch):
    _, out = library
    monkeypatch.setitem(environment.LIBRARIES, "no_such_module", "no-such-library")
    done = meshferry("batch", "--plan", out, "--range", "1-2")
    assert done.status == 2 and "This machine lacks no-such-library" in done.err and "pip install" in done.err
    assert shard_journals(out) == []
