"""Imports that fail at every stage must leave Blender as it was.

Two kinds take turns: broken files, and good files whose import is broken off at a random line of the package by an
exception raised from a trace function, so that no stage has to be known here. Before and after, the names in every
collection of ``bpy.data``, the scene's frame settings, the selection and the files beside the imported one must agree.

    python tests/fuzz/blender_leftovers.py --imports 2000 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import linecache
import random
import re
import sys
import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from meshfuzz.cases import CaseMaker
from meshfuzz.checkout import ROOT, leave, load_package
from meshfuzz.timbermesh_seeds import seeds

_TRACED = tuple(str(ROOT / part) for part in ("blender_data", "io_formats"))
_STANDING = ("Standing", "Wood.Folktails")
"""Blocks in the scene before the import; the second has the name of a material in the files."""


_UNEXPECTED = "unexpected problem"
"""Words of the operators' report of an exception that is none of the package's own."""

_NO_WORK = re.compile(r"try:|return \w+")
"""Lines between the making of a block and its noting."""


class Broken(Exception):
    """What is raised in the middle of an import."""


@dataclass
class Report:
    """How the imports ended, and where something was left."""

    outcomes: Counter[str] = field(default_factory=Counter)
    leftovers: list[str] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    """Failures that the package itself did not expect, without one having been injected."""


class Interruption:
    """A trace function that raises at the n-th line executed in the package's lower floors, or only counts."""

    def __init__(self, stop_at: int = 0) -> None:
        self.lines = 0
        self.stop_at = stop_at
        self.place = ""

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(_TRACED) else None

    def line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and not self.is_harmless(frame):
            self.lines += 1
            if self.lines == self.stop_at:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                raise Broken(self.place)
        return self.line

    @staticmethod
    def is_harmless(frame: FrameType) -> bool:
        """Tell whether nothing can fail here: what only notes a block that was just made."""
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        return _NO_WORK.fullmatch(line) is not None or frame.f_code.co_name in ("keep", "actions")

    @contextlib.contextmanager
    def active(self) -> Any:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield self
        finally:
            sys.settrace(before)


