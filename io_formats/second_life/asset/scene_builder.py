"""Asset -> Scene (formats page, sections 3 to 7): one model, whose nodes share one transform.

Points are those of the file, normalised to a unit cube; the node's transform holds size and location.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core import scene as sc
from ...core.errors import FormatError
from ...core.messages import Message, Report, Text, counted, listed
from ...encodings.quantization import dequantise, dequantise_normals, steps_beyond_floats
from ...geometry.normals import repair, report_repaired
from ...geometry.transforms import Matrix, matrices_to_quaternions, matrix_of_transform
from ...passes.flatten import moved
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX
from ..avatar.joint_positions import Binding, binding_of
from ..avatar.skeletons import bound_skeleton
from ..models import space
from ..models.faces import OFF_ONE
from ..models.level_block import Face, faces_of
from ..models.llsd import as_integer
from ..models.models import SubmodelId
from ..models.physics_block import hulls_of
from ..models.skin_block import skin_of
from ..options import LEVEL_LABELS, LEVELS, ModelReadOptions
from .codec import BLOCK_LABELS, BLOCKS, OLD_PHYSICS_MESH, Asset
from .rules import degenerate_triangles

UV_NAME = "UVMap"
_OWN_KEYS = {*BLOCKS, OLD_PHYSICS_MESH, "material_list", "submodel_id"}
"""Header keys that are written anew from Blender's data."""
_STRAIGHT = 1e-6
"""Relative tolerance for decomposing a matrix into rotation and scale."""


@dataclass
class Place:
    """The transform of a model, in parts that a node can store."""

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    baked: Matrix | None = None
    """(4, 4) shear or mirroring, which translation, rotation and scale cannot hold; applied to the points."""


@dataclass
class Rig:
    """The decoded rig of a skin block."""

    binding: Binding
    skeleton: int
    """Index of the rig's skeleton in the scene."""
    joints: sc.AnyArray
    """(n,) int32: index in the skeleton of each joint of the file."""
    usable: sc.AnyArray
    """(n,) bool: whether the matrices of each joint are usable."""


class SceneBuilder:
    """Map assets to a scene and collect warnings."""

    def __init__(self, name: str, options: ModelReadOptions) -> None:
        self.options = options
        self.scene = sc.Scene(name, level_names=LEVEL_LABELS)
        self.rigs: dict[bytes, Rig] = {}
        """Rigs by the pickled skin block; models with equal bindings share a skeleton."""

    def add(self, asset: Asset, name: str, *, transform: Matrix | None = None) -> None:
        """Add an asset as a model.

        Parameters
        ----------
        transform:
            (4, 4) from the unit cube to the world; None to use the size stated by the asset.

        Raises
        ------
        FormatError
            The asset has no triangles.
        """
        _ModelBuilder(self, asset, name).build(transform)


