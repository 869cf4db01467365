"""The classic avatar of a viewer's folder ``character`` -> Scene: meshes with shape keys, bound to the avatar.

The shape keys are the morph targets that parameters of shapes move; :func:`morph_weights` gives their values. Morph
targets also move UVs, which shape keys cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...core.messages import listed
from ...core.scene import Layer, Mesh, Node, Scene, ShapeKey, Skeleton
from ..avatar import avatar_space, skeleton_table
from ..avatar.skeletons import avatar_skeleton
from ..shape import evaluation, parameters
from . import linden_mesh
from .linden_mesh import LindenMesh

NAME = "Classic Avatar"


@dataclass(frozen=True)
class Part:
    """A mesh of the classic avatar."""

    name: str
    file: str
    mesh: str
    """Name in the table of effects."""
    joint: str = ""
    """Joint that carries a mesh without weights, whose origin it has."""


PARTS = (
    Part("Head", "avatar_head.llm", "headMesh"),
    Part("Upper Body", "avatar_upper_body.llm", "upperBodyMesh"),
    Part("Lower Body", "avatar_lower_body.llm", "lowerBodyMesh"),
    Part("Eyelashes", "avatar_eyelashes.llm", "eyelashMesh"),
    Part("Left Eye", "avatar_eye.llm", "eyeBallLeftMesh", "mEyeLeft"),
    Part("Right Eye", "avatar_eye.llm", "eyeBallRightMesh", "mEyeRight"),
)
FILES = tuple(dict.fromkeys(part.file for part in PARTS))


def scene_of(files: Mapping[str, bytes]) -> Scene:
    """Return the scene of the classic avatar in its rest pose.

    Parameters
    ----------
    files:
        Contents of :data:`FILES` by name.

    Raises
    ------
    FormatError
        A file is damaged, or has no weights where its part needs them.
    """
    meshes = {name: linden_mesh.read(data, name) for name, data in files.items()}
    skeleton = avatar_skeleton()
    nodes = [Node(part.name, mesh=_mesh(part, meshes[part.file], skeleton), skeleton=0) for part in PARTS]
    scene = Scene(NAME, nodes=nodes, skeletons=[skeleton])
    for part in PARTS:
        lacking = [name for name in _morphs(part.mesh) if name not in meshes[part.file].morphs]
        if lacking:
            template = "it lacks morph targets that sliders move: {}"
            scene.report.about(part.file).change("morph-targets-missing", template, listed(lacking))
    return scene


def morph_weights(values: Mapping[int, float]) -> dict[str, dict[str, float]]:
    """Return the values of shape keys for a shape, by the names of parts and morph targets.

    ``values`` are those of sliders by id; missing ones have their default.
    """
    weights = dict(zip(parameters.parameters(), evaluation.effective_weights(values).tolist(), strict=True))
    return {
        part.name: {name: sum(weights[number] for number in numbers) for name, numbers in _morphs(part.mesh).items()}
        for part in PARTS
    }


def _morphs(mesh: str) -> dict[str, list[int]]:
    """Return the parameters that move each morph target of a mesh."""
    found: dict[str, list[int]] = {}
    for morph in parameters.morphs():
        if morph.mesh == mesh:
            found.setdefault(morph.name, []).append(morph.parameter)
    return found


def _mesh(part: Part, found: LindenMesh, skeleton: Skeleton) -> Mesh:
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    points = found.positions.astype(np.float64)
    count = len(points)
    if part.joint:
        points = points + skeleton_table.rest_matrices()[part.joint][:3, 3]
        indices, weights = np.full((count, 1), place[part.joint]), np.ones((count, 1))
    else:
        joints = np.array([place[name or skeleton_table.ROOT] for name in found.joints])
        indices, weights = joints[found.joint_indices], found.joint_weights
    keys = []
    for name in _morphs(part.mesh):
        if name in found.morphs:
            moved = points.copy()
            np.add.at(moved, found.morphs[name].vertices, found.morphs[name].positions)
            keys.append(ShapeKey(name, avatar_space.BASIS.vectors(moved)))
    a, b, c = found.triangles.T
    triangles = found.triangles[(a != b) & (b != c) & (c != a)]
    return Mesh(
        avatar_space.BASIS.vectors(points),
        triangles.reshape(-1).astype(np.int32),
        np.zeros(len(triangles), np.int32),
        [part.name],
        normal=Layer("Normal", avatar_space.BASIS.vectors(found.normals)),
        uvs=[Layer("UVMap", found.uvs)],
        joint_indices=indices.astype(np.int32),
        joint_weights=weights.astype(np.float32),
        shape_keys=keys,
        name=part.name,
    )
