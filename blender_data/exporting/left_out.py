"""Movement of objects, and the part of it that a file does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from types import FunctionType
from typing import Any

import bpy

from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.messages import Report, counted, listed
from ..animated_blocks import action_curves, action_holders, dependencies, influences
from ..armature_modifiers import MESHABLE, armature_of
from ..export_options import ExportOptions
from .object_selection import shown_by
from .real_instances import shows_skinned


class Movement(Enum):
    """A kind of movement, as formats distinguish them."""

    TRANSFORM = "transform"
    SHAPE = "shape"
    """Shape keys, modifiers and simulations change the surface."""
    BONES = "bones"
    """An armature poses its bones, and thereby the meshes that it deforms."""


_TRANSFORMS = ("location", "rotation", "scale", "delta_")
"""Beginnings of the data paths of an object's transform."""
_OF_TIME = re.compile(r"frame|depsgraph|bpy|noise|time")
"""Matches names in expressions of drivers whose value changes with time."""
_NOT_OF_KIND = {"AUTO": (), "NODE": (Movement.SHAPE, Movement.BONES), "VERTEX": (Movement.TRANSFORM,)}
"""Movement that is left out, by the value of the option ``animation_kind``."""
_ALONG_PATH = "eval_time"
"""Property of a curve that moves what follows it."""
_FRAME = ("frame_current", "frame_float", "frame_subframe")
"""Beginnings of the properties of a scene that change with time."""


class Movements:
    """Finds how objects move; results are stored for the duration of one export."""

    def __init__(self) -> None:
        self._changing: dict[bpy.types.ID, bool] = {}
        self._of: dict[bpy.types.Object, set[Movement]] = {}

    def of(self, obj: bpy.types.Object) -> set[Movement]:
        """Return how an object moves, including its armature and the objects that it shows as instances."""
        if obj not in self._of:
            found = self._of[obj] = set[Movement]()
            rig = obj if obj.type == "ARMATURE" else armature_of(obj) if obj.type in MESHABLE else None
            if self.moves(obj) or (rig is not None and self.moves(rig)):
                found.add(Movement.TRANSFORM)
            if self.deforms(obj):
                found.add(Movement.SHAPE)
            if rig is not None and self.poses(rig):
                found.add(Movement.BONES)
            shown = list(obj.children) if obj.instance_type in {"VERTS", "FACES"} else shown_by([obj])
            for member in shown:
                found |= self.of(member)
        return self._of[obj]

    def changes(self, block: bpy.types.ID | None) -> bool:
        """Return whether anything about a data block, or about those that it depends on, changes with time."""
        if block is None:
            return False
        if block not in self._changing:
            found = dependencies([block])
            changing = any(True for animated in found.animated for _path in _played_paths(animated))
            self._changing[block] = found.moves_by_itself or changing
        return self._changing[block]

    def paths(self, block: bpy.types.ID) -> Iterator[str]:
        """Yield the data paths of a block that its animation changes."""
        played = set(_played_paths(block))
        yield from played
        for curve in block.animation_data.drivers if block.animation_data is not None else ():
            for target in _targets(curve.driver):
                if target.data_path in played if target.id == block else self.changes(target.id):
                    yield curve.data_path

    def moves(self, obj: bpy.types.Object) -> bool:
        """Return whether the world transform of an object changes."""
        return self.moves_alone(obj) or self._follows(obj)

    def moves_alone(self, obj: bpy.types.Object) -> bool:
        """Return whether the transform of an object changes by its own animation, constraints or physics."""
        if obj.rigid_body is not None and obj.rigid_body.type == "ACTIVE":
            return True
        beginnings = (*_TRANSFORMS, "constraints[")
        return any(path.startswith(beginnings) for path in self.paths(obj)) or self._is_constrained(obj, obj)

    def _follows(self, obj: bpy.types.Object) -> bool:
        parent = obj.parent
        if parent is None:
            return False
        if obj.parent_type == "BONE" and self.poses(parent):
            return True
        if parent.type == "CURVE" and parent.data.use_path and _ALONG_PATH in self.paths(parent.data):
            return True
        return self.moves(parent) or (obj.parent_type.startswith("VERTEX") and Movement.SHAPE in self.of(parent))

    def poses(self, rig: bpy.types.Object) -> bool:
        """Return whether bones of an armature move."""
        if rig.pose is None:
            return False
        if any(path.startswith("pose.") for path in self.paths(rig)):
            return True
        return any(self._is_constrained(bone, rig) for bone in rig.pose.bones)

    def _is_constrained(self, owner: Any, obj: bpy.types.Object) -> bool:
        """Return whether constraints of an object or bone follow something else that changes."""
        return any(self._acts(constraint, obj) for constraint in owner.constraints if not constraint.mute)

    def deforms(self, obj: bpy.types.Object) -> bool:
        """Return whether shape keys, the data or modifiers other than armatures change an object's surface."""
        if obj.type not in MESHABLE:
            return False
        if any(path != _ALONG_PATH for path in self.paths(obj.data)):
            return True
        if self.changes(getattr(obj.data, "shape_keys", None)):
            return True
        if obj.parent is not None and obj.parent_type == "LATTICE" and self.changes(obj.parent):
            return True
        shown = [modifier for modifier in obj.modifiers if modifier.show_viewport and modifier.type != "ARMATURE"]
        has_paths = bool(shown) and any(path.startswith('modifiers["') for path in self.paths(obj))
        return has_paths or any(self._acts(modifier, obj) for modifier in shown)

    def _acts(self, owner: Any, obj: bpy.types.Object) -> bool:
        """Return whether a modifier or constraint of an object changes something with time."""
        is_moving, blocks = influences(owner)
        return is_moving or any(self.changes(block) for block in blocks if block not in (None, obj))


