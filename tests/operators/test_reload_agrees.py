"""Re-export and Reload agree: what was exported stays as it is shown; another program's change comes in alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timber_mod
from example_files import imported as imported_example
from test_export_on_save import saving  # noqa: F401
from test_reload_file import edit_file

pytestmark = pytest.mark.needs_bpy


def box(bpy: Any, name: str, **settings: Any) -> Any:
    """Return a new object with a box that has UVs and a material."""
    from mathutils import Matrix

    mesh = bpy.data.meshes.new(name)
    points = [(x, y, z) for x in (0, 1) for y in (0, 0.5) for z in (0, 0.25)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    mesh.from_pydata(points, [], faces)
    mesh.uv_layers.new()
    mesh.materials.append(bpy.data.materials.get("Wood") or bpy.data.materials.new("Wood"))
    made = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(made)
    for key, value in settings.items():
        setattr(made, key, value)
    assert made.matrix_parent_inverse == Matrix.Identity(4)
    return made


def make(bpy: Any, folder: Path, extension: str) -> Path:
    """Write a file of a format, and import it."""
    if extension == ".anim":
        return imported_example(bpy, folder, "lamp_nod.anim")
    if extension == ".blueprint.json":
        path = timber_mod.make(folder / "mod")
    else:
        path = folder / f"thing{extension}"
        base = box(bpy, "#Base")
        if extension in (".timbermesh", ".node"):
            box(bpy, "#Top", parent=base, location=(0, 0, 2), rotation_euler=(0, 0, 0.5))
            box(bpy, "#Side", location=(4, 0, 0))
        select(bpy, *bpy.context.scene.objects)
        operator, options = EXPORTS[extension]
        assert getattr(bpy.ops.export_scene, operator)(filepath=str(path), **options) == {"FINISHED"}
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    importer(bpy, path)
    return path


def importer(bpy: Any, path: Path) -> None:
    """Import a file of a format."""
    operators = {".timbermesh": "timbermesh", ".json": "timbermesh", ".data": "mesh_serializer"}
    operators[".llmesh"] = "second_life"
    assert getattr(bpy.ops.import_scene, operators.get(path.suffix, "unigine"))(filepath=str(path)) == {"FINISHED"}


EXPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    ".timbermesh": ("timbermesh", {"scope": "SELECTION", "merging": "KEEP"}),
    ".node": ("unigine_scene", {"scope": "SCENE"}),
    ".mesh": ("unigine_mesh", {}),
    ".data": ("mesh_serializer", {}),
    ".llmesh": ("second_life_mesh", {}),
}
FORMATS = [*EXPORTS, ".anim", ".blueprint.json"]


def select(bpy: Any, *objects: Any) -> None:
    bpy.context.view_layer.update()
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[-1]


def edited(bpy: Any) -> Any:
    """Return the object that the edits change: the one below another if there is one."""
    objects = [obj for obj in bpy.context.scene.objects if obj.meshferry.import_id]
    objects = [obj for obj in objects if not obj.meshferry.is_model_part]
    named = [obj for obj in objects if obj.name in ("#Top", "#Finished", "Walls")]
    found = next(iter(named or objects))
    select(bpy, found)
    return found


def side(bpy: Any, obj: Any) -> Any:
    """Return another object of the import, or a new one."""
    others = [one for one in bpy.context.scene.objects if one not in {obj, obj.parent, *obj.children_recursive}]
    others = [one for one in others if one.meshferry.import_id and one.parent != obj and one.type == obj.type]
    if others:
        return others[-1]
    made = bpy.data.objects.new("Target", None)
    bpy.context.scene.collection.objects.link(made)
    made.location = (3, 0, 0)
    return made


def move(_bpy: Any, obj: Any) -> None:
    obj.location = (1, 2, 3)


def turn(_bpy: Any, obj: Any) -> None:
    obj.rotation_mode = "XYZ"
    obj.rotation_euler = (0.25, 0.5, 1)


def scale(_bpy: Any, obj: Any) -> None:
    obj.scale = (2, 0.5, 1.5)


def rename(_bpy: Any, obj: Any) -> None:
    obj.name = "#Lid"


def copy(bpy: Any, obj: Any) -> None:
    made = obj.copy()
    obj.users_collection[0].objects.link(made)
    made.location.x += 7


def new(bpy: Any, obj: Any) -> None:
    made = box(bpy, "#New", location=(0, 9, 0))
    obj.users_collection[0].objects.link(made)
    bpy.context.scene.collection.objects.unlink(made)


def delete(bpy: Any, obj: Any) -> None:
    bpy.data.objects.remove(side(bpy, obj))


def parent(bpy: Any, obj: Any) -> None:
    """Choose another parent in the properties of the object."""
    obj.parent = side(bpy, obj)


def parent_in_place(bpy: Any, obj: Any) -> None:
    """Ctrl P."""
    other = side(bpy, obj)
    other.rotation_euler = (0, 0, 1)
    bpy.context.view_layer.update()
    world = obj.matrix_world.copy()
    obj.parent = other
    obj.matrix_parent_inverse = other.matrix_world.inverted()
    obj.matrix_basis = world


def delta(_bpy: Any, obj: Any) -> None:
    obj.delta_location, obj.delta_rotation_euler = (0, 0, 2), (0, 0.5, 0)
    obj.delta_rotation_quaternion = (0.8, 0, 0.6, 0)


def modifier(_bpy: Any, obj: Any) -> None:
    if obj.type == "MESH":
        obj.modifiers.new("Row", "ARRAY").count = 2


def join(bpy: Any, obj: Any) -> None:
    other = side(bpy, obj)
    if other.type == obj.type == "MESH":
        other.select_set(True)
        bpy.ops.object.join()


def separate(bpy: Any, obj: Any) -> None:
    """Move two faces to a copy, as *Separate* in edit mode does."""
    import bmesh

    if obj.type != "MESH":
        return
    made = obj.copy()
    made.data = obj.data.copy()
    obj.users_collection[0].objects.link(made)
    for mesh, is_made in ((obj.data, False), (made.data, True)):
        content = bmesh.new()
        content.from_mesh(mesh)
        gone = [face for face in content.faces if (face.index < 2) != is_made]
        bmesh.ops.delete(content, geom=gone, context="FACES")
        content.to_mesh(mesh)
        content.free()


def material(bpy: Any, obj: Any) -> None:
    if obj.material_slots:
        obj.material_slots[0].material = bpy.data.materials.new("Iron")


def keys(_bpy: Any, obj: Any) -> None:
    for frame, value in ((1, 0), (20, 5)):
        obj.location.y = value
        obj.keyframe_insert("location", frame=frame)


def text(bpy: Any, obj: Any) -> None:
    content = bpy.data.curves.new("Words", "FONT")
    content.body = "ab"
    obj.users_collection[0].objects.link(bpy.data.objects.new("#Words", content))


def instance(bpy: Any, obj: Any) -> None:
    shown_ones = bpy.data.collections.new("Bricks")
    shown_ones.objects.link(box(bpy, "Brick"))
    bpy.context.scene.collection.objects.unlink(bpy.data.objects["Brick"])
    made = bpy.data.objects.new("#Bricks", None)
    made.instance_type, made.instance_collection, made.location = "COLLECTION", shown_ones, (0, -9, 0)
    obj.users_collection[0].objects.link(made)


def constraint(bpy: Any, obj: Any) -> None:
    obj.constraints.new("COPY_LOCATION").target = target = bpy.data.objects.new("Target", None)
    bpy.context.scene.collection.objects.link(target)
    target.location = (3, 2, 1)


def mirror(_bpy: Any, obj: Any) -> None:
    obj.scale = (1, -2, 1)


def apply_scale(bpy: Any, obj: Any) -> None:
    obj.scale = (1, 2, 3)
    obj.rotation_euler = (0, 0, 0.5)
    bpy.ops.object.transform_apply(location=False, rotation=True, scale=True)


EDITS = [move, turn, scale, rename, copy, new, delete, parent, parent_in_place, delta]
EDITS += [modifier, join, separate, material, keys, text, instance, constraint, mirror, apply_scale]


def shown(bpy: Any) -> dict[str, Any]:
    """Return the triangles, materials and bones that the evaluated depsgraph shows in two frames, by object."""
    found: dict[str, Any] = {}
    for frame in (1, 9):
        bpy.context.scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        for instance in depsgraph.object_instances:
            obj, matrix = instance.object, np.array(instance.matrix_world, np.float64)
            key = f"{obj.original.name} in {instance.parent.original.name if instance.parent else ''} at {frame}"
            if obj.type == "MESH":
                obj.data.calc_loop_triangles()
                points, corners = np.empty(3 * len(obj.data.vertices)), np.empty(3 * len(obj.data.loop_triangles), int)
                obj.data.vertices.foreach_get("co", points)
                obj.data.loop_triangles.foreach_get("vertices", corners)
                points, corners = points.reshape(-1, 3), corners.reshape(-1, 3)
                corners = corners[:, :: -1 if np.linalg.det(matrix) < 0 else 1].reshape(-1)
                world = (points @ matrix[:3, :3].T + matrix[:3, 3])[corners].reshape(-1, 9)
                found[key] = [*found.get(key, ()), world]
                found[f"{key}, materials"] = [slot.material.name for slot in obj.material_slots if slot.material]
            elif obj.type == "ARMATURE":
                bones = [matrix @ np.array(bone.matrix) for bone in obj.pose.bones]
                found[key] = [np.array(bones).reshape(-1, 16)]
    bpy.context.scene.frame_set(1)
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the names of the objects that are shown in another way."""
    found = sorted(before.keys() ^ after.keys())
    for key in before.keys() & after.keys():
        if len(before[key]) != len(after[key]) or not all(map(_is_same, before[key], after[key])):
            found.append(key)
    return sorted({key.split(" in ")[0] for key in found})


