"""Scene -> upload set (formats page, sections 10 and 10.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Warn, counted
from ...core.options import resolve
from ...core.scene import Mesh, Node, Scene
from ...passes.join_meshes import join
from ..avatar import rigging
from ..avatar.joint_positions import ADVISED, millimetres
from ..avatar.rigging import Rig
from ..models.equal_models import first_equal
from ..models.faces import MOST_FACES, strongest
from ..models.levels import LEVEL_LABELS
from ..models.models import Model, models_of
from ..models.unit_cube import matrix_of, settled
from ..options import JOINT_POSITIONS, MANY_MATERIALS
from . import names
from .document import SUFFIXES, ColladaFile, Instance, Skin, UploadSet
from .geometry import Points, box_of, geometry_of
from .joints import tree_of
from .level_faces import split_faces, with_all_faces
from .options import EXPORT_OPTIONS, TEXTURES
from .textures import Materials

SKIN_WEIGHT = "Include skin weight"
JOINT_POSITION = "Include joint positions"
LOCKED_SCALE = "Lock scale if joint position defined"
"""Labels of boxes in the viewer's upload window."""


@dataclass
class _Planned:
    """A model prepared for the files of a set."""

    model: Model
    """With its points in the space of the files."""
    name: str
    skeleton: int | None = None
    """Index of its skeleton in the scene if it is rigged."""
    rig: Rig | None = None
    tree: int = 0
    """Index of that skeleton's joint tree in each file."""
    symbols: set[str] = field(default_factory=set)
    """Symbols of the materials of its finest level."""


@dataclass
class _Copy:
    """A model with the content of an earlier one, whose geometries it uses."""

    model: Model
    name: str
    plan: _Planned


