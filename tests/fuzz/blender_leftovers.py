"""Imports that fail at every stage must leave Blender as it was.

Two kinds take turns: broken files, and good files whose import is broken off at a random line of the package by an
exception raised from a trace function, so that no stage has to be known here. Before and after, the names in every
collection of ``bpy.data``, the scene's frame settings, the selection, the pose and the actions of an armature that
stands there and the files beside the imported one must agree.

    python tests/fuzz/blender_leftovers.py --imports 2000 --seed 1
    python tests/fuzz/blender_leftovers.py --imports 500 --format unigine
"""

from __future__ import annotations

import argparse
import base64
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

from meshfuzz import (
    second_life_animation_cases,
    second_life_seeds,
    second_life_shape_seeds,
    timbermesh_seeds,
    unigine_seeds,
)
from meshfuzz.cases import CaseMaker
from meshfuzz.checkout import ROOT, leave, load_package
from meshfuzz.tokens import encode

_TRACED = tuple(str(ROOT / part) for part in ("blender_data", "io_formats"))
_BUILDING = _TRACED[:1]
"""Where data blocks are made; reading takes more lines, and leaves nothing."""
_STANDING = ("Standing", "Wood.Folktails")
"""Blocks in the scene before the import; the second has the name of a material in the files."""

_RIG = "Rig"
"""An armature with the bones of the generated files, one of them posed by an action."""

_UNEXPECTED = "unexpected problem"
"""Words of the operators' report of an exception that is none of the package's own."""

_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGM4kWIEAANWAV/oF4RSAAAAAElFTkSuQmCC"
)
"""A PNG of one pixel."""

_NO_WORK = re.compile(
    r"try:|finally:|return \w+|self\.made \+= .+|except StopIteration as \w+:|result: T = .+|steps\.close\(\)"
)
"""Lines between the making of a block and its noting, the noting, and what closes a generator that has ended."""


_UNBROKEN = ("keep", "actions", "without_collection", "changed")
"""Functions that are not broken off; Blender prints what a property's update (the last) raises, and goes on."""

_MESSAGES = str(Path("io_formats", "core", "messages.py"))
_OPERATORS = str(ROOT / "operators")


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

    def __init__(self, stop_at: int = 0, places: tuple[str, ...] = _TRACED) -> None:
        self.lines = 0
        self.stop_at = stop_at
        self.places = places
        self.place = ""

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Any:
        return self.line if frame.f_code.co_filename.startswith(self.places) else None

    def line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and not self.is_harmless(frame):
            self.lines += 1
            if self.lines == self.stop_at:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                raise Broken(self.place)
        return self.line

    @staticmethod
    def is_harmless(frame: FrameType) -> bool:
        """Return whether the line cannot fail, or makes a message of an operator, whose lines are not broken off."""
        if frame.f_code.co_filename.endswith(_MESSAGES):
            caller: FrameType | None = frame
            while caller is not None and caller.f_code.co_filename.endswith(_MESSAGES):
                caller = caller.f_back
            if caller is not None and caller.f_code.co_filename.startswith(_OPERATORS):
                return True
        above: FrameType | None = frame
        while above is not None and above.f_code.co_name != "after_append":
            above = above.f_back
        if above is not None:  # a handler: Blender prints what it raises, and goes on
            return True
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        return _NO_WORK.fullmatch(line) is not None or frame.f_code.co_name in _UNBROKEN

    @contextlib.contextmanager
    def active(self) -> Any:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            yield self
        finally:
            sys.settrace(before)


class Kind:
    """Files of one import operator: broken ones, good ones, and options that make every sort of block."""

    operator = ""
    exporters: tuple[str, ...] = ()
    is_rig_active = False
    largest = 40_000
    """Bytes of samples that are taken for good files; each line of them is traced."""

    def __init__(self, seed: int, formats: tuple[str, ...], *, use_samples: bool) -> None:
        self.makers = [CaseMaker(seed, name, use_samples=use_samples) for name in formats]
        self.good = self.generated()
        for maker in self.makers:
            files = maker.sources[0][1].files
            self.good.update({name: data for name, data in files.items() if len(data) < self.largest})

    def generated(self) -> dict[str, bytes]:
        raise NotImplementedError

    def options(self, rng: random.Random, library: str) -> dict[str, Any]:
        raise NotImplementedError

    def files_beside(self) -> dict[str, bytes]:
        """Return the files to write beside the imported file."""
        return {}


