"""A killed export leaves the old file or the new one, whole.

A child process exports two different models over the same file again and again and is killed at a random moment.
Afterwards the file must be one of the two to the byte, a reader must take it, and each kill may have left at most
one temporary file, which no reader takes for a model.

    python tests/fuzz/kill_export.py --kills 60
    python tests/fuzz/kill_export.py --kills 300 --codec
    python tests/fuzz/kill_export.py --kills 60 --format unigine_animation
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from meshfuzz.checkout import leave, load_package

_NAMES = {
    "timbermesh": "Model.timbermesh",
    "unigine_mesh": "Model.mesh",
    "unigine_animation": "Model.anim",
}
"""The file that is exported, by format."""

_READY = "ready"


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
        subprocess.run(self.command(references, 2), check=True, stdout=subprocess.DEVNULL)
        self.wanted = {path.read_bytes() for path in references.glob("reference-*")}
        assert len(self.wanted) == 2, "the two models are the same"
        self.target = folder / "target"
        self.target.mkdir()

    def command(self, folder: Path, exports: int) -> list[str]:
        child = [sys.executable, __file__, "--child", str(folder), "--exports", str(exports), "--format", self.format]
        return [*child, "--codec"] if self.codec else child

    def kill_one(self) -> None:
        """Start exporting, kill, and check the folder."""
        with subprocess.Popen(self.command(self.target, 0), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith(_READY):
                    break
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
        time.sleep(self.rng.choice((0.0, 0.0, 0.001, 0.003)))

    def look(self) -> None:
        from meshferry.io_formats import files, formats

        path = self.target / _NAMES[self.format]
        data = path.read_bytes()
        assert data in self.wanted, f"{len(data):,} bytes are neither the old file nor the new one"
        files.load(path)
        others = [other for other in self.target.iterdir() if other != path]
        extensions = {extension for known in formats.FORMATS for extension in known.extensions}
        confusing = [other.name for other in others if other.suffix.lower() in extensions]
        assert not confusing, f"temporary files that look like models: {confusing}"
        assert len(others) <= self.kills, f"{len(others)} temporary files after {self.kills} kills"
        self.temporaries = len(others)


def _child(folder: Path, exports: int, name: str, *, codec: bool) -> None:
    """Export the two models in turns: for ever, or a few times, keeping a copy of each as a reference."""
    path = folder / _NAMES[name]
    if codec:
        export = _codec_exporter(path, name)
    else:
        export = _blender_exporter(path) if name == "timbermesh" else _unigine_exporter(path, name)
    turn = 0
    while not exports or turn < exports:
        export(turn % 2)
        if exports:
            (folder / f"reference-{turn}").write_bytes(path.read_bytes())
        elif turn == 0:
            print(_READY, flush=True)
        turn += 1


def _codec_exporter(path: Path, name: str) -> Callable[[int], object]:
    """Return a function that writes one of two scenes, as the command line does."""
    load_package()
    from meshferry.io_formats import files, formats
    from meshfuzz import timbermesh_seeds, unigine_seeds
    from meshfuzz.timbermesh_wrappings import zlib
    from meshfuzz.tokens import encode

    target = formats.by_name(name)
    scenes = []
    for count in (30_000, 40_000):
        if name == "timbermesh":
            content = timbermesh_seeds.model(timbermesh_seeds.mesh_node("Model", count, layers=5))
            data = zlib.compress(content, 1)
        elif name == "unigine_mesh":
            data = encode(unigine_seeds.stream("ms13", [(count, count, count, 1)]))
        else:
            data = encode(unigine_seeds.flagged("an11", unigine_seeds.BONES, count // 4))
        scenes.append(target.to_scene(target.read(data), "Model"))
    return lambda which: files.write_scene(scenes[which], path, target)


def _blender_exporter(path: Path) -> Callable[[int], object]:
    """Return a function that exports one of two collections through the operator."""
    import bpy

    load_package().register()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    for name, size in (("One", 150), ("Two", 180)):
        bpy.ops.mesh.primitive_grid_add(x_subdivisions=size, y_subdivisions=size)
        thing = bpy.context.object
        collection = bpy.data.collections.new(name)
        bpy.context.scene.collection.children.link(collection)
        bpy.context.scene.collection.objects.unlink(thing)
        collection.objects.link(thing)

    def export(which: int) -> None:
        bpy.ops.export_scene.timbermesh(filepath=str(path), collection=("One", "Two")[which])

    return export


def _unigine_exporter(path: Path, name: str) -> Callable[[int], object]:
    """Return a function that exports one of two grids, or one of two animations of an armature, as the active one."""
    import bpy

    load_package().register()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    things = []
    for size in (150, 180):
        if name == "unigine_mesh":
            bpy.ops.mesh.primitive_grid_add(x_subdivisions=size, y_subdivisions=size)
            things.append(bpy.context.object)
        else:
            bpy.ops.object.armature_add()
            bone = bpy.context.object.pose.bones[0]
            for frame in (1, 40 * size):
                bone.location.x = frame
                bone.keyframe_insert("location", frame=frame)
            things.append(bpy.context.object)
    operator = getattr(
        bpy.ops.export_scene, {"unigine_mesh": "unigine_mesh", "unigine_animation": "unigine_anim"}[name]
    )

    def export(which: int) -> None:
        bpy.ops.object.select_all(action="DESELECT")
        things[which].select_set(True)
        bpy.context.view_layer.objects.active = things[which]
        operator(filepath=str(path), use_replace=True)

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
    print(f"{killed.kills} kills: always a whole file; {killed.temporaries} temporary files left")
    return 0


if __name__ == "__main__":
    leave(main())
