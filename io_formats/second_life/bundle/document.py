"""A model bundle: an LLSD map and the assets in it (formats page, section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...core.messages import Message
from ..asset.codec import Asset

VERSION = 3
"""The only version that the viewer reads."""

MESHES = "mesh"
INSTANCES = "instance"


@dataclass
class Bundle:
    """A model bundle. ``instances.instances_of`` decodes its instances, ``bundle_of`` encodes them."""

    values: dict[str, Any] = field(default_factory=dict)
    """The map in its original order; the content of ``mesh`` is stored in ``meshes`` and written from there."""
    meshes: list[Asset] = field(default_factory=list)
    warnings: list[Message] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the first model, or empty."""
        name = self.values.get("name", "")
        return name if isinstance(name, str) else ""
