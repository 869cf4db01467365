"""The skeleton file that a mesh or an animation refers to: an existing one, or a new one of the same export.

Files refer to it by its GUID. The engine matches joints by name, and drops the curves of joints that the skeleton lacks
without a message.
"""

import contextlib
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.errors import ExportError, FormatError
from ...core.messages import Message, Report, Text, counted, listed, of_kind
from ...core.scene import FloatArray, Skeleton
from ...disk.file_names import file_name
from ...disk.special_files import read_regular
from ...projects import Projects
from ..bones import Bone
from ..project.guids import GUID_PREFIX, is_guid, plain_reference
from ..project.new_assets import AssetKind, NewAsset, TargetFolder
from . import codec
from .codec import SkeletonFile
from .stored_data import skeleton_file, text_of_skeleton

EXTENSION = ".skeleton"


@dataclass(frozen=True)
class SkeletonUse:
    """The skeleton file of a mesh or an animation."""

    guid: str
    path: str
    """The reference that a mesh or an animation stores beside the GUID."""
    bones: Sequence[Bone] | None = None
    """Bones of the file; None if the file was not found."""
    asset: NewAsset | None = None
    """The file, if the export writes it."""


def report_unproven(report: Report) -> None:
    """Report that the written files rest on a description alone."""
    report.note(
        "unproven-characters",
        "sk10 and sn10 follow the vendor's description and were not tested in the engine. If the editor rejects them, "
        "export for SDK 2.20 and let the editor upgrade the files, or use FBX",
    )


REST, DROPPED = Text("keeps them in their rest pose"), Text("drops their curves without a message")
"""Effects of joints that a skeleton file lacks on meshes and on animations."""


def missing_joints(bones: Sequence[Bone], use: SkeletonUse, effect: Text) -> list[Message]:
    """Return a warning if the skeleton file lacks joints of a mesh or an animation; ``effect`` is what happens then."""
    report = Report()
    known = {bone.name for bone in use.bones or bones}
    lost = list(dict.fromkeys(bone.name for bone in bones if bone.name not in known))
    if lost:
        text = "{} not in its skeleton file; the engine {}: {}"
        number = counted(len(lost), "joint is", "joints are")
        report.warning("joints-not-in-skeleton", text, number, effect, listed(of_kind("bone", lost)))
    return report.messages


def check_reference(
    bones: Sequence[Bone], guid: str, path: str, place: Path, projects: Projects, effect: Text
) -> list[Message]:
    """Return a warning if the skeleton file that a file at a place refers to lacks joints, or is not in the project."""
    try:
        target = TargetFolder(place, "", projects)
    except ExportError:  # a product of the editor
        return []
    use = stored_use(guid, path, target)
    if use is None or use.bones is not None:
        return missing_joints(bones, use, effect) if use is not None else []
    report = Report()
    if target.project is not None:
        report.warning("skeleton-not-found", "its skeleton file is not found: {}", guid or path)
    return report.messages


def stored_use(guid: str, path: str, target: TargetFolder) -> SkeletonUse | None:
    """Return the skeleton file that a GUID and a path name; None if both are empty."""
    if not guid and not path:
        return None
    wanted = guid or plain_reference(path)
    found = _find(wanted, target) if is_guid(wanted) else None
    return SkeletonUse(guid, path, found.bones if found is not None else None)


def for_mesh(skeleton: Skeleton, bones: list[Bone], bind: FloatArray, target: TargetFolder, folder: str) -> SkeletonUse:
    """Return the skeleton file of a mesh that is written.

    It is the existing file that the armature remembers, or else a file with the name of the skeleton. That is written,
    with the masks, profiles and retargeting of an existing one, unless an existing one has all joints and more.

    Parameters
    ----------
    folder:
        Folder of the file relative to the target, empty or ending in ``/``.

    Raises
    ------
    ExportError
        The existing file lacks joints or has them below other parents, or it cannot be read.
    """
    stored = stored_use(skeleton.guid, skeleton.path, target)
    wanted = (stored.guid or plain_reference(stored.path)) if stored is not None else ""
    if stored is not None and (stored.bones is not None or not is_guid(wanted)):
        return stored
    name = f"{folder}{target.spelling(folder, file_name(skeleton.name) + EXTENSION)}"
    place = target.folder / name if target.folder is not None else None
    existing = None
    if place is not None and os.path.lexists(place):
        existing = _read(place)
        _require_joints(bones, existing.bones, name)
        if not skeleton.file_data:
            skeleton = replace(skeleton, file_data=text_of_skeleton(existing))
    data = codec.write(skeleton_file(skeleton, bones, bind))
    guid = wanted if wanted and target.meta(name) is None else target.guid(name, hashlib.sha256(data).hexdigest())
    if existing is not None and len(existing.bones) > len(bones):
        return SkeletonUse(guid, GUID_PREFIX + guid, existing.bones)
    asset = NewAsset(name, AssetKind.SKELETON, lambda _guids: data, guid=guid)
    return SkeletonUse(guid, GUID_PREFIX + guid, bones, asset)


