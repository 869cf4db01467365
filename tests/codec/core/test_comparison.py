"""What is said of the differences between two scenes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.scene import Clip, Keys, KeyTrack, Layer, Mesh, Node, Scene, TransformTrack, VertexTrack
from meshferry.io_formats.passes.compare_scenes import differences

SQUARE = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], np.float32)
CORNERS = np.array([0, 1, 2, 0, 2, 3], np.int32)


def square() -> Mesh:
    """Return two triangles with UVs and normals."""
    uvs = Layer("UV", np.ascontiguousarray(SQUARE[:, :2]))
    normals = Layer("normal", np.tile(np.float32((0, 0, 1)), (4, 1)))
    return Mesh(SQUARE.copy(), CORNERS.copy(), np.zeros(2, np.int32), ["Wood"], normal=normals, uvs=[uvs])


def scene(mesh: Mesh, *others: Node) -> Scene:
    """Return a scene with a node for the mesh."""
    made = Scene("lamp")
    made.nodes = [Node("lamp", mesh=mesh), *others]
    return made


def split_and_reordered(mesh: Mesh) -> Mesh:
    """Return the same triangles with a vertex for each corner, in another order."""
    order = np.array([5, 3, 4, 2, 0, 1])
    points = mesh.points[mesh.corner_point][order]
    place = np.empty(6, np.int32)
    place[order] = np.arange(6)
    return replace(mesh, points=points, corner_point=place, normal=None, uvs=[])


def test_vertices_split_in_another_way_are_the_same() -> None:
    bare = replace(square(), normal=None, uvs=[])
    assert differences(scene(bare), scene(split_and_reordered(square()))) == []


def test_triangles_in_another_order_are_the_same() -> None:
    bare = replace(square(), normal=None, uvs=[])
    turned = replace(bare, corner_point=np.array([2, 3, 0, 1, 2, 0], np.int32))
    assert differences(scene(bare), scene(turned)) == []


def moved(mesh: Mesh) -> None:
    mesh.points[2, 2] += 1e-3


def quantised(mesh: Mesh) -> None:
    mesh.points[2, 2] += 1 / 65535


def two_slots(mesh: Mesh) -> None:
    mesh.materials = ["Wood", "Glass"]
    mesh.material_index = np.array([0, 1], np.int32)


def one_less(mesh: Mesh) -> None:
    mesh.corner_point = mesh.corner_point[:3]
    mesh.material_index = mesh.material_index[:1]
    mesh.normal, mesh.uvs = None, []


def flipped(mesh: Mesh) -> None:
    mesh.corner_point = mesh.corner_point.reshape(-1, 3)[:, ::-1].reshape(-1)


def other_uvs(mesh: Mesh) -> None:
    mesh.uvs[0].values[0, 0] += 0.01


def rounded(mesh: Mesh) -> None:
    mesh.normal = Layer("normal", mesh.normal.values + np.float32(0.01)) if mesh.normal else None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda mesh: None, []),
        (rounded, []),
        (moved, ["1 vertex moved"]),
        (quantised, []),
        (two_slots, ["1 surface added ('Glass')"]),
        (one_less, ["1 triangle removed"]),
        (flipped, ["2 triangles added", "2 triangles removed"]),
        (other_uvs, ["UVs changed"]),
    ],
)
def test_changes_of_a_mesh(change: Callable[[Mesh], None], expected: list[str]) -> None:
    new = square()
    change(new)
    assert differences(scene(square()), scene(new)) == expected


@pytest.mark.parametrize("corners", [[0, 1, 1], [2, 4, 3]], ids=["same point", "same position"])
def test_triangles_that_an_import_leaves_out_are_ignored(corners: list[int]) -> None:
    bare = replace(square(), normal=None, uvs=[], points=np.concatenate([SQUARE, SQUARE[2:3]]))
    with_two = replace(
        bare,
        corner_point=np.concatenate([CORNERS[:3], np.array(corners * 2, np.int32), CORNERS[3:]]),
        material_index=np.zeros(4, np.int32),
    )
    assert differences(scene(with_two), scene(bare)) == []
    later = replace(bare, points=bare.points.copy())
    moved(later)
    assert differences(scene(with_two), scene(later)) == ["1 vertex moved"]


def test_objects_of_the_same_name_are_compared_in_their_order() -> None:
    """A real building has a root and a mesh of the same name."""
    old, new = (scene(square(), Node("lamp", translation=(1, 0, 0))) for _ in range(2))
    assert differences(old, new) == []
    new.nodes[1].translation = (2, 0, 0)
    assert differences(old, new) == ["'lamp': moved"]


def test_objects_and_animations_are_named() -> None:
    old, new = scene(square(), Node("shade")), scene(square(), Node("bulb"))
    old.clips, new.clips = [Clip("nod", 30, 10), Clip("idle", 30, 10)], [Clip("nod", 30, 12)]
    assert differences(old, new) == [
        "1 object added ('bulb')",
        "1 object removed ('shade')",
        "1 animation removed ('idle')",
        "1 animation changed ('nod')",
    ]


def test_changes_of_many_objects_are_counted() -> None:
    names = [f"part {number}" for number in range(6)]
    old, new = Scene("lamp"), Scene("lamp")
    old.nodes = [Node(name, mesh=square()) for name in names]
    new.nodes = [Node(name, mesh=square()) for name in names]
    for node in new.nodes:
        moved(node.mesh)
    assert differences(old, new) == [
        "'part 0': 1 vertex moved",
        "'part 1': 1 vertex moved",
        "'part 2': 1 vertex moved",
        "3 more objects changed",
    ]


def test_quaternions_of_opposite_signs_are_the_same_rotation() -> None:
    """Blender keeps the signs of an action continuous, a file may not."""
    turns = np.tile(np.array([[0.8, 0.6, 0, 0]], np.float32), (3, 1))
    zeros, ones = np.zeros((3, 3), np.float32), np.ones((3, 3), np.float32)
    flipped_once = turns * np.array([[1], [-1], [1]], np.float32)
    other = turns * np.array([[1, 1, -1, 1]], np.float32) + np.array([[0, 0, 0.1, 0]], np.float32)
    old, same, changed = (
        Scene("model", clips=[Clip("walk", 30.0, 3, transforms=[TransformTrack(0, zeros, rotation, ones)])])
        for rotation in (turns, flipped_once, other)
    )
    assert not differences(old, same)
    assert differences(old, changed) == ["1 animation changed ('walk')"]


@pytest.mark.parametrize(("difference", "expected"), [(5e-4, []), (5e-3, ["1 animation changed ('walk')"])])
def test_translations_are_compared_relative_to_their_size(difference: float, expected: list[str]) -> None:
    """Blender's bones have single precision."""
    rotation, ones = np.tile(np.float32([1, 0, 0, 0]), (3, 1)), np.ones((3, 3), np.float32)
    old, new = (
        Scene("model", clips=[Clip("walk", 30.0, 3, transforms=[TransformTrack(0, far, rotation, ones)])])
        for far in (np.full((3, 3), 20.0), np.full((3, 3), 20.0 + difference))
    )
    assert differences(old, new) == expected


