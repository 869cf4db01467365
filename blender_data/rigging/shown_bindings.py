"""Meshes that their files bind to other joints than those of their armature, shown as their target deforms them.

A file may bind a mesh to joints with other scales and positions than those of the armature in Blender, whose bones have
no scale at rest. An *Armature* modifier cannot deform a mesh so. Therefore the mesh gets a second modifier, with an
armature of its own whose bones follow the bones of the first, each with a constant transform before. The first modifier
is switched off; it still states which armature the mesh belongs to, so exports and all tools ignore the second.

The armatures of bindings are in no collection; meshes with equal bindings share one. They are used by pointers of their
meshes, so that they are stored in .blend files as long as they are needed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from .. import armature_modifiers, arrays, names
from ..operator_calls import edit_mode
from . import body_shapes, joint_poses
from . import bones as rigging_bones
from .joint_poses import Array

NAME = "As in File"
_SAME = 1e-5
"""Largest difference, of directions and in metres, of matrices that deform meshes alike."""
_SCALED = 1e-3
"""Difference from the identity of a squared matrix that scales."""
_ROUNDED = 4e-5
"""Difference of a matrix from the identity that is rounding: real rigs have up to 2e-5, which moves vertices by less
than 1e-5 m."""
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
    *,
    may_build: bool = True,
) -> None:
    """Show the meshes that an armature deforms as their files bind them, if its pose shows a known figure.

    Before a shape is set, an armature that was imported may have the unknown shape of its file. Its meshes are then
    shown as they were modelled; the armatures of their bindings are only prepared.

    Parameters
    ----------
    objects:
        Mesh objects that the armature deforms; None for all of them.
    keep:
        Called with each new data block, so that it is removed if an import fails.
    may_build:
        Whether armatures may be built; otherwise only existing ones and copies of them are used.
    """
    meshes = armature_modifiers.deformed_meshes(armature) if objects is None else list(objects)
    waiting: list[tuple[bpy.types.Object, Binding]] = []
    for obj in meshes:
        if not obj.is_editable or obj.meshferry.role != "RENDER":
            continue
        deformations = _deformations(obj, armature)
        singular = [name for name, matrix in deformations.items() if not np.isfinite(matrix).all()]
        obj.meshferry.skin.singular = ", ".join(name for name in singular if name in obj.vertex_groups)
        wanted = _binding_of(obj, armature, {name: deformations[name] for name in deformations if name not in singular})
        if wanted is None:
            hide(obj)
            _set_checked(obj)
        else:
            waiting.append((obj, wanted))
    if not waiting:
        return
    is_shaped = bool(getattr(armature, body_shapes.IS_SHAPED))
    rests_as_standard = is_shaped or body_shapes.rests_as_standard(armature)
    others = [obj.meshferry.binding for obj, _wanted in waiting]
    shown = [(other, _matrices_of(other)) for other in dict.fromkeys([*others, *_armatures_of(armature)]) if other]
    shown.sort(key=lambda entry: followed_by(entry[0]) != armature)
    while waiting:
        wanted = waiting[0][1]
        found = next((entry for entry in shown if _fits(wanted, entry[1])), None)
        if found is None and may_build:
            together = _together(armature, [each for _obj, each in waiting])
            found = _build(context, armature, together, keep), together
        elif found is not None and followed_by(found[0]) != armature:
            found = _copy(found[0], armature), found[1]
        if found is None:
            del waiting[0]
            continue
        shown.insert(0, found)
        for obj in [obj for obj, each in waiting if _fits(each, found[1])]:
            obj.meshferry.binding = found[0]
            _set_checked(obj)
            # A shape puts joints where files move them; before, they rest elsewhere than the target has them.
            if is_shaped or (rests_as_standard and not (obj.meshferry.lod_of or obj).meshferry.skin.has_positions):
                _show(obj, found[0])
            else:
                _switch_back(obj)
        waiting = [(obj, each) for obj, each in waiting if not _fits(each, found[1])]


def followed_by(binding: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature that the armature of a binding follows; None if it was deleted."""
    return next((constraint.target for constraint in binding.constraints), None)


def is_outdated(armature: bpy.types.Object) -> bool:
    """Return whether a mesh is shown as on another armature, of which it and the armature are copies."""
    found = (obj.meshferry.binding for obj in armature_modifiers.deformed_meshes(armature))
    return any(binding is not None and followed_by(binding) != armature for binding in found)


def is_incomplete(armature: bpy.types.Object) -> bool:
    """Return whether a mesh was not compared with its file's binding yet."""
    meshes = (obj for obj in armature_modifiers.deformed_meshes(armature) if obj.is_editable)
    return any(len(obj.meshferry.skin.joints) and not obj.meshferry.skin.is_checked for obj in meshes)


def _set_checked(obj: bpy.types.Object) -> None:
    if len(obj.meshferry.skin.joints):
        obj.meshferry.skin.is_checked = True


