"""Positions of shader nodes: columns from left to right, without overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import bpy

_GAP_X = 60.0
_GAP_Y = 30.0
_HEADER = 34.0
_ROW = 22.0
_EXTRA_HEIGHT = {"TEX_IMAGE": 180.0, "BSDF_PRINCIPLED": 80.0, "MIX": 70.0, "NORMAL_MAP": 130.0}
"""Height of the parts of a node besides its sockets, by type, in units of the node editor. Blender computes heights
only when it draws nodes."""
_USUAL_EXTRA_HEIGHT = 30.0
_ROWS_OF_VECTOR = 3
"""Number of rows that an unlinked vector input takes below its name."""


def arrange_nodes(tree: bpy.types.NodeTree, output: bpy.types.Node) -> None:
    """Place the nodes of a tree in columns to the left of the output.

    A node is placed to the left of all nodes that it feeds, and not above the first of them. In a column, nodes follow
    the order of the inputs that they feed, so that few wires cross. Nodes that feed nothing are placed below the
    others.
    """
    columns: dict[bpy.types.Node, int] = {}
    _set_columns(output, 0, columns)
    order = list(dict.fromkeys(_sources_first_to_last(output)))
    for node in tree.nodes:  # nodes that are not connected to the output
        if node not in columns and not any(socket.is_linked for socket in node.outputs):
            _set_columns(node, 2, columns)
            order += [found for found in _sources_first_to_last(node) if found not in order]
    widths: dict[int, float] = {}
    for node, column in columns.items():
        widths[column] = max(widths.get(column, 0.0), node.width)
    right, bottom = output.location.x + output.width, dict.fromkeys(widths, output.location.y)
    left_edges: dict[int, float] = {}
    for column in sorted(widths):
        left_edges[column] = right - widths[column]
        right = left_edges[column] - _GAP_X
    last = {columns[node]: node for node in order}
    for node in order:
        node.select = False
        column = columns[node]
        fed = [link.to_node.location.y for socket in node.outputs for link in _links_of(socket)]
        top = min([bottom[column], *fed[:1]])
        node.location = (left_edges[column], top)
        if last[column] != node:
            bottom[column] = top - _height(node) - _GAP_Y


def _set_columns(node: bpy.types.Node, column: int, columns: dict[bpy.types.Node, int]) -> None:
    if columns.get(node, -1) >= column:
        return
    columns[node] = column
    for socket in node.inputs:
        for link in _links_of(socket):
            _set_columns(link.from_node, column + 1, columns)


def _sources_first_to_last(node: bpy.types.Node) -> Iterator[bpy.types.Node]:
    """Yield a node and all nodes upstream of it, in the order of inputs; nodes with several users are repeated."""
    yield node
    for socket in node.inputs:
        for link in _links_of(socket):
            yield from _sources_first_to_last(link.from_node)


def _links_of(socket: bpy.types.NodeSocket) -> Iterable[bpy.types.NodeLink]:
    """Return the links of a socket.

    For an unlinked socket Blender is not asked, since it would search all links of the tree.
    """
    return socket.links or () if socket.is_linked else ()


def _height(node: bpy.types.Node) -> float:
    shown = [socket for socket in (*node.outputs, *node.inputs) if socket.enabled and not socket.hide]
    vectors = [socket for socket in node.inputs if socket in shown and socket.type == "VECTOR" and not socket.is_linked]
    hidden = sum(socket.hide_value for socket in vectors)
    rows = len(shown) + _ROWS_OF_VECTOR * (len(vectors) - hidden)
    return _HEADER + _ROW * rows + _EXTRA_HEIGHT.get(node.type, _USUAL_EXTRA_HEIGHT)
