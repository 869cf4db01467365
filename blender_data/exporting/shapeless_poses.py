"""Poses of avatars without their body shape, as files with keyed clips hold them.

The target program shapes each wearer itself: its joints have the scales and positions of the wearer's shape. So a clip
holds no scale of a shape, and the position of a joint only if the clip moves it away from where the shape has it. Such
a position is that of the bone's own channels: the scale of the parent moves the joint in the target, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.messages import Elements, Report, Text, counted
from ..animation import pose_curves
from ..animation.clip_sources import ClipSource
from ..rigging import body_shapes, joint_poses
from ..rigging.bones import location_axes

Array = npt.NDArray[np.float64]

_SAME = 1e-5
"""Distance in metres between a bone and its place in the shape up to which the bone counts as unmoved."""
_FLAT = 1e-6
"""Scale below which the rotation of a bone is lost."""
_SCALED = 1e-3
"""Change of a scale above which a bone counts as scaled."""


@dataclass(frozen=True)
class FigureShape:
    """What the shape of a figure gives to the channels of J bones; 0 and 1 for bones without shape."""

    bones: Sequence[str]
    shaped: Collection[str]
    """Names of the bones that follow sliders."""
    location: Array
    """(J, 3) without the movement of the root."""
    scale: Array
    """(J, 3)."""
    root: int
    """Index of the root bone, or -1."""
    root_axes: Array
    """(3, 3) axes of the root bone's location channel as columns."""
    root_offset: Array
    """(3,) movement of the root along the axes of the armature."""

    def rest_values(self) -> pose_curves.RestValues:
        """Return the values of channels that show the shape."""
        location = self.location.copy()
        if self.root >= 0:
            location[self.root] = self.root_axes.T @ self.root_offset
        channels = {"location": location, "scale": self.scale}
        return {(name, key): values[row] for key, values in channels.items() for row, name in enumerate(self.bones)}

    def report_keys(self, obj: bpy.types.Object, source: ClipSource, report: Report) -> None:
        """Report the bones of which the clip keys a shape."""
        action, _slot = pose_curves.action_of(obj, source)
        is_imported = action is not None and bool(action.meshferry.fingerprint)
        place = {name: number for number, name in enumerate(self.bones)}
        found = [
            name
            for name, channels in pose_curves.curves_of(obj, source).items()
            if name in place
            and name in self.shaped
            and (
                _of(channels, "scale")
                or (not is_imported and self.location[place[name]].any() and constant_location(channels))
            )
        ]
        if not found:
            return
        is_active = obj.animation_data is not None and action is not None and obj.animation_data.action == action
        report.note(
            "keys-of-a-shape",
            "keys of {} hold a shape, as keying whole characters makes them: shape sliders do not change these bones "
            "while the action plays; remove the keys with Clean Action (sidebar, Animation)",
            counted(len(found), "bone"),
            item=Text("'{}'", source.name),
            names=(obj.name,),
            is_fixable=is_active,
            elements=Elements("bones", "", tuple(found)),
        )

    def removal(self, obj: bpy.types.Object, source: ClipSource, scales: Array) -> ShapeRemoval:
        """Return what removes the shape from the poses of a clip; ``scales`` (J, F, 3) are those of the channels."""
        curves = pose_curves.curves_of(obj, source)
        root = self.root_axes.T @ self.root_offset
        action, _slot = pose_curves.action_of(obj, source)
        if action is not None and self.root >= 0:
            keyed = [component for channel, component in curves.get(self.bones[self.root], {}) if channel == "location"]
            root[keyed] = (self.root_axes.T @ body_shapes.included_offset(action, self.root_offset))[keyed]
        if self.root >= 0:
            root = location_axes(obj.data.bones[self.bones[self.root]]) @ root
        held = _held_bones(curves, self.shaped)
        is_held = np.array([name in held for name in self.bones], bool)
        if self.root >= 0:
            is_held[self.root] = False
        return ShapeRemoval(self, scales, root, is_held)


