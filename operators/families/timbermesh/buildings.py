"""New buildings of Timberborn from collections, and their re-export."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender_data import file_records
from ....blender_data.file_records import FileRecord, SessionFile, digest_of_content
from ....blender_data.steps import Steps, finish, scaled
from ....io_formats.core.errors import ExportError, MeshferryError
from ....io_formats.core.format import OutputFile
from ....io_formats.core.messages import Message, Report, Text, counted, joined
from ....io_formats.disk.atomic_write import make_folder, remove_file, replace_file
from ....io_formats.disk.special_files import read_bytes
from ....io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT
from ....io_formats.timbermesh.building.cells import geometry
from ....io_formats.timbermesh.building.document import Building
from ....io_formats.timbermesh.building.mod_folder import ModFolder
from ....io_formats.timbermesh.building.names import game_names
from ....io_formats.timbermesh.building.options import BuildingOptions
from ....io_formats.timbermesh.building.planning import (
    ENDING,
    check_names,
    edited_blueprint,
    existing_folder,
    icon_of,
    name_and_faction,
    plan_building,
)
from ...files.export_dialog import named_collection
from ...files.patched_export import question_of_path, refuse_unknown
from ...layouts import button, collection_under_pointer, selected_collections
from ...option_properties import chosen_options, draw_options, option_values, with_options
from ...preferences import drawn_for
from ...progress import DIALOG_WIDTH, LongWork
from ...registration import MenuEntry
from ...reports import Messages, conclude
from ...sidebar import draw_wrapped
from ...translations import iface_, rpt_
from .building_parts import BuildingParts, encoded_models, rendered_icon

OPTIONS = tuple(option for option in BuildingOptions.table() if not option.preference)


@dataclass
class PlannedBuildings:
    """New content of files, facts for the user, and what each collection remembers after they are written."""

    files: dict[Path, bytes] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def lines(self) -> list[Text]:
        """Return the facts and the files as texts."""
        lines = []
        for fact in self.facts:
            text = Text("{}: {} x {} x {} cells", fact["building"], *fact["size"])
            entrance = Text("entrance cell {}, {}, {}", *fact["entrance"]) if fact["entrance"] else Text("no entrance")
            lines.append(joined([text, entrance, *fact["materials"]]))
        return [*lines, *(Text("{}", path) for path in self.files)]

    def write(self) -> list[Message]:
        """Write the files and store the records; if a file cannot be written, restore those before it.

        Raises
        ------
        ExportError
            A file cannot be written.
        """
        before = {path: read_bytes(path) if path.exists() else None for path in self.files}
        done: list[Path] = []
        messages = [*self.messages]
        try:
            for path, data in self.files.items():
                make_folder(path.parent)
                messages += file_records.write_files(path, [OutputFile(path.name, data)])
                done.append(path)
        except ExportError:
            for path in reversed(done):
                old = before[path]
                remove_file(path) if old is None else replace_file(path, old)
            raise
        for collection, record in self.records:
            if collection.is_editable:
                collection.meshferry.written_set = json.dumps(record)
        return messages


def plan_steps(
    context: bpy.types.Context, collections: Sequence[Any], options: BuildingOptions, *, has_icon: bool = True
) -> Steps[PlannedBuildings]:
    """Plan the files of new buildings; nothing is written.

    Parameters
    ----------
    has_icon:
        Whether missing icons are rendered; otherwise they are only listed.

    Raises
    ------
    MeshferryError
        A building cannot be written.
    """
    if not options.mod:
        raise ExportError("Choose the folder of the mod")
    mod, report, plan = ModFolder(Path(options.mod)), Report(), PlannedBuildings()
    names = game_names(options.game, report)
    for number, collection in enumerate(collections):
        parts = BuildingParts(collection)
        start, end = number / len(collections), (number + 1) / len(collections)
        models = yield from scaled(encoded_models(context, parts, options), start, end)
        name, faction = name_and_faction(collection.name, options.faction, [*models.materials], names)
        folder = existing_folder(f"{name}.{faction}", mod, options.tool_group)
        building = Building(name, faction, models.shape, models.materials, options, folder)
        icon = None
        if options.icon:
            icon = read_bytes(options.icon)
        elif icon_of(building, mod) is None or (options.use_replace and number == 0):
            icon = rendered_icon(parts, models.box) if has_icon else b"\x89PNG\r\n\x1a\n"
        values = plan_building(building, models.files, icon, mod, names, report)
        fact = {
            "building": building.stem,
            "collection": collection.name,
            "size": models.shape.size,
            "entrance": models.shape.entrance,
            "materials": sorted(models.materials),
            "triangles": models.triangles,
        }
        plan.facts.append(fact)
        path = mod.place(f"{folder}/{building.stem}{ENDING}")
        places = [mod.place(f"{building.model(stage)}.timbermesh") for stage in (None, *range(len(models.files) - 1))]
        plan.records.append((collection, _record(collection, options, path, places, values, mod.planned)))
    plan.files, plan.messages = mod.changed(), report.messages
    return plan


def _record(
    collection: Any,
    options: BuildingOptions,
    path: Path,
    models: Sequence[Path],
    values: Mapping[tuple[str, ...], Any],
    content: Mapping[Path, bytes],
) -> dict[str, Any]:
    """Return what a collection remembers of its building."""
    return {
        "collection": collection.name,
        "options": {option.name: getattr(options, option.name) for option in OPTIONS},
        "blueprint": str(path),
        "models": {str(place): digest_of_content(content[place]) for place in models},
        "values": {"/".join(names): value for names, value in values.items()},
    }


def record_of_building(collection: Any) -> dict[str, Any] | None:
    """Return what a collection remembers of its building; None for others, also for copies of such collections."""
    try:
        record = json.loads(collection.meshferry.written_set or "{}")
        is_own = record.get("collection") == collection.name and {"options", "blueprint", "models", "values"} <= {*record}
    except (ValueError, AttributeError, RecursionError):
        return None
    return record if is_own else None


def replan_steps(context: bpy.types.Context, collection: Any) -> Steps[PlannedBuildings]:
    """Plan new models of a building, and changes of its blueprint; hand-made changes of that stay.

    Raises
    ------
    MeshferryError
        The files or the scene changed in a way that only writing the building anew can follow.
    """
    record = record_of_building(collection) or {}
    remedy = Text("choose New Timberborn Building with Replace to write it anew")
    options = chosen_options(BuildingOptions, record["options"])
    models = yield from encoded_models(context, BuildingParts(collection), options)
    path, plan, report = Path(record["blueprint"]), PlannedBuildings(), Report()
    names = game_names(options.game, report)
    name, faction = name_and_faction(collection.name, options.faction, [*models.materials], names)
    building = Building(name, faction, models.shape, models.materials, options, "")
    check_names(building, ModFolder(Path(options.mod)), names, report)
    if len(models.files) != len(record["models"]):
        raise ExportError("The number of stages changed; {}", remedy)
    for place, data in zip(map(Path, record["models"]), models.files, strict=True):
        known = {record["models"][str(place)], digest_of_content(data)}
        if place.exists() and digest_of_content(read_bytes(place)) not in known:
            raise ExportError("The file was changed since it was written; {}", remedy, file=place)
        plan.files[place] = data
        record["models"][str(place)] = digest_of_content(data)
    stored = {tuple(names.split("/")): value for names, value in record["values"].items()}
    kind = stored["BlockObjectSpec", "Blocks"][-1]["Stackable"]
    values = geometry(models.shape, is_stackable=kind == "BlockObject")
    plan.files[path] = edited_blueprint(read_bytes(path), stored, values)
    record["values"] = {"/".join(names): value for names, value in values.items()}
    plan.files = {path: data for path, data in plan.files.items() if not path.exists() or read_bytes(path) != data}
    plan.records, plan.messages = [(collection, record)], report.messages
    return plan


class _WritesBuildings(LongWork):
    """Mixin of operators that write planned buildings; a question lists the files before."""

    collections: StringProperty(
        name="Collections",
        description="Names of the collections, one a line; none: those selected in the Outliner, or the active one",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    def chosen(self, context: bpy.types.Context) -> list[Any]:
        """Return the collections."""
        names = [line for line in self.collections.splitlines() if line]
        found = [named_collection(context, name) for name in names] or selected_collections(context)
        return found or [context.collection]

    def plan(self, context: bpy.types.Context, *, has_icon: bool = True) -> Steps[PlannedBuildings]:
        """Plan the files."""
        raise NotImplementedError

    def question(self, context: bpy.types.Context) -> str:
        """Return the files that would be written, with size, entrance and materials."""
        try:
            plan = finish(self.plan(context, has_icon=False))
        except MeshferryError:
            return ""  # the export reports it
        return "\n".join(rpt_(line) for line in (*plan.lines(), *plan.messages)) if plan.files else ""

    def draw_question(self, context: bpy.types.Context) -> None:
        """Draw the lines of the question."""
        column = self.layout.column(align=True)  # type: ignore[attr-defined]
        for line in self.asked.splitlines():
            draw_wrapped(column, context, line, "DOT", width=DIALOG_WIDTH)

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write the buildings, or nothing."""
        messages, phrases = Messages(), ()
        name = ", ".join(collection.name for collection in self.chosen(context))
        with messages.outcome(name, name):
            plan = yield from self.plan(context)
            messages.warn("", plan.write())
            triangles = sum(fact["triangles"] for fact in plan.facts)
            changed = counted(len(plan.files), "file") if plan.files else Text("nothing changed")
            phrases = (counted(triangles, "triangle") if triangles else "", changed)
        return conclude(self, messages, phrases, "Exported")