@pytest.mark.parametrize("change", [{"time": 1.0}, {"value": 1.5}, {"duration": 3.0}, {"joint": 1}], ids=str)
def test_keys_at_times_of_their_own_are_compared(change: dict[str, Any]) -> None:
    def animated(time: float = 0.5, value: float = 1.0, duration: float = 2.0, joint: int = 0) -> Scene:
        keys = Keys(np.array([0.0, time]), np.array([[0.0, 0, 0], [value, 0, 0]]))
        return Scene("model", clips=[Clip("wave", 0, 0, keys=[KeyTrack(joint, 0, keys)], duration=duration)])

    assert differences(animated(), animated()) == []
    assert differences(animated(), animated(**change)) == ["1 animation changed ('wave')"]


def test_animated_vertices_are_compared_at_corners() -> None:
    """Blender may split and order vertices otherwise than the file; the first ones of a mesh may be animated alone."""
    bare = replace(square(), normal=None, uvs=[])
    split = split_and_reordered(square())
    order = bare.corner_point[np.argsort(split.corner_point)]
    frames = np.stack([bare.points, bare.points + np.float32([[0, 0, 1], [0, 0, 2], [0, 0, 0], [0, 0, 0]])])
    swayed = frames.copy()
    swayed[1, 0] += 0.1

    def animated(mesh: Mesh, points: np.ndarray) -> Scene:
        made = scene(mesh)
        made.clips = [Clip("sway", 30, 2, vertices=[VertexTrack(0, points)])]
        return made

    old = animated(bare, frames[:, :2])
    assert differences(old, animated(split, frames[:, order])) == []
    assert differences(old, animated(split, swayed[:, order])) == ["1 animation changed ('sway')"]
