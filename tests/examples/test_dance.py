"""The bundled dance: made by its script, fit to upload, feet on the ground, without a jump where it repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_scripts import EXAMPLES, script
from meshferry.io_formats import api
from meshferry.io_formats.core.scene import KeyTrack, Scene
from meshferry.io_formats.passes.clips import values_at
from meshferry.io_formats.second_life.animation import keys
from meshferry.io_formats.second_life.animation.codec import SecondLifeAnimation
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.avatar import joints as avatar_joints

DANCE = EXAMPLES / "dance.anim"


@pytest.fixture(scope="module")
def document() -> SecondLifeAnimation:
    loaded = api.load(DANCE)
    assert loaded.format is SECOND_LIFE_ANIMATION
    return loaded.document


def tracks_of(scene: Scene) -> dict[str, KeyTrack]:
    joints = scene.skeletons[0].joints
    return {joints[track.target].name: track for track in scene.clips[0].keys}


def test_the_file_is_what_the_script_makes(tmp_path: Path) -> None:
    maker = script("make_dance")
    maker.main(tmp_path)
    made, bundled = (api.load(path).document for path in (tmp_path / DANCE.name, DANCE))
    header, known = (SECOND_LIFE_ANIMATION.write(replace(document, joints=[])) for document in (made, bundled))
    assert header == known
    assert [(joint.name, joint.priority) for joint in made.joints] == [
        (joint.name, joint.priority) for joint in bundled.joints
    ]
    # NumPy's sine differs in the last bit between processors, which may change the choice of keys. The motion is equal.
    found = tracks_of(SECOND_LIFE_ANIMATION.to_scene(bundled, "dance"))
    for name, track in tracks_of(maker.dance()).items():
        rotation = values_at(found[name].rotation, track.rotation.times)
        assert np.degrees(keys.distances(rotation, track.rotation.values)).max() < 0.15
        if track.translation is not None:
            moved = values_at(found[name].translation, track.translation.times)
            assert np.abs(moved - track.translation.values).max() < 0.0015


def test_the_uploader_has_nothing_against_it(document: SecondLifeAnimation) -> None:
    assert not SECOND_LIFE_ANIMATION.check(document)
    assert (document.loop, document.loop_in, document.loop_out, document.duration) == (1, 0.0, 4.0, 4.0)
    for joint in document.joints:
        assert (joint.rotation[0, 1:] == joint.rotation[-1, 1:]).all(), f"{joint.name!r} jumps where it repeats"


def turned(rotation: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate a vector by a unit quaternion (w, x, y, z)."""
    twice = 2 * np.cross(rotation[1:], vector)
    return np.asarray(vector + rotation[0] * twice + np.cross(rotation[1:], twice))


def ankle_at(document: SecondLifeAnimation, side: str, time: float) -> np.ndarray:
    """Return where an ankle is, in metres from the ground between the feet, from the ankle up to the pelvis."""
    joints = {joint.name.decode(): joint for joint in document.joints}
    place = np.zeros(3)
    for name in (f"mAnkle{side}", f"mKnee{side}", f"mHip{side}", "mPelvis"):
        rotation = values_at(keys.rotation_keys(document, joints[name]), np.array([time]))[0]
        place = turned(rotation, place) + avatar_joints.table()[name].position
    return np.asarray(place + values_at(keys.position_keys(document, joints["mPelvis"]), np.array([time]))[0])


def test_a_foot_that_carries_the_avatar_does_not_slide(document: SecondLifeAnimation) -> None:
    """Key times of the beats in which the other foot steps, and between keys."""
    for side, start in (("Left", 1.0), ("Right", 0.0), ("Left", 2.0), ("Right", 3.0)):
        times = (start + np.linspace(0, 1, 7)) / 2
        places = np.array([ankle_at(document, side, time) for time in times])
        assert np.abs(places - places[0]).max() < 0.003, (side, start)
    assert ankle_at(document, "Left", 0.25)[2] - ankle_at(document, "Right", 0.25)[2] > 0.05, "the foot is not lifted"
