"""Bakes of one map of a material: Emission nodes in place of its shaders show their values, and Cycles renders them."""

import contextlib
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ... import arrays
from ..reading.material_reading import materials_of, pixels_of, slot_of_faces
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


@dataclass
class Bake:
    """A temporary scene, in which the maps of a material are baked on one mesh.

    The scene is at the current frame and shares no nodes with the material, since its evaluation would write animated
    values into the user's nodes.
    """

    context: bpy.types.Context
    material: bpy.types.Material
    uv_map: str
    size: tuple[int, int]
    mutes_mapping: bool = False
    blocks: Blocks = field(default_factory=list)
    scene: Any = None

    def add_square(self, size: float) -> None:
        """Add a square mesh with the UVs of one tile."""
        mesh = self._new(bpy.data.meshes.new(_NAME))
        corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], np.float32)
        mesh.from_pydata(corners * size, [], [(0, 1, 2, 3)])
        mesh.uv_layers.new(name=self.uv_map).uv.foreach_set("vector", corners[:, :2].ravel())
        mesh.materials.append(None)
        self._add(mesh)

    def add_faces(self, obj: bpy.types.Object, *, is_plain: bool = False) -> None:
        """Add the mesh of an object, with the faces of the material in slot 0, moved by whole tiles into 0 to 1.

        It is evaluated unless ``is_plain``.
        """
        depsgraph = self.context.evaluated_depsgraph_get()
        seen = obj if is_plain else obj.evaluated_get(depsgraph)
        given = {"preserve_all_data_layers": True, "depsgraph": depsgraph}
        mesh = self._new(bpy.data.meshes.new_from_object(seen, **given))
        is_other = np.array([one is None or one.original != self.material for one in materials_of(seen, mesh)])
        slots = is_other[np.clip(slot_of_faces(mesh), 0, len(is_other) - 1)].astype(np.int32)
        mesh.materials.clear()
        for _slot in range(2):
            mesh.materials.append(None)
        mesh.polygons.foreach_set("material_index", slots)
        uvs = arrays.read(mesh.uv_layers[self.uv_map].uv, "vector", 2)
        totals = arrays.read(mesh.polygons, "loop_total", dtype=np.int32)
        tiles = np.floor(np.add.reduceat(uvs, np.cumsum(totals) - totals) / totals[:, None])
        if tiles[slots == 0].any():
            layer = mesh.attributes.new(_NAME, "FLOAT2", "CORNER")  # also if there are eight UV maps
            layer.data.foreach_set("vector", arrays.flat(uvs - tiles.repeat(totals, axis=0)))
            self.uv_map = layer.name
        self._add(mesh, seen)

    def _new(self, block: Any) -> Any:
        self.blocks.append(block)
        return block

    def _add(self, mesh: bpy.types.Mesh, seen: Any = None) -> None:
        """Add an object with a mesh, in the place of another object, to a new scene."""
        obj, scene = self._new(bpy.data.objects.new(_NAME, mesh)), self._new(bpy.data.scenes.new(_NAME))
        if seen is not None:
            obj.matrix_world, obj.color, obj.pass_index = seen.matrix_world, seen.color, seen.pass_index
            for name, value in (*seen.data.items(), *seen.items()):  # for Attribute nodes
                if isinstance(value, int | float) or hasattr(value, "typecode"):
                    obj[name] = value
        scene.render.engine = "CYCLES"
        scene.cycles.device, scene.cycles.use_adaptive_sampling, scene.cycles.use_denoising = "CPU", False, False
        user, self.scene = self.context.scene, scene
        scene.frame_current, scene.frame_subframe = user.frame_current, user.frame_subframe
        scene.collection.objects.link(obj)
        layer = scene.view_layers[0]
        layer.update()
        layer.objects.active = obj
        obj.select_set(True, view_layer=layer)

    def bake(self, kind: Map, samples: int) -> Baked:
        """Bake one map."""
        obj, temporary = self.scene.objects[0], len(self.blocks)
        image = self._new(bpy.data.images.new(_NAME, *self.size, alpha=True, float_buffer=True))
        image.colorspace_settings.name = "Non-Color"
        image.pixels.foreach_set(np.full(self.size[0] * self.size[1] * 4, _EMPTY, np.float32))
        obj.data.materials[0] = self._emission_copy(kind, image)
        self.scene.cycles.samples = samples
        override: Any = {"scene": self.scene, "view_layer": self.scene.view_layers[0], "object": obj}
        override |= {"active_object": obj, "selected_objects": [obj], "selected_editable_objects": [obj]}
        with self.context.temp_override(**override):
            bpy.ops.object.bake(
                type="NORMAL" if kind is Map.NORMAL else "EMIT",
                target="IMAGE_TEXTURES", save_mode="INTERNAL", margin=0, use_clear=False, uv_layer=self.uv_map,
                use_selected_to_active=False, use_cage=False, normal_space="TANGENT",
                normal_r="POS_X", normal_g="POS_Y", normal_b="POS_Z",
            )  # fmt: skip
        values = pixels_of(image)
        remove(self.blocks[temporary:])
        del self.blocks[temporary:]
        return values[..., :3].copy(), values[..., 0] > _EMPTY / 2

    def _emission_copy(self, kind: Map, image: bpy.types.Image) -> bpy.types.Material:
        """Return a copy of the material that shows the values of a map, which are baked into an image."""
        copy = self._new(self.material.copy())
        copy.animation_data_clear()
        tree, output = copy.node_tree, output_of(copy.node_tree)
        output.target, output.is_active_output = "CYCLES", True
        for link in [link for link in tree.links if link.to_node == output and link.to_socket.name != "Surface"]:
            tree.links.remove(link)
        self._change(tree, kind, {})
        tree.nodes.active = node = tree.nodes.new("ShaderNodeTexImage")
        node.image = image
        return copy

    def _change(self, tree: Any, kind: Map, groups: dict[Any, Any]) -> None:
        """Replace the shaders of a tree, and its groups by changed copies."""
        tree.animation_data_clear()
        for node in list(tree.nodes):
            if node.type == "GROUP" and node.node_tree is not None:
                if node.node_tree not in groups:
                    groups[node.node_tree] = group = self._new(node.node_tree.copy())
                    self._change(group, kind, groups)
                node.node_tree = groups[node.node_tree]
            elif node.type == "TEX_COORD" and node.object is not None:
                empty = self._new(bpy.data.objects.new(_NAME, None))
                empty.matrix_world, node.object = node.object.matrix_world, empty
            elif node.type == "MAPPING" and self.mutes_mapping:
                node.mute = True
            elif node.type in INPUTS and not node.mute:
                _replace(tree, node, kind)


def _replace(tree: Any, node: Any, kind: Map) -> None:
    """Replace a shader by an Emission node that shows its values, or by a white shader with its normals."""
    given = INPUTS[node.type][kind]
    is_normal = kind is Map.NORMAL and bool(given)
    made = tree.nodes.new("ShaderNodeBsdfDiffuse" if is_normal else "ShaderNodeEmission")
    made.inputs["Color"].default_value = (is_normal, is_normal, is_normal, 1.0)
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
        else:
            entry.default_value = value if own is None else own.default_value
    for link in [link for link in node.outputs[0].links if not link.is_muted]:
        tree.links.new(made.outputs[0], link.to_socket)
    tree.nodes.remove(node)
