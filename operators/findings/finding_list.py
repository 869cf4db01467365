"""The findings of the last check or export, stored and drawn for the sidebar with buttons to select and fix."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, IntProperty, StringProperty

from ...io_formats.core.findings import Finding, Severity
from ...io_formats.registry import Format
from ..last_report import MOST_WARNINGS, REPORT_TEXT
from ..reporting import readable
from ..sidebar import draw_wrapped
from ..translations import CONTEXT, classes_factory, iface_
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
    members: StringProperty(name="Elements", description="Indices as ranges, or names, at most 10,000")
    member_count: IntProperty(name="Number of Elements", description="Number of elements")
    fix: StringProperty(name="Fix", description="Identifier of the fix, or empty")
    new_name: StringProperty(name="New Name", description="Name that the fix gives the material")
    names: StringProperty(name="Names", description="Names of the objects or materials concerned, as JSON")


class MeshferryCheck(bpy.types.PropertyGroup):
    """The last check or failed export, as shown in the sidebar."""

    format: StringProperty(name="Format", description="Format of the check")
    subject: StringProperty(name="Subject", description="Checked collection or object")
    findings: CollectionProperty(type=MeshferryFinding)


def keep_findings(context: bpy.types.Context, target: Format, subject: str, findings: Iterable[Finding]) -> None:
    """Store the findings of a check or an export for the sidebar, errors first."""
    shown = context.window_manager.meshferry_check
    shown.format = target.name
    shown.subject = subject
    shown.findings.clear()
    for finding in sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR):
        entry = shown.findings.add()
        entry.item, entry.message = readable(iface_(finding.item)), readable(iface_(finding.message))
        entry.is_error = finding.severity is Severity.ERROR
        reasons = refusals(context, finding.fix, finding.names) if finding.fix is not None else []
        if finding.fix is not None and not all(reasons):
            entry.fix = finding.fix.value
        elif reasons:
            entry.message = f"{entry.message} ({reasons[0]})"
        entry.names, entry.new_name = json.dumps(finding.names), finding.new_name
        if finding.elements is not None:
            entry.kind, entry.node = finding.elements.kind, finding.elements.node
            entry.members = members_text(finding.elements.members)
            entry.member_count = len(finding.elements.members)


def draw_findings(layout: Any, context: bpy.types.Context, target: Format, subject: str) -> None:
    """Draw the findings of the last check if it concerned this subject."""
    check = context.window_manager.meshferry_check
    if not subject or (check.format, check.subject) != (target.name, subject):
        return
    if not check.findings:
        layout.label(text="No problems found", text_ctxt=CONTEXT, icon="CHECKMARK")
    draw_list(layout, context)


def draw_list(layout: Any, context: bpy.types.Context, width: int = 0) -> None:
    """Draw all findings of the last check with their buttons; ``width`` is that of a dialog."""
    findings = context.window_manager.meshferry_check.findings
    if sum(bool(finding.fix) for finding in findings) > 1:
        layout.operator(
            "object.meshferry_finding_fix", text="Fix All", text_ctxt=CONTEXT, icon="TOOL_SETTINGS"
        ).index = -1
    for index, finding in enumerate(findings[:MOST_WARNINGS]):
        column = layout.box().column(align=True)
        title = finding.item or iface_("Error" if finding.is_error else "Warning")
        row = column.split(factor=0.8, align=True) if finding.fix else column.row()
        select = row.row(align=True)
        select.alert = finding.is_error
        icon = "CANCEL" if finding.is_error else "ERROR"
        select.operator("object.meshferry_finding_select", text=title, icon=icon, translate=False).index = index
        if finding.fix:
            row.operator("object.meshferry_finding_fix", text="Fix", text_ctxt=CONTEXT).index = index
        draw_wrapped(column, context, finding.message, width=width)
    rest = len(findings) - MOST_WARNINGS
    if rest > 0:
        layout.label(text=iface_("and {} more in the text '{}'").format(rest, REPORT_TEXT), translate=False)


def members_text(members: Sequence[int] | Sequence[str]) -> str:
    """Encode elements as text: indices as ranges (``0-5,9``), names as JSON; at most 10,000."""
    chosen: list[Any] = list(members[:MOST_MEMBERS])
    numbers = sorted(member for member in chosen if isinstance(member, int))
    if len(numbers) < len(chosen):
        return json.dumps(chosen)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def members_of(text: str) -> list[int] | list[str]:
    """Decode the elements that :func:`members_text` encoded."""
    if text.startswith("["):
        names: list[str] = json.loads(text)
        return names
    runs = (run.partition("-") for run in text.split(",") if run)
    return [number for first, _, last in runs for number in range(int(first), int(last or first) + 1)]


CLASSES = (MeshferryFinding, MeshferryCheck)

register_classes, unregister_classes = classes_factory(CLASSES)


def register() -> None:
    """Register the property groups and the property that stores the last check."""
    register_classes()
    bpy.types.WindowManager.meshferry_check = bpy.props.PointerProperty(type=MeshferryCheck)


def unregister() -> None:
    """Unregister them in reverse order."""
    del bpy.types.WindowManager.meshferry_check
    unregister_classes()