class SetBuilder:
    """Build the set; the result is ``document``."""

    def __init__(self, scene: Scene, options: Mapping[str, Any] | None = None) -> None:
        self.scene = scene
        self.options = resolve(EXPORT_OPTIONS, options)
        self.materials = Materials(scene, is_copied=TEXTURES.flag(self.options))
        everything = self._planned()
        planned = [plan for plan in everything if isinstance(plan, _Planned)]
        files = [ColladaFile(suffix) for suffix in SUFFIXES]
        for skeleton in dict.fromkeys(plan.skeleton for plan in planned if plan.skeleton is not None):
            plans = [plan for plan in planned if plan.skeleton == skeleton]
            tree = tree_of(names.printable(scene.skeletons[skeleton].name), [plan.rig for plan in plans if plan.rig])
            for plan in plans:
                plan.tree = len(files[0].trees)
            for file in files[:-1]:
                file.trees.append(tree)
        built: dict[int, list[Instance | None]] = {}
        for item in everything:
            if isinstance(item, _Planned):
                instances = built[id(item)] = [*self._levels(item), self._physics(item)]
            else:
                matrix = matrix_of(item.model.finest)
                of_plan = built[id(item.plan)]
                instances = [found and replace(found, matrix=matrix, name=item.name) for found in of_plan]
            for file, instance in zip(files, instances, strict=True):
                if instance is not None:
                    file.instances.append(instance)
        files = [file for file in files if file.instances]
        choice = JOINT_POSITIONS.text(self.options)
        boxes = [box for plan in planned if plan.rig for box in (SKIN_WEIGHT, *_position_boxes(plan.rig, choice))]
        self.document = UploadSet(files, self.materials.materials, self.materials.images, list(dict.fromkeys(boxes)))

    def _warner(self, name: str) -> Warn:
        return lambda text: self.scene.warnings.append(f"{name}: {text}")

    # -- models ---------------------------------------------------------------------------------

    def _planned(self) -> list[_Planned | _Copy]:
        """Return the prepared models with unique names, and those with the content of an earlier one."""
        taken: set[str] = set()
        found: list[_Planned | _Copy] = []
        models = models_of(self.scene)
        for number, (model, first) in enumerate(zip(models, first_equal(models), strict=True)):
            of_first = found[first] if first < number else None
            if isinstance(of_first, _Planned):
                found.append(_Copy(settled(model), names.model_name(model.name, ()), of_first))
                continue
            warn = self._warner(model.name)
            if not model.mesh.triangle_count:
                raise ExportError(f"{model.name}: it has no triangles; give it faces or leave it out")
            name = names.model_name(model.name, taken)
            taken.add(name.casefold())
            if name != re.sub(r"\s", "_", model.name):
                warn(f"called '{name}' in the files, since the viewer matches levels of detail by name")
            skeleton = model.finest.skeleton if _is_rigged(model) else None
            if skeleton is None:
                found.append(_Planned(settled(model), name))
                continue
            bones = self.scene.skeletons[skeleton]
            turn = rigging.facing(bones)
            plan = _Planned(settled(model, turn), name, skeleton)
            used = np.zeros(len(bones.joints), bool)
            for node in model.levels:
                if node is not None and node.mesh is not None:
                    used |= _used_joints(node.mesh, len(bones.joints), model.name)
            try:
                plan.rig = rigging.rig_of(
                    bones, np.flatnonzero(used).tolist(), turn, self.options, skin=model.finest.skin, warn=warn
                )
            except ExportError as problem:
                raise ExportError(f"{model.name}: {problem}") from None
            _say_what_to_tick(plan.rig, JOINT_POSITIONS.text(self.options), warn)
            found.append(plan)
        return found

    # -- files ----------------------------------------------------------------------------------

    def _levels(self, plan: _Planned) -> list[Instance]:
        """Return the four levels, all with the same faces; missing or empty ones repeat the next finer one."""
        found: list[Instance] = []
        for node, label in zip(plan.model.levels, LEVEL_LABELS, strict=True):
            if node is None or node.mesh is None or not node.mesh.triangle_count:
                if node is not None:
                    self._warner(plan.model.name)(
                        f"its {label.lower()} level has no triangles; the next finer one is used instead"
                    )
                found.append(found[-1])
                continue
            found.append(self._instance(plan, node, node.mesh, label))
        levels = with_all_faces(found)
        plan.symbols = {face.symbol for face in levels[0].geometry.faces}
        if len(plan.symbols) > MOST_FACES and MANY_MATERIALS.text(self.options) == "REFUSE":
            raise ExportError(
                f"{plan.model.name}: it has {len(plan.symbols)} materials, at most {MOST_FACES} are possible; "
                "join some of them, or separate the object by material"
            )
        return levels

    def _instance(self, plan: _Planned, node: Node, mesh: Mesh, label: str) -> Instance:
        whose = plan.model.name if label == LEVEL_LABELS[0] else f"{plan.model.name} ({label.lower()} level)"
        warn = self._warner(whose)
        geometry, points = geometry_of(mesh, plan.name, self._symbols(plan, mesh), warn)
        if not geometry.faces:
            raise ExportError(f"{whose}: all its triangles use a vertex twice; give it faces or leave it out")
        geometry = split_faces(geometry, self.materials.part_symbol, warn)
        if plan.rig is None:
            return Instance(geometry, matrix_of(node), plan.name)
        return Instance(geometry, np.identity(4), plan.name, self._skin(plan, plan.rig, mesh, points, warn))

    def _symbols(self, plan: _Planned, mesh: Mesh) -> list[str]:
        """Return the symbols of a mesh's slots; unused slots have an empty one."""
        slots = mesh.materials or [""]
        used = set(np.clip(np.unique(mesh.material_index), 0, len(slots) - 1).tolist())
        return self.materials.slot_symbols(slots, used, plan.name)

    def _skin(self, plan: _Planned, rig: Rig, mesh: Mesh, points: Points, warn: Warn) -> Skin:
        """Return the binding of a geometry whose positions are the given points of a mesh."""
        found = None
        if mesh.joint_indices is not None and mesh.joint_weights is not None:
            found = strongest(mesh.joint_indices[points], mesh.joint_weights[points], warn)
        indices, weights = found or (np.zeros((len(points), 4), np.int32), np.zeros((len(points), 4), np.float32))
        indices = np.where(weights > 0, rig.index[indices], 0).astype(np.int32)
        bare = ~weights.any(axis=1)
        if bare.any():
            weights = weights.copy()
            weights[bare, 0] = 1.0  # to the first joint, like the viewer; the checks warn about it
        joint_names = [names.joint(name) for name in rig.joint_names]
        return Skin(joint_names, rig.inverse_bind, indices, weights, plan.tree)

    def _physics(self, plan: _Planned) -> Instance | None:
        """Return the physics: its mesh, or else all hulls as one mesh, or else None.

        The viewer uses the convex hull of a model without physics; any mesh here would become triangle physics.
        """
        model = plan.model
        warn = self._warner(f"{model.name} (physics)")
        mesh = _triangles_of(model.physics) or _hulls(model.hulls, warn)
        if mesh is None:
            return None
        geometry, _ = geometry_of(mesh, plan.name, self._physics_symbols(plan, mesh), warn, has_uvs=False)
        return Instance(geometry, np.identity(4) if plan.rig is not None else matrix_of(model.finest), plan.name)

    def _physics_symbols(self, plan: _Planned, mesh: Mesh) -> list[str]:
        """Return the symbols of a physics mesh: its own if the finest level has them all, otherwise one of those."""
        slots = mesh.materials or [""]
        used = set(np.clip(np.unique(mesh.material_index), 0, len(slots) - 1).tolist())
        finest = plan.model.mesh.materials or [""]
        of_finest = {
            name: symbol for name, symbol in zip(finest, self._symbols(plan, plan.model.mesh), strict=True) if symbol
        }
        wanted = [of_finest.get(name, "") for name in slots]
        if all(wanted[number] for number in used):
            return wanted
        return [min(plan.symbols)] * len(slots)


