"""Files that the tests make themselves, and an operator that only listens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


class Listener:
    """Takes reports as an operator does."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, str]] = []

    def report(self, kind: set[str], text: str) -> None:
        self.reports.append((*kind, text))

    def said(self, kind: str) -> list[str]:
        return [text for of_kind, text in self.reports if of_kind == kind]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def make_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a Timbermesh file of a triangle for each node name."""
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core import scene

    def make(name: str, *nodes: str, material: str = "BaseWood_Brown.Folktails", folder: Path = tmp_path) -> Path:
        made = scene.Scene(name, [scene.Node("Root")])
        for node in nodes or ("#Blade",):
            points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
            normals = scene.Layer("normal", np.tile(np.array([[0, 0, 1]], np.float32), (3, 1)))
            mesh = scene.Mesh(points, np.arange(3, dtype=np.int32), np.zeros(1, np.int32), [material], normal=normals)
            made.nodes.append(scene.Node(node, parent=0, mesh=mesh))
        path = folder / name
        api.write_scene(made, path, registry.TIMBERMESH)
        return path

    return make


@pytest.fixture
def broken_file(make_file: Callable[..., Path]) -> Path:
    """Return a Timbermesh file that was cut off."""
    path = make_file("broken.timbermesh")
    path.write_bytes(path.read_bytes()[:30])
    return path


def flag_scene(name: str, *, bones: bool = True, frames: int = 0, clip: str = "", helpers: float = 0.0) -> Any:
    """Return a scene of a flag, three triangles with the surfaces Cloth, Cloth and Pole, that hangs on two bones.

    With ``helpers`` there are the bones Control, of that length, and Handle at its end, which deform nothing.

    With ``frames`` there is an animation that moves the second bone, and no mesh.
    """
    from meshferry.io_formats.core import scene as sc

    made = sc.Scene(name)
    if bones or frames:
        joints = [sc.Joint("Root"), sc.Joint("Tip", 0, translation=(0.0, 0.0, 1.0))]
        if helpers:
            joints += [sc.Joint("Control"), sc.Joint("Handle", 2, translation=(0.0, helpers, 0.0))]
        made.skeletons = [sc.Skeleton(name, joints)]
    if frames:
        rise = np.linspace(0, 1, frames, dtype=np.float32)
        moved = np.stack([np.zeros_like(rise), np.zeros_like(rise), 1 + rise], axis=1)
        still = np.tile(np.array([[1, 0, 0, 0]], np.float32), (frames, 1))
        track = sc.TransformTrack(1, moved, still, np.ones((frames, 3), np.float32), skeleton=0)
        made.clips = [sc.Clip(clip or name, 0.0, frames, transforms=[track])]
        return made
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0]], np.float32)
    corners = np.array([0, 1, 2, 0, 2, 3, 0, 3, 4], np.int32)
    normals = np.repeat(np.array([[0, -1, 0], [0, -1, 0], [-1, 0, 0]], np.float32), 3, axis=0)
    mesh = sc.Mesh(
        points,
        corners,
        np.arange(3, dtype=np.int32),
        ["Cloth", "Cloth", "Pole"],
        normal=sc.Layer("normal", normals, per_corner=True),
        uvs=[sc.Layer("UV0", points[:, [0, 2]].copy())],
        surfaces=[sc.Surface("Cloth"), sc.Surface("Cloth"), sc.Surface("Pole")],
    )
    if bones:
        mesh.joint_indices = np.tile(np.array([[0, 1, 0, 0]], np.int32), (5, 1))
        mesh.joint_weights = np.tile(np.array([[0.25, 0.75, 0, 0]], np.float32), (5, 1))
    made.nodes = [sc.Node(name, mesh=mesh, skeleton=0 if bones else None)]
    return made


@pytest.fixture
def make_unigine(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a UNIGINE file of a flag: a mesh, or with ``frames`` an animation."""
    from meshferry.io_formats import registry

    def make(name: str, **kind: Any) -> Path:
        path = tmp_path / name
        target = registry.UNIGINE_ANIMATION if kind.get("frames") else registry.UNIGINE_MESH
        path.write_bytes(target.write(target.from_scene(flag_scene(path.stem, **kind))))
        return path

    return make
