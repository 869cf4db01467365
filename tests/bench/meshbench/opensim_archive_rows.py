"""What imports of OpenSim regions are measured by, each group in a process of its own."""

from __future__ import annotations

import gc
import gzip
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

import bpy
import numpy as np
from meshferry.blender_data.image_decoding import decode
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshfuzz import opensim_archive_seeds as made

from . import models, peers
from .measure import Row, Task, in_turns, memory_of, ratio_row, reset_peak

OBJECTS, MESHES, MATERIALS, TRIANGLES, SIDE = 1000, 400, 300, 5000, 512
PRIMS, SCULPTS = 1000, 100
UNPLACED = 400_000_000
"""Bytes of assets that no object names; random, so that they do not shrink."""
_ASSET = 4_000_000

OPTIONS = f"""\
import, ours    a region of {OBJECTS:,} objects of {MESHES} meshes ({TRIANGLES:,} triangles, four levels of detail),
                {MATERIALS} materials, each with a picture of {SIDE}² pixels, packed and not read; all default but
                exact vertices and normals, as pipelines import (use_weld off)
import, glTF    the same scene as one .glb, with the images as Blender's exporter writes them (PNG);
                import_scene.gltf with its defaults
unplaced        the same region with {UNPLACED // 10**6} MB of assets that no object names, against the region alone;
                and inflating the file twice, since an archive is read in two passes
prims           {PRIMS:,} different prims; {SCULPTS} sculpts with maps of 64², which the peer decodes as well, since its
                file has finished meshes; the ground of a region alone"""


def _import(path: Path, *, use_weld: bool = False, has_ground: bool = True) -> None:
    options = {"use_weld": use_weld, "use_ground": has_ground, "use_water": has_ground}
    bpy.ops.import_scene.second_life(filepath=str(path), normals="EXACT", **options)


def _region(path: Path, objects: Iterable[bytes], assets: dict[str, bytes]) -> Path:
    """Write an archive unless it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        files = {f"objects/{number:05}.xml": data for number, data in enumerate(objects)}
        path.write_bytes(made.packed(("archive.xml", made.control()), *files.items(), *assets.items()))
    return path


def _placed(number: int, shape: str, entry: bytes = b"") -> bytes:
    position = (number % 32 * 8 + 4, number // 32 * 8 + 4, 25)
    return made.linkset(made.part(f"object {number}", position=position, size=(2, 3, 4), shape=shape, entry=entry))


def _mesh_asset(number: int) -> bytes:
    """Return a mesh asset with four levels of detail: a bent grid, another one for each number."""
    levels = [_grid(number, round((TRIANGLES / 2 / 4**lod) ** 0.5)) for lod in range(4)]
    nodes = [Node(f"grid_{lod}", mesh=mesh, lod=lod, lod_of=0 if lod else None) for lod, mesh in enumerate(levels)]
    return SECOND_LIFE_MESH.write(SECOND_LIFE_MESH.from_scene(Scene("grid", nodes)))


def _grid(number: int, side: int) -> Mesh:
    u, v = (values.reshape(-1) for values in np.mgrid[: side + 1, : side + 1] / side)
    heights = 0.5 * np.sin(6 * u + number) * np.cos(5 * v)
    points = np.stack((u - 0.5, v - 0.5, heights), axis=1).astype(np.float32)
    first = (np.arange(side) + (side + 1) * np.arange(side)[:, None]).reshape(-1, 1)
    corners = (first + np.array((0, side + 1, side + 2, 0, side + 2, 1))).astype(np.int32).reshape(-1)
    normals = np.tile(np.array([(0, 0, 1)], np.float32), (len(points), 1))
    uvs = Layer("UVMap", np.stack((u, v), axis=1).astype(np.float32))
    materials = np.zeros(len(corners) // 3, np.int32)
    return Mesh(points, corners, materials, ["face"], normal=Layer("normal", normals), uvs=[uvs])


def _picture(side: int) -> bytes:
    """Return a JPEG 2000 stream, encoded by Blender."""
    image = bpy.data.images.new("noise", side, side)
    pixels = np.tile(np.linspace(0, 1, side, dtype=np.float32)[:, None, None], (1, side, 4))
    noisy = side * 9 // 20  # a PNG image of it then has 1.3 bytes a pixel, as images of real materials
    pixels[:noisy] = np.random.default_rng(side).random((noisy, side, 4), np.float32)
    pixels[..., 3] = 1
    image.pixels.foreach_set(pixels.reshape(-1))
    settings = bpy.context.scene.render.image_settings
    settings.file_format, settings.jpeg2k_codec, settings.quality, settings.color_mode = "JPEG2000", "J2K", 50, "RGB"
    path = Path(bpy.app.tempdir) / "noise.j2c"
    image.save_render(str(path))
    return path.read_bytes()


def _whole_region(folder: Path) -> Path:
    path = folder / "region" / "region.oar"
    if path.exists():
        return path
    models.empty_file()
    picture = _picture(SIDE)
    ids = [made.identity(1000 + number) for number in range(MESHES + MATERIALS)]
    assets = {f"assets/{uuid}_mesh.llmesh": _mesh_asset(number) for number, uuid in enumerate(ids[:MESHES])}
    assets |= {f"assets/{uuid}_texture.jp2": picture for uuid in ids[MESHES:]}
    objects = []
    for number in range(OBJECTS):
        texture = bytes.fromhex(ids[MESHES + number % MESHES % MATERIALS].replace("-", ""))
        entry = made.entry([(1, texture)])
        objects.append(_placed(number, made.sculpt(5, ids[number % MESHES]), entry))
    return _region(path, objects, assets)


def _as_gltf(path: Path) -> Path:
    """Export what an archive becomes in Blender as .glb, unless it is there."""
    gltf = path.with_suffix(".glb")
    if not gltf.exists():
        models.empty_file()
        _import(path, has_ground=False)
        peers.export_gltf(gltf, export_tangents=False)
    return gltf


def _count(objects: int) -> Callable[[], None]:
    def check() -> None:
        assert sum(obj.type == "MESH" for obj in bpy.data.objects) >= objects

    return check


def _compared(
    name: str, path: Path, objects: int, limit: float | None, rounds: int, maps: Iterable[bytes] = ()
) -> list[Row]:
    """Compare our import of an archive, with and without welded vertices, with that of the same scene as glTF.

    The peer also decodes ``maps``, images of which the archive's meshes are made.
    """
    gltf = _as_gltf(path)

    def import_gltf() -> None:
        peers.import_gltf(gltf)
        for number, content in enumerate(maps):
            decode(content, str(number))

    tasks = [
        Task("ours", lambda: _import(path, has_ground=False), models.empty_file, _count(objects)),
        Task("welded", lambda: _import(path, use_weld=True, has_ground=False), models.empty_file, _count(objects)),
        Task("glTF", import_gltf, models.empty_file, _count(objects)),
    ]
    seconds = in_turns(tasks, min(rounds, 3))
    return [
        ratio_row(f"{name} : glTF", "ours", "glTF", limit, seconds),
        ratio_row(f"{name}, welded : glTF", "welded", "glTF", None, seconds),
    ]


def importing(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports of the region."""
    name = f"import region, {OBJECTS:,} objects, {MATERIALS} materials"
    return _compared(name, _whole_region(folder), OBJECTS, 0.6, rounds)


