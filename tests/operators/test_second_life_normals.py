"""Exports write the file's normals, which Blender's editable ones miss, wherever a mesh was not edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_life_oracle

pytestmark = pytest.mark.needs_bpy

LEAVES = "leaves.llmesh"
COUNT = 60


def write_leaves(path: Path) -> Path:
    """Write an asset of folded triangles without thickness: both sides share their vertices and normals."""
    from meshferry.io_formats.core import scene as sc
    from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH

    rng = np.random.default_rng(4)
    corners = rng.uniform(-0.02, 0.02, (COUNT, 3, 3)) + rng.uniform(-0.4, 0.4, (COUNT, 1, 3))
    outside = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outside /= np.linalg.norm(outside, axis=1, keepdims=True)
    tilted = (outside[:, None] + rng.uniform(-0.4, 0.4, (COUNT, 3, 3))).reshape(-1, 3)
    side = corners.reshape(-1, 3)
    outside = tilted / np.linalg.norm(tilted, axis=1, keepdims=True)
    front = np.arange(3 * COUNT).reshape(-1, 3)
    triangles = np.concatenate((front, front[:, [0, 2, 1]]))
    mesh = sc.Mesh(
        side.astype(np.float32),
        triangles.reshape(-1).astype(np.int32),
        np.zeros(len(triangles), np.int32),
        ["Leaf"],
        normal=sc.Layer("normal", outside.astype(np.float32)),
        uvs=[sc.Layer("UVMap", side[:, :2].astype(np.float32) + 0.5)],
    )
    nodes = [sc.Node("leaves", mesh=mesh, lod=level, lod_of=0 if level else None) for level in range(4)]
    path.write_bytes(SECOND_LIFE_MESH.write(SECOND_LIFE_MESH.from_scene(sc.Scene("leaves", nodes))))
    return path


def imported(bpy: Any, path: Path) -> Any:
    assert bpy.ops.import_scene.second_life(filepath=str(path), normals="EDITABLE") == {"FINISHED"}
    return bpy.context.object


def exported(bpy: Any, path: Path, *, as_imported: bool = True) -> second_life_oracle.Asset:
    options = {"scope": "SELECTION", "use_as_imported": as_imported}
    assert bpy.ops.export_scene.second_life_mesh(filepath=str(path), **options) == {"FINISHED"}
    return second_life_oracle.decode(path.read_bytes())


def steps_apart(before: Any, after: Any, levels: tuple[str, ...] = ()) -> Any:
    """Return the largest difference of each vertex's normal in some levels or all, in steps of 1/65535, (V,).

    Vertices belong together by position and UV; of several, the nearest normal counts.
    """
    found: list[int] = []
    for level in levels or before.levels:
        for mine, theirs in zip(before.levels[level], after.levels[level], strict=True):
            if mine.no_geometry:
                continue
            normals: dict[bytes, list[Any]] = {}
            for key, normal in zip(keys_of(theirs), theirs.stored_normals.astype(int), strict=True):
                normals.setdefault(key, []).append(normal)
            for key, normal in zip(keys_of(mine), mine.stored_normals.astype(int), strict=True):
                found.append(min(int(np.abs(normal - other).max()) for other in normals[key]))
    return np.array(found)


def keys_of(face: Any) -> list[bytes]:
    uvs = face.stored_uvs if face.stored_uvs is not None else np.zeros((len(face.stored), 2), np.uint16)
    return [row.tobytes() for row in np.hstack((face.stored, uvs))]


def samples_of(folder: Path) -> list[Path]:
    found = (folder / "secondlife").rglob("*.*mesh")
    return sorted(path for path in found if path.suffix in {".mesh", ".llmesh"})


@pytest.mark.slow
def test_normals_of_all_samples_are_kept(clean_blender: Any, samples: Path, tmp_path: Path) -> None:
    bpy = clean_blender
    checked = samples_of(samples)
    assert len(checked) > 20
    for path in checked:
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        bpy.ops.import_scene.second_life(filepath=str(path))
        after = exported(bpy, tmp_path / "after.llmesh")
        assert steps_apart(second_life_oracle.decode(path.read_bytes()), after).max() <= 1, path.name


def test_normals_of_leaves_are_kept_also_in_a_saved_file(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    given = write_leaves(tmp_path / LEAVES)
    before = second_life_oracle.decode(given.read_bytes())
    obj = imported(bpy, given)
    assert len(obj.data.vertices) == 3 * COUNT
    assert steps_apart(before, exported(bpy, tmp_path / "after.llmesh")).max() <= 1
    obj.data.attributes.remove(obj.data.attributes["imported_normal"])
    assert steps_apart(before, exported(bpy, tmp_path / "blender.llmesh")).max() > 5000, "Blender's own"
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    imported(bpy, given)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "leaves.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "leaves.blend"))
    assert steps_apart(before, exported(bpy, tmp_path / "again.llmesh")).max() <= 1


def test_normals_of_a_file_are_kept_in_other_exports(clean_blender: Any, tmp_path: Path) -> None:
    """The box changes, and so do positions and UVs; a vertex per file's vertex shows that none was split by normals."""
    bpy = clean_blender
    given = write_leaves(tmp_path / LEAVES)
    imported(bpy, given)
    (after,) = exported(bpy, tmp_path / "after.llmesh", as_imported=False).levels["high_lod"]
    (before,) = second_life_oracle.decode(given.read_bytes()).levels["high_lod"]
    assert len(after.stored) == len(before.stored)
    order = [np.lexsort(face.positions.round(3).T) for face in (before, after)]
    apart = after.stored_normals[order[1]].astype(int) - before.stored_normals[order[0]]
    assert np.abs(apart).max() <= 1


