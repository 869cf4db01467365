"""Scene -> Blender; everything or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats import api, registry
from ...io_formats.binary import point_cache
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.scene import Clip, FloatArray, Layer, Mesh, Node, Role, Scene, Skeleton, VertexTrack
from ...io_formats.geometry.normals import share_backwards
from ...io_formats.geometry.vertices import drop_repeated_corners, shares_mirrored_vertices, weld
from .. import compat, names, quantised_values, surfaces
from ..properties import store_fields
from ..steps import Step, Steps, finish, scaled
from ..time_line import TimeLine
from . import armature_matching, armatures, helper_bones, hull_faces, meshes, objects, shape_keys, skins
from .actions import ClipActions, ClipTiming, PlayedBefore
from .armatures import BoneMap
from .import_options import AUTOMATIC_NORMALS_LIMIT
from .materials import MaterialFinder
from .selection import Selection

_FAR_FROM_ANY_RATE = 1e-3


@dataclass
class ImportResult:
    """What an import made, and what to tell the user."""

    collection: bpy.types.Collection
    objects: list[bpy.types.Object]
    triangles: int
    warnings: list[str] = field(default_factory=list)
    armatures: list[bpy.types.Object] = field(default_factory=list)
    """Armatures that the file's bones are in: new ones, which are among ``objects``, or the one it was given."""
    bones: int = 0
    """New bones."""
    actions: int = 0
    undo: Callable[[], None] = lambda: None
    """Removes all data blocks and files that the import made, and restores what it changed."""


def import_scene(
    context: bpy.types.Context,
    scene: Scene,
    options: Mapping[str, Any],
    source_path: str = "",
    armature: bpy.types.Object | None = None,
) -> ImportResult:
    """Make a collection with the objects, materials and actions of a scene, and link it to Blender's.

    Parameters
    ----------
    options:
        A value for each of ``import_options.IMPORT_OPTIONS`` (see ``io_formats.core.options.resolve``).
    source_path:
        The file, remembered on the collection; mesh caches are written beside it.
    armature:
        Takes the weights and animations of the scene's skeleton, by the names of its bones; None: each skeleton
        becomes an armature of its own. See :func:`armature_matching.choose_for_scene`.

    Raises
    ------
    MeshferryError
        The material library or a mesh cache cannot be opened. Whatever is raised, no data block stays.
    """
    return finish(import_steps(context, scene, options, source_path, armature))


def import_steps(
    context: bpy.types.Context,
    scene: Scene,
    options: Mapping[str, Any],
    source_path: str = "",
    armature: bpy.types.Object | None = None,
) -> Steps[ImportResult]:
    """Do the same as :func:`import_scene` in steps; nothing is in the user's scene before the last of them."""
    job = _Import(context, scene, options, source_path, armature)
    try:
        return (yield from job.steps())
    except BaseException:
        job.undo()
        raise


