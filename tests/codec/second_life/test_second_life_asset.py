"""Mesh assets that the tests make: every oddity that files may have, and what is refused."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import ExportError, FormatError, UnsupportedFormatError
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.encodings.quantization import dequantise, dequantise_normals, quantise, quantise_normals
from meshferry.io_formats.second_life.asset import codec
from meshferry.io_formats.second_life.asset import format as asset_format
from meshferry.io_formats.second_life.asset.codec import Asset
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.asset.mapping import decode_blocks
from meshferry.io_formats.second_life.models import level_block, physics_block
from meshferry.io_formats.second_life.models.llsd_arrays import bounds
from meshferry.io_formats.second_life.models.skin_block import block_of, skin_of
from meshfuzz import second_life_seeds as sl
from second_life_bytes import binary, plain

FOUR_LEVELS = {level: [sl.square()] for level in ("lowest_lod", "low_lod", "medium_lod", "high_lod")}
WHOLE = {
    "skin": sl.skin(),
    "physics_convex": sl.hulls(),
    **FOUR_LEVELS,
    "physics_mesh": [sl.square(Normal=None, TexCoord0=None, TexCoord0Domain=None)],
}


def faces(*values: Any) -> tuple[list[level_block.Face], list[str]]:
    warnings: list[str] = []
    return level_block.faces_of(list(values), Report(warnings, "High")), warnings


def inflated(data: bytes) -> dict[str, Any]:
    """Return the header, and each block's inflated bytes, by the library."""
    parser_input = data[len(sl.PREFIX) :].lstrip() if data.startswith(sl.PREFIX) else data
    header = plain(parser_input)
    start = len(data) - len(parser_input) + len(binary(header))
    blocks = {}
    for key, entry in header.items():
        if isinstance(entry, dict) and entry.get("size", 0) > 0:
            place = start + entry["offset"]
            blocks[key] = zlib.decompress(data[place : place + entry["size"]])
    return {"keys": list(header), "blocks": blocks}


# --- the file as a whole ---------------------------------------------------------------------------------------------


def test_a_whole_asset_is_written_as_it_was() -> None:
    data = sl.asset(
        WHOLE,
        header={"version": 1, "creator": b"x", "physics_cost_data": {"hull": 0.5}, "submodel_id": 1},
        trailing=b"something",
    )
    asset = codec.read(data)
    assert codec.write(asset) == data
    assert codec.same_content(data, codec.write(asset))
    assert list(asset.blocks) == list(sl.ORDER)
    assert asset.stored_sizes == {key: len(zlib.compress(binary(WHOLE[key]), 9)) for key in WHOLE}
    assert asset.stored_sizes == codec.block_sizes(asset)
    assert asset.trailing == b"something"
    assert asset.warnings == []


@pytest.mark.parametrize("space", [b"", b"\n", b" \r\n\t"])
def test_the_old_prefix_is_read_and_not_written(space: bytes) -> None:
    prefix = sl.PREFIX + space
    plain = sl.asset(FOUR_LEVELS)
    stored = {level: zlib.compress(prefix + binary(block), 9) for level, block in FOUR_LEVELS.items()}
    data = sl.asset({}, stored=stored, prefix=prefix)
    assert asset_format.sniff(data[:4096], len(data))
    asset = codec.read(data)
    assert asset.prefix_size == len(prefix)
    written = codec.write(asset)
    assert written == plain
    assert codec.same_content(data, written)
    assert "text in front" in asset.warnings[0]


def test_gaps_and_any_order_of_blocks() -> None:
    order = ("high_lod", "physics_convex", "medium_lod")
    data = sl.asset({key: WHOLE[key] for key in order}, order=order, gap=b"....", trailing=b"!")
    asset = codec.read(data)
    assert list(asset.blocks) == list(order)
    assert asset.trailing == b"!"
    written = codec.write(asset)
    assert inflated(written) == inflated(data)
    assert len(written) == len(data) - 3 * 4  # without the gaps
    assert codec.same_content(data, written)


def test_the_header_keeps_its_order() -> None:
    data = sl.asset(WHOLE)
    header = plain(data)
    shuffled = binary(dict(reversed(header.items()))) + data[len(binary(header)) :]
    asset = codec.read(shuffled)
    assert list(asset.header) == list(reversed(header))
    assert codec.write(asset) == shuffled
    assert not codec.same_content(data, shuffled)


