"""Files that Blender's own importers and exporters read and write, through their operators."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...io_formats.errors import ExportError, FormatError
from ...io_formats.output_files import OutputFile
from .blend_files import BlendSession, require_readable, said
from .blender_formats import BlenderFormat
from .usd_rate import frames_per_second

_NEAR_A_RATE = 1e-2
"""Frames a second by which keys may miss a whole rate: their times are kept in single precision."""
_HIGHEST_RATE = 480


def read_file(session: BlendSession, path: Path, known: BlenderFormat) -> Any:
    """Add what is in a file to the open one, in a collection named after it; return the collection.

    Where nothing else is in the open file, the scene takes the rate at which the animations of this one have their
    keys, so that each lies on a whole frame. Otherwise animations keep their speed at the scene's rate.

    Raises
    ------
    FormatError
        It cannot be read, or there is nothing in it.
    """
    from ...blender_data.exporting import foreign_export
    from ...blender_data.importing import foreign_import

    require_readable(path)
    is_first = not len(session.bpy.data.objects)
    made = _read(session, path, known)
    scene = session.bpy.context.scene
    if known.times_are_frames:
        rate = frames_per_second(path)
        if is_first:
            _set_rate(scene, rate)
    else:
        rate = _rate_of_keys(session, scene)
        if is_first and rate and rate != _rate_of(scene):
            session.start_empty()
            scene = session.bpy.context.scene
            _set_rate(scene, rate)
            made = _read(session, path, known)
    things = list(made.all_objects)
    foreign_export.set_range(session.bpy.context, things)
    scene.frame_set(scene.frame_start)  # importers leave the animation at frame 1, wherever it begins
    foreign_import.drop_still_curves(things)
    foreign_import.name_clips(things)
    if known.capabilities.joins_clips:
        foreign_import.as_one_clip(session.bpy.context, things, path.stem, rate)
    if known.capabilities.node_hierarchy:
        foreign_import.mark_root(foreign_import.without_pairs(things))
    else:
        foreign_import.apply_transforms(things)  # the file knows none: they turn its axes
    session.bpy.context.view_layer.update()
    return made


def _read(session: BlendSession, path: Path, known: BlenderFormat) -> Any:
    from ...blender_data.importing import foreign_import

    data = session.bpy.data
    before = set(data.objects)
    try:
        _run(session, known.importers, known.reading, path.absolute())
    except RuntimeError as problem:
        raise FormatError(f"Blender cannot read it: {said(problem)}", file=str(path)) from None
    made = [thing for thing in data.objects if thing not in before]
    kept = foreign_import.without_scaffolding(made, known.scaffolding)
    if not kept:
        raise FormatError("Blender found nothing in it", file=str(path))
    return foreign_import.gathered(session.bpy.context, kept, path.stem)


def _rate_of(scene: Any) -> float:
    return float(scene.render.fps / scene.render.fps_base)


def _set_rate(scene: Any, rate: float) -> None:
    """Set the frames a second of a scene, which are a whole number divided by another."""
    scene.render.fps = max(1, math.ceil(rate - _NEAR_A_RATE))
    scene.render.fps_base = scene.render.fps / rate


def _rate_of_keys(session: BlendSession, scene: Any) -> int:
    """Return the whole rate at which all keys of the open file's actions would lie on frames; 0: none is known."""
    from ...blender_data.exporting.foreign_export import key_interval

    interval = key_interval(session.bpy.data.actions)
    if not interval:
        return 0
    rate = _rate_of(scene) / interval
    nearest = round(rate)
    return nearest if 1 <= nearest <= _HIGHEST_RATE and abs(rate - nearest) < _NEAR_A_RATE else 0


def write_objects(
    session: BlendSession, objects: Sequence[Any], clips: Sequence[str], target: Path, known: BlenderFormat
) -> tuple[list[OutputFile], list[str]]:
    """Return the files that objects of the open file become, the chosen one last, and what to tell the user.

    Blender writes them into a folder for the time of the work. The open file is changed by it.

    Parameters
    ----------
    clips:
        Names of the animations that the objects have.
    target:
        Where the chosen file will go: the others are named after it.

    Raises
    ------
    ExportError
        Blender refuses.
    """
    from ...blender_data.exporting import foreign_export

    context = session.bpy.context
    context.scene.unit_settings.scale_length = 1.0  # some exporters would look at it, and others not
    notices = foreign_export.apply_modifiers(context, objects) if known.capabilities.skeletons else []
    foreign_export.select(context, objects)
    foreign_export.set_range(context, objects)
    foreign_export.name_clips(objects)
    if known.has_pairs:
        foreign_export.name_data_after_objects(objects)
    foreign_export.forget_own_properties(objects)
    more: dict[str, Any] = {}
    if known.animation:
        more[known.animation] = bool(clips)  # otherwise what rests is keyed as if it moved
    if known.every_action:
        more[known.every_action] = len(clips) > 1
        if len(clips) == 1:
            context.scene.name = clips[0]  # what plays is called after the scene
    with contextlib.ExitStack() as stack:
        folder, images = (stack.enter_context(tempfile.TemporaryDirectory(prefix="meshferry-")) for _ in range(2))
        chosen = Path(folder, target.name)
        if known.is_set:
            stack.enter_context(foreign_export.own_image_files(Path(images), target.stem))
        try:
            _run(session, known.exporters, {**known.writing, **more}, chosen)
        except RuntimeError as problem:
            raise ExportError(f"Blender cannot write it: {said(problem)}") from None
        return _outputs(Path(folder), chosen), notices


def _outputs(folder: Path, chosen: Path) -> list[OutputFile]:
    if not chosen.is_file():
        raise ExportError("Blender cannot write it: it made no file")
    beside = sorted(path for path in folder.rglob("*") if path.is_file() and path != chosen)
    return [OutputFile(path.relative_to(folder).as_posix(), path.read_bytes()) for path in (*beside, chosen)]


def require_writer(session: BlendSession, known: BlenderFormat) -> None:
    """Raise an ExportError where this Blender does not write such files."""
    try:
        _operator(session, known.exporters)
    except RuntimeError as problem:
        raise ExportError(f"Blender cannot write it: {said(problem)}") from None


def _run(session: BlendSession, operators: Sequence[str], arguments: Mapping[str, Any], path: Path) -> None:
    """Run the first of some operators that this Blender has, with those of the arguments that it knows.

    Raises
    ------
    RuntimeError
        It fails, or there is none.
    """
    operator = _operator(session, operators)
    known = operator.get_rna_type().properties
    given = {key: value for key, value in arguments.items() if key in known}
    session.call(operator, errors=True, filepath=str(path), **given)


def _operator(session: BlendSession, names: Sequence[str]) -> Any:
    for family, _, name in (operator.partition(".") for operator in names):
        there = getattr(session.bpy.ops, family)
        if name in dir(there):
            return getattr(there, name)
    raise RuntimeError(
        f"this Blender has no {' or '.join(names)}; enable the add-on that brings it, or take a Blender built with it"
    )
