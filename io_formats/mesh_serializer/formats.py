"""The format MeshSerializer2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, Reading, Sniffer, Writing
from .options import EXPORT_OPTIONS, IMPORT_OPTIONS

if TYPE_CHECKING:
    from .document import Document


def _sniffing() -> Sniffer:
    from . import sniffing

    return sniffing


def _reading() -> Reading[Document]:
    from . import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _writing() -> Writing[Document]:
    from . import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks)


MESH_SERIALIZER = FileFormat(
    name="mesh_serializer",
    label="MeshSerializer2",
    extensions=(".data", ".bin", ".bytes", ".3d", ".mesh"),
    capabilities=Capabilities(uv_layers=1, normals=True, splits_vertices=True),
    only_read=(".mesh",),
    ambiguous=(".data", ".bin", ".bytes", ".3d"),
    writing=_writing,
    sniffing=_sniffing,
    reading=_reading,
    import_options=IMPORT_OPTIONS,
    export_options=EXPORT_OPTIONS,
)

FAMILY = Family("mesh_serializer", "Unity MeshSerializer2", (MESH_SERIALIZER,), "mesh_serializer.md", "Unity")
