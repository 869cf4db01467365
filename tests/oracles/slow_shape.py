"""Body shapes evaluated slowly, one parameter and one joint after another, from the shape format page alone.

Nothing of the product is used. The tables are read from the product's folder, since they are data of the viewer.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import avatar_rest

TABLES = Path(__file__).resolve().parents[2] / "io_formats" / "second_life" / "avatar"
Three = tuple[float, float, float]


def _rows(name: str) -> list[dict[str, str]]:
    with (TABLES / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


PARAMETERS = {int(row["id"]): row for row in _rows("parameters.csv")}
EFFECTS = _rows("effects.csv")
OWN = [number for number, row in PARAMETERS.items() if row["group"] in "03"]


def ramp(row: Mapping[str, str], value: float) -> float:
    """Return the weight of a driven parameter (section 3.2)."""
    driver, driven = PARAMETERS[int(row["id"])], PARAMETERS[int(row["target"])]
    low, high = float(driven["min"]), float(driven["max"])
    min1, max1, max2, min2 = (float(row[name]) for name in ("min1", "max1", "max2", "min2"))
    if value <= min1:
        return high if min1 == max1 and min1 <= float(driver["min"]) else low
    if value <= max1:
        return low + (value - min1) / (max1 - min1) * (high - low)
    if value <= max2:
        return high
    if value <= min2:
        return high + (value - max2) / (min2 - max2) * (low - high)
    return high if max2 >= float(driver["max"]) else low


def weights(values: Mapping[int, float]) -> dict[int, float]:
    """Return the effective weight of each parameter (sections 3.1 to 3.3)."""
    found = {number: float(row["default"]) for number, row in PARAMETERS.items()}
    for number in OWN:
        row = PARAMETERS[number]
        value = values.get(number, float(row["default"]))
        found[number] = min(max(value, float(row["min"])), float(row["max"]))
    for row in EFFECTS:
        if row["kind"] == "drives":
            driven = PARAMETERS[int(row["target"])]
            weight = ramp(row, found[int(row["id"])])
            found[int(row["target"])] = min(max(weight, float(driven["min"])), float(driven["max"]))
    sex = "male" if values.get(80, 0.0) > 0.5 else "female"
    for number, row in PARAMETERS.items():
        if row["sex"] not in {"both", sex}:
            found[number] = float(row["default"])
    return found


def joints(
    values: Mapping[int, float], overrides: Mapping[str, Three] | None = None, *, is_locked: bool = False
) -> dict[str, list[float]]:
    """Return position in avatar space and own scale of each bone and volume, as six numbers (section 3.4)."""
    acting = weights(values)
    rows = {name: row for name, row in avatar_rest.rows().items() if row["kind"] in {"bone", "collision_volume"}}
    scale = {name: [float(row[f"scale_{axis}"]) for axis in "xyz"] for name, row in rows.items()}
    place = {name: [float(row[f"pos_{axis}"]) for axis in "xyz"] for name, row in rows.items()}
    rest_scale = {name: list(values) for name, values in scale.items()}
    rest_place = {name: list(values) for name, values in place.items()}
    for effect in EFFECTS:
        if effect["kind"] not in {"bone", "volume"}:
            continue
        name, weight = effect["target"], acting[int(effect["id"])]
        for number, axis in enumerate("xyz"):
            by = weight * float(effect[f"scale_{axis}"] or 0)
            scale[name][number] += by
            place[name][number] += weight * float(effect[f"offset_{axis}"] or 0)
            if effect["kind"] == "bone":
                for child, row in rows.items():
                    if row["kind"] == "collision_volume" and row["parent"] == name:
                        scale[child][number] += by * rest_scale[child][number]
    for name, wanted in (overrides or {}).items():
        apart = sum((a - b) ** 2 for a, b in zip(wanted, rest_place[name], strict=True)) ** 0.5
        if apart > 1e-4:
            place[name] = list(wanted)
            if is_locked:
                scale[name] = rest_scale[name]
    world: dict[str, list[float]] = {}
    for name, row in rows.items():
        above, size = world.get(row["parent"], [0.0] * 3), scale.get(row["parent"], [1.0] * 3)
        world[name] = [origin + factor * by for origin, factor, by in zip(above, size, place[name], strict=True)]
    return {name: [*world[name], *scale[name]] for name in rows}
