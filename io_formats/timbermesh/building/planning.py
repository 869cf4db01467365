"""Plan of the files of new buildings in a mod, with all refusals before the first byte is written."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import ExportError, FormatError
from ...core.messages import Details, Message, Report, Text, errors_of
from ...disk.special_files import read_bytes
from ..blueprint.json_text import TextEdits, parse
from ..game_names import FACTIONS
from .cells import members
from .document import Building, blueprint_of, cost_of, exact
from .mod_folder import ModFolder, file_of, json_text
from .names import ENDING, GameNames

_NAME = re.compile(r"[A-Za-z0-9_]{1,99}")
PICTURES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg"}
_NOUNS = {"goods": "the good", "tool_groups": "the tool group", "needs": "the need"}
_MOST_DISTANCE = 2.0
"""Metres by which colliders may reach beyond the cells: foundations reach more than 1 m below the ground."""
REMEDY = Text("choose New Timberborn Building with Replace to write it anew")


def name_and_faction(collection: str, choice: str, materials: Iterable[str], names: GameNames) -> tuple[str, str]:
    """Return the name of a building and its faction: the chosen one, that of the collection, or of the materials.

    Raises
    ------
    ExportError
        The name has other characters than the game's, or the faction is not known.
    """
    name, _dot, end = collection.partition(".")
    if not _NAME.fullmatch(name) or (end and end not in FACTIONS):
        template = (
            "'{}' does not name a building: use up to 99 letters, digits, _ and then .{} or .{}, without a number"
        )
        raise ExportError(template, collection, *FACTIONS)
    found = [faction for faction in FACTIONS if faction.upper() == choice or (choice == "AUTO" and faction == end)]
    own = [{faction for faction in FACTIONS if name in names.materials.get(faction, ())} for name in materials]
    found = found or [*set.intersection(*filter(None, own))] if any(own) else found
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
    archive, path = names.archive, mod.templates.get(like) or Path(like)
    keys = [key for key in archive.keys if key.endswith(f"/{like.lower()}{ENDING}")] if archive is not None else []
    try:
        if not like or not (os.path.isfile(path) or keys):
            template = "Like: there is neither a file nor a building '{}'; those of the game need the game's folder"
            raise ExportError(template, like)
        data = read_bytes(path) if os.path.isfile(path) or archive is None else archive.read(keys[0]) or b""
        found = exact(parse(data), data)
    except FormatError as problem:
        raise ExportError("Like: {}", problem.message, file=like) from None
    named = {*members("building"), *members("entrance")} & found.keys() if isinstance(found, dict) else set()
    if not {"BuildingSpec", "BlockObjectSpec"} <= {name for name in named if isinstance(found[name], dict)} == named:
        raise ExportError("Like: '{}' is not the blueprint of a building", like)
    return dict(found)


def existing_folder(stem: str, mod: ModFolder, tool_group: str) -> str:
    """Return the folder of a building below the root of the mod: that of its blueprint if it is there already."""
    group = re.sub(r"\W+", "_", tool_group)[:60] or "Other"
    new = mod.place(f"Buildings/{group}/{stem.partition('.')[0]}/{stem}{ENDING}")
    return mod.path_of(mod.templates.get(stem, new).parent)


def plan_building(
    building: Building, icon: bytes | None, mod: ModFolder, names: GameNames, report: Report
) -> dict[str, Any]:
    """Plan all files of a building except its models; return the values of its blueprint that the scene decides.

    Parameters
    ----------
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
    other = mod.templates.get(building.stem, place)
    if place.exists() and not options.use_replace:
        raise ExportError("'{}' is there already; choose Replace, or rename the collection", path)
    is_of_game = building.name.lower() in map(str.lower, names.buildings) and not place.exists()
    if other != place or is_of_game or place in mod.planned:
        where = other if other != place else Text("the game") if is_of_game else Text("another collection")
        raise ExportError("The name '{}' is taken by {}; rename the collection", building.stem, where)
    check_names(building, mod, names, report)
    template = template_of(options.like, mod, names) if options.kind == "LIKE" else None
    root, values = blueprint_of(building, names, template, report)
    if icon is not None:
        ending = next((ending for start, ending in PICTURES.items() if icon.startswith(start)), None)
        if ending is None:
            raise ExportError("Icon: '{}' is neither a PNG nor a JPG picture", options.icon)
        twin = mod.place(building.icon + next(other for other in PICTURES.values() if other != ending))
        if mod.content(twin):
            raise ExportError(
                "Another icon is there: {}; remove it, or choose a picture of this kind", mod.path_of(twin)
            )
        mod.planned[mod.place(building.icon + ending)] = icon
        mod.planned[mod.place(f"{building.icon}{ending}.meta.json")] = file_of(members("icon"))
    mod.planned[place] = file_of(root)
    mod.add_texts(building.texts, is_replaced=options.use_replace)
    mod.add_manifest()
    mod.add_to_list(building.faction, mod.path_of(place).removesuffix(".json"))
    return values


