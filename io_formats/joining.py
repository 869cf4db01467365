"""Several meshes -> one: points and triangles in a row, materials by name, layers by their place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from .scene import AnyArray, Layer, Mesh


def join(meshes: Sequence[Mesh]) -> Mesh:
    """Join meshes that lie in one space.

    Materials of the same name become one. The first UV layer joins the first ones of the others and
    so on; a mesh that lacks one gets zeros there, white for a colour layer. Shape keys and weights
    are not joined.
    """
    if len(meshes) == 1:
        return meshes[0]
    materials: list[str] = []
    material_runs = []
    corner_runs = []
    first_point = 0
    for mesh in meshes:
        names = mesh.materials or [""]
        for name in names:
            if name not in materials:
                materials.append(name)
        slots = np.array([materials.index(name) for name in names], np.int32)
        material_runs.append(slots[mesh.material_index])
        corner_runs.append(mesh.corner_point + np.int32(first_point))
        first_point += len(mesh.points)
    joined = Mesh(
        points=np.concatenate([mesh.points for mesh in meshes]),
        corner_point=np.concatenate(corner_runs),
        material_index=np.concatenate(material_runs),
        materials=materials,
    )
    joined.normal = _join_layers(meshes, [mesh.normal for mesh in meshes], 0)
    joined.tangent = _join_layers(meshes, [mesh.tangent for mesh in meshes], 0)
    joined.uvs = _join_lists(meshes, [mesh.uvs for mesh in meshes], 0)
    joined.colors = _join_lists(meshes, [mesh.colors for mesh in meshes], 255)
    for name in dict.fromkeys(layer.name for mesh in meshes for layer in mesh.custom):
        found = [next((layer for layer in mesh.custom if layer.name == name), None) for mesh in meshes]
        joined.custom += [layer for layer in [_join_layers(meshes, found, 0)] if layer is not None]
    return joined


def _join_lists(meshes: Sequence[Mesh], lists: Sequence[list[Layer]], missing: int) -> list[Layer]:
    """Join the first layers, the second layers and so on."""
    joined = [_join_layers(meshes, found, missing) for found in itertools.zip_longest(*lists)]
    return [layer for layer in joined if layer is not None]


def _join_layers(meshes: Sequence[Mesh], found: Sequence[Layer | None], missing: int) -> Layer | None:
    """Join one layer of each mesh, per point where all are, else per corner."""
    model = next((layer for layer in found if layer is not None), None)
    if model is None:
        return None
    on_points = all(layer is None or (layer.index is None and not layer.per_corner) for layer in found)
    width, dtype = model.values.shape[1], model.values.dtype
    runs: list[AnyArray] = []
    for mesh, layer in zip(meshes, found, strict=True):
        count = len(mesh.points) if on_points else len(mesh.corner_point)
        if layer is None or layer.values.shape[1] != width:
            runs.append(np.full((count, width), missing, dtype))
        else:
            runs.append((layer.values if on_points else layer.at_corners(mesh.corner_point)).astype(dtype, copy=False))
    return Layer(model.name, np.concatenate(runs), per_corner=not on_points)
