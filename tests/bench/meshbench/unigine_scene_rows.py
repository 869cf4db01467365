"""What imports of UNIGINE worlds are measured by, each group in a process of its own."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import bpy
import numpy as np
from meshferry.blender_data.exporting.placements.placement_patch import plan_patch
from meshferry.blender_data.steps import finish
from meshferry.io_formats.core.placement import NodeEdit
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE
from meshferry.operators.files import session_projects

from . import levels, models, peers, source_level
from .measure import Row, Task, in_turns, memory_of, ratio_row, reset_peak

OPTIONS = """\
import, ours    a world with 1,000 nodes of 50 meshes (5,000 triangles each), 50 materials, 100 textures (tx11, BC1 and
                BC5, 2048²); exact normals, all else default
import, glTF    the same scene as one .glb with PNG images of a similar size; import_scene.gltf with its defaults
sources         a world with 100 meshes (5,000 triangles each) that are made from FBX files, none of which was imported
                before; the same world with its runtimes; and these files alone by wm.fbx_import without animations
patch           one moved node of a world with 10,000 nodes, against parsing the world by xml.etree and writing it;
                and the time of Blender's side: reading, comparing and verifying"""


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
    return [ratio_row("import world, 1,000 places, 100 textures : glTF", "ours", "glTF", 0.55, seconds)]


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


def patching(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare the patch of one node with parsing and writing the whole file, and measure a whole export."""
    path = folder / "data" / "large.world"
    (path.parent / ".runtimes").mkdir(parents=True, exist_ok=True)
    path.write_bytes(data := _large_world(10_000))
    place = np.identity(4)
    place[0, 3] = 5
    edits = [NodeEdit("500", "node", matrix=place)]
    tasks = [
        Task("patch", lambda: UNIGINE_SCENE.patch(data, edits)),
        Task("etree", lambda: ET.tostring(ET.fromstring(data))),
    ]
    seconds = in_turns(tasks, max(rounds, 3))
    models.empty_file()
    bpy.ops.import_scene.unigine(filepath=str(path))
    bpy.data.objects["node500"].location.z = 1
    (collection,) = (one for one in bpy.data.collections if one.meshferry.from_file)
    start = time.perf_counter()
    finish(plan_patch(collection, Projects()))
    return [
        ratio_row("patch one of 10,000 nodes : parse and write by xml.etree", "patch", "etree", 3.0, seconds),
        Row("export of one moved object of 10,000, all of it (s)", time.perf_counter() - start, None),
    ]


def _large_world(count: int) -> bytes:
    surface = f'\t\t\t<surface name="s" intersection="1" material="{"6" * 40}"/>\n'
    nodes = (
        f'\t\t<node type="ObjectMeshStatic" id="{number + 1}" name="node{number + 1}">\n'
        f"\t\t\t<mesh_name>guid://{'0' * 40}</mesh_name>\n{surface * 3}"
        f"\t\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 {number} 3 0.30000001 1.0</transform>\n\t\t</node>\n"
        for number in range(count)
    )
    head = '<?xml version="1.0" encoding="utf-8"?>\n<world version="2.19.0.3">\n\t<editor>\n'
    return f"{head}{''.join(nodes)}\t</editor>\n</world>\n".encode()


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
    "patch": patching,
}
