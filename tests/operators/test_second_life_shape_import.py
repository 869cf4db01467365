"""Body shapes from files: onto which avatar they go, reports, reloading, Load Shape… and Save Shape…."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pointing_bones
import pytest
from meshfuzz import second_life_shape_seeds as made
from test_second_life_animation_import import linked
from test_second_life_joints import avatar

pytestmark = pytest.mark.needs_bpy

MAN = made.body_part((("33", ".5"), ("80", "1")))


def shape(path: Path, data: bytes = made.BODY_PART) -> str:
    path.write_bytes(data)
    return str(path)


def sliders(armature: Any) -> dict[int, float]:
    """Return the values of sliders."""
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders

    return armature_sliders.values_of(body_shapes.percents_of(armature))


def values_in(path: str) -> dict[int, float]:
    from meshferry.io_formats import api

    values: dict[int, float] = api.load(path).document.complete
    return values


def heads(armature: Any) -> np.ndarray[Any, Any]:
    armature.id_data.update_tag()
    import bpy

    bpy.context.view_layer.update()
    return np.array([bone.head for bone in armature.pose.bones])


def require_loaded(armature: Any, path: str) -> None:
    assert sliders(armature) == pytest.approx(values_in(path), abs=1e-6)
    assert np.abs(np.array([bone.scale for bone in armature.pose.bones]) - 1.0).max() > 0.01


def armatures(bpy: Any) -> list[Any]:
    return [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]


@pytest.mark.parametrize("name", ["tall.bodypart", "tall.xml", "tall_bodypart.txt", "tall.dat", "tall"])
def test_without_an_avatar_there_is_a_new_one(clean_blender: Any, tmp_path: Path, name: str) -> None:
    bpy = clean_blender
    path = shape(tmp_path / name, made.APPEARANCE if name.endswith("xml") else made.BODY_PART)
    assert bpy.ops.import_scene.second_life(filepath=path) == {"FINISHED"}
    (rig,) = armatures(bpy)
    require_loaded(rig, path)
    assert len(rig.data.bones) == 159
    assert rig.select_get()


@pytest.mark.parametrize("operator", ["import_scene.second_life", "object.second_life_load_shape"])
def test_a_shape_goes_onto_the_active_avatar_and_replaces_the_one_before(
    clean_blender: Any, tmp_path: Path, operator: str
) -> None:
    bpy = clean_blender
    rig, other = avatar(bpy), avatar(bpy)
    body = bpy.data.objects.new("Body", bpy.data.meshes.new("Body"))
    bpy.context.collection.objects.link(body)
    body.modifiers.new("Armature", "ARMATURE").object = rig
    module, name = operator.split(".")
    load = getattr(getattr(bpy.ops, module), name)
    collections = len(bpy.data.collections)
    for active, data in ((rig, MAN), (body, made.BODY_PART), (body, made.BODY_PART)):
        for obj in bpy.context.view_layer.objects:
            obj.select_set(obj == active)
        bpy.context.view_layer.objects.active = active
        path = shape(tmp_path / "shape.bodypart", data)
        assert load(filepath=path) == {"FINISHED"}
        require_loaded(rig, path)
        assert bpy.context.view_layer.objects.active == active
    assert armatures(bpy) == [rig, other]
    assert np.array([bone.scale for bone in other.pose.bones]).min() == 1.0
    assert len(bpy.data.collections) == collections


def test_shapes_of_one_run(clean_blender: Any, tmp_path: Path) -> None:
    """Several shapes become several avatars; one beside a rigged model goes onto its armature."""
    bpy = clean_blender
    for name, data in (("a.bodypart", MAN), ("b.bodypart", made.BODY_PART)):
        shape(tmp_path / name, data)
    files = [{"name": "a.bodypart"}, {"name": "b.bodypart"}]
    assert bpy.ops.import_scene.second_life(directory=str(tmp_path), files=files) == {"FINISHED"}
    for rig, name in zip(armatures(bpy), ("a.bodypart", "b.bodypart"), strict=True):
        require_loaded(rig, str(tmp_path / name))
    example = Path(__file__).resolve().parents[2] / "examples" / "tunic.llmesh"
    (tmp_path / example.name).write_bytes(example.read_bytes())
    bpy.ops.wm.read_homefile(use_empty=True)
    files = [{"name": "a.bodypart"}, {"name": example.name}]
    assert bpy.ops.import_scene.second_life(directory=str(tmp_path), files=files) == {"FINISHED"}
    (rig,) = armatures(bpy)
    require_loaded(rig, str(tmp_path / "a.bodypart"))


def test_other_armatures(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    """An avatar with other axes is shaped with a warning; another armature stays as it is."""
    bpy = clean_blender
    path = shape(tmp_path / "man.bodypart", MAN)
    old = pointing_bones.add()
    bpy.context.view_layer.objects.active = old
    assert bpy.ops.import_scene.second_life(filepath=path) == {"FINISHED"}
    require_loaded(old, path)
    assert "do not lie along the avatar's axes" in capfd.readouterr().out
    data = bpy.data.armatures.new("Crane")
    crane = bpy.data.objects.new("Crane", data)
    bpy.context.collection.objects.link(crane)
    bpy.context.view_layer.objects.active = crane
    assert bpy.ops.import_scene.second_life(filepath=path) == {"FINISHED"}
    assert "'Crane' has no bones that follow a body shape; made a new armature" in capfd.readouterr().out
    assert len(armatures(bpy)) == 3
    bpy.context.view_layer.objects.active = crane
    with pytest.raises(RuntimeError, match="'Crane' has no bones that follow a body shape"):
        bpy.ops.import_scene.second_life(filepath=path, armature="ACTIVE")
    count = len(bpy.data.objects)
    assert bpy.ops.import_scene.second_life(filepath=path, armature="NONE") == {"FINISHED"}
    assert "The body shape was left out" in capfd.readouterr().out
    assert bpy.ops.import_scene.second_life(filepath=path, armature="NEW") == {"FINISHED"}
    assert len(bpy.data.objects) == count + 1


@pytest.mark.parametrize("kind", ["object", "data", "override", "system override"])
def test_linked_avatars(clean_blender: Any, tmp_path: Path, capfd: Any, kind: str) -> None:
    """The shape belongs to the object, so it is enough that this is of the file, or an editable override."""
    bpy = clean_blender
    rig = linked(bpy, tmp_path, kind.rpartition(" ")[2])
    if kind == "system override":
        rig.override_library.is_system_override = True
    is_shapeable = kind in {"data", "override"}
    path = shape(tmp_path / "man.bodypart", MAN)
    assert bpy.ops.import_scene.second_life(filepath=path) == {"FINISHED"}
    shaped = rig if is_shapeable else next(obj for obj in armatures(bpy) if obj != rig)
    require_loaded(shaped, path)
    assert ("is linked from another file; made a new armature" in capfd.readouterr().out) != is_shapeable
    if not is_shapeable:
        bpy.context.view_layer.objects.active = rig
        with pytest.raises(RuntimeError, match=r"is linked from another file; make an? .*override"):
            bpy.ops.import_scene.second_life(filepath=path, armature="ACTIVE")


def test_messages_of_files(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    bpy = clean_blender
    avatar(bpy)
    rows = (("33", "99"), ("34", "-99"), ("38", "nan"), ("5555", "1"), ("683", "0"))
    path = shape(tmp_path / "odd.bodypart", made.body_part(rows))
    assert bpy.ops.object.second_life_load_shape(filepath=path) == {"FINISHED"}
    said = capfd.readouterr().out
    assert said.count("2 values were outside their range and clamped: 'Height', 'Body Thickness'") == 1
    assert said.count("1 value is not finite and left out: 'Torso Length'") == 1
    assert "1 body shape" in said
    for name, data, message in (
        ("skin.bodypart", made.body_part((("108", "1"),), kind="1"), r"skin\.bodypart: This is a skin, not a shape"),
        ("walk.bvh", b"HIERARCHY\nROOT hip\n{\n", r"walk\.bvh: .*"),
    ):
        with pytest.raises(RuntimeError, match=message):
            bpy.ops.object.second_life_load_shape(filepath=shape(tmp_path / name, data))
    example = Path(__file__).resolve().parents[2] / "examples" / "tunic.llmesh"
    with pytest.raises(RuntimeError, match="This is a Second Life Mesh file, not a shape"):
        bpy.ops.object.second_life_load_shape(filepath=str(example))


def test_a_broken_off_run_gives_the_sliders_back(clean_blender: Any, tmp_path: Path) -> None:
    from meshferry.operators.files.import_base import import_steps

    bpy = clean_blender
    rig = avatar(bpy)
    rig.pose.bones["mHead"].scale = (1.5, 1.5, 1.5)
    before = sliders(rig), heads(rig), rig.pose.bones["mHead"].scale.copy()
    paths = [shape(tmp_path / name, MAN) for name in ("a.bodypart", "b.bodypart")]
    steps = import_steps(bpy.context, paths, {})
    while sliders(rig) == before[0]:
        next(steps)
    steps.close()
    assert sliders(rig) == before[0]
    assert heads(rig) == pytest.approx(before[1], abs=1e-6)
    assert rig.pose.bones["mHead"].scale == before[2]


def test_reload(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    path = shape(tmp_path / "shape.bodypart", MAN)
    assert bpy.ops.import_scene.second_life(filepath=path) == {"FINISHED"}
    (rig,) = armatures(bpy)
    for data in (made.BODY_PART, MAN):
        shape(tmp_path / "shape.bodypart", data)
        bpy.context.view_layer.objects.active = rig
        assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
        assert armatures(bpy) == [rig]
        require_loaded(rig, path)
    example = Path(__file__).resolve().parents[2] / "examples" / "tunic.llmesh"
    bpy.ops.wm.read_homefile(use_empty=True)
    assert bpy.ops.import_scene.second_life(filepath=str(example)) == {"FINISHED"}
    (rig,) = armatures(bpy)
    bpy.context.view_layer.objects.active = rig
    assert bpy.ops.object.second_life_load_shape(filepath=path) == {"FINISHED"}
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    require_loaded(armatures(bpy)[0], path)


def test_saved_shapes(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    rig = avatar(bpy)
    loaded = shape(tmp_path / "tall.bodypart")
    assert bpy.ops.object.second_life_load_shape(filepath=loaded) == {"FINISHED"}
    before = heads(rig)
    saved = tmp_path / "saved.xml"
    saved.write_bytes(b"old")
    assert bpy.ops.object.second_life_save_shape(filepath=str(saved)) == {"FINISHED"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved.xml", "tall.bodypart"]
    assert values_in(str(saved)) == pytest.approx(values_in(loaded), abs=1e-6)
    other = avatar(bpy)
    assert bpy.ops.import_scene.second_life(filepath=str(saved)) == {"FINISHED"}
    assert heads(other) == pytest.approx(before, abs=2e-6)
    seen = tmp_path / "seen.xml"
    assert bpy.ops.object.second_life_save_shape(filepath=str(seen), use_as_others_see=True) == {"FINISHED"}
    from meshferry.io_formats.second_life.avatar import sliders

    wanted = sliders.as_others_see(values_in(loaded))
    assert values_in(str(seen)) == pytest.approx(wanted, abs=1e-6)
    assert max(abs(wanted[number] - value) for number, value in values_in(loaded).items()) > 1e-3
    with pytest.raises(RuntimeError, match="the folder does not exist"):
        bpy.ops.object.second_life_save_shape(filepath=str(tmp_path / "nowhere" / "a.xml"))
