"""Document -> Scene (format page, sections 3 to 6): objects, meshes, materials, levels of detail, physics.

Static objects are placed by unit, up axis and nodes, rigged objects by the bind matrices of their joints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import astuple, replace
from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import unquote

import numpy as np

from ...core import scene as sc
from ...core.messages import Kind, Message, listed, of_kind
from ...core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh, Scene
from ...core.shading import Texture
from ...encodings.quantization import srgb_to_linear
from ...geometry.normals import unit, vertex_normals, without_direction
from ...geometry.transforms import Matrix, Place, decompose_matrix
from ...geometry.triangles import fan_corners, folded_polygons, unfolded_corners
from ...passes.flatten import moved
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX
from ..models.faces import MOST_FACES, MOST_INFLUENCES
from ..options import LEVEL_LABELS
from . import partners
from .document import MOST_NAMED, Collada, Findings, Geometry, Group, Instance, Material, Node, Values
from .format import ReadOptions
from .partners import Model, Part, models_of
from .rig_groups import rig_groups
from .rigs import Rig, asset_matrix

UV_NAME = "UVMap"
_COLOR_NAME = "Color"


def symbols_of(geometry: Geometry) -> list[str]:
    """Return the symbols of a geometry in the order of their first appearance; each becomes a material slot."""
    return list(dict.fromkeys(group.symbol for group in geometry.groups))


def uv_sets(geometry: Geometry) -> list[tuple[int, int]]:
    """Return the UV sets of all groups in ascending order, as (set number, index among the sets with this number)."""
    return sorted({key for group in geometry.groups for key in _uvs_by_set(group)})


def shown_set(geometry: Geometry) -> int:
    """Return the index in :func:`uv_sets` of the UV set that the viewer shows.

    For triangles and polylists this is the set listed last, for polygons it is set 0.
    """
    sets = uv_sets(geometry)
    group = next((group for group in geometry.groups if group.uvs), None)
    if group is None:
        return 0
    if group.kind == "polygons":
        return sets.index((0, 0)) if (0, 0) in sets else 0
    return sets.index(list(_uvs_by_set(group))[-1])


def mesh_of(geometry: Geometry, materials: Sequence[str]) -> Mesh:
    """Return the mesh of a geometry as it is in the file, with names for the slots of :func:`symbols_of`."""
    groups = geometry.groups
    sizes = _joined([group.sizes for group in groups], np.int32)
    points = _joined([group.points for group in groups], np.int32)
    corners = _Corners(groups, _fan(geometry, points, sizes))
    symbols = symbols_of(geometry)
    triangles = [int(group.sizes.sum(dtype=np.int64)) - 2 * len(group.sizes) for group in groups]
    slots = np.array([symbols.index(group.symbol) for group in groups], np.int32)
    mesh = Mesh(
        points=geometry.positions,
        corner_point=corners.spread(points),
        material_index=np.repeat(slots, triangles),
        materials=list(materials),
        polygon_sizes=sizes if corners.fan is not None else None,
        name=geometry.name,
        render_uv=shown_set(geometry),
        symbols=_symbols_in_other_order(symbols, materials),
    )
    mesh.normal = _normals(corners, mesh)
    for number, key in enumerate(uv_sets(geometry)):
        name = UV_NAME if not number else f"{UV_NAME}.{number:03d}"
        values, index = corners.values([_uvs_by_set(group).get(key) for group in groups], 2, 0.0)
        mesh.uvs.append(Layer(name, values, index))
    for number in range(max((len(group.colors) for group in groups), default=0)):
        of_groups = [group.colors[number] if number < len(group.colors) else None for group in groups]
        values, index = corners.values(of_groups, 4, 1.0)
        values[:, :3] = srgb_to_linear(values[:, :3])
        mesh.colors.append(Layer(_COLOR_NAME, values, index))
    return mesh


def _fan(geometry: Geometry, points: IntArray, sizes: IntArray) -> AnyArray | None:
    """Return the polygon corner of each triangle corner, (3 T,); None if all polygons are triangles."""
    corners = fan_corners(sizes)
    order = None if corners is None else unfolded_corners(geometry.positions, points, sizes)
    return corners if corners is None or order is None else order[corners]


def _uvs_by_set(group: Group) -> dict[tuple[int, int], Values]:
    found: dict[tuple[int, int], Values] = {}
    for uvs in group.uvs:
        found[uvs.set_number, sum(number == uvs.set_number for number, _ in found)] = uvs
    return found


def _symbols_in_other_order(symbols: Sequence[str], materials: Sequence[str]) -> dict[str, str]:
    """Return the symbol of each material if sorting by symbols gives another order than sorting by material names.

    The viewer numbers faces in the order of the symbols, without regard to case.
    """
    slots = range(len(symbols))
    by_symbol = sorted(slots, key=lambda slot: symbols[slot].casefold())
    by_name = sorted(slots, key=lambda slot: materials[slot].casefold())
    return {} if by_symbol == by_name else dict(zip(materials, symbols, strict=True))


class _Corners:
    """The corners of all groups of a geometry.

    Parameters
    ----------
    corner_of:
        (3 T,) the corner of the polygons for each corner of the triangles; None if they are the same.
    """

    def __init__(self, groups: Sequence[Group], corner_of: AnyArray | None) -> None:
        self.groups = groups
        self.fan = corner_of

    def spread(self, values: IntArray) -> IntArray:
        """Return the values of polygon corners for the corners of triangles."""
        return values if self.fan is None else values.take(self.fan)

    def values(self, of_groups: Sequence[Values | None], width: int, missing: float) -> tuple[FloatArray, IntArray]:
        """Return a kind of values of all groups, (N, width), and the index of each corner of the triangles.

        Corners without a value refer to an additional last row filled with ``missing``, which exists only if needed.
        """
        starts: dict[int, int] = {}
        parts: list[AnyArray] = []
        index: list[IntArray] = []
        count = 0
        for group, found in zip(self.groups, of_groups, strict=True):
            if found is None:
                index.append(np.full(len(group.points), -1, np.int32))
                continue
            if id(found.values) not in starts:
                starts[id(found.values)] = count
                parts.append(found.values)
                count += len(found.values)
            start = starts[id(found.values)]
            index.append(found.index if not start else np.where(found.index < 0, -1, found.index + np.int32(start)))
        rows = self.spread(_joined(index, np.int32))
        lacks = rows < 0
        if lacks.any():
            parts.append(np.full((1, width), missing, np.float32))
            rows = np.where(lacks, np.int32(count), rows)
        if len(parts) == 1 and width < 4:
            return parts[0], rows
        return np.concatenate([*parts, np.empty((0, width), np.float32)]), rows


def _normals(corners: _Corners, mesh: Mesh) -> Layer | None:
    """Return the normals of all corners, or None if the file has none.

    A normal without direction is replaced by the smooth normal of the vertex.
    """
    if all(group.normals is None for group in corners.groups):
        return None
    values, index = corners.values([group.normals for group in corners.groups], 3, 0.0)
    bad = without_direction(values)
    if bad.any():
        of_corners = bad[index]
        index = np.where(of_corners, mesh.corner_point + np.int32(len(values)), index)
        values = np.concatenate((values, vertex_normals(mesh.points, mesh.corner_point)))
        values[: len(bad)][bad] = (0.0, 0.0, 1.0)
    return Layer("normal", unit(values), index)


def _joined(parts: Sequence[IntArray], dtype: type[np.generic]) -> IntArray:
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, dtype)])


_UV_NUMBERS = 2


def of_geometry(geometry: Geometry) -> list[str]:
    """Return the codes of ``Findings`` that apply to a geometry."""
    groups, symbols = geometry.groups, {group.symbol for group in geometry.groups}
    return _applying(
        {
            "material-symbol-twice": len(symbols) < len(groups),
            "over-8-materials": len(symbols) > MOST_FACES,
            "strips-and-fans": any(group.kind in {"tristrips", "trifans"} for group in groups),
            "concave-polygons": any(
                folded_polygons(geometry.positions, group.points, group.sizes).any() for group in groups
            ),
            "uvs-of-three-numbers": any(uvs.stride > _UV_NUMBERS for group in groups for uvs in group.uvs),
            "several-uv-sets": len(uv_sets(geometry)) > 1,
        }
    )


def of_weights(mesh: Mesh, weights: FloatArray) -> list[str]:
    """Return the codes of ``Findings`` that apply to the weights of a mesh, (P, k)."""
    has_weights = np.asarray((weights > 0).any(axis=1))
    return _applying(
        {
            "more-than-4-weights": weights.shape[1] > MOST_INFLUENCES,
            "vertices-without-weights": not has_weights[mesh.corner_point].all(),
        }
    )


def _applying(rules: dict[str, bool]) -> list[str]:
    return [code for code, applies in rules.items() if applies]


FULL_BRIGHT = 0.25
"""Emission above which the viewer makes a face full bright."""
OWN_TOOL = "Meshferry"
_NO_PLACE: Place = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_STRAIGHT = 1e-5
"""Tolerance for the elements of a matrix without shear, relative to its scale."""
_MATERIAL = "-material"


class SceneBuilder:
    """Map a document and its partners to a scene, and collect messages."""

    def __init__(self, document: Collada, name: str, options: ReadOptions) -> None:
        self.options = options
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
        self.rigs: list[Rig] = []
        self._rig_of: dict[Part, int] = {}

    def build(self) -> sc.Scene:
        """Return the scene of the document and its partners."""
        document, name = self.document, self.scene.name
        models = models_of(document, self.report)
        self.rigs = [Rig(group, name, self.options, self.report) for group in rig_groups(document, models)]
        self.scene.skeletons += [rig.skeleton for rig in self.rigs]
        self._rig_of = {part: number for number, rig in enumerate(self.rigs) for part in rig.group.parts}
        self._add_objects([model for model in models if model.main.document is document])
        for model in models:
            if model.main.document is not document:
                self._add_model(model, self._node(model.main))
        if any(not rig.known for rig in self.rigs):
            self.report.note("not-an-avatar", "its rig is not that of a Second Life avatar")
        for rig in self.rigs:
            rig.report_unusual(self.findings)
        self.findings.report(self.report)
        self.scene.materials = [self._material(name, given) for name, given in self.materials.items()]
        clear = [name for name, given in self.materials.items() if given.has_transparency]
        if clear:
            template = "transparency settings are left out, textures keep their alpha: {}"
            self.report.note("transparency-left-out", template, listed(of_kind("material", clear), MOST_NAMED))
        return self.scene

    # -- models ---------------------------------------------------------------------------------

    def _add_objects(self, models: Sequence[Model]) -> None:
        """Add the objects of the main document, with the groups that hold them."""
        file, nodes = self.files[id(self.document)], self.document.nodes
        static: dict[int, list[Model]] = {}
        for model in models:
            if model.main in self._rig_of:
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

    def _node(self, part: Part, finest: sc.Node | None = None) -> sc.Node:
        """Return the node of an object, without a parent.

        A static part of a rigged object (``finest``) is placed in the space of the rig.
        """
        file = self.files[id(part.document)]
        if part in self._rig_of:
            return self._rigged_node(file, part, self._rig_of[part])
        if finest is not None and finest.skeleton is not None:
            rig = self.rigs[finest.skeleton]
            return sc.Node(part.name, mesh=moved(self._mesh(file, part), rig.turn @ rig.space.to_avatar @ part.world))
        return self._static_node(file, part, *decompose_matrix(file.root @ file.converted(part.world)), -1)

    def _static_node(self, file: _File, part: Part, place: Place, rest: Matrix | None, parent: int) -> sc.Node:
        """Return the node of a static object; ``rest`` is the shear that its ``place`` lacks, applied to the mesh."""
        if np.linalg.det(part.world[:3, :3]) < 0:
            self.findings.add_object(part.name, "mirrored-objects")
        if rest is not None:
            self.findings.add_object(part.name, "shear-applied")
        matrix = file.axes if rest is None else rest @ file.axes
        node = sc.Node(part.name, parent, *place, mesh=self._mesh(file, part, matrix))
        if rest is None and parent < 0:
            node.file_matrix = file.root @ file.converted(part.world)
        return node

    def _rigged_node(self, file: _File, part: Part, number: int) -> sc.Node:
        """Return the node of a rigged object, whose mesh is moved to where the armature rests."""
        rig, skin = self.rigs[number], file.document.skins[part.instance.skin]
        mesh, place, binding = self._mesh(file, part), _NO_PLACE, rig.skin(skin)
        if not np.allclose(part.world, np.identity(4), atol=_STRAIGHT):
            self.findings.add_object(part.name, "transform-of-rigged-mesh")
        if rig.at_table and rig.known:
            mesh = rig.at_standard(mesh, skin)
        elif (posed := rig.in_pose(mesh, skin)) is not None:
            mesh = posed
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
        self.findings.add_object(part.name, *of_weights(mesh, weights))
        if skin.is_reversed:
            self.findings.add_object(part.name, "weights-before-joints")
        mesh = replace(mesh, joint_indices=joints, joint_weights=weights)
        return sc.Node(part.name, -1, *place, mesh=mesh, skeleton=number, skin=binding)

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
            self.findings.add_object(part.name, *of_geometry(part.geometry))
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
        applies = builder.options.use_unit_and_axis
        self.axes = asset if applies else np.identity(4)
        """(4, 4) conversion of units and axes that is applied to the vertices."""
        self._from_axes = np.linalg.inv(self.axes)
        self.root = np.identity(4) if applies else asset
        """(4, 4) conversion of units and axes that is applied to the objects without a parent."""
        self.meshes: dict[tuple[object, ...], sc.Mesh] = {}

    def converted(self, matrix: Matrix) -> Matrix:
        """Return a transform of the file in the space of vertices to which unit and axes have been applied."""
        return self.axes @ matrix @ self._from_axes

    def materials_of(self, instance: Instance) -> list[str]:
        """Return the name of the material of each slot."""
        symbols = symbols_of(self.document.geometries[instance.geometry])
        return [self._material_of(symbol, instance) for symbol in symbols]

    def _material_of(self, symbol: str, instance: Instance) -> str:
        number = instance.materials.get(symbol, -1)
        if number >= 0:
            return self.builder.material_name(self.document.materials[number])
        return symbol.removesuffix(_MATERIAL) or symbol


def _is_quarter_turn(matrix: Matrix) -> bool:
    """Return whether a transform turns only by multiples of 90°, so that its axes stay parallel to the avatar's."""
    linear = np.abs(matrix[:3, :3])
    return bool(np.count_nonzero(linear > _STRAIGHT * linear.max()) == len(linear))


