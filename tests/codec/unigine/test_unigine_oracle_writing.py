"""What our writer makes of scenes, as the oracle reads it: the values put in, in every version.

Expected values come from the scene's own arrays; our reader has no part in it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unigine_comparison as comparison
import unigine_generated as generated
import unigine_meaning as meaning
import unigine_oracle as oracle
import unigine_rules as rules
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

STREAMED = ("ms10", "ms11", "ms12", "ms13")
VERSIONS = (*STREAMED, "ms14", "ms15")
LAMP = Path(__file__).resolve().parents[3] / "examples" / "lamp.mesh"
SIZES = [(4, 5), (3, 3), (6, 4), (2, 9)]
UVS = [(True, True), (True, False), (False, True), (False, False)]
COLORS = [True, False, True, False]
SIXTEEN_BITS = 1.6e-4
"""How far a truncated quaternion of 16 bits bends an axis: twice sqrt(3) / 32767, and a little."""
NO_W = 0.03
"""The same in ms10, whose w is what x, y and z leave."""


def file_of(scene: sc.Scene, version: str, **options: Any) -> oracle.File:
    """Write a scene's mesh; return what the oracle reads, having held the document and the form against it."""
    document = UNIGINE_MESH.from_scene(scene, {"mesh_version": version.upper(), **options})
    found = oracle.decode(UNIGINE_MESH.write(document))
    assert found.magic == version
    comparison.same_mesh(document, found)
    comparison.canonical(found)
    comparison.plain_widths(found)
    return found


def animation_of(scene: sc.Scene, version: str) -> tuple[oracle.File, oracle.Frames]:
    document = UNIGINE_ANIMATION.from_scene(scene, {"animation_version": version.upper()})
    found = oracle.decode(UNIGINE_ANIMATION.write(document))
    assert found.magic == version
    comparison.same_animation(document, found)
    comparison.canonical(found)
    ((_, frames),) = found.animations
    return found, frames


def same_surface(mesh: sc.Mesh, number: int, surface: oracle.Surface, version: str) -> None:
    """Hold a surface against the triangles of its slot, corner by corner."""
    wanted = mesh.surfaces[number]
    corners = np.flatnonzero(np.repeat(mesh.material_index == number, 3))
    points = mesh.corner_point[corners]
    base = surface.targets[0]
    assert surface.name == mesh.materials[number]
    lightmap = wanted.lightmap_channel, wanted.lightmap_resolution
    assert surface.lightmap == (None if version in ("ms10", "ms11") else lightmap)
    np.testing.assert_array_equal(base.positions[surface.c_indices], mesh.points[points])
    assert surface.vertex_count == len(set(points.tolist()))
    for place, uv in enumerate((surface.uv0, surface.uv1)):
        assert (uv is not None) == wanted.uvs[place]
        if uv is not None:
            values = mesh.uvs[place].at_corners(mesh.corner_point)[corners]
            np.testing.assert_array_equal(uv[surface.t_indices, 0], values[:, 0])
            np.testing.assert_array_equal(uv[surface.t_indices, 1], np.float32(1) - values[:, 1])
    assert (surface.colors is not None) == wanted.has_colors
    if surface.colors is not None:
        colors = mesh.colors[0].at_corners(mesh.corner_point)[corners]
        np.testing.assert_array_equal(surface.colors[surface.t_indices], colors)
    normals, along_u, handed = meaning.tangent_frames(base.tangents, version)
    within = NO_W if version == "ms10" else SIXTEEN_BITS
    expected = mesh.normal.at_corners(mesh.corner_point)[corners]
    np.testing.assert_allclose(normals[surface.t_indices], expected, rtol=0, atol=within)
    tangents = mesh.tangent.at_corners(mesh.corner_point)[corners]
    # A frame whose w would be too small to store is turned about its normal instead, by 3.5 degrees at most.
    lifted = (np.abs(base.tangents[surface.t_indices, 3]) <= 34) & (version != "ms10")
    assert lifted.mean() < 0.1
    apart = np.abs(along_u[surface.t_indices] - tangents[:, :3]).max(axis=1)
    assert (apart <= np.where(lifted, 0.062, within)).all()
    # v runs the other way in the file, so that the binormal that follows it does.
    np.testing.assert_array_equal(handed[surface.t_indices], -tangents[:, 3])
    if version != "ms10":
        assert np.abs(base.tangents[:, 3]).min() >= 31  # w is at least 0.001


