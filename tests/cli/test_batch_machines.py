"""Batches on a dask cluster, one machine of which dies, and as jobs that the reference of OpenJD checks and runs."""

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

import pytest
from batch_mills import TO, command, journal_lines, run, shard_journals, write_library, written
from meshferry.cli import environment
from meshferry.cli.batch import plan as plans
from meshferry.cli.batch.remote import dask, openjd
from meshferry.cli.batch.settings import BatchSettings
from meshferry.cli.batch.tasks import Task
from meshferry.cli.conversions.settings import Settings
from meshferry.io_formats.core.errors import MeshferryError

pytestmark = pytest.mark.any_version

PATIENCE = 60
"""Seconds; everything takes a few, on a machine that does nothing else."""


def until(condition, what):
    """Wait for something and return it."""
    ends = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < ends, f"{what} did not happen"
        time.sleep(0.01)
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return a folder of models, and what they become on one machine."""
    folder = tmp_path_factory.mktemp("library")
    write_library(folder / "lib", 12)
    done = run("batch", folder / "lib", "--to", TO, "-o", folder / "alone", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    outputs = written(folder / "alone")
    assert len(outputs) == 12
    return folder / "lib", outputs


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Start a dask scheduler and two workers with a thread each; return its address, its process and theirs."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("dask.distributed is absent: pip install distributed")
    folder = tmp_path_factory.mktemp("cluster")
    found = folder / "scheduler.json"
    temporary = tmp_path_factory.mktemp("temporary")
    own = {"DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False"} | os.environ | {"TMPDIR": str(temporary)}
    with ExitStack() as stack:

        def start(*arguments):
            log = stack.enter_context((folder / f"{len(os.listdir(folder))}.log").open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard", "--scheduler-file", str(found)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=own,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        until(lambda: found.exists() and found.read_text().endswith("}"), "the scheduler's start")
        options = ["--nworkers", "1", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        workers = [start("worker", *options) for _ in range(2)]
        yield json.loads(found.read_text())["address"], scheduler, workers


def batch_on(cluster, lib, out):
    """Start a batch on the cluster, as a process of its own."""
    arguments = [
        lib,
        "--to",
        TO,
        "-o",
        out,
        "--json",
        "--worker-command",
        shlex.join(command()),
        "--scheduler",
        cluster[0],
    ]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command("batch", *arguments), **pipes)


def until_a_shard_runs(workers, driver):
    """Return a worker that has a shard under way."""
    psutil = pytest.importorskip("psutil")

    def busy():
        assert driver.poll() is None, "the batch ended before anything could happen to it"
        for worker in workers:
            with suppress(psutil.Error):  # it has just ended
                if any("--range" in child.cmdline() for child in psutil.Process(worker.pid).children()):
                    return worker
        return None

    return until(busy, "the start of a shard")


def until_no_shard_runs(out):
    psutil = pytest.importorskip("psutil")

    def idle():
        words = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        return not any("--range" in line and str(out) in line for line in words)

    until(idle, "the end of the shards")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on this system")
def test_every_file_is_done_though_a_machine_dies(library, cluster, tmp_path):
    lib, outputs = library
    out = tmp_path / "out"
    driver = batch_on(cluster, lib, out)
    try:
        until_a_shard_runs(cluster[2], driver).send_signal(signal.SIGKILL)
        said, complaints = driver.communicate(timeout=PATIENCE)
    finally:
        driver.kill()
    assert driver.returncode == 0, complaints
    entries = [json.loads(line) for line in said.splitlines()]
    assert entries[-1]["summary"]["done"] == 12 and entries[-1]["summary"]["files"] == 12
    assert written(out) == outputs
    targets = [line["target"] for line in journal_lines(out)]
    assert sorted(targets) == sorted(outputs)
    assert all(line["result"] == "done" for line in journal_lines(out))
    # What the dead machine was at has ended with it, and left nothing that would be taken over again.
    until_no_shard_runs(out)
    assert shard_journals(out) == []


@pytest.mark.slow
def test_a_batch_outlives_its_scheduler(library, cluster, tmp_path):
    """Runs last, since it leaves the cluster unusable."""
    lib, outputs = library
    out = tmp_path / "out"
    address, scheduler, workers = cluster
    driver = batch_on(cluster, lib, out)
    try:
        until_a_shard_runs(workers, driver)
        scheduler.kill()
        _, complaints = driver.communicate(timeout=PATIENCE)
    finally:
        driver.kill()
    assert driver.returncode in {1, 2}
    (complaint,) = complaints.decode().splitlines()
    assert f"The dask scheduler at {address} has gone away (dask.distributed " in complaint
    assert "run the same command again to continue" in complaint
    # Its workers end their shards or give up; either way the next run goes on, here without a cluster.
    until_no_shard_runs(out)
    again = run("batch", lib, "--to", TO, "-o", out, "--jobs", 1)
    assert again.returncode == 0, again.stderr
    assert written(out) == outputs and shard_journals(out) == []
    assert sorted(line["target"] for line in journal_lines(out)) == sorted(outputs)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tls://127.0.0.1:9"])
def test_a_scheduler_that_is_not_there_is_named(tmp_path, meshferry, monkeypatch, address):
    """Also for an address that needs certificates, of which dask's settings name none."""
    pytest.importorskip("distributed", reason="dask.distributed is absent")
    monkeypatch.setattr(dask, "_CONNECT_SECONDS", 1)
    write_library(tmp_path / "lib", 1)
    arguments = ["--to", TO, "-o", tmp_path / "out", "--scheduler", address]
    done = meshferry("batch", tmp_path / "lib", *arguments)
    assert done.status == 2 and written(tmp_path / "out") == {}
    (complaint,) = done.err.splitlines()
    assert complaint.startswith(f"No dask scheduler answers at {address}: ")
    assert "(dask.distributed " in complaint


