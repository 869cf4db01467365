"""The section "Shape" of the sidebar: the sliders of an avatar's shape, presets, height, files of shapes.

The file is JSON: the values of sliders by their ids, by name. It is read again at each use, so that several running
Blenders share it.
"""

import json
import math
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bpy
from bpy.props import EnumProperty, IntProperty, StringProperty
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ....blender_data.armature_modifiers import deformed_meshes
from ....blender_data.importing import import_options
from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.names import name_in_file
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.rigging import body_shapes, shown_bindings
from ....io_formats import api
from ....io_formats.core.body_shapes import JointShapes
from ....io_formats.core.errors import FormatError, MeshferryError
from ....io_formats.core.messages import Text
from ....io_formats.core.scene import Scene, Skeleton
from ....io_formats.disk.atomic_write import replace_file
from ....io_formats.disk.file_names import file_name
from ....io_formats.disk.special_files import read_bytes
from ....io_formats.second_life.avatar import armature_sliders, sliders
from ....io_formats.second_life.shape_file.format import SECOND_LIFE_SHAPE, WriteOptions
from ...files.import_base import summary_parts
from ...layouts import Condition, button, file_patterns, path_property, property_column, requires
from ...option_properties import option_values, with_options
from ...reports import Messages, conclude, inform, readable, refuse
from ...sidebar import draw_wrapped
from ...translations import iface_, rpt_
from .avatar import HAS_AVATAR, NeedsAvatar, chosen_avatar
from .retarget import OBJECT_OT_second_life_retarget

FILE_NAME = "meshferry_shapes.json"
COPIED = ""
"""Name of the shape that the user copied, which is not a preset."""

Values = dict[int, float]


def presets_file() -> Path:
    """Return the path of the file; its folder exists.

    Raises
    ------
    MeshferryError
        The folder cannot be made.
    """
    folder = bpy.utils.user_resource("CONFIG", create=True)
    if not folder:
        raise MeshferryError("The folder of Blender's configuration cannot be made")
    return Path(folder) / FILE_NAME


