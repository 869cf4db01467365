"""Plan of the files of new buildings from collections: parts, models and rendered icons. Imported on first use."""

import contextlib
import json
import re
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from .....blender_data import file_records
from .....blender_data.exporting.object_selection import Source
from .....blender_data.names import MARK, without_number
from .....blender_data.steps import Steps, finish, scaled
from .....io_formats.api import EncodedFile
from .....io_formats.core.errors import ExportError
from .....io_formats.core.format import OutputFile
from .....io_formats.core.messages import Message, Report, Text, joined
from .....io_formats.core.options import resolve
from .....io_formats.disk.atomic_write import make_folder, remove_file, replace_file
from .....io_formats.disk.special_files import read_bytes
from .....io_formats.timbermesh.building import cells, document, mod_folder, planning
from .....io_formats.timbermesh.building.names import ENDING, game_names
from .....io_formats.timbermesh.building.options import BLOCKS, OPTIONS, BuildingOptions
from .....io_formats.timbermesh.model.format import TIMBERMESH
from ....files.export_base import encode_steps, file_steps
from ..buildings import CELLS
from ..parts import ORIGIN_NAME, collection_part

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
        found = ((_STAGE.fullmatch(without_number(child.name)), child) for child in collection.children_recursive)
        stages = sorted((int(match[1]), child.name, child) for match, child in found if match is not None)
        if [number for number, *_ in stages] != [*range(len(stages))]:
            raise ExportError("Number the construction stages from 0: {}", [name for _, name, _ in stages])
        objects = [*collection.all_objects]
        inside = {home for *_, child in stages for home in (child, *child.children_recursive)}
        own = {obj for home in {collection, *collection.children_recursive} - inside for obj in home.objects}
        empties = [obj for obj in own if obj.type == "EMPTY"]
        points = {obj for obj in empties if without_number(obj.name) in {_ENTRANCE, _ACCESS}}
        self.entrance = _single(empties, _SLOT) or _single([*points], _ENTRANCE)
        self.access = _single([*points], _ACCESS)
        colliders = {obj for obj in objects if obj.type == "MESH" and obj.name.startswith(_COLLIDER)}
        groups = [{*child.all_objects} for *_, child in stages]
        self.mark, self.origin = None, Matrix()
        if whole.origin is not None:
            self.mark = whole.origin.obj
            location, rotation, _scale = (whole.origin.matrix or self.mark.matrix_world).decompose()
            self.origin = Matrix.LocRotScale(location, rotation, None)
        others = whole.left_out | colliders | points
        self.sources = [replace(whole, left_out=others.union({*objects} - own))]
        self.sources += [Source("COLLECTION", child, origin=whole.origin, left_out=others) for *_, child in stages]
        self.colliders = [colliders & own, *(colliders & group for group in groups)]
        self.objects = [obj for obj in objects if obj not in self.sources[0].left_out]

    def point(self, obj: bpy.types.Object) -> tuple[float, float, float]:
        """Return the location of an object relative to the origin."""
        x, y, z = (self.origin.inverted() @ obj.matrix_world).translation
        return x, y, z

    def boxes(self, colliders: Iterable[bpy.types.Object], box: cells.Box) -> list[cells.Box]:
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


def _encode_steps(context: bpy.types.Context, source: Any, report: Report) -> Steps[tuple[EncodedFile, cells.Box]]:
    """Encode the model in a collection; return it with its box."""
    # Stages and colliders overlap the finished model, so that all but one are usually hidden.
    values = resolve(TIMBERMESH.export_options.table(), headless=False) | {"use_hidden": True}
    name = source.collection.name
    files = yield from file_steps(context, source, name, TIMBERMESH, values)
    encoded = yield from encode_steps(files.parts[0], Path(f"{name}.timbermesh"), TIMBERMESH, values)
    report.messages += [*files.messages, *(message for message in encoded.messages if message.is_loss)]
    box = cells.bounds_of(encoded.scene)
    if box is None:
        raise ExportError("The collection '{}' has no mesh with faces", name)
    return encoded, box


