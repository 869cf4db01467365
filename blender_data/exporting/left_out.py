"""Movement of objects, and the part of it that a file does not hold."""

import re
from collections.abc import Sequence
from enum import Enum
from types import FunctionType
from typing import Any

import bpy

from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.messages import Report, Text, listed
from ..animated_blocks import action_curves, action_holders, dependencies, influences
from ..animation.pose_curves import rotation_channel, varies
from ..armature_modifiers import MESHABLE, armature_of
from ..export_options import ExportOptions
from .object_selection import shown_by
from .real_instances import shows_skinned

Objects = Sequence[bpy.types.Object]


Movement = Enum("Movement", ("TRANSFORM", "SHAPE", "BONES"))
"""A kind of movement: shape keys, modifiers and simulations change the shape; an armature poses its bones, and thereby
the meshes that it deforms."""
_TRANSFORMS = ("location", "rotation", "scale", "delta_")
"""Beginnings of the data paths of an object's transform."""
_OF_TIME = re.compile(r"frame|depsgraph|bpy|noise|time")
"""Matches names in expressions of drivers whose value changes with time."""
_COMPUTED = re.compile(r"(^|\.)(matrix|head|tail|center|vector|[xyz]_axis|length|dimensions|bound_box)")
"""Matches data paths that drivers may read and no f-curve of that path sets."""
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
        self._paths: dict[tuple[bpy.types.ID, tuple[str, ...]], set[str]] = {}
        self._of: dict[bpy.types.Object, set[Movement]] = {}

    def of(self, obj: bpy.types.Object) -> set[Movement]:
        """Return how an object moves, including its armature and the objects that it shows as instances."""
        line = [obj]
        while line[-1].parent is not None and line[-1].parent not in self._of:
            line.append(line[-1].parent)
        for each in reversed(line):
            if each not in self._of:
                self._find(each, self._of.setdefault(each, set()))
        return self._of[obj]

    def _find(self, obj: bpy.types.Object, found: set[Movement]) -> None:
        """Add how an object moves; that of its parents is known."""
        moving = (self.moves(obj), self.deforms(obj), self._poses(obj))
        found |= {kind for kind, is_there in zip(Movement, moving, strict=True) if is_there}
        rig = armature_of(obj)
        shown = list(obj.children) if obj.instance_type in {"VERTS", "FACES"} else shown_by([obj])
        for other in [*shown, rig] if rig is not None else shown:
            found |= self.of(other)

    def changes(self, block: bpy.types.ID | None) -> bool:
        """Return whether anything about a data block, or about those that it depends on, changes with time."""
        if block is not None and block not in self._changing:
            found = dependencies([block])
            self._changing[block] = found.moves_by_itself or any(map(_played_paths, found.animated))
        return block is not None and self._changing[block]

    def paths(self, block: bpy.types.ID, *beginnings: str) -> set[str]:
        """Return the data paths of a block that its animation changes, by default with any beginning.

        Reading the keys of all curves of a rig takes long, so only those with these beginnings are read.
        """
        key = block, beginnings
        if key not in self._paths:
            self._paths[key] = _played_paths(block, beginnings)  # also for drivers that depend on each other
            data = getattr(block, "animation_data", None)  # images have none
            for curve in data.drivers if data is not None else ():
                is_asked = curve.data_path.startswith(beginnings or "")
                if is_asked and any(self._drives(*target) for target in _targets(curve.driver)):
                    self._paths[key].add(curve.data_path)
        return self._paths[key]

    def _drives(self, kind: str, target: bpy.types.DriverTarget) -> bool:
        """Return whether the value that a driver reads, as a variable of this type, changes with time."""
        if target.id is None or kind != "SINGLE_PROP" or _COMPUTED.search(target.data_path):
            return self.changes(target.id)
        return any(target.data_path.startswith(path) for path in self.paths(target.id))

    def moves(self, obj: bpy.types.Object) -> bool:
        """Return whether the transform of an object changes, by itself or with its parents."""
        return self.moves_alone(obj) or self._follows(obj)

    def moves_alone(self, obj: bpy.types.Object) -> bool:
        """Return whether the transform of an object changes by its own animation, constraints or physics."""
        is_simulated = obj.rigid_body is not None and obj.rigid_body.type == "ACTIVE"
        rotation = rotation_channel(obj.rotation_mode)
        paths = self.paths(obj, *_TRANSFORMS, "constraints[")
        is_animated = any("rotation_" not in path or rotation in path for path in paths)
        return is_simulated or is_animated or self._is_constrained(obj, obj)

    def _follows(self, obj: bpy.types.Object) -> bool:
        parent, kind = obj.parent, obj.parent_type
        if parent is None:
            return False
        above = self.of(parent)
        is_on_path = parent.type == "CURVE" and parent.data.use_path and _ALONG_PATH in self.paths(parent.data)
        is_on_part = (
            Movement.BONES in above if kind == "BONE" else kind.startswith("VERTEX") and Movement.SHAPE in above
        )
        return is_on_path or is_on_part or Movement.TRANSFORM in above

    def _poses(self, rig: bpy.types.Object) -> bool:
        """Return whether bones of an armature move."""
        bones = rig.pose.bones if rig.pose is not None else ()
        return bool(self.paths(rig, "pose.")) or any(self._is_constrained(bone, rig) for bone in bones)

    def _is_constrained(self, owner: Any, obj: bpy.types.Object) -> bool:
        """Return whether constraints of an object or bone follow something else that changes."""
        return any(self._acts(constraint, obj) for constraint in owner.constraints if not constraint.mute)

    def deforms(self, obj: bpy.types.Object) -> bool:
        """Return whether shape keys, the data or modifiers other than armatures change an object's surface."""
        if obj.type not in MESHABLE:
            return False
        keys, lattice = getattr(obj.data, "shape_keys", None), obj.parent if obj.parent_type == "LATTICE" else None
        if any(path != _ALONG_PATH for path in self.paths(obj.data)) or self.changes(lattice):
            return True
        if keys is not None and self.paths(keys):
            return True
        if any(self._is_animated(modifier, obj) for modifier in obj.modifiers):
            return True
        shown = [modifier for modifier in obj.modifiers if modifier.show_viewport and modifier.type != "ARMATURE"]
        return any(self._acts(modifier, obj) for modifier in shown)

    def _is_animated(self, modifier: bpy.types.Modifier, obj: bpy.types.Object) -> bool:
        """Return whether animation changes settings of a modifier that have an effect in viewports."""
        start = f'modifiers["{bpy.utils.escape_identifier(modifier.name)}"]'
        found = {path.removeprefix(start) for path in self.paths(obj, start)}
        hides = ".show_viewport" in found
        return hides or (modifier.show_viewport and any(not path.startswith(".show_") for path in found))

    def _acts(self, owner: Any, obj: bpy.types.Object) -> bool:
        """Return whether a modifier or constraint of an object changes something with time."""
        is_moving, blocks = influences(owner)
        return is_moving or any(self.changes(block) for block in blocks if block not in (None, obj))