def kept_shapes() -> dict[str, Values]:
    """Return the values of all kept shapes by name, in the order in which they were added.

    Raises
    ------
    MeshferryError
        The file cannot be read.
    """
    path = presets_file()
    if not os.path.exists(path):  # False, too, if the folder cannot be read
        return {}
    data = read_bytes(path)
    try:
        found = json.loads(data)
        return {
            str(name): {
                int(number): float(value)
                for number, value in values.items()
                if int(number) in sliders.sliders() and math.isfinite(value)
            }
            for name, values in found.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise MeshferryError("The file does not hold shapes; move it away to start anew", file=path) from problem


def keep_shape(name: str, values: Mapping[int, float] | None) -> None:
    """Write a shape into the file under a name, in place of the one of that name; None removes it.

    Raises
    ------
    MeshferryError
        The file cannot be read or written.
    """
    kept = kept_shapes()
    kept.pop(name, None)
    if values is not None:
        kept[name] = dict(values)
    replace_file(presets_file(), (json.dumps(kept, indent=1) + "\n").encode("ascii"))


FEMALE, MALE = 0.0, 100.0
"""Positions of the slider of the sex."""
POPOVER_WIDTH = 200
"""Width of the popover with the presets in pixels, at a resolution scale of 1."""
NARROW = 270
"""Width of a sidebar that is too narrow for the whole text of the height, in pixels at a resolution scale of 1."""
_MOST_SEED = 1_000_000


IS_SHAPEABLE: Condition = (
    lambda context: body_shapes.is_shapeable(chosen_avatar(context)),
    "The avatar is linked from another file. Make an editable library override of it to shape it",
)


class NeedsShape:
    """Mixin of operators that change the shape of an avatar."""

    bl_options = {"REGISTER", "UNDO"}
    poll = requires(HAS_AVATAR, IS_SHAPEABLE)


SHAPES = (
    ("STANDARD", "Standard Avatar", "Set all sliders so that the bones are where meshes are bound"),
    ("FEMALE", "Default Female", "Set all sliders to the shape of a new female avatar"),
    ("MALE", "Default Male", "Set all sliders to the shape of a new male avatar"),
    ("COPIED", "Paste", "Set all sliders to those of the copied shape"),
)


class OBJECT_OT_second_life_shape_set(NeedsShape, bpy.types.Operator):
    """Set all sliders of an avatar's shape."""

    bl_idname = "object.second_life_shape_set"
    bl_label = "Set Shape"

    shape: EnumProperty(name="Shape", description="The shape that the avatar gets", items=SHAPES)
    preset: StringProperty(
        name="Preset", description="Name of a preset that the avatar gets instead", options={"SKIP_SAVE"}
    )

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: Any) -> str:
        """Return the description of the shape."""
        if properties.preset:
            return iface_("Set all sliders to those of this preset")
        return cls.bl_rna.properties["shape"].enum_items[properties.shape].description

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Set the sliders."""
        if self.preset or self.shape == "COPIED":
            try:
                values = kept_shapes().get(self.preset or COPIED)
            except MeshferryError as problem:
                return refuse(self, "{}", problem.sentence())
            if values is None and self.preset:
                return refuse(self, "There is no preset '{}'", self.preset)
            if values is None:
                return refuse(self, "No shape was copied")
            percents = armature_sliders.percents_of(values)
        elif self.shape == "STANDARD":
            percents = {slider.number: slider.standard for slider in armature_sliders.sliders()}
        else:
            percents = armature_sliders.percents_of({sliders.MALE: float(self.shape == "MALE")})
        body_shapes.set_percents(chosen_avatar(context), percents)
        return {"FINISHED"}


class OBJECT_OT_second_life_shape_sex(NeedsShape, bpy.types.Operator):
    """Make an avatar's shape female or male."""

    bl_idname = "object.second_life_shape_sex"
    bl_label = "Set Sex of Shape"
    bl_description = "Set the sex of the shape. Other sliders stay as they are"

    sex: EnumProperty(
        name="Sex",
        description="Sex of the shape",
        items=(("FEMALE", "Female", "Make the shape female"), ("MALE", "Male", "Make the shape male")),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Set the slider of the sex."""
        body_shapes.set_percents(chosen_avatar(context), {sliders.MALE: MALE if self.sex == "MALE" else FEMALE})
        return {"FINISHED"}


class OBJECT_OT_second_life_shape_random(NeedsShape, bpy.types.Operator):
    """Give an avatar a random shape."""

    bl_idname = "object.second_life_shape_random"
    bl_label = "Random Shape"
    bl_description = (
        "Set the sliders of the body at random, around their defaults. Sex, eyebrows and shoes stay as they are"
    )

    seed: IntProperty(
        name="Seed", description="Number that determines the shape", min=0, max=_MOST_SEED, options={"SKIP_SAVE"}
    )

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        """Choose a seed."""
        self.seed = random.randrange(_MOST_SEED)
        return self.execute(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Set the sliders."""
        body_shapes.set_percents(chosen_avatar(context), armature_sliders.random_percents(self.seed))
        return {"FINISHED"}


class OBJECT_OT_second_life_shape_reset(NeedsShape, bpy.types.Operator):
    """Reset the sliders of a tab."""

    bl_idname = "object.second_life_shape_reset"
    bl_label = "Reset Sliders"
    bl_description = "Set the sliders of this tab to those of a new avatar"

    tab: EnumProperty(
        name="Tab",
        description="Tab of the sliders",
        items=tuple((tab.upper(), tab, "Reset these sliders") for tab in armature_sliders.TABS.values()),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Set the sliders of both sexes."""
        percents = {
            slider.number: slider.default for slider in armature_sliders.sliders() if slider.tab.upper() == self.tab
        }
        body_shapes.set_percents(chosen_avatar(context), percents)
        return {"FINISHED"}


class OBJECT_OT_second_life_shape_apply(NeedsShape, bpy.types.Operator):
    """Set scales and locations of the bones from the sliders again."""

    bl_idname = "object.second_life_shape_apply"
    bl_label = "Apply Shape Again"
    bl_description = (
        "Set scales and locations of the bones from the sliders again, after they were cleared or changed by hand. The "
        "feet return to the floor"
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Apply the shape."""
        body_shapes.apply(chosen_avatar(context), is_anew=True)
        return {"FINISHED"}


class OBJECT_OT_second_life_shape_standard(NeedsAvatar, bpy.types.Operator):
    """Show the standard avatar, or the shape again."""

    bl_idname = "object.second_life_shape_standard"
    bl_label = "Show Standard Avatar"
    bl_description = (
        "Show the armature in its rest position: the standard avatar, without shape and pose. Press it again to show "
        "the shape"
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Toggle the rest position of the armature."""
        data = chosen_avatar(context).data
        data.pose_position = "POSE" if data.pose_position == "REST" else "REST"
        return {"FINISHED"}


class ReadsShape:
    """Mixin of operators that read the shape of an avatar, which may be linked."""

    bl_options = {"REGISTER"}
    poll = requires(HAS_AVATAR)


class OBJECT_OT_second_life_shape_copy(ReadsShape, bpy.types.Operator):
    """Copy the shape of an avatar."""

    bl_idname = "object.second_life_shape_copy"
    bl_label = "Copy Shape"
    bl_description = "Copy the sliders of this avatar, to paste them on another one, also in another file"

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Keep the values."""
        return keep(self, COPIED, values_of(chosen_avatar(context)))


class OBJECT_OT_second_life_shape_preset_add(ReadsShape, bpy.types.Operator):
    """Keep the shape of an avatar as a preset."""

    bl_idname = "object.second_life_shape_preset_add"
    bl_label = "Add Shape Preset"
    bl_description = "Keep the sliders of this avatar under this name. A preset of the same name is replaced"

    name: StringProperty(name="Name", description="Name of the preset", options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Keep the values."""
        name = self.name.strip()
        return keep(self, name, values_of(chosen_avatar(context))) if name else refuse(self, "Enter a name")


class OBJECT_OT_second_life_shape_preset_remove(bpy.types.Operator):
    """Delete a preset of the user's."""

    bl_idname = "object.second_life_shape_preset_remove"
    bl_label = "Remove Shape Preset"
    bl_description = "Delete this preset"
    bl_options = {"INTERNAL"}

    name: StringProperty(name="Name", description="Name of the preset", options={"SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """Ask first, since undo does not bring the preset back."""
        title = rpt_(Text("Delete the preset '{}'?", self.name))
        found: set[str] = context.window_manager.invoke_confirm(
            self, event, title=readable(title), confirm_text=iface_("Delete"), translate=False
        )
        return found

    def execute(self, _context: bpy.types.Context) -> set[str]:
        """Remove the preset from the file."""
        return keep(self, self.name, None)


def keep(operator: Any, name: str, values: Mapping[int, float] | None) -> set[str]:
    """Keep a shape under a name, or remove it; return the operator's result."""
    try:
        keep_shape(name, values)
    except MeshferryError as problem:
        return refuse(operator, "{}", problem.sentence())
    return {"FINISHED"}


def values_of(armature: Any) -> dict[int, float]:
    """Return the values of all sliders of an armature object by id."""
    return armature_sliders.values_of(body_shapes.percents_of(armature))


class OBJECT_OT_second_life_shape_height(ReadsShape, bpy.types.Operator):
    """Report the heights of an avatar."""

    bl_idname = "object.second_life_shape_height"
    bl_label = "Height of the Shape"

    @classmethod
    def description(cls, context: bpy.types.Context, _properties: Any) -> str:
        """Return the heights of the avatar."""
        armature = chosen_avatar(context)
        return rpt_(heights(armature)) if armature is not None else ""

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Report the heights."""
        inform(self, "{}", heights(chosen_avatar(context)))
        return {"FINISHED"}


def heights(armature: Any) -> Text:
    """Return the text with the heights of an avatar's shape."""
    shape = shape_of(armature)
    return Text(
        "Height as the viewer counts: {:.2f} m. From the soles to the crown of the classic body: {:.2f} m",
        *(shape.height, shape.body_height),
    )


def shape_of(armature: Any) -> JointShapes:
    """Return what the shape of an avatar does to its joints."""
    found: Any = body_shapes.shaped_bones(armature)  # not None, since an avatar has bones
    return found.shape


class SECOND_LIFE_PT_shape_presets(bpy.types.Panel):
    """Popover with the built-in presets and the user's own, in the layout of Blender's own presets."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "HEADER"
    bl_label = "Shape Presets"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the presets, and the field and button that add one."""
        layout = self.layout
        column = layout.column(align=True)
        column.emboss = "PULLDOWN_MENU"
        for shape, label, _description in SHAPES[:3]:
            button(column, OBJECT_OT_second_life_shape_set, text=label, shape=shape)
        try:
            names = [name for name in kept_shapes() if name != COPIED]
        except MeshferryError as problem:
            draw_wrapped(layout, context, rpt_(problem.sentence()), "ERROR", width=POPOVER_WIDTH)
            return
        if names:
            column.separator()
        for name in sorted(names, key=str.casefold):
            row = column.row(align=True)
            row.operator(OBJECT_OT_second_life_shape_set.bl_idname, text=name, translate=False).preset = name
            row.operator(OBJECT_OT_second_life_shape_preset_remove.bl_idname, text="", icon="REMOVE").name = name
        row = layout.row(align=True)
        state = context.window_manager
        row.prop(state, "preset_name", text="")
        row.operator(OBJECT_OT_second_life_shape_preset_add.bl_idname, text="", icon="ADD").name = state.preset_name


def draw_shape(layout: Any, context: bpy.types.Context, _models: Any) -> None:
    """Draw the presets, the height and the sliders of the chosen avatar."""
    armature = chosen_avatar(context)
    layout.label(text=armature.name, icon="OUTLINER_OB_ARMATURE", translate=False)
    if not body_shapes.is_shapeable(armature):
        draw_wrapped(layout.column(align=True), context, iface_(IS_SHAPEABLE[1]), "LINKED")
    elif body_shapes.unfit_bones(armature):
        draw_unfit(layout, context, armature)
    draw_bindings(layout, context, armature)
    draw_shapes(layout, context, armature)
    other_sex = "female" if is_male(armature) else "male"
    shown = [slider for slider in armature_sliders.sliders() if slider.sex != other_sex]
    for tab in armature_sliders.TABS.values():
        is_closed = tab in armature_sliders.NOT_OF_SHAPES
        header, body = layout.panel(f"SECOND_LIFE_shape_{tab.lower()}", default_closed=is_closed)
        header.label(text=tab, text_ctxt=CONTEXT)
        header.operator(
            OBJECT_OT_second_life_shape_reset.bl_idname, text="", icon="LOOP_BACK", emboss=False
        ).tab = tab.upper()
        if body is None:
            continue
        column = body.column(align=True)
        column.active = armature.data.pose_position == "POSE"
        for slider in shown:
            if slider.tab == tab:
                column.prop(armature, body_shapes.property_name(slider.number), slider=True)


def is_male(armature: Any) -> bool:
    """Return whether the shape of an armature object is male."""
    value: float = getattr(armature, body_shapes.property_name(sliders.MALE))
    return value > MALE / 2


def draw_unfit(layout: Any, context: bpy.types.Context, armature: Any) -> None:
    """Draw that the bones cannot be shaped exactly, and the button that copies the avatar with the right axes."""
    text = Text(
        "Bones of '{}' do not lie along the avatar's axes, so shapes would be up to 2 cm off. Retarget it first",
        armature.name,
    )
    draw_wrapped(layout.column(align=True), context, iface_(text), "ERROR")
    button(layout, OBJECT_OT_second_life_retarget, text="Retarget Names", proportions="KEEP")


def draw_bindings(layout: Any, context: bpy.types.Context, armature: Any) -> None:
    """Draw which meshes are not shown as the viewer would, since their files bind them in another way."""
    column = layout.column(align=True)
    for obj in deformed_meshes(armature):
        if obj.meshferry.skin.singular:
            template = "The file binds '{}' to {} by a matrix that cannot be inverted; shown as if bound as usual"
            draw_wrapped(column, context, iface_(Text(template, obj.name, obj.meshferry.skin.singular)), "ERROR")
    if shown_bindings.is_incomplete(armature) or shown_bindings.is_outdated(armature):
        text = "Apply the shape again to show all meshes as their files bind them"
        draw_wrapped(column, context, iface_(text), "INFO")


def draw_shapes(layout: Any, context: bpy.types.Context, armature: Any) -> None:
    """Draw the sex, the presets, the buttons for the whole shape, and the height."""
    row = layout.row(align=True)
    for sex, text, is_on in (("FEMALE", "Female", not is_male(armature)), ("MALE", "Male", is_male(armature))):
        chosen = row.operator(OBJECT_OT_second_life_shape_sex.bl_idname, text=text, text_ctxt=CONTEXT, depress=is_on)
        chosen.sex = sex
    column = layout.column(align=True)
    row = column.row(align=True)
    row.popover(SECOND_LIFE_PT_shape_presets.__name__, text="Presets", text_ctxt=CONTEXT)
    button(row, OBJECT_OT_second_life_shape_random, text="Random")
    row = column.row(align=True)
    button(row, OBJECT_OT_second_life_shape_copy, text="Copy", icon="COPYDOWN")
    button(row, OBJECT_OT_second_life_shape_set, text="Paste", icon="PASTEDOWN", shape="COPIED")
    row = column.row(align=True)
    button(row, "object.second_life_load_shape", text="Load Shape…", icon="IMPORT")
    button(row, "object.second_life_save_shape", text="Save Shape…", icon="EXPORT")
    draw_height(layout, context, shape_of(armature).height)
    column = layout.column(align=True)
    column.operator(
        OBJECT_OT_second_life_shape_standard.bl_idname,
        text="Show Standard Avatar",
        text_ctxt=CONTEXT,
        depress=armature.data.pose_position == "REST",
    )
    button(column, OBJECT_OT_second_life_shape_apply, text="Apply Again")


def draw_height(layout: Any, context: bpy.types.Context, height: float) -> None:
    """Draw a height in metres as a flat button, since labels have no tooltips."""
    is_narrow = context.region.width < NARROW * (context.preferences.system.ui_scale or 1.0)
    text = iface_("Height: {:.2f} m" if is_narrow else "Height (as the Viewer Counts): {:.2f} m")
    row = layout.row()
    row.alignment = "LEFT"
    row.operator(OBJECT_OT_second_life_shape_height.bl_idname, text=text.format(height), translate=False, emboss=False)


OTHER_NAMES = "*.dat;*.txt;*.asset"
"""Patterns of further names of body part assets, which other files have, too."""


class OBJECT_OT_second_life_load_shape(NeedsShape, ImportHelper, bpy.types.Operator):
    """Set the sliders of an avatar's shape from a file."""

    bl_idname = "object.second_life_load_shape"
    bl_label = "Load Shape"
    bl_description = (
        "Set all sliders of the avatar from an appearance export of a viewer (.xml) or a body part asset. Sliders that "
        "the file lacks get their default"
    )

    filter_glob: StringProperty(
        default=f"{file_patterns(SECOND_LIFE_SHAPE.extensions)};{OTHER_NAMES}", options={"HIDDEN", "SKIP_SAVE"}
    )
    filepath: path_property("File Path", "File with the shape", "FILE_PATH", {"HIDDEN", "SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Load the file."""
        from ....blender_data.importing import importer

        path = bpy.path.abspath(self.filepath)
        messages, results = Messages(), []
        with messages.outcome(path) as name:
            loaded = api.load(path)
            if loaded.format != SECOND_LIFE_SHAPE:
                raise FormatError("This is a {} file, not a shape", loaded.format.label)
            options = ImportOptions.of({"armature": "ACTIVE"})
            request = import_options.ImportRequest(context, api.scene_of(loaded), options, path, chosen_avatar(context))
            results.append(importer.import_scene(request))
            messages.warn(name, results[0].warnings)
        return conclude(self, messages, summary_parts(results), "Imported")


@with_options(WriteOptions.table())
class OBJECT_OT_second_life_save_shape(ExportHelper, bpy.types.Operator):
    """Write the shape of an avatar to a file."""

    bl_idname = "object.second_life_save_shape"
    bl_label = "Save Shape"
    bl_description = "Write the sliders of the avatar to an .xml file like the appearance exports of viewers"
    bl_options = {"REGISTER"}
    poll = requires(HAS_AVATAR)

    filename_ext = SECOND_LIFE_SHAPE.extensions[0]
    filter_glob: StringProperty(
        default=file_patterns(SECOND_LIFE_SHAPE.written_extensions), options={"HIDDEN", "SKIP_SAVE"}
    )
    filepath: path_property("File Path", "File to write", "FILE_PATH", {"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file browser with the name of the avatar."""
        if not self.filepath:
            self.filepath = file_name(name_in_file(chosen_avatar(context))) + self.filename_ext
        return super().invoke(context, event)

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the option."""
        property_column(self.layout).prop(self, "use_as_others_see")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Write the file, or leave an existing one as it was."""
        armature = chosen_avatar(context)
        path = bpy.path.abspath(self.filepath)
        messages = Messages()
        with messages.outcome(path) as name:
            skeleton = Skeleton(name_in_file(armature), slider_values=body_shapes.percents_of(armature))
            options = option_values(self, WriteOptions.table())
            written = api.write_scene(Scene(Path(path).stem, skeletons=[skeleton]), path, SECOND_LIFE_SHAPE, options)
            messages.warn(name, written)
        return conclude(self, messages, ["1 body shape"], "Exported")
