"""Plan of the files of new buildings from collections."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .....blender_data import file_records
from .....blender_data.steps import Steps, scaled
from .....io_formats.core.errors import ExportError, MeshferryError
from .....io_formats.core.format import OutputFile
from .....io_formats.core.messages import Message, Report, Text, joined
from .....io_formats.disk.atomic_write import make_folder, remove_file, replace_file
from .....io_formats.disk.special_files import read_bytes
from .....io_formats.timbermesh.building import planning
from .....io_formats.timbermesh.building.cells import geometry
from .....io_formats.timbermesh.building.document import Building
from .....io_formats.timbermesh.building.mod_folder import ModFolder
from .....io_formats.timbermesh.building.names import ENDING, game_names
from .....io_formats.timbermesh.building.options import BLOCKS, OPTIONS, BuildingOptions
from .parts import BuildingParts, encoded_models, rendered_icon

_FACTS = ("building", "collection", "size", "entrance", "materials", "triangles")


@dataclass
class PlannedBuildings:
    """New content of files, facts for the user, and what each collection remembers after they are written."""

    report: Report = field(default_factory=Report)
    files: dict[Path, bytes] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)

    def lines(self) -> list[Text]:
        """Return the facts and the files as texts."""
        lines = []
        for fact in self.facts:
            entrance = Text("entrance cell {}, {}, {}", *fact["entrance"]) if fact["entrance"] else Text("no entrance")
            text = Text("{}: {} x {} x {} cells", fact["building"], *fact["size"])
            lines.append(joined([text, entrance, *fact["materials"]]))
        return [*lines, *(Text("{}", place) for place in self.files), *self.report.messages]

    def write(self) -> list[Message]:
        """Write the files and store the records; if a file cannot be written, restore those before it.

        Raises
        ------
        ExportError
            A file cannot be written.
        """
        done: list[tuple[Path, bytes | None]] = []
        messages = [*self.report.messages]
        try:
            for place, data in self.files.items():
                old = read_bytes(place) if place.exists() else None
                make_folder(place.parent)
                messages += file_records.write_files(place, [OutputFile(place.name, data)])
                done.append((place, old))
        except MeshferryError:
            for place, old in reversed(done):
                remove_file(place) if old is None else replace_file(place, old)
            raise
        for collection, record in self.records:
            if collection.is_editable:
                file_records.write_set(collection, json.dumps(record))
        return messages


def plan_steps(
    context: Any, collections: Sequence[Any], options: BuildingOptions, record: Any = None, *, has_icon: bool = True
) -> Steps[PlannedBuildings]:
    """Plan the files of buildings; nothing is written.

    Parameters
    ----------
    record:
        What the collection remembers, if only its models and the changes of its cells are written.
    has_icon:
        Whether missing icons are rendered; otherwise they are only listed.

    Raises
    ------
    MeshferryError
        A building cannot be written.
    """
    if not options.mod:
        raise ExportError("Choose the folder of the mod")
    mod, plan, count = ModFolder(Path(options.mod)), PlannedBuildings(), len(collections)
    names = game_names(options.game, plan.report)
    for number, collection in enumerate(collections):
        parts = BuildingParts(collection)
        encoding = encoded_models(context, parts, options, plan.report)
        shape, models, box = yield from scaled(encoding, number / count, (number + 1) / count)
        name, faction = planning.name_and_faction(collection.name, options.faction, shape.materials, names)
        folder = planning.existing_folder(f"{name}.{faction}", mod, options.tool_group)
        building = Building(name, faction, shape, options, folder)
        place = mod.place(f"{folder}/{building.stem}{ENDING}")
        if record is None:
            icon = read_bytes(options.icon) if options.icon else None
            if icon is None and not planning.has_icon(building, mod):
                icon = rendered_icon(parts, box) if has_icon else b"\x89PNG"
            values = planning.plan_building(building, models, icon, mod, names, plan.report)
        elif str(mod.templates.get(building.stem)) != record["blueprint"]:
            template = "The building is not at its stored path, or is damaged: {}; choose New Timberborn Building"
            raise ExportError(template, record["blueprint"])
        else:
            planning.check_names(building, mod, names, plan.report)
            planning.plan_models(building, models, mod)
            values = geometry(shape, is_stackable=record["values"][BLOCKS][-1]["Stackable"] != "None")
            mod.planned[place] = planning.edited_blueprint(read_bytes(place), record["values"], values)
        facts = building.stem, collection.name, shape.size, shape.entrance, sorted(shape.materials), shape.triangles
        plan.facts.append(dict(zip(_FACTS, facts, strict=True)))
        given = {option.name: getattr(options, option.name) for option in OPTIONS}
        stored = {"collection": collection.name, "blueprint": str(place), "options": given, "values": values}
        plan.records.append((collection, stored))
    plan.files = mod.changed()
    return plan
