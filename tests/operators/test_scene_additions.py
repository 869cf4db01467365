"""New meshes in imported UNIGINE scenes become files and nodes, judged by an XML parser and a decoder of meshes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import courtyard
import numpy as np
import pytest
import unigine_nodes
from test_reload_agrees import raise_node
from test_scene_changes import by_name, export, imported
from unigine_oracle import decode
from unigine_scene_oracle import WrittenScene

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "blender"))
from helpers_export import add, assert_same_triangles, materials, shown, square, tetra
from helpers_models import rig, skinned

pytestmark = pytest.mark.needs_bpy

ODD = 'Лампа <1> & "2"/x'


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def start(bpy: Any, folder: Path, version: str = "2.19.0.3") -> Path:
    """Write the project with a version of the SDK, and import its world."""
    path = courtyard.make(folder) / "courtyard.world"
    for file in path.parent.rglob("*.*"):
        if file.suffix in {".world", ".node", ".mat", ".meta"}:
            file.write_bytes(file.read_bytes().replace(b'version="2.19.0.3"', f'version="{version}"'.encode()))
    imported(bpy, path)
    return path


@pytest.fixture
def path(tmp_path: Path, clean_blender: Any) -> Path:
    return start(clean_blender, tmp_path)


def collection(bpy: Any) -> Any:
    return next(one for one in bpy.data.collections if one.meshferry.import_id and "ground" in one.objects)


def triangles(path: Path, *names: str) -> np.ndarray:
    """Return the triangles (T, 3, 3) in the world of the nodes with these names."""
    files = WrittenScene(path, path.with_suffix("")).files
    runs = [np.empty((0, 3, 3))]
    for node in unigine_nodes.read_nodes(path.read_bytes()).values():
        if node.name in names:
            reference = node.rest.partition("<mesh_name>guid://")[2][:40]
            data = decode(files[reference].read_bytes())
            for surface in data.surfaces:
                points = surface.targets[0].positions.astype(float) @ node.world[:3, :3].T + node.world[:3, 3]
                corners = surface.c_indices.reshape(-1, 3)
                runs.append(points[corners if np.linalg.det(node.world[:3, :3]) > 0 else corners[:, ::-1]])
    return np.concatenate(runs)


def test_new_meshes_become_files_and_nodes(path: Path, clean_blender: Any) -> None:
    from meshferry.blender_data import compat, file_records
    from meshferry.operators.files.patched_export import question_of_patch

    bpy, before = clean_blender, contents(path.parent)
    home = collection(bpy)
    chair = tetra("Chair", home, location=(1, 2, 3), rotation_euler=(0.3, 0.4, 0.5), scale=(-1, 2, 0.5))
    chair.modifiers.new("Array", "ARRAY").count = 3
    twin = add("Chair.001", chair.data, home, location=(9, 0, 0))
    twin.modifiers.new("Array", "ARRAY").count = 3
    below = tetra(ODD, home, parent=bpy.data.objects["bench"], location=(0, 0, 2))
    square("Inner", home, parent=below, scale=(1, 3, 1))
    square("Off", home).hide_viewport = True
    materials(chair, "glow", "Own")
    chair.data.polygons[0].material_index = 1
    chair.data.uv_layers.new().uv.foreach_set("vector", [0, 0, 1, 0, 0, 1] * 4)
    compat.enable_nodes(bpy.data.materials["Own"])
    tree = bpy.data.materials["Own"].node_tree  # is not baked: these exports are also made on save
    tree.links.new(tree.nodes.new("ShaderNodeTexNoise").outputs[0], tree.nodes["Principled BSDF"].inputs["Roughness"])
    bpy.context.view_layer.update()
    for report in (export(bpy, is_dry_run=True), question_of_patch(bpy.context, file_records.read(home), home)):
        assert "Files beside it" in report and "Chair.mesh" in report and contents(path.parent) == before
    export(bpy)
    for name in ("Chair", "Chair.001", ODD, "Inner"):
        assert_same_triangles(triangles(path, name), shown(bpy.data.objects[name]), 1e-4)
    found = by_name(path)
    assert found["Chair"].rest == found["Chair.001"].rest
    nodes = unigine_nodes.read_nodes(path.read_bytes())
    assert nodes[found[ODD].parent].name == "bench" and nodes[found["Inner"].parent].name == ODD
    new = contents(path.parent).keys() - before.keys() - {"courtyard.world.bak"}
    names = ("Chair.mesh", "Inner.mesh", "Own.mat", "Лампа _1_ & _2__x.mesh")  # glow is a material of the project
    assert new == {f"courtyard/{name}{ending}" for name in names for ending in ("", ".meta")}
    after = contents(path.parent)
    assert "nothing changed" in export(bpy)
    assert contents(path.parent) == after


def test_later_edits_are_written_while_the_file_is_as_exports_left_it(path: Path, clean_blender: Any) -> None:
    bpy, home, folder = clean_blender, collection(clean_blender), path.with_suffix("")
    chair = tetra("Chair", home)
    export(bpy)
    (first,) = (node for node in unigine_nodes.read_nodes(path.read_bytes()).items() if node[1].name == "Chair")
    chair.data.vertices[0].co.z += 3
    chair.location.x += 4
    report = export(bpy)
    assert "Moved: 'Chair'" in report and "Files beside it: 'courtyard/Chair.mesh'" in report
    assert_same_triangles(triangles(path, "Chair"), shown(chair), 1e-5)
    assert not [*folder.glob("*.bak*")], "own content needs no backup"
    chair.name = "Renamed"
    assert export(bpy).endswith(": Renamed: 'Renamed'"), "the surface without a material keeps its name"
    chair.name = "Chair"
    materials(chair, "paint_red", "Other")  # a material of the project that this .blend file lacks, and a new one
    chair.data.polygons[0].material_index = 1
    export(bpy)
    found = by_name(path)["Chair"]
    assert found.parent == first[1].parent and len(found.materials) == 2
    (mesh,) = folder.glob("Chair*.mesh")
    content = mesh.read_bytes() + b"\0"
    mesh.write_bytes(content)
    chair.data.vertices[0].co.z += 3
    chair.location.x += 4
    report = export(bpy)
    assert "Moved: 'Chair'" in report and "'courtyard/Chair.mesh'" in report and "changed by another program" in report
    assert mesh.read_bytes() == content and [*folder.glob("*.mesh")] == [mesh]


def test_undo_and_another_export_reuse_the_file(path: Path, clean_blender: Any) -> None:
    bpy, folder = clean_blender, path.with_suffix("")
    bpy.ops.ed.undo_push(message="import")
    old = path.read_bytes()
    tetra("Chair", collection(bpy))
    bpy.ops.ed.undo_push(message="chair")
    export(bpy)
    whole = path.read_bytes()
    bpy.ops.ed.undo_push(message="export")
    bpy.ops.ed.undo()
    assert "nothing changed" in export(bpy) and path.read_bytes() == whole
    bpy.ops.ed.undo()
    assert "Removed: 'Chair'" in export(bpy) and path.read_bytes() == old
    square("Chair", collection(bpy))
    bpy.context.view_layer.update()
    assert "Added: 'Chair'" in export(bpy)
    assert [one.name for one in folder.glob("*.mesh")] == ["Chair.mesh"]
    assert_same_triangles(triangles(path, "Chair"), shown(bpy.data.objects["Chair"]), 1e-5)


def test_redo_puts_the_node_back(path: Path, clean_blender: Any) -> None:
    bpy, folder = clean_blender, path.with_suffix("")
    bpy.ops.ed.undo_push(message="import")
    tetra("Chair", collection(bpy))
    bpy.ops.ed.undo_push(message="chair")
    export(bpy)
    whole, files = path.read_bytes(), contents(folder)
    for step, is_there in ((bpy.ops.ed.undo, False), (bpy.ops.ed.redo, True)):
        step()
        export(bpy)
        assert ("Chair" in by_name(path)) == is_there
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines()) and contents(folder) == files


@pytest.mark.parametrize("is_changed", [False, True])
def test_reload_keeps_the_file_of_a_mesh(path: Path, clean_blender: Any, is_changed: bool) -> None:
    bpy, folder = clean_blender, path.with_suffix("")
    tetra("Chair", collection(bpy))
    export(bpy)
    if is_changed:
        path.write_bytes(path.read_bytes() + b"\n")
    bpy.context.view_layer.objects.active = bpy.data.objects["Chair"]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    bpy.data.objects["Chair"].data.vertices[0].co.z += 1
    assert export(bpy).startswith("courtyard.world: Files beside it: 'courtyard/Chair.mesh', 1 warning: Chair: 1 surf")
    assert [one.name for one in folder.glob("*.mesh")] == ["Chair.mesh"]
    assert_same_triangles(triangles(path, "Chair"), shown(bpy.data.objects["Chair"]), 1e-5)


@pytest.mark.parametrize("is_new", [False, True])
def test_linked_duplicates_keep_materials_of_their_own(path: Path, clean_blender: Any, is_new: bool) -> None:
    bpy, home = clean_blender, collection(clean_blender)
    first = tetra("First", home)
    first.data.materials.append(None)
    if not is_new:
        export(bpy)
    first.name = "Renamed"
    second = add("Second", first.data, home, location=(4, 0, 0))
    second.material_slots[0].link = "OBJECT"
    second.material_slots[0].material = bpy.data.materials["glow"]
    bpy.context.view_layer.update()
    export(bpy)
    found = by_name(path)
    assert (found["Renamed"].materials, found["Second"].materials) == ([""], [courtyard.material("glow")])
    assert len([*path.with_suffix("").glob("*.mesh")]) == 1 and "nothing changed" in export(bpy)


def reload(bpy: Any, name: str) -> tuple[str, str]:
    """Reload the file of an object; return the question about it, and the report."""
    from meshferry.operators.files import reload_file

    bpy.context.view_layer.objects.active = bpy.data.objects[name]
    said: list[str] = []
    operator = type("Operator", (), {"report": lambda _self, _kind, text: said.append(text)})()
    operator.filepath, operator.asked = "", ""
    asker = reload_file.IMPORT_SCENE_OT_meshferry_reload
    operator._path = lambda source: source.path
    operator.stored_paths = lambda _context: []
    question = asker.question(operator, bpy.context)
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    bpy.context.view_layer.update()
    return question, "".join(said)


def picture(bpy: Any) -> dict[str, Any]:
    """Return what each object shows: triangles, materials and modifiers."""
    return {
        obj.name: (
            shown(obj).round(5).tolist() if obj.type == "MESH" else np.array(obj.matrix_world).round(5).tolist(),
            [slot.material and slot.material.name for slot in obj.material_slots],
            [modifier.name for modifier in obj.modifiers],
        )
        for obj in bpy.context.view_layer.objects
    }


@pytest.mark.slow
@pytest.mark.parametrize(("version", "is_changed"), [("2.19.0.3", False), ("2.20.0.0", True), ("2.22.0.0", True)])
def test_reload_leaves_made_objects_as_they_are(
    tmp_path: Path, clean_blender: Any, version: str, is_changed: bool
) -> None:
    bpy, path = clean_blender, start(clean_blender, tmp_path, version)
    home = collection(bpy)
    chair = tetra("Chair", home, location=(1, 2, 3), rotation_euler=(0.1, 0.2, 0.3), scale=(1, -2, 1))
    add("Twin", chair.data, home, location=(9, 0, 0))
    array = square("Row", home)
    array.modifiers.new("Array", "ARRAY").count = 3
    materials(chair, "glow", "Own")
    chair.data.polygons[0].material_index = 1
    armature = rig("Rig", location=(3, 2, 1), rotation_euler=(0, 0, 1))
    for obj in (armature, skinned(armature, "Tube")):
        home.objects.link(obj)
    bpy.context.view_layer.update()
    export(bpy)
    everything, before, files = {*bpy.data.objects.keys()}, picture(bpy), contents(path.with_suffix(""))
    for _round in range(2):
        if is_changed:
            path.write_bytes(path.read_bytes() + b"\n")
        assert not reload(bpy, "Chair")[0] and picture(bpy) == before and {*bpy.data.objects.keys()} == everything
        assert "nothing changed" in export(bpy) and contents(path.with_suffix("")) == files
    chair.data.vertices[0].co.z += 1
    array.data.vertices[0].co.z += 1
    now = picture(bpy)["Row"]
    question = reload(bpy, "Chair")[0]
    assert "'Chair': it has another mesh" in question and "'Row'" not in question
    assert_same_triangles(shown(chair), np.array(before["Chair"][0]), 1e-4)  # the file counts
    assert picture(bpy)["Row"] == now, "an object with modifiers stays"
    text = path.read_text("utf-8")
    start_of_row = text.index("<transform>", text.index('name="Row"'))
    path.write_text(text[:start_of_row] + text[start_of_row:].replace("0 0 0 1.0<", "7 8 9 1.0<", 1))
    reload(bpy, "Chair")
    assert array.location[:] == (7, 8, 9), "another program moved it"


def test_files_of_others_are_left_alone(path: Path, clean_blender: Any) -> None:
    bpy, folder = clean_blender, path.with_suffix("")
    folder.mkdir()
    for name in ("Chair.mesh", "table.MESH", "Own.mat"):
        (folder / name).write_bytes(b"of others")
    guid = "1234" * 10
    (folder / "Lamp.mesh.meta").write_text(
        f'<?xml version="1.0"?><asset version="2.19.0.3"><guid>{guid}</guid><type>mesh</type></asset>'
    )
    for name in ("Chair", "Table", "Lamp"):
        tetra(name, collection(bpy))
    export(bpy)
    assert {one.name for one in folder.glob("*.mesh")} == {"Chair.mesh", "Chair_2.mesh", "Table_2.mesh", "Lamp.mesh"}
    assert guid in by_name(path)["Lamp"].rest
    before = contents(path.parent)
    materials(bpy.data.objects["Chair"], "Own")
    assert "rename or remove: 'courtyard/Own.mat'" in export(bpy)
    assert contents(path.parent) == before


@pytest.mark.parametrize(
    ("version", "kind", "ending", "others"),
    [
        ("2.22.0.0", "ObjectMeshSkinnedLegacy", ".mesh_skinned", {".skeleton", ".anim"}),
        ("2.20.0.0", "ObjectMeshSkinned", ".mesh", set()),
    ],
)
def test_characters(tmp_path: Path, clean_blender: Any, version: str, kind: str, ending: str, others: set[str]) -> None:
    bpy = clean_blender
    path = start(bpy, tmp_path, version)
    home, folder, static = collection(bpy), path.with_suffix(""), tetra("Stone", collection(bpy))
    armature = rig("Rig", location=(3, 2, 1), rotation_euler=(0, 0, 1))
    first, second = skinned(armature, "Tube"), skinned(armature, "Other Tube")
    for obj in (armature, first, second):
        home.objects.link(obj)
    second.location = (0.5, 0, 0)
    bone = armature.pose.bones["Upper"]
    for frame in (1, 9):
        bone.location = (0, 0, frame / 10)
        bone.keyframe_insert("location", frame=frame)
    bpy.context.view_layer.update()
    report = export(bpy)
    assert "made here" not in report and "Added: 'Other Tube', 'Stone', 'Tube'" in report, report
    files = {one.suffix for one in folder.iterdir()}
    assert files == {".meta", ".mesh", ending, *others}
    armature.data.pose_position = "REST"
    bpy.context.view_layer.update()
    for obj in (static, first, second):
        assert_same_triangles(triangles(path, obj.name), shown(obj), 1e-4)
        assert ("Skinned" in by_name(path)[obj.name].rest) == (obj != static)
    assert f"'{kind}'" in by_name(path)["Tube"].rest
    armature.data.pose_position = "POSE"
    bpy.context.view_layer.update()
    assert "nothing changed" in export(bpy)
    armature.location.x += 2
    first.data.vertices[0].co.x += 1
    bpy.context.view_layer.update()
    report = export(bpy)
    assert "Moved: 'Other Tube', 'Tube'" in report and f"Tube{ending}'" in report
    armature.data.pose_position = "REST"
    bpy.context.view_layer.update()
    for obj in (first, second):
        assert_same_triangles(triangles(path, obj.name), shown(obj), 1e-4)
    for is_moved in (False, True):  # here, too
        armature.location.x += is_moved
        bpy.context.view_layer.update()
        for name in ("Tube", "Other Tube"):
            raise_node(path, name, is_place=True)
        before = armature.location.copy()
        reload(bpy, "Tube")
        assert armature.location.z - before.z == pytest.approx(0 if is_moved else 5)
        assert ("nothing changed" in export(bpy)) != is_moved


def test_export_on_save_makes_no_files(path: Path, clean_blender: Any) -> None:
    from meshferry.blender_data.exporting.placements.placement_patch import plan_patch
    from meshferry.blender_data.steps import finish
    from meshferry.operators.files.session_projects import session_projects

    bpy, home = clean_blender, collection(clean_blender)

    def save() -> str:
        plan = finish(plan_patch(home, session_projects()))
        plan.write(use_blend=False)
        return " | ".join(map(str, [*plan.lines(), *plan.messages]))

    before = contents(path.parent)
    chair = tetra("Chair", home)
    assert "1 object with a new mesh, which only Re-export writes" in save() and contents(path.parent) == before
    chair.modifiers.new("Array", "ARRAY")
    export(bpy)
    before = contents(path.parent)
    chair.data.vertices[0].co.z += 1
    chair.location.x += 2
    assert save() == "Moved: 'Chair' | 1 object made in Blender, whose mesh only Re-export writes: 'Chair'"
    after = contents(path.parent)
    assert [name for name in after if before.get(name) != after[name]] == ["courtyard.world"]
    assert "Files beside it: 'courtyard/Chair.mesh'" in export(bpy)
    assert_same_triangles(triangles(path, "Chair"), shown(chair), 1e-5)


def test_records_in_a_blend_file_do_not_permit_to_replace(path: Path, clean_blender: Any, monkeypatch: Any) -> None:
    """The ledger goes into the .blend file, but the list of own content stays on the machine."""
    from meshferry.blender_data import file_records

    bpy = clean_blender
    tetra("Chair", collection(bpy))
    export(bpy)
    blend = str(path.with_name("scene.blend"))
    bpy.ops.wm.save_as_mainfile(filepath=blend)
    for is_other_machine in (False, True):
        if is_other_machine:
            monkeypatch.setattr(file_records, "user_folder", lambda: path.parent / "other")
        bpy.ops.wm.open_mainfile(filepath=blend)
        bpy.data.objects["Chair"].data.vertices[0].co.z += 1
        bpy.context.view_layer.update()
        old = path.with_name("courtyard").joinpath("Chair.mesh").read_bytes()
        report = export(bpy)
        assert ("Files beside it" in report) != is_other_machine
        assert ("made on another machine" in report) == is_other_machine
        assert (old == path.with_name("courtyard").joinpath("Chair.mesh").read_bytes()) == is_other_machine
