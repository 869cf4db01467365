"""A model bundle -> bytes."""

from __future__ import annotations

from ...core.output_file import OutputFile
from ..llsd_binary import RawString, sorted_map
from ..llsd_binary import write as write_value
from ..mesh.writer import write as write_asset
from .document import MESHES, Bundle

_LONGEST_HEADER = 1 << 20
"""Maximum header size of an asset in the bundle; it can be large, as it holds material names and is not downloaded."""
_DELAY = 2.0
"""Seconds by which the bundle is written after the Collada file, since the viewer requires it to be newer. One would
do."""


def write(bundle: Bundle) -> bytes:
    """Encode a bundle (formats page, section 8). Keys keep their order, or are sorted if ``mesh`` is not among them.

    Raises
    ------
    ExportError
        A value cannot be stored.
    """
    meshes = [RawString(write_asset(asset, longest_header=_LONGEST_HEADER)) for asset in bundle.meshes]
    values = {**bundle.values, MESHES: meshes}
    return write_value(values if MESHES in bundle.values else sorted_map(values))


def write_files(bundle: Bundle, stem: str) -> list[OutputFile]:
    """Encode a bundle behind the Collada file that has to lie beside it, and has to be older."""
    # Imported here, because inspecting a bundle does not need them.
    from .companion import companion_of

    return [OutputFile(f"{stem}.dae", companion_of(bundle)), OutputFile(f"{stem}.slm", write(bundle), delay=_DELAY)]
