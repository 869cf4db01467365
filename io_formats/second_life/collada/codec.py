"""Bytes, also of a zip file, -> a Collada file: its nodes, with copies of those that others link, and its materials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Report, counted, joined
from ...encodings.xml_files import SIZE_LIMIT
from ...encodings.zip_files import open_archive, read_entry
from ...geometry.transforms import Floats, Matrix, matrix_of_linear
from . import elements
from .document import Collada, Findings, Instance, Material, Node
from .elements import NAME_ARRAYS, Sources, Tree, name_of, parse_tree, text_of, words_of
from .format import ZIP
from .geometry import GeometryReader, SkinReader

_SHADERS = ("lambert", "phong", "blinn", "constant")
_MOST_STEPS = 4
"""Maximum number of links that are followed from a texture to its image."""


class MaterialReader:
    """Reads the materials that objects use, each once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._numbers: dict[Element, int] = {}
        self._effects: dict[Element, Material] = {}
        self.materials: list[Material] = []

    def number(self, element: Element) -> int:
        """Return the index of a material in the document, reading it if needed."""
        if element not in self._numbers:
            self._numbers[element] = len(self.materials)
            self.materials.append(self._read(element))
        return self._numbers[element]

    def _read(self, element: Element) -> Material:
        link = element.find("instance_effect")
        effect = None if link is None else self._tree.target(link.get("url"), "effect")
        if effect is None:
            return Material(name_of(element))
        given = {} if link is None else {one.get("ref", ""): one for one in reversed(link.findall("setparam"))}
        if given:
            return replace(self._read_effect(effect, given), name=name_of(element))
        if effect not in self._effects:
            self._effects[effect] = self._read_effect(effect, {})
        return replace(self._effects[effect], name=name_of(element))

    def _read_effect(self, effect: Element, given: Mapping[str, Element]) -> Material:
        """Read an effect; ``given`` are the parameters that the material sets."""
        material = Material("")
        parameters = {one.get("sid", ""): one for one in reversed(list(effect.iter("newparam")))} | dict(given)
        shader = next((shader for kind in _SHADERS for shader in effect.iter(kind)), None)
        if shader is None:
            return material
        texture = shader.find("diffuse/texture")
        if texture is not None:
            material.image = self._image(parameters, texture.get("texture", ""))
            material.color = (1.0, 1.0, 1.0, 1.0)
        elif color := _color_of(shader.find("diffuse"), parameters):
            material.color = color
        if emitted := _color_of(shader.find("emission"), parameters):
            material.emission = float(np.mean(emitted[:3]))
        material.has_transparency = _has_transparency(shader)
        return material

    def _image(self, parameters: Mapping[str, Element], name: str) -> str:
        """Return the address that a texture's name leads to, by parameters of the effect or as the id of an image."""
        for _ in range(_MOST_STEPS):
            parameter = parameters.get(name)
            if parameter is None:
                break
            surface = parameter.find("surface")
            where = surface.find("init_from") if surface is not None else parameter.find("sampler2D/source")
            instance = parameter.find("sampler2D/instance_image")
            name = instance.get("url", "") if where is None and instance is not None else text_of(where)
        image = self._tree.target(name, "image")
        start = None if image is None else image.find("init_from")
        reference = None if start is None else start.find("ref")
        return text_of(start if reference is None else reference)


def _color_of(channel: Element | None, parameters: Mapping[str, Element]) -> tuple[float, float, float, float] | None:
    """Return the colour of a channel of a shader, which it states itself or by a parameter; None if there is none."""
    link = None if channel is None else channel.find("param")
    parameter = None if link is None else parameters.get(link.get("ref") or text_of(link))
    stated = channel if parameter is None else parameter
    found = [] if stated is None else [one for one in stated if one.tag in {"color", "float3", "float4"}]
    return _color(found[0]) if found else None


def _color(element: Element | None) -> tuple[float, float, float, float] | None:
    """Return a colour with alpha; None if there is none."""
    values = np.nan_to_num(elements.exact_floats(text_of(element)), nan=0.0, posinf=1.0, neginf=0.0)
    if len(values) < 3:
        return None
    red, green, blue, alpha = (*values[:3].clip(0.0, 1.0).tolist(), *values[3:4].clip(0.0, 1.0).tolist(), 1.0)[:4]
    return red, green, blue, alpha


