"""The Timbermesh format, and blueprints, which place such models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, Patcher, Reading, Sniffer, Writing
from .blueprint import options as blueprint_options
from .options import EXPORT_OPTIONS

if TYPE_CHECKING:
    from .blueprint.document import Blueprint
    from .document import Model


def _sniffing() -> Sniffer:
    from . import sniffing

    return sniffing


def _reading() -> Reading[Model]:
    from . import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _writing() -> Writing[Model]:
    from . import checks, scene_mapping, writer
    from .materials import material_checks

    return Writing(writer, scene_mapping, checks, context_checks=material_checks)


TIMBERMESH = FileFormat(
    name="timbermesh",
    label="Timbermesh",
    extensions=(".timbermesh", ".meshy"),
    capabilities=Capabilities(
        uv_layers=3,
        color_layers=1,
        custom_layers=True,
        normals=True,
        splits_vertices=True,
        materials=True,
        node_hierarchy=True,
        node_clips=True,
        vertex_clips=True,
    ),
    writing=_writing,
    sniffing=_sniffing,
    reading=_reading,
    export_options=EXPORT_OPTIONS,
)


def _places_nothing(data: bytes) -> bool:
    return not any(name in data for name in (b"TimbermeshSpec", b"#nested", b"CollidersSpec"))


def _blueprint_sniffing() -> Sniffer:
    from .blueprint import sniffing

    return sniffing


def _blueprint_reading() -> Reading[Blueprint]:
    from .blueprint import checks, facts, linking, reader, scene_mapping

    return Reading(reader, scene_mapping, facts, linking, linked_checks=checks)


def _blueprint_patching() -> Patcher:
    from .blueprint import patching

    return patching


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
    sniffing=_blueprint_sniffing,
    reading=_blueprint_reading,
    is_built_by_linking=True,
    patching=_blueprint_patching,
    is_patched_whole=True,
    is_empty=_places_nothing,
    import_options=blueprint_options.IMPORT_OPTIONS,
)

FAMILY = Family("timbermesh", "Timbermesh", (TIMBERMESH, TIMBERBORN_BLUEPRINT), "timbermesh.md", "Timberborn")
