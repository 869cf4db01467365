"""Every real file through Blender and back: what was in it is in it again.

Both files are read by protobuf's own parser (``timbermesh_oracle``), not by our reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timbermesh_oracle as oracle

pytestmark = pytest.mark.needs_bpy

NAMES = (
    *("BeaverBucks", "CordialForestStation", "DeepSeaPump", "RampSlope", "TurbineBlades", "BucketModel", "BiomeBox"),
    *("CompactWaterTurbine10", "Crane", "HangingOverhang", "SmartConveyorBeltCover", "ElectricLumberMill", "RaftRamp"),
    *("KeystoneFish1", "PipeWaterPump", "DualDistrictPile", "ShantySpeaker", "PaperLantern"),
)

WAYS: dict[str, dict[str, Any]] = {
    "exact": {"normals": "EXACT", "use_weld": False},
    "editable": {"normals": "EDITABLE", "use_weld": False},
    "window": {"normals": "AUTO", "use_weld": True},
    "exact-welded": {"normals": "EXACT", "use_weld": True},
}


def through_blender(path: Path, import_options: dict[str, Any]) -> tuple[bytes, list[str]]:
    """Import a file, export what came, and return the new file with what the import said."""
    import bpy
    from meshferry.blender_data.exporting import exporter
    from meshferry.blender_data.importing import importer
    from meshferry.io_formats import api, registry

    scene = api.read_scene(path)
    made = importer.import_scene(importer.ImportRequest(bpy.context, scene, importer.ImportOptions.of(import_options)))
    source = exporter.Source("COLLECTION", made.collection)
    back = exporter.export_scene(
        exporter.ExportRequest(
            bpy.context, source, exporter.ExportOptions.of(), "back", registry.TIMBERMESH.capabilities
        )
    )
    data, _ = api.encode_scene(back, registry.TIMBERMESH, ignore_errors=True)
    return data, made.warnings


@pytest.fixture(params=NAMES)
def sample(request: pytest.FixtureRequest, samples: Path) -> Path:
    (found,) = (samples / "timbermesh").glob(f"*__{request.param}.*mesh*")
    return found


@pytest.fixture(
    params=["exact", "window", *(pytest.param(way, marks=pytest.mark.slow) for way in ("editable", "exact-welded"))]
)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def uses_exact_normals(way: str, model: Any) -> bool:
    from meshferry.blender_data import compat

    return (
        way.startswith("exact") and compat.HAS_FREE_NORMALS and not any(node.vertexAnimations for node in model.nodes)
    )


def test_real_file_comes_back(sample: Path, way: str, record_property: Any) -> None:
    before = oracle.parse(sample.read_bytes())
    data, _ = through_blender(sample, WAYS[way])
    after = oracle.parse(data)
    same_tree(before, after)
    excepted = 0
    for old, new in zip(before.nodes, after.nodes, strict=True):
        excepted += same_triangles(old, new, WAYS[way]["use_weld"], 1e-3 if uses_exact_normals(way, before) else 0.015)
        same_clips(old, new)
    record_property("triangles_excepted", excepted)
    # No vertex more than the file had.
    assert sum(node.vertexCount for node in after.nodes) <= sum(node.vertexCount for node in before.nodes)


def same_tree(before: Any, after: Any) -> None:
    assert [(node.name, node.parent) for node in after.nodes] == [(node.name, node.parent) for node in before.nodes]
    for old, new in zip(before.nodes, after.nodes, strict=True):
        np.testing.assert_allclose(oracle.transform(new), oracle.transform(old), atol=1e-5, err_msg=old.name)


def same_triangles(old: Any, new: Any, welded: bool, normals_within: float) -> int:
    """Compare corner for corner; return how many triangles the normals could not be asked of."""
    olds, news = oracle.corners_of(old), oracle.corners_of(new)
    assert list(news) == list(olds)
    excepted = 0
    for material, whole in olds.items():
        mine, theirs = whole, news[material]
        dropped = mine.repeated
        if welded:  # joined vertices make corners repeat where a triangle has two corners in one place
            p = mine.triangles("position")
            dropped = dropped | (p == np.roll(p, 1, axis=1)).all(axis=2).any(axis=1)
        mine = mine.kept(~dropped)
        assert set(theirs.properties) == set(mine.properties)
        assert len(theirs.indices) == len(mine.indices)
        for name in ("position", "color", "uv0", "uv1", "uv2"):
            if name in mine.properties:
                np.testing.assert_array_equal(
                    theirs.properties[name], mine.properties[name], err_msg=f"{old.name} {name}"
                )
        excepted += int(dropped.sum()) + same_normals(mine, theirs, normals_within)
    return excepted


def same_normals(mine: oracle.Corners, theirs: oracle.Corners, within: float) -> int:
    stored = mine.triangles("normal").astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(stored, axis=2, keepdims=True)
        asked = ~(mine.flat | mine.twins) & (np.abs(length[..., 0] - 1) < 0.1).all(axis=1)
    difference = np.abs(theirs.triangles("normal")[asked] - stored[asked] / length[asked])
    assert difference.max(initial=0) <= within
    return int((~asked).sum())


def same_clips(old: Any, new: Any) -> None:
    assert [(a.name, a.framerate, len(a.frames)) for a in new.nodeAnimations] == [
        (a.name, a.framerate, len(a.frames)) for a in old.nodeAnimations
    ]
    for mine, theirs in zip(old.nodeAnimations, new.nodeAnimations, strict=True):
        for number, (one, other) in enumerate(zip(mine.frames, theirs.frames, strict=True)):
            np.testing.assert_allclose(
                oracle.transform(other), oracle.transform(one), atol=1e-5, err_msg=f"{old.name} frame {number}"
            )
    assert [(a.name, a.framerate, len(a.frames)) for a in new.vertexAnimations] == [
        (a.name, a.framerate, len(a.frames)) for a in old.vertexAnimations
    ]
    for mine, theirs in zip(old.vertexAnimations, new.vertexAnimations, strict=True):
        same_vertex_animation(old, new, mine, theirs)


def same_vertex_animation(old: Any, new: Any, mine: Any, theirs: Any) -> None:
    """Compare offsets and frame rotations at the corners of the triangles."""
    (old_corners,) = oracle.corners_of(old).values()
    (new_corners,) = oracle.corners_of(new).values()
    kept = np.repeat(~old_corners.repeated, 3)
    angles = []
    for one, other in zip(mine.frames, theirs.frames, strict=True):
        offsets = oracle.values(one.vertexProperties, "offset")[old_corners.indices[kept]]
        np.testing.assert_allclose(
            oracle.values(other.vertexProperties, "offset")[new_corners.indices], offsets, atol=1e-5
        )
        q = oracle.values(one.vertexProperties, "rotation")[old_corners.indices[kept]].astype(float)
        r = oracle.values(other.vertexProperties, "rotation")[new_corners.indices].astype(float)
        cosine = np.abs(np.einsum("ij,ij->i", q, r)) / np.linalg.norm(q, axis=1) / np.linalg.norm(r, axis=1)
        angles.append(np.degrees(2 * np.arccos(cosine.clip(0, 1))))
    turned = np.concatenate(angles)
    assert np.median(turned) <= 0.1
    assert np.percentile(turned, 95) <= 5.0
