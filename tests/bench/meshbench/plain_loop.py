"""Peer of a batch: one Blender that imports each file of a folder tree and exports it to glTF, and does nothing else.

python tests/bench/meshbench/plain_loop.py SOURCE OUTPUT
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bpy

IMPORTERS = {
    ".mesh": "unigine",
    ".anim": "unigine",
    ".skeleton": "unigine",
    ".timbermesh": "timbermesh",
    ".llmesh": "second_life",
    ".slm": "second_life",
    ".data": "mesh_serializer",
}


def main(source: Path, output: Path) -> None:
    """Convert the files below ``source`` into ``output``."""
    bpy.ops.preferences.addon_enable(module="io_scene_gltf2")
    for path in sorted(file for file in source.rglob("*") if file.is_file()):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        getattr(bpy.ops.import_scene, IMPORTERS[path.suffix])(filepath=str(path))
        bpy.ops.export_scene.gltf(filepath=str(output / f"{path.name}.glb"))


if __name__ == "__main__":
    import meshferry

    meshferry.register()
    main(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)  # leaving Blender may hang
