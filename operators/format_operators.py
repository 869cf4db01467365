"""Operators, file handlers, menu entries and panels of each family of formats, built from its registry entry.

A module ``families.<family>`` with ``HOOKS`` holds what a family has beyond that; see :mod:`.hooks`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import poll_file_object_drop

from ..io_formats import registry
from ..io_formats.core.format import Family, Format
from ..io_formats.core.shared_options import MESH_FILES
from .exporting.export_base import ExportScene
from .exporting.export_files import ExportObjects
from .format_panel import family_sidebar
from .hooks import Hooks
from .menus import MenuEntry, collection_under_pointer, registration
from .option_properties import export_table, import_table, with_options
from .preferences import drawn_for
from .sidebar import with_closed_copies
from .translations import CONTEXT, classes_factory

_HIDDEN = {"HIDDEN", "SKIP_SAVE"}


@dataclass(frozen=True)
class FamilyOperators:
    """Operators, menu entries and panels of one format family."""

    importer: Any
    """The import operator; None if no format of the family is read."""
    exporters: Mapping[str, Any]
    """The export operators by name of the format, in the order of the menu."""
    check: Any
    classes: Sequence[type]
    entries: Sequence[MenuEntry]
    panels: Sequence[type]
    hooks: Hooks


def operators_for(family: Family) -> FamilyOperators:
    """Build the operators, file handlers, menu entries and panels of a family."""
    hooks = _hooks_of(family)
    importer = _importer(family, hooks) if any(known.is_read for known in family.formats) else None
    formats = {known.name: known for known in family.formats}
    mixins = hooks.exporters or {name: _default_exporter(known) for name, known in formats.items() if known.is_written}
    exporters = {name: _exporter(family, formats[name], mixin) for name, mixin in mixins.items()}
    check = _check(family, next(iter(exporters.values())), hooks)
    classes = [*([importer] if importer else []), *exporters.values(), check, *_file_handlers(family, exporters)]
    sidebar = hooks.sidebar or family_sidebar(family, next(iter(exporters.values())), check)
    panels = (sidebar, *hooks.panels)
    if hooks.has_closed_copies:
        panels = with_closed_copies(panels)
    entries = _menu_entries(family, importer, list(exporters.values()), hooks)
    return FamilyOperators(importer, exporters, check, classes, entries, panels, hooks)


def label_of(family: Family, known: Format) -> str:
    """Return the label of a format in menus."""
    return family.label if len(family.formats) == 1 else known.label


def collection_text(family: Family, known: Format) -> str:
    """Return the text of the menu entry in the Outliner."""
    return f"Export {label_of(family, known)}…"


def _hooks_of(family: Family) -> Hooks:
    name = f"{__package__}.families.{family.name}"
    if importlib.util.find_spec(name) is None:
        return Hooks()
    hooks: Hooks = importlib.import_module(name).HOOKS
    return hooks


def _make_class(name: str, mixin: type, base: type, defaults: Mapping[str, Any], properties: Mapping[str, Any]) -> Any:
    """Return an operator class from a mixin and a base, with defaults for attributes and properties the mixin lacks."""
    body = {key: value for key, value in defaults.items() if not getattr(mixin, key, None)}
    cls = type(name, (mixin, base), {**body, "__module__": __name__, "__doc__": mixin.__doc__})
    declared = {key for parent in cls.__mro__ for key in getattr(parent, "__annotations__", {})}
    cls.__annotations__ = {key: value for key, value in properties.items() if key not in declared}
    return cls


def _patterns(extensions: Sequence[str]) -> str:
    return ";".join(f"*{extension}" for extension in extensions)


def _importer(family: Family, hooks: Hooks) -> Any:
    formats = [known for known in family.formats if known.is_read]
    extensions = list(dict.fromkeys(extension for known in formats for extension in known.extensions))
    shown = ", ".join(known.extensions[0] for known in formats)
    defaults = {
        "bl_idname": f"import_scene.{family.name}",
        "bl_label": f"Import {family.label}",
        "bl_description": f"Import {family.label} files",
        "panel_prefix": family.name.upper(),
        "option_table": import_table(*formats),
        "entry_text": f"{label_of(family, formats[0])} ({shown})",
        "other_importers": _other_importers(family),
    }
    patterns = getattr(hooks.importer, "usual_names", "") or _patterns(extensions)
    properties = {"filter_glob": StringProperty(default=patterns, options=_HIDDEN)}
    name = f"IMPORT_SCENE_OT_{family.name}"
    cls = _make_class(name, hooks.importer, bpy.types.Operator, defaults, properties)
    return with_options(cls.option_table)(cls)


def _default_exporter(known: Format) -> type[ExportScene]:
    return ExportObjects if MESH_FILES in known.export_options else ExportScene


def _exporter(family: Family, known: Format, mixin: type[ExportScene]) -> Any:
    identifier = getattr(mixin, "bl_idname", "") or f"export_scene.{known.name}"
    name = identifier.partition(".")[2]
    defaults = {
        "bl_idname": identifier,
        "bl_label": f"Export {known.label}",
        "bl_description": f"Export to {known.label} files",
        "format": known,
        "filename_ext": known.extensions[0],
        "panel_prefix": family.name.upper() + name.removeprefix(family.name),
        "option_table": export_table(known),
        "entry_text": f"{label_of(family, known)} ({known.extensions[0]})",
    }
    properties = {"filter_glob": StringProperty(default=_patterns(known.extensions[:1]), options=_HIDDEN)}
    cls = _make_class(f"EXPORT_SCENE_OT_{name}", mixin, bpy.types.Operator, defaults, properties)
    return with_options(cls.option_table)(cls)


def _check(family: Family, exporter: Any, hooks: Hooks) -> Any:
    label = label_of(family, exporter.format)
    defaults = {
        "bl_idname": f"{exporter.bl_idname}_check",
        "bl_label": f"Check {label}",
        "bl_description": f"Check the active object for an export to {label}, without writing a file",
        "format": exporter.format,
        "option_table": exporter.option_table,
        "export_operator": exporter.bl_idname,
    }
    identifier = getattr(hooks.check, "bl_idname", "") or defaults["bl_idname"]
    name = f"EXPORT_SCENE_OT_{identifier.partition('.')[2]}"
    return _make_class(name, hooks.check, bpy.types.Operator, defaults, {})


def _handled_extensions(family: Family) -> dict[str, list[str]]:
    """Return the extensions that the file handlers of a family take, by name of the format that gets the handler.

    If two handlers had the same extension, Blender would ask the user, so the family registered first gets it. A format
    that exports no collections has no handler of its own; the family's first handler gets its extensions. Handlers
    do not see the content of a file, so formats that are not ``is_dropped`` are left out.
    """
    first = registry.FAMILIES.index(family)
    taken = {
        extension for other in registry.FAMILIES[:first] for known in other.formats for extension in known.extensions
    }
    handled: dict[str, list[str]] = {}
    for known in family.formats:
        if not known.is_dropped:
            continue
        exports_collections = known.capabilities.meshes and known.is_written
        owner = known.name if exports_collections or not handled else next(iter(handled))
        own = [extension for extension in known.extensions if extension not in taken]
        handled.setdefault(owner, []).extend(own)
        taken.update(own)
    return {name: extensions for name, extensions in handled.items() if extensions}


def _other_importers(family: Family) -> dict[str, tuple[Format, ...]]:
    """Return the formats of other families, by importer, that share an extension with this family's file handlers."""
    handled = {extension for extensions in _handled_extensions(family).values() for extension in extensions}
    return {
        other.name: other.formats
        for other in registry.FAMILIES
        if other is not family and any(handled.intersection(known.extensions) for known in other.formats)
    }


