"""Entrance, attachments and other points (docs/formats/timberborn_blueprints.md, sections 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.placement import Channels, Marker, MarkerShape
from .document import Members, child_of
from .footprint import SPEC, Footprint
from .json_text import pointer_of
from .numbers import Numbers
from .transforms import to_channels

_CELLS = (
    ("WaterInputSpec", "WaterInputCoordinates", "Water Input"),
    ("WaterOutputSpec", "WaterCoordinates", "Water Output"),
)
"""Specs with the coordinates of a cell."""
_INTO_BUILDING = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
"""Turns +Z, the direction of an arrow, to -Y."""


@dataclass(frozen=True, eq=False)
class Point:
    """A position in the grid of the building."""

    name: str
    key: str
    location: tuple[float, float, float]
    """In Blender's space, relative to the building and not to the transform of its root."""
    marker: Marker

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """Its matrix (4, 4) in that space."""
        matrix = np.identity(4)
        matrix[:3, 3] = self.location
        if self.marker.shape is MarkerShape.ARROW:
            matrix[:3, :3] = _INTO_BUILDING
        return matrix


@dataclass(frozen=True, eq=False)
class Attachment:
    """A particle system or light that the game adds below a node."""

    name: str
    key: str
    parent: str
    """Name of a node of the blueprint or of a model; empty for the root."""
    channels: Channels
    properties: dict[str, str] = field(default_factory=dict)


def points_of(root: Members, footprint: Footprint | None, numbers: Numbers) -> Iterator[Point]:
    """Yield entrance, access, power connections and water of a blueprint."""
    if footprint is not None and footprint.entrance is not None:
        place = footprint.location(footprint.entrance, 0.0)
        yield Point("Entrance", f"/{SPEC}/Entrance", place, Marker(MarkerShape.ARROW, 0.5))
    access = child_of(root, "BuildingAccessibleSpec")
    if access is not None and child_of(access, "LocalAccess") is not None:
        point = numbers.vector(access, "LocalAccess", "/BuildingAccessibleSpec")
        yield Point("Access", "/BuildingAccessibleSpec", to_channels(point).location, Marker(MarkerShape.CROSS))
    if footprint is None:
        return
    transputs = (child_of(root, "TransputProviderSpec") or {}).get("TransputSpecs")
    for number, members in enumerate(transputs if isinstance(transputs, list) else ()):
        if isinstance(members, dict):
            key = pointer_of(("TransputProviderSpec", "TransputSpecs", str(number)))
            cell = numbers.cell(members, "Coordinates", key)
            yield Point("Power", key, footprint.location(cell), Marker(MarkerShape.CROSS))
    for spec, name, title in _CELLS:
        members = child_of(root, spec)
        if members is not None and child_of(members, name) is not None:
            cell = numbers.cell(members, name, f"/{spec}")
            yield Point(title, f"/{spec}", footprint.location(cell), Marker(MarkerShape.CROSS))


def attachments_of(root: Members, numbers: Numbers) -> Iterator[Attachment]:
    """Yield the attachments of a blueprint."""
    found = (child_of(root, "TemplateAttachmentsSpec") or {}).get("Attachments")
    for number, members in enumerate(found if isinstance(found, list) else ()):
        if not isinstance(members, dict):
            continue
        key = pointer_of(("TemplateAttachmentsSpec", "Attachments", str(number)))
        texts = {name: str(value) for name in ("Prefab", "Parent") if isinstance(value := members.get(name), str)}
        name = members.get("AttachmentId")
        yield Attachment(
            name if isinstance(name, str) and name else "Attachment",
            key,
            texts.get("Parent", ""),
            numbers.transform(members, key),
            texts,
        )
