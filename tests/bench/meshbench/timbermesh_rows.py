"""What Timbermesh is measured by, each group in a process of its own.

Our files hold more than the peers': tangents always, where glTF's importer ignores its file's and PLY has none.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy

from . import models, peers
from .measure import Row, Task, in_turns, memory_of, ratio_row, reset_peak

EXACT = {"normals": "EXACT", "use_weld": False}
EDITABLE = {"normals": "EDITABLE", "use_weld": False}
WELDED = {"normals": "EXACT", "use_weld": True}

OPTIONS = f"""\
import, ours    {EXACT}, editable: {EDITABLE}, welded: {WELDED}
import, peers   import_scene.gltf and wm.ply_import with their defaults (no merging of vertices either)
export, ours    collection='{models.COLLECTION_NAME}', all else default
export, glTF    {peers.GLTF_EXPORT}
export, PLY     {peers.PLY_EXPORT}"""


def files(folder: Path, triangles: int) -> tuple[Path, Path, Path]:
    return tuple(folder / f"model-{triangles}{end}" for end in (".timbermesh", ".glb", ".ply"))  # type: ignore[return-value]


def import_ours(path: Path, **options: Any) -> None:
    bpy.ops.import_scene.timbermesh(filepath=str(path), **options)


def export_ours(path: Path) -> None:
    bpy.ops.export_scene.timbermesh(filepath=str(path), collection=models.COLLECTION_NAME)


def expect_model(triangles: int) -> Callable[[], None]:
    """Return a check that the whole model is there, with UVs, colours and custom normals."""

    def check() -> None:
        meshes = [obj.data for obj in bpy.data.objects if obj.type == "MESH"]
        assert sum(len(mesh.polygons) for mesh in meshes) == models.grid_for(triangles).triangles
        for mesh in meshes:
            assert mesh.uv_layers, "UVs are missing"
            assert mesh.color_attributes, "colours are missing"
            assert mesh.has_custom_normals, "custom normals are missing"

    return check


def importing(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports, after each peer's file was written by Blender's own exporter."""
    ours, gltf, ply = files(folder, triangles)
    models.empty_file()
    models.build(triangles)
    export_ours(ours)
    peers.export_gltf(gltf)
    peers.export_ply(ply)
    check = expect_model(triangles)

    def task(name: str, work: Callable[[], None]) -> Task:
        return Task(name, work, models.empty_file, check)

    tasks = [
        task("exact", lambda: import_ours(ours, **EXACT)),
        task("glTF", lambda: peers.import_gltf(gltf)),
        task("editable", lambda: import_ours(ours, **EDITABLE)),
        task("PLY", lambda: peers.import_ply(ply)),
        task("welded", lambda: import_ours(ours, **WELDED)),
    ]
    seconds = in_turns(tasks, rounds)
    return [
        ratio_row("import, exact normals : glTF", "exact", "glTF", 0.6, seconds),
        ratio_row("import, exact normals : PLY", "exact", "PLY", 0.85, seconds),
        ratio_row("import, editable normals : glTF", "editable", "glTF", 1.0, seconds),
        ratio_row("import, exact and welded : glTF", "welded", "glTF", None, seconds),
    ]


def exporting(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare exports of one scene, tangents in both files."""
    ours, gltf, _ = files(folder, triangles)
    models.empty_file()
    models.build(triangles)

    def task(name: str, path: Path, work: Callable[[Path], None]) -> Task:
        return Task(name, lambda: work(path), lambda: path.unlink(missing_ok=True), lambda: _expect_file(path))

    tasks = [task("ours", ours, export_ours), task("glTF", gltf, peers.export_gltf)]
    seconds = in_turns(tasks, rounds)
    return [ratio_row("export : glTF with tangents", "ours", "glTF", 0.6, seconds)]


def _expect_file(path: Path) -> None:
    assert path.stat().st_size > 1000, f"{path.name} was not written"


def growing(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Return raw medians of one size; ``growth.py`` fits the line through several."""
    path = files(folder, triangles)[0]
    models.empty_file()
    models.build(triangles)
    exported = in_turns([Task("export", lambda: export_ours(path))], rounds)["export"]
    task = Task("import", lambda: import_ours(path, **EXACT), models.empty_file, expect_model(triangles))
    imported = in_turns([task], rounds)["import"]
    return [
        Row("import", statistics.median(imported), None, data={"triangles": triangles}),
        Row("export", statistics.median(exported), None, data={"triangles": triangles}),
    ]


def memory(triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare the peak of resident memory above that before the import with the arrays of the file, decoded.

    Linux only: the kernel's high-water mark, reset just before. A tiny import goes first, so that loading libraries
    is not counted.
    """
    large, small = files(folder, triangles)[0], files(folder, 1000)[0]
    for path, size in ((small, 1000), (large, triangles)):
        if not path.exists():
            models.empty_file()
            models.build(size)
            export_ours(path)
    models.empty_file()
    import_ours(small, **EXACT)
    models.empty_file()
    gc.collect()
    before = reset_peak()
    import_ours(large, **EXACT)
    expect_model(triangles)()
    peak = memory_of("VmHWM") - before
    after = memory_of("VmRSS") - before
    decoded = decoded_bytes(large)  # only now: it would have had the C library keep memory at hand
    detail = (
        f"peak {peak / 2**20:.0f} MiB : arrays {decoded / 2**20:.0f} MiB ({after / 2**20:.0f} MiB stay with Blender)"
    )
    return [Row("import, peak memory : decoded arrays", peak / decoded, 4.0, detail, {"peak": peak, "arrays": decoded})]


def decoded_bytes(path: Path) -> int:
    """Return the bytes of all vertex layers and indices of a file, as stored: float32 values and int32 indices."""
    from meshferry.io_formats import registry

    model = registry.by_name("timbermesh").read(path.read_bytes())
    layers = sum(len(found.data) for node in model.nodes for found in node.properties)
    return layers + sum(mesh.indices.nbytes for node in model.nodes for mesh in node.meshes)


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {
    "import": importing,
    "export": exporting,
    "growth": growing,
    "memory": memory,
}
