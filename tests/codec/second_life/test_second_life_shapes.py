"""Body shapes: the viewer's numbers in the samples, and a slow evaluation written from the format page alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_shape
from meshferry.io_formats.second_life.avatar import joints, sliders

TOLERANCE = 2e-6
SLIDERS = [number for number in slow_shape.OWN if number != sliders.MALE]
SEXES = {"female": {}, "male": {sliders.MALE: 1.0}}


def six(joints: sliders.ShapedJoints) -> dict[str, np.ndarray[Any, Any]]:
    return dict(zip(sliders.joint_names(), np.hstack((joints.world, joints.scale)), strict=True))


def require_equal(found: sliders.ShapedJoints, wanted: Mapping[str, Any], about: object = "") -> None:
    there = six(found)
    apart = {name: float(np.abs(there[name] - values).max()) for name, values in wanted.items()}
    assert wanted
    assert max(apart.values()) <= TOLERANCE, (about, max(apart, key=lambda name: apart[name]), max(apart.values()))


@pytest.fixture(scope="module")
def expected(samples: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((samples / "secondlife_shape" / "expected.json").read_text("utf-8"))
    return found


def values_of(shape: Mapping[str, Any]) -> dict[int, float]:
    own = sliders.sliders()
    codes = {int(number): own[int(number)].decoded(code) for number, code in shape.get("u8", {}).items()}
    return codes | {int(number): value for number, value in shape.get("values", {}).items()}


def test_tables_are_complete():
    known = sliders.parameters()
    assert (len(known), len(slow_shape.EFFECTS)) == (283, 1043)
    assert (len(sliders.driven_ramps()), len(sliders.effects())) == (182, 728)
    assert {int(row["id"]) for row in slow_shape.EFFECTS} <= set(known)
    assert {effect.joint for effect in sliders.effects()} <= set(sliders.joint_names())
    assert len(sliders.sliders()) == 89


def test_bones_that_shapes_scale_unevenly_are_marked_in_the_table():
    can_act = {number for number, one in sliders.parameters().items() if one.is_slider or one.driver is not None}
    table = joints.table()
    uneven = {each.joint for each in sliders.effects() if each.parameter in can_act and len(set(each.scale)) > 1}
    assert {name for name in uneven if table[name].is_bone} == {name for name in table if table[name].is_uneven}
    assert len([name for name in table if table[name].is_uneven]) == 69


def test_stated_shapes(expected: dict[str, Any]):
    seen = 0
    for name, shape in expected["shapes"].items():
        if "values" not in shape and "u8" not in shape:
            continue  # the values are those of a file
        overrides = {joint: np.array(place) for joint, place in shape.get("overrides", {}).items()}
        found = sliders.evaluate_shape(values_of(shape), overrides, set(overrides) if shape.get("lock_scale") else ())
        # Joints that are not listed are as in the default of the same sex; the files made by hand list a few only.
        has_all = not name.startswith("synthetic/")
        default = expected["shapes"][f"default_{shape['sex']}"]["joints"] if has_all else {}
        if name != "standard_preset":
            require_equal(found, default | shape["joints"], name)
        assert sliders.is_male(values_of(shape)) == (shape["sex"] == "male"), name
        assert found.pelvis_to_foot == pytest.approx(shape["pelvis_to_foot"], abs=TOLERANCE), name
        assert found.height == pytest.approx(shape["height"], abs=TOLERANCE), name
        seen += 1
    assert seen == 48
    require_equal(sliders.standard_joints(), expected["shapes"]["standard_skeleton"]["joints"])


def test_stated_ramps(expected: dict[str, Any]):
    for row in expected["driven_weights"]:
        found = dict(zip(sliders.parameters(), sliders.effective_weights({row["driver"]: row["value"]}), strict=True))
        for driven, weight in row["driven"].items():
            known = sliders.parameters()[int(driven)]
            if known.sex != "male":
                assert found[int(driven)] == pytest.approx(known.clamped(weight), abs=1e-6), row


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sex", SEXES)
def test_sliders_at_both_ends(sex: str, step: int):
    for number in list(SLIDERS)[::step]:
        known = sliders.sliders()[number]
        for value in (known.minimum, known.maximum):
            values = {**SEXES[sex], number: value}
            require_equal(sliders.evaluate_shape(values), slow_shape.joints(values), (number, value))


def test_random_shapes_with_joint_positions():
    random = np.random.default_rng(26)
    table = joints.table()
    for _ in range(20):
        values = {
            number: float(random.uniform(known.minimum - 0.1, known.maximum + 0.1))
            for number, known in sliders.sliders().items()
            if random.random() < 0.7
        }
        chosen = random.choice([name for name in sliders.joint_names() if table[name].is_bone], 8).tolist()
        overrides = {
            name: np.array(table[name].position) + random.normal(scale=random.choice((3e-5, 0.01)), size=3)
            for name in chosen
        }
        for is_locked in (False, True):
            found = sliders.evaluate_shape(values, overrides, overrides if is_locked else ())
            wanted = slow_shape.joints(values, {k: tuple(v) for k, v in overrides.items()}, is_locked=is_locked)
            require_equal(found, wanted)


def test_volumes_add_the_scale_of_their_bone_to_their_own():
    """A product of both, as other programs compute it, is 0.007 off."""
    values = {38: 1.0, 157: 1.0}  # torso length scales mTorso, belly size the volume BELLY
    joints = sliders.evaluate_shape(values)
    index = sliders.joint_index()
    rest = sliders.standard_joints()
    bone = joints.scale[index["mTorso"]]
    own = sliders.evaluate_shape({157: 1.0}).scale[index["BELLY"]] - sliders.evaluate_shape({}).scale[index["BELLY"]]
    without = sliders.evaluate_shape({38: 1.0}).scale[index["BELLY"]]
    assert bone[2] != 1.0
    assert np.abs(own).max() > 0.01
    assert joints.scale[index["BELLY"]] == pytest.approx(without + own, abs=1e-12)
    assert np.abs(joints.scale[index["BELLY"]] - bone * (rest.scale[index["BELLY"]] + own)).max() > 1e-3


def test_spine_bones_of_2016_are_scaled():
    index = sliders.joint_index()
    numbers = [index[f"mSpine{number}"] for number in range(1, 5)]
    for value in (-0.7, 1.5):
        assert np.abs(sliders.evaluate_shape({34: value}).scale[numbers] - 1.0).max(axis=1).min() > 0.05


def test_standard_avatar_is_the_standard_skeleton():
    found, rest = sliders.evaluate_shape(sliders.STANDARD), sliders.standard_joints()
    for name in ("scale", "position", "world"):
        assert np.abs(getattr(found, name) - getattr(rest, name)).max() < 1e-15
    assert found.floor == pytest.approx(0.0, abs=1e-15)


def test_missing_values_are_the_default():
    """Evaluation keeps nothing of the shape before."""
    few = {33: 1.0}
    before = sliders.evaluate_shape(few)
    sliders.evaluate_shape({number: known.maximum for number, known in sliders.sliders().items()})
    assert np.array_equal(sliders.evaluate_shape(few).world, before.world)
    everything = sliders.complete_values(few)
    assert everything[33] == 1.0
    assert everything[693] == 0.6
    assert np.array_equal(sliders.evaluate_shape(everything).world, before.world)


def test_codes_are_rounded_down():
    ears = sliders.sliders()[796]
    assert ears.decoded(29) == 0.0  # only with 32 bits
    for number, known in sliders.sliders().items():
        for code in range(256):
            value = known.decoded(code)
            assert known.minimum - 1e-6 <= value <= known.maximum + 1e-6, number
            assert known.code_of(value + 0.02 * known.extent / 255) == code or value == 0.0, (number, code)
    tall = sliders.as_others_see({33: 0.32})
    assert tall[33] == pytest.approx(155 / 255 * 4.3 - 2.3, abs=1e-6)
