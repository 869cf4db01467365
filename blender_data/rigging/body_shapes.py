"""Body shapes of avatars: values of sliders -> scales and locations of pose bones, and keys of the root bone.

So the feet stay on the floor while an action plays. Exports subtract the movement again.

Pose channels scale a bone along its own axes only. The result is exact for bones whose axes are those of the scale,
that are not connected, and that do not inherit the scale of their parents.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from ...io_formats.core.body_shapes import JointShapes, Slider, WornMesh
from ...io_formats.registry import FAMILIES
from .. import animated_blocks, armature_modifiers, arrays, names
from ..mesh_data import checksums
from . import bones as rigging_bones
from .joint_poses import Array

_SAME = 1e-9
"""Distance in metres below which keys are not moved."""


def included_offset(action: bpy.types.Action, offset: Array) -> Array:
    """Return the movement along the axes of the armature, (3,), that the keys of an action for the root bone include.

    It is that of the shape of the armature, ``offset``, unless something else is known: keys from files include none.
    """
    kept = action.meshferry
    if kept.has_shape_root:
        return np.array(kept.shape_root, np.float64)
    return np.zeros(3) if kept.fingerprint else offset


def follow_root(armature: bpy.types.Object, root: str, axes: Array, before: Array, offset: Array) -> None:
    """Move the keys of the root bone in the actions of an armature object as its shape moves the bone.

    Actions that no object plays are not changed; what their keys include is stored.

    Parameters
    ----------
    axes:
        (3, 3) axes of the root bone at rest as columns.
    before, offset:
        (3,) movements by the shape along the axes of the armature, before and after the change.
    """
    path = f'pose.bones["{bpy.utils.escape_identifier(root)}"].location'
    own = {holder.action: holder.action_slot for holder in animated_blocks.action_holders(armature)}
    for action, slot in own.items():
        curves = animated_blocks.curves_at(action, slot, path) if action.is_editable else []
        if curves:
            _move(action, curves, axes.T @ (offset - included_offset(action, before)))
            _store(action, offset)
    if np.array_equal(before, offset):
        return
    for action in bpy.data.actions:
        is_unused = action.users == int(action.use_fake_user) and action.is_editable
        if is_unused and not action.meshferry.has_shape_root and animated_blocks.curves_at(action, None, path):
            _store(action, included_offset(action, before))


def _store(action: Any, offset: Array) -> None:
    action.meshferry.shape_root, action.meshferry.has_shape_root = offset.tolist(), True


def _move(action: Any, curves: list[bpy.types.FCurve], distances: Array) -> None:
    """Move the keys of location curves by distances (3,), and the checksum with which edits of users are found."""
    for curve in curves:
        distance = distances[curve.array_index]
        if abs(distance) < _SAME:
            continue
        keys = curve.keyframe_points
        checksum = -checksums.key_checksum(arrays.read(keys, "co", 2))
        for name in ("co", "handle_left", "handle_right"):
            values = arrays.read(keys, name, 2)
            values[:, 1] += distance
            keys.foreach_set(name, arrays.flat(values))
        checksum += checksums.key_checksum(arrays.read(keys, "co", 2))
        curve.update()
        if action.meshferry.fingerprint:
            action.meshferry.fingerprint = repr(float(action.meshferry.fingerprint) + checksum)


PREFIX = "meshferry_shape_"
ROOT = f"{PREFIX}root"
"""Name of the object's property with the distances in metres by which its shape moves its root bone."""
IS_SHAPED = f"{PREFIX}is_shaped"
"""Name of the object's property that is true once its bones were shaped."""
_ALONG = 1e-5
"""Largest element, besides the diagonal, of a scale matrix in the axes of a bone that can be scaled so."""
_STANDARD = 1e-4
"""Distance in metres between bones at rest and the standard figure that has no effect."""
_UNCHANGED = 1e-6
"""Difference from 1 of scales, and from 0 of locations in metres, that is rounding."""
_MOVED = 1e-3
"""Difference in percent from which a slider counts as moved."""