class _ModelBuilder:
    """Adds the nodes of one asset to a scene."""

    def __init__(self, builder: SceneBuilder, asset: Asset, name: str) -> None:
        self.asset = asset
        self.name = name
        self.builder = builder
        self.options = builder.options
        self.scene = builder.scene
        self.report = builder.scene.report.about(name)

    def build(self, transform: Matrix | None) -> None:
        """Add the levels of detail and the physics shapes; ``transform`` is as for :meth:`SceneBuilder.add`."""
        asset = self.asset
        said = Report(list(asset.warnings))
        levels = [
            (lod, faces_of(asset.blocks[level], said.about(Text(BLOCK_LABELS[level]))))
            for lod, level in enumerate(LEVELS)
            if level in asset.blocks
        ]
        physics = asset.blocks.get("physics_mesh")
        shape = faces_of(physics, said.about(Text("physics mesh"))) if "physics_mesh" in asset.blocks else None
        self.rig = self.decode_rig(asset.blocks["skin"], said) if "skin" in asset.blocks else None
        self.add(said.messages)
        if not any(len(face.triangles) for _, faces in levels for face in faces):
            raise FormatError("There is no geometry in the file: no level of detail has a triangle")
        self.say_lost()
        self.materials = self.material_names(levels)
        self.place = self.place_of(levels, transform)
        self.number = len(self.scene.nodes)
        self.add_levels(levels)
        if shape is not None:
            mesh = self.mesh(shape, is_physics=True)
            self.say_degenerates(mesh)
            self.add_node(self.name + PHYSICS_SUFFIX, mesh, sc.Role.PHYSICS)
        self.add_hulls()

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages about parts of the file, preceded by the model's name."""
        for message in messages:
            text = _lowered(message.message)
            if message.item:
                text = Text("{}: {}", _lowered(message.item), message.message)
            self.report.add(replace(message, item="", message=text))

    def say_lost(self) -> None:
        """Warn about content that the scene does not hold: keys added by servers, and bytes after the blocks."""
        header = self.asset.header
        lost = [key for key in header if key not in _OWN_KEYS]
        inner = {key for name in _OWN_KEYS & set(header) if isinstance(header[name], dict) for key in header[name]}
        lost += sorted(inner - {"offset", "size"})
        if lost:
            self.report.loss(
                "header-keys-left-out", "not carried over, since servers fill them in: {}", listed(lost, 10)
            )
        if self.asset.trailing:
            number = counted(len(self.asset.trailing), "byte", "bytes")
            self.report.loss("bytes-after-end", "{} after the last block not carried over", number)

    def material_names(self, levels: Sequence[tuple[int, list[Face]]]) -> list[str]:
        """Return the material name of each face: that of the file, or model name and face number."""
        stored = self.asset.header.get("material_list")
        names = [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []
        count = max(len(faces) for _, faces in levels)
        if len({len(faces) for _, faces in levels}) > 1:
            self.report.change("face-counts-differ", "its levels of detail have different numbers of faces")
        names = names[:count]
        return names + [f"{self.name}_face_{number}" for number in range(len(names) + 1, count + 1)]

    # -- rig ------------------------------------------------------------------------------------

    def decode_rig(self, block: Any, said: Report) -> Rig | None:
        """Decode a skin block and add its skeleton to the scene; return None if the rig is left out."""
        key = pickle.dumps(block)  # pickling is 30 times as fast as encoding as LLSD
        if key not in self.builder.rigs:
            skin = skin_of(block, said)
            binding = None if skin is None else binding_of(skin, said)
            if skin is None or binding is None:
                return None
            rests_as_in_file = self.options.skeleton_rest == "FILE"
            binding.skin.differs_from_rest |= not rests_as_in_file
            skeleton, joints = bound_skeleton(
                self.name,
                binding.skin.joint_names,
                binding.rests,
                whole_avatar=self.options.skeleton_joints == "AVATAR",
                rest_of_file=rests_as_in_file,
            )
            usable = np.ones(len(skin.joint_names), bool) if skin.usable is None else skin.usable
            rig = Rig(binding, len(self.scene.skeletons), np.array(joints, np.int32), usable)
            self.scene.skeletons.append(skeleton)
            self.builder.rigs[key] = rig
        return self.builder.rigs[key]

    def place_of(self, levels: Sequence[tuple[int, list[Face]]], transform: Matrix | None) -> Place:
        """Return the transform of the unit cube: from the binding, ``transform``, or the size in file or option."""
        if self.rig is not None:
            matrix = space.to_blender(self.rig.binding.mesh_place)
        elif transform is not None:
            matrix = transform
        else:
            stored = next(
                (face.normalized_scale for _, faces in levels for face in faces if face.normalized_scale), None
            )
            if stored is not None and stored != (1.0, 1.0, 1.0):
                return Place(scale=stored)
            size = self.options.assumed_size
            return Place(scale=(size, size, size))
        place = placed(matrix)
        if place.baked is not None:
            template = (
                "its transform mirrors or shears it and was applied to the points; an export normalises them again"
            )
            self.report.change("sheared-transform", template)
        return place

    # -- nodes ----------------------------------------------------------------------------------

    def say_degenerates(self, physics: sc.Mesh) -> None:
        """Warn about triangles that the uploader considers degenerate, so that it rejects the physics mesh."""
        convex = self.asset.blocks.get("physics_convex")
        if isinstance(convex, Mapping) and convex.get("HullList"):
            return  # an upload with hulls does not contain the physics mesh
        bad = int(degenerate_triangles(physics.points, physics.corner_point).sum())
        if bad:
            number = counted(bad, "triangle of its physics mesh is", "triangles of its physics mesh are")
            template = "{} too thin or too small; an upload would be refused"
            self.report.change("degenerate-physics-triangles", template, number)

    def add_node(self, name: str, mesh: sc.Mesh, role: sc.Role = sc.Role.RENDER) -> sc.Node:
        """Add a node with the model's transform: a level of detail, or with another ``role`` a physics shape."""
        node = sc.Node(
            name,
            translation=self.place.translation,
            rotation=self.place.rotation,
            scale=self.place.scale,
            mesh=self.in_place(mesh),
            role=role,
        )
        if role is not sc.Role.RENDER:
            node.shape_of = self.number
        self.scene.nodes.append(node)
        return node

    def in_place(self, mesh: sc.Mesh) -> sc.Mesh:
        """Apply the baked part of the model's transform to a mesh; a rigged mesh is converted from avatar space."""
        if self.rig is not None:
            mesh = space.turned_mesh(mesh)
        if self.place.baked is None:
            return mesh
        for surface in mesh.surfaces:
            surface.position_domain = None
        return moved(mesh, self.place.baked)

    def add_levels(self, levels: Sequence[tuple[int, list[Face]]]) -> None:
        """Add a node for each level; the finest existing level is used as the highest."""
        if levels[0][0]:
            finest = Text(LEVEL_LABELS[levels[0][0]].lower())
            self.report.change("level-missing", "it has no high level; its {} level is used instead", finest)
        elif not any(len(face.triangles) for face in levels[0][1]):
            template = "its high level has no triangles, only coarser ones do; it is invisible from near"
            self.report.change("level-without-triangles", template)
        for place, (lod, faces) in enumerate(levels):
            name = self.name if not place else self.name + LEVEL_SUFFIXES[lod]
            node = self.add_node(name, self.mesh(faces))
            if place:
                node.lod = lod
                node.lod_of = self.number
            elif number := as_integer(self.asset.header.get("submodel_id")):
                node.pass_through = SubmodelId(number)
            if self.rig is not None:
                node.skeleton, node.skin = self.rig.skeleton, self.rig.binding.skin

    def add_hulls(self) -> None:
        """Add a node for each hull and for the base hull, with their points only, in the order of the file."""
        if "physics_convex" not in self.asset.blocks:
            return
        said = Report(item=Text("physics hulls"))
        found = hulls_of(self.asset.blocks["physics_convex"], said)
        self.add(said.messages)
        domain = tuple(found.domain.reshape(6).tolist())
        for number, hull in enumerate(found.hulls, 1):
            self.add_node(f"{self.name}_hull_{number}", _points_only(hull, domain), sc.Role.HULL)
        if found.base is not None:
            node = self.add_node(f"{self.name}_base_hull", _points_only(found.base, domain), sc.Role.HULL)
            node.is_base_hull = True

    def mesh(self, faces: Sequence[Face], *, is_physics: bool = False) -> sc.Mesh:
        """Combine all faces into one mesh, with weights unless it is a physics mesh."""
        names = [*self.materials, *(f"{self.name}_face_{n}" for n in range(len(self.materials) + 1, len(faces) + 1))]
        mesh = mesh_of_faces(faces, names, self.report)
        if self.rig is not None and not is_physics:
            _add_weights(faces, mesh, self.rig, self.report)
        return mesh


def _lowered(text: str) -> Text:
    """Return a text with its first letter in lower case."""
    text = Text(text)
    return Text(text.template[:1].lower() + text.template[1:], *text.values)


def mesh_of_faces(faces: Sequence[Face], names: list[str], report: Report) -> sc.Mesh:
    """Combine all faces into one mesh with a material slot for each.

    The vertices of one face follow those of the previous.
    """
    counts = [len(face.positions) for face in faces]
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    triangles = [face.triangles.astype(np.int32) + start for face, start in zip(faces, starts, strict=False)]
    mesh = sc.Mesh(
        points=_rows([dequantise(face.positions, face.position_domain) for face in faces], 3),
        corner_point=np.concatenate([*triangles, np.empty((0, 3), np.int32)]).reshape(-1),
        material_index=np.repeat(np.arange(len(faces), dtype=np.int32), [len(part) for part in triangles]),
        materials=names,
        surfaces=[_surface(face, name) for face, name in zip(faces, names, strict=False)],
    )
    mesh.surfaces += [sc.Surface(name, uvs=(False,)) for name in names[len(faces) :]]
    if any(face.normals is not None for face in faces):
        mesh.normal = sc.Layer("normal", _normals(faces, mesh, report))
    if any(face.uvs is not None for face in faces):
        values = [
            np.zeros((len(face.positions), 2), np.float32)
            if face.uvs is None or face.uv_domain is None
            else dequantise(face.uvs, face.uv_domain)
            for face in faces
        ]
        mesh.uvs = [sc.Layer(UV_NAME, _rows(values, 2), stored=_uv_steps(faces))]
    else:
        for surface in mesh.surfaces:
            surface.uvs = ()
    return mesh


def _uv_steps(faces: Sequence[Face]) -> sc.AnyArray | None:
    """Return the quantised UVs of all vertices, (V, 2), if the float UVs of a face do not determine them."""
    of_faces = [(face.uvs, face.uv_domain) for face in faces]
    if all(uvs is None or domain is None or steps_beyond_floats(uvs, domain) is None for uvs, domain in of_faces):
        return None
    none = np.zeros((max(len(face.positions) for face in faces), 2), np.uint16)
    return np.concatenate([none[: len(face.positions)] if face.uvs is None else face.uvs for face in faces])


def _normals(faces: Sequence[Face], mesh: sc.Mesh, report: Report) -> sc.FloatArray:
    """Return unit normals of all vertices; undefined ones are computed from the triangles."""
    stored = _rows(
        [
            np.zeros((len(face.positions), 3), np.float32) if face.normals is None else dequantise_normals(face.normals)
            for face in faces
        ],
        3,
    )
    # Zero is stored as 32767, which decodes to slightly less than zero.
    x, y, z = np.abs(stored).T
    stored[(x < 1e-3) & (y < 1e-3) & (z < 1e-3)] = 0
    normals, broken = repair(stored, mesh.points, mesh.corner_point)
    missing = sum(len(face.positions) for face in faces if face.normals is None)
    report_repaired(max(broken - missing, 0), report)
    return normals


def _add_weights(faces: Sequence[Face], mesh: sc.Mesh, rig: Rig, report: Report) -> None:
    """Add joint indices and weights, (P, 4), to a mesh; weights for invalid joints are left out."""
    indices = np.zeros((len(mesh.points), 4), np.int32)
    weights = np.zeros((len(mesh.points), 4), np.float32)
    start = 0
    for face in faces:
        end = start + len(face.positions)
        if face.joint_indices is not None and face.joint_weights is not None:
            indices[start:end] = face.joint_indices
            weights[start:end] = face.joint_weights / np.float32(65535)
        start = end
    used = weights > 0
    lost = used & (indices >= len(rig.joints))
    indices[lost] = 0
    if not rig.usable.all():
        lost |= used & ~rig.usable[indices]
    count = int(np.count_nonzero(lost))
    if count:
        weights[lost] = 0
        used &= ~lost
        number = counted(count, "weight refers to a joint", "weights refer to joints")
        report.loss("weights-of-unusable-joints", "{} that cannot be used; left out", number)
    total = weights @ np.ones(4)  # sum in double precision
    off = (np.abs(total - 1) > OFF_ONE) & (total > 0)
    weights[off] /= total[off, None].astype(np.float32)
    bare = total <= 0
    empty = len(np.unique(mesh.corner_point[bare[mesh.corner_point]])) if bare.any() else 0
    if empty:
        number = counted(empty, "vertex has", "vertices have")
        report.change("vertices-without-weights", "{} no weights; the viewer moves them with the first joint", number)
    mesh.joint_indices = rig.joints[indices] * used
    mesh.joint_weights = weights


def placed(matrix: Matrix) -> Place:
    """Decompose a (4, 4) matrix into translation, rotation and positive scale.

    With shear or mirroring, rotation and scale are the identity, and ``baked`` holds the 3 × 3 part of the matrix.
    """
    translation = tuple(matrix[:3, 3].tolist())
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    baked = np.identity(4)
    baked[:3, :3] = linear
    if scale.min() > 0 and np.linalg.det(linear / scale) > 0:
        rotation = matrices_to_quaternions((linear / scale)[None])[0]
        place = Place(translation, tuple(rotation.tolist()), tuple(scale.tolist()))
        again = matrix_of_transform(place.translation, place.rotation, place.scale)
        if np.abs(again[:3, :3] - linear).max() <= _STRAIGHT * scale.max():
            return place
    return Place(translation, baked=baked)


def _surface(face: Face, name: str) -> sc.Surface:
    surface = sc.Surface(name, uvs=(face.uvs is not None,), has_weights=face.joint_weights is not None)
    if not face.no_geometry:
        surface.position_domain = tuple(face.position_domain.reshape(6).tolist())
        if face.uvs is not None and face.uv_domain is not None:
            surface.uv_domain = tuple(face.uv_domain.reshape(4).tolist())
    return surface


def _points_only(points: sc.AnyArray, domain: tuple[float, ...]) -> sc.Mesh:
    """Return the points of a hull as a mesh without triangles; `blender_data` builds the hull from them."""
    return sc.Mesh(
        points=dequantise(points, np.array(domain).reshape(2, 3)),
        corner_point=np.empty(0, np.int32),
        material_index=np.empty(0, np.int32),
        materials=[""],
        surfaces=[sc.Surface("", uvs=(), position_domain=domain)],
    )


def _rows(parts: Sequence[sc.FloatArray], width: int) -> sc.FloatArray:
    """Concatenate rows into one array."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([*parts, np.empty((0, width), np.float32)])
