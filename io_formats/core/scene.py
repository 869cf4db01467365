"""The neutral scene, to which all formats are mapped.

Space: right-handed, Z up, metres, counter-clockwise triangles, texture v up; quaternions are (w, x, y, z). Only a
format's ``mapping`` uses another space. Arrays are C-contiguous NumPy arrays. Letters in shapes: P points, T
triangles, C = 3 T corners, N values of a layer, F frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .messages import Message, Report

if TYPE_CHECKING:
    from .glb_materials import GltfMaterial
    from .placement import Placement
    from .shading import Mapping, Shading, Texture

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
AnyArray = npt.NDArray[Any]
Matrix4 = npt.NDArray[np.float64]
"""(4, 4) for column vectors."""

NORMAL_TOLERANCE = 5e-4
"""Default for the largest difference of two normals that are written as one."""


class PassThrough:
    """Base of values that only the code of one format understands.

    All other code copies the reference with the object that carries it and never looks inside.
    """


class ImportChoice(NamedTuple):
    """The value that an import option had when an object was imported."""

    option: str
    """Name of the option."""
    value: str
    """Value as text: "True", "False" or the key of a choice."""
    owner: str
    """Name of the object that was imported with this value."""


class Role(Enum):
    """Purpose of a node's mesh."""

    RENDER = "render"
    PHYSICS = "physics"
    HULL = "hull"


@dataclass(eq=False, repr=False)
class Layer:
    """Values on a mesh: a normal, tangent, UV, colour or custom layer.

    It has one of three layouts:

    * one value for each point: ``index is None`` and ``per_corner`` false; N = P
    * one value for each corner: ``index is None`` and ``per_corner`` true; N = C
    * shared values: ``index`` (C,) int32 is the index of each corner's value
    """

    name: str
    values: AnyArray
    """(N, k) float32 for normals, tangents and UVs; colours (N, 4) float32 or uint8; custom layers any dtype."""
    index: IntArray | None = None
    per_corner: bool = False
    stored: AnyArray | None = None
    """Quantised values from the file, if they cannot be computed exactly from ``values``: for directions, which are of
    unit length, (N, m) uint8; for UVs with more steps than floats (N, 2) uint16, which also separate corners with equal
    ``values``; for float colours (N, 3) float32, the sRGB-encoded values of the file. A writer with the same
    quantisation reuses them while the values are unchanged; other writers ignore them. Passes that sort or change
    values may discard them."""

    def at_corners(self, corner_point: IntArray) -> AnyArray:
        """Return the values of all corners, (C, k)."""
        # NumPy's take is several times faster than indexing
        if self.index is not None:
            return self.values.take(self.index, axis=0)
        return self.values if self.per_corner else self.values.take(corner_point, axis=0)

    def rows(self, chosen: AnyArray | slice) -> Layer:
        """Return the layer with only the chosen rows of ``values`` and ``stored``."""
        stored = self.stored if self.stored is not None and len(self.stored) == len(self.values) else None
        return replace(self, values=self.values[chosen], stored=None if stored is None else stored[chosen])

    def on_vertices(self, corner: npt.NDArray[np.intp], point: IntArray) -> Layer:
        """Return the layer with one value and stored value for each vertex; parameters like :meth:`at_vertices`."""
        spread = Layer(self.name, self.at_vertices(corner, point))
        if self.stored is not None and len(self.stored) == len(self.values):
            spread.stored = replace(self, values=self.stored).at_vertices(corner, point)
        return spread

    def at_vertices(self, corner: npt.NDArray[np.intp], point: IntArray) -> AnyArray:
        """Return the values of unique vertices, (V, k), each given by one of its corners and its point."""
        if self.index is not None:
            return self.values.take(self.index[corner], axis=0)
        return self.values.take(corner if self.per_corner else point, axis=0)


@dataclass(eq=False, repr=False)
class ShapeKey:
    """One absolute shape of a mesh: points (P, 3) float32 in the space of the mesh. The base shape is not a key.

    Names are unique within a mesh. ``normal`` and ``tangent`` are those of the deformed mesh if known, with the layout
    of the mesh's own layers.
    """

    name: str
    points: FloatArray
    normal: Layer | None = None
    tangent: Layer | None = None


