"""Operators, file handlers, menu entries and panels of each family of formats, built from its registry entry.

A module or package ``families.<family>`` with ``HOOKS`` holds what a family has beyond that; see :mod:`.hooks`. All
modules of a package are registered; see :mod:`.registration`.
"""

import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import poll_file_object_drop

from ..blender_data.addon_formats import offered_families
from ..blender_data.property_groups.translation_context import CONTEXT
from ..io_formats import registry
from ..io_formats.core.format import Family, Format
from ..io_formats.core.options import MESH_FILES
from . import registration
from .files.export_base import ExportScene
from .files.export_files import ExportObjects
from .files.import_base import ImportDropped, ImportFiles
from .findings.finding_list import draw_findings
from .findings.mesh_tools import has_free_normals
from .hooks import Hooks
from .layouts import button, collection_under_pointer, file_patterns, sidebar_panel
from .option_properties import export_table, import_table, in_sections, with_options
from .preferences import drawn_for
from .registration import MenuEntry
from .sidebar import concerns, origins_of, with_closed_copies

MOST_ENTRIES = 3
"""Largest number of entries of a family in File > Export; more of them get a submenu."""

ICONS = {kind: f"OUTLINER_OB_{kind}" for kind in ("MESH", "ARMATURE", "EMPTY", "LIGHT", "CAMERA")}
"""Icons of the types of objects that imports make."""


def family_sidebar(family: Family, exporter: Any, check: Any) -> type:
    """Return the panel of a family. It is there for all imported objects, and without an active one for collections."""
    has_skeletons = any(known.capabilities.skeletons for known in family.formats)
    types = {"MESH", "EMPTY", "ARMATURE"} if has_skeletons else {"MESH", "EMPTY"}

    def is_shown(context: bpy.types.Context) -> bool:
        obj = context.object
        is_wanted = obj is None or obj.type in types or bool(origins_of(context))
        return is_wanted and concerns(context, family.name)

    @sidebar_panel(f"{family.name.upper()}_PT_sidebar", family.label, is_shown, parent="")
    def panel(layout: Any, context: bpy.types.Context) -> None:
        obj = context.object
        if obj is None:
            collection = context.collection
            layout.label(text=collection.name, icon="OUTLINER_COLLECTION", translate=False)
            draw_export(layout).collection = collection.name
            return
        layout.label(text=obj.name, icon=ICONS.get(obj.type, "OBJECT_DATA"), translate=False)
        if obj.type != "MESH":
            if obj.type in types:
                draw_export(layout)
            return
        if has_free_normals(obj.data):
            layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")
        row = layout.row(align=True)
        button(row, check, text="Check", icon="CHECKMARK")
        draw_export(row)
        draw_findings(layout, context, exporter.format, obj.name)

    def draw_export(layout: Any) -> Any:
        return button(layout, exporter, text="Export…", icon="EXPORT")

    return panel


@dataclass(frozen=True)
class FamilyOperators:
    """Operators, menu entries and panels of one format family."""

    importer: Any
    """The import operator; None if no format of the family is read."""
    exporters: Mapping[str, Any]
    """The export operators by name of the format, in the order of the menu."""
    check: Any
    """The check operator; None if no format of the family is written."""
    classes: Sequence[type]
    entries: Sequence[MenuEntry]
    panels: Sequence[type]
    modules: Sequence[ModuleType]
    """Modules of the family's package, with further operators; see :mod:`.registration`."""


def operators_for(family: Family) -> FamilyOperators:
    """Build the operators, file handlers, menu entries and panels of a family."""
    hooks, modules = _hooks_of(family)
    importer = _importer(family, hooks) if any(known.is_read for known in family.formats) else None
    formats = {known.name: known for known in family.formats}
    mixins = hooks.exporters or {name: _default_exporter(known) for name, known in formats.items() if known.is_written}
    exporters = {name: _exporter(family, formats[name], mixin) for name, mixin in mixins.items()}
    first = next(iter(exporters.values()), None)
    check = _check(family, first, hooks) if first else None
    submenu = _export_menu(family, exporters.values()) if len(exporters) > MOST_ENTRIES else None
    classes = [cls for cls in (importer, *exporters.values(), check, submenu) if cls]
    classes += _file_handlers(family, exporters)
    sidebar = hooks.sidebar or (family_sidebar(family, first, check) if first else None)
    panels = (*([sidebar] if sidebar else []), *hooks.panels)
    if hooks.has_closed_copies:
        panels = with_closed_copies(panels)
    entries = _menu_entries(family, importer, list(exporters.values()), hooks, submenu)
    return FamilyOperators(importer, exporters, check, classes, entries, panels, modules)


