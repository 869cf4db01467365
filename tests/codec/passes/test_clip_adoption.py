"""Animations of one scene onto the skeleton of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.scene import Clip, Joint, Scene, Skeleton, TransformTrack
from meshferry.io_formats.passes.clips import adopt_clips


def rig(name: str, bones: Sequence[str], clips: Sequence[str] = (), height: float = 0.0) -> Scene:
    """Return a skeleton; a track of an animation holds the number of its joint."""
    skeleton = Skeleton(name, [Joint(bone, -1, translation=(height, 0.0, 0.0)) for bone in bones])
    unit = np.array([[1, 0, 0, 0]], np.float32)
    tracks = [
        TransformTrack(joint, np.full((1, 3), joint, np.float32), unit, np.ones((1, 3), np.float32), skeleton=0)
        for joint in range(len(bones))
    ]
    return Scene(name, skeletons=[skeleton], clips=[Clip(clip, 30.0, 1, transforms=list(tracks)) for clip in clips])


def test_bones_meet_by_name_whatever_their_order() -> None:
    scene = rig("robot", ["Root", "Arm", "Hand"])
    other = rig("walk", ["Hand", "Tail", "Root"], ["walk"])
    other.clips[0].root_motion = True
    assert adopt_clips(scene, other) == ["walk: 1 bone not in 'robot' left out: 'Tail'"]
    (clip,) = scene.clips
    assert [(track.target, track.translation[0, 0]) for track in clip.transforms] == [(2, 0), (0, 2)]
    assert (clip.fps, clip.frame_count, clip.root_motion) == (30, 1, True)
    assert [track.target for track in other.clips[0].transforms] == [0, 1, 2], "the other scene stays as it was"


def test_bones_of_one_name_meet_in_their_order() -> None:
    scene = rig("robot", ["Arm", "Root", "Arm"])
    adopt_clips(scene, rig("walk", ["Arm", "Arm", "Arm"], ["walk"]))
    assert [track.target for track in scene.clips[0].transforms] == [0, 2]


def test_the_skeleton_with_most_of_the_bones_is_taken() -> None:
    scene = rig("robot", ["Root"])
    scene.skeletons.append(rig("arm", ["Root", "Hand"]).skeletons[0])
    adopt_clips(scene, rig("wave", ["Hand", "Root"], ["wave"]))
    assert [(track.skeleton, track.target) for track in scene.clips[0].transforms] == [(1, 1), (1, 0)]


def test_another_rest_and_a_name_that_is_taken_are_said() -> None:
    scene = rig("robot", ["Root"], ["walk"])
    said = adopt_clips(scene, rig("walk", ["Root"], ["walk"], height=0.5))
    assert [text.split(":")[0] for text in said] == ["walk", "walk"]
    assert "rest pose differs" in said[0]
    assert "another animation of this name" in said[1]
    assert not adopt_clips(rig("robot", ["Root"]), rig("walk", ["Root"], ["walk"], height=5e-5))


def test_an_animation_without_frames_is_one() -> None:
    scene = rig("robot", ["Root"])
    empty = rig("walk", ["Root"])
    empty.clips = [Clip("walk", 0.0, 0)]
    adopt_clips(scene, empty)
    assert [(clip.name, clip.frame_count) for clip in scene.clips] == [("walk", 0)]


@pytest.mark.parametrize(
    ("scene", "other", "said"),
    [
        (rig("robot", ["Root"]), rig("walk", ["Root"]), "no animation of bones in 'walk'"),
        (Scene("box"), rig("walk", ["Root"], ["walk"]), "'box' has no bones"),
        (rig("robot", ["Root"]), rig("swim", ["Fin"], ["swim"]), "'robot' has no bone of 'swim'"),
    ],
)
def test_what_does_not_belong_together_is_refused(scene: Scene, other: Scene, said: str) -> None:
    with pytest.raises(ExportError, match=said):
        adopt_clips(scene, other)
    assert not scene.clips