@dataclass(repr=False)
class Surface:
    """Settings that a file stores for the triangles of one material slot, besides the material.

    Names of surfaces need not be unique.
    """

    name: str
    uvs: tuple[bool, ...] | None = None
    """Whether the surface uses each of ``Mesh.uvs``; None for all."""
    has_colors: bool = True
    has_weights: bool | None = None
    """Whether weights are written; None: if any of its points has a weight."""
    shape_keys: dict[str, str] | None = None
    """Shape keys of the mesh that the surface uses, each with its name in the file; None for all keys that move one of
    its points."""
    lightmap_channel: int | None = None
    """UV channel of the lightmap."""
    lightmap_resolution: int | None = None
    """Lightmap size as a code: 32 pixels shifted left by it."""
    base_name: str = ""
    """Name of the base shape in the file."""
    order: int | None = None
    """Index of the surface in its file; None if it did not come from a file."""
    is_empty: bool = False
    """Whether the surface had no triangles in its file, so that an export writes it without triangles."""
    position_domain: tuple[float, ...] | None = None
    """Range over which a file quantised the positions, in the axes of the mesh: 3 minima, 3 maxima."""
    uv_domain: tuple[float, ...] | None = None
    """Range over which a file quantised the UVs: 2 minima, 2 maxima."""

    @property
    def has_lightmap(self) -> bool:
        return self.lightmap_channel is not None or self.lightmap_resolution is not None

    def without_domains(self) -> Surface:
        """Return the surface without quantisation ranges, which only hold for the vertices of the file."""
        if self.position_domain is None and self.uv_domain is None:
            return self
        return replace(self, position_domain=None, uv_domain=None)


@dataclass(eq=False, repr=False)
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

    Sign 0: the triangle has no area in the UV layer, so that any tangent is acceptable.
    """
    uvs: list[Layer] = field(default_factory=list)
    colors: list[Layer] = field(default_factory=list)
    custom: list[Layer] = field(default_factory=list)
    joint_indices: IntArray | None = None
    """(P, k) int32 into the skeleton's joints; unused slots have weight 0."""
    joint_weights: FloatArray | None = None
    shape_keys: list[ShapeKey] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    """One for each of ``materials`` if the file has surfaces, otherwise empty. Slots with the same material stay
    separate."""
    polygon_sizes: IntArray | None = None
    """(G,) number of corners of each polygon; each polygon is a fan of consecutive triangles. None if all polygons are
    triangles. It is only a hint for building meshes in Blender: all other code works with the triangles, and sizes that
    do not match them are ignored."""
    name: str = ""
    """Name of the mesh in its file. If empty, the mesh has the name of its node."""
    render_uv: int = 0
    """Index of the layer of ``uvs`` that the target program shows."""
    symbols: dict[str, str] = field(default_factory=dict)
    """Symbols of materials in the file by material name, if sorting by symbols differs from sorting by names. The
    target program numbers faces by symbols."""
    own_files: frozenset[str] | None = None
    """Paths of the only files that an export may replace with this mesh, if it was made from a source file in place of
    the engine's own mesh; None for other meshes."""

    @property
    def triangle_count(self) -> int:
        return len(self.corner_point) // 3

    def layers(self) -> Iterator[Layer]:
        """Yield every layer of the mesh, without those of its shape keys."""
        if self.normal is not None:
            yield self.normal
        if self.tangent is not None:
            yield self.tangent
        yield from self.uvs
        yield from self.colors
        yield from self.custom

    def with_layers(self, change: Callable[[Layer], Layer]) -> Mesh:
        """Return the mesh with ``change`` applied to every layer, including those of shape keys."""
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


