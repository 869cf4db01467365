"""DDS files: what is taken from those of others, and the one form that is written."""

from __future__ import annotations

import struct

import pytest
import texture_oracle as oracle
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.encodings import dds
from meshferry.io_formats.encodings.dds import Layout, Picture

RGBA = (0xFF, 0xFF00, 0xFF0000, 0xFF000000)
BGR = (0xFF0000, 0xFF00, 0xFF, 0)


@pytest.mark.parametrize(
    ("layout", "size", "form"),
    [
        (Layout.BC1, 8 * 6, {"fourcc": b"DXT1"}),
        (Layout.BC2, 16 * 6, {"fourcc": b"DXT3"}),
        (Layout.BC3, 16 * 6, {"fourcc": b"DXT5"}),
        (Layout.BC3, 16 * 6, {"dx10": (78, 3)}),
        (Layout.BC4, 8 * 6, {"fourcc": b"ATI1"}),
        (Layout.BC5, 16 * 6, {"fourcc": b"BC5U"}),
        (Layout.BC7, 16 * 6, {"dx10": (98, 3)}),
        (Layout.R8, 9 * 5, {"bits": 8, "masks": (255, 0, 0, 0), "flags": 0x20000}),
        (Layout.RGB8, 9 * 5 * 3, {"bits": 24, "masks": (*RGBA[:3], 0)}),
        (Layout.RGBA8, 9 * 5 * 4, {"bits": 32, "masks": RGBA, "flags": 0x41}),
        (Layout.BGRX8, 9 * 5 * 4, {"bits": 32, "masks": BGR}),
        (Layout.BGR8, 9 * 5 * 3, {"bits": 24, "masks": BGR}),
    ],
)
def test_the_first_picture_is_taken(layout: Layout, size: int, form: dict) -> None:
    pixels = bytes(range(1, 1 + size % 256)) * (size // (size % 256) if size % 256 else 1)
    pixels = (pixels * 300)[:size]
    smaller = bytes(100)
    picture = dds.read(oracle.dds(9, 5, pixels + smaller, **form))
    assert (picture.layout, picture.width, picture.height) == (layout, 9, 5)
    assert bytes(picture.pixels) == pixels
    with pytest.raises(FormatError, match="cut off"):
        dds.read(oracle.dds(9, 5, pixels[:-1], **form))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a DDS file"),
        (b"DDS " + bytes(200), "header of the DDS file is damaged"),
        (oracle.dds(4, 4, bytes(99), fourcc=b"DXT1", caps2=0x200000), "volume"),
        (oracle.dds(4, 4, bytes(99), dx10=(71, 4)), "volume"),
        (oracle.dds(4, 4, b"", dx10=(71, 3))[:-1], "cut off"),
        (oracle.dds(4, 4, bytes(999), fourcc=struct.pack("<I", 113)), r"code 113\) is not supported"),
        (oracle.dds(4, 4, bytes(999), dx10=(10, 3)), r"DXGI 10\) is not supported"),
        (oracle.dds(4, 4, bytes(999), bits=16, masks=(0xF800, 0x7E0, 0x1F, 0)), "16 bits with other masks"),
        (oracle.dds(0, 4, bytes(99), fourcc=b"DXT1"), "0 x 4 pixels"),
        (oracle.dds(4, 2**31, bytes(99), fourcc=b"DXT1"), "1 to 16,384"),
    ],
)
def test_what_cannot_be_shown_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        dds.read(data)
    assert isinstance(caught.value, UnsupportedFormatError) == (
        "volume" in reason or "other" in reason or "is not" in reason
    )


def test_one_plain_file_is_written() -> None:
    """Field by field: no mipmaps, no cube, no volume."""
    pixels = bytes(range(16)) * 6
    assert dds.write(Picture(Layout.BC5, 9, 5, pixels)) == (
        b"DDS " + struct.pack("<7I", 124, 0x81007, 5, 9, 96, 0, 0) + bytes(44)
        + struct.pack("<2I4s5I", 32, 4, b"ATI2", 0, 0, 0, 0, 0) + struct.pack("<I", 0x1000) + bytes(16) + pixels
    )  # fmt: skip
    assert dds.write(Picture(Layout.RGBA8, 2, 1, b"12345678"))[76:108] == struct.pack(
        "<2I4s5I", 32, 0x41, bytes(4), 32, *RGBA
    )
