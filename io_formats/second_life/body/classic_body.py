"""Bodies to fit clothes on -> Scene: the classic avatar of a viewer's folder ``character``, and the bundled mannequin.

The classic avatar's shape keys are the morph targets that parameters of shapes move; :mod:`.parts` computes their
values. Morph targets also move UVs, which shape keys cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import numpy as np

from ...core.errors import FormatError
from ...core.messages import listed
from ...core.scene import Layer, Material, Mesh, Node, Scene, ShapeKey, Skeleton
from ...disk.special_files import read_bytes
from ..avatar import skeleton_table
from ..avatar.skeletons import avatar_skeleton
from ..models import space
from . import linden_mesh
from .linden_mesh import LindenMesh
from .parts import FILES, PARTS, Part, morphs_of

NAME = "Classic Avatar"
MANNEQUIN = "Mannequin"
_COLOR = (0.62, 0.6, 0.57, 1.0)

MATERIALS = {
    "Body": Material("Body", (0.62, 0.45, 0.36, 1.0)),
    "Eyelashes": Material("Eyelashes", (0.05, 0.04, 0.03, 1.0)),
    "Eyes": Material("Eyes", (0.8, 0.8, 0.8, 1.0)),
}
"""Plain colours, since the files have no materials."""


def folder_in(folder: Path) -> Path:
    """Return the folder with the files: a given one, or the one inside a given installation of a viewer.

    Raises
    ------
    FormatError
        There is no such folder, or a file is missing.
    """
    inner = [folder, *(folder / above / "character" for above in ("", "Contents/Resources", "Resources"))]
    found = next((one for one in inner if any((one / file).is_file() for file in FILES)), None)
    if found is None:
        template = "It has no {}; choose the folder 'character' of an installed viewer"
        raise FormatError(template, FILES[0], file=folder)
    missing = [file for file in FILES if not (found / file).is_file()]
    if missing:
        raise FormatError("It lacks {}", listed(missing), file=found)
    return found


def read(folder: Path) -> Scene:
    """Return the scene of the classic avatar in a folder.

    Raises
    ------
    FormatError
        As for :func:`folder_in` and :func:`scene_of`.
    OSError
        A file cannot be read.
    """
    found = folder_in(folder)
    return scene_of({file: read_bytes(found / file) for file in FILES})


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
    meshes = {name: linden_mesh.read_linden_mesh(data, name) for name, data in files.items()}
    skeleton = avatar_skeleton()
    nodes = [Node(part.name, mesh=_mesh(part, meshes[part.file], skeleton), skeleton=0) for part in PARTS]
    scene = Scene(NAME, nodes=nodes, skeletons=[skeleton], materials=list(MATERIALS.values()))
    for part in PARTS:
        lacking = [name for name in morphs_of(part.mesh) if name not in meshes[part.file].morphs]
        if lacking:
            template = "it lacks morph targets that sliders move: {}"
            scene.report.about(part.file).change("morph-targets-missing", template, listed(lacking))
    return scene


def _mesh(part: Part, found: LindenMesh, skeleton: Skeleton) -> Mesh:
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    points = found.positions.astype(np.float64)
    count = len(points)
    if part.joint:
        points = points + skeleton_table.rest_matrices()[part.joint][:3, 3]
        indices, weights = np.full((count, 1), place[part.joint]), np.ones((count, 1))
    else:
        if not found.joints:
            raise FormatError("It has no weights", file=part.file)
        joints = np.array([place[name or skeleton_table.ROOT] for name in found.joints])
        indices, weights = joints[found.joint_indices], found.joint_weights.astype(np.float64)
    keys = []
    for name in morphs_of(part.mesh):
        if name in found.morphs:
            moved = points.copy()
            np.add.at(moved, found.morphs[name].vertices, found.morphs[name].positions)
            keys.append(ShapeKey(name, space.BASIS.vectors(moved)))
    a, b, c = found.triangles.T
    triangles = found.triangles[(a != b) & (b != c) & (c != a)]
    return Mesh(
        space.BASIS.vectors(points),
        triangles.reshape(-1).astype(np.int32),
        np.zeros(len(triangles), np.int32),
        [part.material],
        normal=Layer("Normal", space.BASIS.vectors(found.normals)),
        uvs=[Layer("UVMap", found.uvs)],
        joint_indices=indices.astype(np.int32),
        joint_weights=weights.astype(np.float32),
        shape_keys=keys,
        name=part.name,
    )


def mannequin() -> Scene:
    """Return the mannequin with the avatar's skeleton; ``scripts/make_mannequin.py`` makes its file."""
    skeleton = avatar_skeleton()
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    file = resources.files(skeleton_table.__package__).joinpath("mannequin.npz")
    with file.open("rb") as stream, np.load(stream) as stored:
        quads, joints = stored["quads"].astype(np.int32), [place[name] for name in stored["joints"].tolist()]
        mesh = Mesh(
            space.BASIS.vectors(stored["points"]),
            quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1),
            np.zeros(2 * len(quads), np.int32),
            [MANNEQUIN],
            joint_indices=np.array(joints, np.int32)[stored["joint_indices"]],
            joint_weights=stored["joint_weights"],
            polygon_sizes=np.full(len(quads), 4, np.int32),
        )
    nodes, materials = [Node(MANNEQUIN, mesh=mesh, skeleton=0)], [Material(MANNEQUIN, _COLOR)]
    return Scene(MANNEQUIN, nodes=nodes, skeletons=[skeleton], materials=materials)
