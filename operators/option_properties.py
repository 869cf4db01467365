"""Tables of options <-> Blender properties: declared, read back and drawn in one place.

The tables (:class:`~..io_formats.core.options.Option`) are stated once; an operator that shows them is
decorated with :func:`with_options`, draws them with :func:`draw_options` and reads them with
:func:`option_values`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from ..blender_data.exporting import export_options
from ..blender_data.exporting.clip_sources import scene_rate
from ..blender_data.importing import import_options
from ..io_formats.core.options import Option, resolve
from ..io_formats.core.shared_options import IMPORT_CHOICES
from ..io_formats.registry import Format
from ..io_formats.second_life import options as second_life_options
from ..io_formats.unigine.mesh import options as unigine_mesh_options
from .translations import CONTEXT, iface_

Values = Mapping[str, Any]
Rule = Callable[[Values], bool]

SECTIONS = ("Objects", "Geometry", "Armature", "Animation", "Materials", "File")
"""Order of the sections of a dialog; sections of other names come last."""

LONGEST_LABEL = 16
"""Letters that fit beside the value of an option, in a file dialog of 1280 pixels; longer labels stand above it."""

_EMBEDDED = unigine_mesh_options.EMBED_ANIMATION.name
_HOLD_ANIMATIONS = frozenset({"MS10", "MS11", "MS12"})


def _may_export_clips(values: Values) -> bool:
    return bool(values.get(_EMBEDDED, True))


def _exports_clips(values: Values) -> bool:
    return _may_export_clips(values) and values.get(export_options.CLIPS.name) != "NONE"


def _imports_animation(values: Values) -> bool:
    of_objects = bool(values.get(import_options.NODE_ANIMATION.name))
    of_vertices = values.get(import_options.VERTEX_ANIMATION.name, "NONE") != "NONE"
    return of_objects or of_vertices or _imports_joint_animation(values)


def _imports_joint_animation(values: Values) -> bool:
    return bool(values.get(import_options.JOINT_ANIMATION.name)) and _imports_bones(values)


def _imports_bones(values: Values) -> bool:
    return values.get(import_options.ARMATURE.name, "NONE") != "NONE"


def _imports_new_bones(values: Values) -> bool:
    return values.get(import_options.ARMATURE.name, "NONE") not in {"NONE", "ACTIVE"}


def _is_made_new(values: Values) -> bool:
    return not values.get(export_options.KEEP_IMPORTED.name)


def _makes_levels(values: Values) -> bool:
    return _is_made_new(values) and values.get(export_options.MISSING_LEVELS.name) == "MAKE"


def _moves_joints(values: Values) -> bool:
    return _is_made_new(values) and values.get(second_life_options.JOINT_POSITIONS.name) != "NEVER"


APPLIES: Mapping[str, Rule] = {
    export_options.MISSING_LEVELS.name: _is_made_new,
    export_options.MEDIUM_RATIO.name: _makes_levels,
    export_options.LOW_RATIO.name: _makes_levels,
    export_options.LOWEST_RATIO.name: _makes_levels,
    export_options.OPEN_BORDERS.name: _makes_levels,
    export_options.PHYSICS_SHAPE.name: _is_made_new,
    second_life_options.JOINT_POSITIONS.name: _is_made_new,
    second_life_options.LOCK_SCALE.name: _moves_joints,
    export_options.CLIPS.name: _may_export_clips,
    export_options.CLIP_FILTER.name: _exports_clips,
    export_options.ANIMATED_BONES.name: _exports_clips,
    export_options.ANIMATION_KIND.name: _exports_clips,
    export_options.LOOP.name: _exports_clips,
    export_options.FRAME_RATE.name: _exports_clips,
    import_options.BONE_DIRECTION.name: _imports_bones,
    second_life_options.JOINTS.name: _imports_new_bones,
    second_life_options.REST.name: _imports_bones,
    import_options.JOINT_ANIMATION.name: _imports_bones,
    import_options.FRAME_START.name: _imports_animation,
    import_options.SET_FRAME_RATE.name: _imports_animation,
    unigine_mesh_options.ANIMATION_RATE.name: _imports_joint_animation,
}
"""Options that are only shown where they have an effect; the rest are always shown."""

NOTES: tuple[tuple[str, Rule, str], ...] = (
    (
        import_options.VERTEX_ANIMATION.name,
        lambda values: values.get(import_options.VERTEX_ANIMATION.name) == "CACHE",
        "Writes a .pc2 file beside each imported file",
    ),
    (
        _EMBEDDED,
        lambda values: (
            bool(values.get(_EMBEDDED)) and values.get(unigine_mesh_options.VERSION.name) not in _HOLD_ANIMATIONS
        ),
        "Choose version ms10, ms11 or ms12",
    ),
)
"""Option, when it has something to say, and the sentence then shown below it."""


def import_table(*formats: Format) -> tuple[Option, ...]:
    """Return the options of an import of files of these formats, each once: the general ones and the formats' own."""
    own = [option for known in formats for option in known.import_options]
    general = import_options.import_options_for(known.capabilities for known in formats)
    return tuple({option.name: option for option in (*general, *own)}.values())


