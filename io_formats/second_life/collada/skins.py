"""Skins of a Collada file: joints, inverse bind matrices and weights."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...geometry.transforms import Matrix
from ..avatar import joints
from . import numbers
from .document import Skin
from .findings import Findings
from .geometry import GeometryReader
from .sources import Sources
from .tree import Tree, inputs_of, taken_text

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
        self._nodes: dict[str, dict[str, Element]] | None = None
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
        shape = np.identity(4).ravel() if stated is None else numbers.exact_floats(taken_text(stated))
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
        """Return the joint name for an id: the id if the viewer knows it, otherwise the sid or name of the node."""
        if self._nodes is None:
            self._nodes = {key: {} for key in ("sid", "id", "name")}
            for element in self._tree.root.iter("node"):
                for key, found in self._nodes.items():
                    found.setdefault(element.get(key, ""), element)
        node = next((found[word] for found in self._nodes.values() if word in found), None)
        names = [word] if node is None else [word, node.get("sid", ""), node.get("name", "")]
        known = [name for name in names if joints.canonical(name) is not None]
        return [*known, *filter(None, names[1:]), word][0]

    def _weights(self, element: Element, owner: str, skin: Skin) -> Skin:
        """Read the weights of a skin."""
        positions = len(skin.counts)
        weights = element.find("vertex_weights")
        if weights is None:
            self._findings.add("weights-disagree", owner)
            return skin
        inputs = dict(inputs_of(weights))
        joint, weight = (numbers.integer(inputs[key].get("offset")) if key in inputs else 0 for key in _PAIR)
        stride = max((numbers.integer(given.get("offset")) for _, given in inputs_of(weights)), default=0) + 1
        counts = np.maximum(numbers.integers(taken_text(weights.find("vcount"))), 0).astype(np.int64)
        listed = numbers.integers(taken_text(weights.find("v")))
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
