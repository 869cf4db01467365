"""Plan of the files of new buildings in a mod, with all refusals before the first byte is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import ExportError, FormatError
from ...core.messages import Details, Kind, Message, Report, Text, joined, listed
from ...disk.special_files import read_bytes
from ..blueprint.json_text import TextEdits, parse
from ..game_names import FACTIONS
from .document import Building, blueprint_of, cost_of, exact, json_text, members
from .mod_folder import ModFolder
from .names import GameNames, factions_of

ENDING = ".blueprint.json"
_NAME = re.compile(r"[A-Za-z0-9_]+")
_PICTURES = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg"}


def name_and_faction(collection: str, choice: str, materials: Sequence[str], names: GameNames) -> tuple[str, str]:
    """Return the name of a building and its faction: the chosen one, that of the collection, or of the materials.

    Raises
    ------
    ExportError
        The name has other characters than the game's, or the faction is not known.
    """
    name, _dot, end = collection.partition(".")
    if not _NAME.fullmatch(name):
        template = "'{}' is not a name for files of the game; use letters, digits and _, such as GardenGnome.Folktails"
        raise ExportError(template, name)
    if re.search(r"(^|\.)\d{3,}$", end):
        template = "'{}' ends in the number of a copy; rename the collection, such as {}.{}"
        raise ExportError(template, collection, name, FACTIONS[0])
    chosen = [faction for faction in FACTIONS if faction.upper() == choice or (choice == "AUTO" and faction == end)]
    if not chosen and end:
        raise ExportError("'{}' is not a faction of the game; it has {}", end, listed(FACTIONS))
    found = chosen or factions_of(materials, names)
    if len(found) != 1:
        template = "The faction is not known: name the collection {0}.{1} or {0}.{2}, or choose a faction"
        raise ExportError(template, name, *FACTIONS)
    return name, found[0]


def template_of(like: str, mod: ModFolder, names: GameNames) -> dict[str, Any]:
    """Return the members of the blueprint that a building is made like: a file, or one of the mod or of the game.

    Raises
    ------
    ExportError
        It is not found, is damaged, or is not a building.
    """
    archive = names.archive
    if not like:
        raise ExportError("Like: enter the name of a building, such as LumberMill.Folktails, or choose its file")
    keys = [key for key in archive.keys if key.endswith(f"/{like.lower()}{ENDING}")] if archive is not None else []
    try:
        path = mod.templates.get(like) or Path(like)
        if path.is_file():
            data = read_bytes(path)
        elif archive is not None and keys:
            data = archive.read(keys[0]) or b""
        else:
            hint = Text("" if archive is not None else "; set the game's folder for buildings of the game")
            raise ExportError("Like: there is neither a file nor a building '{}'{}", like, hint)
        found = exact(parse(data), data)
    except FormatError as problem:
        raise ExportError("Like: {}", problem.message, file=like) from None
    if not isinstance(found, dict) or not {"BuildingSpec", "BlockObjectSpec"} <= found.keys():
        raise ExportError("Like: '{}' is not the blueprint of a building", like)
    return found


def existing_folder(stem: str, mod: ModFolder, tool_group: str) -> str:
    """Return the folder of a building below the root of the mod: that of its blueprint if it is there already."""
    place = mod.templates.get(stem)
    place = place or mod.place(f"Buildings/{tool_group}/{stem.partition('.')[0]}/{stem}{ENDING}")
    return mod.path_of(place.parent)


def plan_building(
    building: Building, models: Sequence[bytes], icon: bytes | None, mod: ModFolder, names: GameNames, report: Report
) -> dict[tuple[str, ...], Any]:
    """Plan all files of a building; return the values of its blueprint that the scene decides.

    Parameters
    ----------
    models:
        The finished model and those of the stages.
    icon:
        Content of a new icon; None if one is there.

    Raises
    ------
    ExportError
        A rule of the game is broken, or a file is there already.
    """
    options = building.options
    path = f"{building.folder}/{building.stem}{ENDING}"
    place = mod.place(path)
    if place.exists() and not options.use_replace:
        raise ExportError("'{}' is there already; choose Replace, or rename the collection", path)
    other = mod.templates.get(building.stem)
    if other is not None and other != place:
        raise ExportError("The name '{}' is that of another building of the mod: {}", building.stem, other)
    if {building.name, building.stem.lower()} & {*names.buildings} and other is None:
        raise ExportError("The game has a building '{}' already; rename the collection", building.name)
    check_names(building, mod, names, report)
    template = template_of(options.like, mod, names) if options.kind == "LIKE" else None
    root, values = blueprint_of(building, names, template, report)
    for number, model in enumerate(models):
        mod.planned[mod.place(building.model(number - 1 if number else None) + ".timbermesh")] = model
    if icon is not None:
        plan_icon(building, icon, mod)
    mod.planned[place] = (json_text(root) + "\n").encode()
    mod.add_texts(building.texts, is_replaced=options.use_replace)
    mod.add_manifest(options.author)
    mod.add_to_list(building.faction, mod.path_of(place).removesuffix(".json"))
    return values


def plan_icon(building: Building, icon: bytes, mod: ModFolder) -> None:
    """Plan an icon and the file with its import settings.

    Raises
    ------
    ExportError
        It is neither PNG nor JPG.
    """
    ending = next((ending for start, ending in _PICTURES.items() if icon.startswith(start)), None)
    if ending is None:
        raise ExportError("Icon: '{}' is neither a PNG nor a JPG picture", building.options.icon)
    place = mod.place(building.icon + ending)
    mod.planned[place] = icon
    mod.planned[place.with_name(place.name + ".meta.json")] = (json.dumps(members("icon"), indent=2) + "\n").encode()


def icon_of(building: Building, mod: ModFolder) -> Path | None:
    """Return the icon that is there, or None."""
    places = [mod.place(building.icon + ending) for ending in _PICTURES.values()]
    return next((place for place in places if place in mod.planned or place.exists()), None)


def check_names(building: Building, mod: ModFolder, names: GameNames, report: Report) -> None:
    """Report names that neither the game nor the mod has; materials of another faction are always errors.

    Raises
    ------
    ExportError
        A name is wrong for certain.
    """
    options = building.options
    wanted = [("good", "goods", entry["Id"]) for entry in cost_of(options.cost)]
    wanted.append(("tool group", "tool_groups", options.tool_group))
    if options.kind == "DECORATION" and options.wellbeing:
        wanted.append(("need", "needs", options.wellbeing))
    is_certain = names.is_complete and not mod.requires_mods
    for noun, kind, name in wanted:
        if name in getattr(names, kind) or name in mod.names.get(kind, ()):
            continue
        text = Text("the {} '{}' is neither of the game nor of the mod", Text(noun), name)
        if is_certain:
            raise ExportError("{}; correct it", text.capitalized())
        report.warning("unknown-name", "{}", text)
    problems = [*_material_problems(building, mod, names)]
    errors = [problem for problem in problems if problem.kind is Kind.ERROR or is_certain]
    if errors:
        raise ExportError("{}", joined(errors, "; "), findings=errors)
    report.messages.extend(problems)


def _material_problems(building: Building, mod: ModFolder, names: GameNames) -> Sequence[Message]:
    """Return findings about materials that the game does not load for the faction of a building."""
    report = Report()
    loaded = {"Common", building.faction, *mod.loaded.get(building.faction, ())}
    sources = (names.materials, mod.materials)
    known = {name for source in sources for collection in loaded for name in source.get(collection, ())}
    for name in sorted(building.materials - known - {""}):
        home = next((faction for faction in FACTIONS if name in names.materials.get(faction, ())), None)
        if home is None:
            report.warning("unknown-material", "the material '{}' is neither of the game nor of the mod", name)
            continue
        base = name.removesuffix(f".{home}")
        right = next((found for found in sorted(known) if found == f"{base}.{building.faction}"), "")
        hint = Text("use '{}'", right) if right else Text("use one of {}", building.faction)
        template = "the material '{}' is of {}, and {} does not load it; {}"
        fix: Details = {"is_fixable": True, "names": (name,), "new_name": right} if right else {}
        report.error("unknown-material", template, name, home, building.faction, hint, **fix)
    return report.messages


def edited_blueprint(data: bytes, old: Mapping[tuple[str, ...], Any], new: Mapping[tuple[str, ...], Any]) -> bytes:
    """Return a blueprint in which the values that the scene decides are new ones; all other bytes stay.

    Parameters
    ----------
    old:
        The values as the last export wrote them.

    Raises
    ------
    ExportError
        A value was edited in the file and in the scene, or their number differs.
    """
    remedy = Text("choose New Timberborn Building with Replace to write it anew")
    counts = [{path: len(value) for path, value in values.items() if isinstance(value, list)} for values in (old, new)]
    for values in counts:
        values.pop(("BlockObjectSpec", "Blocks"), None)
    if old.keys() != new.keys() or counts[0] != counts[1]:
        raise ExportError("The number of stages or colliders or the entrance changed; {}", remedy)
    root, edits = parse(data), TextEdits(data)
    for path, value in new.items():
        if value == old[path]:
            continue
        found = root.find(*path)
        present = found.plain() if found is not None else None
        if found is None or present not in (value, old[path]):
            raise ExportError("{} was changed in the file and in the scene; {}", "/".join(path), remedy)
        if present != value:
            text = json_text(value, edits.indent_of(found.start).decode(), edits.newline.decode())
            edits.replace(found, text.encode())
    return edits.result()
