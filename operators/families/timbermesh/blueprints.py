"""Imported blueprints of Timberborn: their panel, adding of models, visible parts, models of their children."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty

from ....blender_data import import_marks
from ....blender_data.file_records import FileRecord
from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.property_groups.translation_context import CONTEXT
from ....blender_data.steps import finish
from ....io_formats.api import load, scene_of
from ....io_formats.core.errors import ExportError, MeshferryError
from ....io_formats.core.messages import Kind, Message, Report, counted, distinct
from ....io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT, ReadOptions
from ....io_formats.timbermesh.model.format import TIMBERMESH
from ...files.session_projects import session_projects
from ...findings.finding_list import draw_findings
from ...layouts import IN_OBJECT_MODE, button, draw_rest, path_property, property_column, requires, sidebar_panel
from ...option_properties import chosen_options
from ...preferences import drawn_for
from ...registration import MenuEntry
from ...reports import inform, refuse, warn
from ...selection import select_only
from ...sidebar import draw_wrapped, import_homes_of
from ...translations import iface_
from . import parts

_WITH_PARTS = ("Finished", "Uncovered", "Underground")


def active_child(context: bpy.types.Context) -> Any:
    """Return the child of a blueprint that contains the active object or is that object, or None."""
    child = parts.child_of(context.object)
    return child if child is not None and parts.blueprint_of(child) is not None else None


def may_have_parts(context: bpy.types.Context) -> bool:
    """Return whether the active child belongs to a building state to whose model parts can be added."""
    return state_of_active(context) in _WITH_PARTS


def state_of_active(context: bpy.types.Context) -> str:
    """Return the name of the building state of the active child, or an empty text."""
    child = active_child(context)
    found = parts.blueprint_of(child) if child is not None else None
    return parts.state_of(child, found[0]) if found is not None else ""


class OBJECT_OT_timbermesh_model_add(bpy.types.Operator):
    """Add a model of the mod to an imported blueprint."""

    bl_idname = "object.timbermesh_model_add"
    bl_label = "Add Model"
    bl_description = (
        "Add a model of the mod below the active child of an imported Timberborn blueprint, as a new child. Re-export "
        "writes it into the blueprint"
    )
    bl_options = {"REGISTER", "UNDO"}

    filepath: path_property("File Path", "The .timbermesh file", "FILE_PATH", {"SKIP_SAVE"})
    filter_glob: StringProperty(default=f"*{TIMBERMESH.extensions[0]}", options={"HIDDEN", "SKIP_SAVE"})

    poll = requires(
        IN_OBJECT_MODE,
        (
            lambda context: active_child(context) is not None,
            "Choose the object of an imported Timberborn blueprint, such as #Finished",
        ),
        (
            lambda context: not parts.owner_of(active_child(context)) and "#nested" not in _key(active_child(context)),
            "The active object belongs to a nested blueprint: import that file, and add the model there",
        ),
        (
            lambda context: state_of_active(context) != "Unfinished",
            "The children of the unfinished model are the stages of the building, whose number is fixed",
        ),
        (may_have_parts, "Models can only be added to the finished, uncovered or underground model"),
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file browser in the folder of the blueprint."""
        _collection, record = parts.blueprint_of(active_child(context))
        if not self.filepath:
            self.filepath = str(record.path.parent) + "/"
        manager: Any = context.window_manager
        manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the model, and select its empty."""
        from ....blender_data.importing.placements.placement_models import add_model
        from ....io_formats.timbermesh.blueprint import components
        from ....io_formats.timbermesh.blueprint.links import placed_model

        child = active_child(context)
        collection, record = parts.blueprint_of(child)
        file = Path(bpy.path.abspath(self.filepath))
        options = chosen_options(ImportOptions, import_marks.stored_options(collection))
        try:
            path = path_in_blueprint(file, collection, record)
            made, messages = add_model(context, child, placed_model(file), components.ORDER, options)
        except MeshferryError as problem:
            return refuse(self, problem.sentence())
        made[parts.MODEL] = path
        select_only(context, [made])
        for message in messages:
            warn(self, message)
        inform(self, "Added '{}' below '{}'; Re-export writes it to {}", path, child.name, record.path.name)
        return {"FINISHED"}


def _key(obj: Any) -> str:
    return str(obj.meshferry.node_key)


def path_in_blueprint(file: Path, collection: Any, record: FileRecord) -> str:
    """Return the path by which the blueprint of an imported collection can name a model file.

    Raises
    ------
    MeshferryError
        It cannot, or the blueprint cannot be read.
    """
    from ....io_formats.timbermesh.blueprint.links import model_path

    options = import_marks.stored_options(collection)
    placement = None
    if record.path.is_file():
        placement = scene_of(load(record.path), options, projects=session_projects()).placement
    return model_path(file, record.path, placement, chosen_options(ReadOptions, options).mod)


class OBJECT_OT_timbermesh_state_show(bpy.types.Operator):
    """Show one state of an imported blueprint."""

    bl_idname = "object.timbermesh_state_show"
    bl_label = "Show State"
    bl_description = "Show exactly one of the states of the active blueprint, as the game does"
    bl_options = {"REGISTER", "UNDO"}

    state: EnumProperty(
        name="State",
        description="What to show",
        items=[(name, name, f"Show the {name.lower()} model") for name in parts.STATES],
    )

    poll = requires(
        (lambda context: bool(shown_states(context)), "Choose an object of an imported Timberborn blueprint")
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Show the collection of one building state and hide the others."""
        states = shown_states(context)
        if self.state not in states:
            return refuse(self, "The blueprint has no state '{}'", self.state)
        for name, layer in states.items():
            layer.hide_viewport = name != self.state
            layer.collection.hide_render = name != self.state
        return {"FINISHED"}


