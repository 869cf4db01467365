"""What UNIGINE files are measured by, each group in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy

from . import models, peers, rigs, unigine_projects
from .measure import Row, Task, in_turns, ratio_row

EXACT = {"normals": "EXACT"}
EDITABLE = {"normals": "EDITABLE"}
BONES = 60
DANCERS = 300
"""Bones of the measured animation."""
FRAMES = 1000

OPTIONS = f"""\
import, ours    {EXACT}, editable: {EDITABLE}; rigged meshes get editable normals, as they deform
import, glTF    import_scene.gltf with its defaults
export, ours    ms13 and an11, sk10 and an13, all else default
export, glTF    {peers.GLTF_EXPORT}
                animation alone: import and export of the armature, its action and a mesh of one triangle"""


SKINNED = {"mesh_version": "SK10"}
REFERRING = {"animation_version": "AN13", "skeleton": "0123456789abcdef0123456789abcdef01234567"}


def files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.mesh", folder / f"{name}.glb"


def import_ours(path: Path, **options: Any) -> None:
    bpy.ops.import_scene.unigine(filepath=str(path), **options)


def export_ours(path: Path, **options: Any) -> None:
    bpy.ops.export_scene.unigine_mesh(filepath=str(path), collection=models.COLLECTION_NAME, **options)


def export_animation(path: Path, **options: Any) -> None:
    bpy.ops.export_scene.unigine_anim(filepath=str(path), collection=models.COLLECTION_NAME, **options)


def build_static(triangles: int) -> None:
    models.empty_file()
    models.build(triangles, uv_maps=2, use_colors=False)


def build_rigged(triangles: int) -> None:
    build_static(triangles)
    obj = bpy.data.objects[models.OBJECT_NAME]
    rigs.bind(obj, rigs.build_armature(BONES))


def expect_model(triangles: int, *, weights: bool) -> Callable[[], None]:
    """Return a check that the whole model is there, with both UV maps, custom normals and weights where it has some."""

    def check() -> None:
        meshes = [obj for obj in bpy.data.objects if obj.type == "MESH" and obj.name != "Icosphere"]
        assert sum(len(obj.data.polygons) for obj in meshes) == models.grid_for(triangles).triangles
        for obj in meshes:
            assert len(obj.data.uv_layers) == 2, "UV maps are missing"
            assert obj.data.has_custom_normals, "custom normals are missing"
            if weights:
                assert len(obj.vertex_groups) == BONES, "vertex groups are missing"
                assert len(obj.data.vertices[7].groups) == rigs.WEIGHTS, "weights are missing"

    return check


def expect_file(path: Path) -> Callable[[], None]:
    def check() -> None:
        assert path.stat().st_size > 1000, f"{path.name} was not written"

    return check


def reading(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare decoding to checked arrays with copying the bytes."""
    from meshferry.io_formats import registry

    ours, _ = files(folder, f"static-{triangles}")
    build_static(triangles)
    export_ours(ours)
    data = ours.read_bytes()
    mesh = registry.by_name("unigine_mesh")
    tasks = [Task("read", lambda: mesh.read(data)), Task("copy", lambda: bytearray(data))]
    seconds = in_turns(tasks, max(rounds, 15))
    return [ratio_row(f"read ms13 ({len(data) / 2**20:.0f} MiB) : copy its bytes", "read", "copy", 1.0, seconds)]


