"""The oracle proven on real files, from its data alone; then our reader against the oracle, every array of every file.

``unigine_oracle`` shares no line with the codec. It is held against what the samples' README counted, against the
robot's joints as Blender's own FBX importer placed them, and against geometry.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import unigine_bytes
import unigine_comparison as comparison
import unigine_meaning as meaning
import unigine_oracle as oracle
import unigine_rules as rules
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.skeleton.format import UNIGINE_SKELETON

ROW = re.compile(r"^\| (\w+\.(?:mesh|anim)) \| (\w+) \| (\d+) \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)
COUNTED = re.compile(r"(bones|surfaces|vertices|triangle vertices|triangles|UV0|UV1|colours|max weights) (\d+)")
EMBEDDED = re.compile(r"embedded: (\S+) (\d+) frames flag (0x\w+)")
ANIMATION = re.compile(r"bones (\d+), animated (\d+), frames (\d+), (?:flag (0x\w+), name \"(.*)\"|flags \[(.*)\])$")
BOXES = ("ms10_box", "ms12_box_lm00", "ms14_box")


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    if not (samples / "unigine").is_dir():
        pytest.skip(f"no real UNIGINE files in {samples}")
    return samples / "unigine"


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[tuple[str, ...]]:
    found = ROW.findall((folder / "README.md").read_text("utf-8"))
    assert len(found) == 42
    assert {name for name, *_ in found} == {path.name for path in folder.iterdir() if path.suffix in (".mesh", ".anim")}
    return found


@pytest.fixture(scope="module")
def decoded(folder: Path, rows: list[tuple[str, ...]]) -> dict[str, oracle.File]:
    return {name.partition(".")[0]: oracle.decode((folder / name).read_bytes()) for name, *_ in rows}


def counted(found: oracle.File) -> dict[str, int]:
    if found.magic == "mr02":
        vertices = sum(len(soup.positions) for soup in found.soup)
        return {"surfaces": len(found.soup), "vertices": vertices, "triangles": vertices // 3}
    surfaces = found.surfaces
    counts = {
        "bones": len(found.bones),
        "surfaces": len(surfaces),
        "vertices": sum(surface.vertex_count for surface in surfaces),
        "triangle vertices": sum(surface.corner_vertex_count for surface in surfaces),
        "triangles": sum(len(surface.c_indices) // 3 for surface in surfaces),
        "UV0": sum(surface.uv0 is not None for surface in surfaces),
        "UV1": sum(surface.uv1 is not None for surface in surfaces),
        "colours": sum(surface.colors is not None for surface in surfaces),
    }
    weighted = [surface.weights for surface in surfaces if surface.weights is not None]
    if weighted:
        counts["max weights"] = max(len(pairs) for weights in weighted for pairs in weights)
    return counts


def test_the_oracle_counts_what_the_readme_counts(
    folder: Path, rows: list[tuple[str, ...]], decoded: dict[str, oracle.File]
) -> None:
    for name, magic, size, facts, _ in rows:
        found = decoded[name.partition(".")[0]]
        assert (folder / name).stat().st_size == int(size)
        assert found.magic == magic
        if name.endswith(".mesh"):
            assert counted(found) == {what: int(number) for what, number in COUNTED.findall(facts)}, name
            embedded = [(title, str(f.count), f"{f.mask:#04x}") for title, f in found.animations]
            assert embedded == EMBEDDED.findall(facts), name
            continue
        stated = ANIMATION.search(facts)
        assert stated is not None, facts
        ((title, frames),) = found.animations
        assert (len(found.bones), len(frames.bones), frames.count) == tuple(int(n) for n in stated.groups()[:3])
        if magic == "an10":
            assert (f"{frames.mask:#04x}", title) == stated.groups()[3:5]
        else:
            used = sorted({flags for row in frames.flags for flags in row})
            assert ", ".join(map(str, used)) == stated[6]


def test_the_oracle_finds_what_single_files_show(decoded: dict[str, oracle.File]) -> None:
    def lightmaps(name: str) -> set[tuple[int, int] | None]:
        return {surface.lightmap for surface in decoded[name].surfaces}

    assert lightmaps("ms12_box_lm00") == {(0, 0)}
    assert lightmaps("ms12_lights_2surf_2uv") == {(1, 3)}
    assert lightmaps("ms12_template_lm14") == {(1, 4)}
    assert decoded["ms11_mixed_handed_u8_u16"].surfaces[0].widths == (1, 2)
    assert decoded["ms14_sphere_u8_u16"].surfaces[0].widths == (1, 2)
    assert decoded["ms13_int32_indices"].surfaces[0].widths == (2, 4)
    assert (63, 2) in decoded["ms12_hand_63bones"].compact
    assert decoded["ms14_plane"].surfaces[0].stored[1] is False
    assert decoded["ms14_plane_raw_block"].surfaces[0].stored[1] is True
    assert len(decoded["ms14_box"].surfaces[0].collision.nodes) == 7
    assert sum(parent == -1 for _, parent in decoded["ms13_cat_289bones"].bones) == 10
    assert any(parent > bone for bone, (_, parent) in enumerate(decoded["ms11_arms_40bones_anim1"].bones))
    scales = decoded["ms11_agent_54bones_scaled"].transforms[:, 7:]
    assert 0.103 < np.abs(scales).min() < 0.105
    assert 39.3 < np.abs(scales).max() < 39.5
    assert decoded["an13_pose"].fps == 30


def test_real_files_hold_themselves_to_the_page(decoded: dict[str, oracle.File]) -> None:
    """Compact integers have the engine's length, indices their width, flags their reason, collisions their trees."""
    for name, found in decoded.items():
        comparison.canonical(found)
        comparison.plain_widths(found)
        for _, frames in found.animations:
            rules.check_flags(frames)
        for surface in found.surfaces:
            if surface.collision is not None and name != "ms15_material_ball":  # 3 seconds of edges
                rules.check_collision(surface)


