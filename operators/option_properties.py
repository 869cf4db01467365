"""Tables of options <-> Blender properties: declaration, reading and drawing.

The tables (:class:`~..io_formats.core.options.Option`) define each option once. Operators are decorated with
:func:`with_options`, draw options with :func:`draw_options` and read them with :func:`option_values`.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import bpy

from ..blender_data.animation.scene_time import scene_rate
from ..blender_data.armature_modifiers import armature_of
from ..blender_data.export_options import EXPORT_OPTIONS, ExportOptions
from ..blender_data.importing.import_options import IMPORT_OPTIONS
from ..blender_data.property_groups.declarations import property_of
from ..blender_data.property_groups.translation_context import CONTEXT
from ..io_formats.core.format import Format
from ..io_formats.core.options import IMPORT_CHOICES, Option, Options, applicable, resolve
from ..io_formats.registry import FORMATS
from .preferences import preferred_path
from .translations import iface_

Values = Mapping[str, Any]
Chosen = TypeVar("Chosen", bound=Options)

ROW_HEIGHT, HEADER_HEIGHT, BODY_MARGIN = 1.3, 1.1, 0.9
"""Heights in a dialog of Blender 5.2: a row with its spacing, a section's header, the margins of its body; in units of
the user interface (20 pixels at a resolution scale of 1). Earlier versions need less.
"""

SECTIONS = ("Objects", "Geometry", "Armature", "Animation", "Materials", "File")
"""Order of the sections of a dialog."""

LONGEST_LABEL = 16
"""Longest label, in characters, that fits beside the value in a file browser 1280 pixels wide; longer ones are above
it.
"""


def import_table(*formats: Format) -> tuple[Option, ...]:
    """Return the options of an import dialog of these formats: the applicable general ones and those of the formats."""
    own = [option for known in formats for option in known.import_options.table() if not option.preference]
    general = applicable(IMPORT_OPTIONS, (known.capabilities for known in formats))
    return in_sections({option.name: option for option in (*general, *own)}.values())


def export_table(target: Format) -> tuple[Option, ...]:
    """Return the options of an export dialog of a format: the applicable general ones and those of the format."""
    own = (option for option in target.export_options.table() if not option.preference)
    return in_sections((*applicable(EXPORT_OPTIONS, [target.capabilities]), *own))


def in_sections(table: Iterable[Option], sections: Sequence[str] = SECTIONS) -> tuple[Option, ...]:
    """Return options in this order of their sections; sections of other names come last."""
    rank = {section: number for number, section in enumerate(sections)}
    return tuple(sorted(table, key=lambda option: rank.get(option.section, len(rank))))


def chosen_options(kind: type[Chosen], values: Values, given: Iterable[str] = ()) -> Chosen:
    """Return the options of a kind, with those of the values that belong to it and defaults of the command line.

    These defaults, which are also used for options that a dialog does not show, preserve most of the data. Options of
    the preferences have the value set there. ``given`` has the names of the options that apply to all objects.
    """
    stored = {option.name: preferred_path(option) for option in kind.table() if option.preference}
    return kind.among({**values, **stored}, given=given)


def preferred_import_values() -> dict[str, Any]:
    """Return the values of import options that the preferences hold, without those that are not set."""
    table = (option for known in FORMATS for option in known.import_options.table() if option.preference)
    return {option.name: path for option in table if (path := preferred_path(option))}


def to_export_options(values: Values) -> ExportOptions:
    """Return the general export options; see :func:`chosen_options`."""
    return chosen_options(ExportOptions, values)


def with_options(*tables: Iterable[Option]) -> Callable[[type], type]:
    """Return a class decorator that declares the options of these tables as properties.

    Annotations are read with ``inspect`` and replaced as a whole, since Python 3.14 computes them lazily.
    """

    def declare(cls: type) -> type:
        made = {option.name: property_of(option) for table in tables for option in table}
        cls.__annotations__ = {**inspect.get_annotations(cls), **made}
        return cls

    return declare


def option_values(owner: Any, table: Iterable[Option]) -> dict[str, Any]:
    """Return the values of the table's options from the properties of ``owner``, an operator or its last properties.

    Paths are made absolute, so that ``//`` is the folder of the .blend file everywhere.
    """
    values: dict[str, Any] = {}
    for option in table:
        value = getattr(owner, option.name)
        if option.is_path and value:
            value = bpy.path.abspath(value.strip().strip('"'))  # some file managers copy paths with quotes
        values[option.name] = value
    return values


def last_values(context: bpy.types.Context, operator: str, table: Iterable[Option]) -> dict[str, Any]:
    """Return the values of options in the last run of an operator, or the defaults of the dialog."""
    table = tuple(table)
    last = context.window_manager.operator_properties_last(operator)
    return resolve(table, headless=False) if last is None else option_values(last, table)


def draw_options(
    layout: Any,
    owner: Any,
    table: Iterable[Option],
    prefix: str,
    *,
    imported: Mapping[str, str] | None = None,
    height: float = math.inf,
) -> None:
    """Draw a table of options in foldable sections named ``<prefix>_<section>``.

    Options without effect at the current values of the others are left out. ``imported`` has a text for each
    option whose value some objects store from their import; if it is not empty, it is drawn in place of the property.
    Sections that do not fit in ``height`` with the ones before them are folded until the user opens them. The height is
    in units of Blender's user interface, about the height of a button.
    """
    table = tuple(table)
    values = {option.name: getattr(owner, option.name) for option in table}
    sections: dict[str, list[Option]] = {}
    for option in table:
        if is_shown(option, values):
            sections.setdefault(option.section, []).append(option)
    free = height - HEADER_HEIGHT * len(sections)
    for section, shown in sections.items():
        needed = BODY_MARGIN + ROW_HEIGHT * sum(_rows(option, values) for option in shown)
        is_closed = needed > free
        free -= 0.0 if is_closed else needed
        body = section_body(layout, f"{prefix}_{section.lower().replace(' ', '_')}", section, closed=is_closed)
        if body is not None:
            for option in shown:
                if imported is not None and option.name == IMPORT_CHOICES.name:
                    continue  # this option is drawn beside those that it controls
                if imported is not None and option.name in imported:
                    row = body.row()
                    row.use_property_split = False  # full width for the text
                    row.prop(owner, IMPORT_CHOICES.name, **_text(imported[option.name]))
                    if imported[option.name]:
                        continue
                    if isinstance(option.default, bool):
                        row.prop(owner, option.name)
                        continue
                if len(option.label) > LONGEST_LABEL and not isinstance(option.default, bool):
                    body.label(text=option.label, text_ctxt=CONTEXT)
                    body.prop(owner, option.name, text="")
                else:
                    body.prop(owner, option.name, placeholder="Path" if option.is_path else "")
                _draw_note(body, option, values)
                if option.automatic_rate and not values[option.name]:
                    draw_automatic_rate(body, _clip_rate() if option.automatic_rate == "ACTION" else _scene_rate())


def _rows(option: Option, values: Values) -> int:
    """Return the number of rows of an option with its label, note and automatic rate."""
    has_label_above = len(option.label) > LONGEST_LABEL and not isinstance(option.default, bool)
    has_note = option.noted_when is not None and option.noted_when(values)
    return 1 + has_label_above + has_note + bool(option.automatic_rate and not values[option.name])


def draw_automatic_rate(layout: Any, fps: float) -> None:
    """Draw the frame rate that the value 0 (automatic) selects."""
    split = layout.split(factor=0.4)
    split.label()
    split.label(text=iface_("Automatic ({} fps)").format(f"{fps:.5g}"), translate=False)


def _scene_rate() -> float:
    return scene_rate(bpy.context.scene)


def _clip_rate() -> float:
    """Return the rate of the active object's action, or the scene's."""
    obj = bpy.context.object
    rig = obj if obj is None or obj.type == "ARMATURE" else armature_of(obj)
    for owner in (rig, obj):
        action = owner.animation_data.action if owner is not None and owner.animation_data is not None else None
        if action is not None and action.meshferry.fps > 0:
            return float(action.meshferry.fps)
    return _scene_rate()


def _text(text: str) -> dict[str, Any]:
    """Return the arguments that replace the label of a property, or none for an empty text."""
    return {"text": text, "translate": False} if text else {}


def section_body(layout: Any, identifier: str, title: str, *, closed: bool = False) -> Any | None:
    """Open a foldable section; return the layout of its body, or None while it is folded."""
    header, body = layout.panel(identifier, default_closed=closed)
    header.label(text=title or "Options", text_ctxt=CONTEXT)
    if body is not None:
        body.use_property_split = True
        body.use_property_decorate = False
    return body


def is_shown(option: Option, values: Values) -> bool:
    """Return whether an option has an effect with these values of the table's options."""
    return option.shown_when is None or option.shown_when(values)


def _draw_note(layout: Any, option: Option, values: Values) -> None:
    if option.noted_when is not None and option.noted_when(values):
        layout.label(text=option.note, text_ctxt=CONTEXT, icon="INFO")
