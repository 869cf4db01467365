"""What imports of Timberborn blueprints are measured by."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene
from meshferry.io_formats.timbermesh.blueprint.components import to_channels
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

from . import models
from .measure import Row, Task, in_turns, ratio_row

PLACES, MODELS, NODES, TRIANGLES = 184, 4, 3, 160
"""As many as the largest real blueprint has; three nodes with as many triangles as models of samples have."""

OPTIONS = f"""\
import, ours    a blueprint that places {MODELS} models of {NODES} nodes ({NODES * TRIANGLES} triangles) {PLACES}
                times, each place with a turned transform and a box collider; all default
import, parts   the same operator for the {MODELS} models, and a script that creates as many objects with the same
                names, parents and channels, which share meshes, and links them to as many collections"""


def importing(_triangles: int, rounds: int, folder: Path) -> list[Row]:
    """Compare the import of a blueprint with imports of its models and a bare script for its objects."""
    blueprint, files = make(folder / "blueprint")
    models.empty_file()
    import_ours(blueprint)
    objects = describe()

    def import_parts() -> None:
        for path in files:
            import_ours(path)
        create(objects)

    tasks = [
        Task("ours", lambda: import_ours(blueprint), forget, lambda: expect(len(objects))),
        Task("parts", import_parts, models.empty_file, lambda: expect(len(objects) + MODELS * NODES)),
    ]
    seconds = in_turns(tasks, max(rounds, 9))
    name = f"import blueprint, {PLACES} places of {MODELS} models : models and bare objects"
    return [ratio_row(name, "ours", "parts", 1.5, seconds)]


def import_ours(path: Path) -> None:
    bpy.ops.import_scene.timbermesh(filepath=str(path))


def forget() -> None:
    """Start from an empty file, without the transforms of earlier imports."""
    models.empty_file()
    to_channels.cache_clear()


def expect(count: int) -> None:
    assert len(bpy.data.objects) == count


def make(folder: Path) -> tuple[Path, list[Path]]:
    """Write the models and the blueprint; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"Model{number}.timbermesh" for number in range(MODELS)]
    for number, path in enumerate(files):
        path.write_bytes(TIMBERMESH.write(TIMBERMESH.from_scene(_model(f"Model{number}", number))))
    places = {
        f"Place ({number})": {
            "TransformSpec": {
                "Position": {"X": number % 14, "Y": 0.25, "Z": number // 14},
                "Rotation": {"X": 10.0, "Y": 90.0 * number, "Z": 0.0},
                "Scale": {"X": 1.0, "Y": 1.5, "Z": 1.0},
            },
            "TimbermeshSpec": {"Model": f"Model{number % MODELS}"},
            "CollidersSpec": {
                "BoxColliders": [
                    {"Center": {"X": 0.5, "Y": 0.5, "Z": 0.5}, "Size": {"X": 1.0, "Y": 1.0, "Z": number + 1.0}}
                ]
            },
        }
        for number in range(PLACES)
    }
    root = {"BuildingModelSpec": {"FinishedModelName": "#Finished"}, "Children": {"#Finished": {"Children": places}}}
    path = folder / "Large.blueprint.json"
    path.write_text(json.dumps(root, indent=2), "utf-8")
    return path, files


def _model(name: str, seed: int) -> Scene:
    nodes = []
    for number in range(NODES):
        points = np.random.default_rng(10 * seed + number).random((3 * TRIANGLES, 3), np.float32)
        corners = np.arange(3 * TRIANGLES, dtype=np.int32)
        up = Layer("normal", np.tile(np.array([[0, 0, 1]], np.float32), (3 * TRIANGLES, 1)))
        mesh = Mesh(points, corners, np.zeros(TRIANGLES, np.int32), ["Wood"], normal=up)
        nodes.append(Node(f"#Part{number}", mesh=mesh, parent=-1 if number == 0 else 0))
    return Scene(name, nodes)


def describe() -> list[dict[str, Any]]:
    """Return what the script needs to know of each object, parents before children."""
    objects = sorted(bpy.data.objects, key=lambda obj: len(_above(obj)))
    index = {obj: number for number, obj in enumerate(objects)}
    return [
        {
            "name": obj.name,
            "has_mesh": obj.type == "MESH",
            "parent": index[obj.parent] if obj.parent is not None else None,
            "home": obj.users_collection[0].name,
            "mode": obj.rotation_mode,
            "channels": tuple(map(tuple, (obj.location, obj.rotation_euler, obj.rotation_quaternion, obj.scale))),
        }
        for obj in objects
    ]


def _above(obj: Any) -> list[Any]:
    return [] if obj.parent is None else [*_above(obj.parent), obj.parent]


def create(objects: list[dict[str, Any]]) -> None:
    """Create objects with these channels, and link them to the scene at the end."""
    homes = {name: bpy.data.collections.new(name) for name in dict.fromkeys(one["home"] for one in objects)}
    mesh = bpy.data.meshes[0]
    made: list[Any] = []
    for one in objects:
        obj = bpy.data.objects.new(one["name"], mesh if one["has_mesh"] else None)
        obj.rotation_mode = one["mode"]
        location, euler, quaternion, scale = one["channels"]
        obj.location, obj.scale = location, scale
        if one["mode"] == "QUATERNION":
            obj.rotation_quaternion = quaternion
        else:
            obj.rotation_euler = euler
        if one["parent"] is not None:
            obj.parent = made[one["parent"]]
        homes[one["home"]].objects.link(obj)
        made.append(obj)
    for home in homes.values():
        bpy.context.scene.collection.children.link(home)
    bpy.context.view_layer.update()


GROUPS: dict[str, Callable[[int, int, Path], list[Row]]] = {"import": importing}