def unplaced(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Measure what assets cost that no object names."""
    alone = _whole_region(folder)
    path = folder / "region" / "unplaced.oar"
    if not path.exists():
        content = gzip.decompress(alone.read_bytes()).rstrip(b"\0")
        content += bytes(-len(content) % 512)
        names = [f"assets/{made.identity(10_000 + number)}_mesh.llmesh" for number in range(UNPLACED // _ASSET)]
        tail = b"".join(made.v7_entry(name.encode(), os.urandom(_ASSET)) for name in names)
        path.write_bytes(gzip.compress(content + tail + bytes(1024), 1))

    def inflate() -> None:
        for _ in range(2):
            with gzip.open(path) as stream:
                while stream.read(2**20):
                    pass

    tasks = [
        Task("with", lambda: _import(path), models.empty_file, _count(OBJECTS)),
        Task("alone", lambda: _import(alone), models.empty_file, _count(OBJECTS)),
        Task("inflate", inflate),
    ]
    seconds = in_turns(tasks, min(rounds, 3))
    added = median(seconds["with"]) - median(seconds["alone"])
    peaks = [_peak(each) for each in (alone, path)]
    detail = f"{added:.3f} s : {median(seconds['inflate']):.3f} s"
    return [
        Row(
            f"{UNPLACED // 10**6} MB of unplaced assets : inflating them",
            added / median(seconds["inflate"]),
            1.1,
            detail,
        ),
        Row(f"{UNPLACED // 10**6} MB of unplaced assets, peak memory (MiB)", (peaks[1] - peaks[0]) / 2**20, 20.0),
    ]


def _peak(path: Path) -> int:
    models.empty_file()
    gc.collect()
    before = reset_peak()
    _import(path)
    return memory_of("VmHWM") - before


def shapes(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare imports of prims and of sculpts, and measure the ground."""
    prims = _region(folder / "region" / "prims.oar", [_placed(n, _prim(n)) for n in range(PRIMS)], {})
    models.empty_file()
    ids = [made.identity(20_000 + number) for number in range(SCULPTS)]
    assets = dict.fromkeys((f"assets/{uuid}_texture.jp2" for uuid in ids), _picture(64))
    placed = [_placed(n, made.sculpt(1 + n % 4, uuid)) for n, uuid in enumerate(ids)]
    sculpts = _region(folder / "region" / "sculpts.oar", placed, assets)
    return [
        *_compared(f"import region of {PRIMS:,} different prims", prims, PRIMS, None, rounds),
        *_compared(f"import region of {SCULPTS} sculpts", sculpts, SCULPTS, None, rounds, assets.values()),
        _ground(folder / "region" / "ground.oar", rounds),
    ]


def _prim(number: int) -> str:
    """Return one of the usual prims with a cut, twist, hollow and taper of its own."""
    profile, path = ((1, 16), (0, 16), (3, 16), (5, 32), (0, 32))[number % 5]
    values = {
        "ProfileCurve": profile,
        "PathCurve": path,
        "PathScaleX": 100,
        "PathScaleY": 100 if path == 16 else 150,
        "ProfileHollow": number % 7 * 5000,
        "PathTwist": number % 11 * 9,
        "ProfileBegin": number % 13 * 1000 + number,
    }
    return "".join(f"<{name}>{value}</{name}>" for name, value in values.items())


def _ground(path: Path, rounds: int) -> Row:
    heights = np.random.default_rng(1).random((256, 256), np.float32) * 20 + 15
    path.write_bytes(
        made.packed(
            ("archive.xml", made.control()),
            ("settings/region.xml", made.SETTINGS),
            ("terrains/region.r32", heights.astype("<f4").tobytes()),
        )
    )
    seconds = []
    for _ in range(max(rounds, 3)):
        models.empty_file()
        started = time.perf_counter()
        _import(path)
        seconds.append(time.perf_counter() - started)
    assert len(bpy.data.meshes) == 2
    return Row("import of the ground of a region (s)", median(seconds), 0.3)


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {"import": importing, "unplaced": unplaced, "shapes": shapes}
