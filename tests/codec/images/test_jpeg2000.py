"""JPEG 2000 streams that are not trusted: which ones may be decoded, and why others must not."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from meshferry.io_formats.encodings import jpeg2000

EIGHT = (7, 1, 1)


def stream(
    *,
    size: tuple[int, int] = (64, 32),
    offset: tuple[int, int] = (0, 0),
    tile: tuple[int, int] = (64, 32),
    tile_offset: tuple[int, int] = (0, 0),
    components: tuple[tuple[int, int, int], ...] = (EIGHT,) * 3,
    segments: bytes = b"",
    parts: tuple[tuple[int, int | None], ...] = ((0, None),),
    end: bytes = b"\xff\xd9",
    stated: int | None = None,
) -> bytes:
    """Return a stream of markers and lengths; ``parts`` are tile numbers and stated sizes (None: the true ones)."""
    described = b"".join(map(bytes, components))
    count = len(components) if stated is None else stated
    numbers = struct.pack(">HHIIIIIIIIH", 38 + len(described), 0, *size, *offset, *tile, *tile_offset, count)
    data = b"\xff\x4f\xff\x51" + numbers + described + segments
    content = b"\xff\x93" + b"coded data"
    lengths = [(number, 12 + len(content) if said is None else said) for number, said in parts]
    tiles = [b"\xff\x90" + struct.pack(">HHIBB", 10, number, length, 0, 1) + content for number, length in lengths]
    return data + b"".join(tiles) + end


SEGMENTS = b"\xff\x52" + struct.pack(">H", 12) + bytes(10) + b"\xff\x64" + struct.pack(">H", 7) + b"words"


@pytest.mark.parametrize("count", [1, 3, 4, 5])
def test_streams_of_usual_components_are_accepted(count: int) -> None:
    data = stream(components=(EIGHT,) * count, segments=SEGMENTS)
    assert jpeg2000.examine(data) == jpeg2000.Jpeg2000Info(64, 32, count, data)
    assert jpeg2000.examine(data + b"bytes after the end") != ""


def test_streams_may_have_tiles_and_parts_of_them() -> None:
    parts = tuple((number, None) for number in (0, 1, 2, 3, 0, 3))
    found = jpeg2000.examine(stream(tile=(32, 16), parts=parts))
    assert isinstance(found, jpeg2000.Jpeg2000Info)
    assert isinstance(jpeg2000.examine(stream(parts=((0, 0),))), jpeg2000.Jpeg2000Info)  # 0: up to the end
    assert isinstance(
        jpeg2000.examine(stream(size=(4096, 1), tile=(4, 1), parts=tuple((n, None) for n in range(1024)))),
        jpeg2000.Jpeg2000Info,
    )


def test_streams_come_out_of_their_containers() -> None:
    data = stream()
    boxed = b"\0\0\0\x0cjP  \r\n\x87\n" + struct.pack(">I4s", 8 + len(data), b"jp2c") + data
    assert jpeg2000.examine(boxed) == jpeg2000.examine(data)
    assert jpeg2000.examine(boxed[:-1]) == "it is not JPEG 2000, or is cut off"


def test_two_components_depend_on_the_caller() -> None:
    data = stream(components=(EIGHT,) * 2)
    assert jpeg2000.examine(data) == "it has 2 colour components"
    found = jpeg2000.examine(data, two_components=True)
    assert isinstance(found, jpeg2000.Jpeg2000Info) and found.components == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"components": ()}, "it has 0 colour components"),
        ({"components": (EIGHT,) * 6}, "it has 6 colour components"),
        ({"stated": 4}, "its header is damaged"),
        ({"stated": 16384}, "its header is damaged"),
        ({"components": (EIGHT, EIGHT, EIGHT, (7, 2, 2))}, "8 bits for every pixel"),
        ({"components": (EIGHT, EIGHT, (0x87, 1, 1))}, "8 bits for every pixel"),
        ({"components": ((15, 1, 1),)}, "8 bits for every pixel"),
        ({"components": ((7, 0, 1),)}, "8 bits for every pixel"),
        ({"size": (4097, 32)}, "4,097 x 32 pixels"),
        ({"size": (64, 2**32 - 1)}, "4,294,967,295 pixels"),
        ({"size": (0, 32)}, "0 x 32 pixels"),
        ({"offset": (1, 0)}, "origin"),
        ({"offset": (0, 31)}, "origin"),
        ({"tile_offset": (0, 1)}, "origin"),
        ({"tile": (2**31 - 1, 32)}, "2,147,483,647 x 32 pixels"),
        ({"tile": (65, 32)}, "65 x 32"),
        ({"tile": (64, 0)}, "64 x 0"),
        ({"tile": (1, 1)}, "2,048 tiles"),
        ({"segments": b"\xff\x52\0\1"}, "its header is damaged"),
        ({"segments": b"\xff\x52\xff\xff"}, "cut off"),
        ({"segments": b"word"}, "its header is damaged"),
        ({"segments": b"\xff\x64\0\2" * 20_000}, "cut off"),
        ({"parts": ()}, "cut off"),
        ({"parts": ((1, None),)}, "a tile is damaged"),
        ({"parts": ((0, 11),)}, "a tile is damaged"),
        ({"parts": ((0, 53),)}, "cut off"),
        ({"parts": ((0, 2**32 - 1),)}, "cut off"),
        ({"parts": ((0, None),) * 256}, "cut off"),
        ({"tile": (32, 32), "parts": ((0, None),)}, "cut off"),
        ({"tile": (32, 32), "parts": ((0, None), (1, 50)), "end": b""}, "cut off"),
        ({"tile": (32, 32), "parts": ((0, 30),), "end": b""}, "cut off"),
        ({"parts": ((0, 0),), "end": b""}, "cut off"),
    ],
)
def test_streams_that_must_not_be_decoded_have_a_reason(given: dict[str, Any], said: str) -> None:
    found = jpeg2000.examine(stream(**given))
    assert isinstance(found, str) and said in found


@pytest.mark.parametrize("parts", [((0, None),), ((1, None), (0, None))])
def test_streams_are_completed_from_half_of_their_last_tile_part(parts: tuple[tuple[int, None], ...]) -> None:
    data = stream(segments=SEGMENTS, tile=(64 // len(parts), 32), parts=parts)
    for length in range(len(data)):
        found = jpeg2000.examine(data[:length])
        if length < len(data) - 2 - 12:
            assert isinstance(found, str), length
        else:
            assert isinstance(found, jpeg2000.Jpeg2000Info)
            assert found.stream == data[: min(length, len(data) - 2)].ljust(len(data) - 2, b"\0") + b"\xff\xd9"
    assert jpeg2000.examine(b"") == "it is empty"
    assert jpeg2000.examine(b"\x89PNG") == "it is not JPEG 2000, or is cut off"


def test_streams_are_completed_within_the_size_of_their_pixels() -> None:
    """The last tile part must be the last of its tile, and must not claim more than its pixels and some headers."""
    most = 64 * 32 * 3 + 2**16
    start = len(stream()) - 2 - 24
    for stated, is_read in ((most - start, True), (most - start + 1, False)):
        data = stream(parts=((0, stated),), end=b"").ljust(start + (stated + 1) // 2, b"x")
        assert isinstance(jpeg2000.examine(data), jpeg2000.Jpeg2000Info) is is_read
    first_of_two = stream()[: start + 11] + b"\2" + stream()[start + 12 : -4]
    assert jpeg2000.examine(first_of_two) == "it is cut off"


def test_endless_markers_end_soon() -> None:
    start = time.process_time()
    for many in (b"\xff\x64\0\2" * 1_000_000, b"\xff\x90" * 1_000_000):
        assert isinstance(jpeg2000.examine(stream(segments=many)), str)
    tiles = stream(tile=(2, 1), parts=((0, None),) * 300_000)
    assert jpeg2000.examine(tiles) == "it is cut off"
    assert time.process_time() - start < 1


PICTURES = {
    "region.oar": set(),
    "hostile/j2c_two_components.oar": {"it has 2 colour components"},
    "hostile/j2c_subsampled_alpha.oar": {"its components do not all have 8 bits for every pixel"},
    "hostile/j2c_huge_tile.oar": {"its tiles have 2,147,483,647 x 16 pixels, the picture 16 x 16"},
    "hostile/j2c_truncated.oar": {"it is cut off"},
    "hostile/j2c_empty.oar": {"it is empty"},
}
"""Archives of the samples, and the reasons why pictures in them must not be decoded."""


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_samples(samples: Path, name: str) -> None:
    path = samples / "opensim_archives" / name
    if not path.is_file():
        pytest.skip(f"no {path}")
    found = []
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes()))) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.name.endswith(".jp2") else None
            if content is not None:
                found.append(jpeg2000.examine(content.read()))
    assert {text for text in found if isinstance(text, str)} == PICTURES[name]
    assert any(isinstance(picture, jpeg2000.Jpeg2000Info) for picture in found)
