"""Data shared by the steps of one import, and its undo."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from ...io_formats import registry
from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Message, Report, distinct
from ...io_formats.core.scene import FloatArray, Scene, VertexTrack
from ...io_formats.disk.atomic_write import replace_file
from ...io_formats.disk.reach import Reach
from ..operator_calls import Selection
from ..rigging.joint_poses import BoneMap
from . import armatures
from .actions import PlayedBefore
from .import_options import ImportRequest
from .materials import MaterialFinder


class ImportContext:
    """One import: its request, the data blocks that it has created so far, and its warnings."""

    def __init__(self, request: ImportRequest) -> None:
        self.request = request
        self.scene = request.scene
        self.options = request.options
        self.report = Report(list(request.scene.warnings))
        scene = request.context.scene
        times = ((scene.render, "fps"), (scene.render, "fps_base"), (scene, "frame_start"), (scene, "frame_end"))
        self.times_before = [(owner, name, getattr(owner, name)) for owner, name in times]
        self.made: list[bpy.types.ID] = []
        self.caches: list[tuple[Path, bytes | None]] = []
        """Paths of the files and folders that were written, and the previous content of each (None if it is new)."""
        self.objects: list[bpy.types.Object] = []
        """The object of each node."""
        self.armatures: list[bpy.types.Object] = []
        """The armatures that this import created."""
        self.bones: list[BoneMap | None] = []
        """The bones of each skeleton; None if the import leaves the skeleton out."""
        self.shape_restorers: list[Callable[[], None]] = []
        """Functions that give existing armatures the shapes that they had before."""
        self.shapes = 0
        """Number of figures whose sliders were set."""
        self.disconnected: list[tuple[bpy.types.Object, list[str]]] = []
        """Bones of existing armatures that were disconnected from their parents."""
        self.selection = Selection(request.context)
        self.played = PlayedBefore(request.armature)
        self.materials = MaterialFinder(
            request.options,
            given=request.scene.materials,
            folder=Path(request.source_path).absolute().parent if request.source_path else None,
            reach=request.reach or (Reach.of(request.source_path, is_asked=False) if request.source_path else None),
            report=self.report,
            keep_file=lambda path: self.caches.append((path, None)),
        )
        self.tracks: dict[int, list[tuple[int, VertexTrack]]] = {}
        """Vertex tracks by index of the node, each with the index of its clip."""
        self._add_vertex_tracks()

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the file's format.

        For a scene of unknown origin, vertices are assumed to be possibly split.
        """
        known = registry.find(self.scene.format)
        return known.capabilities if known is not None else Capabilities(splits_vertices=True)

    @property
    def is_placed(self) -> bool:
        """Whether the file is of a format whose objects are models with levels of detail and physics."""
        return self.capabilities.lod_models

    def _add_vertex_tracks(self) -> None:
        for number, clip in enumerate(self.scene.clips):
            for track in clip.vertices:
                mesh = self.scene.nodes[track.target].mesh
                if mesh is not None:
                    whole = VertexTrack(track.target, _with_resting_points(track.points, mesh.points))
                    self.tracks.setdefault(track.target, []).append((number, whole))

    def of_model(self, scene: Scene, file: str, *, keeps_rate: bool) -> ImportContext:
        """Return a context to import a model that the file places; its data blocks count as created by this import.

        Parameters
        ----------
        file:
            Path of the model's file; empty to store the placing file as the origin of the model's animations.
        keeps_rate:
            Keep the frame rate and range of the scene, since another rate would change the speed of earlier actions.
        """
        sets_rate = self.options.use_file_frame_rate and not keeps_rate
        options = self.options.with_values(use_file_frame_rate=sets_rate)
        path = file or self.request.source_path
        request = replace(self.request, scene=scene, armature=None, options=options, source_path=path)
        other = ImportContext(request)
        other.made, other.caches, other.materials = self.made, self.caches, self.materials
        other.report = Report()
        return other

    def keep(self, block: Any) -> Any:
        """Register a data block as created by this import, so that :meth:`undo` removes it; return it."""
        self.made.append(block)
        return block

    def finished(self, result: ImportResult) -> ImportResult:
        """Return a result with the warnings, the new data blocks and the undo of this import."""
        bones = sum(len(armature.data.bones) for armature in result.armatures if armature in result.objects)
        made, warnings = [*self.made, *self.materials.made], distinct(self.report.messages)
        return replace(result, warnings=warnings, bones=bones, shapes=self.shapes, undo=self.undo, made=made)

    def discard(self, blocks: Collection[bpy.types.ID]) -> None:
        """Remove data blocks that this import created and no longer needs."""
        unneeded = set(blocks)
        self.made[:] = [block for block in self.made if block not in unneeded]
        bpy.data.batch_remove(blocks)

    def undo(self) -> None:
        """Remove everything that this import created.

        Restore frame rate, range, selection, mode and connections of bones.
        """
        self.selection.restore()
        for owner, name, value in self.times_before:
            setattr(owner, name, value)
        self.played.restore()
        for restore in reversed(self.shape_restorers):
            restore()
        for armature, bones in self.disconnected:
            armatures.connect(self.request.context, armature, bones, is_connected=True)
        blocks = [*self.made, *self.materials.made]
        libraries = [block for block in blocks if isinstance(block, bpy.types.Library)]
        bpy.data.batch_remove([block for block in blocks if block not in libraries])
        for library in libraries:
            bpy.data.libraries.remove(library)
        for path, replaced in reversed(self.caches):
            with contextlib.suppress(OSError, MeshferryError):
                if path.is_dir():
                    path.rmdir()
                elif replaced is None:
                    path.unlink()
                else:
                    replace_file(path, replaced)


@dataclass
class ImportResult:
    """Result of an import: the created objects, and warnings for the user."""

    collection: bpy.types.Collection
    objects: list[bpy.types.Object]
    triangles: int
    armatures: list[bpy.types.Object]
    """Armatures with the bones of the file: new armatures, which are also in ``objects``, or the armature of the
    request."""
    actions: int
    warnings: list[Message] = field(default_factory=list)
    bones: int = 0
    """Number of new bones."""
    shapes: int = 0
    """Number of armatures whose sliders were set."""
    undo: Callable[[], None] = lambda: None
    """Function that removes all data blocks and files of the import, and restores the changed settings."""
    made: list[bpy.types.ID] = field(default_factory=list)
    """All new data blocks."""


def _with_resting_points(moving: FloatArray, rest: FloatArray) -> FloatArray:
    """Append points at rest to frames of the first K points, (F, K, 3).

    The result has frames of all points, (F, P, 3).
    """
    if moving.shape[1] == len(rest):
        return moving
    still = np.broadcast_to(rest[moving.shape[1] :], (len(moving), len(rest) - moving.shape[1], 3))
    return np.concatenate((moving, still), axis=1)