def _has_transparency(shader: Element) -> bool:
    """Return whether a shader has transparency other than what exporters write for opaque materials."""
    transparent = shader.find("transparent")
    if transparent is not None:
        color = _color(transparent.find("color"))
        amount = elements.exact_floats(text_of(shader.find("transparency/float")))
        factor = float(amount[0]) if len(amount) else 1.0
        if color is None:
            return transparent.find("texture") is not None
        if transparent.get("opaque", "A_ONE") == "RGB_ZERO":
            return any(part * factor > 0.0 for part in color[:3])
        return color[3] * factor < 1.0
    amount = elements.exact_floats(text_of(shader.find("transparency/float")))
    return len(amount) > 0 and 0.0 < float(amount[0]) < 1.0


MOST_NODES = 50_000
"""Maximum number of nodes including copies; it protects against small files in which nested links multiply nodes."""
MOST_LEVELS = 200
_LARGEST = 1e12
_MOST_PERSPECTIVE = 1e-3
"""Largest absolute value among the first three numbers in the last row of a row-major matrix. If one is larger, these
numbers are a translation, and the file was written column by column."""
_SIZES = {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}
_LEFT_OUT = ("lookat", "skew")
_MESHES = ("instance_geometry", "instance_controller")


@dataclass
class _Waiting:
    """A node that is still to be read, with its parent."""

    element: Element
    parent: int
    above: _Waiting | None
    level: int


