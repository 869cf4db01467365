"""Scenes as programs see them: shapes, units, changes, and that a change is what is written."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import meshferry
import numpy as np
import pytest
from load_package import ROOT
from meshferry.io_formats import api, registry
from meshferry.io_formats.core import scene as core
from meshferry.io_formats.core.placement import Placement, PlacementPart
from meshferry.io_formats.second_life.avatar import joints
from meshferry.io_formats.second_life.avatar.joint_positions import matrices_of

EXAMPLES = ROOT / "examples"
BOX = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
SIDES = np.array([(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6)], np.int32)


def example(name: str) -> meshferry.Scene:
    return meshferry.read(EXAMPLES / name)


def box(**more: Any) -> meshferry.Mesh:
    return meshferry.Mesh(BOX, SIDES, **more)


STRIP = ROOT / "tests" / "fixtures" / "second_life" / "many_materials" / "strip.dae"
PLACED = meshferry.Scene(_core=core.Scene("yard", placement=Placement([PlacementPart("", [])])))


def closed_file() -> Any:
    with open(EXAMPLES / "vase.data", "rb") as stream:
        return stream


def pose(name: str, time: Any) -> object:
    scene = example(name)
    return scene.posed(scene.clips[0], time)


def weighted(joint: int) -> meshferry.Scene:
    scene, weights = meshferry.Scene(), (np.full((8, 1), joint), np.ones((8, 1)))
    scene.add("a", box(weights=weights), skeleton=example("lamp.mesh").skeletons[0])
    return scene


def box_of(mesh: meshferry.Mesh, matrix: Any) -> Any:
    points = mesh.points @ matrix[:3, :3].T + matrix[:3, 3]
    return np.concatenate((points.min(axis=0), points.max(axis=0)))


def unit(points: Any) -> Any:
    return (points - points.min(axis=0)) / np.ptp(points, axis=0)


def test_the_bytes_of_a_file_are_freed_before_its_scene_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bytes] = []
    build = api.scene_of
    monkeypatch.setattr(api, "scene_of", lambda loaded, *a, **k: held.append(loaded.data) or build(loaded, *a, **k))
    example("vase.data")
    assert held == [b""]


def test_arrays_have_the_promised_shapes_and_are_views_of_the_codecs() -> None:
    scene = example("lamp.mesh")
    (node,) = scene.walk()
    mesh = node.mesh
    assert mesh is not None and node.mesh is mesh and scene.meshes == (mesh,)
    assert (mesh.points.shape, mesh.points.dtype) == ((1185, 3), np.float32)
    assert (mesh.triangles.shape, mesh.triangles.dtype) == ((2300, 3), np.int32)
    assert mesh.normals is not None and mesh.normals.shape == (2300, 3, 3)
    assert [layer.shape for layer in mesh.uvs] == [(2300, 3, 2)] * 2
    assert [(layer.shape, layer.dtype) for layer in mesh.colors] == [((2300, 3, 4), np.uint8)]
    assert mesh.weights is not None and mesh.weights.joints.shape == mesh.weights.weights.shape == (1185, 4)
    assert mesh.materials == ("base", "neck", "shade", "bulb") and mesh.material_index.max() == 3
    assert list(mesh.shape_keys) == ["wide"]
    assert (node.world_matrix.shape, node.world_matrix.dtype) == ((4, 4), np.float64)
    assert (node.level, node.role, node.parent, scene.format) == (0, "render", None, "unigine_mesh")
    skeleton = node.skeleton
    assert skeleton is scene.skeletons[0] and len(skeleton.names) == len(skeleton.parents) == len(skeleton.rest) == 7
    own = mesh._core
    for view, array in ((mesh.points, own.points), (mesh.triangles, own.corner_point)):
        assert np.shares_memory(view, array)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0


@pytest.mark.parametrize("name", ["box.timbermesh", "box.mesh", "box.llmesh", "box.data"])
def test_a_scene_of_arrays_becomes_a_file_and_comes_back(name: str, tmp_path: Path) -> None:
    scene = meshferry.Scene("box")
    uv = np.linspace(0, 1, 48, dtype=np.float32).reshape(8, 3, 2)
    scene.add("lid", box(uvs=[uv], materials="wood"))
    written = meshferry.write(scene, tmp_path / name)
    assert written.files == (tmp_path / name,)
    mesh, *levels = meshferry.read(tmp_path / name).meshes
    assert bool(levels) == (name == "box.llmesh")
    points = mesh.points - mesh.points.min(axis=0)  # assets of Second Life have no place
    corners = sorted(map(tuple, np.round(points[mesh.triangles].reshape(-1, 9), 3).tolist()))
    assert corners == sorted(map(tuple, BOX[SIDES].reshape(-1, 9).tolist()))
    assert np.allclose(np.sort(mesh.uvs[0].ravel()), np.sort(uv.ravel()), atol=1e-3)
    assert mesh.materials == ("wood",) or name in ("box.data", "box.llmesh")


def test_changes_are_written_and_hints_of_the_file_do_not_undo_them(tmp_path: Path) -> None:
    """Ranges for quantisation, quantised normals and stored matrices would bring the old values back."""
    for name in ("windmill.timbermesh", "lamp.mesh", "tunic.llmesh", "vase.data"):
        scene, path = example(name), tmp_path / name
        for mesh in scene.meshes:
            mesh.points = mesh.points * (1, 2, 3) + 1
            mesh.normals = None if mesh.normals is None else -mesh.normals
            mesh.materials = [f"new {material}" for material in mesh.materials]
        scene.nodes[0].name = "other"
        meshferry.write(scene, path)
        found, before = meshferry.read(path), scene.nodes[0].mesh
        mesh = next(node.mesh for node in found.walk() if node.mesh is not None)
        assert before is not None and mesh is not None
        is_placed = name != "tunic.llmesh"  # such an asset has neither place nor size
        one, other = ((points if is_placed else unit(points)).mean(axis=0) for points in (mesh.points, before.points))
        assert np.allclose(one, other, atol=0.02), name
        assert not is_placed or np.abs(mesh.normals[0] - before.normals[0]).max() < 0.02, name
        assert all(material.startswith("new ") for material in mesh.materials) or name in ("vase.data", "tunic.llmesh")


def test_shape_keys_follow_points() -> None:
    (mesh,) = example("lamp.mesh").meshes
    offset = mesh.shape_keys["wide"] - mesh.points
    mesh.points = mesh.points + np.float32((0, 0, 1))
    assert offset.any() and np.abs(mesh.shape_keys["wide"] - mesh.points - offset).max() < 1e-6


def test_smaller_points_have_their_own_precision(tmp_path: Path) -> None:
    """The file states a range that is divided into steps; that of the old points would be too coarse."""
    scene = example("vase.data")
    scene.meshes[0].points = scene.meshes[0].points * 0.001
    found = meshferry.read(meshferry.write(scene, tmp_path / "vase.data").files[0]).meshes[0]
    ours, theirs = (np.unique(mesh.points.round(9), axis=0) for mesh in (scene.meshes[0], found))
    assert len(ours) == len(theirs) and np.abs(np.sort(ours, axis=0) - np.sort(theirs, axis=0)).max() < 1e-8


def test_nodes_have_parents_and_matrices() -> None:
    scene = meshferry.Scene()
    turned = np.array(((0, -2, 0, 1), (2, 0, 0, 2), (0, 0, -2, 3), (0, 0, 0, 1.0)))
    above = scene.add("above", matrix=turned)
    shared = box()
    below = [scene.add(name, shared, parent=above, matrix=np.diag((1, 1, 0.5, 1))) for name in "ab"]
    assert np.allclose(above.matrix, turned) and [node.parent for node in below] == [above] * 2
    assert np.allclose(below[0].world_matrix, turned @ np.diag((1, 1, 0.5, 1)))
    assert below[0].mesh is below[1].mesh is shared and scene.meshes == (shared,)
    scene.scale(2.0)
    assert below[0].world_matrix[:3, 3].tolist() == [2, 4, 6] and shared.points.max() == 2
    with pytest.raises(meshferry.MeshferryError, match="shear"):
        above.matrix = np.identity(4) + np.eye(4, k=1)


def test_a_scaled_rig_moves_as_before(tmp_path: Path) -> None:
    scene = example("lamp.mesh")
    assert scene.add_clips(example("lamp_nod.anim")) == []
    (clip,) = scene.clips
    (before,) = scene.posed(clip, 0.7).values()
    joints = scene.joint_matrices(scene.skeletons[0], clip, 0.7)
    scene.scale(2.5)
    again = meshferry.read(meshferry.write(scene, tmp_path / "lamp.mesh").files[0])
    again.add_clips(scene)
    for found in (scene, again):
        (after,) = found.posed(found.clips[0], 0.7).values()
        assert np.abs(after - before * 2.5).max() < 2e-3
    moved = scene.joint_matrices(scene.skeletons[0], scene.clips[0], 0.7)
    assert np.allclose(moved[:, :3, 3], joints[:, :3, 3] * 2.5) and np.allclose(moved[:, :3, :3], joints[:, :3, :3])
    assert 1.9 < clip.duration < 2 and clip.fps == 0 and clip.frame_count == 60


def test_scaled_bindings_give_the_scaled_mesh() -> None:
    scene = example("tunic.llmesh")
    scene._core.clips = [core.Clip("still", 30, 1)]
    (still,) = scene.clips
    before = {node.name: points for node, points in scene.posed(still, 0).items()}
    scene.scale(2.0)
    for node, points in scene.posed(still, 0).items():
        assert np.allclose(points, before[node.name] * 2, atol=1e-5), node


def test_scenes_that_share_a_rig_are_scaled_apart(tmp_path: Path) -> None:
    one, other = example("lamp.mesh"), meshferry.Scene("other")
    (mesh,), (skeleton,) = one.meshes, one.skeletons
    added = other.add("lamp", mesh, skeleton=skeleton)
    points, rest = mesh.points, skeleton.rest
    assert added.mesh is mesh and other.skeletons == (skeleton,)
    other.scale(2)
    assert added.mesh is mesh and other.skeletons == (skeleton,)
    assert np.array_equal(one.meshes[0].points, points) and np.array_equal(one.skeletons[0].rest, rest)
    one.scale(3)
    for scene, factor in ((one, 3), (other, 2)):
        assert np.array_equal(scene.meshes[0].points, points * np.float32(factor))
        assert np.allclose(scene.skeletons[0].rest[:, :3, 3], rest[:, :3, 3] * factor)
        written = meshferry.read(meshferry.write(scene, tmp_path / "a.mesh").files[0])
        assert np.allclose(np.ptp(written.meshes[0].points, axis=0), np.ptp(points, axis=0) * factor)


def test_materials_of_the_same_name_lose_their_colours_in_a_merged_scene() -> None:
    red, green, blue = (
        core.Material(name, color) for name, color in (("a", (1, 0, 0, 1)), ("a", (0, 1, 0, 1)), ("b", (0, 0, 1, 1)))
    )
    scene, other = meshferry.Scene(_core=core.Scene("one", materials=[red])), meshferry.Scene()
    other._core.materials = [green, blue]
    scene.merge(other)
    assert scene.messages == ["1 material takes the colour of those with the same name: 'a'"] and not other.messages
    assert [material.color for material in scene.materials] == [red.color, blue.color]
    scene.merge(scene)
    assert len(scene.messages) == 2  # that of the copy


def test_a_scene_can_be_merged_with_itself_and_with_one_that_shares_its_rig() -> None:
    scene, other = example("lamp.mesh"), meshferry.Scene()
    other.add("other", scene.meshes[0], skeleton=scene.skeletons[0])
    other.add_clips(example("lamp_nod.anim"))
    alone = other.joint_matrices(other.skeletons[0], other.clips[0], 0.7)
    scene.merge(other)
    scene.merge(scene)
    assert len(set(scene.skeletons)) == 4 and len(set(scene.meshes)) == len(scene.nodes) == 4
    for number, clip in ((1, 0), (3, 1)):
        assert scene.nodes[number].skeleton is scene.skeletons[number]
        for skeleton in scene.skeletons:
            moved = np.allclose(scene.joint_matrices(skeleton, scene.clips[clip], 0.7), alone)
            assert moved == (skeleton is scene.skeletons[number])


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("change", "height"),
    [
        (lambda mesh: setattr(mesh, "points", mesh.points + np.float32((0, 0, 5))) or mesh, 5),
        (lambda mesh: meshferry.Mesh(mesh.points, mesh.triangles), 0),
        (lambda _: box(), None),
        (lambda _: None, None),
    ],
)
def test_vertex_animations_follow_the_points_of_their_mesh(
    change: Callable[[Any], Any], height: float | None, scaled: bool, tmp_path: Path
) -> None:
    scene = example("windmill.timbermesh")
    if scaled:
        scene.scale(2)
        scene.merge(meshferry.Scene())
    flag = next(node for node in scene.nodes if node.name == "#Flag")
    before, still = (scene.posed(scene.clips[0], time)[flag] for time in (0.9, 0))
    assert np.abs(before - still).max() > 0.05
    flag.mesh = change(flag.mesh)
    posed = scene.posed(scene.clips[0], 0.9)[flag]
    again = meshferry.read(meshferry.write(scene, tmp_path / "a.timbermesh").files[0])
    found = again.posed(again.clips[0], 0.9)[again.nodes[scene.nodes.index(flag)]]
    if height is None:
        rests = scene.posed(scene.clips[0], 0)[flag]
        assert posed.shape == (0 if flag.mesh is None else 8, 3) and np.allclose(posed, rests)
    else:
        assert np.allclose(posed, before + np.float32((0, 0, height)), atol=1e-5)
    assert np.allclose(np.unique(found.round(3), axis=0), np.unique(posed.round(3), axis=0), atol=2e-3)


def test_merged_scenes_keep_their_rigs_and_movement() -> None:
    scene, other = example("lamp.mesh"), example("lamp.mesh")
    other.add_clips(example("lamp_nod.anim"))
    (alone,) = other.posed(other.clips[0], 0.5).values()
    scene.merge(other)
    scene.merge(example("windmill.timbermesh"))
    assert [node.name for node in scene.nodes[:2]] == ["lamp"] * 2 and len(scene.skeletons) == 2
    assert scene.nodes[1].skeleton is scene.skeletons[1] and scene.nodes[3].parent in scene.nodes[2:]
    rest, posed = list(scene.posed(scene.clips[0], 0.5).values())[:2]
    assert np.allclose(posed, alone) and np.allclose(rest, scene.nodes[0].mesh.points)
    assert [clip.name for clip in scene.clips] == ["lamp_nod", "Default"]
    turned = scene.posed(scene.clips[1], 0.5)[scene.nodes[3]]
    windmill = example("windmill.timbermesh")
    assert np.allclose(turned, windmill.posed(windmill.clips[0], 0.5)[windmill.nodes[1]])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda: box(normals=BOX[:4]),
            r"normals has the shape \(4, 3\) and the type float32, not \(8, 3\) and float32",
        ),
        (lambda: meshferry.Mesh(BOX, SIDES + 1), "triangles has values that are not from 0 to 7"),
        (
            lambda: meshferry.Mesh(BOX, SIDES.astype(float)),
            r"triangles has .* the type float64, not \(n, 3\) and int32",
        ),
        (lambda: meshferry.Mesh("no", SIDES), r"points has the shape \(\) .*, not \(n, 3\) and float32"),
        (lambda: meshferry.Mesh([[1, 2], [3]], SIDES), r"points has the shape \(0,\) and the type object"),
        (lambda: box(materials=["a"], material_index=np.full(8, 1)), "material_index has values that are not from 0"),
        (lambda: box(colors=[np.full((8, 4), 128, np.int32)]), "Color has integers of the type int32, not uint8 or fl"),
        (lambda: setattr(example("lamp.mesh").nodes[0], "matrix", np.diag((2, 2, 2, 1))), "on 'lamp', which its skel"),
        (lambda: example("lamp.mesh").posed("lamp_nod", 0), "'lamp_nod' is not in this scene"),
        (lambda: setattr(box(), "points", BOX[:3]), r"points has the shape \(3, 3\) .*, not \(8, 3\)"),
        (lambda: meshferry.Scene().scale(0), "cannot be scaled by 0"),
        (
            lambda: setattr(example("tunic.llmesh").nodes[0], "mesh", None),
            "'tunic' has levels of detail or physics; set",
        ),
        (lambda: meshferry.Scene().add("a", matrix=np.diag((1, 1, 1, 2))), "has shear, perspective or a zero scale"),
        (lambda: meshferry.Scene().add("a", parent=example("lamp.mesh").nodes[0]), "'lamp' is not in this scene"),
        (lambda: example("lamp.mesh").posed(example("windmill.timbermesh").clips[0], 0), "'Default' is not in this sc"),
        (lambda: pose("windmill.timbermesh", "soon"), r"time has the shape \(1,\) and the type <U4, not"),
        (lambda: example("vase.data").merge(PLACED), "'yard' places models of other files: it cannot be changed"),
        (lambda: weighted(7).to_gltf(), "'a' has weights of joints that 'lamp' does not have"),
        (lambda: meshferry.write(weighted(7), "a.llmesh"), "a.llmesh: 'a' has weights of joints that 'lamp' does not"),
    ],
)
def test_arrays_that_cannot_be_are_refused(change: Callable[[], object], text: str) -> None:
    with pytest.raises(meshferry.MeshferryError, match=text):
        change()


@pytest.mark.parametrize(
    "change",
    [
        lambda scene: scene.nodes.append(scene.nodes[0]),
        lambda scene: scene.clips.clear(),
        lambda scene: scene.meshes.pop(),
        lambda scene: scene.meshes[0].uvs.clear(),
        lambda scene: scene.meshes[0].colors.__setitem__(0, 0),
        lambda scene: scene.meshes[0].shape_keys.update(wide=0),
        lambda scene: scene.skeletons[0].names.__setitem__(0, "a"),
        lambda scene: scene.skeletons[0].rest.fill(0),
        lambda scene: scene.nodes[0].matrix.fill(0),
        lambda scene: scene.add("b", parent=scene.nodes[0]).world_matrix.fill(0),
    ],
)
def test_changes_that_would_have_no_effect_fail(change: Callable[[Any], object]) -> None:
    with pytest.raises((AttributeError, ValueError), match=r"has no attribute|read-only"):
        change(example("lamp.mesh"))


def test_copies_and_pickles_are_scenes_of_their_own() -> None:
    scene = example("lamp.mesh")
    scene.add_clips(example("lamp_nod.anim"))
    scene.add("second", scene.meshes[0])
    (before, _) = scene.posed(scene.clips[0], 0.7).values()
    for other in (copy.deepcopy(scene), pickle.loads(pickle.dumps(scene))):
        assert other.nodes[0].mesh is other.nodes[1].mesh is other.meshes[0] is not scene.meshes[0]
        assert np.array_equal(next(iter(other.posed(other.clips[0], 0.7).values())), before)
        other.meshes[0].points = other.meshes[0].points * 2
        assert np.array_equal(next(iter(scene.posed(scene.clips[0], 0.7).values())), before)


def test_keys_of_another_file_move_the_joints_of_their_names() -> None:
    scene, dance = meshferry.read(EXAMPLES / "tunic.llmesh", skeleton_joints="used"), example("dance.anim")
    assert [message.code for message in scene.add_clips(dance)] == ["unknown-bones"]
    names, others = scene.skeletons[0].names, dance.skeletons[0].names
    moved = scene.joint_matrices(scene.skeletons[0], scene.clips[0], 1.0)
    theirs = dance.joint_matrices(dance.skeletons[0], dance.clips[0], 1.0)
    assert np.abs(moved[names.index("mChest")] - theirs[others.index("mChest")]).max() < 1e-4


NEITHER = {"second_life_request", "second_life_shape"}
"""Formats of which nothing is read again, or that hold neither meshes nor animations."""
WRITTEN = [name for name, known in meshferry.formats().items() if known.is_written and name not in NEITHER]


@pytest.mark.parametrize("name", WRITTEN)
def test_an_animation_with_keys_is_written_or_told(name: str, tmp_path: Path) -> None:
    scene, known = example("tunic.llmesh"), meshferry.formats()[name]
    scene.add_clips(example("dance.anim"))
    options = {"embedded_animation": True, "version": "ms12", "mesh_files": "joined"} if name == "unigine_mesh" else {}
    written = meshferry.write(scene, tmp_path / f"a{known.extensions[0]}", format=name, **options)
    told = {"animated-bone-not-carried-over", "animation-not-named"} & {message.code for message in written.messages}
    assert told or meshferry.read(written.files[-1]).clips


def test_an_embedded_animation_tells_that_its_rate_is_lost(tmp_path: Path) -> None:
    scene = meshferry.read(
        meshferry.write(example("tunic.llmesh"), tmp_path / "a.mesh", format="unigine_mesh").files[0]
    )
    scene.add_clips(example("dance.anim"))
    scene._core.clips[0].root_motion = True
    embedded = {"version": "ms12", "embedded_animation": True}
    for name, path, options in (("mesh", "b.mesh", embedded), ("animation", "b.anim", {"version": "an11"})):
        written = meshferry.write(scene, tmp_path / path, format=f"unigine_{name}", **options)
        codes = {message.code for message in written.messages}
        assert {"frame-rate-left-out", "root-motion-left-out"} <= codes, path


def test_layers_that_are_assigned_are_written_for_all_surfaces(tmp_path: Path) -> None:
    scene = example("lamp.mesh")
    (mesh,) = scene.meshes
    mesh.colors, mesh.uvs = [np.full((len(mesh.points), 4), 128, np.uint8)], [mesh.uvs[0]] * 2
    written = meshferry.write(scene, tmp_path / "a.mesh")
    (again,) = meshferry.read(written.files[0]).meshes
    assert set(again.colors[0].flat) == {128} and np.array_equal(*again.uvs) and not written.messages


def test_normals_and_uvs_that_are_assigned_decide_tangents_and_shape_keys(tmp_path: Path) -> None:
    """A file stores normals of shape keys, and tangents, which follow the UVs."""
    scene = example("lamp.mesh")
    (mesh,) = scene.meshes
    mesh.normals = -mesh.normals
    (found,) = meshferry.read(meshferry.write(scene, tmp_path / "a.mesh").files[0]).meshes
    key = found._core.shape_keys[0].normal.at_corners(found._core.corner_point).reshape(-1, 3, 3)
    assert np.einsum("nij,nij->ni", key, found.normals).min() > 0.5
    (mirrored,) = (scene := example("lamp.mesh")).meshes
    mirrored.uvs = [layer[:, :, ::-1] for layer in mirrored.uvs]
    (found,) = meshferry.read(meshferry.write(scene, tmp_path / "a.mesh").files[0]).meshes
    before, after = (each.tangent.values[:, 3].mean() for each in (example("lamp.mesh").meshes[0]._core, found._core))
    assert before * after < -0.5


def test_trimesh_has_the_geometry_and_losses_are_returned() -> None:
    pytest.importorskip("trimesh")
    mesh = example("lamp.mesh").meshes[0]
    found, lost = mesh.to_trimesh()
    assert np.array_equal(found.vertices[found.faces], mesh.points[mesh.triangles])
    assert found.visual.uv[found.faces].tolist() == mesh.uvs[0].tolist()
    assert len(lost) == 6 and all(message.is_loss for message in lost)
    back = meshferry.from_trimesh(found, materials="paper")
    assert np.array_equal(back.uvs[0], mesh.uvs[0]) and back.materials == ("paper",)
    assert np.abs(back.normals - mesh.normals).max() < 1e-3
    made = sys.modules["trimesh"].creation.box()
    assert meshferry.from_trimesh(made).normals is None  # trimesh would make smooth ones
    made.visual.face_colors = np.arange(48, dtype=np.uint8).reshape(12, 4)
    assert np.array_equal(meshferry.from_trimesh(made).colors[0][:, 2], made.visual.face_colors)
    with pytest.raises(meshferry.MeshferryError, match="type 'Scene' is not a"):
        meshferry.from_trimesh(made.scene())
    assert meshferry.Mesh(BOX[:0], SIDES[:0], normals=BOX[:0]).to_trimesh()[0].is_empty
    _, lost = meshferry.Mesh(BOX, SIDES[:2]).to_trimesh()
    assert lost == ["4 vertices belong to no triangle; left out"]
    plain, lost = box(colors=[np.full((8, 4), 200, np.uint8)]).to_trimesh()
    assert lost == [] and meshferry.from_trimesh(plain).colors[0].tolist() == np.full((8, 3, 4), 200).tolist()


def test_gltf_has_what_it_can_hold() -> None:
    from glb_oracle import read_glb

    scene = example("lamp.mesh")
    scene.add_clips(example("lamp_nod.anim"))
    data, lost = scene.to_gltf()
    content, buffer = read_glb(data)
    assert [str(message) for message in lost] == ["4 lightmap settings not carried over: 'lamp'"]
    (mesh,), (skin,), (clip,) = content["meshes"], content["skins"], content["animations"]
    assert len(mesh["primitives"]) == 4 and mesh["extras"]["targetNames"] == ["wide"]
    assert len(skin["joints"]) == 7 and clip["name"] == "lamp_nod" and len(clip["channels"]) == 3 * 7
    assert [material["name"] for material in content["materials"]] == ["base", "neck", "shade", "bulb"]
    for accessor in content["accessors"]:
        view = content["bufferViews"][accessor["bufferView"]]
        width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}[accessor["type"]]
        size = {5123: 2, 5125: 4, 5126: 4}[accessor["componentType"]]
        assert view["byteLength"] == accessor["count"] * width * size and view["byteOffset"] % 4 == 0
    assert content["buffers"] == [{"byteLength": len(buffer)}]


NAN = np.full(BOX.shape, np.nan, np.float32)


@pytest.mark.parametrize(
    ("mesh", "text"),
    [
        (lambda: meshferry.Mesh(NAN, SIDES), ""),
        (lambda: meshferry.Mesh(np.where(BOX, np.inf, 0), SIDES), ""),
        (lambda: box(uvs=[NAN[:, :2]]), ""),
        (lambda: meshferry.Mesh(BOX, SIDES[:2]), "a: 4 vertices belong to no triangle; left out"),
        (lambda: meshferry.Mesh(BOX, SIDES[:0]), "a: 8 vertices belong to no triangle; left out"),
        (lambda: box(normals=NAN), "a: 8 normals have no direction; computed from the triangles"),
        (lambda: box(colors=[np.full((8, 4), 3.0)]), "a: colours of 'Color' are below 0 or above 1; clamped"),
        (lambda: box(weights=(SIDES[:, :1] * 0, NAN[:, :1])), "a: 8 vertices had weights that are negative, NaN or"),
        (lambda: box(weights=(SIDES[:, :2] * 0, -BOX[:, :2])), "a: 6 vertices had weights that are negative, NaN or"),
        (lambda: box(weights=(SIDES[:, :0], BOX[:, :0])), None),
        (lambda: box(normals=BOX * 5 + 1), None),
    ],
)
def test_gltf_is_valid_or_refused_and_changes_are_told(mesh: Callable[[], meshferry.Mesh], text: str | None) -> None:
    from glb_oracle import read_glb

    scene = meshferry.Scene()
    scene.add("a", mesh(), skeleton=example("lamp.mesh").skeletons[0])
    if text == "":
        with pytest.raises(meshferry.MeshferryError, match=r"^'a' has values that are NaN or infinite$"):
            scene.to_gltf()
        return
    data, told = scene.to_gltf()
    assert [str(message)[: len(text or "")] for message in told] == ([text] if text else [])
    content, buffer = read_glb(data)
    for mesh_ in content.get("meshes", ()):
        values = content["accessors"][mesh_["primitives"][0]["attributes"].get("NORMAL", 0)]
        start, count = content["bufferViews"][values["bufferView"]]["byteOffset"], values["count"]
        normals = np.frombuffer(buffer, "<f4", 3 * count, start).reshape(-1, 3)
        assert "NORMAL" not in str(mesh_) or np.allclose(np.linalg.norm(normals, axis=1), 1)


def test_gltf_has_exact_bindings_and_finite_places() -> None:
    """The last row of their matrices must be (0, 0, 0, 1)."""
    from glb_oracle import read_glb

    content, buffer = read_glb(example("lamp.mesh").to_gltf()[0])
    view = content["bufferViews"][content["accessors"][content["skins"][0]["inverseBindMatrices"]]["bufferView"]]
    matrices = np.frombuffer(buffer, "<f4", view["byteLength"] // 4, view["byteOffset"]).reshape(-1, 4, 4)
    assert np.array_equal(matrices[:, :, 3], np.tile((0, 0, 0, 1), (7, 1)))
    scene = meshferry.Scene()
    scene.add("a")._core.translation = (np.nan, 0, 0)
    with pytest.raises(meshferry.MeshferryError, match=r"^'a' has values that are NaN or infinite$"):
        scene.to_gltf()


def test_weights_without_a_skeleton_are_told(tmp_path: Path) -> None:
    for name in ("a.llmesh", "a.mesh", "a.data"):
        scene = meshferry.Scene()
        scene.add("a", box(weights=(SIDES[:, :1] * 0, np.ones((8, 1))), uvs=[BOX[:, :2]]))
        told = meshferry.write(scene, tmp_path / name).messages
        assert [message.code for message in told].count("weighted-mesh-not-carried-over") == 1
    assert [message.code for message in scene.to_gltf()[1]] == ["weighted-mesh-not-carried-over"]


def test_a_mesh_whose_weights_were_removed_is_written_without_its_rig(tmp_path: Path) -> None:
    scene = example("tunic.llmesh")
    for mesh in scene.meshes:
        mesh.weights = None
    for name in ("a.llmesh", "a.dae"):
        written = meshferry.write(scene, tmp_path / name)
        assert "Object 'tunic': no vertex has weights; it is written without its rig" in map(str, written.messages)
        assert not meshferry.read(written.files[-1]).skeletons


@pytest.mark.parametrize("name", [*WRITTEN, "second_life_request"])
def test_names_that_are_not_unicode_are_written_or_refused(name: str, tmp_path: Path) -> None:
    scene = meshferry.Scene("\ud800")
    scene.add("\ud800", box(materials="\ud800", uvs=[BOX[:, :2]]))
    with contextlib.suppress(meshferry.MeshferryError):
        meshferry.write(scene, tmp_path / f"a{meshferry.formats()[name].extensions[0]}", format=name)


def test_sources_are_paths_bytes_files_and_sets(tmp_path: Path) -> None:
    path = EXAMPLES / "vase.data"
    for source in (str(path), path, path.read_bytes(), io.BytesIO(path.read_bytes()), [path]):
        assert len(meshferry.read(source).meshes[0].points) == 1133
    assert meshferry.read(path.read_bytes(), name="jug").name == "jug"
    with open(path, "rb") as stream:
        assert meshferry.read(stream).name == "vase"
    meshferry.write(example("tunic.llmesh"), tmp_path / "hut.dae")
    alone, whole = (len(meshferry.read(tmp_path / "hut.dae", partner_files=on).nodes) for on in (False, True))
    assert alone < whole == len(meshferry.read(sorted(tmp_path.glob("*.dae"))).nodes)
    with pytest.raises(meshferry.MeshferryError, match=r"2 files do not belong together"):
        meshferry.read([path, EXAMPLES / "lamp.mesh"])
    with pytest.raises(meshferry.MeshferryError, match="open it in binary mode"):
        meshferry.read(io.StringIO("text"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda _: meshferry.read("nowhere.mesh"), "nowhere.mesh: The file cannot be read"),
        (lambda _: meshferry.read(b"text"), "bytes: not a format that Meshferry reads"),
        (lambda _: meshferry.read(5), "A value of type 'int' is not a path, bytes, a binary file or a list of paths"),
        (lambda _: meshferry.read(["a.mesh", None]), "A value of type 'list' is not a path"),
        (lambda _: meshferry.convert(b"text", "a.mesh"), "A value of type 'bytes' is not a path or a list of paths"),
        (lambda _: box(uvs=np.zeros((8, 2))), "A single array is not a list of layers"),
        (lambda _: meshferry.write(None, "a.mesh"), "A value of type 'NoneType' is not a scene"),
        (lambda s: meshferry.write(s, b"a.mesh"), "A value of type 'bytes' is not a path"),
        (lambda _: meshferry.read(closed_file()), "vase.data: The file cannot be read: read of closed file"),
        (lambda _: meshferry.read(STRIP, strict=True), "strip.dae: Refused in strict mode: 1 object with more than 8"),
        (lambda _: meshferry.convert("no.mesh", "a.mesh", version="ms12"), "known are .*mesh_version"),
        (lambda _: meshferry.read(b"", assumed_rate=3), "no option 'assumed_rate' of any format; known are assumed_fr"),
        (lambda _: meshferry.read(EXAMPLES / "lamp.mesh", axes="UNITY"), "no option 'axes' of UNIGINE Mesh; known are"),
        (
            lambda s: meshferry.write(s, "a.mesh", mesh_versio="ms12"),
            "no option 'mesh_versio' .*known are mesh_version",
        ),
        (lambda s: meshferry.write(s, "a.mesh", version="ms99"), "mesh_version: 'ms99' is not one of ms13"),
        (lambda s: meshferry.write(s, "a.mesh", turn=3), "turn: '3' is not a truth value"),
        (lambda _: meshferry.read(b"", assumed_frame_rate=-1), "assumed_frame_rate: -1 is below the least, 0"),
        (lambda _: meshferry.read(b"", assumed_frame_rate=float("nan")), "assumed_frame_rate: 'nan' is not a"),
        (lambda s: meshferry.write(s, "a.glb"), "no format for '.glb', but for .3d"),
        (lambda s: meshferry.write(s, "a.x", format="obj"), "There is no format 'obj'; known are timbermesh"),
        (lambda s: meshferry.write(s, "a.mesh"), "a.mesh: 'windmill' would become 3 files.*mesh_files='joined' makes"),
        (lambda s: meshferry.write(s, "a.mesh", mesh_files="joined", strict=True), "strict mode: 4 parent"),
        (lambda _: meshferry.convert("no.mesh", "a.timbermesh"), "no.mesh: The file cannot be read"),
        (lambda _: meshferry.convert("no.mesh", "a.xyz"), "'.xyz'"),
        (lambda _: meshferry.convert("no.mesh", "a.mesh", compressio="fast"), "no option 'compressio' of conversions"),
    ],
)
def test_mistakes_are_explained_in_one_line(
    call: Callable[[meshferry.Scene], object], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(meshferry.MeshferryError, match=text) as found:
        call(example("windmill.timbermesh"))
    assert "\n" not in str(found.value) and not list(tmp_path.iterdir())


def test_a_lack_of_memory_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "read_bytes", lambda _: bytearray(2**62))
    with pytest.raises(meshferry.MeshferryError, match=r"vase\.data: There is not enough memory for this file"):
        example("vase.data")


def test_losses_are_returned(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written = meshferry.write(example("windmill.timbermesh"), tmp_path / "a.mesh", version="MS12", mesh_files="joined")
    codes = {message.code for message in written.messages}
    assert len(codes) == len(written.messages) == 3 and all(message.is_loss for message in written.messages)
    assert meshferry.inspect(tmp_path / "a.mesh")["version"] == "ms12"
    before = meshferry.convert(EXAMPLES / "windmill.timbermesh", tmp_path / "b.mesh", mesh_files="joined")
    assert {message.code for message in before.messages} == codes
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("factor", [0.5, 2])
def test_a_scaled_avatar_stores_its_joint_positions(tmp_path: Path, factor: float) -> None:
    """Viewers place the joints by ``alt_inverse_bind``, so that the places must be those that bind the mesh."""
    scene = example("tunic.llmesh")
    scene.scale(factor)
    meshferry.write(scene, tmp_path / "a.llmesh")
    skin = registry.by_name("second_life_mesh").read((tmp_path / "a.llmesh").read_bytes()).blocks["skin"]
    names = [name.replace("_", " ") for name in skin["joint_names"]]
    places = dict(zip(names, matrices_of(np.array(skin["alt_inverse_bind_matrix"]))[:, :3, 3], strict=True))
    heads = np.linalg.inv(matrices_of(np.array(skin["inverse_bind_matrix"])))[:, :3, 3]

    def world(name: str | None) -> Any:
        joint = joints.table().get(name or "")
        return 0.0 if joint is None else places.get(joint.name, joint.position) + world(joint.parent)

    for name, head in zip(names, heads, strict=True):
        assert np.allclose(world(name), head, rtol=0, atol=1e-6), name
    assert np.allclose(heads[0], factor * np.array(joints.table()[names[0]].position), rtol=0, atol=1e-6)


def test_a_scaled_avatar_keeps_the_scale_of_bindings(tmp_path: Path) -> None:
    """Files of avatars with a body shape bind joints with its scale."""
    scene = example("tunic.llmesh")
    for skin in {node._core.skin for node in scene.nodes} - {None}:
        skin.inverse_bind[skin.joint_names.index("mPelvis"), :3] *= 0.8
    scene.scale(2)
    meshferry.write(scene, tmp_path / "a.llmesh")
    again = meshferry.read(tmp_path / "a.llmesh")
    sizes = []
    for each in (scene, again):
        each.add_clips(example("dance.anim"))
        sizes.append(np.ptp(next(iter(each.posed(each.clips[0], 0.4).values())), axis=0))
    assert np.allclose(*sizes, rtol=0, atol=1e-4), sizes


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("lamp.mesh", "a.mesh"),
        ("lamp.mesh", "a.data"),
        *(("tunic.llmesh", f"a.{end}") for end in ("llmesh", "mesh", "dae")),
    ],
)
def test_a_rigged_mesh_can_be_added_at_a_matrix(tmp_path: Path, name: str, out: str) -> None:
    found = example(name).nodes[0]
    assert found.mesh is not None
    for parent in (None, np.diag((2.0, 2.0, 2.0, 1.0))):
        scene = meshferry.Scene("moved")
        above = None if parent is None else scene.add("above", matrix=parent)
        scene.add("one", found.mesh, matrix=found.matrix, skeleton=found.skeleton, parent=above)
        read = meshferry.read(meshferry.write(scene, tmp_path / out).files[-1])
        place = found.world_matrix if parent is None else parent @ found.world_matrix
        (node,) = (node for node in read.nodes if node.level == 0 and node.role == "render" and node.mesh)
        assert np.allclose(box_of(node.mesh, node.world_matrix), box_of(found.mesh, place), rtol=0, atol=1e-4)


def test_triangles_keep_their_layers_in_another_surface(tmp_path: Path) -> None:
    """A UNIGINE file states for each surface which UVs it has and whether it has colours."""
    scene = example("lamp.mesh")
    (mesh,) = scene.meshes
    before = mesh.uvs, mesh.colors
    mesh.material_index = (mesh.material_index + 1) % len(mesh.materials)
    written = meshferry.write(scene, tmp_path / "a.mesh")
    assert not written.messages
    (again,) = meshferry.read(written.files[0]).meshes
    assert [len(again.uvs), len(again.colors)] == [len(layers) for layers in before]


def test_a_misspelt_attribute_is_refused() -> None:
    node = meshferry.Scene().add("a", box())
    for part in (node, node.mesh):
        with pytest.raises(AttributeError):
            part.colours = ()


def test_a_conversion_has_a_named_format(tmp_path: Path) -> None:
    vase, windmill = EXAMPLES / "vase.data", EXAMPLES / "windmill.timbermesh"
    for name in ("unigine_mesh", "second_life_mesh", "mesh_serializer"):
        written = meshferry.convert(vase, tmp_path / "own name.mesh", format=name)
        assert written.files == (tmp_path / "own name.mesh",)
        assert meshferry.inspect(written.files[0])["format"] == name
    parts = meshferry.convert(windmill, tmp_path, format="llmesh").files
    assert [path.name for path in parts] == [
        f"windmill.{node}.llmesh" for node in ("Windmill_Folktails", "#Sails", "#Flag")
    ]
    both = meshferry.convert([vase, windmill], tmp_path / "new", format="timbermesh").files
    assert meshferry.write(example("vase.data"), tmp_path / "a.bin", format="llmesh").files == (tmp_path / "a.bin",)
    assert meshferry.inspect(tmp_path / "a.bin")["format"] == "second_life_mesh"
    assert [path.name for path in both] == ["vase.timbermesh", "windmill.timbermesh"]
    with pytest.raises(meshferry.MeshferryError, match=r"Nothing here writes '\.vrml' files"):
        meshferry.convert(vase, tmp_path, format="vrml")


def test_a_script_of_a_user_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).with_name("user_script.py")
    assert len(path.read_text("utf-8").splitlines()) <= 40
    script = runpy.run_path(str(path))
    script["main"](EXAMPLES / "lamp.mesh", EXAMPLES / "lamp_nod.anim", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lamp.glb", "roof.mesh", "roof.timbermesh"]
    assert "['parent-relation-not-carried-over', 'no-uv-map']" in capsys.readouterr().out


AS_EXTENSION = """
import importlib.util, json, sys, types
for blocked in ("bpy", "meshferry"):
    sys.modules[blocked] = None
