"""Meshes at rest: undeformed by armatures, in their Basis shape, with weights, shape keys and surfaces.

If the format lacks bones or shape keys, their current effect is applied to the mesh.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator

import bpy
import numpy as np

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.messages import Fix, Report, Text, counted, joined, listed, of_kind
from ....io_formats.core.scene import Mesh, ShapeKey, Surface
from ... import arrays, scene_state
from ...armature_modifiers import armature_modifiers
from ...export_options import ExportOptions
from ...mesh_data import surfaces, vertex_weights
from ...mesh_data.element_selection import Triangulation
from ...rigging import bones as rigging_bones
from ...rigging.armature_reading import ReadSkeleton
from . import shape_reading
from .mesh_reading import MeshReader, is_part_of_family, report_without_faces


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
        self.reader = MeshReader(context.evaluated_depsgraph_get(), options, capabilities, report)

    def is_plain(self, obj: bpy.types.Object) -> bool:
        """Return whether the object's own mesh data is its rest mesh, so that no evaluation is needed."""
        if obj.type != "MESH":
            return False
        if not self.use_modifiers:
            return True
        if any(m.show_viewport and not (self.with_bones and m.type == "ARMATURE") for m in obj.modifiers):
            return False
        if not self.with_bones and obj.parent_type == "ARMATURE":  # this type of parent deforms without a modifier
            return False
        return self.use_keys or obj.meshferry.rest_is_basis or not shape_reading.is_reshaped(obj)

    @contextlib.contextmanager
    def at_rest(self, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
        """Temporarily show objects at rest, if they must be evaluated.

        After the ``with`` block, findings about all of them are reported.
        """
        evaluated = [obj for obj in objects if not self.is_plain(obj)]
        pinned = [obj for obj in evaluated if self.use_keys or obj.meshferry.rest_is_basis]
        bound = evaluated if self.with_bones else []
        with scene_state.changed(self.context, [*scene_state.undeformed(bound), *scene_state.resting(pinned)]):
            self.reader.depsgraph = self.context.evaluated_depsgraph_get()
            yield
        for armature, bones in self.undeforming.items():
            self.report.change(
                "weights-of-undeforming-bones",
                "{} weights although Deform is off in '{}': {}; the file stores these weights, but poses in Blender do "
                "not show their effect",
                counted(len(bones), "bone has", "bones have"),
                armature,
                listed(list(bones)),
            )

    def read(self, obj: bpy.types.Object, read: ReadSkeleton | None) -> Mesh | None:
        """Return the mesh of an object in its own space, or None if it has no visible mesh."""
        plain = self.is_plain(obj)
        seen = obj if plain else obj.evaluated_get(self.reader.depsgraph)
        if is_part_of_family(seen):
            return None
        with arrays.mesh_of(seen) as data:
            if data is None or not len(data.polygons):
                return self._without_faces(obj, data)
            keys = shape_reading.shape_keys(obj) if self.use_keys else []
            _report_relative_keys(obj, keys, self.report)
            if plain:
                shape_reading.show_basis(obj, data)
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

    def _without_faces(self, obj: bpy.types.Object, data: bpy.types.Mesh | None) -> Mesh | None:
        """Report an object without faces.

        Return an empty mesh if the object was imported without faces, otherwise None.
        """
        if data is None:
            return None
        from_file = len(obj.meshferry.surfaces) or any(c.meshferry.from_file for c in obj.users_collection)
        if len(data.vertices) or not from_file:
            what = Text("it has vertices but no faces") if len(data.vertices) else Text("it has no faces")
            report_without_faces(self.report, obj, what)
        if not from_file:
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
        if cut:
            self.report.loss(
                "too-many-weights",
                "{} more than {} weights; the strongest were kept",
                counted(cut, "vertex has", "vertices have"),
                self.capabilities.influences,
                item=obj.name,
                fix=Fix.LIMIT_WEIGHTS,
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
        for key, points in shape_reading.stored_shapes(obj):
            shape_reading.set_points(data, points)
            shapes.append(self.reader.convert_shape(key.name, data, mesh, cut))
        return shapes

    def _evaluated_shapes(self, obj: bpy.types.Object, mesh: Mesh, cut: Triangulation) -> list[ShapeKey]:
        """Read shape keys with the object's modifiers applied; return none if modifiers change the topology."""
        shapes: list[ShapeKey] = []
        for key in shape_reading.shown_alone(self.context, obj):
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
            self.report.loss("surfaces-without-slots", text, listed(unused), item=obj.name)
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
        report.loss("bendy-bones", "bendy bones are straight in a file: {}", listed(bendy))
    for modifier in modifiers[:1]:
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
        report.loss("relative-shape-keys", text, listed(others), item=obj.name)


def _strip(data: bpy.types.Mesh) -> None:
    """Remove all optional attributes from a temporary mesh, which makes reading its weights three times as fast."""
    for name in [attribute.name for attribute in data.attributes if not attribute.is_required]:
        attribute = data.attributes.get(name)
        if attribute is not None:
            data.attributes.remove(attribute)
