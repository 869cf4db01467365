"""Bakes of one map of a material: Emission nodes in place of its shaders show their values, and Cycles renders them."""

from __future__ import annotations

import contextlib
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ... import arrays
from ..reading.material_reading import materials_of, occlusion_inputs, pixels_of, slot_of_faces
from ..reading.shader_nodes import output_of
from .surface_shaders import INPUTS, Map

Blocks = list[bpy.types.ID]
"""Temporary data blocks, which are removed together."""
Baked = tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]
"""Linear values (H, W, 3), the lowest row first, and which pixels the faces cover."""
_NAME = "meshferry bake"
_EMPTY = -1.0
"""Value of pixels before a bake; no bake gives it."""


def remove(blocks: Blocks) -> None:
    """Remove temporary data blocks."""
    with contextlib.suppress(ReferenceError):  # an undo during the export removed them
        bpy.data.batch_remove(blocks)


def square(size: float, uv_map: str, blocks: Blocks) -> bpy.types.Mesh:
    """Return a square mesh with the UVs of one tile."""
    mesh = bpy.data.meshes.new(_NAME)
    blocks.append(mesh)
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], np.float32)
    mesh.from_pydata(corners * size, [], [(0, 1, 2, 3)])
    mesh.uv_layers.new(name=uv_map).uv.foreach_set("vector", corners[:, :2].ravel())
    mesh.materials.append(None)
    return mesh


def faces_of(
    context: bpy.types.Context, seen: bpy.types.Object, material: bpy.types.Material, uv_map: str, blocks: Blocks
) -> tuple[bpy.types.Mesh, str]:
    """Return the mesh of an object, with the faces of a material in slot 0, and its UV map for the bake.

    The UVs are moved by whole tiles into 0 to 1.
    """
    layers = {"preserve_all_data_layers": True, "depsgraph": context.evaluated_depsgraph_get()}
    mesh = bpy.data.meshes.new_from_object(seen, **(layers if seen.is_evaluated else {}))
    blocks.append(mesh)
    is_other = np.array([one is None or one.original != material for one in materials_of(seen, mesh)])
    slots = is_other[np.clip(slot_of_faces(mesh), 0, len(is_other) - 1)].astype(np.int32)
    mesh.materials.clear()
    for _slot in range(2):
        mesh.materials.append(None)
    mesh.polygons.foreach_set("material_index", slots)
    uvs = arrays.read(mesh.uv_layers[uv_map].uv, "vector", 2)
    totals = arrays.read(mesh.polygons, "loop_total", dtype=np.int32)
    tiles = np.floor(np.add.reduceat(uvs, np.cumsum(totals) - totals) / totals[:, None])
    if tiles[slots == 0].any():
        mesh.uv_layers.new(name=_NAME, do_init=False).uv.foreach_set(
            "vector", arrays.flat(uvs - tiles.repeat(totals, axis=0))
        )
        uv_map = mesh.uv_layers[-1].name
    return mesh, uv_map


def bake_scene(
    context: bpy.types.Context, mesh: bpy.types.Mesh, source: bpy.types.Object | None, samples: int, blocks: Blocks
) -> bpy.types.Scene:
    """Return a scene at the current frame with a mesh; nodes may read the settings of the object ``source``.

    Raises
    ------
    TypeError
        Blender's add-on *Cycles* is disabled.
    """
    scene, obj = bpy.data.scenes.new(_NAME), bpy.data.objects.new(_NAME, mesh)
    blocks += [scene, obj]
    scene.render.engine = "CYCLES"
    settings: Any = scene.cycles
    settings.device, settings.samples = "CPU", samples
    settings.use_adaptive_sampling = settings.use_denoising = False
    scene.frame_current, scene.frame_subframe = context.scene.frame_current, context.scene.frame_subframe
    if source is not None:
        obj.matrix_world, obj.color, obj.pass_index = source.matrix_world, source.color, source.pass_index
    scene.collection.objects.link(obj)
    layer = scene.view_layers[0]
    layer.update()
    layer.objects.active = obj
    obj.select_set(True, view_layer=layer)
    return scene