class Timbermesh(Kind):
    """Models with nodes, materials, vertex and node animations."""

    operator = "timbermesh"
    exporters = ("timbermesh",)

    def generated(self) -> dict[str, bytes]:
        rows = timbermesh_seeds.seeds()
        return {name: zlib.compress(content) for name, content in rows.items() if name not in ("empty", "wide")}

    def options(self, rng: random.Random, library: str) -> dict[str, Any]:
        return {
            "normals": rng.choice(("EXACT", "EDITABLE", "AUTO", "NONE")),
            "use_weld": rng.random() < 0.5,
            "vertex_animation": rng.choice(("SHAPE_KEYS", "SHAPE_KEYS", "CACHE")),
            "use_file_frame_rate": rng.random() < 0.5,
            "use_existing_materials": rng.random() < 0.5,
            "material_library": library if rng.random() < 0.3 else "",
        }


class Unigine(Kind):
    """Meshes with surfaces, armatures, weights and shape keys; animations, also onto the armature that stands there."""

    operator = "unigine"
    exporters = ("unigine_mesh", "unigine_anim")
    is_rig_active = True
    largest = 12_000

    def generated(self) -> dict[str, bytes]:
        rows = unigine_seeds.meshes() | unigine_seeds.animations() | unigine_seeds.skeletons()
        return {name: encode(row) for name, row in rows.items() if "wide" not in name}

    def options(self, rng: random.Random, library: str) -> dict[str, Any]:
        return {
            "normals": rng.choice(("EXACT", "EDITABLE", "AUTO", "NONE")),
            "use_shape_keys": rng.random() < 0.8,
            "armature": rng.choice(("AUTO", "AUTO", "ACTIVE", "NEW", "NONE")),
            "bone_direction": rng.choice(("FILE", "CHILDREN")),
            "use_lod_objects": rng.random() < 0.3,
            "use_turn": rng.random() < 0.3,
            "use_file_frame_rate": rng.random() < 0.3,
            "use_existing_materials": rng.random() < 0.5,
            "material_library": library if rng.random() < 0.3 else "",
        }


class SecondLife(Kind):
    """Models with levels, physics, hulls, bindings, a texture; also onto the armature that stands there."""

    operator = "second_life"
    exporters = ("second_life_mesh", "second_life_bundle", "second_life_upload")
    is_rig_active = True
    largest = 6_000

    def generated(self) -> dict[str, bytes]:
        rows = second_life_seeds.assets() | {
            f"{name}, bundle": row for name, row in second_life_seeds.bundles().items()
        }
        return {name: row.pack() for name, row in rows.items() if "many" not in name}

    def files_beside(self) -> dict[str, bytes]:
        return {"wood.png": _PICTURE}

    def options(self, rng: random.Random, library: str) -> dict[str, Any]:
        return {
            "normals": rng.choice(("EXACT", "EDITABLE", "AUTO", "NONE")),
            "use_weld": rng.random() < 0.5,
            "armature": rng.choice(("AUTO", "AUTO", "ACTIVE", "NEW", "NONE")),
            "skeleton_joints": rng.choice(("AVATAR", "USED", "USED")),
            "skeleton_rest": rng.choice(("FILE", "TABLE")),
            "use_existing_materials": rng.random() < 0.5,
            "material_library": library if rng.random() < 0.3 else "",
        }


