"""Measure imports and exports against Blender's own, in one run on one machine.

Each group of rows runs in a Blender of its own; within a group what is compared takes turns. Times are those of
the operators alone, files on a warm disk. The exit status is 1 when a limit is missed.

    python tests/bench/run_bench.py
    python tests/bench/run_bench.py --quick --only import
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from meshbench.growth import growth
from meshbench.measure import Row, machine, table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench"
GROUPS = {
    "timbermesh": ("import", "export", "memory", "growth"),
    "unigine": ("read", "import", "export", "rigged", "animation", "project"),
    "unigine_scene": ("import", "peer", "memory", "sources", "patch"),
    "timberborn_blueprint": ("import",),
    "second_life": ("import", "export", "animation", "shape"),
    "second_life_collada": ("import", "memory", "memory_rigged"),
    "opensim_archive": ("import", "unplaced", "shapes"),
    "batch": ("library", "exchange", "million", "memory"),
    "python_library": ("start", "reading"),
}
"""What is measured, by family of formats: the groups of ``meshbench/<family>_rows.py``."""
SIZES = (10_000, 40_000, 100_000, 400_000, 1_000_000, 4_000_000)
_TIMEOUT = 1800


def main(arguments: list[str] | None = None) -> int:
    """Run the groups, print the table, return 1 when a limit is missed."""
    options = _parser().parse_args(arguments)
    if options.child:
        return _child(options)
    FOLDER.mkdir(parents=True, exist_ok=True)
    about = machine()
    rows: list[Row] = []
    notes: list[str] = []
    for name in options.format or GROUPS:
        for group in [group for group in GROUPS[name] if group in (options.only or GROUPS[name])]:
            found, about["blender"], note = _group(name, group, options)
            rows += found
            print(table(found), file=sys.stderr, flush=True)  # a run that is stopped leaves what it measured
            notes = [*notes, *([note] if note not in notes else [])]
    if options.json:
        print(json.dumps({"machine": about, "rows": [row.as_dict() for row in rows], "options": notes}, indent=2))
    else:
        print("; ".join(f"{key} {value}" for key, value in about.items()))
        print(f"{options.triangles:,} triangles, medians of {options.rounds} after one to warm up\n")
        print(table(rows))
        print("\n" + "\n\n".join(notes))
    return 1 if any(row.missed for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 triangles: to see that it runs")
    every = tuple(dict.fromkeys(group for groups in GROUPS.values() for group in groups))
    parser.add_argument("--format", action="append", choices=GROUPS, help="this family alone; may be repeated")
    parser.add_argument("--only", action="append", choices=every, help="this group alone; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, with every single time")
    parser.add_argument("--triangles", type=int, default=0, help="size of the model (1,000,000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", nargs=3, metavar=("FORMAT", "GROUP", "RESULT"), help=argparse.SUPPRESS)
    return parser


def _group(name: str, group: str, options: argparse.Namespace) -> tuple[list[Row], str, str]:
    """Run a group in a process of its own; growth in one for each size."""
    options.triangles = options.triangles or (100_000 if options.quick else 1_000_000)
    if group != "growth":
        answer = _run(name, group, options.triangles, options.rounds)
        return _rows(answer), answer["blender"], answer["options"]
    points = []
    for size in [size for size in SIZES if size <= options.triangles * 4]:
        answer = _run(name, group, size, options.rounds if size <= 1_000_000 else min(3, options.rounds))
        points.append((size, _rows(answer)))
    return growth(points), answer["blender"], answer["options"]


def _rows(answer: dict[str, Any]) -> list[Row]:
    return [Row(row["name"], row["value"], row["limit"], row["detail"], row["data"]) for row in answer["rows"]]


def _run(name: str, group: str, triangles: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--child", name, group, str(result)]
        command += ["--triangles", str(triangles), "--rounds", str(rounds)]
        done = subprocess.run(command, timeout=_TIMEOUT, check=False)
        # Blender as a module may fail while it shuts down, when all has been measured.
        if not result.exists():
            raise SystemExit(f"{name}, {group}: the measuring process ended with {done.returncode}")
        answer: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return answer


def _child(options: argparse.Namespace) -> int:
    """Measure one group in this process."""
    import importlib

    import bpy
    from load_package import load_package
    from meshbench import peers

    package = load_package()
    sys.path.append(str(ROOT / "tests" / "fuzz"))  # writers of small files

    name, group, result = options.child
    peers.enable()
    package.register()
    try:
        rows_module = importlib.import_module(f"meshbench.{name}_rows")
        with peers.silence():
            rows = rows_module.GROUPS[group](options.triangles, options.rounds, FOLDER)
    finally:
        # Classes left registered hang Blender 4.5 at exit.
        package.unregister()
    answer = {
        "rows": [row.as_dict() for row in rows],
        "blender": bpy.app.version_string,
        "options": rows_module.OPTIONS,
    }
    Path(result).write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path.append(str(ROOT / "tests"))
    from load_package import leave

    leave(main())
