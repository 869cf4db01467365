"""Small pictures of objects, rendered in a scene of their own, and collections as assets with such a picture.

Workbench draws it: colours of materials and vertices under a fixed studio light, with cavity and outlines, so that
shapes are recognisable at thumbnail size. The front of a model is towards -Y, seen from slightly right and above.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix

from . import arrays
from .exporting.reading.material_reading import pixels_of
from .rigging.joint_weights import world_points


def mark_asset(
    collection: bpy.types.Collection,
    *,
    tags: Iterable[str],
    description: str,
    catalog: str = "",
    picture: Path | None = None,
) -> None:
    """Mark a collection as an asset.

    Parameters
    ----------
    catalog:
        UUID of the asset's catalog; empty for none.
    picture:
        Image file for the preview; without it, Blender creates a preview only when the user asks for it.
    """
    # Objects hidden with the eye icon are visible in instances of the collection, so disable them in viewports.
    # Setting hide_viewport frees the list that all_objects iterates over, so copy it first.
    for obj in [obj for obj in collection.all_objects if obj.hide_get()]:
        obj.hide_viewport = True
    collection.asset_mark()
    data = collection.asset_data
    if catalog:
        data.catalog_id = catalog
    data.description = description
    for tag in tags:
        data.tags.new(tag, skip_if_exists=True)
    pixels = None if picture is None else _pixels(picture)
    if pixels is not None:
        preview = collection.preview_ensure()
        preview.image_size = pixels.shape[1::-1]
        preview.image_pixels_float.foreach_set(pixels.ravel())


def _pixels(path: Path) -> npt.NDArray[np.float32] | None:
    """Return the pixels of an image file, (height, width, 4) float32, the lowest row first; None if it is unreadable.

    Colours are sRGB-encoded and multiplied by alpha, as in previews.
    """
    try:
        image = bpy.data.images.load(str(path))
    except RuntimeError:
        return None
    try:
        if not all(image.size):
            return None
        pixels = pixels_of(image)
        pixels[..., :3] *= pixels[..., 3:]
        return pixels
    finally:
        bpy.data.images.remove(image)


_LAYER = "Picture"
_LEAST_ALPHA = 0.4
"""Minimum alpha of transparent materials, so that they are visible in a picture."""
_PLAIN = (0.5, 0.5, 0.5, 1.0)
"""Linear colour for faces without a material."""


def show_colors(objects: Sequence[bpy.types.Object]) -> str:
    """Prepare the colours of objects for Workbench; return the ``color_type`` to set."""
    meshes = {one.data.name_full: one for one in objects if one.type == "MESH"}
    for slot in (slot for one in objects for slot in one.material_slots):
        if slot.material is not None:
            color: Any = slot.material.diffuse_color
            color[3] = max(color[3], _LEAST_ALPHA)
    if any(_has_texture(slot.material) for one in objects for slot in one.material_slots):
        return "TEXTURE"
    if not any(len(one.data.color_attributes) for one in meshes.values()):
        return "MATERIAL"
    for one in meshes.values():
        _bake(one)
    return "VERTEX"


def _has_texture(material: bpy.types.Material | None) -> bool:
    """Return whether a material has a texture whose image is available."""
    tree = material.node_tree if material is not None else None
    nodes: Any = tree.nodes if tree is not None else ()
    return any(node.type == "TEX_IMAGE" and node.image is not None and node.image.size[0] > 0 for node in nodes)


def _bake(owner: bpy.types.Object) -> None:
    """Add a colour attribute to a mesh: the material's colour times the mesh's own colour attribute."""
    mesh: bpy.types.Mesh = owner.data
    table = np.array(
        [tuple(slot.material.diffuse_color) if slot.material else _PLAIN for slot in owner.material_slots] or [_PLAIN],
        np.float32,
    )
    table[:, 3] = 1.0
    slots = arrays.read(mesh.polygons, "material_index", dtype=np.int32)
    corners = arrays.read(mesh.polygons, "loop_total", dtype=np.int32)
    colors = np.repeat(table[np.clip(slots, 0, len(table) - 1)], corners, axis=0)
    given = mesh.color_attributes.active_color or next(iter(mesh.color_attributes), None)
    if given is not None and len(colors) == len(mesh.loops):
        painted = arrays.read(given.data, "color", 4)[:, :3]
        if given.domain == "POINT":
            painted = painted[arrays.corner_vertices(mesh)]
        colors[:, :3] *= np.clip(np.nan_to_num(painted), 0.0, 1.0)
    layer = mesh.color_attributes.new(_LAYER, "FLOAT_COLOR", "CORNER")
    layer.data.foreach_set("color", arrays.flat(colors))
    index = mesh.color_attributes.find(layer.name)
    mesh.color_attributes.active_color_index = index
    mesh.color_attributes.render_color_index = index


Array = npt.NDArray[np.float64]

_COLOR = (0.35, 0.5, 0.68, 1.0)
"""Linear colour of the solids, which differs from all colours that Blender uses."""
_GAP = 0.5
"""Thickness of the connections between bones, relative to that of points."""
_MOST = 20_000
"""Largest number of edges or points shown for each mesh; if there are more, only every n-th is shown."""
_DOT = 0.012
"""Radius of points and edges, relative to the largest side of the common bounding box."""
_THICKNESS = 0.1
"""Half width of a bone relative to its length, as Blender draws it."""
_THINNEST = 0.012
"""Smallest half width of bones, relative to the largest side of the common bounding box, so that short bones are
visible."""
_THICKEST = 0.03
"""Largest half width of bones, relative to the largest side of the common bounding box."""
_COLLAR = 0.12
"""Distance from a bone's head to its thickest point, relative to its length."""

