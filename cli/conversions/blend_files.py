""".blend files <-> scenes; besides ``blender_exchange``, only this module of the command line uses Blender.

Blender is loaded when it is first needed. If the add-on is not enabled, its properties are registered temporarily:
classes that stay registered hang Blender 4.5 at exit.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import io
import logging.handlers
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...blender_data.export_options import ExportOptions
from ...blender_data.importing.import_options import ImportOptions
from ...blender_data.operator_calls import operator_error
from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.errors import ExportError, FormatError, MeshferryError, MissingLibraryError, refusal
from ...io_formats.core.messages import Message, Report
from ...io_formats.core.options import Options, option
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import real_place, remove_file, rename_over, temporary_prefix, why_not_written
from ...io_formats.disk.reach import Reach
from ...io_formats.disk.special_files import require_regular
from .. import interruption
from ..environment import limited_cores
from ..output import one_line

if TYPE_CHECKING:
    import bpy

    from ...io_formats.core.scene import Scene


class BlendOptions(Options):
    """The options of .blend files."""

    use_compressed_blend: bool = option("Compress", "Write a compressed .blend file", default=False, section="File")
    use_assets: bool = option(
        "Assets",
        "Mark the collection of each file as an asset, with tags for its format and program. A batch adds "
        "previews, and a catalog for each folder",
        default=False,
        section="File",
    )


_NO_REASON = "Failed to write blendfile"
"""Beginning of the messages of Blender 5.3, before an error number if there is one."""
_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_ZSTD_END = b"\xb1\xea\x92\x8f"
"""Last bytes of a compressed .blend file: the magic number of the table of its zstd frames."""
_LONGEST_END = 64
"""Bytes at the end of a .blend file that contain its last block, ``ENDB``."""
_LIKELY_FULL = 2**28
"""Free bytes below which a failure while writing a file most likely means that the disk is full."""

_NOT_EXPORTABLE = frozenset({"CAMERA", "LIGHT", "LIGHT_PROBE", "SPEAKER"})


@dataclass(frozen=True)
class BlendPart:
    """A part of the open .blend file that becomes a separate file."""

    collection: Any
    """A ``bpy.types.Collection``, or None for the whole scene."""
    left_out: tuple[Message, ...] = ()
    """Messages about data that Blender's own importer left out."""

    @property
    def name(self) -> str:
        return self.collection.name if self.collection is not None else ""


class CannotDrawError(ExportError):
    """Blender cannot draw pictures of any file on this machine."""

    def __init__(self, reason: object) -> None:
        super().__init__("Blender cannot draw a picture: {}", reason)


