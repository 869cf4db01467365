"""Join several meshes: points and triangles are concatenated, materials merged by name, layers by index."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import ExportError
from ..core.messages import listed
from ..core.scene import AnyArray, IntArray, Layer, Mesh, Node, Scene, ShapeKey, Surface
from ..encodings.quantization import color_bytes
from ..geometry.triangles import shared_index


def join(meshes: Sequence[Mesh], *, merge_slots: bool = True) -> Mesh:
    """Join meshes that are in one space.

    Materials of the same name become one, unless ``merge_slots`` is off. Surfaces of the same name become one, but
    slots of one mesh stay separate. UV layers are joined by index; a mesh without one gets zeros, for a colour layer
    white. If some colours are bytes and others linear floats, all become bytes. Shape keys are joined by name; a mesh
    without one keeps its rest shape. Weights are concatenated: their joints must belong to one skeleton. Layers that
    share an index in each mesh share one in the result.
    """
    if len(meshes) == 1:
        return meshes[0]
    slots, materials, surfaces = _join_slots(meshes, merge_slots)
    starts = [0, *itertools.accumulate(len(mesh.points) for mesh in meshes)]
    joined = Mesh(
        points=np.concatenate([mesh.points for mesh in meshes]),
        corner_point=np.concatenate(
            [mesh.corner_point + np.int32(start) for mesh, start in zip(meshes, starts, strict=False)]
        ),
        material_index=np.concatenate(
            [np.asarray(slot, np.int32)[mesh.material_index] for mesh, slot in zip(meshes, slots, strict=True)]
        ),
        materials=materials,
        surfaces=surfaces,
    )
    sizes = [mesh.polygon_sizes for mesh in meshes if mesh.polygon_sizes is not None]
    joined.polygon_sizes = np.concatenate(sizes) if len(sizes) == len(meshes) else None
    owned = [mesh.own_files for mesh in meshes if mesh.own_files is not None]
    joined.own_files = frozenset.intersection(*owned) if owned else None
    layers = _LayerJoin(meshes)
    joined.normal = layers.join([mesh.normal for mesh in meshes])
    joined.tangent = layers.join([mesh.tangent for mesh in meshes])
    joined.uvs = [layer for found in _by_place([mesh.uvs for mesh in meshes]) if (layer := layers.join(found))]
    joined.colors = [
        layer for found in _by_place([mesh.colors for mesh in meshes]) if (layer := layers.join_colors(found))
    ]
    for name in dict.fromkeys(layer.name for mesh in meshes for layer in mesh.custom):
        layer = layers.join([_named(mesh.custom, name) for mesh in meshes])
        if layer is not None:
            joined.custom.append(layer)
    joined.shape_keys = list(_join_shape_keys(meshes, layers))
    _join_weights(meshes, joined)
    return joined


# -- slots --------------------------------------------------------------------------------------


def _join_slots(meshes: Sequence[Mesh], merge: bool) -> tuple[list[list[int]], list[str], list[Surface]]:
    """Return the new slots of each mesh, and the materials and surfaces of the joined slots."""
    with_surfaces = any(mesh.surfaces for mesh in meshes)
    places: dict[tuple[str, int], int] = {}
    materials: list[str] = []
    surfaces: list[Surface] = []
    slots_of = []
    uv_count = max((len(mesh.uvs) for mesh in meshes), default=0)
    for mesh in meshes:
        seen: dict[str, int] = {}
        slots: list[int] = []
        for number, material in enumerate(mesh.materials or [""]):
            surface = _surface_in(mesh, number, material, uv_count) if with_surfaces else None
            name = surface.name if surface else material
            occurrence = 0
            if surface:
                occurrence = seen[name] = seen.get(name, -1) + 1
            place = places.get((name, occurrence)) if merge else None
            if place is None:
                place = places[name, occurrence] = len(materials)
                materials.append(material)
                if surface:
                    surfaces.append(surface)
            elif surface:
                surfaces[place] = _both(surfaces[place], surface)
            slots.append(place)
        slots_of.append(slots)
    return slots_of, materials, surfaces


def _surface_in(mesh: Mesh, slot: int, material: str, uv_count: int) -> Surface:
    """Return a slot's surface, stating which UV and colour layers of the joined mesh it uses."""
    surface = mesh.surfaces[slot] if slot < len(mesh.surfaces) else Surface(material)
    held = surface.uvs if surface.uvs is not None else (True,) * len(mesh.uvs)
    uvs = tuple(place < len(mesh.uvs) and place < len(held) and held[place] for place in range(uv_count))
    return replace(
        surface,
        uvs=surface.uvs if uv_count == len(mesh.uvs) else uvs,
        has_colors=surface.has_colors and bool(mesh.colors),
    )


