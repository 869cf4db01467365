"""The bundled example: made by its script, right for the game, and with one of everything a Timbermesh can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_scripts import EXAMPLES, script
from meshferry.io_formats import api
from meshferry.io_formats.core.scene import Node, Scene
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

WINDMILL = EXAMPLES / "windmill.timbermesh"

STOCK_MATERIALS = {"BaseWood_Brown.Folktails", "BaseWood_White.Folktails"}


@pytest.fixture(scope="module")
def document() -> Any:
    return api.load(WINDMILL).document


@pytest.fixture(scope="module")
def scene() -> Scene:
    return api.read_scene(WINDMILL)


def named(scene: Scene, name: str) -> Node:
    return next(node for node in scene.nodes if node.name == name)


def world_points(scene: Scene, node: Node, points: Any) -> Any:
    """Return points in the scene's space: the tower stands at the origin, its children turn and move once."""
    w, *axis = node.rotation
    turned = points + 2 * np.cross(axis, np.cross(axis, points) + w * points)
    return turned * node.scale + node.translation


def test_the_file_is_what_the_script_makes(document: Any) -> None:
    made = TIMBERMESH.from_scene(script("make_windmill").windmill(), {"compression": "SMALL"})
    assert [node.name for node in made.nodes] == [node.name for node in document.nodes]
    for new, kept in zip(made.nodes, document.nodes, strict=True):
        assert (new.parent, new.vertex_count) == (kept.parent, kept.vertex_count)
        for what in ("position", "rotation", "scale"):
            np.testing.assert_allclose(getattr(new, what), getattr(kept, what), atol=1e-6)
        assert [mesh.material for mesh in new.meshes] == [mesh.material for mesh in kept.meshes]
        for new_mesh, kept_mesh in zip(new.meshes, kept.meshes, strict=True):
            np.testing.assert_array_equal(new_mesh.indices, kept_mesh.indices)
        assert_same_properties(new.properties, kept.properties)
        for new_moves, kept_moves in zip(new.node_animations, kept.node_animations, strict=True):
            assert new_moves.name == kept_moves.name
            assert new_moves.framerate == kept_moves.framerate
            np.testing.assert_allclose(new_moves.positions, kept_moves.positions, atol=1e-6)
            np.testing.assert_allclose(new_moves.rotations, kept_moves.rotations, atol=1e-6)
        for new_waves, kept_waves in zip(new.vertex_animations, kept.vertex_animations, strict=True):
            assert new_waves.name == kept_waves.name
            assert new_waves.animated_vertex_count == kept_waves.animated_vertex_count
            for new_frame, kept_frame in zip(new_waves.frames, kept_waves.frames, strict=True):
                assert_same_properties(new_frame.properties, kept_frame.properties)


def assert_same_properties(new: list[Any], kept: list[Any]) -> None:
    assert [found.name for found in new] == [found.name for found in kept]
    for one, other in zip(new, kept, strict=True):
        # Not to the bit: sums and square roots of other processors may differ in the last place.
        np.testing.assert_allclose(
            np.frombuffer(one.data, "<f4"), np.frombuffer(other.data, "<f4"), atol=1e-5, err_msg=one.name
        )


def test_the_game_has_nothing_against_it(document: Any, scene: Scene) -> None:
    assert TIMBERMESH.check(document) == []
    assert scene.warnings == []
    data = WINDMILL.read_bytes()
    assert data[:2] == b"\x78\x9c"
    assert TIMBERMESH.same_content(data, TIMBERMESH.write(document))


def test_it_is_small_and_pretty_enough(scene: Scene) -> None:
    assert WINDMILL.stat().st_size < 100_000
    assert 600 < scene.triangle_count < 2200


def test_it_holds_one_of_everything(scene: Scene) -> None:
    assert [(node.name, node.parent) for node in scene.nodes] == [
        ("Windmill.Folktails", -1),
        ("#Sails", 0),
        ("#Flag", 0),
        ("#Slot#Entrance", 0),
        ("#MiscStart", 0),
    ]
    tower, sails, flag = (named(scene, name).mesh for name in ("Windmill.Folktails", "#Sails", "#Flag"))
    assert tower is not None and sails is not None and flag is not None
    assert set(tower.materials) == STOCK_MATERIALS
    assert set(sails.materials) <= STOCK_MATERIALS
    assert len(flag.materials) == 1 and set(flag.materials) < STOCK_MATERIALS
    for mesh in (tower, sails, flag):
        assert mesh.normal is not None and mesh.tangent is not None
        assert len(mesh.uvs) == 1 and len(mesh.colors) == 1
    assert len(np.unique(tower.colors[0].values, axis=0)) > 100, "baked shading has many shades"
    assert named(scene, "#Slot#Entrance").mesh is None
    assert named(scene, "#MiscStart").mesh is None


