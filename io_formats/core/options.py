"""Options, defined once for all user interfaces.

The attributes of a class derived from :class:`Options` are options, and its instances hold their values: those of a
format for reading or writing its files, and those of all imports or exports. Its table of :class:`Option` defines the
options of the Blender operators, file handlers and collection exporters (``operators/option_properties.py``) and of the
command line (``cli/option_arguments.py``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from .errors import MeshferryError

if TYPE_CHECKING:
    from .capabilities import Capabilities


Value = bool | int | float | str
Rule = Callable[[Mapping[str, Any]], bool]
"""A condition on the values of a table's options, by name."""


@dataclass(unsafe_hash=True)
class Choice:
    """An allowed value of an option that has a fixed set of values."""

    key: str
    label: str
    description: str


@dataclass(unsafe_hash=True, repr=False)
class Option:
    """An option: its name, default, label, description and limits."""

    name: str
    default: Value
    label: str
    description: str
    choices: tuple[Choice, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    is_path: bool = False
    preference: str = ""
    """Name of the add-on preference that holds the value; dialogs do not show such an option."""
    probe: Callable[[str], object] | None = None
    """Function that raises a ``MeshferryError`` for an unusable path. The command line calls it once, at the start."""
    section: str = ""
    """Heading under which the options dialog shows it."""
    headless_default: Value | None = None
    """Default on the command line if it differs from that of the dialog."""
    is_remembered: bool = False
    """Whether an import stores the value on the objects that it creates, since an export of them must use the same
    value."""

    shown_when: Rule | None = None
    """Condition under which the option has an effect and a dialog shows it; default: always."""
    note: str = ""
    """Sentence shown below the option if ``noted_when`` holds."""
    noted_when: Rule | None = None
    automatic_rate: Literal["", "SCENE", "ACTION"] = ""
    """For an option that is a frame rate: whether 0 means the scene's rate or that of the exported action."""
    needs: Callable[[Capabilities], bool] = lambda _can: True
    """Whether the option applies to a format with these capabilities."""
    own_keyword: str = ""
    """The keyword if it is not that of the name."""

    @property
    def keyword(self) -> str:
        """Name of the option for programs; with hyphens, that of its flag on the command line."""
        return self.own_keyword or self.name.removeprefix("use_")

    def default_for(self, *, headless: bool) -> Value:
        return self.headless_default if headless and self.headless_default is not None else self.default

    def parsed(self, value: Any) -> Value:
        """Return a value that a program or the command line gives: keys of choices in any case, numbers also as text.

        Raises
        ------
        MeshferryError
            The value has another type, is not a choice, or is beyond the limits.
        """
        if self.choices:
            keys = {choice.key.lower(): choice.key for choice in self.choices}
            if key := keys.get(str(value).lower().replace("-", "_")):
                return key
            raise MeshferryError("'{}' is not one of {}", value, ", ".join(keys), item=self.keyword)
        if self.is_path and value and isinstance(value, str | os.PathLike):
            return str(Path(value).expanduser().absolute())  # does not depend on the folder of a .blend file
        kind: Any = type(self.default)
        is_number = kind in (int, float)
        try:
            found = kind(value)
        except (TypeError, ValueError, OverflowError):
            found = None
        is_same = found == value or (isinstance(value, str) and is_number)
        if found is None or isinstance(value, bool) != (kind is bool) or not is_same:
            raise MeshferryError("'{}' is not a {}", value, _KINDS[kind], item=self.keyword)
        if is_number and not math.isfinite(found):
            raise MeshferryError("'{}' is not a finite number", value, item=self.keyword)
        if is_number and self.minimum is not None and found < self.minimum:
            raise MeshferryError("{} is below the least, {:g}", value, self.minimum, item=self.keyword)
        if is_number and self.maximum is not None and found > self.maximum:
            raise MeshferryError("{} is above the most, {:g}", value, self.maximum, item=self.keyword)
        return found  # type: ignore[no-any-return]


_KINDS = {bool: "truth value", int: "whole number", float: "number", str: "text"}


def option(label: str, description: str, **declared: Any) -> Any:
    """Declare an attribute of :class:`Options`; the arguments are those of :class:`Option` except the name."""
    return shared(Option("", label=label, description=description, **declared))


def shared(declared: Option) -> Any:
    """Declare an attribute of :class:`Options` as an option that several classes have."""
    return declared


class Options:
    """Base of the classes whose attributes are options, and whose instances hold a value of each.

    The class itself is that of formats without options. They are not dataclasses, which would take up to 1 ms each to
    create.

    Parameters
    ----------
    given:
        Names of the options whose values were given, rather than left at their defaults.
    values:
        Values by name; the other options have the command line's defaults. They are not checked: code may choose what
        users cannot, such as the old version of a file that is there. :meth:`of` checks them.
    """

    def __init__(self, *, given: Iterable[str] = (), **values: Any) -> None:
        self.given = frozenset(given)
        vars(self).update(resolve(one for one in self.table() if one.name not in values) | values)

    @classmethod
    @cache
    def table(cls) -> tuple[Option, ...]:
        """Return the options in the order of their declaration, those of base classes first."""
        declared = {name: found for base in reversed(cls.__mro__) for name, found in vars(base).items()}
        return tuple(replace(found, name=name) for name, found in declared.items() if isinstance(found, Option))

    @classmethod
    def of(cls, values: GivenOptions = None, *, given: Iterable[str] | None = None) -> Self:
        """Return an instance with these values, and with the command line's defaults for the other options.

        Parameters
        ----------
        values:
            Values by name. An instance of this class is returned as it is.
        given:
            Names of options whose values count as given; default: all of ``values``.

        Raises
        ------
        MeshferryError
            An option that does not exist, or a value outside its choices or limits.
        """
        if isinstance(values, cls):
            return values
        if isinstance(values, Options):
            raise TypeError(f"{type(values)} is not {cls}")
        return cls(given=(values or ()) if given is None else given, **resolve(cls.table(), values))

    @classmethod
    def among(cls, values: Mapping[str, Any], *, given: Iterable[str] | None = None) -> Self:
        """Return the same as :meth:`of`, but ignore values of other options."""
        own = {option.name: values[option.name] for option in cls.table() if option.name in values}
        return cls.of(own, given=given)

    def values(self) -> dict[str, Value]:
        """Return the values by name."""
        return {option.name: getattr(self, option.name) for option in self.table()}

    def with_values(self, **values: Any) -> Self:
        """Return a copy with other values of some options, which are not checked."""
        changed = copy(self)
        vars(changed).update(values)
        return changed


GivenOptions: TypeAlias = Options | Mapping[str, Any] | None
"""Options as callers give them: resolved, or values by name."""


def applicable(options: Iterable[Option], capabilities: Iterable[Capabilities]) -> tuple[Option, ...]:
    """Return the options that apply to formats with these capabilities."""
    given = tuple(capabilities)
    return tuple(option for option in options if any(map(option.needs, given)))


def resolve(
    options: Iterable[Option], given: Mapping[str, Any] | None = None, *, headless: bool = True
) -> dict[str, Any]:
    """Return every option's value: the given one, or its default.

    Raises
    ------
    MeshferryError
        An option that does not exist, or a value outside its choices or limits.
    """
    table = {option.name: option for option in options}
    values: dict[str, Any] = {name: option.default_for(headless=headless) for name, option in table.items()}
    for name, value in (given or {}).items():
        if name not in table:
            raise MeshferryError("There is no option '{}'; the options are {}", name, ", ".join(sorted(table)))
        option = table[name]
        if option.choices and value not in [choice.key for choice in option.choices]:
            keys = ", ".join(choice.key for choice in option.choices)
            raise MeshferryError("Option '{}' cannot be '{}'; it is one of {}", name, value, keys)
        if isinstance(value, int | float) and not _fits(option, value):
            template = "Option '{}' cannot be {:g}; it goes from {:g} to {:g}"
            raise MeshferryError(template, name, value, option.minimum, option.maximum)
        values[name] = value
    return values


def _fits(option: Option, value: float) -> bool:
    """Return whether a number is within an option's limits, if it has any; NaN is not."""
    if option.minimum is None or option.maximum is None:
        return True
    return option.minimum <= value <= option.maximum


# Names of options, from several tables, on which the conditions below and capabilities depend.
ARMATURE = "armature"
JOINT_ANIMATION = "use_joint_animation"
KEEP_IMPORTED = "use_as_imported"
EMBED_ANIMATION = "use_embedded_animation"
TANGENTS = "mesh_tangents"

Values = Mapping[str, Any]


def imports_bones(values: Values) -> bool:
    """Return whether an import creates or changes an armature."""
    return bool(values.get(ARMATURE, "NONE") != "NONE")


def imports_new_bones(values: Values) -> bool:
    """Return whether an import may create an armature."""
    return values.get(ARMATURE, "NONE") not in {"NONE", "ACTIVE"}


def imports_joint_animation(values: Values) -> bool:
    """Return whether an import creates actions for armatures."""
    return bool(values.get(JOINT_ANIMATION)) and imports_bones(values)


def completes_models(values: Values) -> bool:
    """Return whether an export adds missing parts, such as levels of detail, to imported models."""
    return not values.get(KEEP_IMPORTED)


def embeds_animation(values: Values) -> bool:
    """Return whether an export may write animation: always, unless the format has this option and it is off."""
    return bool(values.get(EMBED_ANIMATION, True))


IMPORT_CHOICES = Option(
    name="use_import_choices",
    default=True,
    label="As Imported",
    description="Export imported objects with the choices that they were imported with. The choices below apply to "
    "other objects, or to all objects if this is off",
    section="Objects",
)

MESH_FILES = Option(
    name="mesh_files",  # not "files", a property that Blender's file browser sets
    default="EACH",
    label="Files",
    description="How objects become files",
    section="File",
    choices=(
        Choice("EACH", "One for Each Object", "Several objects become several files, named after the objects"),
        Choice("JOINED", "One, Joined", "All objects become one mesh; material slots of the same name become one"),
    ),
)

PARTNER_FILES = Option(
    name="use_partner_files",
    default=True,
    label="Partner Files",
    description="With model.dae, also import the files of its levels of detail and physics shape beside it: "
    "model_LOD2.dae, model_LOD1.dae, model_LOD0.dae and model_PHYS.dae; or model_MED, _LOW and _LOWEST",
    section="File",
    shown_when=lambda values: not values.get("use_files_as_levels"),
)
FILES_AS_LEVELS = Option(
    name="use_files_as_levels",
    default=False,
    label="One Model, Several Levels",
    description="The chosen files are the levels of detail of one model, whatever their names are: the file with the "
    "most triangles is the highest level. A file whose name ends in _PHYS is the physics shape",
    section="File",
)
