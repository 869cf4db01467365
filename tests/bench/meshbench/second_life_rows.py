"""What Second Life files are measured by, each group in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from . import models, peers, rigs
from .measure import Row, Task, in_turns, ratio_row

TRIANGLES = 60_000
"""Of the highest level: what a body of an avatar has, and near the most that one upload takes."""
LEVELS = (("_LOD2", 0.4), ("_LOD1", 0.15), ("_LOD0", 0.05))
JOINTS = 60
"""Joints that move the body; files take up to 110."""
DRESSED = 50_000
"""Triangles of the body that follows the shape."""
CHANGES = 40
"""Changes of a slider that count as one, since each takes about a millisecond."""
HEIGHT = "meshferry_shape_33"

_GLTF = {"export_tangents": False}
"""No file of ours holds tangents."""

OPTIONS = f"""\
import, ours    all default but exact vertices, as pipelines import (use_weld off); four levels of detail, an
                armature of the avatar, physics
import, glTF    import_scene.gltf with its defaults; the highest level and the armature alone
export, ours    the objects of all four levels, all else default
export, glTF    {peers.GLTF_EXPORT | _GLTF}; the same objects
animation       the 133 bones with a key on each frame, and one bone with a constraint, so that the export samples;
                import onto an avatar that is there, of a file with all keys; glTF always makes an armature
shape           a slider of a worn body of one level: evaluation and writing of scales and locations, and what Blender
                then computes; {CHANGES} changes each"""

SECONDS = 60
RATE = 30
"""Frames per second of the measured animation, which has the longest duration that viewers accept."""


def build(triangles: int) -> None:
    """Build a rigged body of four levels of detail: objects named by the viewer's suffixes, on the avatar's bones."""
    models.empty_file()
    bpy.ops.object.second_life_avatar_add()
    armature = bpy.context.object
    names = [bone.name for bone in armature.data.bones if bone.name.startswith("m")][:JOINTS]
    models.build(triangles, use_colors=False).name = "Body"
    collection = bpy.data.collections[models.COLLECTION_NAME]
    for home in armature.users_collection:
        home.objects.unlink(armature)
    collection.objects.link(armature)
    body = bpy.data.objects["Body"]
    for suffix, share in LEVELS:
        models.build(round(triangles * share), use_colors=False).name = f"Body{suffix}"
        level = bpy.data.objects[f"Body{suffix}"]
        for home in level.users_collection:
            home.objects.unlink(level)
        collection.objects.link(level)
    for obj in [body, *(bpy.data.objects[f"Body{suffix}"] for suffix, _share in LEVELS)]:
        rigs.bind(obj, armature, names)
    bpy.context.view_layer.update()


def keep_highest() -> None:
    """Remove the lower levels, so that the peer's file holds the highest alone."""
    for suffix, _share in LEVELS:
        bpy.data.objects.remove(bpy.data.objects[f"Body{suffix}"])


def export_asset(path: Path) -> None:
    bpy.ops.export_scene.second_life_mesh(filepath=str(path), collection=models.COLLECTION_NAME)


def export_set(path: Path) -> None:
    bpy.ops.export_scene.second_life_upload(filepath=str(path), collection=models.COLLECTION_NAME, use_replace=True)


def export_animation(path: Path) -> None:
    bpy.ops.export_scene.second_life_anim(filepath=str(path))


def import_ours(path: Path, **options: Any) -> None:
    bpy.ops.import_scene.second_life(filepath=str(path), **options)


def expect_file(path: Path) -> Callable[[], None]:
    def check() -> None:
        assert path.stat().st_size > 1000, f"{path.name} was not written"

    return check


def remove(*paths: Path) -> Callable[[], None]:
    def prepare() -> None:
        for path in paths:
            path.unlink(missing_ok=True)

    return prepare


