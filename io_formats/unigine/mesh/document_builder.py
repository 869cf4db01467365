"""Scene -> document (docs/formats/unigine.md, sections 3, 4, 6 and 9)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...core import scene as sc
from ...core.errors import ExportError
from ...core.messages import Named, Report, counted, listed, of_kind
from ...core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh, Node, Scene, ShapeKey
from ...encodings.quantization import color_bytes
from ...geometry import normals as normal_repair
from ...geometry.normals import vertex_tangents
from ...geometry.triangles import Pool, pool_rows, shared_index
from ...geometry.vertices import layer_keys, report_loose, split, usable_weights
from ...passes.join_meshes import only_mesh
from .. import joint_tracks, space
from ..bones import IDENTITY, Bone, from_skeleton, with_parents_first
from ..skeleton.stored_data import stored_data
from ..space import rotate_180
from . import document as doc
from . import format as mesh_format
from .codec import geometry_size
from .scene_builder import UV_NAMES

ROOT = "root"
"""Name of the only bone of sk10 files of meshes without an armature."""
MOST_WEIGHTS = 4
_FULL = 65535
_OFF = 5 / _FULL
"""Tolerance for sums of four weights: files truncate each to 1/65535, so sums this close to 1 stay unchanged."""
_NOISE = 0.01
"""Added to 65535 w before truncation, since w = u / 65535 in single precision can be slightly too small."""


@dataclass
class PointWeights:
    """Quantised weights of all points of a mesh, up to four for each."""

    bones: AnyArray
    """(P, 4) int16 bone indices."""
    values: AnyArray
    """(P, 4) uint16 / 65535; 0 means unused."""

    def moves(self, points: Pool) -> bool:
        """Return whether any of these points has a weight, so that bones move it."""
        return bool(self.values[points.chosen].any())

    def of_points(self, points: Pool) -> doc.Weights:
        """Return the weights of these points in the form that a surface stores, without unused entries."""
        values = self.values[points.chosen]
        kept = values > 0
        return doc.Weights(kept.sum(axis=1, dtype=np.uint8), self.bones[points.chosen][kept], values[kept])


def quantised_weights(mesh: Mesh, bone_count: int, report: Report) -> PointWeights | None:
    """Return the quantised weights of a mesh, or None if it has none.

    The four strongest weights are kept. Sums other than 1 are normalised, with a warning.

    Raises
    ------
    ExportError
        A weight refers to a bone that does not exist.
    """
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return None
    bones, weights = mesh.joint_indices, usable_weights(mesh.joint_weights, report)
    bones, weights = _strongest(bones, weights)
    lost = (weights > 0) & ((bones < 0) | (bones >= bone_count))
    if lost.any():
        template = "{} weighted to bones that the armature does not have; remove those vertex groups"
        raise ExportError(template, counted(int(lost.any(axis=1).sum()), "vertex is", "vertices are"))
    total = weights.sum(axis=1)
    off = (np.abs(total - 1) > _OFF) & (total > 0)
    count = int(np.count_nonzero(off))
    if count:
        weights = weights.astype(np.float64)
        weights[off] /= weights[off].sum(axis=1, keepdims=True)
        number = counted(count, "vertex", "vertices")
        report.change("unnormalised-weights", "the weights of {} did not add up to 1; normalised", number)
    return PointWeights(bones.astype(np.int16), _stored(weights))


def _strongest(bones: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Keep the four strongest weights of each point, in their original order."""
    if weights.shape[1] <= MOST_WEIGHTS:
        return bones, weights
    strongest = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :MOST_WEIGHTS], axis=1)
    return np.take_along_axis(bones, strongest, axis=1), np.take_along_axis(weights, strongest, axis=1)


def _stored(weights: npt.NDArray[np.floating]) -> AnyArray:
    """Quantise weights w to 65535 w, truncated."""
    scaled = weights * weights.dtype.type(_FULL)
    scaled += weights.dtype.type(_NOISE)
    return np.minimum(scaled, _FULL, out=scaled).astype(np.uint16)


MOST_SURFACES = 32767
_FARTHEST = 1e18
"""Limit of coordinates in metres; the squares of larger ones overflow in the bounds."""
_LONGEST_NAME = 4095
"""Maximum length of a name in UTF-8 bytes."""