def _file_handlers(family: Family, exporters: Mapping[str, Any]) -> list[type]:
    """Return the file handlers, by which Blender imports dropped files and exports collections."""
    handlers: list[type] = []
    formats = {known.name: known for known in family.formats}
    for name, extensions in _handled_extensions(family).items():
        known = formats[name]
        body: dict[str, Any] = {
            "bl_idname": f"IO_FH_{known.name if handlers or not known.is_read else family.name}",
            "bl_label": label_of(family, known),
            "bl_file_extensions": ";".join(extensions),
        }
        if name in exporters:
            body["bl_export_operator"] = exporters[name].bl_idname
        if known.is_read:
            body["bl_import_operator"] = f"import_scene.{family.name}"
            body["poll_drop"] = classmethod(lambda _cls, context: poll_file_object_drop(context))
        handlers.append(type(body["bl_idname"], (bpy.types.FileHandler,), {**body, "__module__": __name__}))
    return handlers


def _menu_entries(family: Family, importer: Any, exporters: Sequence[Any], hooks: Hooks) -> list[MenuEntry]:
    """Return the entries in File > Import, File > Export and the Outliner's menu of collections."""

    def draw_collection_entry(menu: Any, context: bpy.types.Context) -> None:
        collection = collection_under_pointer(context)
        if collection is not None:
            menu.layout.operator_context = "INVOKE_DEFAULT"  # by default this menu calls ``execute``
            first = exporters[0]
            text = collection_text(family, first.format)
            menu.layout.operator(first.bl_idname, text=text, text_ctxt=CONTEXT).collection = collection.name

    draw_entries: list[tuple[str, Callable[[Any, Any], None]]] = [
        ("TOPBAR_MT_file_import", _draw_operators([importer] if importer else [])),
        ("TOPBAR_MT_file_export", _draw_operators(exporters)),
        ("OUTLINER_MT_collection", hooks.draw_collection_entries or draw_collection_entry),
    ]
    return [MenuEntry(menu, drawn_for(family.name)(draw)) for menu, draw in draw_entries]


def _draw_operators(operators: Sequence[Any]) -> Callable[[Any, Any], None]:
    def draw(menu: Any, _context: bpy.types.Context) -> None:
        for operator in operators:
            menu.layout.operator(operator.bl_idname, text=operator.entry_text, text_ctxt=CONTEXT)

    return draw


FAMILY_OPERATORS = {family.name: operators_for(family) for family in registry.FAMILIES}
EXPORTERS: dict[str, Any] = {name: cls for built in FAMILY_OPERATORS.values() for name, cls in built.exporters.items()}
"""Export operators by name of the format."""


def register() -> None:
    """Register operators, file handlers and menu entries of all families."""
    for add, _remove in _registrations():
        add()


def unregister() -> None:
    """Unregister them in reverse order."""
    for _add, remove in reversed(_registrations()):
        remove()


def _registrations() -> list[tuple[Callable[[], None], Callable[[], None]]]:
    return [registration(built.classes, built.entries) for built in FAMILY_OPERATORS.values()]


class FamilyPanels:
    """The panels of all families, and the operators that only panels and fixes use."""

    @staticmethod
    def register() -> None:
        """Register the hook modules and panels of all families."""
        for add, _remove in _panel_registrations():
            add()

    @staticmethod
    def unregister() -> None:
        """Unregister them in reverse order."""
        for _add, remove in reversed(_panel_registrations()):
            remove()


def _panel_registrations() -> list[tuple[Callable[[], None], Callable[[], None]]]:
    steps: list[tuple[Callable[[], None], Callable[[], None]]] = []
    for built in FAMILY_OPERATORS.values():
        steps += [(module.register, module.unregister) for module in built.hooks.modules]
        steps.append(classes_factory([*built.hooks.classes, *built.panels]))
    return steps