def test_without_dask_it_says_how_to_get_it(tmp_path, meshferry, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    write_library(tmp_path / "lib", 1)
    done = meshferry("batch", tmp_path / "lib", "--to", TO, "-o", tmp_path / "out", "--scheduler", "tcp://x:1")
    assert done.status == 2 and "pip install" in done.err and "distributed" in done.err


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (FileNotFoundError(2, "No such file"), "A dask worker has no command 'mf --x': install Meshferry there"),
        (subprocess.CalledProcessError(2, "mf", b"", b"one\nno plan here.\n"), "could not begin: no plan here. The"),
        (subprocess.CalledProcessError(1, "mf", b"", b""), "could not begin: it printed nothing. The"),
        (PermissionError(13, "Permission denied"), "could not start a shard: PermissionError: .*Permission denied"),
    ],
)
def test_what_stops_every_shard_ends_the_run_in_words(tmp_path, problem, said):
    pytest.importorskip("distributed", reason="dask.distributed is absent")
    pool = dask.DaskPool(BatchSettings(scheduler="tcp://x:1", worker_command="mf --x"), tmp_path)
    with pytest.raises(MeshferryError, match=said):
        pool._reason(problem)


def test_what_kills_a_shard_is_said_of_its_files(tmp_path):
    pytest.importorskip("distributed", reason="dask.distributed is absent")
    pool = dask.DaskPool(BatchSettings(scheduler="tcp://x:1"), tmp_path)
    said = pool._reason(subprocess.CalledProcessError(-9, "mf", b"", b"last words\n"))
    assert "Killed" in said and "memory" in said and said.endswith("and its shard with it: last words")


@pytest.mark.parametrize(
    ("count", "threads", "size"),
    [(1, 1, 1), (12, 2, 6), (24, 2, 10), (24, 8, 3), (1000, 4, 32), (100_000, 16, 200), (5, 100, 1)],
)
def test_shards_are_worth_a_start_and_leave_no_thread_idle(count, threads, size):
    assert dask.shard_size(count, threads) == size


def run_openjd(temporary, *arguments):
    """Run the reference implementation of Open Job Description; return what it printed, as JSON."""
    if importlib.util.find_spec("openjd") is None:
        pytest.skip("Open Job Description is absent: pip install openjd-cli")
    done = subprocess.run(
        [sys.executable, "-m", "openjd", *map(str, arguments), "--output", "json"],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout[done.stdout.index("{\n") :])


