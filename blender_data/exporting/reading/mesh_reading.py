"""Evaluated Blender objects -> meshes of a scene; all data is read by ``foreach_get``."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.messages import Report, Text, counted, joined, listed, of_kind
from ....io_formats.core.scene import AnyArray, Layer, Mesh, ShapeKey
from ....io_formats.encodings.quantization import linear_to_srgb, to_unorm
from ....io_formats.geometry.normals import share_backwards
from ....io_formats.geometry.vertices import turn_triangles
from ....io_formats.passes import flatten
from ... import arrays, compat, file_records, names
from ...arrays import FILE_VERTEX
from ...export_options import ExportOptions
from ...mesh_data import file_normals, quantised_values, surfaces
from ...mesh_data.element_selection import IntArray, Triangulation
from . import material_reading

FloatArray = npt.NDArray[np.float32]


_STEPS = 2048
"""Number of steps per unit to which normals are rounded. A step is about 0.02 degrees, the error of Blender's tangent
space."""

_BLUR = 0.05
"""Tolerance, per component, for normals that were equal until Blender converted them to its tangent space."""

_MOST_BACKWARDS = 0.01
"""Share of normals that point away from their faces, in addition to that in the imported file, above which a warning is
given."""


class MeshReader:
    """Reads the meshes of one export for a format with these capabilities.

    For models with levels of detail, normals are rounded. So normals that differ only by errors of Blender's tangent
    space become equal, which makes compressed files a tenth smaller.
    """

    def __init__(
        self, depsgraph: bpy.types.Depsgraph, options: ExportOptions, can: Capabilities, report: Report | None = None
    ) -> None:
        self.depsgraph = depsgraph
        self.options = options
        self.can = can
        self.render_uv_first = can.lod_models or can.uv_layers == 1
        """Whether the UV map that is marked for rendering is exported first."""
        self.uv_names = () if self.render_uv_first or can.node_hierarchy else surfaces.UV_NAMES
        """Names of UV maps that determine the index of a map in the file; other maps fill the remaining indices."""
        splits = can.splits_vertices and not can.node_hierarchy
        self.normals_by_file_vertex = options.use_as_imported if can.lod_models else splits
        """Whether corners that were one vertex in the file get one normal, since Blender's tangent space changes each
        slightly. Normals that differ by more than that were edited by the user and stay separate."""
        self.name_of_material: Callable[[bpy.types.Material], str] = names.name_in_file
        self.report = report or Report()

    def read(self, obj: bpy.types.Object, *, is_instance: bool = False) -> Mesh | None:
        """Return the mesh of an object in its own space, or None if it has no triangles."""
        seen = obj if is_instance or not self.options.use_modifiers else obj.evaluated_get(self.depsgraph)
        if not is_instance and not shows_surface(seen):
            return None
        with arrays.mesh_of(seen) as data:
            if data is None or not len(data.polygons):
                if data is not None and (len(data.vertices) or not is_instance):
                    report_without_faces(self.report, obj, seen, data)
                return None
            return self.convert(obj, seen, data, Triangulation.of(data))

    def convert(self, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh, cut: Triangulation) -> Mesh:
        """Convert ``data``, the mesh of ``seen``, which is either ``obj`` itself or its evaluated version."""
        loops = cut.loops
        mesh = Mesh(arrays.points_of(data), cut.corner_point, np.zeros(len(cut.corner_point) // 3, np.int32))
        mesh.own_files = _own_files(obj)
        mesh.materials, mesh.material_index = self._materials(obj, seen, data, cut.polygon)
        mesh.normal = _normals(data, loops, cut.polygon)
        if self.can.lod_models and not self.options.use_as_imported and _has_blurred_normals(data):
            mesh.normal = replace(mesh.normal, values=_unit(np.rint(mesh.normal.values * _STEPS) / _STEPS))
        mesh.normal = self._as_imported(mesh.normal, obj, data, cut)
        _report_free_normals(self.report, obj, data, mesh, at_rest=self.can.skeletons)
        mesh.uvs = [
            Layer(layer.name, _of_loops(arrays.read(layer.uv, "vector", 2), loops), per_corner=True)
            for layer in self._uv_maps(obj, data)
        ]
        if mesh.uvs:
            stored = quantised_values.with_stored(mesh.uvs[0], "uv", data, cut.corner_point, loops)
            mesh.uvs[0] = stored or mesh.uvs[0]
        mesh.colors = self._colors(obj, data, loops)
        mesh.custom = _custom_layers(obj, data, loops)
        mesh.tangent = _tangents(data, mesh, loops) if self._needs_tangents(data) else None
        if mesh.tangent is not None and self.can.splits_vertices:
            mesh.tangent = _by_file_vertex(mesh.tangent, _file_vertices(obj, data, cut.corner_point, loops))
        mesh.normal = quantised_values.with_stored(mesh.normal, "normal", data, cut.corner_point, loops)
        mesh.tangent = quantised_values.with_stored(mesh.tangent, "tangent", data, cut.corner_point, loops)
        return mesh

    def _needs_tangents(self, data: bpy.types.Mesh) -> bool:
        """Return whether the file will hold tangents of a mesh; Blender takes long to compute them."""
        is_as_imported = self.can.tangents == "AUTO" and quantised_values.ATTRIBUTES["tangent"] in data.attributes
        return not self.can.lod_models and (self.can.tangents == "ALWAYS" or is_as_imported)

    def _as_imported(self, normal: Layer, obj: bpy.types.Object, data: bpy.types.Mesh, cut: Triangulation) -> Layer:
        """Return the normals of a mesh, replaced by those of its file if the options ask for it and they are known.

        ``data`` may be changed.
        """
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
        """Convert ``data`` to a shape key.

        ``data`` must have the topology of the mesh from which ``base`` was converted.
        """
        points = arrays.points_of(data)
        normal = _normals(data, cut.loops, cut.polygon)
        shaped = replace(base, points=points, normal=normal)
        return ShapeKey(name, points, normal, _tangents(data, shaped, cut.loops))

    def _uv_maps(self, obj: bpy.types.Object, data: bpy.types.Mesh) -> list[bpy.types.MeshUVLoopLayer]:
        """Return the UV maps to export, in order.

        Each name in ``uv_names`` gets the map with that name, or else the next other map.
        """
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
        extra = [layer.name for layer in others]
        if extra:
            text = "UV maps beyond the {} that the file holds were left out: {}"
            names = listed(of_kind("layer", extra), len(extra))
            self.report.loss("uv-maps-left-out", text, self.can.uv_layers, names, item=obj.name)
        return chosen

    def _materials(
        self, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh, polygon: IntArray | None
    ) -> tuple[list[str], IntArray]:
        """Return material names by slot and the slot of each triangle."""
        found = material_reading.materials_of(seen, data)
        index = material_reading.slot_of_faces(data)
        last = max(0, len(found) - 1)
        beyond = int(np.count_nonzero((index > last) | (index < 0)))
        report = self.report.about(obj.name) if self.can.materials else Report()
        if beyond:
            text = "{} beyond its material slots, so that the last one is used, as Blender shows"
            report.change("missing-material-slot", text, counted(int(beyond), "face points", "faces point"))
            np.clip(index, 0, last, out=index)
        materials = material_reading.material_names(found, self.name_of_material)
        used = set(np.unique(index).tolist())
        empty = [str(number + 1) for number, name in enumerate(materials) if not name and number in used]
        if empty and found:
            each = Text("each of the material slots {}", joined(empty))
            which = each if len(empty) > 1 else Text("material slot {}", empty[0])
            report.change("empty-material-slot", "{} is empty; its faces get the default material", which)
        return materials, index if polygon is None else index[polygon]

    def _colors(self, obj: bpy.types.Object, data: bpy.types.Mesh, loops: IntArray | None) -> list[Layer]:
        """Return the colour layers as 8 bits, sRGB-encoded; the one marked for rendering first.

        A float attribute is returned as linear floats, together with the 8-bit colours of the file if the mesh stores
        them.
        """
        found = list(data.color_attributes)
        chosen = data.color_attributes.render_color_index
        if 0 <= chosen < len(found):
            found.insert(0, found.pop(chosen))
        if len(found) > self.can.color_layers:
            extra = [attribute.name for attribute in found[self.can.color_layers :]]
            which = Text("colour attributes, of which the file holds none,")
            if self.can.color_layers:
                which = Text("colour attributes beyond the {} that the file holds", self.can.color_layers)
            names = listed(of_kind("layer", extra), len(extra))
            self.report.loss("color-attributes-left-out", "{} were left out: {}", which, names, item=obj.name)
        return [_color(attribute, data, loops) for attribute in found[: self.can.color_layers]]


def report_without_faces(report: Report, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh) -> None:
    """Report an object whose mesh has no faces, unless it had none in its file, or shows instances instead."""
    is_bare = isinstance(obj.data, bpy.types.Mesh) and not len(obj.data.polygons)
    is_as_imported = is_bare and any(made.meshferry.from_file for made in obj.users_collection)
    shows_others = obj.instance_type not in {"VERTS", "FACES"} and _has_instances(seen)
    if len(data.vertices) or not (is_as_imported or shows_others):
        what = Text("it has vertices but no faces") if len(data.vertices) else Text("it has no faces")
        report.loss("mesh-without-faces", "{}; nothing of its mesh was exported", what, item=obj.name)


def shows_surface(seen: bpy.types.Object) -> bool:
    """Return whether Blender shows the surface of an object itself in the viewport, apart from its instances.

    It does not with *Show Instancer* off, and it shows the surface of metaballs with the first of the same base name.
    """
    if not seen.show_instancer_for_viewport and _has_instances(seen):
        return False
    if seen.type != "META" or not seen.name.rpartition(".")[2].isdigit():
        return True
    base = bpy.data.objects.get(seen.name.rpartition(".")[0])
    return base is None or base.type != "META"


def _has_instances(seen: bpy.types.Object) -> bool:
    if seen.is_instancer or len(seen.particle_systems):
        return True
    geometry = seen.evaluated_geometry() if seen.type == "MESH" and seen.is_evaluated else None
    return geometry is not None and geometry.instances_pointcloud() is not None


def _report_free_normals(
    report: Report, obj: bpy.types.Object, data: bpy.types.Mesh, mesh: Mesh, *, at_rest: bool
) -> None:
    """Report free normals of an object, which do not follow changes of its mesh."""
    attribute = data.attributes.get("custom_normal")
    if attribute is None or attribute.data_type != "FLOAT_VECTOR" or mesh.normal is None:
        return
    original = obj.original
    causes = [
        Text("{} modifier", m.type.title())
        for m in original.modifiers
        if m.type in ({"MIRROR"} if at_rest else {"MIRROR", "ARMATURE"}) and m.show_viewport
    ]
    if getattr(original.data, "shape_keys", None) is not None:
        causes.append(Text("shape keys"))
    backwards = share_backwards(mesh)
    kept = getattr(original.data, "meshferry", None)
    if backwards > _MOST_BACKWARDS + (kept.backward_normals if kept is not None else 0.0):
        causes.append(Text("faces ({:.0%} of its normals point backwards)", backwards))
    if causes:
        report.loss(
            "fixed-normals",
            "its exact normals do not follow its {}; "
            "use Make Normals Editable in the Meshferry panel, or delete them with Mesh > Normals > Reset Vectors",
            joined(causes, " and "),
            item=obj.name,
        )


def _normals(data: bpy.types.Mesh, loops: IntArray | None, polygon: IntArray | None) -> Layer:
    if data.normals_domain == "POINT":
        return Layer("normal", arrays.read(data.vertex_normals, "vector", 3))
    if data.normals_domain == "FACE":
        per_face = _of_loops(arrays.read(data.polygon_normals, "vector", 3), polygon)
        return Layer("normal", np.repeat(per_face, 3, axis=0), per_corner=True)
    return Layer("normal", _of_loops(arrays.read(data.corner_normals, "vector", 3), loops), per_corner=True)


def _has_blurred_normals(data: bpy.types.Mesh) -> bool:
    """Return whether a mesh has custom normals in tangent space, which Blender stores as two 16-bit values."""
    attribute = data.attributes.get("custom_normal")
    return data.has_custom_normals and (attribute is None or attribute.data_type != "FLOAT_VECTOR")


def _of_loops(values: AnyArray, loops: IntArray | None) -> AnyArray:
    """Convert values of loops to values of the corners of triangles."""
    return values if loops is None else values[loops]


def _color(attribute: bpy.types.Attribute, data: bpy.types.Mesh, loops: IntArray | None) -> Layer:
    """Return a colour layer in 8 bits, or floats with the 8-bit colours of the file; ``loops`` are those exported."""
    stored: FloatArray | None = None
    encoded: AnyArray
    if attribute.data_type == "BYTE_COLOR":
        encoded = to_unorm(arrays.read(attribute.data, "color_srgb", 4))
    else:
        encoded = arrays.read(attribute.data, "color", 4)
        stored = quantised_values.colors_of(data, attribute)
        if stored is None:
            encoded = to_unorm(linear_to_srgb(encoded))
    if attribute.domain == "CORNER":
        if stored is not None:
            stored = _of_loops(stored, loops)
        return Layer(attribute.name, _of_loops(encoded, loops), per_corner=True, stored=stored)
    return Layer(attribute.name, encoded, stored=stored)


def _custom_layers(obj: bpy.types.Object, data: bpy.types.Mesh, loops: IntArray | None) -> list[Layer]:
    """Return the custom layers of the imported file, which the mesh stores as attributes."""
    kept = getattr(obj.original.data, "meshferry", None)
    layers = []
    for entry in getattr(kept, "custom_layers", ()):
        whole = data.attributes.get(entry.attribute)
        count = entry.dimension * (2 if np.dtype(entry.dtype).itemsize == 8 else 1)  # 64 bits are two attributes
        parts = [whole] if whole else [data.attributes.get(f"{entry.attribute}.{n}") for n in range(count)]
        columns = [arrays.read_attribute(part) for part in parts if part is not None]
        if not columns:
            continue
        values = _in_dtype(np.concatenate(columns, axis=1), np.dtype(entry.dtype))
        if values.shape[1] != entry.dimension:
            continue
        on_corners = next(part for part in parts if part is not None).domain == "CORNER"
        layers.append(Layer(entry.name, _of_loops(values, loops) if on_corners else values, per_corner=on_corners))
    return layers


def _in_dtype(values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Convert attribute values back to the file's type."""
    if values.dtype == np.int32 and dtype.itemsize >= 4:
        return np.ascontiguousarray(values).view(dtype)
    return values.astype(dtype)


