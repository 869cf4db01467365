"""The tab "Second Life" in the sidebar of the 3D view, and Object > Second Life with the same tools."""

from collections.abc import Callable, Sequence
from typing import Any

import bpy

from ....blender_data.export_options import PHYSICS_SHAPE
from ....blender_data.exporting.models.model_objects import ModelObjects
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.second_life.options import LEVEL_LABELS
from ....io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
from ...files.clip_export import rig_of
from ...findings.finding_list import draw_findings
from ...layouts import button, sidebar_panel
from ...option_properties import draw_options, to_export_options
from ...preferences import drawn_for
from ...registration import MenuEntry
from ...reports import ReportPanel
from ...sidebar import draw_wrapped
from ...translations import iface_
from . import exporters
from .animation import draw_animation
from .attachments import draw_attachments
from .avatar import chosen_avatar, draw_weighted_bones
from .binding_tools import draw_binding
from .bodies import draw_bodies
from .body_shape import draw_shape
from .land_impact import draw_right, draw_weight
from .limb_goals import draw_goals
from .retarget import chosen_rig, draw_retarget

RIGGING = "Rigging"
"""Title of the section that needs an avatar instead of a model."""
SHAPE = "Shape"
"""Title of the section that needs the avatar's armature."""
BODY = "Body"
"""Title of the section that needs the avatar's armature, too."""
ANIMATION = "Animation"
"""Title of the section that needs any armature."""

SHAPE_LABELS = {choice.key: choice.label for choice in PHYSICS_SHAPE.choices}
RATIOS = {exporters.LEVELS[1]: "medium_ratio", exporters.LEVELS[2]: "low_ratio", exporters.LEVELS[3]: "lowest_ratio"}


@sidebar_panel("SECOND_LIFE_PT_sidebar", "Second Life", exporters.is_wanted, parent="", category="Second Life")
def main_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the sections for the chosen models: levels of detail, weights, upload, checks.

    It is one panel with sections, so that the models are looked up only once for each redraw.
    """
    models = exporters.chosen_models(context)
    if not models:
        layout.label(text="No mesh is bound; select one", text_ctxt=CONTEXT, icon="INFO")
    has_avatar = chosen_avatar(context) is not None
    is_needed = {
        RIGGING: has_avatar or chosen_rig(context) is not None,
        SHAPE: has_avatar,
        BODY: has_avatar,
        ANIMATION: rig_of(context.object) is not None,
    }
    for title, draw_section in SECTIONS.items():
        if not is_needed.get(title, bool(models)):
            continue
        # The section of the shape is the longest.
        header, body = layout.panel(f"SECOND_LIFE_{title.split()[0].lower()}", default_closed=title == SHAPE)
        header.label(text=title, text_ctxt=CONTEXT)
        if body is not None:
            draw_section(body, context, models)


class SECOND_LIFE_PT_report(ReportPanel, bpy.types.Panel):
    """Panel with the last report, in the tab in which one exports."""

    bl_category = "Second Life"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a report and the main panel."""
        return exporters.is_wanted(context) and super().poll(context)


def draw_rigging(layout: Any, context: bpy.types.Context, _models: Sequence[ModelObjects]) -> None:
    """Draw the tools for the avatar's joints, for binding meshes to them, and for the bones of other rigs."""
    avatar, rig = chosen_avatar(context), chosen_rig(context)
    if avatar is not None:
        draw_weighted_bones(layout, avatar)
        draw_binding(layout)
        layout.operator("object.second_life_snap_joints", text_ctxt=CONTEXT, icon="SNAP_ON")
        draw_goals(layout, avatar)
        draw_attachments(layout, context, avatar)
    if rig is not None:
        draw_retarget(layout, rig)


