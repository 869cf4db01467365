"""Comparison of triangles with sampled triangles of the same surface, which may be divided in another way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def closest(samples: Array, triangles: Array) -> tuple[Array, Array]:
    """Return the closest point of each triangle to each sample, as barycentric weights, and the distance.

    ``samples`` (k, 3), ``triangles`` (m, 3, 3); weights (k, m, 3), distances (k, m). A triangle's closest point is in
    its inside or on one of its edges.
    """
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    u, v, w = b - a, c - a, samples[:, None] - a
    uu, uv, vv = (np.einsum("ij,ij->i", *pair) for pair in ((u, u), (u, v), (v, v)))
    wu, wv = np.einsum("kij,ij->ki", w, u), np.einsum("kij,ij->ki", w, v)
    area = np.maximum(uu * vv - uv * uv, 1e-300)
    second, third = (vv * wu - uv * wv) / area, (uu * wv - uv * wu) / area
    inside = np.stack((1 - second - third, second, third), axis=2)
    candidates = [np.where((inside.min(axis=2) >= 0)[..., None], inside, np.nan)]
    for start, end in ((0, 1), (1, 2), (2, 0)):
        along = triangles[:, end] - triangles[:, start]
        part = np.einsum("kij,ij->ki", samples[:, None] - triangles[:, start], along)
        part = np.clip(part / np.maximum(np.einsum("ij,ij->i", along, along), 1e-300), 0, 1)
        edge = np.zeros_like(inside)
        edge[..., start], edge[..., end] = 1 - part, part
        candidates.append(edge)
    weights = np.stack(candidates)
    distance = np.linalg.norm(np.einsum("ckmi,mij->ckmj", weights, triangles) - samples[:, None], axis=3)
    best = np.nanargmin(distance, axis=0)[None]
    return np.take_along_axis(weights, best[..., None], 0)[0], np.take_along_axis(distance, best, 0)[0]
