"""Exports into imported scenes and blueprints agree with the objects after any sequence of edits, undo and redo.

The files are read by Python's own parsers of XML and JSON.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import blueprint_oracle
import courtyard
import numpy as np
import pytest
import timber_mod
import unigine_nodes
from test_scene_changes import by_name, check_objects, copied, export, give_parent, imported, world_of

pytestmark = pytest.mark.needs_bpy

MOST_UNDO = 12
FINISHED = "/Children/#Finished/Children/"


@dataclass
class Sequence:
    """An imported file that is edited and exported again and again."""

    bpy: Any
    path: Path
    choice: random.Random
    import_id: str = ""
    steps: int = 0
    """Number of steps that *Undo* can take back."""
    undone: int = 0
    keys: dict[tuple[str, int], str] = field(default_factory=dict)
    """Key that each object had at the last export to each file, by path and ``session_uid``."""
    rests: dict[str, str] = field(default_factory=dict)
    """Content of the nodes of the imported file that edits do not change."""
    numbers: int = 0
    done: list[str] = field(default_factory=list)
    is_blueprint: bool = False

    def begin(self) -> None:
        self.bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        self.is_blueprint = self.path.suffix == ".json"
        importer = self.bpy.ops.import_scene.timbermesh if self.is_blueprint else self.bpy.ops.import_scene.unigine
        assert importer(filepath=str(self.path)) == {"FINISHED"}
        home = next(one for one in self.bpy.data.collections if one.meshferry.source_path == str(self.path))
        self.import_id = home.meshferry.import_id
        if not self.is_blueprint:
            self.rests = {key: node.rest for key, node in unigine_nodes.read_nodes(self.path.read_bytes()).items()}
        self.bpy.ops.ed.undo_push(message="import")

    def home(self) -> Any:
        return next(one for one in self.bpy.data.collections if one.meshferry.import_id == self.import_id)

    def nodes(self) -> list[Any]:
        """Return the objects of nodes that may be edited."""
        found = [obj for obj in self.bpy.data.objects if obj.meshferry.import_id == self.import_id]
        found = [obj for obj in found if obj.meshferry.node_key and not obj.meshferry.is_model_part]
        return sorted(found, key=lambda obj: obj.name)

    def editable(self) -> list[Any]:
        if not self.is_blueprint:
            return self.nodes()
        found = [obj for obj in self.nodes() if obj.meshferry.node_key.startswith(FINISHED)]
        return [obj for obj in found if not re.search("nested|Spec|Roof", obj.meshferry.node_key)]

    def edit(self) -> None:
        kinds = BLUEPRINT_EDITS if self.is_blueprint else SCENE_EDITS
        kind = self.choice.choice(kinds)
        if self.editable():
            obj = self.choice.choice(self.editable())
            self.done.append(f"{kind.__name__} {obj.name}")
            kind(self, obj)
            self.push()

    def push(self) -> None:
        self.bpy.context.view_layer.update()
        self.bpy.ops.ed.undo_push(message=self.done[-1])
        self.steps, self.undone = min(self.steps + 1, MOST_UNDO), 0

    def undo(self) -> None:
        for _ in range(min(self.steps, self.choice.randint(1, 4))):
            self.done.append("undo")
            assert self.bpy.ops.ed.undo() == {"FINISHED"}
            self.steps, self.undone = self.steps - 1, self.undone + 1

    def redo(self) -> None:
        for _ in range(min(self.undone, self.choice.randint(1, 4))):
            self.done.append("redo")
            assert self.bpy.ops.ed.redo() == {"FINISHED"}
            self.steps, self.undone = self.steps + 1, self.undone - 1

    def save(self) -> None:
        self.done.append("save")
        self.bpy.ops.wm.save_as_mainfile(filepath=str(self.path.with_name("scene.blend")))

    def reopen(self) -> None:
        self.save()
        self.done.append("open")
        self.bpy.ops.wm.open_mainfile(filepath=str(self.path.with_name("scene.blend")))
        self.steps = self.undone = 0
        self.keys = {}
        self.bpy.ops.ed.undo_push(message="open")

    def export(self, target: Path | None = None) -> str:
        from meshferry.blender_data.steps import finish
        from meshferry.operators.files import patched_export

        reports: list[str] = []
        operator = type("Operator", (), {"report": lambda _self, _kind, text: reports.append(text), "bl_label": ""})()
        steps = patched_export.patch_steps(operator, self.bpy.context, self.home(), is_agreed=True, target=target)
        result = finish(steps)
        self.done.append(f"export {' | '.join(reports)}")
        assert result == {"FINISHED"}, "\n".join(self.done)
        self.check(Path(self.home().meshferry.file.path).read_bytes())
        return "\n".join(reports)

    def export_elsewhere(self) -> None:
        """Export a copy of the file to another path, which becomes the target."""
        self.numbers += 1
        suffix = "".join(self.path.suffixes[-2:]) if self.is_blueprint else self.path.suffix
        self.export(self.path.with_name(f"copy{self.numbers}{suffix}"))
        self.push()

    def check(self, data: bytes) -> None:
        """Check that the file and the objects agree, and that objects keep their keys."""
        nodes = self.nodes()
        by_key = {obj.meshferry.node_key: obj for obj in nodes}
        target = self.home().meshferry.file.path
        assert len(by_key) == len(nodes), self.done
        try:
            if self.is_blueprint:
                check_blueprint(by_key, data, set(json.loads(self.home().meshferry.unshown_nodes or "[]")))
            else:
                check_objects(nodes, data)
                for key, node in unigine_nodes.read_nodes(data).items():
                    assert node.rest == self.rests.get(key, node.rest)
            for key, obj in by_key.items():
                known = self.keys.get((target, obj.session_uid), key)
                assert known == key or known in by_key, "another object has the key that it had"
        except BaseException:
            print("\n".join(self.done))
            raise
        self.keys.update({(target, obj.session_uid): key for key, obj in by_key.items()})
        assert self.export_again().endswith("nothing changed"), self.done

    def export_again(self) -> str:
        from meshferry.blender_data.exporting.placements.placement_patch import plan_patch
        from meshferry.blender_data.steps import finish
        from meshferry.operators.files.session_projects import session_projects

        plan = finish(plan_patch(self.home(), session_projects()))
        return "".join(map(str, plan.lines())) or "nothing changed"

    def step(self) -> None:
        actions = [self.edit, self.export, self.undo, self.redo, self.save, self.reopen, self.export_elsewhere]
        self.choice.choices(actions, [50, 18, 16, 10, 1, 2, 3])[0]()


def check_blueprint(objects: dict[str, Any], data: bytes, unshown: set[str]) -> None:
    """Check that a blueprint has the children that objects show, at their places.

    ``unshown`` are children that came along with a copy.
    """
    content = blueprint_oracle.read(data)
    found = {path: child for path, child, is_inside in blueprint_oracle.children(content) if not is_inside}
    keys = {"".join(f"/Children/{name}" for name in path): path for path in found}
    shown = {key for key in objects if "Spec" not in key and "#nested/" not in key and key != "/"}
    assert keys.keys() - unshown == shown
    for key, path in keys.items():
        if "#nested" in key or key in unshown:
            continue
        world = world_of(objects[key])
        assert np.allclose(blueprint_oracle.world(content, path), world, atol=1e-4 * max(1, np.abs(world).max())), key
        assert found[path].get("TimbermeshSpec", {}).get("Model") == objects[key].get("Model")


def move(sequence: Sequence, obj: Any) -> None:
    obj.location.x += sequence.choice.uniform(-5, 5)


def scale(sequence: Sequence, obj: Any) -> None:
    obj.scale.z *= sequence.choice.uniform(0.5, 2)


def rename(sequence: Sequence, obj: Any) -> None:
    obj.name = sequence.choice.choice(["new", "<&>", "ä", "plain.001"])


def hide(_sequence: Sequence, obj: Any) -> None:
    obj.hide_viewport = not obj.hide_viewport


def copy(_sequence: Sequence, obj: Any) -> None:
    """Copy an object with all below it."""
    made = {obj: copied(obj)}
    for below in obj.children_recursive:
        made[below] = copied(below, parent=made[below.parent])
    made[obj].location.y += 1


def copy_alone(_sequence: Sequence, obj: Any) -> None:
    copied(obj).location.z += 1


def delete(sequence: Sequence, obj: Any) -> None:
    """Delete an object with all below it."""
    below = {obj, *obj.children_recursive}
    if len({*sequence.editable()} - below) > 1:
        sequence.bpy.data.batch_remove(below)


def delete_alone(sequence: Sequence, obj: Any) -> None:
    if len(sequence.editable()) > 2:
        sequence.bpy.data.objects.remove(obj)


def reparent(sequence: Sequence, obj: Any) -> None:
    other = sequence.choice.choice([*sequence.editable(), None])
    if other != obj and other not in obj.children_recursive:
        give_parent(obj, other, is_world_kept=sequence.choice.random() < 0.7)


def instance(sequence: Sequence, obj: Any) -> None:
    """Show the mesh or the collection of an object at another place by an object without any stored data."""
    if obj.type == "MESH" or obj.instance_collection:
        made = sequence.bpy.data.objects.new("more", obj.data)
        if obj.instance_collection:
            made.instance_type, made.instance_collection = obj.instance_type, obj.instance_collection
        sequence.home().objects.link(made)
        made.location = (sequence.choice.random(), 2, 3)


def add_mesh(sequence: Sequence, obj: Any) -> None:
    """Add an object with a mesh of its own, sometimes below another one or with a modifier."""
    data = sequence.bpy.data.meshes.new("made")
    data.from_pydata([(0, 0, 0), (1, 0, 0), (0, sequence.choice.uniform(1, 2), 0)], [], [(0, 1, 2)])
    made = sequence.bpy.data.objects.new("made", data)
    sequence.home().objects.link(made)
    made.location.z = sequence.choice.uniform(-5, 5)
    if sequence.choice.random() < 0.5:
        made.parent = obj
    if sequence.choice.random() < 0.3:
        made.modifiers.new("Array", "ARRAY").count = 2


def shape(_sequence: Sequence, obj: Any) -> None:
    """Change the mesh of an object that was made here."""
    if obj.type == "MESH" and obj.data.name.startswith("made"):
        obj.data.vertices[0].co.z -= 0.5


Edit = Callable[[Sequence, Any], None]
SCENE_EDITS: list[Edit] = [move, scale, rename, hide, copy, copy_alone, delete, delete_alone, reparent, instance]
SCENE_EDITS += [add_mesh, add_mesh, shape, shape]
BLUEPRINT_EDITS: list[Edit] = [move, scale, copy, copy, delete, delete]


def sample(kind: str, project: str, name: str) -> Callable[[Path, Path], Path]:
    def make(folder: Path, samples: Path) -> Path:
        shutil.copytree(samples / kind / project, folder / project)
        for path in (folder / project).rglob("*"):
            path.chmod(0o755)
        return next((folder / project).rglob(name))

    return make


CASES: dict[str, Callable[[Path, Path], Path]] = {
    "courtyard": lambda folder, _samples: courtyard.make(folder) / "courtyard.world",
    "table": sample("unigine_scenes", "vr_props_dds_2_8", "table.node"),
    "airplane": sample("unigine_scenes", "mit_action_2_20", "airplane.node"),
    "house": lambda folder, _samples: timber_mod.make(folder),
    "overhang": sample("timberborn_blueprints", "knatte_modules", "MiddleOverhang3x1.Emberpelts.blueprint.json"),
}


@pytest.mark.parametrize(
    ("case", "rounds"),
    [("house", 20), *(pytest.param(case, 200, marks=[pytest.mark.slow, pytest.mark.any_version]) for case in CASES)],
)
def test_file_and_objects_agree_after_each_export(
    clean_blender: Any, tmp_path: Path, samples: Path, case: str, rounds: int
) -> None:
    sequence = Sequence(clean_blender, CASES[case](tmp_path, samples), random.Random(case))
    sequence.begin()
    for _ in range(rounds):
        sequence.step()
    sequence.export()


@pytest.fixture
def world(clean_blender: Any, tmp_path: Path) -> Path:
    """Return a world that was imported, edited in three steps (move, copy, delete) and exported."""
    bpy, path = clean_blender, courtyard.make(tmp_path) / "courtyard.world"
    imported(bpy, path)
    bpy.ops.ed.undo_push(message="import")
    bpy.data.objects["lamp_1"].location.x += 2
    bpy.ops.ed.undo_push(message="move")
    copied(bpy.data.objects["bench"]).name = "bench.copy"
    bpy.ops.ed.undo_push(message="copy")
    bpy.data.batch_remove([bpy.data.objects["barrel_spare"]])
    bpy.ops.ed.undo_push(message="delete")
    report = export(bpy)
    assert "Added: 'bench.copy'" in report and "Removed: 'barrel_spare'" in report
    return path


def test_undo_past_an_export_keeps_ids_and_restores_nodes(clean_blender: Any, world: Path) -> None:
    bpy, before = clean_blender, by_name(world.with_name("courtyard.world.bak"))
    written = unigine_nodes.read_nodes(world.read_bytes())
    bpy.ops.ed.undo()
    assert export(bpy).endswith(": Restored: 'barrel_spare'")
    found = unigine_nodes.read_nodes(world.read_bytes())
    assert found.keys() - written.keys() == {key for key, node in found.items() if node.name == "barrel_spare"}
    (back,) = [node for node in found.values() if node.name == "barrel_spare"]
    assert (back.rest, back.materials) == (before["barrel_spare"].rest, before["barrel_spare"].materials)
    assert np.allclose(back.world, before["barrel_spare"].world)
    bpy.ops.ed.undo()
    assert export(bpy).endswith(": Removed: 'bench.copy'")
    bpy.ops.ed.redo()
    assert export(bpy).endswith(": Restored: 'bench.copy'")
    assert unigine_nodes.read_nodes(world.read_bytes()).keys() == found.keys()


@pytest.mark.parametrize("is_saved_before", [True, False])
def test_ledger_outlasts_reopening(clean_blender: Any, world: Path, is_saved_before: bool) -> None:
    """Undo after the export is saved, too; the ledger does not permit to write."""
    from meshferry.blender_data.file_records import session_files

    bpy, blend = clean_blender, str(world.with_name("scene.blend"))
    if is_saved_before:
        bpy.ops.wm.save_as_mainfile(filepath=blend)
    for _ in range(2):  # the copy is gone, and the deleted object there
        bpy.ops.ed.undo()
    bpy.ops.wm.save_as_mainfile(filepath=blend)
    assert not any(one.meshferry.file.ledger for one in bpy.data.collections)
    bpy.ops.wm.open_mainfile(filepath=blend)
    assert not session_files()
    old = world.read_bytes()
    assert "neither read nor chosen since" in export(bpy, is_confirmed=False) and world.read_bytes() == old
    report = export(bpy)
    assert "Restored: 'barrel_spare'" in report and "Removed: 'bench.copy'" in report
    assert export(bpy).endswith("nothing changed")


def test_damaged_ledger_of_a_blend_file_is_ignored(clean_blender: Any, world: Path) -> None:
    from meshferry.blender_data.property_groups import ledger

    bpy = clean_blender
    home = next(one for one in bpy.data.collections if one.meshferry.source_path == str(world))
    ledger.ledgers().clear()
    for text in ("{", "[1]", '{"digest": 1}', '{"removed": ["a"]}', '{"marks": [1]}'):
        home.meshferry.file.ledger = text
        ledger.take_from_blend()
        assert not ledger.ledgers() and not home.meshferry.file.ledger
    assert export(bpy).endswith("nothing changed")


def test_content_of_others_is_not_taken_for_that_of_the_export(clean_blender: Any, world: Path) -> None:
    """Nothing is restored, even if it is the content that was imported."""
    bpy = clean_blender
    world.write_bytes(world.with_name("courtyard.world.bak").read_bytes())
    for _ in range(3):
        bpy.ops.ed.undo()
    assert "choose Reload from File first" in export(bpy)
    bpy.context.view_layer.objects.active = bpy.data.objects["ground"]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert export(bpy).endswith("nothing changed")


def test_copy_with_its_children_replaces_a_deleted_child(clean_blender: Any, tmp_path: Path) -> None:
    """The copied child is not taken for the deleted one, whose parent cannot change in the file."""
    sequence = Sequence(clean_blender, timber_mod.make(tmp_path), random.Random(0))
    sequence.begin()
    copy(sequence, clean_blender.data.objects["Walls"])
    clean_blender.data.batch_remove([clean_blender.data.objects["Door"]])
    report = sequence.export()
    assert "'Door.001', 'Walls.001'" in report and "Removed: 'Door'" in report


def test_parent_that_an_object_lost_gives_way_to_a_new_parent(clean_blender: Any, world: Path) -> None:
    """The file keeps a node above the wall until that node is put below the wall."""
    bpy = clean_blender
    give_parent(bpy.data.objects["walls"], bpy.data.objects["bench"], is_world_kept=True)
    export(bpy)
    bpy.data.batch_remove([bpy.data.objects["walls"]])
    export(bpy)
    assert unigine_nodes.read_nodes(world.read_bytes())[by_name(world)["wall_left"].parent].name == "bench"
    give_parent(bpy.data.objects["bench"], bpy.data.objects["wall_left"], is_world_kept=True)
    assert "New parent: 'bench'" in export(bpy)
    found = by_name(world)
    assert unigine_nodes.read_nodes(world.read_bytes())[found["bench"].parent].name == "wall_left"
    assert export(bpy).endswith("nothing changed")


def test_reload_after_undo_gives_objects_their_nodes(clean_blender: Any, world: Path) -> None:
    bpy = clean_blender
    for _ in range(2):
        bpy.ops.ed.undo()
    bpy.ops.ed.redo()
    bpy.context.view_layer.objects.active = bpy.data.objects["ground"]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert {one.name for one in bpy.data.objects if one.name.startswith("bench")} == {"bench", "bench.copy"}
    report = export(bpy)
    assert "Added" not in report and "Removed" not in report
