"""The Timbermesh format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, Reading, Sniffer, Writing
from .options import EXPORT_OPTIONS

if TYPE_CHECKING:
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

FAMILY = Family("timbermesh", "Timbermesh", (TIMBERMESH,), "timbermesh.md", "Timberborn")
