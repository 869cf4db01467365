"""A shirt for the avatar, of doubled cloth with open borders and loose buttons, and a pose of its uploaded file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import collada_oracle
import numpy as np

Array = Any

SHOULDER = 0.164
"""Distance of the shoulder joint from the middle, in metres."""


def make_shirt(name: str = "shirt", *, cloth: str = "doubled") -> Any:
    """Return a shirt object around the standard avatar, which faces -Y.

    ``doubled`` cloth is an outer side and a lining 4 mm below, ``thick`` cloth is closed at the borders; both have four
    buttons. ``single`` cloth has none.
    """
    import bmesh
    import bpy
    from mathutils import Matrix

    made = bmesh.new()
    tubes = [Matrix.Translation((0, 0.005, 1.24)) @ Matrix.Diagonal((0.19, 0.145, 0.68, 1))]
    for side in (1, -1):
        turn = Matrix.Rotation(side * np.pi / 2, 4, "Y")
        tubes.append(Matrix.Translation((side * 0.35, 0.034, 1.515)) @ turn @ Matrix.Diagonal((0.065, 0.065, 0.5, 1)))
    for tube in tubes:
        bmesh.ops.create_cone(made, cap_ends=True, segments=48, radius1=1, radius2=1, depth=1, matrix=tube)
    obj = _object(made, name)
    _modify(obj, "REMESH", mode="VOXEL", voxel_size=0.04)
    with _edited(obj) as made:
        ends = [face for face in made.faces if _is_end(face.calc_center_median())]
        bmesh.ops.delete(made, geom=ends, context="FACES")
    if cloth == "thick":
        _modify(obj, "SOLIDIFY", thickness=0.004)
    with _edited(obj) as made:
        if cloth == "doubled":
            _line(made)
        for height in (1.05, 1.15, 1.25, 1.35) if cloth != "single" else ():
            place = Matrix.Translation((0, -0.148, height)) @ Matrix.Rotation(np.pi / 2, 4, "X")
            bmesh.ops.create_cone(
                made, cap_ends=True, segments=10, radius1=0.008, radius2=0.007, depth=0.004, matrix=place
            )
    bpy.context.view_layer.update()
    return obj


def _modify(obj: Any, kind: str, **settings: Any) -> None:
    """Apply a modifier."""
    import bpy

    modifier = obj.modifiers.new(kind, kind)
    for name, value in settings.items():
        setattr(modifier, name, value)
    obj.data = bpy.data.meshes.new_from_object(obj.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    obj.modifiers.clear()


@contextmanager
def _edited(obj: Any) -> Iterator[Any]:
    import bmesh

    made = bmesh.new()
    made.from_mesh(obj.data)
    made.normal_update()
    yield made
    made.to_mesh(obj.data)
    made.free()


def _line(made: Any) -> None:
    """Add a lining."""
    import bmesh

    inside = bmesh.ops.duplicate(made, geom=[*made.verts, *made.edges, *made.faces])["geom"]
    for vertex in (one for one in inside if isinstance(one, bmesh.types.BMVert)):
        vertex.co -= 0.004 * vertex.normal
    bmesh.ops.reverse_faces(made, faces=[one for one in inside if isinstance(one, bmesh.types.BMFace)])


def _object(made: Any, name: str) -> Any:
    import bpy

    mesh = bpy.data.meshes.new(name)
    made.to_mesh(mesh)
    made.free()
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


def _is_end(middle: Any) -> bool:
    """Return whether a face closes a tube: at the hem, the cuffs or the neck."""
    return bool(middle.z < 0.92 or abs(middle.x) > 0.58 or (middle.z > 1.56 and abs(middle.x) < 0.1))


def weights_of(obj: Any) -> list[dict[str, float]]:
    """Return the weights of each vertex by group, read one by one."""
    return _weights(obj, obj)


def weights_of_evaluated(bpy: Any, obj: Any) -> list[dict[str, float]]:
    """Return the same for the mesh with its modifiers."""
    return _weights(obj, obj.evaluated_get(bpy.context.evaluated_depsgraph_get()))


def _weights(obj: Any, seen: Any) -> list[dict[str, float]]:
    names = [group.name for group in obj.vertex_groups]
    return [{names[entry.group]: entry.weight for entry in vertex.groups} for vertex in seen.data.vertices]


class UploadedShirt:
    """The uploaded shirt as the viewer poses it; in the avatar's space, X forward and Y to the left."""

    def __init__(self, path: Path) -> None:
        (self.instance,) = collada_oracle.parse(path.read_bytes()).instances
        geometry, skin = self.instance.geometry, self.instance.skin
        assert skin is not None
        used = np.unique(np.concatenate(list(geometry.corners.values())))
        place = np.full(len(geometry.positions), -1)
        place[used] = np.arange(len(used))
        self.points = geometry.positions[used] @ skin.bind_shape[:3, :3].T + skin.bind_shape[:3, 3]
        self.weights = skin.weights[used]
        triangles = place[np.concatenate(list(geometry.corners.values()))].reshape(-1, 3)
        edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
        self.edges = np.unique(edges, axis=0)

    def posed(self, joint: str, turn: Array) -> Array:
        """Return the points with a joint turned, (P, 3): v * bind_shape * sum of w * inverse_bind * joint_world."""
        skin = self.instance.skin
        assert skin is not None
        worlds: dict[str, Array] = {}
        for node in self.instance.joints.values():
            local = node.local.copy()
            if node.name == joint:
                local[:3, :3] = turn @ local[:3, :3]
            worlds[node.name] = worlds.get(node.parent, np.identity(4)) @ local
        matrices = np.array(
            [worlds[name] @ inverse for name, inverse in zip(skin.joints, skin.inverse_bind, strict=True)]
        )
        points = np.column_stack((self.points, np.ones(len(self.points))))
        return np.einsum("vj,jab,vb->va", self.weights, matrices, points)[:, :3]

    def head(self, joint: str) -> Array:
        """Return the rest position of a joint."""
        return self.instance.joints[joint].world[:3, 3]

    def stretch(self, posed: Array) -> Array:
        """Return by how many metres each edge has become longer, (E,)."""
        before, after = (
            np.linalg.norm(points[self.edges[:, 0]] - points[self.edges[:, 1]], axis=1)
            for points in (self.points, posed)
        )
        return after - before


def about(axis: str, degrees: float) -> Array:
    """Return a rotation about an axis of the avatar's space, (3, 3)."""
    angle = np.radians(degrees)
    number = "XYZ".index(axis)
    one, other = (number + 1) % 3, (number + 2) % 3
    found = np.identity(3)
    found[one, one] = found[other, other] = np.cos(angle)
    found[other, one], found[one, other] = np.sin(angle), -np.sin(angle)
    return found
