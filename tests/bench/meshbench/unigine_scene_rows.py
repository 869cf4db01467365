"""What imports of UNIGINE worlds are measured by, each group in a process of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import bpy
from meshferry.operators.importing import session_projects

from . import levels, models, peers, source_level
from .measure import Row, Task, in_turns, memory_of, ratio_row, reset_peak

OPTIONS = """\
import, ours    a world with 1,000 nodes of 50 meshes (5,000 triangles each), 50 materials, 100 textures (tx11, BC1 and
                BC5, 2048²); exact normals, all else default
import, glTF    the same scene as one .glb with PNG images of a similar size; import_scene.gltf with its defaults
sources         a world with 100 meshes (5,000 triangles each) that are made from FBX files, none of which was imported
                before; the same world with its runtimes; and these files alone by wm.fbx_import without animations"""


def import_ours(path: Path) -> None:
    bpy.ops.import_scene.unigine(filepath=str(path), normals="EXACT")


def importing(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports of the level."""
    world, gltf = levels.make(folder)
    tasks = [
        Task("ours", lambda: import_ours(world), models.empty_file, levels.count_places),
        Task("glTF", lambda: peers.import_gltf(gltf), models.empty_file, levels.count_places),
    ]
    seconds = in_turns(tasks, min(rounds, 3))
    return [ratio_row("import world, 1,000 places, 100 textures : glTF", "ours", "glTF", 0.5, seconds)]


def peer(_triangles: int, _rounds: int, folder: Path) -> list[Row]:
    """Measure the peak of resident memory of Blender's glTF import above that before, and note it."""
    gltf = levels.make(folder)[1]
    peak = _peak(lambda: peers.import_gltf(gltf))
    _note(folder).write_text(str(peak), "utf-8")
    return [Row("import glTF of the world, peak memory (MiB)", peak / 2**20, None)]


def memory(_triangles: int, _rounds: int, folder: Path) -> list[Row]:
    """Compare the same of our import with it."""
    world = levels.make(folder)[0]
    peak, other = _peak(lambda: import_ours(world)), int(_note(folder).read_text("utf-8"))
    detail = f"{peak / 2**20:.0f} MiB : {other / 2**20:.0f} MiB"
    return [Row("import world, peak memory : glTF", peak / other, 1.2, detail, {"peak": peak, "glTF": other})]


def _note(folder: Path) -> Path:
    return folder / "level" / "peak.txt"


def _peak(work: Callable[[], None]) -> int:
    models.empty_file()
    gc.collect()
    before = reset_peak()
    work()
    levels.count_places()
    return memory_of("VmHWM") - before


def _import_anew(world: Path) -> None:
    session_projects.session_projects.cache_clear()  # forgets the source files that were imported before
    import_ours(world)


def sources(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare a world whose meshes come from FBX files with what that consists of: its runtimes, and the files."""
    with_runtimes, without, files = source_level.make(folder)

    def import_files() -> None:
        for path in files:
            bpy.ops.wm.fbx_import(filepath=str(path), use_anim=False)

    tasks = [
        Task("FBX", lambda: _import_anew(without), models.empty_file, source_level.count_meshes),
        Task("runtimes", lambda: _import_anew(with_runtimes), models.empty_file, source_level.count_meshes),
        Task("files", import_files, models.empty_file, source_level.count_meshes),
    ]
    seconds = in_turns(tasks, rounds)
    seconds["parts"] = [sum(pair) for pair in zip(seconds["runtimes"], seconds["files"], strict=True)]
    return [ratio_row("import world of 100 FBX files : with runtimes + FBX alone", "FBX", "parts", 1.2, seconds)]


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {
    "import": importing,
    "peer": peer,
    "memory": memory,
    "sources": sources,
}
