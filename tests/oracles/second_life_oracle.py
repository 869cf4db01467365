"""An independent reading of Second Life mesh assets and model bundles: docs/formats/second_life.md, ``struct`` and
``zlib``, none of our code.

Everything is read one value after the other, slowly and plainly, so that it can be held against the page line by line.
numpy only holds what was read, and counts in the single precision of section 3.1. Whatever the page calls impossible
raises ``WrongFile``; every block has to be used up to its last byte, and every list of weights, too.
"""

from __future__ import annotations

import itertools
import math
import struct
import uuid
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")
PREFIX = b"<? LLSD/Binary ?>"


class WrongFile(Exception):
    """The bytes are not what the page says."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise WrongFile(what)


# -- LLSD: section 1 ----------------------------------------------------------------------------


class Link(str):
    """A URI."""


class Moment(float):
    """A date: seconds since 1970."""


def text_of(raw: bytes) -> str:
    """Strings of a bundle hold whole assets: bytes that are not UTF-8 stay as they are, one by one."""
    return raw.decode("utf-8", "surrogateescape")


def raw_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class Llsd:
    """One value of binary LLSD after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, count: int) -> bytes:
        require(0 <= count <= len(self.data) - self.at, f"{count} bytes wanted at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code: str) -> Any:
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def counted(self) -> bytes:
        return self.take(self.number(">i"))

    def quoted(self, quote: bytes) -> bytes:
        """What follows an opening quote of notation style, up to the closing one."""
        found = b""
        while (byte := self.take(1)) != quote:
            found += self.take(1) if byte == b"\\" else byte
        return found

    def key(self) -> str:
        marker = self.take(1)
        if marker in (b"'", b'"'):
            return text_of(self.quoted(marker))
        require(marker == b"k", f"no key at {self.at - 1} but {marker!r}")
        return text_of(self.counted())

    def value(self) -> Any:
        marker = self.take(1)
        if marker == b"!":
            return None
        if marker in b"10":
            return marker == b"1"
        if marker == b"i":
            return self.number(">i")
        if marker == b"r":
            return self.number(">d")
        if marker == b"u":
            return uuid.UUID(bytes=self.take(16))
        if marker == b"b":
            return self.counted()
        if marker == b"s":
            return text_of(self.counted())
        if marker in b"'\"":
            return text_of(self.quoted(marker))
        if marker == b"l":
            return Link(text_of(self.counted()))
        if marker == b"d":
            return Moment(self.number("<d"))
        if marker == b"[":
            listed = [self.value() for _ in range(self.number(">i"))]
            require(self.take(1) == b"]", f"an array does not end at {self.at - 1}")
            return listed
        if marker == b"{":
            mapped = {}
            for _ in range(self.number(">i")):
                key = self.key()
                require(key not in mapped, f"two values for {key}")
                mapped[key] = self.value()
            require(self.take(1) == b"}", f"a map does not end at {self.at - 1}")
            return mapped
        raise WrongFile(f"no value at {self.at - 1} but {marker!r}")


# -- what was found -----------------------------------------------------------------------------


@dataclass
class Face:
    """One face of a level: section 3."""

    no_geometry: bool = False
    stored: Ints = field(default_factory=lambda: np.zeros((0, 3), np.uint16))
    """(V, 3) positions as they stand in the file."""
    domain: Floats = field(default_factory=lambda: np.zeros((2, 3)))
    """(2, 3) least and most of each axis."""
    triangles: Ints = field(default_factory=lambda: np.zeros((0, 3), np.uint16))
    stored_normals: Ints | None = None
    stored_uvs: Ints | None = None
    uv_domain: Floats | None = None
    weights: list[list[tuple[int, int]]] | None = None
    """For each vertex its pairs of joint and weight, as they stand in the file."""
    scale: tuple[float, ...] | None = None
    keys: tuple[str, ...] = ()

    @property
    def positions(self) -> Floats:
        """(V, 3) float32 in the unit cube."""
        return spread(self.stored, self.domain)

    @property
    def normals(self) -> Floats:
        """(V, 3) float32, not made unit."""
        assert self.stored_normals is not None
        return spread(self.stored_normals, np.array([[-1.0] * 3, [1.0] * 3]))

    @property
    def uvs(self) -> Floats:
        """(V, 2) float32, v upwards."""
        assert self.stored_uvs is not None and self.uv_domain is not None
        return spread(self.stored_uvs, self.uv_domain)


def spread(stored: Ints, domain: Floats) -> Floats:
    """Section 3.1, in single precision: u / 65535 * (most - least) + least."""
    least, most = domain.astype(np.float32)
    return stored.astype(np.float32) / np.float32(65535) * (most - least) + least


@dataclass
class Skin:
    """Section 4.2; matrices for row vectors, the translation in the last row."""

    joints: list[str]
    inverse_bind: Floats
    """(n, 4, 4)."""
    bind_shape: Floats
    """(4, 4)."""
    overrides: Floats | None = None
    """(n, 4, 4)."""
    pelvis_offset: float | None = None
    lock_scale: bool = False


@dataclass
class Hulls:
    """Section 5.1."""

    domain: Floats
    hulls: list[Ints]
    """One (k, 3) for each hull."""
    base: Ints | None
    """(k, 3)."""

    @property
    def base_points(self) -> Floats:
        assert self.base is not None
        return spread(self.base, self.domain)


@dataclass
class Asset:
    """Section 2."""

    header: dict[str, Any]
    header_size: int
    prefix_size: int
    inflated: dict[str, bytes]
    """Each block's bytes, in their order on disk."""
    values: dict[str, Any]
    """Each block's LLSD, in their order on disk."""
    sizes: dict[str, int]
    """Compressed bytes of each block."""
    trailing: bytes
    levels: dict[str, list[Face]]
    physics_mesh: list[Face] | None
    skin: Skin | None
    hulls: Hulls | None
    havok: bytes = b""
    """The simulator's own block, as it is."""

    @property
    def scale(self) -> tuple[float, ...]:
        """What NormalizedScale says, else 1, 1, 1."""
        said = [face.scale for face in self.levels.get("high_lod", ()) if face.scale is not None]
        return said[0] if said else (1.0, 1.0, 1.0)

    def weights_of(self, face: Face) -> Floats:
        """(V, n) weights of a face's vertices, weight / 65535, for each of the skin's joints."""
        assert self.skin is not None and face.weights is not None
        dense = np.zeros((len(face.weights), len(self.skin.joints)))
        for vertex, pairs in enumerate(face.weights):
            for joint, weight in pairs:
                dense[vertex, joint] += weight / 65535
        return dense


@dataclass
class Instance:
    """Section 8."""

    mesh: int
    label: str
    transform: Floats
    """(4, 4) for row vectors."""
    materials: list[dict[str, Any]]


@dataclass
class Bundle:
    name: str
    assets: list[Asset]
    instances: list[Instance]
    value: dict[str, Any]


# -- reading ------------------------------------------------------------------------------------


def decode(data: bytes) -> Asset:
    """Read a mesh asset."""
    prefix = 0
    if data.startswith(PREFIX):
        prefix = len(data) - len(data[len(PREFIX) :].lstrip(b" \t\r\n"))
    reader = Llsd(data, prefix)
    header = reader.value()
    require(isinstance(header, dict), "the header is not a map")
    start = reader.at
    require(start - prefix <= 4096, "the header is too long")
    found = {
        key: value
        for key, value in header.items()
        if isinstance(value, dict) and value.get("size", 0) > 0 and value.get("offset", -1) >= 0
    }
    inflated: dict[str, bytes] = {}
    values: dict[str, Any] = {}
    havok = b""
    end = start
    for key, place in sorted(found.items(), key=lambda entry: entry[1]["offset"]):
        at = start + place["offset"]
        end = max(end, at + place["size"])
        require(end <= len(data), f"{key} sticks out of the file")
        if key == "physics_havok":
            havok = data[at : at + place["size"]]
            continue
        inflated[key] = inflate(data[at : at + place["size"]], key)
        values[key] = block_value(inflated[key], key)
    levels = {
        level: [face_of(value, f"{level} {number}") for number, value in enumerate(values[level])]
        for level in LEVELS
        if level in values
    }
    physics = values.get("physics_mesh", values.get("physics_shape"))
    return Asset(
        header=header,
        header_size=start - prefix,
        prefix_size=prefix,
        inflated=inflated,
        values=values,
        sizes={key: place["size"] for key, place in found.items()},
        trailing=data[end:],
        levels=levels,
        physics_mesh=None if physics is None else [face_of(value, "physics mesh") for value in physics],
        skin=skin_of(values["skin"]) if "skin" in values else None,
        hulls=hulls_of(values["physics_convex"]) if values.get("physics_convex") is not None else None,
        havok=havok,
    )


def inflate(compressed: bytes, key: str) -> bytes:
    """Section 2.2."""
    stream = zlib.decompressobj()
    try:
        inflated = stream.decompress(compressed)
    except zlib.error as problem:
        raise WrongFile(f"{key}: {problem}") from None
    require(stream.eof, f"{key} is cut off")
    return inflated


def block_value(inflated: bytes, key: str) -> Any:
    start = 0
    if inflated.startswith(PREFIX):
        start = len(inflated) - len(inflated[len(PREFIX) :].lstrip(b" \t\r\n"))
    reader = Llsd(inflated, start)
    value = reader.value()
    require(reader.at == len(inflated), f"{key}: {len(inflated) - reader.at} bytes too many")
    return value


def halves(raw: bytes, width: int, what: str) -> Ints:
    """Unsigned integers of 16 bits, little-endian, ``width`` a row."""
    require(len(raw) % (2 * width) == 0, f"{what}: {len(raw)} bytes")
    numbers = struct.unpack(f"<{len(raw) // 2}H", raw)
    return np.array(numbers, np.uint16).reshape(-1, width)


def domain_of(value: Any, width: int, what: str) -> Floats:
    rows = np.array([[float(number) for number in value[end]] for end in ("Min", "Max")])
    require(rows.shape == (2, width), f"{what}: a domain of {rows.shape}")
    require(bool(np.isfinite(rows).all()), f"{what}: a NaN or infinite domain")
    return rows


def face_of(value: dict[str, Any], what: str) -> Face:
    """Section 3."""
    keys = tuple(value)
    if "NoGeometry" in value:
        return Face(no_geometry=True, keys=keys)
    face = Face(
        stored=halves(value["Position"], 3, what),
        domain=domain_of(value["PositionDomain"], 3, what),
        triangles=halves(value["TriangleList"], 3, what),
        keys=keys,
    )
    count = len(face.stored)
    require(len(face.triangles) == 0 or int(face.triangles.max()) < count, f"{what}: a vertex that is not there")
    if "Normal" in value:
        face.stored_normals = halves(value["Normal"], 3, what)
        require(len(face.stored_normals) == count, f"{what}: normals")
    if "TexCoord0" in value:
        face.stored_uvs = halves(value["TexCoord0"], 2, what)
        face.uv_domain = domain_of(value["TexCoord0Domain"], 2, what)
        require(len(face.stored_uvs) == count, f"{what}: UV")
    if "NormalizedScale" in value:
        face.scale = tuple(float(number) for number in value["NormalizedScale"])
        require(len(face.scale) == 3, f"{what}: NormalizedScale")
    if "Weights" in value:
        face.weights = weights_of(value["Weights"], count, what)
    return face


def weights_of(raw: bytes, count: int, what: str) -> list[list[tuple[int, int]]]:
    """Section 4.1."""
    at = 0
    found = []
    for _ in range(count):
        pairs: list[tuple[int, int]] = []
        while len(pairs) < 4:
            require(at < len(raw), f"{what}: weights end early")
            joint = raw[at]
            at += 1
            if joint == 0xFF:
                break
            require(at + 2 <= len(raw), f"{what}: weights end early")
            pairs.append((joint, raw[at] + 256 * raw[at + 1]))
            at += 2
        found.append(pairs)
    require(at == len(raw), f"{what}: {len(raw) - at} bytes of weights too many")
    return found


def skin_of(value: dict[str, Any]) -> Skin:
    """Section 4.2."""
    joints = list(value["joint_names"])
    skin = Skin(joints, matrices(value["inverse_bind_matrix"]), matrices([value["bind_shape_matrix"]])[0])
    require(len(skin.inverse_bind) == len(joints), "inverse bind matrices")
    if "alt_inverse_bind_matrix" in value:
        skin.overrides = matrices(value["alt_inverse_bind_matrix"])
        require(len(skin.overrides) == len(joints), "joint positions")
    if "pelvis_offset" in value:
        skin.pelvis_offset = float(value["pelvis_offset"])
    skin.lock_scale = bool(value.get("lock_scale_if_joint_position", False))
    return skin


def matrices(listed: list[list[float]]) -> Floats:
    require(all(len(row) == 16 for row in listed), "a matrix that has not 16 numbers")
    found = np.array(listed, np.float64).reshape(-1, 4, 4)
    require(bool(np.isfinite(found).all()), "a NaN or infinite matrix")
    return found


def hulls_of(value: dict[str, Any]) -> Hulls:
    """Section 5.1."""
    domain = np.array([[-0.5] * 3, [0.5] * 3])
    if "Min" in value and "Max" in value:
        domain = domain_of(value, 3, "hulls")
    counts = [count or 256 for count in value.get("HullList", b"")]
    points = halves(value.get("Positions", b""), 3, "hulls")
    require(sum(counts) == len(points), "hulls")
    hulls = []
    at = 0
    for count in counts:
        hulls.append(points[at : at + count])
        at += count
    base = halves(value["BoundingVerts"], 3, "base hull") if "BoundingVerts" in value else None
    return Hulls(domain, hulls, base)


def decode_bundle(data: bytes) -> Bundle:
    """Read a model bundle: section 8."""
    reader = Llsd(data)
    value = reader.value()
    require(reader.at == len(data), f"{len(data) - reader.at} bytes too many")
    require(value.get("version") == 3, f"version {value.get('version')}")
    require(all(type(mesh) is str for mesh in value["mesh"]), "a mesh that is not a string")
    assets = [decode(raw_of(mesh)) for mesh in value["mesh"]]
    instances = []
    for instance in value["instance"]:
        require(0 <= instance["mesh_id"] < len(assets), "an instance of no mesh")
        instances.append(
            Instance(
                instance["mesh_id"], instance["label"], matrices([instance["transform"]])[0], list(instance["material"])
            )
        )
    return Bundle(value.get("name", ""), assets, instances, value)


# -- what it costs: section 11 ------------------------------------------------------------------


def streaming_cost(sizes: dict[str, int], size: tuple[float, float, float]) -> float:
    """Section 11.1, not below 0.06."""
    sizes = dict(sizes)
    for finer, coarser in itertools.pairwise(LEVELS):
        sizes.setdefault(coarser, sizes[finer])
    charged = {level: max(sizes[level] - 384, 16) / 16 for level in LEVELS}
    radius = math.sqrt(sum(side * side for side in size)) / 2
    lowest_far, low_far, medium_far = (min(radius / step, 512.0) for step in (0.03, 0.06, 0.24))
    most = 102944.0
    high = min(math.pi * medium_far**2, most)
    medium = min(math.pi * low_far**2, most)
    low = min(math.pi * lowest_far**2, most)
    areas = [high, medium - high, low - medium, most - low]
    areas = [min(max(area, 1.0), most) for area in areas]
    mean = sum(area * charged[level] for area, level in zip(areas, LEVELS, strict=True)) / sum(areas)
    return max(mean / 250000 * 15000, 0.06)


def animesh_cost(sizes: dict[str, int]) -> float:
    """Section 11.2: 1.5 for each 1,000 charged triangles."""
    sizes = dict(sizes)
    for finer, coarser in itertools.pairwise(LEVELS):
        sizes.setdefault(coarser, sizes[finer])
    triangles = [max(sizes[level] - 384, 16) / 16 for level in LEVELS]
    charged = allowed = triangles[0]
    for count in triangles[1:]:
        allowed = min(max(allowed / 2, 64), count)
        charged += count - allowed
    return charged * 1.5 / 1000
