"""What imports of Collada files are measured by, each group in a process of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from . import collada_files, models, peers
from .measure import Row, Task, in_turns, memory_of, ratio_row, reset_peak

_LIMITS = (("static", 100_000, 2.5), ("static", 500_000, 2.5), ("rigged", 100_000, 3.0))
"""Kind, triangles, and limit of the ratio to Blender's importer, which is written in C++."""
_MOST_MEMORY = 6.0
_NO_PEER = f"not run: Blender {bpy.app.version_string} has no Collada importer; use 4.5 or an earlier one"

OPTIONS = f"""\
import, ours    import_scene.second_life with its defaults; Z up, metres, normals, one UV map, one material
import, Blender wm.collada_import with its defaults; the same file
rigged          {collada_files.JOINTS} joints of the avatar, four weights a vertex"""


def make(folder: Path, kind: str, triangles: int) -> Path:
    """Return the path of a file of a kind, which is written if it is missing."""
    path = folder / f"{kind}-{triangles}.dae"
    if not path.exists():
        (collada_files.write_rigged if kind == "rigged" else collada_files.write_static)(path, triangles)
    return path


def import_ours(path: Path) -> None:
    bpy.ops.import_scene.second_life(filepath=str(path))


def expect_model(kind: str, triangles: int) -> Callable[[], None]:
    """Return a check that the whole model is there, with UVs and the weights of a rigged one."""

    def check() -> None:
        (obj,) = (obj for obj in bpy.data.objects if obj.type == "MESH")
        assert len(obj.data.polygons) == models.grid_for(triangles).triangles
        assert obj.data.uv_layers, "UVs are missing"
        assert obj.data.materials, "materials are missing"
        if kind == "rigged":
            assert all(len(vertex.groups) == 4 for vertex in obj.data.vertices[:100]), "weights are missing"
            assert any(modifier.type == "ARMATURE" for modifier in obj.modifiers), "the armature is missing"

    return check


def importing(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports of the same files."""
    return [_compared(kind, triangles, limit, rounds, folder) for kind, triangles, limit in _LIMITS]


def _compared(kind: str, triangles: int, limit: float, rounds: int, folder: Path) -> Row:
    name = f"import .dae, {kind}, {triangles:,} triangles : Blender"
    if not peers.has_collada():
        return Row(name, None, limit, _NO_PEER)
    path, check = make(folder, kind, triangles), expect_model(kind, triangles)
    tasks = [
        Task("ours", lambda: import_ours(path), models.empty_file, check),
        Task("Blender", lambda: peers.import_collada(path), models.empty_file, check),
    ]
    return ratio_row(name, "ours", "Blender", limit, in_turns(tasks, rounds))


def memory(_triangles: int, _rounds: int, folder: Path) -> list[Row]:
    """Compare the peak of memory of the largest static file."""
    return [_peak("static", 500_000, folder)]


def memory_rigged(_triangles: int, _rounds: int, folder: Path) -> list[Row]:
    """Compare that of the rigged file, in a process of its own: the C library keeps memory of an earlier import."""
    return [_peak("rigged", 100_000, folder)]


def _peak(kind: str, triangles: int, folder: Path) -> Row:
    """Compare the peak of resident memory above that before the import with the decoded arrays (Linux only).

    A tiny import goes first, so that loading libraries is not counted. The group "import" has written the files:
    after writing a large one here, the C library would keep more memory at hand.
    """
    small, large = make(folder, kind, 1000), make(folder, kind, triangles)
    models.empty_file()
    import_ours(small)
    models.empty_file()
    gc.collect()
    before = reset_peak()
    import_ours(large)
    peak = memory_of("VmHWM") - before
    expect_model(kind, triangles)()
    decoded = decoded_bytes(large)
    detail = (
        f"peak {peak / 2**20:.0f} MiB : arrays {decoded / 2**20:.0f} MiB, file {large.stat().st_size / 2**20:.0f} MiB"
    )
    name = f"import .dae, {kind}, {triangles:,} triangles, peak memory : arrays"
    return Row(name, peak / decoded, _MOST_MEMORY, detail, {"peak": peak, "arrays": decoded})


def decoded_bytes(path: Path) -> int:
    """Return the bytes of all arrays of a file, decoded; shared arrays count once."""
    from meshferry.io_formats import registry

    found: dict[int, int] = {}
    _add_arrays(registry.by_name("second_life_collada").read(path.read_bytes()), found)
    return sum(found.values())


def _add_arrays(value: Any, found: dict[int, int]) -> None:
    if isinstance(value, np.ndarray):
        found[id(value)] = value.nbytes
    elif is_dataclass(value):
        for field in fields(value):
            _add_arrays(getattr(value, field.name), found)
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            _add_arrays(inner, found)


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {
    "import": importing,
    "memory": memory,
    "memory_rigged": memory_rigged,
}