def same_bounds(found: oracle.File) -> None:
    """Boxes are exact, spheres stand in the middle and reach the farthest vertex, the whole encloses all."""
    for surface in found.surfaces:
        points = surface.targets[0].positions
        np.testing.assert_array_equal(surface.bounds[:3], points.min(axis=0))
        np.testing.assert_array_equal(surface.bounds[3:6], points.max(axis=0))
        middle = (points.min(axis=0).astype(float) + points.max(axis=0)) / 2
        np.testing.assert_allclose(surface.bounds[6:9], middle, rtol=0, atol=1e-6)
        farthest = np.linalg.norm(points - middle, axis=1).max()
        assert surface.bounds[9] == pytest.approx(farthest, abs=1e-5)
        np.testing.assert_array_less(np.linalg.norm(points - found.bounds[6:9], axis=1), found.bounds[9] + 1e-5)
    np.testing.assert_array_equal(found.bounds[:3], np.min([surface.bounds[:3] for surface in found.surfaces], axis=0))
    np.testing.assert_array_equal(
        found.bounds[3:6], np.max([surface.bounds[3:6] for surface in found.surfaces], axis=0)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("version", VERSIONS)
def test_surfaces_hold_what_their_slots_hold(version: str, seed: int) -> None:
    mesh = generated.mesh(seed, SIZES, uvs=UVS, colors=COLORS)
    found = file_of(generated.scene(mesh), version)
    assert not found.bones
    assert len(found.surfaces) == len(SIZES)
    for number, surface in enumerate(found.surfaces):
        same_surface(mesh, number, surface, version)
        assert surface.weights is None
        assert [target.name for target in surface.targets] == ["" if version == "ms15" else "basis"]
        if version in ("ms14", "ms15"):
            rules.check_collision(surface)
    same_bounds(found)


@pytest.mark.slow
def test_edges_of_collision_blocks_tell_convex_from_concave() -> None:
    """The patches have edges of both kinds, so that the check of edges has something to say."""
    found = file_of(generated.scene(generated.mesh(5, [(9, 9)])), "ms15")
    (surface,) = found.surfaces
    rules.check_collision(surface)
    said = [surface.collision.edges[number] >> bit & 1 for number in range(128) for bit in range(3)]
    assert 60 < sum(said) < 330
    for number in range(128):
        flipped = dataclasses.replace(surface.collision, edges=list(surface.collision.edges))
        flipped.edges[number] ^= 7
        with pytest.raises(oracle.WrongFile):
            rules.check_collision(dataclasses.replace(surface, collision=flipped))


@pytest.mark.parametrize("version", [*STREAMED, "ms14"])
def test_bones_weights_and_shape_keys(version: str) -> None:
    mesh = generated.mesh(7, SIZES, joints=9, keys=("Lächeln", "blink", "smile", "frown", "smile again"))
    skeleton = generated.skeleton(7, 9)
    found = file_of(generated.scene(mesh, skeleton), version)
    same_skeleton(skeleton, found)
    assert any(parent >= 0 and parent > bone for bone, (_, parent) in enumerate(found.bones))
    for number, surface in enumerate(found.surfaces):
        same_surface(mesh, number, surface, version)
        points = mesh.corner_point[np.repeat(mesh.material_index == number, 3)]
        same_weights(mesh, points, surface)
        keys = [key for place, key in enumerate(mesh.shape_keys) if place % len(SIZES) == number]
        assert [target.name for target in surface.targets] == ["basis", *(key.name for key in keys)]
        for key, target in zip(keys, surface.targets[1:], strict=True):
            np.testing.assert_array_equal(target.positions[surface.c_indices], key.points[points])
            normals, _, _ = meaning.tangent_frames(target.tangents, version)
            expected = key.normal.values[np.repeat(mesh.material_index == number, 3)]
            within = NO_W if version == "ms10" else 6e-4  # a frame near half a turn may bend its normal a little
            np.testing.assert_allclose(normals[surface.t_indices], expected, rtol=0, atol=within)


def same_skeleton(skeleton: sc.Skeleton, found: oracle.File) -> None:
    assert found.bones == [(joint.name, joint.parent) for joint in skeleton.joints]
    for row, joint in zip(found.transforms, skeleton.joints, strict=True):
        w, x, y, z = joint.rotation
        np.testing.assert_array_equal(row, np.float32([*joint.translation, x, y, z, w, *joint.scale]))


def same_weights(mesh: sc.Mesh, points: np.ndarray, surface: oracle.Surface) -> None:
    """Weights are truncated: never above what was put in, and less than 1/65535 below."""
    assert surface.weights is not None
    for place, point in {
        int(place): int(point) for place, point in zip(surface.c_indices, points, strict=True)
    }.items():
        wanted = {
            int(bone): float(weight)
            for bone, weight in zip(mesh.joint_indices[point], mesh.joint_weights[point], strict=True)
            if weight * 65535 >= 1
        }
        stored = dict(surface.weights[place])
        assert set(stored) == set(wanted)
        for bone, weight in wanted.items():
            assert -0.02 < weight * 65535 - stored[bone] < 1


@pytest.mark.parametrize("version", ["ms10", "ms11", "ms12"])
@pytest.mark.parametrize("scaled", [True, False])
def test_animations_inside_say_what_changes(version: str, scaled: bool) -> None:
    skeleton = generated.skeleton(3, 5)
    if not scaled:
        skeleton.joints = [dataclasses.replace(joint, scale=(1.0, 1.0, 1.0)) for joint in skeleton.joints]
    clips = [
        generated.clip(1, "gehen", [4, 0, 2], 12, scaled=scaled),
        generated.clip(2, "steht", [1], 1, scaled=scaled),
    ]
    mesh = generated.mesh(2, [(3, 3)], joints=5)
    found = file_of(generated.scene(mesh, skeleton, *clips), version, use_embedded_animation=True)
    assert [name for name, _ in found.animations] == ["gehen", "steht"]
    for clip, (_, frames) in zip(clips, found.animations, strict=True):
        assert frames.bones == [track.target for track in clip.transforms]
        assert frames.mask == (0x7F if scaled else 0x0F)
        rules.check_flags(frames)
        for place, track in enumerate(clip.transforms):
            np.testing.assert_array_equal(frames.translation[:, place], track.translation)
            np.testing.assert_array_equal(frames.scale[:, place], track.scale)
            same_rotations(frames.rotation[:, place], track)


def same_rotations(rotation: np.ndarray, track: sc.TransformTrack) -> None:
    """16-bit rotations are truncated: nearer to 0 than what was put in, by less than 1/32767."""
    wanted = track.rotation[:, [1, 2, 3, 0]].astype(float) * 32767
    stored = np.rint(rotation * 32767)
    assert (np.abs(stored) <= np.abs(wanted) + 0.02).all()
    assert (np.abs(wanted - stored) < 1).all()


@pytest.mark.parametrize("scaled", [True, False])
def test_an10_is_rounded_within_its_ranges_and_says_what_changes(scaled: bool) -> None:
    skeleton, clip = generated.skeleton(3, 5), generated.clip(4, "gehen", [4, 0, 2], 30, scaled=scaled)
    if not scaled:
        skeleton.joints = [dataclasses.replace(joint, scale=(1.0, 1.0, 1.0)) for joint in skeleton.joints]
    found, frames = animation_of(generated.scene(None, skeleton, clip), "an10")
    same_skeleton(skeleton, found)
    assert [name for name, _ in found.animations] == ["gehen"]
    assert frames.mask == (0x7F if scaled else 0x0F)
    rules.check_flags(frames)
    minimum, extent, scale_minimum, scale_extent = np.reshape(frames.ranges, (4, 3))
    for low, wide, values, kept in (
        (minimum, extent, [track.translation for track in clip.transforms], frames.translation),
        (scale_minimum, scale_extent, [track.scale for track in clip.transforms], frames.scale),
    ):
        if not scaled and kept is frames.scale:
            assert (low == np.float32(1e9)).all()
            assert (wide == np.float32(-2e9)).all()
            continue
        whole = np.stack(values, axis=1).astype(float)
        np.testing.assert_allclose(low, whole.min(axis=(0, 1)), rtol=0, atol=0)
        np.testing.assert_allclose(wide, whole.max(axis=(0, 1)) - whole.min(axis=(0, 1)) + 1, rtol=1e-6)
        short = (whole - kept) / (wide / 65535)  # steps by which truncation falls short
        assert short.min() > -0.05
        assert short.max() < 1.05
    for place, track in enumerate(clip.transforms):
        same_rotations(frames.rotation[:, place], track)


@pytest.mark.parametrize("version", ["an11", "an13"])
def test_later_animations_say_what_is_not_default(version: str) -> None:
    skeleton, clip = generated.skeleton(3, 5), generated.clip(6, "gehen", [4, 0, 2], 40)
    skeleton.guid, skeleton.path = "0123456789abcdef0123456789abcdef01234567", "guid://weg"
    clip.root_motion = True
    found, frames = animation_of(generated.scene(None, skeleton, clip), version)
    parents = {name: found.bones[parent][0] if parent >= 0 else "" for name, parent in found.bones}
    names = [joint.name for joint in skeleton.joints]
    assert parents == {one.name: names[one.parent] if one.parent >= 0 else "" for one in skeleton.joints}
    if version == "an11":
        same_skeleton(skeleton, found)
        assert frames.bones == [4, 0, 2]
    else:
        assert (found.guid, found.path) == (skeleton.guid, "guid://weg")
        assert (found.fps, found.root_motion) == (25, True)
        assert all(parent < place for place, (_name, parent) in enumerate(found.bones))
        assert frames.bones == sorted(frames.bones)
    places = [found.bones[bone][0] for bone in frames.bones]
    seen = set()
    for track in clip.transforms:
        place = places.index(names[track.target])
        rotation = track.rotation[:, [1, 2, 3, 0]]
        channels = ((track.translation, (0, 0, 0)), (rotation, (0, 0, 0, 1)), (track.scale, (1, 1, 1)))
        for values, kept in zip((track.translation, rotation, track.scale), shown(frames, place), strict=True):
            np.testing.assert_array_equal(kept, values)
        for frame in range(40):
            flag = frames.flags[frame][place]
            seen.add(flag)
            wanted = [tuple(values[frame].tolist()) != default for values, default in channels]
            assert [bool(flag >> bit & 1) for bit in range(3)] == wanted
    assert seen == set(range(8))


def shown(frames: oracle.Frames, place: int) -> tuple[np.ndarray, ...]:
    return frames.translation[:, place], frames.rotation[:, place], frames.scale[:, place]


@pytest.mark.parametrize("version", ["an10", "an11", "an13"])
def test_animations_without_frames(version: str) -> None:
    skeleton, clip = generated.skeleton(3, 4), generated.clip(6, "nichts", [1, 2], 0)
    found, frames = animation_of(generated.scene(None, skeleton, clip), version)
    assert frames.count == 0
    assert {found.bones[bone][0] for bone in frames.bones} == {"Knochen 1", "Knochen 2"}


@pytest.mark.parametrize("count", [61, 62, 63, 64, 65, 126, 127])
def test_names_and_tables_around_63(count: int) -> None:
    """Lengths of strings and numbers of bones: 63 takes two bytes."""
    mesh = generated.mesh(1, [(3, 3)], joints=4)
    mesh.materials = [mesh.surfaces[0].name] = ["n" * (count - 1)]
    skeleton = generated.skeleton(1, count)
    for version in ("ms12", "ms13", "ms14"):
        found = file_of(generated.scene(mesh, skeleton), version)
        assert (count, 1 if count < 63 else 2) in found.compact
        assert found.surfaces[0].name == mesh.materials[0]
        same_skeleton(skeleton, found)


def strip(points: int) -> sc.Mesh:
    """Return a band of points with two corners' values at half of them, so that both pools differ."""
    number = np.arange(points)
    places = np.column_stack((number // 2, number % 2, np.sin(number))).astype(np.float32)
    triangles = np.column_stack((number[:-2], number[1:-1], number[2:])).astype(np.int32)
    triangles[1::2] = triangles[1::2, [1, 0, 2]]
    normals = np.tile(np.float32([0, 0, 1]), (points, 1))
    return sc.Mesh(
        places,
        triangles.reshape(-1),
        np.zeros(len(triangles), np.int32),
        ["Band"],
        normal=sc.Layer("normal", normals),
        tangent=sc.Layer("tangent", np.tile(np.float32([1, 0, 0, 1]), (points, 1))),
        uvs=[sc.Layer("UV0", places[:, :2].copy())],
        surfaces=[sc.Surface("Band")],
    )


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 62, 63, 64, 255, 256, 257, 8190, 8191, 8192, 65535, 65536, 65537])
def test_counts_and_index_widths_at_their_limits(count: int) -> None:
    mesh = strip(count)
    width = 1 if count <= 255 else 2 if count <= 65535 else 4
    versions = ("ms10", "ms11", "ms12", "ms13", "ms14", "ms15") if count < 9000 else ("ms13", "ms14")
    for version in versions:
        (surface,) = file_of(generated.scene(mesh), version).surfaces
        assert surface.vertex_count == surface.corner_vertex_count == count
        assert surface.widths == (width, width)
        np.testing.assert_array_equal(surface.c_indices, mesh.corner_point)
        np.testing.assert_array_equal(surface.targets[0].positions[surface.c_indices], mesh.points[mesh.corner_point])
        if version == "ms15" and count < 300:
            rules.check_collision(surface)


@pytest.mark.parametrize(("c_count", "t_count"), [(255, 256), (200, 65536), (300, 65536), (255, 65535)])
def test_each_pool_has_its_own_index_width(c_count: int, t_count: int) -> None:
    """Fewer points than values at corners: each triangle takes values of its own, until there are enough."""
    triangles = (t_count + 2) // 3
    rng = np.random.default_rng(1)
    corner_point = np.concatenate((np.arange(c_count), rng.integers(0, c_count, 3 * triangles - c_count)))
    value = np.minimum(np.arange(3 * triangles), t_count - 1).astype(np.int32)
    uv = np.column_stack((np.arange(t_count), np.arange(t_count) % 7)).astype(np.float32)
    up = np.tile(np.float32([0, 0, 1]), (t_count, 1))
    mesh = sc.Mesh(
        rng.normal(size=(c_count, 3)).astype(np.float32),
        corner_point.astype(np.int32),
        np.zeros(triangles, np.int32),
        ["Netz"],
        normal=sc.Layer("normal", up, value),
        tangent=sc.Layer("tangent", np.column_stack((up[:, ::-1], up[:, 2])).copy(), value),
        uvs=[sc.Layer("UV0", uv, value)],
        surfaces=[sc.Surface("Netz")],
    )
    widths = tuple(1 if count < 256 else 2 if count < 65536 else 4 for count in (c_count, t_count))
    for version in ("ms13", "ms14"):
        (surface,) = file_of(generated.scene(mesh), version).surfaces
        assert (surface.vertex_count, surface.corner_vertex_count) == (c_count, t_count)
        assert surface.widths == widths
        np.testing.assert_array_equal(surface.targets[0].positions[surface.c_indices], mesh.points[corner_point])
        np.testing.assert_array_equal(surface.uv0[surface.t_indices, 0], uv[value, 0])


def test_mr02_holds_every_corner() -> None:
    mesh = generated.mesh(9, SIZES, uvs=UVS)
    document = UNIGINE_MESH.from_scene(generated.scene(mesh), {"mesh_version": "MR02"})
    found = oracle.decode(UNIGINE_MESH.write(document))
    comparison.same_mesh(document, found)
    assert [soup.name for soup in found.soup] == mesh.materials
    for number, soup in enumerate(found.soup):
        corners = np.flatnonzero(np.repeat(mesh.material_index == number, 3))
        np.testing.assert_array_equal(soup.positions, mesh.points[mesh.corner_point[corners]])
        np.testing.assert_allclose(soup.normals, mesh.normal.values[corners], rtol=0, atol=2e-7)
        uv = mesh.uvs[0].values[corners] if UVS[number][0] else np.zeros((len(corners), 2))
        np.testing.assert_array_equal(soup.uvs, uv)  # v from the bottom, as in Blender


@pytest.mark.parametrize("version", [*STREAMED, "ms14"])
def test_the_lamp_in_every_version(version: str) -> None:
    """The example, read by our reader and written again, says to the oracle what its own bytes say."""
    data = LAMP.read_bytes()
    before = oracle.decode(data)
    scene = UNIGINE_MESH.to_scene(UNIGINE_MESH.read(data), "lamp", {})
    embeds = version in ("ms10", "ms11", "ms12")
    after = file_of(scene, version, use_embedded_animation=embeds)
    assert after.bones == before.bones
    np.testing.assert_array_equal(after.transforms, before.transforms)
    assert [surface.name for surface in after.surfaces] == [surface.name for surface in before.surfaces]
    for old, new in zip(before.surfaces, after.surfaces, strict=True):
        for one, other in zip(old.targets, new.targets, strict=True):
            np.testing.assert_array_equal(other.positions[new.c_indices], one.positions[old.c_indices])
            normals = [
                meaning.tangent_frames(target.tangents, found.magic)[0][surface.t_indices]
                for target, surface, found in ((one, old, before), (other, new, after))
            ]
            np.testing.assert_allclose(normals[1], normals[0], rtol=0, atol=NO_W if version == "ms10" else 1e-4)
        assert (old.weights is None) == (new.weights is None)
        if old.weights is not None:
            pairs = [[surface.weights[corner] for corner in surface.c_indices] for surface in (old, new)]
            assert pairs[0] == pairs[1]
        for one, other in ((old.uv0, new.uv0), (old.uv1, new.uv1)):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(other[new.t_indices], one[old.t_indices], rtol=0, atol=6e-8)
        assert (old.colors is None) == (new.colors is None)
        if old.colors is not None:
            np.testing.assert_array_equal(new.colors[new.t_indices], old.colors[old.t_indices])
        if new.collision is not None:
            rules.check_collision(new)


def test_turned_files_stand_turned_by_half_a_turn() -> None:
    """Positions, normals, bones and every frame, from what the oracle multiplies out of the files alone."""
    mesh, skeleton = generated.mesh(4, SIZES, joints=6, keys=("lift",)), generated.skeleton(4, 6)
    scene = generated.scene(mesh, skeleton, generated.clip(4, "gehen", [5, 4, 1], 6))
    plain, turned = (
        file_of(scene, "ms12", use_embedded_animation=True, use_turn=use_turn) for use_turn in (False, True)
    )
    half_a_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    for one, other in zip(plain.surfaces, turned.surfaces, strict=True):
        for base, moved in zip(one.targets, other.targets, strict=True):
            wanted = base.positions[one.c_indices] * np.float32([-1, -1, 1])
            np.testing.assert_array_equal(moved.positions[other.c_indices], wanted)
        axes = [meaning.tangent_frames(found.targets[0].tangents, "ms12") for found in (one, other)]
        for before, after in zip(axes[0][:1], axes[1][:1], strict=True):
            wanted = before[one.t_indices] * [-1, -1, 1]
            np.testing.assert_allclose(after[other.t_indices], wanted, rtol=0, atol=2 * SIXTEEN_BITS)
        assert [one.weights[index] for index in one.c_indices] == [other.weights[index] for index in other.c_indices]
    for before, after in zip(meaning.rest_matrices(plain), meaning.rest_matrices(turned), strict=True):
        np.testing.assert_allclose(after, half_a_turn @ before, rtol=0, atol=1e-5)
    ((_, frames),), ((_, turned_frames),) = plain.animations, turned.animations
    for frame in range(6):
        poses = meaning.posed_matrices(plain, plain, frames, frame)
        turned_poses = meaning.posed_matrices(turned, turned, turned_frames, frame)
        for before, after in zip(poses, turned_poses, strict=True):
            size = max(1.0, float(np.abs(before).max()))
            np.testing.assert_allclose(after, half_a_turn @ before, rtol=0, atol=1e-3 * size)


@pytest.mark.parametrize("version", ["an11", "an13"])
def test_small_steps_from_the_default_are_kept(version: str) -> None:
    """The engine stores what is farther than 1e-6 from the default, and so do we; what is nearer becomes it."""
    steps = np.float32([0, 5e-7, 2e-6, 1e-5, 1e-3, -2e-6])
    still = np.zeros((len(steps), 3), np.float32)
    moved = still.copy()
    moved[:, 1] = steps
    turned = np.zeros((len(steps), 4), np.float32)
    turned[:, 0], turned[:, 2] = np.sqrt(1 - steps.astype(float) ** 2), steps
    scale = np.ones((len(steps), 3), np.float32)
    scale[:, 2] += steps
    track = sc.TransformTrack(1, moved, turned, scale, 0)
    clip = sc.Clip("klein", 30, len(steps), transforms=[track])
    _, frames = animation_of(generated.scene(None, generated.skeleton(3, 4), clip), version)
    assert [row[0] for row in frames.flags] == [0, 0, 7, 7, 7, 7]
    kept = np.abs(steps) > 1e-6
    np.testing.assert_array_equal(frames.translation[:, 0, 1], np.where(kept, steps, 0))
    np.testing.assert_array_equal(frames.rotation[kept, 0], turned[kept][:, [1, 2, 3, 0]])
    np.testing.assert_array_equal(frames.scale[:, 0, 2], np.where(kept, scale[:, 2], 1))