@pytest.mark.slow
def test_a_job_runs_on_a_farm_that_sees_the_folders_elsewhere(library, tmp_path):
    lib, outputs = library
    out, job = tmp_path / "out", tmp_path / "job"
    done = run("batch", lib, "--to", TO, "-o", out, "--openjd", job, "--worker-command", shlex.join(command()))
    assert done.returncode == 0 and "a job for 12 files" in done.stdout, done.stderr
    assert written(out) == {}
    template = job / "template.json"
    run_openjd(tmp_path, "check", template)
    lib.rename(tmp_path / "their lib")
    try:
        rules = [(lib, tmp_path / "their lib"), (out, tmp_path / "their out")]
        mapped = [
            {"source_path_format": "POSIX" if os.name == "posix" else "WINDOWS"}
            | {"source_path": str(old), "destination_path": str(new)}
            for old, new in rules
        ]
        ran = run_openjd(
            tmp_path,
            "run",
            template,
            *("-p", f"file://{job / 'parameters.json'}", "-p", "ChunkSize=6", "-p", "ChunkSeconds=0"),
            *("--path-mapping-rules", json.dumps({"version": "pathmapping-1.0", "path_mapping_rules": mapped})),
        )
    finally:
        (tmp_path / "their lib").rename(lib)
    assert ran["status"] == "success"
    assert ran["chunks_run"] == 3  # two of six lines, and what brings them together
    theirs = tmp_path / "their out"
    assert written(theirs) == outputs and written(out) == {}
    assert sorted(line["target"] for line in journal_lines(theirs)) == sorted(outputs)
    assert shard_journals(theirs) == []


def write_job(meshferry, tmp_path, *arguments, count=3):
    write_library(tmp_path / "lib", count)
    given = ["--to", TO, "-o", tmp_path / "out", "--openjd", tmp_path / "job", *arguments]
    done = meshferry("batch", tmp_path / "lib", *given)
    assert done.status == 0, done.err
    return {path.stem: json.loads(path.read_text("ascii")) for path in (tmp_path / "job").glob("*.json")}


def test_a_bundle_has_the_files_of_deadline_cloud(tmp_path, meshferry):
    bundle = write_job(meshferry, tmp_path)
    values = {entry["name"]: entry["value"] for entry in bundle["parameter_values"]["parameterValues"]}
    assert values == {"Output": str(tmp_path / "out"), "Sources1": str(tmp_path / "lib")} == bundle["parameters"]
    assets = bundle["asset_references"]["assetReferences"]
    assert sorted(assets["inputs"]["filenames"]) == sorted(str(path) for path in (tmp_path / "lib").rglob("*.*mesh"))
    assert assets["outputs"]["directories"] == [str(tmp_path / "out")]
    definitions = {entry["name"]: entry for entry in bundle["template"]["parameterDefinitions"]}
    flows = {name: entry["dataFlow"] for name, entry in definitions.items() if entry["type"] == "PATH"}
    assert flows == {"Plan": "IN", "Output": "OUT", "Sources1": "NONE"}
    # Its client refuses defaults outside of the bundle, and what has neither default nor value.
    assert not os.path.isabs(definitions["Plan"]["default"])
    assert all("default" in entry or name in values for name, entry in definitions.items())
    # Both a .json and a .yaml of the same name, and links that lead out, are refused as well.
    assert sorted(os.listdir(tmp_path / "job")) == [
        *("asset_references.json", "parameter_values.json", "parameters.json", "plan", "template.json")
    ]


def test_files_beside_a_source_come_along(tmp_path, meshferry):
    (tmp_path / "lib").mkdir()
    for name in ("lamp.obj", "lamp.mtl", "lamp_glass.png", "other.mtl", "lam.mtl"):
        (tmp_path / "lib" / name).write_bytes(b"x")
    bundle = write_job(meshferry, tmp_path, count=0)
    inputs = bundle["asset_references"]["assetReferences"]["inputs"]["filenames"]
    assert {os.path.basename(path) for path in inputs} == {"lamp.obj", "lamp.mtl", "lamp_glass.png"}


def test_a_job_is_of_what_is_still_to_do(tmp_path, meshferry):
    write_library(tmp_path / "lib", 4)
    meshferry("batch", tmp_path / "lib", "--to", TO, "-o", tmp_path / "out", "--jobs", 1)
    (tmp_path / "out" / "part1" / "mill001.mesh").unlink()
    bundle = write_job(meshferry, tmp_path, count=0)
    (lines,) = bundle["template"]["steps"][0]["parameterSpace"]["taskParameterDefinitions"]
    assert lines["range"] == "1-1"
    assert [task.target for task in plans.Plan(tmp_path / "job" / "plan").tasks()] == ["part1/mill001.mesh"]
    meshferry("batch", tmp_path / "lib", "--to", TO, "-o", tmp_path / "out", "--jobs", 1)
    (tmp_path / "job" / "template.json").unlink()
    done = meshferry("batch", tmp_path / "lib", "--to", TO, "-o", tmp_path / "out", "--openjd", tmp_path / "job")
    assert done.status == 0 and "no job was written" in done.out
    assert not (tmp_path / "job" / "template.json").exists()