def _is_same(before: Any, after: Any) -> bool:
    if isinstance(before, str):
        return before == after
    return before.shape == after.shape and np.allclose(before, after, rtol=1e-6, atol=1e-6)


def again(bpy: Any, obj: Any) -> bool:
    """Re-export; return whether it was not refused."""
    select(bpy, obj)
    try:
        return bpy.ops.export_scene.meshferry_again(is_confirmed=True) == {"FINISHED"}
    except RuntimeError:
        return False


def reload(bpy: Any, obj: Any) -> None:
    select(bpy, obj)
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    bpy.context.view_layer.update()


def raise_node(path: Path, name: str, *, is_place: bool) -> None:
    """Move a node by 5 m, or its points by 1 m, as another program does; a file without names has one node."""
    if path.suffix == ".json":
        text = path.read_text()
        start = text.index(f'"{name}": {{') + len(name) + 5
        placed = re.compile(r'(\s*"TransformSpec": \{\s*"Position": \{[^}]*"Y": )([^ ,}]+)')
        own = placed.sub(lambda parts: f"{parts[1]}{float(parts[2]) + 5}", text[start:], count=1)
        if not placed.match(text[start:]):
            own = f'"TransformSpec": {{ "Position": {{ "Y": 5.0 }} }},{text[start:]}'
        path.write_text(text[:start] + own)
        return
    if path.suffix in (".node", ".world"):
        found = re.compile(rf'(name="{re.escape(name)}".*?<transform>.*? )(\S+)( \S+</transform>)', re.DOTALL)
        path.write_text(
            found.sub(lambda parts: f"{parts[1]}{float(parts[2]) + 5}{parts[3]}", path.read_text(), count=1)
        )
        return

    def change(scene: Any) -> None:
        nodes = [node for node in scene.nodes if node.mesh is not None]
        for node in [node for node in nodes if node.name == name] or nodes[:1]:
            if is_place:
                node.translation = (*node.translation[:2], node.translation[2] + 5)
            else:
                node.mesh.points = node.mesh.points + np.array([0, 0, 1], np.float32)
        for clip in [] if nodes else scene.clips:
            clip.transforms[0].translation = clip.transforms[0].translation + np.array([0, 0, 1], np.float32)

    edit_file(path, change)


