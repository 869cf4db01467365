"""Compare two Timbermesh files corner by corner: what must be alike after a file was in Blender.

Both are read by protobuf's own parser (``timbermesh_oracle``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import timbermesh_oracle as oracle


def same_model(before: Any, after: Any, normals_within: float, *, welded: bool) -> int:
    """Compare two files; return how many triangles the normals could not be asked of."""
    same_tree(before, after)
    excepted = 0
    for old, new in zip(before.nodes, after.nodes, strict=True):
        excepted += same_triangles(old, new, normals_within, welded=welded)
        same_clips(old, new)
    # No vertex more than the file had.
    assert sum(node.vertexCount for node in after.nodes) <= sum(node.vertexCount for node in before.nodes)
    return excepted


def same_tree(before: Any, after: Any) -> None:
    assert [(node.name, node.parent) for node in after.nodes] == [(node.name, node.parent) for node in before.nodes]
    for old, new in zip(before.nodes, after.nodes, strict=True):
        np.testing.assert_allclose(oracle.transform(new), oracle.transform(old), atol=1e-5, err_msg=old.name)


def same_triangles(old: Any, new: Any, normals_within: float, *, welded: bool) -> int:
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
