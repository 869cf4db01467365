"""UNIGINE meshes made by hand: what they hold, byte for byte back, and everything that is refused or warned of."""

from __future__ import annotations

import contextlib
import math
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import unigine_bytes as by_hand
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.unigine.bones import Bone
from meshferry.io_formats.unigine.mesh.document import MeshFile, Surface, Target, Weights
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshfuzz.tokens import floats, i32


@pytest.mark.parametrize("version", by_hand.ALL)
def test_files_by_hand_hold_what_was_put_in(version: str) -> None:
    document = UNIGINE_MESH.read(by_hand.ALL[version])
    assert (document.version, document.warnings) == (version, [])
    if version == "mr02":
        assert document.soup[0].name == b"wall".ljust(128, b"\0")
        assert document.soup[0].vertices.tolist() == [
            [0, 0, 0, 0, 0, 1, 0, 0],
            [1, 0, 0, 0, 0, 1, 1, 0],
            [0, 1, 0, 0, 0, 1, 0, 1],
        ]
        return
    assert document.bones == [Bone("Root", -1), Bone("Tip", 0)]
    assert document.transforms.tobytes() == by_hand.ROOT_TRANSFORM + by_hand.TIP_TRANSFORM
    assert document.bounds.tobytes() == by_hand.BOUNDS
    (surface,) = document.surfaces
    assert surface.name == "Face"
    assert (surface.lightmap_channel, surface.lightmap_resolution) == (1, 3)
    assert surface.bounds.tobytes() == by_hand.BOUNDS
    assert surface.targets[0].positions.tolist() == [list(point) for point in by_hand.BASE_POSITIONS]
    assert surface.weights is not None
    assert surface.weights.counts.tolist() == [1, 2, 1, 0]
    assert surface.weights.bones.tolist() == [0, 0, 1, 1]
    assert surface.weights.values.tolist() == [65535, 32767, 32768, 65535]
    assert surface.uv0.tolist() == [list(uv) for uv in by_hand.UV0]
    assert surface.uv1 is None
    assert surface.colors.tolist()[2:4] == [[0, 0, 255, 128], [1, 2, 3, 4]]
    assert surface.c_indices.tolist() == list(by_hand.C_INDICES)
    assert surface.t_indices.tolist() == list(by_hand.T_INDICES)


@pytest.mark.parametrize("version", ["ms12", "ms14", "sk10"])
def test_both_morph_targets_are_there(version: str) -> None:
    base, smile = UNIGINE_MESH.read(by_hand.ALL[version]).surfaces[0].targets
    assert (base.name, smile.name) == ("", "Smile")
    assert smile.positions.tolist() == [list(point) for point in by_hand.SMILE_POSITIONS]
    assert base.tangents.tolist() == [list(tangent) for tangent in by_hand.BASE_TANGENTS]
    assert smile.tangents.tolist() == [list(tangent) for tangent in by_hand.SMILE_TANGENTS]


def test_short_tangents_keep_their_sign_byte() -> None:
    tangents = UNIGINE_MESH.read(by_hand.MS10_SKINNED).surfaces[0].targets[0].tangents
    assert tangents.dtype == np.int16
    assert tangents.tolist() == [[0, 0, 0, 127], [0, 0, 0, 127], [0, 6392, 0, -127], [0, 0, 0, 127], [0, 0, 0, -127]]


def test_documented_skinned_meshes_name_their_skeleton() -> None:
    document = UNIGINE_MESH.read(by_hand.SK10_TWO_TARGETS)
    assert document.skeleton_guid == "0123456789abcdef0123456789abcdef01234567"
    assert document.skeleton_path == "guid://abc"
    assert document.rest_transforms.tobytes() == by_hand.TIP_TRANSFORM + by_hand.ROOT_TRANSFORM
    document.rest_transforms = document.rest_transforms[:1]
    with pytest.raises(ExportError, match="1 rest transforms for 2 bones"):
        UNIGINE_MESH.write(document)


