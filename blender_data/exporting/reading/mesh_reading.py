"""Evaluated Blender objects -> scene meshes, with ``foreach_get`` throughout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.binary.quantization import linear_to_srgb, to_unorm
from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.findings import Finding
from ....io_formats.core.scene import AnyArray, Layer, Mesh, ShapeKey
from ....io_formats.geometry.normals import share_backwards
from ....io_formats.geometry.vertices import turn_triangles
from ... import compat
from ...importing.meshes import FILE_VERTEX
from ...mesh_data import file_normals, quantised_values, surfaces
from ..export_options import ExportOptions
from . import material_slots

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


_STEPS = 2048
"""Steps per unit to which normals are rounded: 0.02 degrees, as large as the error of Blender's tangent space."""

_BLUR = 0.05
"""Tolerance, per component, for normals that were equal before Blender converted them to its tangent space."""

_MOST_BACKWARDS = 0.01
"""Additional share of normals pointing away from their faces, compared with the imported file, before a warning."""


class MeshReader:
    """Reads the meshes of one export for a format with these capabilities; warnings are in ``notices``.

    For models with levels of detail, normals are rounded from Blender's tangent space, so that equal ones are equal
    again: compressed files are a tenth smaller.
    """

    def __init__(self, depsgraph: bpy.types.Depsgraph, options: ExportOptions, can: Capabilities) -> None:
        self.depsgraph = depsgraph
        self.options = options
        self.can = can
        self.render_uv_first = can.lod_models or can.uv_layers == 1
        """Whether the UV map marked for rendering comes first."""
        self.uv_names = () if self.render_uv_first or can.node_hierarchy else surfaces.UV_NAMES
        """UV maps with these names get the index of their name here; others fill the remaining indices."""
        splits = can.splits_vertices and not can.node_hierarchy
        self.normals_by_file_vertex = options.use_as_imported if can.lod_models else splits
        """Whether corners that were one vertex in a file have one normal, since Blender's tangent space changes them
        slightly. Only normals of a vertex that differ by no more than that are meant; others were edited by the user.
        """
        self.notices: list[str] = []
        self.findings: list[Finding] = []
        """The warnings of ``notices`` that name objects to select or offer a fix."""

    def notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def warn(self, finding: Finding) -> None:
        """Add a warning that names objects to select or offers a fix."""
        if str(finding) not in self.notices:
            self.findings.append(finding)
        self.notice(str(finding))

    def read(self, obj: bpy.types.Object, *, is_instance: bool = False) -> Mesh | None:
        """Return the mesh of an object in its own space, or None if it has no triangles."""
        seen = obj if is_instance or not self.options.use_modifiers else obj.evaluated_get(self.depsgraph)
        if not is_instance and is_part_of_family(seen):
            return None
        data = seen.to_mesh()
        try:
            if data is None or not len(data.polygons):
                if data is not None and len(data.vertices):
                    self.notice(f"{obj.name}: it has vertices but no faces; nothing of its mesh was exported")
                return None
            return self.convert(obj, seen, data, Triangulation.of(data))
        finally:
            seen.to_mesh_clear()

    def convert(self, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh, cut: Triangulation) -> Mesh:
        """Convert ``data``, the mesh of ``seen``, which is either ``obj`` itself or its evaluated version."""
        loops = cut.loops
        mesh = Mesh(points_of(data), cut.corner_point, np.zeros(len(cut.corner_point) // 3, np.int32))
        mesh.materials, mesh.material_index = self._materials(obj, seen, data, cut.polygon)
        mesh.normal = _normals(data, loops, cut.polygon)
        if self.can.lod_models and not self.options.use_as_imported and _has_blurred_normals(data):
            mesh.normal = replace(mesh.normal, values=_unit(np.rint(mesh.normal.values * _STEPS) / _STEPS))
        mesh.normal = self._as_imported(mesh.normal, obj, data, cut)
        if text := _free_normals_notice(obj, data, mesh, at_rest=self.can.skeletons):
            self.notice(text)
        mesh.uvs = [_uv(layer, loops) for layer in self._uv_maps(obj, data)]
        if mesh.uvs:
            stored = quantised_values.with_stored(mesh.uvs[0], "uv", data, cut.corner_point, loops)
            mesh.uvs[0] = stored or mesh.uvs[0]
        mesh.colors = self._colors(obj, data, loops)
        mesh.custom = _custom_layers(obj, data, loops)
        mesh.tangent = _tangents(data, mesh, loops) if not self.can.lod_models else None
        if mesh.tangent is not None and self.can.splits_vertices:
            mesh.tangent = _by_file_vertex(mesh.tangent, _file_vertices(obj, data, cut.corner_point, loops))
        mesh.normal = quantised_values.with_stored(mesh.normal, "normal", data, cut.corner_point, loops)
        mesh.tangent = quantised_values.with_stored(mesh.tangent, "tangent", data, cut.corner_point, loops)
        return mesh

    def _as_imported(self, normal: Layer, obj: bpy.types.Object, data: bpy.types.Mesh, cut: Triangulation) -> Layer:
        """Return the normals of a mesh, with those of its file as far as wanted and known; ``data`` may be changed."""
        by_vertex = self.normals_by_file_vertex and (_has_blurred_normals(data) or self.can.lod_models)
        if not by_vertex and not self.can.lod_models:
            return normal
        vertices = _file_vertices(obj, data, cut.corner_point, cut.loops)
        if by_vertex and normal.per_corner:
            most_apart = np.inf if self.can.lod_models else _BLUR
            normal = _middle_normals(normal, vertices, cut.corner_point, most_apart)
        if self.can.lod_models:
            normal = file_normals.restored(normal, data, cut.vertex_of_loop, cut.loops, vertices)
        return normal

    def convert_shape(self, name: str, data: bpy.types.Mesh, base: Mesh, cut: Triangulation) -> ShapeKey:
        """Convert ``data`` to a shape key; it has the topology of the mesh from which ``base`` was converted."""
        points = points_of(data)
        normal = _normals(data, cut.loops, cut.polygon)
        shaped = replace(base, points=points, normal=normal)
        return ShapeKey(name, points, normal, _tangents(data, shaped, cut.loops))

    def _uv_maps(self, obj: bpy.types.Object, data: bpy.types.Mesh) -> list[bpy.types.MeshUVLoopLayer]:
        """Return the UV maps to export: each of ``uv_names`` gets the map of that name, or else the next other map."""
        found = list(data.uv_layers)
        if self.render_uv_first:
            found.sort(key=lambda layer: not layer.active_render)
        named = {name: layer for layer in found if (name := layer.name) in self.uv_names[: self.can.uv_layers]}
        others = iter([layer for layer in found if layer.name not in named])
        chosen = []
        for place in range(self.can.uv_layers):
            name = self.uv_names[place] if place < len(self.uv_names) else ""
            layer = named.get(name) or next(others, None)
            if layer is not None:
                chosen.append(layer)
        extra = ", ".join(f"'{layer.name}'" for layer in others)
        if extra:
            self.notice(
                f"{obj.name}: UV maps beyond the {self.can.uv_layers} that the file holds were left out: {extra}"
            )
        return chosen

    def _materials(
        self, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh, polygon: IntArray | None
    ) -> tuple[list[str], IntArray]:
        """Return material names by slot and the slot of each triangle."""
        found = material_slots.materials_of(seen, data)
        index = material_slots.slot_of_faces(data)
        last = max(0, len(found) - 1)
        beyond = int(np.count_nonzero((index > last) | (index < 0)))
        if beyond and self.can.materials:
            self.notice(
                f"{obj.name}: {beyond} faces point beyond its material slots and take the last one, "
                "as Blender shows them"
            )
        if beyond:
            np.clip(index, 0, last, out=index)
        materials = material_slots.material_names(found)
        used = set(np.unique(index).tolist())
        empty = [str(number + 1) for number, name in enumerate(materials) if not name and number in used]
        if empty and found and self.can.materials:
            what = f"each of the material slots {', '.join(empty)}" if len(empty) > 1 else f"material slot {empty[0]}"
            self.notice(f"{obj.name}: {what} is empty; its faces get the default material")
        return materials, index if polygon is None else index[polygon]

    def _colors(self, obj: bpy.types.Object, data: bpy.types.Mesh, loops: IntArray | None) -> list[Layer]:
        """Return the colour layers as 8 bits, sRGB-encoded; the one marked for rendering first.

        A float attribute for which the mesh stores the file's encoded colours is returned as linear floats, with these.
        """
        found = list(data.color_attributes)
        chosen = data.color_attributes.render_color_index
        if 0 <= chosen < len(found):
            found.insert(0, found.pop(chosen))
        if len(found) > self.can.color_layers:
            extra = ", ".join(f"'{attribute.name}'" for attribute in found[self.can.color_layers :])
            beyond = f"colour attributes beyond the {self.can.color_layers} that the file holds"
            which = beyond if self.can.color_layers else "colour attributes, of which the file holds none,"
            self.notice(f"{obj.name}: {which} were left out: {extra}")
        return [_color(attribute, data, loops) for attribute in found[: self.can.color_layers]]


def is_part_of_family(seen: bpy.types.Object) -> bool:
    """Return whether an object is a metaball whose surface Blender adds to the first metaball of the same base name."""
    if seen.type != "META" or not seen.name.rpartition(".")[2].isdigit():
        return False
    base = bpy.data.objects.get(seen.name.rpartition(".")[0])
    return base is not None and base.type == "META"


def _free_normals_notice(obj: bpy.types.Object, data: bpy.types.Mesh, mesh: Mesh, *, at_rest: bool) -> str:
    """Return a notice if the free normals of an object do not follow changes of its mesh, or an empty string."""
    attribute = data.attributes.get("custom_normal")
    if attribute is None or attribute.data_type != "FLOAT_VECTOR" or mesh.normal is None:
        return ""
    original = obj.original
    causes = [
        f"{m.type.title()} modifier"
        for m in original.modifiers
        if m.type in ({"MIRROR"} if at_rest else {"MIRROR", "ARMATURE"}) and m.show_viewport
    ]
    if getattr(original.data, "shape_keys", None) is not None:
        causes.append("shape keys")
    backwards = share_backwards(mesh)
    kept = getattr(original.data, "meshferry", None)
    if backwards > _MOST_BACKWARDS + (kept.backward_normals if kept is not None else 0.0):
        causes.append(f"faces ({backwards:.0%} of its normals point backwards)")
    if not causes:
        return ""
    return (
        f"{obj.name}: its exact normals do not follow its {' and '.join(causes)}; "
        "use Make Normals Editable in the Meshferry panel, or delete them with Mesh > Normals > Reset Vectors"
    )


def points_of(data: bpy.types.Mesh) -> FloatArray:
    """Return the points of a mesh, (P, 3)."""
    points = np.empty(len(data.vertices) * 3, np.float32)
    if len(points):
        data.attributes["position"].data.foreach_get("vector", points)
    return points.reshape(-1, 3)


@dataclass(frozen=True)
class Triangulation:
    """Triangulation of the polygons of a mesh."""

    vertex_of_loop: IntArray
    corner_point: IntArray
    """(C,) int32: the vertex of each corner of the triangles."""
    polygon: IntArray | None = None
    """(T,) int32: the polygon of each triangle; None if all polygons are triangles."""
    loops: IntArray | None = None
    """(C,) int32: the loop of each corner; None under the same condition as ``polygon``."""

    @classmethod
    def of(cls, data: bpy.types.Mesh) -> Triangulation:
        vertex_of_loop = np.empty(len(data.loops), np.int32)
        if len(vertex_of_loop):  # a mesh without loops lacks this attribute
            data.attributes[".corner_vert"].data.foreach_get("value", vertex_of_loop)
        if len(data.loops) == 3 * len(data.polygons):  # then all polygons are triangles, as none has fewer corners
            return cls(vertex_of_loop, vertex_of_loop)
        data.calc_loop_triangles()
        count = len(data.loop_triangles)
        loops = np.empty(count * 3, np.int32)
        data.loop_triangles.foreach_get("loops", loops)
        polygon = np.empty(count, np.int32)
        data.loop_triangles.foreach_get("polygon_index", polygon)
        return cls(vertex_of_loop, vertex_of_loop[loops], polygon, loops)

    def fits(self, data: bpy.types.Mesh, points: int) -> bool:
        """Return whether a mesh has the same topology as the triangulated one."""
        if len(data.vertices) != points or len(data.loops) != len(self.vertex_of_loop):
            return False
        return np.array_equal(Triangulation.of(data).vertex_of_loop, self.vertex_of_loop)


def _normals(data: bpy.types.Mesh, loops: IntArray | None, polygon: IntArray | None) -> Layer:
    if data.normals_domain == "POINT":
        values = np.empty(len(data.vertices) * 3, np.float32)
        data.vertex_normals.foreach_get("vector", values)
        return Layer("normal", values.reshape(-1, 3))
    if data.normals_domain == "FACE":
        values = np.empty(len(data.polygons) * 3, np.float32)
        data.polygon_normals.foreach_get("vector", values)
        per_face = values.reshape(-1, 3)
        return Layer(
            "normal", np.repeat(per_face if polygon is None else per_face[polygon], 3, axis=0), per_corner=True
        )
    values = np.empty(len(data.loops) * 3, np.float32)
    data.corner_normals.foreach_get("vector", values)
    return Layer("normal", _of_loops(values.reshape(-1, 3), loops), per_corner=True)


def _has_blurred_normals(data: bpy.types.Mesh) -> bool:
    """Return whether a mesh has custom normals in tangent space, 16 bits of an angle each."""
    attribute = data.attributes.get("custom_normal")
    return data.has_custom_normals and (attribute is None or attribute.data_type != "FLOAT_VECTOR")


def _of_loops(values: AnyArray, loops: IntArray | None) -> AnyArray:
    """Return values of loops as values of the corners of the triangles."""
    return values if loops is None else values[loops]


def _uv(layer: bpy.types.MeshUVLoopLayer, loops: IntArray | None) -> Layer:
    values = np.empty(len(layer.uv) * 2, np.float32)
    layer.uv.foreach_get("vector", values)
    return Layer(layer.name, _of_loops(values.reshape(-1, 2), loops), per_corner=True)


def _color(attribute: bpy.types.Attribute, data: bpy.types.Mesh, loops: IntArray | None) -> Layer:
    stored: FloatArray | None = None
    encoded: AnyArray
    values = np.empty(len(attribute.data) * 4, np.float32)
    if attribute.data_type == "BYTE_COLOR":
        attribute.data.foreach_get("color_srgb", values)
        encoded = to_unorm(values.reshape(-1, 4))
    else:
        attribute.data.foreach_get("color", values)
        encoded = values.reshape(-1, 4)
        stored = quantised_values.colors_of(data, attribute)
        if stored is None:
            encoded = to_unorm(linear_to_srgb(encoded))
    if attribute.domain == "CORNER":
        if stored is not None:
            stored = _of_loops(stored, loops)
        return Layer(attribute.name, _of_loops(encoded, loops), per_corner=True, stored=stored)
    return Layer(attribute.name, encoded, stored=stored)


def _custom_layers(obj: bpy.types.Object, data: bpy.types.Mesh, loops: IntArray | None) -> list[Layer]:
    """Return the file's custom layers that the mesh stores as attributes."""
    kept = getattr(obj.original.data, "meshferry", None)
    layers = []
    for entry in getattr(kept, "custom_layers", ()):
        whole = data.attributes.get(entry.attribute)
        parts = [whole] if whole else [data.attributes.get(f"{entry.attribute}.{n}") for n in range(64)]
        columns = [_attribute_values(part) for part in parts if part is not None]
        if not columns:
            continue
        values = _in_dtype(np.concatenate(columns, axis=1), np.dtype(entry.dtype))
        if values.shape[1] != entry.dimension:
            continue
        on_corners = next(part for part in parts if part is not None).domain == "CORNER"
        layers.append(Layer(entry.name, _of_loops(values, loops) if on_corners else values, per_corner=on_corners))
    return layers


_FIELDS: dict[str, tuple[str, int, type[np.generic]]] = {
    "FLOAT": ("value", 1, np.float32),
    "INT": ("value", 1, np.int32),
    "FLOAT2": ("vector", 2, np.float32),
    "FLOAT_VECTOR": ("vector", 3, np.float32),
    "FLOAT_COLOR": ("color", 4, np.float32),
}


def _attribute_values(attribute: bpy.types.Attribute) -> AnyArray:
    field, width, dtype = _FIELDS[attribute.data_type]
    values = np.empty(len(attribute.data) * width, dtype)
    attribute.data.foreach_get(field, values)
    return values.reshape(-1, width)


def _in_dtype(values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Convert attribute values back to the file's type."""
    if values.dtype == np.int32 and dtype.itemsize >= 4:
        return np.ascontiguousarray(values).view(dtype)
    return values.astype(dtype)


def _tangents(data: bpy.types.Mesh, mesh: Mesh, loops: IntArray | None) -> Layer | None:
    """Return MikkTSpace tangents of the first UV map, (C, 4); None without a UV map."""
    if not mesh.uvs:
        return None
    if loops is None or _has_no_polygon_above_quad(data):
        directions = _of_loops(_tangent_directions(data, mesh.uvs[0].name), loops)
        return Layer("tangent", _with_signs(directions, mesh), per_corner=True)
    # Blender's MikkTSpace rejects polygons with more corners, so pass the triangles instead.
    twin = bpy.data.meshes.new("meshferry tangents")
    try:
        _fill_triangle_mesh(twin, mesh)
        return Layer("tangent", _with_signs(_tangent_directions(twin, "uv"), mesh), per_corner=True)
    finally:
        bpy.data.meshes.remove(twin)


def _has_no_polygon_above_quad(data: bpy.types.Mesh) -> bool:
    sizes = np.empty(len(data.polygons), np.int32)
    data.polygons.foreach_get("loop_total", sizes)
    return int(sizes.max(initial=0)) <= 4


def _with_signs(directions: FloatArray, mesh: Mesh) -> FloatArray:
    """Join tangent directions (C, 3) with bitangent signs to (C, 4).

    MikkTSpace's sign is the orientation of the triangle in the UV map, which is four times faster to
    compute than to ask Blender for. It is 0 where the triangle has no area there.
    """
    triangles = mesh.uvs[0].values.reshape(-1, 3, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        one, other = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
        area = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
        sign = np.where(np.abs(area) > 1e-12, np.sign(area), 0)
    tangents = np.empty((len(directions), 4), np.float32)
    tangents[:, :3] = directions
    tangents.reshape(-1, 3, 4)[:, :, 3] = sign[:, None]
    return tangents


def _file_vertices(
    obj: bpy.types.Object, data: bpy.types.Mesh, corner_point: IntArray, loops: IntArray | None
) -> IntArray | None:
    """Return the file's vertex of each corner, if the mesh still has its imported topology.

    Such a mesh needs no additional vertices, whatever its tangents are.
    """
    kept = getattr(obj.original.data, "meshferry", None)
    if kept is None or not 0 < kept.file_vertices == len(data.vertices) or kept.file_corners != len(data.loops):
        return None
    if not kept.is_welded:
        return corner_point
    attribute = data.attributes.get(FILE_VERTEX)
    if attribute is None or attribute.domain != "CORNER":
        return None
    values = np.empty(len(data.loops), np.int32)
    attribute.data.foreach_get("value", values)
    return values if loops is None else values[loops]


def _by_file_vertex(tangents: Layer, vertex: IntArray | None) -> Layer:
    """Use one tangent for all corners of a file's vertex, a valid one if there is any."""
    if vertex is None or not len(vertex) or int(vertex.min()) < 0:
        return tangents
    corners = tangents.values
    values = np.zeros((int(vertex.max()) + 1, 4), np.float32)
    values[vertex] = corners
    meant = corners[:, 3] != 0
    values[vertex[meant]] = corners[meant]
    return Layer(tangents.name, values, index=vertex)


def _middle_normals(normals: Layer, vertex: IntArray | None, corner_point: IntArray, most_apart: float) -> Layer:
    """Give all corners of a file's vertex one normal: the median of their normals, component by component.

    Normals of back-to-back triangles, which share all three points, are wrong in Blender's tangent space. They are used
    only for vertices without other triangles. Vertices with a normal farther than ``most_apart`` from the median are
    not changed.
    """
    if vertex is None or not len(vertex) or int(vertex.min()) < 0:
        return normals
    rows = np.sort(corner_point.reshape(-1, 3), axis=1)
    _, same, often = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    is_alone = np.repeat(often[same.reshape(-1)] == 1, 3)
    values = np.zeros((int(vertex.max()) + 1, 3), np.float32)
    for chosen in (~is_alone, is_alone):
        found, place = normals.values[chosen], vertex[chosen]
        counts = np.bincount(place, minlength=len(values))
        has_some = np.flatnonzero(counts)
        middle = (np.cumsum(counts) - counts + (counts - 1) // 2)[has_some]
        for axis in range(3):
            values[has_some, axis] = found[np.lexsort((found[:, axis], place))[middle], axis]
    values = _unit(values)
    apart = np.abs(values[vertex] - normals.values).max(axis=1) > most_apart
    if not apart.any():
        return Layer(normals.name, values, index=vertex)
    edited = np.zeros(len(values), bool)
    edited[vertex[apart]] = True
    return replace(normals, values=np.where(edited[vertex][:, None], normals.values, values[vertex]))


def _tangent_directions(data: bpy.types.Mesh, uv_map: str) -> FloatArray:
    """Return MikkTSpace tangents of all loops, (C, 3)."""
    data.calc_tangents(uvmap=uv_map)
    directions = np.empty(len(data.loops) * 3, np.float32)
    data.loops.foreach_get("tangent", directions)
    data.free_tangents()
    return directions.reshape(-1, 3)


def _fill_triangle_mesh(twin: bpy.types.Mesh, mesh: Mesh) -> None:
    corners = len(mesh.corner_point)
    twin.vertices.add(len(mesh.points))
    twin.loops.add(corners)
    twin.polygons.add(corners // 3)
    twin.attributes["position"].data.foreach_set("vector", mesh.points.reshape(-1))
    twin.attributes[".corner_vert"].data.foreach_set("value", np.ascontiguousarray(mesh.corner_point))
    twin.polygons.foreach_set("loop_start", np.arange(0, corners, 3, dtype=np.int32))
    twin.update(calc_edges=True)
    twin.uv_layers.new(name="uv").uv.foreach_set("vector", np.ascontiguousarray(mesh.uvs[0].values).reshape(-1))
    if mesh.normal is not None:
        compat.set_corner_normals(twin, np.ascontiguousarray(mesh.normal.at_corners(mesh.corner_point)))


def transformed(mesh: Mesh, matrix: npt.NDArray[np.float64], *, turned: bool | None = None) -> Mesh:
    """Transform a mesh whose layers are on points or corners by a matrix.

    ``turned`` states whether to reverse the winding; None to do so if the matrix mirrors.
    """
    if np.array_equal(matrix, np.identity(4)) and not turned:
        return mesh
    mirrored = bool(np.linalg.det(matrix[:3, :3]) < 0)
    moved = replace(
        mesh,
        points=_moved_points(mesh.points, matrix),
        normal=_moved_normals(mesh.normal, matrix, mirrored),
        tangent=_moved_tangents(mesh.tangent, matrix, mirrored),
        shape_keys=[
            replace(
                key,
                points=_moved_points(key.points, matrix),
                normal=_moved_normals(key.normal, matrix, mirrored),
                tangent=_moved_tangents(key.tangent, matrix, mirrored),
            )
            for key in mesh.shape_keys
        ],
    )
    return turn_triangles(moved) if (mirrored if turned is None else turned) else moved


def _moved_points(points: FloatArray, matrix: npt.NDArray[np.float64]) -> FloatArray:
    return (points @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32)


def _moved_normals(layer: Layer | None, matrix: npt.NDArray[np.float64], mirrored: bool) -> Layer | None:
    if layer is None:
        return None
    return replace(layer, values=_unit(layer.values @ _cofactors(matrix[:3, :3]).T * (-1 if mirrored else 1)))


def _moved_tangents(layer: Layer | None, matrix: npt.NDArray[np.float64], mirrored: bool) -> Layer | None:
    if layer is None:
        return None
    tangents = layer.values.copy()
    tangents[:, :3] = _unit(tangents[:, :3] @ matrix[:3, :3].T)
    if mirrored:
        tangents[:, 3] *= -1
    return replace(layer, values=tangents)


def _cofactors(linear: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cofactor matrix: inverse transpose times determinant, which exists for singular matrices, too."""
    return np.cross(np.roll(linear, -1, axis=0), np.roll(linear, -2, axis=0))


def _unit(values: npt.NDArray[np.floating]) -> FloatArray:
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return (values / np.where(length > 1e-30, length, 1)).astype(np.float32)
