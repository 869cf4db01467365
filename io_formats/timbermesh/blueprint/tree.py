"""Nodes of a blueprint and its nested blueprints (docs/formats/timberborn_blueprints.md, sections 3 and 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from ...core.errors import FormatError
from ...core.messages import Kind, Text, Unresolved
from .codec import MOST_LEVELS, MOST_NODES, NESTED, BlueprintSource, Members, Merger, child_of, ending_of
from .json_text import pointer_of


class Problem(Enum):
    """Kind of a problem: code, noun in singular and plural, template for the consequence, and kind of the message."""

    MODEL = ("model-not-found", "model", "models", "{} not found; an empty stands for each: {}")
    GAME_MODEL = (
        "game-model-not-found",
        "model of the game",
        "models of the game",
        "{} not there as files; an empty stands for each: {}",
        Kind.NOTE,
    )
    BLUEPRINT = (
        "blueprint-not-found",
        "nested blueprint",
        "nested blueprints",
        "{} not found; an empty stands for each: {}",
    )
    GAME_BLUEPRINT = (
        "game-blueprint-not-found",
        "nested blueprint of the game",
        "nested blueprints of the game",
        "{} not found; an empty stands for each: {}",
        Kind.NOTE,
    )
    BROKEN_BLUEPRINT = (
        "unreadable-blueprint",
        "nested blueprint",
        "nested blueprints",
        "{} cannot be read; an empty stands for each: {}",
    )
    LOOP = (
        "blueprint-loop",
        "blueprint nests itself without an end",
        "blueprints nest themselves without an end",
        "{}; left out there: {}",
    )
    PATH = (
        "refused-path",
        "path leads out of the mod",
        "paths lead out of the mod",
        "{}; an empty stands for each: {}",
    )
    NUMBER = (
        "invalid-number",
        "value is not a finite number",
        "values are not finite numbers",
        "{}; replaced by 0, or 1 in scales: {}",
        Kind.CHANGE,
    )
    STATE = (
        "state-without-node",
        "model of a state has no node",
        "models of states have no node",
        "{}, which the game needs: {}",
    )
    PARENT = (
        "attachment-parent-not-found",
        "attachment has no parent",
        "attachments have no parent",
        "{}; put at the root: {}",
    )


PLACES_OF_GAME = frozenset({"constructionbases", "naturalresources", "characters", "environment", "mapeditor"})
"""First folders of the game's own models, in lower case."""


_MOST_CHARACTERS = 1 << 24
"""Limit of the length of all keys together."""
_VARIANTS = {"#Alive": "alive", "#Dying": "dying", "#Dead": "dead"}


class State(Enum):
    """When the game shows a node."""

    ALWAYS = "always"
    FINISHED = "finished"
    UNFINISHED = "unfinished"
    UNCOVERED = "uncovered"
    """The level above is cut away."""
    UNDERGROUND = "underground"


STATE_FIELDS = (
    ("BuildingModelSpec", "FinishedModelName", State.FINISHED),
    ("BuildingModelSpec", "UnfinishedModelName", State.UNFINISHED),
    ("BuildingModelSpec", "FinishedUncoveredModelName", State.UNCOVERED),
    ("BuildingModelSpec", "UndergroundModelName", State.UNDERGROUND),
    ("BlockObjectModelSpec", "FullModelName", State.FINISHED),
    ("BlockObjectModelSpec", "UncoveredModelName", State.UNCOVERED),
    ("BlockObjectModelSpec", "UndergroundModelName", State.UNDERGROUND),
)


@dataclass(frozen=True)
class Level:
    """A file whose nodes are being expanded, inside the files that nest it."""

    source: BlueprintSource
    outer: Level | None = None
    depth: int = 1

    def sources(self) -> Iterator[BlueprintSource]:
        """Yield the file and those that nest it, the innermost first."""
        level: Level | None = self
        while level is not None:
            yield level.source
            level = level.outer


@dataclass(slots=True)
class BlueprintNode:
    """A node. ``parent`` is an index in the list of all nodes, which starts with the root."""

    name: str
    """Name without ``#nested``."""
    pointer: str
    """JSON pointer in the merged tree of all files; empty for the root."""
    parent: int
    value: Members
    """Members of the node in the merged tree, called specs."""
    level: Level
    """The file from which the specs come."""
    owner: str = ""
    """File that defines the node's transform, if it is not the opened one."""
    nested: str = ""
    """Path of the nested blueprint that the node represents, as written in the file."""
    is_missing: bool = False
    """Whether that blueprint is missing."""
    state: State = State.ALWAYS
    stage: int | None = None
    """Number of the child of the unfinished model to which the node belongs."""
    variant: str = ""
    """``alive``, ``dying`` or ``dead``."""
    growth: str = ""
    """Name of the node that has the variant, such as ``Mature``."""

    @property
    def key(self) -> str:
        """Identifies the node in the blueprint."""
        return self.pointer or "/"

    @property
    def content_owner(self) -> str:
        """The file of its specs other than the transform, if it is not the opened one."""
        return self.level.source.name if self.level.outer is not None else ""

    @property
    def model(self) -> str:
        """Path of its model without extension, or an empty text."""
        path = (child_of(self.value, "TimbermeshSpec") or {}).get("Model")
        return path if isinstance(path, str) else ""


