"""A model prepared for any file format: its unit cube, faces of each level, and rig (formats page, 3 to 6, 12).

The file formats differ only in how they encode this data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Named, counted
from ...core.scene import Mesh, Node, Scene, Skeleton, Surface
from ...geometry.transforms import Matrix
from ..avatar.joints import facing
from ..models import space
from ..models.faces import MOST_FACES, MOST_VERTICES, FaceArrays, empty_face, faces_of
from ..models.models import Model
from ..models.unit_cube import UnitCube, is_as_imported, settled, unit_cube_of
from ..options import ModelWriteOptions
from .binding import Rig, rig_as_imported, rig_of, used_joints

_IMPORTED_TOLERANCE = 0.02
"""Tolerance for normals that passed through Blender's tangent space: they differ by about this much at corners of one
vertex."""

FaceKey = tuple[int, int]
"""Key that identifies a face in all levels: its material slot in the highest level, and :attr:`.FaceArrays.part`."""


@dataclass
class Prepared:
    """A model that is ready to be written."""

    model: Model
    """Static: without mirroring. Rigged: in avatar space, X forward, without transform. With ``as_imported``: points as
    in the file, with the imported transform."""
    unit_cube: UnitCube
    levels: list[list[FaceArrays] | None]
    """Four levels with one entry for each face of the model, possibly empty; None for a missing level."""
    physics: list[FaceArrays] | None
    rig: Rig | None
    as_imported: bool
    """Whether the model is written as imported, without generated parts."""
    submodels: list[list[int]] = field(default_factory=list)
    """Numbers of the faces of each part of the model; several parts only for models with more than 8 faces."""

    @property
    def materials(self) -> list[str]:
        """Name of the material of each face; may be empty."""
        return [face.material for face in self.levels[0] or []]

    def filled_levels(self) -> list[list[FaceArrays]]:
        """Return four levels; missing ones repeat the next finer one."""
        filled: list[list[FaceArrays]] = []
        for level in self.levels:
            filled.append(level if level is not None else filled[-1])
        return filled


def prepare(model: Model, scene: Scene, options: ModelWriteOptions) -> Prepared:
    """Prepare a model for writing; ``scene.warnings`` reports what is left out or repaired.

    Parameters
    ----------
    model:
        A model of the scene, from :func:`.models.models_of`.
    scene:
        If ``as_imported`` is set, imported models are written unchanged.

    Raises
    ------
    ExportError
        Data that no file can hold; the message names the object and says what to do.
    """
    return _Preparation(model, scene, options).prepared()


class _Preparation:
    """Prepares one model; the parameters are those of :func:`prepare`."""

    def __init__(self, model: Model, scene: Scene, options: ModelWriteOptions) -> None:
        self.model = model
        self.name = model.name
        self.report = scene.report.about(model.name)
        self.options = options
        self.tolerance = scene.tolerance
        self.skeleton = model.skeleton if model.mesh.joint_weights is not None else None
        self.as_imported = scene.as_imported and _keeps(model, self.skeleton is not None)
        if self.as_imported:
            self.tolerance = max(self.tolerance, _IMPORTED_TOLERANCE)

    def prepared(self) -> Prepared:
        """Return the faces of all levels, the binding and the unit cube of the model."""
        model, skeleton = self.model, self.skeleton
        is_rigged = skeleton is not None
        turn = None if skeleton is None else facing(skeleton)
        if not self.as_imported:
            model = settled(model, turn)
        elif is_rigged:
            model = model.with_meshes(lambda mesh: space.turned_mesh(mesh, space.BASIS.inverse))
        keys, levels, physics = self.faces(model)
        rig = None
        if skeleton is not None and turn is not None:
            held = [face for level in levels if level for face in level.values()]
            rig = self.rig(model, skeleton, held, turn)
        unit_cube = unit_cube_of(model, self.report, as_imported=self.as_imported)
        if self.as_imported and is_rigged:
            unit_cube = replace(unit_cube, transform=space.to_avatar(unit_cube.transform))
        result = Prepared(
            model,
            unit_cube,
            [None if level is None else [_face(level, key, levels[0]) for key in keys] for level in levels],
            None if physics is None else [_face(physics, key, levels[0]) for key in keys],
            rig,
            self.as_imported,
        )
        result.submodels = self.submodels(result.materials)
        return result

    # -- faces ----------------------------------------------------------------------------------

    def faces(
        self, model: Model
    ) -> tuple[list[FaceKey], list[dict[FaceKey, FaceArrays] | None], dict[FaceKey, FaceArrays] | None]:
        """Return the keys of all faces, and the faces by key of each level and of the physics mesh."""
        slots = model.mesh.materials or [""]
        levels = [
            None if node is None or node.mesh is None else self.level(node, node.mesh, model.finest, slots)
            for node in model.levels
        ]
        if not self.as_imported and not any(len(face.triangles) for face in (levels[0] or {}).values()):
            raise ExportError("{}: it has no triangles; a model needs some in its highest level", self.name)
        physics = None
        if model.physics is not None and model.physics.mesh is not None:
            physics = self.level(model.physics, model.physics.mesh, model.finest, slots, is_physics=True)
        held = [level for level in (*levels, physics) if level is not None]
        keys = sorted({key for level in held for key in level})
        if not self.as_imported:
            keys = [key for key in keys if any(key in level and not level[key].is_empty for level in held)]
        return keys, levels, physics

    def level(
        self, node: Node, mesh: Mesh, finest: Node, slots: Sequence[str], *, is_physics: bool = False
    ) -> dict[FaceKey, FaceArrays]:
        if node is not finest:
            mesh = self.with_slots(node, mesh, finest, slots, is_physics=is_physics)
        found = faces_of(mesh, tolerance=self.tolerance, name=node.name, report=self.report.about(node.name))
        return {(face.slot, face.part): face for face in found}

    def with_slots(self, node: Node, mesh: Mesh, finest: Node, slots: Sequence[str], *, is_physics: bool) -> Mesh:
        """Return a mesh with the slots of the highest level, matched by name.

        Physics triangles of other materials are assigned to the first face, since they are not shown.

        Raises
        ------
        ExportError
            A level uses a material that the highest level lacks.
        """
        own = mesh.materials or [""]
        if list(own) == list(slots):
            return mesh
        place = {key: number for number, key in enumerate(_by_occurrence(slots))}
        counts = np.bincount(mesh.material_index, minlength=len(own))
        to = np.zeros(len(own), np.int32)
        surfaces = [Surface(name, uvs=(True,) * len(mesh.uvs)) for name in slots]
        for number, key in enumerate(_by_occurrence(own)):
            found = place.get(key)
            if found is None and number < len(slots) and (self.as_imported or not slots[number]):
                found = number
            if found is None and counts[number] and not is_physics and own[number]:
                raise ExportError(
                    "{}: its material '{}' is not on '{}'; levels of detail use the "
                    "materials of the highest level, give it one of those",
                    node.name,
                    Named("material", own[number]),
                    finest.name,
                )
            to[number] = found or 0
            if found is not None and number < len(mesh.surfaces):
                surfaces[found] = mesh.surfaces[number]
        return replace(mesh, material_index=to[mesh.material_index], materials=list(slots), surfaces=surfaces)

    # -- rig ------------------------------------------------------------------------------------

    def rig(self, model: Model, skeleton: Skeleton, faces: Sequence[FaceArrays], turn: Matrix) -> Rig:
        """Return the binding: that of the file if it still fits, otherwise one computed from the skeleton."""
        used, unweighted = used_joints(faces, len(skeleton.joints), self.name)
        skin = model.finest.skin
        if self.as_imported and skin is not None:
            rig = rig_as_imported(skeleton, skin, used)
            if rig is not None:
                return rig
            template = "it uses bones that its file does not list; its binding was computed again"
            self.report.change("binding-computed-again", template)
        rig = rig_of(skeleton, used, turn, self.options, skin=skin, report=self.report)
        if unweighted and not self.as_imported:
            number = counted(unweighted, "vertex has", "vertices have")
            template = "{} no weights; '{}' moves them"
            self.report.change("vertices-without-weights", template, number, rig.joint_names[0])
        return rig

    # -- parts ----------------------------------------------------------------------------------

    def submodels(self, materials: Sequence[str]) -> list[list[int]]:
        """Return the faces of each part: like the viewer, sort them by material names and divide them into groups of 8.

        Raises
        ------
        ExportError
            There are more than 8 faces, and the option rejects that.
        """
        faces = list(range(len(materials)))
        if len(faces) <= MOST_FACES or self.as_imported:
            return [faces]
        if self.options.many_materials == "REFUSE":
            raise ExportError(
                "{}: it has {} faces (materials), at most {} are possible; use fewer "
                "materials, or let the export split it",
                self.name,
                len(faces),
                MOST_FACES,
            )
        faces.sort(key=lambda number: materials[number].casefold())
        return [faces[start : start + MOST_FACES] for start in range(0, len(faces), MOST_FACES)]


def submodel_count(model: Model, scene: Scene, options: ModelWriteOptions) -> int:
    """Return the number of parts of a model; fast if this follows from the numbers of corners."""
    corners: dict[tuple[str, int], int] = {}
    for node in model.nodes:
        if node.mesh is None or not node.mesh.triangle_count:
            continue
        slots = _by_occurrence(node.mesh.materials or [""])
        for slot, count in zip(
            slots, np.bincount(node.mesh.material_index, minlength=len(slots)).tolist(), strict=False
        ):
            corners[slot] = max(corners.get(slot, 0), 3 * count)
    # Upper bound of the face count: a face never has more vertices than corners.
    if sum(1 + count // (MOST_VERTICES - 2) for count in corners.values()) <= MOST_FACES:
        return 1
    return len(prepare(model, replace(scene, warnings=[]), options).submodels)


def _keeps(model: Model, is_rigged: bool) -> bool:
    """Return whether a model is unchanged since its import."""
    finest = model.finest
    return is_as_imported(model) and min(finest.scale) > 0 and (not is_rigged or finest.skin is not None)


def _by_occurrence(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return a key for each slot: its name, and its index among the slots with the same name."""
    seen: dict[str, int] = {}
    keys = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        keys.append((name, seen[name]))
    return keys


def _face(level: Mapping[FaceKey, FaceArrays], key: FaceKey, finest: Mapping[FaceKey, FaceArrays] | None) -> FaceArrays:
    """Return a level's face, or an empty face if the level lacks it."""
    found = level.get(key)
    if found is not None:
        return found
    slot, part = key
    model = (finest or {}).get(key) or (finest or {}).get((slot, 0))
    return empty_face(slot, part, model.material if model is not None else "")
