"""What a worker of a batch does with one task, free of processes; and, with processes, in the Blender of this test."""

import argparse
import hashlib
import os
import sqlite3
import sys
from pathlib import Path

import pytest
from batch_stand_ins import make_task, plan_of
from boxes import make_box

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def make_converter(library, output):
    """Return a function that makes a converter; the sessions of all are closed at the end."""
    from meshferry.cli.batch.workers.protocol import Setup
    from meshferry.cli.batch.workers.worker import Converter
    from meshferry.cli.conversions.blend_files import BlendSession
    from meshferry.cli.conversions.conversion_arguments import add_conversion_arguments, settings_of

    made = []
    plan = output / "meshferry-batch" / "plan.sqlite"

    def make(extension, *argv):
        session = BlendSession(show_chatter=True)
        made.append(session)
        parser = argparse.ArgumentParser()
        parser.add_argument("--to")
        add_conversion_arguments(parser)
        settings = settings_of(vars(parser.parse_args([*argv, "--to", extension])))
        return Converter(Setup(settings, str(output), (str(library),), str(plan)), session)

    yield make
    for session in made:
        session.__exit__(None, None, None)


def reserve(output, targets):
    """Write a plan with these targets."""
    plan_of(output, [make_task(number, target) for number, target in enumerate(targets)])


def task_of(path, target, *, member="", known_hash="", content=None, size=100):
    from meshferry.cli.batch.tasks import LoadedTask, Task

    return LoadedTask(Task(0, 0, path, member, target, size, 1), known_hash=known_hash, content=content)


def write_mesh(path, *names, material="Wood"):
    """Write a UNIGINE mesh, or a Timbermesh model of several objects."""
    from meshferry.io_formats import api
    from meshferry.io_formats.core.scene import Node, Scene
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    path.parent.mkdir(parents=True, exist_ok=True)
    target = TIMBERMESH if path.suffix == ".timbermesh" else UNIGINE_MESH
    nodes = [Node(name, mesh=make_box([material])) for name in names or ("box",)]
    api.write_scene(Scene(api.scene_name(path), nodes), path, target)
    return path