_TRIANGLES = np.array(
    [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 1, 4), (5, 1, 2), (5, 2, 3), (5, 3, 4), (5, 4, 1)], np.int32
)
"""Triangles of an octahedron: head (0), four points around the thickest part (1 to 4), tail (5)."""


def has_faces(objects: Iterable[bpy.types.Object]) -> bool:
    """Return whether one of the objects has a surface that can be rendered."""
    return any(
        (one.type == "MESH" and (len(one.data.polygons) or one.modifiers))
        or one.type in {"CURVE", "SURFACE", "META", "FONT", "CURVES", "POINTCLOUD", "VOLUME"}
        or (one.type == "EMPTY" and one.instance_type == "COLLECTION")
        for one in objects
    )


def marks_for(objects: Sequence[bpy.types.Object]) -> list[bpy.types.Object]:
    """Return objects that show the bones of armatures, or if there are none, the edges and points of meshes."""
    armatures = [one for one in objects if one.type == "ARMATURE" and len(one.data.bones)]
    if armatures:
        bones = _joined([_bones(one) for one in armatures])
        gaps = _joined([_gaps(one) for one in armatures])
        side = _largest_side(*bones)
        return [_solids("Bones", *bones, side, is_bone=True), _solids("Gaps", *gaps, side * _GAP, is_bone=False)]
    ends = _joined([_edges_and_points(one) for one in objects if one.type == "MESH"])
    return [_solids("Points", *ends, _largest_side(*ends), is_bone=False)] if len(ends[0]) else []


