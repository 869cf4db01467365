"""Bind meshes to an armature.

Weights for all meshes are computed first; then parents and modifiers are set. So a failure changes no mesh. Coarser
levels of detail take their weights from the same surface as the finest one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import bpy
import numpy as np
from mathutils import Matrix

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Text
from ...io_formats.geometry.connectivity import labels, places
from .. import arrays
from ..armature_modifiers import armature_modifiers
from . import heat_weights, joint_weights, shown_bindings
from .joint_weights import JointWeights, Points, WeightedSurface, Weights, triangles_of, world_points

Bindings = dict[bpy.types.Object, JointWeights]

RIGID_SIZE = 0.05
"""Largest diagonal, in metres, of a loose part that does not bend, such as a button."""


def require_bindable(items: Iterable[bpy.types.Object], armature: bpy.types.Object) -> None:
    """Raise an error if one of the objects cannot be bound to an armature."""
    chosen = list(items)
    for obj in chosen:
        problem = Text("")
        if not obj.is_editable or not obj.data.is_editable:
            problem = Text("it is linked from another file")
        elif obj.data.users - obj.data.use_fake_user > 1:
            problem = Text("its mesh is shared with other objects; make it a single user first")
        elif not len(obj.data.polygons):
            problem = Text("it has no faces")
        elif not np.isfinite(world_points(obj)).all():
            problem = Text("it has vertices that are NaN or infinite; delete or correct them")
        elif armature in obj.children_recursive:
            problem = Text("'{}' is its child", armature.name)
        if problem:
            raise MeshferryError("{}: {}", obj.name, problem)
        joint_weights.require_scale(obj)


def automatic(
    context: bpy.types.Context, models: Sequence[Sequence[bpy.types.Object]], bones: Mapping[str, Points], most: int
) -> Bindings:
    """Return automatic weights for bones, at most ``most`` for each vertex.

    Each entry of ``models`` lists the finest mesh object of a model, followed by coarser ones. ``bones`` has the head
    and the end of each bone in world space, (2, 3).
    """
    surface = heat_weights.heat_weights(context, joint_weights.surface_of(model[0] for model in models), bones)
    return nearest((obj for model in models for obj in model), surface, most)


def nearest(
    items: Iterable[bpy.types.Object], surface: WeightedSurface, most: int, *, faces_alike: bool = False
) -> Bindings:
    """Return the weights that mesh objects get from the nearest points of a surface.

    All points of a small loose part get the same weights.

    Parameters
    ----------
    faces_alike:
        Whether points of the surface that face another way are not used; the weights there are those of the other
        side of thick cloth, or are filled in along the mesh.
    """
    found: Bindings = {}
    for obj in items:
        points, normals = world_points(obj), joint_weights.world_normals(obj)
        values, known = surface.facing_weights_at(points, normals)
        if faces_alike:
            values, known = joint_weights.from_other_side(values, known, points, normals, triangles_of(obj))
            values = joint_weights.fill_weights(values, known, arrays.read(obj.data.edges, "vertices", 2, np.int32))
        values = _unbent(obj, points, values)
        found[obj] = JointWeights(list(surface.joints), joint_weights.limited(values, most))
    return found


def apply(
    bindings: Mapping[bpy.types.Object, JointWeights], armature: bpy.types.Object, joints: Collection[str]
) -> int:
    """Write the weights and bind the objects; return how many were bound to another armature before."""
    changed = 0
    for obj, weights in bindings.items():
        joint_weights.write(obj, weights, joints)
        changed += attach(obj, armature)
    return changed


def attach(obj: bpy.types.Object, armature: bpy.types.Object) -> bool:
    """Parent an object to an armature that deforms it; return whether another armature deformed it before.

    The object keeps its world transform. An existing Armature modifier is reused.
    """
    if shown_bindings.matrices(obj):
        shown_bindings.hide(obj)
        obj.meshferry.property_unset("skin")
    obj.meshferry.skin.is_replaced = True
    if obj.parent != armature or obj.parent_type not in {"OBJECT", "ARMATURE"}:
        above = Matrix()
        if obj.parent is not None:
            above = obj.matrix_world @ obj.matrix_basis.inverted_safe()
        obj.parent, obj.parent_type = armature, "OBJECT"
        obj.matrix_parent_inverse = armature.matrix_world.inverted_safe() @ above
    if obj.parent_type == "ARMATURE":  # this type of parent deforms without a modifier
        return False
    modifiers = armature_modifiers(obj) or [one for one in obj.modifiers if one.type == "ARMATURE"]
    modifier = next((one for one in modifiers if one.object == armature), modifiers[0] if modifiers else None)
    if modifier is None:
        modifier = obj.modifiers.new(armature.name, "ARMATURE")
    was_other = modifier.object not in {armature, None}
    modifier.object = armature
    modifier.show_viewport = modifier.use_vertex_groups = True  # otherwise the weights have no effect
    return was_other


def _unbent(obj: bpy.types.Object, points: Points, values: Weights) -> Weights:
    """Give all points of a small loose part the mean of their weights."""
    place = places(points)
    pairs = place[arrays.read(obj.data.edges, "vertices", 2, np.int32)]
    _names, part = np.unique(labels(len(points), pairs[:, 0], pairs[:, 1])[place], return_inverse=True)
    part = part.reshape(-1)
    count = np.bincount(part)
    low, high = np.full((len(count), 3), np.inf), np.full((len(count), 3), -np.inf)
    np.minimum.at(low, part, points)
    np.maximum.at(high, part, points)
    small = np.linalg.norm(high - low, axis=1) < RIGID_SIZE
    total = np.zeros((len(count), values.shape[1]))
    np.add.at(total, part, values)
    mean = (total / count[:, None]).astype(np.float32)
    return np.where(small[part][:, None], mean[part], values)
