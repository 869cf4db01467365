"""The section "Land Impact and Complexity" of the sidebar: the cost of models worn, rezzed or as animated objects."""

from collections.abc import Iterable, Sequence
from typing import Any

import bpy

from ....blender_data.exporting.models.model_objects import ModelObjects
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.second_life.asset import land_impact
from ....io_formats.second_life.avatar.joints import MOST_JOINTS
from ....io_formats.second_life.models import costs
from ....io_formats.second_life.options import LEVEL_LABELS
from ...translations import iface_
from .exporters import object_counts
from .objects import subject_of
from .weights import (
    ANIMESH,
    REZZED,
    WORN,
    cost_of,
    download_of,
    entries_by_usage,
    level_shares,
    stamp_of,
    usage_of,
    usages_of,
)

MOST_MODELS = 20
"""Largest number of objects whose weights are listed one by one."""

PHYSICS_LABELS = {
    land_impact.CONVEX: "Physics (Convex Hull)",
    land_impact.HULLS: "Physics (Hulls)",
    land_impact.TRIANGLES: "Physics (Triangles)",
}
"""Labels of the estimated weight, by the kind of shape."""

TRAIT_LABELS = {"alpha": "Alpha", "rigged": "Rigged"}
"""Labels of the factors of the complexity that an upload determines."""

TITLES = {WORN: "Complexity (Worn)", REZZED: "Land Impact (Rezzed)", ANIMESH: "Land Impact (Animesh)"}


def draw_weight(layout: Any, context: bpy.types.Context, models: Sequence[ModelObjects]) -> None:
    """Draw how the first model is used, the Compute button, and the last computed weights: totals and each model's."""
    layout.prop(models[0].finest.meshferry, "usage", text_ctxt=CONTEXT)
    layout.operator("object.second_life_weigh", text="Compute", text_ctxt=CONTEXT, icon="FILE_REFRESH")
    kept = context.window_manager.meshferry_weights
    if not kept.models or kept.subject != subject_of(models):
        return
    if kept.stamp != stamp_of(context, models):
        layout.label(text="Changed since; compute again", text_ctxt=CONTEXT, icon="TIME")
    if kept.mesh_count < len(kept.models):
        counts = ", ".join(iface_(count) for count in object_counts(len(kept.models), kept.mesh_count))
        layout.label(text=counts, icon="LINKED", translate=False)
    usages = usages_of(models)
    for usage, entries in entries_by_usage(kept, usages).items():
        draw_total(layout, usage, entries)
    shown = equal_entries(kept.models, usages)[:MOST_MODELS]
    for number, equal in enumerate(shown):
        header, body = layout.panel(f"SECOND_LIFE_weight_{number}", default_closed=len(kept.models) > 1)
        times = f" × {len(equal):,}" if len(equal) > 1 else ""
        header.label(text=f"{equal[0].name}{times}", icon="OBJECT_DATA", translate=False)
        if body is not None:
            draw_model_weight(body, equal[0], usage_of(equal[0], usages))
    if more := len(kept.models) - sum(map(len, shown)):
        layout.label(text=iface_("and {} more").format(more), translate=False)


def equal_entries(entries: Iterable[Any], usages: Any) -> list[list[Any]]:
    """Return lists of the entries that have the same mesh, use and download weight; sizes may make weights differ."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    for entry in entries:
        key = (entry.same_mesh_as or entry.name, usage_of(entry, usages), f"{entry.download:.2f}")
        found.setdefault(key, []).append(entry)
    return list(found.values())


def draw_total(layout: Any, usage: str, entries: Sequence[Any]) -> None:
    """Draw the cost of all objects of one use: the complexity if they are worn, otherwise land impact and weights."""
    total = land_impact.total_of(entries)
    about = "" if all(entry.is_exact for entry in entries) else iface_("about ")
    least = iface_("at least ") if total.is_least else ""
    box = layout.box().column(align=True)
    row = box.row()
    row.scale_y = 1.5
    row.label(text=TITLES[usage], text_ctxt=CONTEXT)
    if usage == WORN:
        draw_right(row, f"{about}{total.complexity:,}")
        return
    download = download_of(usage, total)
    draw_right(row, f"{least or about}{cost_of(usage, total):,}")
    draw_number(box, "Download", f"{about}{download:.2f}")
    physics = f"{least}{total.physics:.2f}" if total.physics or not least else iface_("unknown")
    draw_number(box, "Physics (Estimate)", physics)
    draw_number(box, "Server", f"{total.server:.2f}")


def draw_model_weight(layout: Any, entry: Any, usage: str) -> None:
    """Draw the cost of each level of one object, and the weights that its usage is charged for."""
    about = "" if entry.is_exact else iface_("about ")
    draw_levels(layout, entry, level_shares(entry, usage))
    column = layout.column(align=True)
    if usage == WORN:
        draw_number(column, "Complexity", f"{about}{entry.complexity:,}")
        draw_number(column, "Weighted Triangles", f"{int(entry.weighted):,} × 5")
        for trait in entry.traits.split(","):
            if trait:
                draw_number(column, TRAIT_LABELS[trait], f"× {costs.COMPLEXITY_FACTORS[trait]:g}")
    else:
        is_animesh = usage == ANIMESH
        draw_number(column, "Download", f"{about}{entry.animesh if is_animesh else entry.download:.2f}")
        is_known = entry.physics_shape != land_impact.TRIANGLES
        physics = f"{entry.physics:.2f}" if is_known else iface_("unknown")
        draw_number(column, PHYSICS_LABELS[entry.physics_shape], physics)
    if entry.joints:
        draw_number(column, "Joints", iface_("{} of {}").format(entry.joints, MOST_JOINTS))


def draw_levels(layout: Any, entry: Any, shares: Sequence[float]) -> None:
    """Draw triangles, bytes and share of the cost of each level, and by how many bytes it changed."""
    has_changes = any(level.change for level in entry.levels)
    grid = layout.grid_flow(row_major=True, columns=4, even_columns=True, align=True)
    grid.label(text="")
    for title in ("Triangles", "Bytes", "Change" if has_changes else "Cost"):
        draw_right(grid, iface_(title))
    for label, level, share in zip(LEVEL_LABELS, entry.levels, shares, strict=True):
        grid.label(text=label, text_ctxt=CONTEXT)
        draw_right(grid, f"{level.triangles:,}" if level.size else "–")
        draw_right(grid, f"{level.size:,}" if level.size else "–")
        change = f"{level.change:+,}".replace("-", "−") if level.change else ""
        draw_right(grid, change if has_changes else share_text(share))


def share_text(share: float) -> str:
    """Return a share in percent that differs from 0 % and 100 % unless it is nothing or all."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def draw_number(layout: Any, label: str, text: str) -> None:
    """Draw a label, and a value at the right."""
    row = layout.row()
    row.label(text=label, text_ctxt=CONTEXT)
    draw_right(row, text)


def draw_right(layout: Any, text: str) -> None:
    """Draw a right-aligned text."""
    row = layout.row()
    row.alignment = "RIGHT"
    row.label(text=text, translate=False)
