"""Files that the tests make themselves, and an operator that only listens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flag_scene import flag_scene


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
    from meshferry.io_formats import api
    from meshferry.io_formats.core import scene
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    def make(name: str, *nodes: str, material: str = "BaseWood_Brown.Folktails", folder: Path = tmp_path) -> Path:
        made = scene.Scene(name, [scene.Node("Root")])
        for node in nodes or ("#Blade",):
            points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
            normals = scene.Layer("normal", np.tile(np.array([[0, 0, 1]], np.float32), (3, 1)))
            mesh = scene.Mesh(points, np.arange(3, dtype=np.int32), np.zeros(1, np.int32), [material], normal=normals)
            made.nodes.append(scene.Node(node, parent=0, mesh=mesh))
        path = folder / name
        api.write_scene(made, path, TIMBERMESH)
        return path

    return make


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a folder that stands for another machine, and a function that returns the paths in it that were opened."""
    from meshferry.blender_data import file_records

    folder, touched = tmp_path / "share", []
    folder.mkdir()

    def watched(old: Callable[..., Any]) -> Callable[..., Any]:
        def method(path: Path, *args: Any, **kwargs: Any) -> Any:
            touched.append(path)
            return old(path, *args, **kwargs)

        return method

    for name in ("exists", "is_dir", "stat", "open"):
        monkeypatch.setattr(Path, name, watched(getattr(Path, name)))
    monkeypatch.setattr(file_records, "is_network_path", lambda text: text.startswith(str(folder)))
    return folder, lambda: [path for path in touched if path.is_relative_to(folder)]


@pytest.fixture
def broken_file(make_file: Callable[..., Path]) -> Path:
    """Return a Timbermesh file that was cut off."""
    path = make_file("broken.timbermesh")
    path.write_bytes(path.read_bytes()[:30])
    return path


@pytest.fixture
def make_unigine(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a UNIGINE file of a flag: a mesh, or with ``frames`` an animation."""

    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    def make(name: str, **kind: Any) -> Path:
        path = tmp_path / name
        target = UNIGINE_ANIMATION if kind.get("frames") else UNIGINE_MESH
        path.write_bytes(target.write(target.from_scene(flag_scene(path.stem, **kind))))
        return path

    return make
