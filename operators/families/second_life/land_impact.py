"""The section "Land Impact and Complexity" of the sidebar: weights of models, computed on request."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, FloatProperty, IntProperty, StringProperty

from ....blender_data.export_options import HIDDEN, KEEP_IMPORTED
from ....blender_data.exporting import object_selection
from ....blender_data.exporting.models.model_objects import ModelObjects
from ....blender_data.names import name_in_file
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.api import load
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Text
from ....io_formats.passes import lod_names
from ....io_formats.second_life.asset import land_impact
from ....io_formats.second_life.asset.format import SECOND_LIFE_MESH
from ....io_formats.second_life.avatar.joints import MOST_JOINTS
from ....io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from ....io_formats.second_life.models import costs
from ....io_formats.second_life.options import LEVEL_LABELS, LEVELS, ModelWriteOptions
from ...files.export_base import read_files
from ...layouts import requires
from ...option_properties import chosen_options, to_export_options
from ...reports import Messages, conclude
from ...translations import iface_
from . import exporters

WORN, REZZED, ANIMESH = USAGES = ("WORN", "REZZED", "ANIMESH")
"""Uses of objects in world."""

MOST_WATCHED = 100
"""Maximum number of models whose changes the sidebar detects, as it checks them whenever it is drawn."""


class MeshferryLevelWeight(bpy.types.PropertyGroup):
    """One level of detail of a model."""

    triangles: IntProperty(name="Triangles", description="Triangles of the level")
    size: IntProperty(name="Bytes", description="Compressed size of the level in bytes; 0 if it is missing")
    change: IntProperty(name="Change", description="Bytes more than at the computation before")
    share: FloatProperty(name="Share", description="Part of the download weight or complexity", subtype="FACTOR")


class MeshferryModelWeight(bpy.types.PropertyGroup):
    """The weights of one object of an upload."""

    name: StringProperty(name="Name", description="Name of the object")
    levels: CollectionProperty(type=MeshferryLevelWeight)
    download: FloatProperty(name="Download Weight", description="Cost of its levels of detail at its size")
    physics: FloatProperty(name="Physics Weight", description="Estimated cost of its physics")
    physics_shape: StringProperty(name="Physics Shape", description="Convex hull, hulls or triangles")
    animesh: FloatProperty(name="Animesh Weight", description="Its contribution to the weight of an animated object")
    complexity: IntProperty(name="Complexity", description="Cost of the object if it is worn")
    weighted: FloatProperty(name="Weighted Triangles", description="Triangles of all levels, by how far they are seen")
    traits: StringProperty(name="Traits", description="What multiplies the complexity, with commas")
    joints: IntProperty(name="Joints", description="Joints that it is bound to")
    same_mesh_as: StringProperty(name="Same Mesh As", description="Object before it with the same mesh; or empty")
    is_exact: BoolProperty(name="Exact", description="The figures are those of the imported file")


COPIED = ["name", "download", "physics", "physics_shape", "animesh", "complexity", "joints", "same_mesh_as", "is_exact"]
"""Properties of an object that have the values of its :class:`.land_impact.Figures`."""


class MeshferryWeights(bpy.types.PropertyGroup):
    """The last computed weights of all models."""

    subject: StringProperty(name="Subject", description="Objects that the figures are about")
    stamp: StringProperty(name="State", description="Properties of the objects, for detecting changes")
    models: CollectionProperty(type=MeshferryModelWeight)
    mesh_count: IntProperty(name="Meshes", description="Number of different meshes, each of which is uploaded once")


class OBJECT_OT_second_life_weigh(bpy.types.Operator):
    """Compute the weights of an upload of the chosen models."""

    bl_idname = "object.second_life_weigh"
    bl_label = "Compute Land Impact and Complexity"
    bl_description = (
        "Compute land impact or complexity, triangles and bytes of the selected models, with the options of the last "
        "export. The viewer encodes meshes again, so its figures differ slightly"
    )
    poll = requires(exporters.HAS_MODEL)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Encode the assets without writing them, and store their weights for the sidebar."""
        models = exporters.chosen_models(context)
        subject = exporters.subject_of(models)
        messages = Messages()
        found: list[land_impact.Figures] = []
        with messages.outcome("", subject):
            found = figures_of(context, models)
        keep_figures(context, subject, stamp_of(context, models), found)
        kept = context.window_manager.meshferry_weights
        costs_of = cost_texts(kept, usages_of(models))
        parts = (*exporters.object_counts(len(found), kept.mesh_count), *costs_of)
        return conclude(self, messages, parts, "Computed")


