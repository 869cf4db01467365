"""Meshes at rest: undeformed by armatures, in their Basis shape, with weights, bindings, shape keys and surfaces.

If the format lacks bones or shape keys, their current effect is applied to the mesh.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.messages import Report, Text, counted, joined, listed, of_kind
from ....io_formats.core.scene import FloatArray, Mesh, ShapeKey, Skin, Surface
from ... import arrays, scene_state
from ...armature_modifiers import armature_modifiers, deforming_parent
from ...export_options import ExportOptions
from ...mesh_data import surfaces, vertex_weights
from ...mesh_data.element_selection import Triangulation
from ...properties import stored_fields
from ...rigging import bones as rigging_bones
from ...rigging import joint_weights
from ...rigging.armature_reading import ReadSkeleton
from .mesh_reading import MeshReader, report_without_faces, shows_surface
from .skin_comparison import SkinnedMesh, is_deformed_further, report_differences


def shape_keys(obj: bpy.types.Object) -> list[bpy.types.ShapeKey]:
    """Return the shape keys of an object except its Basis."""
    keys = getattr(obj.data, "shape_keys", None)
    return [key for key in keys.key_blocks if key != keys.reference_key] if keys is not None else []


def is_reshaped(obj: bpy.types.Object) -> bool:
    """Return whether the values of shape keys change the shape of an object."""
    keys = shape_keys(obj)
    if not keys:
        return False
    if obj.show_only_shape_key or not obj.data.shape_keys.use_relative:
        return True
    return any(key.value and not key.mute for key in keys)


def show_basis(obj: bpy.types.Object, data: bpy.types.Mesh) -> None:
    """Move the points of a copied mesh to the Basis shape key, from which the original's points may differ."""
    keys = getattr(obj.data, "shape_keys", None)
    if keys is None:
        return
    points = arrays.read(keys.reference_key.points, "co", 3)
    if not np.array_equal(points, arrays.points_of(data)):
        set_points(data, points)


def set_points(data: bpy.types.Mesh, points: FloatArray) -> None:
    """Move the points of a mesh."""
    data.attributes["position"].data.foreach_set("vector", arrays.flat(points))
    data.update()


def stored_shapes(obj: bpy.types.Object) -> Iterator[tuple[bpy.types.ShapeKey, FloatArray]]:
    """Yield each shape key, including muted ones, and the points (P, 3) of the mesh with only this key applied.

    If a vertex group masks the key, it is applied.
    """
    keys = shape_keys(obj)
    basis = arrays.read(obj.data.shape_keys.reference_key.points, "co", 3)
    masks: dict[str, FloatArray] = {}
    if masked := {key.vertex_group for key in keys} - {""}:
        weights = joint_weights.read(obj, masked)
        masks = dict(zip(weights.joints, weights.values.T, strict=True))
    for key in keys:
        points = arrays.read(key.points, "co", 3)
        mask = masks.get(key.vertex_group)
        yield key, points if mask is None else (basis + mask[:, None] * (points - basis)).astype(np.float32)


def shown_alone(context: bpy.types.Context, obj: bpy.types.Object) -> Iterator[bpy.types.ShapeKey]:
    """Show and yield the shape keys of an object one at a time."""
    keys = shape_keys(obj)
    shown = ((obj, "show_only_shape_key"), (obj, "active_shape_key_index"), *((key, "mute") for key in keys))
    with scene_state.restored(shown):
        obj.show_only_shape_key = True
        for key in keys:
            key.mute = False  # a muted key would show the Basis
            obj.active_shape_key_index = obj.data.shape_keys.key_blocks.find(key.name)
            context.view_layer.update()
            yield key


