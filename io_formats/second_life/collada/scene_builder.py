"""Document -> Scene (format page, sections 3 to 6): objects, their meshes and materials, levels of detail and physics.

Static objects stand where unit, up axis and nodes put them; rigged ones where their joints are bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ...binary.quantization import srgb_to_linear
from ...core import scene as sc
from ...core.errors import FormatError
from ...core.messages import counted, listed
from ...core.options import resolve
from ...core.shading import Texture
from ...geometry.quaternions import matrices_to_quaternions
from ...geometry.transforms import Matrix
from ...passes.flatten import moved
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX
from ..models.faces import MOST_FACES, MOST_INFLUENCES
from ..models.levels import LEVEL_LABELS
from ..options import APPLY_UNIT, COLLADA_IMPORT_OPTIONS
from .bind_space import asset_matrix
from .document import Collada, Instance, Material
from .mesh_builder import mesh_of, symbols_of, uv_sets
from .rigs import MOST_NAMED, Rig

FULL_BRIGHT = 0.25
"""Emission above which the viewer makes a face full bright."""
OWN_TOOL = "Meshferry"
_UV_NUMBERS = 2
Place = tuple[tuple[float, float, float], tuple[float, float, float, float], tuple[float, float, float]]
"""Translation, rotation (w, x, y, z) and scale."""
_NO_PLACE: Place = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_STRAIGHT = 1e-5
"""Tolerance for the elements of a matrix without shear, relative to its scale."""
_MATERIAL = "-material"

_TEMPLATES = {
    "mirrored": ("change", "mirrored-objects", "{} mirrored; the viewer refuses or unmirrors them: {}"),
    "sheared": ("note", "sheared-transform", "{} with shear, which was applied to a copy of the mesh: {}"),
    "placed": ("note", "transform-of-rigged", "{} with a transform that has no effect on a rigged mesh: {}"),
    "doubled": ("change", "material-symbol-twice", "{} with several groups of one material, separate faces there: {}"),
    "many": ("change", "too-many-faces", "{} with more than 8 materials, which the viewer splits: {}"),
    "strips": ("note", "strips-and-fans", "{} with strips or fans, which the viewer does not read: {}"),
    "stride": ("note", "uvs-of-three-numbers", "{} with UVs of three numbers, which the viewer misreads: {}"),
    "uvs": ("note", "several-uv-sets", "{} with several UV sets; the one that the viewer shows is active: {}"),
    "reversed": ("note", "weights-before-joints", "{} with weights before joints, which the viewer misreads: {}"),
    "influences": ("note", "more-than-four-weights", "{} with over 4 weights a vertex; the viewer takes 4: {}"),
    "unweighted": ("change", "vertices-without-weights", "{} with vertices without weights: {}"),
}
"""Kind, code and template of the messages about objects."""


@dataclass(frozen=True)
class FileObject:
    """An object of a document: a geometry in a node."""

    name: str
    """Name of the node."""
    geometry_name: str
    node: int
    """Index of the node; -1 in a document without a scene."""
    instance: Instance


@dataclass
class BuiltModel:
    """An object of the main document in the scene, to which levels of detail and physics can be added."""

    node: int
    """Index of its node in ``Scene.nodes``."""
    found: FileObject


def objects_of(document: Collada) -> list[FileObject]:
    """Return the objects of a document in the order of its nodes; without a scene, one for each geometry."""
    if not document.nodes:
        return [FileObject(found.name, found.name, -1, Instance(at)) for at, found in enumerate(document.geometries)]
    return [
        FileObject(node.name, document.geometries[instance.geometry].name, number, instance)
        for number, node in enumerate(document.nodes)
        for instance in node.instances
    ]


class SceneBuilder:
    """Map a document and its partners to one scene, and collect messages.

    :meth:`add_objects` adds the objects of the main document as ``models``. Then objects of the partners are added to
    them by :meth:`add_level` and :meth:`add_physics`, or by :meth:`add_object` on their own. :meth:`finish` reports
    what concerns the whole set.

    Parameters
    ----------
    options:
        Values of ``options.COLLADA_IMPORT_OPTIONS``.
    """

    def __init__(self, document: Collada, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.options = resolve(COLLADA_IMPORT_OPTIONS, options)
        self.scene = sc.Scene(name, level_names=LEVEL_LABELS, warnings=list(document.warnings))
        self.report = self.scene.report
        has_skins = bool(document.skins) or any(found.skins for found in document.partners.values())
        self.rig = Rig(document, name, self.options, self.report) if has_skins else None
        if self.rig is not None:
            self.scene.skeletons.append(self.rig.skeleton)
        self.materials: dict[str, Material] = {}
        """Materials of the file by their name in the scene."""
        self.document = document
        self.files = {suffix: _File(self, found) for suffix, found in {"": document, **document.partners}.items()}
        """By suffix; that of the main document is empty."""
        self.models: list[BuiltModel] = []
        self.said: dict[str, list[str]] = {}
        """Names of the objects with each oddity."""

    def add_objects(self) -> None:
        """Add the objects of the main document, with the groups that hold them.

        Raises
        ------
        FormatError
            No object has a polygon.
        """
        file, document = self.files[""], self.document
        found = objects_of(document)
        if not any(group.sizes.size for part in found for group in document.geometries[part.instance.geometry].groups):
            raise FormatError("There is no geometry in the file: no object has a polygon")
        parts: dict[int, list[FileObject]] = {}
        for part in found:
            parts.setdefault(part.node, []).append(part)
        for part in parts.get(-1, []):
            self.add_object("", part)
        shown = self._static_children(document, parts)
        carried: dict[int, tuple[int, Matrix]] = {-1: (-1, file.root)}
        """For the children of each node: their parent in the scene, and the matrix from their parent's space to it."""
        for number, node in enumerate(document.nodes):
            above, outer = carried[node.parent]
            local = outer @ file.converted(node.matrix)
            static = [part for part in parts.get(number, []) if not self._is_rigged("", part)]
            for part in parts.get(number, []):
                if part not in static:
                    self.add_object("", part)
            carried[number] = above, local
            if static or (shown[number] > 1 and not node.is_joint):
                place, rest = _place(local)
                carried[number] = len(self.scene.nodes), np.identity(4) if rest is None else rest
                for part in static:
                    self._add_model(part, self._static_node(file, part, place, rest, above))
                if not static:
                    self.scene.nodes.append(sc.Node(node.name, above, *place))

    def add_object(self, suffix: str, part: FileObject) -> None:
        """Add an object of the main document or of a partner on its own."""
        self._add_model(part, self._node(suffix, part))

    def add_level(self, model: BuiltModel, suffix: str, part: FileObject) -> None:
        """Add an object of a partner, whose suffix is that of a level, as this level of a model."""
        node = self._node(suffix, part, model)
        node.name = self.scene.nodes[model.node].name + suffix
        node.lod = LEVEL_SUFFIXES.index(suffix)
        node.lod_of = model.node
        self.scene.nodes.append(node)

    def add_physics(self, model: BuiltModel, suffix: str, part: FileObject) -> None:
        """Add an object of a partner as the physics mesh of a model; it has no weights."""
        node = self._node(suffix, part, model)
        if node.mesh is not None:
            node.mesh = replace(node.mesh, joint_indices=None, joint_weights=None)
        node.name = self.scene.nodes[model.node].name + PHYSICS_SUFFIX
        node.skeleton = node.skin = None
        node.role = sc.Role.PHYSICS
        node.shape_of = model.node
        self.scene.nodes.append(node)

    # -- nodes ----------------------------------------------------------------------------------

    def _add_model(self, part: FileObject, node: sc.Node) -> None:
        self.models.append(BuiltModel(len(self.scene.nodes), part))
        self.scene.nodes.append(node)

    def _static_children(self, document: Collada, parts: Mapping[int, Sequence[FileObject]]) -> list[int]:
        """Return how many children of each node hold a static object."""
        counts = [0] * len(document.nodes)
        for number in range(len(document.nodes) - 1, -1, -1):
            above = document.nodes[number].parent
            is_shown = counts[number] or any(not self._is_rigged("", part) for part in parts.get(number, []))
            if above >= 0 and is_shown:
                counts[above] += 1
        return counts

    def _is_rigged(self, suffix: str, part: FileObject) -> bool:
        return self.rig is not None and 0 <= part.instance.skin < len(self.files[suffix].document.skins)

    def _node(self, suffix: str, part: FileObject, model: BuiltModel | None = None) -> sc.Node:
        """Return the node of an object, a root of the scene; with a rigged ``model`` it stands in the space of its rig."""
        file = self.files[suffix]
        if self._is_rigged(suffix, part):
            return self._rigged_node(file, part)
        if self.rig is not None and model is not None and self.scene.nodes[model.node].skeleton is not None:
            matrix = self.rig.turn @ self.rig.space.to_avatar @ file.world(part.node)
            return sc.Node(part.name, mesh=moved(self._mesh(file, part), matrix))
        return self._static_node(file, part, *_place(file.root @ file.converted(file.world(part.node))), -1)

    def _static_node(self, file: _File, part: FileObject, place: Place, rest: Matrix | None, parent: int) -> sc.Node:
        if np.linalg.det(file.world(part.node)[:3, :3]) < 0:
            self._say("mirrored", part)
        if rest is not None:
            self._say("sheared", part)
        matrix = file.axes if rest is None else rest @ file.axes
        return sc.Node(part.name, parent, *place, mesh=self._mesh(file, part, matrix))

    def _rigged_node(self, file: _File, part: FileObject) -> sc.Node:
        assert self.rig is not None
        skin = file.document.skins[part.instance.skin]
        mesh, place, binding = self._mesh(file, part), _NO_PLACE, self.rig.skin(skin)
        if not np.allclose(file.world(part.node), np.identity(4), atol=_STRAIGHT):
            self._say("placed", part)
        if self.rig.at_table and self.rig.known:
            mesh = self.rig.at_standard(mesh, skin)
        else:
            matrix = self.rig.place(skin)
            turned = matrix @ self.rig.turn.T
            found, rest = _place(turned)
            if rest is None and not _is_quarter_turn(turned):
                place, matrix = found, self.rig.turn
                if binding is not None:
                    binding.bind_shape = turned
            mesh = moved(mesh, matrix)
        joints, weights = self.rig.weights(skin, len(mesh.points))
        self._say_weights(part, mesh, weights, is_reversed=skin.is_reversed)
        mesh = replace(mesh, joint_indices=joints, joint_weights=weights)
        return sc.Node(part.name, -1, *place, mesh=mesh, skeleton=0, skin=binding)

    def _mesh(self, file: _File, part: FileObject, matrix: Matrix | None = None) -> sc.Mesh:
        """Return the mesh of an object; objects with the same geometry, materials and matrix share one."""
        names = file.materials_of(part.instance)
        key = (part.instance.geometry, *names, b"" if matrix is None else matrix.tobytes())
        if key not in file.meshes:
            mesh = mesh_of(file.document.geometries[part.instance.geometry], names)
            if matrix is not None and not np.array_equal(matrix, np.identity(4)):
                mesh = moved(mesh, matrix)
            self._say_geometry(file, part)
            file.meshes[key] = mesh
        return file.meshes[key]

    # -- materials ------------------------------------------------------------------------------

    def material_name(self, material: Material) -> str:
        """Return the name of a material in the scene; further ones of the same name that look otherwise get a number."""
        name, number = material.name, 0
        while self.materials.setdefault(name, material) != material:
            number += 1
            name = f"{material.name}.{number:03d}"
        return name

    def _material(self, name: str, given: Material) -> sc.Material:
        red, green, blue = srgb_to_linear(np.array((given.color[:3],), np.float32))[0].tolist()
        emission = given.emission if given.emission > FULL_BRIGHT else 0.0
        mean = (red + green + blue) / 3
        if emission and mean > FULL_BRIGHT and self.document.tool != OWN_TOOL:
            emission = mean  # strength 1: full bright shows the plain colour
        material = sc.Material(name, (red, green, blue, given.color[3]), emission)
        if given.image:
            material.texture = Texture(PurePosixPath(given.image.replace("\\", "/")).name, given.image)
        return material

    # -- messages -------------------------------------------------------------------------------

    def _say(self, what: str, part: FileObject) -> None:
        names = self.said.setdefault(what, [])
        if part.name not in names:
            names.append(part.name)

    def _say_geometry(self, file: _File, part: FileObject) -> None:
        geometry = file.document.geometries[part.instance.geometry]
        symbols = [group.symbol for group in geometry.groups]
        if len(set(symbols)) < len(symbols):
            self._say("doubled", part)
        if len(set(symbols)) > MOST_FACES:
            self._say("many", part)
        if any(group.kind in {"tristrips", "trifans"} for group in geometry.groups):
            self._say("strips", part)
        if any(uvs.stride > _UV_NUMBERS for group in geometry.groups for uvs in group.uvs):
            self._say("stride", part)
        if len(uv_sets(geometry)) > 1:
            self._say("uvs", part)

    def _say_weights(self, part: FileObject, mesh: sc.Mesh, weights: sc.FloatArray, *, is_reversed: bool) -> None:
        if is_reversed:
            self._say("reversed", part)
        if weights.shape[1] > MOST_INFLUENCES:
            self._say("influences", part)
        if not weights.any(axis=1)[mesh.corner_point].all():
            self._say("unweighted", part)

    def finish(self) -> sc.Scene:
        """Add the materials, report what concerns the whole set, and return the scene."""
        if self.rig is not None:
            self.rig.say()
        self.scene.materials = [self._material(name, given) for name, given in self.materials.items()]
        clear = [name for name, given in self.materials.items() if given.has_transparency]
        if clear:
            template = "transparency settings are left out; textures keep their alpha: {}"
            self.report.note("transparency-left-out", template, listed(clear, MOST_NAMED))
        for what, names in self.said.items():
            kind, code, template = _TEMPLATES[what]
            add = {"note": self.report.note, "change": self.report.change}[kind]
            number = counted(len(names), "object", "objects")
            add(code, template, number, listed(names, MOST_NAMED))
        return self.scene


