"""The report of the last import or export, stored for the sidebar: the status bar shows it for seconds only."""

from collections.abc import Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ..blender_data.property_groups.translation_context import CONTEXT
from .sidebar import draw_wrapped
from .translations import iface_

MOST_WARNINGS = 20
"""Maximum number of warnings reported one by one; if there are more, a text of the .blend file has all of them."""

REPORT_TEXT = "Meshferry Report"
"""Name of the text with all warnings."""


class MeshferryReport(bpy.types.PropertyGroup):
    """The last report."""

    summary: StringProperty(name="Summary", description="Result of the last import or export")
    lines: StringProperty(name="Lines", description="Warnings and notes, one a line")
    is_problem: BoolProperty(name="Problem", description="There are warnings or errors")


def keep_report(summary: str, lines: Sequence[str], *, is_problem: bool) -> None:
    """Store a report for the sidebar."""
    kept = bpy.context.window_manager.meshferry_report
    kept.summary, kept.is_problem = summary, is_problem
    kept.lines = "\n".join(lines)


def draw_report(layout: Any, context: bpy.types.Context) -> None:
    """Draw the last report in a foldable section; draw nothing if there is none."""
    kept = context.window_manager.meshferry_report
    if not kept.summary:
        return
    header, body = layout.panel("MESHFERRY_last_report", default_closed=False)
    header.label(text="Last Report", text_ctxt=CONTEXT)
    if body is None:
        return
    column = body.column(align=True)
    draw_wrapped(column, context, kept.summary, "ERROR" if kept.is_problem else "INFO")
    lines = kept.lines.split("\n") if kept.lines else []
    for line in lines[:MOST_WARNINGS]:
        draw_wrapped(column, context, line, "DOT")
    if len(lines) > MOST_WARNINGS:
        more = iface_("and {} more in the Info editor or the text '{}'").format(len(lines) - MOST_WARNINGS, REPORT_TEXT)
        draw_wrapped(column, context, more, "DOT")


WINDOW_STATE = {"meshferry_report": MeshferryReport}