name = "bl_ext.somewhere.meshferry"
for parent in ("bl_ext", "bl_ext.somewhere"):
    sys.modules[parent] = types.ModuleType(parent)
    sys.modules[parent].__path__ = []
root = sys.argv[1]
spec = importlib.util.spec_from_file_location(name, root + "/__init__.py", submodule_search_locations=[root])
package = sys.modules[name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
before = sorted(module for module in sys.modules if module.startswith(name) or module == "numpy")
package.read(sys.argv[1] + "/examples/vase.data")
late = ["difflib", "importlib.metadata", "tempfile", *(f"{name}.{own}" for own in sys.argv[3:])]
early = [module for module in late if module in sys.modules]
scene = package.read(sys.argv[1] + "/examples/lamp.mesh")
package.write(scene, sys.argv[2] + "/a.mesh")
package.convert(sys.argv[2] + "/a.mesh", sys.argv[2] + "/b.data")
names = [found for found in dir(package) if found in ("read", "Mesh")]
print(json.dumps([before, early, type(scene).__module__, package.__version__, names]))
"""


@pytest.mark.needs_workers
def test_the_extension_has_the_library_under_its_own_name(tmp_path: Path) -> None:
    """Names are loaded on first use: importing the package loads no module of it, and not NumPy."""
    late = ("cli", "io_formats.disk.file_names", "io_formats.disk.file_sets", "io_formats.projects")
    command = [sys.executable, "-c", AS_EXTENSION, str(ROOT), str(tmp_path), *late]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    before, early, module, version, names = json.loads(done.stdout)
    assert (
        before == ["bl_ext.somewhere.meshferry"]
        and early == []
        and module == "bl_ext.somewhere.meshferry.library.scene"
    )
    assert version == meshferry.__version__ and names == ["Mesh", "read"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mesh", "b.data"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = meshferry.nothing  # type: ignore[attr-defined]


def test_files_are_checked_and_inspected() -> None:
    assert meshferry.check(EXAMPLES / "lamp.mesh") == []
    facts = meshferry.inspect((EXAMPLES / "windmill.timbermesh").read_bytes())
    assert facts["format"] == "timbermesh" and facts["triangles"] == 2076 and facts["clips"][0]["name"] == "Default"
    assert meshferry.formats()["unigine_mesh"].written_extensions == (".mesh", ".mesh_skinned")
