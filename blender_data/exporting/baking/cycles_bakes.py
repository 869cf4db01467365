"""Bakes of one material on temporary meshes, in a temporary scene that Cycles renders."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ... import arrays
from ..reading import material_reading
from .emission_copies import EmissionCopy, Map

Pixels = npt.NDArray[np.float32]
_NAME = "meshferry bake"
_EMPTY = -1.0
"""Value of pixels before a bake; no bake gives it."""
_RAY_SAMPLES = 64
"""Samples of bakes that cast rays. All others have one, in the middle of its pixel."""


@dataclass
class BakeMesh:
    """A temporary mesh, which is removed after the bakes."""

    mesh: bpy.types.Mesh
    uv_map: str
    matrix: Any = None
    source: bpy.types.Object | None = None
    """The object whose settings nodes may read."""


def square(size: float, uv_map: str) -> BakeMesh:
    """Return a square with the UVs of one tile."""
    mesh = bpy.data.meshes.new(_NAME)
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    mesh.from_pydata([(x * size, y * size, 0.0) for x, y in corners], [], [(0, 1, 2, 3)])
    mesh.uv_layers.new(name=uv_map).uv.foreach_set("vector", np.array(corners, np.float32).ravel())
    mesh.materials.append(None)
    return BakeMesh(mesh, mesh.uv_layers[0].name)


def faces_of(
    obj: bpy.types.Object, depsgraph: bpy.types.Depsgraph, material: bpy.types.Material, uv_map: str
) -> BakeMesh:
    """Return the mesh of an object with the faces of a material in slot 1.

    The UVs of these faces are moved by whole tiles into 0 to 1.
    """
    layers = {"preserve_all_data_layers": True, "depsgraph": depsgraph} if obj.is_evaluated else {}
    mesh = bpy.data.meshes.new_from_object(obj, **layers)
    mesh.name = _NAME
    found = material_reading.materials_of(obj, mesh)
    is_wanted = np.array([one is not None and one.original == material for one in found] or [False])
    chosen = is_wanted[np.clip(material_reading.slot_of_faces(mesh), 0, len(is_wanted) - 1)]
    mesh.materials.clear()
    mesh.materials.append(None)
    mesh.materials.append(None)
    mesh.polygons.foreach_set("material_index", chosen.astype(np.int32))
    layer = mesh.uv_layers.get(uv_map)
    if layer is None:
        bpy.data.meshes.remove(mesh)
        raise RuntimeError(f"an object has no UV map '{uv_map}'")
    uvs = arrays.read(layer.uv, "vector", 2)
    corners = face_of_corners(mesh)
    tiles = np.floor(face_middles(uvs, corners, len(mesh.polygons)))
    if tiles[chosen].any():
        moved = mesh.uv_layers.new(name=_NAME, do_init=False)
        moved.uv.foreach_set("vector", arrays.flat(uvs - tiles[corners]))
        uv_map = moved.name
    return BakeMesh(mesh, uv_map, obj.matrix_world.copy(), obj)


def face_of_corners(mesh: bpy.types.Mesh) -> npt.NDArray[np.int32]:
    """Return the face of each corner."""
    totals = arrays.read(mesh.polygons, "loop_total", dtype=np.int32)
    return np.repeat(np.arange(len(totals), dtype=np.int32), totals)


def face_middles(uvs: npt.NDArray[np.float32], corners: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.float64]:
    """Return the mean UV of each of ``count`` faces, (count, 2)."""
    totals = np.maximum(np.bincount(corners, minlength=count), 1)
    sums = [np.bincount(corners, weights=np.nan_to_num(uvs[:, axis]), minlength=count) for axis in (0, 1)]
    return np.stack(sums, axis=1) / totals[:, None]


class BakeScene:
    """A scene for bakes at the current frame, in which only temporary data is evaluated."""

    def __init__(self, context: bpy.types.Context, *, casts_rays: bool) -> None:
        """Create the scene.

        Raises
        ------
        TypeError
            Blender's add-on *Cycles* is disabled.
        """
        self._context = context
        user = context.scene
        self.scene = bpy.data.scenes.new(_NAME)
        try:
            self.scene.render.engine = "CYCLES"
        except TypeError:
            self.remove()
            raise
        settings: Any = self.scene.cycles
        settings.device, settings.samples = "CPU", _RAY_SAMPLES if casts_rays else 1
        settings.use_adaptive_sampling = settings.use_denoising = False
        self.scene.frame_current, self.scene.frame_subframe = user.frame_current, user.frame_subframe

    def remove(self) -> None:
        """Remove the scene."""
        with contextlib.suppress(ReferenceError):
            bpy.data.scenes.remove(self.scene)

    def bake(
        self,
        material: bpy.types.Material,
        kind: Map,
        meshes: Sequence[BakeMesh],
        size: tuple[int, int],
        *,
        mutes_mapping: bool,
    ) -> tuple[Pixels, npt.NDArray[np.bool_]]:
        """Bake one map; return linear pixels (H, W, 3), the lowest row first, and which of them the faces cover."""
        image = bpy.data.images.new(_NAME, *size, alpha=True, float_buffer=True)
        try:
            image.colorspace_settings.name = "Non-Color"
            image.pixels.foreach_set(np.full(size[0] * size[1] * 4, _EMPTY, np.float32))
            copy = EmissionCopy(material, kind, image, mutes_mapping=mutes_mapping)
            try:
                for mesh in meshes:
                    self._bake(copy.material, kind, mesh)
            finally:
                copy.remove()
            pixels = np.empty((size[1], size[0], 4), np.float32)
            image.pixels.foreach_get(pixels.reshape(-1))
        finally:
            bpy.data.images.remove(image)
        return pixels[..., :3], pixels[..., 0] > _EMPTY / 2

    def _bake(self, material: bpy.types.Material, kind: Map, made: BakeMesh) -> None:
        with self._shown(made) as obj:
            made.mesh.materials[len(made.mesh.materials) - 1] = material
            layer = self.scene.view_layers[0]
            layer.update()
            layer.objects.active = obj
            obj.select_set(True, view_layer=layer)
            override: Any = {
                "scene": self.scene, "view_layer": layer, "object": obj, "active_object": obj,
                "selected_objects": [obj], "selected_editable_objects": [obj],
            }  # fmt: skip
            with self._context.temp_override(**override):
                bpy.ops.object.bake(
                    type="NORMAL" if kind is Map.NORMAL else "EMIT",
                    target="IMAGE_TEXTURES", save_mode="INTERNAL", margin=0, use_clear=False, uv_layer=made.uv_map,
                    use_selected_to_active=False, use_cage=False, normal_space="TANGENT",
                    normal_r="POS_X", normal_g="POS_Y", normal_b="POS_Z",
                )  # fmt: skip

    @contextlib.contextmanager
    def _shown(self, made: BakeMesh) -> Iterator[bpy.types.Object]:
        """Show a mesh in the scene within a ``with`` block."""
        obj = bpy.data.objects.new(_NAME, made.mesh)
        try:
            if made.source is not None:
                obj.matrix_world = made.matrix
                obj.color, obj.pass_index = made.source.color, made.source.pass_index
            self.scene.collection.objects.link(obj)
            yield obj
        finally:
            made.mesh.materials[len(made.mesh.materials) - 1] = None
            bpy.data.objects.remove(obj)