def _both(one: Surface, other: Surface) -> Surface:
    """Merge two surfaces: the result uses each layer that one of them uses."""
    uvs = None
    if one.uvs is not None and other.uvs is not None:
        uvs = tuple(a or b for a, b in itertools.zip_longest(one.uvs, other.uvs, fillvalue=False))
    keys = None
    if one.shape_keys is not None or other.shape_keys is not None:
        keys = {**(other.shape_keys or {}), **(one.shape_keys or {})}
    return replace(
        one,
        uvs=uvs,
        has_colors=one.has_colors or other.has_colors,
        has_weights=True if one.has_weights or other.has_weights else one.has_weights and other.has_weights,
        shape_keys=keys,
    )


# -- layers -------------------------------------------------------------------------------------


def _by_place(lists: Sequence[list[Layer]]) -> list[tuple[Layer | None, ...]]:
    """Group the layers of several meshes by index: all first layers, all second layers and so on; None if missing."""
    return list(itertools.zip_longest(*lists))


def _named(layers: Sequence[Layer], name: str) -> Layer | None:
    return next((layer for layer in layers if layer.name == name), None)


def _all_layers(mesh: Mesh) -> Iterator[Layer]:
    yield from mesh.layers()
    for key in mesh.shape_keys:
        yield from (layer for layer in (key.normal, key.tangent) if layer is not None)


class _LayerJoin:
    """Joins layers of several meshes: over a shared index if each mesh has one, otherwise by points or corners."""

    def __init__(self, meshes: Sequence[Mesh]) -> None:
        self.meshes = meshes
        self.index: IntArray | None = None
        self.value_counts: list[int] = []
        indices = [shared_index(_all_layers(mesh)) for mesh in meshes]
        known = [index for index in indices if index is not None]
        if len(known) == len(indices):
            self.value_counts = [len(next(_all_layers(mesh)).values) for mesh in meshes]
            starts = [0, *itertools.accumulate(self.value_counts)]
            self.index = np.concatenate([index + np.int32(start) for index, start in zip(known, starts, strict=False)])

    def join(self, found: Sequence[Layer | None], missing: int = 0) -> Layer | None:
        """Join one layer of each mesh, with ``missing`` for meshes without it. Return None if no mesh has it."""
        model = next((layer for layer in found if layer is not None), None)
        if model is None:
            return None
        if self.index is not None:
            return Layer(model.name, self.rows(found, model, missing, on_points=False), self.index)
        on_points = all(layer is None or (layer.index is None and not layer.per_corner) for layer in found)
        return Layer(model.name, self.rows(found, model, missing, on_points=on_points), per_corner=not on_points)

    def rows(self, found: Sequence[Layer | None], model: Layer, missing: int, *, on_points: bool) -> AnyArray:
        """Return the values of one layer of all meshes in a row; meshes without the layer have ``missing``."""
        width, dtype = model.values.shape[1], model.values.dtype
        runs: list[AnyArray] = []
        for number, (mesh, layer) in enumerate(zip(self.meshes, found, strict=True)):
            count = len(mesh.points) if on_points else len(mesh.corner_point)
            if self.index is not None:
                count = self.value_counts[number]
            if layer is None or layer.values.shape[1] != width:
                runs.append(np.full((count, width), missing, dtype))
            else:
                kept = on_points or self.index is not None
                values = layer.values if kept else layer.at_corners(mesh.corner_point)
                runs.append(values.astype(dtype, copy=False))
        return np.concatenate(runs)

    def join_colors(self, found: Sequence[Layer | None]) -> Layer | None:
        """Join one colour layer of each mesh, with white for meshes without it."""
        as_bytes = any(layer is not None and layer.values.dtype == np.uint8 for layer in found)
        if as_bytes:
            found = [layer and replace(layer, values=color_bytes(layer.values)) for layer in found]
        return self.join(found, 255 if as_bytes else 1)


# -- points -------------------------------------------------------------------------------------


