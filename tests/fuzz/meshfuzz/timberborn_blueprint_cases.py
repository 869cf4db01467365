"""Hostile blueprints: sound files with hostile values, members moved about, and raw changes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from . import raw
from . import timberborn_blueprint_seeds as seeds

_NUMBERS = (0, 1, -1, 0.5, 1e-7, 1e9, 1e39, 3.4e38, -0.0, 90, 360)
_ODD = (float("nan"), float("inf"), "0.5", "", None, True, [], {}, [1], {"X": 1})
_PATHS = ("Self.blueprint", "Shed/Shed.Model", "../Shed", "/Shed", "C:/Shed", "", ".", "ConstructionBases/X.blueprint")
_NAMES = ("#Finished", "Self#nested", "A#nested#delete", "Children#delete", "A#append", "A/~b", "", "#Alive", "\u041a")
_MOST_PLACES = 400
"""Objects and lists of a case above which it does not grow: copies of copies double it."""
NAMED = "self.blueprint.json"
"""Path of nested blueprints that stands for the case's own file."""


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a blueprint and how it was made."""
    known = {**seeds.files(), **files}
    choice = rng.random()
    if choice < 0.3:
        name = rng.choice(list(known))
        return raw.mutate(known[name], rng), f"raw changes to {name}"
    if choice < 0.4:
        name = rng.choice(list(known))
        return known[name], name
    tree = copy.deepcopy(seeds.building())
    tree["Children"]["Self#nested"] = seeds.nested("Self.blueprint", {"Children": {"Self#nested#delete": {}}})
    for _ in range(rng.choice((1, 2, 5, 20))):
        _change(tree, rng)
    if rng.random() < 0.02:
        depth = rng.choice((40, 60, 20_000))
        return b'{"Children":{"A":' * depth + b"{}" + b"}}" * depth, f"{depth} levels"
    return json.dumps(tree, indent=rng.choice((None, 2))).encode(), "changed values"


def _change(tree: dict[str, Any], rng: random.Random) -> None:
    """Change, remove, rename or copy one member somewhere."""
    places: list[Any] = []
    waiting: list[Any] = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            places.append(value)
            waiting += list(value.values()) if isinstance(value, dict) else value
    if len(places) > _MOST_PLACES:
        return
    place = rng.choice(places)
    key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
    choice = rng.random()
    if choice < 0.5:
        place[key] = copy.deepcopy(rng.choice((*_NUMBERS, *_ODD, *_PATHS)))
    elif choice < 0.6:
        del place[key]
    elif choice < 0.8 and isinstance(place, dict):
        place[rng.choice(_NAMES)] = copy.deepcopy(place[key])
    else:
        place[key] = copy.deepcopy(rng.choice(places[:20]))


def link(document: Any, data: bytes, options: dict[str, Any]) -> Any:
    """Return the scene of a document that may nest its own file."""
    from pathlib import Path

    from meshferry.io_formats.timbermesh.blueprint.mapping import PlacementBuilder

    return PlacementBuilder("case", SelfFiles(data)).build(document, Path("case.blueprint.json"))


class SelfFiles:
    """Files of a mod that has none, and an archive in which one path is the case's own file."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def find(self, relative: str, near: Any) -> None:
        """Return no file."""

    def archive(self) -> Any:
        """Return the archive."""
        return self

    def read(self, path: str) -> bytes | None:
        """Return the case itself for one path."""
        return self._data if path.lower() == NAMED else None

    def has_folder(self, path: str) -> bool:
        """Return whether a model is one of the game."""
        return path.startswith("Shed")


def patch(found: Any, data: bytes, scene: Any, rng: random.Random) -> None:
    """Move random nodes; require that the result is read with these numbers, and that no edits give its bytes."""
    from meshferry.io_formats.core.placement import Channels, NodeEdit

    if found.patch(data, []).data != data:
        raise AssertionError("no edits change the file")
    nodes = [node for node in scene.placement.parts[0].nodes if node.key and node.channels is not None]
    edits: dict[str, Any] = {}
    for node in rng.sample(nodes, min(len(nodes), 3)):
        moved = rng.choice((0.25, 1e-7, -3.0, 12345.0))
        channels = Channels((moved, node.channels.location[1], 0.0), node.channels.rotation, node.channels.scale, "YXZ")
        edits[node.key] = NodeEdit(node.key, node.name, matrix=channels.matrix(), channels=channels)
    patched = found.patch(data, list(edits.values()))
    again = {node.key: node for node in found.to_scene(found.read(patched.data), "again").placement.parts[0].nodes}
    for key, edit in edits.items():
        if abs(again[key].channels.location[0] - edit.channels.location[0]) > 1e-6 * abs(edit.channels.location[0]):
            raise AssertionError(f"{key} is not where it was put")
