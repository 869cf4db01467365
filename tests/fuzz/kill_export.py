"""A killed export leaves the old file or the new one, whole; of a set of files, each.

A child process exports two different models over the same file again and again and is killed at a random moment.
Afterwards the file must be one of the two to the byte, a reader must take it, and each kill may have left at most
one temporary file, which no reader takes for a model. In a set that was half renamed, new files come before old ones
in the order of the set, the chosen one last; the next export says so, cleans up, and of any other kill says nothing.

    python tests/fuzz/kill_export.py --kills 60
    python tests/fuzz/kill_export.py --kills 300 --codec
    python tests/fuzz/kill_export.py --kills 60 --format unigine_animation
    python tests/fuzz/kill_export.py --kills 60 --format second_life_upload --codec
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meshfuzz.checkout import ROOT, leave, load_package

_NAMES = {
    "timbermesh": "Model.timbermesh",
    "unigine_mesh": "Model.mesh",
    "unigine_animation": "Model.anim",
    "second_life_animation": "Model.anim",
    "second_life_mesh": "Model.llmesh",
    "second_life_upload": "Model.dae",
    "second_life_request": "Model.llsd",
}
"""The file that is exported, by format; of a set, the chosen one."""

_SECOND_LIFE = ("second_life_mesh", "second_life_upload", "second_life_request")

_READY = "ready"
_MESSAGES = "messages: "
_ORDER = "order: "


class Killed:
    """Kills exports into one folder and looks at what they leave."""

    def __init__(self, folder: Path, seed: int, name: str, *, codec: bool) -> None:
        self.folder = folder
        self.format = name
        self.rng = random.Random(seed)
        self.codec = codec
        self.kills = 0
        self.temporaries = 0
        load_package()
        references = folder / "references"
        references.mkdir()
        done = subprocess.run(self.command(references, 2), check=True, stdout=subprocess.PIPE, text=True)
        self.order: list[str] = []
        """The files of the set in the order in which they are renamed."""
        for line in done.stdout.splitlines():
            if line.startswith(_ORDER):
                self.order = json.loads(line.removeprefix(_ORDER))
        self.order = self.order or [_NAMES[name]]
        self.wanted = [
            {file: (references / f"reference-{turn}" / file).read_bytes() for file in self.order} for turn in range(2)
        ]
        assert self.wanted[0][_NAMES[name]] != self.wanted[1][_NAMES[name]], "the two models are the same"
        self.target = folder / "target"
        self.target.mkdir()
        self.is_mixed = False
        self.mixed = 0
        """How many kills left a set that was half renamed."""

    def command(self, folder: Path, exports: int) -> list[str]:
        child = [sys.executable, __file__, "--child", str(folder), "--exports", str(exports), "--format", self.format]
        return [*child, "--codec"] if self.codec else child

    def kill_one(self) -> None:
        """Start exporting, kill, and check the folder."""
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        # Blender leaves a folder there when it is killed; it looks at TEMP first.
        own = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
        with subprocess.Popen(self.command(self.target, 0), stdout=subprocess.PIPE, text=True, env=own) as child:
            assert child.stdout is not None
            messages = ""
            for line in child.stdout:
                messages += line if line.startswith(_MESSAGES) else ""
                if line.startswith(_READY):
                    break
            if self.codec:
                assert ("was interrupted" in messages) == self.is_mixed, f"next export: {messages!r}"
            self.wait()
            assert child.poll() is None, "the exporting process ended by itself"
            child.kill()
        self.kills += 1
        self.look()

    def wait(self) -> None:
        """Wait for a random moment, or half of the time for one at which the new file is being written."""
        if self.rng.random() < 0.5:
            time.sleep(self.rng.uniform(0.0, 0.6))
            return
        known = len(list(self.target.iterdir()))
        ends = time.monotonic() + 3
        while len(list(self.target.iterdir())) <= known and time.monotonic() < ends:
            pass
        later = (0.0, 0.05, 0.1, 0.2) if len(self.order) > 1 else (0.0, 0.0, 0.001, 0.003)
        time.sleep(self.rng.choice(later))

    def look(self) -> None:
        from meshferry.io_formats import api, registry

        states = []
        for name in self.order:
            data = (self.target / name).read_bytes()
            found = [turn for turn, wanted in enumerate(self.wanted) if data == wanted[name]]
            assert found, f"{name}: {len(data):,} bytes are neither the old file nor the new one"
            if len(found) == 1:  # else both models have the same in it
                states.append(found[0])
        changes = sum(one != other for one, other in itertools.pairwise(states))
        assert changes <= 1, f"files of {self.order} were not renamed in their order: {states}"
        self.is_mixed = changes == 1
        self.mixed += self.is_mixed
        if registry.by_name(self.format).is_read:
            api.load(self.target / _NAMES[self.format])
        others = [other for other in self.target.iterdir() if other.name not in self.order]
        extensions = {extension for known in registry.FORMATS for extension in known.extensions}
        confusing = [other.name for other in others if other.suffix.lower() in extensions]
        assert not confusing, f"temporary files that look like models: {confusing}"
        assert len(others) <= self.kills, f"{len(others)} temporary files or backups after {self.kills} kills"
        self.temporaries = len(others)


def _child(folder: Path, exports: int, name: str, *, codec: bool) -> None:
    """Export the two models in turns: for ever, or a few times, keeping a copy of each as a reference."""
    path = folder / _NAMES[name]
    if codec:
        export = _codec_exporter(path, name)
    elif name in ("timbermesh", *_SECOND_LIFE):
        export = _blender_exporter(path, name)
    else:
        export = _exporter_of_active(path, name)
    turn = 0
    while not exports or turn < exports:
        said = export(turn % 2)
        if exports:
            reference = folder / f"reference-{turn}"
            reference.mkdir()
            for file in [file for file in folder.iterdir() if file.is_file()]:
                shutil.copyfile(file, reference / file.name)
        elif turn == 0:
            print(_MESSAGES, said, flush=True)
            print(_READY, flush=True)
        turn += 1
    if exports:
        print(_ORDER + json.dumps(_order(name)), flush=True)


def _order(name: str) -> list[str]:
    """Return the names of the files of a set in the order in which they are put in place."""
    from meshferry.io_formats import registry

    target, path = registry.by_name(name), Path(_NAMES[name])
    if name not in _SECOND_LIFE or not target.is_set:
        return [path.name]
    document = target.from_scene(_body(2000))
    return [output.name for output in target.write_files(document, path.stem)]


def _codec_exporter(path: Path, name: str) -> Callable[[int], object]:
    """Return a function that writes one of two scenes, as the command line does."""
    load_package()
    from meshferry.io_formats import api, registry
    from meshfuzz import second_life_animation_cases, timbermesh_seeds, unigine_seeds
    from meshfuzz.timbermesh_wrappings import zlib
    from meshfuzz.tokens import encode

    target = registry.by_name(name)
    scenes = []
    for count in (30_000, 40_000):
        if name == "timbermesh":
            content = timbermesh_seeds.model(timbermesh_seeds.mesh_node("Model", count, layers=5))
            data = zlib.compress(content, 1)
        elif name == "unigine_mesh":
            data = encode(unigine_seeds.stream("ms13", [(count, count, count, 1)]))
        elif name in _SECOND_LIFE:
            scenes.append(_body(count // 10 if target.is_set else count))  # of a set, the renaming is to be met
            continue
        elif name == "second_life_animation":
            data = second_life_animation_cases.of_one_joint(count)
        else:
            data = encode(unigine_seeds.flagged("an11", unigine_seeds.BONES, count // 4))
        scenes.append(target.to_scene(target.read(data), "Model"))
    if target.is_set:
        _rename_slowly()
    return lambda which: api.write_scene(scenes[which], path, target)


def _rename_slowly() -> None:
    """Take some time between two renames, for a kill to come."""
    replace = os.replace

    def replace_later(one: Any, other: Any) -> None:
        time.sleep(0.03)
        replace(one, other)

    os.replace = replace_later


def _body(count: int) -> Any:
    """Return a scene with a tube of so many points, and a level that differs from another body's, too."""
    sys.path.append(str(ROOT / "tests" / "oracles"))
    import upload_scenes
    from meshferry.io_formats.core import scene as sc

    nodes = [
        sc.Node("tube", mesh=upload_scenes.tube(count // 200, 200)),
        sc.Node("tube", mesh=upload_scenes.tube(count // 1000, 20), lod=1, lod_of=0),
    ]
    return sc.Scene("Model", nodes)


def _blender_exporter(path: Path, name: str) -> Callable[[int], object]:
    """Return a function that exports one of two collections through the operator."""
    import bpy

    load_package().register()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    # no levels made: the point is to be killed while writing
    options = {} if name == "timbermesh" else {"use_replace": True, "missing_levels": "COPY"}
    for label, size in (("One", 150), ("Two", 180)):
        bpy.ops.mesh.primitive_grid_add(x_subdivisions=size, y_subdivisions=size)
        obj = bpy.context.object
        collection = bpy.data.collections.new(label)
        bpy.context.scene.collection.children.link(collection)
        bpy.context.scene.collection.objects.unlink(obj)
        collection.objects.link(obj)

    def export(which: int) -> None:
        operator = getattr(bpy.ops.export_scene, name)
        operator(filepath=str(path), collection=("One", "Two")[which], **options)

    return export


def _exporter_of_active(path: Path, name: str) -> Callable[[int], object]:
    """Return a function that exports one of two grids, or one of two animations of an armature, as the active one."""
    import bpy

    load_package().register()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    objects = []
    for size in (150, 180):
        if name == "unigine_mesh":
            bpy.ops.mesh.primitive_grid_add(x_subdivisions=size, y_subdivisions=size)
            objects.append(bpy.context.object)
        else:
            bpy.ops.object.armature_add()
            bpy.context.object.data.bones[0].name = "mPelvis"
            bone = bpy.context.object.pose.bones[0]
            for frame in (1, 40 * size if name == "unigine_animation" else 7 * size):  # viewers take 60 s
                bone.location.x = frame / 2000
                bone.keyframe_insert("location", frame=frame)
            objects.append(bpy.context.object)
    operator = getattr(bpy.ops.export_scene, name.replace("animation", "anim"))
    options = {"use_key_reduction": False} if name == "second_life_animation" else {"use_replace": True}

    def export(which: int) -> None:
        bpy.ops.object.select_all(action="DESELECT")
        objects[which].select_set(True)
        bpy.context.view_layer.objects.active = objects[which]
        operator(filepath=str(path), **options)

    return export


def run(folder: Path, kills: int, seed: int = 1, name: str = "timbermesh", *, codec: bool) -> Killed:
    """Kill so many exports; raise AssertionError at the first that leaves anything but a whole file."""
    killed = Killed(folder, seed, name, codec=codec)
    for _ in range(kills):
        killed.kill_one()
    return killed


def main(arguments: list[str] | None = None) -> int:
    """Run; an AssertionError names what was left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--codec", action="store_true", help="write without Blender: more kills a minute")
    parser.add_argument("--format", choices=sorted(_NAMES), default="timbermesh")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--exports", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        try:
            _child(options.child, options.exports, options.format, codec=options.codec)
        finally:
            if not options.codec:
                load_package().unregister()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        killed = run(Path(folder), options.kills, options.seed, options.format, codec=options.codec)
    half = f", {killed.mixed} sets half renamed and reported" if len(killed.order) > 1 else ""
    print(f"{killed.kills} kills: always whole files{half}; {killed.temporaries} temporary files left")
    return 0


if __name__ == "__main__":
    leave(main())
