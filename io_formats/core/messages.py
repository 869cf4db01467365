"""Messages for users: data of which the English sentence is one form.

A :class:`Text` is an English text that keeps its template and the values in it, so that it can be translated without
parsing. A :class:`Message` adds a code, a kind, and what the sentence is about. Both are strings: printed, compared and
sorted as their English text. Code never reads this text; it uses the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self, TypedDict, Unpack

NAMES_LISTED = 3
"""Largest number of names that a message lists in front of its text; further names are only counted."""


Subject = Literal["object", "material", "bone", "animation", "image", "file", "layer"]
"""Kind of what a message names: an object is also a node, model or armature, a bone a joint, an animation a clip, an
image a texture, and a layer a surface, shape key, UV map or attribute."""


class Named(str):
    """A name that a message quotes, with its kind. Names without a kind are those of objects."""

    kind: Subject

    def __new__(cls, kind: Subject, name: str) -> Self:
        """Copy the name."""
        named = super().__new__(cls, name)
        named.kind = kind
        return named

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments of ``__new__`` for copying and pickling."""
        return self.kind, str(self)


def of_kind(kind: Subject, names: Iterable[str]) -> list[str]:
    """Return names with a kind, unless they have one; texts stay as they are."""
    return [name if isinstance(name, Named | Text) else Named(kind, name) for name in names]


class Text(str):
    """An English text with its template and values; values that are texts are translated, too.

    Parameters
    ----------
    template:
        A template of ``str.format``. Without values it is the text itself, and braces have no meaning.
    values:
        A string is a name, which no translation changes.
    """

    template: str
    values: tuple[object, ...]

    def __new__(cls, template: str, *values: object) -> Self:
        """Format the template; a single ``Text`` without values is copied."""
        if isinstance(template, Text) and not values:
            values, template = template.values, template.template
        text = super().__new__(cls, template.format(*values) if values else template)
        text.template, text.values = template, values
        return text

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments of ``__new__`` for copying and pickling."""
        return self.template, *self.values

    def translated(self, translate: Callable[[str], str]) -> str:
        """Return the text in another language; ``translate`` returns the translation of a template."""
        template = translate(self.template)
        return template.format(*(_translated(value, translate) for value in self.values)) if self.values else template

    def capitalized(self) -> Text:
        """Return the text with its first letter in upper case."""
        return _Capitalized(self.template, *self.values)

    def quoted(self) -> Iterator[str]:
        """Yield the names that are quoted in the text; those of other things than objects are ``Named``."""
        values = iter(self.values)
        is_quoted = False
        for before, has_value in _pieces(self.template) if self.values else ():
            value = next(values) if has_value else None
            is_closed = is_quoted and before == "'"
            is_quoted = before.endswith("'") and not is_closed
            if isinstance(value, Text):
                yield from value.quoted()
            elif isinstance(value, str) and is_quoted:
                yield value


@lru_cache(1024)  # texts of files can be templates, too
def _pieces(template: str) -> tuple[tuple[str, bool], ...]:
    """Return the texts of a template, and whether a value follows each of them."""
    from string import Formatter  # slow to import

    return tuple((before, field is not None) for before, field, _spec, _conversion in Formatter().parse(template))


class _Capitalized(Text):
    """A text whose first letter is in upper case in every language."""

    def __new__(cls, template: str, *values: object) -> Self:
        """Format the template."""
        text = Text(template, *values)
        capitalized = str.__new__(cls, text[:1].upper() + text[1:])
        vars(capitalized).update(vars(text))
        return capitalized

    def translated(self, translate: Callable[[str], str]) -> str:
        """Return the text in another language."""
        text = super().translated(translate)
        return text[:1].upper() + text[1:]


def _translated(value: object, translate: Callable[[str], str]) -> object:
    """Return a value translated if it is a ``Text``; names and numbers are not changed."""
    return value.translated(translate) if isinstance(value, Text) else value


class Kind(Enum):
    """Kind of a message, which determines how it is reported."""

    LOSS = "loss"
    """Something was not carried over."""
    CHANGE = "change"
    """Something invalid or unsupported was replaced."""
    NOTE = "note"
    """Information about something that is not a loss; a strict run accepts it."""
    WARNING = "warning"
    """A finding: the target program accepts the file, but shows something unexpected."""
    ERROR = "error"
    """A finding: the target program rejects the file or fails to use it."""


class Elements(NamedTuple):
    """Parts of a node's mesh or skeleton, or a time of an animation, that a message is about."""

    kind: str
    """``triangles`` or ``vertices`` (indices of triangles or points in the node's ``Mesh``), ``bones`` (names), or
    ``milliseconds`` (time of an animation)."""
    node: str
    """Name of the node; for bones and times, of the skeleton, or empty if the format does not know it."""
    members: tuple[int, ...] | tuple[str, ...]