def test_unknown_blocks_are_kept_as_they_are() -> None:
    stored = {"physics_havok": b"no zlib stream at all", "skeleton": b"nor this"}
    data = sl.asset(FOUR_LEVELS, stored=stored)
    asset = codec.read(data)
    assert asset.opaque == stored
    assert codec.write(asset) == data


def test_the_old_name_of_the_physics_mesh() -> None:
    data = sl.asset({"high_lod": [sl.square()], "physics_shape": [sl.square()]})
    asset = codec.read(data)
    assert list(asset.blocks) == ["high_lod", "physics_mesh"]
    assert inflated(codec.write(asset)) == inflated(data)
    both = sl.asset({"high_lod": [sl.square()], "physics_mesh": [sl.square()], "physics_shape": [{"NoGeometry": True}]})
    asset = codec.read(both)
    assert "TriangleList" in asset.blocks["physics_mesh"][0]
    assert list(asset.opaque) == ["physics_shape"]
    assert inflated(codec.write(asset)) == inflated(both)
    outside = sl.asset(
        {"high_lod": [sl.square()], "physics_shape": [sl.square()]},
        header={"physics_mesh": {"offset": 3, "size": 2**31 - 1}},
    )
    written = codec.write(codec.read(outside))
    assert "TriangleList" in codec.read(outside).blocks["physics_mesh"][0], "the old name counts if the new is cut off"
    assert codec.write(codec.read(written)) == written


@pytest.mark.parametrize("entry", [{"offset": -1, "size": 5}, {"offset": 0, "size": 0}, {"offset": 3, "size": -1}])
def test_blocks_that_are_said_to_be_absent(entry: dict[str, int]) -> None:
    data = sl.asset(FOUR_LEVELS, header={"physics_mesh": entry})
    asset = codec.read(data)
    assert "physics_mesh" not in asset.blocks
    assert asset.warnings == []
    assert codec.read(codec.write(asset)).blocks == asset.blocks


@pytest.mark.parametrize("entry", [{"offset": 0, "size": 10**6}, {"offset": 10**6, "size": 1}])
def test_a_block_that_sticks_out_is_missing(entry: dict[str, int]) -> None:
    data = sl.asset(FOUR_LEVELS, header={"physics_mesh": entry})
    asset = codec.read(data)
    assert "physics_mesh" not in asset.blocks
    assert ["physics_mesh" in text for text in asset.warnings] == [True]
    again = codec.read(codec.write(asset))
    assert again.warnings == []
    assert again.blocks == asset.blocks


def test_reals_may_stand_for_integers() -> None:
    data = sl.asset(FOUR_LEVELS)
    header = plain(data)
    area = data[len(binary(header)) :]
    real = {key: {name: float(value) for name, value in entry.items()} for key, entry in header.items()}
    assert codec.read(binary(real) + area).blocks.keys() == FOUR_LEVELS.keys()


def test_what_follows_a_stream_is_ignored() -> None:
    stored = {"high_lod": zlib.compress(binary([sl.square()]), 9) + b"more"}
    asset = codec.read(sl.asset({}, stored=stored))
    assert asset.stored_sizes["high_lod"] == len(stored["high_lod"])
    assert len(level_block.faces_of(asset.blocks["high_lod"], Report())) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (sl.asset({"high_lod": [{"NoGeometry": True}]}), "no geometry"),
        (sl.asset({"physics_mesh": [sl.square()]}), "no geometry"),
        (sl.asset({"high_lod": [sl.square(TriangleList=b"")]}), "no geometry"),
        (sl.asset({"high_lod": {"Position": b""}}), "no geometry"),
        (sl.asset({"high_lod": [sl.square()]}, header={"404": 1}), "404"),
        (sl.asset({"high_lod": [sl.square()]}, header={"version": 1000}), "version 1,000"),
        (sl.asset({}, stored={"high_lod": zlib.compress(binary([sl.square()]), 9)[:-9]}), "cut off"),
        (sl.asset({}, stored={"high_lod": b"\x1f\x8b\x08\0gzip"}), "compressed data is damaged"),
        (sl.asset({}, stored={"high_lod": zlib.compress(b"[\0\0\0\x05!]")}), "damaged"),
        (sl.asset(FOUR_LEVELS)[:200], "cut off"),
        (b"[\0\0\0\0]", "does not start with a map"),
    ],
)
def test_what_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        codec.read(data)


