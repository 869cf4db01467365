"""Files of Blender's own importers and exporters: read and written by their operators; face counts and rates.

Comparing this with the imported objects shows faces that Blender's importers drop without a message. Only their
importers are checked: Blender's exporters drop the surfaces of known types of objects (see ``BlenderFormat.left_out``).

Images are not among them; they are judged after the import (``outside_files``).

Blender's importer of USD files uses times as frames and ignores their rate, which is read from the layer's metadata:
``timeCodesPerSecond``, or else ``framesPerSecond``, or else 24.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from ...blender_data.operator_calls import operator_error
from ...io_formats.core.errors import ExportError, FormatError
from ...io_formats.core.format import OutputFile
from ...io_formats.core.messages import Message, Report, counted
from ...io_formats.disk.reach import Reach, as_option
from ...io_formats.disk.special_files import require_regular
from .blend_files import BlendSession, require_readable
from .blender_formats import BlenderFormat, on_disk
from .settings import Settings

if TYPE_CHECKING:
    import bpy


_TRIANGLES, _STRIP, _FAN = 4, 5, 6
"""Primitive modes of glTF that have faces."""
_HEADER_BYTES = 1 << 16
_GLTF = (".glb", ".gltf")


def stored_faces(path: Path) -> int | None:
    """Return the number of faces in a .glb, .gltf, .ply or .obj file. None for other files and damaged ones.

    Faces of a mesh that several objects use count once for each object. USD files are not counted: their importer
    leaves out invisible and instanced objects intentionally. The importer of FBX files leaves out no faces.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    extension = path.suffix.lower()
    try:
        if extension in _GLTF:
            return _gltf_faces(gltf_json(path))
        if extension == ".ply":
            return _ply_faces(path)
        if extension == ".obj":
            with path.open("rb") as file:
                return sum(chunk.count(b"\nf ") for chunk in _overlapping(file))
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # Blender's importer reports the damage
    return None


def gltf_json(path: Path) -> Any:
    """Return the JSON of a .gltf or .glb file; both may be named otherwise.

    Raises
    ------
    ValueError
        The file is damaged.
    """
    with path.open("rb") as file:
        head = file.read(20)
        if head.startswith(b"glTF"):
            return json.loads(file.read(int.from_bytes(head[12:16], "little")))
        return json.loads(head + file.read())


def _gltf_faces(content: Any) -> int:
    accessors = content.get("accessors", [])
    faces = [
        sum(_primitive_faces(primitive, accessors) for primitive in mesh["primitives"])
        for mesh in content.get("meshes", [])
    ]
    return sum(faces[node["mesh"]] for node in content.get("nodes", []) if "mesh" in node)


def _primitive_faces(primitive: Any, accessors: Any) -> int:
    vertices = primitive["indices"] if "indices" in primitive else primitive["attributes"]["POSITION"]
    count = int(accessors[vertices]["count"])
    mode = primitive.get("mode", _TRIANGLES)
    if mode == _TRIANGLES:
        return count // 3
    return max(0, count - 2) if mode in (_STRIP, _FAN) else 0


def _ply_faces(path: Path) -> int:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES).partition(b"end_header")[0]
    stated = re.search(rb"^element face (\d+)\s*$", header, re.MULTILINE)
    return int(stated[1]) if stated else 0


