"""Bytes <-> document of a node or world file, with meshes inside it (docs/formats/unigine_scenes.md)."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element
from zlib import crc32

import numpy as np

from ...core.errors import FormatError
from ...core.format import OutputFile
from ...core.messages import Message, Named, Report, Text, counted, joined
from ...encodings.xml_files import parse_xml
from ...geometry.transforms import Floats
from ..mesh.document import MeshFile, Surface, Target
from ..project import new_assets
from ..project.new_assets import AssetKind, NewAsset, TargetFolder
from ..values import escaped, matrix_words, transform_element

MOST_NODES = 1_000_000
"""Largest number of nodes of a scene. Nodes of referenced files count once for each reference."""
MOST_LEVELS = 32
"""Maximum depth of references from node file to node file."""

MESH_KINDS = (
    "ObjectMeshStatic",
    "ObjectMeshSkinned",
    "ObjectMeshSkinnedLegacy",
    "ObjectMeshCluster",
    "ObjectMeshClutter",
    "ObjectMeshDynamic",
)
POSE_KIND = "NodeSkeletonPose"
"""Type of the nodes that pose the skinned meshes below them. Their transform precedes their fields."""
CONTROLLED = "controlled_objects"
"""Name of the field of such a node that holds the ids of its skinned meshes, if it poses only some."""
REFERENCE_FIELDS = {"NodeReference": "reference", "NodeLayer": "layer"}
"""Name of the field that holds the reference to a node file, by type of the node."""


def _identity() -> Floats:
    return np.identity(4)


@dataclass(frozen=True)
class SurfaceSetting:
    """Settings for a surface of the mesh of a node (section 3)."""

    name: str
    material: str = ""
    is_enabled: bool = True
    nearest: float = 0.0
    """Distance in metres from which on the surface is shown; 0 or less for the finest level of detail."""
    farthest: float | None = None
    """Distance in metres up to which the surface is shown; None without a limit. Only set for new files."""
    flags: tuple[str, ...] = ()
    """Names of further attributes that have the value 1. Only set for new files."""


@dataclass
class SceneNode:
    """A node (section 2)."""

    kind: str
    name: str = ""
    identifier: str = ""
    """Value of the attribute ``id``, which is unique in the file."""
    parent: int = -1
    is_enabled: bool = True
    matrix: Floats = field(default_factory=_identity)
    """(4, 4), relative to the parent."""
    surfaces: tuple[SurfaceSetting, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    """Attributes and texts of child elements that are not fields of this class, by name."""
    geometry: MeshFile | None = None
    """A mesh inside the file (section 4)."""
    graph_clips: list[str] = field(default_factory=list)
    """References of the animations in the graph that poses the node; found when references are followed."""
    instances: Floats | None = None
    """(n, 4, 4) matrices of the instances of a cluster's mesh, relative to the node."""


@dataclass
class NewSet:
    """The additional files of a new scene. They refer to one another by name until their GUIDs are known."""

    target: TargetFolder
    assets: list[NewAsset] = field(default_factory=list)
    """Assets in the order of writing."""
    findings: list[Message] = field(default_factory=list)
    """Findings about the meshes."""


@dataclass
class SceneFile:
    """A ``.node`` or ``.world`` file. In its list of nodes, parents come before their children."""

    root: str
    """Name of the root element: ``nodes``, ``node`` or ``world``."""
    version: str = ""
    nodes: list[SceneNode] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    """References to material libraries, only in files of SDK 2.0."""
    digest: str = ""
    """SHA-256 of the file's bytes, by which an export verifies that the file is unchanged."""
    warnings: list[Any] = field(default_factory=list)
    """Warnings of the reader; not part of the file."""
    original: bytes = field(default=b"", repr=False)
    """Bytes of the imported file. An export writes them unchanged, since the other fields do not store all data."""
    new_set: NewSet | None = None
    """The additional files of a new scene; None for an imported file."""


_LARGEST_NUMBER = 3.4e38
_FARTHEST = 1e18
"""Limit for numbers. Squares of larger ones overflow in single precision, and Blender makes infinite scales of them."""


def parse_numbers(text: str | None) -> Floats | None:
    """Return the numbers of a text, or None if one of them is not finite in single precision."""
    try:
        values = np.array((text or "").split(), np.float64)
    except ValueError:
        return None
    return values if (np.abs(values) < _LARGEST_NUMBER).all() else None


def parse_number(text: str | None, default: float) -> float:
    """Return a number, which may be infinite, or the default if the text is not a number."""
    try:
        value = float(text) if text is not None else default
    except ValueError:
        return default
    return default if math.isnan(value) else value