def label_of(family: Family, known: Format) -> str:
    """Return the label of a format in menus."""
    return family.label if len(family.formats) == 1 else known.label


def collection_text(family: Family, known: Format) -> str:
    """Return the text of the menu entry in the Outliner."""
    return f"Export {label_of(family, known)}…"


def _hooks_of(family: Family) -> tuple[Hooks, list[ModuleType]]:
    """Return the hooks of a family, and the modules of its package."""
    name = f"{__package__}.families.{family.name}"
    if importlib.util.find_spec(name) is None:
        return Hooks(), []
    package = importlib.import_module(name)
    found = pkgutil.iter_modules(getattr(package, "__path__", ()), f"{name}.")
    return package.HOOKS, [importlib.import_module(module.name) for module in found]


def _make_class(name: str, mixin: type, defaults: Mapping[str, Any]) -> Any:
    """Return an operator class from a mixin, with defaults for attributes that the mixin lacks."""
    body = {key: value for key, value in defaults.items() if not getattr(mixin, key, None)}
    return type(name, (mixin, bpy.types.Operator), {**body, "__module__": __name__, "__doc__": mixin.__doc__})


def _with_file_options(cls: Any) -> Any:
    """Declare the options of an operator, and which files its file browser shows."""
    cls.__annotations__ = {"filter_glob": StringProperty(default=cls.usual_names, options={"HIDDEN", "SKIP_SAVE"})}
    return with_options(cls.option_table)(cls)


def _importer(family: Family, hooks: Hooks) -> Any:
    formats = [known for known in family.formats if known.is_read]
    extensions = list(dict.fromkeys(extension for known in formats for extension in known.extensions))
    # Each extension of files that place models is a kind of its own; others are spellings of the first one.
    kinds = (known.extensions if known.capabilities.placement else known.extensions[:1] for known in formats)
    shown = ", ".join(extension for group in kinds for extension in group)
    defaults = {
        "bl_idname": f"import_scene.{family.name}",
        "bl_label": f"Import {family.label}",
        "bl_description": f"Import {family.label} files",
        "panel_prefix": family.name.upper(),
        "option_table": import_table(*formats),
        "entry_text": f"{family.label} ({shown})",
        "formats": tuple(formats),
        "usual_names": file_patterns(extensions),
    }
    return _with_file_options(_make_class(f"IMPORT_SCENE_OT_{family.name}", hooks.importer, defaults))


def _default_exporter(known: Format) -> type[ExportScene]:
    return ExportObjects if MESH_FILES in known.export_options.table() else ExportScene


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
        "usual_names": file_patterns(known.written_extensions),
    }
    return _with_file_options(_make_class(f"EXPORT_SCENE_OT_{name}", mixin, defaults))


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
    return _make_class(name, hooks.check, defaults)


def _file_handlers(family: Family, exporters: Mapping[str, Any]) -> list[type]:
    """Return the file handlers by which Blender exports collections, one for each format with meshes.

    They import nothing; see :func:`_import_of_drops`. Their names are in .blend files.
    """
    handlers: list[type] = []
    for known in family.formats:
        if known.capabilities.meshes and known.is_written and known.name in exporters:
            body = {
                "bl_label": label_of(family, known),
                "bl_file_extensions": _endings(known.written_extensions),
                "bl_export_operator": exporters[known.name].bl_idname,
            }
            handlers.append(_handler(known.name if handlers or not known.is_read else family.name, body))
    return handlers


def _handler(name: str, body: Mapping[str, Any]) -> type:
    identifier = f"IO_FH_{name}"
    return type(identifier, (bpy.types.FileHandler,), {"bl_idname": identifier, **body, "__module__": __name__})


def _endings(extensions: Iterable[str]) -> str:
    """Return the last endings of extensions, such as .json: Blender 4.5 to 5.3 compare no more of a file name."""
    return ";".join(dict.fromkeys("." + extension.rpartition(".")[2] for extension in extensions))


def _import_of_drops(importers: Sequence[type[ImportFiles]]) -> list[type]:
    """Return the operator that imports dropped files of all formats, and its file handler.

    If several handlers had the files of a drop, Blender would ask for one of them and ignore the other's files.
    """
    formats = [known for importer in importers for known in importer.formats]
    endings = _endings(extension for known in formats for extension in known.extensions)
    defaults = {
        "importers": importers,
        "option_table": in_sections(
            {option.name: option for importer in importers for option in importer.option_table}.values()
        ),
        "usual_names": file_patterns(endings.split(";")),
    }
    operator = _with_file_options(_make_class("IMPORT_SCENE_OT_meshferry", ImportDropped, defaults))
    body = {
        "bl_label": "Meshferry",
        "bl_file_extensions": endings,
        "bl_import_operator": operator.bl_idname,
        "poll_drop": classmethod(lambda _cls, context: poll_file_object_drop(context)),
    }
    return [operator, _handler("meshferry", body)]