class SecondLifeAnimations(Kind):
    """Animations and shapes of the avatar, also onto the armature that stands there, which has two of its joints."""

    operator = "second_life"
    exporters = ("second_life_anim",)
    is_rig_active = True
    largest = 6_000

    def generated(self) -> dict[str, bytes]:
        rng = random.Random(1)
        made = second_life_animation_cases
        files = {f"animation {number}": made.whole_animation(rng, hostile=False) for number in range(6)}
        files |= {f"motion {number}": made.whole_bvh(rng) for number in range(6)}
        return files | second_life_shape_seeds.FILES

    def options(self, rng: random.Random, library: str) -> dict[str, Any]:
        return {
            "armature": rng.choice(("AUTO", "ACTIVE", "ACTIVE", "NEW", "NONE")),
            "use_file_frame_rate": rng.random() < 0.5,
            "use_joint_animation": rng.random() < 0.9,
        }


KINDS: dict[str, tuple[type[Kind], tuple[str, ...]]] = {
    "timbermesh": (Timbermesh, ("timbermesh",)),
    "unigine": (Unigine, ("unigine_mesh", "unigine_animation", "unigine_skeleton")),
    "second_life": (SecondLife, ("second_life_mesh", "second_life_bundle")),
    "second_life_animation": (SecondLifeAnimations, ("second_life_animation", "second_life_bvh", "second_life_shape")),
}


