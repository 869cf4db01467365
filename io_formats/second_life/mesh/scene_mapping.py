"""Asset <-> Scene: the door to ``scene_builder`` (in) and ``asset_builder`` (out)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...scene import Scene
from .document import Asset
from .scene_builder import SceneBuilder


def to_scene(document: Asset, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map an asset to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    One model: the finest level, coarser ones (``lod_of``), physics mesh, hulls and the hull around everything
    (``shape_of``), all with one transform. Points are those of the file (±0.5), in its order, each face a material
    slot; what quantised them is kept in ``Surface.properties``. What was mended is told in ``scene.warnings``.

    Raises
    ------
    FormatError
        No level has a triangle.
    """
    builder = SceneBuilder(name, options)
    builder.add(document, name)
    return builder.scene
