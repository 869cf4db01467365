"""Second Life Upload Request: names, capabilities and options."""

from __future__ import annotations

from ...core.format import FileFormat, modules_of
from ..options import _CAPABILITIES, REQUEST_OPTIONS

SECOND_LIFE_REQUEST = FileFormat(
    name="second_life_request",
    label="Second Life Upload Request",
    extensions=(".llsd",),
    capabilities=_CAPABILITIES,
    modules=modules_of(__package__),
    is_read=False,
    is_set=True,
    export_options=REQUEST_OPTIONS,
)