@pytest.mark.parametrize("version", by_hand.ALL)
def test_files_by_hand_come_back_byte_for_byte(version: str) -> None:
    data = by_hand.ALL[version]
    assert UNIGINE_MESH.write(UNIGINE_MESH.read(data)) == data


def test_collision_data_is_made_where_there_is_none() -> None:
    document = UNIGINE_MESH.read(by_hand.MS14_TWO_TARGETS)
    document.surfaces[0].collision = None
    assert UNIGINE_MESH.write(document) == by_hand.MS14_TWO_TARGETS


def test_compressed_blocks_hold_the_same() -> None:
    """A block of literals alone, as an LZ4 block: shorter by nothing, so here it is padded with a repetition."""
    whole = by_hand.MS14_TWO_TARGETS
    geometry = by_hand.MS14_GEOMETRY
    place = whole.index(geometry)
    run = geometry.index(bytes(12))  # the first vertex: 12 zeros
    sequence = _lz4(geometry, run, 12)
    assert len(sequence) < len(geometry)
    packed = struct.pack("<qq", len(geometry), len(sequence)) + sequence
    data = whole[: place - 16] + packed + whole[place + len(geometry) :]
    document = UNIGINE_MESH.read(data)
    assert document.warnings == []
    assert UNIGINE_MESH.write(document) == whole
    assert UNIGINE_MESH.same_content(data, whole)
    assert not UNIGINE_MESH.same_content(data, whole.replace(b"Smile", b"Frown"))
    with pytest.raises(FormatError, match=r"Face.*geometry.*beyond the limit"):
        UNIGINE_MESH.read(data, inflated_limit=100)