def has_icon(building: Building, mod: ModFolder) -> bool:
    """Return whether an icon is planned, or there and not to be replaced."""
    places = [mod.place(building.icon + ending) for ending in PICTURES.values()]
    return any(place in mod.planned or (mod.content(place) and not building.options.use_replace) for place in places)


def check_names(building: Building, mod: ModFolder, names: GameNames, report: Report) -> None:
    """Report names that neither the game nor the mod has; materials of another faction are always errors.

    Raises
    ------
    ExportError
        A name is wrong for certain.
    """
    options = building.options
    wanted = [("goods", str(entry["Id"])) for entry in cost_of(options.cost)] + [("tool_groups", options.tool_group)]
    if options.kind == "DECORATION" and options.wellbeing:
        wanted.append(("needs", options.wellbeing))
    found = name_problems(wanted, building.shape.materials, building.faction, mod, names)
    if errors := errors_of(found):
        raise ExportError.of(*errors)
    if (distance := building.shape.outside()) > _MOST_DISTANCE:
        report.warning("collider-outside", "a collider or Access is {:.2f} m outside of the cells; check it", distance)
    report.messages += found


def name_problems(
    wanted: Iterable[tuple[str, str]], materials: Iterable[str], faction: str, mod: ModFolder, names: GameNames
) -> list[Message]:
    """Return findings about names that neither the game nor the mod has, and materials of another faction.

    Parameters
    ----------
    wanted:
        Kinds and names of goods, needs and tool groups.
    """
    found = Report()
    is_certain = names.archive is not None and not (mod.manifest or {}).get("RequiredMods")
    report = found.error if is_certain else found.warning
    for kind, name in wanted:
        if name not in getattr(names, kind) and name not in mod.names.get(kind, ()):
            report("unknown-name", "{} '{}' is neither of the game nor of the mod", Text(_NOUNS[kind]), name)
    loaded = {"Common", faction, *mod.loaded.get(faction, ())}
    sources = (names.materials, mod.materials)
    known = {name for source in sources for collection in loaded for name in source.get(collection, ())}
    for name in sorted({*materials} - known - {""}):
        home = next((faction for faction in FACTIONS if name in names.materials.get(faction, ())), None)
        if home is None:
            report("unknown-material", "the material '{}' is neither of the game nor of the mod", name)
            continue
        right = f"{name.removesuffix(f'.{home}')}.{faction}"
        fix: Details = {"is_fixable": True, "names": (name,), "new_name": right} if right in known else {}
        hint = Text("use '{}'", right) if fix else Text("use one of {}", faction)
        template = "the material '{}' is of {}, and {} does not load it; {}"
        found.error("unknown-material", template, name, home, faction, hint, **fix)
    return found.messages


def edited_blueprint(data: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    """Return a blueprint in which the values that the scene decides are ``new``; all other bytes stay.

    Parameters
    ----------
    old:
        The values as the last export wrote them.

    Raises
    ------
    ExportError
        A value was edited in the file and in the scene, or the number of stages or colliders differs.
    """
    counts = [[len(value) for path, value in values.items() if "CollidersSpec" in path] for values in (old, new)]
    if old.keys() != new.keys() or counts[0] != counts[1]:
        raise ExportError("The number of stages or colliders or the entrance changed; {}", REMEDY)
    root, edits = parse(data), TextEdits(data)
    for path, value in new.items():
        found = root.find(*path.split("/")) if value != old[path] else None
        present = found.plain() if found is not None else old[path]
        if value != old[path] and (found is None or present not in (value, old[path])):
            raise ExportError("{} was changed in the file and in the scene; {}", path, REMEDY)
        if found is not None and present != value:
            edits.replace(found, json_text(value, edits.indent_of(found.start), edits.newline))
    return edits.result()