def _tangents(data: bpy.types.Mesh, mesh: Mesh, loops: IntArray | None) -> Layer | None:
    """Return MikkTSpace tangents of the first UV map, (C, 4); None without a UV map."""
    if not mesh.uvs:
        return None
    if loops is None or arrays.read(data.polygons, "loop_total", dtype=np.int32).max(initial=0) <= 4:
        directions = _of_loops(_tangent_directions(data, mesh.uvs[0].name), loops)
        return Layer("tangent", _with_signs(directions, mesh), per_corner=True)
    # Blender's MikkTSpace rejects polygons with more than four corners, so the triangles are passed instead.
    twin = bpy.data.meshes.new("meshferry tangents")
    try:
        _fill_triangle_mesh(twin, mesh)
        return Layer("tangent", _with_signs(_tangent_directions(twin, "uv"), mesh), per_corner=True)
    finally:
        bpy.data.meshes.remove(twin)


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
    return _of_loops(arrays.read(attribute.data, "value", dtype=np.int32), loops)


def _by_file_vertex(tangents: Layer, vertex: IntArray | None) -> Layer:
    """Give all corners of a vertex of the file the same tangent, a valid one if there is any."""
    if vertex is None or not len(vertex) or int(vertex.min()) < 0:
        return tangents
    corners = tangents.values
    values = np.zeros((int(vertex.max()) + 1, 4), np.float32)
    values[vertex] = corners
    meant = corners[:, 3] != 0
    values[vertex[meant]] = corners[meant]
    return Layer(tangents.name, values, index=vertex)