OWN_FORMAT = "own_format"
"""Value of ``Message.allowed_by``: the error becomes a warning if a file is written in its own format again, but stays
an error for new files."""


class Details(TypedDict, total=False):
    """Fields of a message besides its kind, code and text."""

    item: str
    elements: Elements | None
    is_fixable: bool
    names: tuple[str, ...]
    new_name: str
    allowed_by: str
    file_name: str


@dataclass(eq=False, repr=False)
class Message(Text):
    """One message; as a string it is its sentence: ``Roof: it has no UV map``."""

    kind: Kind
    item: str
    """The node, mesh, material, animation or file that the message is about, as its name or a :class:`Text` with the
    name; empty if it is about the whole file."""
    message: str
    """The sentence without the item."""
    elements: Elements | None = None
    """The elements that the message is about, if they can be selected."""
    is_fixable: bool = False
    """Whether a change of ``names`` removes the cause. The code decides which change."""
    names: tuple[str, ...] = ()
    """Names in the file of the objects or materials that the fix changes."""
    new_name: str = ""
    """Name that the fix gives to a material."""
    allowed_by: str = ""
    """Name of the export option with which the error is only a warning, or ``OWN_FORMAT``."""
    file_name: str = ""
    """Name of the material concerned. The error becomes a warning if the imported file has a material of this name."""
    code: str = ""
    """Identifies the message for programs; the documentation site lists all codes."""

    def __new__(cls, kind: Kind, item: str, message: str, *_args: object, **_fields: object) -> Self:  # noqa: ARG004
        """Compose the sentence."""
        return super().__new__(cls, *(("{}: {}", item, message) if item else ("{}", message)))

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments of ``__new__`` for copying and pickling."""
        return self.kind, self.item, self.message

    def __eq__(self, other: object) -> bool:
        """Return whether all fields agree; a string that is not a message is compared with the sentence."""
        return str.__eq__(self, other) is True and (not isinstance(other, Message) or vars(self) == vars(other))

    def __ne__(self, other: object) -> bool:
        """Return the opposite."""
        return not self == other

    __hash__ = str.__hash__

    @property
    def is_note(self) -> bool:
        """Whether the message is only information, with nothing wrong."""
        return self.kind is Kind.NOTE

    @property
    def is_loss(self) -> bool:
        """Whether a strict conversion fails because of the message. Findings do not count; ``check`` reports them."""
        return self.kind in {Kind.LOSS, Kind.CHANGE}

    @property
    def is_listed(self) -> bool:
        """Whether the results of *Check* list it."""
        return not self.is_note or self.elements is not None or bool(self.names)

    def item_names(self) -> list[str]:
        """Return the names in the item."""
        return list(self.item.quoted() if isinstance(self.item, Text) else filter(None, [self.item]))

    def about(self) -> list[str]:
        """Return the names of the objects, materials and bones that the message is about, the most telling first."""
        return list(dict.fromkeys(name for name, _ in self.subjects()))

    def subjects(self) -> list[tuple[str, Subject]]:
        """Return name and kind of all that the message is about, the most telling first."""
        quoted = self.message.quoted() if isinstance(self.message, Text) else ()
        names = (*self.names, *self.item_names(), *quoted)
        return list(dict.fromkeys((name, name.kind if isinstance(name, Named) else "object") for name in names))

    def as_json(self) -> dict[str, Any]:
        """Return the message as JSON for other programs."""
        found: dict[str, Any] = {"code": self.code, "kind": self.kind.value, "text": str(self), "item": str(self.item)}
        subjects = self.subjects()
        found["about"] = list(dict.fromkeys(name for name, _ in subjects))
        found["subjects"] = [{"kind": kind, "name": name} for name, kind in subjects]
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a message from the result of :meth:`as_json`, without the fields that it leaves out.

        Raises
        ------
        ValueError, TypeError, LookupError, AttributeError
            The data is not such a result.
        """
        message = data["text"].removeprefix(f"{data['item']}: ") if data["item"] else data["text"]
        # The item can be a text with several names. ``about`` contains these, so the text must not be added as a
        # further name.
        item = Text(data["item"])
        names = tuple(Named(found["kind"], found["name"]) for found in data["subjects"])
        kinds = (name.kind for name in names)
        if not all(isinstance(text, str) for text in (data["code"], data["text"], data["item"], *names, *kinds)):
            raise TypeError("a text of a message is not a string")
        return cls(Kind(data["kind"]), item, Text(message), names=names, code=data["code"])


