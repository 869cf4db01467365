"""References of a scene that could not be followed, reported once for each kind."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from ...core.messages import counted, listed

_NAMED = 5


class Problem(Enum):
    """Kind of an unresolved reference."""

    MESH = auto()
    SOURCE_MESH = auto()
    """The mesh is missing, but the file that the editor made it from is there."""
    BROKEN_MESH = auto()
    NODE = auto()
    SOURCE_NODE = auto()
    BROKEN_NODE = auto()
    LOOP = auto()
    CLUSTER = auto()
    """The places of the cluster are in a binary file."""
    ANIMATION = auto()


def _text(problem: Problem, count: int, names: str) -> str:
    meshes = counted(count, "mesh", "meshes")
    files = counted(count, "node file")
    loops = counted(count, "node file refers to itself", "node files refer to themselves")
    texts: dict[Problem, Callable[[], str]] = {
        Problem.MESH: lambda: f"{meshes} not found; an empty stands for each: {names}",
        Problem.SOURCE_MESH: lambda: f"{meshes} not found, only the source; import that separately: {names}",
        Problem.BROKEN_MESH: lambda: f"{meshes} cannot be read; an empty stands for each: {names}",
        Problem.NODE: lambda: f"{files} not found; an empty stands for each: {names}",
        Problem.SOURCE_NODE: lambda: f"{files} not found, only the source; import that separately: {names}",
        Problem.BROKEN_NODE: lambda: f"{files} cannot be read; an empty stands for each: {names}",
        Problem.LOOP: lambda: f"{loops}; left out there: {names}",
        Problem.CLUSTER: lambda: f"{counted(count, 'cluster')} left out, since a binary file has the places: {names}",
        Problem.ANIMATION: lambda: f"{counted(count, 'animation')} not found or not readable: {names}",
    }
    return texts[problem]()


class Unresolved:
    """Collects the names of unresolved references."""

    def __init__(self) -> None:
        self._found: dict[Problem, dict[str, None]] = {}

    def add(self, problem: Problem, name: str) -> None:
        """Note a reference; the same name counts once."""
        self._found.setdefault(problem, {})[name] = None

    def names(self, problem: Problem) -> list[str]:
        """Return the names of one kind, in the order of the files."""
        return list(self._found.get(problem, ()))

    def texts(self) -> list[str]:
        """Return a sentence for each kind, with the first names."""
        return [_text(problem, len(names), listed(list(names), _NAMED)) for problem, names in self._found.items()]
