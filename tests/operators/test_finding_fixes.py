"""Fix buttons remove the cause of a finding and nothing else, and Undo takes them back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def box(clean_blender: Any) -> Any:
    """Return an active, selected cube with a UV map, in a collection of its own that is active."""
    bpy = clean_blender
    collection = bpy.data.collections.new("Lodge")
    bpy.context.scene.collection.children.link(collection)
    layer = bpy.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children["Lodge"]
    bpy.ops.mesh.primitive_cube_add()
    bpy.context.object.name = "#Box"
    return bpy.context.object


def found(kind: str) -> list[Any]:
    """Run a check; return its findings."""
    import bpy

    assert getattr(bpy.ops.export_scene, f"{kind}_check")() == {"FINISHED"}
    return list(bpy.context.window_manager.meshferry_check.findings)


def fix(index: int = -1) -> set[str]:
    import bpy

    result: set[str] = bpy.ops.object.meshferry_finding_fix(index=index)
    return result


def test_a_suffix_is_stripped_or_the_material_of_the_name_used(box: Any, clean_blender: Any) -> None:
    bpy = clean_blender
    dirt, water = bpy.data.materials.new("Dirt"), bpy.data.materials.new("Water.004")
    for material in (bpy.data.materials.new("Dirt"), water):
        box.data.materials.append(material)
    box.data.polygons[0].material_index = 1
    assert [(one.item, one.fix, one.is_error) for one in found("timbermesh")] == [
        ("Material 'Dirt.001'", "blender-name-suffix", True),
        ("Material 'Water.004'", "blender-name-suffix", True),
    ]
    assert fix() == {"FINISHED"}
    assert [slot.material for slot in box.material_slots] == [dirt, water]
    assert water.name == "Water"
    assert not bpy.context.window_manager.meshferry_check.findings
    assert found("timbermesh") == []


def test_linked_materials_have_no_fix(box: Any, clean_blender: Any, tmp_path: Any) -> None:
    bpy = clean_blender
    library = str(tmp_path / "library.blend")
    bpy.data.libraries.write(library, {bpy.data.materials.new("Dirt.001")})
    bpy.data.materials.remove(bpy.data.materials["Dirt.001"])
    with bpy.data.libraries.load(library, link=True) as (there, here):
        here.materials = there.materials
    box.data.materials.append(here.materials[0])
    assert [(one.item, one.fix) for one in found("timbermesh")] == [("Material 'Dirt.001'", "")]


def test_animated_objects_without_a_mark_are_reported_and_marked(box: Any, clean_blender: Any) -> None:
    bpy = clean_blender
    for name in ("Door", "Hatch"):
        bpy.ops.mesh.primitive_cube_add()
        bpy.context.object.name = name
        bpy.context.object.keyframe_insert("location", frame=1)
        bpy.context.object.location.x = 3
        bpy.context.object.keyframe_insert("location", frame=9)
    (one,) = (one for one in found("timbermesh") if one.fix)
    assert one.item == "'Door', 'Hatch'" and "animated objects without #" in one.message
    assert fix() == {"FINISHED"}
    assert {"#Door", "#Hatch"} <= set(bpy.data.objects.keys())
    assert not any(one.fix for one in found("timbermesh"))


@pytest.mark.parametrize(("kind", "limit"), [("unigine_mesh", 4), ("second_life", 4)])
def test_the_strongest_weights_of_bones_stay(box: Any, clean_blender: Any, kind: str, limit: int) -> None:
    bpy = clean_blender
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    names = ("mPelvis", "mTorso", "mChest", "mNeck", "mHead", "mSkull")
    for number, name in enumerate(names):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = (0, 0, number), (0, 0, number + 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = box
    box.modifiers.new("Armature", "ARMATURE").object = rig
    weights = {**dict(zip(names, (0.05, 0.3, 0.1, 0.25, 0.2, 0.1), strict=True)), "paint": 0.01}
    for name, weight in weights.items():
        box.vertex_groups.new(name=name).add([0, 1, 2], weight, "REPLACE")
    box.vertex_groups["mHead"].add([5], 1.0, "REPLACE")
    number = next(number for number, one in enumerate(found(kind)) if one.fix == "too-many-weights")
    assert fix(number) == {"FINISHED"}
    left = [{box.vertex_groups[entry.group].name for entry in vertex.groups} for vertex in box.data.vertices]
    assert left[0] == left[1] and "paint" in left[0] and len(left[0] - {"paint"}) == limit
    assert {"mTorso", "mNeck", "mHead"} <= left[0] and not left[0] & {"mPelvis"}
    assert left[5] == {"mHead"} and left[7] == set()
    assert not any(one.fix == "too-many-weights" for one in found(kind))


def test_a_uv_map_is_added(box: Any) -> None:
    box.data.uv_layers.remove(box.data.uv_layers[0])
    assert [(one.item, one.message) for one in found("second_life") if one.fix] == [
        ("Object '#Box'", "it has no UV map, so textures do not show")
    ]
    assert fix() == {"FINISHED"}
    assert len(box.data.uv_layers) == 1
    assert not any(one.fix for one in found("second_life"))


@pytest.mark.parametrize("scale", [(1, 2, 3), (-1, 2, 1), (-1, -2, -3)])
def test_a_scale_is_applied_and_faces_stay_outside(box: Any, clean_blender: Any, scale: tuple[float, ...]) -> None:
    box.scale = scale
    clean_blender.context.view_layer.update()
    before = np.sort([tuple(box.matrix_world @ vertex.co) for vertex in box.data.vertices], axis=0)
    assert [one.fix for one in found("second_life")] == ["uneven-scale"]
    assert fix() == {"FINISHED"}
    assert tuple(box.scale) == (1, 1, 1)
    np.testing.assert_allclose(np.sort([tuple(vertex.co) for vertex in box.data.vertices], axis=0), before)
    assert all(face.normal.dot(face.center) > 0 for face in box.data.polygons)


def _animate(box: Any) -> None:
    box.keyframe_insert("location", frame=1)


def _share(box: Any) -> None:
    box.users_collection[0].objects.link(box.copy())


def _hang(box: Any) -> None:
    child = box.copy()
    child.data = box.data.copy()
    child.parent = box
    child.scale = (1, 1, 1)
    box.users_collection[0].objects.link(child)


def _bevel(box: Any) -> None:
    box.modifiers.new("Bevel", "BEVEL")


@pytest.mark.parametrize("trouble", [_animate, _share, _hang, _bevel])
def test_a_scale_on_which_more_depends_has_no_fix(box: Any, trouble: Any) -> None:
    box.scale = (1, 2, 3)
    trouble(box)
    assert {one.fix for one in found("second_life") if "not applied" in one.message} == {""}


@pytest.mark.parametrize(
    ("rotation", "scale", "angle"),
    [((-1.5708, 0, 0.4), 1, 90), ((0, 0.35, 0), 0.5, 20), ((3.1416, 0, 0), 1, 180), ((0, 0, 2), 0.5, None)],
    ids=["on its back", "tilted", "head down", "turned and small"],
)
def test_an_avatar_that_does_not_stand_upright(
    box: Any, clean_blender: Any, rotation: Any, scale: float, angle: int | None
) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    rig = bpy.context.object
    bpy.context.view_layer.objects.active = box
    box.select_set(True)
    box.modifiers.new("Armature", "ARMATURE").object = rig
    box.vertex_groups.new(name="mPelvis").add(range(8), 1.0, "REPLACE")
    rig.rotation_mode, rig.rotation_euler, rig.scale = "XYZ", rotation, (scale,) * 3
    for _ in range(2):
        texts = [one.message for one in found("second_life") if one.item == f"Armature '{rig.name}'"]
        assert [text.split(", and")[0] for text in texts] == (
            [f"it does not stand upright, but leans by {angle}°"] if angle else []
        )
        with bpy.context.temp_override(selected_editable_objects=[rig]):
            bpy.ops.object.transform_apply(location=False)  # the bones lie as before


def test_open_borders_say_what_they_cost(box: Any, clean_blender: Any) -> None:
    bpy = clean_blender
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=20, y_subdivisions=20)
    costs = [one.message for one in found("second_life") if "Keep Open Borders" in one.message]
    # Each of the 80 open edges keeps its triangle, and a grid of 81 points around has 78 triangles at least.
    assert len(costs) == 1 and int(costs[0].split(" at least")[0].split()[-1]) >= 78


def test_an_export_lists_all_errors_of_all_objects(box: Any, clean_blender: Any, tmp_path: Any) -> None:
    bpy = clean_blender
    names = [f"Dirt.{number:03d}" for number in range(1, 8)]
    for name in names:
        bpy.ops.mesh.primitive_cube_add()
        bpy.context.object.data.materials.append(bpy.data.materials.new(name))
    path = tmp_path / "Lodge.timbermesh"
    with pytest.raises(RuntimeError, match=r"Material 'Dirt.001'.*and 2 more"):
        bpy.ops.export_scene.timbermesh(filepath=str(path), scope="SCENE")
    check = bpy.context.window_manager.meshferry_check
    assert (check.format, check.subject) == ("timbermesh", "Lodge")
    assert [one.item for one in check.findings if one.is_error] == [f"Material '{name}'" for name in names]
    assert fix() == {"FINISHED"}
    assert bpy.ops.export_scene.timbermesh(filepath=str(path), scope="SCENE") == {"FINISHED"}
    assert path.exists()


def test_objects_of_zero_scale_are_named_together(box: Any, clean_blender: Any, tmp_path: Any) -> None:
    bpy = clean_blender
    for name in ("#Flat", "#Thin"):
        bpy.ops.mesh.primitive_cube_add()
        bpy.context.object.name = name
        bpy.context.object.scale.z = 0
    with pytest.raises(RuntimeError, match=r"'#Flat' has zero scale on Z.*'#Thin' has zero scale on Z"):
        bpy.ops.export_scene.timbermesh(filepath=str(tmp_path / "a.timbermesh"), scope="SCENE")
    assert len(bpy.context.window_manager.meshferry_check.findings) == 2


def test_the_dialog_exports_again(box: Any, clean_blender: Any, tmp_path: Any) -> None:
    import json

    path = tmp_path / "a.timbermesh"
    arguments = json.dumps({"filepath": str(path), "use_blender_names": True})
    export = clean_blender.types.EXPORT_SCENE_OT_timbermesh.__name__
    assert clean_blender.ops.wm.meshferry_refused_export(export=export, arguments=arguments) == {"FINISHED"}
    assert path.exists()


def test_a_refused_export_lists_no_plain_notes(
    box: Any, clean_blender: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meshferry.io_formats.core.errors import ExportError
    from meshferry.io_formats.core.messages import Report
    from meshferry.operators.files import export_base

    def refuse(*_args: Any, **_options: Any) -> Any:
        report = Report()
        report.error("is-broken", "broken")
        report.note("keys-reduced", "10 of 20 keys")
        raise ExportError("broken", findings=report.messages)

    monkeypatch.setattr(export_base, "encode_steps", refuse)
    with pytest.raises(RuntimeError, match="broken"):
        clean_blender.ops.export_scene.timbermesh(filepath=str(tmp_path / "a.timbermesh"), scope="SCENE")
    assert [one.message for one in clean_blender.context.window_manager.meshferry_check.findings] == ["broken"]
