"""The neutral scene: the one model in which all formats meet.

Space: right-handed, Z up, metres, counter-clockwise triangles, texture v up; quaternions are
(w, x, y, z). Only a format's ``scene_mapping`` knows another space. Arrays are C-contiguous
NumPy arrays; letters in shapes: P points, T triangles, C = 3 T corners, N values of a layer,
F frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from .findings import Finding

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
AnyArray = npt.NDArray[Any]
Matrix4 = npt.NDArray[np.float64]
"""(4, 4) for column vectors."""

NORMAL_TOLERANCE = 5e-4
"""Largest difference of two normals that are written as one, if an export says nothing else."""


class PassThrough:
    """Base of values that only the code of one format understands.

    All other code copies the reference with the object that carries it and never looks inside.
    """


@dataclass(frozen=True)
class ImportChoice:
    """The value that an import option had when an object was imported."""

    option: str
    """Name of the option."""
    value: str
    """Value as text: "True", "False" or the key of a choice."""
    owner: str
    """Name of the object."""


class Role(Enum):
    """What a node's mesh is for."""

    RENDER = "render"
    PHYSICS = "physics"
    HULL = "hull"


@dataclass
class Layer:
    """Values on a mesh: a normal, tangent, UV, colour or custom layer.

    Exactly one of three layouts holds:

    * a value a point: ``index is None`` and ``per_corner`` false; N = P
    * a value a corner: ``index is None`` and ``per_corner`` true; N = C
    * shared values: ``index`` (C,) int32 names the value of each corner
    """

    name: str
    values: AnyArray
    """(N, k) float32 for normals, tangents and UVs; colours (N, 4) float32 or uint8; custom layers any dtype."""
    index: IntArray | None = None
    per_corner: bool = False
    stored: AnyArray | None = None
    """(N, m) uint8: the numbers that a file rounded the values to, where the values, which are of unit length, do not
    give them back; of float colours (N, 3) float32, the sRGB-encoded values of the file. A writer with the same
    quantisation writes them again where they still mean the same; others ignore them. Passes that sort or change
    values may discard them."""

    def at_corners(self, corner_point: IntArray) -> AnyArray:
        """Return the values of all corners, (C, k)."""
        # take gathers rows several times faster than indexing does
        if self.index is not None:
            return self.values.take(self.index, axis=0)
        return self.values if self.per_corner else self.values.take(corner_point, axis=0)

    def rows(self, chosen: AnyArray | slice) -> Layer:
        """Return the layer with some of its values, and what was stored for them."""
        stored = self.stored if self.stored is not None and len(self.stored) == len(self.values) else None
        return replace(self, values=self.values[chosen], stored=None if stored is None else stored[chosen])

    def on_vertices(self, corner: npt.NDArray[np.intp], point: IntArray) -> Layer:
        """Return the layer with a value a vertex, and what was stored for it; parameters as :meth:`at_vertices`."""
        spread = Layer(self.name, self.at_vertices(corner, point))
        if self.stored is not None and len(self.stored) == len(self.values):
            spread.stored = replace(self, values=self.stored).at_vertices(corner, point)
        return spread

    def at_vertices(self, corner: npt.NDArray[np.intp], point: IntArray) -> AnyArray:
        """Return the values of unique vertices, (V, k), each given by one of its corners and its point."""
        if self.index is not None:
            return self.values.take(self.index[corner], axis=0)
        return self.values.take(corner if self.per_corner else point, axis=0)


@dataclass
class ShapeKey:
    """One absolute shape of a mesh: points (P, 3) float32, in the space of the mesh; the mesh's own points are no key.

    Names are unique within a mesh. ``normal`` and ``tangent`` are those of the deformed mesh where known, laid out
    like the mesh's own.
    """

    name: str
    points: FloatArray
    normal: Layer | None = None
    tangent: Layer | None = None


@dataclass
class Surface:
    """What a file keeps of the triangles of one material slot, beside the material.

    Names need not be unique.
    """

    name: str
    uvs: tuple[bool, ...] | None = None
    """For each of ``Mesh.uvs`` whether the surface holds it; None: all."""
    has_colors: bool = True
    has_weights: bool | None = None
    """None: where there are any."""
    shape_keys: dict[str, str] | None = None
    """Names of the mesh's shape keys that the surface holds, each with its name in the file; None: those that
    move one of its points."""
    lightmap_channel: int | None = None
    """UV channel of the lightmap."""
    lightmap_resolution: int | None = None
    """Lightmap size as a code: 32 pixels shifted left by it."""
    base_name: str = ""
    """Name of the base shape."""
    order: int | None = None
    """Index of the surface in its file; None if it did not come from a file."""
    is_empty: bool = False
    """Whether the surface had no triangles in its file, so that it is written without any."""
    position_domain: tuple[float, ...] | None = None
    """Range that a file quantised the positions over, in the axes of the mesh: 3 minima, 3 maxima."""
    uv_domain: tuple[float, ...] | None = None
    """Range that a file quantised the UVs over: 2 minima, 2 maxima."""

    @property
    def has_lightmap(self) -> bool:
        return self.lightmap_channel is not None or self.lightmap_resolution is not None

    def without_domains(self) -> Surface:
        """Return the surface without quantisation ranges, which only hold for the vertices of the file."""
        if self.position_domain is None and self.uv_domain is None:
            return self
        return replace(self, position_domain=None, uv_domain=None)


