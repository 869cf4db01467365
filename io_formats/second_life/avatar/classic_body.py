"""The classic avatar of a viewer's folder ``character`` -> Scene: meshes with shape keys, bound to the avatar.

The classic avatar's shape keys are the morph targets that parameters of shapes move; :mod:`.parts` computes their
values. Morph targets also move UVs, which shape keys cannot.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Named, listed
from ...core.scene import Layer, Material, Mesh, Node, Scene, ShapeKey, Skeleton
from ...disk.special_files import read_bytes
from ...encodings.byte_reader import ByteStream
from ..models import space
from . import joints as avatar_joints
from . import sliders
from .skeletons import avatar_skeleton

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

SIGNATURE = b"Linden Binary Mesh 1.0\0\0"
_END_OF_MORPHS = "End Morphs"
_NAME_SIZE = 64
_REMAP = np.dtype([("source", "<i4"), ("target", "<i4")])
_MOVED = np.dtype(
    [("vertex", "<u4"), ("position", "<f4", 3), ("normal", "<f4", 3), ("binormal", "<f4", 3), ("uv", "<f4", 2)]
)
ROOT = ""
"""Stands for the root of the avatar, above mPelvis, in lists of joints."""


@dataclass(frozen=True)
class Morph:
    """Differences of n vertices from the base mesh."""

    vertices: Indices
    """(n,)"""
    positions: Floats
    """(n, 3) in metres."""


@dataclass(frozen=True)
class LindenMesh:
    """v vertices in the avatar's space: metres, X forward, Y to the left, Z up."""

    positions: Floats
    """(v, 3)"""
    normals: Floats
    """(v, 3)"""
    uvs: Floats
    """(v, 2), V up."""
    triangles: Indices
    """(t, 3)"""
    joint_indices: Indices
    """(v, 2) places in ``joints`` of the two joints that move each vertex; (v, 0) for rigid meshes."""
    joint_weights: Floats
    """(v, 2), with the sum 1; (v, 0) for rigid meshes."""
    joints: tuple[str, ...]
    """Joints between which weights lead; a joint may occur more than once."""
    morphs: Mapping[str, Morph]


def read_linden_mesh(data: bytes, name: str) -> LindenMesh:
    """Return the mesh in the bytes of a file.

    Raises
    ------
    FormatError
        The file is damaged, or holds only the faces of a coarser level.
    """
    try:
        return _read(ByteStream(data))
    except FormatError as error:
        raise error.in_file(name) from None


def _read(stream: ByteStream) -> LindenMesh:
    if not data_is_mesh(stream.data):
        raise stream.error("This is not a mesh of the classic avatar: it does not begin with 'Linden Binary Mesh 1.0'")
    stream.skip(len(SIGNATURE), "signature")
    has_weights, has_details = (bool(stream.u8("flag")) for _ in range(2))
    stream.skip(12 + 12 + 1 + 12, "position, rotation and scale")
    count = stream.u16("number of vertices")
    positions, normals, _binormals = (
        _floats(stream, (count, 3), what) for what in ("positions", "normals", "binormals")
    )
    uvs = _floats(stream, (count, 2), "UVs")
    if has_details:
        stream.skip(count * 8, "detail UVs")
    places = _floats(stream, (count,), "weights") if has_weights else np.zeros(0, np.float32)
    triangles = _vertices(stream, stream.array("i2", (stream.u16("number of faces"), 3), "faces"), count, "A face")
    joints: tuple[str, ...] = ()
    if has_weights:
        number = stream.u16("number of joints")
        stream.require(number * _NAME_SIZE, "names of joints")
        joints = joint_list([_name(stream, "name of a joint") for _ in range(number)], stream)
    indices, weights = _influences(stream, places, joints)
    morphs = {}
    while (name := _name(stream, "name of a morph target")) != _END_OF_MORPHS:
        stream.item = f"morph target '{name}'"
        rows = stream.array(_MOVED, stream.i32("number of vertices"), "vertices")
        moved = _vertices(stream, rows["vertex"], count, "It")
        morphs[name] = Morph(moved, _finite(stream, rows["position"], "positions"))
        stream.item = ""
    stream.array(_REMAP, stream.i32("number of remaps"), "remaps")
    stream.expect_end()
    return LindenMesh(positions, normals, uvs, triangles, indices, weights, joints, morphs)


def data_is_mesh(data: bytes | memoryview) -> bool:
    """Return whether bytes begin as such a file does."""
    return bytes(data[: len(SIGNATURE)]) == SIGNATURE


def joint_list(names: list[str], stream: ByteStream) -> tuple[str, ...]:
    """Return the joints that weights count, from those that a file names (section 8.3)."""
    table = avatar_joints.table()
    for name in names:
        if name not in table:
            raise stream.error("The avatar has no joint '{}'", Named("bone", name))
    found: list[str] = []
    for name in table:
        if name not in names:
            continue
        above = next((joint for joint in avatar_joints.ancestors(name)[1:] if table[joint].is_base), ROOT)
        if not found or found[-1] != above:
            found.append(above)
        found.append(name)
    return tuple(found)


