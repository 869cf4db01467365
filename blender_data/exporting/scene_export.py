"""The base of all exports from Blender."""

from __future__ import annotations

from collections.abc import Iterable, Sized

import bpy

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import joined
from ...io_formats.core.scene import Scene
from ..animation.clip_sources import ClipSource
from ..export_options import ExportRequest
from ..properties import stored_fields
from ..steps import Steps
from .object_selection import because


class SceneExport:
    """One export: the request, the resulting scene, and its warnings."""

    def __init__(self, request: ExportRequest) -> None:
        self.context = request.context
        self.source = request.source
        self.options = request.options
        self.file_clips = request.file_clips
        self.capabilities = request.capabilities
        self.scene = Scene(request.name, tolerance=request.options.tolerance)
        if self.source.collection is not None:
            self.scene.source_name = stored_fields(self.source.collection.meshferry, Scene).get("source_name", "")
        self.report = self.scene.report

    def report_ranges(self, clips: Iterable[ClipSource]) -> None:
        """Report keys outside the frame ranges of imported actions."""
        self.scene.warnings += [message for clip in clips for message in clip.messages]

    def leave_out_instances(self, objects: Iterable[bpy.types.Object]) -> None:
        """Report that the options leave out the instances shown by objects."""
        names = sorted(obj.name for obj in objects if obj.instance_type != "NONE")
        if names:
            self.report.loss("instances-left-out", "Instances left out as chosen: {}", joined(names[:8]))

    def require_nodes(self, nodes: Sized) -> None:
        """Raise an error if there are no nodes; its text gives the warnings as the reason."""
        if not len(nodes):
            raise ExportError("There is no mesh to export{}", because(self.scene.warnings))

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps; its ``warnings`` are for the user.

        Raises
        ------
        ExportError
            The objects cannot be exported; the subclasses list the causes.
        """
        raise NotImplementedError