def _played_paths(block: bpy.types.ID) -> Iterator[str]:
    """Yield the data paths that actions, strips and drivers of time change."""
    data = block.animation_data
    if data is None:
        return
    is_off = [strip for track in data.nla_tracks for strip in track.strips if track.mute or not data.use_nla]
    for holder in action_holders(block):
        if holder not in is_off and not getattr(holder, "mute", False):
            yield from (curve.data_path for curve in action_curves(holder.action, holder.action_slot) if not curve.mute)
    yield from (curve.data_path for curve in data.drivers if curve.driver.is_valid and _is_of_time(curve.driver))


def _is_of_time(driver: bpy.types.Driver) -> bool:
    """Return whether the value of a driver may change with time although nothing else does."""
    if any(target.data_path.startswith(_FRAME) for target in _targets(driver)):
        return True
    if driver.type != "SCRIPTED":
        return False
    used = set(re.findall(r"[^\W\d]\w*", driver.expression)) - {variable.name for variable in driver.variables}
    own = bpy.app.driver_namespace
    return any(_OF_TIME.search(name) or isinstance(own.get(name), FunctionType) for name in used)


def _targets(driver: bpy.types.Driver) -> list[bpy.types.DriverTarget]:
    return [target for variable in driver.variables for target in variable.targets]


def has_action(block: bpy.types.ID | None, beginnings: tuple[str, ...]) -> bool:
    """Return whether an action of a data block has curves whose data paths begin so."""
    return block is not None and any(
        curve.data_path.startswith(beginnings)
        for holder in action_holders(block)
        for curve in action_curves(holder.action, holder.action_slot)
    )


def report_left_out(
    objects: Sequence[bpy.types.Object],
    options: ExportOptions,
    can: Capabilities,
    report: Report,
    *,
    has_clips: bool = False,
) -> None:
    """Report what moves among objects and is not in a file of these capabilities, and metaballs in instances.

    Parameters
    ----------
    has_clips:
        Whether the export found an animation.
    """
    if not (can.meshes or can.clips):
        return  # a skeleton or shape is at rest
    if options.use_instances and can.meshes and not can.placement:
        report_metaballs([obj for obj in objects if not (can.skeletons and shows_skinned(obj))], report)
    movements = Movements()
    is_playing = has_clips or options.clips not in {"ACTIONS", "NLA"}
    held = set()
    if can.node_clips and is_playing:
        held.add(Movement.TRANSFORM)
    if can.vertex_clips and is_playing:
        held |= {Movement.SHAPE, Movement.BONES}
    if can.joint_clips:
        held.add(Movement.BONES)
    refused = set(_NOT_OF_KIND[options.animation_kind]) if can.node_clips and can.vertex_clips else set()
    refused = held & (set(Movement) if options.clips == "NONE" else refused)
    moving = {obj: movements.of(obj) for obj in objects}
    rigs = {_rig_of(obj) for obj, kinds in moving.items() if Movement.BONES in kinds - held} - {None}
    if can.skeletons and rigs:
        text = "its animation is not in the file; export it with File > Export to an animation file"
        report.loss("armature-animation-left-out", text, item=listed(sorted(rig.name for rig in rigs)))
        held.add(Movement.BONES)
    still = [obj for obj, kinds in moving.items() if kinds - held]
    if still:
        text = "exported as it looks at the current frame; the file holds no animation"
        if can.clips and not can.node_clips:
            text = "exported as it looks at the current frame; the file holds only the animation of bones"
        report.loss("baked-animation", text, item=listed([obj.name for obj in still]))
    chosen = [obj.name for obj, kinds in moving.items() if obj not in still and kinds & refused]
    if chosen:
        text = "its animation is not in the file, as the options choose"
        report.note("animation-left-out-as-chosen", text, item=listed(chosen))


def _rig_of(obj: bpy.types.Object) -> bpy.types.Object | None:
    return obj if obj.type == "ARMATURE" else armature_of(obj)


def report_metaballs(objects: Iterable[bpy.types.Object], report: Report) -> None:
    """Report metaballs in the collections that objects show as instances, which Blender does not evaluate there."""
    balls = sorted(obj.name for obj in shown_by(objects) if obj.type == "META")
    text = "{} in collection instances left out, which Blender does not list; make the instances real: {}"
    report.loss_of("instanced-metaballs", text, balls, "metaball")


def report_without_action(objects: Sequence[bpy.types.Object], report: Report) -> None:
    """Report objects of which anything moves by other means than an action of its own.

    Most of Blender's exporters write only actions. They apply modifiers.
    """
    movements, exported = Movements(), set(objects)
    lost = [obj.name for obj in objects if _moves_otherwise(obj, exported, movements)]
    if lost:
        number = counted(len(lost), "object moves", "objects move")
        text = "{} by drivers, constraints, modifiers or simulations, not carried over as animation: {}"
        report.loss("movement-without-action", text, number, listed(lost))


def _moves_otherwise(obj: bpy.types.Object, exported: set[bpy.types.Object], movements: Movements) -> bool:
    above = obj.parent if obj.parent is not None and obj.parent not in exported else None
    if (movements.moves_alone(obj) and not has_action(obj, _TRANSFORMS)) or (above is not None and movements.moves(obj)):
        return True
    if obj.type == "ARMATURE" and movements.poses(obj) and not has_action(obj, ("pose.",)):
        return True
    if not movements.deforms(obj):
        return False
    keys = getattr(obj.data, "shape_keys", None)
    return not has_action(keys, ("key_blocks", "eval_time"))
