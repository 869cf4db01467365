"""Blueprints put together from the format page, for the fuzzer and other tests."""

from __future__ import annotations

import json
from typing import Any


def vector(x: float, y: float, z: float) -> dict[str, float]:
    return {"X": x, "Y": y, "Z": z}


def transform(**fields: tuple[float, float, float]) -> dict[str, Any]:
    return {name.capitalize(): vector(*values) for name, values in fields.items()}


def part(model: str = "", children: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a child with a transform, a model, and children."""
    found: dict[str, Any] = {"TransformSpec": transform(**fields)} if fields else {}
    if model:
        found["TimbermeshSpec"] = {"Model": model}
    if children is not None:
        found["Children"] = children
    return found


def nested(path: str, modification: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"BlueprintPath": path, **({"Modification": modification} if modification is not None else {})}


def building() -> dict[str, Any]:
    """Return a building with everything that the reader knows."""
    colliders = {
        "BoxColliders": [{"Center": vector(0.5, 0.5, 0.5), "Size": vector(1, 2, 3)}],
        "SphereColliders": [{"Center": vector(0, 1, 0), "Radius": 0.5}],
        "CapsuleColliders": [{"Center": vector(0, 0, 1), "Radius": 0.25, "Height": 2, "Direction": "X"}],
    }
    roof = part("Shed/Shed.Model", {"Knob": part(position=(0, 1, 0))}, position=(1, 2, 3), rotation=(10, 20, 30))
    block = {"Occupations": "Floor, Bottom", "MatterBelow": "Ground"}
    return {
        "BuildingModelSpec": {"FinishedModelName": "#Finished", "UnfinishedModelName": "#Unfinished"},
        "ConstructionSiteProgressVisualizerSpec": {"ProgressThresholds": [0.5]},
        "BlockObjectSpec": {
            "Size": vector(2, 1, 1),
            "Blocks": [block, {**block, "Occupations": "None"}],
            "Entrance": {"HasEntrance": True, "Coordinates": vector(0, -1, 0)},
            "BaseZ": 0,
        },
        "BuildingAccessibleSpec": {"LocalAccess": vector(0.5, 0, 0.2)},
        "TransputProviderSpec": {"TransputSpecs": [{"Coordinates": vector(1, 0, 0)}]},
        "WaterInputSpec": {"WaterInputCoordinates": vector(0, 0, 0)},
        "TemplateAttachmentsSpec": {
            "Attachments": [
                {"AttachmentId": "Smoke", "Prefab": "Smoke", "Parent": "Roof", **transform(position=(0, 1, 0))}
            ]
        },
        "Children": {
            "#Finished": part(children={"Roof": {**roof, "CollidersSpec": colliders}}),
            "#Unfinished": part(
                children={"Base#nested": nested("Base.blueprint"), "Stage": part("Shed/Stage.Model", scale=(1, 0.5, 1))}
            ),
        },
    }


def files() -> dict[str, bytes]:
    """Return blueprints by name."""
    plain = json.dumps(building(), indent=2)
    lenient = plain.replace("\n}", ",\n}").replace('"TransformSpec"', "/* here */ TransformSpec", 1)
    selfish = {"Children": {"Again#nested": nested("Self.blueprint", {"Children#delete": {}})}}
    return {
        "building": plain.encode(),
        "lenient": b"\xef\xbb\xbf// a comment\r\n" + lenient.replace("\n", "\r\n").encode(),
        "nests itself": json.dumps(selfish).encode(),
        "places nothing": json.dumps({"GoodSpec": {"Id": "Log"}}).encode(),
    }
