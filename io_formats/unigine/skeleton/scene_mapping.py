"""Document <-> Scene (docs/formats/unigine.md, sections 7 and 10): one skeleton, no nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import counted
from ...core.options import resolve
from ...core.scene import Scene
from ..skeletons import from_skeleton, to_skeleton
from ..turning import turned
from .document import Profile, SkeletonFile
from .options import EXPORT_OPTIONS, IMPORT_OPTIONS

_PROFILES = (
    ("blend_masks", "blend mask", "blend masks"),
    ("time_profiles", "time profile", "time profiles"),
    ("weight_profiles", "weight profile", "weight profiles"),
)
_RETARGETING = "retargeting"


def to_scene(document: SkeletonFile, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a skeleton file to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    What only the engine knows of is kept in ``Skeleton.properties`` for a file written from this scene, and said,
    since Blender has no place for it: ``blend_masks``, ``time_profiles``, ``weight_profiles`` (lists of name and
    numbers) and ``retargeting`` (list of mode and length).
    """
    chosen = resolve(IMPORT_OPTIONS, options)
    scene = Scene(name, properties={"version": document.version}, warnings=list(document.warnings))
    skeleton = to_skeleton(name, document.bones, document.transforms)
    kept = []
    for key, one, many in _PROFILES:
        profiles = getattr(document, key)
        if profiles:
            skeleton.properties[key] = [(profile.name, profile.values.tolist()) for profile in profiles]
            kept.append(counted(len(profiles), one, many))
    if document.retargeting:
        skeleton.properties[_RETARGETING] = list(document.retargeting)
        kept.append(counted(len(document.retargeting), "retargeting entry", "retargeting entries"))
    if kept:
        scene.warnings.append(f"Blender has no place for {', '.join(kept)}; a skeleton written from it lacks them")
    scene.skeletons.append(skeleton)
    return turned(scene) if chosen["use_turn"] else scene


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return a scene for each skeleton, named after it."""
    return [
        Scene(skeleton.name or scene.name, [], [skeleton], properties=dict(scene.properties))
        for skeleton in scene.skeletons
    ]


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> SkeletonFile:
    """Map a scene of one skeleton to a document with the options of ``options.EXPORT_OPTIONS``.

    Raises
    ------
    ExportError
        No skeleton or several, too many bones, bind transforms that are no numbers.
    """
    chosen = resolve(EXPORT_OPTIONS, options)
    if len(scene.skeletons) != 1:
        raise ExportError(f"'{scene.name}' has {len(scene.skeletons)} armatures, but a skeleton file holds one")
    if not scene.skeletons[0].has_bind:
        scene.warnings.append(
            f"'{scene.skeletons[0].name}' came without a bind pose; the skeleton holds the first frame in its place"
        )
    skeleton = (turned(scene, back=True) if chosen["use_turn"] else scene).skeletons[0]
    bones, transforms = from_skeleton(skeleton)
    document = SkeletonFile(bones=bones, transforms=transforms)
    for key, _, _ in _PROFILES:
        stored = skeleton.properties.get(key, ())
        setattr(document, key, [Profile(name, np.array(values, np.float32)) for name, values in stored])
    document.retargeting = list(skeleton.properties.get(_RETARGETING, ()))
    return document
