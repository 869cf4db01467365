"""Document <-> Scene (docs/formats/unigine.md, sections 7 and 10): one skeleton, no nodes; facts and checks."""

from typing import Any

from ...core.errors import ExportError
from ...core.messages import Message, Report, Text
from ...core.scene import Scene
from ..bones import check_bones, from_skeleton, to_skeleton, with_parents_first
from ..space import rotate_180
from .codec import SkeletonFile
from .format import ReadOptions, WriteOptions
from .stored_data import skeleton_file, text_of_skeleton


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


def to_scene(document: SkeletonFile, name: str, options: ReadOptions) -> Scene:
    """Map a skeleton file to Blender's space; masks, profiles and retargeting become ``file_data``."""
    scene = Scene(name, warnings=list(document.warnings))
    skeleton = to_skeleton(name, document.bones, document.transforms)
    skeleton.file_data = text_of_skeleton(document)
    scene.skeletons.append(skeleton)
    return rotate_180(scene) if options.use_turn else scene


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return a scene for each skeleton, named after it."""
    return [scene.part(skeleton.name or scene.name, skeletons=[skeleton]) for skeleton in scene.skeletons]


def from_scene(scene: Scene, options: WriteOptions) -> SkeletonFile:
    """Map a scene of one skeleton to a document.

    Raises
    ------
    ExportError
        No skeleton or several, too many bones, or NaN or infinite bind transforms.
    """
    if len(scene.skeletons) != 1:
        raise ExportError("'{}' has {} armatures, but a skeleton file holds one", scene.name, len(scene.skeletons))
    if not scene.skeletons[0].has_bind:
        template = "'{}' was imported without a bind pose; the first frame is written in its place"
        scene.report.change("no-bind-pose", template, scene.skeletons[0].name)
    skeleton = with_parents_first(rotate_180(scene, back=True) if options.use_turn else scene).skeletons[0]
    bones, transforms = from_skeleton(skeleton)
    return skeleton_file(skeleton, bones, transforms)


def facts(document: SkeletonFile) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    return {
        "version": document.version,
        "bones": len(document.bones),
        "warnings": to_scene(document, "", ReadOptions()).warnings,
    }