class BlendSession:
    """Loads Blender on first use and keeps the add-on's properties registered until the end of the ``with`` block.

    Parameters
    ----------
    show_chatter:
        Whether Blender's console output is printed.
    threads:
        Number of threads of Blender as a module; 0 for its default, one for each core. For small files, the threads of
        all cores busy-wait for each other, which doubles the processor time.
    number:
        Number of this process among those of a run; see :func:`.environment.limited_cores`.
    """

    def __init__(self, *, show_chatter: bool = False, threads: int = 0, number: int = 0) -> None:
        self._cores = threads, number
        self._bpy: Any = None
        self._registered: Any = None
        self._show_chatter = show_chatter
        self._empty_file: Any = None
        """The ``EmptyFile`` that can reset the open file; None once other code may have modified the file."""

    def __enter__(self) -> BlendSession:
        return self

    def __exit__(self, *_problem: object) -> None:
        if self._registered is not None:
            self._registered.unregister()
            self._registered = None

    def load_for_changes(self) -> Any:
        """Return the ``bpy`` module for changes that :meth:`start_empty` cannot reset, so that it loads a new file."""
        self._empty_file = None
        return self.load()

    def load(self) -> Any:
        """Load Blender with the add-on's properties registered; return its module.

        Raises
        ------
        MissingLibraryError
            This Python has no ``bpy`` module, or it cannot be loaded.
        """
        if self._bpy is None:
            with limited_cores(*self._cores):
                bpy = _import_bpy()
            if not hasattr(bpy.types.Collection, "meshferry"):
                properties: Any = importlib.import_module("...blender_data.properties", __package__)
                properties.register()
                self._registered = properties
            self._bpy = bpy
        return self._bpy

    def start_empty(self) -> None:
        """Replace the open file with an empty one that has Blender's factory settings, not those of the start-up file.

        If the open file was only used for imports and saves, it is reset, which is faster.
        """
        context = self.load().context
        if self._empty_file is not None and self._empty_file.restore(context):
            return
        self.call(self.load_for_changes().ops.wm.read_homefile, use_factory_startup=True, use_empty=True)

        self._empty_file = EmptyFile(context)

    @contextlib.contextmanager
    def emptied_afterwards(self) -> Iterator[None]:
        """Let the next :meth:`start_empty` reset the open file, which saves the 9 ms for loading an empty one.

        The ``with`` block may only add data blocks and run Blender's exporters. After an exception the file is not
        reset.
        """
        empty_file = self._empty_file
        yield
        self._empty_file = empty_file

    def open(self, path: Path, reach: Reach | None = None) -> list[Message]:
        """Open a .blend file, without running scripts in it; return messages about files and scenes left out.

        By default, the user gave no folders.

        Raises
        ------
        FormatError
            It cannot be read or is not a .blend file.
        ExportError
            Only other scenes than the active one have models.
        """
        require_readable(path)
        try:
            read = self.load_for_changes().ops.wm.open_mainfile
            self.call(read, filepath=str(path.absolute()), load_ui=False, use_scripts=False)
        except RuntimeError as problem:
            raise FormatError("Blender cannot open it: {}", operator_error(problem), file=str(path)) from None
        from ...blender_data.addon_formats import missing_data, outside_files

        report = Report()
        missing_data.report_other_scenes(self.load_for_changes().context.scene, report)
        outside_files.leave_out(reach or Reach.of(path), report, is_blend=True)
        return report.messages

    def save(self, path: Path, *, compress: bool, is_flushed: bool = True, within: Path | None = None) -> None:
        """Save the open file to ``path`` atomically.

        Parameters
        ----------
        is_flushed:
            Flush the file to disk; see ``atomic_write.replace_file``.
        within:
            Folder that links must not lead out of; see ``atomic_write.real_place``.

        Raises
        ------
        ExportError
            The operating system reports an error. An existing file is unchanged.
        """
        place = real_place(path, within).absolute()
        # In the same folder, so that relative paths in the file stay valid.
        lock_path = place.with_name(f"{temporary_prefix(place, suffix='.blend')}{secrets.token_hex(4)}.part")
        temporary = lock_path.with_name(lock_path.name + ".blend")
        held = None
        try:
            held = locks.hold(lock_path)
            self._run(
                self.load().ops.wm.save_as_mainfile,
                filepath=str(temporary),
                check_existing=False,
                compress=compress,
                copy=True,
            )
            _replace(place, temporary, is_flushed=is_flushed)
        except RuntimeError as problem:
            reason = _why_not_saved(place.parent, problem)
            raise ExportError("the file cannot be written: {}", refusal(reason), file=path) from reason
        except OSError as problem:
            raise ExportError(why_not_written(path, problem), file=path) from None
        finally:
            with contextlib.suppress(OSError):  # on a read-only disk, removing a missing file is an error, too
                remove_file(temporary)
            if held is not None:
                locks.remove(lock_path, held)

    def render(self, scene: Any, path: Path) -> None:
        """Render a ``bpy.types.Scene`` of the open file to a picture, in the format of its settings.

        Raises
        ------
        CannotDrawError
            Blender cannot render here, or cannot write the file.
        """
        scene.render.filepath = str(path.absolute())
        scene.render.use_file_extension = False
        try:
            self.call(self.load_for_changes().ops.render.render, write_still=True, scene=scene.name)
        except RuntimeError as problem:
            raise CannotDrawError(operator_error(problem)) from None
        if not path.is_file():
            raise CannotDrawError("it writes none on this machine, which may lack OpenGL")

    def import_scene(
        self,
        scene: Scene,
        options: ImportOptions,
        source: Path,
        armatures: list[Any] | None = None,
        given: Mapping[str, Any] | None = None,
        reach: Reach | None = None,
    ) -> Any:
        """Add a scene to the open file; return the importer's ``ImportResult``.

        ``armatures`` lists the armatures of earlier files of the job, the oldest first; new ones are appended.
        ``given`` are the options that the scene was read with, ``reach`` the folders of its images.
        """
        from ...blender_data.importing import armature_matching, import_options, importer

        there = armatures if armatures is not None else []
        empty_file, context = self._empty_file, self.load().context
        self._empty_file = None  # after a failed import the file cannot be reset
        layer = context.view_layer
        if there and layer.objects.active is None:
            layer.objects.active = there[0]  # on the command line, "active" is the first imported armature
        chosen = armature_matching.choose_for_scene(context, scene, there, options.armature)
        if chosen is None:
            scene.warnings += armature_matching.mismatches(context, scene, there, options.armature)
        path = str(source.absolute())
        request = import_options.ImportRequest(context, scene, options, path, chosen, given=given or {}, reach=reach)
        has_sources = scene.placement is not None and any(model.source for model in scene.placement.models)
        with self.quiet(errors=has_sources):  # Blender's importer lists missing textures there
            result = importer.import_scene(request)
        self._empty_file = empty_file
        there += [armature for armature in result.armatures if armature not in there]
        return result

    def export_scene(self, part: BlendPart, options: ExportOptions, name: str, capabilities: Capabilities) -> Scene:
        """Export a part of the open file as a scene."""
        from ...blender_data import export_options
        from ...blender_data.exporting import exporter, object_selection

        source = object_selection.Source("SCENE" if part.collection is None else "COLLECTION", part.collection)
        request = export_options.ExportRequest(self.load_for_changes().context, source, options, name, capabilities)
        with self.quiet():
            return exporter.export_scene(request)

    def call(self, operator: Callable[..., Any], *, errors: bool = False, **arguments: Any) -> list[str]:
        """Run an operator without its console output. If it fails, the RuntimeError states the cause.

        Return the warnings that Python code of the operator logged. A crash writes to standard error, which is not
        redirected unless ``errors`` is set.
        """
        self._empty_file = None
        collector = logging.handlers.BufferingHandler(sys.maxsize)  # the glTF add-on logs its warnings
        collector.setLevel(logging.WARNING)
        logging.getLogger().addHandler(collector)
        try:
            self._run(operator, errors=errors, **arguments)
        finally:
            logging.getLogger().removeHandler(collector)
        return [one_line(record.getMessage()) for record in collector.buffer]

    def _run(self, operator: Callable[..., Any], *, errors: bool = False, **arguments: Any) -> None:
        with self.quiet(errors=errors):
            try:
                operator(**arguments)
            except RuntimeError:
                interruption.check()  # an operator may have turned KeyboardInterrupt into a RuntimeError
                raise

    def quiet(self, *, errors: bool = False) -> contextlib.AbstractContextManager[None]:
        """Suppress Blender's console output unless the user asked for it."""
        return contextlib.nullcontext() if self._show_chatter else _without_chatter(errors=errors)