def refuse_unstorable(scene: Scene, node: Node, mesh: Mesh, version: str, *, embeds: bool) -> None:
    """Raise ExportError for data that the version, or any mesh file, cannot store.

    Raises
    ------
    ExportError
        Bones, weights or shape keys in a version for static meshes; embedded animations in a version without them; NaN
        or infinite coordinates; more surfaces than the engine allows; names that are too long.
    """
    if version not in mesh_format.SKINNED_VERSIONS:
        held = [
            what
            for what, is_there in (
                ("an armature", node.skeleton is not None and bool(scene.skeletons[node.skeleton].joints)),
                ("shape keys", bool(mesh.shape_keys)),
            )
            if is_there
        ]
        if held:
            raise ExportError(
                "'{}' has {}, which {} cannot hold; choose sk10, ms14 or ms13, or remove {}",
                node.name,
                " and ".join(held),
                version,
                "it" if held == ["an armature"] else "them",
            )
    if embeds and scene.clips and version not in mesh_format.ANIMATED_VERSIONS:
        raise ExportError(
            "{} holds no animations; choose ms12 or write the animations as .anim files (turn Animations Inside off)",
            version,
        )
    for points in (mesh.points, *(key.points for key in mesh.shape_keys)):
        if not np.isfinite(points).all():
            raise ExportError("'{}' has vertices with NaN or infinite coordinates; delete them", node.name)
        if points.size and max(-points.min(), points.max()) > _FARTHEST:
            raise ExportError("'{}' has vertices too far away to have bounds; delete them", node.name)
    if len(mesh.materials) > MOST_SURFACES:
        template = "'{}' has {:,} material slots; UNIGINE allows {:,} surfaces. Remove slots or separate the object"
        raise ExportError(template, node.name, len(mesh.materials), MOST_SURFACES)
    for name in _names(scene, node, mesh):
        if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
            raise ExportError(
                "The name '{:…<41}' is too long for the file; {:,} bytes at most", name[:40], _LONGEST_NAME
            )


def _names(scene: Scene, node: Node, mesh: Mesh) -> Iterator[str]:
    yield node.name
    yield from mesh.materials
    for surface in mesh.surfaces:
        yield surface.name
        yield from (surface.shape_keys or {}).values()
    yield from (key.name for key in mesh.shape_keys)
    yield from (joint.name for skeleton in scene.skeletons for joint in skeleton.joints)
    yield from (clip.name for clip in scene.clips)


_LONGEST = np.float32(1e9)
"""Limit for components of tangents. A tangent with a larger one is ignored, since its square may overflow in single
precision."""