def _overlapping(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content in chunks, each starting with the end of the previous one, so that no match is cut in two."""
    tail = b"\n"
    while chunk := file.read(1 << 20):
        chunk = tail + chunk
        yield chunk
        tail = chunk[-2:]


_LIBRARY = re.compile(rb"mtllib((?:\\[\0-\t\x0b-\x20]*\n|[^\n])*)")
"""Matches what Blender reads as the name of a library: a line that a backslash may continue."""
_BLANK = bytes(range(33))


def require_within(path: Path, reach: Reach, bpy: Any) -> None:
    """Raise a FormatError if a file refers to buffers, layers or material libraries beyond reach.

    Layers and material libraries may also be below the folder above, as images may.
    """
    extension = path.suffix.lower()
    found: Iterable[str]
    if extension in _GLTF:
        found, above = _buffers(path), False
    elif extension == ".obj":
        found, above = _libraries(path) if path.stat().st_size else (), True
    elif extension in {".usd", ".usda", ".usdc", ".usdz"}:
        found, above = _layers(path, bpy), True
    else:
        return
    for place in found:
        if reach.brings_in(place, above=above):
            text = "It refers to {}, outside of its folder; to read from there, add {}"
            raise FormatError(text, os.path.normpath(place), as_option([place]), file=str(path))
        require_regular(place)


def _buffers(path: Path) -> Iterator[str]:
    try:
        content = gltf_json(path)
        uris = [buffer.get("uri") for buffer in content.get("buffers", [])]
        uris += [uri for image in content.get("images", []) if (uri := image.get("uri") or "").startswith("data:")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # Blender's importer reports the damage
    for uri in uris:
        # Blender takes an address of data without this mark for the path of a file.
        if isinstance(uri, str) and not (uri.startswith("data:") and ";base64," in uri):
            yield str(path.absolute().parent / unquote(uri))


def _libraries(path: Path) -> Iterator[str]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = dict.fromkeys(_LIBRARY.findall(content))
    yield str(path.with_suffix(".mtl"))  # which Blender reads unasked
    for name in names:
        plain = re.sub(rb"\\[\0-\t\x0b-\x20]*\n", b"  ", name).strip(_BLANK + b'"').partition(b"\0")[0]
        yield str(path.absolute().parent / os.fsdecode(plain))


def _layers(path: Path, bpy: Any) -> Iterator[str]:
    """Yield the layers of a USD file, and those that other variants and value clips name; of archives, the archive.

    ``UsdUtils.ComputeAllDependencies`` passes over names that are computed, and ends the process at a damaged layer.
    """
    bpy.utils.expose_bundled_modules()
    from pxr import Ar, Sdf, Tf, Usd, UsdUtils  # type: ignore[import-not-found]

    try:
        stage = Usd.Stage.Open(str(path.absolute()))
    except Tf.ErrorException:
        return  # Blender's importer reports the damage
    for layer in (used for used in stage.GetUsedLayers() if used.realPath):
        named = (name for names in UsdUtils.ExtractExternalReferences(layer.realPath) for name in names)
        found = [layer.ComputeAbsolutePath(name) for name in named if Sdf.FileFormat.FindByExtension(name)]
        for place in (layer.realPath, *found):
            yield Ar.SplitPackageRelativePathOuter(place)[0]


DEFAULT_RATE = 24.0


def frames_per_second(path: Path, bpy: Any) -> float:
    """Return the frame rate of a USD file, or :data:`DEFAULT_RATE` if it has none or an invalid one."""
    bpy.utils.expose_bundled_modules()
    from pxr import Sdf, Tf  # type: ignore[import-not-found]

    stated: list[float] = []
    with contextlib.suppress(Tf.ErrorException):  # Blender's importer reports the damage
        if layer := Sdf.Layer.OpenAsAnonymous(str(path.absolute()), metadataOnly=True):
            stated += [layer.timeCodesPerSecond] if layer.HasTimeCodesPerSecond() else []
            stated += [layer.framesPerSecond] if layer.HasFramesPerSecond() else []
    return next((rate for rate in stated if 0.001 <= rate <= 100_000), DEFAULT_RATE)


_NEAR_A_RATE = 1e-2
"""Tolerance for a frame rate computed from key times, which are in single precision."""
_HIGHEST_RATE = 480
_COMMON_RATES = (24, 25, 30, 50, 60)
"""Rates to try if keys are several frames apart, as in glTF files, where a constant animation has only two keys."""
_NEAR_A_FRAME = 1e-3
_STATED_RATE = "meshferry_frames_per_second"
"""Custom property of glTF scenes for the frame rate, since glTF stores only times; keys alone do not determine it."""
_STATED_RATES = (0.01, 32767.0)
_NEAR_STATED_RATE = 2.5e-3
"""Relative tolerance for the rate of keys: Blender's exporter writes 29.97 frames per second as 30.03."""
_SMALL = 0.1
"""Size of an object, in metres, below which six decimals are too inexact: an error above 1e-5 of the size."""
_HIGHEST_EXPONENT = 4
"""Blender's exporters scale by at most 10,000."""


def open_file(
    session: BlendSession, known: BlenderFormat, source: Path, content: bytes | None, settings: Settings
) -> list[Message]:
    """Open a .blend file, or import another one into an empty file; return messages about data that was left out.

    ``content`` is the content of the file if it is in memory already; ``source`` is then only its name.
    """
    with on_disk(source, content) as path:
        if known.is_blend:
            return session.open(path, settings.reach_of(path))
        session.start_empty()
        return read_file(session, path, known, settings.reach_of(path))[1]


def read_file(session: BlendSession, path: Path, known: BlenderFormat, reach: Reach) -> tuple[Any, list[Message]]:
    """Import a file into the open one, in a collection named after it.

    Return the collection, and messages about data that the importer or its reach left out. If the open file is empty,
    the scene gets the frame rate at which the keys are on whole frames. Otherwise keys are moved to keep the speed at
    the scene's rate.
    """
    from ...blender_data.addon_formats import addon_export, addon_import

    require_readable(path)
    with session.quiet(errors=True):
        require_within(path, reach, session.load_for_changes())
    is_first = not len(session.load_for_changes().data.objects)
    made, lost = _read(session, path, known, reach)
    scene = session.load_for_changes().context.scene
    stated = _take_stated_rate(scene)
    if known.times_are_frames:
        rate = frames_per_second(path, session.load_for_changes())
        if is_first:
            _set_rate(scene, rate)
    else:
        rate = _rate_of_keys(session, scene, stated)
        if is_first and rate and rate != _rate_of(scene):
            session.start_empty()
            scene = session.load_for_changes().context.scene
            _set_rate(scene, rate)
            made, lost = _read(session, path, known, reach)
            _take_stated_rate(scene)
    objects = list(made.all_objects)
    first, last = scene.frame_start, scene.frame_end
    addon_export.set_range(session.load_for_changes().context, objects)
    # keep the range that the file states: constant parts at its ends have no keys
    if known.times_are_frames and first < last:
        scene.frame_start, scene.frame_end = min(first, scene.frame_start), max(last, scene.frame_end)
    scene.frame_set(scene.frame_start)  # importers leave the scene at frame 1, even if the animation begins elsewhere
    addon_import.drop_still_curves(objects, keeps_clips=known.keeps_still_clips)
    addon_import.name_clips(objects)
    if known.capabilities.joins_clips:
        addon_import.as_one_clip(session.load_for_changes().context, objects, path.stem, rate)
    if known.capabilities.node_hierarchy:
        addon_import.mark_root(addon_import.without_pairs(objects))
    else:
        addon_import.apply_transforms(objects)  # added by the importer to convert axes
    session.load_for_changes().context.view_layer.update()
    return made, lost


def _read(session: BlendSession, path: Path, known: BlenderFormat, reach: Reach) -> tuple[Any, list[Message]]:
    from ...blender_data.addon_formats import addon_export, addon_import, outside_files

    data = session.load_for_changes().data
    before = set(data.objects)
    files_before = outside_files.file_blocks()
    report = Report()
    try:
        for text in _run(session, known.importer, known.reading, path.absolute()):
            report.loss("blender-importer-warning", text)
    except RuntimeError as problem:
        raise FormatError("Blender cannot read it: {}", operator_error(problem), file=str(path)) from None
    outside_files.leave_out(reach, report, is_blend=False, known=files_before)
    made = [obj for obj in data.objects if obj not in before]
    kept = addon_import.without_scaffolding(made, known.scaffolding)
    if not kept:
        raise FormatError("Blender found nothing in it", file=str(path))
    collection = addon_import.gathered(session.load_for_changes().context, kept, path.stem)
    stored, removed = stored_faces(path), addon_import.repair_meshes(kept)
    if stored is not None or removed:
        context = session.load_for_changes().context
        read = addon_export.count_faces(context, kept, triangulated=known.is_triangulated)
        stored = read + removed if stored is None else stored
        if read < stored:
            report.loss(
                "faces-left-out-by-importer",
                "{:,} of {} left out by Blender's importer: not valid, or with the same vertices as another",
                stored - read,
                counted(stored, known.face_label),
            )
    return collection, report.messages


def _rate_of(scene: Any) -> float:
    return float(scene.render.fps / scene.render.fps_base)


def _set_rate(scene: Any, rate: float) -> None:
    """Set the frame rate of a scene, as ``fps`` (an integer) divided by ``fps_base``."""
    scene.render.fps = max(1, math.ceil(rate - _NEAR_A_RATE))
    scene.render.fps_base = scene.render.fps / rate


def _unstretch(scene: Any) -> None:
    """Replace *Time Stretching*, which Blender's exporters ignore, by another frame rate."""
    from ...blender_data.animation.scene_time import SceneTime

    time = SceneTime.of(scene)
    if time.stretch != 1.0:
        scene.frame_start, scene.frame_end = (
            round(time.key_frame(end)) for end in (scene.frame_start, scene.frame_end)
        )
        _set_rate(scene, time.key_rate)
        scene.render.frame_map_old = scene.render.frame_map_new


def _take_stated_rate(scene: Any) -> float:
    """Return the frame rate stored in the file, or 0, and remove it from the scene's custom properties."""
    stated = scene.get(_STATED_RATE)
    if stated is None:
        return 0.0
    del scene[_STATED_RATE]
    lowest, highest = _STATED_RATES
    return float(stated) if isinstance(stated, int | float) and lowest <= stated <= highest else 0.0


def _rate_of_keys(session: BlendSession, scene: Any, stated: float) -> float:
    """Return a frame rate at which all keys of the open file's actions are on whole frames, or 0.

    ``stated`` is preferred. If it does not fit, the file was edited at another rate.
    """
    from ...blender_data.addon_formats.addon_export import key_interval

    interval = key_interval(session.load_for_changes().data.actions)
    if not interval:
        return stated
    rate = _rate_of(scene) / interval
    frames = stated / rate  # stated frames from one key to the next
    if frames > 0.5 and abs(frames / round(frames) - 1) < _NEAR_STATED_RATE:
        return stated
    nearest = round(rate)
    if 1 <= nearest <= _HIGHEST_RATE and abs(rate - nearest) < _NEAR_A_RATE:
        return nearest
    gaps = {common: common / rate for common in _COMMON_RATES}
    return next((common for common, gap in gaps.items() if gap > 1.5 and abs(gap - round(gap)) < _NEAR_A_FRAME), 0)


def write_objects(
    session: BlendSession,
    objects: Sequence[Any],
    clips: Sequence[str],
    target: Path,
    known: BlenderFormat,
    *,
    dry_run: bool = False,
) -> tuple[list[OutputFile], list[Message]]:
    """Export objects of the open file with Blender's exporter; return the files, the chosen one last, and messages.

    They are written to a temporary folder. The open file is modified.

    Parameters
    ----------
    clips:
        Names of the objects' animations.
    target:
        Path of the chosen file, after which the others are named.
    dry_run:
        Whether the contents are not needed, so that nothing is exported if only these depend on it.

    Raises
    ------
    ExportError
        Blender reports an error.
    """
    from ...blender_data.addon_formats import addon_export, image_files, missing_data, unsupported_data
    from ...blender_data.exporting.models import gltf_export

    context = session.load_for_changes().context
    addon_export.make_local()
    context.scene.unit_settings.scale_length = 1.0  # only some exporters apply the unit scale
    _unstretch(context.scene)
    report = Report(addon_export.apply_modifiers(context, objects) if known.capabilities.skeletons else [])
    addon_export.unlink_disabled(objects)
    addon_export.select(context, objects)
    addon_export.set_range(context, objects)
    addon_export.name_clips(objects)
    if known.has_pairs:
        addon_export.name_data_after_objects(objects)
    addon_export.forget_own_properties(objects)
    unsupported_data.turn_green_up(objects)
    more = _animation_arguments(context.scene, clips, known)
    if known.holds_times and clips:
        context.scene[_STATED_RATE] = _rate_of(context.scene)
    exponent = _exponent(objects) if known.has_fixed_decimals else 0
    if exponent:
        more["global_scale"] = 10.0**exponent
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="meshferry-"))
        chosen = Path(folder, target.name)
        used = image_files.used_materials(objects) if known.capabilities.materials else []
        blocks = missing_data.used_by(objects, with_materials=bool(used))
        images = [image for image in session.load_for_changes().data.images if image in blocks]
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="meshferry-")))
        own = image_files.own_image_files(place, target.stem if known.is_set else "", images)
        with session.quiet():  # Blender prints the names of images
            files = stack.enter_context(own)
        if known.drops_duplicates:
            stack.enter_context(unsupported_data.separated_faces(objects))
        plain = unsupported_data.report_mixtures(used, report)
        if dry_run and not (known.is_set or any(map(image_files.shown_images, plain))):
            return [OutputFile(target.name, b"")], report.messages
        if known.scales_before_rotating:
            stack.enter_context(gltf_export.scaled_before_rotated(used, report))
        try:
            for text in _run(session, known.exporter, {**known.writing, **more}, chosen):
                report.note("blender-exporter-warning", text)
        except RuntimeError as problem:
            raise ExportError("Blender cannot write it: {}", operator_error(problem)) from None
        if not chosen.is_file():
            raise ExportError("Blender cannot write it: it made no file")
        if exponent:
            chosen.write_bytes(_with_exponent(chosen.read_bytes(), -exponent))
        outputs = _outputs(Path(folder), chosen)
        is_gltf = chosen.suffix.lower() in _GLTF
        names = [image.get("name", "") for image in gltf_json(chosen).get("images", [])] if is_gltf else None
        image_files.report_not_written(plain, files, outputs, names, report)
        return outputs, report.messages


