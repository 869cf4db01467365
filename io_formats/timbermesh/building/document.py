"""The blueprint of a new building: all members, or those of another blueprint with a new model."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...core.errors import ExportError
from ...core.messages import Report, listed
from ..blueprint.json_text import JsonValue
from .cells import Shape, base_child, geometry
from .names import GameNames
from .options import BuildingOptions

_ENTRY = re.compile(r"\s*(.+?)\s+(-?\d+)\s*")


@cache
def _members() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("members.json").read_text("utf-8"))
    return found


def members(name: str) -> dict[str, Any]:
    """Return a copy of a group of members with their usual values."""
    return copy.deepcopy(dict(_members()[name]))


@dataclass(frozen=True)
class Building:
    """A new building of one faction."""

    name: str
    faction: str
    shape: Shape
    materials: frozenset[str]
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

    def model(self, stage: int | None = None) -> str:
        """Return the path of the finished model or of a stage, without extension."""
        part = "" if stage is None else f"ConstructionStage{stage}."
        return f"{self.folder}/{self.stem}.{part}Model"

    def key(self, text: str) -> str:
        """Return the identifier of a text."""
        return f"Building.{self.name}.{text}"

    @property
    def texts(self) -> dict[str, str]:
        """Its texts by their identifiers."""
        shown = self.options.display_name or re.sub(r"(?<=[a-z\d])(?=[A-Z])|_+", " ", self.name)
        return {self.key("DisplayName"): shown, self.key("Description"): self.options.description}


def cost_of(text: str) -> list[dict[str, Any]]:
    """Return the goods of a cost, such as ``Log 10, Plank 5``.

    Raises
    ------
    ExportError
        An entry is not a name and an amount above 0.
    """
    found = []
    for entry in filter(str.strip, text.split(",")):
        match = _ENTRY.fullmatch(entry)
        if match is None or int(match[2]) < 1:
            raise ExportError("Cost: '{}' is not a good and an amount above 0, such as Log 10", entry.strip())
        found.append({"Id": match[1], "Amount": int(match[2])})
    return found


def blueprint_of(
    building: Building, names: GameNames, template: Mapping[str, Any] | None, report: Report
) -> tuple[dict[str, Any], dict[tuple[str, ...], Any]]:
    """Return the members of a blueprint, and those of its values that the scene decides, by their paths.

    Parameters
    ----------
    template:
        Members of another blueprint whose game logic stays; None for a new one.

    Raises
    ------
    ExportError
        The kind of the building needs an entrance or a cost of another form.
    """
    options, shape = building.options, building.shape
    root = members("building") if template is None else copy.deepcopy(dict(template))
    spec = root.setdefault("BlockObjectSpec", {})
    old = spec.pop("BlocksSpec", None) or spec
    is_stackable = options.kind == "PLATFORM" or any(
        isinstance(cell, dict) and cell.get("Stackable") == "BlockObject" for cell in old.get("Blocks") or ()
    )
    _require_entrance(building, root)
    if shape.entrance is not None:
        root.update({name: value for name, value in members("entrance").items() if name not in root})
    if template is None and options.kind == "DECORATION" and options.wellbeing:
        root |= _effect(options.wellbeing, names)
    elif template is None and options.kind != "WITH_ENTRANCE":
        root |= members("paths")
        root["BlockObjectNavMeshSettingsSpec"]["GenerateFloorsOnStackable"] = is_stackable
    for name, value in members("replaced").items():
        root[name] = {**root.get(name, {}), **value}
    placeable = root.setdefault("PlaceableBlockObjectSpec", {})
    placeable |= {"ToolGroupId": options.tool_group, "ToolOrder": options.tool_order}
    placeable["CustomPivot"] = members("building")["PlaceableBlockObjectSpec"]["CustomPivot"]
    root["TemplateSpec"]["TemplateName"] = building.stem
    goods = cost_of(options.cost)
    root["BuildingSpec"] = {**root.get("BuildingSpec", {}), "BuildingCost": goods, "ScienceCost": options.science}
    root["LabeledEntitySpec"] |= {
        "DisplayNameLocKey": building.key("DisplayName"),
        "DescriptionLocKey": building.key("Description"),
        "Icon": building.icon,
    }
    _set_children(root, building, names, report)
    values = geometry(shape, is_stackable=is_stackable)
    for path, value in values.items():
        target = root
        for name in path[:-1]:
            target = target.setdefault(name, {})
        target[path[-1]] = value
    if template is not None:
        _report_missing(root, template, shape, report)
    return root, values


def _require_entrance(building: Building, root: Mapping[str, Any]) -> None:
    entrance = root.get("BlockObjectSpec", {}).get("Entrance") or {}
    needs_it = building.options.kind == "WITH_ENTRANCE" or entrance.get("HasEntrance") or "WorkplaceSpec" in root
    if needs_it and building.shape.entrance is None:
        raise ExportError("A building of this kind needs an entrance: add an empty #Slot#Entrance at its front")


def _effect(need: str, names: GameNames) -> dict[str, Any]:
    """Return the members of a decoration that satisfies a need nearby."""
    found = members("effect")
    rate, radius = names.effects.get(need, (0.64, 3))
    found["ContinuousEffectBuildingSpec"]["Effects"][0] |= {"NeedId": need, "PointsPerHour": rate}
    found["RangedEffectBuildingSpec"]["EffectRadius"] = radius
    return found


def _set_children(root: dict[str, Any], building: Building, names: GameNames, report: Report) -> None:
    """Set the models and the construction stages; their colliders are among the values of the scene."""

    def model(stage: int | None = None) -> dict[str, Any]:
        colliders: dict[str, Any] = {"BoxColliders": [], "SphereColliders": [], "CapsuleColliders": []}
        return {"TimbermeshSpec": {"Model": building.model(stage)}, "CollidersSpec": colliders}

    size = building.shape.size
    base = base_child(size, names.bases)
    if not base:
        template = "the game has no construction base of {} x {}; while it is built, only its stages are shown"
        report.warning("no-construction-base", template, size[0], size[1])
    stages = {f"ConstructionStage{number}": model(number) for number in range(len(building.shape.stages))}
    steps = len(base) + len(stages) - 1
    root.pop("ConstructionSiteProgressVisualizerSpec", None)
    if steps > 0:
        thresholds = [number / steps for number in range(steps)]
        root["ConstructionSiteProgressVisualizerSpec"] = {"ProgressThresholds": thresholds}
    root["Children"] = {"#Finished": model(), "#Unfinished": {"Children": {**base, **stages}}}


def _report_missing(root: Mapping[str, Any], template: Mapping[str, Any], shape: Shape, report: Report) -> None:
    """Report nodes and cells that the members of another blueprint name, and that the new model lacks."""
    children = set(_children_of(template)) - {"#Finished", "#Unfinished"}
    nodes, cells = [], []
    others = {name: value for name, value in root.items() if name not in {"Children", "BlockObjectSpec"}}
    for path, value in _values(others):
        where = "/".join(path)
        if path[-1] == "SlotKeyword" and isinstance(value, str):
            if not any(node.startswith(f"#Slot#{value}") for node in shape.nodes):
                nodes.append(f"#Slot#{value} ({where})")
        elif isinstance(value, str) and value and path[0] not in {"BuildingModelSpec", "TemplateSpec"}:
            is_node = value.startswith("#") or value in children or path[-1] == "Parent"
            if is_node and value not in shape.nodes:
                nodes.append(f"{value} ({where})")
        elif path[-1] == "X" and any(name.endswith("Coordinates") for name in path):
            cell = _at(root, path[:-1])
            inside = [0 <= cell.get(axis, 0) < count for axis, count in zip("XYZ", shape.size, strict=True)]
            if not all(inside):
                cells.append("{}, {}, {} ({})".format(*(cell.get(axis, 0) for axis in "XYZ"), where.removesuffix("/X")))
    if nodes:
        text = "the model lacks nodes that the blueprint names: {}"
        report.warning("template-nodes", text, listed(nodes, len(nodes)))
    if cells:
        text = "the blueprint names cells outside of the building: {}"
        report.warning("template-cells", text, listed(cells, len(cells)))


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _children_of(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all children."""
    for name, child in (value.get("Children") or {}).items():
        yield name.replace("#nested", "")
        if isinstance(child, dict):
            yield from _children_of(child)