def figures_of(context: bpy.types.Context, models: Sequence[ModelObjects]) -> list[land_impact.Figures]:
    """Return the weights of models. A model unchanged since its import has the weights of its file.

    Raises
    ------
    MeshferryError
        The models cannot be exported.
    """
    from ....blender_data.exporting.models.generated_parts import shape_of

    values = {**exporters.last_upload_values(context), HIDDEN.name: True}
    options = to_export_options(values)
    of_files = exact_figures_of(context, [model if shape_of(model, options) == "AUTO" else None for model in models])
    if all(found is not None for found in of_files):
        return [found for found in of_files if found is not None]
    source = object_selection.Source("OBJECTS", objects=tuple(model.finest for model in models))
    # A bundle is one scene, in which objects with the same mesh are found.
    files = read_files(context, source, exporters.subject_of(models), SECOND_LIFE_BUNDLE, values)
    asset_options = chosen_options(ModelWriteOptions, values)
    exact = {model.finest.name: found for model, found in zip(models, of_files, strict=True) if found is not None}
    return [
        replace(exact.get(found.name, found), same_mesh_as=found.same_mesh_as)
        for scene in files.parts
        for found in land_impact.figures_of_scene(scene, asset_options)
    ]


def exact_figures_of(
    context: bpy.types.Context, models: Sequence[ModelObjects | None]
) -> list[land_impact.Figures | None]:
    """Return the weights of unchanged imported models, None for others; models of one file have the same mesh."""
    found: list[land_impact.Figures | None] = []
    first_of: dict[Any, str] = {}
    for model in models:
        exact = None if model is None else exact_figures(context, model.finest)
        if model is not None and exact is not None:
            path = exporters.imported_from(model.finest)
            exact = replace(exact, same_mesh_as=first_of.get(path, ""))
            first_of.setdefault(path, exact.name)
        found.append(exact)
    return found


def exact_figures(context: bpy.types.Context, finest: Any) -> land_impact.Figures | None:
    """Return the weights of the file that a model was imported from, or None if it was not imported or was changed."""
    path = exporters.imported_from(finest)
    if path is None:
        return None
    try:
        loaded = load(path)
        if loaded.format != SECOND_LIFE_MESH:
            return None
        source = object_selection.Source("OBJECTS", objects=(finest,))
        values = {KEEP_IMPORTED.name: True, HIDDEN.name: True}
        (scene,) = read_files(context, source, finest.name, SECOND_LIFE_MESH, values).parts
        options = chosen_options(ModelWriteOptions, values)
        return land_impact.figures_of_file(loaded.document, scene, options)
    except (MeshferryError, ValueError):
        return None  # the file was deleted or replaced, or the object was changed


def keep_figures(context: bpy.types.Context, subject: str, stamp: str, found: list[land_impact.Figures]) -> None:
    """Store weights for the sidebar."""
    kept = context.window_manager.meshferry_weights
    kept.subject, kept.stamp = subject, stamp
    sizes_before = {entry.name: [level.size for level in entry.levels] for entry in kept.models}
    kept.models.clear()
    for one in found:
        entry = kept.models.add()
        for name in COPIED:
            setattr(entry, name, getattr(one, name))
        entry.weighted, entry.traits = sum(one.weighted), ",".join(one.traits)
        before = sizes_before.get(one.name, one.sizes)
        for triangles, size, old, weighted in zip(one.triangles, one.sizes, before, one.weighted, strict=True):
            level = entry.levels.add()
            level.triangles, level.size, level.change = triangles, size, size - old
            level.share = weighted / sum(one.weighted)
    kept.mesh_count = sum(not one.same_mesh_as for one in found)