def _animation_arguments(scene: bpy.types.Scene, clips: Sequence[str], known: BlenderFormat) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if known.animation:
        more[known.animation] = bool(clips)  # without clips, it would add keys to constant channels
    if known.every_action:
        more[known.every_action] = len(clips) > 1
        if len(clips) == 1:
            scene.name = clips[0]  # exporters name a single animation after the scene
    return more


def _exponent(objects: Sequence[Any]) -> int:
    """Return the number of additional decimals that the smallest object needs, as a power of ten for scaling."""
    sizes = [size for obj in objects if (size := max(obj.dimensions)) > 0]
    smallest = min(sizes, default=1.0)
    return 0 if smallest >= _SMALL else min(_HIGHEST_EXPONENT, math.ceil(-math.log10(smallest)))


def _with_exponent(data: bytes, exponent: int) -> bytes:
    """Append an exponent to each vertex coordinate of an .obj file, which undoes the scaling."""
    scaled = rb"v \g<1>e%d \g<2>e%d \g<3>e%d" % (exponent, exponent, exponent)
    return re.sub(rb"^v (\S+) (\S+) (\S+)", scaled, data, flags=re.MULTILINE)


def _outputs(folder: Path, chosen: Path) -> list[OutputFile]:
    beside = sorted(path for path in folder.rglob("*") if path.is_file() and path != chosen)
    return [OutputFile(path.relative_to(folder).as_posix(), path.read_bytes()) for path in (*beside, chosen)]


def require_writer(session: BlendSession, known: BlenderFormat) -> None:
    """Raise an ExportError if this Blender cannot write the format."""
    try:
        _operator(session, known.exporter)
    except RuntimeError as problem:
        raise ExportError("Blender cannot write it: {}", operator_error(problem)) from None


def _run(session: BlendSession, name: str, arguments: Mapping[str, Any], path: Path) -> list[str]:
    """Run an operator without arguments that it does not have; return its logged warnings.

    Raises
    ------
    RuntimeError
        The operator fails, or does not exist.
    """
    operator, known = _operator(session, name)
    given = {key: value for key, value in arguments.items() if key in known}
    return session.call(operator, errors=True, filepath=str(path), **given)


def _operator(session: BlendSession, name: str) -> tuple[Any, Any]:
    """Return an operator and its properties."""
    operator = attrgetter(name)(session.load_for_changes().ops)
    # Listing the names of all operators instead takes several milliseconds.
    with contextlib.suppress(KeyError):
        return operator, operator.get_rna_type().properties
    raise RuntimeError(f"this Blender has no {name}; enable the add-on that brings it, or take a Blender built with it")
