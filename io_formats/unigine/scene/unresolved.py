"""Messages about references of a scene that cannot be resolved."""

from __future__ import annotations

from enum import Enum


class Problem(Enum):
    """Kind of an unresolved reference.

    Its value: message code, noun in singular and plural, template of the message.
    """

    MESH = ("mesh-not-found", "mesh", "meshes", "{} not found; an empty stands for each: {}")
    SOURCE_MESH = ("only-source-found", "mesh", "meshes", "{} not found, only the source; import that separately: {}")
    """The mesh is missing, but the file from which the editor made it exists."""
    NODE = ("node-file-not-found", "node file", "node files", "{} not found; an empty stands for each: {}")
    SOURCE_NODE = (
        "only-source-found",
        "node file",
        "node files",
        "{} not found, only the source; import that separately: {}",
    )
    BROKEN_NODE = ("unreadable-node-file", "node file", "node files", "{} cannot be read; an empty stands for each: {}")
    LOOP = ("node-file-loop", "node file refers to itself", "node files refer to themselves", "{}; left out there: {}")
    CLUSTER = ("cluster-left-out", "cluster", "clusters", "{} left out, since a binary file has the places: {}")
    ANIMATION = ("unreadable-animation", "animation", "animations", "{} not found or not readable: {}")
