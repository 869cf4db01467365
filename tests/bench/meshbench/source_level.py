"""A level of 100 meshes with and without the engine's own files, and the FBX files that both were made from."""

from __future__ import annotations

from pathlib import Path

import bpy

from . import models

FILES, TRIANGLES = 100, 5000


def make(folder: Path) -> tuple[Path, Path, list[Path]]:
    """Make the files unless they are there; return the world with runtimes, that without, and the FBX files."""
    worlds = [folder / "sources" / name / "data" / "level.world" for name in ("with", "without")]
    files = [worlds[1].parent / f"{number}.fbx" for number in range(FILES)]
    if not worlds[1].exists():
        models.empty_file()
        models.build(TRIANGLES, uv_maps=2, use_colors=False)
        bpy.data.objects[models.OBJECT_NAME].data.name = "clay"
        mesh, source = folder / "clay.mesh", folder / "clay.fbx"
        bpy.ops.export_scene.unigine_mesh(filepath=str(mesh), collection=models.COLLECTION_NAME)
        bpy.ops.export_scene.fbx(filepath=str(source), object_types={"MESH"}, bake_anim=False)
        for world in worlds:
            _project(world, mesh.read_bytes() if world == worlds[0] else b"", source.read_bytes())
    return worlds[0], worlds[1], files


def count_meshes() -> None:
    """Check that everything was imported."""
    assert sum(obj.type == "MESH" for obj in bpy.data.objects) == FILES


def _guid(number: int, kind: int) -> str:
    return f"{kind}{number:039x}"


def _project(world: Path, runtime: bytes, source: bytes) -> None:
    data = world.parent
    nodes = ""
    for number in range(FILES):
        own, made = _guid(number, 1), _guid(number, 2)
        path = data / ".runtimes" / made[:2] / f"{made}.mesh"
        path.parent.mkdir(parents=True, exist_ok=True)
        if runtime:
            path.write_bytes(runtime)
        (data / f"{number}.fbx").write_bytes(source)
        (data / f"{number}.fbx.meta").write_text(
            f'<asset version="2.19.0.3"><guid>{own}</guid><type>fbx</type><runtimes><runtime id="{own}" '
            f'name="{number}.fbx" link="0"/><runtime id="{made}" name="clay.mesh" link="2"/></runtimes></asset>',
            "utf-8",
        )
        nodes += (
            f'<node type="ObjectMeshStatic" id="{number + 1}" name="place {number}"><mesh_name>guid://{made}</mesh_name>'
            f"<transform>1 0 0 0 0 1 0 0 0 0 1 0 {number % 10 * 25} {number // 10 * 15} 0 1</transform></node>"
        )
    world.write_text(f'<world version="2.19.0.3"><editor>{nodes}</editor></world>', "utf-8")