class _File:
    """A document of the set, with what its objects share."""

    def __init__(self, builder: SceneBuilder, document: Collada) -> None:
        self.builder = builder
        self.document = document
        asset = asset_matrix(document)
        applies = APPLY_UNIT.flag(builder.options)
        self.axes = asset if applies else np.identity(4)
        """(4, 4) that is applied to the vertices."""
        self.root = np.identity(4) if applies else asset
        """(4, 4) that is applied to the objects without a parent."""
        self.meshes: dict[tuple[object, ...], sc.Mesh] = {}
        self._worlds: dict[int, Matrix] = {-1: np.identity(4)}

    def converted(self, matrix: Matrix) -> Matrix:
        """Return a transform of the file for vertices to which unit and axes are applied."""
        if np.array_equal(self.axes, np.identity(4)):
            return matrix
        found: Matrix = self.axes @ matrix @ np.linalg.inv(self.axes)
        return found

    def world(self, node: int) -> Matrix:
        """Return the transform of a node in the space of the file, (4, 4); the identity for -1."""
        if len(self._worlds) <= len(self.document.nodes):
            for number, found in enumerate(self.document.nodes):
                self._worlds[number] = self._worlds[found.parent] @ found.matrix
        return self._worlds[node]

    def materials_of(self, instance: Instance) -> list[str]:
        """Return the name of the material of each slot."""
        symbols = symbols_of(self.document.geometries[instance.geometry])
        return [self._material_of(symbol, instance) for symbol in symbols]

    def _material_of(self, symbol: str, instance: Instance) -> str:
        number = instance.materials.get(symbol, -1)
        if number >= 0:
            return self.builder.material_name(self.document.materials[number])
        return symbol.removesuffix(_MATERIAL) or symbol