def stamp_of(context: bpy.types.Context, models: Iterable[ModelObjects]) -> str:
    """Return a text of quickly read properties that usually change whenever the weights change."""
    traits: list[str] = []
    for model in islice(models, MOST_WATCHED):
        for key, items in exporters.objects_by_part(model).items():
            for obj in items:
                data = obj.data
                counts = (len(data.vertices), len(data.polygons)) if obj.type == "MESH" else ()
                scale = [round(value, 4) for value in obj.scale]
                modifiers = [(modifier.type, modifier.show_viewport) for modifier in obj.modifiers]
                slots = [slot.material.name if slot.material else "" for slot in obj.material_slots]
                traits.append(repr((key, obj.name, counts, scale, modifiers, slots, obj.meshferry.physics_shape)))
    traits.append(repr(sorted(exporters.last_upload_values(context).items())))
    return "\n".join(traits)


def usages_of(models: Iterable[ModelObjects]) -> dict[str, str]:
    """Return how each model is used, by its name among the computed weights."""
    return {lod_names.without_suffix(name_in_file(model.finest)): str(model.finest.meshferry.usage) for model in models}


def usage_of(entry: Any, usages: Mapping[str, str]) -> str:
    """Return how an object is used: worn if it is rigged and nothing else is chosen, rezzed if it is not."""
    # Further parts of an object of over 8 materials have a suffix after its name.
    usage = usages.get(entry.name) or usages.get(entry.name.rpartition("_")[0], "AUTO")
    if usage == "AUTO":
        return WORN if entry.joints else REZZED
    return usage


def level_shares(entry: Any, usage: str) -> list[float]:
    """Return the share of each level in the cost of an object, from 0 to 1.

    Animated objects are charged for the triangles of their rigged parts, at any distance.
    """
    if usage != ANIMESH or not entry.joints:
        return [level.share for level in entry.levels]
    sizes = {name: level.size for name, level in zip(LEVELS, entry.levels, strict=True)}
    charged = costs.animesh_level_triangles(sizes)
    return [triangles / sum(charged) for triangles in charged]


def entries_by_usage(kept: Any, usages: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the computed weights grouped by the use of the objects, in the order of :data:`USAGES`."""
    groups = {usage: [entry for entry in kept.models if usage_of(entry, usages) == usage] for usage in USAGES}
    return {usage: entries for usage, entries in groups.items() if entries}


def cost_of(usage: str, total: land_impact.Total) -> int:
    """Return the cost of a total for a usage: the complexity if worn, otherwise the land impact."""
    if usage == WORN:
        return total.complexity
    return costs.land_impact(download_of(usage, total), total.physics, total.server)


def download_of(usage: str, total: land_impact.Total) -> float:
    """Return the download weight of a total, as an animated object if that is its usage."""
    return total.animesh or total.download if usage == ANIMESH else total.download


def cost_texts(kept: Any, usages: Mapping[str, str]) -> list[Text]:
    """Return the phrases about complexity and land impact for the summary."""
    found = []
    for usage, entries in entries_by_usage(kept, usages).items():
        total = land_impact.total_of(entries)
        about = Text("" if all(entry.is_exact for entry in entries) else "about ")
        if total.is_least and usage != WORN:
            about = Text("at least ")
        found.append(Text("complexity {}{:,}" if usage == WORN else "land impact {}{:,}", about, cost_of(usage, total)))
    return found


WINDOW_STATE = {"meshferry_weights": MeshferryWeights}


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
    if not kept.models or kept.subject != exporters.subject_of(models):
        return
    if kept.stamp != stamp_of(context, models):
        layout.label(text="Changed since; compute again", text_ctxt=CONTEXT, icon="TIME")
    if kept.mesh_count < len(kept.models):
        counts = ", ".join(iface_(count) for count in exporters.object_counts(len(kept.models), kept.mesh_count))
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
