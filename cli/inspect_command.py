"""``meshferry inspect``: print facts about files, and whether decoding and encoding them gives identical files."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..io_formats import api, registry
from ..io_formats.core.errors import FormatError
from ..io_formats.core.messages import Message, counted, summed_up
from ..io_formats.partner_files import file_sets
from ..io_formats.projects import Projects
from . import inputs, interruption, option_arguments
from .option_arguments import AddParser, OptionTable, format_table
from .output import Reporter, clip_text, printable, warnings_entry

Examine = Callable[[api.LoadedFile, Mapping[str, Any], Sequence[Message], dict[str, Any]], bool]
"""Function that prints facts of a file and adds them to its JSON record, the last argument. The others are the options
of its format and messages about missing and damaged files. It returns whether the file is good."""


def add_file_arguments(parser: argparse.ArgumentParser, tables: Sequence[OptionTable]) -> None:
    """Add arguments for files, and for the options of formats, whose names are the keys of the tables."""
    parser.add_argument("paths", nargs="+", metavar="FILE", help="a file, a folder (searched to the bottom), a pattern")
    option_arguments.add_mounts_argument(parser)
    option_arguments.add_arguments(parser, tables)


def open_projects(parsed: Mapping[str, Any]) -> Projects:
    """Return the projects for the parsed arguments, none of which is open."""
    return Projects(is_fixed=True, has_mounts=parsed["mounts"])


def examine_files(
    parsed: Mapping[str, Any],
    tables: Sequence[OptionTable],
    reporter: Reporter,
    examine: Examine,
    projects: Projects | None = None,
) -> tuple[int, int]:
    """Examine every file of the parsed arguments; return how many there are, and how many of them failed.

    ``projects`` is the result of :func:`open_projects`, if ``examine`` uses it, too.
    """
    given = option_arguments.given_options(parsed)
    option_arguments.require_usable_paths(given, tables)
    values = option_arguments.values_of(given, tables)
    projects = projects or open_projects(parsed)
    found = inputs.expand(parsed["paths"], inputs.known_extensions(), warn=reporter.warn)
    bad = reporter.fail_inputs("file", found.problems)
    sets = file_sets(file.path for file in found.files)
    for files in sets:
        interruption.check()
        entry: dict[str, Any] = {"file": str(files.path)}
        try:
            with interruption.raising():
                loaded = api.load_set(files)
                own = values.get(loaded.format.name, {})
                reading = loaded.format.import_options.among(own)
                missing = loaded.format.missing(loaded.document, loaded.path, projects, reading)
                if loaded.partners:
                    entry["partner_files"] = {part: str(path) for part, path in loaded.partners.items()}
                bad += not examine(loaded, own, [*loaded.messages, *missing], entry)
        except Exception as problem:  # noqa: BLE001 (a bad file never stops the rest)
            bad += 1
            entry["error"] = reporter.fail(files.path, problem)
        reporter.record(entry)
    return len(sets) + len(found.problems), bad


def add_parser(add: AddParser) -> None:
    """Add the sub command."""
    parser = add(
        "inspect",
        help="print the facts of files",
        description="Print what is in files. Exit status 0 when all could be read, 1 otherwise.",
    )
    add_file_arguments(parser, _tables())
    parser.add_argument(
        "--verify", action="store_true", help="also decode and encode each file and compare; a difference is a failure"
    )
    parser.set_defaults(run=run)


def _tables() -> list[OptionTable]:
    """Return the options of each format that name folders; the key of a table is the name of the format."""
    return [
        format_table("inspecting", known.name, known.label, options)
        for known in registry.FORMATS
        if (options := tuple(option for option in known.import_options.table() if option.preference))
    ]


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Print the facts of every file; return 1 if any failed."""

    def examine(
        loaded: api.LoadedFile, _options: Mapping[str, Any], missing: Sequence[Message], entry: dict[str, Any]
    ) -> bool:
        entry |= {"format": loaded.format.name, **loaded.format.facts(loaded.document)}
        warnings = [*entry["warnings"], *missing]
        entry |= warnings_entry(warnings)
        try:
            if arguments.verify:
                encoded = loaded.format.write(loaded.document)  # of compressed files, only the content counts
                entry["identical"] = encoded == loaded.data or loaded.format.same_content(loaded.data, encoded)
        finally:
            reporter.result(described(entry, warnings))
        if not entry.get("identical", True):
            raise FormatError("The file differs after decoding and encoding")
        return True

    _, failed = examine_files(vars(arguments), _tables(), reporter, examine)
    return 1 if failed else 0


def described(entry: dict[str, Any], warnings: Sequence[Message]) -> str:
    """Return the facts of a file as a few lines of text."""
    known = registry.by_name(entry["format"])
    form = f"{known.label} {entry['version']}" if entry["version"] else known.label
    lines = [f"{entry['file']}: {form}"]
    if known.capabilities.meshes and "parcels" not in entry:  # the assets of an archive are not read
        amounts = ", ".join(counted(entry[f"{noun}s"], noun) for noun in ("node", "triangle"))
        amounts += f", {counted(entry['vertices'], 'vertex', 'vertices')}, {counted(entry['surfaces'], 'surface')}"
        lines.append(f"  {amounts}")
    layers = [
        counted(entry[key], noun)
        for key, noun in (
            ("materials", "material"),
            ("uv_layers", "UV layer"),
            ("color_layers", "colour layer"),
            ("bones", "bone"),
            ("shape_keys", "shape key"),
        )
        if entry[key]
    ]
    if layers:
        lines.append(f"  {', '.join(layers)}")
    for key, section in _SECTIONS.items():
        lines += section(entry) if key in entry else []
    lines += [f"  animation {clip_text(clip, with_kind=True)}" for clip in entry["clips"]]
    if len(lines) == 1:
        lines.append("  nothing")
    lines += [f"  warning: {text}" for text in summed_up(warnings)]
    if "identical" in entry:
        lines.append("  identical after decoding and encoding" if entry["identical"] else "  NOT identical")
    return "\n".join(map(printable, lines))