class RestMeshes:
    """Read the meshes of an export without a node tree."""

    def __init__(
        self, context: bpy.types.Context, options: ExportOptions, capabilities: Capabilities, report: Report
    ) -> None:
        self.context = context
        self.capabilities = capabilities
        self.undeforming: dict[str, dict[str, None]] = {}
        """Names of exported bones that have weights although their *Deform* is off, by armature."""
        self.use_modifiers = options.use_modifiers
        self.use_keys = options.use_shape_keys and capabilities.shape_keys
        self.with_bones = capabilities.skeletons
        """Whether the format has bones. If not, meshes are exported as the armatures deform them."""
        self.report = report
        self.deformed_further: set[bpy.types.Object] = set()
        self.skinned: list[SkinnedMesh] = []
        """The skinned meshes of these objects."""
        self.reader = MeshReader(context.evaluated_depsgraph_get(), options, capabilities, report)

    def is_plain(self, obj: bpy.types.Object) -> bool:
        """Return whether the object's own mesh data is its rest mesh, so that no evaluation is needed."""
        if obj.type != "MESH":
            return False
        if not self.use_modifiers:
            return True
        if any(m.show_viewport and not (self.with_bones and m.type == "ARMATURE") for m in obj.modifiers):
            return False
        if deforming_parent(obj) not in {"", *(("ARMATURE",) if self.with_bones else ())}:
            return False
        return self.use_keys or obj.meshferry.rest_is_basis or not is_reshaped(obj)

    @contextlib.contextmanager
    def at_rest(self, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
        """Temporarily show objects at rest, if they must be evaluated.

        After the ``with`` block, findings about all of them are reported.
        """
        objects = list(objects)
        self.deformed_further = set(filter(is_deformed_further, objects))
        evaluated = [obj for obj in objects if not self.is_plain(obj)]
        pinned = [obj for obj in evaluated if self.use_keys or obj.meshferry.rest_is_basis]
        bound = evaluated if self.with_bones else []
        with scene_state.changed(self.context, [*scene_state.undeformed(bound), *scene_state.resting(pinned)]):
            self.reader.depsgraph = self.context.evaluated_depsgraph_get()
            yield
        report_differences(self.context, self.skinned, self.report)
        for armature, bones in self.undeforming.items():
            self.report.change(
                "weights-of-undeforming-bones",
                "{} weights although Deform is off in '{}': {}; the file stores these weights, but poses in Blender do "
                "not show their effect",
                counted(len(bones), "bone has", "bones have"),
                armature,
                listed(of_kind("bone", list(bones))),
            )

    def read(self, obj: bpy.types.Object, read: ReadSkeleton | None) -> Mesh | None:
        """Return the mesh of an object in its own space, or None if it has no visible mesh."""
        plain = self.is_plain(obj)
        seen = obj if plain else obj.evaluated_get(self.reader.depsgraph)
        if not shows_surface(seen):
            return None
        with arrays.mesh_of(seen) as data:
            if data is None or not len(data.polygons):
                return self._without_faces(obj, seen, data)
            keys = shape_keys(obj) if self.use_keys else []
            _report_relative_keys(obj, keys, self.report)
            if plain:
                show_basis(obj, data)
            cut = Triangulation.of(data)
            mesh = self.reader.convert(obj, seen, data, cut)
            if keys and plain:
                mesh.shape_keys = self._plain_shapes(obj, data, mesh, cut)
            if read is not None:
                self._read_weights(obj, seen, data, mesh, read)
        if keys and not plain:
            mesh.shape_keys = self._evaluated_shapes(obj, mesh, cut)
        mesh.surfaces = self._surfaces(obj, mesh)
        if isinstance(obj.data, bpy.types.Mesh):
            mesh.symbols = json.loads(obj.data.meshferry.symbols or "{}")
        return mesh

    def _without_faces(self, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh | None) -> Mesh | None:
        """Report an object without faces.

        Return an empty mesh if the object was imported without faces, otherwise None.
        """
        if data is None:
            return None
        report_without_faces(self.report, obj, seen, data)
        if not (len(obj.meshferry.surfaces) or any(c.meshferry.from_file for c in obj.users_collection)):
            return None
        mesh = Mesh(np.empty((0, 3), np.float32), np.empty(0, np.int32), np.empty(0, np.int32))
        mesh.surfaces = surfaces.read(obj, [], [])
        mesh.materials = [surface.name for surface in mesh.surfaces]
        return mesh

    # -- weights --------------------------------------------------------------------------------

    def _read_weights(
        self, obj: bpy.types.Object, seen: bpy.types.Object, data: bpy.types.Mesh, mesh: Mesh, read: ReadSkeleton
    ) -> None:
        """Read the bone weights of each point into ``mesh``; this destroys ``data``."""
        if not self.capabilities.influences:
            return
        wanted = rigging_bones.exported_bones(read.obj, self.capabilities)
        joint_of = {name: joint for name, joint in read.joint_of.items() if name in wanted}
        _report_other_deformations(obj, read, self.report)
        table = np.array([joint_of.get(group.name, -1) for group in seen.vertex_groups], np.int32)
        if not (table >= 0).any():
            self.report.loss(
                "groups-without-bones",
                "none of its vertex groups is named like a bone of '{}' that deforms; it was exported without weights",
                read.obj.name,
                item=obj.name,
            )
            return
        _strip(data)
        counts, groups, weights = vertex_weights.read(data)
        mesh.joint_indices, mesh.joint_weights, cut = vertex_weights.strongest(
            counts, groups, weights, table, self.capabilities.influences
        )
        self._note_undeforming(mesh, read)
        if obj in self.deformed_further:
            self.skinned.append(SkinnedMesh(obj, mesh, read))
        if cut:
            self.report.loss(
                "too-many-weights",
                "{} more than {} weights; the strongest were kept",
                counted(cut, "vertex has", "vertices have"),
                self.capabilities.influences,
                item=obj.name,
                is_fixable=True,
                names=(obj.name,),
            )

    def _note_undeforming(self, mesh: Mesh, read: ReadSkeleton) -> None:
        """Record the bones that have weights of a mesh but do not deform in Blender."""
        off = {number: name for name, number in read.joint_of.items() if not read.obj.data.bones[name].use_deform}
        if not off or mesh.joint_indices is None or mesh.joint_weights is None:
            return
        used = np.unique(mesh.joint_indices[mesh.joint_weights > 0]).tolist()
        found = {off[number]: None for number in used if number in off}
        if found:
            self.undeforming.setdefault(read.obj.name, {}).update(found)

    # -- shape keys -----------------------------------------------------------------------------

    def _plain_shapes(
        self, obj: bpy.types.Object, data: bpy.types.Mesh, mesh: Mesh, cut: Triangulation
    ) -> list[ShapeKey]:
        """Read shape keys as stored.

        ``data`` is a copy of the mesh, into which the points of one shape after the other are written.
        """
        shapes = []
        for key, points in stored_shapes(obj):
            set_points(data, points)
            shapes.append(self.reader.convert_shape(key.name, data, mesh, cut))
        return shapes

    def _evaluated_shapes(self, obj: bpy.types.Object, mesh: Mesh, cut: Triangulation) -> list[ShapeKey]:
        """Read shape keys with the object's modifiers applied; return none if modifiers change the topology."""
        shapes: list[ShapeKey] = []
        for key in shown_alone(self.context, obj):
            self.reader.depsgraph = self.context.evaluated_depsgraph_get()
            with arrays.mesh_of(obj.evaluated_get(self.reader.depsgraph)) as data:
                if data is None or not cut.fits(data, len(mesh.points)):
                    self.report.loss(
                        "shape-keys-left-out",
                        "its shape keys were left out, since its modifiers make other faces of '{}' than of its Basis; "
                        "apply the modifiers, or turn them off",
                        key.name,
                        item=obj.name,
                    )
                    return []
                shapes.append(self.reader.convert_shape(key.name, data, mesh, cut))
        return shapes

    # -- surfaces -------------------------------------------------------------------------------

    def _surfaces(self, obj: bpy.types.Object, mesh: Mesh) -> list[Surface]:
        """Return a surface for each of the mesh's materials; modifiers may have added some to the object's."""
        found = surfaces.read(obj, [layer.name for layer in mesh.uvs], [key.name for key in mesh.shape_keys])
        unused = [entry.name for entry in surfaces.unused(obj)] if self.capabilities.surfaces else []
        if unused:
            text = "surfaces of the list without a material slot were not exported: {}; use Match Material Slots"
            self.report.loss("surfaces-without-slots", text, listed(of_kind("layer", unused)), item=obj.name)
        return found[: len(mesh.materials)] + [Surface(name) for name in mesh.materials[len(found) :]]


def _report_other_deformations(obj: bpy.types.Object, read: ReadSkeleton, report: Report) -> None:
    """Report kinds of deformation that no format can hold."""
    report = report.about(obj.name)
    modifiers = armature_modifiers(obj)
    others = [modifier.object.name for modifier in modifiers[1:] if modifier.object != read.obj]
    if others:
        text = "'{}' deforms it in the file, but not {}"
        report.loss("other-armatures", text, read.obj.name, listed(of_kind("object", others), len(others)))
    bones = read.obj.data.bones
    of_groups = [bones[group.name] for group in obj.vertex_groups if group.name in bones]
    bendy = [bone.name for bone in of_groups if bone.bbone_segments > 1]
    if bendy:
        report.loss("bendy-bones", "bendy bones are straight in a file: {}", listed(of_kind("bone", bendy)))
    for modifier in modifiers[:1]:
        if not modifier.use_vertex_groups:
            text = (
                "Vertex Groups is off in its armature modifier, so Blender does not use the weights that are exported"
            )
            report.loss("armature-modifier-settings", text)
        ways = {
            Text("bone envelopes"): modifier.use_bone_envelopes,
            Text("the mask '{}'", modifier.vertex_group): bool(modifier.vertex_group),
            Text("Preserve Volume"): modifier.use_deform_preserve_volume,
        }
        used = joined([way for way, is_used in ways.items() if is_used], " and ")
        if used:
            text = "its armature modifier uses {}, which a file does not hold"
            report.loss("armature-modifier-settings", text, used)


def _report_relative_keys(obj: bpy.types.Object, keys: Iterable[bpy.types.ShapeKey], report: Report) -> None:
    """Report shape keys that are relative to another key in Blender; in a file they are relative to the Basis."""
    others = [key.name for key in keys if key.relative_key != obj.data.shape_keys.reference_key]
    if others and obj.data.shape_keys.use_relative:
        text = "in a file all shape keys are relative to the Basis, {} too; set Relative To to the Basis to see them so"
        report.loss("relative-shape-keys", text, listed(of_kind("layer", others)), item=obj.name)


def _strip(data: bpy.types.Mesh) -> None:
    """Remove all optional attributes from a temporary mesh, which makes reading its weights three times as fast."""
    for name in [attribute.name for attribute in data.attributes if not attribute.is_required]:
        attribute = data.attributes.get(name)
        if attribute is not None:
            data.attributes.remove(attribute)


Matrix4 = npt.NDArray[np.float64]

_SAME = 1e-5
"""Tolerance for matrices that count as equal, relative to their size: the rounding of single precision."""


def has_skin(obj: bpy.types.Object) -> bool:
    """Return whether the binding of the imported file is stored on an object."""
    return len(obj.meshferry.skin.joints) > 0


def read_skin(obj: bpy.types.Object, relative: Matrix4, space: Matrix4) -> Skin | None:
    """Return the binding stored with an object, or None.

    Parameters
    ----------
    relative:
        (4, 4) current matrix from the object's own space to that of the armature object. If it is unchanged since the
        import, the binding is exact; otherwise its bind shape matrix is changed accordingly. The binding in the file
        may have another unit, so the change is applied in the object's own space.
    space:
        (4, 4) from the space of the armature object to that of the exported joints: the armature's rotation and scale.
    """
    if not has_skin(obj):
        return None
    kept = obj.meshferry.skin
    bind_shape = _matrix(kept.bind_shape)
    given = _matrix(kept.given_matrix)
    if np.abs(relative - given).max() > _SAME * max(1.0, float(np.abs(given).max())):
        bind_shape = bind_shape @ np.linalg.pinv(given) @ relative
    inverse_bind = np.array([_matrix(joint.inverse_bind) for joint in kept.joints])
    positions = np.array([tuple(joint.position) for joint in kept.joints], np.float64)
    if not np.array_equal(space, np.identity(4)):
        bind_shape = space @ bind_shape
        inverse_bind = inverse_bind @ np.linalg.pinv(space)
        positions = positions @ space[:3, :3].T
    skin = Skin([joint.name for joint in kept.joints], inverse_bind, bind_shape, **stored_fields(kept, Skin))
    skin.turned = space if _is_turn(space) else None
    if kept.has_positions:
        skin.joint_positions = positions
        skin.alt_inverse_bind = np.array([_matrix(joint.alt_inverse_bind) for joint in kept.joints])
    return skin


def _is_turn(matrix: Matrix4) -> bool:
    """Return whether a matrix is a rotation about Z. Any other moves joints away from where a file binds them."""
    axes = matrix[:3, :3]
    is_rotation = np.abs(axes.T @ axes - np.identity(3)).max() < _SAME and np.linalg.det(axes) > 0
    return bool(is_rotation and np.abs(axes[2, :2]).max() < _SAME)


def _matrix(values: Iterable[float]) -> Matrix4:
    return np.array(tuple(values), np.float64).reshape(4, 4)
