"""Geometries and skins of a Collada file: positions, polygons of each material, joints and weights."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.scene import FloatArray, IntArray
from ...geometry.transforms import Matrix
from ..avatar import joints
from . import elements as collada_elements
from .document import Findings, Geometry, Group, Skin, Values
from .elements import Sources, Tree, inputs_of, name_of, taken_text

Polygons = tuple[IntArray, IntArray]
"""(G,) number of corners of each polygon, and (C, stride) indices of all corners."""

KINDS = ("triangles", "polylist", "polygons", "tristrips", "trifans")
LINES = ("lines", "linestrips")


def polygons_of(element: Element, stride: int, findings: Findings, owner: str) -> Polygons:
    """Return the polygons of a primitive element; strips and fans become triangles.

    Parameters
    ----------
    element:
        The element. Its text is released after parsing, to save memory.
    stride:
        Number of indices of each corner.
    findings:
        Counts data that is left out.
    owner:
        Name of the geometry.
    """
    if element.tag == "polylist":
        return _polylist(element, stride, findings, owner)
    lists = element.findall("p")
    if element.tag == "polygons":
        lists += [part for with_holes in element.findall("ph") for part in with_holes.findall("p")]
        findings.add("holes-left-out", owner, len(element.findall("ph/h")))
    sizes, rows = _lists(lists, stride)
    if element.tag == "triangles":
        stated = collada_elements.integer(element.get("count"))
        findings.add("lists-cut-off", owner, len(rows) % 3 != 0 or len(rows) // 3 < stated)
        return np.full(len(rows) // 3, 3, np.int32), rows[: len(rows) // 3 * 3]
    if element.tag == "polygons":
        return sizes, rows
    corners = _strip_corners(sizes) if element.tag == "tristrips" else _fan_corners(sizes)
    return np.full(len(corners) // 3, 3, np.int32), rows[corners]


def _polylist(element: Element, stride: int, findings: Findings, owner: str) -> Polygons:
    """Divide corners into polygons by ``vcount``, since ``count`` is wrong in some real files."""
    sizes = np.maximum(collada_elements.integers(taken_text(element.find("vcount"))), 0)
    _, rows = _lists(element.findall("p"), stride)
    whole = np.cumsum(sizes, dtype=np.int64) <= len(rows)
    findings.add("lists-cut-off", owner, not whole.all() or len(sizes) == 0 < len(rows))
    sizes = sizes[whole]
    return sizes, rows[: int(sizes.sum(dtype=np.int64))]


def _lists(elements: list[Element], stride: int) -> Polygons:
    """Return the number of complete corners in each list, and the corners of all lists."""
    texts = [taken_text(element) for element in elements]
    if len(texts) == 1:
        values = collada_elements.integers(texts.pop())
        count = len(values) // stride
        return np.array([count], np.int32), values[: count * stride].reshape(-1, stride)
    # As bytes, since str.split also splits at blanks that are not XML's, which are parts of numbers here.
    sizes = np.array([len(text.encode().split()) for text in texts], np.int64)
    values = collada_elements.integers(" ".join(texts))
    whole = sizes // stride
    if (whole * stride != sizes).any():
        within = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        values = values[within < np.repeat(whole * stride, sizes)]
    return whole.astype(np.int32), values.reshape(-1, stride)


def _strip_corners(sizes: IntArray) -> IntArray:
    """Return the corners of the triangles of strips; the winding of every second triangle of a strip is reversed."""
    first, step = _triangles(sizes)
    odd = step % 2
    return np.stack([first + step + odd, first + step + 1 - odd, first + step + 2], axis=1).ravel()


def _fan_corners(sizes: IntArray) -> IntArray:
    """Return the corners of the triangles of fans."""
    first, step = _triangles(sizes)
    return np.stack([first, first + step + 1, first + step + 2], axis=1).ravel()


def _triangles(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each triangle the first corner of its strip or fan, and the triangle's index in that strip or fan."""
    counts = np.maximum(sizes - 2, 0).astype(np.int64)
    firsts = np.cumsum(sizes, dtype=np.int64) - sizes
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(firsts, counts), steps