def parse_matrix(text: str | None) -> Floats | None:
    """Return a matrix given by its columns, or None if the text is not 16 finite numbers of an affine matrix."""
    try:  # Plain floats are several times as fast as small arrays.
        values = [float(word) for word in (text or "").split()]
    except ValueError:
        return None
    if len(values) != 16 or not all(-_FARTHEST < value < _FARTHEST for value in values):
        return None
    is_affine = all(abs(value - wanted) < 1e-3 for value, wanted in zip(values[3::4], (0, 0, 0, 1), strict=True))
    return np.array(values).reshape(4, 4).T if is_affine else None


_VERSION = "ms13"
"""Version of mesh files that store the same data."""
_SIZES = {0: 3, 16: 4, 32: 4, 48: 4}
"""Number of values for each vertex in an array, by the array's offset: position (0), two UV layers (16), tangent frame
(32) and colour (48)."""
_QUANTISED = 32767


def read_inline_mesh(element: Element) -> MeshFile | None:
    """Return the mesh inside a node's element; None if there is none.

    Raises
    ------
    FormatError
        Counts, numbers or indices do not fit.
    """
    found = element.findall("vertex")
    if not found:
        return None
    arrays = dict(_array(child) for child in found)
    counts = {len(values) for values in arrays.values()}
    if 0 not in arrays or len(counts) != 1:
        raise FormatError("its vertex arrays are incomplete or of different lengths")
    indices = _indices(element.find("indices"), counts.pop())
    ranges = [_range(child, len(indices)) for child in element.findall("object_surface")]
    return MeshFile(
        _VERSION, surfaces=[_inline_surface(name, indices[begin:end], arrays) for name, begin, end in ranges]
    )


def _array(element: Element) -> tuple[int, Floats]:
    """Return the offset and the values of an array of vertex data."""
    offset, count, size = (_whole(element, name) for name in ("offset", "num_vertex", "size"))
    values = parse_numbers(element.text)
    if values is None:
        raise FormatError("its vertex data has a value that is not a finite number")
    if size != _SIZES.get(offset) or len(values) != count * size:
        raise FormatError(
            "its vertex array at offset {} has {:,} numbers for {:,} vertices", offset, len(values), count
        )
    return offset, values.reshape(count, size)


def _whole(element: Element, name: str) -> int:
    try:
        value = int(element.get(name, ""))
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 31:
        raise FormatError("attribute '{}' of '{}' is not a number", Named("layer", name), element.tag)
    return value