@dataclass(eq=False, repr=False)
class Skin:
    """The binding of a node's mesh to joints: v_posed = sum of w_j * pose_j * inverse_bind_j * bind_shape * v.

    Matrices are for column vectors, (4, 4) float64, in the space of the skeleton.
    """

    joint_names: list[str]
    """The joints listed by the file, in its order; some may be unused."""
    inverse_bind: npt.NDArray[np.float64]
    """(n, 4, 4) inverse bind matrices."""
    bind_shape: npt.NDArray[np.float64]
    """(4, 4): from the mesh's own space to the skeleton's; equals the node's transform if that can represent it."""
    joint_positions: npt.NDArray[np.float64] | None = None
    """(n, 3) positions of the joints relative to their parents, in metres, if the file overrides them."""
    alt_inverse_bind: npt.NDArray[np.float64] | None = None
    """(n, 4, 4) second set of inverse bind matrices, if the file has one."""
    pelvis_offset: float | None = None
    """Height by which the whole figure is raised, in metres."""
    lock_scale: bool = False
    """Whether joints with ``joint_positions`` ignore the body shape sliders."""
    differs_from_rest: bool = False
    """Whether the matrices may bind joints with other axes, scales or places than the skeleton has at rest."""
    turned: Matrix4 | None = field(default_factory=lambda: np.identity(4))
    """(4, 4) rotation about Z of the armature, which the matrices include; None if the armature is leant, scaled or
    mirrored, so that the file binds its joints elsewhere."""
    is_changed: bool = False
    """Whether a program changed the binding, so that its joints are elsewhere than in the file."""
    is_aligned: bool = False
    """Whether the joints of the skeleton rest exactly where the matrices bind them, so that no common correction has to
    be computed."""


@dataclass(repr=False)
class Material:
    """Known properties of a material."""

    name: str
    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """Linear RGB and alpha."""
    emission: float = 0.0
    """Mean of the emitted colour times its strength."""
    is_transparent: bool = False
    """Whether a texture or nodes make parts of its faces transparent; ``color`` has a constant alpha."""
    texture: Texture | None = None
    mapping: Mapping | None = None
    """Position of the texture on the surface, if known."""
    gltf: GltfMaterial | None = None
    """The material as glTF describes it, if the export writes it to a separate file."""
    shading: Shading | None = None
    """The complete appearance of the material, if known; colour, image and emission are then ignored."""
    identity: str = ""
    """Identifier in the target program's project, which distinguishes materials of the same name."""
    properties: dict[str, str] = field(default_factory=dict)
    """Origin of the material, and values without a counterpart in Blender, which are shown to the user."""


@dataclass(eq=False, repr=False)
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
    """The binding of the mesh to ``skeleton``, if the file stores more than the joints' rest transforms."""
    choices: tuple[ImportChoice, ...] = ()
    """Import choices stored on the Blender objects that the node was made from."""
    is_root: bool = False
    """Whether the node is a root in a file. If no node of an export is marked so, a root named like the collection is
    added."""
    is_linkset_root: bool = False
    """Whether the node is the one to which all others of the file are linked."""
    lod_of: int | None = None
    """Index of the node of which this is a coarser level of detail."""
    shape_of: int | None = None
    """Index of the node of which this is the physics mesh or a hull."""
    is_base_hull: bool = False
    """Whether a hull is the one around the whole model."""
    generated_from: str = ""
    """Name of the object from which the export generated this level of detail or hull."""
    to_object: Matrix4 | None = None
    """Matrix from the node's space to the local space of its Blender object, if the object's transform mirrors or
    shears, or a level or shape stands elsewhere; None if both spaces are the same."""
    world: Matrix4 | None = None
    """Matrix from the node's space to Blender's world space, which is used to join meshes of several nodes; None for
    the identity."""
    file_matrix: Matrix4 | None = None
    """Matrix in the file. Translation, rotation and scale are its decomposition in single precision. Writers use it as
    long as they still match."""
    submodel: int = 0
    """Index of this part of a model that is split into several files because of its many materials; otherwise 0."""
    pass_through: PassThrough | None = None

    @property
    def model(self) -> int | None:
        """Index of the node that this level of detail, physics mesh or hull belongs to."""
        return self.shape_of if self.lod_of is None else self.lod_of


@dataclass(repr=False)
class Joint:
    """A joint of a skeleton; the bind transform is local to its parent."""

    name: str
    """In the file."""
    parent: int = -1
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    label: str = ""
    """Name of its bone; empty for the name in the file."""
    inverse_bind: FloatArray | None = None
    """(4, 4) float32 if the file has one."""
    tail: tuple[float, float, float] | None = None
    """Tail of its bone relative to its head, in the axes of the skeleton, if known; used for drawing bones."""
    up: tuple[float, float, float] | None = None
    """Direction of the Z axis of a bone with ``tail``, in the axes of the skeleton; None: the importer decides."""
    group: str = ""
    """Name of the bone collection for the joint's bone, or empty."""
    deforms: bool = True
    """Whether the bone may deform meshes in Blender; False for bones that only control others."""
    automatic_weights: bool | None = None
    """Whether automatic weights use the joint even if it has no weights. None if the file does not state this."""
    aliases: tuple[str, ...] = ()
    """Other names that bones for this joint may have."""
    target_joint: str = ""
    """Name of the joint of the target skeleton that the user chose for the bone, if any."""
    is_as_imported: bool = False
    """Whether neither the bone nor its parent was moved since the import that created them."""