class NodeReader:
    """Reads the nodes of the scene, and the meshes that they hold."""

    def __init__(
        self, tree: Tree, geometries: GeometryReader, skins: SkinReader, materials: MaterialReader, findings: Findings
    ) -> None:
        self._tree = tree
        self._geometries = geometries
        self._skins = skins
        self._materials = materials
        self._findings = findings
        self._joints = {
            word
            for skin in tree.root.iter("skin")
            for tag in NAME_ARRAYS
            for array in skin.iter(tag)
            for word in words_of(array)
        }
        has_skeleton = next(tree.root.iter("skeleton"), None) is not None
        self._matrix_of_joints = "transform" if has_skeleton else "matrix"
        self._read_nodes: dict[Element, Node] = {}
        self._held = 0
        self._worlds: list[Matrix] = []
        self.nodes: list[Node] = []

    def read(self) -> None:
        """Read the nodes of the scene. In a file without a scene, each geometry gets a node."""
        scene = self._scene()
        if scene is None:
            for element in self._tree.root.iter("geometry"):
                number = self._geometries.number(element)
                instances = [] if number < 0 else [Instance(number)]
                name, identity = name_of(element), np.identity(4)
                self.nodes.append(Node(name, -1, identity, element.get("id", ""), instances=instances))
            return
        waiting = [_Waiting(element, -1, None, 1) for element in reversed(scene.findall("node"))]
        while waiting:
            current = waiting.pop()
            number = len(self.nodes)
            self.nodes.append(self._placed(self._node(current)))
            if number >= MOST_NODES or self._held > MOST_NODES:
                raise FormatError("The scene has more than {:,} nodes", MOST_NODES)
            below = [_Waiting(element, number, current, current.level + 1) for element in self._children(current)]
            if below and current.level >= MOST_LEVELS:
                raise FormatError("The nodes are nested more than {:,} levels deep", MOST_LEVELS)
            waiting += reversed(below)

    def _scene(self) -> Element | None:
        link = self._tree.root.find("scene/instance_visual_scene")
        found = None if link is None else self._tree.target(link.get("url"), "visual_scene")
        return found if found is not None else next(self._tree.root.iter("visual_scene"), None)

    def _children(self, current: _Waiting) -> Iterator[Element]:
        """Yield the child nodes of a node: those nested in it, and those that it links to."""
        for element in current.element:
            if element.tag == "node":
                yield element
            elif element.tag == "instance_node":
                target = self._tree.target(element.get("url"), "node")
                if target is None:
                    self._findings.add("link-missing", name_of(current.element))
                elif _holds(current, target):
                    self._findings.add("node-holds-itself", name_of(target))
                else:
                    yield target

    def _node(self, current: _Waiting) -> Node:
        """Return a node; copies share its matrix and the geometries."""
        element = current.element
        if element not in self._read_nodes:
            name, node_id, sid = name_of(element), element.get("id", ""), element.get("sid", "")
            instances = [found for tag in element if (found := self._instance(tag, name)) is not None]
            is_named = not instances and not self._joints.isdisjoint(filter(None, (sid, node_id, name)))
            node = Node(name, -1, self._matrix(element), node_id, sid, element.get("type") == "JOINT" or is_named)
            node.instances = instances
            node.position = self._position(element) if node.is_joint else None
            self._read_nodes[element] = node
        node = self._read_nodes[element]
        self._held += sum(1 + len(instance.skeletons) for instance in node.instances)
        return replace(node, parent=current.parent, instances=list(node.instances))

    def _instance(self, element: Element, owner: str) -> Instance | None:
        """Return the mesh that an element holds, or None if it holds none."""
        if element.tag not in _MESHES:
            return None
        target = self._tree.target(element.get("url"), "geometry", "controller")
        if target is None:
            self._findings.add("link-missing", owner)
            return None
        is_geometry = target.tag == "geometry"
        geometry, skin = (self._geometries.number(target), -1) if is_geometry else self._skins.numbers(target)
        if geometry < 0:
            return None
        links = [text_of(link).removeprefix("#") for link in element.findall("skeleton")] if skin >= 0 else []
        instance = Instance(geometry, skin, skeletons=links)
        for bound in element.iter("instance_material"):
            material = self._tree.target(bound.get("target"), "material")
            if material is None:
                self._findings.add("link-missing", owner)
            else:
                instance.materials[bound.get("symbol", "")] = self._materials.number(material)
        return instance

    def _placed(self, node: Node) -> Node:
        """Return a node, without its transform if that and those above it together are too large."""
        above = self._worlds[node.parent] if node.parent >= 0 else np.identity(4)
        world = above @ node.matrix
        if not (np.abs(world) < _LARGEST).all():
            self._findings.add("invalid-transform", node.name)
            node, world = replace(node, matrix=np.identity(4)), above
        self._worlds.append(world)
        return node

    def _matrix(self, element: Element) -> Matrix:
        """Return the product of a node's transforms, the first on the left."""
        matrix = np.identity(4)
        for child in element:
            if child.tag in _SIZES:
                values = _values(child)
                if values is None:
                    self._findings.add("invalid-transform", name_of(element))
                    return np.identity(4)
                matrix = matrix @ _matrix_of(child.tag, values)
            elif child.tag in _LEFT_OUT and any(found.tag in (*_MESHES, "instance_node") for found in element.iter()):
                self._findings.add("transform-left-out", name_of(element))
        if not (np.abs(matrix) < _LARGEST).all():
            self._findings.add("invalid-transform", name_of(element))
            return np.identity(4)
        return matrix

    def _position(self, element: Element) -> Floats | None:
        """Return the position of a joint as the viewer determines it (section 5.4), or None."""
        moves = element.findall("translate")
        for chosen in (
            *(move for sid in ("translate", "location") for move in moves if move.get("sid") == sid),
            *moves,
            *(matrix for matrix in element.findall("matrix") if matrix.get("sid") == self._matrix_of_joints),
        ):
            values = _values(chosen)
            if values is not None:
                return _matrix_of(chosen.tag, values)[:3, 3]
        return None


def _holds(current: _Waiting, target: Element) -> bool:
    """Return whether a node or one of its ancestors was made from this element."""
    above: _Waiting | None = current
    while above is not None:
        if above.element is target:
            return True
        above = above.above
    return False


def _values(element: Element) -> Floats | None:
    """Return the numbers of a transform, or None if they cannot be used."""
    values = elements.exact_floats(text_of(element))[: _SIZES[element.tag]]
    usable = len(values) == _SIZES[element.tag] and (np.abs(values) < _LARGEST).all()
    is_affine = not (np.abs(values[12:15]) > _MOST_PERSPECTIVE).any()
    return values if usable and is_affine else None


def _matrix_of(tag: str, values: Floats) -> Matrix:
    """Return a transform element as a matrix (4, 4)."""
    if tag == "scale":
        return matrix_of_linear(np.diag(values))
    if tag == "rotate":
        return matrix_of_linear(_rotation(values[:3], np.radians(values[3])))
    matrix = np.identity(4)
    if tag == "translate":
        matrix[:3, 3] = values
    else:
        matrix[:3] = values.reshape(4, 4)[:3]
    return matrix