def _lz4(content: bytes, run: int, length: int) -> bytes:
    """Compress by hand: the zeros at ``run`` become one zero and a copy of it, the rest are literals."""

    def literals(count: int, copied: int) -> bytes:
        more = bytearray()
        if count >= 15:
            rest = count - 15
            more += b"\xff" * (rest // 255) + bytes((rest % 255,))
        return bytes((min(count, 15) << 4 | copied,)) + bytes(more)

    head = content[: run + 1]
    tail = content[run + length :]
    return literals(len(head), length - 1 - 4) + head + b"\x01\x00" + literals(len(tail), 0) + tail


def changed(data: bytes, old: bytes, new: bytes, which: int = 0) -> bytes:
    """Replace one occurrence."""
    place = -1
    for _ in range(which + 1):
        place = data.index(old, place + 1)
    return data[:place] + new + data[place + len(old) :]


NAN, INFINITY = floats(math.nan).data, floats(-math.inf).data
COLLISION = struct.pack("<qq", 40, 40) + by_hand.MS14_COLLISION
LAST_INDICES = b"\x06" + bytes(by_hand.C_INDICES) + b"\x06" + bytes(by_hand.T_INDICES)
MS12 = by_hand.MS12_TWO_TARGETS
MS14 = by_hand.MS14_TWO_TARGETS
SMILE = b"".join(floats(*point).data for point in by_hand.SMILE_POSITIONS)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (changed(MS12, b"ms12", b"ms13", 1), "Face|version after the headers should be 'ms12', but is 'ms13'"),
        (changed(MS12, b"ms12", b"MS12", 2), "version at the end should be 'ms12'"),
        (MS12 + b"\0", "1 bytes follow"),
        (MS12 + MS12, "bytes follow"),
        (changed(MS12, b"\x02\x05Root", b"\x42\x05Root"), "-2 bones"),
        (changed(MS12, b"\x02\x05Root", b"\xbf\xff\xff\xff\x0f\x05Root"), "2,147,483,647 bones"),
        (changed(MS12, b"\x05Root\0", b"\x05Roots"), "name of bone 0"),
        (changed(MS12, b"Tip\0\x00\x00", b"Tip\0\x01\x00"), "'Tip' is its own ancestor"),
        (changed(MS12, b"Tip\0\x00\x00", b"Tip\0\x02\x00"), "parent of bone 'Tip'"),
        (changed(MS12, b"\x01\x05Face", b"\xbf\x7f\x05Face"), "8,191 surfaces"),
        (
            changed(MS12, by_hand.TIP_TRANSFORM, NAN + by_hand.TIP_TRANSFORM[4:]),
            "bone 'Tip' holds a number that is not",
        ),
        (changed(MS12, SMILE, SMILE[:-4] + INFINITY), "Face.*vertex 3 of target 1 is NaN or infinite"),
        (changed(MS12, b"\x04" + SMILE, b"\x03" + SMILE[:-12]), "Morph target 1 'Smile' has 3 vertices"),
        (changed(MS12, b"\x04" + SMILE, b"\xbf\xff\xff\xff\x0f" + SMILE), "2,147,483,647 vertices"),
        (
            changed(MS12, b"\x04\x01\x00\x00\xff\xff", b"\x03\x01\x00\x00\xff\xff"),
            "3 vertices with weights, not 0 or 4",
        ),
        (changed(MS12, b"\x04\x01\x00\x00\xff\xff", b"\x04\x05\x00\x00\xff\xff"), "at most 4 bones"),
        (changed(MS12, b"\x01\x01\x00\xff\xff", b"\x01\x02\x00\xff\xff"), "bone 2, but the file has 2 bones"),
        (changed(MS12, b"\x01\x01\x00\xff\xff", b"\x01\xff\xff\xff\xff"), "is weighted to bone -1"),
        (changed(MS12, LAST_INDICES, b"\x03\0\1\2\x06" + bytes(by_hand.T_INDICES)), "3 corners have a position and 6"),
        (changed(MS12, LAST_INDICES, b"\x02\0\1\x02\0\1"), "2 corners are not triangles"),
        (changed(MS12, LAST_INDICES, b"\x03\0\1\4\x03\0\1\2"), "Corner 2 uses vertex 4, but there are 4"),
        (changed(MS12, LAST_INDICES, b"\x03\0\1\3\x03\0\1\5"), "Corner 2 uses triangle vertex 5, but there are 5"),
        (changed(MS14, b"ms14", b"ms15", 2), "after the geometry"),
        (changed(MS14, struct.pack("<qq", 274, 274), struct.pack("<qq", 274, 275)), "274 bytes, stored in 275"),
        (changed(MS14, struct.pack("<qq", 274, 274), struct.pack("<qq", 274, 1)), "274 bytes, stored in 1"),
        (changed(MS14, struct.pack("<qq", 274, 274), struct.pack("<qq", -1, -1)), "-1 bytes"),
        (changed(MS14, struct.pack("<qq", 274, 274), struct.pack("<qq", 50, 50)), "asks for 108 or more"),
        (changed(MS14, struct.pack("<qq", 274, 274), struct.pack("<qq", 400, 274)), "compressed data is damaged"),
        (changed(MS14, struct.pack("<qq", 274, 274), struct.pack("<qq", 1 << 50, 274)), "stored in 274"),
        (
            changed(MS14, COLLISION, struct.pack("<qq", 300, 300) + bytes(300)),
            "300 bytes, but the surface needs 223 at most",
        ),
        (changed(MS14, b"Smile\0\x04", b"Smile\0\x03"), "Face"),
        (
            changed(MS14, b"\x06\x06" + by_hand.BOUNDS[:4], b"\x06\x09" + by_hand.BOUNDS[:4]),
            "6 corners have a position",
        ),
        (changed(by_hand.MR02_TRIANGLE, i32(3).data, i32(2).data), "2 vertices are not triangles"),
        (changed(by_hand.MR02_TRIANGLE, i32(3).data, i32(-3).data), "-3 vertices"),
        (changed(by_hand.MR02_TRIANGLE, i32(3).data, i32(2**30 - 1).data), "34,359,738,336 bytes expected"),
        (changed(by_hand.MR02_TRIANGLE, i32(1).data, i32(-1).data), "-1 surfaces"),
        (changed(by_hand.MR02_TRIANGLE, floats(1.0).data, NAN, 1), "wall.*is NaN or infinite"),
        (changed(by_hand.SK10_TWO_TARGETS, i32(2).data + by_hand.ROOT_TRANSFORM, i32(1).data), "1 bind transforms"),
    ],
)
def test_broken_files_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        UNIGINE_MESH.read(data)