def triangles(found: dict[str, Any]) -> Any:
    """Return the triangles of the first frame, (n, 3, 3)."""
    meshes = [mesh for key, meshes in found.items() if key.endswith(" at 1") for mesh in meshes]
    meshes = [mesh for mesh in meshes if mesh.shape[1] == 9]
    return np.concatenate([np.empty((0, 9)), *meshes]).reshape(-1, 3, 3)


def are_same_triangles(before: Any, after: Any) -> bool:
    """Return whether each triangle is also among the others, in the same winding."""
    from mathutils.kdtree import KDTree

    apart = 2e-5 * max(1.0, float(np.abs(before).max(initial=0)))
    for some, others in ((before, after), (after, before)):
        tree = KDTree(len(others))
        for number, centre in enumerate(others.mean(axis=1)):
            tree.insert(centre, number)
        tree.balance()
        for triangle in some:
            near = [number for _place, number, _distance in tree.find_range(triangle.mean(axis=0), 2 * apart)]
            turned = [np.abs(np.roll(others[near], turn, axis=1) - triangle).max(axis=(1, 2)) for turn in range(3)]
            if not (np.array(turned) < apart).any():
                return False
    return len(before) == len(after)


IDS = {"ids": lambda one: getattr(one, "__name__", one)}
QUICK = {
    *((".timbermesh", edit) for edit in (rename, parent_in_place, modifier, delta, keys, copy, new)),
    *((".node", edit) for edit in (delta, copy, apply_scale)),
    *((extension, turn) for extension in (".mesh", ".data", ".llmesh", ".anim", ".blueprint.json")),
    (".mesh", copy),
}
"""Formats and edits of the tests that are not marked slow."""
LASTING = [rename, parent_in_place, delta, modifier, turn, copy]


