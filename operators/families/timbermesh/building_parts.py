"""Parts of a collection that becomes a building of Timberborn, its models, and a rendered icon."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ....blender_data.exporting.object_selection import Source
from ....blender_data.names import MARK, without_number
from ....blender_data.operator_calls import operator_error
from ....blender_data.steps import Steps, scaled
from ....io_formats.core.errors import ExportError
from ....io_formats.core.options import resolve
from ....io_formats.core.scene import Scene
from ....io_formats.timbermesh.building.cells import Box, Shape, bounds_of, entrance_at, size_of
from ....io_formats.timbermesh.building.options import BuildingOptions
from ....io_formats.timbermesh.model.format import TIMBERMESH
from ...files.export_base import encode_steps, file_steps
from .parts import collection_part

_STAGE = re.compile(r"ConstructionStage(\d+)")
_COLLIDER = "Collider"
_ENTRANCES = (f"{MARK}Slot{MARK}Entrance", "Entrance")
_ACCESS = "Access"
_ICON_SIZE = 112
_LIGHTS = (((0.4, 0.7, 1.0), 3.0), ((-1.0, 0.4, 0.3), 1.0), ((0.5, 1.0, 0.1), 0.5))
"""Directions to suns, and their strengths."""
_VIEW = Vector((0.7, 1.0, 0.7))
"""Direction from a building to the camera; the front is towards +Y."""


@dataclass(frozen=True)
class EncodedModels:
    """The models of a building, and what its blueprint needs to know of them."""

    shape: Shape
    materials: frozenset[str]
    files: Sequence[bytes]
    box: Box
    """Box around the finished model."""
    triangles: int


class BuildingParts:
    """A collection with the meaning that names give to its objects and child collections.

    Raises
    ------
    ExportError
        Several empties mark the origin, the entrance or the access.
    """

    def __init__(self, collection: bpy.types.Collection) -> None:
        part = collection_part(collection, is_moved=True)
        stages = {
            int(found[1]): child
            for child in collection.children_recursive
            if (found := _STAGE.fullmatch(without_number(child.name)))
        }
        if [*stages] and sorted(stages) != [*range(len(stages))]:
            raise ExportError("The construction stages are not numbered from 0: {}", sorted(stages))
        objects = [*collection.all_objects]
        empties = [obj for obj in objects if obj.type == "EMPTY"]
        self.entrance = _single(empties, _ENTRANCES)
        self.access = _single(empties, (_ACCESS,))
        colliders = {obj for obj in objects if obj.type == "MESH" and obj.name.startswith(_COLLIDER)}
        points = {obj for obj in empties if without_number(obj.name) in {_ACCESS, _ENTRANCES[1]}}
        groups = [{*stages[number].all_objects} for number in range(len(stages))]
        others = part.source.left_out | colliders | points
        origin = part.source.origin
        matrix = origin.matrix if origin is not None else None
        if origin is not None and origin.obj is not None:
            place, turned, _scale = origin.obj.matrix_world.decompose()
            matrix = Matrix.LocRotScale(place, turned, None)
        self.origin = matrix or Matrix()
        self.sources = [Source("COLLECTION", collection, origin=origin, left_out=frozenset(others.union(*groups)))]
        self.sources += [
            Source("COLLECTION", stages[number], origin=origin, left_out=frozenset(others)) for number in range(len(stages))
        ]
        self.colliders = [colliders.difference(*groups), *(colliders & group for group in groups)]
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


def _single(empties: Sequence[bpy.types.Object], names: Sequence[str]) -> bpy.types.Object | None:
    """Return the only empty with one of these names, preferring the first name."""
    for name in names:
        found = [obj for obj in empties if without_number(obj.name) == name]
        if len(found) > 1:
            raise ExportError("Several empties are named '{}'; keep one", name)
        if found:
            return found[0]
    return None


def encoded_models(context: bpy.types.Context, parts: BuildingParts, options: BuildingOptions) -> Steps[EncodedModels]:
    """Encode the finished model and those of the stages.

    Raises
    ------
    MeshferryError
        A model cannot be exported, or is at a wrong place.
    """
    values = resolve(TIMBERMESH.export_options.table(), headless=False)
    files, scenes, boxes = [], [], []
    for number, source in enumerate(parts.sources):
        name = source.collection.name
        start, end = number / len(parts.sources), (number + 1) / len(parts.sources)
        made = yield from scaled(file_steps(context, source, name, TIMBERMESH, values), start, end, name)
        encoded = yield from encode_steps(made.parts[0], Path(f"{name}.timbermesh"), TIMBERMESH, values)
        box = bounds_of(encoded.scene)
        if box is None:
            raise ExportError("The collection '{}' has no mesh with faces", name)
        scenes.append(encoded.scene)
        files.append(encoded.outputs[-1].data)
        boxes.append(box)
    size = size_of(boxes[0], (options.size_x, options.size_y, options.size_z))
    colliders = [parts.boxes(found, box) for found, box in zip(parts.colliders, boxes, strict=True)]
    entrance, access = None, None
    if parts.entrance is not None:
        entrance = entrance_at(parts.entrance.name, parts.point(parts.entrance), size)
    if parts.access is not None:
        x, y, z = parts.point(parts.access)
        access = -x, z, -y
    nodes = frozenset(node.name for node in scenes[0].nodes)
    shape = Shape(size, colliders[0], colliders[1:], entrance, access, nodes)
    return EncodedModels(shape, _materials(scenes), files, boxes[0], scenes[0].triangle_count)


def _materials(scenes: Sequence[Scene]) -> frozenset[str]:
    return frozenset(name for scene in scenes for node in scene.nodes if node.mesh for name in node.mesh.materials)


def rendered_icon(parts: BuildingParts, box: Box) -> bytes:
    """Return a picture of the finished model, rendered by Cycles in a temporary scene.

    Raises
    ------
    ExportError
        Blender has no Cycles, or cannot render.
    """
    scene: Any = bpy.data.scenes.new("Meshferry Icon")
    made: list[Any] = []

    def add(data: Any, direction: Vector, distance: float) -> None:
        obj = bpy.data.objects.new(data.name, data)
        turned = direction.to_track_quat("Z", "Y").to_matrix().to_4x4()
        middle = Vector((box[0] + box[1]) / 2)
        obj.matrix_world = parts.origin @ Matrix.Translation(middle + direction.normalized() * distance) @ turned
        scene.collection.objects.link(obj)
        made.append(data)

    try:
        reach = float(np.linalg.norm(box[1] - box[0]))
        camera: Any = bpy.data.cameras.new("Icon")
        camera.type, camera.ortho_scale, camera.clip_end = "ORTHO", reach * 0.95, 10 * reach + 10
        add(camera, _VIEW, 2 * reach)
        scene.camera = scene.collection.objects[0]
        for direction, strength in _LIGHTS:
            sun: Any = bpy.data.lights.new("Icon", "SUN")
            sun.energy = strength
            add(sun, Vector(direction), reach)
        for obj in parts.objects:
            scene.collection.objects.link(obj)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "icon.png")
            _set_render(scene, path)
            bpy.ops.render.render(write_still=True, scene=scene.name)
            data = path.read_bytes()
        start, end = data.find(b"tEXt"), data.find(b"IDAT")  # between them: date and duration of the rendering
        return data[: start - 4] + data[end - 4 :] if 0 < start < end else data
    except (TypeError, AttributeError, RuntimeError, OSError) as problem:
        reason = operator_error(problem) if isinstance(problem, RuntimeError) else problem
        raise ExportError("The icon cannot be rendered by Cycles ({}); choose a picture as Icon", reason) from None
    finally:
        bpy.data.scenes.remove(scene)
        bpy.data.batch_remove([*(user for user in bpy.data.objects if user.data in made), *made])


def _set_render(scene: Any, path: Path) -> None:
    render = scene.render
    render.engine = "CYCLES"
    scene.cycles.device, scene.cycles.samples = "CPU", 32
    scene.cycles.use_denoising = scene.cycles.use_adaptive_sampling = False  # adaptive sampling depends on the clock
    render.resolution_x = render.resolution_y = _ICON_SIZE
    render.resolution_percentage, render.film_transparent = 100, True
    render.image_settings.file_format, render.image_settings.color_mode = "PNG", "RGBA"
    scene.view_settings.view_transform = "Standard"
    render.filepath, render.use_file_extension = str(path), False
