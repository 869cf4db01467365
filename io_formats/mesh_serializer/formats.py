"""The format MeshSerializer2."""

from __future__ import annotations

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, modules_of
from .options import EXPORT_OPTIONS, IMPORT_OPTIONS

MESH_SERIALIZER = FileFormat(
    name="mesh_serializer",
    label="MeshSerializer2",
    extensions=(".data", ".bin", ".bytes", ".3d", ".mesh"),
    capabilities=Capabilities(uv_layers=1, normals=True, splits_vertices=True),
    modules=modules_of(__package__),
    only_read=(".mesh",),
    ambiguous=(".data", ".bin", ".bytes", ".3d"),
    import_options=IMPORT_OPTIONS,
    export_options=EXPORT_OPTIONS,
)

FAMILY = Family("mesh_serializer", "Unity MeshSerializer2", (MESH_SERIALIZER,), "mesh_serializer.md", "Unity")