def exporting(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare exports of a rigged body with four levels."""
    build(TRIANGLES)
    asset, upload, gltf = folder / "body.llmesh", folder / "body.dae", folder / "body.glb"
    levels = [upload.with_name(f"body{suffix}.dae") for suffix, _share in LEVELS]

    def expect_set() -> None:
        for path in (upload, *levels):
            expect_file(path)()

    tasks = [
        Task("asset", lambda: export_asset(asset), remove(asset), expect_file(asset)),
        Task("set", lambda: export_set(upload), remove(upload, *levels), expect_set),
        Task("glTF", lambda: peers.export_gltf(gltf, **_GLTF), remove(gltf), expect_file(gltf)),
    ]
    seconds = in_turns(tasks, rounds)
    return [
        ratio_row(f"export .llmesh, {TRIANGLES:,} triangles, rig, 4 LODs : glTF", "asset", "glTF", 1.2, seconds),
        ratio_row(f"export upload set, {TRIANGLES:,} triangles, rig, 4 LODs : glTF", "set", "glTF", 2.0, seconds),
    ]


def importing(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare the import of an asset with glTF's of its highest level."""
    asset, gltf = folder / "body.llmesh", folder / "body.glb"
    build(TRIANGLES)
    export_asset(asset)
    keep_highest()
    peers.export_gltf(gltf, **_GLTF)

    def expect(levels: int) -> Callable[[], None]:
        def check() -> None:
            meshes = [obj for obj in bpy.data.objects if obj.type == "MESH" and obj.vertex_groups]
            largest = max(len(obj.data.polygons) for obj in meshes)
            assert largest == models.grid_for(TRIANGLES).triangles, f"{largest} triangles"
            assert len(meshes) == levels, f"{len(meshes)} levels"
            assert all(obj.data.has_custom_normals for obj in meshes), "custom normals are missing"

        return check

    tasks = [
        Task("exact", lambda: import_ours(asset, use_weld=False), models.empty_file, expect(4)),
        Task("window", lambda: import_ours(asset), models.empty_file, expect(4)),
        Task("glTF", lambda: peers.import_gltf(gltf), models.empty_file, expect(1)),
    ]
    seconds = in_turns(tasks, rounds)
    name = f"import .llmesh, {TRIANGLES:,} triangles, rig, 4 LODs"
    return [
        ratio_row(f"{name} : glTF of the highest", "exact", "glTF", 0.6, seconds),
        ratio_row(f"{name}, welded : glTF of the highest", "window", "glTF", None, seconds),
    ]


def angles() -> np.ndarray:
    """Return the rotations of the measured animation about X, in radians for each bone and frame."""
    time = np.arange(SECONDS * RATE + 1) / RATE
    return 0.4 * np.sin(1.5 * time + np.arange(len(_bones()))[:, None])


def _bones() -> list[str]:
    return [bone.name for bone in bpy.context.object.data.bones if bone.name.startswith("m")]


def empty_timeline() -> None:
    """Start with an empty file at the frame rate of the animation."""
    models.empty_file()
    bpy.context.scene.render.fps = RATE


def add_avatar() -> None:
    empty_timeline()
    bpy.ops.object.second_life_avatar_add()


def animate(armature: bpy.types.Object) -> None:
    """Key the rotation of every bone on each frame, and let a constraint move one."""
    names = _bones()
    rigs.key_rotations(armature, names, angles())
    armature.pose.bones["mHead"].constraints.new("COPY_ROTATION").target = armature
    armature.pose.bones["mHead"].constraints[0].subtarget = "mNeck"


def write_dense(path: Path) -> None:
    """Write such an animation with a key on each frame; it is too large for an upload."""
    from meshferry.io_formats.second_life.animation import codec
    from meshferry.io_formats.second_life.animation.codec import JointKeys, SecondLifeAnimation

    times = codec.time_codes_of(np.arange(SECONDS * RATE + 1) / RATE, SECONDS)
    animation = SecondLifeAnimation(base_priority=3, duration=SECONDS)
    for name, angle in zip(_bones(), angles(), strict=True):
        half = angle / 2
        rotation = np.column_stack((np.cos(half), 0 * half, np.sin(half), 0 * half))
        keys = np.column_stack((times, codec.rotation_codes_of(rotation)))
        animation.joints.append(JointKeys(name.encode(), 3, keys.astype(np.uint16)))
    path.write_bytes(codec.write(animation))


def animation(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare import and export of the largest animation: 133 bones, 60 s, 30 frames per second."""
    ours, gltf, dense = folder / "avatar.anim", folder / "avatar.glb", folder / "avatar_dense.anim"
    add_avatar()
    write_dense(dense)
    animate(bpy.context.object)
    out = [
        Task("ours", lambda: export_animation(ours), remove(ours), expect_file(ours)),
        Task("glTF", lambda: peers.export_gltf(gltf, **_GLTF), remove(gltf), expect_file(gltf)),
    ]
    exported = in_turns(out, rounds)

    def expect_action() -> None:
        start, end = bpy.data.actions[0].frame_range
        assert round(end - start) == SECONDS * RATE, f"{end - start} frames"
        assert len([obj for obj in bpy.data.objects if obj.type == "ARMATURE"]) == 1, "two armatures"

    into = [
        Task("ours", lambda: import_ours(dense), add_avatar, expect_action),
        Task("glTF", lambda: peers.import_gltf(gltf), empty_timeline, expect_action),
    ]
    imported = in_turns(into, rounds)
    size = f"{len(_bones())} bones, {SECONDS} s, {RATE} fps"
    return [
        ratio_row(f"import .anim, {size} : glTF", "ours", "glTF", 0.5, imported),
        ratio_row(f"export .anim, {size}, sampled : glTF", "ours", "glTF", 1.0, exported),
    ]


def shape(_triangles: int, rounds: int, _folder: Path) -> list[Row]:
    """Compare one change of a shape with Blender's own update after it."""
    build(DRESSED)
    keep_highest()
    armature = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    body, layer = bpy.data.objects["Body"], bpy.context.view_layer
    seconds: dict[str, list[float]] = {"ours": [], "Blender": []}
    for turn in range(rounds + 1):
        ours = blenders = 0.0
        for change in range(CHANGES):
            started = time.perf_counter()
            setattr(armature, HEIGHT, 100.0 * (change % 2))
            written = time.perf_counter()
            layer.update()
            blenders += time.perf_counter() - written
            ours += written - started
        if turn:
            seconds["ours"].append(ours)
            seconds["Blender"].append(blenders)
    shown = body.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    moved = (shown.vertices[0].co - body.data.vertices[0].co).length
    assert moved > 0.01, "the body does not follow the shape"
    name = f"change a slider, {DRESSED:,} triangles, {JOINTS} joints : Blender's own update"
    return [ratio_row(name, "ours", "Blender", 2.0, seconds)]


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {
    "import": importing,
    "export": exporting,
    "animation": animation,
    "shape": shape,
}