_being_set: list[Any] = []
"""The armature objects of which several sliders are being set; they are evaluated once at the end."""


def property_name(number: int) -> str:
    """Return the name of the object's property that holds a slider."""
    return f"{PREFIX}{number}"


def shapes() -> Any:
    """Return the functions of the family that has figures with sliders."""
    return next((family.body_shapes() for family in FAMILIES if family.body_shapes is not None), None)


def sliders() -> Sequence[Slider]:
    """Return the sliders of figures; none if no family has figures with sliders."""
    known = shapes()
    return known.sliders() if known is not None else ()


def percents_of(armature: bpy.types.Object) -> dict[int, float]:
    """Return the positions of all sliders of an armature object by number."""
    return {slider.number: getattr(armature, property_name(slider.number)) for slider in sliders()}


def is_figure(armature: bpy.types.Object | None) -> bool:
    """Return whether an object is an armature with bones that follow sliders."""
    if armature is None or armature.type != "ARMATURE":
        return False
    found = _shaped(_rest_of(armature), {})
    return found is not None and bool(found.shape.is_shaped.any())


def is_shapeable(armature: bpy.types.Object) -> bool:
    """Return whether sliders of an armature object can be changed: it is of this file, or an editable override."""
    override = armature.override_library
    return bool(armature.is_editable) and (override is None or not override.is_system_override)


def is_attached(obj: bpy.types.Object) -> bool:
    """Return whether an object hangs on an attachment point of a figure."""
    known = shapes()
    if known is None or obj.parent is None or obj.parent_type != "BONE" or obj.parent.type != "ARMATURE":
        return False
    bone = obj.parent.data.bones.get(obj.parent_bone)
    return bone is not None and known.is_attachment(names.name_in_file(bone))


def is_shaped(armature: bpy.types.Object) -> bool:
    """Return whether a slider of an armature object is not where joints are as meshes are bound.

    An armature that rests elsewhere than the standard figure is also shaped if it has the shape of that figure.
    """
    percents = percents_of(armature)
    if any(abs(percents[slider.number] - slider.standard) > _MOVED for slider in sliders()):
        return True
    return bool(getattr(armature, IS_SHAPED)) and not rests_as_standard(armature)


def set_percents(armature: bpy.types.Object, percents: Mapping[int, float]) -> None:
    """Set sliders of an armature object and shape its bones, once for all."""
    _set_properties(armature, percents)
    apply(armature)


def _set_properties(armature: bpy.types.Object, percents: Mapping[int, float]) -> None:
    _being_set.append(armature)
    try:
        for number, percent in percents.items():
            setattr(armature, property_name(number), percent)
    finally:
        _being_set.remove(armature)


def restorer(armature: bpy.types.Object) -> Callable[[], None]:
    """Return a function that gives an armature object its present shape.

    These are its sliders, the scales and locations of its bones, and the shape keys of the target's own figure.
    """
    percents, root, was_shaped = percents_of(armature), tuple(getattr(armature, ROOT)), getattr(armature, IS_SHAPED)
    channels = {name: arrays.flat(arrays.read(armature.pose.bones, name, 3)) for name in ("scale", "location")}
    parts = _parts_with_keys(armature)
    keys = [(part, key.name, key.value) for part in parts for key in part.data.shape_keys.key_blocks]

    def restore() -> None:
        _set_properties(armature, percents)
        _move_root(armature, shape_channels(armature), np.array(root))
        for name, values in channels.items():
            armature.pose.bones.foreach_set(name, values)
        for part, name, value in keys:
            part.data.shape_keys.key_blocks[name].value = value
        armature.update_tag(refresh={"OBJECT", "DATA"})
        _show_bindings(armature, is_shaped=was_shaped)

    return restore


