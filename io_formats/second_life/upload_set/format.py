"""Second Life Upload Set: names, capabilities and options."""

from __future__ import annotations

from dataclasses import replace

from ...core.format import FileFormat, modules_of
from ..options import _CAPABILITIES, UPLOAD_OPTIONS

SECOND_LIFE_UPLOAD = FileFormat(
    name="second_life_upload",
    label="Second Life Upload Set",
    extensions=(".dae",),
    capabilities=replace(_CAPABILITIES, gltf_materials=True),
    modules=modules_of(__package__),
    is_read=False,
    is_set=True,
    export_options=UPLOAD_OPTIONS,
)
