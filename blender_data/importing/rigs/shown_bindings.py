"""Meshes that their files bind to other joints than those of their armature, shown as their target deforms them.

A file may bind a mesh to joints with other scales and positions than those of the armature in Blender, whose bones have
no scale at rest. An *Armature* modifier cannot deform a mesh so. Therefore the mesh gets a second modifier, with an
armature of its own whose bones follow the bones of the first, each with a constant transform before. The first modifier
is switched off; it still states which armature the mesh belongs to, so exports and all tools ignore the second.

The armatures of bindings are in no collection; meshes with equal bindings share one. They are used by pointers of their
meshes, so that they are stored in .blend files as long as they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Vector

from ... import arrays, imported_bones, names
from ...exporting import object_selection
from ...rigging import body_shapes, joint_poses
from .armatures import edit_mode

Array = npt.NDArray[np.float64]

NAME = "As in File"
_SAME = 1e-5
"""Largest difference, of directions and in metres, of matrices that deform meshes alike."""
_LENGTH = 0.05
"""Length of the bones in metres, which has no effect."""
_KEPT = ("use_deform_preserve_volume", "vertex_group", "invert_vertex_group", "show_in_editmode", "show_on_cage")
"""Settings of the modifier that the second one shares."""


Binding = Mapping[str, Array]
"""How the bones that a mesh uses deform it while they rest, by name: (4, 4) in the space of the armature."""


def update(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    objects: Iterable[bpy.types.Object] | None = None,
    keep: Callable[[Any], Any] = lambda block: block,
) -> None:
    """Show the meshes that an armature deforms as their files bind them, if its pose shows a known figure.

    Before a shape is set, an armature that was imported may have the unknown shape of its file. Its meshes are then
    shown as they were modelled.

    Parameters
    ----------
    objects:
        Mesh objects that the armature deforms; None for all of them.
    keep:
        Called with each new data block, so that it is removed if an import fails.
    """
    meshes = object_selection.deformed_meshes(armature) if objects is None else list(objects)
    is_known = bool(getattr(armature, body_shapes.IS_SHAPED)) or body_shapes.rests_as_standard(armature)
    waiting: list[tuple[bpy.types.Object, Binding]] = []
    for obj in meshes:
        if not obj.is_editable or obj.meshferry.role != "RENDER":
            continue
        wanted = _binding_of(obj, armature) if is_known else None
        if wanted is None:
            hide(obj)
        elif (there := _shown(obj)) is None or there.parent != armature or not _fits(wanted, _matrices_of(there)):
            waiting.append((obj, wanted))
    shown = [(other, _matrices_of(other)) for other in _armatures_of(armature)] if waiting else []
    while waiting:
        if not any(_fits(waiting[0][1], there) for _other, there in shown):
            together = _together(armature, [wanted for _obj, wanted in waiting])
            shown.append((_build(context, armature, together, keep), together))
        for other, there in shown:
            for obj, wanted in waiting:
                if _fits(wanted, there):
                    _show(obj, other)
            waiting = [(obj, wanted) for obj, wanted in waiting if not _fits(wanted, there)]


def is_outdated(armature: bpy.types.Object) -> bool:
    """Return whether a mesh is shown as on another armature, of which it and the armature are copies."""
    return any(
        (shown := _shown(obj)) is not None and shown.parent != armature
        for obj in object_selection.deformed_meshes(armature)
    )


def matrices(obj: bpy.types.Object) -> Binding:
    """Return how the bones of its armature deform a mesh object while they rest; empty if by themselves."""
    binding = _shown(obj)
    return {} if binding is None else _matrices_of(binding)


def hide(obj: bpy.types.Object) -> None:
    """Let only its own armature deform an object."""
    for modifier in [one for one in obj.modifiers if object_selection.is_of_binding(one)]:
        others = (one for one in obj.modifiers if one.type == "ARMATURE" and not object_selection.is_of_binding(one))
        for own in list(others)[:1]:
            own.show_viewport, own.show_render = modifier.show_viewport, modifier.show_render
        obj.modifiers.remove(modifier)
    obj.meshferry.binding = None


def singular_joints(obj: bpy.types.Object, armature: bpy.types.Object) -> list[str]:
    """Return the bones with weights to which the file binds a mesh by matrices that cannot be inverted."""
    found = _deformations(obj, armature)
    groups = set(obj.vertex_groups.keys())
    return [name for name, matrix in found.items() if name in groups and not np.isfinite(matrix).all()]


def _shown(obj: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature of the binding that deforms an object, or None."""
    return next((one.object for one in obj.modifiers if object_selection.is_of_binding(one)), None)


