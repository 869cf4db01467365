"""The base of all exports from Blender."""

from __future__ import annotations

from collections.abc import Iterable

from ...io_formats.core.findings import Finding
from ...io_formats.core.scene import Scene
from ..properties import stored_fields
from ..steps import Steps
from .clips.clip_sources import ClipSource
from .export_request import ExportRequest


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
        self.notices: list[str] = []

    def warn(self, finding: Finding) -> None:
        """Add a warning that names objects to select or offers a fix."""
        self.notices.append(str(finding))
        self.scene.findings.append(finding)

    def say_ranges(self, clips: Iterable[ClipSource]) -> None:
        """Report keys outside the frame ranges of imported actions."""
        for text, is_lost in dict.fromkeys(message for clip in clips for message in clip.messages):
            self.notices.append(text)
            if not is_lost:
                self.scene.notes.append(text)

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps; its ``warnings`` are for the user.

        Raises
        ------
        ExportError
            The objects cannot be exported; the subclasses list the causes.
        """
        raise NotImplementedError
