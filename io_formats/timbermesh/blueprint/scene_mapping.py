"""Document -> Scene."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from .document import Blueprint
from .placement_builder import PlacementBuilder


def to_scene(document: Blueprint, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a blueprint to a placement of its own nodes.

    Models and nested blueprints are added by :mod:`.linking`.
    """
    return PlacementBuilder(name, None).build(document)