def encoded_models(
    context: bpy.types.Context, parts: BuildingParts, options: BuildingOptions, report: Report
) -> Steps[tuple[cells.Shape, list[bytes], cells.Box]]:
    """Encode the finished model and those of the stages; return them with the shape and the box of the finished one.

    Raises
    ------
    MeshferryError
        A model cannot be exported, or is at a wrong place.
    """
    made, count = [], len(parts.sources)
    for number, source in enumerate(parts.sources):
        steps = _encode_steps(context, source, report)
        made.append((yield from scaled(steps, number / count, (number + 1) / count, source.collection.name)))
    box, name = made[0][1], parts.sources[0].collection.name
    size = cells.size_of(box, (options.size_x, options.size_y, options.size_z), name)
    colliders, *stages = (parts.boxes(found, box) for found, (_, box) in zip(parts.colliders, made, strict=True))
    door, point = parts.entrance, parts.access
    entrance = cells.entrance_at(door.name, parts.point(door), size) if door is not None else None
    x, y, z = parts.point(point) if point is not None else (0.0, 0.0, 0.0)
    access = (-x, z, -y) if point is not None else None
    scenes = [encoded.scene for encoded, _box in made]
    meshes = (node.mesh for scene in scenes for node in scene.nodes if node.mesh is not None)
    materials = frozenset(mesh.materials[slot] for mesh in meshes for slot in np.unique(mesh.material_index))
    names, triangles = frozenset(node.name for node in scenes[0].nodes), scenes[0].triangle_count
    shape = cells.Shape(size, colliders, stages, entrance, access, names, materials, triangles)
    return shape, [encoded.outputs[-1].data for encoded, _box in made], box


def move_origin(collection: bpy.types.Collection) -> None:
    """Put the empty ``#Origin`` of a collection at the corner of its model; add it if there is none."""
    parts = BuildingParts(collection)
    _encoded, (_low, high) = finish(_encode_steps(bpy.context, parts.sources[0], Report()))
    mark = parts.mark or bpy.data.objects.new(ORIGIN_NAME, None)
    if parts.mark is None:
        collection.objects.link(mark)
    mark.matrix_world = parts.origin @ Matrix.Translation((high[0], high[1], 0.0))


def show_cells(context: bpy.types.Context, collection: bpy.types.Collection, options: BuildingOptions) -> None:
    """Add lattices that show the cells of a building and the cell before its door.

    A lattice is drawn as a grid with cells of 1 m; neither exports nor renderings contain it.

    Raises
    ------
    MeshferryError
        The building cannot be exported.
    """
    parts = BuildingParts(collection)
    shape, _models, _box = finish(encoded_models(context, parts, options, Report()))
    x, y, _z = shape.size
    for name, cell, size in (("Cells", (x - 1, y - 1, 0), shape.size), ("Entrance Cell", shape.entrance, (1, 1, 1))):
        if cell is not None:
            data = bpy.data.lattices.new(name)
            data.points_u, data.points_v, data.points_w = (count + 1 for count in size)
            data[CELLS] = collection
            grid = bpy.data.objects.new(name, data)
            grid.show_name = grid.show_in_front = grid.hide_select = True
            middle = Vector((-cell[0] - 1, -cell[1] - 1, cell[2])) + Vector(size) / 2
            grid.matrix_world = parts.origin @ Matrix.Translation(middle)
            context.scene.collection.objects.link(grid)


def rendered_icon(parts: BuildingParts, box: cells.Box) -> bytes:
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


_FACTS = ("building", "collection", "size", "entrance", "materials", "triangles")


