"""The ground and the water of a region (docs/formats/opensim_archives.md, section Ground, water, trees)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Report, counted, of_kind
from ...core.scene import Layer, Material, Mesh
from ...core.shading import Factor, ImageMap, Mixture, Opacity, Shading, Tint
from .container import parse_member, text_of, uuid_of
from .document import NULL_ID, Group
from .face_materials import Pictures
from .prim_faces import UV_NAME

MATERIAL, WATER = "Ground", "Water"
"""Names of materials. The number of each region's ground follows, since their textures differ."""
MIXTURE = "mixture"
"""Name of the layer of the ground with the mixture of its textures: 0 the first one, 3 the last one."""
_TILE = 12.0
"""Metres of a tile of a texture."""
_FARTHEST = 100_000.0
"""Heights beyond this, in metres, count as 0."""
_LARGEST_SIDE = 2048
"""Metres of a side of the largest ground that is built."""
_DEFAULTS = (
    "b8d3965a-ad78-bf43-699b-bff8eca6c975",
    "abb783e6-3e93-26c0-248a-247666855da3",
    "179cdabd-398a-9b6b-1391-4dc333ba321f",
    "beb169c7-11ea-fff2-efe5-0f24dc881df2",
)
"""The textures of the viewer, which archives never contain."""
_NAMES = ("dirt", "grass", "hill", "rock")
COLORS = ((0.13, 0.085, 0.05), (0.06, 0.12, 0.03), (0.12, 0.115, 0.06), (0.16, 0.15, 0.14))
"""Linear colours in place of the default textures."""
_CORNERS = ("SW", "SE", "NW", "NE")
_LOW, _RANGE, _WATER = 10.0, 60.0, 20.0
_WATER_SHADING = Shading(Tint((0.02, 0.09, 0.13)), roughness=Factor(0.1), opacity=Opacity.DITHERED, alpha=Factor(0.6))

Heights = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Settings:
    """What the settings of a region say of its ground."""

    textures: tuple[str, ...] = _DEFAULTS
    """UUIDs of the four textures."""
    low: tuple[float, ...] = (_LOW,) * 4
    """Heights, at the corners ``_CORNERS``, at which the second texture begins."""
    range: tuple[float, ...] = (_RANGE,) * 4
    """Heights above ``low`` from which there is only the last texture."""
    water: float = _WATER


def settings_of(data: bytes) -> Settings:
    """Decode the settings of a region; empty ones give the defaults.

    Raises
    ------
    FormatError
        The XML is not well-formed, is too large, or has a document type.
    """
    if not data:
        return Settings()
    root = parse_member(data)
    ground = root.find("GroundTextures")
    ground = ground if ground is not None else Element("GroundTextures")
    return Settings(
        tuple(uuid_of(ground.find(f"Texture{place}")) or NULL_ID for place in range(1, 5)),
        tuple(_number(ground, f"ElevationLow{corner}", _LOW) for corner in _CORNERS),
        tuple(_number(ground, f"ElevationHigh{corner}", _RANGE) for corner in _CORNERS),
        _number(root, "Terrain/WaterHeight", _WATER),
    )


def _number(root: Element, path: str, default: float) -> float:
    try:
        value = float(text_of(root.find(path)))
    except ValueError:
        return default
    return value if abs(value) < _FARTHEST else default


