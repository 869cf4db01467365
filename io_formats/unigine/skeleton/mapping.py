"""Document <-> Scene (docs/formats/unigine.md, sections 7 and 10): one skeleton, no nodes; facts and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...core.errors import ExportError
from ...core.messages import Message, Report, Text, counted, joined
from ...core.options import resolve
from ...core.scene import Scene
from ..bones import check_bones, from_skeleton, to_skeleton
from ..options import TURN
from ..space import rotate_180
from .codec import SkeletonFile
from .format import EXPORT_OPTIONS, IMPORT_OPTIONS


def check(document: SkeletonFile) -> list[Message]:
    """Return errors for an unusable skeleton and warnings for suspicious data."""
    report = Report()
    check_bones(document.bones, report)
    count = len(document.bones)
    if not count:
        report.error("no-bones", "it has no bones")
    for mask in document.blend_masks:
        if len(mask.values) != count:
            template, item = "{:,} values for {:,} bones", Text("Blend mask '{}'", mask.name)
            report.warning("values-for-bones", template, len(mask.values), count, item=item)
    if document.retargeting and len(document.retargeting) != count:
        report.warning("values-for-bones", "{:,} retargeting entries for {:,} bones", len(document.retargeting), count)
    return report.messages


def to_scene(document: SkeletonFile, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a skeleton file to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    Profiles and retargeting are kept for a file written from this scene. Blender cannot store them, so a warning is
    added.
    """
    chosen = resolve(IMPORT_OPTIONS, options)
    scene = Scene(name, warnings=list(document.warnings))
    skeleton = to_skeleton(name, document.bones, document.transforms)
    numbers = [
        number
        for entries, number in (
            (document.blend_masks, counted(len(document.blend_masks), "blend mask")),
            (document.time_profiles, counted(len(document.time_profiles), "time profile")),
            (document.weight_profiles, counted(len(document.weight_profiles), "weight profile")),
            (document.retargeting, counted(len(document.retargeting), "retargeting entry", "retargeting entries")),
        )
        if entries
    ]
    if numbers:
        skeleton.pass_through = document
        template = "Blender cannot store {}; a skeleton written from it lacks them"
        scene.report.loss("engine-data-left-out", template, joined(numbers))
    scene.skeletons.append(skeleton)
    return rotate_180(scene) if TURN.flag(chosen) else scene


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return a scene for each skeleton, named after it."""
    return [scene.part(skeleton.name or scene.name, skeletons=[skeleton]) for skeleton in scene.skeletons]


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> SkeletonFile:
    """Map a scene of one skeleton to a document with the options of ``options.EXPORT_OPTIONS``.

    Raises
    ------
    ExportError
        No skeleton or several, too many bones, or NaN or infinite bind transforms.
    """
    chosen = resolve(EXPORT_OPTIONS, options)
    if len(scene.skeletons) != 1:
        raise ExportError("'{}' has {} armatures, but a skeleton file holds one", scene.name, len(scene.skeletons))
    if not scene.skeletons[0].has_bind:
        template = "'{}' was imported without a bind pose; the first frame is written in its place"
        scene.report.change("no-bind-pose", template, scene.skeletons[0].name)
    skeleton = (rotate_180(scene, back=True) if TURN.flag(chosen) else scene).skeletons[0]
    bones, transforms = from_skeleton(skeleton)
    passed = skeleton.pass_through if isinstance(skeleton.pass_through, SkeletonFile) else SkeletonFile()
    return replace(passed, bones=bones, transforms=transforms, warnings=[])


def facts(document: SkeletonFile) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    return {
        "version": document.version,
        "bones": len(document.bones),
        "warnings": to_scene(document, "").warnings,
    }