def test_geometry_sizes_above_are_those_of_the_file() -> None:
    """The block that the cases above change is found by its size."""
    assert len(by_hand.MS14_GEOMETRY) == 274
    assert 12 * 8 + 6 + 6 == 108


def test_flags_beyond_an_animations_channels_are_refused() -> None:
    """Embedded: one animated bone, mask translation x, one frame; then with flag bit 7."""
    body = b"\x01" + b"\x01\x00" + b"\x01" + b"\x01" + b"%b" + floats(2.5).data
    head, tail = MS12.split(by_hand.TIP_TRANSFORM)
    head = changed(head, b"\x00\x01\x05Face", b"\x01\x05walk\0\x01\x05Face")
    data = head + by_hand.TIP_TRANSFORM + body.replace(b"%b", b"\x01") + tail
    document = UNIGINE_MESH.read(data)
    assert document.animations[0].name == "walk"
    assert document.animations[0].frames.translation.tolist() == [[[2.5, 0, 0]]]
    assert UNIGINE_MESH.write(document) == data
    with pytest.raises(FormatError, match="animation 'walk'"):
        UNIGINE_MESH.read(head + by_hand.TIP_TRANSFORM + body.replace(b"%b", b"\x81") + tail)


def warnings_after(change: Callable[[MeshFile], Any], data: bytes = MS12) -> list[str]:
    return reread_after(change, data).warnings


def reread_after(change: Callable[[MeshFile], Any], data: bytes = MS12) -> MeshFile:
    document = UNIGINE_MESH.read(data)
    for surface in document.surfaces:  # arrays of a document are views of its file
        surface.bounds = surface.bounds.copy()
        surface.targets = [Target(t.name, t.positions.copy(), t.tangents.copy()) for t in surface.targets]
        surface.uv0 = surface.uv0.copy()
        surface.weights = replace(surface.weights, values=surface.weights.values.copy())
    document.bounds, document.transforms = document.bounds.copy(), document.transforms.copy()
    change(document)
    return UNIGINE_MESH.read(UNIGINE_MESH.write(document))


def test_oddities_are_warned_of_and_read() -> None:
    def twice(document: MeshFile) -> None:
        document.surfaces.append(document.surfaces[0])

    assert warnings_after(twice) == ["1 surface name is used twice: 'Face'"]

    def shared_bone(document: MeshFile) -> None:
        document.bones[1].name = "Root"

    assert warnings_after(shared_bone) == ["1 bone name is used twice: 'Root'"]

    def bent_bone(document: MeshFile) -> None:
        document.transforms[1, 3:7] = (0.3, 0, 0, 0.4)

    assert warnings_after(bent_bone) == ["1 bone has a bind rotation not of unit length: 'Tip'"]

    def short_tangents(document: MeshFile) -> None:
        document.surfaces[0].targets[0].tangents[1] //= 2
        document.surfaces[0].targets[1].tangents[3] = 0

    assert warnings_after(short_tangents) == ["2 tangents are not of unit length: 'Face'"]
    document = reread_after(short_tangents)
    assert UNIGINE_MESH.to_scene(document, "").warnings == []  # Blender computes its own
    assert UNIGINE_MESH.facts(document)["warnings"] == document.warnings

    def other_bounds(document: MeshFile) -> None:
        document.surfaces[0].bounds[3] = 1.01
        document.bounds[3] = 1.01

    assert warnings_after(other_bounds) == ["1 surface has bounds that disagree with the vertices: 'Face'"]

    def other_mesh_bounds(document: MeshFile) -> None:
        document.bounds[:] = np.nan

    assert warnings_after(other_mesh_bounds) == ["The bounds of the mesh disagree with those of its surfaces"]

    def light(document: MeshFile) -> None:
        document.surfaces[0].weights.values[1] = 32763  # with 32768: four below, one more than rounding takes
        document.surfaces[0].weights.values[0] = 65532  # as low as rounding brings it

    assert warnings_after(light) == ["1 vertex has weights that do not sum to 1: 'Face'"]

    def no_uv(document: MeshFile) -> None:
        document.surfaces[0].uv0[2, 1] = np.inf

    assert warnings_after(no_uv) == ["1 surface has UV coordinates that are NaN or infinite: 'Face'"]


