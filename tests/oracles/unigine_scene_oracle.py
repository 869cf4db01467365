"""Read written UNIGINE scenes with an XML parser and NumPy alone, as the format pages say."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import unigine_oracle

Array = npt.NDArray[np.float64]


@dataclass
class PlacedElement:
    """A node element with its matrix (4, 4) in the world, and whether it or a node above is hidden."""

    element: ET.Element
    world: Array
    is_hidden: bool

    @property
    def name(self) -> str:
        return self.element.get("name", "")


class WrittenScene:
    """A node file and the files that it refers to, found by the GUIDs in the metas of a folder."""

    def __init__(self, path: Path, folder: Path | None = None) -> None:
        self.path = path
        self.files: dict[str, Path] = {}
        for meta in sorted((folder or path.parent).rglob("*.meta")):
            guid = ET.parse(meta).getroot().findtext("guid", "")
            assert len(guid) == 40, meta
            assert guid not in self.files, f"{meta} and {self.files[guid]} have one GUID"
            self.files[guid] = meta.with_suffix("")

    def file(self, reference: str) -> Path:
        """Return the file of a reference; it exists."""
        assert reference.startswith("guid://"), reference
        found = self.files[reference.removeprefix("guid://")]
        assert found.is_file()
        return found

    def nodes(self, path: Path | None = None, above: Array | None = None) -> Iterator[PlacedElement]:
        """Yield all nodes with those of referenced files."""
        root = ET.parse(path or self.path).getroot()
        start = np.identity(4) if above is None else above
        for element in root.findall("node"):
            yield from self._below(element, start, is_hidden=False)

    def _below(self, element: ET.Element, above: Array, *, is_hidden: bool) -> Iterator[PlacedElement]:
        numbers = np.array(element.findtext("transform", "").split(), float)
        world = above @ numbers.reshape(4, 4).T
        is_hidden |= element.get("enabled") == "0"
        yield PlacedElement(element, world, is_hidden)
        reference = element.findtext("reference")
        if reference is not None:
            yield from self.nodes(self.file(reference), world)
        for child in element.findall("node"):
            yield from self._below(child, world, is_hidden=is_hidden)

    def triangles(self) -> Array:
        """Return all triangles (T, 3, 3) in the world, counter-clockwise; mirrored ones turned."""
        runs = [np.empty((0, 3, 3))]
        for node in self.nodes():
            reference = node.element.findtext("mesh_name")
            if reference is None or node.is_hidden:
                continue
            data = unigine_oracle.decode(self.file(reference).read_bytes())
            names = [element.get("name") for element in node.element.findall("surface")]
            assert names == [surface.name for surface in data.surfaces]
            for surface in data.surfaces:
                points = surface.targets[0].positions.astype(float) @ node.world[:3, :3].T + node.world[:3, 3]
                corners = surface.c_indices.reshape(-1, 3)
                runs.append(points[corners if np.linalg.det(node.world[:3, :3]) > 0 else corners[:, ::-1]])
        return np.concatenate(runs)
