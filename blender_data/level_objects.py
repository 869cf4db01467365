"""Objects for coarser levels of detail, at the location of the finest object, and their visibility."""

from collections.abc import Iterable, Iterator
from typing import Any

import bpy

from ..io_formats.core.scene import Node, Scene
from . import names
from .names import fit_all


def add_level(context: bpy.types.Context, finest: bpy.types.Object, name: str, node: Node, scene: Scene) -> Any:
    """Create an object for a level of detail that an export generated, and assign it to the finest object.

    Parameters
    ----------
    finest:
        The object to which the level belongs. The new object gets its collections (or the scene's if these are linked
        from a library), transform, parent, armatures and materials.
    name:
        Name of the new object.
    node:
        The level, its mesh in the space of the finest object's node.
    scene:
        Scene of the node, with the skeleton of its weights.

    Returns
    -------
    bpy.types.Object
        It is hidden, since it is at the same location as the finest object.
    """
    from .exporting.reading.material_reading import materials_by_name
    from .exporting.reading.mesh_reading import transformed
    from .importing import meshes
    from .mesh_data import file_normals

    made: list[bpy.types.ID] = []

    def keep(block: bpy.types.ID) -> Any:
        made.append(block)
        return block

    mesh = node.mesh
    if mesh is None:
        raise ValueError(f"{node.name} has no mesh")
    try:
        weights = None
        if node.skeleton is not None:
            joints = [joint.name for joint in scene.skeletons[node.skeleton].joints]
            weights = meshes.GroupWeights.of(mesh, fit_all(joints, "Bone"))
        own = [slot.material for slot in finest.material_slots]
        found = materials_by_name(mesh.materials, own)
        slots = [found.get(name) for name in mesh.materials]
        to_object = scene.nodes[node.lod_of].to_object if node.lod_of is not None else None
        if to_object is not None:  # nodes have no mirroring and shear, which the finest object can have
            mesh = transformed(mesh, to_object)
        data = meshes.build_mesh(name, mesh, slots, keep, weights)
        if not finest.material_slots and not any(slots):
            data.materials.clear()  # an empty slot would cause a warning in each export
        if mesh.normal is not None:
            file_normals.set_editable_normals(data, mesh.normal, mesh.corner_point)
        level: bpy.types.Object = keep(bpy.data.objects.new(names.fit(name), data))
        for group in weights.names if weights else ():
            level.vertex_groups.new(name=group)
        _follow(level, finest)
        level.meshferry.lod_of = finest
        level.meshferry.lod = node.lod
        homes = [one for one in finest.users_collection if one.is_editable and one.override_library is None]
        for collection in homes or [context.scene.collection]:
            collection.objects.link(level)
        context.view_layer.update()
        level.hide_set(True, view_layer=context.view_layer)
    except BaseException:
        bpy.data.batch_remove(made)
        raise
    return level


def _follow(level: bpy.types.Object, finest: bpy.types.Object) -> None:
    """Copy parent, transform and armature modifiers of the finest object."""
    level.parent, level.parent_type, level.parent_bone = finest.parent, finest.parent_type, finest.parent_bone
    level.matrix_parent_inverse = finest.matrix_parent_inverse
    level.rotation_mode = finest.rotation_mode
    level.matrix_basis = finest.matrix_basis
    for modifier in finest.modifiers:
        if modifier.type == "ARMATURE":
            copy = level.modifiers.new(modifier.name, "ARMATURE")
            copy.object, copy.show_viewport, copy.show_render = (
                modifier.object,
                modifier.show_viewport,
                modifier.show_render,
            )
    level.meshferry.binding = finest.meshferry.binding


def show_only(
    context: bpy.types.Context, shown: Iterable[bpy.types.Object], others: Iterable[bpy.types.Object]
) -> list[str]:
    """Show some objects and hide others; the visibility of all other objects is not changed.

    Returns
    -------
    list
        Names of objects that cannot be shown: disabled in viewports, or in excluded collections.
    """
    layer = context.view_layer
    there = set(layer.objects)  # compare objects, since names of linked ones are not unique
    for other in others:
        if other in there:
            other.hide_set(True, view_layer=layer)
    return [obj.name for obj in shown if not _reveal(layer, obj)]


def _reveal(layer: bpy.types.ViewLayer, obj: bpy.types.Object) -> bool:
    """Show an object and its hidden collections; other objects in these collections stay hidden."""
    if obj not in set(layer.objects):
        return False
    obj.hide_set(False, view_layer=layer)
    if obj.visible_get(view_layer=layer):
        return True
    before = {one for one in layer.objects if one.visible_get(view_layer=layer)}
    for way in _ways(layer.layer_collection, obj):
        if any(part.exclude or part.collection.hide_viewport for part in way):
            continue
        for part in way:
            part.hide_viewport = False
        layer.update()
        for one in layer.objects:
            if one != obj and one not in before and one.visible_get(view_layer=layer):
                one.hide_set(True, view_layer=layer)
        break
    return bool(obj.visible_get(view_layer=layer))


def _ways(
    layer: bpy.types.LayerCollection, obj: bpy.types.Object, above: tuple[bpy.types.LayerCollection, ...] = ()
) -> Iterator[tuple[bpy.types.LayerCollection, ...]]:
    """Yield, for each collection of an object, the layer collections from the scene's own down to it."""
    here = (*above, layer)
    if obj in set(layer.collection.objects):
        yield here
    for child in layer.children:
        yield from _ways(child, obj, here)


LEVEL_PROPERTIES = ("", "medium_level", "low_level", "lowest_level")
"""Properties by which the finest object refers to its coarser levels; the index is the number of the level."""
