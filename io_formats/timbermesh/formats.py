"""The Timbermesh format, and blueprints, which place such models."""

from __future__ import annotations

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, modules_of
from .blueprint import options as blueprint_options
from .model.format import TIMBERMESH


def _places_nothing(data: bytes) -> bool:
    return not any(name in data for name in (b"TimbermeshSpec", b"#nested", b"CollidersSpec"))


TIMBERBORN_BLUEPRINT = FileFormat(
    name="timberborn_blueprint",
    label="Timberborn Blueprint",
    extensions=(".blueprint.json",),
    capabilities=Capabilities(
        uv_layers=3,
        color_layers=1,
        normals=True,
        materials=True,
        node_hierarchy=True,
        node_clips=True,
        vertex_clips=True,
        placement=True,
    ),
    modules=modules_of(f"{__package__}.blueprint"),
    is_written=False,
    is_linked=True,
    is_patched=True,
    is_built_by_linking=True,
    is_patched_whole=True,
    is_empty=_places_nothing,
    import_options=blueprint_options.IMPORT_OPTIONS,
)

FAMILY = Family("timbermesh", "Timbermesh", (TIMBERMESH, TIMBERBORN_BLUEPRINT), "timbermesh.md", "Timberborn")
