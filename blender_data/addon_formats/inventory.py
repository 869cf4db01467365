"""The data of objects as a scene without geometry, to report what Blender's own exporters lose."""

from collections.abc import Mapping, Sequence

import bpy
import numpy as np

from ...io_formats.core import scene as sc
from .. import animated_blocks, arrays, names
from ..animated_blocks import action_holders, dependencies
from ..animation.clip_sources import ClipSource, find_clips
from ..animation.scene_time import SceneTime
from ..armature_modifiers import MESHABLE, armature_of
from ..export_options import ExportOptions
from ..exporting.left_out import Movements
from ..mesh_data import surfaces
from ..mesh_data.attribute_names import RESERVED

_CREASES = ("crease_", "bevel_weight_")


def inventory(
    context: bpy.types.Context, objects: Sequence[bpy.types.Object], name: str, options: ExportOptions
) -> sc.Scene:
    """Return a scene with the names and element counts of the objects' data, but without values.

    Meshes have as many points and triangles as the evaluated objects, all filled with zeros. Each action of the objects
    is a clip whose tracks have no frames.

    Parameters
    ----------
    options:
        Values of ``export_options``; only those for clips are used.
    """
    scene = sc.Scene(name)
    armatures = [obj for obj in objects if obj.type == "ARMATURE"]
    scene.skeletons = [
        sc.Skeleton(names.readable(obj.name), [sc.Joint(bone.name) for bone in obj.data.bones]) for obj in armatures
    ]
    skeletons = {obj: number for number, obj in enumerate(armatures)}
    listed = [obj for obj in objects if obj not in skeletons]
    places = {obj: number for number, obj in enumerate(listed)}
    depsgraph = context.evaluated_depsgraph_get()
    scene.nodes = [_node(obj, places, skeletons, depsgraph) for obj in listed]
    chosen = options.with_values(clips="ACTIONS", frame_rate=0.0)
    for source in find_clips(context.scene, dependencies(objects), chosen):
        clip = _clip(source, places, skeletons, SceneTime.of(context.scene))
        if clip.transforms or clip.vertices:
            scene.clips.append(clip)
    movements = Movements()
    for node, obj in zip(scene.nodes, listed, strict=True):
        keys = getattr(obj.data, "shape_keys", None)
        if keys is not None and node.mesh is not None and (action_holders(keys) or movements.changes(keys)):
            node.mesh.shape_keys = []  # these shape keys play an animation, so they are not counted again
    return scene


def _node(
    obj: bpy.types.Object,
    places: Mapping[bpy.types.Object, int],
    skeletons: Mapping[bpy.types.Object, int],
    depsgraph: bpy.types.Depsgraph,
) -> sc.Node:
    """Return a node that only states which data an object has; ``places`` and ``skeletons`` are indices by object."""
    armature = armature_of(obj)
    node = sc.Node(obj.name, places.get(obj.parent, -1), skeleton=skeletons.get(armature) if armature else None)
    kept = obj.meshferry
    node.role = sc.Role.HULL if kept.role == "BASE_HULL" else sc.Role[kept.role]
    if kept.lod_of is not None or kept.lod:
        node.lod = max(1, kept.lod)
    if obj.type in MESHABLE:
        node.mesh = _mesh(obj, depsgraph, is_bound=armature is not None)
    return node


def _mesh(obj: bpy.types.Object, depsgraph: bpy.types.Depsgraph, *, is_bound: bool) -> sc.Mesh:
    """Return a mesh of zeros with the counts, layers and names of an object's mesh, which suffices to find losses."""
    with arrays.mesh_of(obj.evaluated_get(depsgraph)) as shown:
        points, triangles = len(shown.vertices), len(shown.loops) - 2 * len(shown.polygons)
    mesh = sc.Mesh(
        np.zeros((points, 3), np.float32),
        np.zeros(3 * max(0, triangles), np.int32),
        np.zeros(max(0, triangles), np.int32),
        materials=[names.name_in_file(slot.material) for slot in obj.material_slots if slot.material],
    )
    if is_bound:
        mesh.joint_weights = np.ones((points, 1), np.float32)
    data = obj.data
    if not isinstance(data, bpy.types.Mesh):
        return mesh
    mesh.normal = _layer("normal") if data.has_custom_normals else None
    mesh.uvs = [_layer(layer.name) for layer in data.uv_layers]
    mesh.colors = [_color(attribute) for attribute in data.color_attributes]
    mesh.custom = [_layer(one) for one in _custom_names(data)]
    keys = data.shape_keys
    blocks = list(keys.key_blocks)[1:] if keys is not None else []
    mesh.shape_keys = [sc.ShapeKey(block.name, mesh.points) for block in blocks]
    if len(obj.meshferry.surfaces):
        mesh.surfaces = surfaces.read(obj, [layer.name for layer in mesh.uvs], [block.name for block in blocks])
    return mesh


def _color(attribute: bpy.types.Attribute) -> sc.Layer:
    """Return a colour layer of one white value with the lowest alpha of the attribute."""
    least = arrays.read(attribute.data, "color", 4)[:, 3].min(initial=1.0)
    return sc.Layer(attribute.name, np.array([[1.0, 1.0, 1.0, least]], np.float32))


def _layer(name: str) -> sc.Layer:
    return sc.Layer(name, np.zeros((0, 4), np.float32))


def _custom_names(data: bpy.types.Mesh) -> list[str]:
    """Return the names of a mesh's layers, except UV maps, colours and Blender's internal layers."""
    kept = list(data.meshferry.custom_layers)
    known = {*(layer.name for layer in data.uv_layers), *(layer.name for layer in data.color_attributes), *RESERVED}
    others = [
        attribute.name
        for attribute in data.attributes
        if not (attribute.is_internal or attribute.is_required or attribute.name in known)
        and not attribute.name.startswith((".", *_CREASES))
        and not any(attribute.name.partition(".")[0] == entry.attribute for entry in kept)
    ]
    return [entry.name for entry in kept] + others


def _clip(
    source: ClipSource,
    places: Mapping[bpy.types.Object, int],
    skeletons: Mapping[bpy.types.Object, int],
    time: SceneTime,
) -> sc.Clip:
    """Return a clip with an empty track for each object, bone and mesh that the actions of a clip move."""
    clip = sc.Clip(source.name, source.fps, source.frame_count(time))
    keyed = {obj.data.shape_keys: number for obj, number in places.items() if getattr(obj.data, "shape_keys", 0)}
    for block, (action, slot) in (source.actions or {}).items():
        curves = animated_blocks.action_curves(action, slot)
        paths = {curve.data_path for curve in curves}
        bones = {path.split('"')[1] for path in paths if path.startswith('pose.bones["')}
        moves = any(not path.startswith(("pose.", '["')) for path in paths)
        if isinstance(block, bpy.types.Object) and block in skeletons:
            clip.transforms += [_track(number, skeletons[block]) for number in range(len(bones))]
        elif isinstance(block, bpy.types.Object) and block in places and moves:
            clip.transforms.append(_track(places[block], None))
        elif block in keyed and moves:
            clip.vertices.append(sc.VertexTrack(keyed[block], np.zeros((0, 0, 3), np.float32)))
    return clip


def _track(target: int, skeleton: int | None) -> sc.TransformTrack:
    none = np.zeros((0, 3), np.float32)
    return sc.TransformTrack(target, none, np.zeros((0, 4), np.float32), none, skeleton)