def matrices(obj: bpy.types.Object) -> Binding:
    """Return how the bones of its armature deform a mesh object while they rest; empty if by themselves."""
    binding = _shown(obj)
    return {} if binding is None else _matrices_of(binding)


def has_scales(obj: bpy.types.Object) -> bool:
    """Return whether an object is shown as bound to bones that its file scales."""
    changes = [matrix[:3, :3] for matrix in matrices(obj).values()]
    return any(np.abs(change.T @ change - np.identity(3)).max() > _SCALED for change in changes)


def hide(obj: bpy.types.Object) -> None:
    """Let only its own armature deform an object, and forget how its file binds it."""
    _switch_back(obj)
    obj.meshferry.binding = None


def _switch_back(obj: bpy.types.Object) -> None:
    """Let its own armature deform an object."""
    for modifier in [one for one in obj.modifiers if armature_modifiers.is_of_binding(one)]:
        others = (one for one in obj.modifiers if one.type == "ARMATURE" and not armature_modifiers.is_of_binding(one))
        for own in list(others)[:1]:
            own.show_viewport, own.show_render = modifier.show_viewport, modifier.show_render
        obj.modifiers.remove(modifier)


def _shown(obj: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature of the binding that deforms an object, or None."""
    return next((one.object for one in obj.modifiers if armature_modifiers.is_of_binding(one)), None)


def _armatures_of(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the armatures of bindings that follow an armature object."""
    found = (obj.meshferry.binding for obj in armature_modifiers.deformed_meshes(armature))
    return list(dict.fromkeys(other for other in found if other is not None and followed_by(other) == armature))


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
    given, bind_shape = (np.array(values, np.float64).reshape(4, 4) for values in (kept.given_matrix, kept.bind_shape))
    heads = arrays.read(armature.data.bones, "head_local", 3).astype(np.float64)
    mesh = body_shapes.worn_mesh(finest, {})
    found = known.deformations(in_files, heads, mesh, bind_shape @ np.linalg.pinv(given))
    return {bone.name: found[name] for bone, name in zip(bones, in_files, strict=True) if name in found}


def _binding_of(obj: bpy.types.Object, armature: bpy.types.Object, found: dict[str, Array]) -> Binding | None:
    """Return how a mesh is bound, or None if its armature deforms it like that without help.

    ``found`` are the matrices of the bones that the file lists.
    """
    modifiers = armature_modifiers.armature_modifiers(obj)
    if len(modifiers) != 1 or not (modifiers[0].show_viewport or _shown(obj) is not None):
        return None
    if _are_plain(found, armature):
        return None
    bones = [bone for bone in armature.data.bones if bone.meshferry.order >= 0]
    for bone, is_still in zip(bones, rigging_bones.unmoved_bones(bones).tolist(), strict=True):
        if not is_still and bone.name in found:  # the user moved it, so that an export binds meshes anew
            found[bone.name] = np.identity(4)
    if _are_plain(found, armature):
        return None
    others = (group.name for group in obj.vertex_groups if group.name in armature.data.bones)
    return {**dict.fromkeys(others, np.identity(4)), **found}


def _are_plain(found: Binding, armature: bpy.types.Object) -> bool:
    """Return whether bones deform a mesh like that by themselves."""
    if not found:
        return True
    matrices = np.array(list(found.values()))
    heads = np.array([(*armature.data.bones[name].head_local, 1.0) for name in found])
    moved = (matrices @ heads[..., None])[..., 0] - heads
    return bool(np.abs(matrices[:, :3, :3] - np.identity(3)).max() <= _ROUNDED and np.abs(moved).max() <= _SAME)


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
    (own,) = armature_modifiers.armature_modifiers(obj)
    modifier = next((one for one in obj.modifiers if armature_modifiers.is_of_binding(one)), None)
    if modifier is None:
        modifier = obj.modifiers.new(NAME, "ARMATURE")
        obj.modifiers.move(len(obj.modifiers) - 1, list(obj.modifiers).index(own))
        modifier.show_viewport, modifier.show_render = own.show_viewport, own.show_render
    modifier.object = obj.meshferry.binding = binding
    own = armature_modifiers.armature_modifiers(obj)[0]
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
    # No child: exporters of Blender take the children of what they export, even those in no collection.
    made.constraints.new("COPY_TRANSFORMS").target = armature
    made.hide_viewport = made.hide_select = made.hide_render = True
    return made


def _copy(binding: bpy.types.Object, armature: bpy.types.Object) -> bpy.types.Object:
    """Return a copy of the armature of a binding that follows another armature."""
    copy: bpy.types.Object = binding.copy()
    copy.constraints[0].target = armature
    for posed in copy.pose.bones:
        for constraint in posed.constraints:
            for target in constraint.targets:
                target.target = armature
    return copy


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