def _join_shape_keys(meshes: Sequence[Mesh], layers: _LayerJoin) -> Iterator[ShapeKey]:
    """Join shape keys by name; meshes without a key keep their rest shape."""
    for name in dict.fromkeys(key.name for mesh in meshes for key in mesh.shape_keys):
        found = [next((key for key in mesh.shape_keys if key.name == name), None) for mesh in meshes]
        points = [key.points if key else mesh.points for mesh, key in zip(meshes, found, strict=True)]
        joined = ShapeKey(name, np.concatenate(points))
        # If one key has no normals, the joined key has none, instead of rest normals.
        if all(key is None or key.normal is not None for key in found):
            joined.normal = layers.join(
                [key.normal if key else mesh.normal for mesh, key in zip(meshes, found, strict=True)]
            )
        if all(key is None or key.tangent is not None for key in found):
            joined.tangent = layers.join(
                [key.tangent if key else mesh.tangent for mesh, key in zip(meshes, found, strict=True)]
            )
        yield joined


def _join_weights(meshes: Sequence[Mesh], joined: Mesh) -> None:
    """Join weights; points of a mesh without weights have none."""
    width = max((mesh.joint_weights.shape[1] for mesh in meshes if mesh.joint_weights is not None), default=0)
    if not width:
        return
    joined.joint_indices = np.zeros((len(joined.points), width), np.int32)
    joined.joint_weights = np.zeros((len(joined.points), width), np.float32)
    start = 0
    for mesh in meshes:
        end = start + len(mesh.points)
        if mesh.joint_indices is not None and mesh.joint_weights is not None:
            joined.joint_indices[start:end, : mesh.joint_indices.shape[1]] = mesh.joint_indices
            joined.joint_weights[start:end, : mesh.joint_weights.shape[1]] = mesh.joint_weights
        start = end


def only_mesh(scene: Scene, kind: str) -> tuple[Node, Mesh]:
    """Return the only node with a mesh, for a file of one mesh; ``kind`` is the display name of the file type.

    Raises
    ------
    ExportError
        There is no such node, or there are several.
    """
    found = [(node, node.mesh) for node in scene.nodes if node.mesh is not None]
    if len(found) > 1:
        names = listed([node.name for node, _ in found])
        raise ExportError(
            "A {} file holds one object, not {} ({}); join them or write several files", kind, len(found), names
        )
    if not found:
        raise ExportError("There is no mesh to write; select a mesh object")
    return found[0]


_Counts = tuple[int, int, tuple[str, ...]]


class EqualMeshes:
    """Finds equal meshes. Only meshes with equal counts are compared, by a hash of their content."""

    def __init__(self) -> None:
        self._lone: dict[_Counts, Mesh] = {}
        """The first mesh of each count, until a second mesh with the same count requires its hash."""
        self._by_hash: dict[_Counts, dict[bytes, Mesh]] = {}
        self._firsts: dict[int, Mesh] = {}
        """The first of each set of equal meshes by its id. Other meshes are not kept in memory."""

    def first(self, mesh: Mesh) -> Mesh:
        """Return the first mesh that equals this one: the same object for all equal meshes."""
        if id(mesh) in self._firsts:
            return mesh
        found = self._find(mesh)
        self._firsts[id(found)] = found
        return found

    def _find(self, mesh: Mesh) -> Mesh:
        """Return the first known mesh that is equal; meshes are hashed only if another has the same counts."""
        counts = (len(mesh.points), len(mesh.corner_point), tuple(mesh.materials))
        if counts not in self._lone:
            self._lone[counts] = mesh
            return mesh
        hashed = self._by_hash.get(counts)
        if hashed is None:
            lone = self._lone[counts]
            hashed = self._by_hash[counts] = {_hash_of(lone): lone}
        return hashed.setdefault(_hash_of(mesh), mesh)


def _hash_of(mesh: Mesh) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    _add(digest, mesh)
    return digest.digest()


def _add(digest: Any, value: Any) -> None:
    """Add a value to a hash: the bytes of arrays, the fields of dataclasses, the items of containers."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif is_dataclass(value):
        for field in fields(value):
            _add(digest, getattr(value, field.name))
    elif isinstance(value, Mapping):
        _add(digest, list(value.items()))
    elif isinstance(value, (list, tuple)):
        digest.update(f"{len(value)}[".encode())
        for element in value:
            _add(digest, element)
    else:
        digest.update(repr(value).encode("utf-8", "surrogatepass") + b"\0")