def export_table(target: Format) -> tuple[Option, ...]:
    """Return the options of an export to a format: the general ones that mean something there, and its own."""
    return (*export_options.export_options_for(target.capabilities), *target.export_options)


def values_for(table: Iterable[Option], given: Values) -> dict[str, Any]:
    """Return the value of every option of ``table``: the given one, else the command line's default.

    What a dialog does not show takes the faithful way, as on the command line.
    """
    table = tuple(table)
    names = {option.name for option in table}
    return resolve(table, {name: value for name, value in given.items() if name in names}, headless=True)


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


def last_values(context: Any, operator: str, table: Iterable[Option]) -> dict[str, Any]:
    """Return the values of options in the last run of an operator, or their defaults in the window."""
    table = tuple(table)
    last = context.window_manager.operator_properties_last(operator)
    return resolve(table, headless=False) if last is None else option_values(last, table)


def draw_options(
    layout: Any,
    owner: Any,
    table: Iterable[Option],
    prefix: str,
    order: Sequence[str] = SECTIONS,
    *,
    imported: Mapping[str, str] | None = None,
    closed: Container[str] = (),
) -> None:
    """Draw a table of options in foldable sections named ``<prefix>_<section>``, in this order.

    Options that have no effect with the present values of the others are left out. ``imported`` has a text for each
    option that objects have a stored value of; if it is not empty, it replaces the property. Sections in ``closed`` are
    folded until the user opens them.
    """
    table = tuple(table)
    values = {option.name: getattr(owner, option.name) for option in table}
    for section in sorted(
        dict.fromkeys(option.section for option in table),
        key=lambda section: order.index(section) if section in order else len(order),
    ):
        shown = [option for option in table if option.section == section and APPLIES.get(option.name, _always)(values)]
        if not shown:
            continue
        body = section_body(layout, f"{prefix}_{section.lower().replace(' ', '_')}", section, closed=section in closed)
        if body is not None:
            for option in shown:
                if imported is not None and option == IMPORT_CHOICES:
                    continue  # drawn with the option that it is about
                if imported is not None and option.name in imported:
                    row = body.row()
                    row.use_property_split = False  # the texts need the whole width
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
                _draw_notes(body, option.name, values)
                if option.name in _RATES and not values[option.name]:
                    draw_automatic_rate(body, _RATES[option.name]())


def draw_automatic_rate(layout: Any, fps: float) -> None:
    """Draw below a rate of 0 which one it stands for."""
    layout.label(text=iface_("Automatic ({} fps)").format(f"{fps:.5g}"), icon="INFO", translate=False)


def _scene_rate() -> float:
    return scene_rate(bpy.context.scene)


def _clip_rate() -> float:
    """Return the rate of the active object's action, or the scene's."""
    item = bpy.context.object
    rig = item if item is None or item.type == "ARMATURE" else item.find_armature()
    for owner in (rig, item):
        action = owner.animation_data.action if owner is not None and owner.animation_data is not None else None
        if action is not None and action.meshferry.fps > 0:
            return float(action.meshferry.fps)
    return _scene_rate()


_RATES: Mapping[str, Callable[[], float]] = {
    export_options.FRAME_RATE.name: _clip_rate,
    unigine_mesh_options.ANIMATION_RATE.name: _scene_rate,
}
"""Options of which 0 means a rate that Blender has, and that rate."""


def _text(text: str) -> dict[str, Any]:
    """Return the arguments that replace the label of a property; none for an empty text."""
    return {"text": text, "translate": False} if text else {}


def section_body(layout: Any, identifier: str, title: str, *, closed: bool = False) -> Any | None:
    """Open a foldable section; return the layout of its body, or None while it is folded."""
    header, body = layout.panel(identifier, default_closed=closed)
    header.label(text=title or "Options", text_ctxt=CONTEXT)
    if body is not None:
        body.use_property_split = True
        body.use_property_decorate = False
    return body


def _always(_values: Values) -> bool:
    return True


def _draw_notes(layout: Any, name: str, values: Values) -> None:
    for noted, has_to_be_said, text in NOTES:
        if noted == name and has_to_be_said(values):
            layout.label(text=text, text_ctxt=CONTEXT, icon="INFO")