class Ground:
    """The ground and the water of the regions of an import.

    :meth:`report` names textures and grounds that are left out, and settings and heights that are replaced.
    """

    def __init__(self, groups: Iterable[Group]) -> None:
        self._settings: dict[int, Settings] = {}
        self._heights: dict[int, Heights] = {}
        self._heights_at: dict[tuple[float, float], Heights] = {}
        """Heights by the place of the south-western corner of their region."""
        self._too_large: list[str] = []
        self._without_settings: list[str] = []
        self._defaults: dict[str, None] = {}
        self._invalid = 0
        for group in groups:
            self._read(group)

    @property
    def textures(self) -> set[str]:
        """The UUIDs of the textures of all grounds."""
        return {uuid for settings in self._settings.values() for uuid in settings.textures} - {NULL_ID, *_DEFAULTS}

    def mesh(self, group: Group) -> Mesh | None:
        """Return the ground of a region, whose south-western corner is the origin; None if it has no heights.

        The mesh has a point for each metre, and beyond the last metre those of the neighbour or copies. Its UVs are
        metres divided by the size of a tile, and its layer ``MIXTURE`` tells which texture is where.
        """
        heights = self._heights.get(id(group))
        if heights is None:
            return None
        heights = self._with_borders(group, heights)
        rows, columns = heights.shape
        y, x = np.mgrid[:rows, :columns].astype(np.float32)
        points = np.stack((x, y, heights), axis=2).reshape(-1, 3)
        south_west = (np.arange(columns - 1) + columns * np.arange(rows - 1)[:, None]).reshape(-1, 1)
        corners = (south_west + np.array((0, 1, columns + 1, 0, columns + 1, columns))).astype(np.int32).reshape(-1)
        return Mesh(
            points,
            corners,
            np.zeros(len(corners) // 3, np.int32),
            [MATERIAL],
            uvs=[Layer(UV_NAME, np.ascontiguousarray(points[:, :2] / np.float32(_TILE)))],
            custom=[Layer(MIXTURE, mixture(heights, self._settings[id(group)]).reshape(-1, 1))],
            polygon_sizes=np.full(len(south_west), 4, np.int32),
            name=f"{group.name} Ground".strip(),
        )

    def material(self, group: Group, name: str, pictures: Pictures) -> Material:
        """Return the material of the ground of a region."""
        textures = self._settings[id(group)].textures
        tints = tuple(self._tint(place, uuid, pictures) for place, uuid in enumerate(textures))
        base = Tint(COLORS[1], mixture=Mixture(MIXTURE, tints))
        shown = (uuid if tint.image is not None else "" for uuid, tint in zip(textures, tints, strict=True))
        identity = f"ground {' '.join(shown)}"
        return Material(name, shading=Shading(base, roughness=Factor(1.0)), identity=identity)

    def water_height(self, group: Group) -> float:
        """Return the height of the water of a region in metres."""
        return self._settings[id(group)].water

    def report(self, report: Report) -> None:
        """Report what is left out or replaced."""
        template = "{} of the ground not in the archive, since viewers have their own; plain colours instead: {}"
        report.loss_of("default-ground", template, of_kind("image", self._defaults), "texture")
        template = "The ground of {} left out, with more than 2,048 m on a side: {}"
        report.loss_of("ground-left-out", template, self._too_large, "region")
        template = "The settings of {} are damaged; those of a new region are used: {}"
        report.change_of("settings-damaged", template, self._without_settings, "region")
        if self._invalid:
            number_of = counted(self._invalid, "height of the ground is", "heights of the ground are")
            report.change("invalid-heights", "{} not valid; 0 is used", number_of)

    def _read(self, group: Group) -> None:
        """Read the settings and the heights of a region; heights beyond all limits become 0."""
        try:
            self._settings[id(group)] = settings_of(group.settings)
        except FormatError:
            self._settings[id(group)] = Settings()
            self._without_settings.append(group.name)
        width, depth = group.size
        if not group.terrain:
            return
        if max(group.size) > _LARGEST_SIDE:
            self._too_large.append(group.name)
            return
        heights = np.frombuffer(group.terrain, "<f4").reshape(depth, width)
        valid = np.abs(heights) < _FARTHEST  # false for NaN
        self._invalid += int(np.count_nonzero(~valid))
        self._heights[id(group)] = self._heights_at[group.origin[:2]] = np.where(valid, heights, np.float32(0))

    def _with_borders(self, group: Group, heights: Heights) -> Heights:
        """Return heights with a further row and column: the first ones of neighbours, or copies of the last ones."""
        (x, y, _), (width, depth) = group.origin, group.size
        whole = np.pad(heights, ((0, 1), (0, 1)), mode="edge")
        east, north = self._heights_at.get((x + width, y)), self._heights_at.get((x, y + depth))
        if east is not None and len(east) == depth:
            whole[:depth, width], whole[depth, width] = east[:, 0], east[-1, 0]
        if north is not None and north.shape[1] == width:
            whole[depth, :width], whole[depth, width] = north[0], north[0, -1]
        corner = self._heights_at.get((x + width, y + depth))
        if corner is not None and east is not None and north is not None:
            whole[depth, width] = corner[0, 0]
        return whole

    def _tint(self, place: int, uuid: str, pictures: Pictures) -> Tint:
        if uuid in (*_DEFAULTS, NULL_ID):
            place = _DEFAULTS.index(uuid) if uuid in _DEFAULTS else place
            self._defaults[_NAMES[place]] = None
            return Tint(COLORS[place])
        texture = pictures.texture(uuid)
        if texture is None:
            return Tint(COLORS[place])
        return Tint((1.0, 1.0, 1.0), ImageMap(texture, is_color=True))


def mixture(heights: Heights, settings: Settings) -> Heights:
    """Return which texture is at each height, (H, W) float32: 0 the first one, 3 the last one, linear between.

    The viewer adds noise to the heights, which is left out.
    """
    rows, columns = heights.shape
    x, y = np.linspace(0.0, 1.0, columns), np.linspace(0.0, 1.0, rows)[:, None]

    def at_points(south_west: float, south_east: float, north_west: float, north_east: float) -> Any:
        south, north = south_west * (1 - x) + south_east * x, north_west * (1 - x) + north_east * x
        return south * (1 - y) + north * y

    above, spread = heights - at_points(*settings.low), at_points(*settings.range)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(spread == 0, np.where(above > 0, np.inf, 0.0), 4.0 * above / spread)
    return np.clip(found, 0.0, 3.0).astype(np.float32)


def water_mesh(size: tuple[int, int]) -> Mesh:
    """Return the surface of the water of a region, whose south-western corner is the origin."""
    width, depth = size
    points = np.array([(0, 0, 0), (width, 0, 0), (width, depth, 0), (0, depth, 0)], np.float32)
    corners = np.array((0, 1, 2, 0, 2, 3), np.int32)
    return Mesh(points, corners, np.zeros(2, np.int32), [WATER], polygon_sizes=np.array([4], np.int32), name=WATER)


def water_material() -> Material:
    """Return the material of water."""
    return Material(WATER, shading=_WATER_SHADING)