def changed(armature: Any, _context: bpy.types.Context) -> None:
    """Shape the bones after a slider of an object was changed."""
    if armature not in _being_set and armature.type == "ARMATURE" and armature.pose is not None:
        apply(armature, may_build=False)


@dataclass
class _Bones:
    """The pose bones of an armature object, b of them, and what its shape does to them."""

    names: list[str]
    axes: Array
    """(b, 3, 3) their axes at rest as columns."""
    shape: JointShapes

    @property
    def scale(self) -> Array:
        """(b, 3, 3) scale in the axes of each bone."""
        return self.axes.transpose(0, 2, 1) @ self.shape.scale @ self.axes

    @property
    def location(self) -> Array:
        """(b, 3) location in the axes of each bone."""
        return np.asarray((self.axes.transpose(0, 2, 1) @ self.shape.offset[..., None])[..., 0])


def shaped_bones(armature: bpy.types.Object, percents: Mapping[int, float] | None = None) -> _Bones | None:
    """Return what a shape, that of the armature object if none is given, does to its bones; None without sliders."""
    worn = tuple(worn_meshes(armature))
    unmoved = unmoved_bones(armature) if any(mesh.is_aligned for mesh in worn) else ()
    rest = replace(_rest_of(armature), worn=worn, unmoved=tuple(unmoved))
    return _shaped(rest, percents_of(armature) if percents is None else percents)


@dataclass(frozen=True)
class _Rest:
    """The b bones of an armature object at rest, as a key of results that depend on nothing else."""

    names: tuple[str, ...]
    in_files: tuple[str, ...]
    matrices: bytes
    """(b, 4, 4) float32, in the space of the armature, column by column."""
    worn: tuple[WornMesh, ...] = ()
    """The meshes that the armature deforms."""
    unmoved: tuple[str, ...] = ()
    """Names in files of bones that rest where an import put them."""


def _rest_of(armature: bpy.types.Object) -> _Rest:
    bones = armature.data.bones
    return _Rest(
        tuple(bone.name for bone in bones),
        tuple(names.name_in_file(bone) for bone in bones),
        arrays.read(bones, "matrix_local", 16).tobytes(),
    )


def _shaped(rest: _Rest, percents: Mapping[int, float]) -> _Bones | None:
    """Return the effect of slider positions on the bones of a figure; None without a family that has such figures."""
    known = shapes()
    if known is None or not rest.names:
        return None
    columns = np.frombuffer(rest.matrices, np.float32).astype(np.float64)
    matrices = columns.reshape(-1, 4, 4).transpose(0, 2, 1)
    shape: JointShapes = known.joint_shapes(
        percents, rest.in_files, matrices[:, :3, 3], rest.worn, unmoved=rest.unmoved
    )
    axes = matrices[:, :3, :3]
    # Blender's axes of bones that point downwards are up to 3e-5 too long.
    axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    return _Bones(list(rest.names), axes, shape)


def worn_meshes(armature: bpy.types.Object) -> list[WornMesh]:
    """Return what the files of the meshes that an armature deforms say of its joints.

    Coarser levels of detail have the binding of the finest one.
    """
    meshes = armature_modifiers.deformed_meshes(armature)
    in_files = {bone.name: names.name_in_file(bone) for bone in armature.data.bones}
    return [
        worn_mesh(obj, in_files) for obj in meshes if obj.meshferry.lod_of is None and obj.meshferry.role == "RENDER"
    ]


def worn_mesh(obj: bpy.types.Object, in_files: Mapping[str, str]) -> WornMesh:
    """Return what the file of a mesh object says of its joints; ``in_files`` are the names in files of bones."""
    kept = obj.meshferry.skin
    positions = arrays.read(kept.joints, "position", 3) if kept.has_positions else np.empty((0, 3))
    return WornMesh(
        tuple(in_files[group.name] for group in obj.vertex_groups if group.name in in_files),
        tuple(joint.name for joint in kept.joints),
        arrays.read(kept.joints, "inverse_bind", 16).astype(np.float64).tobytes(),
        positions.astype(np.float64).tobytes(),
        is_aligned=kept.is_aligned,
        is_locked=kept.lock_scale,
    )


