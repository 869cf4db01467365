"""What Blender holds of real UNIGINE meshes is what the oracle reads in them.

A file that comes back as it was proves nothing about what stood in Blender meanwhile: a mistake made both ways would
not show. Here positions, triangles, UVs, normals, handedness, colours, weights and bones are looked at in Blender.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unigine_meaning as meaning
import unigine_oracle as oracle

pytestmark = pytest.mark.needs_bpy

NAMES = (
    *("ms10_box", "ms11_arms_40bones_anim1", "ms11_leaf_colors", "ms11_mixed_handed_u8_u16", "ms11_track_2surf_2uv"),
    *("ms12_colors_lownorm", "ms12_robot_12bones", "ms12_template_lm14", "ms13_cat_289bones", "ms13_colors_2uv"),
    *("ms13_cyrillic_name", "ms13_sign_3surf", "ms14_capsule_4bones", "ms14_viewcube_26surf", "ms15_material_ball"),
)


def imported(path: Path) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.api import read_scene

    options = import_options.ImportOptions.of({"use_weld": False, "normals": "EXACT"})
    made = importer.import_scene(import_options.ImportRequest(bpy.context, read_scene(path), options, str(path)))
    return next(obj for obj in made.objects if obj.type == "MESH")


def values(collection: Any, attribute: str, width: int, kind: Any = np.float32) -> np.ndarray:
    found = np.empty(len(collection) * width, kind)
    collection.foreach_get(attribute, found)
    return found.reshape(-1, width)


@pytest.mark.parametrize("name", NAMES)
def test_blender_holds_what_the_oracle_reads(name: str, samples: Path) -> None:
    path = samples / "unigine" / f"{name}.mesh"
    found, obj = oracle.decode(path.read_bytes()), imported(path)
    mesh, surfaces = obj.data, found.surfaces
    assert [slot.name for slot in obj.meshferry.surfaces] == [surface.name for surface in surfaces]
    positions = np.concatenate([surface.targets[0].positions for surface in surfaces])
    np.testing.assert_array_equal(values(mesh.vertices, "co", 3), positions)
    starts = np.cumsum([0] + [surface.vertex_count for surface in surfaces])
    triangles = [surface.c_indices.reshape(-1, 3) for surface in surfaces]
    kept = [np.array([len(set(row)) == 3 for row in rows.tolist()], bool) for rows in triangles]
    expected = np.concatenate([rows[good] + start for rows, good, start in zip(triangles, kept, starts, strict=False)])
    np.testing.assert_array_equal(values(mesh.loops, "vertex_index", 1, np.int32).reshape(-1, 3), expected)
    slots = np.repeat(np.arange(len(surfaces)), [int(good.sum()) for good in kept])
    np.testing.assert_array_equal(values(mesh.polygons, "material_index", 1, np.int32)[:, 0], slots)
    corners = [surface.t_indices.reshape(-1, 3)[good].reshape(-1) for surface, good in zip(surfaces, kept, strict=True)]
    same_uvs(mesh, surfaces, corners)
    same_colors(mesh, surfaces, corners)
    same_normals(mesh, found, corners, exact=not found.bones)
    same_weights(obj, found)
    if found.bones:
        same_bones(obj, found)


def same_uvs(mesh: Any, surfaces: list[oracle.Surface], corners: list[np.ndarray]) -> None:
    """UVs run up in Blender and down in the file."""
    for number in range(2):
        held = [(surface.uv0, surface.uv1)[number] for surface in surfaces]
        if all(uv is None for uv in held):
            assert f"UV{number}" not in mesh.uv_layers
            continue
        nothing = np.float32([[0, 1]])
        stored = [
            nothing[np.zeros(len(at), int)] if uv is None else uv[at] for uv, at in zip(held, corners, strict=True)
        ]
        wanted = np.concatenate(stored)
        shown = values(mesh.uv_layers[f"UV{number}"].uv, "vector", 2)
        np.testing.assert_array_equal(shown[:, 0], wanted[:, 0])
        np.testing.assert_allclose(shown[:, 1], 1 - wanted[:, 1].astype(float), rtol=1e-7, atol=6e-8)


def same_colors(mesh: Any, surfaces: list[oracle.Surface], corners: list[np.ndarray]) -> None:
    if all(surface.colors is None for surface in surfaces):
        assert not len(mesh.color_attributes)
        return
    (layer,) = mesh.color_attributes
    shown = np.rint(values(layer.data, "color_srgb", 4) * 255).astype(int)
    wanted = [
        np.full((len(at), 4), 255) if surface.colors is None else surface.colors[at]
        for surface, at in zip(surfaces, corners, strict=True)
    ]
    np.testing.assert_array_equal(shown, np.concatenate(wanted))


def same_normals(mesh: Any, found: oracle.File, corners: list[np.ndarray], *, exact: bool) -> None:
    """Normals at all corners but few, whose triangles have no area; the handedness where UV0 says the same."""
    frames = [meaning.tangent_frames(surface.targets[0].tangents, found.magic) for surface in found.surfaces]
    wanted = np.concatenate([normals[at] for (normals, _, _), at in zip(frames, corners, strict=True)])
    shown = values(mesh.corner_normals, "vector", 3)
    apart = np.abs(shown - wanted).max(axis=1)
    if exact:
        assert apart.max() < 1e-6
    else:
        assert np.mean(apart > 0.015) < 0.01
    if any(surface.uv0 is None for surface in found.surfaces):
        return
    handed = np.concatenate([signs[at] for (_, _, signs), at in zip(frames, corners, strict=True)])
    mesh.calc_tangents(uvmap="UV0")
    signs = values(mesh.loops, "bitangent_sign", 1)[:, 0]
    mesh.free_tangents()
    # The v axis is inverted, so the signs are too; the exceptions are on seams of mirrored UVs.
    assert np.mean(handed == -signs) > 0.88


def same_weights(obj: Any, found: oracle.File) -> None:
    names = [group.name for group in obj.vertex_groups]
    bones = [name for name, _ in found.bones]
    vertices = iter(obj.data.vertices)
    for surface in found.surfaces:
        for pairs in surface.weights or [[]] * surface.vertex_count:
            shown = {names[element.group]: element.weight for element in next(vertices).groups}
            wanted = {bones[bone]: weight / 65535 for bone, weight in pairs if weight}
            assert shown == pytest.approx(wanted, abs=1e-7)


def same_bones(obj: Any, found: oracle.File) -> None:
    """Heads stand where the chains of bind transforms end, and bones run along their Y axes."""
    armature = obj.find_armature()
    assert armature is not None
    for (name, parent), matrix in zip(found.bones, meaning.rest_matrices(found), strict=True):
        bone = armature.data.bones[name]
        assert (bone.parent.name if bone.parent else None) == (found.bones[parent][0] if parent >= 0 else None)
        size = max(1.0, float(np.abs(matrix[:3, 3]).max()))
        np.testing.assert_allclose(bone.head_local, matrix[:3, 3], rtol=0, atol=1e-5 * size)
        along = matrix[:3, 1] / np.linalg.norm(matrix[:3, 1])
        np.testing.assert_allclose(np.array(bone.matrix_local)[:3, 1], along, rtol=0, atol=1e-4)