def importing(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports of the model without bones."""
    ours, gltf = files(folder, f"static-{triangles}")
    build_static(triangles)
    export_ours(ours)
    peers.export_gltf(gltf)
    check = expect_model(triangles, weights=False)
    tasks = [
        Task("exact", lambda: import_ours(ours, **EXACT), models.empty_file, check),
        Task("glTF", lambda: peers.import_gltf(gltf), models.empty_file, check),
        Task("editable", lambda: import_ours(ours, **EDITABLE), models.empty_file, check),
    ]
    seconds = in_turns(tasks, rounds)
    return [
        ratio_row("import ms13, exact normals : glTF", "exact", "glTF", 0.6, seconds),
        ratio_row("import ms13, editable normals : glTF", "editable", "glTF", 1.0, seconds),
    ]


def exporting(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare exports of the model without bones."""
    build_static(triangles)
    return [_exports(triangles, rounds, folder, "static", "export ms13 : glTF with tangents")]


def rigged(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports and exports of the model with 60 bones and four weights a vertex."""
    ours, gltf = files(folder, f"rigged-{triangles}")
    skinned = ours.with_suffix(".mesh_skinned")
    build_rigged(triangles)
    name = "export {}, 60 bones, 4 weights : glTF with tangents"
    out = _exports(triangles, rounds, folder, "rigged", name.format("ms13"))
    new = _exports(triangles, rounds, folder, "rigged", name.format("sk10"), **SKINNED)
    check = expect_model(triangles, weights=True)
    tasks = [
        Task("ours", lambda: import_ours(ours), models.empty_file, check),
        Task("sk10", lambda: import_ours(skinned), models.empty_file, check),
        Task("glTF", lambda: peers.import_gltf(gltf), models.empty_file, check),
    ]
    seconds = in_turns(tasks, rounds)
    return [
        ratio_row("import ms13, 60 bones, 4 weights : glTF", "ours", "glTF", 0.65, seconds),
        ratio_row("import sk10, 60 bones, 4 weights : glTF", "sk10", "glTF", 0.65, seconds),
        out,
        new,
    ]


def _exports(triangles: int, rounds: int, folder: Path, kind: str, name: str, **options: str) -> Row:
    ours, gltf = files(folder, f"{kind}-{triangles}")
    path = ours.with_suffix(".mesh_skinned") if options else ours
    tasks = [
        Task("ours", lambda: export_ours(path, **options), lambda: path.unlink(missing_ok=True), expect_file(path)),
        Task("glTF", lambda: peers.export_gltf(gltf), lambda: gltf.unlink(missing_ok=True), expect_file(gltf)),
    ]
    return ratio_row(name, "ours", "glTF", 0.5, in_turns(tasks, rounds))


def animation(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare import and export of an animation of 300 bones and 1,000 frames."""
    ours, new, gltf = folder / "dance.anim", folder / "dance_13.anim", folder / "dance.glb"
    models.empty_file()
    obj = models.build(2, use_colors=False)
    armature = rigs.build_armature(DANCERS)
    rigs.bind(obj, armature)
    rigs.animate(armature, FRAMES)
    rounds = min(rounds, 3)  # the peer takes long
    out = [
        Task("ours", lambda: export_animation(ours), lambda: ours.unlink(missing_ok=True), expect_file(ours)),
        Task("an13", lambda: export_animation(new, **REFERRING), lambda: new.unlink(missing_ok=True), expect_file(new)),
        Task("glTF", lambda: peers.export_gltf(gltf), lambda: gltf.unlink(missing_ok=True), expect_file(gltf)),
    ]
    exported = in_turns(out, rounds)

    def expect_action() -> None:
        action = bpy.data.actions[0]
        start, end = action.frame_range
        assert end - start + 1 == FRAMES, "frames are missing"
        assert max(len(obj.pose.bones) for obj in bpy.data.objects if obj.pose) == DANCERS, "bones are missing"

    into = [
        Task("ours", lambda: import_ours(ours), models.empty_file, expect_action),
        Task("an13", lambda: import_ours(new), models.empty_file, expect_action),
        Task("glTF", lambda: peers.import_gltf(gltf), models.empty_file, expect_action),
    ]
    imported = in_turns(into, rounds)
    return [
        ratio_row("import an11, 300 bones, 1,000 frames : glTF", "ours", "glTF", 0.5, imported),
        ratio_row("import an13, 300 bones, 1,000 frames : glTF", "an13", "glTF", 0.5, imported),
        ratio_row("export an13, keys as they stand (no sampling) : glTF", "an13", "glTF", 0.3, exported),
        ratio_row("export an11, keys as they stand (no sampling) : glTF", "ours", "glTF", 0.3, exported),
    ]


def project(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare listing a project with listing its folder."""
    mesh = Path(__file__).resolve().parents[3] / "examples" / "lamp.mesh"
    return unigine_projects.rows(rounds, folder, mesh)


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {
    "read": reading,
    "import": importing,
    "export": exporting,
    "rigged": rigged,
    "animation": animation,
    "project": project,
}
