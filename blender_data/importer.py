"""Scene -> Blender; everything or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from ..io_formats import files, point_cache
from ..io_formats.errors import MeshferryError
from ..io_formats.scene import Clip, FloatArray, Layer, Mesh, Node, Scene, VertexTrack
from ..io_formats.vertices import drop_repeated_corners, shares_mirrored_vertices, weld
from . import compat, meshes, names, objects, shape_keys
from .actions import ClipActions, ClipTiming
from .import_options import AUTOMATIC_NORMALS_LIMIT
from .materials import MaterialFinder

_FAR_FROM_ANY_RATE = 1e-3


@dataclass
class ImportResult:
    """What an import made, and what to tell the user."""

    collection: bpy.types.Collection
    objects: list[bpy.types.Object]
    triangles: int
    warnings: list[str] = field(default_factory=list)


def import_scene(
    context: bpy.types.Context, scene: Scene, options: Mapping[str, Any], source_path: str = ""
) -> ImportResult:
    """Make a collection with the objects, materials and actions of a scene, and link it to Blender's.

    Parameters
    ----------
    options:
        A value for each of ``import_options.IMPORT_OPTIONS`` (see ``io_formats.options.resolve``).
    source_path:
        The file, remembered on the collection; mesh caches are written beside it.

    Raises
    ------
    MeshferryError
        The material library or a mesh cache cannot be opened. Whatever is raised, no data block stays.
    """
    job = _Import(context, scene, options, source_path)
    try:
        return job.run()
    except BaseException:
        job.undo()
        raise


class _Import:
    """One import: the data blocks it makes and what it has to say."""

    def __init__(self, context: bpy.types.Context, scene: Scene, options: Mapping[str, Any], source_path: str) -> None:
        self.context = context
        self.scene = scene
        self.options = options
        self.source_path = source_path
        self.warnings = list(scene.warnings)
        standing = context.scene
        render = standing.render
        self.frames_before = (render.fps, render.fps_base, standing.frame_start, standing.frame_end)
        self.made: list[bpy.types.ID] = []
        self.caches: list[Path] = []
        self.objects: list[bpy.types.Object] = []
        self.materials = MaterialFinder(
            use_existing=bool(options["use_existing_materials"]), library=str(options["material_library"])
        )
        self.tracks: dict[int, list[tuple[int, VertexTrack]]] = {}
        for number, clip in enumerate(scene.clips):
            for track in clip.vertices:
                mesh = scene.nodes[track.target].mesh
                if mesh is not None:
                    whole = VertexTrack(track.target, _with_resting_points(track.points, mesh.points))
                    self.tracks.setdefault(track.target, []).append((number, whole))

    def run(self) -> ImportResult:
        self.materials.link_from_library(
            {name for node in self.scene.nodes if node.mesh for name in node.mesh.materials if name}
        )
        collection = self.keep(bpy.data.collections.new(names.fit(self.scene.name)))
        collection.meshferry.from_file = True
        collection.meshferry.source_path = self.source_path
        collection.meshferry.source_name = str(self.scene.properties.get("source_name", ""))
        for index, node in enumerate(self.scene.nodes):
            self.objects.append(self.object(index, node))
        for made, node in zip(self.objects, self.scene.nodes, strict=True):
            if node.parent >= 0:
                made.parent = self.objects[node.parent]
        self.clips()
        triangles = sum(len(made.data.polygons) for made in self.objects if made.data)
        # Linked last: Blender looks at an object again and again once it is in the scene.
        for made in self.objects:
            collection.objects.link(made)
        self.context.scene.collection.children.link(collection)
        self.context.view_layer.update()
        return ImportResult(collection, self.objects, triangles, self.warnings)

    def warn_once(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def keep(self, block: Any) -> Any:
        """Note a data block as made by this import."""
        self.made.append(block)
        return block

    def undo(self) -> None:
        """Remove all that this import made, and give the scene its frame rate and range back."""
        scene = self.context.scene
        scene.render.fps, scene.render.fps_base, scene.frame_start, scene.frame_end = self.frames_before
        blocks = [*self.made, *self.materials.made]
        for made in self.objects:
            keys = getattr(made.data, "shape_keys", None)
            if keys is not None:
                blocks.append(keys)
        libraries = [block for block in blocks if isinstance(block, bpy.types.Library)]
        shapes = {block.as_pointer() for block in blocks if isinstance(block, bpy.types.Key)}
        bpy.data.batch_remove(
            [block for block in blocks if block not in libraries and block.as_pointer() not in shapes]
        )
        for library in libraries:
            bpy.data.libraries.remove(library)
        for cache in self.caches:
            with contextlib.suppress(OSError):
                cache.unlink()

    # -- objects and meshes ---------------------------------------------------------------------

    def object(self, index: int, node: Node) -> bpy.types.Object:
        data = self.mesh(index, node, node.mesh) if node.mesh is not None else None
        return objects.build_object(node, data, self.keep)

    def mesh(self, index: int, node: Node, mesh: Mesh) -> bpy.types.Mesh:
        """Build a node's mesh; what is joined or dropped for Blender's sake is said."""
        if self.options["use_weld"]:
            mesh = self.weld(index, mesh)
        mesh, dropped = drop_repeated_corners(mesh)
        if dropped:
            self.warnings.append(f"{node.name}: {dropped} triangles without area were left out (a corner repeated)")
        if len(mesh.uvs) > meshes.MOST_UV_LAYERS:
            extra = len(mesh.uvs) - meshes.MOST_UV_LAYERS
            self.warnings.append(f"{node.name}: {extra} UV layers beyond Blender's 8 were left out")
        colors = meshes.COLOR_NAME if mesh.colors else ""
        found = [self.materials.find(name, colors) for name in mesh.materials]
        built = meshes.build_mesh(node.name, mesh, found, self.keep)
        self.normals(index, mesh, built)
        return built

    def weld(self, index: int, mesh: Mesh) -> Mesh:
        """Join split vertices; the tracks of the node follow.

        Where the file's vertices are shared by triangles that the UV map mirrors, their tangents tell
        on export only what the corners remember of them.
        """
        if shares_mirrored_vertices(mesh):
            ids = np.arange(len(mesh.points), dtype=np.int32).reshape(-1, 1)
            mesh = replace(mesh, custom=[*mesh.custom, Layer(meshes.FILE_VERTEX, ids)])
        tracks = [track for _, track in self.tracks.get(index, [])]
        welded, first = weld(mesh, [track.points for track in tracks])
        if welded is not mesh and tracks:
            numbered = self.tracks[index]
            self.tracks[index] = [(number, replace(track, points=track.points[:, first])) for number, track in numbered]
        return welded

    def normals(self, index: int, mesh: Mesh, built: bpy.types.Mesh) -> None:
        mode = self.options["normals"]
        if mode == "NONE" or mesh.normal is None:
            return
        exact = mode == "EXACT" or (mode == "AUTO" and len(mesh.corner_point) > AUTOMATIC_NORMALS_LIMIT)
        if exact and (index in self.tracks or mesh.shape_keys or mesh.joint_weights is not None):
            exact = False  # free normals stay put when a mesh deforms
        if exact and mode == "EXACT" and not compat.HAS_FREE_NORMALS:
            self.warn_once("This Blender has no exact normals (4.5 has); they were made editable ones")
        meshes.set_normals(built, mesh, exact=exact)

    # -- animation ------------------------------------------------------------------------------

    def clips(self) -> None:
        """Make actions, shape keys and caches of the scene's clips."""
        if self.options["use_file_frame_rate"] and self.scene.clips:
            self.check_rate(self.scene.clips[0])
        start = int(self.options["frame_start"])
        for number, clip in enumerate(self.scene.clips):
            timing = self.timing(clip, start)
            actions = ClipActions(clip, timing, self.action_name(clip))
            try:
                self.clip_tracks(number, clip, actions)
                actions.attach()
            finally:
                self.made += actions.actions
        if self.options["use_file_frame_rate"] and self.scene.clips:
            self.set_scene_rate(self.scene.clips[0], start)

    def timing(self, clip: Clip, start: int) -> ClipTiming:
        """Place a clip on the time line, at the rate that the scene has or is about to get."""
        timing = ClipTiming(clip, self.context.scene, start)
        if self.options["use_file_frame_rate"]:
            timing.step = self.scene.clips[0].fps / clip.fps
            timing.frames = start + np.arange(clip.frame_count, dtype=np.float64) * timing.step
        return timing

    def action_name(self, clip: Clip) -> str:
        plain = names.fit(clip.name)
        return plain if plain not in bpy.data.actions else names.fit(f"{clip.name} {self.scene.name}")

    def clip_tracks(self, number: int, clip: Clip, actions: ClipActions) -> None:
        if self.options["use_node_animation"]:
            for track in clip.transforms:
                if track.skeleton is None:
                    actions.add_transforms(self.objects[track.target], track)
                    objects.remember_rest(self.objects[track.target], self.scene.nodes[track.target])
        mode = self.options["vertex_animation"]
        for index in dict.fromkeys(track.target for track in clip.vertices):
            owner = self.objects[index]
            for of_clip, moved in self.tracks.get(index, []):
                if of_clip != number or owner.data is None:
                    continue
                owner.meshferry.rest_is_basis = mode != "NONE"
                if mode == "SHAPE_KEYS":
                    shape_keys.add_shape_keys(owner, actions, moved)
                elif mode == "CACHE":
                    self.cache(owner, clip, actions.timing, moved)

    def cache(self, owner: bpy.types.Object, clip: Clip, timing: ClipTiming, track: VertexTrack) -> None:
        """Write a point cache beside the source file and play it."""
        if not self.source_path:
            raise MeshferryError("A mesh cache needs a file to lie beside")
        if any(modifier.type == "MESH_CACHE" for modifier in owner.modifiers):
            self.warnings.append(
                f"{owner.name}: only one vertex animation can play from a cache; '{clip.name}' is left out"
            )
            return
        source = Path(self.source_path)
        label = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in f"{owner.name}-{clip.name}")
        path = source.with_name(f"{source.name}.{label}.pc2")
        existed = path.exists()
        files.replace_file(path, point_cache.encode(track.points))
        if not existed:
            self.caches.append(path)
        shape_keys.add_mesh_cache(owner, str(path), float(timing.frames[0]), timing.step)

    def check_rate(self, clip: Clip) -> None:
        if not 0.01 <= clip.fps <= 32767:
            raise MeshferryError(
                f"Animation '{clip.name}' has {clip.fps:g} frames a second, which a Blender scene cannot have"
            )

    def set_scene_rate(self, clip: Clip, start: int) -> None:
        """Give the scene the rate and range of a clip."""
        render = self.context.scene.render
        whole = max(1, round(clip.fps))
        if abs(clip.fps - whole) > _FAR_FROM_ANY_RATE:
            whole += clip.fps > whole
        render.fps = whole
        render.fps_base = whole / clip.fps
        self.context.scene.frame_start = start
        self.context.scene.frame_end = max(start, start + clip.frame_count - 1)


def _with_resting_points(moving: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the frames of all points, (F, P, 3), given those of the first that move, (F, K, 3)."""
    if moving.shape[1] == len(rest):
        return moving
    still = np.broadcast_to(rest[moving.shape[1] :], (len(moving), len(rest) - moving.shape[1], 3))
    return np.concatenate((moving, still), axis=1)
