"""References of a scene that could not be followed, reported once for each kind."""

from __future__ import annotations

from enum import Enum

from ...core.messages import Report, counted, listed

_NAMED = 5


class Problem(Enum):
    """Kind of an unresolved reference: code, one of its kind, several, and what became of them."""

    MESH = ("mesh-not-found", "mesh", "meshes", "{} not found; an empty stands for each: {}")
    SOURCE_MESH = ("only-source-found", "mesh", "meshes", "{} not found, only the source; import that separately: {}")
    """The mesh is missing, but the file that the editor made it from is there."""
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


class Unresolved:
    """Collects the names of unresolved references."""

    def __init__(self) -> None:
        self._found: dict[Problem, dict[str, None]] = {}

    def add(self, problem: Problem, name: str) -> None:
        """Note a reference; the same name counts once."""
        self._found.setdefault(problem, {})[name] = None

    def report(self, report: Report) -> None:
        """Report each kind once, with the first names."""
        for problem, names in self._found.items():
            code, one, many, template = problem.value
            report.loss(code, template, counted(len(names), one, many), listed(list(names), _NAMED))