def _played_paths(block: bpy.types.ID, beginnings: tuple[str, ...] = ()) -> set[str]:
    """Return the data paths with these beginnings, or all, that actions, strips and drivers of time change."""
    data = getattr(block, "animation_data", None)
    if data is None:
        return set()
    has_solo = any(track.is_solo for track in data.nla_tracks)
    tracks = [track for track in data.nla_tracks if data.use_nla and (track.is_solo if has_solo else not track.mute)]
    playing = [strip for track in tracks for strip in track.strips if not strip.mute]
    for strip in playing:
        playing += [inner for inner in strip.strips if not inner.mute]  # the loop reaches these, too
    asked = beginnings or ""
    drivers = [c for c in data.drivers if c.driver.is_valid and not c.mute and c.data_path.startswith(asked)]
    found = {curve.data_path for curve in drivers if _is_of_time(curve.driver)}
    for holder in action_holders(block):
        is_strip = holder != data
        if not is_strip or holder in playing:
            fades = is_strip and holder.use_animated_influence
            for curve in action_curves(holder.action, holder.action_slot):
                path = curve.data_path  # reading keys takes long: one component is enough
                is_asked = path.startswith(asked) and path not in found and not curve.mute
                if is_asked and (fades or varies(curve) or _is_generated(curve)):
                    found.add(path)
    return found


def _is_generated(curve: bpy.types.FCurve) -> bool:
    """Return whether modifiers of an f-curve make other values than its keys; cycles of equal keys do not."""
    return any(not modifier.mute and modifier.type != "CYCLES" for modifier in curve.modifiers)


