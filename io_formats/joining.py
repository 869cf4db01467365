"""Several meshes -> one: points and triangles in a row, materials by name, layers by their place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .quantization import linear_to_srgb, to_unorm
from .scene import AnyArray, Layer, Mesh


def join(meshes: Sequence[Mesh]) -> Mesh:
    """Join meshes that lie in one space.

    Materials of the same name become one. The first UV layer joins the first ones of the others and
    so on; a mesh that lacks one gets zeros there, white for a colour layer. Where some colours are
    bytes and others linear floats, all become bytes. Shape keys and weights are not joined.
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
    if any(mesh.normal is not None for mesh in meshes):
        joined.normal = _join_layers(meshes, [mesh.normal for mesh in meshes])
    if any(mesh.tangent is not None for mesh in meshes):
        joined.tangent = _join_layers(meshes, [mesh.tangent for mesh in meshes])
    joined.uvs = [_join_layers(meshes, found) for found in _by_place([mesh.uvs for mesh in meshes])]
    joined.colors = [_join_colors(meshes, found) for found in _by_place([mesh.colors for mesh in meshes])]
    for name in dict.fromkeys(layer.name for mesh in meshes for layer in mesh.custom):
        found = [next((layer for layer in mesh.custom if layer.name == name), None) for mesh in meshes]
        joined.custom.append(_join_layers(meshes, found))
    return joined


def _by_place(lists: Sequence[list[Layer]]) -> list[tuple[Layer | None, ...]]:
    """Return the first layers, the second layers and so on."""
    return list(itertools.zip_longest(*lists))


def _join_colors(meshes: Sequence[Mesh], found: Sequence[Layer | None]) -> Layer:
    """Join one colour layer of each mesh; white where there is none."""
    as_bytes = any(layer is not None and layer.values.dtype == np.uint8 for layer in found)
    if as_bytes:
        found = [layer and replace(layer, values=_encoded(layer.values)) for layer in found]
    return _join_layers(meshes, found, 255 if as_bytes else 1)


def _encoded(colors: AnyArray) -> AnyArray:
    return colors if colors.dtype == np.uint8 else to_unorm(linear_to_srgb(colors))


def _join_layers(meshes: Sequence[Mesh], found: Sequence[Layer | None], missing: int = 0) -> Layer:
    """Join one layer of each mesh, per point where all are, else per corner."""
    model = next(layer for layer in found if layer is not None)
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
