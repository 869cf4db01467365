"""Scene -> document (docs/formats/unigine.md, sections 3, 4, 6 and 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import scene as sc
from ...core.messages import Report, counted, listed
from ...core.options import resolve
from ...encodings.quantization import color_bytes
from ...geometry.triangles import Pool, pool_rows
from ...geometry.vertices import count_loose
from ...passes.join_meshes import only_mesh
from .. import joint_tracks, space
from ..bones import from_skeleton
from ..options import TURN
from ..space import rotate_180
from . import bone_weights
from . import document as doc
from .options import EMBED_ANIMATION, EXPORT_OPTIONS, VERSION
from .refusals import refuse_unstorable
from .scene_builder import UV_NAMES
from .triangle_vertices import TriangleVertices
from .versions import LIGHTMAP_VERSIONS, SHORT_TANGENT_VERSION, SOUP_VERSION

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

    def __init__(self, scene: sc.Scene, options: Mapping[str, Any] | None) -> None:
        chosen = resolve(EXPORT_OPTIONS, options)
        self.version = VERSION.text(chosen).lower()
        self.scene = rotate_180(scene, back=True) if TURN.flag(chosen) else scene
        self.node, self.mesh = only_mesh(self.scene, "UNIGINE mesh")
        self.embeds = EMBED_ANIMATION.flag(chosen)
        refuse_unstorable(self.scene, self.node, self.mesh, self.version, embeds=self.embeds)
        self.document = doc.MeshFile(self.version, own_files=self.mesh.own_files)
        self.held_keys: set[str] = set()
        self.report = self.scene.report.about(self.node.name)
        self.vertices = TriangleVertices(self.mesh, scene.tolerance, self.report)
        if self.version == SOUP_VERSION:
            self.soup()
        else:
            self.surfaces()
        self.clips()

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
            self.report.loss("empty-slots", "{} left out: {}", number, listed(unused))
        return found

    def surface_name(self, surface: sc.Surface) -> str:
        return surface.name or self.node.name

    # -- ms10 and later -------------------------------------------------------------------------

    def surfaces(self) -> None:
        """Build the bones, and a surface with its own coordinate and triangle vertices for each slot."""
        vertices, document = self.vertices, self.document
        if self.node.skeleton is not None:
            document.bones, document.transforms = from_skeleton(self.scene.skeletons[self.node.skeleton])
        uv_layers = _uv_places(self.mesh.uvs)
        uvs = [vertices.uv(self.mesh.uvs[place]) if place is not None else None for place in uv_layers]
        colors = color_bytes(vertices.values(self.mesh.colors[0])) if self.mesh.colors else None
        shapes = self.shapes(uv_layers[0])
        weights = self.weights()
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
            if weights is not None and (surface.has_weights or weights.moves(points)):
                stored.weights = weights.of_points(points)
            document.surfaces.append(stored)
        self.report_losses(uv_layers)
        document.bounds = space.union_of_bounds([surface.bounds for surface in document.surfaces])
        document.memory_use = _memory_use(document.surfaces)

    def report_losses(self, uv_layers: Sequence[int | None]) -> None:
        """Report data of the mesh that the surfaces cannot store."""
        mesh, stored = self.mesh, self.document.surfaces
        has_uv = [
            any(uv is not None for uv in uvs) for uvs in zip(*((part.uv0, part.uv1) for part in stored), strict=True)
        ]
        layers = [
            mesh.uvs[place].name
            for place, is_held in zip(uv_layers, has_uv, strict=False)
            if place is not None and not is_held
        ]
        if mesh.colors and all(surface.colors is None for surface in stored):
            layers.append(mesh.colors[0].name)
        if stored and layers:
            template = "left out {}, which no surface uses; enable them in the list of surfaces"
            self.report.loss("unused-layers", template, listed(layers))
        keys = [key.name for key in mesh.shape_keys if key.name not in self.held_keys]
        text = "{} nothing, left out: {}"
        self.report.loss_of("empty-shape-keys", text, keys, "shape key moves", "shape keys move")
        loose = count_loose(mesh.corner_point, len(mesh.points))
        if loose:
            number = counted(loose, "vertex belongs", "vertices belong")
            self.report.loss("loose-vertices", "{} to no triangle; left out", number)
        settings = [(surface.lightmap_channel, surface.lightmap_resolution) for surface in stored]
        lost = sum(setting != doc.DEFAULT_LIGHTMAP for setting in settings)
        if lost and self.version not in LIGHTMAP_VERSIONS:
            template = "{} holds no lightmap settings; left out those of {}"
            self.report.loss("lightmap-left-out", template, self.version, counted(lost, "surface", "surfaces"))

    def weights(self) -> bone_weights.PointWeights | None:
        if not self.document.bones:
            if self.mesh.joint_weights is not None:
                self.report.loss("weights-without-bones", "its weights have no bones and were left out")
            return None
        return bone_weights.quantised_weights(self.mesh, len(self.document.bones), self.report)

    def shapes(self, uv_place: int | None) -> list[Shape]:
        """Return the base shape and the shape keys, with tangent frames of all triangle vertices."""
        mesh, vertices = self.mesh, self.vertices
        uv = mesh.uvs[uv_place] if uv_place is not None else None
        has_sign_byte = self.version == SHORT_TANGENT_VERSION
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
            names = [clip.name for clip in clips]
            self.report.loss_of("animations-left-out", template, names, "animation is", "animations are")
            return
        for clip in clips:
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