def _armatures_of(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the armatures of bindings that follow an armature object."""
    found = (obj.meshferry.binding for obj in object_selection.deformed_meshes(armature))
    return list(dict.fromkeys(other for other in found if other is not None and other.parent == armature))


def _fits(wanted: Binding, shown: Binding) -> bool:
    """Return whether an armature with the matrices of ``shown`` shows a mesh."""
    return wanted.keys() <= shown.keys() and all(
        np.abs(matrix - shown[name]).max() <= _SAME for name, matrix in wanted.items()
    )


def _together(armature: bpy.types.Object, wanted: Iterable[Binding]) -> Binding:
    """Return the matrices of all bones for the first mesh and those of the others that agree with it."""
    found: dict[str, Array] = {}
    for binding in wanted:
        if _fits({name: matrix for name, matrix in binding.items() if name in found}, found):
            found.update(binding)
    return {bone.name: found.get(bone.name, np.identity(4)) for bone in armature.data.bones}


# -- matrices -----------------------------------------------------------------------------------


def _deformations(obj: bpy.types.Object, armature: bpy.types.Object) -> dict[str, Array]:
    """Return the matrix of each bone that a file binds a mesh to; a coarser level has the binding of the finest."""
    known, finest = body_shapes.shapes(), obj.meshferry.lod_of or obj
    kept = finest.meshferry.skin
    if known is None or not len(kept.joints) or kept.is_replaced:
        return {}
    bones = list(armature.data.bones)
    in_files = [names.name_in_file(bone) for bone in bones]
    still = set(body_shapes.unmoved_bones(armature))
    moved = [
        name for name, bone in zip(in_files, bones, strict=True) if bone.meshferry.order >= 0 and name not in still
    ]
    given, bind_shape = (np.array(values, np.float64).reshape(4, 4) for values in (kept.given_matrix, kept.bind_shape))
    heads = imported_bones.rest_matrices(bones)[:, :3, 3]
    mesh = body_shapes.worn_mesh(finest, {})
    found = known.deformations(in_files, heads, mesh, bind_shape @ np.linalg.pinv(given), moved)
    return {bone.name: found[name] for bone, name in zip(bones, in_files, strict=True) if name in found}


def _binding_of(obj: bpy.types.Object, armature: bpy.types.Object) -> Binding | None:
    """Return how a mesh is bound, or None if its armature deforms it like that without help."""
    modifiers = object_selection.armature_modifiers(obj)
    if len(modifiers) != 1 or not (modifiers[0].show_viewport or _shown(obj) is not None):
        return None
    found = {name: matrix for name, matrix in _deformations(obj, armature).items() if np.isfinite(matrix).all()}
    heads = {name: np.array((*armature.data.bones[name].head_local, 1.0)) for name in found}
    linear = [np.abs(matrix[:3, :3] - np.identity(3)).max() for matrix in found.values()]
    moved = [np.abs(matrix @ heads[name] - heads[name]).max() for name, matrix in found.items()]
    if max([*linear, *moved], default=0.0) <= _SAME:
        return None
    others = (group.name for group in obj.vertex_groups if group.name in armature.data.bones)
    return {**dict.fromkeys(others, np.identity(4)), **found}


def _matrices_of(binding: bpy.types.Object) -> dict[str, Array]:
    """Return how the bones of an armature of a binding deform meshes while the armature that they follow rests."""
    rests, changes = (
        arrays.read(bones, name, 16).astype(np.float64).reshape(-1, 4, 4).transpose(0, 2, 1)
        for bones, name in ((binding.data.bones, "matrix_local"), (binding.pose.bones, "matrix_basis"))
    )
    rest_of = dict(zip(binding.data.bones.keys(), rests, strict=True))
    posed = list(binding.pose.bones.keys())
    in_order = np.array([rest_of[name] for name in posed]).reshape(-1, 4, 4)
    return dict(zip(posed, in_order @ changes @ joint_poses.inverse(in_order), strict=True))


# -- data blocks --------------------------------------------------------------------------------


def _show(obj: bpy.types.Object, binding: bpy.types.Object) -> None:
    """Deform an object by the armature of a binding in place of its own."""
    (own,) = object_selection.armature_modifiers(obj)
    modifier = next((one for one in obj.modifiers if object_selection.is_of_binding(one)), None)
    if modifier is None:
        modifier = obj.modifiers.new(NAME, "ARMATURE")
        obj.modifiers.move(len(obj.modifiers) - 1, list(obj.modifiers).index(own))
        modifier.show_viewport, modifier.show_render = own.show_viewport, own.show_render
    modifier.object = obj.meshferry.binding = binding
    own = object_selection.armature_modifiers(obj)[0]
    for name in _KEPT:
        setattr(modifier, name, getattr(own, name))
    own.show_viewport = own.show_render = False


def _build(
    context: bpy.types.Context, armature: bpy.types.Object, wanted: Binding, keep: Callable[[Any], Any]
) -> bpy.types.Object:
    """Create the armature of a binding of all bones of another armature."""
    data = keep(bpy.data.armatures.new(names.fit(f"{armature.name} {NAME}")))
    made: bpy.types.Object = keep(bpy.data.objects.new(data.name, data))
    made.meshferry.is_binding = True
    home = context.scene.collection
    home.objects.link(made)
    try:
        with edit_mode(context, made):
            for name, matrix in wanted.items():
                bone = data.edit_bones.new(name)
                bone.tail = (0.0, _LENGTH, 0.0)
                bone.matrix = Matrix.Translation(armature.data.bones[name].head_local) @ _axes(matrix).to_4x4()
        context.view_layer.update()  # creates the pose bones
        _pose(made, armature, wanted)
    finally:
        home.objects.unlink(made)
    made.parent = armature
    made.hide_viewport = made.hide_select = made.hide_render = True
    return made


def _axes(matrix: Array) -> Matrix:
    """Return axes, (3, 3), along which a transform scales; those of the armature if it scales along them."""
    linear = matrix[:3, :3]
    squared = linear.T @ linear
    if np.abs(squared - np.diag(np.diagonal(squared))).max() <= _SAME * np.abs(squared).max():
        return Matrix.Identity(3)
    axes = np.linalg.eigh(squared)[1]
    return Matrix((axes * np.sign(np.linalg.det(axes))).tolist())


def _pose(made: bpy.types.Object, armature: bpy.types.Object, wanted: Binding) -> None:
    """Give the bones their constant transforms, and let them follow the bones of the other armature."""
    for posed in made.pose.bones:
        rest = np.array(posed.bone.matrix_local, np.float64)
        basis = np.linalg.inv(rest) @ wanted[posed.name] @ rest
        location, rotation, scale, _shear = joint_poses.decompose(basis[None])
        posed.location, posed.scale = Vector(location[0]), Vector(scale[0])
        posed.rotation_mode = "QUATERNION"
        posed.rotation_quaternion = rotation[0]
        constraint = posed.constraints.new("ARMATURE")
        target = constraint.targets.new()
        target.target, target.subtarget, target.weight = armature, posed.name, 1.0