def _influences(stream: ByteStream, places: Floats, joints: tuple[str, ...]) -> tuple[Indices, Floats]:
    """Split each weight of the file into two joints and their weights, (n, 2).

    Its whole part is the first joint, and its fraction the weight of the second one, which follows in the list.
    """
    if not len(places):
        return np.zeros((0, 0), np.int64), np.zeros((0, 0), np.float32)
    is_outside = (places < 0) | (places >= len(joints))
    if is_outside.any():
        raise stream.error(
            "Vertex {:,} has the weight {:g}, which leads to none of its {} joints",
            int(is_outside.argmax()),
            float(places[is_outside.argmax()]),
            len(joints),
        )
    first = np.floor(places).astype(np.int64)
    part = places - first
    second = np.minimum(first + 1, len(joints) - 1)
    return np.stack((first, second), axis=1), np.stack((1 - part, part), axis=1)


def _floats(stream: ByteStream, shape: tuple[int, ...], what: str) -> Floats:
    return _finite(stream, stream.array("f4", shape, what), what)


def _finite(stream: ByteStream, values: npt.NDArray[Any], what: str) -> Floats:
    if not np.isfinite(values).all():
        raise stream.error("Its {} have NaN or infinite values", what)
    return np.ascontiguousarray(values, np.float32)


def _vertices(stream: ByteStream, values: npt.NDArray[Any], count: int, what: str) -> Indices:
    """Return indices of vertices, which must exist."""
    is_outside = (values < 0) | (values >= count)
    if is_outside.any():
        raise stream.error("{} uses vertex {:,} of {:,}", what, int(values[is_outside][0]), count)
    return values.astype(np.int64)


def _name(stream: ByteStream, what: str) -> str:
    data = bytes(stream.take(_NAME_SIZE, what))
    if b"\0" not in data:
        raise stream.error("The {} has no end within {} bytes", what, _NAME_SIZE)
    return data[: data.index(b"\0")].decode("latin-1")


@dataclass(frozen=True)
class Part:
    """A mesh of the classic avatar."""

    name: str
    file: str
    mesh: str
    """Name in the table of effects."""
    joint: str = ""
    """Joint that carries a mesh without weights, whose origin it has."""
    material: str = "Body"


PARTS = (
    Part("Head", "avatar_head.llm", "headMesh"),
    Part("Upper Body", "avatar_upper_body.llm", "upperBodyMesh"),
    Part("Lower Body", "avatar_lower_body.llm", "lowerBodyMesh"),
    Part("Eyelashes", "avatar_eyelashes.llm", "eyelashMesh", material="Eyelashes"),
    Part("Left Eye", "avatar_eye.llm", "eyeBallLeftMesh", "mEyeLeft", "Eyes"),
    Part("Right Eye", "avatar_eye.llm", "eyeBallRightMesh", "mEyeRight", "Eyes"),
)
FILES = tuple(dict.fromkeys(part.file for part in PARTS))


def morph_weights(values: Mapping[int, float]) -> dict[str, dict[str, float]]:
    """Return the values of shape keys for a shape, by the names of parts and morph targets.

    ``values`` are those of sliders by id; missing ones have their default.
    """
    weights = dict(zip(sliders.parameters(), sliders.effective_weights(values).tolist(), strict=True))
    return {
        part.name: {name: sum(weights[number] for number in numbers) for name, numbers in morphs_of(part.mesh).items()}
        for part in PARTS
    }


def morphs_of(mesh: str) -> dict[str, list[int]]:
    """Return the parameters that move each morph target of a mesh."""
    found: dict[str, list[int]] = {}
    for morph in sliders.morphs():
        if morph.mesh == mesh:
            found.setdefault(morph.name, []).append(morph.parameter)
    return found


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
    meshes = {name: read_linden_mesh(data, name) for name, data in files.items()}
    skeleton = avatar_skeleton()
    nodes = [Node(part.name, mesh=_mesh(part, meshes[part.file], skeleton), skeleton=0) for part in PARTS]
    scene = Scene(NAME, nodes=nodes, skeletons=[skeleton], materials=list(MATERIALS.values()))
    for part in PARTS:
        lacking = [name for name in morphs_of(part.mesh) if name not in meshes[part.file].morphs]
        # The viewer makes the morph targets of its physics itself; no folder of a viewer has them.
        lacking = [name for name in lacking if not ("_Physics_" in name and name.endswith("_Driven"))]
        if lacking:
            template = "it lacks morph targets that sliders move: {}"
            scene.report.about(part.file).change("morph-targets-missing", template, listed(lacking))
    return scene


def _mesh(part: Part, found: LindenMesh, skeleton: Skeleton) -> Mesh:
    """Return a part of the classic avatar as a mesh with weights and shape keys, in Blender's space."""
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    points = found.positions.astype(np.float64)
    count = len(points)
    if part.joint:
        points = points + avatar_joints.rest_matrices()[part.joint][:3, 3]
        indices, weights = np.full((count, 1), place[part.joint]), np.ones((count, 1))
    else:
        if not found.joints:
            raise FormatError("It has no weights", file=part.file)
        joints = np.array([place[name or avatar_joints.ROOT] for name in found.joints])
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
    with np.load(Path(__file__).with_name("mannequin.npz")) as stored:
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