def parts_to_export(scene: Any, wanted: Sequence[str], *, several: bool, with_meshes: bool) -> list[BlendPart]:
    """Return the parts of a Blender scene to export.

    Parameters
    ----------
    wanted:
        Names of collections. If empty, imported collections, or if there are none, those that are not empty.
    several:
        Whether several files may be written; otherwise several collections are exported as one scene.
    with_meshes:
        Whether the files hold meshes. Then collections of which all meshes are bodies to fit clothes on are left out.

    Raises
    ------
    ExportError
        A wanted collection does not exist.
    """
    from ...blender_data.exporting.object_selection import has_only_bodies

    collections = {collection.name: collection for collection in scene.collection.children_recursive}
    if wanted:
        return [BlendPart(_collection(collections, name)) for name in dict.fromkeys(wanted)]
    bodies = [one for one in collections.values() if with_meshes and has_only_bodies(one.all_objects)]
    found = [one for one in collections.values() if one.meshferry.from_file and one not in bodies]
    if not found and not any(one.type not in _NOT_EXPORTABLE for one in scene.collection.objects):
        children = scene.collection.children
        found = [child for child in children if any(one.type not in _NOT_EXPORTABLE for one in child.all_objects)]
    if len(found) == 1 or (found and several):
        return [BlendPart(one) for one in found if one not in bodies] or [BlendPart(None)]
    return [BlendPart(None)]


