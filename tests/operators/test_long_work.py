"""Work in steps: cancelled at any of them, an import or export leaves everything as it was."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
IMPORTERS = {".timbermesh": "timbermesh", ".llmesh": "second_life", ".mesh": "unigine", ".anim": "unigine"}


def state(bpy: Any) -> dict[str, Any]:
    """Return the names of all data blocks, and how the scene stands."""
    found: dict[str, Any] = {
        part.identifier: sorted(block.name for block in getattr(bpy.data, part.identifier))
        for part in bpy.data.bl_rna.properties
        if part.type == "COLLECTION"
    }
    scene, active = bpy.context.scene, bpy.context.object
    found["time"] = (scene.frame_start, scene.frame_end, scene.render.fps, scene.frame_current)
    found["selected"] = sorted(obj.name for obj in bpy.context.selected_objects)
    found["active"] = (active.name, active.mode) if active else ()
    found["placed"] = [tuple(map(tuple, obj.matrix_world)) for obj in scene.objects]
    return found


@pytest.fixture
def cancel_at(clean_blender: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], bool]:
    """Return a function that calls an operator which is cancelled at a step; it returns whether there is that step."""
    from meshferry.operators import progress

    def call(number: int, operator: Callable[[], Any]) -> bool:
        class Cancelled(progress.Work):
            def run(self, seconds: float) -> bool:
                try:
                    for _ in range(number):
                        next(self._steps)
                except StopIteration as end:
                    self.result = end.value
                else:
                    self.cancel()
                    self.result = {"CANCELLED"}
                return True

        monkeypatch.setattr(progress, "Work", Cancelled)
        return operator() == {"CANCELLED"}

    return call


def some_steps(cancels: Callable[[int], bool]) -> int:
    """Cancel at the first three steps, then at ever wider distances; return the first number that was too many."""
    number = 1
    while cancels(number):
        number += 1 + number // 3
    return number


def test_a_cancelled_import_leaves_nothing(clean_blender, cancel_at, tmp_path):
    bpy = clean_blender
    bpy.ops.mesh.primitive_cube_add()
    bpy.ops.object.mode_set(mode="EDIT")
    names = ("lamp.mesh", "lamp_nod.anim", "windmill.timbermesh", "tunic.llmesh")
    for name in names:
        shutil.copy(EXAMPLES / name, tmp_path)
    files = [{"name": name} for name in names]
    before = state(bpy)

    def cancels(number: int) -> bool:
        call = bpy.ops.import_scene.timbermesh
        found = cancel_at(number, lambda: call(directory=str(tmp_path), files=files, vertex_animation="CACHE"))
        assert (state(bpy) == before) is found, number
        assert (len(list(tmp_path.iterdir())) == len(names)) is found  # a mesh cache is written beside the windmill
        return found

    assert some_steps(cancels) > 2 * len(names)  # each file, and at least one step within each


@pytest.mark.parametrize(
    ("sources", "operator", "target"),
    [
        (("windmill.timbermesh",), "timbermesh", "mill.timbermesh"),
        (("lamp.mesh", "lamp_nod.anim"), "unigine_mesh", "lamp.mesh"),
        (("lamp.mesh", "lamp_nod.anim"), "unigine_anim", "lamp.anim"),
        (("tunic.llmesh",), "second_life_upload", "tunic.dae"),
    ],
)
def test_a_cancelled_export_leaves_scene_and_files(clean_blender, cancel_at, tmp_path, sources, operator, target):
    bpy = clean_blender
    for name in sources:
        getattr(bpy.ops.import_scene, IMPORTERS[Path(name).suffix])(filepath=str(EXAMPLES / name))
    bpy.ops.object.select_all(action="SELECT")
    bpy.context.scene.frame_set(7)
    path = tmp_path / target
    path.write_bytes(b"old")
    before = state(bpy)

    def cancels(number: int) -> bool:
        export = getattr(bpy.ops.export_scene, operator)
        found = cancel_at(number, lambda: export(filepath=str(path), scope="SELECTION"))
        assert state(bpy) == before, number
        assert (path.read_bytes() == b"old") is found
        assert not found or [path.name for path in tmp_path.iterdir()] == [target]
        return found

    assert some_steps(cancels) > 2


def test_several_files_are_written_together_or_not_at_all(clean_blender, cancel_at, tmp_path):
    bpy = clean_blender
    for number in range(3):
        bpy.ops.mesh.primitive_cube_add(location=(3 * number, 0, 0))
    bpy.ops.object.select_all(action="SELECT")

    def cancels(number: int) -> bool:
        found = cancel_at(number, lambda: bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "a.mesh")))
        assert len(list(tmp_path.iterdir())) == (0 if found else 3)
        return found

    assert some_steps(cancels) > 3


def test_work_goes_on_where_it_stopped_and_jobs_leave_the_main_thread_free(clean_blender):
    from meshferry.blender_data.steps import finish, scaled, without_bpy
    from meshferry.operators.progress import Work

    go_on, threads = threading.Event(), []

    def job() -> int:
        threads.append(threading.current_thread())
        go_on.wait(10)
        return 3

    def steps() -> Any:
        doubled = 2 * (yield from scaled(without_bpy("Reading", job), 0.5, 1.0, "lamp.mesh"))
        return {str(doubled)}

    work = Work(steps())
    assert not work.run(0.01)
    assert not work.run(0.01)
    assert (work.step.label, work.step.fraction, work.step.subject) == ("Reading", 0.5, "lamp.mesh")
    go_on.set()
    assert work.run(10)
    assert work.result == {"6"}
    assert finish(steps()) == {"6"}
    assert [thread is threading.main_thread() for thread in threads] == [False, True]


def test_an_error_in_a_thread_is_raised_where_the_result_is_used(clean_blender):
    from meshferry.blender_data.steps import without_bpy
    from meshferry.operators.progress import Work

    def steps() -> Any:
        try:
            yield from without_bpy("Reading", int, "x")
        except ValueError:
            return {"CANCELLED"}

    work = Work(steps())
    assert work.run(10)
    assert work.result == {"CANCELLED"}


@pytest.fixture
def modal_operator(clean_blender: Any, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a modal operator that runs until ``stop`` is set, and records of its context and its reports."""
    from meshferry.blender_data.steps import Step
    from meshferry.operators import progress

    monkeypatch.setattr(progress, "TURNS", (0.0, 0.0))  # one step at each tick
    found = SimpleNamespace(stop=False, ends=[], shown=[], timers=["timer"], reports=[])

    def steps() -> Any:
        try:
            while not found.stop:
                yield Step("Reading meshes", 0.25, "lamp.mesh")
        finally:
            found.ends.append("steps")
        return {"FINISHED"}

    class Operator(progress.LongWork):
        def report(self, kind: set[str], text: str) -> None:
            found.reports.append((*kind, text))

    operator = Operator()
    operator._work, operator._timer = progress.Work(steps()), "timer"
    found.context = SimpleNamespace(
        window_manager=SimpleNamespace(
            progress_update=found.shown.append,
            progress_end=lambda: found.ends.append("progress"),
            event_timer_remove=found.timers.remove,
        ),
        workspace=SimpleNamespace(status_text_set=found.shown.append),
    )
    found.send = lambda kind, value="NOTHING": operator.modal(found.context, SimpleNamespace(type=kind, value=value))
    return found