def test_a_wrong_table_of_offsets_is_warned_of() -> None:
    place = struct.pack("<q", len(by_hand.MS14_HEAD))
    document = UNIGINE_MESH.read(changed(MS14, place, struct.pack("<q", 7)))
    assert "table of offsets" in document.warnings[0]


def square(**changes: Any) -> MeshFile:
    """Return a file of ms13 with one square."""
    surface = UNIGINE_MESH.read(MS12).surfaces[0]
    values: dict[str, Any] = {"targets": surface.targets[:1], "weights": None, **changes}
    return MeshFile("ms13", bounds=surface.bounds, surfaces=[replace(surface, **values)])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"c_indices": np.array([0, 1, 4], np.uint8), "t_indices": np.array([0, 1, 2], np.uint8)}, "uses vertex 4"),
        ({"c_indices": np.array([0, 1, -1]), "t_indices": np.array([0, 1, 2])}, "uses vertex -1"),
        ({"c_indices": np.array([0, 1]), "t_indices": np.array([0, 1])}, "are not triangles"),
        ({"t_indices": np.array([0, 1, 2])}, "are not triangles"),
        ({"uv0": np.zeros((4, 2), np.float32)}, "UV0"),
        ({"colors": np.zeros((5, 3), np.uint8)}, "colours"),
        ({"targets": [Target("", np.full((4, 3), np.nan, np.float32), np.zeros((5, 4), np.int16))]}, "NaN or infinite"),
        ({"weights": Weights(np.ones(4, np.uint8), np.zeros(4, np.int16), np.zeros(4, np.uint16))}, "does not exist"),
        ({"weights": Weights(np.ones(3, np.uint8), np.zeros(3, np.int16), np.zeros(3, np.uint16))}, "its weights"),
        ({"weights": Weights(np.ones(4, np.uint8), np.zeros(4, np.int16), np.zeros(3, np.uint16))}, "its weights"),
        ({"name": "a\0b"}, "zero character"),
        ({"lightmap_resolution": 256}, "lightmap"),
    ],
)
def test_documents_that_do_not_fit_together_are_not_written(changes: dict[str, Any], said: str) -> None:
    assert UNIGINE_MESH.write(square())
    with pytest.raises(ExportError, match=said):
        UNIGINE_MESH.write(square(**changes))


def test_versions_refuse_what_they_cannot_hold() -> None:
    rig = UNIGINE_MESH.read(MS12)
    with pytest.raises(ExportError, match="ms15 holds no bones; choose ms13 or ms14"):
        UNIGINE_MESH.write(replace(rig, version="ms15"))
    shapes = replace(
        rig, bones=[], transforms=rig.transforms[:0], surfaces=square(targets=rig.surfaces[0].targets).surfaces
    )
    with pytest.raises(ExportError, match="ms15 holds no morph targets"):
        UNIGINE_MESH.write(replace(shapes, version="ms15"))
    with pytest.raises(ExportError, match="soup"):
        UNIGINE_MESH.write(replace(square(), version="mr02"))
    with pytest.raises(ExportError, match="soup"):
        UNIGINE_MESH.write(replace(UNIGINE_MESH.read(by_hand.MR02_TRIANGLE), version="ms13"))
    with pytest.raises(ExportError, match="ms16 cannot be written"):
        UNIGINE_MESH.write(replace(square(), version="ms16"))


