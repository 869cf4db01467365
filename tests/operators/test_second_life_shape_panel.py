"""The section "Shape" of the sidebar: which sliders it shows, presets, and avatars of other files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pointing_bones
import pytest
from second_life_models import Drawn, panel_context

pytestmark = pytest.mark.needs_bpy

TABS = ("body", "head", "eyes", "ears", "nose", "mouth", "chin", "torso", "legs")
HEIGHT, MALE, TORSO, BREAST = 33, 80, 38, 105


def name_of(number: int) -> str:
    return f"meshferry_shape_{number}"


def add_avatar(bpy: Any) -> Any:
    assert bpy.ops.object.second_life_avatar_add() == {"FINISHED"}
    return bpy.context.object


@pytest.fixture
def avatar(clean_blender: Any) -> Any:
    return add_avatar(clean_blender)


@pytest.fixture(autouse=True)
def presets_file(clean_blender: Any, tmp_path: Path, monkeypatch: Any) -> Path:
    """Keep presets in a folder of the test."""
    folder = tmp_path / "CONFIG"
    folder.mkdir()
    monkeypatch.setattr(clean_blender.utils, "user_resource", lambda kind, *, create: str(tmp_path / kind))
    return folder / "meshferry_shapes.json"


def drawn(bpy: Any) -> Drawn:
    from meshferry.operators.families.second_life.body_shape import draw_shape

    layout = Drawn()
    draw_shape(layout, panel_context(bpy), ())
    return layout


def sliders_of(armature: Any) -> dict[int, float]:
    from meshferry.blender_data.rigging import body_shapes

    return body_shapes.percents_of(armature)


def require_alike(found: dict[int, float], wanted: dict[int, float]) -> None:
    assert found.keys() == wanted.keys()
    for number, percent in wanted.items():
        assert found[number] == pytest.approx(percent, abs=1e-3), number


def set_shape(bpy: Any, shape: str = "STANDARD", **options: Any) -> set[str]:
    found: set[str] = bpy.ops.object.second_life_shape_set(shape=shape, **options)
    return found


def apart(one: Any, other: Any) -> float:
    """Return the largest difference of scales and locations of the bones of two armature objects."""
    return max(
        float(np.abs(np.subtract(getattr(bone, channel), getattr(other.pose.bones[bone.name], channel))).max())
        for bone in one.pose.bones
        for channel in ("scale", "location")
    )


def table_rows() -> list[dict[str, str]]:
    import meshferry

    path = Path(meshferry.__file__).parent / "io_formats" / "second_life" / "avatar" / "parameters.csv"
    with path.open(encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["group"] in {"0", "3"}]


@pytest.mark.parametrize(("sex", "other"), [("FEMALE", "male"), ("MALE", "female")])
def test_sliders_of_one_sex_are_shown_in_the_order_of_the_viewer(
    clean_blender: Any, avatar: Any, sex: str, other: str
) -> None:
    bpy = clean_blender
    assert bpy.ops.object.second_life_shape_sex(sex=sex) == {"FINISHED"}
    wanted: list[Any] = []
    for group in (*(f"shape_{tab}" for tab in TABS), "hair_eyebrows", "shoes"):
        rows = [row for row in table_rows() if row["edit_group"] == group and row["sex"] != other]
        wanted += [group.partition("_")[2].capitalize() or "Shoes"]
        wanted += [row["label"] for row in sorted(rows, key=lambda row: float(row["edit_order"]))]
    properties = bpy.types.Object.bl_rna.properties
    lines = [properties[line[0]].name if isinstance(line, tuple) else line for line in drawn(bpy).lines]
    lines = lines[lines.index("Body") :]
    assert [line for line in lines if line != "object.second_life_shape_reset"] == wanted
    assert properties[name_of(HEIGHT)].description == "0: Short; 100: Tall"
    assert "Has no effect on worn meshes" in properties[name_of(5)].description


@pytest.mark.parametrize(("shape", "stated"), [("FEMALE", "default_female"), ("MALE", "default_male")])
def test_presets_and_heights_of_the_viewer(
    clean_blender: Any, avatar: Any, samples: Path, capfd: Any, shape: str, stated: str
) -> None:
    bpy = clean_blender
    setattr(avatar, name_of(HEIGHT), 100.0)
    wanted = json.loads((samples / "secondlife_shape" / "expected.json").read_text("utf-8"))["shapes"]
    for name, numbers in ((shape, wanted[stated]), ("STANDARD", wanted["standard_skeleton"])):
        assert set_shape(bpy, name) == {"FINISHED"}
        capfd.readouterr()
        assert bpy.ops.object.second_life_shape_height() == {"FINISHED"}
        said = capfd.readouterr().out
        assert f"Height as the viewer counts: {numbers['height']:.2f} m" in said
    assert all(tuple(bone.scale) == (1, 1, 1) and not any(bone.location) for bone in avatar.pose.bones)


def test_joint_positions_count_in_the_height(clean_blender: Any, avatar: Any) -> None:
    """The skull stays where it is, so it is 0.1 m less above the head; the viewer takes this √2 times."""
    from meshferry.operators.families.second_life.body_shape import shape_of

    before = shape_of(avatar)
    clean_blender.ops.object.mode_set(mode="EDIT")
    avatar.data.edit_bones["mHead"].head.z += 0.1
    clean_blender.ops.object.mode_set(mode="OBJECT")
    after = shape_of(avatar)
    assert after.height - before.height == pytest.approx(0.1 - 0.1 * np.sqrt(2), abs=1e-5)
    assert after.body_height - before.body_height == pytest.approx(0.1, abs=1e-5)


@pytest.mark.parametrize(("sex", "extent"), [(0.0, 0.006 + 1.859), (1.0, 0.053 + 1.897)])
def test_the_true_height_is_that_of_the_classic_body(sex: float, extent: float) -> None:
    from meshferry.io_formats.second_life.avatar import sliders

    assert sliders.evaluate_shape({MALE: sex}).body_height == pytest.approx(extent, abs=1e-3)


def test_random_shapes_are_normally_distributed_around_the_defaults(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    set_shape(bpy, "MALE")
    defaults = sliders_of(avatar)
    setattr(avatar, name_of(198), 70.0)
    rows = {int(row["id"]): row for row in table_rows()}
    chosen = {number for number, row in rows.items() if row["edit_group"].startswith("shape_")} - {11001}
    found = []
    for seed in range(20):
        assert bpy.ops.object.second_life_shape_random(seed=seed) == {"FINISHED"}
        found.append(sliders_of(avatar))
    assert found[0] != found[1]
    assert bpy.ops.object.second_life_shape_random(seed=0) == {"FINISHED"}
    assert sliders_of(avatar) == found[0]
    for number in defaults.keys() - chosen:
        assert {one[number] for one in found} == {70.0 if number == 198 else defaults[number]}, number
    away = np.array([[one[number] - defaults[number] for number in chosen] for one in found])
    assert all(0.0 <= one[number] <= 100.0 for one in found for number in chosen)
    central = [column for column, number in enumerate(chosen) if abs(defaults[number] - 50) < 1]
    assert len(central) > 10
    assert away[:, central].std() == pytest.approx(19.7, abs=2.5), "the tails beyond 2.5 deviations are clamped"
    assert abs(away[:, central].mean()) < 3.0


def test_a_tab_is_reset_alone(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_shape_random(seed=3)
    before = sliders_of(avatar)
    assert bpy.ops.object.second_life_shape_reset(tab="TORSO") == {"FINISHED"}
    after = sliders_of(avatar)
    for row in table_rows():
        number, low, high = int(row["id"]), float(row["min"]), float(row["max"])
        is_reset = row["edit_group"] == "shape_torso"
        wanted = (float(row["default"]) - low) / (high - low) * 100 if is_reset else before[number]
        assert after[number] == pytest.approx(wanted, abs=1e-4), row["label"]


def test_shapes_are_copied_between_avatars(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    with pytest.raises(RuntimeError, match="No shape was copied"):
        set_shape(bpy, "COPIED")
    bpy.ops.object.second_life_shape_random(seed=5)
    bpy.ops.object.second_life_shape_sex(sex="MALE")
    assert bpy.ops.object.second_life_shape_copy() == {"FINISHED"}
    other = add_avatar(bpy)
    assert set_shape(bpy, "COPIED") == {"FINISHED"}
    require_alike(sliders_of(other), sliders_of(avatar))
    assert apart(avatar, other) < 1e-5
    assert "COPIED" not in str(preset_buttons(bpy))


def preset_buttons(bpy: Any) -> list[Any]:
    layout = Drawn()
    bpy.types.SECOND_LIFE_PT_shape_presets.draw(type("Panel", (), {"layout": layout})(), panel_context(bpy))
    return [(button.name.rpartition("_")[2], getattr(button, "preset", "")) for button in layout.buttons]


def test_presets_of_the_user(clean_blender: Any, avatar: Any, presets_file: Path) -> None:
    bpy = clean_blender
    names = ['a/b\\c:"*?<>|.', "A/B", "a_b", "..", "Zoë 鹿 \u202e", "line\nbreak", "x" * 300]
    kept = {}
    for number, name in enumerate(names):
        bpy.ops.object.second_life_shape_random(seed=number)
        assert bpy.ops.object.second_life_shape_preset_add(name=f" {name} ") == {"FINISHED"}
        kept[name] = sliders_of(avatar)
    with pytest.raises(RuntimeError, match="Enter a name"):
        bpy.ops.object.second_life_shape_preset_add(name="  ")
    shown = [preset for kind, preset in preset_buttons(bpy) if kind == "set" and preset]
    assert shown == sorted(names, key=str.casefold)
    for name, percents in kept.items():
        assert set_shape(bpy, preset=name) == {"FINISHED"}
        require_alike(sliders_of(avatar), percents)
    assert bpy.ops.object.second_life_shape_preset_add(name="a_b") == {"FINISHED"}, "it is replaced"
    assert bpy.ops.object.second_life_shape_preset_remove(name="A/B") == {"FINISHED"}
    with pytest.raises(RuntimeError, match="There is no preset 'A/B'"):
        set_shape(bpy, preset="A/B")
    assert len(preset_buttons(bpy)) == 3 + 2 * (len(names) - 1) + 1
    set_shape(bpy, preset="a_b")
    require_alike(sliders_of(avatar), kept[names[-1]])
    assert [path.name for path in presets_file.parent.iterdir()] == [presets_file.name]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"x": 3}', '{"x": {"33": "tall"}}', '{"x": {"y": 1}}', "[" * 100000])
def test_a_broken_file_of_presets_is_named_and_not_overwritten(
    clean_blender: Any, avatar: Any, presets_file: Path, text: str
) -> None:
    bpy = clean_blender
    presets_file.write_text(text, "utf-8")
    for call in (
        lambda: set_shape(bpy, preset="x"),
        lambda: bpy.ops.object.second_life_shape_preset_add(name="y"),
        bpy.ops.object.second_life_shape_copy,
    ):
        with pytest.raises(RuntimeError, match=r"meshferry_shapes\.json: The file does not hold shapes"):
            call()
    assert presets_file.read_text("utf-8") == text
    assert len(preset_buttons(bpy)) == 3


def test_a_missing_configuration_folder_is_reported(clean_blender: Any, avatar: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(clean_blender.utils, "user_resource", lambda *_args, **_options: "")
    with pytest.raises(RuntimeError, match="The folder of Blender's configuration cannot be made"):
        clean_blender.ops.object.second_life_shape_copy()


def test_values_of_presets_are_clamped(clean_blender: Any, avatar: Any, presets_file: Path) -> None:
    presets_file.write_text('{"x": {"33": 99, "34": NaN, "37": -Infinity, "4711": 1}}', "utf-8")
    assert set_shape(clean_blender, preset="x") == {"FINISHED"}
    found = sliders_of(avatar)
    set_shape(clean_blender, "FEMALE")
    require_alike(found, {**sliders_of(avatar), HEIGHT: 100.0})


@pytest.mark.parametrize("step", ["slider", "preset", "random", "reset", "rest"])
def test_a_change_is_one_step_of_undo(clean_blender: Any, avatar: Any, step: str) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_shape_random(seed=1)
    bpy.ops.ed.undo_push(message="Start")
    before, bones = sliders_of(avatar), [tuple(bone.scale) for bone in avatar.pose.bones]
    operators = bpy.ops.object
    if step == "slider":
        setattr(avatar, name_of(HEIGHT), 100.0)
        bpy.ops.ed.undo_push(message="Height")
    elif step == "preset":
        operators.second_life_shape_set("EXEC_DEFAULT", True, shape="MALE")
    elif step == "random":
        operators.second_life_shape_random("EXEC_DEFAULT", True, seed=2)
    elif step == "reset":
        operators.second_life_shape_reset("EXEC_DEFAULT", True, tab="TORSO")
    else:
        operators.second_life_shape_standard("EXEC_DEFAULT", True)
    changed = bpy.context.object
    is_rest = changed.data.pose_position == "REST"
    assert is_rest if step == "rest" else sliders_of(changed) != before
    bpy.ops.ed.undo()
    undone = bpy.context.object
    assert (sliders_of(undone), undone.data.pose_position) == (before, "POSE")
    assert [tuple(bone.scale) for bone in undone.pose.bones] == bones


def lowest(bpy: Any, armature: Any) -> float:
    bpy.context.view_layer.update()
    return min(float(armature.pose.bones[name].head.z) for name in ("mFootLeft", "mToeLeft"))


def test_the_feet_stand_on_the_floor(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    floor, pelvis = lowest(bpy, avatar), avatar.pose.bones["mPelvis"]
    extremes: list[dict[int, float]] = [{HEIGHT: 100}, {HEIGHT: 0}, {692: 0}, {198: 100, 503: 100}, {MALE: 100}, {}]
    for percents in extremes:
        set_shape(bpy, "STANDARD")
        for number, percent in percents.items():
            setattr(avatar, name_of(number), percent)
        assert lowest(bpy, avatar) == pytest.approx(floor, abs=1e-6), percents
    by_hand = np.array((0.1, 0.2, 0.3))
    up = np.array(pelvis.bone.matrix_local)[:3, :3] @ by_hand
    pelvis.location += type(pelvis.location)(by_hand)
    for percents in extremes:
        for number, percent in percents.items():
            setattr(avatar, name_of(number), percent)
        assert lowest(bpy, avatar) == pytest.approx(floor + up[2], abs=1e-6), percents
    for bone in avatar.pose.bones:
        bone.scale, bone.location = (1, 1, 1), (0, 0, 0)
    assert bpy.ops.object.second_life_shape_apply() == {"FINISHED"}
    assert lowest(bpy, avatar) == pytest.approx(floor, abs=1e-6)
    other = add_avatar(bpy)
    for number, percent in sliders_of(avatar).items():
        setattr(other, name_of(number), percent)
    assert apart(avatar, other) < 1e-6


def test_the_standard_avatar_is_shown(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    head = avatar.pose.bones["mHead"]
    rest = np.array(head.bone.head_local)
    setattr(avatar, name_of(HEIGHT), 100.0)
    for is_standard in (True, False):
        assert bpy.ops.object.second_life_shape_standard() == {"FINISHED"}
        bpy.context.view_layer.update()
        assert np.allclose(head.head, rest, atol=1e-6) == is_standard


def test_bones_that_cannot_follow_are_named(clean_blender: Any) -> None:
    bpy = clean_blender
    add_avatar(bpy)
    text = "do not lie along the avatar's axes"
    assert text not in " ".join(map(str, drawn(bpy).lines))
    bpy.context.object.data.bones["mChest"].inherit_scale = "FULL"
    assert text in " ".join(map(str, drawn(bpy).lines))
    bpy.context.object.data.bones["mChest"].inherit_scale = "NONE"
    assert text not in " ".join(map(str, drawn(bpy).lines))
    pointing_bones.add()
    lines = drawn(bpy).lines
    assert text in " ".join(map(str, lines))
    assert "object.second_life_retarget" in lines


OPERATORS = {"set": {"shape": "MALE"}, "sex": {"sex": "MALE"}, "random": {}, "reset": {"tab": "BODY"}, "apply": {}}


def link(bpy: Any, folder: Path, kind: str) -> Any:
    """Save a tall avatar as a library; return the active object: linked, with linked data, or an override."""
    avatar = add_avatar(bpy)
    setattr(avatar, name_of(HEIGHT), 100.0)
    library = str(folder / "library.blend")
    bpy.data.libraries.write(library, {avatar})
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    part = "armatures" if kind == "data" else "objects"
    with bpy.data.libraries.load(library, link=True) as (_there, wanted):
        setattr(wanted, part, ["Avatar"])
    obj = bpy.data.objects.new("Local", bpy.data.armatures[0]) if kind == "data" else bpy.data.objects[0]
    bpy.context.scene.collection.objects.link(obj)  # Blender 5.3 makes overrides only of what the scene has
    if kind == "override":
        obj = obj.override_hierarchy_create(bpy.context.scene, bpy.context.view_layer)
        obj.override_library.is_system_override = False
    bpy.context.view_layer.objects.active = obj
    bpy.context.view_layer.update()
    return obj


def test_linked_avatars_are_read_only(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    avatar = link(bpy, tmp_path, "object")
    assert "library override" in " ".join(map(str, drawn(bpy).lines))
    before = sliders_of(avatar)
    for name, options in OPERATORS.items():
        operator = getattr(bpy.ops.object, f"second_life_shape_{name}")
        assert not operator.poll(), name
        with pytest.raises(RuntimeError, match="library override"):
            operator(**options)
    assert sliders_of(avatar) == before
    assert before[HEIGHT] == 100.0
    assert bpy.ops.object.second_life_shape_copy() == {"FINISHED"}


@pytest.mark.parametrize("kind", ["data", "override"])
def test_avatars_with_parts_in_other_files_are_shaped(
    clean_blender: Any, tmp_path: Path, monkeypatch: Any, kind: str
) -> None:
    """The shape is still there after saving and loading, also in bones, without any evaluation on loading."""
    from meshferry.blender_data.rigging import body_shapes

    bpy = clean_blender
    avatar = link(bpy, tmp_path, kind)
    assert "linked" not in " ".join(map(str, drawn(bpy).lines))
    for name, options in OPERATORS.items():
        assert getattr(bpy.ops.object, f"second_life_shape_{name}")(**options) == {"FINISHED"}
    setattr(avatar, name_of(TORSO), 100.0)
    setattr(avatar, name_of(HEIGHT), 10.0)
    wanted = sliders_of(avatar), {bone.name: [*bone.scale, *bone.location] for bone in avatar.pose.bones}
    floor = lowest(bpy, avatar)
    path = str(tmp_path / "shaped.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with monkeypatch.context() as patched:
        patched.setattr(body_shapes, "apply", lambda *_args, **_options: pytest.fail("evaluated on loading"))
        bpy.ops.wm.open_mainfile(filepath=path)
    loaded = bpy.context.view_layer.objects.active
    assert loaded.library is None and loaded.data.library is not None
    assert sliders_of(loaded) == wanted[0]
    for name, values in wanted[1].items():
        bone = loaded.pose.bones[name]
        assert [*bone.scale, *bone.location] == pytest.approx(values, abs=1e-6), name
    setattr(loaded, name_of(HEIGHT), 90.0)
    assert lowest(bpy, loaded) == pytest.approx(floor, abs=1e-6)


def test_linked_duplicates_have_shapes_of_their_own(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    other = avatar.copy()
    bpy.context.collection.objects.link(other)
    setattr(other, name_of(HEIGHT), 100.0)
    assert sliders_of(avatar)[HEIGHT] < 60
    assert avatar.pose.bones["mHipLeft"].scale.y == 1.0 < other.pose.bones["mHipLeft"].scale.y
    assert not other.bl_rna.properties[name_of(HEIGHT)].is_animatable


def test_many_sliders_are_evaluated_once(clean_blender: Any, avatar: Any, monkeypatch: Any) -> None:
    from meshferry.blender_data.rigging import body_shapes

    calls: list[Any] = []
    apply = body_shapes.apply
    monkeypatch.setattr(body_shapes, "apply", lambda *given, **how: (calls.append(given), apply(*given, **how)))
    set_shape(clean_blender, "MALE")
    assert len(calls) == 1
