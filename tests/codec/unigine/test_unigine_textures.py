"""Textures: the largest picture of a .texture file."""

from __future__ import annotations

import struct
import zlib

import pytest
import texture_oracle as oracle
from load_package import SAMPLES
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.encodings.dds import Layout
from meshferry.io_formats.unigine.project import project_textures
from python_steps import python_steps

FOLDER = SAMPLES / "unigine_scenes"
MAGICS = (b"tx10", b"tx11")


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("code", sorted(oracle.CODES))
def test_the_largest_picture_is_read(magic: bytes, code: int) -> None:
    size = oracle.size(code, 9, 5)
    pixels = (bytes(range(1, 252)) * 9)[:size]
    names = {0: "R8", 1: "RG8", 2: "RGB8", 3: "RGBA8", 21: "BC1", 22: "BC2", 23: "BC3", 24: "BC4", 25: "BC5"}
    for data in (
        oracle.texture(code, 9, 5, pixels, magic=magic, compression=0),
        oracle.texture(code, 9, 5, oracle.block(pixels) + oracle.block(b"smaller"), magic=magic, mipmaps=2),
        oracle.texture(code, 9, 5, oracle.block(pixels) * 6, magic=magic, kind=2),
    ):
        picture = project_textures.read_picture(data)
        assert (picture.layout, picture.width, picture.height) == (Layout(names[code]), 9, 5)
        assert bytes(picture.pixels) == pixels


@pytest.mark.parametrize("magic", MAGICS)
def test_compressed_pixels_are_decoded(magic: bytes) -> None:
    """A literal, then a copy of 63 bytes from 1 back, for 64 pixels."""
    data = oracle.texture(0, 8, 8, oracle.block(b"\x1fz\x01\x00\x2c\x00"), magic=magic)
    assert bytes(project_textures.read_picture(data).pixels) == b"z" * 64


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut off"),
        (b"tx12" + bytes(60), "tx10 or tx11"),
        (b"tx11" + bytes(11), "cut off"),
        (oracle.texture(21, 4, 4, oracle.block(bytes(8)), kind=1, depth=4), "volume"),
        (oracle.texture(21, 4, 4, oracle.block(bytes(8)), kind=9), "type of texture"),
        (oracle.texture(11, 4, 4, oracle.block(bytes(128))), r"RGBA16F\) is not supported"),
        (oracle.texture(99, 4, 4, oracle.block(bytes(128))), r"99\) is not supported"),
        (oracle.texture(21, 0, 4, oracle.block(bytes(8))), "0 x 4 pixels"),
        (oracle.texture(3, 2**31 - 1, 4, b"", magic=b"tx10"), "1 to 16,384"),
        (oracle.texture(3, -4, 4, b"", magic=b"tx10"), "1 to 16,384"),
        (oracle.texture(21, 4, 4, oracle.block(bytes(8))[:-1]), "cut off"),
        (oracle.texture(21, 4, 4, struct.pack("<q", -1)), "cannot be decoded"),
        (oracle.texture(3, 16_384, 16_384, oracle.block(bytes(99))), "99 bytes cannot be decoded to the 1,073,741,824"),
        (oracle.texture(0, 8, 8, oracle.block(b"\x1fz\x01\x00\x2d\x00")), "compressed data is damaged"),
        (oracle.texture(0, 8, 8, oracle.block(zlib.compress(bytes(64))), compression=1), r"compression \(1\)"),
    ],
)
def test_damaged_files_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        project_textures.read_picture(data)
    if "supported" in reason or "volume" in reason:
        with pytest.raises(UnsupportedFormatError):
            project_textures.read_picture(data)


def test_the_cost_of_plain_pixels_does_not_depend_on_their_number() -> None:
    data = oracle.texture(21, 2048, 2048, oracle.block(bytes(2048 * 1024)))
    assert python_steps(lambda: project_textures.read_picture(data)) < 300
    assert project_textures.read_picture(data).pixels.obj is data


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is absent")
def test_real_textures() -> None:
    found = sorted(FOLDER.rglob("*.texture"))
    assert len(found) >= 5
    for path in found:
        data = path.read_bytes()
        _code, width, height, pixels = oracle.pixels_of_texture(data)
        picture = project_textures.read_picture(data)
        assert (picture.width, picture.height) == (width, height)
        assert bytes(picture.pixels) == pixels
