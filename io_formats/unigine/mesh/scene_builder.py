"""Document -> Scene (docs/formats/unigine.md, sections 3, 5 and 9)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import scene as sc
from ...core.errors import FormatError
from ...core.messages import Report, counted
from ...geometry.normals import face_normals, report_repaired, unit, without_direction
from ...geometry.vertices import weld_map
from ...passes import lods
from .. import joint_tracks, space
from ..bones import to_skeleton
from ..skeleton.stored_data import text_of_rest
from ..space import rotate_180
from . import document as doc
from .codec import soup_name
from .format import LIGHTMAP_VERSIONS, SHORT_TANGENT_VERSION, SOUP_VERSION, ReadOptions

UV_NAMES = ("UV0", "UV1")
COLOR_NAME = "Color"
_MOST_SHAPE_BYTES = 1 << 30
_MOST_SHAPE_GROWTH = 8
"""Limit of the memory for shape keys as a multiple of the size of the file's targets. Shape keys for a mesh with one
surface need twice that size."""

FloatArray = sc.FloatArray


class SceneBuilder:
    """Map a mesh file to a scene and collect warnings."""

    def __init__(self, document: doc.MeshFile, name: str, options: ReadOptions) -> None:
        self.options = options
        self.document = document
        self.has_sign_byte = document.version == SHORT_TANGENT_VERSION
        self.scene = sc.Scene(name, warnings=[text for text in document.warnings if text.code != "not-unit-tangents"])
        self.report = self.scene.report

    def build(self) -> sc.Scene:
        """Return the scene, with the levels of detail and the front that the options choose."""
        document, chosen = self.document, self.options
        mesh = _soup_mesh(document.soup, self.report) if document.version == SOUP_VERSION else self.mesh()
        node = sc.Node(self.scene.name, mesh=mesh)
        if chosen.use_surface_name and mesh.surfaces:
            node.name = lods.without_level(mesh.surfaces[0].name) or node.name
        self.scene.nodes.append(node)
        if document.bones:
            self.skeleton(node)
        for animation in document.animations:
            self.clip(animation, chosen.assumed_frame_rate)
        scene = lods.separate(self.scene) if chosen.use_lod_objects else self.scene
        return rotate_180(scene) if chosen.use_turn else scene

    def skeleton(self, node: sc.Node) -> None:
        """Map the bone table to the scene's only skeleton."""
        skeleton = to_skeleton(self.scene.name, self.document.bones, self.document.transforms)
        skeleton.guid, skeleton.path = self.document.skeleton_guid, self.document.skeleton_path
        rest = self.document.rest_transforms
        skeleton.file_data = text_of_rest(self.document.bones, self.document.transforms, rest)
        self.scene.skeletons.append(skeleton)
        node.skeleton = 0

    def clip(self, animation: doc.EmbeddedAnimation, fps: float) -> None:
        """Map an embedded animation (section 5), which has no frame rate."""
        tracks = joint_tracks.to_tracks(
            animation.frames, self.scene.skeletons[0].joints if self.scene.skeletons else []
        )
        self.scene.clips.append(
            sc.Clip(animation.name or self.scene.name, fps, animation.frames.frame_count, transforms=tracks)
        )

    def mesh(self) -> sc.Mesh:
        """Combine all surfaces into one mesh with a material slot for each surface.

        The vertices of each surface follow those of the one before.
        """
        surfaces = self.document.surfaces
        bases = [surface.targets[0] if surface.targets else _NOTHING for surface in surfaces]
        point_starts = _starts(len(base.positions) for base in bases)
        vertex_starts = _starts(len(base.tangents) for base in bases)
        triangles = [len(surface.c_indices) // 3 for surface in surfaces]
        index = _in_a_row([surface.t_indices for surface in surfaces], vertex_starts)
        mesh = sc.Mesh(
            points=_rows([base.positions for base in bases], 3),
            corner_point=_in_a_row([surface.c_indices for surface in surfaces], point_starts),
            material_index=np.repeat(np.arange(len(surfaces), dtype=np.int32), triangles),
            materials=[surface.name for surface in surfaces],
            surfaces=[_surface_of(surface, self.document.version) for surface in surfaces],
        )
        normals, tangents = self.frames([base.tangents for base in bases], mesh.points, mesh.corner_point, index)
        mesh.normal = sc.Layer("normal", normals, index)
        mesh.tangent = sc.Layer("tangent", tangents, index)
        self.attributes(mesh, index, vertex_starts)
        self.weights(mesh, point_starts)
        self.shape_keys(mesh, index, point_starts, vertex_starts)
        return mesh

    def frames(
        self, stored: list[sc.AnyArray], points: FloatArray, corner_point: sc.IntArray, index: sc.IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Decode the tangent frames of all surfaces to normals and tangents.

        A frame without length gets the normal of a triangle.
        """
        joined = stored[0] if len(stored) == 1 else np.concatenate(stored) if stored else np.empty((0, 4), np.int16)
        normals, tangents, broken = space.decode_frames(joined, has_sign_byte=self.has_sign_byte)
        if len(broken):
            corner = np.zeros(len(normals), np.intp)
            corner[index] = np.arange(len(index))
            normals[broken] = (0, 0, 1)
            if len(index):
                faces = unit(face_normals(points, corner_point))[corner[broken] // 3]
                known = np.any(faces, axis=1)
                normals[broken[known]] = faces[known]
            tangents[broken, 3] = 0
            number = counted(len(broken), "tangent frame has", "tangent frames have")
            self.report.change("frames-without-direction", "{} no length; computed from the triangles", number)
        return normals, tangents

    def attributes(self, mesh: sc.Mesh, index: sc.IntArray, starts: list[int]) -> None:
        """Add UV layers and colours that any surface has; surfaces without them get zeros and white."""
        surfaces = self.document.surfaces
        for name, found in zip(
            UV_NAMES, ([surface.uv0 for surface in surfaces], [surface.uv1 for surface in surfaces]), strict=True
        ):
            if all(uv is None for uv in found):
                continue
            values = np.zeros((starts[-1], 2), np.float32)
            for uv, start in zip(found, starts[:-1], strict=True):
                if uv is not None:
                    values[start : start + len(uv), 0] = uv[:, 0]
                    with np.errstate(invalid="ignore"):  # `_finite` reports NaN and infinite values
                        np.subtract(np.float32(1), uv[:, 1], out=values[start : start + len(uv), 1])
            mesh.uvs.append(sc.Layer(name, _finite(values, name, self.report), index))
            for mapped, uv in zip(mesh.surfaces, found, strict=True):
                mapped.uvs = (*(mapped.uvs or ()), uv is not None)
        if any(surface.colors is not None for surface in surfaces):
            for mapped, surface in zip(mesh.surfaces, surfaces, strict=True):
                mapped.has_colors = surface.colors is not None
            colors = np.full((starts[-1], 4), 255, np.uint8)
            for surface, start in zip(surfaces, starts[:-1], strict=True):
                if surface.colors is not None:
                    colors[start : start + len(surface.colors)] = surface.colors
            mesh.colors.append(sc.Layer(COLOR_NAME, colors, index))

    def weights(self, mesh: sc.Mesh, starts: list[int]) -> None:
        """Add joint indices and weights, (P, 4), if any surface has them."""
        if all(surface.weights is None for surface in self.document.surfaces):
            return
        mesh.joint_indices = np.zeros((starts[-1], 4), np.int32)
        mesh.joint_weights = np.zeros((starts[-1], 4), np.float32)
        for surface, start in zip(self.document.surfaces, starts[:-1], strict=True):
            if surface.weights is not None:
                counts = surface.weights.counts
                filled = np.arange(4, dtype=np.uint8) < counts[:, None]
                rows = slice(start, start + len(counts))
                mesh.joint_indices[rows][filled] = surface.weights.bones
                mesh.joint_weights[rows][filled] = surface.weights.values / np.float32(65535)

    def shape_keys(self, mesh: sc.Mesh, index: sc.IntArray, point_starts: list[int], vertex_starts: list[int]) -> None:
        """Add a shape key for each name of a target except the base.

        Surfaces without such a target keep their rest shape.
        """
        targets_of: dict[str, dict[int, doc.Target]] = {}
        for number, (surface, mapped) in enumerate(zip(self.document.surfaces, mesh.surfaces, strict=True)):
            mapped.shape_keys = {}
            repeats: dict[str, int] = {}
            for place, target in enumerate(surface.targets[1:], 1):
                name = _unused(target.name or f"Target {place}", mapped.shape_keys, repeats)
                mapped.shape_keys[name] = target.name
                targets_of.setdefault(name, {})[number] = target
        if not targets_of or mesh.normal is None or mesh.tangent is None:
            return
        self.refuse_scattered_shapes(mesh, len(targets_of))
        for name, targets in targets_of.items():
            points, normals, tangents = mesh.points.copy(), mesh.normal.values.copy(), mesh.tangent.values.copy()
            for number, target in targets.items():
                rows = slice(vertex_starts[number], vertex_starts[number + 1])
                points[point_starts[number] : point_starts[number + 1]] = target.positions
                normals[rows], tangents[rows], broken = space.decode_frames(
                    target.tangents, has_sign_byte=self.has_sign_byte
                )
                normals[rows][broken] = mesh.normal.values[rows][broken]
            mesh.shape_keys.append(
                sc.ShapeKey(name, points, sc.Layer("normal", normals, index), sc.Layer("tangent", tangents, index))
            )

    def refuse_scattered_shapes(self, mesh: sc.Mesh, keys: int) -> None:
        """Raise FormatError if many small targets have different names.

        Each shape key holds all points of the mesh, so that a small file could exhaust memory.
        """
        layers = [layer.values for layer in (mesh.normal, mesh.tangent) if layer]
        needed = keys * (mesh.points.nbytes + sum(values.nbytes for values in layers))
        stored = sum(
            target.positions.nbytes + target.tangents.nbytes
            for surface in self.document.surfaces
            for target in surface.targets
        )
        if needed > max(_MOST_SHAPE_BYTES, _MOST_SHAPE_GROWTH * stored):
            template = (
                "Its {:,} morph targets of different names would take {:,} MiB as shape keys of one "
                "mesh; give targets of different surfaces the same names or split the file"
            )
            raise FormatError(template, keys, needed >> 20)


_NOTHING = doc.Target("", np.empty((0, 3), np.float32), np.empty((0, 4), np.int16))


def _finite(uv: FloatArray, name: str, report: Report) -> FloatArray:
    finite = np.isfinite(uv)
    if not finite.all():
        number = counted(int((~finite).sum()), "coordinate", "coordinates")
        report.change("nan-uv-coordinates", "{} of {} NaN or infinite; set to 0", number, name)
        uv[~finite] = 0
    return uv


def _soup_mesh(surfaces: Sequence[doc.SoupSurface], report: Report) -> sc.Mesh:
    """Build the mesh of mr02's triangles.

    Within each surface, corners at exactly equal positions are merged (section 9).
    """
    joined = [weld_map([surface.vertices[:, :3]]) for surface in surfaces]
    starts = _starts(len(first) for _, first in joined)
    vertices = _rows([surface.vertices for surface in surfaces], 8)
    names = [soup_name(surface) for surface in surfaces]
    mesh = sc.Mesh(
        points=_rows([surface.vertices[first, :3] for surface, (_, first) in zip(surfaces, joined, strict=True)], 3),
        corner_point=_in_a_row([new for new, _ in joined], starts),
        material_index=np.repeat(
            np.arange(len(surfaces), dtype=np.int32), [len(surface.vertices) // 3 for surface in surfaces]
        ),
        materials=names,
        surfaces=[sc.Surface(name, uvs=(True,), has_weights=False, shape_keys={}) for name in names],
    )
    normals = np.ascontiguousarray(vertices[:, 3:6])
    broken = without_direction(normals)
    if broken.any():
        normals[broken] = np.repeat(unit(face_normals(mesh.points, mesh.corner_point)), 3, axis=0)[broken]
        report_repaired(int(broken.sum()), report)
    mesh.normal = sc.Layer("normal", normals, per_corner=True)
    uv = _finite(np.ascontiguousarray(vertices[:, 6:8]), UV_NAMES[0], report)
    mesh.uvs = [sc.Layer(UV_NAMES[0], uv, per_corner=True)]
    _mark_empty(mesh)
    return mesh


def _starts(lengths: Any) -> list[int]:
    """Return the start of each part in a concatenation of parts with these lengths, and the end of the last."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts


def _rows(parts: list[FloatArray], width: int) -> FloatArray:
    """Concatenate rows into a new aligned array."""
    rows = np.empty((sum(map(len, parts)), width), np.float32)
    start = 0
    for part in parts:
        rows[start : start + len(part)] = part
        start += len(part)
    return rows


def _in_a_row(parts: list[sc.AnyArray], starts: list[int]) -> sc.IntArray:
    """Concatenate indices as int32, each shifted by the start of its part."""
    indices = np.empty(sum(map(len, parts)), np.int32)
    end = 0
    for part, start in zip(parts, starts, strict=False):
        begin, end = end, end + len(part)
        indices[begin:end] = part
        if start:
            indices[begin:end] += np.int32(start)
    return indices


def _surface_of(surface: doc.Surface, version: str) -> sc.Surface:
    has_lightmap = version in LIGHTMAP_VERSIONS
    mapped = sc.Surface(
        surface.name,
        uvs=(),
        has_weights=surface.weights is not None,
        lightmap_channel=surface.lightmap_channel if has_lightmap else None,
        lightmap_resolution=surface.lightmap_resolution if has_lightmap else None,
        base_name=surface.targets[0].name if surface.targets else "",
    )
    if not len(surface.c_indices):
        mapped.is_empty = True
    return mapped


def _mark_empty(mesh: sc.Mesh) -> None:
    """Mark surfaces that have no triangles in the file, so that an export writes them again."""
    used = np.bincount(mesh.material_index, minlength=len(mesh.surfaces))
    for surface, triangles in zip(mesh.surfaces, used.tolist(), strict=True):
        if not triangles:
            surface.is_empty = True


def _unused(name: str, taken: Mapping[str, Any], repeats: dict[str, int]) -> str:
    """Return the name, with a number if it is taken; ``repeats`` holds the last number used for each name."""
    free = name
    while free in taken:
        repeats[name] = repeats.get(name, 1) + 1
        free = f"{name} {repeats[name]}"
    return free
