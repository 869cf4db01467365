"""What Second Life files are measured by, each group in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy

from . import models, peers, rigs
from .measure import Row, Task, in_turns, ratio_row

TRIANGLES = 60_000
"""Of the highest level: what a body of an avatar has, and near the most that one upload takes."""
LEVELS = (("_LOD2", 0.4), ("_LOD1", 0.15), ("_LOD0", 0.05))
JOINTS = 60
"""Joints that move the body; files take up to 110."""

_GLTF = {"export_tangents": False}
"""No file of ours holds tangents."""

OPTIONS = f"""\
import, ours    all default but exact vertices, as pipelines import (use_weld off); four levels of detail, an
                armature of the avatar, physics
import, glTF    import_scene.gltf with its defaults; the highest level and the armature alone
export, ours    the objects of all four levels, all else default
export, glTF    {peers.GLTF_EXPORT | _GLTF}; the same objects"""


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
    for thing in [body, *(bpy.data.objects[f"Body{suffix}"] for suffix, _share in LEVELS)]:
        rigs.bind(thing, armature, names)
    bpy.context.view_layer.update()


def keep_highest() -> None:
    """Remove the lower levels, so that the peer's file holds the highest alone."""
    for suffix, _share in LEVELS:
        bpy.data.objects.remove(bpy.data.objects[f"Body{suffix}"])


def export_asset(path: Path) -> None:
    bpy.ops.export_scene.second_life_mesh(filepath=str(path), collection=models.COLLECTION_NAME)


def export_set(path: Path) -> None:
    bpy.ops.export_scene.second_life_upload(filepath=str(path), collection=models.COLLECTION_NAME, use_replace=True)


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
            meshes = [thing for thing in bpy.data.objects if thing.type == "MESH" and thing.vertex_groups]
            largest = max(len(thing.data.polygons) for thing in meshes)
            assert largest == models.grid_for(TRIANGLES).triangles, f"{largest} triangles"
            assert len(meshes) == levels, f"{len(meshes)} levels"
            assert all(thing.data.has_custom_normals for thing in meshes), "custom normals are missing"

        return check

    tasks = [
        Task("exact", lambda: import_ours(asset, use_weld=False), models.empty_file, expect(4)),
        Task("window", lambda: import_ours(asset), models.empty_file, expect(4)),
        Task("glTF", lambda: peers.import_gltf(gltf), models.empty_file, expect(1)),
    ]
    seconds = in_turns(tasks, rounds)
    name = f"import .llmesh, {TRIANGLES:,} triangles, rig, 4 LODs"
    return [
        ratio_row(f"{name} : glTF of the highest", "exact", "glTF", 0.65, seconds),
        ratio_row(f"{name}, welded : glTF of the highest", "window", "glTF", None, seconds),
    ]


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {"import": importing, "export": exporting}