@dataclass
class PlannedBuildings:
    """New content of files, facts for the user, and what each collection remembers after they are written."""

    root: Path
    """Folder of the mod."""
    report: Report = field(default_factory=Report)
    files: dict[Path, bytes] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)

    def lines(self) -> list[Text]:
        """Return the facts and the files as texts."""
        lines = []
        for fact in self.facts:
            entrance = Text("entrance cell {}, {}, {}", *fact["entrance"]) if fact["entrance"] else Text("no entrance")
            text = Text("{}: {} x {} x {} cells", fact["building"], *fact["size"])
            lines.append(joined([text, entrance, *fact["materials"]]))
        return [*lines, *(Text("{}", place.relative_to(self.root)) for place in self.files), *self.report.messages]

    def write(self) -> list[Message]:
        """Write the files and store the records; if a file cannot be written, restore those before it.

        Raises
        ------
        ExportError
            A file cannot be written.
        """
        messages = [*self.report.messages]
        with contextlib.ExitStack() as restoring:
            for place, data in self.files.items():
                old = read_bytes(place) if place.exists() else None
                make_folder(place.parent)
                messages += file_records.write_files(place, [OutputFile(place.name, data)])
                restoring.callback(remove_file, place) if old is None else restoring.callback(replace_file, place, old)
            restoring.pop_all()
        for collection, record in self.records:
            if collection.is_editable:
                file_records.write_set(collection, json.dumps(record))
        return messages


def plan_steps(
    context: Any, collections: Sequence[Any], options: BuildingOptions, record: Any = None, *, has_icon: bool = True
) -> Steps[PlannedBuildings]:
    """Plan the files of buildings; nothing is written.

    Parameters
    ----------
    record:
        What the collection remembers, if only its models and the changes of its cells are written.
    has_icon:
        Whether missing icons are rendered; otherwise they are only listed.

    Raises
    ------
    MeshferryError
        A building cannot be written.
    """
    if not options.mod:
        raise ExportError("Choose the folder of the mod")
    mod, count = mod_folder.ModFolder(Path(options.mod)), len(collections)
    plan = PlannedBuildings(mod.root)
    names = game_names(options.game, plan.report)
    for number, collection in enumerate(collections):
        parts = BuildingParts(collection)
        encoding = encoded_models(context, parts, options, plan.report)
        shape, models, box = yield from scaled(encoding, number / count, (number + 1) / count)
        name, faction = planning.name_and_faction(collection.name, options.faction, shape.materials, names)
        folder = planning.existing_folder(f"{name}.{faction}", mod, options.tool_group)
        building = document.Building(name, faction, shape, options, folder)
        place = mod.place(f"{folder}/{building.stem}{ENDING}")
        files = {mod.place(f"{path}.timbermesh"): data for path, data in zip(building.models, models, strict=True)}
        mod.planned |= files
        if record is None:
            icon = read_bytes(options.icon) if options.icon else None
            if icon is None and not planning.has_icon(building, mod):
                icon = rendered_icon(parts, box) if has_icon else b"\x89PNG"
            values = planning.plan_building(building, icon, mod, names, plan.report)
        elif str(mod.templates.get(building.stem)) != record["blueprint"]:
            template = "The building is not at its stored path, or is damaged: {}; choose New Timberborn Building"
            raise ExportError(template, record["blueprint"])
        else:
            planning.check_names(building, mod, names, plan.report)
            for path in mod.changed():
                known = file_records.FileRecord(path, TIMBERMESH.name, record["digests"].get(str(path), ""))
                if not file_records.is_unchanged(known):
                    raise ExportError("'{}' was changed by another program; {}", path.name, planning.REMEDY)
            values = cells.geometry(shape, is_stackable=record["values"][BLOCKS][-1]["Stackable"] != "None")
            mod.planned[place] = planning.edited_blueprint(read_bytes(place), record["values"], values)
        facts = building.stem, collection.name, shape.size, shape.entrance, sorted(shape.materials), shape.triangles
        plan.facts.append(dict(zip(_FACTS, facts, strict=True)))
        stored = {"collection": collection.name, "blueprint": str(place), "values": values}
        stored["options"] = {option.name: getattr(options, option.name) for option in OPTIONS}
        stored["digests"] = {str(path): file_records.digest_of_content(data) for path, data in files.items()}
        plan.records.append((collection, stored))
    plan.files = mod.changed()
    return plan