@pytest.mark.parametrize(("pool", "width"), [(255, 1), (256, 2), (65535, 2), (65536, 4)])
@pytest.mark.parametrize("version", ["ms13", "ms14", "ms15"])
def test_indices_are_as_wide_as_their_pool_asks(pool: int, width: int, version: str) -> None:
    points = np.zeros((pool, 3), np.float32)
    points[-1] = (0, 1, 0)
    points[-2] = (1, 0, 0)
    tangents = np.tile(np.array(by_hand.UP, np.int16), (3, 1))
    corners = np.array([0, pool - 2, pool - 1], np.int32)
    surface = Surface(
        "s", np.array([0, 0, 0, 1, 1, 0, 0.5, 0.5, 0, 0.8], np.float32), [Target("", points, tangents)],
        c_indices=corners, t_indices=np.arange(3),
    )  # fmt: skip
    data = UNIGINE_MESH.write(MeshFile(version, bounds=surface.bounds, surfaces=[surface]))
    stored = {1: "<u1", 2: "<u2", 4: "<i4"}[width]
    assert data.count(corners.astype(stored).tobytes() + (b"" if version != "ms13" else b"\x03") + b"\x00\x01\x02") == 1
    document = UNIGINE_MESH.read(data)
    assert document.warnings == []
    assert document.surfaces[0].c_indices.itemsize == width
    assert document.surfaces[0].c_indices.tolist() == corners.tolist()


def test_large_pools_in_blocks_may_have_compact_indices() -> None:
    """What the vendor's text may mean by "int": both ways are read."""
    points = np.zeros((70_000, 3), np.float32)
    points[-1] = (0, 1, 0)
    points[-2] = (1, 0, 0)
    surface = Surface(
        "s", np.array([0, 0, 0, 1, 1, 0, 0.5, 0.5, 0, 0.8], np.float32),
        [Target("", points, np.tile(np.array(by_hand.UP, np.int16), (3, 1)))],
        c_indices=np.array([0, 69_998, 69_999]), t_indices=np.arange(3), collision=b"",
    )  # fmt: skip
    plain = UNIGINE_MESH.write(MeshFile("ms14", bounds=surface.bounds, surfaces=[surface]))
    wide = struct.pack("<iii", 0, 69_998, 69_999)
    compact = b"\x00" + b"\xae\xc5\x08" + b"\xaf\xc5\x08"
    assert (0x2E | 0x45 << 6 | 8 << 13, 0x2F | 0x45 << 6 | 8 << 13) == (69_998, 69_999)
    size = 12 * 70_000 + 1 + 24 + 4 + 12 + 3
    assert struct.pack("<qq", size, size) in plain
    shorter = size - 12 + len(compact)
    data = changed(changed(plain, wide, compact), struct.pack("<qq", size, size), struct.pack("<qq", shorter, shorter))
    for file in (plain, data):
        assert UNIGINE_MESH.read(file).surfaces[0].c_indices.tolist() == [0, 69_998, 69_999]


@pytest.mark.slow
@pytest.mark.parametrize("version", by_hand.ALL)
def test_damaged_counts_allocate_nothing(version: str) -> None:
    """A count of 2 thousand million in every place, as a compact integer, an i32 and an i64."""
    data = by_hand.ALL[version]
    tracemalloc.start()
    try:
        for hostile in (b"\xbf\xff\xff\xff\x0f", b"\xfe\xff\xff\x7f", struct.pack("<qq", 1 << 31, 1 << 24)):
            for place in range(4, len(data)):
                with contextlib.suppress(FormatError):
                    UNIGINE_MESH.read(data[:place] + hostile + data[place + len(hostile) :])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_empty_surfaces_and_files() -> None:
    nothing = np.array([1e9] * 3 + [-1e9] * 3 + [0, 0, 0, -1], np.float32)
    for version in ("ms10", "ms11", "ms12", "ms13", "ms14", "ms15"):
        for surfaces in ([], [Surface("a", nothing, [Target("", np.empty((0, 3), "f4"), np.empty((0, 4), "i2"))])]):
            data = UNIGINE_MESH.write(MeshFile(version, bounds=nothing, surfaces=surfaces))
            document = UNIGINE_MESH.read(data)
            assert (len(document.surfaces), document.warnings) == (len(surfaces), [])
            assert UNIGINE_MESH.write(document) == data
    no_target = UNIGINE_MESH.read(
        UNIGINE_MESH.write(MeshFile("ms13", bounds=nothing, surfaces=[Surface("a", nothing)]))
    )
    assert no_target.surfaces[0].targets == []