def rests_as_standard(armature: bpy.types.Object) -> bool:
    """Return whether the bones of an armature object rest where the standard figure has them."""
    found = shaped_bones(armature, {})
    if found is None or not found.shape.is_shaped.any():
        return False
    return bool(np.abs(found.shape.offset[found.shape.is_shaped]).max() <= _STANDARD)


def unmoved_bones(armature: bpy.types.Object) -> list[str]:
    """Return the names in files of the bones that rest where an import put them."""
    bones = [bone for bone in armature.data.bones if bone.meshferry.order >= 0]
    is_still = rigging_bones.unmoved_bones(bones).tolist()
    return [names.name_in_file(bone) for bone, still in zip(bones, is_still, strict=True) if still]


@dataclass(frozen=True)
class ShapeChannels:
    """Values of the pose channels that the shape of a figure gives to its bones, b of them."""

    names: tuple[str, ...]
    location: Array
    """(b, 3)."""
    scale: Array
    """(b, 3)."""
    root: str
    """Name of the root bone, which users may move, too; empty without one."""
    root_axes: Array
    """(3, 3) the axes of its location channel as columns."""
    root_offset: Array
    """(3,) movement of the root along the axes of the armature."""


def shape_channels(armature: bpy.types.Object) -> ShapeChannels | None:
    """Return the values of pose channels for the shape of an armature object; None if no bone follows sliders."""
    found = shaped_bones(armature)
    if found is None or not found.shape.is_shaped.any():
        return None
    rows, root = np.flatnonzero(found.shape.is_shaped), found.shape.root
    return ShapeChannels(
        tuple(found.names[row] for row in rows),
        _snapped(found.location, 0.0)[rows],
        _snapped(np.diagonal(found.scale, axis1=1, axis2=2), 1.0)[rows],
        found.names[root] if root >= 0 else "",
        found.axes[root] @ rigging_bones.location_axes(armature.data.bones[found.names[root]]),
        _snapped(found.shape.offset[root], 0.0),
    )


def apply(armature: bpy.types.Object, *, is_anew: bool = False, may_build: bool = True) -> None:
    """Give the bones of an armature object the scales and locations of its shape; other bones are not changed.

    The root bone and the keys of its location only get the difference to the shape before, so that it may be moved by
    hand and by actions, too.

    Parameters
    ----------
    is_anew:
        Put the root bone where the shape has it, wherever it is.
    may_build:
        Whether armatures may be built, which takes Blender through edit mode; false while a slider is dragged.
    """
    shape = shape_channels(armature)
    if shape is None:
        return
    posed = armature.pose.bones
    place = {name: number for number, name in enumerate(posed.keys())}
    rows = np.array([place[name] for name in shape.names], np.intp)
    scale, location = arrays.read(posed, "scale", 3), arrays.read(posed, "location", 3)
    root = location[place[shape.root]].copy() if shape.root else np.zeros(3)
    scale[rows], location[rows] = shape.scale, shape.location
    if shape.root:
        if not is_anew:
            moved = shape.root_axes.T @ (shape.root_offset - np.array(getattr(armature, ROOT)))
            location[place[shape.root]] = _snapped(root + moved, 0.0)
        _move_root(armature, shape, shape.root_offset)
    posed.foreach_set("scale", arrays.flat(scale))
    posed.foreach_set("location", arrays.flat(location))
    set_keys(armature)
    armature.update_tag(refresh={"OBJECT", "DATA"})
    _show_bindings(armature, is_shaped=True, may_build=may_build)


