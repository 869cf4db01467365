"""Special cases converted there and back; the table "Special cases" in docs/users/conversion.md is made of them.

.venv/bin/python tests/cli/special_cases.py      puts it in place (Blender 4.5)
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # the tests load the package by themselves
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from load_package import load_package

    load_package()

import conversion_measure as measure
import conversion_models as models
import conversion_table as survival
import numpy as np
import rigs

PAGE, NAME = "docs/users/conversion.md", "special cases"
RATE, MOVING = 25.0, 4
"""Frame rate, which differs from the defaults of all importers, and the number of frames that differ."""

CASES = {
    "1 frame, of bones": ("bones", 1),
    "1 frame, of an object": ("object", 1),
    "7 frames, the last 4 alike, of bones": ("bones", MOVING),
    "7 frames, the last 4 alike, of an object": ("object", MOVING),
    "7 frames, all alike, of bones": ("bones", 1),
    "7 frames, all alike, of an object": ("object", 1),
    "68 µm large": ("tiny", 0),
    "two-sided triangles": ("twins", 0),
}
"""Kind of model and number of frames that differ. Bones come from an an13 file, all else from a Timbermesh file."""

AN13 = ["--animation-version", "an13", "--skeleton", rigs.SKELETON]
TARGETS = {
    "`.anim` (an13)": ("model.anim", AN13),
    "`.anim` (an11)": ("model.anim", ["--animation-version", "an11"]),
    **{f"`.{kind}`": (f"model.{kind}", []) for kind in ("timbermesh", "mesh", "data", "slm")},
    **{f"`.{kind}`": (f"model.{kind}", []) for kind in ("blend", "glb", "gltf", "fbx", "obj", "ply", "usd")},
}
"""File name and options of each target."""

REPORTS = {
    "animation": "animated|held pose",
    "movement": "held pose",
    "length": "held pose",
    "frame rate": "frames a second",
    "triangles": "triangle",
    "size": "smaller",
}
"""Pattern of the warning that reports each loss."""


def write_case(case: str, folder: Path) -> Path:
    """Write the source file of a case."""
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.scene import Clip, Scene, TransformTrack

    kind, moving = CASES[case]
    scene = Scene("model", [], [models.make_skeleton()]) if kind == "bones" else models.make_still()
    if moving:
        count = int(case[0])
        translation = np.zeros((count, 3), np.float32)
        translation[:, 0] = 0.5 + 0.1 * np.minimum(np.arange(count), moving - 1)
        rotation = np.tile(np.array([1, 0, 0, 0], np.float32), (count, 1))
        skeleton = 0 if kind == "bones" else None
        track = TransformTrack(0, translation, rotation, np.ones((count, 3), np.float32), skeleton)
        scene.clips = [Clip("model", RATE, count, [track])]
    else:
        mesh = scene.nodes[0].mesh
        if kind == "tiny":
            mesh.points = (mesh.points * (68e-6 / np.ptp(mesh.points, axis=0).max())).astype(np.float32)
        else:
            backs = mesh.corner_point.reshape(-1, 3)[:, ::-1].ravel()
            mesh.corner_point = np.concatenate((mesh.corner_point, backs))
            mesh.material_index = np.tile(mesh.material_index, 2)
    extension, options = ".timbermesh", {}
    if kind == "bones":
        extension, options = ".anim", {"animation_version": "AN13", "skeleton": rigs.SKELETON}
    path = folder / f"model{extension}"
    api.write_scene(scene, path, registry.by_extension(extension), options)
    return path


def figures(path: Path) -> dict[str, float]:
    """Return the figures of a file that the cases compare."""
    from meshferry.io_formats import api

    points = measure.measured_file(path).points
    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    found: dict[str, float] = {"triangles": len(points) // 3, "size": size}
    for clip in api.read_scene(path).clips:
        places = clip.transforms[0].translation
        steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        found |= {"frames": clip.frame_count, "rate": clip.fps, "place": float(np.linalg.norm(places[-1]))}
        found |= {"moving": int(np.flatnonzero(steps > 1e-4).max(initial=-1)) + 1}
    return found


def compare(before: dict[str, float], after: dict[str, float]) -> tuple[list[str], str]:
    """Return what is lost, and a note on frames that differ while their seconds do not."""
    lost = ["triangles"] if after["triangles"] != before["triangles"] else []
    lost += ["size"] if abs(after["size"] - before["size"]) > 1e-3 * before["size"] else []
    if "frames" not in before:
        return lost, ""
    if "frames" not in after:
        return [*lost, "animation"], ""
    rates = [found["rate"] for found in (before, after)]
    if after["frames"] == before["frames"] and abs(rates[0] - rates[1]) > 1e-3:
        return [*lost, "frame rate"], ""
    seconds = [(found["frames"] - 1) / rate for found, rate in zip((before, after), rates, strict=True)]
    moving = [found["moving"] / rate for found, rate in zip((before, after), rates, strict=True)]
    lost += ["length"] if abs(seconds[1] - seconds[0]) > 1e-3 else []
    lost += ["movement"] if abs(moving[1] - moving[0]) > 1e-3 or abs(after["place"] - before["place"]) > 1e-3 else []
    return lost, "" if after["frames"] == before["frames"] else f"; {after['frames']:g} at {rates[1]:g} a second"


def measured(folder: Path, targets: Iterable[str] = TARGETS) -> dict[tuple[str, str], str]:
    """Convert every case to every target and back; return the text of each cell."""
    cells: dict[tuple[str, str], str] = {}
    for number, case in enumerate(CASES):
        place = folder / str(number)
        place.mkdir(parents=True)
        source = write_case(case, place)
        before = figures(source)
        for at, target in enumerate(targets):
            name, options = TARGETS[target]
            (there := place / str(at)).mkdir()
            back = there / f"back{source.suffix}"
            records, _ = survival.run(["convert", "--json", str(source), str(there / name), *options])
            if not (there / name).exists():
                assert all("error" in record for record in records) and records, (case, target)
                cells[case, target] = "–"
                continue
            wanted = AN13 if source.suffix == ".anim" else []
            records += survival.run(["convert", "--json", str(there / name), str(back), *wanted])[0]
            warnings = [text for record in records for text in record["warnings"]]
            lost, note = compare(before, figures(back)) if back.exists() else (["animation"], "")
            silent = [what for what in lost if not any(re.search(REPORTS[what], text) for text in warnings)]
            text = f"lost: {', '.join(silent)}" if silent else f"reported: {', '.join(lost)}" if lost else "kept"
            cells[case, target] = text + ("" if lost else note)
    return cells


def table(cells: dict[tuple[str, str], Any]) -> str:
    """Return the table, a row for each case."""
    rows = [["from ↓ to →", *TARGETS], ["---"] * (len(TARGETS) + 1)]
    rows += [[case, *(cells[case, target] for target in TARGETS)] for case in CASES]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        text = table(measured(Path(root)))
    print(text)
    if "--print" not in sys.argv:
        sys.path.insert(0, str(survival.ROOT / "tests" / "examples"))
        from generated_tables import with_table

        survival.PAGE.write_text(with_table(survival.PAGE.read_text("utf-8"), NAME, text), "utf-8")
    from meshferry.cli import environment

    environment.leave(0)
