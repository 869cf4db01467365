"""Parts of a collection that becomes a building of Timberborn, its models, and a rendered icon."""

import re
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from .....blender_data.exporting.object_selection import Source
from .....blender_data.names import MARK, without_number
from .....blender_data.steps import Steps, scaled
from .....io_formats.core.errors import ExportError
from .....io_formats.core.messages import Report
from .....io_formats.core.options import resolve
from .....io_formats.timbermesh.building.cells import Box, Shape, bounds_of, entrance_at, size_of
from .....io_formats.timbermesh.building.options import BuildingOptions
from .....io_formats.timbermesh.model.format import TIMBERMESH
from ....files.export_base import encode_steps, file_steps
from ..parts import collection_part

_STAGE = re.compile(r"ConstructionStage(\d+)")
_SLOT, _ENTRANCE, _ACCESS, _COLLIDER = f"{MARK}Slot{MARK}Entrance", "Entrance", "Access", "Collider"
_LIGHTS = (((0.4, 0.7, 1.0), 3.0), ((-1.0, 0.4, 0.3), 1.0), ((0.5, 1.0, 0.1), 0.5))
"""Directions to suns, and their strengths."""
_VIEW = ((0.7, 1.0, 0.7), 0.0)
"""Direction from a building to the camera; the front is towards +Y."""


class BuildingParts:
    """A collection with the meaning that names give to its objects and child collections.

    Raises
    ------
    ExportError
        Several empties mark the origin, the entrance or the access, or stages are not numbered from 0.
    """

    def __init__(self, collection: bpy.types.Collection) -> None:
        whole = collection_part(collection, is_moved=True).source
        names = {child: _STAGE.fullmatch(without_number(child.name)) for child in collection.children_recursive}
        stages = sorted((int(found[1]), child.name, child) for child, found in names.items() if found is not None)
        if [number for number, *_ in stages] != [*range(len(stages))]:
            raise ExportError("Number the construction stages from 0: {}", [name for _, name, _ in stages])
        objects = [*collection.all_objects]
        inside = {home for *_, child in stages for home in (child, *child.children_recursive)}
        own = {obj for home in {collection, *collection.children_recursive} - inside for obj in home.objects}
        empties = [obj for obj in own if obj.type == "EMPTY"]
        points = [obj for obj in empties if without_number(obj.name) in {_ENTRANCE, _ACCESS}]
        self.entrance = _single(empties, _SLOT) or _single(points, _ENTRANCE)
        self.access = _single(points, _ACCESS)
        colliders = {obj for obj in objects if obj.type == "MESH" and obj.name.startswith(_COLLIDER)}
        groups = [{*child.all_objects} for *_, child in stages]
        origin, matrix = whole.origin, Matrix()
        if origin is not None:
            mark = origin.matrix if origin.obj is None else origin.obj.matrix_world
            matrix = Matrix.LocRotScale(*(mark or matrix).decompose()[:2], None)
        self.origin = matrix
        others = whole.left_out | colliders | {*points}
        self.sources = [replace(whole, left_out=others.union({*objects} - own))]
        self.sources += [Source("COLLECTION", child, origin=origin, left_out=others) for *_, child in stages]
        self.colliders = [colliders & own, *(colliders & group for group in groups)]
        self.objects = [obj for obj in objects if obj not in self.sources[0].left_out]

    def point(self, obj: bpy.types.Object) -> tuple[float, float, float]:
        """Return the location of an object relative to the origin."""
        x, y, z = (self.origin.inverted() @ obj.matrix_world).translation
        return x, y, z

    def boxes(self, colliders: Iterable[bpy.types.Object], box: Box) -> list[Box]:
        """Return the boxes of colliders along the axes of the building, or the one around the model."""
        found = []
        for obj in sorted(colliders, key=lambda obj: obj.name):
            corners = np.array([self.origin.inverted() @ obj.matrix_world @ Vector(corner) for corner in obj.bound_box])
            found.append((corners.min(axis=0), corners.max(axis=0)))
        return found or [box]


def _single(empties: Sequence[bpy.types.Object], name: str) -> bpy.types.Object | None:
    found = [obj for obj in empties if without_number(obj.name) == name]
    if len(found) > 1:
        raise ExportError("Several empties are named '{}'; keep one", name)
    return found[0] if found else None