Find = Callable[[str, Level], BlueprintSource | None]
"""Function that returns the blueprint for a path in a file, or None. It raises FormatError if that is damaged."""


@dataclass(frozen=True)
class _Waiting:
    """A child in the queue: its node has not been made yet."""

    name: str
    value: Members
    own: Members | None
    """Members of the child in the opened file: the child itself, or its part of a ``Modification``. None if absent."""
    parent: int
    level: Level


@dataclass
class TreeBuilder:
    """Expands a blueprint. Without ``find``, nested blueprints are left empty without a message."""

    find: Find | None
    unresolved: Unresolved
    nodes: list[BlueprintNode] = field(default_factory=list)
    _merger: Merger = field(default_factory=Merger)
    _waiting: list[_Waiting] = field(default_factory=list)
    _characters: int = 0

    def build(self, source: BlueprintSource, name: str) -> list[BlueprintNode]:
        """Return the nodes, parents before their children in the order of the file, the root first.

        Raises
        ------
        FormatError
            There are too many nodes.
        """
        self._add(BlueprintNode(name, "", -1, source.root, Level(source)), source.root)
        while self._waiting:
            self._expand(self._waiting.pop())
        self._set_states(source.root)
        return self.nodes

    def _expand(self, child: _Waiting) -> None:
        """Add the node of a waiting child, with the blueprint that it nests."""
        pointer = self.nodes[child.parent].pointer + pointer_of(("Children", child.name))
        node = BlueprintNode(child.name.replace(NESTED, ""), pointer, child.parent, child.value, child.level)
        own = child.own
        if NESTED in child.name:
            own = child_of(own, "Modification")
            self._nest(node, child)
        is_placed_here = child.level.outer is None or child_of(own, "TransformSpec") is not None
        node.owner = "" if is_placed_here else child.level.source.name
        self._add(node, own)

    def _add(self, node: BlueprintNode, own: Members | None) -> None:
        """Add a node, and queue its children."""
        self.nodes.append(node)
        self._characters += len(node.pointer)
        children = child_of(node.value, "Children") or {}
        if len(self.nodes) + len(self._waiting) + len(children) > MOST_NODES:
            raise FormatError("With all that it nests the blueprint has more than {:,} nodes", MOST_NODES)
        if self._characters > _MOST_CHARACTERS:
            text = "With all that it nests the blueprint has paths of more than {:,} characters"
            raise FormatError(text, _MOST_CHARACTERS)
        here = child_of(own, "Children")
        self._waiting += [
            _Waiting(name, value, child_of(here, name), len(self.nodes) - 1, node.level)
            for name, value in reversed(list(children.items()))
            if isinstance(value, dict) and not ending_of(name)
        ]

    def _nest(self, node: BlueprintNode, child: _Waiting) -> None:
        """Give a node the content of the blueprint that it names, with its modification on top."""
        path = child.value.get("BlueprintPath")
        node.nested = path if isinstance(path, str) else ""
        modification = child_of(child.value, "Modification") or {}
        source = self._found(node.nested, child.level, is_modified=bool(modification))
        node.is_missing = source is None
        if source is None:
            transform = child_of(self._merger.merged({}, modification), "TransformSpec")
            node.value = {"TransformSpec": transform} if transform is not None else {}
        else:
            node.value = self._merger.merged(source.root, modification)
            node.level = Level(source, child.level, child.level.depth + 1)

    def _found(self, path: str, level: Level, *, is_modified: bool) -> BlueprintSource | None:
        """Return a nested blueprint; None, with the problem noted, if it is missing, broken, or nests itself."""
        if self.find is None:
            return None
        try:
            source = self.find(path, level)
        except FormatError as problem:
            self.unresolved.add(Problem.BROKEN_BLUEPRINT, Text("{}: {}", path, problem.message))
            return None
        if source is None:
            return None
        is_loop = any(outer.identity == source.identity for outer in level.sources())
        if (is_loop and not is_modified) or level.depth >= MOST_LEVELS:
            self.unresolved.add(Problem.LOOP, path)
            return None
        return source

    def _set_states(self, root: Members) -> None:
        """Set state, stage and variant of the nodes."""
        places: dict[str, int] = {}
        for number, node in enumerate(self.nodes[1:], 1):
            places.setdefault(node.name, number)
        states: dict[int, State] = {}
        for spec, member, state in STATE_FIELDS:
            name = (child_of(root, spec) or {}).get(member)
            if isinstance(name, str) and name:
                if name in places:
                    states.setdefault(places[name], state)
                else:
                    self.unresolved.add(Problem.STATE, f"{name} ({state.value})")
        stages: dict[int, int] = {}
        for number, node in enumerate(self.nodes[1:], 1):
            parent = self.nodes[node.parent]
            node.state, node.stage, node.variant, node.growth = (
                parent.state,
                parent.stage,
                parent.variant,
                parent.growth,
            )
            if number in states:
                node.state, node.stage = states[number], None
            elif states.get(node.parent) is State.UNFINISHED:
                node.stage = stages.get(node.parent, 0)
                stages[node.parent] = node.stage + 1
            if node.name in _VARIANTS:
                node.variant, node.growth = _VARIANTS[node.name], parent.name