class TriangleVertices:
    """The V triangle vertices of a whole mesh.

    If all layers share one index, the rows of the layers are the triangle vertices, as in the imported file. Otherwise
    corners with the same point and layer values are one vertex.
    """

    def __init__(self, mesh: Mesh, tolerance: float, report: Report) -> None:
        self.mesh = mesh
        self.report = report
        index = shared_index(_stored_layers(mesh))
        if not mesh.triangle_count:
            index = None  # without corners, no value of a layer is used
        self.is_shared = index is not None
        self.index: IntArray
        """(C,) index of the triangle vertex of each corner."""
        if index is not None:
            self.index = index
            self.count = len(next(_stored_layers(mesh)).values)
        else:
            # Custom layers are not written, so they do not separate vertices.
            keys = layer_keys(replace(mesh, custom=[]), tolerance)
            found = split(mesh.corner_point, len(mesh.points), keys)
            self.index = found.corner_vertex
            self.count = len(found.vertex_corner)
            self.corner = found.vertex_corner

    @cached_property
    def corner(self) -> npt.NDArray[np.intp]:
        """(V,) a corner of each vertex; 0 for vertices that no corner uses."""
        corner = np.zeros(self.count, np.intp)
        corner[self.index] = np.arange(len(self.index))
        return corner

    @cached_property
    def point(self) -> IntArray:
        """(V,) the point of each vertex."""
        return self.mesh.corner_point[self.corner]

    def values(self, layer: Layer) -> AnyArray:
        """Return a layer's values at the vertices, (V, k)."""
        return layer.values if self.is_shared else layer.at_vertices(self.corner, self.point)

    def uv(self, layer: Layer) -> FloatArray:
        """Return UVs, (V, 2) float32, v from the top; NaN and infinite values become 0."""
        values = self.values(layer)
        flipped = np.empty((len(values), 2), np.float32)
        flipped[:, 0] = values[:, 0]
        np.subtract(np.float32(1), values[:, 1], out=flipped[:, 1])
        finite = np.isfinite(flipped)
        if not finite.all():
            flipped[~finite] = 0
            number = counted(int((~finite).sum()), "coordinate", "coordinates")
            self.report.change("nan-uv-coordinates", "{} of '{}' NaN or infinite; written as 0", number, layer.name)
        return flipped

    @cached_property
    def normals(self) -> FloatArray:
        """(V, 3) float32 unit normals. Zero and invalid normals are replaced by the normal of a triangle."""
        if self.mesh.normal is None:
            return normal_repair.vertex_normals(self.mesh.points, self.mesh.corner_point)[self.point]
        return self._repaired(self.values(self.mesh.normal).astype(np.float32, copy=False), self.mesh.points)

    def _repaired(self, normals: FloatArray, points: FloatArray) -> FloatArray:
        return normal_repair.repair_vertices(normals, self.corner, points, self.mesh.corner_point)[0]

    def tangents(self, normals: FloatArray, tangent: Layer | None, uv: Layer | None, points: FloatArray) -> FloatArray:
        """Return tangents, (V, 4) float32: the given ones, or else along u, or zero without UVs."""
        if tangent is None:
            if uv is None:
                return np.zeros((self.count, 4), np.float32)
            values = self.values(uv).astype(np.float32, copy=False)
            return vertex_tangents(points[self.point], normals, values, self.index)
        values = self.values(tangent).astype(np.float32, copy=False)
        if values.size and not (values.max() < _LONGEST and values.min() > -_LONGEST):
            sound = np.all(np.abs(values) < _LONGEST, axis=1, keepdims=True)
            values = np.where(sound, values, np.float32(0))
        return values

    def key_normals(self, key: ShapeKey) -> FloatArray:
        """Return the normals of a shape key, (V, 3).

        They are its own, or the rest normals rotated as the triangles are.
        """
        if key.normal is not None:
            return self._repaired(self.values(key.normal).astype(np.float32, copy=False), key.points)
        at_rest = normal_repair.vertex_normals(self.mesh.points, self.mesh.corner_point)
        moved = normal_repair.vertex_normals(key.points, self.mesh.corner_point)
        return self._repaired(self.normals + (moved - at_rest)[self.point], key.points)


def _stored_layers(mesh: Mesh) -> Iterator[Layer]:
    """Yield the layers that a file can store."""
    yield from replace(mesh, custom=[]).layers()
    for key in mesh.shape_keys:
        yield from (layer for layer in (key.normal, key.tangent) if layer is not None)


_SOUP_NAME = 127
"""Maximum length of a surface name in mr02, in bytes without the terminating zero."""


@dataclass
class Shape:
    """One shape of the whole mesh: the base shape, or one shape key."""

    name: str
    points: sc.FloatArray
    """(P, 3) positions of the points."""
    frames: sc.AnyArray
    """(V, 4) int16 tangent frames of the triangle vertices."""


