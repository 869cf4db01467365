"""Collect nodes and settings of a material that files cannot store, for one message of each kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....io_formats.core.messages import Report, Text, joined, listed


@dataclass
class LeftOut:
    """Nodes and settings of a material that a neutral shading cannot store."""

    nodes: dict[str, None] = field(default_factory=dict)
    """Labels of the types of nodes."""
    settings: list[str] = field(default_factory=list)
    color_spaces: list[str] = field(default_factory=list)
    """Names of images that Blender treats as colours while the target program treats them as data, or the reverse."""

    def add_node(self, node: Any) -> None:
        """Add a node, by the label of its type."""
        self.nodes[node.bl_label] = None

    def report(self, name: str, report: Report) -> None:
        """Report everything that was collected for the material with this name."""
        about = report.about(Text("Material '{}'", name))
        if self.nodes:
            text = "files hold images and values, not the nodes {}; bake them to images"
            about.loss("material-nodes-left-out", text, joined(self.nodes))
        if self.settings:
            about.loss(
                "material-settings-left-out",
                "not part of the exported material: {}",
                joined(dict.fromkeys(self.settings)),
            )
        if self.color_spaces:
            text = (
                "the colour space of {} is not the one that the target program assumes; choose sRGB for colours and "
                "Non-Color for everything else"
            )
            about.change("image-color-space", text, listed(list(dict.fromkeys(self.color_spaces))))