def cases(rows: Sequence[tuple[Any, ...]], *, is_quick: Callable[..., bool] = lambda *_more: True) -> list[Any]:
    """Return parameters, those slow that are not quick; ``is_quick`` gets what follows format and edit."""
    marks = [[] if row[:2] in QUICK and is_quick(*row[2:]) else [pytest.mark.slow] for row in rows]
    return [pytest.param(*row, marks=mark) for row, mark in zip(rows, marks, strict=True)]


ROUNDS = list(itertools.product(FORMATS, EDITS))


@pytest.mark.parametrize(("extension", "edit"), cases(ROUNDS), **IDS)
def test_a_reload_after_a_re_export_changes_nothing(clean_blender, tmp_path, extension, edit):
    bpy = clean_blender
    make(bpy, tmp_path, extension)
    obj = edited(bpy)
    edit(bpy, obj)
    before = shown(bpy)
    for _round in range(2):
        again(bpy, obj)
        reload(bpy, obj)
        assert differences(before, shown(bpy)) == []


UNWRITTEN = (new, modifier, join, separate, keys, text, instance, constraint)
"""Edits that a scene does not hold. In blueprints, a delta transform is for layouts in Blender alone."""
HELD = {".timbermesh": (False, True), ".node": (True,), ".blueprint.json": (True,)}
"""Whether other programs change points or places, by format."""
CHANGES = [
    (extension, edit, victim, is_place)
    for extension, edit, victim, is_place in itertools.product(FORMATS, EDITS, ["edited", "#Base"], [False, True])
    if is_place in HELD.get(extension, (False,)) and (victim == "edited" or extension in (".timbermesh", ".node"))
]


@pytest.mark.parametrize(
    ("extension", "edit", "victim", "is_place"),
    cases(CHANGES, is_quick=lambda victim, is_place: victim == "edited" and not is_place),
    **IDS,
)
def test_only_what_another_program_changed_comes_in(clean_blender, tmp_path, capfd, extension, edit, victim, is_place):
    """Or the conflict is named, and nothing changes."""
    bpy = clean_blender
    path = make(bpy, tmp_path, extension)
    obj = edited(bpy)
    edit(bpy, obj)
    before = shown(bpy)
    is_exported = again(bpy, obj)
    name = obj.name if victim == "edited" else victim
    node = obj.meshferry.node_key.rpartition("/")[2] if extension == ".blueprint.json" else name
    below = {one.name for one in (bpy.data.objects.get(name) or obj).children_recursive}
    raise_node(path, node, is_place=is_place)
    capfd.readouterr()
    reload(bpy, obj)
    said, after = capfd.readouterr().out, shown(bpy)
    found = differences(before, after)
    if "Changed in the file, but kept" in said:
        assert f"'{name}'" in said and name not in found
        return
    if not found:
        # keys and constraints decide where the object is shown; what cannot be exported stays
        assert is_place and (edit in (keys, constraint) or not is_exported)
    elif extension == ".llmesh":
        assert all(one.startswith(("thing", "#Lid")) for one in found)  # the file has all levels
    else:  # linked copies show the same mesh or action
        found = [one for one in found if edit is not copy or not one.startswith(f"{name}.")]
        assert {*found} <= {name, *(below if is_place else ())}
    reload(bpy, obj)
    assert differences(after, shown(bpy)) == []
    if (
        not is_exported
        or edit is constraint
        or extension in (".anim", ".llmesh")
        or (extension in (".node", ".blueprint.json") and edit in UNWRITTEN)
        or (extension == ".blueprint.json" and edit is delta)
    ):
        return  # the file does not hold the edit
    where = np.array(obj.matrix_world.translation) if extension in (".mesh", ".data") else np.zeros(3)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    importer(bpy, path)
    assert are_same_triangles(triangles(after) - where, triangles(shown(bpy)))