def test_the_robot_stands_where_its_fbx_says(folder: Path, decoded: dict[str, oracle.File]) -> None:
    """From the oracle's data alone: at rest, and at five frames of its animation."""
    truth = json.loads((folder / "ms12_robot_truth.json").read_text("utf-8"))
    robot, idle = decoded["ms12_robot_12bones"], decoded["an10_robot_idle"]

    def farthest(matrices: list[oracle.Floats], heads: dict[str, list[float]]) -> float:
        assert {name for name, _ in robot.bones} == set(heads)
        return max(
            float(np.abs(matrix[:3, 3] - heads[name]).max())
            for (name, _), matrix in zip(robot.bones, matrices, strict=True)
        )

    assert farthest(meaning.rest_matrices(robot), truth["rest_heads"]) <= truth["tolerance"]["rest"]
    ((_, frames),) = idle.animations
    assert len(truth["pose_heads"]) == 5
    worst = {
        frame: farthest(meaning.posed_matrices(robot, idle, frames, int(frame)), heads)
        for frame, heads in truth["pose_heads"].items()
    }
    assert max(worst.values()) <= truth["tolerance"]["pose"]
    assert max(worst.values()) < 2e-4, "an exact decode stands at 1.2e-4 to 1.8e-4"


@pytest.mark.parametrize("name", BOXES)
def test_quaternions_of_boxes_give_normals_of_their_faces(name: str, decoded: dict[str, oracle.File]) -> None:
    found = decoded[name]
    for surface in found.surfaces:
        normals, along_u, handed = meaning.tangent_frames(surface.targets[0].tangents, found.magic)
        corners = surface.targets[0].positions[surface.c_indices.reshape(-1, 3)].astype(float)
        edges = corners - np.roll(corners, 1, axis=1)
        at = surface.t_indices.reshape(-1, 3)
        across = np.einsum("tck,tek->tce", normals[at], edges)
        # w of at least 0.001 bends by 0.002; ms10 has no w: what x, y, z lost by cutting is up to 0.0078 of it.
        assert np.abs(across).max() < (1.6e-2 if found.magic == "ms10" else 2.1e-3) * np.abs(edges).max()
        outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert (np.einsum("tck,tk->tc", normals[at], outward) > 0).all()
        # The tangent runs along +u, and normal, tangent and handedness give +v as the file stores it.
        assert surface.uv0 is not None
        uv = surface.uv0[at].astype(float)
        side, uv_side = corners[:, 1:] - corners[:, :1], uv[:, 1:] - uv[:, :1]
        along = np.linalg.solve(uv_side, side)
        along /= np.linalg.norm(along, axis=2, keepdims=True)
        binormals = np.cross(normals, along_u) * handed[:, None]
        assert np.einsum("tck,tk->tc", along_u[at], along[:, 0]).min() > 0.999
        assert np.einsum("tck,tk->tc", binormals[at], along[:, 1]).min() > 0.999


@pytest.mark.parametrize("damage", range(4))
def test_the_oracle_refuses_what_is_damaged(damage: int, folder: Path) -> None:
    for name in ("ms13_colors_2uv.mesh", "ms14_box.mesh", "an11_one_frame.anim", "an10_gun_4bones.anim"):
        data = (folder / name).read_bytes()
        broken = (data[:-1], data + b"\0", data[:-4] + b"xxxx", data[:4] + data[5:])[damage]
        with pytest.raises((oracle.WrongFile, UnicodeDecodeError, IndexError)):
            oracle.decode(broken)


def test_our_reader_finds_in_real_files_what_the_oracle_finds(
    folder: Path, rows: list[tuple[str, ...]], decoded: dict[str, oracle.File]
) -> None:
    for name, *_ in rows:
        data, found = (folder / name).read_bytes(), decoded[name.partition(".")[0]]
        if name.endswith(".mesh"):
            comparison.same_mesh(UNIGINE_MESH.read(data), found)
        else:
            comparison.same_animation(UNIGINE_ANIMATION.read(data), found)


@pytest.mark.parametrize("name", sorted(unigine_bytes.ALL))
def test_our_reader_finds_in_bytes_by_hand_what_the_oracle_finds(name: str) -> None:
    """What no real file shows: several targets, bones and animations in ms10, sk10."""
    found = oracle.decode(unigine_bytes.ALL[name])
    for surface in found.surfaces:
        if surface.collision is not None:
            rules.check_collision(surface)
    comparison.same_mesh(UNIGINE_MESH.read(unigine_bytes.ALL[name]), found)


@pytest.mark.parametrize("name", ["QUANTIZED", "FLAGGED", "AN12", "AN13"])
def test_our_reader_finds_in_animations_by_hand_what_the_oracle_finds(name: str) -> None:
    data = getattr(unigine_bytes, name)
    comparison.same_animation(UNIGINE_ANIMATION.read(data), oracle.decode(data))


def test_our_reader_finds_in_a_skeleton_by_hand_what_the_oracle_finds() -> None:
    found = oracle.decode(unigine_bytes.SKELETON)
    assert found.magic == "sn10"
    assert found.bones
    comparison.same_skeleton(UNIGINE_SKELETON.read(unigine_bytes.SKELETON), found)