def _import_bpy() -> Any:
    try:
        with interruption.deferring():
            return importlib.import_module("bpy")
    except ModuleNotFoundError as problem:
        if problem.name != "bpy":
            raise
        raise MissingLibraryError(
            'A .blend file needs Blender. Install it for this Python with: pip install "bpy==4.5.*" "numpy<2" (Python '
            '3.11) or pip install "bpy==5.2.*" (Python 3.13), or run: blender --command meshferry'
        ) from None
    except MemoryError:
        raise MeshferryError("There is not enough memory to load Blender's module bpy") from None
    except ImportError as problem:
        text = one_line(str(problem))
        if re.search("cannot allocate memory(?! in static TLS)|failed to map segment|paging file", text, re.IGNORECASE):
            raise MeshferryError("There is not enough memory to load Blender's module bpy: {}", text) from None
        libraries = ""
        if re.search(r"lib\S+: cannot open shared object file", text):
            libraries = (
                ". It needs system libraries, on Debian and Ubuntu: apt install libx11-6 libxrender1 libxfixes3 libxi6 "
                "libxkbcommon0 libxext6 libsm6 libice6 libgl1"
            )
        raise MissingLibraryError("Blender's module bpy cannot be loaded: {}{}", text, libraries) from None


def _replace(place: Path, temporary: Path, *, is_flushed: bool) -> None:
    """Replace a file by the one that Blender saved, which must be complete."""
    if not _is_complete(temporary):
        raise RuntimeError
    if is_flushed:
        with temporary.open("r+b") as written:
            os.fsync(written.fileno())
    if place.exists():
        temporary.chmod(place.stat().st_mode & 0o777)
    rename_over(temporary, place)


def _is_complete(path: Path) -> bool:
    """Return whether a .blend file exists and ends as one.

    Blender reports success for a compressed file that was truncated because the disk is full.
    """
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LONGEST_END))
            end = stream.read()
    except FileNotFoundError:
        return False
    return end.endswith(_ZSTD_END) or end.rstrip(b"\0").endswith(b"ENDB")


def _why_not_saved(folder: Path, problem: RuntimeError) -> Exception:
    """Return why Blender could not save a file to a folder.

    If writing fails after the file was opened, Blender reports the last error number of its thread. On a full disk this
    can be an unrelated one, such as "No such file or directory", or none.
    """
    text = operator_error(problem).removeprefix(_NO_REASON).removeprefix(": ") if str(problem) else ""
    for number in _WRITE_ERRORS:
        if text == os.strerror(number):
            return OSError(number, text)
    if text and text not in map(os.strerror, errno.errorcode):
        return RuntimeError(text)
    with contextlib.suppress(OSError):
        if shutil.disk_usage(folder).free < _LIKELY_FULL:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return RuntimeError("Blender gave up, as it does on a full disk or beyond a quota or size limit")


def _collection(collections: Mapping[str, Any], name: str) -> Any:
    if name not in collections:
        known = ", ".join(f"'{one}'" for one in collections) or "none"
        raise ExportError("There is no collection '{}' in the scene; there are {}", name, known)
    return collections[name]


def require_readable(path: Path) -> None:
    """Raise a FormatError with the operating system's message if a file is not regular or cannot be opened."""
    require_regular(path)
    try:
        with path.open("rb"):
            pass
    except OSError as problem:
        raise FormatError("The file cannot be read: {}", refusal(problem), file=str(path)) from None


