"""Options of the import of archives."""

from __future__ import annotations

from functools import partial

from ...core.options import Option

_option = partial(Option, section="Regions")
REGION = _option(
    name="region",
    default="",
    label="Only Region",
    description="Name of the only region to import from an archive that holds several. Empty: all regions, each at its "
    "place",
)
ONLY_NAMES = _option(
    name="only_names",
    default="",
    label="Only Objects",
    description="Only objects whose name matches this pattern, such as 'barn*', in which * stands for any text and ? "
    "for a character; case is ignored. Empty: all objects",
)
GROUND = _option(
    name="use_ground",
    default=True,
    label="Ground",
    description="Make a mesh of the ground of a region, with the mixture of its textures",
)
WATER = _option(
    name="use_water",
    default=True,
    label="Water",
    description="Make a plane at the height of the water of a region",
)
LIGHTS = _option(
    name="use_region_lights",
    default=True,
    label="Lights",
    description="Make lights of the parts that shine; their brightness is approximate",
)

IMPORT_OPTIONS: tuple[Option, ...] = (REGION, ONLY_NAMES, GROUND, WATER, LIGHTS)
