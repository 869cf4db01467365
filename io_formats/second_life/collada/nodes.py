"""The nodes of a Collada scene, with copies of the nodes that others hold by a link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...geometry.transforms import Matrix, matrix_of_linear
from . import numbers
from .document import Instance, Node
from .findings import Findings
from .geometry import GeometryReader
from .materials import MaterialReader
from .skins import SkinReader
from .sources import NAME_ARRAYS
from .tree import Tree, name_of, text_of, words_of

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
        self,
        tree: Tree,
        geometries: GeometryReader,
        skins: SkinReader,
        materials: MaterialReader,
        findings: Findings,
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
            self.nodes.append(self._node(current))
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
        self._held += len(node.instances)
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
        instance = Instance(geometry, skin)
        for bound in element.iter("instance_material"):
            material = self._tree.target(bound.get("target"), "material")
            if material is None:
                self._findings.add("link-missing", owner)
            else:
                instance.materials[bound.get("symbol", "")] = self._materials.number(material)
        return instance

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

    def _position(self, element: Element) -> npt.NDArray[np.float64] | None:
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


def _values(element: Element) -> npt.NDArray[np.float64] | None:
    """Return the numbers of a transform, or None if they cannot be used."""
    values = numbers.exact_floats(text_of(element))[: _SIZES[element.tag]]
    usable = len(values) == _SIZES[element.tag] and (np.abs(values) < _LARGEST).all()
    is_affine = not (np.abs(values[12:15]) > _MOST_PERSPECTIVE).any()
    return values if usable and is_affine else None


def _matrix_of(tag: str, values: npt.NDArray[np.float64]) -> Matrix:
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


def _rotation(axis: npt.NDArray[np.float64], angle: float) -> Matrix:
    """Return the (3, 3) rotation about an axis, by Rodrigues' formula."""
    x, y, z = axis / (np.linalg.norm(axis) or 1.0)
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    return np.asarray(np.identity(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)