@contextlib.contextmanager
def _without_chatter(*, errors: bool) -> Iterator[None]:
    """Suppress lines such as "Info: Saved …", which Blender prints through Python or directly.

    With ``errors``, also suppress standard error, to which importers print progress.
    """
    wanted: list[tuple[Any, int, Any]] = [(sys.__stdout__, 1, contextlib.redirect_stdout)]
    if errors:
        wanted.append((sys.__stderr__, 2, contextlib.redirect_stderr))
    with contextlib.ExitStack() as stack:
        for stream, number, redirect in wanted:
            if stream is not None:  # the descriptor of a closed stream may be that of another file
                stack.enter_context(redirect(io.StringIO()))
                stack.enter_context(redirected(number, stack.enter_context(open(os.devnull, "wb"))))
        yield


@contextlib.contextmanager
def redirected(number: int, stream: IO[bytes]) -> Iterator[None]:
    """Temporarily redirect a file descriptor to a stream."""
    kept = os.dup(number)
    try:
        os.dup2(stream.fileno(), number)
        yield
    finally:
        _flush_c_streams()
        os.dup2(kept, number)
        os.close(kept)


def _flush_c_streams() -> None:
    """Flush the output buffers of C, which Python cannot access."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None).fflush(None)


_STAYING = frozenset({"scenes", "screens", "window_managers", "workspaces"})
"""Types of data blocks that an empty file contains and no import creates."""
_OTHERWISE = frozenset({"all_ids", "libraries", "shape_keys"})
"""Collections of ``bpy.data`` that are not emptied: the list of all data, libraries, and shape keys (which are removed
with their meshes)."""
_PLAIN = frozenset({"BOOLEAN", "INT", "FLOAT", "STRING", "ENUM"})
"""Types of properties that are restored."""


class EmptyFile:
    """The state of an empty open file, to which the file is reset after each import.

    Resetting removes all data blocks except the scene, and restores the settings of the scene, its rendering and its
    units. Other changes remain, so it must only be used after imports (:func:`.importing.importer.import_scene`) and
    Blender's exporters.
    """

    def __init__(self, context: bpy.types.Context) -> None:
        scene: Any = context.scene  # an open file has a scene
        self._settings = [_values(owner) for owner in _owners(scene)]
        self._own_keys = frozenset(scene.keys())
        data: Any = context.blend_data
        kinds = (prop.identifier for prop in data.bl_rna.properties if prop.type == "COLLECTION")
        self._kinds = [kind for kind in kinds if kind not in _STAYING | _OTHERWISE]
        self._staying = _count_staying(data)

    def restore(self, context: bpy.types.Context) -> bool:
        """Remove everything that was imported. Return False, without changes, if the file is in an unexpected state."""
        data: Any = context.blend_data
        if len(data.libraries) or _count_staying(data) != self._staying:
            return False
        data.batch_remove([block for kind in self._kinds for block in getattr(data, kind)])
        scene: Any = context.scene
        for owner, values in zip(_owners(scene), self._settings, strict=True):
            for name, value in values.items():
                if getattr(owner, name) != value:
                    setattr(owner, name, value)
        for key in set(scene.keys()) - self._own_keys:
            if key not in scene.bl_rna.properties:  # up to 4.5 registered properties become keys when read
                del scene[key]
        return True


def _count_staying(data: bpy.types.BlendData) -> list[int]:
    return [len(getattr(data, kind)) for kind in sorted(_STAYING)]


def _owners(scene: bpy.types.Scene) -> tuple[Any, ...]:
    return scene, scene.render, scene.unit_settings


def _values(owner: Any) -> dict[str, Any]:
    """Return the writable scalar properties of an owner, by name."""
    return {
        prop.identifier: getattr(owner, prop.identifier)
        for prop in owner.bl_rna.properties
        if prop.type in _PLAIN
        and not prop.is_readonly
        and not getattr(prop, "is_array", False)
        and not getattr(prop, "is_deprecated", False)
    }