def digest(data):
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def test_one_file(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    source = write_mesh(library / "set" / "crate.mesh")
    result = make_converter("llmesh").convert(task_of("set/crate.mesh", "set/crate.llmesh"))
    assert (result.status, result.error, result.outputs) == (Status.DONE, "", ["set/crate.llmesh"])
    assert result.hash == digest(source.read_bytes())
    assert result.facts["triangles"] == 12 and type(result.facts["triangles"]) is int
    assert (output / "set" / "crate.llmesh").stat().st_size > 100
    assert 0 < result.seconds < 60


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_planted_in_the_output_folder_is_refused(make_converter, library, output, tmp_path):
    write_mesh(library / "set" / "crate.mesh")
    write_mesh(library / "crate.mesh")
    output.mkdir()
    (output / "set").symlink_to(tmp_path / "elsewhere")
    (output / "crate.llmesh").symlink_to(tmp_path / "new")
    for folder, link in (("set/", "set"), ("", "crate.llmesh")):
        result = make_converter("llmesh").convert(task_of(f"{folder}crate.mesh", f"{folder}crate.llmesh"))
        assert result.error.startswith(f"{output / link} is a link that leads out of {output}; ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_the_same_content_is_not_done_again(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    source = write_mesh(library / "crate.mesh")
    converter = make_converter("llmesh")
    known = digest(source.read_bytes())
    result = converter.convert(task_of("crate.mesh", "crate.llmesh", known_hash=known))
    assert (result.status, result.outputs, result.hash) == (Status.UNCHANGED, [], known)
    assert not output.exists()
    write_mesh(source, material="Steel")
    result = converter.convert(task_of("crate.mesh", "crate.llmesh", known_hash=known))
    assert (result.status, result.outputs) == (Status.DONE, ["crate.llmesh"])


def test_bad_files_are_told_in_words(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    (library / "broken.mesh").write_bytes(b"no mesh at all")
    converter = make_converter("llmesh")
    broken = converter.convert(task_of("broken.mesh", "broken.llmesh"))
    missing = converter.convert(task_of("missing.mesh", "missing.llmesh", size=-1))
    assert (broken.status, missing.status) == (Status.FAILED, Status.FAILED)
    assert "\n" not in broken.error and str(library) not in broken.error and "Traceback" not in broken.error
    assert broken.hash == digest(b"no mesh at all"), "so that a later run knows that it is the same broken file"
    assert missing.error.startswith("The file cannot be read: ")
    assert not output.exists()


def test_large_files_are_not_held_in_memory(make_converter, library, monkeypatch):
    from meshferry.cli.batch.workers import worker
    from meshferry.io_formats.partner_files import FileSet

    source = write_mesh(library / "crate.mesh")
    monkeypatch.setattr(worker, "_LARGE", 10)
    content, hashed = worker._content_and_hash(FileSet(source), task_of("crate.mesh", "crate.llmesh"))
    assert (content, hashed) == (None, digest(source.read_bytes()))
    result = make_converter("llmesh").convert(task_of("crate.mesh", "crate.llmesh"))
    assert result.outputs == ["crate.llmesh"] and result.hash == hashed


def test_what_is_in_an_archive(make_converter, library, output):
    content = write_mesh(library / "crate.mesh").read_bytes()
    (library / "crate.mesh").unlink()
    loaded = task_of("region.oar", "region/assets/crate.llmesh", member="assets/crate.mesh", content=content)
    result = make_converter("llmesh").convert(loaded)
    assert (result.error, result.outputs) == ("", ["region/assets/crate.llmesh"])


def test_parts_are_named_after_their_source_and_never_as_another_target(make_converter, library, output):
    pytest.importorskip("google.protobuf")
    write_mesh(library / "house.timbermesh", "door", "lid.top", "Roof")
    targets = ["house.mesh", "House.Door.mesh", "other/house.Roof.mesh"]
    reserve(output, targets)
    result = make_converter("mesh").convert(task_of("house.timbermesh", "house.mesh"))
    assert result.error == ""
    assert result.outputs == ["house.door_2.mesh", "house.lid_top.mesh", "house.Roof.mesh"]
    assert sorted(path.name for path in output.iterdir() if path.is_file()) == sorted(result.outputs)
    assert result.facts["triangles"] == 36 and result.facts["nodes"] == 3


def test_a_set_does_not_write_over_the_target_of_another(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    write_mesh(library / "house.mesh")
    converter = make_converter("dae")
    alone = converter.convert(task_of("house.mesh", "house.dae"))
    assert alone.status is Status.DONE and alone.outputs[-1] == "house.dae"
    beside = alone.outputs[:-1]
    assert beside, "the levels of detail are files of their own"
    reserve(output, ["house.dae", beside[0]])
    before = (output / beside[0]).read_bytes()
    refused = make_converter("dae").convert(task_of("house.mesh", "house.dae"))
    assert refused.status is Status.FAILED and beside[0] in refused.error
    assert (output / beside[0]).read_bytes() == before


def test_a_set_does_not_write_over_a_source_behind_a_link(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    write_mesh(library / "house.mesh")
    (output / "real").mkdir(parents=True)
    (output / "link").symlink_to("real")
    reserve(output, ["link/house.dae", "real/house_LOD0.dae"])
    refused = make_converter("dae").convert(task_of("house.mesh", "link/house.dae"))
    assert refused.status is Status.FAILED and "house_LOD0.dae" in refused.error
    assert not any((output / "real").iterdir())


def test_the_names_of_a_plan(tmp_path):
    from meshferry.cli.batch.plan import PlannedNames

    path = tmp_path / "meshferry-batch" / "plan.sqlite"
    assert "a.mesh" not in PlannedNames(path)
    reserve(tmp_path, [])
    assert "a.mesh" not in PlannedNames(path)
    names = [f"set/Thing {number}.mesh" for number in range(1000)] + ["odd\udcff.mesh", "Straße.mesh"]
    reserve(tmp_path, names)
    index = PlannedNames(path)
    assert all(name in index and name.upper() in index for name in names)
    assert not any(f"set/Thing {number}.anim" in index for number in range(1000))


def test_a_worker_does_not_hold_the_plan_after_a_task(make_converter, library, output, monkeypatch):
    """Windows could not replace it by that of the next run."""
    from meshferry.cli.batch import plan

    opened = []
    real = plan.connect
    monkeypatch.setattr(plan, "connect", lambda *path, **options: opened.append(real(*path, **options)) or opened[-1])
    write_mesh(library / "house.timbermesh", "door", "roof")
    reserve(output, ["house.mesh", "house.door.mesh"])
    converter = make_converter("mesh")
    opened.clear()
    for _ in range(2):
        result = converter.convert(task_of("house.timbermesh", "house.mesh"))
        assert result.outputs == ["house.door_2.mesh", "house.roof.mesh"]
    assert len(opened) == 2
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            connection.execute("SELECT 1")


def test_what_one_file_has_seen_is_nothing_to_the_next(make_converter, library, output):
    """A clip that the user gave a name is a file of that name; another's own clip of that name is not."""
    import numpy as np
    from meshferry.io_formats import api
    from meshferry.io_formats.core.scene import Clip, Joint, Scene, Skeleton, TransformTrack
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    zeros, ones = np.zeros((3, 3), np.float32), np.ones((3, 3), np.float32)
    turn = np.tile(np.float32([1, 0, 0, 0]), (3, 1))
    for stem, clip in (("one", "one"), ("two", "walk")):
        clips = [Clip(clip, 30.0, 3, [TransformTrack(0, zeros, turn, ones, skeleton=0)])]
        scene = Scene(stem, [], [Skeleton("rig", [Joint("root", -1)])], clips)
        api.write_scene(scene, library / f"{stem}.anim", UNIGINE_ANIMATION)
    converter = make_converter("anim", "--rename-clip", "one=two")
    results = [converter.convert(task_of(f"{stem}.anim", f"x/{stem}.anim")) for stem in ("one", "two")]
    again = make_converter("anim", "--rename-clip", "one=two").convert(task_of("two.anim", "x/two.anim"))
    assert [result.outputs for result in results] == [["x/one.two.anim"], ["x/two.anim"]]
    assert again.outputs == results[1].outputs


def test_losses_are_told_and_strict_is_kept(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    pytest.importorskip("google.protobuf")
    write_mesh(library / "two.timbermesh", "one", "two")
    nothing = make_converter("anim").convert(task_of("two.timbermesh", "two.anim"))
    assert nothing.status is Status.FAILED and "There is nothing in 'two'" in nothing.error
    told = make_converter("data").convert(task_of("two.timbermesh", "two.data"))
    assert told.status is Status.DONE
    assert len(told.warnings) == len(set(told.warnings)) > 0
    strict = make_converter("data", "--strict").convert(task_of("two.timbermesh", "strict.data"))
    assert strict.status is Status.FAILED and strict.error.startswith("Refused in strict mode: ")
    assert strict.outputs == []
    assert sorted(path.name for path in output.iterdir()) == sorted(told.outputs)


@pytest.mark.needs_bpy
def test_to_blend_and_back(make_converter, library, output):
    from meshferry.cli.batch.tasks import Status

    write_mesh(library / "crate.mesh")
    result = make_converter("blend").convert(task_of("crate.mesh", "crate.blend"))
    assert (result.status, result.outputs, result.facts["triangles"]) == (Status.DONE, ["crate.blend"], 12)
    blend = (output / "crate.blend").read_bytes()
    (library / "crate.blend").write_bytes(blend)
    back = make_converter("llmesh").convert(task_of("crate.blend", "back.llmesh"))
    assert (back.error, back.outputs, back.facts["triangles"]) == ("", ["back.llmesh"], 12)
    assert back.hash == digest(blend)


@pytest.mark.slow
@pytest.mark.needs_bpy
def test_processes_of_the_blender_that_runs_this(library, output):
    """Of the module, and in a real Blender of its own executable."""
    import bpy
    from meshferry.cli.batch.tasks import Status
    from meshferry.cli.batch.workers.pool import Pool
    from meshferry.cli.batch.workers.protocol import Setup
    from meshferry.cli.conversions.settings import Settings

    for number in range(4):
        write_mesh(library / f"{number}.mesh")
    (library / "3.mesh").write_bytes(b"broken")
    pool = Pool(Setup(Settings("blend"), str(output), (str(library),), time_limit=120), 2)
    results = list(pool.run(task_of(f"{number}.mesh", f"{number}.blend") for number in range(4)))
    ended = {result.task.path: result.status for result in results}
    assert ended == {f"{number}.mesh": Status.DONE if number < 3 else Status.FAILED for number in range(4)}
    for number in range(3):
        bpy.ops.wm.open_mainfile(filepath=str(output / f"{number}.blend"))
        assert sum(len(mesh.polygons) for mesh in bpy.data.meshes) == 12
    assert sorted(path.name for path in output.iterdir()) == ["0.blend", "1.blend", "2.blend"]


def test_a_job_is_the_same_in_the_process_that_runs_it(tmp_path):
    """With its partner files, and also if the format is only patched."""
    import json

    from meshferry.cli.batch.workers import protocol
    from meshferry.cli.conversions.blender_formats import all_formats
    from meshferry.cli.conversions.convert_plan import ConversionJob
    from meshferry.io_formats.partner_files import FileSet

    files = FileSet(tmp_path / "a.dae", {"LOD1": tmp_path / "a_LOD1.dae"}, (tmp_path / "a.dae", tmp_path / "b.dae"))
    for number, known in enumerate(all_formats()):
        folder, sets = (tmp_path, {files.path: files}) if number % 2 else (None, {})
        job = ConversionJob((files.path, tmp_path / "c.glb"), tmp_path / "x", known, folder, bool(sets), sets=sets)
        data = json.loads(protocol.encode_job(job, {}))
        assert protocol.parse_job(data["job"]) == job, known.name


def test_a_worker_started_by_hand(run_python):
    done = run_python(ROOT / "cli" / "convert.py", "batch-worker")
    assert done.status == 1
    assert "is started by 'meshferry batch', not by hand" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="names are text there")
def test_names_that_are_no_text(make_converter, library, output):
    name = os.fsdecode(b"caf\xe9.mesh")
    try:
        write_mesh(library / name)
    except OSError:
        pytest.skip("this disk takes no such names")
    result = make_converter("llmesh").convert(task_of(name, os.fsdecode(b"caf\xe9.llmesh")))
    assert (result.error, result.outputs) == ("", [os.fsdecode(b"caf\xe9.llmesh")])


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores"
)
def test_workers_load_blender_on_different_cores():
    """Two workers on one core would load Blender one after the other."""
    from meshferry.cli.environment import limited_cores

    usual = os.sched_getaffinity(0)
    chosen = []
    for number in range(2):
        with limited_cores(1, number):
            chosen.append(os.sched_getaffinity(0))
    assert [len(cores) for cores in chosen] == [1, 1]
    assert chosen[0] != chosen[1]
    assert os.sched_getaffinity(0) == usual
