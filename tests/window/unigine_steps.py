"""UNIGINE in a Blender window: a mesh and its animation dropped together, the sidebar, exports of several files."""

from pathlib import Path
from typing import Any

import bpy
from window import DRAW, FOLDER, Steps, check, drop, file_dialog, in_view3d, picture, show_sidebar, undo


def dialogs() -> Steps:
    """File > Import > UNIGINE and File > Export > UNIGINE Scene open the file dialog with their options."""
    yield from file_dialog(lambda: bpy.ops.import_scene.unigine("INVOKE_DEFAULT"), "unigine-import-dialog")
    yield from file_dialog(lambda: bpy.ops.export_scene.unigine_scene("INVOKE_DEFAULT"), "unigine-scene-dialog")


def _rigged() -> tuple[Any, Any]:
    """Return the mesh object that came with an armature, and the armature."""
    found = [obj for obj in bpy.data.objects if obj.type == "MESH" and obj.find_armature() is not None]
    return (found[0], found[0].find_armature()) if found else (None, None)


def rig() -> Steps:
    """A mesh and an animation dropped together are one posed model; the sidebar shows both, exports write both."""
    before = set(bpy.data.objects.keys())
    yield from drop(FOLDER / "rig", "unigine-rig")
    mesh, armature = _rigged()
    check(mesh is not None, "the mesh hangs on an armature")
    if mesh is None:
        return
    action = armature.animation_data.action if armature.animation_data is not None else None
    check(action is not None, "the animation is the armature's action")
    check(bpy.context.object == mesh, "the mesh is the active object")
    if action is not None:
        rest = _evaluated_height(mesh, int(action.frame_range[0]))
        heights = [_evaluated_height(mesh, int(frame)) for frame in range(*map(int, action.frame_range), 5)]
        check(max(abs(height - rest) for height in heights) > 1e-3, "the mesh moves with the animation")
    yield from show_sidebar("Meshferry")
    check(len(mesh.meshferry.surfaces) == len(mesh.material_slots), "each material slot has its surface")
    with in_view3d():
        bpy.ops.export_scene.unigine_mesh_check()
    checked = bpy.context.window_manager.meshferry_check
    check(checked.subject == mesh.name and not any(found.is_error for found in checked.findings), "the check passes")
    yield 2 * DRAW  # panels move into place
    yield from picture("unigine-sidebar")

    out = FOLDER / "out"
    out.mkdir()
    imported = set(bpy.data.objects.keys())
    yield from exports(mesh, out)
    yield from undo(imported, "the new target of the export")
    yield from undo(before, "the mesh, its armature and animation")
    check(not bpy.data.armatures and not bpy.data.actions, "after undo no armature or action is left behind")


def level() -> Steps:
    """A dropped world is a collection with instances of its node files, with materials and textures."""
    before = set(bpy.data.objects.keys())
    yield from drop(FOLDER / "level" / "data", "unigine-level", "courtyard.world")
    collection = bpy.data.collections.get("courtyard")
    check(collection is not None, "the world is a collection")
    check(any(obj.instance_collection for obj in bpy.data.objects), "node files are instanced")
    check(any(image.has_data or image.packed_file for image in bpy.data.images), "textures are there")
    check("courtyard" in bpy.context.view_layer.active_layer_collection.name, "its collection is the active one")
    yield from undo(before, "the world")
    check("courtyard" not in bpy.data.collections, "after undo no collection is left behind")


def exports(mesh: Any, out: Path) -> Steps:
    """The dialogs name the files beforehand; what is exported is there."""
    copies = []
    for name in ("Left", "Right"):
        copies.append(mesh.copy())
        copies[-1].name = name
        bpy.context.scene.collection.objects.link(copies[-1])
        copies[-1].select_set(True)
    (out / "Left.mesh").touch()
    yield DRAW
    path = str(out / "any.mesh")
    yield from file_dialog(
        lambda: bpy.ops.export_scene.unigine_mesh("INVOKE_DEFAULT", filepath=path), "unigine-export-dialog"
    )
    with in_view3d():
        bpy.ops.export_scene.unigine_mesh(filepath=path, use_replace=True)
    written = {found.name: found.stat().st_size for found in out.iterdir()}
    check(len(written) == 3 and min(written.values()) > 1000, f"an export of three objects wrote {written}")
    for copy in copies:
        bpy.data.objects.remove(copy)
    yield from file_dialog(
        lambda: bpy.ops.export_scene.unigine_anim("INVOKE_DEFAULT", filepath=str(out / "any.anim"), clips="ACTIONS"),
        "unigine-export-animation-dialog",
    )
    with in_view3d():
        bpy.ops.export_scene.unigine_anim(filepath=str(out / "exported.anim"))
    check((out / "exported.anim").exists(), "the animation was exported")


def _evaluated_height(mesh: Any, frame: int) -> float:
    """Return the sum of the heights of a mesh's points as they look at a frame."""
    bpy.context.scene.frame_set(frame)
    evaluated = mesh.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return sum(vertex.co.z for vertex in evaluated.data.vertices)