@pytest.mark.parametrize(
    ("extension", "edit", "way"),
    cases(
        [*itertools.product([".timbermesh", ".node", ".mesh", ".data"], LASTING, ["undo", "open"])],
        is_quick=lambda way: way == "undo",
    ),
    **IDS,
)
def test_what_was_exported_is_known_after(clean_blender, tmp_path, capfd, extension, edit, way):
    """Undo and redo, and opening the .blend file again."""
    bpy = clean_blender
    path = make(bpy, tmp_path, extension)
    bpy.ops.ed.undo_push(message="import")
    edit(bpy, edited(bpy))
    name = edited(bpy).name if edit is not rename else "#Lid"
    bpy.ops.ed.undo_push(message="edit")
    select(bpy, bpy.data.objects[name])
    before = shown(bpy)
    is_exported = again(bpy, bpy.data.objects[name])
    if way == "undo":
        bpy.data.objects[name].select_set(False)
        bpy.ops.ed.undo_push(message="later")
        bpy.ops.ed.undo()
        bpy.ops.ed.undo()
        bpy.ops.ed.redo()
    else:
        blend = tmp_path / "scene.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(blend))
        bpy.ops.wm.open_mainfile(filepath=str(blend))
    reload(bpy, bpy.data.objects[name])
    assert differences(before, shown(bpy)) == []
    raise_node(path, name, is_place=extension == ".node")
    capfd.readouterr()
    reload(bpy, bpy.data.objects[name])
    said, after = capfd.readouterr().out, shown(bpy)
    found = differences(before, after)
    if "Changed in the file, but kept" in said:
        assert f"'{name}'" in said and found == []
        return
    assert found and all(one.split(".")[0] == name for one in found)
    if is_exported and not (extension == ".node" and edit in (modifier,)):
        where = np.array(bpy.data.objects[name].matrix_world.translation) if extension in (".mesh", ".data") else 0
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        importer(bpy, path)
        assert are_same_triangles(triangles(after) - where, triangles(shown(bpy)))


@pytest.mark.slow
@pytest.mark.parametrize("extension", [".timbermesh", ".mesh", ".node"])
@pytest.mark.parametrize("edit", LASTING[:-1], **IDS)
@pytest.mark.parametrize("is_opened", [False, True], ids=["saved", "opened"])
def test_what_was_exported_on_save_is_known(saving, tmp_path, capfd, extension, edit, is_opened):  # noqa: F811
    bpy = saving.bpy
    path = make(bpy, tmp_path, extension)
    edited(bpy)
    saving.save()
    assert again(bpy, edited(bpy))
    saving.save()
    if extension == ".node":
        assert bpy.ops.wm.meshferry_switch_on_save(path=str(path)) == {"FINISHED"}
    edit(bpy, edited(bpy))
    name = edited(bpy).name if edit is not rename else "#Lid"
    before, old = shown(bpy), path.read_bytes()
    saving.save()
    assert (path.read_bytes() != old) == ((extension, edit) not in [(".node", modifier), (".mesh", rename)])
    if is_opened:
        saving.open()
    for _round in range(2):
        reload(bpy, bpy.data.objects[name])
        assert differences(before, shown(bpy)) == []
    raise_node(path, name, is_place=extension == ".node")
    capfd.readouterr()
    reload(bpy, bpy.data.objects[name])
    said, found = capfd.readouterr().out, differences(before, shown(bpy))
    assert found == [] if "Changed in the file, but kept" in said else all(one.split(".")[0] == name for one in found)