def _values(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all texts and numbers with their paths."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in pairs:
        yield from _values(inner, (*path, str(name)))
    if not isinstance(value, dict | list):
        yield path, value


def exact(value: JsonValue, data: bytes) -> Any:
    """Return a value of a file in which whole numbers stay whole: the game refuses 1.0 workers."""
    if isinstance(value.value, dict):
        return {key: exact(member.value, data) for key, member in value.value.items()}
    if isinstance(value.value, list):
        return [exact(item, data) for item in value.value]
    text = data[value.start : value.end]
    return int(text) if isinstance(value.value, float) and re.fullmatch(rb"-?\d+", text) else value.value


def json_text(value: Any, indent: str = "", newline: str = "\n") -> str:
    """Return a value as JSON with an indent of two spaces; objects of numbers and short texts are on one line."""
    inner = [*(value.values() if isinstance(value, dict) else value)] if isinstance(value, dict | list) else []
    is_flat = not any(isinstance(item, dict | list) for item in inner)
    if not inner or (is_flat and (isinstance(value, dict) or not isinstance(inner[0], str))):
        text = json.dumps(value, ensure_ascii=False)
        return f"{{ {text[1:-1]} }}" if inner and isinstance(value, dict) else text
    if isinstance(value, dict):
        below = indent + "  "
        parts = [f"{json.dumps(name, ensure_ascii=False)}: {json_text(value[name], below, newline)}" for name in value]
    else:
        parts = [json_text(item, indent + "  ", newline) for item in inner]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = f",{newline}".join(f"{indent}  {part}" for part in parts)
    return f"{opening}{newline}{lines}{newline}{indent}{closing}"
