"""Real UNIGINE meshes: counted as the samples' README counts them, byte for byte back, damaged ones refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from meshferry.io_formats.unigine.mesh import file_layouts
from meshferry.io_formats.unigine.mesh.document import MeshFile
from meshferry.io_formats.unigine.mesh.format import BLOCK_VERSIONS, UNIGINE_MESH
from python_steps import python_steps

ROW = re.compile(r"^\| (\w+\.mesh) \| (\w+) \| (\d+) \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)
COUNTED = re.compile(r"(bones|surfaces|vertices|triangle vertices|triangles|UV0|UV1|colours|max weights) (\d+)")


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "unigine"


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[tuple[str, str, int, str, str]]:
    found = ROW.findall((folder / "README.md").read_text("utf-8"))
    assert len(found) == 32
    return [(name, magic, int(size), facts, shows) for name, magic, size, facts, shows in found]


def counted(document: MeshFile) -> dict[str, int]:
    if document.soup:
        vertices = sum(len(soup.vertices) for soup in document.soup)
        return {"surfaces": len(document.soup), "vertices": vertices, "triangles": vertices // 3}
    surfaces = document.surfaces
    counts = {
        "bones": len(document.bones),
        "surfaces": len(surfaces),
        "vertices": sum(len(surface.targets[0].positions) for surface in surfaces),
        "triangle vertices": sum(len(surface.targets[0].tangents) for surface in surfaces),
        "triangles": sum(len(surface.c_indices) // 3 for surface in surfaces),
        "UV0": sum(surface.uv0 is not None for surface in surfaces),
        "UV1": sum(surface.uv1 is not None for surface in surfaces),
        "colours": sum(surface.colors is not None for surface in surfaces),
    }
    weighted = [int(surface.weights.counts.max()) for surface in surfaces if surface.weights is not None]
    if weighted:
        counts["max weights"] = max(weighted)
    return counts


def test_every_file_holds_what_the_readme_says(folder: Path, rows: list[tuple[str, str, int, str, str]]) -> None:
    for name, magic, size, facts, _ in rows:
        data = (folder / name).read_bytes()
        assert len(data) == size
        document = UNIGINE_MESH.read(data)
        assert document.version == magic
        assert counted(document) == {what: int(number) for what, number in COUNTED.findall(facts)}, name
        embedded = re.search(r"embedded: (\S+) (\d+) frames flag (0x\w+)", facts)
        found = [(a.name, str(a.frames.frame_count), f"{a.frames.mask:#04x}") for a in document.animations]
        assert found == ([embedded.groups()] if embedded else []), name


def test_single_facts_of_the_readme(folder: Path) -> None:
    def read(name: str) -> MeshFile:
        document: MeshFile = UNIGINE_MESH.read((folder / f"{name}.mesh").read_bytes())
        return document

    def lightmaps(name: str) -> set[tuple[int, int]]:
        return {(surface.lightmap_channel, surface.lightmap_resolution) for surface in read(name).surfaces}

    assert lightmaps("ms12_box_lm00") == {(0, 0)}
    assert lightmaps("ms12_lights_2surf_2uv") == {(1, 3)}
    assert lightmaps("ms12_template_lm14") == {(1, 4)}
    assert set(read("ms10_box").surfaces[0].targets[0].tangents[:, 3].tolist()) == {-127}
    signs = np.sign(read("ms11_mixed_handed_u8_u16").surfaces[0].targets[0].tangents[:, 3])
    assert set(signs.tolist()) == {-1, 1}
    for name, c_size, t_size in (("ms11_mixed_handed_u8_u16", 1, 2), ("ms13_int32_indices", 2, 4)):
        surface = read(name).surfaces[0]
        assert (surface.c_indices.itemsize, surface.t_indices.itemsize) == (c_size, t_size)
    assert read("ms12_empty").bounds.tolist() == [1e9] * 3 + [-1e9] * 3 + [0, 0, 0, -1]
    parents = [bone.parent for bone in read("ms11_arms_40bones_anim1").bones]
    assert parents.count(-1) == 2
    assert any(parent > number for number, parent in enumerate(parents))
    assert [bone.parent for bone in read("ms12_hand_63bones").bones].count(-1) == 3
    assert [bone.parent for bone in read("ms13_cat_289bones").bones].count(-1) == 10
    scales = read("ms11_agent_54bones_scaled").transforms[:, 7:]
    assert (round(float(scales.min()), 3), round(float(scales.max()), 1)) == (0.104, 39.4)
    capsule = read("ms14_capsule_4bones").surfaces[0].weights
    assert capsule is not None
    assert (capsule.values == 0).any()
    assert not read("ms13_cyrillic_name").surfaces[0].name.isascii()
    for surface in read("ms13_sign_3surf").surfaces:
        assert re.search("[а-яА-Я]", surface.name)


def test_every_file_comes_back_as_it_was(folder: Path, rows: list[tuple[str, str, int, str, str]]) -> None:
    for name, magic, _, _, _ in rows:
        data = (folder / name).read_bytes()
        written = UNIGINE_MESH.write(UNIGINE_MESH.read(data))
        if magic not in BLOCK_VERSIONS:
            assert written == data, name
            continue
        # The head, and every block once inflated; its table of offsets is right where reading warns of nothing.
        assert file_layouts.inflated_parts(written) == file_layouts.inflated_parts(data), name
        assert UNIGINE_MESH.same_content(written, data)
        assert UNIGINE_MESH.read(written).warnings == UNIGINE_MESH.read(data).warnings == []


def test_real_files_are_not_odd_but_for_bent_tangents(folder: Path, rows: list[tuple[str, str, int, str, str]]) -> None:
    warned = {name: UNIGINE_MESH.read((folder / name).read_bytes()).warnings for name, *_ in rows}
    said = {name: warnings for name, warnings in warned.items() if warnings}
    assert set(said) == {"ms12_colors_lownorm.mesh", "ms11_switch_9bones_anim100.mesh"}
    assert all(len(warnings) == 1 and "tangents are not of unit length" in warnings[0] for warnings in said.values())


def test_weights_sum_to_nearly_one_and_name_bones(folder: Path, rows: list[tuple[str, str, int, str, str]]) -> None:
    seen = 0
    for name, *_ in rows:
        document = UNIGINE_MESH.read((folder / name).read_bytes())
        for surface in document.surfaces:
            if surface.weights is None:
                continue
            owner = np.repeat(np.arange(len(surface.weights.counts)), surface.weights.counts)
            sums = np.bincount(owner, surface.weights.values, len(surface.weights.counts))
            assert sums.min() >= 65532, name
            assert sums.max() <= 65535, name
            assert surface.weights.bones.max() < len(document.bones)
            seen += 1
    assert seen > 20


def test_normals_lie_along_the_faces(folder: Path) -> None:
    """Positions, tangents and both index lists belong together: the quaternions' normals follow the triangles."""
    for name in ("ms11_arms_40bones_anim1", "ms12_robot_12bones", "ms14_capsule_4bones", "ms15_material_ball"):
        for surface in UNIGINE_MESH.read((folder / f"{name}.mesh").read_bytes()).surfaces:
            corners = surface.targets[0].positions[surface.c_indices].reshape(-1, 3, 3).astype(float)
            normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            keep = np.linalg.norm(normals, axis=1) > 0
            normals = normals[keep] / np.linalg.norm(normals[keep], axis=1, keepdims=True)
            x, y, z, w = surface.targets[0].tangents[surface.t_indices].T / 32767.0
            stored = np.stack((2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)), 1)
            dots = np.einsum("tij,tj->ti", stored.reshape(-1, 3, 3)[keep], normals)
            assert dots.mean() > 0.9, (name, surface.name)


SMALL = ("mr02_box", "ms10_box", "ms11_leaf_colors", "ms13_colors_2uv", "ms13_cyrillic_name", "ms14_plane", "ms14_box")


def test_a_large_skinned_mesh_takes_no_step_each(folder: Path) -> None:
    """The cat's surfaces over and over, with weights: the variable-length part is the slow one."""
    document = UNIGINE_MESH.read((folder / "ms13_cat_289bones.mesh").read_bytes())
    document.surfaces = [surface for surface in document.surfaces if surface.weights is not None]
    one = document.surfaces[0]
    times = 4_000_000 // (12 * len(one.targets[0].positions)) + 1
    one.targets[0].positions = np.tile(one.targets[0].positions, (times, 1))
    weights = one.weights
    assert weights is not None
    weights.counts = np.tile(weights.counts, times)
    weights.bones, weights.values = np.tile(weights.bones, times), np.tile(weights.values, times)
    data = UNIGINE_MESH.write(document)
    steps = python_steps(lambda: UNIGINE_MESH.read(data))
    assert len(data) > 4_000_000 and steps < 160_000, steps