class _Import:
    """One import: the data blocks it makes and what it has to say."""

    def __init__(
        self,
        context: bpy.types.Context,
        scene: Scene,
        options: Mapping[str, Any],
        source_path: str,
        armature: bpy.types.Object | None,
    ) -> None:
        self.context = context
        self.armature = armature
        self.scene = scene
        self.options = options
        self.source_path = source_path
        self.warnings = list(scene.warnings)
        self.frames_before = TimeLine(context.scene)
        self.made: list[bpy.types.ID] = []
        self.caches: list[tuple[Path, bytes | None]] = []
        """Mesh caches that were written, and the content of the file that each replaced."""
        self.objects: list[bpy.types.Object] = []
        """One a node."""
        self.armatures: list[bpy.types.Object] = []
        """Those made here."""
        self.bones: list[BoneMap | None] = []
        """One a skeleton; None where bones are left out."""
        self.selection = Selection(context)
        self.played = PlayedBefore(armature)
        self.materials = MaterialFinder(
            use_existing=bool(options["use_existing_materials"]),
            library=str(options["material_library"]),
            given=scene.materials,
            folder=Path(source_path).absolute().parent if source_path else None,
            warn=self.warn_once,
        )
        self.tracks: dict[int, list[tuple[int, VertexTrack]]] = {}
        for number, clip in enumerate(scene.clips):
            for track in clip.vertices:
                mesh = scene.nodes[track.target].mesh
                if mesh is not None:
                    whole = VertexTrack(track.target, _with_resting_points(track.points, mesh.points))
                    self.tracks.setdefault(track.target, []).append((number, whole))

    def steps(self) -> Steps[ImportResult]:
        yield Step("Building armatures", 0.0)
        self.materials.link_from_library(
            {name for node in self.scene.nodes if node.mesh for name in node.mesh.materials if name}
        )
        self.skeletons()
        for index, node in enumerate(self.scene.nodes):
            yield Step("Building objects", 0.7 * index / len(self.scene.nodes))
            self.objects.append(self.object(index, node))
        helper_bones.show_used(self.scene, self.bones)
        helper_bones.hide(self.scene, self.bones, self.armatures)
        for made, node in zip(self.objects, self.scene.nodes, strict=True):
            if node.parent >= 0:
                made.parent = self.objects[node.parent]
            objects.set_level(made, node, self.objects)
            objects.set_role(made, node, self.objects)
        if self.has_placed_models():
            objects.point_to_parts(self.scene.nodes, self.objects)
        actions = yield from scaled(self.clips(), 0.7, 1.0)
        triangles = sum(
            len(made.data.polygons) for made in self.objects if made.data and made.meshferry.role == "RENDER"
        )
        return ImportResult(
            self.link(),
            [*self.armatures, *self.objects],
            triangles,
            self.warnings,
            list(dict.fromkeys(found.armature for found in self.bones if found is not None)),
            sum(len(made.data.bones) for made in self.armatures),
            actions,
            self.undo,
        )

    def link(self) -> bpy.types.Collection:
        """Put what was made into a collection in the scene; last, since Blender looks at objects there all the time.

        Animations that went onto an armature need none; a collection without objects would only be in the way.
        """
        if self.scene.skeletons and not self.objects and not self.armatures:
            homes = self.armature.users_collection if self.armature is not None else ()
            return next(iter(homes), self.context.scene.collection)
        collection: bpy.types.Collection = self.keep(bpy.data.collections.new(names.fit(self.scene.name)))
        collection.meshferry.from_file = True
        store_fields(collection.meshferry, self.scene)
        collection.meshferry.source_path = self.source_path
        hidden = objects.link_levels(collection, self.armatures, self.objects, self.keep, self.scene.level_names)
        self.context.scene.collection.children.link(collection)
        self.context.view_layer.update()
        objects.hide_levels(self.context.view_layer, hidden)
        return collection

    def warn_once(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def keep(self, block: Any) -> Any:
        """Note a data block as made by this import."""
        self.made.append(block)
        return block

    def undo(self) -> None:
        """Remove all that this import made; frame rate, range, selection and mode are again what they were."""
        self.selection.restore()
        self.frames_before.restore(self.context.scene)
        self.played.restore()
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
        for path, replaced in self.caches:
            with contextlib.suppress(OSError, MeshferryError):
                if replaced is None:
                    path.unlink()
                else:
                    api.replace_file(path, replaced)

    # -- armatures ------------------------------------------------------------------------------

    def skeletons(self) -> None:
        """Make the armatures, or find the bones of the one that was given."""
        for number, skeleton in enumerate(self.scene.skeletons):
            if self.options["armature"] == "NONE":
                self.bones.append(None)
            elif (there := self.armature_for(skeleton)) is not None:
                self.bones.append(armature_matching.match(there, skeleton, self.warn_once))
                if there == self.armature:
                    self.played.refer(skeleton)
            elif skeleton.joints:
                self.bones.append(self.new_armature(number, skeleton))
                self.armatures.append(self.bones[-1].armature)
            else:
                self.bones.append(None)

    def armature_for(self, skeleton: Skeleton) -> bpy.types.Object | None:
        """Return the armature that is there for a skeleton already; None: it gets one of its own.

        The one that was given was chosen for the first skeleton. Further ones of bound meshes, in a file of several
        models, take it, or one made here, only where all their joints lie in it.
        """
        mode = self.options["armature"]
        if mode != "AUTO" or not armature_matching.is_bound(self.scene):
            return self.armature
        given = [] if self.armature is None else [self.armature]
        return armature_matching.alike(skeleton, [*given, *self.armatures])

    def new_armature(self, number: int, skeleton: Skeleton) -> BoneMap:
        name = skeleton.name or self.scene.name
        label = f"{name} Armature" if any(node.name == name for node in self.scene.nodes) else name
        return armatures.build(
            self.context,
            label,
            skeleton,
            helper_bones.size_of([node for node in self.scene.nodes if node.skeleton == number]),
            to_children=self.options["bone_direction"] == "CHILDREN",
            keep=self.keep,
        )

    def bones_of(self, node: Node) -> BoneMap | None:
        """Return the bones of a node; shapes hang on the armature of what they are the shapes of."""
        owner = node.shape_of if node.skeleton is None else None
        skeleton = node.skeleton if owner is None else self.scene.nodes[owner].skeleton
        return None if skeleton is None else self.bones[skeleton]

    def has_placed_models(self) -> bool:
        name = self.scene.format
        return any(known.name == name and known.capabilities.placed_models for known in registry.FORMATS)

    # -- objects and meshes ---------------------------------------------------------------------

    def object(self, index: int, node: Node) -> bpy.types.Object:
        if node.mesh is None:
            return objects.build_object(node, None, self.keep)
        bones = self.bones_of(node)
        weights = None
        if bones is not None and node.skeleton is not None and node.role is Role.RENDER:
            joints = self.scene.skeletons[node.skeleton].joints
            of_joint = [bone or joint.name for bone, joint in zip(bones.bones, joints, strict=True)]
            weights = meshes.GroupWeights.of(node.mesh, names.fit_all(of_joint, "Bone"))
        mesh, data = self.mesh(index, node, node.mesh, weights)
        if node.role is Role.HULL and not mesh.triangle_count:
            hull_faces.add(data)
        made = objects.build_object(node, data, self.keep)
        if bones is not None:
            objects.hang_on_armature(made, bones.armature, weights.names if weights else ())
            if node.skin is not None and not self.is_bound_like_its_finest(node):
                skins.write(made, node.skin)
        shapes = mesh.shape_keys if self.options["use_shape_keys"] else []
        key_names = shape_keys.add_file_shapes(made, shapes)
        surfaces.write(made, mesh.surfaces, [layer.name for layer in mesh.uvs], key_names)
        return made

    def is_bound_like_its_finest(self, node: Node) -> bool:
        """Tell whether a coarser level shares the binding of its finest one, where it is kept once for all."""
        finest = node.lod_of
        return finest is not None and self.scene.nodes[finest].skin is node.skin

    def mesh(
        self, index: int, node: Node, mesh: Mesh, weights: meshes.GroupWeights | None
    ) -> tuple[Mesh, bpy.types.Mesh]:
        """Build a node's mesh; what is joined or dropped for Blender's sake is said."""
        if self.options["use_weld"] and node.role is not Role.HULL:
            mesh, first = self.weld(index, mesh)
            if weights is not None:
                weights = replace(weights, groups=weights.groups[first], weights=weights.weights[first])
        mesh, dropped = drop_repeated_corners(mesh)
        if dropped:
            self.warnings.append(f"{node.name}: {dropped} triangles without area were left out (a corner repeated)")
        if len(mesh.uvs) > meshes.MOST_UV_LAYERS:
            extra = len(mesh.uvs) - meshes.MOST_UV_LAYERS
            self.warnings.append(f"{node.name}: {extra} UV layers beyond Blender's 8 were left out")
        colors = meshes.COLOR_NAME if mesh.colors else ""
        # The one slot of a mesh that knows of no materials would only have to be filled.
        materials = mesh.materials if len(mesh.materials) > 1 or any(mesh.materials) else []
        found = [self.materials.find(name, colors) for name in materials]
        built = meshes.build_mesh(node.name, mesh, found, self.keep, weights)
        quantised_values.write(built, mesh)
        quantised_values.write_colors(built, mesh)
        self.normals(index, mesh, built, is_skinned=weights is not None)
        return mesh, built

    def weld(self, index: int, mesh: Mesh) -> tuple[Mesh, npt.NDArray[np.intp]]:
        """Join split vertices; the tracks of the node follow. Returns also of which old point each new one is made.

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
        return welded, first

    def normals(self, index: int, mesh: Mesh, built: bpy.types.Mesh, *, is_skinned: bool) -> None:
        mode = self.options["normals"]
        if mode == "NONE" or mesh.normal is None:
            return
        exact = mode == "EXACT" or (mode == "AUTO" and len(mesh.corner_point) > AUTOMATIC_NORMALS_LIMIT)
        has_shapes = bool(mesh.shape_keys) and self.options["use_shape_keys"]
        if exact and (index in self.tracks or has_shapes or is_skinned):
            exact = False  # free normals stay put when a mesh deforms
        if exact and mode == "EXACT" and not compat.HAS_FREE_NORMALS:
            self.warn_once("This Blender has no exact normals (4.5 has); they were made editable ones")
        meshes.set_normals(built, mesh, exact=exact)
        if exact and compat.HAS_FREE_NORMALS:
            built.meshferry.backward_normals = share_backwards(mesh)

    # -- animation ------------------------------------------------------------------------------

    def clips(self) -> Steps[int]:
        """Make actions, shape keys and caches of the scene's clips; return the number of actions."""
        leading = self.scene.clips[0] if self.scene.clips else None
        if self.options["use_file_frame_rate"] and leading:
            self.check_rate(leading)
        start = int(self.options["frame_start"])
        made = 0
        for number, clip in enumerate(self.scene.clips):
            yield Step("Building actions", number / len(self.scene.clips))
            timing = self.timing(clip, start)
            actions = ClipActions(clip, timing, self.action_name(clip), self.keep)
            self.clip_tracks(number, clip, actions)
            actions.attach(self.played.make_way(clip) if number == 0 else ())
            made += len(actions.actions)
        if self.options["use_file_frame_rate"] and leading:
            self.set_scene_rate(leading, start)
        return made

    def timing(self, clip: Clip, start: int) -> ClipTiming:
        """Place a clip on the time line, at the rate that the scene has or is about to get."""
        timing = ClipTiming(clip, self.context.scene, start)
        leading = self.scene.clips[0].fps
        if self.options["use_file_frame_rate"] and leading > 0 and clip.fps > 0:
            timing.step = leading / clip.fps
            timing.frames = start + np.arange(clip.frame_count, dtype=np.float64) * timing.step
        return timing

    def action_name(self, clip: Clip) -> str:
        plain = names.fit(clip.name)
        if plain not in bpy.data.actions or clip.name == self.scene.name:  # a second import: Blender numbers it
            return plain
        return names.fit(f"{clip.name} {self.scene.name}")

    def clip_tracks(self, number: int, clip: Clip, actions: ClipActions) -> None:
        if self.options["use_joint_animation"]:
            self.joint_tracks(clip, actions)
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

    def joint_tracks(self, clip: Clip, actions: ClipActions) -> None:
        """Key the bones that a clip moves."""
        for number, bones in enumerate(self.bones):
            tracks = [track for track in clip.transforms if track.skeleton == number]
            if bones is None or not tracks:
                continue
            if not clip.frame_count:
                self.warn_once(f"Animation '{clip.name}' has no frames")
            self.played.note(bones, tracks)
            sheared = actions.add_joints(bones, tracks)
            helper_bones.hide_scaled(bones.armature, actions.first_scales)
            silenced = self.played.no_longer_turned()
            if silenced:
                self.warn_once(
                    f"'{bones.armature.name}': quaternions turn {armature_matching.named(silenced)} now; Euler angles "
                    "or axes in its other actions have no effect until Rotation Mode is set back"
                )
            if sheared:
                self.warnings.append(
                    f"Animation '{clip.name}' shears {armature_matching.named(sheared)} by unequal scales of the "
                    "bones above, which Blender's bones cannot show; they take the nearest pose"
                )

    def cache(self, owner: bpy.types.Object, clip: Clip, timing: ClipTiming, track: VertexTrack) -> None:
        """Write a point cache beside the source file and play it."""
        if not self.source_path:
            raise MeshferryError("A mesh cache is written beside the imported file, and there is none")
        if any(modifier.type == "MESH_CACHE" for modifier in owner.modifiers):
            self.warnings.append(
                f"{owner.name}: only one vertex animation can play from a cache; '{clip.name}' is left out"
            )
            return
        source = Path(self.source_path)
        label = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in f"{owner.name}-{clip.name}")
        path = source.with_name(f"{source.name}.{label}.pc2")
        replaced = path.read_bytes() if path.exists() else None
        api.replace_file(path, point_cache.encode(track.points))
        self.caches.append((path, replaced))
        shape_keys.add_mesh_cache(owner, str(path), float(timing.frames[0]), timing.step)

    def check_rate(self, clip: Clip) -> None:
        if clip.fps and not 0.01 <= clip.fps <= 32767:
            raise MeshferryError(
                f"Animation '{clip.name}' has {clip.fps:g} frames a second, which a Blender scene cannot have"
            )

    def set_scene_rate(self, clip: Clip, start: int) -> None:
        """Give the scene the rate of a clip, if the file says it, and its range."""
        if clip.fps:
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