def test_its_clip_loops(scene: Scene) -> None:
    (clip,) = scene.clips
    assert (clip.name, clip.fps, clip.frame_count) == ("Default", 24.0, 48)
    (spin,) = clip.transforms
    assert scene.nodes[spin.target].name == "#Sails"
    steps = np.abs(np.einsum("fi,fi->f", spin.rotation, np.roll(spin.rotation, -1, axis=0)))
    np.testing.assert_allclose(steps, np.cos(np.pi / 48), atol=1e-5, err_msg="equal turns, the last one to the first")
    (wave,) = clip.vertices
    assert scene.nodes[wave.target].name == "#Flag"
    strides = np.linalg.norm(np.roll(wave.points, -1, axis=0) - wave.points, axis=2).max(axis=1)
    assert strides.min() > 0.005, "every frame moves"
    assert strides[-1] < 1.5 * strides[:-1].max(), "from the last frame to the first it does not jump"


def test_it_stands_where_the_game_wants_a_building(scene: Scene) -> None:
    tower = named(scene, "Windmill.Folktails")
    assert tower.mesh is not None
    low, high = tower.mesh.points.min(axis=0), tower.mesh.points.max(axis=0)
    assert (low >= (-2, -2, 0)).all()
    assert (high[:2] <= 0).all()
    assert 3.5 < high[2] < 4.5
    x, y, z = named(scene, "#Slot#Entrance").translation
    assert -2 < x < 0
    assert abs(y) < 0.1
    assert z == 0


def test_the_sails_turn_clear_of_the_tower(scene: Scene) -> None:
    tower, sails = named(scene, "Windmill.Folktails"), named(scene, "#Sails")
    assert tower.mesh is not None and sails.mesh is not None
    (spin,) = scene.clips[0].transforms
    stage = 1.45  # the railing's top, a little more
    for rotation in spin.rotation[:12]:
        w, *axis = (float(v) for v in rotation)
        posed = Node("", rotation=(w, axis[0], axis[1], axis[2]), translation=sails.translation)
        points = world_points(scene, posed, sails.mesh.points)
        assert points[:, 2].min() > stage
        outer = points[np.linalg.norm(sails.mesh.points, axis=1) > 0.3]
        for at_height in np.arange(1.5, 3.5, 0.25):
            near = np.abs(tower.mesh.points[:, 2] - at_height) < 0.2
            front = tower.mesh.points[near & (np.abs(tower.mesh.points[:, 0] + 1) > 0.3), 1].max(initial=-1.0)
            swept = outer[np.abs(outer[:, 2] - at_height) < 0.1]
            assert swept[:, 1].min(initial=0.0) > front


@pytest.mark.parametrize("name", ["Windmill.Folktails", "#Sails", "#Flag"])
def test_winding_normals_and_tangents_agree(scene: Scene, name: str) -> None:
    mesh = named(scene, name).mesh
    assert mesh is not None and mesh.normal is not None and mesh.tangent is not None
    corners = mesh.points[mesh.corner_point].reshape(-1, 3, 3)
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.linalg.norm(faces, axis=1) > 1e-6).all(), "no triangle without area"
    normals = mesh.normal.at_corners(mesh.corner_point).reshape(-1, 3, 3)
    faces /= np.linalg.norm(faces, axis=1, keepdims=True)
    agree = np.einsum("ti,tki->tk", faces, normals)
    assert agree.min() > (0.8 if name == "#Flag" else 0.999), "the flag is smooth, all else has hard edges"
    tangents = mesh.tangent.at_corners(mesh.corner_point).reshape(-1, 3, 4)
    np.testing.assert_allclose(np.einsum("tki,tki->tk", tangents[..., :3], normals), 0, atol=1e-4)


@pytest.mark.needs_bpy
def test_blender_takes_it(tmp_path: Path) -> None:
    import bpy

    assert bpy.ops.import_scene.timbermesh(filepath=str(WINDMILL)) == {"FINISHED"}
    assert {obj.name for obj in bpy.data.objects} == {
        "Windmill.Folktails",
        "#Sails",
        "#Flag",
        "#Slot#Entrance",
        "#MiscStart",
    }
    assert {material.name for material in bpy.data.materials} == STOCK_MATERIALS
    assert len(bpy.data.objects["#Flag"].data.shape_keys.key_blocks) >= 48