@with_options(OPTIONS)
class EXPORT_SCENE_OT_timbermesh_building(_WritesBuildings, bpy.types.Operator):
    """Write collections as new buildings into a mod."""

    bl_idname = "export_scene.timbermesh_building"
    bl_label = "New Timberborn Building"
    bl_description = (
        "Write a collection as a new building of the game Timberborn into the folder of a mod: models, blueprint, icon, "
        "texts and the entry in the toolbar"
    )
    bl_options = {"REGISTER", "PRESET"}

    confirm_text = "Write"

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the dialog with the values that the collection remembers."""
        record = record_of_building(self.chosen(context)[0])
        for name, value in (record["options"] if record is not None else {}).items():
            if name in self.__annotations__ and name != "use_replace" and not self.properties.is_property_set(name):
                setattr(self, name, value)
        self.collections = "\n".join(collection.name for collection in self.chosen(context))
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, width=DIALOG_WIDTH, title=self.bl_label, confirm_text="Continue")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options, or what will be written."""
        if self.asked:
            self.draw_question(context)
        else:
            self.layout.label(text=", ".join(self.collections.splitlines()), icon="OUTLINER_COLLECTION", translate=False)
            draw_options(self.layout, self, OPTIONS, "TIMBERMESH_building")

    def plan(self, context: bpy.types.Context, *, has_icon: bool = True) -> Steps[PlannedBuildings]:
        """Plan all files of the buildings."""
        options = chosen_options(BuildingOptions, option_values(self, OPTIONS))
        return plan_steps(context, self.chosen(context), options, has_icon=has_icon)