def _show_bindings(armature: bpy.types.Object, *, is_shaped: bool, may_build: bool = True) -> None:
    """Store whether the bones were shaped, and show meshes as their files bind them if they are not shown so yet."""
    # not at the top: it needs the properties, whose definition needs this module
    from . import shown_bindings

    is_other = may_build and shown_bindings.is_incomplete(armature)
    if getattr(armature, IS_SHAPED) != is_shaped or is_other or shown_bindings.is_outdated(armature):
        setattr(armature, IS_SHAPED, is_shaped)
        shown_bindings.update(bpy.context, armature, may_build=may_build)


def _move_root(armature: bpy.types.Object, shape: ShapeChannels | None, offset: Array) -> None:
    """Store by how much the shape moves the root, (3,), and move keys of the root from the offset before."""
    if shape is not None and shape.root:
        follow_root(armature, shape.root, shape.root_axes, np.array(getattr(armature, ROOT)), offset)
    setattr(armature, ROOT, offset)


def adjust_actions(armature: bpy.types.Object) -> None:
    """Move the root in new actions of an armature object as its shape does."""
    offset = np.array(getattr(armature, ROOT))
    if offset.any():
        _move_root(armature, shape_channels(armature), offset)


def _parts_with_keys(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the parts of the target's own figure below an armature object that have shape keys."""
    return [obj for obj in armature.children if obj.meshferry.body_part and obj.data.shape_keys is not None]


def set_keys(armature: bpy.types.Object) -> None:
    """Set the shape keys of the parts of the target's own figure below an armature object to its shape.

    Meshes that are shared with other objects or linked from another file are copied first: keys belong to meshes.
    """
    known, parts = shapes(), _parts_with_keys(armature)
    if known is None or not parts:
        return
    weights = known.morph_weights(percents_of(armature))
    for part in parts:
        keys, wanted = part.data.shape_keys.key_blocks, weights.get(part.meshferry.body_part, {})
        changed_keys = [name for name in wanted if name in keys and abs(keys[name].value - wanted[name]) > _UNCHANGED]
        is_own = part.data.is_editable and part.data.users - part.data.use_fake_user == 1
        if changed_keys and not is_own and part.is_editable:
            part.data = part.data.copy()
            keys = part.data.shape_keys.key_blocks
        for name in changed_keys:
            key, weight = keys[name], wanted[name]
            key.slider_min, key.slider_max = min(key.slider_min, weight), max(key.slider_max, weight)
            key.value = weight


def _snapped(values: Array, to: float) -> Array:
    return np.where(np.abs(values - to) < _UNCHANGED, to, values)


def unfit_bones(armature: bpy.types.Object) -> list[str]:
    """Return the bones that cannot be shaped exactly, because of their axes or of what they inherit.

    The figure is shaped as unevenly as it can be, so the result does not depend on its present shape. Results are
    cached, since panels call this each time they are drawn.
    """
    bones = armature.data.bones
    is_scaled_above = tuple(bone.inherit_scale != "NONE" and bone.parent is not None for bone in bones)
    return list(_unfit(_rest_of(armature), is_scaled_above, tuple(bone.use_connect for bone in bones)))


@functools.lru_cache(maxsize=16)
def _unfit(rest: _Rest, is_scaled_above: tuple[bool, ...], is_connected: tuple[bool, ...]) -> tuple[str, ...]:
    """Return the bones that cannot show a shape at an end of some slider: Blender would shear or hold them."""
    is_unfit = np.zeros(len(rest.names), bool)
    for end in (0.0, 100.0):
        found = _shaped(rest, {slider.number: end for slider in sliders()})
        if found is None:
            break
        beside = found.scale * (1.0 - np.identity(3))
        is_turned = np.abs(beside).reshape(-1, 9).max(axis=1) > _ALONG
        is_moved = np.abs(found.location).max(axis=1) > _UNCHANGED
        is_held = np.array(is_scaled_above) | (is_moved & np.array(is_connected))
        is_unfit |= found.shape.is_shaped & (is_turned | is_held)
    return tuple(name for name, is_one in zip(rest.names, is_unfit, strict=True) if is_one)
