"""Collada files as the viewer reads them, parsed by code of its own: what the tests judge upload sets by.

Written from the format page (sections 4.3, 7 and 10.1) and the Collada 1.4.1 schema alone; shares nothing with the
package but the table of joints, which it reads and sums up by itself. Matrices are for column vectors, float64.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "io_formats" / "second_life" / "avatar" / "skeleton.csv"
SPACE = {"c": "http://www.collada.org/2005/11/COLLADASchema"}

Matrix = npt.NDArray[np.float64]


@dataclass
class Geometry:
    id: str
    name: str
    positions: Matrix
    """(P, 3)."""
    faces: dict[str, Matrix]
    """Of each material's symbol: (C, 8) position, normal, UV of each corner; UVs are NaN where there are none."""
    corners: dict[str, npt.NDArray[np.int64]]
    """Of each symbol: (C,) numbers of positions."""
    has_uvs: bool

    @property
    def triangle_count(self) -> int:
        return sum(len(corners) // 3 for corners in self.corners.values())


@dataclass
class Skin:
    bind_shape: Matrix
    joints: list[str]
    inverse_bind: Matrix
    """(n, 4, 4)."""
    weights: Matrix
    """(P, n) dense."""
    most_influences: int


@dataclass
class JointNode:
    name: str
    parent: str
    local: Matrix
    world: Matrix


@dataclass
class Look:
    """A material as the viewer takes it."""

    name: str
    color: tuple[float, ...] | None
    image: str | None
    """What ``init_from`` says."""
    emission: float


@dataclass
class Instance:
    node: str
    world: Matrix
    geometry: Geometry
    looks: dict[str, Look]
    """By symbol."""
    skin: Skin | None = None
    joints: dict[str, JointNode] = field(default_factory=dict)
    """The joints below the instance's skeleton, by ``sid``."""


@dataclass
class Document:
    instances: list[Instance]
    meter: float
    up_axis: str
    version: str


def parse(data: bytes) -> Document:
    """Read a file; AssertionError where the schema, or what the viewer wants of it, is broken."""
    root = ET.fromstring(data)
    assert root.tag == f"{{{SPACE['c']}}}COLLADA"
    ids = {element.get("id"): element for element in root.iter() if element.get("id") is not None}
    assert len(ids) == sum(element.get("id") is not None for element in root.iter()), "an id stands twice"
    for wanted in ids:
        assert wanted is not None
        assert wanted.isascii(), wanted
        assert wanted.replace("-", "").replace(".", "").replace("_", "").isalnum(), wanted
    geometries = {
        element.get("id"): _geometry(element, ids)
        for element in root.iterfind("c:library_geometries/c:geometry", SPACE)
    }
    scene_url = _one(root, "c:scene/c:instance_visual_scene").get("url")
    scene = _referred(ids, scene_url)
    found: list[Instance] = []
    for node in scene.iterfind("c:node", SPACE):
        _walk(node, np.identity(4), ids, geometries, found)
    return Document(
        found,
        float(_one(root, "c:asset/c:unit").get("meter", "nan")),
        _text(_one(root, "c:asset/c:up_axis")),
        root.get("version", ""),
    )


def _one(element: ET.Element, path: str) -> ET.Element:
    found = element.findall(path, SPACE)
    assert len(found) == 1, f"{len(found)} elements {path} in {element.tag}"
    return found[0]


def _text(element: ET.Element) -> str:
    return (element.text or "").strip()


def _numbers(element: ET.Element) -> Matrix:
    return np.array(_text(element).split(), np.float64)


def _referred(ids: dict[Any, ET.Element], url: str | None) -> ET.Element:
    assert url is not None
    assert url.startswith("#"), url
    return ids[url[1:]]


def _source(ids: dict[Any, ET.Element], url: str | None) -> Matrix:
    """Return the rows of a source of numbers."""
    source = _referred(ids, url)
    array = _one(source, "c:float_array")
    accessor = _one(source, "c:technique_common/c:accessor")
    assert accessor.get("source") == f"#{array.get('id')}"
    values = _numbers(array)
    stride = int(accessor.get("stride", "1"))
    assert len(values) == int(array.get("count", "-1"))
    assert len(values) == stride * int(accessor.get("count", "-1"))
    assert len(accessor.findall("c:param", SPACE)) in (1, stride)
    return values.reshape(-1, stride)


def _geometry(element: ET.Element, ids: dict[Any, ET.Element]) -> Geometry:
    mesh = _one(element, "c:mesh")
    positions: Matrix | None = None
    faces: dict[str, Matrix] = {}
    numbers: dict[str, npt.NDArray[np.int64]] = {}
    has_uvs = False
    for group in mesh.iterfind("c:triangles", SPACE):
        symbol = group.get("material")
        assert symbol
        assert " " not in symbol
        assert symbol not in faces, "two groups of one material make two faces"
        inputs = {element.get("semantic"): element for element in group.iterfind("c:input", SPACE)}
        width = 1 + max(int(element.get("offset", "-1")) for element in inputs.values())
        index = _numbers(_one(group, "c:p")).astype(np.int64).reshape(-1, width)
        assert len(index) == 3 * int(group.get("count", "-1"))
        assert len(index) > 0
        vertices = _referred(ids, inputs["VERTEX"].get("source"))
        positions = _source(ids, _one(vertices, "c:input[@semantic='POSITION']").get("source"))
        columns = [positions[index[:, int(inputs["VERTEX"].get("offset", "-1"))]]]
        columns.append(_source(ids, inputs["NORMAL"].get("source"))[index[:, int(inputs["NORMAL"].get("offset", ""))]])
        if "TEXCOORD" in inputs:
            has_uvs = True
            uvs = _source(ids, inputs["TEXCOORD"].get("source"))
            columns.append(uvs[index[:, int(inputs["TEXCOORD"].get("offset", ""))]])
        else:
            columns.append(np.full((len(index), 2), np.nan))
        faces[symbol] = np.hstack(columns)
        numbers[symbol] = index[:, int(inputs["VERTEX"].get("offset", "-1"))]
    assert positions is not None, "a geometry without triangles"
    return Geometry(element.get("id", ""), element.get("name", ""), positions, faces, numbers, has_uvs)


def _walk(
    node: ET.Element, above: Matrix, ids: dict[Any, ET.Element], geometries: dict[Any, Geometry], found: list[Instance]
) -> None:
    if node.get("type") == "JOINT":
        return
    world = above @ _local(node)
    for instance in node.iterfind("c:instance_geometry", SPACE):
        geometry = geometries[(instance.get("url") or "")[1:]]
        found.append(Instance(node.get("name", ""), world, geometry, _looks(instance, ids, geometry)))
    for instance in node.iterfind("c:instance_controller", SPACE):
        element = _one(_referred(ids, instance.get("url")), "c:skin")
        geometry = geometries[(element.get("source") or "")[1:]]
        joints: dict[str, JointNode] = {}
        for skeleton in instance.iterfind("c:skeleton", SPACE):
            _joints(_referred(ids, _text(skeleton)), "", np.identity(4), joints)
        skin = _skin(element, ids, len(geometry.positions))
        looks = _looks(instance, ids, geometry)
        found.append(Instance(node.get("name", ""), world, geometry, looks, skin, joints))
    for child in node.iterfind("c:node", SPACE):
        _walk(child, world, ids, geometries, found)


def _local(node: ET.Element) -> Matrix:
    """Return a node's transform: its elements multiplied in their order."""
    local = np.identity(4)
    for element in node:
        kind = element.tag.partition("}")[2]
        if kind == "matrix":
            local = local @ _numbers(element).reshape(4, 4)
        elif kind == "translate":
            step = np.identity(4)
            step[:3, 3] = _numbers(element)
            local = local @ step
        else:
            assert kind in ("node", "instance_geometry", "instance_controller"), kind
    return local


def _joints(node: ET.Element, parent: str, above: Matrix, found: dict[str, JointNode]) -> None:
    assert node.get("type") == "JOINT"
    name = node.get("sid", "")
    assert name
    assert name not in found
    assert len(node.findall("c:matrix[@sid='transform']", SPACE)) == 1
    local = _local(node)
    found[name] = JointNode(name, parent, local, above @ local)
    for child in node.iterfind("c:node", SPACE):
        _joints(child, name, above @ local, found)


def _skin(element: ET.Element, ids: dict[Any, ET.Element], positions: int) -> Skin:
    joints_element = _one(element, "c:joints")
    inputs = {element.get("semantic"): element.get("source") for element in joints_element.iterfind("c:input", SPACE)}
    names = _text(_one(_referred(ids, inputs["JOINT"]), "c:Name_array")).split()
    count = _one(_referred(ids, inputs["JOINT"]), "c:Name_array").get("count")
    assert len(names) == int(count or "-1")
    inverse = _source(ids, inputs["INV_BIND_MATRIX"]).reshape(-1, 4, 4)
    assert len(inverse) == len(names)
    weights_element = _one(element, "c:vertex_weights")
    assert int(weights_element.get("count", "-1")) == positions, "the viewer wants a set of weights a position"
    weight_inputs = weights_element.findall("c:input", SPACE)
    assert len(weight_inputs) == 2
    offsets = {element.get("semantic"): int(element.get("offset", "-1")) for element in weight_inputs}
    source = {element.get("semantic"): element.get("source") for element in weight_inputs}
    assert source["JOINT"] == inputs["JOINT"]
    values = _source(ids, source["WEIGHT"])[:, 0]
    counts = _numbers(_one(weights_element, "c:vcount")).astype(np.int64)
    assert len(counts) == positions
    pairs = _numbers(_one(weights_element, "c:v")).astype(np.int64).reshape(-1, 2)
    assert len(pairs) == counts.sum()
    dense = np.zeros((positions, len(names)))
    owner = np.repeat(np.arange(positions), counts)
    np.add.at(dense, (owner, pairs[:, offsets["JOINT"]]), values[pairs[:, offsets["WEIGHT"]]])
    bind_shape = _numbers(_one(element, "c:bind_shape_matrix")).reshape(4, 4)
    return Skin(bind_shape, names, inverse, dense, int(counts.max()))


def _looks(instance: ET.Element, ids: dict[Any, ET.Element], geometry: Geometry) -> dict[str, Look]:
    looks: dict[str, Look] = {}
    for bound in instance.iterfind("c:bind_material/c:technique_common/c:instance_material", SPACE):
        material = _referred(ids, bound.get("target"))
        effect = _referred(ids, _one(material, "c:instance_effect").get("url"))
        profile = _one(effect, "c:profile_COMMON")
        shading = _one(profile, "c:technique/c:lambert")
        emission = float(np.mean(_numbers(_one(shading, "c:emission/c:color"))[:3]))
        diffuse = _one(shading, "c:diffuse")
        texture = diffuse.find("c:texture", SPACE)
        color = image = None
        if texture is not None:
            params = {param.get("sid"): param for param in profile.iterfind("c:newparam", SPACE)}
            surface = _text(_one(params[texture.get("texture")], "c:sampler2D/c:source"))
            image_id = _text(_one(params[surface], "c:surface/c:init_from"))
            image = _text(_one(ids[image_id], "c:init_from"))
        else:
            color = tuple(_numbers(_one(diffuse, "c:color")).tolist())
        symbol = bound.get("symbol", "")
        assert symbol not in looks
        looks[symbol] = Look(material.get("name", ""), color, image, emission)
    assert looks.keys() == geometry.faces.keys(), "faces without a material, or materials without a face"
    return looks


# -- the avatar -----------------------------------------------------------------------------------


@dataclass
class TableJoint:
    name: str
    parent: str
    kind: str
    position: Matrix
    world: Matrix
    """Its rest in avatar space: of bones a pure translation, of collision volumes with rotation and scale."""


def avatar() -> dict[str, TableJoint]:
    """Return the joints of the table at rest (section 7), parents before children."""
    joints: dict[str, TableJoint] = {}
    with TABLE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["kind"] == "attachment_hud":
                continue
            position = np.array([float(row[f"pos_{axis}"] or 0) for axis in "xyz"])
            local = np.identity(4)
            for axis, degrees in enumerate(float(row[f"rot_{axis}"] or 0) for axis in "xyz"):
                local = _about(axis, math.radians(degrees)) @ local
            local = local @ np.diag([*(float(row[f"scale_{axis}"] or 1) for axis in "xyz"), 1.0])
            local[:3, 3] = position
            above = joints[row["parent"]].world if row["parent"] in joints else np.identity(4)
            joints[row["name"]] = TableJoint(row["name"], row["parent"], row["kind"], position, above @ local)
    return joints


def _about(axis: int, angle: float) -> Matrix:
    matrix = np.identity(4)
    one, other = (axis + 1) % 3, (axis + 2) % 3
    matrix[one, one] = matrix[other, other] = math.cos(angle)
    matrix[other, one], matrix[one, other] = math.sin(angle), -math.sin(angle)
    return matrix


def check_rig(instance: Instance, *, moved: dict[str, Matrix] | None = None, tolerance: float = 1e-5) -> None:
    """Assert that a rigged instance agrees with the table: INV_BIND, joint nodes, bind shape, weights.

    ``moved`` names joints that the file moves, with their positions relative to their parents.
    """
    skin = instance.skin
    assert skin is not None
    table = avatar()
    moved = moved or {}
    rests: dict[str, Matrix] = {}
    for joint in table.values():
        above = table[joint.parent].world if joint.parent in table else np.identity(4)
        local = np.linalg.inv(above) @ joint.world
        local[:3, 3] = moved.get(joint.name, joint.position)
        rests[joint.name] = rests.get(joint.parent, np.identity(4)) @ local
    assert np.array_equal(skin.bind_shape[:3, :3], np.diag(np.diag(skin.bind_shape[:3, :3]))), "bind shape is turned"
    for name, inverse in zip(skin.joints, skin.inverse_bind, strict=True):
        rest = np.linalg.inv(inverse)
        if table[name].kind == "bone":
            assert np.allclose(inverse[:3, :3], np.identity(3), atol=1e-9), f"{name} has more than a place"
            assert np.allclose(rest[:3, 3], rests[name][:3, 3], atol=tolerance), name
        else:
            assert np.allclose(rest, rests[name], atol=tolerance), name
    for name in skin.joints:
        chain = [name]
        while chain[-1] in table and table[chain[-1]].parent:
            chain.append(table[chain[-1]].parent)
        for joint, parent in zip(chain, [*chain[1:], ""], strict=True):
            node = instance.joints[joint]
            assert node.parent == parent
            assert np.allclose(node.local[:3, 3], moved.get(joint, table[joint].position), atol=tolerance), joint
            if table[joint].kind == "bone":
                assert np.array_equal(node.local[:3, :3], np.identity(3)), joint
        assert np.allclose(instance.joints[name].world, rests[name], atol=tolerance), name
    assert skin.most_influences <= 4
    assert np.allclose(skin.weights.sum(axis=1), 1.0, atol=1e-4)
    used = instance.joints.keys() - set(skin.joints)
    needed = {parent for name in skin.joints for parent in _above(name, table)}
    assert used <= needed, "joints that nothing hangs on"


def _above(name: str, table: dict[str, TableJoint]) -> list[str]:
    chain = [name]
    while table[chain[-1]].parent in table:
        chain.append(table[chain[-1]].parent)
    return chain