def test_pressing_esc_alone_cancels_modal_work(modal_operator):
    assert modal_operator.send("TIMER") == {"RUNNING_MODAL"}
    assert modal_operator.shown == ["lamp.mesh: Reading meshes … 25 % (Esc: cancel)", 25]
    for kind, value in (("ESC", "RELEASE"), ("MOUSEMOVE", "PRESS"), ("TIMER", "NOTHING")):
        assert modal_operator.send(kind, value) == {"RUNNING_MODAL"}
    assert modal_operator.ends == modal_operator.reports == []
    assert modal_operator.send("ESC", "PRESS") == {"CANCELLED"}
    assert modal_operator.ends == ["steps", "progress"]
    assert modal_operator.reports == [("INFO", "Cancelled; nothing was changed")]
    assert modal_operator.shown[-1] is None and modal_operator.timers == []
    assert modal_operator.send("TIMER") == {"CANCELLED"}


def test_modal_work_ends_by_itself(modal_operator):
    assert modal_operator.send("TIMER") == {"RUNNING_MODAL"}
    modal_operator.stop = True
    assert modal_operator.send("TIMER") == {"FINISHED"}
    assert modal_operator.ends == ["steps", "progress"]
    assert modal_operator.shown[-1] is None and modal_operator.timers == modal_operator.reports == []