def valid_polygons(sizes: IntArray, points: IntArray, count: int) -> np.ndarray:
    """Return which polygons are valid: all corners are below ``count``, and at least 3 are different."""
    result = sizes > 0
    if not len(points):
        return result
    starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[result]
    with_corners = sizes[result]
    lowest, highest = np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)
    between = (points > np.repeat(lowest, with_corners)) & (points < np.repeat(highest, with_corners))
    result[result] = (lowest >= 0) & (highest < count) & np.logical_or.reduceat(between, starts)
    return result


_OF_CORNERS = {"NORMAL": 3, "TEXCOORD": 2, "COLOR": 4}
_WIDTHS = {"POSITION": 3, **_OF_CORNERS}
_MOST_INPUTS = 8
"""Maximum number of inputs with one semantic, such as UV sets, since Blender meshes have at most 8."""
_LARGEST_COORDINATE = 1e9
"""Limit for coordinates; larger numbers overflow in the areas and lengths from which normals are computed."""

_Usable = tuple[FloatArray, npt.NDArray[np.bool_] | None, int]
_NONE: _Usable = np.empty((0, 3), np.float32), None, 0


@dataclass
class _Input:
    """An input of a primitive element."""

    meaning: str
    source: str | None
    offset: int = 0
    set_number: int = 0


class GeometryReader:
    """Reads the geometries that objects use, each once.

    Parameters
    ----------
    tree, sources, findings:
        Elements, sources and findings of the file.
    most_vertices:
        Maximum number of vertices of all geometries; it protects against small files that use one long array many
        times.
    """

    def __init__(self, tree: Tree, sources: Sources, findings: Findings, most_vertices: int) -> None:
        self.most_vertices = most_vertices
        self._vertices = 0
        self._usable: dict[tuple[str | None, str], _Usable] = {}
        self._tree = tree
        self._sources = sources
        self._findings = findings
        self._numbers: dict[Element, int] = {}
        self.geometries: list[Geometry] = []

    def number(self, element: Element) -> int:
        """Return the index of a geometry in the document, reading it if needed; -1 if it has no mesh."""
        if element not in self._numbers:
            geometry = self._read(element)
            self._numbers[element] = -1 if geometry is None else len(self.geometries)
            self.geometries += [] if geometry is None else [geometry]
        return self._numbers[element]

    def is_read(self, element: Element) -> bool:
        """Return whether a geometry has been read, because an object uses it."""
        return element in self._numbers

    def _read(self, element: Element) -> Geometry | None:
        mesh, name = element.find("mesh"), name_of(element)
        vertices = None if mesh is None else mesh.find("vertices")
        inputs = [] if vertices is None else list(inputs_of(vertices))
        source = next((given.get("source") for meaning, given in inputs if meaning == "POSITION"), None)
        positions, finite, _ = _NONE if source is None else self._values(source, "POSITION", name)
        if mesh is None or not len(positions):
            self._findings.add("mesh-without-positions", name)
            return None
        self._vertices += len(positions)
        if self._vertices > self.most_vertices:
            raise FormatError("The meshes of the file have more than {:,} vertices", self.most_vertices)
        if finite is not None:
            self._findings.add("vertices-not-finite", name, np.count_nonzero(~finite))
        geometry = Geometry(name, positions)
        of_vertices = [_Input(meaning, given.get("source")) for meaning, given in inputs if meaning in _OF_CORNERS]
        for primitive in mesh:
            if primitive.tag in KINDS:
                group = self._group(primitive, of_vertices, geometry)
                geometry.groups += [group] if len(group.sizes) else []
        lines = sum(len(mesh.findall(kind)) for kind in LINES)
        self._findings.add("lines-left-out", name, lines)
        return geometry

    def _group(self, element: Element, of_vertices: list[_Input], geometry: Geometry) -> Group:
        """Return the polygons of a primitive element, without invalid ones, with indices into positions and layers."""
        given, stride = _inputs(element)
        sizes, rows = polygons_of(element, stride, self._findings, geometry.name)
        offset = next((one.offset for one in given if one.meaning in ("VERTEX", "POSITION")), None)
        if offset is None:
            owner = f"{geometry.name}: {element.get('material', '')}".removesuffix(": ")
            self._findings.add("group-without-vertices", owner, len(sizes))
            sizes, rows, offset = sizes[:0], rows[:0], 0
        kept = valid_polygons(sizes, rows[:, offset], len(geometry.positions))
        if not kept.all():
            self._findings.add("polygons-skipped", geometry.name, np.count_nonzero(~kept))
            sizes, rows = sizes[kept], rows[np.repeat(kept, sizes)]
        group = Group(element.tag, element.get("material", ""), np.ascontiguousarray(rows[:, offset]), sizes)
        for one in of_vertices:
            one.offset = offset
        for one in (*of_vertices, *given):
            if one.meaning in _OF_CORNERS and len(sizes):
                self._add_values(group, one, rows, geometry.name)
        return group

    def _add_values(self, group: Group, given: _Input, rows: IntArray, owner: str) -> None:
        """Add the normals, UVs or colours of an input to a group, with an index of -1 where a corner has no value."""
        values, usable, stride = self._values(given.source, given.meaning, owner)
        if not len(values):
            return
        # if each corner has a single index, this is the index array of the positions
        index = np.ascontiguousarray(rows[:, given.offset])
        outside = (index < 0) | (index >= len(values))
        if outside.any():
            self._findings.add("corner-values-skipped", owner, np.count_nonzero(outside & (index != -1)))
            index = np.where(outside, np.int32(-1), index)
        if usable is not None:
            index = np.where(usable[index], index, np.int32(-1))
        found = Values(values, index, given.set_number, stride)
        if given.meaning == "NORMAL":
            group.normals = found
        else:
            (group.uvs if given.meaning == "TEXCOORD" else group.colors).append(found)

    def _values(self, source: str | None, meaning: str, owner: str) -> _Usable:
        """Return the values of a source, a mask of usable values (None if all are), and their stride in the file."""
        key = (source, meaning)
        if key not in self._usable:
            values, stride = self._sources.rows(source, _WIDTHS[meaning], owner)
            usable = np.asarray((np.abs(values) < _LARGEST_COORDINATE).all(axis=1))
            if meaning == "NORMAL":
                usable &= values.any(axis=1)
            if usable.all():
                self._usable[key] = values, None, stride
            else:
                self._usable[key] = np.where(usable[:, None], values, np.float32(0)), usable, stride
        return self._usable[key]