class MeshBuilder:
    """Map a scene with one node to a mesh file."""

    def __init__(self, scene: sc.Scene, options: mesh_format.WriteOptions) -> None:
        self.version = options.mesh_version.lower()
        self.scene = rotate_180(scene, back=True) if options.use_turn else scene
        if self.version == mesh_format.SEPARATE_SKELETON_VERSION:
            self.scene = with_parents_first(self.scene)
        self.node, self.mesh = only_mesh(self.scene, "UNIGINE mesh")
        self.embeds = options.use_embedded_animation
        refuse_unstorable(self.scene, self.node, self.mesh, self.version, embeds=self.embeds)
        self.document = doc.MeshFile(self.version, own_files=self.mesh.own_files)
        self.held_keys: set[str] = set()
        self.report = self.scene.report.about(self.node.name)
        self.vertices = TriangleVertices(self.mesh, scene.tolerance, self.report)

    def build(self) -> doc.MeshFile:
        """Return the document."""
        if self.version == mesh_format.SOUP_VERSION:
            self.soup()
        else:
            self.surfaces()
        self.clips()
        return self.document

    def slots(self) -> list[tuple[sc.Surface, slice, sc.AnyArray, sc.AnyArray]]:
        """Return each slot's surface and slice of corners, and the points and vertices of all corners.

        Slots without triangles are left out, with a warning unless they were empty in the imported file.
        """
        mesh = self.mesh
        names = mesh.materials or ([""] if mesh.triangle_count else [])
        surfaces = mesh.surfaces if len(mesh.surfaces) == len(names) else [sc.Surface(name) for name in names]
        slot = np.clip(mesh.material_index, 0, max(len(names) - 1, 0))
        counts = np.bincount(slot, minlength=len(names))
        corner_point, corner_vertex = mesh.corner_point, self.vertices.index
        if len(names) > 1 and np.any(slot[1:] < slot[:-1]):
            # NumPy uses its fast radix sort only for 16-bit integers
            order = np.argsort(slot.astype(np.int16), kind="stable")
            corner_point = corner_point.reshape(-1, 3)[order].reshape(-1)
            corner_vertex = corner_vertex.reshape(-1, 3)[order].reshape(-1)
        found, start, unused = [], 0, []
        for surface, count in zip(surfaces, counts.tolist(), strict=True):
            if count or surface.is_empty:
                found.append((surface, slice(3 * start, 3 * (start + count)), corner_point, corner_vertex))
            else:
                unused.append(surface.name)
            start += count
        if unused:
            number = counted(
                len(unused), "material slot without triangles was", "material slots without triangles were"
            )
            self.report.loss("empty-slots", "{} left out: {}", number, listed(of_kind("material", unused)))
        return found

    def surface_name(self, surface: sc.Surface) -> str:
        return surface.name or self.node.name

    # -- ms10 and later -------------------------------------------------------------------------

    def surfaces(self) -> None:
        """Build the bones, and a surface with its own coordinate and triangle vertices for each slot."""
        vertices, document = self.vertices, self.document
        if self.node.skeleton is not None:
            document.bones, document.transforms = from_skeleton(self.scene.skeletons[self.node.skeleton])
        if self.version == mesh_format.SEPARATE_SKELETON_VERSION:
            self.rest()
        uv_layers = _uv_places(self.mesh.uvs)
        uvs = [vertices.uv(self.mesh.uvs[place]) if place is not None else None for place in uv_layers]
        colors = color_bytes(vertices.values(self.mesh.colors[0])) if self.mesh.colors else None
        shapes = self.shapes(uv_layers[0])
        weights = self.weights()
        left_out: dict[str, list[str]] = {}
        for surface, corners, corner_point, corner_vertex in self.slots():
            points, used = pool_rows(corner_point[corners]), pool_rows(corner_vertex[corners])
            stored = doc.Surface(
                self.surface_name(surface),
                space.empty_bounds(),
                targets=self.targets(surface, shapes, points, used),
                c_indices=points.index.astype(_index_type(points.count), copy=False),
                t_indices=used.index.astype(_index_type(used.count), copy=False),
                lightmap_channel=_clamped(surface.lightmap_channel, 0, 1, doc.DEFAULT_LIGHTMAP[0]),
                lightmap_resolution=_clamped(surface.lightmap_resolution, 0, 7, doc.DEFAULT_LIGHTMAP[1]),
            )
            with np.errstate(over="ignore", invalid="ignore"):
                stored.bounds = space.of_points(stored.targets[0].positions)
            held = [
                uv[used.chosen] if uv is not None and _holds(surface, uv_layers[n]) else None
                for n, uv in enumerate(uvs)
            ]
            stored.uv0, stored.uv1 = held
            if colors is not None and surface.has_colors:
                stored.colors = colors[used.chosen]
            layers = [(place, uv, own, (0, 1)) for place, uv, own in zip(uv_layers, uvs, held, strict=True)]
            for place, values, own, unset in (*layers, (None, colors, stored.colors, 255)):
                if values is not None and own is None and (values[used.chosen] != unset).any():
                    layer = self.mesh.colors[0] if place is None else self.mesh.uvs[place]
                    left_out.setdefault(layer.name, []).append(stored.name)
            if weights is not None and (surface.has_weights or weights.moves(points)):
                stored.weights = weights.of_points(points)
            document.surfaces.append(stored)
        for name, surfaces in left_out.items():
            template = "left out '{}' of {}, where it is turned off; turn it on in the list of surfaces"
            self.report.loss("unused-layers", template, Named("layer", name), listed(of_kind("layer", surfaces)))
        self.report_losses()
        document.bounds = space.union_of_bounds([surface.bounds for surface in document.surfaces])
        if self.version == mesh_format.SEPARATE_SKELETON_VERSION:
            document.memory_use = sum(geometry_size(surface, self.version) for surface in document.surfaces)
        else:
            document.memory_use = _memory_use(document.surfaces)

    def rest(self) -> None:
        """Set the rest transforms of sk10. If there are no bones, all vertices are bound to a new one."""
        document, number = self.document, self.node.skeleton
        if not document.bones:
            document.bones, document.transforms = [Bone(ROOT)], np.array([IDENTITY], np.float32)
            count = len(self.mesh.points)
            bones, weights = np.zeros((count, 1), np.int32), np.ones((count, 1), np.float32)
            self.mesh = replace(self.mesh, joint_indices=bones, joint_weights=weights)
            text = "has no armature; all vertices are bound to a bone '{}', since no file without bones is known"
            self.report.note("root-bone-added", text, ROOT)
        skeleton = None if number is None else self.scene.skeletons[number]
        document.rest_transforms = stored_data(skeleton, document.bones, document.transforms).rest

    def report_losses(self) -> None:
        """Report data of the mesh that the surfaces cannot store."""
        mesh, stored = self.mesh, self.document.surfaces
        keys = [key.name for key in mesh.shape_keys if key.name not in self.held_keys]
        text = "{} nothing, left out: {}"
        self.report.loss_of("empty-shape-keys", text, of_kind("layer", keys), "shape key moves", "shape keys move")
        report_loose(mesh, self.report)
        settings = [(surface.lightmap_channel, surface.lightmap_resolution) for surface in stored]
        lost = sum(setting != doc.DEFAULT_LIGHTMAP for setting in settings)
        if lost and self.version not in mesh_format.LIGHTMAP_VERSIONS:
            template = "{} holds no lightmap settings; left out those of {}"
            self.report.loss("lightmap-left-out", template, self.version, counted(lost, "surface", "surfaces"))

    def weights(self) -> PointWeights | None:
        bones = self.document.bones
        return quantised_weights(self.mesh, len(bones), self.report) if bones else None

    def shapes(self, uv_place: int | None) -> list[Shape]:
        """Return the base shape and the shape keys, with tangent frames of all triangle vertices."""
        mesh, vertices = self.mesh, self.vertices
        uv = mesh.uvs[uv_place] if uv_place is not None else None
        has_sign_byte = self.version == mesh_format.SHORT_TANGENT_VERSION
        tangents = vertices.tangents(vertices.normals, mesh.tangent, uv, mesh.points)
        shapes = [Shape("", mesh.points, space.encode_frames(vertices.normals, tangents, has_sign_byte=has_sign_byte))]
        for key in mesh.shape_keys:
            normals = vertices.key_normals(key)
            turned_tangents = tangents
            if key.tangent is not None:
                turned_tangents = vertices.tangents(normals, key.tangent, uv, key.points)
            frames = space.encode_frames(normals, turned_tangents, has_sign_byte=has_sign_byte)
            shapes.append(Shape(key.name, key.points, frames))
        return shapes

    def targets(self, surface: sc.Surface, shapes: Sequence[Shape], points: Pool, used: Pool) -> list[doc.Target]:
        """Return a surface's base shape, its imported shapes in their order, and new shapes that move its points."""
        base, *keys = shapes
        rest = base.points[points.chosen]
        targets = [doc.Target(surface.base_name, rest, base.frames[used.chosen])]
        had = surface.shape_keys or {}
        for key in _in_order(keys, had):
            positions = key.points[points.chosen]
            if key.name in had or not np.array_equal(positions, rest):
                self.held_keys.add(key.name)
                targets.append(doc.Target(had.get(key.name, key.name), positions, key.frames[used.chosen]))
        return targets

    def clips(self) -> None:
        """Embed the animations of bones, or warn that they are left out."""
        clips = [clip for clip in self.scene.clips if any(track.skeleton is not None for track in clip.transforms)]
        if not clips:
            return
        if not self.embeds:
            template = "{} not in the mesh file: {}. Write .anim files for them"
            names = of_kind("animation", (clip.name for clip in clips))
            self.report.loss_of("animations-left-out", template, names, "animation is", "animations are")
            return
        for clip in clips:
            joint_tracks.report_playback(clip, self.version, self.scene.report)
            frames = joint_tracks.delta_frames(clip, self.scene.skeletons[0])
            self.document.animations.append(doc.EmbeddedAnimation(clip.name, frames))

    # -- mr02 -----------------------------------------------------------------------------------

    def soup(self) -> None:
        """Build the surfaces of mr02: position, normal and first UV map of every corner (section 9)."""
        mesh, vertices = self.mesh, self.vertices
        places = _uv_places(mesh.uvs)
        if places[1] is not None or mesh.colors:
            self.report.loss("layers-left-out", "mr02 holds neither colours nor a second UV map; left out")
        uv = vertices.values(mesh.uvs[places[0]]) if places[0] is not None else None
        for surface, corners, corner_point, corner_vertex in self.slots():
            rows = np.zeros((corners.stop - corners.start, 8), np.float32)
            rows[:, :3] = mesh.points[corner_point[corners]]
            rows[:, 3:6] = vertices.normals[corner_vertex[corners]]
            if uv is not None and _holds(surface, places[0]):
                rows[:, 6:8] = np.nan_to_num(uv, posinf=0, neginf=0)[corner_vertex[corners]]
            self.document.soup.append(doc.SoupSurface(_soup_name(self.surface_name(surface), self.report), rows))


