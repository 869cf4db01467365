"""Collections as assets of an asset library: catalog, tags, description and preview."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import bpy
import numpy as np
import numpy.typing as npt

from ..exporting.reading.material_reading import pixels_of


def mark_asset(
    collection: bpy.types.Collection,
    *,
    tags: Iterable[str],
    description: str,
    catalog: str = "",
    picture: Path | None = None,
) -> None:
    """Mark a collection as an asset.

    Parameters
    ----------
    catalog:
        UUID of the asset's catalog; empty for none.
    picture:
        Image file for the preview; without it, Blender creates a preview only when the user asks for it.
    """
    # Objects hidden with the eye icon are visible in instances of the collection, so disable them in viewports.
    # Setting hide_viewport frees the list that all_objects iterates over, so copy it first.
    for obj in [obj for obj in collection.all_objects if obj.hide_get()]:
        obj.hide_viewport = True
    collection.asset_mark()
    data = collection.asset_data
    if catalog:
        data.catalog_id = catalog
    data.description = description
    for tag in tags:
        data.tags.new(tag, skip_if_exists=True)
    pixels = None if picture is None else _pixels(picture)
    if pixels is not None:
        preview = collection.preview_ensure()
        preview.image_size = pixels.shape[1::-1]
        preview.image_pixels_float.foreach_set(pixels.ravel())


def _pixels(path: Path) -> npt.NDArray[np.float32] | None:
    """Return the pixels of an image file, (height, width, 4) float32, the lowest row first; None if it is unreadable.

    Colours are sRGB-encoded and multiplied by alpha, as in previews.
    """
    try:
        image = bpy.data.images.load(str(path))
    except RuntimeError:
        return None
    try:
        if not all(image.size):
            return None
        pixels = pixels_of(image)
        pixels[..., :3] *= pixels[..., 3:]
        return pixels
    finally:
        bpy.data.images.remove(image)