def test_version_999_is_read() -> None:
    asset = codec.read(sl.asset(FOUR_LEVELS, header={"version": 999}))
    assert SECOND_LIFE_MESH.facts(asset)["version"] == "999"


def test_errors_name_the_block() -> None:
    data = sl.asset(FOUR_LEVELS, stored={"skin": b"nothing"})
    with pytest.raises(FormatError, match=r"^rig: The compressed data is damaged"):
        codec.read(data)


def test_a_bomb_is_refused_before_it_grows() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    data = sl.asset(FOUR_LEVELS, stored={"skin": bomb})
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="inflates to far more"):
            codec.read(data)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(FormatError, match="inflates to far more"):
        codec.read(sl.asset(FOUR_LEVELS), inflated_limit=1000)  # of all blocks together
    assert codec.read(sl.asset(FOUR_LEVELS), inflated_limit=10_000)


def test_a_header_has_at_most_a_mebibyte() -> None:
    assert codec.read(sl.asset(FOUR_LEVELS, header={"note": "x" * 1_000_000}))
    with pytest.raises(FormatError, match="1 MiB"):
        codec.read(sl.asset(FOUR_LEVELS, header={"note": "x" * 1_100_000}))


def test_a_header_longer_than_the_viewer_fetches_is_not_written() -> None:
    asset = codec.read(sl.asset(FOUR_LEVELS, header={"material_list": ["m" * 63] * 64}))
    with pytest.raises(ExportError, match="4,096"):
        codec.write(asset)
    assert codec.read(codec.write(asset, longest_header=1 << 20)).blocks == asset.blocks


def test_a_new_asset_has_a_sorted_header() -> None:
    asset = Asset({"submodel_id": 1}, {key: WHOLE[key] for key in sl.ORDER})
    data = codec.write(asset)
    assert data == sl.asset(WHOLE, header={"submodel_id": 1})
    assert asset.header == {"submodel_id": 1}


def test_large_blocks_are_packed_alike_in_parallel() -> None:
    rng = np.random.default_rng(3)
    blocks = {level: [sl.square(Position=rng.bytes(6 * 40_000))] for level in FOUR_LEVELS}
    assert codec.write(Asset({}, blocks)) == sl.asset(blocks)


# --- recognition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        sl.asset(FOUR_LEVELS),
        sl.asset(FOUR_LEVELS, prefix=sl.PREFIX + b"\n"),
        sl.asset(FOUR_LEVELS, header={"0_first": "x" * 3000}),
        sl.asset({"lowest_lod": [sl.square()]}),
        sl.asset(FOUR_LEVELS, header={"404": True}),
        sl.asset(FOUR_LEVELS, header={"0_first": "x" * (4096 - 42)}),
    ],
)
def test_recognised_by_content(data: bytes) -> None:
    assert registry.by_content(data[:4096], len(data)) is SECOND_LIFE_MESH


@pytest.mark.parametrize(
    "data",
    [
        binary({"mesh_list": [1], "high": {"offset": 1, "size": 2}}),
        binary({"high_lod": 5}),
        binary({"nested": {"high_lod": {"offset": 0, "size": 5}}}),
        b"{\0\0",
        b"{" + bytes(60),
        b'{"high_lod": {"offset": 0, "size": 5}}',
    ],
)
def test_other_files_are_not_taken(data: bytes) -> None:
    with pytest.raises(UnsupportedFormatError):
        registry.by_content(data[:4096], len(data))


# --- faces -----------------------------------------------------------------------------------------------------------