def bake_map(
    context: bpy.types.Context,
    scene: bpy.types.Scene,
    material: bpy.types.Material,
    kind: Map,
    size: tuple[int, int],
    uv_map: str,
    *,
    mutes_mapping: bool = False,
) -> Baked:
    """Bake one map on the mesh of a scene."""
    blocks: Blocks = []
    obj, layer = scene.objects[0], scene.view_layers[0]
    override: Any = {
        "scene": scene, "view_layer": layer, "object": obj, "active_object": obj,
        "selected_objects": [obj], "selected_editable_objects": [obj],
    }  # fmt: skip
    try:
        image = bpy.data.images.new(_NAME, *size, alpha=True, float_buffer=True)
        blocks.append(image)
        image.colorspace_settings.name = "Non-Color"
        image.pixels.foreach_set(np.full(size[0] * size[1] * 4, _EMPTY, np.float32))
        obj.data.materials[0] = _emission_copy(material, kind, image, blocks, mutes_mapping=mutes_mapping)
        with context.temp_override(**override):
            bpy.ops.object.bake(
                type="NORMAL" if kind is Map.NORMAL else "EMIT",
                target="IMAGE_TEXTURES", save_mode="INTERNAL", margin=0, use_clear=False, uv_layer=uv_map,
                use_selected_to_active=False, use_cage=False, normal_space="TANGENT",
                normal_r="POS_X", normal_g="POS_Y", normal_b="POS_Z",
            )  # fmt: skip
        values = pixels_of(image)
    finally:
        remove(blocks)
    return values[..., :3], values[..., 0] > _EMPTY / 2


def _emission_copy(
    material: bpy.types.Material, kind: Map, image: bpy.types.Image, blocks: Blocks, *, mutes_mapping: bool
) -> bpy.types.Material:
    """Return a copy of a material that shows the values of a map, which are baked into an image.

    The copy shares no nodes with the original and has no animation data, since an evaluation of the temporary scene
    would write animated values into the user's nodes.
    """
    groups: dict[Any, Any] = {}

    def change(tree: Any, occlusion: Any = None) -> None:
        """Replace the shaders of a tree, and its groups by changed copies."""
        tree.animation_data_clear()
        for node in list(tree.nodes):
            if node.type == "GROUP" and node.node_tree is not None:
                if node.node_tree not in groups:
                    group = groups[node.node_tree] = node.node_tree.copy()
                    blocks.append(group)
                    change(group)
                node.node_tree = groups[node.node_tree]
            elif node.type == "TEX_COORD" and node.object is not None:
                empty = bpy.data.objects.new(_NAME, None)
                blocks.append(empty)
                empty.matrix_world, node.object = node.object.matrix_world, empty
            elif node.type == "MAPPING" and mutes_mapping:
                node.mute = True
            elif node.type in INPUTS and not node.mute:
                _replace(tree, node, kind, occlusion)

    copy = material.copy()
    blocks.append(copy)
    copy.animation_data_clear()
    tree, output = copy.node_tree, output_of(copy.node_tree)
    output.target, output.is_active_output = "CYCLES", True
    for link in [link for link in tree.links if link.to_node == output and link.to_socket.name != "Surface"]:
        tree.links.remove(link)
    occlusion = [link.from_socket for socket in occlusion_inputs(tree) for link in socket.links or ()]
    change(tree, *occlusion[:1])
    tree.nodes.active = node = tree.nodes.new("ShaderNodeTexImage")
    node.image = image
    return copy


def _replace(tree: Any, node: Any, kind: Map, occlusion: Any) -> None:
    """Replace a shader by an Emission node that shows its values, or by a white shader with its normals."""
    given, is_normal = INPUTS[node.type].get(kind, ()), kind is Map.NORMAL
    made = tree.nodes.new("ShaderNodeBsdfDiffuse" if is_normal and given else "ShaderNodeEmission")
    made.inputs["Color"].default_value = (1.0, 1.0, 1.0, 1.0) if is_normal and given else (0.0, 0.0, 0.0, 1.0)
    entries = [made.inputs["Normal"]] if is_normal else list(made.inputs)
    if len(given) > 2:
        combined = tree.nodes.new("ShaderNodeCombineXYZ")
        tree.links.new(combined.outputs[0], made.inputs["Color"])
        entries = list(combined.inputs)
    for value, entry in zip(given, entries, strict=False):
        own = node.inputs[value] if isinstance(value, str) else None
        links = [link for link in own.links if link.is_valid and not link.is_muted] if own is not None else []
        if links:
            tree.links.new(links[0].from_socket, entry)
        elif not is_normal:
            entry.default_value = value if own is None else own.default_value
    if kind is Map.SURFACE and given and occlusion is not None:
        tree.links.new(occlusion, entries[0])
    for link in list(node.outputs[0].links):
        tree.links.new(made.outputs[0], link.to_socket)
    tree.nodes.remove(node)
