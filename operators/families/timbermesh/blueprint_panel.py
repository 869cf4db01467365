"""Panel in the sidebar for an imported blueprint: its visible parts, and the node of the active object."""

from collections.abc import Iterator
from typing import Any

import bpy

from ....blender_data.importing.placements.node_objects import OWNER
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.core.messages import counted
from ....io_formats.timbermesh.model.format import TIMBERMESH
from ...findings.finding_list import draw_findings
from ...layouts import button, draw_rest, property_column, sidebar_panel
from ...sidebar import draw_wrapped
from ...translations import iface_
from .blueprint_children import MODEL
from .blueprints import (
    OBJECT_OT_timbermesh_model_add,
    OBJECT_OT_timbermesh_state_show,
    main_collection,
    missing_models,
    shown_states,
)

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
    node: Any = context.object
    while node.meshferry.is_model_part and node.parent is not None:
        node = node.parent
    if node != context.object:
        text = iface_("Part of the model at '{}', which is moved as a whole").format(node.name)
        draw_wrapped(layout, context, text, "LOCKED")
        button(layout, "object.select_hierarchy", text="Select Parent", icon="OBJECT_ORIGIN", direction="PARENT")
    if MODEL in node:
        property_column(layout).prop(node, f'["{MODEL}"]', text=MODEL, text_ctxt=CONTEXT)
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
