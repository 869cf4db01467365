"""Real files: read and written back, counted as the samples' README counts them, recognised, not taken for others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from meshferry.io_formats import registry
from meshferry.io_formats.core.messages import errors_of
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

UNPACKED = ("datvm__Crane", "datvm__SmartConveyorBeltCover")
WITHOUT_CHECKSUM = ("datvm__SmartConveyorBeltCover",)


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "timbermesh"


@pytest.fixture(scope="module")
def files(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.iterdir() if path.suffix in (".timbermesh", ".meshy"))
    assert len(found) == 18
    return found


def test_every_file_comes_back_as_it_was(files: list[Path]) -> None:
    for path in files:
        data = path.read_bytes()
        document = TIMBERMESH.read(data)
        assert document.warnings == [], path.name
        written = TIMBERMESH.write(document)
        assert written[:2] == b"\x78\x9c"
        ours, theirs = oracle.inflate(written), oracle.inflate(data)
        if path.name.startswith(UNPACKED):
            assert ours != theirs
            assert ours == oracle.parse(theirs).SerializeToString(), path.name
        else:
            assert ours == theirs, path.name
        assert TIMBERMESH.same_content(data, written)
        assert TIMBERMESH.read(written) == document


def test_documents_hold_what_protobuf_reads(files: list[Path]) -> None:
    for path in files:
        data = path.read_bytes()
        theirs, ours = oracle.parse(oracle.inflate(data)), TIMBERMESH.read(data)
        assert (ours.version, ours.name, len(ours.nodes)) == (theirs.version, theirs.name, len(theirs.nodes))
        for mine, yours in zip(ours.nodes, theirs.nodes, strict=True):
            assert (mine.parent, mine.name, mine.vertex_count) == (yours.parent, yours.name, yours.vertexCount)
            for values, message, axes in (
                (mine.position, yours.position, "xyz"),
                (mine.rotation, yours.rotation, "xyzw"),
                (mine.scale, yours.scale, "xyz"),
            ):
                assert values == tuple(getattr(message, axis) for axis in axes)
            for found, stored in zip(mine.properties, yours.vertexProperties, strict=True):
                assert (found.name, found.scalar_type, found.dimension, found.data) == (
                    stored.name,
                    stored.scalarType,
                    stored.scalarTypeDimension,
                    stored.data,
                )
            for mesh, submesh in zip(mine.meshes, yours.meshes, strict=True):
                assert mesh.indices.dtype == np.int32
                assert mesh.indices.tolist() == list(submesh.indices)
                assert mesh.material == submesh.material
            for moved, animation in zip(mine.vertex_animations, yours.vertexAnimations, strict=True):
                assert (moved.name, moved.framerate) == (animation.name, animation.framerate)
                assert moved.animated_vertex_count == animation.animatedVertexCount
                for frame, their_frame in zip(moved.frames, animation.frames, strict=True):
                    assert [(p.name, p.data) for p in frame.properties] == [
                        (p.name, p.data) for p in their_frame.vertexProperties
                    ]
            for keyed, node_animation in zip(mine.node_animations, yours.nodeAnimations, strict=True):
                assert (keyed.name, keyed.framerate) == (node_animation.name, node_animation.framerate)
                assert keyed.present.all()
                assert keyed.positions.tolist() == [
                    [f.position.x, f.position.y, f.position.z] for f in node_animation.frames
                ]
                assert keyed.rotations.tolist() == [
                    [f.rotation.x, f.rotation.y, f.rotation.z, f.rotation.w] for f in node_animation.frames
                ]
                assert keyed.scales.tolist() == [[f.scale.x, f.scale.y, f.scale.z] for f in node_animation.frames]


def test_facts_are_those_of_the_readme(folder: Path, files: list[Path]) -> None:
    table = oracle.facts_table(folder)
    assert {row.file for row in table} == {path.name for path in files}
    for row in table:
        data = (folder / row.file).read_bytes()
        assert len(data) == row.bytes
        document = TIMBERMESH.read(data)
        facts = TIMBERMESH.facts(document)
        assert (facts["nodes"], facts["vertices"], facts["triangles"], facts["materials"], facts["surfaces"]) == (
            row.nodes,
            row.vertices,
            row.triangles,
            row.materials,
            row.submeshes,
        ), row.file
        assert sum(node.parent == -1 for node in document.nodes) == row.roots
        assert facts["uv_layers"] == len([name for name in row.layers if name.startswith("uv")])
        assert facts["color_layers"] == len(row.layers & {"color"})
        assert (facts["bones"], facts["shape_keys"], facts["version"]) == (0, 0, 0)
        _check_clips(facts["clips"], row)


def _check_clips(clips: list[dict[str, Any]], row: oracle.Facts) -> None:
    said = re.match(r"(node|VERTEX) `(.*)` (\d+) frames at (\d+)", row.animations)
    if said is None:
        assert row.animations == "-"
        assert clips == []
        return
    kind, name, frames, fps = said.groups()
    assert clips == [{"name": name, "kind": kind.lower(), "frames": int(frames), "fps": float(fps)}], row.file


def test_scenes_keep_every_triangle(folder: Path, files: list[Path]) -> None:
    for row in oracle.facts_table(folder):
        scene = TIMBERMESH.to_scene(TIMBERMESH.read((folder / row.file).read_bytes()), row.file)
        assert scene.triangle_count == row.triangles, row.file
        assert len(scene.nodes) == row.nodes
        assert [clip.frame_count for clip in scene.clips] == [
            int(n) for n in re.findall(r"(\d+) frames", row.animations)
        ]
        tracks = [track for clip in scene.clips for track in (*clip.transforms, *clip.vertices)]
        on_nodes = re.search(r"on (\d+) node", row.animations)
        assert len(tracks) == (int(on_nodes[1]) if on_nodes else row.animations.startswith("VERTEX"))


def warnings_of(folder: Path, beginning: str) -> list[str]:
    path = next(path for path in folder.iterdir() if path.name.startswith(beginning))
    scene: Scene = TIMBERMESH.to_scene(TIMBERMESH.read(path.read_bytes()), path.stem)
    return scene.warnings


def test_oddities_of_samples_are_told(folder: Path) -> None:
    assert warnings_of(folder, "mechanistry__") == []
    assert warnings_of(folder, "everboom__Biome") == []
    hanging = warnings_of(folder, "datvm__Hanging")
    assert len(hanging) == 1
    assert "24 normals" in hanging[0]
    pipe = warnings_of(folder, "heyderpd__")
    assert len(pipe) == 1
    # The README's 5 or 6 count finite garbage too, which is only scaled to unit length.
    assert "2 normals were zero, NaN or infinite" in pipe[0]
    assert warnings_of(folder, "calloatti__") == []  # its colours are not multiples of 1/255


def test_normals_of_scenes_are_usable(files: list[Path]) -> None:
    for path in files:
        for node in TIMBERMESH.to_scene(TIMBERMESH.read(path.read_bytes()), "x").nodes:
            if node.mesh is None:
                continue
            assert node.mesh.normal is not None
            length = np.linalg.norm(node.mesh.normal.values, axis=1)
            np.testing.assert_allclose(length, 1, atol=1e-5)


def test_two_triangles_of_a_submesh_without_any(folder: Path) -> None:
    path = next(folder.glob("CordialGnom__CordialForestStation*"))
    document = TIMBERMESH.read(path.read_bytes())
    empty = [mesh for node in document.nodes for mesh in node.meshes if not len(mesh.indices)]
    assert len(empty) == 1
    findings = [str(finding) for finding in TIMBERMESH.check(document)]
    assert any("no triangles" in text for text in findings)
    assert any("Blender's number suffix" in text for text in findings)


def test_checks_find_no_error_in_files_the_game_loads(files: list[Path]) -> None:
    for path in files:
        found = errors_of(TIMBERMESH.check(TIMBERMESH.read(path.read_bytes())))
        assert found == [], f"{path.name}: {[str(finding) for finding in found]}"


def test_official_sample_gives_no_finding(folder: Path) -> None:
    path = next(folder.glob("mechanistry__*"))
    assert [str(finding) for finding in TIMBERMESH.check(TIMBERMESH.read(path.read_bytes()))] == []


def test_missing_checksum_is_accepted_silently_and_written(folder: Path) -> None:
    path = next(path for path in folder.iterdir() if path.name.startswith(WITHOUT_CHECKSUM))
    data = path.read_bytes()
    import zlib

    with pytest.raises(zlib.error):
        zlib.decompress(data)
    document = TIMBERMESH.read(data)
    assert document.warnings == []
    assert zlib.decompress(TIMBERMESH.write(document)) == oracle.parse(oracle.inflate(data)).SerializeToString()


def test_content_tells_timbermesh_from_other_formats(samples: Path, files: list[Path]) -> None:
    for path in files:
        data = path.read_bytes()
        assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is TIMBERMESH
    others = [
        path
        for name in ("unigine", "secondlife", "unity_meshserializer")
        for path in (samples / name).rglob("*")
        if path.is_file() and path.suffix not in (".md", ".json", ".txt")
    ]
    assert len(others) > 60
    taken = []
    for path in others:
        data = path.read_bytes()
        if TIMBERMESH.sniff(data[: registry.HEAD_SIZE], len(data)):
            taken.append(path.name)
    assert taken == []
