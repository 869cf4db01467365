"""What every registered format promises, on small files that are made by hand, and on the examples.

A new format joins by an entry in ``FILES``; its own tests are about what it alone has.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import meshferry
import models
import numpy as np
import oracle
import pytest
import unigine_bytes
import unigine_scene_bytes
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import ExportError, FormatError, UnsupportedFormatError
from meshferry.io_formats.core.format import COUNTS, Format
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.passes.compare_scenes import differences
from meshferry.io_formats.registry import HEAD_SIZE
from meshferry.io_formats.timbermesh.model import codec
from meshfuzz import (
    collada_seeds,
    mesh_serializer_seeds,
    opensim_archive_seeds,
    timberborn_blueprint_seeds,
    tokens,
    unigine_seeds,
)
from meshfuzz import second_life_animation_seeds as sl_animation
from meshfuzz import second_life_seeds as sl
from meshfuzz import second_life_shape_seeds as sl_shape

pytest.importorskip("google.protobuf")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LARGE, FEW = 5_000, 30
"""Of larger files the first and the last bytes are tried, and a sample of those between."""
MOST_LENGTHS, MOST_CHANGES = 200, 30

NODES = [codec.serialise(models.model(node)) for node in (models.mesh_node(), models.node("#Slot#Entrance", 0))]
LEVELS = {level: [sl.square()] for level in ("lowest_lod", "low_lod", "medium_lod", "high_lod")}
ASSET = sl.asset({"skin": sl.skin(), "physics_convex": sl.hulls(), **LEVELS}, header={"material_list": ["wood"]})


def timbermesh_files() -> dict[str, bytes]:
    message = b"".join(NODES)
    packed = oracle.deflate(message)
    return {
        "zlib": packed,
        "gzip": gzip.compress(message, mtime=0),
        "bare": message,
        "prefab": b"%YAML 1.1\n--- !u!114 &1\nMonoBehaviour:\n  _bytes: " + packed.hex().encode() + b"\n",
    }


FILES: dict[str, dict[str, bytes]] = {
    "timbermesh": timbermesh_files(),
    "timberborn_blueprint": timberborn_blueprint_seeds.files(),
    "unigine_mesh": unigine_bytes.ALL
    | {seed: tokens.encode(unigine_seeds.meshes()[seed]) for seed in ("ms11 plain", "ms13 skinned", "ms15 packed")},
    "unigine_animation": {
        "an10": unigine_bytes.QUANTIZED,
        "an11": unigine_bytes.FLAGGED,
        "an12": unigine_bytes.AN12,
        "an13": unigine_bytes.AN13,
    },
    "unigine_skeleton": {"sn10": unigine_bytes.SKELETON},
    "unigine_scene": unigine_scene_bytes.ALL,
    "second_life_mesh": {"asset": ASSET, "old prefix": sl.asset(LEVELS, prefix=sl.PREFIX + b"\n")},
    "second_life_bundle": {"bundle": sl.bundle([ASSET, ASSET], [sl.instance(), sl.instance(mesh_id=1)])},
    "second_life_collada": {**collada_seeds.files()},
    "second_life_animation": {
        "arms": sl_animation.ARMS,
        "constraint": sl_animation.CONSTRAINED,
        "version 0.1": sl_animation.OLD,
    },
    "second_life_bvh": {"bvh": sl_animation.BVH},
    "second_life_shape": sl_shape.FILES,
    "opensim_archive": opensim_archive_seeds.FILES,
    "mesh_serializer": {
        name: data
        for name, data in mesh_serializer_seeds.family().items()
        if name in ("2, format 15", "2, flat", "submeshes, format 31", "cache", "1, format 15", "1 as text, format 3")
    },
}
for example in sorted(EXAMPLES.iterdir()):
    found = registry.by_extension(example.suffix)
    if found is not None:
        content = example.read_bytes()
        found = registry.by_content(content, len(content)) or found  # several formats have the extension .anim
        FILES[found.name][example.name] = content

ONLY_READ = {("unigine_animation", "an12")}
"""Versions that are not written."""
WHOLE_MODELS = {("timbermesh", "bare", len(NODES[0]))}
"""Truncations that are files again: a message without compression may end behind any node."""

CASES = [(name, file) for name, files in FILES.items() for file in files]
WRITTEN = [(name, file) for name, file in CASES if registry.by_name(name).is_written]
every_written_file = pytest.mark.parametrize(("name", "file"), WRITTEN, ids=["-".join(case) for case in WRITTEN])
every_file = pytest.mark.parametrize(("name", "file"), CASES, ids=["-".join(case) for case in CASES])


def opened(name: str, file: str) -> tuple[Format, bytes]:
    return registry.by_name(name), FILES[name][file]


@every_file
def test_the_library_reads_each_file(name: str, file: str, tmp_path: Path) -> None:
    """The first example of its page: read, walk, write."""
    found, data = opened(name, file)
    path = tmp_path / f"file{found.extensions[0]}"
    path.write_bytes(data)
    scene = meshferry.read(path)
    assert scene.format == name
    for node in scene.walk():
        assert node.world_matrix.shape == (4, 4)
        if node.mesh is not None:
            assert node.mesh.points.shape[1:] == node.mesh.triangles.shape[1:] == (3,)
            layers = [*node.mesh.uvs, *node.mesh.colors, *([] if node.mesh.normals is None else [node.mesh.normals])]
            assert all(layer.shape[:2] == node.mesh.triangles.shape for layer in layers)
    for clip in scene.clips:
        for skeleton in scene.skeletons:
            assert np.isfinite(scene.joint_matrices(skeleton, clip, clip.duration / 2)).all()
    if found.is_written and (name, file) not in ONLY_READ:
        written = meshferry.write(scene, tmp_path / f"again{found.extensions[0]}", format=name)
        assert meshferry.read(written.files[-1]).format == name


def sniffers(data: bytes) -> list[str]:
    return [found.name for found in registry.FORMATS if found.sniff(data[:HEAD_SIZE], len(data))]


def sampled(count: int, most: int, seed: str) -> list[int]:
    """Return all numbers below ``count``, or the first, the last and some between."""
    most = most if count <= LARGE else FEW
    if count <= most:
        return list(range(count))
    ends = most // 3
    between = random.Random(seed).sample(range(ends, count - ends), most - 2 * ends)
    return [*range(ends), *sorted(between), *range(count - ends, count)]


def read_or_none(found: Format, data: bytes) -> Any:
    """Return the document, or None if the file is refused with a message."""
    try:
        return found.read(data)
    except FormatError as problem:
        message = problem.message
    assert message and not message.endswith(".")
    return None


def amounts(scenes: list[Scene]) -> tuple[int, int, int]:
    """Count triangles, joints and clips."""
    meshes = [node.mesh for scene in scenes for node in scene.nodes if node.mesh is not None]
    joints = sum(len(skeleton.joints) for scene in scenes for skeleton in scene.skeletons)
    return sum(len(mesh.corner_point) for mesh in meshes) // 3, joints, sum(len(scene.clips) for scene in scenes)


def test_every_format_that_is_read_has_files() -> None:
    assert set(FILES) == {found.name for found in registry.FORMATS if found.is_read}


@every_file
def test_recognised_by_one_format_alone(name: str, file: str) -> None:
    found, data = opened(name, file)
    if name != "mesh_serializer":  # has no magic: its length decides
        assert sniffers(data) == [name]
    for extension in ("", *(extension for known in registry.FORMATS for extension in known.extensions)):
        assert registry.by_content(data[:HEAD_SIZE], len(data), f"Any Name{extension}") is found


def test_the_registry_knows_the_extensions_of_families_that_it_has_not_imported() -> None:
    for module, extensions in registry._OWN.items():
        assert set(extensions) == {name for known in registry._own(module).formats for name in known.extensions}


@every_written_file
def test_round_trip(name: str, file: str) -> None:
    found, data = opened(name, file)
    document = found.read(data)
    if (name, file) in ONLY_READ:
        with pytest.raises(ExportError):
            found.write(document)
        return
    written = found.write(document)
    assert found.same_content(written, data)
    assert found.write(found.read(written)) == written


@every_written_file
def test_through_a_scene(name: str, file: str) -> None:
    found, data = opened(name, file)
    scene = found.to_scene(found.read(data), "contract")
    assert scene.format == name
    if scene.placement is not None:
        pytest.skip("places models of other files: see test_unigine_scene_writing.py")
    before = amounts([scene])
    assert any(before)
    again = []
    for part in found.files_of(scene):
        output = found.write_files(found.from_scene(part), "part")[-1]
        assert registry.by_content(output.data[:HEAD_SIZE], len(output.data)) is found
        again.append(found.to_scene(found.read(output.data), "again"))
    assert amounts(again) == before


@every_file
def test_a_document_can_be_mapped_again(name: str, file: str) -> None:
    found, data = opened(name, file)
    document = found.read(data)
    first = found.to_scene(document, "contract")
    kept = found.to_scene(found.read(data), "contract")
    assert not differences(first, found.to_scene(document, "contract"))
    assert not differences(kept, first)


@every_file
def test_facts_and_checks(name: str, file: str) -> None:
    found, data = opened(name, file)
    document = found.read(data)
    facts = found.facts(document)
    assert set(COUNTS) | {"version", "clips", "warnings"} <= set(facts)
    assert all(facts[count] >= 0 for count in COUNTS)
    assert json.loads(json.dumps(facts)) == facts
    assert all(str(finding) for finding in found.check(document))


@pytest.mark.any_version
@every_file
def test_truncations_are_refused_or_reported(name: str, file: str) -> None:
    """A file cut off at any byte is refused, holds the whole content (a missing checksum), or has a further warning."""
    found, data = opened(name, file)
    expected = set(found.facts(found.read(data))["warnings"])
    for length in sampled(len(data), MOST_LENGTHS, file):
        cut = data[:length]
        document = read_or_none(found, cut)
        if document is None or (name, file, length) in WHOLE_MODELS:
            continue
        if not found.same_content(cut, data):
            assert set(found.facts(document)["warnings"]) - expected, f"{length} of {len(data)} bytes"


@every_file
def test_bytes_behind_the_end_are_refused_reported_or_kept(name: str, file: str) -> None:
    found, data = opened(name, file)
    longer = data + b"\0"
    document = read_or_none(found, longer)
    if document is None:
        return
    reported = len(found.facts(document)["warnings"]) > len(found.facts(found.read(data))["warnings"])
    assert reported or (found.is_written and found.same_content(found.write(document), longer))


def test_a_format_that_is_only_read_says_so() -> None:
    for found in registry.FORMATS:
        assert found.is_read or found.is_written
        if not found.is_written:
            assert found.written_extensions == ()
            with pytest.raises(UnsupportedFormatError, match="only read"):
                found.write(object())


def changes(data: bytes, seed: str) -> Iterator[bytes]:
    """Yield copies with one bit or one byte changed."""
    rng = random.Random(seed)
    for place in sampled(len(data), MOST_CHANGES, seed):
        broken = bytearray(data)
        broken[place] = broken[place] ^ 1 << rng.randrange(8) if rng.random() < 0.7 else rng.randrange(256)
        yield bytes(broken)


@pytest.mark.any_version
@every_file
def test_changed_bytes_are_refused_or_survive(name: str, file: str) -> None:
    """Only a FormatError leaves the reader; a document that was read can be used and written."""
    found, data = opened(name, file)
    for broken in changes(data, file):
        sniffers(broken)
        document = read_or_none(found, broken)
        if document is None:
            continue
        try:
            found.facts(document)
            found.check(document)
            found.to_scene(document, "broken")
            if not found.is_written:
                continue
            written = found.write(document)
        except (FormatError, ExportError):
            continue
        assert found.same_content(written, found.write(found.read(written)))