def test_a_face_in_arrays() -> None:
    (face,), warnings = faces(sl.square(NormalizedScale=sl.reals(3, 3, 1), Tangent=b"12345678"))
    assert warnings == []
    assert face.positions.tolist() == [[0, 0, 0], [65535, 0, 0], [65535, 65535, 0], [0, 65535, 0]]
    assert face.position_domain.tolist() == [[-0.5, -0.5, 0], [0.5, 0.5, 0]]
    assert face.triangles.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert face.normals is not None and face.uvs is not None and face.uv_domain is not None
    assert face.normals.tolist() == [[32767, 32767, 65535]] * 4
    assert face.uvs.tolist() == [[0, 0], [65535, 0], [65535, 65535], [0, 65535]]
    assert face.uv_domain.tolist() == [[0, 0], [1, 1]]
    assert face.normalized_scale == (3, 3, 1)
    assert face.extra == {"Tangent": b"12345678"}
    assert (face.joint_indices, face.joint_weights, face.influences) == (None, None, None)


def test_written_faces_are_sorted_and_the_same() -> None:
    value = [
        sl.square(NormalizedScale=sl.reals(3, 3, 1), Tangent=b"12345678"),
        {"NoGeometry": True},
        sl.square(Weights=sl.influences([(0, 65535)], [(1, 2), (0, 1)], [(0, 1)] * 4, [(1, 1)] * 3)),
    ]
    found, _ = faces(*value)
    assert binary(level_block.block_of(found)) == binary(value)
    found[0].triangles = found[0].triangles[:0]
    assert level_block.block_of(found)[0] == {"NoGeometry": True}


def test_domains_are_written_in_single_precision() -> None:
    (face,), _ = faces(sl.square())
    face.position_domain = np.array([[0.1, 0, 0], [0.3, 1, 1]])
    (written,) = level_block.block_of([face])
    assert written["PositionDomain"]["Min"][0] == float(np.float32(0.1))
    assert written["PositionDomain"]["Min"][0] != 0.1


@pytest.mark.parametrize("value", [True, False, 0, "no"])
def test_no_geometry_by_its_presence(value: Any) -> None:
    (face,), warnings = faces({"NoGeometry": value, **sl.square()})
    assert face.no_geometry
    assert warnings == []


def test_triangles_that_cannot_be() -> None:
    listed = sl.shorts(0, 1, 2, 0, 2, 4, 0, 0, 0, 65535, 1, 2, 3, 2, 1) + b"12"
    (face,), warnings = faces(sl.square(TriangleList=listed))
    assert face.triangles.tolist() == [[0, 1, 2], [3, 2, 1]]
    assert ["2 triangles use vertices beyond" in text for text in warnings] == [False, True]
    assert "middle" in warnings[0]


def test_65536_vertices_can_all_be_named() -> None:
    count = 65_536
    face = sl.square(
        Position=bytes(6 * count), Normal=None, TexCoord0=None, TriangleList=sl.shorts(65533, 65534, 65535)
    )
    (found,), warnings = faces(face)
    assert found.triangles.tolist() == [[65533, 65534, 65535]]
    assert len(found.positions) == count
    assert warnings == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Position": sl.shorts(1, 2, 3, 4, 5, 6)}, "fewer than three"),
        ({"Position": None}, "fewer than three"),
        ({"Position": "text"}, "fewer than three"),
        ({"PositionDomain": sl.domain((float("nan"), 0, 0), (1, 1, 1))}, "NaN or infinite"),
        ({"PositionDomain": sl.domain((0, 0, 0), (float("inf"), 1, 1))}, "NaN or infinite"),
        ({"PositionDomain": sl.domain((0, 0, 0), (1e39, 1, 1))}, "NaN or infinite"),
        ({"PositionDomain": sl.domain((-3e38, 0, 0), (3e38, 1, 1))}, "NaN or infinite"),
    ],
)
def test_faces_that_are_left_out_keep_their_number(changes: dict[str, Any], said: str) -> None:
    found, warnings = faces(sl.square(**changes), sl.square())
    assert [face.no_geometry for face in found] == [True, False]
    assert len(warnings) == 1 and warnings[0].startswith("High, face 1: ") and said in warnings[0]


@pytest.mark.parametrize("missing", [None, 5, {"Min": [0.0, 0, 0]}, {"Min": [0.0], "Max": [1.0]}])
def test_positions_without_a_range(missing: Any) -> None:
    (face,), warnings = faces(sl.square(PositionDomain=missing))
    assert face.position_domain.tolist() == [[-0.5] * 3, [0.5] * 3]
    assert len(warnings) == 1


