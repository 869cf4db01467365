"""Declarations of Blender properties: by name and description, or from the option that a property holds."""

from collections.abc import Callable
from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ...io_formats.core.options import Option


def _declaration(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that declares a property of a kind; further arguments are those of the kind."""

    def declare(name: str, description: str, **more: Any) -> Any:
        return kind(name=name, description=description, **more)

    return declare


text, flag, choice = _declaration(StringProperty), _declaration(BoolProperty), _declaration(EnumProperty)
integer, number, numbers = _declaration(IntProperty), _declaration(FloatProperty), _declaration(FloatVectorProperty)
pointer, collection = _declaration(PointerProperty), _declaration(CollectionProperty)


def items_of(option: Option) -> list[tuple[str, str, str]]:
    """Return the choices of an option as items of a property."""
    return [(one.key, one.label, one.description) for one in option.choices]


def property_of(option: Option, description: str = "") -> Any:
    """Return the Blender property declaration of one option, with its own description by default."""
    about = (option.label, description or option.description)
    if option.choices:
        return choice(*about, items=items_of(option), default=str(option.default))
    if isinstance(option.default, bool):
        return flag(*about, default=option.default)
    if isinstance(option.default, int):
        return integer(*about, default=option.default, **_limits(option, int))
    if isinstance(option.default, float):
        precision = 5 if 0 < option.default < 0.01 else 2
        return number(*about, default=option.default, precision=precision, **_limits(option, float))
    if option.is_path:
        # FILE_PATH would add a button for a second file browser, which cannot open within the first.
        suggest = {"search": _known_libraries, "search_options": {"SUGGESTION"}}
        return text(*about, default=str(option.default), **suggest)
    return text(*about, default=str(option.default))


def _known_libraries(_owner: Any, _context: bpy.types.Context, _text: str) -> list[str]:
    return [library.filepath for library in bpy.data.libraries]


def _limits(option: Option, kind: type[int] | type[float]) -> dict[str, Any]:
    limits = {"min": option.minimum, "max": option.maximum}
    return {name: kind(value) for name, value in limits.items() if value is not None}
