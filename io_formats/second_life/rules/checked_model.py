"""A model whose parts have names in findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.messages import Details, Elements, Fix, Text
from ...core.scene import Mesh, Node
from ..models.models import Model

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CheckedModel:
    """A model to check, and findings about its finest level or another node."""

    model: Model
    sizes: Mapping[str, int]
    stored: bool

    def about(self, node: Node | None = None, *, fix: Fix | None = None, **members: Flags) -> Details:
        """Return the details of a finding about a node, by default the finest level.

        The keyword argument ``triangles`` or ``vertices`` marks the elements that a report selects.
        """
        names = ((node or self.model.finest).name,) if fix else ()
        return Details(item=self.item(node), elements=_elements(node, members), fix=fix, names=names)

    def item(self, node: Node | None = None) -> str:
        """Return the name of the object concerned, or for a part without an object, the part and its model."""
        name = self.model.name
        if node is None or node is self.model.finest:
            return Text("Object '{}'", name) if name else ""
        if name and node.name and node.name != name and not node.generated_from:
            return Text("Object '{}'", node.name)
        part = self.model.part_name(node)
        return Text("Object '{}', {}", name, part) if name else part.capitalized()

    def level_nodes(self, *, made: bool = True) -> Iterator[tuple[int, Node, Mesh]]:
        """Yield the existing levels, the finest first; with ``made``, also those that an export generates."""
        for number, node in enumerate(self.model.levels):
            if node is not None and node.mesh is not None and (made or not node.generated_from):
                yield number, node, node.mesh


def _elements(node: Node | None, members: Mapping[str, Flags]) -> Elements | None:
    """Return triangles or vertices of a node as elements, if it is an object in Blender."""
    for kind, marked in members.items():
        if node is not None and not node.generated_from:
            return Elements(kind, node.name, tuple(np.flatnonzero(marked).tolist()))
    return None