class EXPORT_SCENE_OT_timbermesh_building_again(_WritesBuildings, bpy.types.Operator):
    """Write the models of a building again, and what changed of its size into its blueprint."""

    bl_idname = "export_scene.timbermesh_building_again"
    bl_label = "Re-export Building"
    bl_description = (
        "Write the models of the building again, and size, cells, entrance and colliders that changed into its "
        "blueprint, of which all other text stays"
    )

    is_confirmed: BoolProperty(
        name="Replacing Confirmed",
        description="Scripts: also write to paths that are stored in the .blend file, but were neither read nor chosen "
        "since the file was opened",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    confirm_text = "Replace"

    def file(self, context: bpy.types.Context) -> FileRecord:
        """Return the record of the blueprint."""
        record = record_of_building(self.chosen(context)[0]) or {"blueprint": ""}
        return FileRecord(Path(record["blueprint"]), TIMBERBORN_BLUEPRINT.name, "")

    def stored_paths(self, context: bpy.types.Context) -> list[Any]:
        """Return the path of the blueprint."""
        return [str(self.file(context).path)]

    def question(self, context: bpy.types.Context) -> str:
        """Return a question before stored paths are written for the first time."""
        return question_of_path(self.file(context))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the question."""
        self.draw_question(context)

    def plan(self, context: bpy.types.Context, *, has_icon: bool = True) -> Steps[PlannedBuildings]:
        """Plan the models and the changes of the blueprint."""
        record = self.file(context)
        if record_of_building(self.chosen(context)[0]) is None:
            raise ExportError("The collection was not written as a building")
        if not (self.asked or self.is_confirmed):
            refuse_unknown(record)
        file_records.session_files().setdefault(str(record.path), SessionFile()).is_confirmed = True
        return replan_steps(context, self.chosen(context)[0])


@drawn_for("timbermesh")
def draw_entries(self: Any, context: bpy.types.Context) -> None:
    """Draw the entries in menus of objects and collections."""
    self.layout.separator()
    self.layout.operator_context = "INVOKE_DEFAULT"
    draw_buttons(self.layout, context)


def draw_buttons(layout: Any, context: bpy.types.Context) -> None:
    """Draw buttons for a new building and, of one that was written, for its re-export."""
    collection = collection_under_pointer(context)
    names = "" if len(selected_collections(context)) > 1 else collection.name
    button(layout, EXPORT_SCENE_OT_timbermesh_building, text="New Timberborn Building…", icon="HOME", collections=names)
    if record_of_building(collection) is not None:
        again = EXPORT_SCENE_OT_timbermesh_building_again
        button(layout, again, text="Re-export Building", icon="FILE_TICK", collections=collection.name)


ENTRIES = tuple(MenuEntry(menu, draw_entries) for menu in ("VIEW3D_MT_object", "OUTLINER_MT_collection"))
