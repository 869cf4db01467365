"""The content of a shape file: values of sliders (shape format page, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...core.messages import Message
from ..avatar import sliders

SHAPE = "shape"
"""Wearable that holds most sliders."""


@dataclass
class Shape:
    """A body shape, or the part of one that another wearable holds."""

    values: Mapping[int, float] = field(default_factory=dict)
    """Values of sliders by id, within their ranges; the file has no others."""
    name: str = ""
    version: str = "1.0"
    wearable: str = SHAPE
    """Kind of the body part. Hair and shoes have a few sliders, and leave all others as they are."""
    is_body_part: bool = False
    """Whether the file is a body part asset, and not an appearance export in XML."""
    has_only_codes: tuple[str, ...] = ()
    """Labels of the sliders of which the file has the code instead of the value."""
    warnings: list[Message] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether sliders that the file does not list have their default."""
        return self.wearable == SHAPE

    @property
    def complete(self) -> dict[int, float]:
        """The values of all sliders."""
        return sliders.complete_values(self.values)