def test_a_folder_with_something_else_is_no_place_for_a_job(tmp_path, meshferry):
    write_library(tmp_path / "lib", 1)
    done = meshferry("batch", tmp_path / "lib", "--to", TO, "-o", tmp_path / "out", "--openjd", tmp_path / "lib")
    assert done.status == 2 and "holds 'part0', which does not belong to a job" in done.err


def write_plan(tmp_path, roots, count):
    """Write a plan of files that do not exist; return the part of it that a job has."""
    folder = tmp_path / "out" / "meshferry-batch"
    folder.mkdir(parents=True)
    with plans.new_plan(folder) as connection:
        rows = ((n + 1, n % len(roots), f"{n}.timbermesh", "", f"{n}.mesh", -1, 0) for n in range(count))
        plans.insert_tasks(connection, rows)
        plans.set_head(connection, plans.PlanHead(Settings(TO), environment.version(), tuple(roots), count))
    (tmp_path / "job").mkdir()
    plan = plans.Plan(folder)
    return plan, openjd._write_plan(plan, plan.tasks(), tmp_path / "job")


def test_very_many_files_are_at_most_ten_thousand_tasks(tmp_path):
    model = pytest.importorskip("openjd.model", reason="Open Job Description is absent")
    count = 20_001
    _, part = write_plan(tmp_path, [str(tmp_path)], count)
    values = openjd._values(part, tmp_path / "out")
    template = openjd._template(part, values, BatchSettings())
    read = model.decode_job_template(template=template, supported_extensions=["TASK_CHUNKING"])
    (tmp_path / "job" / "plan").mkdir()
    values = model.preprocess_job_parameters(
        job_template=read,
        job_parameter_values=values,
        job_template_dir=tmp_path / "job",
        current_working_dir=tmp_path,
    )
    made = model.create_job(job_template=read, job_parameter_values=values)
    convert, collect = made.steps
    lines = convert.parameterSpace.taskParameterDefinitions["Lines"]
    arguments = [str(word) for word in convert.script.actions.onRun.args]
    (group,) = (int(word.removeprefix("--lines=")) for word in arguments if word.startswith("--lines="))
    tasks = len(lines.range)
    assert tasks <= 10_000 and (tasks - 1) * group < count <= tasks * group
    assert [one.dependsOn for one in collect.dependencies] == ["Convert"]


def test_several_folders_of_sources_are_one_parameter(tmp_path):
    roots = [str(tmp_path / f"root{number}" / "deep") for number in range(60)]
    plan, moved = write_plan(tmp_path, roots, 120)
    assert moved.roots == (str(tmp_path),)
    assert [moved.path_of(task) for task in moved.tasks()] == [plan.path_of(task) for task in plan.tasks()]
    assert [task.target for task in moved.tasks()] == [task.target for task in plan.tasks()]
    assert moved.head.digest == plan.head.digest


def test_a_material_library_is_a_parameter(tmp_path, meshferry):
    library = tmp_path / "my materials.blend"
    bundle = write_job(meshferry, tmp_path, "--to", "blend", "--material-library", library)
    assert bundle["parameters"]["MaterialLibrary"] == str(library)
    assert str(library) in bundle["asset_references"]["assetReferences"]["inputs"]["filenames"]
    for step in bundle["template"]["steps"]:
        assert "--material-library={{Param.MaterialLibrary}}" in step["script"]["actions"]["onRun"]["args"]


@pytest.mark.parametrize(
    ("numbers", "size", "ranges"),
    [
        ([0, 1, 2, 3, 4], 2, ["1-2", "3-4", "5-5"]),
        ([4, 9, 30], 10, ["5-31"]),
        ([4, 9, 30_000, 30_001], 10, ["5-10", "30001-30002"]),
        ([], 10, []),
    ],
)
def test_shards_are_ranges_of_the_plan(numbers, size, ranges):
    tasks = [Task(number, 0, "", "", "", 0, 0) for number in numbers]
    shards = list(dask.make_shards(tasks, size))
    lines = [dask.lines_of(shard) for shard in shards]
    assert [f"{part[0]}-{part[-1]}" for part in lines] == ranges
    assert [task for shard in shards for task in shard] == tasks