class Leftovers:
    """Runs failing imports and compares Blender before and after."""

    def __init__(self, folder: Path, seed: int, *, use_samples: bool = True) -> None:
        import bpy

        self.bpy = bpy
        self.folder = folder
        self.rng = random.Random(seed)
        self.maker = CaseMaker(seed, "timbermesh", use_samples=use_samples)
        self.report = Report()
        self.files = 0.3
        """Share of imports of broken files; the rest are broken off."""
        self.good = {name: zlib.compress(content) for name, content in seeds().items() if name not in ("empty", "wide")}
        self.good.update({name: data for name, data in self.maker.sources[0][1].files.items() if len(data) < 40_000})
        self.lines: dict[tuple[str, str], int] = {}
        self.library = folder / "library.blend"
        self.start_scene()
        bpy.data.libraries.write(str(self.library), {bpy.data.materials[_STANDING[1]]}, fake_user=True)

    def start_scene(self) -> None:
        """Start from a scene with a few blocks, one of them selected."""
        bpy = self.bpy
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        mesh = bpy.data.meshes.new(_STANDING[0])
        mesh.materials.append(bpy.data.materials.new(_STANDING[1]))
        thing = bpy.data.objects.new(_STANDING[0], mesh)
        bpy.context.scene.collection.objects.link(thing)
        thing.select_set(True)
        bpy.context.view_layer.objects.active = thing

    def state(self) -> dict[str, Any]:
        """Return what an import may change."""
        bpy = self.bpy
        blocks = {
            prop.identifier: sorted(block.name for block in getattr(bpy.data, prop.identifier))
            for prop in bpy.types.BlendData.bl_rna.properties
            if prop.type == "COLLECTION"
        }
        scene, layer = bpy.context.scene, bpy.context.view_layer
        render = scene.render
        material = bpy.data.materials.get(_STANDING[1])
        return {
            **blocks,
            "users": material.users if material else 0,
            "linked": sorted(child.name for child in scene.collection.children_recursive),
            "frames": (scene.frame_start, scene.frame_end, scene.frame_current, render.fps, round(render.fps_base, 6)),
            "selected": sorted(thing.name for thing in layer.objects.selected),
            "active": layer.objects.active.name if layer.objects.active else "",
            "files": sorted(path.name for path in self.folder.iterdir()),
        }

    def options(self) -> dict[str, Any]:
        """Choose options so that every kind of block gets made."""
        return {
            "normals": self.rng.choice(("EXACT", "EDITABLE", "AUTO", "NONE")),
            "use_weld": self.rng.random() < 0.5,
            "vertex_animation": self.rng.choice(("SHAPE_KEYS", "SHAPE_KEYS", "CACHE")),
            "use_file_frame_rate": self.rng.random() < 0.5,
            "use_existing_materials": self.rng.random() < 0.5,
            "material_library": str(self.library) if self.rng.random() < 0.3 else "",
        }

    def run(self, imports: int) -> Report:
        """Fail that many imports; a success starts the scene anew and does not count."""
        failed = 0
        number = 0
        while failed < imports:
            number += 1
            ended = self.broken_file(number) if self.rng.random() < self.files else self.broken_off()
            failed += not ended.startswith("finished")
            self.report.outcomes[ended] += 1
        return self.report

    def broken_file(self, number: int) -> str:
        case = self.maker.make(number)
        path = self.folder / "broken.timbermesh"
        path.write_bytes(case.data)
        return self.one(path, self.options(), Interruption(), f"case {number} ({case.recipe})", "broken file")

    def broken_off(self) -> str:
        """Import a good file and break off at a random line; how many lines there are is counted once."""
        name = self.rng.choice(sorted(self.good))
        path = self.folder / "good.timbermesh"
        path.write_bytes(self.good[name])
        options = self.options()
        key = (name, repr(options))
        if key not in self.lines:
            counting = Interruption()
            self.one(path, options, counting, f"{name} whole", "whole file")
            self.lines[key] = counting.lines
        stop_at = self.rng.randrange(1, self.lines[key] + 1)
        stop = Interruption(stop_at)
        return self.one(path, options, stop, f"{name} broken off at line {stop_at} with {options}", "broken off")

    def one(self, path: Path, options: dict[str, Any], stop: Interruption, what: str, kind: str) -> str:
        """Import, compare, and say how it ended."""
        before = self.state()
        ended = "finished"
        try:
            with stop.active():
                if self.bpy.ops.import_scene.timbermesh(filepath=str(path), **options) != {"FINISHED"}:
                    ended = "failed"
        except RuntimeError as problem:
            ended = "failed"  # how an operator's error report reaches a script
            self.look_at(problem, what, stop)
        if ended == "finished" and not stop.place:
            self.export(what)
            self.start_scene()
            for made in (*self.folder.glob("*.pc2"), *self.folder.glob("again*")):
                made.unlink()
            return f"finished, {kind}"
        after = self.state()
        different = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
        if different:
            self.report.leftovers.append(f"{what}, {stop.place}: {different}")
            self.start_scene()
        return f"{ended}, {kind}"

    def look_at(self, problem: RuntimeError, what: str, stop: Interruption) -> None:
        """Note a failure that is a bug: the operators call it unexpected."""
        if _UNEXPECTED in str(problem) and not stop.place:
            self.report.surprises.append(f"{what}: {str(problem).strip()}")

    def export(self, what: str) -> None:
        """Export what came of a broken file: Blender may hold what no sound scene does."""
        try:
            self.bpy.ops.export_scene.timbermesh(
                filepath=str(self.folder / "again.timbermesh"), collection=self.bpy.data.collections[-1].name
            )
        except RuntimeError as problem:
            self.look_at(problem, f"export of {what}", Interruption())


@contextlib.contextmanager
def registered_package() -> Any:
    """Register the add-on, and unregister it whatever happens: Blender as a module hangs at exit otherwise."""
    package = load_package()
    package.register()
    try:
        yield package
    finally:
        package.unregister()


def main(arguments: list[str] | None = None) -> int:
    """Run and return 0 when nothing was left behind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--imports", type=int, default=2000, help="number of failing imports")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=float, default=0.3, help="share of broken files; the rest are broken off")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, registered_package():
        run = Leftovers(Path(folder), options.seed)
        run.files = options.files
        report = run.run(options.imports)
    print(", ".join(f"{count} {outcome}" for outcome, count in report.outcomes.most_common()))
    for leftover in report.leftovers[:20]:
        print(leftover)
    for surprise in report.surprises[:20]:
        print(surprise)
    print(f"{len(report.leftovers)} imports left something behind, {len(report.surprises)} failed unexpectedly")
    return 1 if report.leftovers or report.surprises else 0


if __name__ == "__main__":
    leave(main())