def encoded_models(
    context: bpy.types.Context, parts: BuildingParts, options: BuildingOptions, report: Report
) -> Steps[tuple[Shape, list[bytes], Box]]:
    """Encode the finished model and those of the stages; return them with the shape and the box of the finished one.

    Raises
    ------
    MeshferryError
        A model cannot be exported, or is at a wrong place.
    """
    # Stages and colliders overlap the finished model, so that all but one are usually hidden.
    values = resolve(TIMBERMESH.export_options.table(), headless=False) | {"use_hidden": True}
    made, boxes, count = [], [], len(parts.sources)
    for number, source in enumerate(parts.sources):
        name = source.collection.name if source.collection is not None else ""
        steps = file_steps(context, source, name, TIMBERMESH, values)
        files = yield from scaled(steps, number / count, (number + 1) / count, name)
        made.append((yield from encode_steps(files.parts[0], Path(f"{name}.timbermesh"), TIMBERMESH, values)))
        report.messages += [*files.messages, *(message for message in made[-1].messages if message.is_loss)]
        box = bounds_of(made[-1].scene)
        if box is None:
            raise ExportError("The collection '{}' has no mesh with faces", name)
        boxes.append(box)
    size = size_of(boxes[0], (options.size_x, options.size_y, options.size_z))
    colliders = [parts.boxes(found, box) for found, box in zip(parts.colliders, boxes, strict=True)]
    door, point = parts.entrance, parts.access
    entrance = entrance_at(door.name, parts.point(door), size) if door is not None else None
    x, y, z = parts.point(point) if point is not None else (0.0, 0.0, 0.0)
    access = (-x, z, -y) if point is not None else None
    nodes, *others = ([*encoded.scene.nodes] for encoded in made)
    meshes = [node.mesh for node in sum(others, nodes) if node.mesh is not None]
    materials = frozenset(mesh.materials[slot] for mesh in meshes for slot in np.unique(mesh.material_index))
    names, triangles = frozenset(node.name for node in nodes), made[0].scene.triangle_count
    shape = Shape(size, colliders[0], colliders[1:], entrance, access, names, materials, triangles)
    return shape, [encoded.outputs[-1].data for encoded in made], boxes[0]


def rendered_icon(parts: BuildingParts, box: Box) -> bytes:
    """Return a picture of the finished model, rendered by Cycles in a temporary scene.

    Raises
    ------
    ExportError
        Blender has no Cycles, or cannot render.
    """
    scene: Any = bpy.data.scenes.new("Meshferry Icon")
    reach = float(np.linalg.norm(box[1] - box[0]))
    camera: Any = bpy.data.cameras.new("Icon")
    camera.type, camera.ortho_scale, camera.clip_end = "ORTHO", reach * 0.95, 10 * reach
    suns: list[Any] = [bpy.data.lights.new("Icon", "SUN") for _ in _LIGHTS]
    added = [bpy.data.objects.new("Icon", data) for data in (camera, *suns)]
    for obj, (direction, strength) in zip(added, (_VIEW, *_LIGHTS), strict=True):
        if obj.data in suns:
            obj.data.energy = strength
        turned = Vector(direction).to_track_quat("Z", "Y").to_matrix().to_4x4()
        middle = Vector((box[0] + box[1]) / 2) + Vector(direction) * 2 * reach
        obj.matrix_world = parts.origin @ Matrix.Translation(middle) @ turned
    try:
        for obj in [*added, *parts.objects]:
            scene.collection.objects.link(obj)
        scene.camera, scene.view_settings.view_transform = added[0], "Standard"
        render, cycles, image = scene.render, scene.cycles, scene.render.image_settings
        render.engine, render.film_transparent, render.resolution_percentage = "CYCLES", True, 100
        render.resolution_x = render.resolution_y = 112  # pixels of most icons
        image.file_format, image.color_mode = "PNG", "RGBA"
        # Adaptive sampling depends on the clock.
        cycles.device, cycles.samples, cycles.use_adaptive_sampling, cycles.use_denoising = "CPU", 32, False, False
        with tempfile.TemporaryDirectory() as folder:
            render.filepath = str(Path(folder, "icon.png"))
            bpy.ops.render.render(write_still=True, scene=scene.name)
            data = Path(render.filepath).read_bytes()
    except (TypeError, AttributeError, RuntimeError, OSError) as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise ExportError("The icon cannot be rendered by Cycles ({}); choose a picture as Icon", reason) from None
    finally:
        bpy.data.scenes.remove(scene)
        bpy.data.batch_remove([*added, camera, *suns])
    start, end = data.find(b"tEXt"), data.find(b"IDAT")  # between them: date and duration of the rendering
    first = data[end + 4 : end + 4 + int.from_bytes(data[end - 4 : end])]
    if max(zlib.decompressobj().decompress(first)) < 5:  # zeros and numbers of filters, which fit into the first chunk
        raise ExportError("The icon would be empty: show the model in renders, or choose a picture as Icon")
    return data[: start - 4] + data[end - 4 :] if 0 < start < end else data