def _playback(entry: dict[str, Any]) -> list[str]:
    """Return the additional line for animations of an avatar: priority, loop, ease, hands, expression, constraints."""
    own = sorted({number for number in entry["joint_priorities"] if number not in {-1, entry["priority"]}})
    parts = [f"priority {entry['priority']}" + (f" (joints also {', '.join(map(str, own))})" if own else "")]
    loop = entry["loop"]
    parts.append(f"loop from {loop[0]:.4g} to {loop[1]:.4g} s" if loop else "no loop")
    parts.append(f"ease {entry['ease'][0]:.4g} s in, {entry['ease'][1]:.4g} s out")
    parts.append(f"hand pose {entry['hand_pose']}")
    parts += [f"expression {entry['emote']}"] if entry["emote"] else []
    parts += [counted(entry["constraints"], "constraint")] if entry["constraints"] else []
    clip = entry["clips"][0]
    keys = [f"{counted(clip[f'{kind}_keys'], f'{kind} key')}" for kind in ("rotation", "position")]
    return [f"  {', '.join(keys)}", f"  {', '.join(parts)}"]


def _shape(entry: dict[str, Any]) -> list[str]:
    """Return the additional lines for body shapes: sex, height, and the sliders that differ from their default."""
    found = [f"{slider['label']} {slider['percent']:.0f}" for slider in entry["sliders"]]
    shown = ", ".join(found) or "all at their default"
    part = "" if entry["wearable"] == "shape" else f"only sliders of {entry['wearable']}, "
    return [f"  {part}{entry['sex']}, height {entry['height']:.3f} m", f"  sliders (0 to 100): {shown}"]


def _nodes(entry: dict[str, Any]) -> list[str]:
    """Return the additional lines for files that place models: references, and nodes by type."""
    models = f"{counted(entry['meshes'], 'mesh', 'meshes')} and {counted(entry['references'], 'node file')} referred to"
    types = ", ".join(f"{count:,} {kind or 'without a type'}" for kind, count in entry["types"].items())
    return [f"  {models}", *([f"  {types}"] if types else [])]


def _region(entry: dict[str, Any]) -> list[str]:
    """Return the additional lines for archives: regions or items, objects, parts by kind, assets."""
    places = counted(entry["items"], "item") if "items" in entry else counted(entry["regions"], "region")
    assets = f"{counted(entry['meshes'], 'mesh asset')}, {counted(entry['textures'], 'texture')}"
    left_out = f"{counted(entry['parcels'], 'parcel')}, {counted(entry['scripts'], 'script')}"
    types = ", ".join(f"{count:,} {kind}" for kind, count in entry["types"].items())
    parts = f"{counted(entry['objects'], 'object')}, {counted(entry['nodes'], 'part')}{f' ({types})' if types else ''}"
    return [f"  {places}, {parts}", f"  {assets}, {left_out}"]


def _building(entry: dict[str, Any]) -> list[str]:
    """Return the additional lines for blueprints: models by state, nested blueprints, colliders, size."""
    states = ", ".join(f"{count:,} {state}" for state, count in entry["states"].items())
    models = counted(entry["placed_models"], "model")
    parts = [f"{models} placed ({states})" if states else models, counted(len(entry["models"]), "model file")]
    parts += [counted(len(entry["blueprints"]), "nested blueprint"), counted(entry["colliders"], "collider")]
    size = [f"{' x '.join(map(str, entry['size']))} cells"] if entry["size"] else []
    return [f"  {', '.join([*parts, *size])}"]


def _space(entry: dict[str, Any]) -> list[str]:
    """Return the additional line for Collada files: the program that wrote it, its unit and axis."""
    tool = f"written by {entry['tool']}, " if entry["tool"] else ""
    return [f"  {tool}unit {entry['meter']:g} m, {entry['up_axis'][0]} up"]


def _placed(entry: dict[str, Any]) -> list[str]:
    """Return the additional lines for models: levels of detail, hulls, weight."""
    lines = [
        f"  {level.removesuffix('_lod')} level: {counted(found['triangles'], 'triangle')}, "
        f"{counted(found['vertices'], 'vertex', 'vertices')}, {counted(found['bytes'], 'byte')}"
        for level, found in entry["lods"].items()
    ]
    hulls = f"{counted(entry['hulls'], 'physics hull')}, " if entry["hulls"] else ""
    weight = f"download weight {entry['download_weight']:.3f}"
    return [*lines, f"  {hulls}{weight}{' (estimate)' if entry['bones'] else ''}"]


_SECTIONS = {
    "references": _nodes,
    "parcels": _region,
    "states": _building,
    "lods": _placed,
    "up_axis": _space,
    "joint_priorities": _playback,
    "sliders": _shape,
}
"""Functions that return the additional lines of files whose facts have a key."""