def _joined(some: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Concatenate pairs of arrays, without rows that contain NaN or infinite values."""
    heads = np.concatenate([np.zeros((0, 3)), *(one[0] for one in some)])
    tails = np.concatenate([np.zeros((0, 3)), *(one[1] for one in some)])
    finite = np.isfinite(heads).all(axis=1) & np.isfinite(tails).all(axis=1)
    return heads[finite], tails[finite]


def _largest_side(heads: Array, tails: Array) -> float:
    """Return the largest side of the bounding box of all ends; 1 if it is zero."""
    return (float(np.ptp(np.concatenate((heads, tails)), axis=0).max()) if len(heads) else 0.0) or 1.0


def _bones(armature: bpy.types.Object) -> tuple[Array, Array]:
    """Return the heads and tails of the bones of an armature in its pose, each (B, 3), in world space."""
    posed = armature.pose.bones
    matrix = np.array(armature.matrix_world, np.float64)
    ends = (arrays.read(posed, name, 3).astype(np.float64) for name in ("head", "tail"))
    heads, tails = (end @ matrix[:3, :3].T + matrix[:3, 3] for end in ends)
    return heads, tails


def _gaps(armature: bpy.types.Object) -> tuple[Array, Array]:
    """Return the ends of connections from bones to children that start neither at their head nor at their tail."""
    heads, tails = _bones(armature)
    numbers = {bone.name: number for number, bone in enumerate(armature.pose.bones)}
    pairs = [(numbers[bone.parent.name], number) for number, bone in enumerate(armature.pose.bones) if bone.parent]
    parents, children = np.array(pairs, np.intp).reshape(-1, 2).T
    apart = np.linalg.norm(heads[children] - tails[parents], axis=1)
    apart = np.minimum(apart, np.linalg.norm(heads[children] - heads[parents], axis=1))
    open_ = apart > _GAP * _DOT * _largest_side(heads, tails)
    return heads[parents[open_]], heads[children[open_]]


def _edges_and_points(owner: bpy.types.Object) -> tuple[Array, Array]:
    """Return the ends of a mesh's edges, each (E, 3), in world space; without edges, each point twice."""
    mesh: bpy.types.Mesh = owner.data
    points = world_points(owner)
    edges = arrays.read(mesh.edges, "vertices", 2, np.int32)
    pairs = edges if len(edges) else np.arange(len(points), dtype=np.int32)[:, None].repeat(2, axis=1)
    pairs = pairs[:: max(1, -(-len(pairs) // _MOST))]
    return points[pairs[:, 0]], points[pairs[:, 1]]


def _solids(name: str, heads: Array, tails: Array, side: float, *, is_bone: bool) -> bpy.types.Object:
    """Return an object with an octahedron from each head to its tail, (N, 3) each: bones, edges or points.

    The thickness depends on ``side``, the largest side of the common bounding box.
    """
    along = tails - heads
    lengths = np.linalg.norm(along, axis=1)
    least = side * (_THINNEST if is_bone else _DOT)
    axis = np.where(lengths[:, None] > least * 1e-3, along, (0.0, 0.0, 1.0))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    short = lengths < 2 * least
    heads = heads - np.where(short[:, None], axis * least, 0.0)
    lengths = np.where(short, 2 * least, lengths)
    width = np.clip(lengths * _THICKNESS, least, side * _THICKEST) if is_bone else np.full(len(lengths), least)
    collar = np.where(short, 0.5, _COLLAR if is_bone else 0.5)

    other = np.where(np.abs(axis[:, 2:]) < 0.9, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    sideways = np.cross(axis, other)
    sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
    upwards = np.cross(axis, sideways)
    middle = heads + axis * (lengths * collar)[:, None]
    ring = [middle + part * width[:, None] for part in (sideways, upwards, -sideways, -upwards)]
    points = np.stack((heads, *ring, heads + axis * lengths[:, None]), axis=1)
    triangles = _TRIANGLES[None] + 6 * np.arange(len(heads), dtype=np.int32)[:, None, None]

    mesh = bpy.data.meshes.new(name)
    arrays.fill_triangles(mesh, points.reshape(-1, 3), triangles)
    material = bpy.data.materials.new(name)
    material.diffuse_color = _COLOR
    mesh.materials.append(material)
    mesh.shade_flat()
    mesh.update(calc_edges=True)
    return bpy.data.objects.new(name, mesh)


_AZIMUTH = math.radians(32)
_ELEVATION = math.radians(22)
_HALF_VIEW = math.tan(math.radians(11))
"""Tangent of half the camera's angle of view; small, for little perspective."""
_MARGIN = 0.94
"""Share of the picture's width that the model takes up."""
_EXPOSURE = 0.6
"""Exposure in stops, since many materials of real models are dark."""
_LARGE = 200_000
"""Number of points from which edges are smoothed in the finished picture, instead of rendering eight samples."""
_SEEN = 0.1
"""Alpha above which a pixel counts as visible."""
_LEAST_CLIP = 1e-6
"""Smallest near clipping distance of Blender's cameras, in metres."""
_NO_SURFACE = frozenset({"ARMATURE", "CAMERA", "LATTICE", "LIGHT", "LIGHT_PROBE", "SPEAKER"})
_BOX = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], bool)


def make_scene(objects: Sequence[bpy.types.Object], size: int, *, surfaces: bool = True) -> bpy.types.Scene | None:
    """Return a scene with a camera in front of objects, or None if they have nothing visible.

    Colours of meshes are changed, so it is only used if the .blend file is not saved afterwards.

    Parameters
    ----------
    objects:
        Objects of the open file. Coarser levels of detail and physics shapes are shown only if there is nothing else,
        armatures only if there is no surface.
    size:
        Width and height of the picture, in pixels.
    surfaces:
        If false, show edges and points instead, since surfaces may have no area.
    """
    scene = bpy.data.scenes.new("Picture")
    solid = [one for one in objects if one.type not in _NO_SURFACE]
    finest = [one for one in solid if one.data is None or (one.meshferry.lod == 0 and one.meshferry.role == "RENDER")]
    shown = [one for one in finest if not one.hide_render]
    solid = next((some for some in (shown, finest) if any(_may_show(one) for one in some)), solid)
    for one in solid:
        scene.collection.objects.link(one)
        one.hide_render = False
    points = _points(scene)
    if not surfaces or not has_faces(solid):
        for mark in marks_for(objects):
            scene.collection.objects.link(mark)
        points = _points(scene)
    if not len(points):
        return None
    _set_camera(scene, points)
    _set_look(scene, size, is_large=len(points) > _LARGE)
    scene.display.shading.color_type = show_colors(list(scene.objects))
    return scene


def _may_show(one: bpy.types.Object) -> bool:
    """Return whether an object can be visible: it has a visible type, or is an instance of a collection."""
    return one.data is not None or one.instance_type == "COLLECTION"


def _points(scene: bpy.types.Scene) -> Array:
    """Return the points of all visible objects, (P, 3), in world space.

    For instances, only the corners of their bounding boxes are used.
    """
    layer = scene.view_layers[0]
    layer.update()
    found: list[Array] = [np.zeros((0, 3))]
    for instance in layer.depsgraph.object_instances:
        shown = instance.object
        if instance.is_instance or shown.type != "MESH":
            low, high = np.array(shown.bound_box)[[0, 6]]
            points = np.where(_BOX, high, low)
            if shown.type == "EMPTY" or (low > high).any():
                continue
        else:
            points = arrays.read(shown.data.vertices, "co", 3).astype(np.float64)
        matrix = np.array(instance.matrix_world, np.float64)
        placed = points @ matrix[:3, :3].T + matrix[:3, 3]
        found.append(placed[np.isfinite(placed).all(axis=1)])
    return np.concatenate(found)


def _set_camera(scene: bpy.types.Scene, points: Array) -> None:
    """Add a camera to a scene at the nearest location from which all points (P, 3) are visible.

    In the axes of the camera, z points towards the viewer, and t is the tangent of half the angle of view. A camera at
    (a, b, c) sees a point if abs(x - a) <= t (c - z), and the same for y. The extreme values of x + t z and x - t z
    therefore give the smallest c and its a without a search.
    """
    back = np.array(
        (math.sin(_AZIMUTH) * math.cos(_ELEVATION), -math.cos(_AZIMUTH) * math.cos(_ELEVATION), math.sin(_ELEVATION))
    )
    right = np.array((math.cos(_AZIMUTH), math.sin(_AZIMUTH), 0.0))
    axes = np.stack((right, np.cross(back, right), back))
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    seen = (points - middle) @ axes.T
    tangent = _HALF_VIEW * _MARGIN
    depth = seen[:, 2:] * tangent
    highest, lowest = (seen[:, :2] + depth).max(axis=0), (seen[:, :2] - depth).min(axis=0)
    distance = float((highest - lowest).max()) / (2 * tangent)
    nearest, farthest = float(seen[:, 2].max()), float(seen[:, 2].min())
    across = max(nearest - farthest, distance * _HALF_VIEW, 10 * _LEAST_CLIP)
    distance = max(distance, nearest + across * 0.1)
    place = axes.T @ np.array((*((highest + lowest) / 2), distance)) + middle

    data = bpy.data.cameras.new("Picture")
    data.angle = 2 * math.atan(_HALF_VIEW)
    data.clip_start = max((distance - nearest) * 0.5, _LEAST_CLIP)
    data.clip_end = distance - farthest + across
    camera = bpy.data.objects.new("Picture", data)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = axes.T, place
    camera.matrix_world = Matrix(matrix.tolist())
    scene.collection.objects.link(camera)
    scene.camera = camera


def is_blank(picture: str) -> bool:
    """Return whether all pixels of a picture file are transparent."""
    image: Any = bpy.data.images.load(picture)
    pixels = pixels_of(image)
    bpy.data.images.remove(image)
    return not bool((pixels[..., 3] > _SEEN).any())


def _set_look(scene: bpy.types.Scene, size: int, *, is_large: bool) -> None:
    """Set the render and shading settings of a new scene that differ from Blender's defaults."""
    render = scene.render
    render.engine = "BLENDER_WORKBENCH"
    render.resolution_x = render.resolution_y = size
    render.film_transparent = True
    render.use_simplify, render.simplify_subdivision_render = True, 1
    render.use_compositing = render.use_sequencer = False
    scene.view_settings.view_transform = "Standard"
    scene.view_settings.exposure = _EXPOSURE
    scene.display.render_aa = "FXAA" if is_large else "8"
    shading = scene.display.shading
    shading.show_cavity = True
    shading.show_object_outline = True
    shading.object_outline_color = (0.02, 0.02, 0.02)