def draw_model(layout: Any, context: bpy.types.Context, models: Sequence[ModelObjects]) -> None:
    """Draw the objects that are the levels and the physics of the first model."""
    finest, parts = models[0].finest, exporters.objects_by_part(models[0])
    options = last_options(context)
    column = layout.column(align=True)
    for key, label in zip(exporters.LEVELS, LEVEL_LABELS, strict=True):
        draw_level(column, finest, key, label, parts.get(key, []), options)
    column = layout.column(align=True)
    draw_physics(column, context, models[0], parts.get(exporters.PHYSICS, []))
    split_row(column, "Physics Shape", factor=0.4).prop(finest.meshferry, "physics_shape", text="")
    column.prop(finest.meshferry, "is_linkset_root")
    header, body = layout.panel("SECOND_LIFE_faces", default_closed=True)
    header.label(text="Faces", text_ctxt=CONTEXT)
    if body is not None:
        draw_faces(body, context, finest, options)
    if len(models) > 1:
        layout.label(text=iface_("and {} more selected").format(len(models) - 1), translate=False)


def draw_faces(layout: Any, context: bpy.types.Context, finest: Any, options: Any) -> None:
    """Draw the number in Second Life of the face of each material."""
    from ....blender_data.exporting.reading.material_reading import used_materials
    from ....io_formats.second_life.upload_set.levels import faces_of_slots

    use_modifiers = options is None or options.use_modifiers
    slots = used_materials(context, finest, use_modifiers=use_modifiers)
    column = layout.column(align=True)
    for name, part, number in faces_of_slots(slots, finest.name):
        row = split_row(column, iface_("Face {}").format(number))
        row.label(text=name or iface_("No material"), icon="MATERIAL", translate=False)
        if part:
            draw_right(row, iface_("part {}").format(part + 1))


def draw_checks(layout: Any, context: bpy.types.Context, models: Sequence[ModelObjects]) -> None:
    """Draw the Check button and the findings of the last check."""
    button(layout, "export_scene.second_life_check", text="Check", icon="CHECKMARK")
    draw_findings(layout, context, SECOND_LIFE_UPLOAD, exporters.subject_of(models))


def draw_upload(layout: Any, context: bpy.types.Context, _models: Sequence[ModelObjects]) -> None:
    """Draw the buttons that export at once or after asking for the folder, and the options of both."""
    folder = exporters.known_folder(context)
    row = layout.row(align=True)
    row.scale_y = 1.5
    text = "Export Upload Set" if folder is not None else "Export Upload Set…"
    button(row, exporters.UPLOAD_OPERATOR, text=text, icon="EXPORT", scope="SELECTION", use_last_folder=True)
    if folder is not None:
        button(row, exporters.UPLOAD_OPERATOR, text="", icon="FILE_FOLDER", scope="SELECTION")
        draw_wrapped(layout.column(align=True), context, iface_("Into {}").format(folder))
    header, body = layout.panel("SECOND_LIFE_upload_options", default_closed=True)
    header.label(text="Options", text_ctxt=CONTEXT)
    options = last_options(context)
    if body is not None and options is not None:
        draw_options(body, options, exporters.UPLOAD_OPTIONS, "SECOND_LIFE_sidebar")


# Checks are last, since the list of findings may be long.
SECTIONS: dict[str, Callable[[Any, Any, Sequence[ModelObjects]], None]] = {
    "Object": draw_model,
    RIGGING: draw_rigging,
    SHAPE: draw_shape,
    BODY: draw_bodies,
    ANIMATION: draw_animation,
    "Land Impact and Complexity": draw_weight,
    "Upload": draw_upload,
    "Checks": draw_checks,
}


def last_options(context: bpy.types.Context) -> Any | None:
    """Return the operator properties of the last export. The next export uses changes made to them."""
    return context.window_manager.operator_properties_last(exporters.UPLOAD_OPERATOR)


def split_row(layout: Any, label: str, factor: float = 0.22) -> Any:
    """Draw a label; return the row beside it."""
    split = layout.split(factor=factor, align=True)
    split.label(text=label, text_ctxt=CONTEXT)
    return split.row(align=True)