def for_animation(skeleton: Skeleton, table: Sequence[Bone], chosen: str, target: TargetFolder) -> SkeletonUse | None:
    """Return the skeleton file of an animation: the chosen one, the stored one, or the only fitting one beside it.

    Parameters
    ----------
    table:
        Bones of the animation.
    chosen:
        GUID or path of a skeleton file; empty to find it.

    Returns
    -------
    SkeletonUse
        None if the folder of the animation is not known.

    Raises
    ------
    ExportError
        There is no such file or no fitting one, or it has no GUID.
    """
    if is_guid(plain_reference(chosen)):
        return stored_use(plain_reference(chosen), GUID_PREFIX + plain_reference(chosen), target)
    if chosen:
        roots = [root for root in (target.folder, target.project.root if target.project is not None else None) if root]
        place = next((root / chosen for root in roots if (root / chosen).is_file()), Path(chosen))
        return _with_guid(place, _read(place), target)
    stored = stored_use(skeleton.guid, skeleton.path, target)
    if stored is not None or target.folder is None:
        return stored
    names = {bone.name for bone in table}
    fitting = [(path, found) for path, found in _beside(target) if names <= {bone.name for bone in found.bones}]
    if len(fitting) != 1:
        if fitting:
            template = "'{}' fits several skeleton files beside the animation: {}; choose one with the option Skeleton"
            raise ExportError(template, skeleton.name, listed([path.name for path, _ in fitting]))
        raise ExportError(
            "'{}' has no skeleton file, which an13 refers to. Export a mesh of it as sk10 into this folder first, "
            "which writes the skeleton, or choose one with the option Skeleton",
            skeleton.name,
        )
    return _with_guid(*fitting[0], target)


def _with_guid(path: Path, found: SkeletonFile, target: TargetFolder) -> SkeletonUse:
    guid = target.guid_of(path)
    if not guid:
        template = "{} has no .meta file with its GUID; open the project in the editor, or export its mesh as sk10"
        raise ExportError(template, path.name)
    return SkeletonUse(guid, GUID_PREFIX + guid, found.bones)


def _read(path: Path) -> SkeletonFile:
    """Return the content of a skeleton file; an error of the file becomes an ExportError that names it."""
    try:
        return codec.read(read_regular(path))
    except FormatError as problem:
        template = "{}: the skeleton cannot be read: {}"
        raise ExportError(template, path, problem.sentence(with_file=False)) from None


def _beside(target: TargetFolder) -> list[tuple[Path, SkeletonFile]]:
    """Return the readable skeleton files in the folder of an export, by name."""
    found: list[tuple[Path, SkeletonFile]] = []
    paths = sorted(target.folder.iterdir()) if target.folder is not None and target.folder.is_dir() else []
    for path in paths:
        if path.suffix.lower() == EXTENSION and path.is_file():
            with contextlib.suppress(ExportError):
                found.append((path, _read(path)))
    return found


def _find(guid: str, target: TargetFolder) -> SkeletonFile | None:
    """Return the skeleton file with a GUID in the project, or in the folder outside of projects; None if missing."""
    if target.project is not None:
        path = target.project.find(guid).path
        try:
            return codec.read(target.project.files.read(path)) if path is not None else None
        except FormatError:
            return None
    return next((found for path, found in _beside(target) if target.guid_of(path) == guid), None)


def _require_joints(bones: Sequence[Bone], existing: Sequence[Bone], name: str) -> None:
    """Raise ExportError if an existing file lacks joints, or has them below other parents."""
    known, own = (
        {(bone.name, table[bone.parent].name if bone.parent >= 0 else "") for bone in table}
        for table in (existing, bones)
    )
    other = [joint for joint, _parent in own - known]
    if other:
        template = (
            "{} exists with other joints, which its animations use; it is not replaced. Rename the armature, or remove "
            "that file. Not in it, or below another parent: {}"
        )
        raise ExportError(template, name, listed(of_kind("bone", sorted(other))))