def main_collection(context: bpy.types.Context) -> Any:
    """Return the collection and the record of the blueprint of the active object or collection, or None."""
    obj = context.object
    if obj is not None and (found := parts.blueprint_of(obj)) is not None:
        return found
    for home in import_homes_of(obj) if obj is not None else [context.collection]:
        record = parts.record_of(home)
        if record is not None:
            return home, record
    return None


def shown_states(context: bpy.types.Context) -> dict[str, Any]:
    """Return the layer collections of the states of the active blueprint, by their names."""
    found = main_collection(context)
    if found is None:
        return {}
    states = {collection: name for name, collection in parts.states_of(found[0]).items()}
    waiting, layers = [context.view_layer.layer_collection], {}
    while waiting:
        layer = waiting.pop()
        waiting += layer.children
        if layer.collection in states:
            layers[states[layer.collection]] = layer
    return {name: layers[name] for name in parts.STATES if name in layers}


def missing_models(main: Any) -> list[str]:
    """Return the paths of the models of a blueprint that were not found."""
    children = [
        obj for obj in import_marks.objects_in(main) if obj.get(parts.MODEL) and not parts.objects_of_model(obj)
    ]
    return sorted({str(child[parts.MODEL]) for child in children})


def findings_of(collection: Any, record: FileRecord) -> list[Message]:
    """Return findings about a blueprint after an export of its changes, or the errors that prevent the export.

    Raises
    ------
    MeshferryError
        The file cannot be read, or was changed.
    """
    from ....blender_data.exporting.placements.placement_patch import plan_patch

    try:
        plan = finish(plan_patch(collection, session_projects()))
    except ExportError as problem:
        if not problem.findings:
            raise
        return [replace(message, kind=Kind.ERROR) for message in problem.findings]
    options = chosen_options(ReadOptions, import_marks.stored_options(collection))
    document = TIMBERBORN_BLUEPRINT.read(plan.patched.data)
    findings = TIMBERBORN_BLUEPRINT.check(document, options, record.path)
    projects = session_projects()
    findings += TIMBERBORN_BLUEPRINT.check_links(document, record.path, projects, options)
    missing = distinct(TIMBERBORN_BLUEPRINT.missing(document, record.path, projects, options))
    findings += [replace(message, kind=Kind.WARNING) for message in missing if not message.is_note]
    return distinct([*findings, *(message for message in plan.messages if message.is_listed)])


def planned_models(part: parts.Part, file: Path) -> list[tuple[Any, str]]:
    """Return the children of a blueprint that will use the file of a part as model, each with the path to store in it.

    Raises
    ------
    MeshferryError
        A child belongs to a nested blueprint, or its blueprint cannot name the file.
    """
    found = []
    for child in part.places if part.is_placed else ():
        home = parts.blueprint_of(child)
        if home is None:
            continue
        if parts.owner_of(child):
            raise ExportError("'{}' belongs to {}; import that file", child.name, parts.owner_of(child))
        found.append((child, path_in_blueprint(file, *home)))
    return found