def _middle_normals(normals: Layer, vertex: IntArray | None, corner_point: IntArray, most_apart: float) -> Layer:
    """Give all corners of a vertex of the file the same normal: the median of their normals, component by component.

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
    directions = arrays.read(data.loops, "tangent", 3)
    data.free_tangents()
    return directions


def _fill_triangle_mesh(twin: bpy.types.Mesh, mesh: Mesh) -> None:
    arrays.fill_triangles(twin, mesh.points, mesh.corner_point)
    twin.update(calc_edges=True)
    twin.uv_layers.new(name="uv").uv.foreach_set("vector", arrays.flat(mesh.uvs[0].values))
    if mesh.normal is not None:
        compat.set_corner_normals(twin, np.ascontiguousarray(mesh.normal.at_corners(mesh.corner_point)))


def _own_files(obj: bpy.types.Object) -> frozenset[str] | None:
    """Return the files to which a mesh from a source file was written; None for other meshes."""
    if not isinstance(obj.data, bpy.types.Mesh) or not obj.data.meshferry.source_file:
        return None
    records = [record for owner in (obj, *obj.users_collection) for record in file_records.records(owner)]
    return frozenset(str(record.path.absolute()) for record in records)


def transformed(mesh: Mesh, matrix: npt.NDArray[np.float64], *, turned: bool | None = None) -> Mesh:
    """Transform a mesh whose layers are on points or corners by a matrix.

    ``turned`` tells whether to reverse the winding; with None it is reversed if the matrix mirrors.
    """
    if np.array_equal(matrix, np.identity(4)) and not turned:
        return mesh
    # UVs are unchanged, so the range over which the file quantised them is kept.
    surfaces = [replace(surface, position_domain=None) for surface in mesh.surfaces]
    moved = replace(flatten.transformed(mesh, matrix), surfaces=surfaces)
    is_turned = np.linalg.det(matrix[:3, :3]) < 0 if turned is None else turned
    return turn_triangles(moved) if is_turned else moved


def _unit(values: npt.NDArray[np.floating]) -> FloatArray:
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return (values / np.where(length > 1e-30, length, 1)).astype(np.float32)