def test_uvs_without_a_range_or_with_an_endless_one() -> None:
    (face,), warnings = faces(sl.square(TexCoord0Domain=None))
    assert face.uv_domain is not None and face.uv_domain.tolist() == [[0, 0], [1, 1]]
    assert len(warnings) == 1
    (face,), warnings = faces(sl.square(TexCoord0Domain=sl.domain((0, 0), (float("nan"), 1))))
    assert face.uvs is None
    assert len(warnings) == 1
    (face,), warnings = faces(sl.square(TexCoord0Domain=sl.domain((-8e27, 0), (8e27, 1))))
    assert face.uvs is not None
    assert warnings == []


def test_layers_of_another_length() -> None:
    (face,), warnings = faces(sl.square(Normal=sl.shorts(*range(9)), TexCoord0=sl.shorts(*range(10))))
    assert face.normals is None
    assert face.uvs is not None and face.uvs.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert "3 normals for 4" in warnings[0] and "5 UV coordinates for 4" in warnings[1]


def test_more_than_eight_faces() -> None:
    found, warnings = faces(*[sl.square()] * 11)
    assert len(found) == 11
    assert "11 faces" in warnings[0]
    with pytest.raises(FormatError, match="at most 8"):
        faces(*[sl.square()] * 65)


@pytest.mark.parametrize("value", [None, {}, 5, b"bytes"])
def test_a_level_that_is_no_list(value: Any) -> None:
    with pytest.raises(FormatError, match="not a list"):
        level_block.faces_of(value, Report(item="High"))


# --- weights ---------------------------------------------------------------------------------------------------------

INFLUENCE = st.tuples(st.integers(0, 254), st.integers(0, 65535))


def one_by_one(data: bytes, count: int) -> tuple[list[list[tuple[int, int]]], int]:
    """Decode weights byte by byte, as the page tells it; return also how many vertices are whole."""
    vertices: list[list[tuple[int, int]]] = []
    at = 0
    for _ in range(count):
        pairs: list[tuple[int, int]] = []
        while len(pairs) < 4:
            if at >= len(data):
                return vertices, len(vertices)
            if data[at] == 255:
                at += 1
                break
            if at + 3 > len(data):
                return vertices, len(vertices)
            pairs.append((data[at], data[at + 1] | data[at + 2] << 8))
            at += 3
        vertices.append(pairs)
    return vertices, count


@settings(max_examples=300)
@given(st.lists(st.lists(INFLUENCE, max_size=4), max_size=60), st.integers(0, 30), st.binary(max_size=8))
def test_weights_as_decoded_one_by_one(vertices: list[list[tuple[int, int]]], cut: int, more: bytes) -> None:
    data = sl.influences(*vertices)
    data = (data[: len(data) - cut] if cut < 20 else data) + more
    oddities: list[str] = []
    joints, values, counts = level_block.decode_weights(data, len(vertices), Report(oddities))
    wanted, whole = one_by_one(data, len(vertices))
    for number in range(len(vertices)):
        pairs = [pair for pair in wanted[number] if pair[1]] if number < whole else []
        held = list(zip(joints[number].tolist(), values[number].tolist(), strict=True))
        assert held == pairs + [(0, 0)] * (4 - len(pairs))
        assert counts[number] == len(pairs)
    if whole < len(vertices):
        assert f"{len(vertices) - whole:,} of {len(vertices):,}" in oddities[0]
    elif not more and cut in (0, *range(20, 31)):
        assert oddities == []


@given(st.lists(st.lists(st.tuples(st.integers(0, 254), st.integers(1, 65535)), max_size=4), max_size=60))
def test_weights_are_written_as_they_were(vertices: list[list[tuple[int, int]]]) -> None:
    data = sl.influences(*vertices)
    oddities: list[str] = []
    joints, values, counts = level_block.decode_weights(data, len(vertices), Report(oddities))
    assert oddities == []
    assert level_block.encode_weights(joints, values, counts) == data