def test_the_question_about_other_machines_stands_before_that_of_the_work(clean_blender, monkeypatch):
    """Blender shows no dialog without a window, so its functions are stand-ins."""
    from meshferry.blender_data import file_records
    from meshferry.operators import progress

    shown: list[str] = []

    class Operator(progress.LongWork):
        bl_label = ""

        def is_from_user(self) -> bool:
            return True

        def stored_paths(self, context: Any) -> list[Any]:
            return ["//evil.example/share//lamp.mesh", 3, "lamp.mesh"]

        def question(self, context: Any) -> str:
            return "Replace?"

        def steps(self, context: Any) -> Any:
            yield from ()
            return {"FINISHED"}

    functions = dict.fromkeys(("progress_begin", "progress_end"), lambda *_: None)
    manager = SimpleNamespace(invoke_props_dialog=lambda operator, **_: shown.append(operator.asked), **functions)
    context = SimpleNamespace(window_manager=manager, window="window")
    monkeypatch.setattr(progress, "bpy", SimpleNamespace(app=SimpleNamespace(background=False)))
    operator = Operator()
    operator.execute(context)
    asked = "Open paths on other machines, which are stored in this .blend file? '//evil.example/share//lamp.mesh'"
    assert shown == [f"{asked}\nReplace?"]
    assert operator.execute(context) == {"FINISHED"}  # the user agreed
    Operator().execute(context)
    assert shown[1:] == ["Replace?"]
    file_records.session_files().clear()


def dense_grid(bpy: Any, side: int) -> Any:
    """Add a grid of 2 * side * side triangles and select it alone."""
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=side, y_subdivisions=side)
    return bpy.context.object


def test_what_no_file_can_hold_is_refused_before_it_is_read(clean_blender, tmp_path, monkeypatch):
    from meshferry.blender_data.exporting import exporter
    from meshferry.operators.families import mesh_serializer as export_mesh_serializer

    bpy = clean_blender
    monkeypatch.setattr(export_mesh_serializer, "MOST", 100)
    dense_grid(bpy, 10).modifiers.new("Subdivision", "SUBSURF").levels = 2
    path, reads = str(tmp_path / "grid.data"), []
    with monkeypatch.context() as patch:
        patch.setattr(exporter, "export_steps", lambda *_: reads.append(1))
        with pytest.raises(
            RuntimeError, match=r"'Grid' has 3,200 triangles; a file holds 65,535 vertices and 65,535 triangles"
        ):
            bpy.ops.export_scene.mesh_serializer(filepath=path)
    assert not reads
    assert bpy.ops.export_scene.mesh_serializer(filepath=path, use_modifiers=False) == {"FINISHED"}
    assert bpy.ops.export_scene.mesh_serializer(filepath=path, large_meshes="SPLIT") == {"FINISHED"}


def test_a_huge_model_for_second_life_is_asked_about_in_a_window_and_warned_of_elsewhere(
    clean_blender, tmp_path, capfd, monkeypatch
):
    from meshferry.blender_data.exporting import object_selection
    from meshferry.io_formats.second_life.asset import rules
    from meshferry.operators.families.second_life.exporters import ExportSecondLife

    bpy = clean_blender
    monkeypatch.setattr(rules, "MOST_TRIANGLES", 1500)
    dense_grid(bpy, 30)
    path = str(tmp_path / "grid.dae")
    values = {"use_modifiers": True, "use_hidden": False, "use_instances": True}
    source = object_selection.Source("SELECTION")
    owner = SimpleNamespace(filepath=path, values=lambda: values, source=lambda *_: (source, "grid"))
    assert "'Grid' has 1,800 triangles, more than the 1,500 " in ExportSecondLife.question(owner, bpy.context)
    assert bpy.ops.export_scene.second_life_upload(filepath=path, missing_levels="COPY") == {"FINISHED"}
    assert "it has 1,800 triangles, more than the 1,500 of one object" in capfd.readouterr().out
    bpy.context.object.modifiers.new("Decimate", "DECIMATE").ratio = 0.1
    assert ExportSecondLife.question(owner, bpy.context) == ""