def _is_of_time(driver: bpy.types.Driver) -> bool:
    """Return whether the value of a driver may change with time although nothing else does."""
    own, text = bpy.app.driver_namespace, driver.expression if driver.type == "SCRIPTED" else ""
    used = set(re.findall(r"[^\W\d]\w*", text)) - {variable.name for variable in driver.variables}
    is_of_time = any(_OF_TIME.search(name) or isinstance(own.get(name), FunctionType) for name in used)
    return is_of_time or any(target.data_path.startswith(_FRAME) for _kind, target in _targets(driver))


def _targets(driver: bpy.types.Driver) -> list[tuple[str, bpy.types.DriverTarget]]:
    """Return what a driver reads, each with the type of its variable."""
    return [(variable.type, target) for variable in driver.variables for target in variable.targets]


def report_left_out(
    objects: Objects, options: ExportOptions, can: Capabilities, report: Report, *, has_clips: bool = False
) -> None:
    """Report what moves among objects and is not in a file of these capabilities, and metaballs in instances.

    Parameters
    ----------
    has_clips:
        Whether the export found an animation.
    """
    if not can.meshes:
        return  # the animation of armatures is exported, or they are at rest
    if options.use_instances and not can.placement:
        report_metaballs([obj for obj in objects if not (can.skeletons and shows_skinned(obj))], report)
    movements = Movements()
    is_playing = has_clips or options.clips not in {"ACTIONS", "NLA"}
    sampled = (can.node_clips and is_playing, can.vertex_clips and is_playing)
    # A scene holds the clips of characters of some versions only.
    holds = (*sampled, (can.joint_clips and not (can.placement and options.clips == "NONE")) or sampled[1])
    held = {kind for kind, is_held in zip(Movement, holds, strict=True) if is_held}
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
        is_of_bones = can.clips and not can.node_clips
        what = Text("only the animation of bones") if is_of_bones else Text("no animation")
        text = "exported as it looks at the current frame; the file holds {}"
        report.loss("baked-animation", text, what, item=listed([obj.name for obj in still]))
    chosen = [obj.name for obj, kinds in moving.items() if obj not in still and kinds & refused]
    if chosen:
        text = "its animation is not in the file, as the options choose"
        report.note("animation-left-out-as-chosen", text, item=listed(chosen))


def _rig_of(obj: bpy.types.Object) -> bpy.types.Object | None:
    return obj if obj.type == "ARMATURE" else armature_of(obj)


def report_metaballs(objects: Objects, report: Report) -> None:
    """Report metaballs in the collections that objects show as instances, which Blender does not evaluate there."""
    balls = sorted(obj.name for obj in shown_by(objects) if obj.type == "META")
    text = "{} in collection instances left out, which Blender does not list; make the instances real: {}"
    report.loss_of("instanced-metaballs", text, balls, "metaball")


def report_without_action(objects: Objects, report: Report) -> None:
    """Report objects of which anything moves by other means than an action of its own.

    Most of Blender's exporters write only actions. They apply modifiers.
    """
    movements, exported = Movements(), set(objects)
    lost = [obj.name for obj in objects if _moves_otherwise(obj, exported, movements)]
    text = "{} moved by drivers, constraints, modifiers or simulations, not carried over as animation: {}"
    report.loss_of("movement-without-action", text, lost)


def _moves_otherwise(obj: bpy.types.Object, exported: set[bpy.types.Object], movements: Movements) -> bool:
    above, keys = obj.parent, getattr(obj.data, "shape_keys", None)
    return (
        (movements.moves_alone(obj) and not _has_action(obj, _TRANSFORMS))
        or (above is not None and above not in exported and Movement.TRANSFORM in movements.of(above))
        or (obj.type == "ARMATURE" and Movement.BONES in movements.of(obj) and not _has_action(obj, ("pose.",)))
        or (movements.deforms(obj) and not _has_action(keys, ("key_blocks", "eval_time")))
    )


def _has_action(block: bpy.types.ID | None, beginnings: tuple[str, ...]) -> bool:
    """Return whether an action of a data block has curves whose data paths begin so."""
    held = action_holders(block) if block is not None else []
    curves = [curve for holder in held for curve in action_curves(holder.action, holder.action_slot)]
    return any(curve.data_path.startswith(beginnings) for curve in curves)
