"""What the tests of exports without a tree share: rigs, exports to a scene, and chains of joints multiplied by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from helpers_export import active, add, bpy, mesh_of, model_collection

Array = npt.NDArray[np.float64]

TUBE = [(x, y, z) for z in (0.0, 1.0, 2.0) for x, y in ((0, 0), (0.5, 0), (0.5, 0.4), (0, 0.3))]
TUBE_FACES = [
    (4 * k + i, 4 * k + (i + 1) % 4, 4 * k + 4 + (i + 1) % 4, 4 * k + 4 + i) for k in (0, 1) for i in range(4)
]


def rig(name: str = "Rig", bones: Mapping[str, tuple[Any, Any, str | None]] | None = None, **attributes: Any) -> Any:
    """Add an armature with the given bones (head, tail, parent); two in a row, bent, unless given."""
    bones = bones or {"Lower": ((0, 0, 0), (0, 0.1, 1), None), "Upper": ((0, 0.1, 1), (0.3, 0, 2), "Lower")}
    made = add(name, bpy.data.armatures.new(name), **attributes)
    with active(made, mode="EDIT"):
        for bone_name, (head, tail, parent) in bones.items():
            bone = made.data.edit_bones.new(bone_name)
            bone.head, bone.tail, bone.roll = head, tail, 0.3
            bone.parent = made.data.edit_bones.get(parent) if parent else None
    return made


def skinned(armature: Any, name: str = "Tube", weights: Mapping[str, Sequence[float]] | None = None) -> Any:
    """Add a tube of twelve points, deformed by an armature; by default bent over from "Lower" to "Upper"."""
    weights = weights or {"Lower": [1.0] * 4 + [0.6] * 4 + [0.0] * 4, "Upper": [0.0] * 4 + [0.4] * 4 + [1.0] * 4}
    made = add(name, mesh_of(name, TUBE, TUBE_FACES))
    for group_name, values in weights.items():
        group = made.vertex_groups.new(name=group_name)
        for point, value in enumerate(values):
            if value is not None:
                group.add((point,), value, "REPLACE")
    modifier = made.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    made.parent = armature
    bpy.context.view_layer.update()
    return made


def scene_of(kind: str = "UNIGINE_MESH", source: Any = None, **options: Any) -> Any:
    """Export a source to a scene for a format: a collection (Model unless given), a kind of source, or objects."""
    from meshferry.blender_data import export_options
    from meshferry.blender_data.export_options import EXPORT_OPTIONS
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats import registry
    from meshferry.io_formats.core.options import resolve

    if source is None:
        taken = object_selection.Source("COLLECTION", model_collection())
    elif isinstance(source, bpy.types.Collection):
        taken = object_selection.Source("COLLECTION", source)
    elif isinstance(source, str):
        taken = object_selection.Source(source)
    else:
        taken = object_selection.Source("OBJECTS", None, tuple(source))
    values = resolve(EXPORT_OPTIONS, options)
    return exporter.export_scene(
        export_options.ExportRequest(
            bpy.context,
            taken,
            export_options.ExportOptions.of(values),
            "Named",
            registry.by_name(kind.lower()).capabilities,
        )
    )


def local_matrix(translation: Any, rotation: Any, scale: Any) -> Array:
    from mathutils import Matrix, Quaternion, Vector

    return np.array(Matrix.LocRotScale(Vector(translation), Quaternion(rotation), Vector(scale)), float)


def joint_worlds(skeleton: Any, locals_of: Mapping[int, Array] | None = None) -> list[Array]:
    """Multiply the joints' local matrices (bind, or those given) down their chains."""
    worlds: dict[int, Array] = {}

    def world(number: int) -> Array:
        if number not in worlds:
            joint = skeleton.joints[number]
            own = (locals_of or {}).get(number)
            if own is None:
                own = local_matrix(joint.translation, joint.rotation, joint.scale)
            worlds[number] = own if joint.parent < 0 else world(joint.parent) @ own
        return worlds[number]

    return [world(number) for number in range(len(skeleton.joints))]


def frame_worlds(skeleton: Any, clip: Any, frame: int) -> list[Array]:
    """Return the joints' world matrices at a frame of a clip; joints without a track stay at bind."""
    given = {
        track.target: local_matrix(track.translation[frame], track.rotation[frame], track.scale[frame])
        for track in clip.transforms
    }
    return joint_worlds(skeleton, given)


def skinned_points(mesh: Any, skeleton: Any, worlds: Sequence[Array]) -> Array:
    """Return the points (P, 3) that joints in these world matrices carry, as a game engine does."""
    binds = joint_worlds(skeleton)
    carried = np.array([now @ np.linalg.inv(bind) for now, bind in zip(worlds, binds, strict=True)])
    points = np.column_stack((mesh.points, np.ones(len(mesh.points))))
    weights = mesh.joint_weights / mesh.joint_weights.sum(axis=1, keepdims=True)
    mixed = np.einsum("pk,pkij->pij", weights, carried[mesh.joint_indices])
    return np.einsum("pij,pj->pi", mixed, points)[:, :3]


def shown_points(obj: Any, to: Array | None = None) -> Array:
    """Return the points of an evaluated object in world space, or in another."""
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = seen.to_mesh()
    points = np.array([vertex.co for vertex in mesh.vertices], float)
    matrix = np.array(seen.matrix_world, float) if to is None else to @ np.array(seen.matrix_world, float)
    seen.to_mesh_clear()
    return points @ matrix[:3, :3].T + matrix[:3, 3]