@dataclass
class Mesh:
    """Triangles over shared points.

    ``corner_point`` (C,) int32 counts counter-clockwise; ``material_index`` (T,) int32 points into
    ``materials``, where an empty name means "no material". Colours are sRGB-encoded 8-bit values
    in uint8 layers and linear in float32 layers; alpha is linear in both.
    """

    points: FloatArray
    corner_point: IntArray
    material_index: IntArray
    materials: list[str] = field(default_factory=list)
    normal: Layer | None = None
    tangent: Layer | None = None
    """(N, 4) float32: direction and bitangent sign, bitangent = sign * cross(normal, tangent).

    Sign 0: the triangle has no area in the UV layer, and any tangent will do.
    """
    uvs: list[Layer] = field(default_factory=list)
    colors: list[Layer] = field(default_factory=list)
    custom: list[Layer] = field(default_factory=list)
    joint_indices: IntArray | None = None
    """(P, k) int32 into the skeleton's joints; unused slots have weight 0."""
    joint_weights: FloatArray | None = None
    shape_keys: list[ShapeKey] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    """One for each of ``materials`` where the file has surfaces, none otherwise. Slots of one material stay apart."""

    @property
    def triangle_count(self) -> int:
        return len(self.corner_point) // 3

    def layers(self) -> Iterator[Layer]:
        """Yield every layer that the mesh carries, without those of its shape keys."""
        if self.normal is not None:
            yield self.normal
        if self.tangent is not None:
            yield self.tangent
        yield from self.uvs
        yield from self.colors
        yield from self.custom

    def with_layers(self, change: Callable[[Layer], Layer]) -> Mesh:
        """Return the mesh with every layer, those of shape keys too, put through ``change``."""
        return replace(
            self,
            normal=change(self.normal) if self.normal else None,
            tangent=change(self.tangent) if self.tangent else None,
            uvs=[change(layer) for layer in self.uvs],
            colors=[change(layer) for layer in self.colors],
            custom=[change(layer) for layer in self.custom],
            shape_keys=[
                replace(
                    key,
                    normal=change(key.normal) if key.normal else None,
                    tangent=change(key.tangent) if key.tangent else None,
                )
                for key in self.shape_keys
            ],
        )


@dataclass
class Skin:
    """The binding of one node's mesh to joints: v_posed = sum of w_j * pose_j * inverse_bind_j * bind_shape * v.

    Matrices are for column vectors, (4, 4) float64, in the space of the skeleton.
    """

    joint_names: list[str]
    """The joints that the file lists, in its order; not all need move something."""
    inverse_bind: npt.NDArray[np.float64]
    """(n, 4, 4)."""
    bind_shape: npt.NDArray[np.float64]
    """(4, 4): from the mesh's own space into the skeleton's; the node's transform says the same where it can."""
    joint_positions: npt.NDArray[np.float64] | None = None
    """(n, 3) wanted positions of the joints relative to their parents, in metres, where the file overrides them."""
    alt_inverse_bind: npt.NDArray[np.float64] | None = None
    """(n, 4, 4) second set of inverse bind matrices, where the file has one."""
    pelvis_offset: float | None = None
    """Metres by which the whole figure is lifted."""
    lock_scale: bool = False
    """Whether the joints with ``joint_positions`` ignore the sliders of the body shape."""


@dataclass
class Texture:
    """An image file on a material."""

    name: str
    path: str = ""
    """Where the file lies; empty: it is packed, or was never saved."""
    data: bytes | None = None
    """The file's bytes where it is packed."""
    width: int = 0
    height: int = 0


@dataclass
class Material:
    """What is known of a material beside its name."""

    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """Linear RGB and alpha."""
    emission: float = 0.0
    """Mean of the emitted colour times its strength."""
    texture: Texture | None = None


