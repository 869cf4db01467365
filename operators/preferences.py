"""The add-on's preferences: formats in use, folders, the view after imports, export on save, links to the guides.

They only affect the user interface. Operators, file handlers, collection exporters and the command line work for every
format.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ..blender_data import file_records
from ..blender_data.property_groups.translation_context import CONTEXT
from ..io_formats import registry
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.options import Option
from .files import save_queue
from .layouts import draw_rest
from .translations import iface_

PACKAGE = __package__.rpartition(".")[0]
"""Name of the add-on's package in Blender: ``bl_ext.<repository>.<id>``, or the folder's name for a plain add-on."""

GUIDES = Path(__file__).resolve().parent.parent / "docs" / "users"

Draw = Callable[[Any, Any], None]


FAMILIES = tuple(registry.FAMILIES)
"""The families that the preferences have a switch for; add-ons may offer further ones later."""
PATHS = tuple(
    {
        option.preference: option
        for family in FAMILIES
        for option in (*family.folders, *(option for known in family.formats for option in known.options()))
        if option.preference and option.is_path
    }.values()
)
"""Folders that the preferences hold, each once, also if several formats have an option for it."""
OTHER_GUIDES = {"Convert Files": "conversion.md", "Convert Many Files": "batch.md"}

_MOST_FILES = 12
"""Largest number of files listed for a .blend file."""

_IN_USE = (
    "Show menu entries of this format, and its panels for objects made in Blender. Objects that came from it or were "
    "last exported to it keep their panels; scripts, drag and drop and the command line always work"
)


def _switch_on_save(settings: Any, _context: Any) -> None:
    save_queue.switch(on=settings.use_export_on_save)
    if settings.use_export_on_save:
        save_queue.session()


class MeshferryPreferences(bpy.types.AddonPreferences):
    """The formats in use."""

    bl_idname = PACKAGE

    __annotations__ = {
        "use_frame_imported": BoolProperty(
            name="Frame Imported",
            description="After an import, move the 3D view to the new objects, and raise its clip end if they reach "
            "beyond it. Views through a camera and local views stay as they are",
            default=True,
        ),
        "use_export_on_save": BoolProperty(
            name="Re-export on Save",
            description="After each save of a .blend file, export again the files that were exported from it and that "
            "you allowed for it; only files whose content changes are written",
            default=False,
            update=_switch_on_save,
        ),
        **{
            f"use_{family.name}": BoolProperty(name=family.label, description=_IN_USE, default=True)
            for family in FAMILIES
        },
        **{
            option.preference: StringProperty(
                name=option.label, description=option.description, subtype="DIR_PATH", default=str(option.default)
            )
            for option in PATHS
        },
    }

    def draw(self, context: bpy.types.Context) -> None:
        """Draw a switch and a guide button for each family, the other settings and the other guides."""
        column = self.layout.column(align=True)
        column.label(text="Formats in Use", text_ctxt=CONTEXT)
        for family in FAMILIES:
            row = column.split(factor=0.6)
            row.prop(self, f"use_{family.name}")
            draw_guide(row, family.guide)
        column = self.layout.column(align=True)
        column.label(text="Import", text_ctxt=CONTEXT)
        column.prop(self, "use_frame_imported")
        column = self.layout.column(align=True)
        column.label(text="Export", text_ctxt=CONTEXT)
        column.prop(self, "use_export_on_save")
        if exports_on_save_enabled():
            _draw_exports_on_save(self.layout)
        column = self.layout.column(align=True)
        column.label(text="Folders", text_ctxt=CONTEXT)
        for option in PATHS:
            column.prop(self, option.preference)
            _draw_problem(column, option)
        column = self.layout.column(align=True)
        column.label(text="Command Line", text_ctxt=CONTEXT)
        for text, name in OTHER_GUIDES.items():
            row = column.split(factor=0.6)
            row.label(text=text, text_ctxt=CONTEXT)
            draw_guide(row, name)


def _draw_exports_on_save(layout: Any) -> None:
    """Draw the allowed files of each .blend file with buttons that remove them."""
    blends = list(file_records.exports_of_all_files())
    if not blends:
        text = "No file is allowed yet: save a .blend file from which files were exported"
        layout.label(text=text, text_ctxt=CONTEXT, icon="INFO")
    for allowed in blends:
        column = layout.box().column(align=True)
        _draw_allowed(column, allowed.blend, allowed.blend, "", "FILE_BLEND")
        for file in allowed.paths()[:_MOST_FILES]:
            _draw_allowed(column, file, allowed.blend, file, "BLANK1")
        draw_rest(column, allowed.paths(), _MOST_FILES)


def _draw_allowed(layout: Any, text: str, blend: str, file: str, icon: str) -> None:
    row = layout.row()
    row.label(text=text, icon=icon, translate=False)
    button = row.operator(PREFERENCES_OT_meshferry_forbid.bl_idname, text="", icon="X", emboss=False)
    button.blend, button.file = blend, file


class PREFERENCES_OT_meshferry_forbid(bpy.types.Operator):
    """Remove a file, or all files of a .blend file, from those that are exported again on save."""

    bl_idname = "preferences.meshferry_forbid_on_save"
    bl_label = "Do Not Re-export on Save"
    bl_description = "Remove from the files that are exported again on save. No file on disk is removed"
    bl_options = {"INTERNAL"}

    blend: StringProperty(name="Blend File", options={"SKIP_SAVE"})
    file: StringProperty(name="File", description="Empty for all files of the .blend file", options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Change the list."""
        allowed = file_records.exports_of_blend(self.blend)
        for file in [self.file] if self.file else allowed.paths():
            allowed.forbid(file)
        try:
            allowed.store()
        except (MeshferryError, OSError) as problem:
            self.report({"ERROR"}, str(problem))
            return {"CANCELLED"}
        return {"FINISHED"}