def _export_menu(family: Family, exporters: Iterable[Any]) -> Any:
    """Return the submenu of a family in File > Export."""
    name = f"{family.name.upper()}_MT_export"
    body = {"bl_idname": name, "bl_label": family.label, "draw": _draw_operators(exporters), "__module__": __name__}
    return type(name, (bpy.types.Menu,), body)


def _menu_entries(
    family: Family, importer: Any, exporters: Sequence[Any], hooks: Hooks, submenu: Any
) -> list[MenuEntry]:
    """Return the entries in File > Import, File > Export and the Outliner's menu of collections."""

    def draw_collection_entry(menu: Any, context: bpy.types.Context) -> None:
        collection = collection_under_pointer(context)
        if collection is not None and exporters:
            menu.layout.operator_context = "INVOKE_DEFAULT"  # by default this menu calls ``execute``
            first = exporters[0]
            text = collection_text(family, first.format)
            button(menu.layout, first, text=text, collection=collection.name)

    def draw_submenu(menu: Any, _context: bpy.types.Context) -> None:
        menu.layout.menu(submenu.bl_idname, text_ctxt=CONTEXT)

    draw_entries: list[tuple[str, Callable[[Any, Any], None]]] = [
        ("TOPBAR_MT_file_import", _draw_operators([importer] if importer else [])),
        ("TOPBAR_MT_file_export", draw_submenu if submenu else _draw_operators(exporters)),
        ("OUTLINER_MT_collection", hooks.draw_collection_entries or draw_collection_entry),
    ]
    return [MenuEntry(menu, drawn_for(family.name)(draw)) for menu, draw in draw_entries]


def _draw_operators(operators: Iterable[Any]) -> Callable[[Any, Any], None]:
    def draw(menu: Any, _context: bpy.types.Context) -> None:
        for operator in operators:
            button(menu.layout, operator, text=operator.entry_text)

    return draw


FAMILY_OPERATORS: dict[str, FamilyOperators] = {}
EXPORTERS: dict[str, Any] = {}
"""Export operators by name of the format that is written, or of one that is read and written again in another."""


def _build(family: Family) -> FamilyOperators:
    built = FAMILY_OPERATORS[family.name] = operators_for(family)
    EXPORTERS.update(built.exporters)
    EXPORTERS.update({known.name: EXPORTERS[known.rewritten_as] for known in family.formats if known.rewritten_as})
    return built


for _family in registry.FAMILIES:
    _build(_family)
DROPS = _import_of_drops([built.importer for built in FAMILY_OPERATORS.values() if built.importer is not None])
"""The operator and the file handler of dropped files."""


def register() -> None:
    """Register operators, file handlers, menu entries, hook modules and panels of all families."""
    for built in FAMILY_OPERATORS.values():
        for parts in _parts_of(built):
            registration.register(*parts)
    registration.register(DROPS, {}, ())

    add_offered()
    bpy.types.TOPBAR_MT_file_import.prepend(_look_for_offers)


def add_offered() -> None:
    """Add the operators of the families that other add-ons offer."""
    for family in offered_families.add():
        for parts in _parts_of(_build(family)):
            registration.register(*parts)
    importers = [built.importer for built in FAMILY_OPERATORS.values() if built.importer is not None]
    if len(importers) > len(DROPS[0].importers):
        registration.unregister(DROPS, {}, ())
        DROPS[:] = _import_of_drops(importers)
        registration.register(DROPS, {}, ())


def _look_for_offers(_menu: Any, _context: bpy.types.Context) -> None:
    """Add families of add-ons that were enabled later, soon: drawing cannot register classes."""
    is_new = any(name not in registry.asked for name, _ in offered_families.offers())
    if is_new and not bpy.app.timers.is_registered(add_offered):
        bpy.app.timers.register(add_offered)


def unregister() -> None:
    """Unregister them in reverse order."""
    bpy.types.TOPBAR_MT_file_import.remove(_look_for_offers)
    if bpy.app.timers.is_registered(add_offered):
        bpy.app.timers.unregister(add_offered)
    registration.unregister(DROPS, {}, ())
    for built in reversed(FAMILY_OPERATORS.values()):
        for parts in reversed(_parts_of(built)):
            registration.unregister(*parts)


def _parts_of(built: FamilyOperators) -> list[Any]:
    return [(built.classes, {}, built.entries), *map(registration.parts_of, built.modules), (built.panels, {}, ())]
