"""Real meshes -> scene -> mesh of every version that can hold them, and what their list of facts says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from load_package import SAMPLES
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.unigine.mesh import document as doc
from meshferry.io_formats.unigine.mesh.format import SOUP_VERSION, UNIGINE_MESH, WRITTEN_VERSIONS
from meshferry.io_formats.unigine.space import decode_frames
from unigine_documents import at_corners

NAMES = sorted(path.name for path in (SAMPLES / "unigine").glob("*.mesh"))
VERSIONS = [version for version in WRITTEN_VERSIONS if version != SOUP_VERSION]
STATIC = ("ms15",)
Array = np.ndarray[Any, Any]

LARGE = re.compile("289bones|int32|robot|agent|material_ball|arms|switch")
pytestmark = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (LARGE.search(name) is not None)) for name in NAMES]
)


def load(samples: Path, name: str) -> doc.MeshFile:
    document: doc.MeshFile = UNIGINE_MESH.read((samples / "unigine" / name).read_bytes())
    return document


def mapped(document: doc.MeshFile, **options: Any) -> sc.Scene:
    return UNIGINE_MESH.to_scene(document, "sample", options)


def written(scene: sc.Scene, version: str, **options: Any) -> doc.MeshFile:
    (part,) = UNIGINE_MESH.files_of(scene, {})
    document: doc.MeshFile = UNIGINE_MESH.from_scene(part, {"mesh_version": version.upper(), **options})
    return document


def mesh_of(scene: sc.Scene) -> sc.Mesh:
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    return mesh


# -- facts --------------------------------------------------------------------------------------


def stated(samples: Path, name: str) -> tuple[str, str]:
    """Return the magic and the facts of the samples' own list."""
    for line in (samples / "unigine" / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 5 and cells[1] == name:
            return cells[2], cells[4]
    raise AssertionError(name)


def test_facts_are_those_of_the_list(samples: Path, name: str) -> None:
    magic, text = stated(samples, name)
    counts = {
        what: int(number)
        for what, number in re.findall(r"(bones|surfaces|(?<!triangle )vertices|triangles) (\d+)", text)
    }
    document = load(samples, name)
    facts = UNIGINE_MESH.facts(document)
    assert facts["version"] == magic
    for what, number in counts.items():
        assert facts[what] == number, what
    held = [int(re.search(pattern, text)[1]) if re.search(pattern, text) else 0 for pattern in (  # type: ignore[index]
        r"UV0 (\d+)", r"UV1 (\d+)", r"colours (\d+)")]  # fmt: skip
    scene = mapped(document)
    mesh = mesh_of(scene)
    if magic != SOUP_VERSION:
        uvs = [[surface.uvs[place] for surface in mesh.surfaces if surface.uvs] for place in range(len(mesh.uvs))]
        found = {layer.name: sum(flags) for layer, flags in zip(mesh.uvs, uvs, strict=True)}
        assert [found.get("UV0", 0), found.get("UV1", 0)] == held[:2]
        assert (sum(surface.has_colors for surface in mesh.surfaces) if mesh.colors else 0) == held[2]
    most = re.search(r"max weights (\d)", text)
    assert (mesh.joint_weights is not None) == bool(most)
    if most and mesh.joint_weights is not None:
        # A stored zero is a weight of the file, but moves nothing.
        assert 0 < (mesh.joint_weights > 0).sum(axis=1).max() <= int(most[1])
    frames = re.search(r"embedded: (\S+) (\d+) frames", text)
    assert [(clip["name"], clip["frames"]) for clip in facts["clips"]] == (
        [(frames[1], int(frames[2]))] if frames else []
    )
    assert [clip.frame_count for clip in scene.clips] == [clip["frames"] for clip in facts["clips"]]
    assert len(scene.skeletons) == (facts["bones"] > 0)
    assert scene.nodes[0].skeleton == (0 if facts["bones"] else None)
    assert [finding for finding in UNIGINE_MESH.check(document) if finding.kind.value == "error"] == []


# -- there and back -----------------------------------------------------------------------------


def corners_of(document: doc.MeshFile) -> Iterator[dict[str, Array]]:
    """Yield for each surface what its corners carry, straight from the arrays of the document."""
    for surface in document.surfaces:
        c, t = surface.c_indices.astype(int), surface.t_indices.astype(int)
        carried: dict[str, Array] = {}
        for number, target in enumerate(surface.targets):
            normals, tangents, _ = decode_frames(target.tangents, has_sign_byte=document.version == "ms10")
            carried[f"position {number}"] = target.positions[c]
            carried[f"normal {number}"] = normals[t]
            carried[f"tangent {number}"] = tangents[t]
        for label, values in (("uv0", surface.uv0), ("uv1", surface.uv1), ("color", surface.colors)):
            if values is not None:
                carried[label] = values[t]
        if surface.weights is not None:
            weights = np.zeros((len(surface.weights.counts), len(document.bones)))
            owner = np.repeat(np.arange(len(weights)), surface.weights.counts)
            np.add.at(weights, (owner, surface.weights.bones), surface.weights.values / 65535)
            # By name, since sk10 has parents before their children.
            carried["weights"] = weights[c][:, np.argsort([bone.name for bone in document.bones])]
        yield carried


def assert_same(
    one: doc.MeshFile, other: doc.MeshFile, frame_room: float = 1e-3, tangent_room: float | None = None
) -> None:
    """Compare corner by corner, so that each triangle has the same first corner, too."""
    tangent_room = frame_room if tangent_room is None else tangent_room
    assert [surface.name for surface in one.surfaces] == [surface.name for surface in other.surfaces]
    rooms = {
        "position": 0.0,
        "normal": frame_room,
        "tangent": tangent_room,
        "uv": 6e-8,
        "color": 0,
        "weights": 2 / 65535,
    }
    for first, second in zip(corners_of(one), corners_of(other), strict=True):
        assert first.keys() == second.keys()
        for label, values in first.items():
            room = next(room for start, room in rooms.items() if label.startswith(start))
            np.testing.assert_allclose(values, second[label], rtol=0, atol=room, err_msg=label)
    assert bones_of(one) == bones_of(other)
    if other.version != "sk10":
        assert [bone.name for bone in one.bones] == [bone.name for bone in other.bones]


def bones_of(document: doc.MeshFile) -> dict[str, tuple[str, list[float]]]:
    """Return parent and transform of each bone."""
    names = [bone.name for bone in document.bones]
    pairs = zip(document.bones, document.transforms.tolist(), strict=True)
    return {bone.name: (names[bone.parent] if bone.parent >= 0 else "", values) for bone, values in pairs}


def assert_bounds(document: doc.MeshFile) -> None:
    """Compare with the vertices (section 2.3)."""
    everything = [np.empty((0, 3))]
    for surface in document.surfaces:
        points = surface.targets[0].positions.astype(np.float64)
        everything.append(points)
        np.testing.assert_array_equal(surface.bounds[:6], np.concatenate((points.min(axis=0), points.max(axis=0))))
        np.testing.assert_allclose(
            surface.bounds[6:9], (points.min(axis=0) + points.max(axis=0)) / 2, rtol=1e-6, atol=1e-6
        )
        reach = np.linalg.norm(points - surface.bounds[6:9], axis=1).max()
        assert surface.bounds[9] == pytest.approx(reach, rel=1e-5)
    points = np.concatenate(everything)
    if len(points):
        np.testing.assert_array_equal(document.bounds[:6], np.concatenate((points.min(axis=0), points.max(axis=0))))
        reach = np.linalg.norm(points - document.bounds[6:9], axis=1).max()
        assert reach * (1 - 1e-6) <= document.bounds[9] <= reach * 2
    else:
        assert document.bounds.tolist() == pytest.approx([1e9] * 3 + [-1e9] * 3 + [0, 0, 0, -1])


def test_every_version_that_can_hold_it(samples: Path, name: str) -> None:
    document = load(samples, name)
    scene = mapped(document)
    for version in VERSIONS:
        if document.bones and version in STATIC:
            with pytest.raises(ExportError, match="choose sk10, ms14 or ms13, or remove it"):
                written(scene, version)
            continue
        if version == "sk10" and not document.bones:
            continue  # it gets a bone and weights: see test_unigine_characters.py
        found = written(scene, version)
        assert found.version == version
        assert_bounds(found)
        if document.version == SOUP_VERSION:
            soup = np.concatenate([surface.vertices for surface in document.soup])
            corners = list(corners_of(found))
            np.testing.assert_array_equal(np.concatenate([c["position 0"] for c in corners]), soup[:, :3])
            # Where w would be below 0.001 the version's own frames are 0.002 off, in ms10 by its steps up to 0.008.
            room = 8e-3 if version == "ms10" else 2.1e-3
            np.testing.assert_allclose(np.concatenate([c["normal 0"] for c in corners]), soup[:, 3:6], atol=room)
            uv = np.concatenate([c["uv0"] for c in corners])
            np.testing.assert_allclose(np.column_stack((uv[:, 0], 1 - uv[:, 1])), soup[:, 6:], rtol=0, atol=6e-8)
            continue
        coarse = version == "ms10" or document.version == "ms10"
        assert_same(document, found, 8e-3 if coarse and version != document.version else 1e-3)
        for before, after in zip(document.surfaces, found.surfaces, strict=True):
            # What was not touched keeps its order, and its widths with it.
            np.testing.assert_array_equal(before.c_indices, after.c_indices)
            np.testing.assert_array_equal(before.t_indices, after.t_indices)
            assert before.c_indices.dtype.itemsize == after.c_indices.dtype.itemsize
            assert before.t_indices.dtype.itemsize == after.t_indices.dtype.itemsize
            assert (before.lightmap_channel, before.lightmap_resolution) == (
                after.lightmap_channel,
                after.lightmap_resolution,
            )
        # What is written can be read, and says the same.
        assert_same(found, UNIGINE_MESH.read(UNIGINE_MESH.write(found)), 0)


def test_corners_split_as_after_blender_are_the_same_corners(samples: Path, name: str) -> None:
    document = load(samples, name)
    if document.version == SOUP_VERSION:
        pytest.skip("it has a value a corner anyway")
    scene = mapped(document)
    scene.nodes[0].mesh = at_corners(mesh_of(scene))
    scene.tolerance = 5e-4
    found = written(scene, "ms13")
    # Corners that differ in nothing but by half a radian of tangent share a vertex; handedness still parts them.
    assert_same(document, found, 8e-3 if document.version == "ms10" else 1e-3, tangent_room=0.51)
    for before, after in zip(document.surfaces, found.surfaces, strict=True):
        np.testing.assert_array_equal(before.targets[0].positions, after.targets[0].positions)
        # Fewer where the file holds equal triangle vertices, and at most one for each meeting of point and values.
        pairs = np.unique(before.c_indices.astype(np.int64) << 32 | before.t_indices.astype(np.int64))
        assert len(after.targets[0].tangents) <= len(pairs)


def test_turned_there_and_back(samples: Path, name: str) -> None:
    document = load(samples, name)
    version = document.version
    embed = {"use_embedded_animation": bool(document.animations)}
    straight, turned = mapped(document), mapped(document, use_turn=True)
    np.testing.assert_array_equal(mesh_of(turned).points, mesh_of(straight).points * np.float32([-1, -1, 1]))
    plain = written(straight, version, **embed)
    back = written(turned, version, use_turn=True, **embed)
    if version == SOUP_VERSION:
        for one, other in zip(plain.soup, back.soup, strict=True):
            np.testing.assert_array_equal(one.vertices, other.vertices)
        return
    assert UNIGINE_MESH.write(plain) == UNIGINE_MESH.write(back)


def test_mr02_takes_what_it_can_hold(samples: Path, name: str) -> None:
    document = load(samples, name)
    scene = mapped(document)
    mesh = mesh_of(scene)
    if document.bones:
        with pytest.raises(ExportError, match="has an armature, which mr02 cannot hold"):
            written(scene, "mr02")
        return
    found = written(scene, "mr02")
    assert [soup.name.rstrip(b"\0").decode() for soup in found.soup] == [surface.name for surface in mesh.surfaces]
    assert all(len(soup.name) == 128 for soup in found.soup)
    rows = np.concatenate([soup.vertices for soup in found.soup]) if found.soup else np.empty((0, 8), np.float32)
    np.testing.assert_array_equal(rows[:, :3], mesh.points[mesh.corner_point])
    if mesh.normal is not None:
        np.testing.assert_allclose(rows[:, 3:6], mesh.normal.at_corners(mesh.corner_point), atol=5e-4)
    if mesh.uvs and mesh.uvs[0].name == "UV0":
        np.testing.assert_array_equal(rows[:, 6:], mesh.uvs[0].at_corners(mesh.corner_point))
    said = any("neither colours nor a second UV map" in text for text in scene.warnings)
    assert said == (len(mesh.uvs) > 1 or bool(mesh.colors))
    if document.version == SOUP_VERSION:
        for one, other in zip(document.soup, found.soup, strict=True):
            assert one.name.split(b"\0")[0] == other.name.split(b"\0")[0]
            np.testing.assert_allclose(one.vertices, other.vertices, rtol=0, atol=5e-7)