@dataclass(frozen=True)
class ShapeRemoval:
    """Removes the shape of a figure, and all scale, from the poses of its J bones in the F frames of a clip."""

    shape: FigureShape
    scales: Array
    """(J, F, 3) values of the scale channels."""
    root: Array
    """(3,) part of the location of the root bone that comes from the shape."""
    is_held: npt.NDArray[np.bool_]
    """(J,) bones whose location is that of a shape, even if of another one, see :func:`_held_bones`."""

    def without_shape(self, joints: npt.NDArray[np.intp], basis: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return transforms of n bones relative to their rest without the shape, and which are scaled otherwise, (n,).

        ``basis`` (n, F, 4, 4) are the transforms with the shape in all frames; a single frame is the first.
        """
        shape, scale, made = self.shape, self.scales[joints, : basis.shape[1]], basis.copy()
        made[..., :3, :3] /= _not_flat(scale)[:, :, None, :]
        stretch = scale * np.linalg.norm(made[..., :3, :3], axis=-2) / _not_flat(shape.scale[joints])[:, None]
        made = joint_poses.unscaled(made)
        made[joints == shape.root, :, :3, 3] -= self.root
        apart = np.abs(made[..., :3, 3] - shape.location[joints][:, None]).max(axis=(1, 2), initial=0.0)
        made[(apart <= _SAME) | self.is_held[joints], :, :3, 3] = 0.0
        return made, np.abs(stretch - 1.0).max(axis=(1, 2), initial=0.0) > _SCALED


def _not_flat(scale: Array) -> Array:
    return np.where(np.abs(scale) > _FLAT, scale, 1.0)


def _held_bones(curves: Mapping[str, pose_curves.Curves], shaped: Collection[str]) -> set[str]:
    """Return the bones whose scale and constant location are keyed, if the scales of most shaped bones are keyed.

    Keying whole characters does so. In other clips, constant locations may be meant as movements.
    """
    scaled = {name for name, channels in curves.items() if name in shaped and _of(channels, "scale")}
    is_whole = 2 * len(scaled) > len(shaped)
    return {name for name in scaled if constant_location(curves[name])} if is_whole else set()


def constant_location(channels: pose_curves.Curves) -> bool:
    """Return whether the location of a bone is keyed and does not change."""
    found = _of(channels, "location")
    return bool(found) and not any(map(pose_curves.varies, found))


def _of(channels: pose_curves.Curves, wanted: str) -> list[bpy.types.FCurve]:
    return [curve for (channel, _component), curve in channels.items() if channel == wanted]


def shape_of(obj: bpy.types.Object, bones: Sequence[str], sources: Collection[ClipSource]) -> FigureShape | None:
    """Return the shape of an armature object with these bones; None if nothing in its clips can depend on a shape."""
    if not body_shapes.is_shaped(obj) and not any(_keys_scales(obj, source) for source in sources):
        return None
    shape = body_shapes.shape_channels(obj)
    if shape is None:
        return None
    place = {name: number for number, name in enumerate(bones)}
    rows, joints = np.array([(row, place[name]) for row, name in enumerate(shape.names) if name in place]).T
    location, scale = np.zeros((len(bones), 3)), np.ones((len(bones), 3))
    scale[joints] = shape.scale[rows]
    if getattr(obj, body_shapes.IS_SHAPED):  # otherwise the bones are where the armature rests
        location[joints] = shape.location[rows]
    root = place.get(shape.root, -1)
    if root >= 0:
        location[root] = 0.0
    return FigureShape(bones, frozenset(shape.names), location, scale, root, shape.root_axes, shape.root_offset)


def _keys_scales(obj: bpy.types.Object, source: ClipSource) -> bool:
    """Return whether a clip has a key of a bone's scale other than 1."""
    curves = pose_curves.curves_of(obj, source).values()
    return bool(pose_curves.scaled_bones(curve for channels in curves for curve in channels.values()))
