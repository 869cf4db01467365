"""UNIGINE skeletons: bytes made by hand, since no file is known; their scenes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import unigine_bytes as made
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.core.messages import errors_of, warnings_of
from meshferry.io_formats.core.scene import Joint, Material, Scene, Skeleton
from meshferry.io_formats.registry import by_content
from meshferry.io_formats.unigine.skeleton.format import UNIGINE_SKELETON
from meshfuzz.tokens import floats, i32
from numpy.testing import assert_array_equal

BASE = np.array([1, 0, 0, 0, 0, 0.6, 0.8, 1, 2, 1], np.float32)


def test_read_as_documented_and_written_back() -> None:
    document = UNIGINE_SKELETON.read(made.SKELETON)
    assert [(bone.name, bone.parent) for bone in document.bones] == [("tip", 1), ("base", -1)]
    assert_array_equal(document.transforms, [[0, 0, 2, 0, 0, 0, 1, 1, 1, 1], BASE])
    masks = [[(one.name, one.values.tolist()) for one in profiles] for profiles in profiles_of(document)]
    assert masks == [[("upper", [1, 0.25])], [], [("hard", [1, 0]), ("", [])]]
    assert document.retargeting == [(0, -1), (2, 0.75)]
    assert UNIGINE_SKELETON.write(document) == made.SKELETON
    assert UNIGINE_SKELETON.same_content(made.SKELETON, bytes(made.SKELETON))
    assert not UNIGINE_SKELETON.same_content(made.SKELETON, made.SKELETON.replace(b"hard", b"soft"))
    assert by_content(made.SKELETON, len(made.SKELETON)) is UNIGINE_SKELETON
    assert document.warnings == []


def profiles_of(document: Any) -> tuple[Any, Any, Any]:
    return document.blend_masks, document.time_profiles, document.weight_profiles


@pytest.mark.parametrize("options", [{}, {"use_turn": True}])
def test_through_a_scene(options: dict[str, Any]) -> None:
    document = UNIGINE_SKELETON.read(made.SKELETON)
    scene = UNIGINE_SKELETON.to_scene(document, "rig", options)
    (skeleton,) = scene.skeletons
    assert (skeleton.name, skeleton.has_bind, scene.nodes, scene.clips) == ("rig", True, [], [])
    assert skeleton.joints[0] == Joint("tip", 1, (0, 0, 2))
    z, w = BASE[5:7].tolist()
    place, turn = ((1, 0, 0), (w, 0, 0, z)) if not options else ((-1, 0, 0), (-z, 0, 0, w))
    assert skeleton.joints[1] == Joint("base", -1, place, turn, (1, 2, 1))
    assert scene.warnings == []
    (part,) = UNIGINE_SKELETON.files_of(scene, options)
    assert part.name == "rig"
    written = UNIGINE_SKELETON.from_scene(part, options)
    assert [(bone.name, bone.parent) for bone in written.bones] == [("base", -1), ("tip", 0)]
    assert_array_equal(written.transforms, document.transforms[::-1])
    masks = [[(one.name, one.values.tolist()) for one in profiles] for profiles in profiles_of(written)]
    assert masks == [[("upper", [0.25, 1])], [], [("hard", [0, 1]), ("", [])]]
    assert written.retargeting == [(2, 0.75), (0, -1)]


def test_plain_skeletons() -> None:
    scene = Scene("x", [], [Skeleton("a", [Joint("root")]), Skeleton("b", [Joint("root")], has_bind=False)])
    scene.format, scene.materials = "mine", [Material("a")]
    parts = UNIGINE_SKELETON.files_of(scene)
    assert [part.name for part in parts] == ["a", "b"]
    assert [(part.format, part.materials) for part in parts] == [("mine", [])] * 2
    document = UNIGINE_SKELETON.from_scene(parts[0])
    again = UNIGINE_SKELETON.read(UNIGINE_SKELETON.write(document))
    assert again.bones == document.bones
    assert_array_equal(again.transforms, [[0, 0, 0, 0, 0, 0, 1, 1, 1, 1]])
    assert UNIGINE_SKELETON.facts(document)["bones"] == 1
    assert UNIGINE_SKELETON.facts(document)["warnings"] == []
    assert UNIGINE_SKELETON.check(document) == []
    assert parts[0].warnings == []
    UNIGINE_SKELETON.from_scene(parts[1])
    assert "without a bind pose" in parts[1].warnings[0]
    with pytest.raises(ExportError, match="2 armatures"):
        UNIGINE_SKELETON.from_scene(scene)


def test_checks() -> None:
    document = UNIGINE_SKELETON.read(made.SKELETON)
    assert UNIGINE_SKELETON.check(document) == []
    document.blend_masks[0].values = np.zeros(3, np.float32)
    document.retargeting.pop()
    document.bones[0].name = "base"
    assert len(warnings_of(UNIGINE_SKELETON.check(document))) == 3
    document.bones.clear()
    assert "no bones" in str(errors_of(UNIGINE_SKELETON.check(document))[0])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (i32(2).data + floats(0.75).data, i32(3).data + floats(0.75).data, "mode 3"),
        (floats(0.75).data, floats(float("nan")).data, "length nan"),
        (floats(1, 0.25).data, floats(1, float("inf")).data, "NaN or infinite"),
        (i32(2).data + floats(1, 0.25).data, i32(-1).data + floats(1, 0.25).data, "claims -1"),
        (i32(2).data + floats(1, 0.25).data, i32(2**31 - 1).data + floats(1, 0.25).data, "claims"),
        (b"base\0\xff\xff", b"base\0\x05\x00", "bone 5"),
    ],
)
def test_refused_with_the_reason(old: bytes, new: bytes, reason: str) -> None:
    assert made.SKELETON.count(old) == 1
    with pytest.raises(FormatError, match=reason):
        UNIGINE_SKELETON.read(made.SKELETON.replace(old, new))