def _indices(element: Element | None, points: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values = parse_numbers(element.text) if element is not None else None
    if element is None or values is None or len(values) != _whole(element, "num_indices"):
        raise FormatError("its indices are missing or of another number than stated")
    if len(values) and not 0 <= values.min() <= values.max() < points:
        raise FormatError("an index is outside its {:,} vertices", points)
    return values.astype(np.int64)


def _range(element: Element, indices: int) -> tuple[str, int, int]:
    begin, end, name = _whole(element, "begin"), _whole(element, "end"), Named("layer", element.get("name", ""))
    if not begin <= end <= indices or (end - begin) % 3:
        raise FormatError("surface '{}' has invalid triangles {:,} to {:,}", name, begin, end)
    return name, begin, end


def _inline_surface(
    name: str, indices: np.ndarray[tuple[int], np.dtype[np.int64]], arrays: dict[int, Floats]
) -> Surface:
    """Return a surface whose corners are rows of ``arrays``, which are given by their byte offset in a vertex."""
    used, corners = np.unique(indices, return_inverse=True)
    rows = {offset: values[used] for offset, values in arrays.items()}
    uvs = rows.get(16)
    # Quaternions of length 0 make the mesh reader compute normals from the triangles.
    frames = rows.get(32, np.zeros((len(used), 4)))
    stored = np.round(np.clip(frames, -1, 1) * _QUANTISED).astype(np.int16)
    stored[(stored[:, 3] == 0) & np.any(stored != 0, axis=1) & np.signbit(frames[:, 3]), 3] = -1
    corners = corners.reshape(-1).astype(np.int32)
    return Surface(
        name,
        np.zeros(10, np.float32),
        [Target("", rows[0].astype(np.float32), stored)],
        uv0=None if uvs is None else uvs[:, :2].astype(np.float32),
        uv1=None if uvs is None else uvs[:, 2:].astype(np.float32),
        colors=np.round(np.clip(rows[48], 0, 1) * 255).astype(np.uint8) if 48 in rows else None,
        c_indices=corners,
        t_indices=corners,
    )


_LARGEST_ID = 2**31 - 1


class NodeIds:
    """Generates ids that no other element of a file has. The same seeds in the same order give the same ids."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def new(self, seed: str) -> str:
        """Return an id that is derived from the text ``seed``."""
        number = crc32(seed.encode("utf-8", "surrogatepass")) & _LARGEST_ID
        while not number or str(number) in self._taken:
            number = (number + 1) & _LARGEST_ID
        self._taken.add(str(number))
        return str(number)


_OWN_FIELDS = {"node", "surface", "transform", "position", "vertex", "indices", "object_surface", "body", "properties"}
_OWN_ATTRIBUTES = {"type", "id", "name", "enabled"}
_LONGEST_VALUE = 1000


def read(data: bytes, *, inflated_limit: int | None = None) -> SceneFile:
    """Decode a node or world file.

    Raises
    ------
    FormatError
        The file is not well-formed XML, has a document type, or exceeds a limit.
    """
    if data.count(b"<node") > MOST_NODES:
        raise FormatError("The scene has more than {:,} nodes", MOST_NODES)
    root = parse_xml(data)
    if root.tag not in {"nodes", "node", "world"}:
        raise FormatError("The root element is '{}', not 'nodes' or 'world'", root.tag)
    found = SceneFile(root.tag, root.get("version", ""), digest=hashlib.sha256(data).hexdigest(), original=data)
    found.libraries = [library.text.strip() for library in root.findall("materials/library") if library.text]
    _Reader(found).read(root)
    return found


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files are equal, apart from blanks at their ends."""
    return one.strip() == other.strip()


class _Reader:
    """Collects the nodes of a file and counts damaged elements."""

    def __init__(self, document: SceneFile) -> None:
        self.document = document
        self.report = Report(document.warnings)
        self.bad_transforms: list[str] = []

    def read(self, root: Element) -> None:
        waiting = [(element, -1) for element in reversed(list(_top_nodes(root)))]
        while waiting:
            element, parent = waiting.pop()
            number = len(self.document.nodes)
            self.document.nodes.append(self._node(element, parent))
            waiting += [(child, number) for child in reversed(element.findall("node"))]
        if self.bad_transforms:
            first = joined([Text("'{}'", name) for name in self.bad_transforms[:5]])
            count = counted(len(self.bad_transforms), "node")
            template = "{} without a valid transform, kept at the parent's place: {}"
            self.report.change("invalid-transform", template, count, first)

    def _node(self, element: Element, parent: int) -> SceneNode:
        node = SceneNode(
            element.get("type", ""),
            element.get("name", ""),
            element.get("id", ""),
            parent,
            is_enabled=element.get("enabled", "1") != "0",
            surfaces=tuple(_read_surface(child) for child in element.findall("surface")),
            values=_values(element),
        )
        transform = element.find("transform")
        if transform is not None:
            matrix = parse_matrix(transform.text)
            if matrix is None:
                self.bad_transforms.append(node.name)
            else:
                node.matrix = matrix
        self._add_instances(node, element)
        try:
            node.geometry = read_inline_mesh(element)
        except FormatError as problem:
            self.report.loss(
                "inner-mesh-left-out", "The mesh inside node '{}' is left out: {}", node.name, problem.message
            )
        return node

    def _add_instances(self, node: SceneNode, element: Element) -> None:
        places = element.findall("position")
        if node.kind != "ObjectMeshCluster" or not places:
            return
        matrices = [parse_matrix(place.text) for place in places]
        good = [matrix for matrix in matrices if matrix is not None]
        if len(good) < len(matrices):
            count = counted(len(matrices) - len(good), "place")
            template = "Cluster '{}': {} without 16 finite numbers left out"
            self.report.loss("invalid-transform", template, node.name, count)
        node.instances = np.stack(good) if good else np.empty((0, 4, 4))


def _top_nodes(root: Element) -> Iterator[Element]:
    """Yield the elements of the nodes without a parent."""
    if root.tag == "node":
        yield root
        return
    yield from root.findall("node")
    for container in ("editor", "nodes"):
        yield from root.findall(f"{container}/node")


def _read_surface(element: Element) -> SurfaceSetting:
    return SurfaceSetting(
        element.get("name", ""),
        (element.get("material") or "").strip(),
        element.get("enabled", "1") != "0",
        max(parse_number(element.get("min_visible_distance"), 0.0), 0.0),
    )


def _values(element: Element) -> dict[str, str]:
    """Return the attributes and the short texts of child elements for which ``SceneNode`` has no field."""
    values = {name: value for name, value in element.attrib.items() if name not in _OWN_ATTRIBUTES}
    for child in element:
        text = (child.text or "").strip() or child.get("guid", "")
        if child.tag == CONTROLLED:
            values[child.tag] = " ".join(each.get("id", "") for each in child)
        if child.tag not in _OWN_FIELDS and not len(child) and 0 < len(text) <= _LONGEST_VALUE:
            values.setdefault(child.tag, text)
    return values


_HEAD = b'<?xml version="1.0" encoding="utf-8"?>\n'
_ORDER = tuple(AssetKind)


def write(document: SceneFile) -> bytes:
    """Encode a document. The bytes of an imported document are returned unchanged."""
    return document.original or encode_new(document, {})


def write_files(document: SceneFile, stem: str) -> list[OutputFile]:
    """Encode images, materials, meshes, parts and ``stem.node``, each with a ``.meta`` unless it has one.

    Raises
    ------
    ExportError
        An existing file would be replaced that no earlier export wrote, or that was changed since.
    """
    name = f"{stem}.node"
    new = document.new_set
    if new is None:
        return [OutputFile(name, write(document))]
    own = NewAsset(name, AssetKind.NODE, lambda guids: encode_new(document, guids))
    outputs, _guids = encode_assets(new.target, [*new.assets, own])
    return new_assets.with_manifest(new.target.folder, outputs)


def encode_assets(target: TargetFolder, assets: Sequence[NewAsset]) -> tuple[list[OutputFile], dict[str, str]]:
    """Encode assets, each with a ``.meta`` unless it has one; return the files, and the GUIDs by name."""
    assets = sorted(assets, key=lambda asset: _ORDER.index(asset.kind))
    salt = _salt(assets)
    guids: dict[str, str] = {}
    for asset in assets:
        guids[asset.name] = asset.guid or target.guid(asset.name, salt)
    return [output for asset in assets for output in target.files(asset, guids)], guids


def _salt(assets: list[NewAsset]) -> str:
    """Return a text that differs between scenes with different content, from which GUIDs are derived."""
    digest = hashlib.sha1(usedforsecurity=False)
    for asset in assets:
        digest.update(asset.name.encode("utf-8", "surrogatepass"))
        if asset.kind not in {AssetKind.TEXTURE, AssetKind.MATERIAL}:
            digest.update(asset.encode({}))
    return digest.hexdigest()


def encode_new(document: SceneFile, guids: Mapping[str, str]) -> bytes:
    """Encode a new document; ``guids`` has the GUIDs of the assets that it refers to."""
    lines = [_HEAD, b'<nodes version="' + escaped(document.version) + b'">\n']
    children: dict[int, list[int]] = {}
    for index, node in enumerate(document.nodes):
        children.setdefault(node.parent, []).append(index)
    waiting: list[tuple[int, int | None]] = [(1, index) for index in reversed(children.get(-1, []))]
    while waiting:
        depth, number = waiting.pop()
        indent = b"\t" * depth
        if number is None:
            lines.append(indent + b"</node>\n")
            continue
        lines += [indent + line + b"\n" for line in node_lines(document.nodes[number], guids)]
        waiting.append((depth, None))
        waiting += [(depth + 1, child) for child in reversed(children.get(number, []))]
    return b"".join([*lines, b"</nodes>\n"])


def node_lines(node: SceneNode, guids: Mapping[str, str]) -> list[bytes]:
    """Return the lines of a node's element, without its child nodes and its end tag."""
    hidden = b"" if node.is_enabled else b' enabled="0"'
    tag = b'<node type="%s" id="%s"%s name="%s">'
    lines = [tag % (escaped(node.kind), escaped(node.identifier), hidden, escaped(node.name))]
    for name, value in node.values.items():
        content = f"guid://{guids[value]}" if value in guids else value
        lines.append(b"\t<%s>%s</%s>" % (name.encode(), escaped(content), name.encode()))
    lines += [b"\t" + _surface_element(surface, guids) for surface in node.surfaces]
    transform = b"\t" + transform_element(matrix_words(node.matrix))
    return [lines[0], transform, *lines[1:]] if node.kind == POSE_KIND else [*lines, transform]


def _surface_element(surface: SurfaceSetting, guids: Mapping[str, str]) -> bytes:
    values = {"name": surface.name}
    if not surface.is_enabled:
        values["enabled"] = "0"
    values |= dict.fromkeys(surface.flags, "1")
    if surface.nearest > 0:
        values["min_visible_distance"] = f"{surface.nearest:.9g}"
    if surface.farthest is not None:
        values["max_visible_distance"] = f"{surface.farthest:.9g}"
    if surface.material:
        values["material"] = guids.get(surface.material, surface.material)
    attributes = [b'%s="%s"' % (name.encode(), escaped(value)) for name, value in values.items()]
    return b"<surface " + b" ".join(attributes) + b"/>"
