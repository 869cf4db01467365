"""Problems of the references of a blueprint."""

from __future__ import annotations

from enum import Enum

from ...core.messages import Kind


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
