"""What the tests of the Second Life operators share: assets that they make themselves, and a layout that listens."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

CUBE = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)], np.float32)
SIDES = np.array(
    [
        *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
        *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
    ],
    np.int32,
)


def crate_scene(name: str, *, size: tuple[float, float, float] = (2.0, 1.0, 0.5)) -> Any:
    """Return a scene of one box with all its levels, the coarser ones a side each less."""
    from meshferry.io_formats.core import scene as sc

    made = sc.Scene(name)
    for level, sides in enumerate((12, 10, 8, 6)):
        mesh = sc.Mesh(
            CUBE.copy(),
            SIDES[:sides].reshape(-1).copy(),
            np.zeros(sides, np.int32),
            ["Wood"],
            normal=sc.Layer("normal", (CUBE * 2 / np.sqrt(3)).astype(np.float32)),
            uvs=[sc.Layer("UVMap", CUBE[:, :2] + 0.5)],
        )
        made.nodes.append(sc.Node(name, scale=size, mesh=mesh, lod=level, lod_of=0 if level else None))
    return made


def write_crate(path: Path, **kind: Any) -> Path:
    """Write the asset of :func:`crate_scene`, whatever the file is called."""
    from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH

    path.write_bytes(SECOND_LIFE_MESH.write(SECOND_LIFE_MESH.from_scene(crate_scene(path.stem, **kind))))
    return path


class Drawn:
    """A layout that notes what is drawn."""

    def __init__(self, lines: list[Any] | None = None) -> None:
        self.lines: list[Any] = [] if lines is None else lines
        self.buttons: list[Any] = []

    def label(self, text: str = "", **_: Any) -> None:
        self.lines.append(text)

    def prop(self, _owner: Any, name: str, placeholder: str = "", **_: Any) -> None:
        self.lines.append((name, placeholder))

    def operator(self, name: str, **_: Any) -> Any:
        self.lines.append(name)
        self.buttons.append(SimpleNamespace(name=name))
        return self.buttons[-1]

    def operator_menu_enum(self, name: str, _property: str, text: str = "", **_: Any) -> None:
        self.lines.append((name, text))

    def separator(self) -> None:
        self.lines.append("")

    def popover(self, name: str, **_: Any) -> None:
        self.lines.append(name)

    def panel(self, *_: Any, **__: Any) -> tuple[Any, Any]:
        return self, self

    def row(self, **_: Any) -> Any:
        return self

    column = split = box = grid_flow = row


def panel_context(bpy: Any) -> Any:
    """Return the context of a panel in the sidebar."""
    return SimpleNamespace(
        object=bpy.context.view_layer.objects.active,
        view_layer=bpy.context.view_layer,
        scene=bpy.context.scene,
        window_manager=bpy.context.window_manager,
        blend_data=bpy.data,
        collection=bpy.context.collection,
        preferences=bpy.context.preferences,
        evaluated_depsgraph_get=bpy.context.evaluated_depsgraph_get,
        region=SimpleNamespace(width=240, type="UI"),
    )