def _rotation(axis: Floats, angle: float) -> Matrix:
    """Return the (3, 3) rotation about an axis, by Rodrigues' formula."""
    x, y, z = axis / (np.linalg.norm(axis) or 1.0)
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    return np.asarray(np.identity(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)


def _unpacked(data: bytes, limit: int | None = None) -> bytes:
    """Return the only ``.dae`` file in a zip file, or other data as they are.

    Parameters
    ----------
    limit:
        Maximum size of the file in bytes; None for that of XML files.

    Raises
    ------
    FormatError
        The zip file is damaged, encrypted or too large, or has no ``.dae`` file or several.
    """
    if not data.startswith(ZIP):
        return data
    with open_archive(data) as archive:
        found = [info for info in archive.infolist() if _is_collada(info.filename)]
        if len(found) != 1:
            raise FormatError("The zip file has {:,} .dae files; one is expected", len(found))
        return read_entry(archive, found[0], min(SIZE_LIMIT, limit or SIZE_LIMIT))


def _is_collada(path: str) -> bool:
    """Return whether an entry is a Collada file; macOS adds a file ``._x.dae`` with the attributes of each."""
    return path.lower().endswith(".dae") and not path.rpartition("/")[2].startswith("._")


_AXES = ("X_UP", "Y_UP", "Z_UP")
_VALUES_IN_ANY_FILE = 1_000_000


def read(data: bytes, *, inflated_limit: int | None = None) -> Collada:
    """Decode a Collada file, also in a zip file (page ``docs/formats/collada.md``, sections 2 to 5).

    Raises
    ------
    FormatError
        The file is not Collada, is not well-formed, has a document type, is nested too deeply, or no object has a mesh.
    """
    document = Collada()
    report = Report(document.warnings)
    data = _unpacked(data, inflated_limit)
    tree = parse_tree(data, report)
    _read_asset(tree, document, report)
    findings = Findings()
    sources = Sources(tree, findings, max(_VALUES_IN_ANY_FILE, len(data)))
    geometries = GeometryReader(tree, sources, findings, max(_VALUES_IN_ANY_FILE, len(data)))
    skins = SkinReader(tree, sources, geometries, findings)
    materials = MaterialReader(tree)
    nodes = NodeReader(tree, geometries, skins, materials, findings)
    nodes.read()
    for element in tree.root.iter("geometry"):
        findings.add("geometry-without-object", name_of(element), not geometries.is_read(element))
    document.nodes, document.materials = nodes.nodes, materials.materials
    document.geometries, document.skins = geometries.geometries, skins.skins
    causes = findings.report(report)
    used = [geometries.geometries[instance.geometry] for node in nodes.nodes for instance in node.instances]
    has_joints = any(node.is_joint for node in nodes.nodes)
    if not any(geometry.groups for geometry in used) and not (has_joints and not used):
        if causes:
            raise FormatError("No object in the file has a mesh with polygons: {}", causes[0])
        raise FormatError("No object in the file has a mesh with polygons")
    _report_left_out(tree, report)
    return document


def _read_asset(tree: Tree, document: Collada, report: Report) -> None:
    document.version = tree.root.get("version", "")
    tools = [text_of(tool) for tool in tree.root.findall("asset/contributor/authoring_tool")]
    document.tool = next(filter(None, tools), "")
    axis = text_of(tree.root.find("asset/up_axis")).upper()
    document.up_axis = axis if axis in _AXES else "Y_UP"
    unit = tree.root.find("asset/unit")
    stated = "1" if unit is None else unit.get("meter", "1")
    meter = elements.exact_floats(stated)
    if len(meter) == 1 and 1e-6 <= meter[0] <= 1e6:
        document.meter = float(meter[0])
    else:
        report.change("unit-invalid", "The unit '{}' is not a length; metres were taken", stated)


def _report_left_out(tree: Tree, report: Report) -> None:
    counts = dict.fromkeys(("camera", "light", "animation", "morph"), 0)
    for element in tree.root.iter():
        if element.tag in counts and (element.tag != "animation" or element.find("channel") is not None):
            counts[element.tag] += 1
    texts = [
        counted(counts["camera"], "camera"),
        counted(counts["light"], "light"),
        counted(counts["animation"], "animation"),
        counted(counts["morph"], "morph"),
    ]
    texts = [text for text, number in zip(texts, counts.values(), strict=True) if number]
    if texts:
        report.note("elements-left-out", "{} left out", joined(texts))


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files are equal, apart from blanks at their ends."""
    return _unpacked(one).strip() == _unpacked(other).strip()