def _draw_problem(layout: Any, option: Option) -> None:
    """Draw an error if a path is set in the preferences and cannot be used."""
    path = preferred_path(option)
    if path and option.probe is not None:
        try:
            option.probe(path)
        except MeshferryError as problem:
            layout.label(text=iface_(problem.sentence()), icon="ERROR", translate=False)


def draw_guide(layout: Any, name: str) -> None:
    """Draw a button that opens a guide: its page in the browser, or in a checkout, which has no pages, its source."""
    source = GUIDES / name
    page = source.with_suffix(".html")
    if page.is_file():
        layout.operator("wm.url_open", text="Guide", text_ctxt=CONTEXT, icon="HELP").url = page.as_uri()
    elif source.is_file():
        layout.operator("wm.path_open", text="Guide", text_ctxt=CONTEXT, icon="HELP").filepath = str(source)


def preferences() -> Any | None:
    """Return the preferences, or None if the add-on was registered by hand, as in the ``bpy`` module."""
    addon = bpy.context.preferences.addons.get(PACKAGE)
    return addon.preferences if addon is not None else None


def preferred_path(option: Option) -> str:
    """Return the path that the preferences hold for an option, or an empty text."""
    path = str(getattr(preferences(), option.preference, ""))
    return bpy.path.abspath(path) if path else ""


def is_used(family: str) -> bool:
    """Return whether a family of formats is switched on; without preferences all are."""
    return bool(getattr(preferences(), f"use_{family}", True))


def frames_imported() -> bool:
    """Return whether the 3D view moves to imported objects."""
    return bool(getattr(preferences(), "use_frame_imported", True))


def exports_on_save_enabled() -> bool:
    """Return whether saves export the allowed files again."""
    return bool(getattr(preferences(), "use_export_on_save", False))


def drawn_for(family: str) -> Callable[[Draw], Draw]:
    """Return a decorator for draw functions of menus; they draw nothing while their family is switched off."""

    def decorate(draw: Draw) -> Draw:
        @functools.wraps(draw)
        def draw_if_used(menu: Any, context: bpy.types.Context) -> None:
            if is_used(family):
                draw(menu, context)

        return draw_if_used

    return decorate