@dataclass
class Node:
    """An object of the scene; its transform is relative to ``parent`` (index, -1 = root)."""

    name: str
    parent: int = -1
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    mesh: Mesh | None = None
    skeleton: int | None = None
    role: Role = Role.RENDER
    lod: int = 0
    skin: Skin | None = None
    """How the mesh is bound to ``skeleton``, where the file says more than the joints' own rest."""
    choices: tuple[ImportChoice, ...] = ()
    """Of the objects that the node was made from."""
    is_root: bool = False
    """Whether the node is a root of its file, rather than a child of a root that is named like the collection."""
    lod_of: int | None = None
    """Index of the node of which this is a coarser level of detail."""
    shape_of: int | None = None
    """Index of the node of which this is the physics mesh or a hull."""
    is_base_hull: bool = False
    """Whether a hull is the one around the whole model."""
    generated_from: str = ""
    """Name of the object that an export generated this level of detail or hull from."""
    to_object: Matrix4 | None = None
    """From the space of the node into that of its object in Blender, where that mirrors or shears."""
    world: Matrix4 | None = None
    """From the space of the node into world space, where the transform above does not lead there."""
    submodel: int = 0
    """Which of the files of a model with too many materials for one the node becomes."""
    pass_through: PassThrough | None = None

    @property
    def model(self) -> int | None:
        """Index of the node that this level of detail, physics mesh or hull belongs to."""
        return self.shape_of if self.lod_of is None else self.lod_of


@dataclass
class Joint:
    """A joint of a skeleton; the bind transform is local to its parent."""

    name: str
    parent: int = -1
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    inverse_bind: FloatArray | None = None
    """(4, 4) float32 where the file has one."""
    tail: tuple[float, float, float] | None = None
    """Where the joint ends, from its place, in the axes of the skeleton, where that is known: bones are drawn so."""
    group: str = ""
    """Name of the bone collection it belongs to; empty: none."""


@dataclass
class Skeleton:
    """Joints in the file's order, in which children may stand before their parents; each names its parent by index.

    Joints lie in the space of the meshes that they deform. Numbers of the bind transforms are those of the file,
    to the bit: only rotations change the order of their components.
    """

    name: str
    joints: list[Joint] = field(default_factory=list)
    has_bind: bool = True
    """Whether the file holds bind transforms; otherwise those here are the first frame of its animation."""
    choices: tuple[ImportChoice, ...] = ()
    guid: str = ""
    """Identity of the skeleton, where it is a file of its own."""
    path: str = ""
    """Path of that file inside the target program's project."""
    pass_through: PassThrough | None = None


@dataclass
class TransformTrack:
    """Sampled local transforms of one node (or of one joint of ``skeleton``), full, not relative to rest."""

    target: int
    translation: FloatArray
    """(F, 3) float32."""
    rotation: FloatArray
    """(F, 4) float32, (w, x, y, z), unit length."""
    scale: FloatArray
    """(F, 3) float32."""
    skeleton: int | None = None


@dataclass
class VertexTrack:
    """Sampled points of one node's mesh: (F, K, 3) float32, absolute, in the node's space.

    The first K <= P points move, the others rest. ``normals`` and ``tangents`` (F, K, 3) float32
    hold the moving frame of each point where known.
    """

    target: int
    points: FloatArray
    normals: FloatArray | None = None
    tangents: FloatArray | None = None


@dataclass
class Clip:
    """One named animation; all tracks have ``frame_count`` frames at ``fps`` frames a second.

    ``fps`` 0: the file does not say. A clip may have no frame at all.
    """

    name: str
    fps: float
    frame_count: int
    transforms: list[TransformTrack] = field(default_factory=list)
    vertices: list[VertexTrack] = field(default_factory=list)
    has_own_rate: bool = False
    """Whether ``fps`` was read from a file, so that a format without frame rates loses it."""
    root_motion: bool = False
    """Whether the movement of the root joint moves the whole figure."""


@dataclass
class Scene:
    """A file's content in Blender's space, and what its reading found odd."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    skeletons: list[Skeleton] = field(default_factory=list)
    clips: list[Clip] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    """What is known of materials that meshes name; those of which nothing is known are not here."""
    warnings: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """Those of ``warnings`` that name objects to select or have a fix; only scenes out of Blender have any."""
    notes: list[str] = field(default_factory=list)
    """Those of ``warnings`` that report no loss, so that a strict run accepts them."""
    format: str = ""
    """Name of the format of the file that was read; empty for a scene out of Blender."""
    source_name: str = ""
    """Name that the file gives itself inside, where that is not its file name."""
    level_names: tuple[str, ...] = ()
    """What the format calls its levels of detail, the finest first."""
    as_imported: bool = False
    """Whether models that came from a file are written as they came."""
    tolerance: float = NORMAL_TOLERANCE
    """Largest difference of two normals or tangents that an export writes as one."""

    def part(
        self,
        name: str,
        nodes: Iterable[Node] = (),
        skeletons: Iterable[Skeleton] = (),
        clips: Iterable[Clip] = (),
        materials: Iterable[Material] = (),
    ) -> Scene:
        """Return a scene with some of the content and the settings of this one, without its warnings."""
        return replace(
            self,
            name=name,
            nodes=list(nodes),
            skeletons=list(skeletons),
            clips=list(clips),
            materials=list(materials),
            warnings=[],
            findings=[],
        )

    @property
    def triangle_count(self) -> int:
        return sum(node.mesh.triangle_count for node in self.nodes if node.mesh)
