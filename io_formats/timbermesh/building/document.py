"""The blueprint of a new building: all members, or those of another blueprint with a new model."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import ExportError
from ...core.messages import Report, listed
from ..blueprint.codec import child_of
from ..blueprint.json_text import JsonValue
from .cells import Shape, base_child, geometry, members
from .names import GameNames
from .options import BuildingOptions

_ENTRY = re.compile(r"([\w.-]+)\s+(-?\d{1,9})")


@dataclass(frozen=True)
class Building:
    """A new building of one faction."""

    name: str
    faction: str
    shape: Shape
    options: BuildingOptions
    folder: str
    """Folder of its files below the root of the mod."""

    @property
    def stem(self) -> str:
        """Start of the names of its files; also its name as a template."""
        return f"{self.name}.{self.faction}"

    @property
    def icon(self) -> str:
        """Path of the icon without extension."""
        return f"{self.folder}/{self.name}Icon"

    @property
    def models(self) -> list[str]:
        """Paths of the finished model and of the stages, without extension."""
        parts = ("", *(f"ConstructionStage{number}." for number in range(len(self.shape.stages))))
        return [f"{self.folder}/{self.stem}.{part}Model" for part in parts]

    @property
    def texts(self) -> dict[str, str]:
        """Its texts by their identifiers."""
        shown = self.options.display_name or re.sub(r"(?<=[a-z\d])(?=[A-Z])|_+", " ", self.name)
        texts = {"DisplayName": shown, "Description": self.options.description}
        return {f"Building.{self.name}.{key}": text for key, text in texts.items()}


def cost_of(text: str) -> list[dict[str, Any]]:
    """Return the goods of a cost, such as ``Log 10, Plank 5``.

    Raises
    ------
    ExportError
        An entry is not a name and an amount above 0, or names a good again.
    """
    found: list[dict[str, Any]] = []
    for entry in filter(None, map(str.strip, text.split(","))):
        match = _ENTRY.fullmatch(entry)
        if match is None or int(match[2]) < 1 or match[1] in [good["Id"] for good in found]:
            raise ExportError("Cost: '{}' must be a good, named once, and an amount above 0, such as Log 10", entry)
        found.append({"Id": match[1], "Amount": int(match[2])})
    return found


def blueprint_of(
    building: Building, names: GameNames, template: Mapping[str, Any] | None, report: Report
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members of a blueprint, and those of its values that the scene decides, by their paths.

    Parameters
    ----------
    template:
        Members of another blueprint whose game logic stays; None for a new one.

    Raises
    ------
    ExportError
        The kind of the building needs an entrance.
    """
    options, shape = building.options, building.shape
    root = members("building") if template is None else dict(template)
    spec = root["BlockObjectSpec"]
    old = spec.pop("BlocksSpec", None) or spec
    is_stackable = options.kind == "PLATFORM" or '"Stackable": "BlockObject"' in json.dumps(old)
    is_entered = options.kind == "WITH_ENTRANCE" or "WorkplaceSpec" in root
    if shape.entrance is not None:
        root = members("entrance") | root
    elif is_entered or (child_of(spec, "Entrance") or {}).get("HasEntrance"):
        raise ExportError("A building of this kind needs an entrance: add an empty #Slot#Entrance at its front")
    if template is None and options.kind == "DECORATION" and options.wellbeing:
        root |= members("effect")
        rate, radius = names.effects.get(options.wellbeing, (0.64, 3))
        effect = {"NeedId": options.wellbeing, "PointsPerHour": rate}
        root["ContinuousEffectBuildingSpec"]["Effects"][0] |= effect
        root["RangedEffectBuildingSpec"]["EffectRadius"] = radius
    elif template is None and not is_entered:
        root |= members("paths")
        root["BlockObjectNavMeshSettingsSpec"]["GenerateFloorsOnStackable"] = is_stackable
    for name, value in members("replaced").items():
        root[name] = {**root.get(name, {}), **value}
    root["PlaceableBlockObjectSpec"] |= {"ToolGroupId": options.tool_group, "ToolOrder": options.tool_order}
    root["TemplateSpec"]["TemplateName"] = building.stem
    root["BuildingSpec"] |= {"BuildingCost": cost_of(options.cost), "ScienceCost": options.science}
    texts = dict(zip(("DisplayNameLocKey", "DescriptionLocKey"), building.texts, strict=True))
    root["LabeledEntitySpec"] |= {**texts, "Icon": building.icon}
    _set_children(root, building, names, report)
    values = geometry(shape, is_stackable=is_stackable)
    for path, value in values.items():
        *above, last = path.split("/")
        target = root
        for name in above:
            target = target.setdefault(name, {})
        target[last] = value
    if template is not None:
        _report_missing(root, shape, report)
    return root, values


def _set_children(root: dict[str, Any], building: Building, names: GameNames, report: Report) -> None:
    """Set the models and the construction stages; their colliders are among the values of the scene."""
    size = building.shape.size
    finished, *stages = (members("model") | {"TimbermeshSpec": {"Model": path}} for path in building.models)
    unfinished = base_child(size, names.bases)
    if not unfinished:
        template = "the game has no construction base of {} x {}; while it is built, only its stages are shown"
        report.warning("no-construction-base", template, size[0], size[1])
    unfinished |= {f"ConstructionStage{number}": stage for number, stage in enumerate(stages)}
    steps = len(unfinished) - 1
    root.pop("ConstructionSiteProgressVisualizerSpec", None)
    if steps > 0:
        thresholds = [number / steps for number in range(steps)]
        root["ConstructionSiteProgressVisualizerSpec"] = {"ProgressThresholds": thresholds}
    root["Children"] = {"#Finished": finished, "#Unfinished": {"Children": unfinished}}


def _report_missing(root: Mapping[str, Any], shape: Shape, report: Report) -> None:
    """Report nodes and cells that the members of another blueprint name, and that the new model lacks."""
    lacking = []
    for path, value in leaves(root):
        if path.startswith(("/Children", "/BlockObjectSpec", "/BuildingModelSpec")):
            continue
        if isinstance(value, dict):
            cell = [at if isinstance(at := value.get(axis, 0), int | float) else -1 for axis in "XYZ"]
            if "Coordinates" in path and not all(0 <= a < b for a, b in zip(cell, shape.size, strict=True)):
                lacking.append(f"{cell} ({path[1:]})")
        else:
            name = f"#Slot#{value}" if path.endswith("/SlotKeyword") else value
            is_node = name.startswith("#") or path.endswith("/Parent")
            if name and is_node and not any(node.startswith(name) for node in shape.nodes):
                lacking.append(f"{name} ({path[1:]})")
    if lacking:
        template = "the model lacks nodes or cells that the blueprint names: {}"
        report.warning("template-names", template, listed(lacking, len(lacking)))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all texts, vectors and empty objects with their paths."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, str) or value == {} or (isinstance(value, dict) and "X" in value):
        yield path, value
    for name, inner in pairs:
        yield from leaves(inner, f"{path}/{name}")


def exact(value: JsonValue, data: bytes) -> Any:
    """Return a value of a file in which whole numbers stay whole: the game refuses 1.0 workers."""
    if isinstance(value.value, dict):
        return {key: exact(member.value, data) for key, member in value.value.items()}
    if isinstance(value.value, list):
        return [exact(item, data) for item in value.value]
    text = data[value.start : value.end]
    return int(text) if isinstance(value.value, float) and re.fullmatch(rb"-?\d+", text) else value.value
