"""A complete format in one module: triangles as text. ``docs/developers/adding_a_format.md`` walks through it.

An entry point of the group ``meshferry.formats``, or an add-on, offers it by ``meshferry_formats``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from meshferry.io_formats.core.capabilities import Capabilities
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.format import Family, FileFormat
from meshferry.io_formats.core.messages import Message, warning
from meshferry.io_formats.core.options import Options, option
from meshferry.io_formats.core.recognition import Match, NearMiss
from meshferry.io_formats.core.scene import Mesh, Node, Scene

SIGNATURE = b"TOY 1\n"


# codec.py: the file, one to one.
@dataclass
class Document:
    """Points (P, 3) and the points of each triangle (T, 3)."""

    points: np.ndarray
    triangles: np.ndarray


# format.py
class ReadOptions(Options):
    """The options for reading."""

    toy_scale: float = option(
        "Scale", "Factor for coordinates", default=1.0, minimum=0.001, maximum=1000.0, section="Objects"
    )


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Recognise the signature, and explain files of other versions."""
    if head.startswith(b"TOY ") and not head.startswith(SIGNATURE):
        return NearMiss("This is a toy file of another version", has_signature=True)
    return Match.SIGNATURE if head.startswith(SIGNATURE) else Match.NONE


# codec.py
def read(data: bytes, *, inflated_limit: int | None = None) -> Document:
    """Decode a file."""
    try:
        lines = data.removeprefix(SIGNATURE).decode("ascii").splitlines()
        points = np.array([line.split()[1:] for line in lines if line.startswith("v ")], np.float32).reshape(-1, 3)
        triangles = np.array([line.split()[1:] for line in lines if line.startswith("f ")], np.int32).reshape(-1, 3)
    except (UnicodeDecodeError, ValueError) as problem:
        raise FormatError(f"The file is damaged: {problem}") from None
    if not np.isfinite(points).all() or (len(triangles) and not 0 <= triangles.min() <= triangles.max() < len(points)):
        raise FormatError("The file is damaged: coordinates or triangles are out of range")
    return Document(points, triangles)


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files hold the same."""
    return write(read(one)) == write(read(other))


def write(document: Document) -> bytes:
    """Encode a document."""
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in document.points.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in document.triangles.tolist()]
    return SIGNATURE + "".join(f"{line}\n" for line in lines).encode("ascii")


# mapping.py: the file's space is Blender's.
def to_scene(document: Document, name: str, options: ReadOptions) -> Scene:
    """Map a document to a scene with one node."""
    points = document.points * np.float32(options.toy_scale)
    corners = document.triangles.reshape(-1)
    return Scene(name, [Node(name, mesh=Mesh(points, corners, np.zeros(len(document.triangles), np.int32), [""]))])


def files_of(scene: Scene, options: Options) -> list[Scene]:
    """Return a scene for each mesh."""
    return [replace(scene, name=node.name, nodes=[node]) for node in scene.nodes if node.mesh is not None]


def from_scene(scene: Scene, options: Options) -> Document:
    """Map a scene with one mesh to a document."""
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    return Document(mesh.points, mesh.corner_point.reshape(-1, 3))


# mapping.py, or checks.py where they are long
def check(document: Document) -> list[Message]:
    """Apply the rules of the target program."""
    return [] if len(document.triangles) else [warning("no-triangles", "the file has no triangles")]


def facts(document: Document) -> dict[str, Any]:
    """Return the counts that ``inspect`` prints."""
    return {"version": "1", "nodes": 1, "vertices": len(document.points), "triangles": len(document.triangles)}


# format.py: for the modules of a package, ``modules=modules_of(__package__)``. Here, this module is all of them.
TOY = FileFormat(
    name="toy",
    label="Toy",
    extensions=(".toy",),
    capabilities=Capabilities(normals=True),
    modules=lambda _name: sys.modules[__name__],
    import_options=ReadOptions,
)
FAMILY = Family("toy", "Toy", (TOY,))


def meshferry_formats(_package: ModuleType) -> Family:
    """Return the family. In the extension, whose package has another name, import from ``_package`` instead."""
    return FAMILY
