"""Re-export of imported scenes: only the changes go back into the file, and never another way than Blender shows."""

from __future__ import annotations

import difflib
import itertools
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import courtyard
import numpy as np
import pytest
import unigine_nodes

pytestmark = pytest.mark.needs_bpy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return courtyard.make(tmp_path_factory.mktemp("courtyard"))


@pytest.fixture
def path(whole: Path, tmp_path: Path, clean_blender: Any) -> Path:
    """Return the world of a project, which is imported."""
    path = shutil.copytree(whole, tmp_path / "data") / "courtyard.world"
    imported(clean_blender, path)
    return path


def imported(bpy: Any, path: Path, **options: Any) -> Any:
    assert bpy.ops.import_scene.unigine(filepath=str(path), **options) == {"FINISHED"}
    return bpy.context.view_layer.active_layer_collection.collection


def export(bpy: Any, active: str = "ground", **options: Any) -> str:
    """Re-export the collection of an object; return the report."""
    from meshferry.blender_data.steps import finish
    from meshferry.operators.files import patched_export, reexport

    bpy.context.view_layer.objects.active = bpy.data.objects[active]
    reports: list[str] = []
    _record, _owners, source = reexport.found_file(bpy.context)
    operator = type("Operator", (), {"report": lambda _self, _kind, text: reports.append(text)})()
    settings = {"asked": "", "is_confirmed": True, "is_dry_run": False, "bl_label": "", **options}
    for name, value in settings.items():
        setattr(operator, name, value)

    is_agreed = bool(operator.asked or operator.is_confirmed or operator.is_dry_run)
    patching = patched_export.patch_steps(
        operator, bpy.context, source.collection, is_agreed=is_agreed, is_dry_run=operator.is_dry_run
    )
    operator.result = finish(patching)
    return "\n".join(reports)


def changed(old: bytes, path: Path) -> list[str]:
    lines = difflib.ndiff(old.decode().splitlines(), path.read_bytes().decode().splitlines())
    return [line.replace("\t", "") for line in lines if line[0] in "+-"]


def by_name(path: Path) -> dict[str, unigine_nodes.OracleNode]:
    return {node.name: node for node in unigine_nodes.read_nodes(path.read_bytes()).values()}


def world_of(obj: Any) -> np.ndarray:
    """Return the world matrix, which Blender does not compute for objects that are disabled in viewports."""
    local = np.array(obj.matrix_basis)
    return local if obj.parent is None else world_of(obj.parent) @ np.array(obj.matrix_parent_inverse) @ local


def operate(bpy: Any, operator: Callable[..., Any], *names: str, **options: Any) -> None:
    """Call one of Blender's operators with some objects selected, the last of them active."""
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj.name in names)
    bpy.context.view_layer.objects.active = bpy.data.objects[names[-1]]
    assert operator(**options) == {"FINISHED"}


def test_unchanged_scene_keeps_its_file(path: Path, clean_blender: Any) -> None:
    old, time = path.read_bytes(), path.stat().st_mtime_ns
    assert "nothing changed" in export(clean_blender)
    assert path.read_bytes() == old and path.stat().st_mtime_ns == time
    assert not path.with_name("courtyard.world.bak").exists()


@pytest.mark.slow
@pytest.mark.any_version
def test_unchanged_samples_keep_their_bytes(samples: Path, tmp_path: Path, clean_blender: Any) -> None:
    from meshferry.blender_data.exporting.placements.placement_patch import plan_patch
    from meshferry.blender_data.steps import finish
    from meshferry.operators.files.session_projects import session_projects

    bpy = clean_blender
    projects = [folder for kind in ("unigine_scenes", "unigine_writing") for folder in (samples / kind).glob("*/data")]
    for number, folder in enumerate(projects):
        for path in shutil.copytree(folder, tmp_path / f"{number}" / "data").rglob("*.*"):
            if path.suffix in (".node", ".world") and ".runtimes" not in path.parts:
                bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
                collection = imported(bpy, path)
                plan = finish(plan_patch(collection, session_projects()))
                assert not plan.edits and not plan.messages and plan.patched.data == path.read_bytes(), path


