"""What every export from Blender begins with, whatever kind of file it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bpy

from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.findings import Finding
from ...io_formats.core.scene import Scene
from ..properties import stored_fields
from ..steps import Steps
from .object_selection import Source


class SceneExport:
    """One export: what is asked for, the scene that it becomes, and what there is to tell of it.

    Parameters are those of :func:`.exporter.export_scene`.
    """

    def __init__(
        self,
        context: bpy.types.Context,
        source: Source,
        options: Mapping[str, Any],
        name: str,
        capabilities: Capabilities,
    ) -> None:
        self.context = context
        self.source = source
        self.options = options
        self.capabilities = capabilities
        self.scene = Scene(name)
        self.scene.tolerance = float(options["tolerance"])
        if source.collection is not None:
            self.scene.source_name = stored_fields(source.collection.meshferry, Scene).get("source_name", "")
        self.notices: list[str] = []

    def warn(self, finding: Finding) -> None:
        """Add a warning that names objects to select or has a fix."""
        self.notices.append(str(finding))
        self.scene.findings.append(finding)

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps; its ``warnings`` are for the user.

        Raises
        ------
        ExportError
            See the kinds of exports.
        """
        raise NotImplementedError
