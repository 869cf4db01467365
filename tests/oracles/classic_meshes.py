"""Writes meshes of the classic avatar with ``struct``, from the page on shapes alone (section 8.1)."""

from __future__ import annotations

import csv
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Vector = Sequence[float]

JOINTS = {
    "avatar_head.llm": ["mNeck", "mHead"],
    "avatar_upper_body.llm": [
        *("mPelvis", "mTorso", "mChest", "mNeck", "mCollarLeft", "mShoulderLeft", "mElbowLeft", "mWristLeft"),
        *("mCollarRight", "mShoulderRight", "mElbowRight", "mWristRight"),
    ],
    "avatar_lower_body.llm": [
        "mPelvis",
        "mHipRight",
        "mKneeRight",
        "mAnkleRight",
        "mHipLeft",
        "mKneeLeft",
        "mAnkleLeft",
    ],
    "avatar_eyelashes.llm": ["mHead"],
    "avatar_eye.llm": [],
}
"""Joints that the files name; that of the eyes has no weights."""
LISTS = {
    "avatar_head.llm": "mChest mNeck mHead",
    "avatar_eyelashes.llm": "mNeck mHead",
    "avatar_upper_body.llm": "- mPelvis mTorso mChest mNeck mChest mCollarLeft mShoulderLeft mElbowLeft mWristLeft "
    "mChest mCollarRight mShoulderRight mElbowRight mWristRight",
    "avatar_lower_body.llm": "- mPelvis mHipRight mKneeRight mAnkleRight mPelvis mHipLeft mKneeLeft mAnkleLeft",
}
"""The joints that weights count, as on the page (section 8.3); a dash is the root."""
MESHES = {
    "avatar_head.llm": "headMesh",
    "avatar_upper_body.llm": "upperBodyMesh",
    "avatar_lower_body.llm": "lowerBodyMesh",
    "avatar_eyelashes.llm": "eyelashMesh",
    "avatar_eye.llm": "eyeBallLeftMesh",
}
_EFFECTS = Path(__file__).resolve().parents[2] / "io_formats" / "second_life" / "avatar" / "effects.csv"


def name64(text: str) -> bytes:
    return text.encode("ascii").ljust(64, b"\0")


def written(
    points: Sequence[Vector],
    triangles: Sequence[Sequence[int]],
    *,
    weights: Sequence[float] | None = None,
    joints: Sequence[str] = (),
    morphs: Mapping[str, Mapping[int, Vector]] | None = None,
    remaps: Sequence[tuple[int, int]] = (),
    detail: bool = False,
) -> bytes:
    """Return the bytes of a file; normals point away from the origin, and UVs are the first two coordinates."""
    count = len(points)
    out = [b"Linden Binary Mesh 1.0\0\0", struct.pack("<BB", weights is not None, detail)]
    out.append(struct.pack("<3f3fB3f", 0, 9, 0, 0, 0, 0, 0, 1, 1, 1))
    out.append(struct.pack("<H", count))
    out += [struct.pack("<3f", *point) for point in points]
    out += [struct.pack("<3f", *(np.array(point) / (np.linalg.norm(point) or 1.0))) for point in points]
    out += [struct.pack("<3f", 1, 0, 0) for _ in points]
    out += [struct.pack("<2f", point[0], point[1]) for point in points]
    if detail:
        out += [struct.pack("<2f", 0.25, 0.75) for _ in points]
    if weights is not None:
        out += [struct.pack("<f", weight) for weight in weights]
    out.append(struct.pack("<H", len(triangles)))
    out += [struct.pack("<3h", *triangle) for triangle in triangles]
    if weights is not None:
        out.append(struct.pack("<H", len(joints)))
        out += [name64(joint) for joint in joints]
    for name, moved in (morphs or {}).items():
        out += [name64(name), struct.pack("<i", len(moved))]
        out += [struct.pack("<I3f3f3f2f", vertex, *by, 0, 0, 1, 1, 0, 0, 0.5, 0.5) for vertex, by in moved.items()]
    out.append(name64("End Morphs"))
    out.append(struct.pack("<i", len(remaps)))
    out += [struct.pack("<ii", source, target) for source, target in remaps]
    return b"".join(out)


def morph_names(mesh: str) -> list[str]:
    """Return the names of the morph targets that the table has for a mesh."""
    with _EFFECTS.open(encoding="utf-8", newline="") as stream:
        rows = [row["target"].split(":") for row in csv.DictReader(stream) if row["kind"] == "morph"]
    return list(dict.fromkeys(name for of_mesh, name in rows if of_mesh == mesh))


@dataclass
class Made:
    """What is in a made-up file."""

    points: list[list[float]]
    faces: list[tuple[int, int, int]]
    weights: list[float]
    joints: list[str]
    counted: list[str]
    """Joints that the weights count; see :data:`LISTS`."""
    morphs: dict[str, dict[int, Vector]]


def made_parts() -> dict[str, Made]:
    """Return made-up meshes of all files: two rings of eight vertices, and every morph target of the table."""
    found = {}
    for number, (file, joints) in enumerate(JOINTS.items()):
        angles = np.linspace(0, 2 * np.pi, 8, endpoint=False)
        ring = np.stack((np.cos(angles), np.sin(angles)), axis=1) * 0.1
        heights = np.repeat((0.3 * number, 0.3 * number + 0.2), 8)
        sides = [(i, (i + 1) % 8, (i + 1) % 8 + 8) for i in range(8)] + [(i, (i + 1) % 8 + 8, i + 8) for i in range(8)]
        morphs = {
            name: {vertex: (0.001 * (place + 1), 0.002, -0.001 * vertex) for vertex in range(place % 16 + 1)}
            for place, name in enumerate(morph_names(MESHES[file]))
        }
        counted = LISTS.get(file, "").split()
        most = len(counted) - 1
        weights = [1.0 + (most - 1.0) * vertex / 15 for vertex in range(16)] if joints else []
        points = np.column_stack((np.tile(ring, (2, 1)), heights)).tolist()
        found[file] = Made(points, sides, weights, joints, counted, morphs)
    return found


def folder_of_viewer() -> dict[str, bytes]:
    """Return the files of :func:`made_parts`."""
    return {
        file: written(
            made.points,
            made.faces,
            weights=made.weights if made.joints else None,
            joints=made.joints,
            morphs=made.morphs,
            remaps=[(0, 8)],
        )
        for file, made in made_parts().items()
    }
