"""Data that other programs' formats do not hold: duplicate faces, normal maps with green down, mixtures of images.

Some exporters and importers run ``Mesh.validate``, which deletes all but one of such faces.

The functions change the open .blend file, so they are only used if it is not saved afterwards.
"""

import contextlib
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import bmesh
import bpy
import numpy as np

from ...io_formats.core.messages import Report, of_kind
from ...io_formats.core.scene import IntArray
from .. import arrays, compat
from ..exporting.reading.shader_nodes import Socket, output_of, sources

_FACE_INDEX = "meshferry face"
_SAME_NORMAL = 1e-3
"""Tolerance for equal normals, per component: the rounding of tangent-space normals."""


@contextlib.contextmanager
def separated_faces(objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Give objects with duplicate faces a copy of their mesh in which each face has its own vertices.

    Objects that share a mesh share its copy, which has the name of the original. Afterwards the objects have their
    own meshes again.
    """
    owners: dict[bpy.types.Mesh, list[bpy.types.Object]] = {}
    for obj in objects:
        if obj.type == "MESH" and obj.library is None:
            owners.setdefault(obj.data, []).append(obj)
    replaced: list[tuple[bpy.types.Mesh, bpy.types.Mesh, str, list[bpy.types.Object]]] = []
    try:
        for mesh, users in owners.items():
            ranks = duplicate_ranks(mesh)
            if not ranks.any():
                continue
            copy, name = mesh.copy(), mesh.name
            replaced.append((mesh, copy, name, users))
            _separate(copy, ranks)
            if mesh.library is None:
                mesh.name = f"{name} original"
                copy.name = name
            for obj in users:
                obj.data = copy
        yield
    finally:
        for mesh, copy, name, users in replaced:
            for obj in users:
                obj.data = mesh
            bpy.data.meshes.remove(copy)
            if mesh.library is None:
                mesh.name = name


def duplicate_ranks(mesh: bpy.types.Mesh) -> IntArray:
    """Return, for each face, the number of earlier faces with exactly the same vertices, (F,) int32."""
    count = len(mesh.polygons)
    ranks = np.zeros(count, np.int32)
    if count < 2:
        return ranks
    starts = arrays.read(mesh.polygons, "loop_start", dtype=np.int32)
    vertices = arrays.corner_vertices(mesh)
    # The sum of its vertices' random numbers identifies a face independent of the order of corners. If two faces had
    # equal sums by chance, one would only get separate vertices.
    numbers = np.random.default_rng(0).integers(0, 1 << 63, len(mesh.vertices), np.uint64)
    sums = np.add.reduceat(numbers[vertices], starts)
    order = np.argsort(sums, kind="stable")
    is_first = np.append(True, sums[order][1:] != sums[order][:-1])
    positions = np.arange(count)
    ranks[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    return ranks


def _separate(mesh: bpy.types.Mesh, ranks: IntArray) -> None:
    """Give separate vertices to the faces of each rank above 0; normals are preserved."""
    before = arrays.read(mesh.corner_normals, "vector", 3)
    arrays.add_attribute(mesh, _FACE_INDEX, "INT", "FACE", np.arange(len(ranks)))
    with arrays.edited(mesh) as editable:
        editable.faces.ensure_lookup_table()
        index = editable.faces.layers.int[_FACE_INDEX]
        groups = [
            [editable.faces[face] for face in np.flatnonzero(ranks == rank).tolist()]
            for rank in range(1, int(ranks.max()) + 1)
        ]
        for faces in groups:
            bmesh.ops.split(editable, geom=faces)
        # Blender appends the split faces, so restore the original order
        editable.faces.sort(key=operator.itemgetter(index))
    mesh.attributes.remove(mesh.attributes[_FACE_INDEX])
    if np.abs(arrays.read(mesh.corner_normals, "vector", 3) - before).max() > _SAME_NORMAL:
        compat.set_corner_normals(mesh, before)


_GREEN = 1


def turn_green_up(objects: Iterable[bpy.types.Object]) -> None:
    """Replace normal maps of objects whose green is inverted by nodes of an import by images with green up."""
    materials = {slot.material for obj in objects for slot in obj.material_slots if slot.material is not None}
    inverted: dict[bpy.types.Image, bpy.types.Image] = {}
    for material in materials:
        tree = compat.node_tree(material)
        for node in list(tree.nodes) if tree is not None and material.library is None else ():
            if node.type == "NORMAL_MAP" and (source := _image_node(node)) is not None:
                if source.image not in inverted:
                    inverted[source.image] = _with_inverted_green(source.image)
                source.image = inverted[source.image]
                tree.links.new(source.outputs["Color"], node.inputs["Color"])
                compat.set_green_up(node)


def _image_node(normal_map: Any) -> Any:
    """Return the image node before a Normal Map node if nodes between them invert green, otherwise None."""
    links = normal_map.inputs["Color"].links
    node = links[0].from_node if links else None
    if node is not None and not compat.is_green_down(normal_map):
        node = _source_of_inversion(node)
    is_image = node is not None and node.type == "TEX_IMAGE" and node.image is not None
    is_shared = is_image and sum(len(socket.links) for socket in node.outputs) > 1
    return node if is_image and not is_shared else None


def _source_of_inversion(node: Any) -> Any:
    """Return the socket whose value a vector node inverts by computing 1 - green; None for any other node."""
    if node.type != "VECT_MATH" or node.operation != "MULTIPLY_ADD" or not node.inputs[0].is_linked:
        return None
    factors = [tuple(socket.default_value) for socket in node.inputs[1:3]]
    return node.inputs[0].links[0].from_node if factors == [(1.0, -1.0, 1.0), (0.0, 1.0, 0.0)] else None


def _with_inverted_green(image: bpy.types.Image) -> bpy.types.Image:
    """Return a packed copy of an image with inverted green."""
    width, height = (int(side) for side in image.size)
    pixels = np.empty((width * height, image.channels), np.float32)
    image.pixels.foreach_get(pixels.reshape(-1))
    if image.channels > _GREEN:
        pixels[:, _GREEN] = 1.0 - pixels[:, _GREEN]
    name = image.name
    if image.library is None:
        image.name = f"{name} (green down)"
    made = bpy.data.images.new(name, width, height, alpha=image.channels == 4, is_data=True)
    made.pixels.foreach_set(pixels.reshape(-1))
    made.pack()
    name = made.name if made.name.lower().endswith(".png") else f"{made.name}.png"
    made.filepath_raw = f"//{name}"  # exporters treat images with equal paths as the same image
    return made


def report_mixtures(materials: Iterable[bpy.types.Material], report: Report) -> list[bpy.types.Material]:
    """Report the materials with a mixture of images by a factor that is not constant; return the others."""
    mixed = [material for material in materials if _has_mixture(material)]
    names = of_kind("material", [material.name for material in mixed])
    report.loss_of("image-mixture", "{} with a mixture of images, which the file does not hold: {}", names, "material")
    return [material for material in materials if material not in mixed]


def _has_mixture(material: bpy.types.Material) -> bool:
    tree = compat.node_tree(material)
    output = output_of(tree) if tree is not None else None
    if output is None:
        return False
    nodes = [found.node for found in sources(Socket(output.inputs["Surface"]))]
    has_image = any(node.type == "TEX_IMAGE" for node in nodes)
    return has_image and any(_mixes(node) for node in nodes if node.type == "MIX")


def _mixes(node: bpy.types.Node) -> bool:
    """Return whether a Mix node blends two colours by a linked factor."""
    return bool(node.blend_type == "MIX" and any(entry.is_linked for entry in node.inputs if entry.type == "VALUE"))
