"""A model bundle, one to one: an LLSD map, and the assets in it (formats page, section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..mesh.document import Asset

VERSION = 3
"""The only one that the viewer takes."""

MESHES = "mesh"
INSTANCES = "instance"


@dataclass
class Bundle:
    """A model bundle. ``instances.instances_of`` makes objects of its instances, and back."""

    values: dict[str, Any] = field(default_factory=dict)
    """The map as it is, with its order; what ``mesh`` holds is in ``meshes`` and written from there."""
    meshes: list[Asset] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the first model; empty: none."""
        name = self.values.get("name", "")
        return name if isinstance(name, str) else ""
