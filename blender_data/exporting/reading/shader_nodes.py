"""Sources of the inputs of shader nodes, and the nodes and settings of a material that files cannot store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import bpy

from ....io_formats.core.messages import Named, Report, Text, joined, listed


@dataclass
class LeftOut:
    """Nodes and settings of a material that a neutral shading cannot store."""

    nodes: dict[str, None] = field(default_factory=dict)
    """Labels of the types of nodes."""
    settings: list[str] = field(default_factory=list)
    """Settings that no picture can hold, such as coat."""
    mappings: list[str] = field(default_factory=list)
    """Products and projections of images, and other settings that pictures of the whole material can hold."""
    color_spaces: list[str] = field(default_factory=list)
    """Names of images that Blender treats as colours while the target program treats them as data, or the reverse."""

    def add_node(self, node: Any) -> None:
        """Add a node, by the label of its type."""
        self.nodes[node.bl_label] = None

    def report(self, name: str, report: Report, *, is_off: bool = False) -> None:
        """Report everything that was collected for the material with this name.

        ``is_off`` is whether the user switched off the bakes that would mend a part of it.
        """
        advice = Text("switch on Bake Materials") if is_off else Text("bake the material to images")
        about = report.about(Text("Material '{}'", Named("material", name)))
        if self.nodes:
            text = "files hold images and values, not the nodes {}; {}"
            about.loss("material-nodes-left-out", text, joined(self.nodes), advice)
        if self.mappings:
            text = "not part of the exported material: {}; {}"
            about.loss("material-mappings-left-out", text, joined(dict.fromkeys(self.mappings)), advice)
        if self.settings:
            text = "not part of the exported material: {}"
            about.loss("material-settings-left-out", text, joined(dict.fromkeys(self.settings)))
        if self.color_spaces:
            text = (
                "the colour space of {} is not the one that the target program assumes; choose sRGB for colours and "
                "Non-Color for everything else"
            )
            about.change("image-color-space", text, listed(list(dict.fromkeys(self.color_spaces))))


_MOST_STEPS = 1000
"""Largest number of links that are followed; only damaged files have longer chains."""
_MOST_NODES = 500
"""Largest number of nodes that are searched before an input."""


@dataclass(frozen=True)
class Socket:
    """A socket, with the group nodes (outermost first) that contain its node."""

    socket: Any
    groups: tuple[Any, ...] = ()

    @property
    def node(self) -> Any:
        """The node of the socket."""
        return self.socket.node

    @property
    def is_value(self) -> bool:
        """Whether the socket is an unlinked input, so that its own value is used."""
        return not self.socket.is_output

    def input(self, key: str | int) -> Socket:
        """Return another input of the same node, by name or index."""
        return Socket(self.node.inputs[key], self.groups)

    def numbers(self) -> tuple[float, ...]:
        """Return the value of an input: one number, or the components of a vector or colour."""
        value = getattr(self.socket, "default_value", 0.0)
        return tuple(value) if hasattr(value, "__len__") else (float(value),)


def source(entry: Socket) -> Socket:
    """Return the output to which an input is linked through other nodes, or the input that provides its value."""
    socket, groups = entry.socket, entry.groups
    for _step in range(_MOST_STEPS):
        links = [link for link in socket.links if link.is_valid and not link.is_muted] if socket.is_linked else []
        if not links:
            break
        found, node = links[0].from_socket, links[0].from_node
        if node.mute:
            inner = next((link.from_socket for link in node.internal_links if link.to_socket == found), None)
        elif node.type == "REROUTE":
            inner = node.inputs[0]
        elif node.type == "GROUP" and node.node_tree is not None:
            inner = _by_identifier(_output_of(node.node_tree), found.identifier)
            groups = (*groups, node)
        elif node.type == "GROUP_INPUT" and groups:
            inner = _by_identifier(groups[-1], found.identifier)
            groups = groups[:-1]
        else:
            return Socket(found, groups)
        if inner is None:
            break
        socket = inner
    return Socket(socket, groups)


def sources(entry: Socket) -> Iterator[Socket]:
    """Yield the outputs of nodes that an input depends on, nearest first, without those that have no effect."""
    waiting, seen = [entry], set[tuple[Any, tuple[Any, ...]]]()
    while waiting and len(seen) < _MOST_NODES:
        found = source(waiting.pop(0))
        if not found.is_value and (found.node, found.groups) not in seen:
            seen.add((found.node, found.groups))
            yield found
            waiting += [Socket(socket, found.groups) for socket in found.node.inputs if _has_effect(socket)]


def _has_effect(entry: Any) -> bool:
    """Return whether an input is linked and counts, since no strength, weight or factor of its node is a constant 0."""
    if not (entry.is_linked and entry.enabled):
        return False
    node, part = entry.node, entry.name.partition(" ")[0]
    if node.type in {"MIX", "MIX_RGB", "MIX_SHADER"}:
        factor, first, second = [socket for socket in node.inputs if socket.enabled][:3]
        without = {0.0: second, 1.0: first if getattr(node, "blend_type", "MIX") == "MIX" else None}
        return factor.is_linked or factor.type != "VALUE" or without.get(factor.default_value) != entry
    gates = ("Strength", *(part + kind for kind in ("", " Weight", " Strength")))
    found = [socket for name in gates if (socket := node.inputs.get(name)) is not None and name != entry.name]
    return entry.name == "Normal" or not any(
        socket.type == "VALUE" and not socket.is_linked and socket.default_value == 0.0 for socket in found
    )


def output_of(tree: bpy.types.NodeTree) -> Any:
    """Return the output node of a material that is shown, or None."""
    return tree.get_output_node("ALL") or tree.get_output_node("EEVEE") or tree.get_output_node("CYCLES")


def _output_of(tree: bpy.types.NodeTree) -> Any:
    outputs = [node for node in tree.nodes if node.type == "GROUP_OUTPUT"]
    return next((node for node in outputs if node.is_active_output), outputs[0] if outputs else None)


def _by_identifier(node: Any, identifier: str) -> Any:
    inputs = node.inputs if node is not None else ()
    return next((socket for socket in inputs if socket.identifier == identifier), None)