join = partners.join


def to_scene(document: Collada, name: str, options: ReadOptions) -> Scene:
    """Map a document and its partners to Blender's space."""
    return SceneBuilder(document, name, options).build()


_REFUSED = ("mirrored-objects", "vertices-not-finite", "weights-disagree")
"""Codes of findings because of which the viewer rejects the file."""
_MISREAD = ("strips-and-fans", "uvs-of-three-numbers", "weights-before-joints", "more-than-4-weights")
"""Codes of notes about data that is imported although the viewer shows it differently or not at all."""


def check(document: Collada) -> list[Message]:
    """Return the messages of an import except notes.

    Those because of which the viewer rejects the file are errors.

    Raises
    ------
    FormatError
        The document cannot be imported.
    """
    messages = to_scene(document, "", ReadOptions()).warnings
    kinds = dict.fromkeys(_REFUSED, Kind.ERROR) | dict.fromkeys(_MISREAD, Kind.WARNING)
    found = [
        replace(message, kind=kinds.get(message.code, Kind.WARNING if message.is_loss else message.kind))
        for message in messages
    ]
    return [message for message in found if not message.is_note]


def facts(document: Collada) -> dict[str, Any]:
    """Return counts as sums over all objects: a mesh with three objects counts three times.

    ``nodes`` counts the meshes in nodes, including partner files, ``materials`` the material symbols, and ``bones`` the
    joints that the skins list. ``partners`` counts the files of other levels and of physics.
    """
    instances = [instance for node in document.nodes for instance in node.instances]
    geometries = [document.geometries[instance.geometry] for instance in instances]
    groups = [group for geometry in geometries for group in geometry.groups]
    partners = {suffix: facts(partner) for suffix, partner in document.partners.items()}
    shared = ("nodes", "vertices", "triangles")
    return {
        "version": document.version,
        "nodes": len(instances) + sum(found["nodes"] for found in partners.values()),
        "vertices": sum(len(geometry.positions) for geometry in geometries),
        "triangles": sum(int((group.sizes - 2).sum()) for group in groups),
        "surfaces": len(groups),
        "materials": len({group.symbol for group in groups if group.symbol}),
        "uv_layers": max((len(group.uvs) for group in groups), default=0),
        "color_layers": max((len(group.colors) for group in groups), default=0),
        "bones": len({name for skin in document.skins for name in skin.joint_names})
        or sum(node.is_joint for node in document.nodes),
        "tool": document.tool,
        "meter": document.meter,
        "up_axis": document.up_axis,
        "partners": {suffix: {key: found[key] for key in shared} for suffix, found in partners.items()},
        "warnings": [*document.warnings, *(text for found in partners.values() for text in found["warnings"])],
    }