@pytest.mark.parametrize("extension", [".timbermesh", ".mesh", ".node"])
@pytest.mark.parametrize("is_exported", [False, True], ids=["imported", "exported"])
def test_a_parent_that_no_file_has_stays(clean_blender, tmp_path, extension, is_exported):
    """A reload neither removes it nor moves what is below it, also if it moved since the export."""
    bpy = clean_blender
    path = make(bpy, tmp_path, extension)
    stand = bpy.data.objects.new("Stand", None)
    stand.location, stand.rotation_euler = (1, 2, 3), (0, 0, 1)
    bpy.context.scene.collection.objects.link(stand)
    root = next(obj for obj in bpy.context.scene.objects if obj.meshferry.import_id and obj.parent is None)
    name = "thing" if extension == ".mesh" else "#Top"
    root.parent = stand
    if is_exported:
        assert again(bpy, bpy.data.objects[name])
        stand.location.x += 4
    before = shown(bpy)
    for victim, changed in ((None, []), (name, [name])):
        if victim:
            raise_node(path, victim, is_place=extension == ".node")
        reload(bpy, bpy.data.objects[name])
        assert differences(before, shown(bpy)) == changed
        assert root.parent == stand


@pytest.mark.parametrize("extension", [".mesh", pytest.param(".data", marks=pytest.mark.slow)])
def test_what_was_exported_is_known_after_undo_of_a_reload(clean_blender, tmp_path, extension):
    bpy = clean_blender
    path = make(bpy, tmp_path, extension)
    turn(bpy, edited(bpy))
    bpy.ops.ed.undo_push(message="turn")
    assert again(bpy, bpy.data.objects["thing"])
    bpy.ops.ed.undo_push(message="export")
    bpy.ops.ed.undo()
    raise_node(path, "thing", is_place=False)
    reload(bpy, bpy.data.objects["thing"])
    before = shown(bpy)
    bpy.ops.ed.undo_push(message="reload")
    bpy.ops.ed.undo()
    assert differences(before, shown(bpy)) == ["thing"]
    reload(bpy, bpy.data.objects["thing"])
    assert differences(before, shown(bpy)) == []


@pytest.mark.parametrize(
    "text", ['{"is_placed": 1}', '{"applied": [1]}', '{"applied": null}', f'{{"applied": [{"NaN, " * 15}NaN]}}', "[1]"]
)
def test_damaged_notes_of_an_export_are_ignored(clean_blender, tmp_path, text):
    bpy = clean_blender
    path = make(bpy, tmp_path, ".mesh")
    before = triangles(shown(bpy))
    obj = edited(bpy)
    obj.meshferry.given_space = text
    raise_node(path, "thing", is_place=False)
    reload(bpy, obj)
    assert are_same_triangles(before + np.array([0, 0, 1]), triangles(shown(bpy)))


def test_what_was_exported_is_known_after_appending(clean_blender, tmp_path):
    """In a .blend file elsewhere whose own objects have the same names; nothing is written without a question."""
    from meshferry.blender_data.property_groups import ledger

    bpy, blend = clean_blender, str(tmp_path / "scene.blend")
    path = make(bpy, tmp_path, ".timbermesh")
    edited(bpy).location.x += 3
    assert again(bpy, bpy.data.objects["#Top"])
    bpy.ops.wm.save_as_mainfile(filepath=blend)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    box(bpy, "#Top")
    with bpy.data.libraries.load(blend) as (_stored, taken):
        taken.collections = ["thing"]
    home = taken.collections[0]
    bpy.context.scene.collection.children.link(home)
    assert (home.meshferry.source_path, home.meshferry.file.path) == (str(path), str(path))
    assert not home.meshferry.file.ledger
    assert ledger.ledger_of(home).marks.keys() <= {obj.session_uid for obj in home.all_objects}
    select(bpy, bpy.data.objects["#Base"])
    with pytest.raises(RuntimeError, match="neither read nor chosen since"):
        bpy.ops.export_scene.meshferry_again()
    before = shown(bpy)
    reload(bpy, bpy.data.objects["#Base"])
    assert differences(before, shown(bpy)) == []
