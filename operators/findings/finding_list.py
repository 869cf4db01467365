"""The findings of the last check or export, stored and drawn for the sidebar with buttons to select and fix."""

import json
from collections.abc import Iterable
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, IntProperty, StringProperty

from ...blender_data.property_groups.translation_context import CONTEXT
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Kind, Message
from ..layouts import button
from ..reports import MOST_WARNINGS, REPORT_TEXT, readable
from ..sidebar import draw_wrapped, redraw_sidebars
from ..translations import iface_
from .finding_fixes import refusals

MOST_MEMBERS = 10_000
"""Largest number of elements stored for a finding; fixing more by hand is not practical."""


class MeshferryFinding(bpy.types.PropertyGroup):
    """One finding of the last check."""

    item: StringProperty(name="Item", description="Object, material or other item concerned")
    message: StringProperty(name="Message", description="The problem and its consequence")
    is_error: BoolProperty(name="Error", description="The target program could not load the file, so the export fails")
    kind: StringProperty(
        name="Kind of Elements",
        description="Elements concerned: triangles, vertices or bones; empty for the whole item",
    )
    node: StringProperty(name="Owner of Elements", description="Name of the object or armature with the elements")
    members: StringProperty(name="Elements", description="Indices or names as JSON, at most 10,000")
    member_count: IntProperty(name="Number of Elements", description="Number of elements")
    fix: StringProperty(name="Fix", description="Identifier of the fix, or empty")
    new_name: StringProperty(name="New Name", description="Name that the fix gives the material")
    names: StringProperty(name="Names", description="Names of the objects or materials that the fix changes, as JSON")
    item_names: StringProperty(name="Names in Item", description="Names in the item, as JSON")
    about: StringProperty(name="About", description="All names that the finding mentions, as JSON")


class MeshferryCheck(bpy.types.PropertyGroup):
    """The last check or failed export, as shown in the sidebar."""

    format: StringProperty(name="Format", description="Format of the check")
    subject: StringProperty(name="Subject", description="Checked collection or object")
    findings: CollectionProperty(type=MeshferryFinding)
    is_old: BoolProperty(name="Old", description="Something was edited since the check")


def keep_findings(context: bpy.types.Context, target: Format, subject: str, findings: Iterable[Message]) -> None:
    """Store the findings of a check or an export for the sidebar, errors first."""
    shown = context.window_manager.meshferry_check
    shown.format = target.name
    shown.subject = subject
    shown.findings.clear()
    for finding in sorted(findings, key=lambda finding: finding.kind is not Kind.ERROR):
        entry = shown.findings.add()
        entry.item, entry.message = readable(iface_(finding.item)), readable(iface_(finding.message))
        entry.is_error = finding.kind is Kind.ERROR
        reasons = refusals(context, finding) if finding.is_fixable else []
        if finding.is_fixable and not all(reasons):
            entry.fix = finding.code
        elif reasons:
            entry.message = f"{entry.message} ({reasons[0]})"
        entry.names, entry.new_name = json.dumps(finding.names), finding.new_name
        entry.item_names, entry.about = json.dumps(finding.item_names()), json.dumps(finding.about())
        if finding.elements is not None:
            entry.kind, entry.node = finding.elements.kind, finding.elements.node
            entry.members = json.dumps(finding.elements.members[:MOST_MEMBERS])
            entry.member_count = len(finding.elements.members)
    bpy.context.view_layer.update()  # what the check itself changed and restored is not an edit
    shown.is_old = False
    if after_update not in bpy.app.handlers.depsgraph_update_post:
        bpy.app.handlers.depsgraph_update_post.append(after_update)


@bpy.app.handlers.persistent
def after_update(_scene: Any, depsgraph: Any) -> None:
    """Mark the findings as old after the first edit since the check; then remove this handler."""
    updates = list(depsgraph.updates)
    if not updates or any(map(is_edit, updates)):  # none: for example after a change of a material's name
        bpy.app.handlers.depsgraph_update_post.remove(after_update)
        if check := getattr(bpy.context.window_manager, "meshferry_check", None):  # None: unregistered meanwhile
            check.is_old = True
            redraw_sidebars()


def is_edit(update: Any) -> bool:
    """Return whether an update of the dependency graph is more than a selection, in Object mode or in Edit mode."""
    if isinstance(update.id, bpy.types.Scene):
        return False
    is_shape = update.is_updated_geometry or update.is_updated_transform
    return is_shape or not update.is_updated_shading or isinstance(update.id, bpy.types.Material)


def draw_findings(layout: Any, context: bpy.types.Context, target: Format, subject: str) -> None:
    """Draw the findings of the last check if it concerned this subject."""
    check = context.window_manager.meshferry_check
    if not subject or (check.format, check.subject) != (target.name, subject):
        return
    if check.is_old:
        layout.label(text="Changed since; check again", text_ctxt=CONTEXT, icon="TIME")
    elif not check.findings:
        layout.label(text="No problems found", text_ctxt=CONTEXT, icon="CHECKMARK")
    draw_list(layout, context)


def draw_list(layout: Any, context: bpy.types.Context, width: int = 0) -> None:
    """Draw all findings of the last check with their buttons; ``width`` is the width of a dialog."""
    findings = context.window_manager.meshferry_check.findings
    if sum(bool(finding.fix) for finding in findings) > 1:
        button(layout, "object.meshferry_finding_fix", text="Fix All", icon="TOOL_SETTINGS", index=-1)
    for index, finding in enumerate(findings[:MOST_WARNINGS]):
        column = layout.box().column(align=True)
        title = finding.item or iface_("Error" if finding.is_error else "Warning")
        row = column.split(factor=0.8, align=True) if finding.fix else column.row()
        select = row.row(align=True)
        select.alert = finding.is_error
        icon = "CANCEL" if finding.is_error else "ERROR"
        select.operator("object.meshferry_finding_select", text=title, icon=icon, translate=False).index = index
        if finding.fix:
            button(row, "object.meshferry_finding_fix", text="Fix", index=index)
        draw_wrapped(column, context, finding.message, width=width)
    rest = len(findings) - MOST_WARNINGS
    if rest > 0:
        layout.label(text=iface_("and {} more in the text '{}'").format(rest, REPORT_TEXT), translate=False)


WINDOW_STATE = {"meshferry_check": MeshferryCheck}