def test_bytes_left_over_behind_the_weights_are_said() -> None:
    (_,), warnings = faces(sl.square(Weights=sl.influences(*[[(0, 65535)]] * 4) + b"abc"))
    assert warnings == ["High, face 1: 3 bytes are left over after the weights"]
    (face,), warnings = faces(sl.square(Weights=sl.influences([(0, 65535)], [(1, 65535)])))
    assert warnings == ["High, face 1: the weights end early, 2 of 4 vertices have none"]
    assert face.influences is not None and face.influences.tolist() == [1, 1, 0, 0]


# --- quantised values ------------------------------------------------------------------------------------------------


def test_values_are_decoded_in_single_precision() -> None:
    domain = np.array([[-0.34610295, 0.1], [0.5000001, 0.7]], np.float32)
    steps = np.arange(65536, dtype=np.uint16).repeat(2).reshape(-1, 2)
    found = dequantise(steps, domain)
    assert found.dtype == np.float32
    u = steps.astype(np.float32) / np.float32(65535)
    assert (found == u * (domain[1] - domain[0]) + domain[0]).all()
    assert (quantise(found, domain) == steps).all()


def test_normals_are_stable() -> None:
    steps = np.arange(65535, dtype=np.uint16)[:, None].repeat(3, axis=1)
    assert (quantise_normals(dequantise_normals(steps)) == steps).all()
    assert quantise_normals(np.array([[-2.0, 0, 1], [np.nan, 5, -1]], np.float32)).tolist() == [
        [0, 32768, 65535],
        [0, 65535, 0],
    ]


def test_rounded_to_nearest_and_clamped() -> None:
    domain = [[0.0], [65535.0]]
    values = [[0.4], [0.6], [7.5], [-3], [65535], [70000], [np.nan], [np.inf], [-np.inf]]
    assert quantise(values, domain)[:, 0].tolist() == [0, 1, 8, 0, 65535, 65535, 0, 65535, 0]
    assert quantise([[5.0], [9.0]], [[5.0], [5.0]]).tolist() == [[0], [0]]
    assert dequantise(np.array([[0], [9]], np.uint16), [[5.0], [5.0]]).tolist() == [[5], [5]]


def test_bounds_are_single_precision() -> None:
    found = bounds(np.array([[0.1, 2, 3], [0.3, 1, 5]]))
    assert found.tolist() == [[float(np.float32(0.1)), 1, 3], [float(np.float32(0.3)), 2, 5]]
    assert bounds(np.empty((0, 3))).tolist() == [[0, 0, 0]] * 2


# --- the rig ---------------------------------------------------------------------------------------------------------


def test_a_rig_in_arrays() -> None:
    alt = [sl.reals(*sl.IDENTITY[:12], 0, 0.1, 1, 1), sl.reals(*sl.IDENTITY)]
    value = sl.skin(alt_inverse_bind_matrix=alt, pelvis_offset=0.5, lock_scale_if_joint_position=True)
    warnings: list[str] = []
    skin = skin_of(value, Report(warnings))
    assert warnings == []
    assert skin is not None and skin.alt_inverse_bind is not None
    assert skin.joint_names == ["mPelvis", "mTorso"]
    assert skin.inverse_bind.shape == (2, 16)
    assert skin.alt_inverse_bind[0, 12:15].tolist() == [0, 0.1, 1]
    assert (skin.pelvis_offset, skin.lock_scale, skin.usable) == (0.5, True, None)
    again = skin_of(block_of(skin), Report(warnings))
    assert again is not None and again.alt_inverse_bind is not None
    assert np.allclose(again.alt_inverse_bind, skin.alt_inverse_bind, rtol=1e-7)


def matrix(**places: float) -> list[float]:
    """Return the identity with other numbers: ``_12`` is element 12."""
    return [float(places.get(f"_{number}", value)) for number, value in enumerate(sl.IDENTITY)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"joint_names": None}, "names of its joints"),
        ({"joint_names": []}, "names of its joints"),
        ({"joint_names": ["mPelvis", 5]}, "names of its joints"),
        ({"inverse_bind_matrix": None}, "no bind matrices for 2 joints"),
        ({"inverse_bind_matrix": [matrix()]}, "1 bind matrices for 2 joints"),
        ({"inverse_bind_matrix": [matrix(), matrix()[:15]]}, "no bind matrices"),
        ({"bind_shape_matrix": None}, "bind shape"),
        ({"bind_shape_matrix": matrix(_0=float("nan"))}, "bind shape"),
        ({"bind_shape_matrix": matrix(_0=0)}, "bind shape"),
        ({"inverse_bind_matrix": [matrix(_5=0), matrix(_12=float("inf"))]}, "of no joint"),
    ],
)
def test_rigs_that_are_left_out(changes: dict[str, Any], said: str) -> None:
    warnings: list[str] = []
    assert skin_of(sl.skin(**changes), Report(warnings)) is None
    assert len(warnings) == 1 and said in warnings[0]