@dataclass(eq=False, repr=False)
class Skeleton:
    """Joints in the file's order, with parents given by index; children may come before their parents.

    Joints are in the space of the meshes that they deform. Values of the bind transforms are exactly those of the file;
    only the order of rotation components differs.
    """

    name: str
    joints: list[Joint] = field(default_factory=list)
    has_bind: bool = True
    """Whether the file stores bind transforms; otherwise the bind transforms are the first frame of its animation."""
    choices: tuple[ImportChoice, ...] = ()
    guid: str = ""
    """Identifier of the skeleton if it is a separate file."""
    path: str = ""
    """Path of that file inside the target program's project."""
    share_distance: float | None = None
    """Largest distance in metres between a joint with weights and its bone in an existing armature that meshes of this
    file may use. None if all joints must be the same."""
    bone_axes: str = ""
    """Identifier of the directions that ``tail`` and ``up`` give to bones, if actions depend on it."""
    inherits_scale: bool = True
    """Whether the scale of a posed joint also scales its children, and not only their distance."""
    hidden_groups: frozenset[str] = frozenset()
    """Groups of joints whose bone collections are hidden in a new armature."""
    slider_values: dict[int, float] | None = None
    """Positions in percent of the sliders that shape the figure, by number; the others stay as they are. None if the
    file has no shape."""
    file_data: str = ""
    """Data of the file that Blender cannot show, as text that the format understands."""


@dataclass(eq=False, repr=False)
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
    is_scaled: bool = False
    """Whether the joint is scaled in a way that the track leaves out, since joints of the target are not scaled."""


@dataclass(eq=False, repr=False)
class Keys:
    """Keys of one channel, linear between them; quaternions (w, x, y, z) are normalised."""

    times: npt.NDArray[np.float64]
    """(n,) seconds from the start of the clip, in ascending order."""
    values: npt.NDArray[np.float64]
    """(n, 3) or (n, 4)."""


@dataclass(eq=False, repr=False)
class KeyTrack:
    """Keys of the local transform of one joint, at arbitrary times; channels without keys are at rest."""

    target: int
    """Index of the joint."""
    skeleton: int
    translation: Keys | None = None
    rotation: Keys | None = None
    is_offset: bool = False
    """Whether translations are relative to the rest transform, in the axes of the skeleton."""


@dataclass(repr=False)
class Playback:
    """How the target program plays a clip; times in seconds."""

    is_looped: bool = False
    """Whether the animation repeats from ``loop_in`` to ``loop_out`` until it is stopped."""
    loop_in: float = 0.0
    loop_out: float = 0.0
    ease_in: float = 0.0
    ease_out: float = 0.0
    priority: int = 0
    joint_priorities: dict[str, int] = field(default_factory=dict)
    """Priorities of the joints that differ from ``priority``, by name."""
    hand_pose: int = 0
    emote: str = ""


@dataclass(eq=False, repr=False)
class VertexTrack:
    """Sampled points of a node's mesh: (F, K, 3) float32, absolute, in the node's space.

    The first K <= P points are animated, the others rest. ``normals`` and ``tangents`` (F, K, 3) float32 are the
    animated frame of each point, if known.
    """

    target: int
    points: FloatArray
    normals: FloatArray | None = None
    tangents: FloatArray | None = None
    mesh: Mesh | None = None
    """Copy of the node's mesh as it was read, if known, since programs can change the mesh."""