def _soup_name(name: str, report: Report) -> bytes:
    stored = name.encode("utf-8", "replace")
    if len(stored) > _SOUP_NAME:
        report.change("name-cut", "the name '{}' was cut, since mr02 holds {} bytes", name, _SOUP_NAME)
        stored = stored[:_SOUP_NAME].decode("utf-8", "ignore").encode("utf-8")
    return stored.ljust(_SOUP_NAME + 1, b"\0")


def _in_order(keys: Sequence[Shape], had: Iterable[str]) -> list[Shape]:
    """Sort shapes in the order that they had in the imported surface.

    A new shape follows the shape before it in the mesh.

    The engine also identifies shapes by index, so a renamed shape keeps its position.
    """
    order = {name: place for place, name in enumerate(had)}
    ranks: list[tuple[int, int]] = []
    for key in keys:
        place, later = ranks[-1] if ranks else (-1, 0)
        ranks.append((order[key.name], 0) if key.name in order else (place, later + 1))
    return [keys[number] for number in sorted(range(len(keys)), key=ranks.__getitem__)]


def _uv_places(layers: Sequence[sc.Layer]) -> list[int | None]:
    """Return the indices of the layers that become UV0 and UV1.

    A layer with the name UV0 or UV1 is preferred, otherwise the first layer without either name. None if there are too
    few layers.
    """
    names = [layer.name for layer in layers]
    places = [names.index(name) if name in names else None for name in UV_NAMES]
    others = [place for place in range(len(layers)) if place not in places]
    return [place if place is not None else (others.pop(0) if others else None) for place in places]


def _holds(surface: sc.Surface, place: int | None) -> bool:
    """Return whether a surface uses the UV layer at this index of the mesh."""
    if place is None:
        return False
    return surface.uvs is None or place >= len(surface.uvs) or surface.uvs[place]


def _index_type(count: int) -> type[np.generic]:
    """Return the integer type for indices into a pool of this many vertices (section 3, index width)."""
    return np.uint8 if count < 256 else np.uint16 if count < 65536 else np.int32


def _clamped(value: int | None, least: int, most: int, default: int) -> int:
    """Return a value within its limits, or the default for None."""
    return default if value is None else min(max(value, least), most)


def _memory_use(surfaces: Sequence[doc.Surface]) -> int:
    """Return the size of all arrays in bytes.

    It stands in for the engine's own estimate, whose formula is unknown; the engine does not need it.
    """
    total = 0
    for surface in surfaces:
        arrays = [array for target in surface.targets for array in (target.positions, target.tangents)]
        arrays += [
            a for a in (surface.uv0, surface.uv1, surface.colors, surface.c_indices, surface.t_indices) if a is not None
        ]
        total += sum(array.nbytes for array in arrays)
    return total