@pytest.mark.parametrize(
    "broken", [matrix(_12=float("nan")), matrix(_5=0), matrix(_4=1, _5=0), matrix(_3=0.5), matrix(_13=1e39)]
)
def test_joints_that_are_left_out(broken: list[float]) -> None:
    warnings: list[str] = []
    skin = skin_of(sl.skin(inverse_bind_matrix=[broken, matrix(_14=-1)]), Report(warnings))
    assert skin is not None and skin.usable is not None
    assert skin.usable.tolist() == [False, True]
    assert skin.inverse_bind[0].tolist() == sl.IDENTITY
    assert skin.inverse_bind[1, 14] == -1
    assert len(warnings) == 1 and "'mPelvis'" in warnings[0]


def test_rigs_in_other_units_are_kept() -> None:
    small = matrix(_0=1e-3, _5=1e-3, _10=1e-3)
    skin = skin_of(
        sl.skin(inverse_bind_matrix=[small, small], bind_shape_matrix=matrix(_0=100, _5=100, _10=0.01)), Report()
    )
    assert skin is not None and skin.usable is None


@pytest.mark.parametrize("alt", [[matrix()], [matrix(), matrix(_0=float("nan"))], 5, None])
def test_overrides_that_do_not_fit_are_ignored(alt: Any) -> None:
    warnings: list[str] = []
    value = {**sl.skin(), "alt_inverse_bind_matrix": alt, "pelvis_offset": 0.5}
    skin = skin_of(value, Report(warnings))
    assert skin is not None and skin.alt_inverse_bind is None
    assert skin.pelvis_offset == 0
    assert len(warnings) == 1


# --- hulls -----------------------------------------------------------------------------------------------------------


def test_hulls_in_arrays() -> None:
    points = np.arange(3 * (4 + 256 + 5), dtype="<u2")
    value = sl.hulls(HullList=bytes((4, 0, 5)), Positions=points.tobytes())
    warnings: list[str] = []
    found = physics_block.hulls_of(value, Report(warnings))
    assert warnings == []
    assert [len(hull) for hull in found.hulls] == [4, 256, 5]
    assert (np.concatenate(found.hulls) == points.reshape(-1, 3)).all()
    assert found.base is not None and len(found.base) == 4
    assert found.domain.tolist() == [[-0.5, -0.5, 0], [0.5, 0.5, 0]]
    assert binary(physics_block.block_of(found)) == binary(value)


def test_hulls_without_points_or_with_too_many() -> None:
    warnings: list[str] = []
    found = physics_block.hulls_of(sl.hulls(HullList=bytes((4, 5)), Positions=bytes(6 * 8)), Report(warnings))
    assert [len(hull) for hull in found.hulls] == [4]
    assert "1 of 2 hulls" in warnings[0]
    found = physics_block.hulls_of(sl.hulls(HullList=bytes((4,)), Positions=bytes(6 * 8)), Report(warnings))
    assert [len(hull) for hull in found.hulls] == [4]
    assert "more points" in warnings[1]
    found = physics_block.hulls_of(sl.hulls(HullList=b"\x01" * 3000, Positions=bytes(6 * 3000)), Report(warnings))
    assert len(found.hulls) == 1024
    assert "left out" in warnings[2]


def test_hulls_that_are_not_there() -> None:
    warnings: list[str] = []
    assert physics_block.hulls_of(None, Report(warnings)).base is None
    assert warnings == []
    assert physics_block.hulls_of({"BoundingVerts": bytes(18)}, Report(warnings)).domain.tolist() == [
        [-0.5] * 3,
        [0.5] * 3,
    ]
    assert physics_block.hulls_of(sl.hulls(Min=sl.reals(0, float("nan"), 0)), Report(warnings)).base is None
    assert physics_block.hulls_of([5], Report(warnings)).base is None
    assert len(warnings) == 2