def _message(
    kind: Kind, code: str, template: str, values: tuple[object, ...], details: Details, item: str = ""
) -> Message:
    """Return a message; its item is ``item`` unless ``details`` contain one."""
    fields: dict[str, Any] = {**details}
    return Message(kind, fields.pop("item", "") or item, Text(template, *values), code=code, **fields)


def warning(code: str, template: str, *values: object, **details: Unpack[Details]) -> Message:
    """Return a finding of kind WARNING: the target program shows something unexpected."""
    return _message(Kind.WARNING, code, template, values, details)


def error(code: str, template: str, *values: object, **details: Unpack[Details]) -> Message:
    """Return a finding of kind ERROR: the target program fails."""
    return _message(Kind.ERROR, code, template, values, details)


class Report:
    """Messages in the order in which they were reported.

    Parameters
    ----------
    messages:
        The list to which messages are added.
    item:
        Item of messages that state none.
    """

    def __init__(self, messages: list[Message] | None = None, item: str = "") -> None:
        self.messages = [] if messages is None else messages
        self.item = item

    def about(self, item: str) -> Report:
        """Return a report for messages about one item, which are added to the same list."""
        return Report(self.messages, item)

    def add(self, *messages: Message) -> None:
        """Add messages."""
        self.messages += [replace(one, item=self.item) if self.item and not one.item else one for one in messages]

    def loss(self, code: str, template: str, *values: object, **details: Unpack[Details]) -> None:
        """Report data that is not carried over."""
        self.messages.append(_message(Kind.LOSS, code, template, values, details, self.item))

    def loss_of(
        self, code: str, template: str, names: Sequence[str], one: str = "object", many: str = "", *, most: int = 8
    ) -> None:
        """Report the loss of items with these names, if there are any.

        The template gets their number and the first ``most`` names.
        """
        if names:
            self.loss(code, template, counted(len(names), one, many), listed(names, most))

    def change_of(
        self, code: str, template: str, names: Sequence[str], one: str, many: str = "", *, most: int = 8
    ) -> None:
        """Report a change of items with these names, like :meth:`loss_of`."""
        if names:
            self.change(code, template, counted(len(names), one, many), listed(names, most))

    def change(self, code: str, template: str, *values: object, **details: Unpack[Details]) -> None:
        """Report data that is replaced, such as NaN by 0."""
        self.messages.append(_message(Kind.CHANGE, code, template, values, details, self.item))

    def note(self, code: str, template: str, *values: object, **details: Unpack[Details]) -> None:
        """Report something that is not a loss."""
        self.messages.append(_message(Kind.NOTE, code, template, values, details, self.item))

    def warning(self, code: str, template: str, *values: object, **details: Unpack[Details]) -> None:
        """Report something that the target program shows in an unexpected way."""
        self.messages.append(_message(Kind.WARNING, code, template, values, details, self.item))

    def warning_of(
        self, code: str, template: str, names: Sequence[str], one: str, many: str = "", *, most: int = 8
    ) -> None:
        """Report a warning about items with these names, like :meth:`loss_of`."""
        if names:
            self.warning(code, template, counted(len(names), one, many), listed(names, most))

    def error(self, code: str, template: str, *values: object, **details: Unpack[Details]) -> None:
        """Report something that lets the target program fail."""
        self.messages.append(_message(Kind.ERROR, code, template, values, details, self.item))


