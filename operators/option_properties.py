"""Tables of options <-> Blender properties: declared, read back and drawn in one place.

The tables (:class:`~..io_formats.options.Option`) are stated once; an operator that shows them is
decorated with :func:`with_options`, draws them with :func:`draw_options` and reads them with
:func:`option_values`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from ..blender_data import export_options, import_options
from ..io_formats.options import Option

Values = Mapping[str, Any]
Rule = Callable[[Values], bool]


def _exports_clips(values: Values) -> bool:
    return values.get(export_options.CLIPS.name) != "NONE"


def _imports_animation(values: Values) -> bool:
    return bool(values.get(import_options.NODE_ANIMATION.name)) or values.get("vertex_animation") != "NONE"


APPLIES: Mapping[str, Rule] = {
    export_options.CLIP_FILTER.name: _exports_clips,
    export_options.ANIMATION_KIND.name: _exports_clips,
    export_options.LOOP.name: _exports_clips,
    export_options.FRAME_RATE.name: _exports_clips,
    import_options.FRAME_START.name: _imports_animation,
    import_options.SET_FRAME_RATE.name: _imports_animation,
}
"""Options that are only shown where they have an effect; the rest are always shown."""

NOTES: tuple[tuple[str, str, str], ...] = (
    (import_options.VERTEX_ANIMATION.name, "CACHE", "Writes a .pc2 file beside each imported file"),
)
"""Option, value and the sentence shown below the option while it has that value."""


def property_of(option: Option) -> Any:
    """Return the Blender property declaration of one option."""
    about = {"name": option.label, "description": option.description}
    if option.choices:
        items = [(choice.key, choice.label, choice.description) for choice in option.choices]
        return EnumProperty(items=items, default=str(option.default), **about)
    if isinstance(option.default, bool):
        return BoolProperty(default=option.default, **about)
    if isinstance(option.default, int):
        return IntProperty(default=option.default, **_limits(option, int), **about)
    if isinstance(option.default, float):
        precision = 5 if 0 < option.default < 0.01 else 2
        return FloatProperty(default=option.default, precision=precision, **_limits(option, float), **about)
    if option.is_path:
        # Not FILE_PATH: its button cannot open a file browser from within the one that shows these options.
        suggest = {"search": _known_libraries, "search_options": {"SUGGESTION"}}
        return StringProperty(default=str(option.default), **suggest, **about)
    return StringProperty(default=str(option.default), **about)


def _known_libraries(_owner: Any, _context: Any, _text: str) -> list[str]:
    return [library.filepath for library in bpy.data.libraries]


def _limits(option: Option, kind: type[int] | type[float]) -> dict[str, Any]:
    limits = {"min": option.minimum, "max": option.maximum}
    return {name: kind(value) for name, value in limits.items() if value is not None}


def with_options(*tables: Iterable[Option]) -> Callable[[type], type]:
    """Return a class decorator that declares the options of these tables as properties.

    Annotations are read through ``inspect`` and set as a whole: since Python 3.14 they are only computed when
    asked for.
    """

    def declare(cls: type) -> type:
        made = {option.name: property_of(option) for table in tables for option in table}
        cls.__annotations__ = {**inspect.get_annotations(cls), **made}
        return cls

    return declare


def option_values(owner: Any, table: Iterable[Option]) -> dict[str, Any]:
    """Return what the properties of ``owner`` (an operator, or its last properties) say for each option of the table.

    Paths come back absolute, so that ``//`` means the folder of the .blend file everywhere.
    """
    values: dict[str, Any] = {}
    for option in table:
        value = getattr(owner, option.name)
        if option.is_path and value:
            value = bpy.path.abspath(value.strip().strip('"'))  # file managers copy paths in quotes
        values[option.name] = value
    return values


def draw_options(layout: Any, owner: Any, table: Iterable[Option], prefix: str) -> None:
    """Draw a table of options in foldable sections named ``<prefix>_<section>``.

    Options that have no effect with the present values of the others are left out.
    """
    table = tuple(table)
    values = {option.name: getattr(owner, option.name) for option in table}
    for section in dict.fromkeys(option.section for option in table):
        shown = [option for option in table if option.section == section and APPLIES.get(option.name, _always)(values)]
        body = section_body(layout, f"{prefix}_{section.lower().replace(' ', '_')}", section)
        if body is not None:
            for option in shown:
                body.prop(owner, option.name, placeholder="Path" if option.is_path else "")
                _draw_notes(body, option.name, values[option.name])


def section_body(layout: Any, identifier: str, title: str) -> Any | None:
    """Open a foldable section; return the layout of its body, or None while it is folded."""
    header, body = layout.panel(identifier, default_closed=False)
    header.label(text=title or "Options")
    if body is not None:
        body.use_property_split = True
        body.use_property_decorate = False
    return body


def _always(_values: Values) -> bool:
    return True


def _draw_notes(layout: Any, name: str, value: Any) -> None:
    for noted, key, text in NOTES:
        if noted == name and value == key:
            layout.label(text=text, icon="INFO")