# --- facts -----------------------------------------------------------------------------------------------------------


def test_facts_of_an_asset() -> None:
    facts = SECOND_LIFE_MESH.facts(codec.read(sl.asset(WHOLE)))
    size = len(zlib.compress(binary([sl.square()]), 9))
    assert facts["lods"] == {
        level: {"triangles": 2, "vertices": 4, "bytes": size}
        for level in ("high_lod", "medium_lod", "low_lod", "lowest_lod")
    }
    assert facts["hulls"] == 0
    assert facts["download_weight"] == 0.06
    assert (facts["triangles"], facts["vertices"], facts["surfaces"], facts["bones"]) == (2, 4, 1, 2)
    assert facts["nodes"] == 6  # four levels, the physics mesh and the hull around everything


def test_the_size_for_the_download_weight() -> None:
    rng = np.random.default_rng(1)
    rows = {key: rng.bytes(width * 20_000) for key, width in (("Position", 6), ("Normal", 6), ("TexCoord0", 4))}
    big = sl.square(**rows)
    small = {level: [sl.square()] for level in ("lowest_lod", "low_lod", "medium_lod")}
    weights_of = {}
    for size in (1.0, 10.0):
        scaled = [{**big, "NormalizedScale": sl.reals(size, size, size)}]
        facts = SECOND_LIFE_MESH.facts(codec.read(sl.asset({**small, "high_lod": scaled})))
        weights_of[size] = facts["download_weight"]
    plain = SECOND_LIFE_MESH.facts(codec.read(sl.asset({**small, "high_lod": [big]})))["download_weight"]
    assert plain == pytest.approx(weights_of[1.0], rel=1e-3)
    assert weights_of[10.0] > 20 * plain
    rig = sl.skin(bind_shape_matrix=matrix(_0=0, _1=10, _4=10, _5=0, _10=10))
    rigged = SECOND_LIFE_MESH.facts(codec.read(sl.asset({**small, "high_lod": [big], "skin": rig})))
    assert rigged["download_weight"] == pytest.approx(weights_of[10.0], rel=1e-3)


@pytest.mark.parametrize("joint", ["mTorso", "BELLY", "unknown"])
def test_the_size_of_a_rig_in_centimetres(joint: str) -> None:
    """Only the product of bind shape and inverse bind is in metres; a joint may be turned, and one may be wrong."""
    shape = np.diag((200.0, 50.0, 100.0, 1.0))
    turn = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1.0]])
    to_metres = np.diag((0.01, 0.01, 0.01, 1.0))
    inverses = [to_metres, to_metres @ turn, to_metres]
    if joint == "BELLY":  # a collision volume of 9 × 13 × 15 cm, turned by 8° about y
        cos, sin = np.cos(np.radians(8)), np.sin(np.radians(8))
        back = np.array([[cos, 0, -sin, 0], [0, 1, 0, 0], [sin, 0, cos, 0], [0, 0, 0, 1]])
        inverses[2] = to_metres @ np.diag((1 / 0.09, 1 / 0.13, 1 / 0.15, 1.0)) @ back
    if joint == "unknown":
        inverses[2] = np.identity(4)
    rig = sl.skin(
        ["mPelvis", "mChest", joint],
        bind_shape_matrix=sl.reals(*shape.T.reshape(16)),
        inverse_bind_matrix=[sl.reals(*inverse.T.reshape(16)) for inverse in inverses],
    )
    asset = codec.read(sl.asset({**FOUR_LEVELS, "skin": rig}))
    assert decode_blocks(asset).size == pytest.approx((2.0, 0.5, 1.0), rel=1e-3)


def test_a_damaged_level_is_one_error() -> None:
    level = struct.pack(">I", 1)
    data = sl.asset(FOUR_LEVELS, stored={"low_lod": zlib.compress(b"{" + level + b"k\0\0\0\x01a!}", 9)})
    with pytest.raises(FormatError, match="not a list of faces"):
        SECOND_LIFE_MESH.facts(codec.read(data))