def _inputs(element: Element) -> tuple[list[_Input], int]:
    """Return the inputs of a primitive element, and how many indices a corner has.

    At most ``_MOST_INPUTS`` inputs with the same semantic are returned.
    """
    found: dict[str, list[_Input]] = {meaning: [] for meaning in ("VERTEX", *_WIDTHS)}
    stride = 1
    for meaning, given in inputs_of(element):
        offset, set_number = collada_elements.integer(given.get("offset")), collada_elements.integer(given.get("set"))
        stride = max(stride, offset + 1)
        if len(found.get(meaning, "x" * _MOST_INPUTS)) < _MOST_INPUTS:
            found[meaning].append(_Input(meaning, given.get("source"), offset, set_number))
    return [one for inputs in found.values() for one in inputs], stride


_MOST_STEPS = 4
"""Maximum number of morph controllers between a skin and its geometry."""
_SMALLEST_VOLUME = 1e-9
"""Determinant below which a matrix counts as singular, relative to its largest number."""
_LARGEST_ENTRY = 1e12
_MOST_WORDS_OF_A_NAME = 3
_MOST_JOINTS = 50_000
"""Maximum number of joints of all skins; it protects against small files that use one long list many times."""
_PAIR = ("JOINT", "WEIGHT")


class SkinReader:
    """Reads the skins that objects use, each once."""

    def __init__(self, tree: Tree, sources: Sources, geometries: GeometryReader, findings: Findings) -> None:
        self._tree = tree
        self._sources = sources
        self._geometries = geometries
        self._findings = findings
        self._joint_count = self._vertices = 0
        self._numbers: dict[Element, tuple[int, int]] = {}
        self._nodes: dict[str, dict[str, list[Element]]] | None = None
        self.skins: list[Skin] = []

    def numbers(self, controller: Element) -> tuple[int, int]:
        """Return the indices of a controller's geometry and skin, -1 if absent; parse it at the first call."""
        if controller not in self._numbers:
            self._numbers[controller] = self._read(controller)
        return self._numbers[controller]

    def _read(self, controller: Element) -> tuple[int, int]:
        element, morph = controller.find("skin"), controller.find("morph")
        if element is None and morph is not None:
            of_skin = self._tree.target(morph.get("source"), "controller")
            if of_skin is not None and of_skin.find("skin") is not None:
                return self.numbers(of_skin)
        geometry = self._geometry(element if element is not None else morph)
        if geometry < 0 or element is None:
            return geometry, -1
        owner = self._geometries.geometries[geometry].name
        names, inverse_bind = self._joints(element)
        if not names:
            self._findings.add("skin-without-joints", owner)
            return geometry, -1
        usable = _usable(inverse_bind)
        inverse_bind[~usable] = np.identity(4)
        stated = element.find("bind_shape_matrix")
        shape = np.identity(4).ravel() if stated is None else collada_elements.exact_floats(taken_text(stated))
        bind_shape = np.resize(shape[:16], (4, 4)) if len(shape) >= 16 else np.full((4, 4), np.nan)
        if not _usable(bind_shape[None])[0]:
            self._findings.add("bind-shape-unusable", owner)
            bind_shape = np.identity(4)
        self._vertices += len(self._geometries.geometries[geometry].positions)
        if self._vertices > self._geometries.most_vertices:
            raise FormatError("The skins of the file have more than {:,} vertices", self._geometries.most_vertices)
        empty = np.zeros(len(self._geometries.geometries[geometry].positions), np.int32)
        skin = Skin(geometry, bind_shape, names, inverse_bind, usable, empty, empty[:0], np.empty(0, np.float32))
        self.skins.append(self._weights(element, owner, skin))
        unbound = np.unique(skin.joints[~usable[skin.joints]])
        self._findings.add("bind-matrix-unusable", owner, len(unbound))
        return geometry, len(self.skins) - 1

    def _geometry(self, source: Element | None) -> int:
        """Return the index of the geometry to which the link of a skin or a morph leads."""
        for _ in range(_MOST_STEPS):
            target = None if source is None else self._tree.target(source.get("source"), "geometry", "controller")
            if target is None:
                break
            if target.tag == "geometry":
                return self._geometries.number(target)
            source = target.find("skin") if target.find("skin") is not None else target.find("morph")
        self._findings.add("link-missing", "" if source is None else source.get("source", ""))
        return -1

    def _joints(self, skin: Element) -> tuple[list[str], Matrix]:
        """Return the joint names and their inverse bind matrices; a missing matrix is filled with NaN."""
        joints = skin.find("joints")
        inputs = {} if joints is None else dict(inputs_of(joints))
        weights = skin.find("vertex_weights")
        listed = inputs.get("JOINT")
        if listed is None and weights is not None:
            listed = dict(inputs_of(weights)).get("JOINT")
        words, stated, are_ids = self._sources.words(None if listed is None else listed.get("source"))
        names = [self._of_id(word) for word in words] if are_ids else _whole_names(words, stated)
        self._joint_count += len(names)
        if self._joint_count > _MOST_JOINTS:
            raise FormatError("The skins of the file have more than {:,} joints", _MOST_JOINTS)
        bound = inputs.get("INV_BIND_MATRIX")
        found = self._sources.matrices(None if bound is None else bound.get("source"), len(names))
        inverse_bind = np.full((len(names), 4, 4), np.nan)
        inverse_bind[: len(found)] = found
        return names, inverse_bind

    def _of_id(self, word: str) -> str:
        """Return the joint name for an id: the id if the viewer knows it, otherwise the sid or name of the node.

        A name that several nodes have is not the joint's name; the id is.
        """
        if self._nodes is None:
            self._nodes = {key: {} for key in ("id", "sid", "name")}
            for element in self._tree.root.iter("node"):
                for key, found in self._nodes.items():
                    found.setdefault(element.get(key, ""), []).append(element)
        node = next((found[word][0] for found in self._nodes.values() if word in found), None)
        sid, name = ("", "") if node is None else (node.get("sid", ""), node.get("name", ""))
        known = [spelling for spelling in (word, sid, name) if joints.canonical(spelling) is not None]
        sids, names = self._nodes["sid"], self._nodes["name"]
        is_unique = len(sids[sid]) == 1 if sid else name not in sids and len(names.get(name, ())) == 1
        return [*known, (sid or name) if is_unique else word][0]

    def _weights(self, element: Element, owner: str, skin: Skin) -> Skin:
        """Read the weights of a skin."""
        positions = len(skin.counts)
        weights = element.find("vertex_weights")
        if weights is None:
            self._findings.add("weights-disagree", owner)
            return skin
        inputs = dict(inputs_of(weights))
        joint, weight = (collada_elements.integer(inputs[key].get("offset")) if key in inputs else 0 for key in _PAIR)
        stride = max((collada_elements.integer(given.get("offset")) for _, given in inputs_of(weights)), default=0) + 1
        counts = np.maximum(collada_elements.integers(taken_text(weights.find("vcount"))), 0).astype(np.int64)
        listed = collada_elements.integers(taken_text(weights.find("v")))
        rows = listed[: len(listed) // stride * stride].reshape(-1, stride)
        agree = counts.sum() * stride == len(listed) and len(counts) == positions
        self._findings.add("weights-disagree", owner, not agree)
        ends = np.minimum(np.cumsum(counts[:positions]), len(rows))
        vertices = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        rows = rows[: len(vertices)]
        values = np.empty((0, 1), np.float32)
        if "WEIGHT" in inputs:
            values, _ = self._sources.rows(inputs["WEIGHT"].get("source"), 1, owner)
        joints, chosen = rows[:, joint], rows[:, weight]
        usable = (joints >= 0) & (joints < len(skin.joint_names)) & (chosen >= 0) & (chosen < len(values))
        self._findings.add("influences-skipped", owner, np.count_nonzero(~usable & (joints != -1)))
        usable[usable] = values[chosen[usable], 0] > 0
        usable[usable] = np.isfinite(values[chosen[usable], 0])
        skin.counts = np.bincount(vertices[usable], minlength=positions).astype(np.int32)
        skin.joints, skin.weights = joints[usable], values[chosen[usable], 0]
        skin.is_reversed = weight < joint
        return skin


def _whole_names(words: list[str], stated: int) -> list[str]:
    """Return joint names.

    More words than the file states mean that names with spaces were split; they are joined again.
    """
    if not 0 < stated < len(words):
        return words
    names: list[str] = []
    start = 0
    while start < len(words):
        for count in range(_MOST_WORDS_OF_A_NAME, 0, -1):
            name = " ".join(words[start : start + count])
            if count == 1 or name in joints.table():
                break
        names.append(name)
        start += count
    return names


def _usable(matrices: Matrix) -> npt.NDArray[np.bool_]:
    """Return which of the matrices (N, 4, 4) are affine and invertible."""
    finite = np.isfinite(matrices).all(axis=(1, 2)) & (
        np.abs(np.nan_to_num(matrices)).max(axis=(1, 2)) < _LARGEST_ENTRY
    )
    safe = np.where(finite[:, None, None], matrices, np.identity(4))
    linear = safe[:, :3, :3]
    largest = np.maximum(np.abs(linear).max(axis=(1, 2)), 1.0 / _LARGEST_ENTRY)
    volumes = np.abs(np.linalg.det(linear / largest[:, None, None]))
    affine = (np.abs(safe[:, 3] - (0.0, 0.0, 0.0, 1.0)) < 1e-3).all(axis=1)
    return np.asarray(finite & affine & (volumes > _SMALLEST_VOLUME))