def use_models(planned: list[tuple[Any, str]], report: Report) -> None:
    """Set the model paths of children with exported models, and move the children to the origins of the models."""
    for child, path in planned:
        parts.move_to_origin(child)
        parts.set_model(child, path)
    if planned:
        _collection, record = parts.blueprint_of(planned[0][0])
        text = "{} in {} now named so: '{}'; Re-export of the blueprint writes this"
        report.note("model-path-set", text, counted(len(planned), "model"), record.path.name, planned[0][1])


@drawn_for("timbermesh")
def draw_object_entry(self: Any, context: bpy.types.Context) -> None:
    """Draw the entry in the Object menu, for objects of blueprints only."""
    if active_child(context) is not None:
        self.layout.separator()
        self.layout.operator_context = "INVOKE_DEFAULT"
        button(self.layout, OBJECT_OT_timbermesh_model_add, text="Add Timberborn Model…")


ENTRIES = (MenuEntry("VIEW3D_MT_object", draw_object_entry),)


_MOST_MISSING = 5
"""Largest number of missing models that are listed."""


@sidebar_panel("TIMBERMESH_PT_blueprint", "Blueprint", lambda context: main_collection(context) is not None)
def blueprint_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw a switch for each state of the building, and the node of the active object."""
    main, _record = main_collection(context)
    states = shown_states(context)
    if len(states) > 1:
        row = layout.row(align=True)
        for name, layer in states.items():
            is_shown = not layer.hide_viewport
            show = row.operator(
                OBJECT_OT_timbermesh_state_show.bl_idname, text=name, text_ctxt=CONTEXT, depress=is_shown
            )
            show.state = name
    column = layout.column(align=True)
    for layer, depth in _groups(context.view_layer.layer_collection, main):
        row = column.row()
        row.separator(factor=2.0 * depth)
        name = layer.collection.meshferry.source_name
        # A checkbox, since Blender draws the eye of an inverted toggle closed while it is on.
        row.prop(layer, "hide_viewport", text=name, translate=False, invert_checkbox=True, toggle=False)
    if context.object is not None:
        _draw_node(layout, context)
    row = layout.row(align=True)
    button(row, OBJECT_OT_timbermesh_model_add, text="Add Model…", icon="ADD")
    button(row, "export_scene.timbermesh_check", text="Check", icon="CHECKMARK")
    draw_findings(layout, context, TIMBERMESH, main.name)
    missing = missing_models(main)
    if missing:
        column = layout.column(align=True)
        number = iface_(counted(len(missing), "missing model", "missing models"))
        column.label(text=number, icon="ERROR", translate=False)
        for path in missing[:_MOST_MISSING]:
            column.label(text=path, translate=False)
        draw_rest(column, missing, _MOST_MISSING)


def _draw_node(layout: Any, context: bpy.types.Context) -> None:
    from ....blender_data.importing.placements.node_objects import OWNER

    node: Any = context.object
    while node.meshferry.is_model_part and node.parent is not None:
        node = node.parent
    if node != context.object:
        text = iface_("Part of the model at '{}', which is moved as a whole").format(node.name)
        draw_wrapped(layout, context, text, "LOCKED")
        button(layout, "object.select_hierarchy", text="Select Parent", icon="OBJECT_ORIGIN", direction="PARENT")
    if parts.MODEL in node:
        property_column(layout).prop(node, f'["{parts.MODEL}"]', text=parts.MODEL, text_ctxt=CONTEXT)
    if OWNER in node:
        text = iface_("Belongs to {}; open that file to change it").format(node[OWNER])
        draw_wrapped(layout, context, text, "LOCKED")


def _groups(layer: Any, collection: Any, depth: int = -1) -> Iterator[tuple[Any, int]]:
    """Yield the layers of the groups of nodes below a collection, with their depth."""
    if depth >= 0:
        yield layer, depth
    is_inside = depth >= 0 or layer.collection == collection
    for child in layer.children:
        if not is_inside:
            yield from _groups(child, collection)
        elif child.collection.meshferry.source_name:
            yield from _groups(child, collection, depth + 1)
