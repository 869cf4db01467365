"""Shape <-> Scene: the avatar with positions of its sliders, without nodes; facts and checks."""

from typing import Any

from ...core.errors import ExportError
from ...core.messages import Message, counted, listed, warning
from ...core.options import Options
from ...core.scene import Scene
from ..avatar import armature_sliders, skeletons
from ..avatar import sliders as avatar_sliders
from .codec import Shape
from .format import WriteOptions

_VERSION = "1.0"


def check(document: Shape) -> list[Message]:
    """Return warnings about values that other viewers do not read. They do not import body part assets at all."""
    if document.is_body_part:
        return []
    findings = []
    if document.version != _VERSION:
        template = "the version is '{}'; viewers that import shapes take {} only"
        findings.append(warning("shape-version", template, document.version, _VERSION))
    if document.has_only_codes:
        codes = document.has_only_codes
        template = "{} code but no value, so viewers ignore it: {}"
        findings.append(
            warning("shape-codes", template, counted(len(codes), "slider has a", "sliders have a"), listed(codes))
        )
    return findings


_SHOWN = 0.5
"""Difference from the default, in percent, from which a slider counts as changed: the viewer shows whole numbers."""


def facts(document: Shape) -> dict[str, Any]:
    """Return sex, height and the positions of sliders that differ from their default, in the viewer's order."""
    values = document.complete
    percents = armature_sliders.percents_of(values)
    changed = [
        slider
        for slider in armature_sliders.sliders()
        if slider.number != avatar_sliders.MALE and abs(percents[slider.number] - slider.default) > _SHOWN
    ]
    return {
        "version": document.version,
        "name": document.name,
        "wearable": document.wearable,
        "sex": "male" if avatar_sliders.is_male(values) else "female",
        "height": round(avatar_sliders.evaluate_shape(values).height, 6),
        "sliders": [
            {
                "id": slider.number,
                "label": slider.label,
                "value": round(values[slider.number], 6),
                "percent": round(percents[slider.number], 3),
            }
            for slider in changed
        ],
        "warnings": list(document.warnings),
    }


def to_scene(document: Shape, name: str, options: Options) -> Scene:
    """Map a shape to a scene with the standard avatar and all sliders, or those of the wearable if it is not a shape.

    ``options`` are not used.
    """
    skeleton = skeletons.avatar_skeleton()
    percents = armature_sliders.percents_of(document.values)
    is_whole = document.is_whole
    skeleton.slider_values = {number: at for number, at in percents.items() if is_whole or number in document.values}
    return Scene(name, skeletons=[skeleton], source_name=document.name, warnings=list(document.warnings))


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return a scene for each skeleton with sliders; several are named after their skeletons, too."""
    shaped = [skeleton for skeleton in scene.skeletons if skeleton.slider_values is not None]
    return [
        scene.part(scene.name if len(shaped) == 1 else f"{scene.name}_{skeleton.name}", skeletons=[skeleton])
        for skeleton in shaped
    ]


def from_scene(scene: Scene, options: WriteOptions) -> Shape:
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
    if options.use_as_others_see:
        values = avatar_sliders.as_others_see(values)
    return Shape(values, scene.source_name or skeleton.name)
