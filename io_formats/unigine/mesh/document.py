"""Dataclasses that mirror a UNIGINE mesh file one to one; sections refer to docs/formats/unigine.md.

Letters in shapes: nv coordinate vertices and nt triangle vertices of a surface, C = 3 × triangles corners, nb bones.
Arrays may be read-only views of the file's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.scene import AnyArray, FloatArray
from ..bones import Bone
from ..frames import DeltaFrames

DEFAULT_LIGHTMAP = (1, 3)
"""UV channel and resolution code (0 to 7, meaning 32 to 4096 pixels) of the lightmap of a new surface."""


@dataclass
class Target:
    """A morph target of a surface; the first one is the base shape."""

    name: str
    positions: FloatArray
    """(nv, 3) float32, object space, bind pose."""
    tangents: AnyArray
    """(nt, 4) int16 x, y, z, w / 32767: a quaternion whose sign of w is the handedness (section 3.1). In ms10, w is the
    sign byte, -127 or 127."""


@dataclass
class Weights:
    """Bone weights of the coordinate vertices, one after the other, unsorted."""

    counts: AnyArray
    """(nv,) uint8, number of weights of each vertex, 0 to 4."""
    bones: AnyArray
    """(sum of counts,) int16 bone indices."""
    values: AnyArray
    """(sum of counts,) uint16 / 65535."""


@dataclass
class Surface:
    """A surface: its targets, and attributes of all its vertices (None if absent)."""

    name: str
    bounds: FloatArray
    """(10,) float32: box minimum, box maximum, sphere centre, radius."""
    targets: list[Target] = field(default_factory=list)
    weights: Weights | None = None
    uv0: FloatArray | None = None
    """(nt, 2) float32, v from the top."""
    uv1: FloatArray | None = None
    colors: AnyArray | None = None
    """(nt, 4) uint8: red, green, blue, alpha, as stored."""
    c_indices: AnyArray = field(default_factory=lambda: np.empty(0, np.uint8))
    """(C,) uint8, uint16 or int32 into the coordinate vertices."""
    t_indices: AnyArray = field(default_factory=lambda: np.empty(0, np.uint8))
    """(C,) uint8, uint16 or int32 into the triangle vertices."""
    lightmap_channel: int = DEFAULT_LIGHTMAP[0]
    lightmap_resolution: int = DEFAULT_LIGHTMAP[1]
    collision: bytes | None = None
    """ms14, ms15: the content of the collision block, uncompressed (section 6.4)."""


@dataclass
class SoupSurface:
    """A surface of mr02: triangles that share no vertices."""

    name: bytes
    """128 bytes: the name, padded with zeros."""
    vertices: FloatArray
    """(3 triangles, 8) float32: position, normal, uv with v from the bottom."""


@dataclass
class EmbeddedAnimation:
    """An animation inside a mesh file of ms10 to ms12 (section 5)."""

    name: str
    frames: DeltaFrames


@dataclass
class MeshFile:
    """A mesh file of any version."""

    version: str
    """The magic number, e.g. ``ms13``."""
    bounds: FloatArray = field(default_factory=lambda: np.zeros(10, np.float32))
    bones: list[Bone] = field(default_factory=list)
    transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """(nb, 10) float32 local bind transforms: translation, rotation (x, y, z, w), scale."""
    animations: list[EmbeddedAnimation] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    soup: list[SoupSurface] = field(default_factory=list)
    """Surfaces of mr02; ``surfaces`` is empty in this case."""
    leaf_size: int = 4
    """ms14 and later: :data:`~.collision.LEAF_SIZE` of the collision trees."""
    memory_use: int = 0
    """ms14 and later: the engine's estimate of its memory use in bytes, whose formula is unknown."""
    rest_transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """sk10: (nr, 10) float32 local rest transforms of the first nr bones, like ``transforms``."""
    skeleton_guid: str = ""
    """sk10: identifier of the skeleton file."""
    skeleton_path: str = ""
    """sk10: path of the skeleton file in the project."""
    warnings: list[Any] = field(default_factory=list)
    """Messages of the reader (section 11); not part of the file."""
    own_files: frozenset[str] | None = None
    """The only existing files that an export may replace with this one, see ``Mesh.own_files``; not part of the
    file."""
