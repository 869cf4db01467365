"""Lights and cameras of a scene (docs/formats/unigine_scenes.md, section 6)."""

from __future__ import annotations

import math

from ...core.placement import Camera, Light, LightKind
from .document import SceneNode
from .numbers import parse_number, parse_numbers

_LIGHTS = {"LightOmni": LightKind.POINT, "LightProj": LightKind.SPOT, "LightWorld": LightKind.SUN}
_CAMERAS = {"PlayerSpectator", "PlayerDummy", "PlayerPersecutor", "PlayerActor"}
_FIELD_OF_VIEW = 60.0
_BRIGHTEST = 1e6
_FARTHEST = 1e6
_LEAST_ANGLE, _MOST_ANGLE = 1.0, 175.0


def light_of(node: SceneNode) -> Light | None:
    """Return the light of a node, or None if it is of another type."""
    kind = _LIGHTS.get(node.kind)
    if kind is None:
        return None
    values = node.values
    color = parse_numbers(values.get("color"))
    if color is None or len(color) < 3:
        color = parse_numbers("1 1 1")
    red, green, blue = (min(max(float(part), 0.0), 1.0) for part in color[:3])  # type: ignore[index]
    sizes = parse_numbers(values.get("shape"))
    is_point = values.get("shape_type", "0") == "0" or sizes is None or not len(sizes)
    return Light(
        kind,
        (red, green, blue),
        _within(parse_number(values.get("intensity"), 1.0), 0.0, _BRIGHTEST),
        0.0 if is_point or sizes is None else _within(float(sizes[0]), 0.0, _FARTHEST),
        _angle(values.get("fov")),
        _within(parse_number(values.get("penumbra"), 0.0), 0.0, 1.0),
    )


def camera_of(node: SceneNode) -> Camera | None:
    """Return the camera of a node, or None if it is of another type."""
    if node.kind not in _CAMERAS:
        return None
    values = node.values
    near = _within(parse_number(values.get("znear"), 0.1), 1e-4, _FARTHEST)
    return Camera(
        _angle(values.get("fov")),
        near=near,
        far=_within(parse_number(values.get("zfar"), 1000.0), near * 2, _FARTHEST * 4),
        is_main=values.get("is_main") == "1",
    )


def _angle(text: str | None) -> float:
    return math.radians(_within(parse_number(text, _FIELD_OF_VIEW), _LEAST_ANGLE, _MOST_ANGLE))


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)