def distinct(messages: Iterable[Message]) -> list[Message]:
    """Return the messages without repetitions, in order."""
    return list(dict.fromkeys(messages))


def errors_of(messages: Iterable[Message]) -> list[Message]:
    """Return the findings that let the target program fail."""
    return [message for message in messages if message.kind is Kind.ERROR]


def warnings_of(messages: Iterable[Message]) -> list[Message]:
    """Return the findings that let the target program show something unexpected."""
    return [message for message in messages if message.kind is Kind.WARNING]


def with_allowed(
    findings: Iterable[Message], options: object, *, is_same_format: bool, file_names: Container[str] = ()
) -> list[Message]:
    """Return the findings; errors that an export option or the imported file allows become warnings.

    Parameters
    ----------
    options:
        Export options of the format.
    is_same_format:
        Whether the scene came from a file of the same format. All such errors are then allowed: the file had them too.
    file_names:
        Names that materials have in imported files of the same format.
    """
    return [
        replace(found, kind=Kind.WARNING)
        if found.allowed_by
        and (is_same_format or found.file_name in file_names or getattr(options, found.allowed_by, False))
        else found
        for found in findings
    ]


def summed_up(messages: Iterable[str]) -> list[Text]:
    """Return a text for each message, and one for those that differ only by item: ``Roof, Door and 7 more: no UVs``.

    Plain strings, such as sentences from a journal, are not combined.
    """
    items: dict[str, list[str]] = {}
    for message in dict.fromkeys(messages):
        text, item = (message.message, message.item) if isinstance(message, Message) else (message, "")
        items.setdefault(text, []).extend([item] if item else [])
    return [
        Text("{}: {}", listed(found, NAMES_LISTED, quote=""), text) if found else Text("{}", text)
        for text, found in items.items()
    ]


def counted(number: int, one: str, many: str = "") -> Text:
    """Return a count with its noun, such as ``1 vertex has`` or ``1,284 vertices have``.

    ``many`` is by default ``one`` with an s.
    """
    return Text(f"{{:,}} {one if number == 1 else many or one + 's'}", number)


def joined(texts: Iterable[str], separator: str = ", ") -> Text:
    """Return one text that joins several texts."""
    parts = tuple(texts)
    return Text(separator.join(["{}"] * len(parts)), *parts)


def listed(names: Sequence[str], most: int = 8, *, quote: str = "'") -> Text:
    """Return the first names, quoted, and how many more there are."""
    shown = names[:most]
    text = Text(", ".join([f"{quote}{{}}{quote}"] * len(shown)), *shown)
    return Text("{} and {:,} more", text, len(names) - most) if len(names) > most else text


_NAMED = 5


class Unresolved:
    """Collects the names of unresolved references by their problem.

    The value of a problem is the code of its message, the noun for one reference and for several, a template for their
    number and first names, and the kind of the message if it is not a loss.
    """

    def __init__(self) -> None:
        self.found: dict[Enum, dict[str, None]] = {}
        """Names by problem, in the order in which they were found."""

    def add(self, problem: Enum, name: str) -> None:
        """Record a reference, given as its name or a :class:`Text` that contains it; equal references count once."""
        self.found.setdefault(problem, {})[name] = None

    def report(self, report: Report) -> None:
        """Report each problem once, with the first names."""
        for problem, names in self.found.items():
            code, one, many, template, *kind = problem.value
            text = Text(template, counted(len(names), one, many), listed(list(names), _NAMED))
            report.add(Message(kind[0] if kind else Kind.LOSS, "", text, code=code))
