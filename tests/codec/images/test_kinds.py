"""Image files are known by their content."""

from __future__ import annotations

import struct

import courtyard
import numpy as np
import pytest
from meshferry.io_formats.encodings import image_files
from meshferry.io_formats.encodings.image_files import extension_of, image_kind

PNG = courtyard.script().png(np.zeros((2, 2, 3), np.uint8))
TARGA = struct.pack("<3B5x2x2x2HBB", 0, 0, 2, 4, 4, 24, 0)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "PNG"),
        (PNG[:-12], ""),  # its end is missing
        (b"\xff\xd8\xff\xe0" + bytes(20), "JPEG"),
        (b"II*\0" + bytes(20), "TIFF"),
        (b"MM\0*" + bytes(20), "TIFF"),
        (b"v/1\x01" + bytes(20), "OpenEXR"),
        (b"#?RADIANCE\n", "Radiance HDR"),
        (b"8BPS\0\1", "PSD"),
        (TARGA, "Targa"),
        (TARGA[:-1], ""),
        (struct.pack("<3B5x2x2x2HBB", 0, 0, 2, 0, 4, 24, 0), ""),
        (struct.pack("<3B5x2x2x2HBB", 0, 0, 2, 4, 4, 7, 0), ""),
        (b"DDS " + bytes(124), ""),
        (b"version https://git-lfs.github.com/spec/v1\n", ""),
        (b"", ""),
    ],
)
def test_the_content_decides(data: bytes, kind: str) -> None:
    assert image_kind(data) == kind


def test_png_files_without_pixels_are_not_plain() -> None:
    assert image_files.is_plain(PNG)
    header, end = PNG[: PNG.index(b"IDAT") - 4], PNG[-12:]
    assert not image_files.is_plain(header + end)


def test_extensions_follow_the_content() -> None:
    assert [extension_of(data, ".tga") for data in (PNG, b"DDS |", b"BM12", b"?")] == [".png", ".dds", ".bmp", ".tga"]
    assert [extension_of(b"\xff\xd8\xff", given) for given in (".JPEG", ".png", "")] == [".JPEG", ".jpg", ".jpg"]
    assert extension_of(b"RIFF\0\0\0\0AVI LIST", ".avi") == ".avi"
    assert extension_of(bytes((0, 0, 2, *[0] * 9, 1, 0, 1, 0, 24, 0)), ".001") == ".tga"
