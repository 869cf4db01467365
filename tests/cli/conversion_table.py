"""What survives which conversion: converted, read back, compared; the table in docs/users/conversion.md is made of it.

.venv/bin/python tests/cli/conversion_table.py      puts it in place (Blender 4.5)
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

if __name__ == "__main__":  # the tests load the package by themselves
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from load_package import load_package

    load_package()

import conversion_measure as measure
import conversion_models as models

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "users" / "conversion.md"
BEGIN, END = "<!-- survival: made by tests/cli/conversion_table.py -->", "<!-- /survival -->"

EXTENSIONS = {
    "timbermesh": ".timbermesh",
    "unigine_mesh": ".mesh",
    "unigine_animation": ".anim",
    "unigine_skeleton": ".skeleton",
    "second_life_mesh": ".llmesh",
    "second_life_bundle": ".slm",
    "second_life_animation": ".anim",
    "second_life_bvh": ".bvh",
    "mesh_serializer": ".data",
    "blend": ".blend",
    "glb": ".glb",
    "fbx": ".fbx",
    "obj": ".obj",
    "ply": ".ply",
    "usd": ".usd",
}
LABELS = {"unigine_animation": "`.anim` (UNIGINE)", "second_life_animation": "`.anim` (Second Life)"}
"""What the table calls formats that share an extension, which are chosen by their names."""

TOLD = {
    "P": "",
    "N": "normal",
    "U": "UV",
    "C": "colour",
    "M": "material",
    "H": "parent|hanging|empties",
    "K": "shape key",
    "W": "bone|weight|rig",
    "B": "bone|animation",
    "O": "animated node|animation|armature object|animated",
    "V": "vertex animation|shape key|as it looks at the current frame",
    "L": "level",
    "F": "physics",
}
"""What has to be in a warning where something is lost; of places the kind of file says that it knows none."""


@dataclass
class Cell:
    """What became of one conversion."""

    held: str
    kept: str
    """Letters of what survived; empty: refused."""
    said: list[str]
    error: str


def run(arguments: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Run the command line in this process (``in_one_process``); return its records and its complaints."""
    from meshferry.cli import convert_command
    from meshferry.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(convert_command, "_is_isolated", return_value=False),
    ):
        main(arguments)
    return [json.loads(line) for line in out.getvalue().splitlines()], err.getvalue()


def write_sources(folder: Path) -> dict[str, Path]:
    """Write a file of each kind with all that such a file holds."""
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.cli.conversions.blend_files import BlendSession

    paths = models.write_ours(folder)
    paths["second_life_bundle"] = convert(paths["second_life_mesh"], ".slm", folder / "second_life_bundle")[0][0]
    with BlendSession() as session:
        session.start_empty()
        options = ImportOptions.of({"use_file_frame_rate": True, "use_weld": False})
        session.import_scene(models.make_everything(), options, folder / "model.blend")
        paths["blend"] = folder / "blend" / "model.blend"
        paths["blend"].parent.mkdir()
        session.save(paths["blend"], compress=False)
    for name in ("glb", "fbx", "obj", "ply", "usd"):
        paths[name] = convert(paths["blend"], EXTENSIONS[name], folder / name)[0][0]
    return paths


def convert(source: Path, extension: str, folder: Path) -> tuple[list[Path], list[str], str]:
    """Convert a file into a folder; return the files it became, what was said, and what went wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    records, complaints = run(["convert", "--json", str(source), "--to", extension, "-o", str(folder)])
    good = [record for record in records if "error" not in record]
    said = [text for record in records for text in record["warnings"]]
    errors = [record["error"] for record in records if "error" in record]
    return [Path(record["output"]) for record in good], said, "; ".join(errors) or ("" if good else complaints)


def measured(folder: Path) -> dict[tuple[str, str], Cell]:
    """Convert everything to everything and compare."""
    sources = write_sources(folder)
    cells: dict[tuple[str, str], Cell] = {}
    for source in EXTENSIONS:
        before = measure.measured_file(sources[source])
        held = measure.letters(before)
        for target, extension in EXTENSIONS.items():
            if source == target and source in ("blend", "glb", "fbx", "obj", "ply", "usd"):
                continue
            wanted = target if target in LABELS else extension
            outputs, said, error = convert(sources[source], wanted, folder / f"{source}-{target}")
            kept = ""
            if outputs and not error:
                kept = measure.survived(before, measure.measured_file(outputs[0], outputs[1:]))
            cells[source, target] = Cell(held, kept, said, error)
    return cells


def unsaid(cell: Cell) -> list[str]:
    """Return the letters of what was lost without a word."""
    kept = {part[0]: part for part in spaced(cell.kept).split()}
    lost = [part[0] for part in spaced(cell.held).split() if kept.get(part[0]) != part]
    return [letter for letter in lost if not any(re.search(TOLD[letter], text) for text in cell.said)]


def table(cells: dict[tuple[str, str], Cell]) -> str:
    """Return the table, a row for each source."""
    names = list(EXTENSIONS)
    rows = [["from ↓ to →", "holds", *(_label(name) for name in names)]]
    rows.append(["---"] * len(rows[0]))
    for source in names:
        held = next(cell.held for (one, _), cell in cells.items() if one == source)
        rows.append([_label(source), spaced(held), *(_text(cells.get((source, t))) for t in names)])
    legend = "\n".join(f"- **{letter}** {text}" for letter, text in measure.LETTERS.items())
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n\n" + legend


def _label(name: str) -> str:
    return LABELS.get(name, f"`{EXTENSIONS[name]}`")


def _text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if not cell.kept:
        return "–"
    return "all" if cell.kept == cell.held else spaced(cell.kept)


def spaced(letters: str) -> str:
    """Return ``P N U2`` of ``PNU2``."""
    return " ".join(re.findall(r"[A-Za-z]\d*", letters))


def put_in_place(text: str) -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    start, stop = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:start] + "\n" + text + "\n" + page[stop:], encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = measured(Path(place))
    put_in_place(table(found))
    print(table(found))
    from meshferry.cli import environment

    environment.leave(0)