class Leftovers:
    """Runs failing imports and compares Blender before and after."""

    def __init__(
        self, folder: Path, seed: int, kinds: tuple[str, ...] = tuple(KINDS), *, use_samples: bool = True
    ) -> None:
        import bpy

        self.bpy = bpy
        self.folder = folder
        self.rng = random.Random(seed)
        self.kinds = [KINDS[name][0](seed, KINDS[name][1], use_samples=use_samples) for name in kinds]
        for kind in self.kinds:
            for name, data in kind.files_beside().items():
                (folder / name).write_bytes(data)
        self.report = Report()
        self.files = 0.3
        """Share of imports of broken files; the rest are broken off."""
        self.lines: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self.library = folder / "library.blend"
        self.start_scene()
        bpy.data.libraries.write(str(self.library), {bpy.data.materials[_STANDING[1]]}, fake_user=True)

    def start_scene(self) -> None:
        """Start from a scene with a few blocks, one of them selected."""
        bpy = self.bpy
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        mesh = bpy.data.meshes.new(_STANDING[0])
        mesh.materials.append(bpy.data.materials.new(_STANDING[1]))
        obj = bpy.data.objects.new(_STANDING[0], mesh)
        bpy.context.scene.collection.objects.link(obj)
        obj.select_set(True)
        bpy.context.view_layer.objects.active = obj
        self.add_rig()

    def add_rig(self) -> None:
        """Add an armature with the bones of the generated files."""
        bpy = self.bpy
        rig = bpy.data.objects.new(_RIG, bpy.data.armatures.new(_RIG))
        bpy.context.scene.collection.objects.link(rig)
        layer = bpy.context.view_layer
        standing = layer.objects.active
        layer.objects.active = rig
        bpy.ops.object.mode_set(mode="EDIT")
        for name in (*(bone for bone, _parent in unigine_seeds.BONES), *second_life_seeds.JOINTS[:2]):
            rig.data.edit_bones.new(name).tail = (0.0, 0.0, 1.0)
        bpy.ops.object.mode_set(mode="OBJECT")
        bone = rig.pose.bones[0]
        bone.rotation_mode = "XYZ"
        bone.location = (0.5, 0.0, 0.0)
        bone.keyframe_insert("location", frame=1)
        layer.objects.active = standing

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
            "selected": sorted(obj.name for obj in layer.objects.selected),
            "active": layer.objects.active.name if layer.objects.active else "",
            "rig": self.rig(),
            "files": sorted(path.name for path in self.folder.iterdir()),
        }

    def rig(self) -> Any:
        """Return what an import may change of the armature that stands there."""
        rig = self.bpy.data.objects.get(_RIG)
        if rig is None:
            return None
        played = rig.animation_data
        pose = [(bone.name, bone.rotation_mode, [tuple(row) for row in bone.matrix_basis]) for bone in rig.pose.bones]
        action = played.action.name if played and played.action else None
        tracks = [track.name for track in played.nla_tracks] if played else None
        slot = getattr(getattr(played, "action_slot", None), "identifier", None)
        kept = (rig.meshferry.skeleton_guid, rig.meshferry.skeleton_path, rig.meshferry_shape_33)
        return pose, action, slot, tracks, rig.mode, kept, [bone.meshferry.source_name for bone in rig.data.bones]

    def run(self, imports: int) -> Report:
        """Fail that many imports; a success starts the scene anew and does not count."""
        failed = 0
        number = 0
        while failed < imports:
            number += 1
            kind = self.rng.choice(self.kinds)
            ended = self.broken_file(kind, number) if self.rng.random() < self.files else self.broken_off(kind)
            failed += not ended.startswith("finished")
            self.report.outcomes[ended] += 1
        return self.report

    def broken_file(self, kind: Kind, number: int) -> str:
        case = self.rng.choice(kind.makers).make(number)
        path = self.folder / "broken.file"
        path.write_bytes(case.data)
        what = f"case {number} ({case.recipe})"
        return self.one(kind, path, self.options(kind), Interruption(), what, "broken file")

    def options(self, kind: Kind) -> dict[str, Any]:
        return kind.options(self.rng, str(self.library))

    def broken_off(self, kind: Kind) -> str:
        """Import a good file and break off at a random line; how many lines there are is counted once."""
        name = self.rng.choice(sorted(kind.good))
        path = self.folder / "good.file"
        path.write_bytes(kind.good[name])
        options = self.options(kind)
        places = self.rng.choice((_TRACED, _BUILDING, _BUILDING))
        key = (name, repr(options), places)
        if key not in self.lines:
            counting = Interruption(places=places)
            self.one(kind, path, options, counting, f"{name} whole", "whole file")
            self.lines[key] = counting.lines
        stop_at = self.rng.randrange(1, self.lines[key] + 1)
        stop = Interruption(stop_at, places)
        return self.one(kind, path, options, stop, f"{name} broken off at line {stop_at} with {options}", "broken off")

    def one(self, kind: Kind, path: Path, options: dict[str, Any], stop: Interruption, what: str, how: str) -> str:
        """Import, compare, and say how it ended."""
        active = self.bpy.data.objects[_RIG if kind.is_rig_active else _STANDING[0]]
        self.bpy.context.view_layer.objects.active = active
        before = self.state()
        ended = "finished"
        importer = getattr(self.bpy.ops.import_scene, kind.operator)
        try:
            with stop.active():
                if importer(filepath=str(path), **options) != {"FINISHED"}:
                    ended = "failed"
        except RuntimeError as problem:
            ended = "failed"  # how an operator's error report reaches a script
            self.look_at(problem, what, stop)
        if ended == "finished" and not stop.place:
            self.export(kind, what)
            self.start_scene()
            for made in (*self.folder.glob("*.pc2"), *self.folder.glob("again*")):
                made.unlink()
            return f"finished, {how}"
        after = self.state()
        different = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
        if different:
            self.report.leftovers.append(f"{what}, {stop.place}: {different}")
            self.start_scene()
        return f"{ended}, {how}"

    def look_at(self, problem: RuntimeError, what: str, stop: Interruption) -> None:
        """Note a failure that is a bug: the operators call it unexpected."""
        if _UNEXPECTED in str(problem) and not stop.place:
            self.report.surprises.append(f"{what}: {str(problem).strip()}")

    def export(self, kind: Kind, what: str) -> None:
        """Export what came of a broken file: Blender may hold what no sound scene does."""
        imported = self.bpy.context.scene.collection.children
        where = {"filepath": str(self.folder / "again.file"), "collection": imported[-1].name if imported else ""}
        for exporter in kind.exporters:
            try:
                getattr(self.bpy.ops.export_scene, exporter)(**where)
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
    parser.add_argument("--format", choices=sorted(KINDS), help="imports of this operator alone")
    options = parser.parse_args(arguments)
    kinds = (options.format,) if options.format else tuple(KINDS)
    with tempfile.TemporaryDirectory() as folder, registered_package():
        run = Leftovers(Path(folder), options.seed, kinds)
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
