"""Import options that affect a later export: stored on imported objects, and applied when these are exported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import ExportError
from .messages import Text
from .options import IMPORT_CHOICES, Option, Options, Value

if TYPE_CHECKING:
    from .scene import ImportChoice, Node, Scene, Skeleton

Chosen = TypeVar("Chosen", bound=Options)


def store_choices(scene: Scene, options: Options) -> None:
    """Store the values of options marked ``is_remembered`` on all nodes and skeletons of a newly read scene."""
    from .scene import ImportChoice

    stored = {option.name: str(getattr(options, option.name)) for option in options.table() if option.is_remembered}
    blocks: list[Node | Skeleton] = [*scene.nodes, *scene.skeletons]
    for block in blocks:
        block.choices = tuple(ImportChoice(name, value, block.name) for name, value in stored.items())


def adopt_choices(options: Chosen, choices: Iterable[ImportChoice]) -> Chosen:
    """Return the options of an import, overridden by the choices of the object that receives the content."""
    table = {option.name: option for option in options.table() if option.is_remembered}
    known = (choice for choice in choices if choice.option in table)
    stored: dict[str, Any] = {choice.option: parse_value(table[choice.option], choice.value) for choice in known}
    return options.with_values(**{name: value for name, value in stored.items() if value is not None})


def differs_from_choices(scene: Scene, choices: Iterable[ImportChoice]) -> bool:
    """Return whether the first skeleton of a scene was read with other choices than these."""
    own = {choice.option: choice.value for choice in scene.skeletons[0].choices} if scene.skeletons else {}
    return any(own.get(choice.option, choice.value) != choice.value for choice in choices)


def all_choices(nodes: Iterable[Node]) -> tuple[ImportChoice, ...]:
    """Return the import choices of all nodes, for the node into which they are merged."""
    return tuple(choice for node in nodes for choice in node.choices)


def with_import_choices(scene: Scene, options: Chosen) -> Chosen:
    """Return the options of an export, overridden by the choices with which the scene's objects were imported.

    Options that were given apply to all objects.

    Raises
    ------
    ExportError
        Objects of the file were imported with different choices.
    """
    if not getattr(options, IMPORT_CHOICES.name, True):
        return options
    blocks: list[Node | Skeleton] = [*scene.nodes, *scene.skeletons]
    choices = [choice for block in blocks for choice in block.choices]
    remembered = [one for one in options.table() if one.is_remembered and one.name not in options.given]
    stored: dict[str, Any] = {option.name: _common_value(option, choices) for option in remembered}
    return options.with_values(**{name: value for name, value in stored.items() if value is not None})


def _common_value(option: Option, choices: Iterable[ImportChoice]) -> Value | None:
    """Return the stored value of an option, or None without one; raise ExportError if objects have different values."""
    owners: dict[Value, str] = {}
    for choice in choices:
        value = parse_value(option, choice.value)
        if choice.option == option.name and value is not None:
            owners.setdefault(value, choice.owner)
    if len(owners) > 1:
        (value, owner), (other_value, other) = list(owners.items())[:2]
        raise ExportError(
            "'{}' was imported with {}: {}, '{}' with {}. A file can have only one value: export the objects "
            "separately, or turn {} off and choose",
            owner,
            option.label,
            label_of(option, value),
            other,
            label_of(option, other_value),
            IMPORT_CHOICES.label,
        )
    return next(iter(owners), None)


def imported_texts(options: Iterable[Option], choices: Sequence[Iterable[ImportChoice]]) -> dict[str, str]:
    """Return a text for the options dialog by name of each option that was stored at the import of an object.

    The text states the stored value. It is empty if some objects have none, since these use the value of the dialog.

    Parameters
    ----------
    choices:
        The stored choices of each object.
    """
    texts: dict[str, str] = {}
    for option in options:
        stored = [
            [parse_value(option, choice.value) for choice in of_object if choice.option == option.name]
            for of_object in choices
        ]
        labels = {label_of(option, values[0]) for values in stored if values and values[0] is not None}
        if labels:
            label = Text(labels.pop() if len(labels) == 1 else "of each object")
            texts[option.name] = Text("{} as imported: {}", Text(option.label), label) if all(stored) else ""
    return texts


def parse_value(option: Option, text: str) -> Value | None:
    """Return the value of an option from its stored text, or None if this version does not know the text."""
    known: dict[str, Value] = {choice.key: choice.key for choice in option.choices}
    if isinstance(option.default, bool):
        known = {"True": True, "False": False}
    return known.get(text)


def label_of(option: Option, value: Value) -> str:
    """Return the label of a value for messages."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return next((choice.label for choice in option.choices if choice.key == value), str(value))