def draw_level(layout: Any, finest: Any, key: str, label: str, items: list[Any], options: Any) -> None:
    """Draw the object of a level, or how the export generates the level."""
    if key == exporters.LEVELS[0]:
        row = split_row(layout, label)
        row.label(text=finest.name, translate=False)
        draw_eye(row, key, items)
        return
    if items:
        draw_picker(layout, finest, key, label, items, "Generated")
        return
    row = split_row(layout, label)
    picked = row.row(align=True)
    # If the property has an object that was not accepted as the level, the user deleted the object.
    picked.alert = getattr(finest.meshferry, exporters.PICKERS[key]) is not None
    makes = options is None or options.missing_levels == "MAKE"
    if makes and options is not None:
        split = picked.split(factor=0.66, align=True)
        split.prop(finest.meshferry, exporters.PICKERS[key], text="", placeholder=iface_("Generated"))
        split.prop(options, RATIOS[key], text="")
    else:
        picked.prop(finest.meshferry, exporters.PICKERS[key], text="", placeholder=iface_("Same as finer"))
    row.operator("object.second_life_level_make", text="", icon="MOD_DECIM").part = key


def draw_physics(layout: Any, context: bpy.types.Context, model: ModelObjects, items: list[Any]) -> None:
    """Draw the field for the physics object, or the physics shape that the export uses without it."""
    from ....blender_data.exporting.models.generated_parts import shape_of

    kind = shape_of(model, to_export_options(exporters.last_upload_values(context)))
    if kind == "AUTO" and not items:
        kind = "HULL"
    row = draw_picker(layout, model.finest, exporters.PHYSICS, "Physics", items, SHAPE_LABELS[kind])
    row.active = kind in {"AUTO", "MESH", "PARTS"}  # other shapes ignore the object


def draw_picker(layout: Any, finest: Any, key: str, label: str, items: list[Any], otherwise: str) -> Any:
    """Draw the field for the object of a part; return its row.

    An object found in other ways, or ``otherwise`` without any, is a grey placeholder.
    """
    row = split_row(layout, label)
    found = items[0].name if items else iface_(otherwise)
    if len(items) > 1:
        found = iface_("{} objects").format(len(items))
    row.prop(finest.meshferry, exporters.PICKERS[key], text="", placeholder=found)
    if items:
        draw_eye(row, key, items)
    return row


def draw_eye(layout: Any, key: str, items: list[Any]) -> None:
    """Draw the button that shows a part: an eye, which is open while the part is visible."""
    icon = "HIDE_OFF" if any(obj.visible_get() for obj in items) else "HIDE_ON"
    layout.operator("object.second_life_level_show", text="", icon=icon).part = key


MENU = (
    ("level_make part", "level_show part"),
    ("bind", "transfer_weights", "fitted_mesh", "clean_weights", "match_seam"),
    ("automatic_weights weighted", "snap_joints", "ik_add", "ik_remove", "retarget proportions"),
    ("shape_set shape", "shape_random", "shape_copy", "load_shape", "save_shape", "shape_apply", "shape_standard"),
    ("use_as_body", "add_mannequin", "load_body", "check_fit", "add_attachment_points", "attach point"),
    ("weigh", "export_scene.second_life_check", "clean_action", "export_scene.second_life_anim_check"),
)
"""Names of operators, with the property whose choices are a submenu, in the groups of the menu."""


class SECOND_LIFE_MT_object(bpy.types.Menu):
    """Tools for the selected models, the avatar's armature and other rigs."""

    bl_idname = "SECOND_LIFE_MT_object"
    bl_label = "Second Life"

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the entries in the order of the sidebar's sections."""
        layout = self.layout
        for group in MENU:
            if group is not MENU[0]:
                layout.separator()
                layout.operator_context = "INVOKE_DEFAULT"  # otherwise Transfer Weights does not ask for the source
            for entry in group:
                name, _, choices = entry.partition(" ")
                name = name if "." in name else f"object.second_life_{name}"
                if choices:
                    layout.operator_menu_enum(name, choices, text_ctxt=CONTEXT)
                else:
                    layout.operator(name, text_ctxt=CONTEXT)
        button(layout, exporters.UPLOAD_OPERATOR, text="Export Upload Set…", scope="SELECTION")


@drawn_for("second_life")
def draw_object_entry(self: Any, _context: bpy.types.Context) -> None:
    """Draw the submenu in the Object menu of the 3D view."""
    self.layout.separator()
    self.layout.menu(SECOND_LIFE_MT_object.bl_idname, text_ctxt=CONTEXT)


ENTRIES = (MenuEntry("VIEW3D_MT_object", draw_object_entry),)