def test_each_change_is_written_and_reported(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    bench, spare = bpy.data.objects["bench"], bpy.data.objects["barrel_spare"]
    bench.location.z += 2
    bpy.data.objects["lamp_2"].hide_viewport = True
    spare.hide_viewport, spare.name = False, "barrel <new>"
    glow = bpy.data.materials["glow"]
    bench.material_slots[1].link = "OBJECT"
    bench.material_slots[1].material = glow
    assert "nothing written" in export(bpy, is_dry_run=True) and path.read_bytes() == old
    report = export(bpy)
    for text in ("Moved: 'bench'", "Hidden: 'lamp_2'", "Shown: 'barrel <new>'", "Other material: 'bench'"):
        assert text in report
    assert path.with_name("courtyard.world.bak").read_bytes() == old
    lines = changed(old, path)
    assert sum(line[0] == "+" for line in lines) == 4
    assert f'material="{courtyard.material("glow")}"' in "".join(lines)
    found = by_name(path)
    assert not found["lamp_2"].enabled and found["barrel <new>"].enabled
    assert "nothing changed" in export(bpy)


def test_material_of_shared_mesh_names_every_node(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    wall = bpy.data.objects["wall_left"]
    assert wall.data == bpy.data.objects["wall_back"].data
    wall.data.materials[0] = bpy.data.materials["glow"]
    wall.data.materials[1] = bpy.data.materials.new("not of the project")
    report = export(bpy)
    assert "Other material: 'wall_back', 'wall_left'" in report
    assert "2 surfaces with a material that is not in the project, so not written" in report


def test_copies_and_instances_become_nodes(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, set(unigine_nodes.read_nodes(path.read_bytes()))
    operate(bpy, bpy.ops.object.duplicate, "bench")
    bpy.context.object.location.x += 3
    operate(bpy, bpy.ops.object.duplicate, "wall_left", "walls", linked=True)
    plain = bpy.data.objects.new("more planters", None)
    plain.instance_type, plain.instance_collection = "COLLECTION", bpy.data.objects["planter_1"].instance_collection
    unknown = bpy.data.objects.new("unknown", None)
    for obj in (plain, unknown):
        bpy.data.objects["ground"].users_collection[0].objects.link(obj)
    report = export(bpy)
    assert "Added: 'bench.001', 'wall_left.001', 'walls.001', 'more planters'" in report
    assert "1 object made here not written" in report and "'unknown'; duplicate an object of the file" in report
    found = unigine_nodes.read_nodes(path.read_bytes())
    new = {key: node for key, node in found.items() if key not in old}
    assert sorted(node.name for node in new.values()) == ["bench", "more planters", "wall_left", "walls"]
    (wall,) = [node for node in new.values() if node.name == "wall_left"]
    assert new[wall.parent].name == "walls" and wall.materials == by_name(path)["wall_left"].materials
    assert "nothing changed" in export(bpy), "the new objects know their nodes"
    bpy.data.objects["bench.001"].location.y += 1
    assert "Moved: 'bench.001'" in export(bpy)


def test_deleted_parent_leaves_what_blender_keeps(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    operate(bpy, bpy.ops.object.delete, "walls")
    operate(bpy, bpy.ops.object.delete, "planter_1")
    bpy.context.view_layer.update()
    shown = np.array(bpy.data.objects["wall_left"].matrix_world)
    assert "Removed: 'walls', 'planter_1'" in export(bpy)
    found = by_name(path)
    assert "walls" not in found and "planter_1" not in found
    assert np.allclose(found["wall_left"].world, shown, atol=1e-5)
    assert export(bpy).endswith("nothing changed")


def test_transforms_of_every_kind_arrive(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    bench, post, wall = (bpy.data.objects[name] for name in ("bench", "lamp_1", "wall_back"))
    operate(bpy, bpy.ops.object.parent_set, "wall_back", "bench", type="OBJECT", keep_transform=True)
    wall.parent.scale = (1, 2, -0.5)
    bench.delta_location, bench.delta_scale = (0, 0, 3), (1, 1, 2)
    post.rotation_mode = "YZX"
    post.rotation_euler, post.delta_rotation_euler = (0.1, 0.2, 0.3), (1, 0, 0)
    bpy.context.view_layer.update()
    shown = {obj.name: np.array(obj.matrix_world) for obj in (bench, post, wall)}
    export(bpy)
    found = by_name(path)
    for name, world in shown.items():
        assert np.allclose(found[name].world, world, atol=1e-5), name
    assert export(bpy).endswith("nothing changed")


def test_animated_and_edited_objects_are_named(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    bpy.data.objects["lamp_1"].keyframe_insert("location")
    bpy.data.objects["lamp_2"].constraints.new("LIMIT_LOCATION")
    bpy.data.objects["lamp_3"].driver_add("scale", 0)
    for name in ("lamp_1", "lamp_2", "lamp_3"):
        bpy.data.objects[name].location.x += 1
    bpy.data.objects["ground"].data.vertices[0].co.z += 1
    instance = next(obj for obj in bpy.data.objects if obj.parent == bpy.data.objects["barrels"])
    instance.location.x += 1
    report = export(bpy)
    assert "3 objects animated, constrained or on a bone" in report
    assert "1 mesh edited here, which the file does not hold: 'ground'" in report
    assert "1 object not written, being a part of a node or without an id in the file" in report
    assert path.read_bytes() == old


WITHOUT_IDS = """<?xml version="1.0" encoding="utf-8"?>
<nodes version="2.19.0.3">
<node type="NodeDummy" id="16" name="last"><transform>1 0 0 0 0 1 0 0 0 0 1 0 9 0 0 1</transform></node>
<node type="NodeDummy" id="11" name="base"><transform>1 0 0 0 0 1 0 0 0 0 1 0 1 0 0 1</transform>
<node type="PhysicalForce" name="force"><node type="NodeDummy" id="13" name="below"/></node></node>
</nodes>
"""


@pytest.mark.parametrize(
    ("removed", "warning"),
    [
        ("last", ""),
        ("force", "1 node without an id in the file, renamed or removed here, which is not written: 'force'"),
        ("below", "1 node without an id in the file, renamed or removed here, which is not written: 'below'"),
        ("base", "2 nodes without an id removed from the file with the node above: 'force', 'below'"),
    ],
)
def test_edits_of_nodes_without_ids_are_named(tmp_path: Path, clean_blender: Any, removed: str, warning: str) -> None:
    path = tmp_path / "force.node"
    path.write_text(WITHOUT_IDS)
    imported(clean_blender, path)
    clean_blender.data.objects.remove(clean_blender.data.objects[removed])
    report = export(clean_blender, "last" if removed != "last" else "base")
    assert warning in report and ("without an id" in report) == bool(warning)
    assert (f'name="{removed}"' in path.read_text()) == (removed in ("force", "below"))
    if removed == "last":
        clean_blender.data.objects["force"].name = "other"
        assert "renamed or removed here, which is not written: 'force'" in export(clean_blender, "base")


def test_guard_refuses_files_that_changed(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    first = bpy.data.objects["bench"]
    imported(bpy, path)
    second = next(obj for obj in bpy.data.objects if obj.name == "bench.001")
    first.location.x += 1
    assert "Moved" in export(bpy, first.name)
    second.location.x += 2
    assert "choose Reload from File first" in export(bpy, second.name)
    first.location.x -= 1
    first.id_data.users_collection[0].meshferry.file.digest = "as Undo leaves it"
    assert "Moved" in export(bpy, first.name)
    assert path.with_name("courtyard.world.bak").read_bytes() == old, "the version before the first write"
    path.write_bytes(path.read_bytes() + b"\n")
    assert "choose Reload from File first" in export(bpy, first.name)
    path.unlink()
    assert "No such file" in export(bpy, first.name)


def test_objects_of_referenced_files_belong_to_these(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    planter = path.parent / "nodes/planter.node"
    obj = bpy.data.objects["planter"]
    obj.location.z += 1
    report = export(bpy)
    assert "Changes that belong to planter.node" in report and path.read_bytes() == old
    bpy.context.view_layer.layer_collection.children["courtyard Parts"].exclude = False
    assert "Moved: 'planter'" in export(bpy, "planter")
    assert by_name(planter)["planter"].local[2, 3] == 1
    assert export(bpy).endswith("nothing changed")
    imported(bpy, planter)


def test_objects_without_keys_are_refused(path: Path, clean_blender: Any) -> None:
    for obj in clean_blender.data.objects:
        obj.meshferry.node_key = ""
    assert "import the file again" in export(clean_blender)


def own_objects(bpy: Any) -> list[Any]:
    """Return the objects that stand for nodes of the world."""
    identifier = bpy.data.objects["ground"].meshferry.import_id
    return [one for one in bpy.data.objects if one.meshferry.import_id == identifier and one.meshferry.node_key]


def copied(obj: Any, **options: Any) -> Any:
    made = obj.copy()
    obj.users_collection[0].objects.link(made)
    if options.get("is_data_copied") and obj.data is not None:
        made.data = obj.data.copy()
    if "parent" in options:
        made.parent = options["parent"]
    return made


def give_parent(obj: Any, other: Any, *, is_world_kept: bool) -> None:
    from mathutils import Matrix

    world = world_of(obj)
    obj.parent = other
    obj.matrix_parent_inverse.identity()
    if is_world_kept:
        obj.delta_location = (0, 0, 0)
        obj.matrix_parent_inverse = Matrix(
            (np.linalg.inv(world_of(other)) if other is not None else np.eye(4)).tolist()
        )
        obj.matrix_basis = Matrix(world.tolist())


def move(_bpy: Any, choice: random.Random, obj: Any) -> None:
    obj.location.x += choice.uniform(-5, 5)


def turn(_bpy: Any, choice: random.Random, obj: Any) -> None:
    obj.rotation_mode = choice.choice(["XYZ", "QUATERNION", "AXIS_ANGLE"])
    obj.rotation_euler.y, obj.rotation_quaternion.x = choice.random(), choice.random()
    obj.rotation_axis_angle = (choice.random(), 1, 2, 3)


def scale(_bpy: Any, choice: random.Random, obj: Any) -> None:
    """Scale along two axes, which shears the children that are turned."""
    obj.scale = (choice.uniform(0.4, 2.5), 1, choice.uniform(0.4, 2.5))


def mirror(_bpy: Any, _choice: random.Random, obj: Any) -> None:
    obj.scale.y *= -1


def delta(_bpy: Any, choice: random.Random, obj: Any) -> None:
    obj.delta_location.y += choice.random()


def hide(_bpy: Any, _choice: random.Random, obj: Any) -> None:
    obj.hide_viewport = not obj.hide_viewport


def rename(_bpy: Any, choice: random.Random, obj: Any) -> None:
    if obj.name != "ground":  # by which the test finds the import
        obj.name = choice.choice(["new", "<&>", "ä", "plain.001"])


def copy(_bpy: Any, choice: random.Random, obj: Any) -> None:
    copied(obj, is_data_copied=choice.random() < 0.5).location.z += 1


def copy_below(bpy: Any, _choice: random.Random, obj: Any) -> None:
    """Copy an object with its children, as *Shift-D* does if they are selected, too."""
    made = copied(obj)
    for child in [one for one in obj.children if one in own_objects(bpy) and one != made]:
        copied(child, parent=made)


def delete(bpy: Any, _choice: random.Random, obj: Any) -> None:
    if obj.name != "ground":
        bpy.data.objects.remove(obj)


def delete_below(bpy: Any, _choice: random.Random, obj: Any) -> None:
    below = {obj, *obj.children_recursive}
    if bpy.data.objects["ground"] not in below and len(below) < 5:
        bpy.data.batch_remove(below)


def parent(bpy: Any, choice: random.Random, obj: Any) -> None:
    other = choice.choice(own_objects(bpy))
    if other != obj and other not in obj.children_recursive:
        give_parent(obj, other, is_world_kept=choice.random() < 0.7)


def unparent(_bpy: Any, choice: random.Random, obj: Any) -> None:
    give_parent(obj, None, is_world_kept=choice.random() < 0.7)


def material(bpy: Any, choice: random.Random, obj: Any) -> None:
    if obj.material_slots:
        slot = choice.choice(list(obj.material_slots))
        slot.link = choice.choice(["OBJECT", "DATA"])
        slot.material = choice.choice([one for one in bpy.data.materials if one.meshferry.identity])


def instance(bpy: Any, choice: random.Random, _obj: Any) -> None:
    """Show the mesh or the collection of an object at another place."""
    obj = choice.choice([one for one in own_objects(bpy) if one.type == "MESH" or one.instance_collection])
    made = bpy.data.objects.new("more", obj.data)
    made.instance_type, made.instance_collection = obj.instance_type, obj.instance_collection
    bpy.data.objects["ground"].users_collection[0].objects.link(made)
    made.location = (choice.random(), 2, 3)


KINDS = [move, turn, scale, mirror, delta, hide, rename, copy, copy_below, delete, delete_below, parent, unparent]
KINDS += [material, instance]
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))


def above(nodes: dict[str, unigine_nodes.OracleNode], key: str) -> set[str]:
    """Return the keys of a node and of all nodes above it."""
    found = {key}
    while key := nodes[key].parent:
        found.add(key)
    return found


def check_others(old: bytes, new: bytes, edited: set[str], gone: set[str]) -> None:
    """Check that only edited nodes differ, and those whose parent was removed.

    Hidden nodes that were below hidden ones only get the attribute when those are shown or removed.
    """
    before, found = unigine_nodes.read_nodes(old), unigine_nodes.read_nodes(new)
    for key in before.keys() & found.keys():
        was, now = before[key], found[key]
        assert now.rest == was.rest
        if key not in edited and was.parent not in gone:
            assert (now.name, now.materials, now.parent) == (was.name, was.materials, was.parent)
            assert (now.local == was.local).all()
            assert now.enabled == was.enabled or not above(before, key).isdisjoint(edited | gone)
    for text in (bytes.partition, bytes.rpartition):
        tag, part = (b"<node", 0) if text == bytes.partition else (b"</node>", 2)
        assert text(old, tag)[part] == text(new, tag)[part]
    assert (b"\r\n" in new) == (b"\r\n" in old) and new.count(b"\r\n") in (0, new.count(b"\n"))


def check_objects(shown: list[Any], data: bytes, orphans: Container[str] | None = None) -> None:
    """Check that a file shows what the objects of its import show.

    Some nodes of objects without a parent keep a node above in the file: ``orphans``, or any of them for None.
    """
    found = unigine_nodes.read_nodes(data)
    objects = {obj.meshferry.node_key: obj for obj in shown}
    assert found.keys() == objects.keys()
    for key, obj in objects.items():
        node, world = found[key], world_of(obj)
        assert np.abs(node.world - world).max() <= 1e-5 * max(1, np.abs(world).max()), obj.name
        parent = obj.parent.meshferry.node_key if obj.parent is not None else ""
        assert node.parent == parent or (not parent and (orphans is None or key in orphans)), obj.name
        is_shown = all(found[one].enabled for one in above(found, key))
        is_below_hidden = not all(found[one].enabled for one in above(found, key) - {key})
        assert is_below_hidden or obj.meshferry.has_hidden_surfaces or is_shown != obj.hide_viewport, obj.name
        shown = [slot.material.meshferry.identity for slot in obj.material_slots]
        places = json.loads(obj.meshferry.node_slots or "[]")
        if obj.type == "MESH":
            assert all(node.materials[at] == one for at, one in zip(places, shown, strict=True) if at >= 0), obj.name


@pytest.mark.parametrize(
    ("block", "rounds"),
    [(0, 4), *(pytest.param(block, 50, marks=[pytest.mark.slow, pytest.mark.any_version]) for block in range(1, 4))],
)
def test_random_edits_in_blender_arrive(
    whole: Path, tmp_path: Path, clean_blender: Any, block: int, rounds: int
) -> None:
    """The slow blocks make 150 edits, each pair of kinds at least once, of one object or of two."""
    bpy = clean_blender
    choice = random.Random(block)
    for number in range(rounds):
        if number % 10 == 0:
            bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
            path = shutil.copytree(whole, tmp_path / f"{number}" / "data") / "courtyard.world"
            if number % 20 == 0:
                path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
            imported(bpy, path)
            orphans: set[str] = set()
        old = path.read_bytes()
        pair = PAIRS[(block * 50 + number) % len(PAIRS)]
        keys = {obj.meshferry.node_key for obj in own_objects(bpy)}
        obj = choice.choice(own_objects(bpy))
        edited, deleted = set(), set()
        for kind in choice.sample(pair, 2):
            if obj not in set(bpy.data.objects) or choice.random() < 0.5:
                obj = choice.choice(own_objects(bpy))
            same = [one for one in own_objects(bpy) if kind == material and obj.data and one.data == obj.data]
            edited |= {one.meshferry.node_key for one in (obj, *same)}
            key = obj.meshferry.node_key
            kind(bpy, choice, obj)
            deleted |= {key} if obj not in set(bpy.data.objects) else set()
        gone = keys - {one.meshferry.node_key for one in own_objects(bpy)}
        report = export(bpy, "ground")
        assert "would not" not in report and "Exported" not in report.splitlines()[-1], report
        orphans |= {key for key, node in unigine_nodes.read_nodes(old).items() if node.parent in gone}
        check_others(old, path.read_bytes(), edited, gone | deleted)  # a copy may have the node of a deleted object
        check_objects(own_objects(bpy), path.read_bytes(), orphans)
        assert export(bpy, "ground").endswith("nothing changed")


def state(bpy: Any) -> dict[str, list[str]]:
    kinds = ("objects", "meshes", "materials", "images", "collections")
    return {kind: sorted(block.name for block in getattr(bpy.data, kind)) for kind in kinds}


def reload(bpy: Any, active: str = "ground") -> None:
    bpy.context.view_layer.objects.active = bpy.data.objects[active]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}


def test_reload_brings_what_others_changed_and_keeps_own_changes(path: Path, clean_blender: Any, capfd: Any) -> None:
    bpy = clean_blender
    reload(bpy)
    before = state(bpy)
    bench, lamp, spare = (bpy.data.objects[name] for name in ("bench", "lamp_1", "barrel_spare"))
    bench.location.z = 7
    bpy.data.objects["lamp_2"].name = "mine"
    text = path.read_bytes().decode()
    key = lamp.meshferry.node_key
    text = text.replace(f'id="{key}" name="lamp_1"', f'id="{key}" name="theirs"').replace(' enabled="0"', "")
    start = text.index("\t\t<node", text.index('name="sun"') - 90)
    text = text[:start] + text[text.index("</node>\n", start) + 8 :]
    text = text.replace("\t</editor>", '\t\t<node type="NodeDummy" id="77" name="new"/>\n\t</editor>')
    text = text.replace(courtyard.material("tiles"), courtyard.material("stone"))
    path.write_text(text)
    planter = path.parent / "nodes/planter.node"
    planter.write_text(planter.read_text().replace("0 0 0 1<", "0 0 4 1<").replace("0 0 0 1.0<", "0 0 4 1.0<"))
    assert "choose Reload from File first" in export(bpy)
    reload(bpy)
    assert "Not in the file any more, but kept: 'sun'" in capfd.readouterr().out
    assert lamp.name == "theirs" and not spare.hide_viewport and bpy.data.objects["new"].meshferry.node_key == "77"
    assert bench.location.z == 7 and bpy.data.objects["mine"]
    assert bpy.data.objects["ground"].material_slots[0].material.name == "stone"
    assert bpy.data.objects["planter"].location.z == 4
    now = state(bpy)
    assert [now[kind] for kind in ("meshes", "images", "collections")] == [
        before[kind] for kind in ("meshes", "images", "collections")
    ]
    assert len(now["objects"]) == len(before["objects"]) + 1
    report = export(bpy, "bench")
    assert "Moved: 'bench', Renamed: 'mine'" in report and "'sun'" in report
    reload(bpy)
    assert state(bpy) == now, "nothing is left of the second import"


@pytest.mark.parametrize("change", ["none", "parent", "inverse"])
def test_reload_places_only_objects_below_their_parents(path: Path, clean_blender: Any, change: str) -> None:
    wall = clean_blender.data.objects["wall_back"]
    if change == "parent":
        wall.parent = clean_blender.data.objects["bench"]
    elif change == "inverse":
        wall.matrix_parent_inverse[0][3] = 3.0
    before, text = wall.location[:], path.read_text()
    end = text.index("</transform>", text.index('name="wall_back"'))
    start = text.rindex("<transform>", 0, end) + len("<transform>")
    path.write_text(f"{text[:start]}1 0 0 0 0 1 0 0 0 0 1 0 7 8 9 1{text[end:]}")
    reload(clean_blender)
    assert wall.location[:] == ((7, 8, 9) if change == "none" else before)


def test_changed_material_of_the_project_is_named(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    assert "changed here" not in export(bpy)
    bpy.data.materials["tiles"].node_tree.nodes["Principled BSDF"].inputs["IOR"].default_value = 2
    assert "1 material of the project changed here, which is not written: 'tiles'" in export(bpy)


def test_shear_that_blender_cannot_hold_stays_in_the_file(whole: Path, tmp_path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    path = shutil.copytree(whole, tmp_path / "data") / "courtyard.world"
    start = path.read_text().index("<transform>", path.read_text().index('name="bench"'))
    end = path.read_text().index("</transform>", start)
    sheared = "<transform>1 0.5 0 0.0 0 2 0 0.0 0 0 1 0.0 -1 3.3 0 1.0"
    path.write_text(path.read_text()[:start] + sheared + path.read_text()[end:])
    imported(bpy, path)
    old = path.read_bytes()
    assert export(bpy).endswith("nothing changed")
    bench = bpy.data.objects["bench"]
    bench.location = (4, 5, 6)
    export(bpy)
    assert changed(old, path) == [f"- {sheared}</transform>", f"+ {sheared[:-12]}4 5 6 1.0</transform>"]
    bench.scale.z *= 3
    export(bpy)
    assert np.allclose(by_name(path)["bench"].local[:3, :3], [[1, 0, 0], [0.5, 2, 0], [0, 0, 3]], atol=1e-6)
    assert export(bpy).endswith("nothing changed")


def test_instances_and_slots_that_are_not_written_are_named(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    planter, bench, ground = (bpy.data.objects[name] for name in ("planter_1", "bench", "ground"))
    planter.instance_collection = bpy.data.collections.new("other")
    planter.users_collection[0].children.link(planter.instance_collection)
    bench.data.materials.append(bpy.data.materials["glow"])
    ground.material_slots[0].link = "OBJECT"
    ground.material_slots[0].material = None
    report = export(bpy)
    assert "1 object showing another collection than the file's, which is not written: 'planter_1'" in report
    assert "2 objects with other material slots than the file, or empty ones, not written: 'bench', 'ground'" in report
    assert path.read_bytes() == old


def test_instances_made_real_do_not_go_into_the_referenced_file(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    planter = path.parent / "nodes/planter.node"
    old = planter.read_bytes()
    operate(bpy, bpy.ops.object.duplicates_make_real, "planter_1")
    report = export(bpy)
    assert "'planter_1'" in report.partition("another collection")[2]
    assert "belong to planter.node" not in report
    bpy.context.view_layer.layer_collection.children["courtyard Parts"].exclude = False
    export(bpy, "planter")
    assert planter.read_bytes() == old


def test_undo_after_new_parent_is_written(path: Path, clean_blender: Any) -> None:
    """Undo takes back all properties, but neither the file nor the digest that this import wrote."""
    bpy = clean_blender
    wall, home = bpy.data.objects["wall_back"], bpy.data.objects["ground"].users_collection[0]
    above, inverse, place = wall.parent, wall.matrix_parent_inverse.copy(), wall.matrix_basis.copy()
    before = home.meshferry.file.digest, wall.meshferry.given_parent_key
    operate(bpy, bpy.ops.object.parent_set, "wall_back", "bench", type="OBJECT", keep_transform=True)
    assert "New parent: 'wall_back'" in export(bpy)
    wall.parent, wall.matrix_parent_inverse, wall.matrix_basis = above, inverse, place
    home.meshferry.file.digest, wall.meshferry.given_parent_key = before
    assert "New parent: 'wall_back'" in export(bpy)
    found = unigine_nodes.read_nodes(path.read_bytes())
    assert found[by_name(path)["wall_back"].parent].name == above.name
    assert export(bpy).endswith("nothing changed")


def test_removed_number_of_a_name_is_written(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    bench = bpy.data.objects["bench"]
    bench.name = "seat.001"
    assert "Renamed: 'seat.001'" in export(bpy)
    bench.name = "seat"
    assert "Renamed: 'seat'" in export(bpy) and "seat" in by_name(path)


def test_modifiers_are_named(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    bpy.data.objects["bench"].modifiers.new("Array", "ARRAY")
    bpy.data.objects["ground"].modifiers.new("Array", "ARRAY").show_viewport = False
    assert "1 object with modifiers, which the file does not hold: 'bench'" in export(bpy)


def test_export_of_a_selected_object_changes_its_scene(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    bench = bpy.data.objects["bench"]
    operate(bpy, bpy.ops.transform.translate, "bench", value=(0, 0, 2))
    bpy.ops.export_scene.unigine_scene(filepath=str(path))
    assert sum(line[0] == "+" for line in changed(old, path)) == 1
    assert sorted(other.name for other in path.parent.glob("*.node")) == []
    assert bench.location.z == pytest.approx(by_name(path)["bench"].local[2, 3])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_path_that_is_not_utf8_is_kept(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    folder = path.parent.rename(os.fsdecode(os.fsencode(path.parent) + b"\xff"))
    imported(bpy, folder / path.name)
    bpy.data.objects["bench.001"].location.z += 2
    assert "Moved: 'bench.001'" in export(bpy, "bench.001")


@pytest.mark.parametrize("name", ["a\tb\nc", "bell\x07"])
def test_names_with_control_characters_do_not_stop_other_changes(path: Path, clean_blender: Any, name: str) -> None:
    bpy = clean_blender
    bench = bpy.data.objects["bench"]
    key = bench.meshferry.node_key
    bench.name, bench.location.z = name, 3
    assert "Moved: " in export(bpy)
    assert unigine_nodes.read_nodes(path.read_bytes())[key].name == name.replace("\x07", "?")
    assert export(bpy, bench.name).endswith("nothing changed")


def test_only_node_can_be_deleted_where_the_file_may_be_empty(tmp_path: Path, clean_blender: Any) -> None:
    from meshferry.blender_data.exporting.placements.placement_patch import plan_patch
    from meshferry.blender_data.steps import finish
    from meshferry.io_formats.core.errors import ExportError
    from meshferry.io_formats.projects import Projects

    bpy = clean_blender
    node = b'<node type="NodeDummy" id="5" name="lone"/>'
    for name, data in {"list.node": b'<nodes version="2.19">\n\t%s\n</nodes>\n' % node, "lone.node": node}.items():
        path = tmp_path / name
        path.write_bytes(data)
        collection = imported(bpy, path)
        bpy.data.objects.remove(collection.objects[0])
        if name == "lone.node":
            with pytest.raises(ExportError, match="the node 'lone' alone, which cannot be removed"):
                finish(plan_patch(collection, Projects()))
        else:
            finish(plan_patch(collection, Projects())).write()
            assert path.read_bytes() == b'<nodes version="2.19">\n</nodes>\n'
