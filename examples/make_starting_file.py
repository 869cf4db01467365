"""Generate the starting file of *File > New > Second Life Avatar*: avatar, mannequin, a tunic with levels and physics.

    .venv/bin/python examples/make_starting_file.py [file.blend]

``make package`` runs it with Blender 4.5, the oldest that has to open the file, and puts the file into the packages.
Without an argument, the file goes to its place in this checkout, where git ignores it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import bpy
import meshferry
from make_tunic import garment, hull
from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
from meshferry.blender_data.importing.importer import import_scene
from meshferry.io_formats.core.scene import Node, Role, Scene
from meshferry.io_formats.passes import lod_names
from meshferry.io_formats.passes.join_meshes import join
from meshferry.io_formats.second_life.avatar import skeletons
from meshferry.io_formats.second_life.options import LEVEL_LABELS
from meshferry.operators.families.second_life.starting_file import FILE, SCENE

PHYSICS = (
    ((-0.165, -0.18, 0.90), (0.165, 0.18, 1.622)),
    ((-0.12, 0.13, 1.44), (0.05, 0.59, 1.59)),
    ((-0.12, -0.59, 1.44), (0.05, -0.13, 1.59)),
)
"""Corners of the boxes of the physics shape, which has to be as large as the garment: body and sleeves."""
COLORS = {"cloth": (0.09, 0.19, 0.28, 1.0), "trim": (0.55, 0.36, 0.12, 1.0)}


def tunic() -> Scene:
    """Return the garment with its levels and a physics shape of three boxes."""
    skeleton = skeletons.avatar_skeleton()
    names = [joint.name for joint in skeleton.joints]
    scene = Scene("Tunic", skeletons=[skeleton])
    for level in range(4):
        name = lod_names.of_level("Tunic", level)
        node = Node(name, mesh=garment(level, names), skeleton=0, lod=level, lod_of=0 if level else None)
        scene.nodes.append(node)
    scene.nodes.append(Node("Tunic_PHYS", mesh=join([hull(*box) for box in PHYSICS]), role=Role.PHYSICS, shape_of=0))
    return scene


def fill() -> None:
    """Fill the empty file."""
    bpy.context.scene.name = SCENE
    options = ImportOptions.of({"normals": "EDITABLE", "use_weld": True})
    made = import_scene(ImportRequest(bpy.context, tunic(), options))
    for level, label in enumerate(LEVEL_LABELS):
        bpy.data.collections[f"LOD {level}"].name = f"LOD {label}"
    for item in made.objects:
        if item.type == "ARMATURE":
            item.name = item.data.name = "Avatar"
            select(item)
    bpy.ops.object.second_life_add_mannequin()
    for collection in bpy.data.collections:
        for known in ("file", "from_file", "file_format", "source_path"):
            collection.meshferry.property_unset(known)  # the objects are the user's own, not those of a file
    for name, color in COLORS.items():
        _paint(bpy.data.materials[name], color)
    select(bpy.data.objects["Tunic"])
    bpy.ops.object.second_life_transfer_weights(source="Mannequin")  # so that the tunic follows the sliders, too


def _paint(material: Any, color: tuple[float, float, float, float]) -> None:
    """Set the colour of a material, also in solid shading."""
    material.diffuse_color = color
    for node in material.node_tree.nodes:
        if node.type == "BSDF_PRINCIPLED":
            node.inputs["Base Color"].default_value = color
    material.name = material.name.title()


def select(item: Any) -> None:
    """Select one object and make it active, so that the sidebar shows it at once."""
    for other in bpy.context.view_layer.objects:
        other.select_set(other == item)
    bpy.context.view_layer.objects.active = item


def main(path: Path) -> None:
    """Write the file."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    fill()
    # As a copy, so that the file does not contain its own path.
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True, copy=True)


if __name__ == "__main__":
    meshferry.register()
    try:
        main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FILE)
    finally:
        meshferry.unregister()
    sys.stdout.flush()
    os._exit(0)  # Blender as a Python module may wait for its own threads while it shuts down