def _place(matrix: Matrix) -> tuple[Place, Matrix | None]:
    """Return translation, rotation and scale of a matrix, and the rest (4, 4) of it, such as shear, or None.

    The matrix is the product of both. A mirroring one has a negative scale along one axis.
    """
    linear = matrix[:3, :3]
    translation = tuple(matrix[:3, 3].tolist())
    lengths = np.linalg.norm(linear, axis=0)
    if not (lengths > 0).all():
        return (translation, *_NO_PLACE[1:]), _linear(linear)
    axes = linear / lengths
    rest = None
    if np.abs(axes.T @ axes - np.identity(3)).max() > _STRAIGHT:
        axes, upper = np.linalg.qr(linear)
        lengths = np.diag(upper).copy()
        if np.abs(lengths).min() < _STRAIGHT * np.abs(lengths).max():
            return (translation, *_NO_PLACE[1:]), _linear(linear)
        axes, lengths = axes * np.sign(lengths), np.abs(lengths)
        rest = _linear(upper * np.sign(np.diag(upper))[:, None] / lengths[:, None])
    if np.linalg.det(axes) < 0:
        mirrored = int(np.argmin(np.diag(axes)))
        axes[:, mirrored] *= -1
        lengths[mirrored] *= -1
    rotation = tuple(matrices_to_quaternions(axes[None])[0].tolist())
    return (translation, rotation, tuple(lengths.tolist())), rest


def _linear(linear: Matrix) -> Matrix:
    matrix = np.identity(4)
    matrix[:3, :3] = linear
    return matrix


def _is_quarter_turn(matrix: Matrix) -> bool:
    """Return whether a transform turns only by multiples of 90°, so that its axes stay parallel to the avatar's."""
    linear = np.abs(matrix[:3, :3])
    return bool(np.count_nonzero(linear > _STRAIGHT * linear.max()) == len(linear))
