"""The common parts of the sidebar panels of all formats: their location, wrapped texts, actions."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

import blf
import bpy

from ..blender_data.animation.scene_time import scene_rate
from ..blender_data.file_records import records
from ..blender_data.property_groups.translation_context import CONTEXT
from ..io_formats import registry
from .option_properties import draw_automatic_rate
from .preferences import is_used
from .translations import iface_

OWN = "_own"
"""Suffix of the names of panels for objects that were not imported."""

REGION_MARGIN = 72
"""Width of the tabs and borders beside a text in the sidebar, in pixels at a resolution scale of 1."""

DIALOG_MARGIN = 32
"""Width of the borders beside a text in a dialog or a file browser, in pixels at a resolution scale of 1."""

ICON_WIDTH = 22
"""Width of an icon in front of a text in pixels, at a resolution scale of 1."""


def concerns(context: bpy.types.Context, family: str) -> bool:
    """Return whether to show a family's panels: for its imports, and for data made in Blender.

    A family that is switched off in the preferences has panels for data that was last exported to it.
    """
    formats = {known.name for one in registry.FAMILIES if one.name == family for known in one.formats}
    if origins := origins_of(context):
        return bool(formats & origins)
    owners = homes_of(context.collection) if context.object is None else [context.object, *homes_of(context.object)]
    return is_used(family) or any(record.format in formats for owner in owners for record in records(owner))


def origins_of(context: bpy.types.Context) -> set[str]:
    """Return the formats that the active object was imported from, or without an active object, the active collection.

    Empty for data made in Blender.
    """
    obj = context.object
    collections = import_homes_of(obj) if obj is not None else [context.collection]
    return {collection.meshferry.file_format for collection in collections} - {""}


def with_closed_copies(classes: Iterable[type]) -> tuple[type, ...]:
    """Return two variants of each panel: for imported objects, and a closed one for objects made in Blender.

    Objects made in Blender have the panels of all families, which would fill the sidebar. Two classes are needed
    because Blender stores for each class whether the panel is open.
    """
    classes = tuple(classes)
    return (*(_variant(panel, is_own=False) for panel in classes), *(_variant(panel, is_own=True) for panel in classes))


def _variant(panel: Any, *, is_own: bool) -> type:
    """Return a variant of a panel, either for objects made in Blender or for imported ones."""

    def poll(_cls: type, context: bpy.types.Context) -> bool:
        return (not origins_of(context)) == is_own and panel.poll(context)

    suffix = OWN if is_own else ""
    body: dict[str, Any] = {"poll": classmethod(poll), "bl_idname": panel.__name__ + suffix}
    if "bl_parent_id" in vars(panel):
        body["bl_parent_id"] = panel.bl_parent_id + suffix
    elif is_own:
        body["bl_options"] = {"DEFAULT_CLOSED"}
    return type(panel.__name__ + suffix, (panel,), {"__module__": __name__, **body})


def homes_of(owner: Any) -> list[Any]:
    """Return the collections of an object, or a collection, and their parents."""
    found = [owner] if isinstance(owner, bpy.types.Collection) else list(owner.users_collection)
    for collection in found:
        if collection.name in bpy.data.collections:  # the scene's own collection has no parents
            found += [above for above in bpy.data.collections if collection in above.children.values()]
    return list(dict.fromkeys(found))


def import_homes_of(owner: Any) -> list[Any]:
    """Return the collections of an object, their parents, and that of its import if the user moved it out of that.

    Of a collection, return itself and its parents.
    """
    homes = homes_of(owner)
    identifier = owner.meshferry.import_id
    if identifier and not any(home.meshferry.import_id == identifier for home in homes):
        homes = [*(home for home in bpy.data.collections if home.meshferry.import_id == identifier), *homes]
    return homes


def draw_wrapped(layout: Any, context: bpy.types.Context, text: str, icon: str = "NONE", width: int = 0) -> None:
    """Draw a text in as many lines as needed for the width of the region, or of a dialog in unscaled pixels."""
    preferences = context.preferences
    scale = preferences.system.ui_scale or 1.0
    if width:
        free = (width - DIALOG_MARGIN) * scale
    else:
        is_browser = context.region.type == "TOOL_PROPS"
        free = context.region.width - (DIALOG_MARGIN if is_browser else REGION_MARGIN) * scale
    if icon != "NONE":
        free -= ICON_WIDTH * scale
    blf.size(0, preferences.ui_styles[0].widget.points * scale)
    for line in wrapped(text, lambda line: blf.dimensions(0, line)[0] <= free):
        layout.label(text=line, icon=icon, translate=False)
        icon = "NONE" if icon == "NONE" else "BLANK1"


def redraw_sidebars() -> None:
    """Redraw the 3D views with their sidebars, which Blender does not do for changes of window properties."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                area.tag_redraw()


def wrapped(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Split a text into lines that fit, between words or behind separators of a path if possible."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if fits(longer):
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while not fits(line):  # paths and some languages have no spaces
            length = max(1, bisect_right(range(1, len(line)), False, key=lambda end: not fits(line[:end])))
            if length == len(line):
                break
            length = 1 + max(line.rfind(separator, 1, length) for separator in "/\\") or length
            lines.append(line[:length])
            line = line[length:]
    return [*lines, line] if line else lines


def draw_actions(layout: Any, actions: Iterable[Any], *, root_motion: bool = False) -> None:
    """Draw name, rate and export switch of the clip of each action."""
    for action in actions:
        box = layout.box().column()
        box.label(text=action.name, icon="ACTION", translate=False)
        clip = action.meshferry
        box.prop(clip, "use_export", text="Export", text_ctxt=CONTEXT)
        rest = box.column()
        rest.active = clip.use_export
        rest.prop(clip, "clip_name", text="Name", text_ctxt=CONTEXT)
        rest.prop(clip, "fps")
        if not clip.fps:
            draw_automatic_rate(rest, scene_rate(bpy.context.scene))
        if root_motion:
            rest.prop(clip, "root_motion")
        if clip.frame_count:
            rest.label(text=iface_("{} frames in the file").format(clip.frame_count), translate=False)


def is_renamed(obj: Any) -> bool:
    """Return whether an object has another name in the file than in Blender."""
    return bool(obj.meshferry.source_name) and obj.meshferry.given_name == obj.name


def actions_of(obj: Any) -> list[Any]:
    """Return the actions of an object and of its shape keys, without duplicates."""
    keys = getattr(obj.data, "shape_keys", None)
    owners = [obj.animation_data, keys.animation_data if keys is not None else None]
    return list(dict.fromkeys(owner.action for owner in owners if owner is not None and owner.action is not None))
