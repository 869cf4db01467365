"""Document -> Scene (format page, sections 3 to 6): objects, their meshes and materials, levels of detail and physics.

Static objects are placed by unit, up axis and nodes, rigged objects by the bind matrices of their joints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import unquote

import numpy as np

from ...core import scene as sc
from ...core.messages import listed, of_kind
from ...core.options import resolve
from ...core.shading import Texture
from ...encodings.quantization import srgb_to_linear
from ...geometry.transforms import Matrix, matrices_to_quaternions, matrix_of_linear
from ...passes.flatten import moved
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX
from ..options import APPLY_UNIT, COLLADA_IMPORT_OPTIONS, LEVEL_LABELS
from . import oddities
from .bind_space import asset_matrix
from .document import Collada, Instance, Material, Node
from .findings import MOST_NAMED, Findings
from .mesh_builder import mesh_of, symbols_of
from .partners import Model, Part, models_of
from .rigs import Rig

FULL_BRIGHT = 0.25
"""Emission above which the viewer makes a face full bright."""
OWN_TOOL = "Meshferry"
Place = tuple[tuple[float, float, float], tuple[float, float, float, float], tuple[float, float, float]]
"""Translation, rotation (w, x, y, z) and scale."""
_NO_PLACE: Place = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_STRAIGHT = 1e-5
"""Tolerance for the elements of a matrix without shear, relative to its scale."""
_MATERIAL = "-material"


class SceneBuilder:
    """Map a document and its partners to a scene, and collect messages.

    Parameters
    ----------
    options:
        Values of ``options.COLLADA_IMPORT_OPTIONS``.
    """

    def __init__(self, document: Collada, name: str, options: Mapping[str, Any] | None = None) -> None:
        self.options = resolve(COLLADA_IMPORT_OPTIONS, options)
        self.scene = sc.Scene(name, level_names=LEVEL_LABELS, warnings=list(document.warnings))
        self.report = self.scene.report
        self.document = document
        self.materials: dict[str, Material] = {}
        """Materials of the set by their name in the scene."""
        self._material_names: dict[tuple[Any, ...], str] = {}
        self._numbered: Counter[str] = Counter()
        self.findings = Findings()
        documents = [document, *document.partners.values()]
        self.files = {id(found): _File(self, found) for found in documents}
        self.rig: Rig | None = None
        if any(found.skins for found in documents):
            self.rig = Rig(document, name, self.options, self.report)
            self.scene.skeletons.append(self.rig.skeleton)
        models = models_of(document, self.report)
        self._add_objects([model for model in models if model.main.document is document])
        for model in models:
            if model.main.document is not document:
                self._add_model(model, self._node(model.main))
        if self.rig is not None:
            self.rig.report_unusual(self.findings)
        self.findings.report(self.report)
        self.scene.materials = [self._material(name, given) for name, given in self.materials.items()]
        clear = [name for name, given in self.materials.items() if given.has_transparency]
        if clear:
            template = "transparency settings are left out, textures keep their alpha: {}"
            self.report.note("transparency-left-out", template, listed(of_kind("material", clear), MOST_NAMED))

    # -- models ---------------------------------------------------------------------------------

    def _add_objects(self, models: Sequence[Model]) -> None:
        """Add the objects of the main document, with the groups that hold them."""
        file, nodes = self.files[id(self.document)], self.document.nodes
        static: dict[int, list[Model]] = {}
        for model in models:
            if self._is_rigged(model.main):
                self._add_model(model, self._node(model.main))
            else:
                static.setdefault(model.main.node, []).append(model)
        shown = _shown_children(nodes, static)
        outer: dict[int, tuple[int, Matrix]] = {-1: (-1, file.root)}
        """Parent in the scene for the children of each node of the file, and the matrix from the node's space to that
        parent."""
        for number, node in enumerate(nodes):
            above, matrix = outer[node.parent]
            local = matrix @ file.converted(node.matrix)
            outer[number] = above, local
            here = static.get(number, [])
            if here or (shown[number] > 1 and not node.is_joint):
                place, rest = decompose_matrix(local)
                outer[number] = len(self.scene.nodes), np.identity(4) if rest is None else rest
                if not here:
                    self.scene.nodes.append(sc.Node(node.name, above, *place))
                for model in here:
                    finest = self._static_node(file, model.main, place, rest, above)
                    finest.file_matrix = local if above < 0 and rest is None else None
                    self._add_model(model, finest)

    def _add_model(self, model: Model, finest: sc.Node) -> None:
        """Add the nodes of an object, of its levels of detail and of its physics shape."""
        number = len(self.scene.nodes)
        self.scene.nodes.append(finest)
        for suffix, part in model.parts.items():
            node = self._node(part, finest)
            node.name = finest.name + suffix
            if suffix == PHYSICS_SUFFIX:
                node.role, node.shape_of = sc.Role.PHYSICS, number
                node.skeleton = node.skin = None
                if node.mesh is not None:
                    node.mesh = replace(node.mesh, joint_indices=None, joint_weights=None)
            else:
                node.lod, node.lod_of = LEVEL_SUFFIXES.index(suffix), number
            self.scene.nodes.append(node)

    # -- nodes ----------------------------------------------------------------------------------

    def _is_rigged(self, part: Part) -> bool:
        return self.rig is not None and part.instance.skin >= 0

    def _node(self, part: Part, finest: sc.Node | None = None) -> sc.Node:
        """Return the node of an object, without a parent.

        A static part of a rigged object (``finest``) is placed in the space of the rig.
        """
        file = self.files[id(part.document)]
        if self.rig is not None and part.instance.skin >= 0:
            return self._rigged_node(file, part, self.rig)
        if self.rig is not None and finest is not None and finest.skeleton is not None:
            matrix = self.rig.turn @ self.rig.space.to_avatar @ part.world
            return sc.Node(part.name, mesh=moved(self._mesh(file, part), matrix))
        return self._static_node(file, part, *decompose_matrix(file.root @ file.converted(part.world)), -1)

    def _static_node(self, file: _File, part: Part, place: Place, rest: Matrix | None, parent: int) -> sc.Node:
        if np.linalg.det(part.world[:3, :3]) < 0:
            self.findings.add_object(part.name, "mirrored-objects")
        if rest is not None:
            self.findings.add_object(part.name, "shear-applied")
        matrix = file.axes if rest is None else rest @ file.axes
        node = sc.Node(part.name, parent, *place, mesh=self._mesh(file, part, matrix))
        if rest is None and parent < 0:
            node.file_matrix = file.root @ file.converted(part.world)
        return node

    def _rigged_node(self, file: _File, part: Part, rig: Rig) -> sc.Node:
        skin = file.document.skins[part.instance.skin]
        mesh, place, binding = self._mesh(file, part), _NO_PLACE, rig.skin(skin)
        if not np.allclose(part.world, np.identity(4), atol=_STRAIGHT):
            self.findings.add_object(part.name, "transform-of-rigged-mesh")
        if rig.at_table and rig.known:
            mesh = rig.at_standard(mesh, skin)
        else:
            matrix = rig.place(skin)
            turned = matrix @ rig.turn.T
            found, rest = decompose_matrix(turned)
            if rest is None and not _is_quarter_turn(turned):
                place, matrix = found, rig.turn
                if binding is not None:
                    binding.bind_shape = turned
            mesh = moved(mesh, matrix)
        joints, weights = rig.weights(skin, len(mesh.points))
        self.findings.add_object(part.name, *oddities.of_weights(mesh, weights))
        if skin.is_reversed:
            self.findings.add_object(part.name, "weights-before-joints")
        mesh = replace(mesh, joint_indices=joints, joint_weights=weights)
        return sc.Node(part.name, -1, *place, mesh=mesh, skeleton=0, skin=binding)

    def _mesh(self, file: _File, part: Part, matrix: Matrix | None = None) -> sc.Mesh:
        """Return the mesh of an object; objects with the same geometry, materials and matrix share one."""
        names = file.materials_of(part.instance)
        key = (part.instance.geometry, *names, b"" if matrix is None else matrix.tobytes())
        if key not in file.meshes:
            mesh = mesh_of(part.geometry, names)
            # keep the symbols of a file that Meshferry wrote, so that an export writes them again
            if file.document.tool == OWN_TOOL:
                mesh.symbols = dict(zip(names, symbols_of(part.geometry), strict=True))
            if matrix is not None and not np.array_equal(matrix, np.identity(4)):
                mesh = moved(mesh, matrix)
            self.findings.add_object(part.name, *oddities.of_geometry(part.geometry))
            file.meshes[key] = mesh
        return file.meshes[key]

    # -- materials ------------------------------------------------------------------------------

    def material_name(self, material: Material) -> str:
        """Return the name of a material in the scene. A number is added if another material has the name."""
        content = astuple(material)
        if content not in self._material_names:
            name = material.name
            while name in self.materials:
                self._numbered[material.name] += 1
                name = f"{material.name}.{self._numbered[material.name]:03d}"
            self.materials[name] = material
            self._material_names[content] = name
        return self._material_names[content]

    def _material(self, name: str, given: Material) -> sc.Material:
        red, green, blue = srgb_to_linear(np.array((given.color[:3],), np.float32))[0].tolist()
        emission = given.emission if given.emission > FULL_BRIGHT else 0.0
        mean = (red + green + blue) / 3
        if emission and mean > FULL_BRIGHT and self.document.tool != OWN_TOOL:
            emission = mean  # with strength 1, a full bright face shows the plain colour
        material = sc.Material(name, (red, green, blue, given.color[3]), emission)
        if given.image:
            material.texture = Texture(PureWindowsPath(unquote(given.image)).name, given.image)
        return material


def _shown_children(nodes: Sequence[Node], static: Container[int]) -> list[int]:
    """Return, for each node, the number of its children that contain a static object."""
    counts = [0] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        above = nodes[number].parent
        if above >= 0 and (counts[number] or number in static):
            counts[above] += 1
    return counts


class _File:
    """A document of the set, with the conversion of units and axes and the meshes that its objects share."""

    def __init__(self, builder: SceneBuilder, document: Collada) -> None:
        self.builder = builder
        self.document = document
        asset = asset_matrix(document)
        applies = APPLY_UNIT.flag(builder.options)
        self.axes = asset if applies else np.identity(4)
        """(4, 4) conversion of units and axes that is applied to the vertices."""
        self._from_axes = np.linalg.inv(self.axes)
        self.root = np.identity(4) if applies else asset
        """(4, 4) conversion of units and axes that is applied to the objects without a parent."""
        self.meshes: dict[tuple[object, ...], sc.Mesh] = {}

    def converted(self, matrix: Matrix) -> Matrix:
        """Return a transform of the file in the space of vertices to which unit and axes have been applied."""
        found: Matrix = self.axes @ matrix @ self._from_axes
        return found

    def materials_of(self, instance: Instance) -> list[str]:
        """Return the name of the material of each slot."""
        symbols = symbols_of(self.document.geometries[instance.geometry])
        return [self._material_of(symbol, instance) for symbol in symbols]

    def _material_of(self, symbol: str, instance: Instance) -> str:
        number = instance.materials.get(symbol, -1)
        if number >= 0:
            return self.builder.material_name(self.document.materials[number])
        return symbol.removesuffix(_MATERIAL) or symbol


def decompose_matrix(matrix: Matrix) -> tuple[Place, Matrix | None]:
    """Return translation, rotation and scale of a matrix, and the remaining factor (4, 4), such as shear, or None.

    The matrix is the product of the transform and this factor. A mirroring matrix gives a negative scale along one
    axis.
    """
    linear = matrix[:3, :3]
    translation = tuple(matrix[:3, 3].tolist())
    lengths = np.linalg.norm(linear, axis=0)
    if not (lengths > 0).all():
        return (translation, *_NO_PLACE[1:]), matrix_of_linear(linear)
    axes = linear / lengths
    rest = None
    if np.abs(axes.T @ axes - np.identity(3)).max() > _STRAIGHT:
        axes, upper = np.linalg.qr(linear)
        lengths = np.diag(upper).copy()
        if np.abs(lengths).min() < _STRAIGHT * np.abs(lengths).max():
            return (translation, *_NO_PLACE[1:]), matrix_of_linear(linear)
        axes, lengths = axes * np.sign(lengths), np.abs(lengths)
        rest = matrix_of_linear(upper / np.diag(upper)[:, None])
    if np.linalg.det(axes) < 0:
        mirrored = int(np.argmin(np.diag(axes)))
        axes[:, mirrored] *= -1
        lengths[mirrored] *= -1
    rotation = tuple(matrices_to_quaternions(axes[None])[0].tolist())
    return (translation, rotation, tuple(lengths.tolist())), rest


def _is_quarter_turn(matrix: Matrix) -> bool:
    """Return whether a transform turns only by multiples of 90°, so that its axes stay parallel to the avatar's."""
    linear = np.abs(matrix[:3, :3])
    return bool(np.count_nonzero(linear > _STRAIGHT * linear.max()) == len(linear))