@dataclass(eq=False, repr=False)
class Clip:
    """A named animation; all tracks have ``frame_count`` frames at ``fps`` frames per second.

    ``fps`` is 0 if the file does not state it. A clip may have no frames.
    """

    name: str
    fps: float
    frame_count: int
    transforms: list[TransformTrack] = field(default_factory=list)
    vertices: list[VertexTrack] = field(default_factory=list)
    has_own_rate: bool = False
    """Whether ``fps`` was read from a file; a format without frame rates then loses it."""
    root_motion: bool = False
    """Whether the movement of the root joint moves the whole figure."""
    keys: list[KeyTrack] = field(default_factory=list)
    """Tracks with keys at arbitrary times, for a file that has no frames."""
    duration: float = 0.0
    """Length in seconds of a clip with ``keys`` or ``times``."""
    times: npt.NDArray[np.float64] | None = None
    """(F,) seconds of the frames from the start; None: frame / fps."""
    key_rate: float = 0.0
    """Lowest frame rate that has a frame at each of the ``keys``; 0 if there is none."""
    time_step: float = 0.0
    """Precision of the times of ``keys`` in seconds. Keys closer than this to a frame of Blender are moved to that
    frame."""
    worlds: npt.NDArray[np.float64] | None = None
    """(F, J, 4, 4) matrices of all joints of the only skeleton in its space, with any shear, if they were sampled."""
    is_pose: bool = False
    """Whether the clip is a pose of all joints, in a single frame."""
    loop: tuple[float, float] | None = None
    """Start and end in seconds of the part that repeats, for a clip without ``playback``."""
    playback: Playback | None = None
    original: bytes = b""
    """Content of the file that the clip was read from, so that its format can write unchanged joints as they were."""

    @property
    def frames_at_rate(self) -> int:
        """The number of frames at ``fps``; ``times`` between these are not counted."""
        return self.frame_count if self.times is None or not self.fps else round(self.duration * self.fps) + 1


@dataclass(eq=False, repr=False)
class Scene:
    """A file's content in Blender's space, and the warnings of its reader."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    skeletons: list[Skeleton] = field(default_factory=list)
    clips: list[Clip] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    """Known properties of materials used by meshes; materials without known properties are not included."""
    placement: Placement | None = None
    """Placed models of other files, for a file that has no nodes of its own."""
    warnings: list[Message] = field(default_factory=list)
    """All messages about the content of the file."""
    format: str = ""
    """Name of the format of the file; empty for a scene read from Blender."""
    source_name: str = ""
    """Name stored inside the file, if it is not the file name."""
    file_materials: dict[str, set[str]] = field(default_factory=dict)
    """Names that materials have in the files that objects of Blender were imported from, by name of the format."""
    level_names: tuple[str, ...] = ()
    """Names of the levels of detail in the format, the finest first."""
    as_imported: bool = False
    """Whether imported models are written unchanged."""
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
        """Return a scene with a part of the content and with the settings of this one, without its warnings."""
        return replace(
            self,
            name=name,
            nodes=list(nodes),
            skeletons=list(skeletons),
            clips=list(clips),
            materials=list(materials),
            warnings=[],
        )

    @property
    def report(self) -> Report:
        """The report that adds to ``warnings``."""
        return Report(self.warnings)

    @property
    def triangle_count(self) -> int:
        return sum(node.mesh.triangle_count for node in self.nodes if node.mesh)


_WHITE = 0.999
_DARK = 1e-3
_BRIGHTEST = 1e6


def plain_shading(given: Material, *, has_vertex_color: bool) -> Shading:
    """Return the shading of a material of which only colour, image and emission are known.

    Colour attributes are multiplied onto the colour, as game shaders do. The emitted colour is the base colour; the
    file's emission is the mean of that colour times the strength.
    """
    from .shading import Channel, Factor, ImageMap, Opacity, Shading, Tint

    red, green, blue, alpha = _within_one(given.color)
    image = ImageMap(given.texture, is_color=True) if given.texture is not None else None
    base = Tint((red, green, blue), image, has_vertex_color)
    mean = (red + green + blue) / 3
    is_dark = mean <= _DARK
    return Shading(
        base_color=base,
        roughness=Factor(0.8),
        emission=(Tint() if is_dark and base == Tint(base.value) else base) if given.emission > 0 else None,
        emission_strength=min(given.emission, _BRIGHTEST) / (1.0 if is_dark else mean),
        opacity=Opacity.DITHERED,
        alpha=Factor(1.0, image, Channel.ALPHA) if alpha >= _WHITE else Factor(alpha),
    )


def _within_one(color: Sequence[float]) -> tuple[float, float, float, float]:
    """Return a colour clamped to 0..1, with NaN replaced by 0."""
    red, green, blue, alpha = (0.0 if math.isnan(part) else min(max(part, 0.0), 1.0) for part in color)
    return (red, green, blue, alpha)
