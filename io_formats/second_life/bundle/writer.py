"""A model bundle -> bytes."""

from __future__ import annotations

from ...core.format import OutputFile
from ..asset.codec import write as write_asset
from ..models.llsd import RawString, sorted_map
from ..models.llsd import write as write_value
from .document import MESHES, Bundle

_LONGEST_HEADER = 1 << 20
"""Maximum header size of an asset in the bundle; it can be large, as it holds material names and is not downloaded."""
_DELAY = 2.0
"""Seconds by which the bundle is dated after the Collada file, since the viewer only opens a bundle that is newer."""


def write(bundle: Bundle) -> bytes:
    """Encode a bundle (formats page, section 8).

    Keys keep the order of ``bundle.values``; if that has no ``mesh``, they are sorted.

    Raises
    ------
    ExportError
        A value cannot be stored.
    """
    meshes = [RawString(write_asset(asset, longest_header=_LONGEST_HEADER)) for asset in bundle.meshes]
    values = {**bundle.values, MESHES: meshes}
    return write_value(values if MESHES in bundle.values else sorted_map(values))


def write_files(bundle: Bundle, stem: str) -> list[OutputFile]:
    """Encode the Collada file that the viewer needs beside a bundle, then the bundle, which must be newer."""
    return [OutputFile(f"{stem}.dae", _companion(bundle)), OutputFile(f"{stem}.slm", write(bundle), delay=_DELAY)]


def _companion(bundle: Bundle) -> bytes:
    """Encode the models of a bundle at their finest level, as Collada without textures.

    The viewer's file picker does not show bundles: the user selects the Collada file, and the viewer opens a newer
    bundle beside it instead. If its setting is off, it uploads the selected file (formats page, section 8).

    Raises
    ------
    ExportError
        A model cannot be written as Collada.
    """
    from ..upload_set import codec as upload_set_codec
    from ..upload_set import mapping as upload_set_mapping
    from .scene_mapping import to_scene

    scene = to_scene(bundle, "")
    for material in scene.materials:
        material.texture = None  # the viewer takes textures only from the bundle
    return upload_set_codec.write(upload_set_mapping.from_scene(scene))
