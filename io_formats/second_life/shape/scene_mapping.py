"""Shape <-> Scene: the avatar with positions of its sliders, without nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ExportError
from ...core.options import resolve
from ...core.scene import Scene
from ..avatar import armature_sliders, skeletons
from ..avatar import sliders as avatar_sliders
from .document import Shape
from .options import AS_OTHERS_SEE, EXPORT_OPTIONS


def to_scene(document: Shape, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a shape to a scene with the standard avatar and all sliders, or those of the wearable if it is not a shape.

    ``options`` are not used.
    """
    skeleton = skeletons.avatar_skeleton()
    percents = armature_sliders.percents_of(document.values)
    is_whole = document.is_whole
    skeleton.slider_values = {number: at for number, at in percents.items() if is_whole or number in document.values}
    return Scene(name, skeletons=[skeleton], source_name=document.name, warnings=list(document.warnings))


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return a scene for each skeleton with sliders; several are named after their skeletons, too."""
    shaped = [skeleton for skeleton in scene.skeletons if skeleton.slider_values is not None]
    return [
        scene.part(scene.name if len(shaped) == 1 else f"{scene.name}_{skeleton.name}", skeletons=[skeleton])
        for skeleton in shaped
    ]


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Shape:
    """Map the sliders of a scene with one skeleton to a shape.

    Raises
    ------
    ExportError
        No skeleton of the scene has sliders, or several have.
    """
    parts = files_of(scene, options)
    if len(parts) != 1:
        raise ExportError("'{}' has no avatar with a shape, or several; a file holds one", scene.name)
    skeleton = parts[0].skeletons[0]
    sliders = avatar_sliders.sliders()
    percents = skeleton.slider_values or {}
    values = {number: sliders[number].value_at(at) for number, at in percents.items() if number in sliders}
    if AS_OTHERS_SEE.flag(resolve(EXPORT_OPTIONS, options)):
        values = avatar_sliders.as_others_see(values)
    return Shape(values, scene.source_name or skeleton.name)