def _position_boxes(rig: Rig, choice: str) -> list[str]:
    """Return the labels of the boxes of the upload window without which the avatar keeps its own joint positions."""
    if rig.joint_positions is None:
        return []
    if choice == "AUTO" and max(rig.offsets.values(), default=0.0) < ADVISED:
        return []
    return [JOINT_POSITION, *([LOCKED_SCALE] if rig.lock_scale else [])]


def _say_what_to_tick(rig: Rig, choice: str, warn: Warn) -> None:
    if rig.joint_positions is None:
        return
    boxes = _position_boxes(rig, choice)
    if boxes:
        names = " and ".join(f"'{box}'" for box in boxes)
        warn(f"tick {names} in the upload window, or the avatar keeps its own joint positions")
    elif rig.offsets:
        least = millimetres(ADVISED)
        warn(f"'{JOINT_POSITION}' is not needed in the upload window: no joint is moved by {least} or more")
    if rig.pelvis_offset:
        warn(f"set 'Z offset' in the upload window to {rig.pelvis_offset:.4g}; Collada files cannot store it")


def _is_rigged(model: Model) -> bool:
    """Return whether a model is rigged: its armature has joints, and a vertex has weights."""
    return model.skeleton is not None and bool(model.skeleton.joints) and model.mesh.joint_weights is not None


def _used_joints(mesh: Mesh, joint_count: int, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which joints have weights at vertices used by triangles, (J,)."""
    used = np.zeros(joint_count, bool)
    if mesh.joint_indices is None or mesh.joint_weights is None or not len(mesh.corner_point):
        return used
    of_triangles = np.zeros(len(mesh.points), bool)
    of_triangles[mesh.corner_point] = True
    found = strongest(mesh.joint_indices[of_triangles], mesh.joint_weights[of_triangles])
    named = found[0][found[1] > 0] if found else np.empty(0, np.int32)
    if len(named) and not 0 <= named.min() <= named.max() < joint_count:
        raise ExportError(
            f"{name}: vertices are weighted to bones that its armature does not have; remove those vertex groups"
        )
    used[named] = True
    return used


def _hulls(nodes: Sequence[Node], warn: Warn) -> Mesh | None:
    """Return hulls as one mesh; without Blender, hulls that are only stored as points become boxes."""
    meshes: list[Mesh] = []
    boxes = 0
    for node in nodes:
        if node.mesh is None or not len(node.mesh.points):
            continue
        is_solid = bool(node.mesh.triangle_count)
        boxes += not is_solid
        meshes.append(node.mesh if is_solid else box_of(node.mesh.points.min(axis=0), node.mesh.points.max(axis=0)))
    if not meshes:
        return None
    number = counted(len(meshes), "hull goes", "hulls go")
    warn(f"{number} into the file as one mesh; 'Analyze' in the upload window makes hulls of it")
    if boxes:
        number = counted(boxes, "hull is", "hulls are")
        warn(f"{number} stored as points only, and written as boxes; an export from Blender keeps their shape")
    return join(meshes)


def _triangles_of(node: Node | None) -> Mesh | None:
    """Return a node's mesh if it has triangles."""
    return node.mesh if node is not None and node.mesh is not None and node.mesh.triangle_count else None