def mark_edges_sharp(bpy: Any, obj: Any) -> None:
    sharp = obj.data.attributes.get("sharp_edge") or obj.data.attributes.new("sharp_edge", "BOOLEAN", "EDGE")
    sharp.data.foreach_set("value", [True] * len(obj.data.edges))
    obj.data.update()


def flip(bpy: Any, obj: Any) -> None:
    obj.data.flip_normals()


def reset(bpy: Any, obj: Any) -> None:
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.normals_tools(mode="RESET")
    bpy.ops.object.mode_set(mode="OBJECT")


def shade_flat(bpy: Any, obj: Any) -> None:
    obj.data.shade_flat()


def point_up(bpy: Any, obj: Any) -> None:
    obj.data.normals_split_custom_set([(0.0, 0.6, 0.8)] * len(obj.data.loops))


@pytest.mark.parametrize("edit", [mark_edges_sharp, flip, reset, shade_flat, point_up])
def test_normals_of_an_edited_mesh_are_those_that_blender_shows(
    clean_blender: Any, tmp_path: Path, edit: Callable[[Any, Any], None]
) -> None:
    bpy = clean_blender
    given = write_leaves(tmp_path / LEAVES)
    obj = imported(bpy, given)
    edit(bpy, obj)
    after = exported(bpy, tmp_path / "edited.llmesh")
    obj.data.attributes.remove(obj.data.attributes["imported_normal"])
    plain = exported(bpy, tmp_path / "plain.llmesh")
    assert steps_apart(plain, after, ("high_lod",)).max() == 0
    assert steps_apart(plain, second_life_oracle.decode(given.read_bytes()), ("high_lod",)).max() > 5000


def test_normals_of_what_was_not_edited_are_kept(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    given = write_leaves(tmp_path / LEAVES)
    obj = imported(bpy, given)
    obj.data.vertices[0].co.z += 0.3
    obj.data.update()
    (after,) = exported(bpy, tmp_path / "edited.llmesh").levels["high_lod"]
    (before,) = second_life_oracle.decode(given.read_bytes()).levels["high_lod"]
    apart = np.abs(after.stored_normals.astype(int) - before.stored_normals).max(axis=1)
    assert apart[0] > 5000 and apart[3:].max() <= 1


def test_exact_normals_need_no_copy(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    bpy.ops.import_scene.second_life(filepath=str(write_leaves(tmp_path / LEAVES)), normals="EXACT")
    assert "imported_normal" not in bpy.context.object.data.attributes
