"""Archives of OpenSim, written as its own writers do, for tests: tar members, objects, texture entries.

Nothing here uses the package.
"""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

NULL = "00000000-0000-0000-0000-000000000000"


def v7_entry(name: bytes, data: bytes, kind: bytes = b"0", size: bytes | None = None) -> bytes:
    """Return a file as OpenSim's own writer puts it into a tar: no magic, one date for all, octal numbers."""
    header = bytearray(512)
    header[: len(name[:100])] = name[:100]
    header[100:107], header[108:115], header[116:123] = b"0000777", b"0000764", b"0000764"
    header[124:135] = (size or b"%011o" % len(data))[:11]
    header[136:147] = b"11017037332"
    header[156:157] = kind
    header[329:336] = header[337:344] = b"0000000"
    header[148:156] = b" " * 8
    header[148:155] = b"%06o\0" % sum(header)
    return bytes(header) + data + bytes(-len(data) % 512)


def opensim_tar(*entries: tuple[str, bytes]) -> bytes:
    """Return a tar of files, with GNU long names where they are needed, and with its end."""
    parts = []
    for name, data in entries:
        if len(name) > 100:
            parts.append(v7_entry(b"././@LongLink", name.encode("utf-8", "surrogateescape"), b"L"))
        parts.append(v7_entry(name.encode("utf-8", "surrogateescape"), data, b"5" if name.endswith("/") else b"0"))
    return b"".join(parts) + bytes(1024)


def packed(*entries: tuple[str, bytes], level: int = 1) -> bytes:
    """Return an archive of these files."""
    return gzip.compress(opensim_tar(*entries), level)


def control(version: str = "0.8", regions: Sequence[Sequence[str]] = (), size: str = "256,256") -> bytes:
    """Return a control file; ``regions`` has a row of folders for each row of regions, empty for holes."""
    major, _, minor = version.partition(".")
    inside = f"<region_info><size_in_meters>{size}</size_in_meters></region_info>"
    if regions:
        rows = ("".join(_region(folder, size) for folder in row) for row in regions)
        inside = f"<regions>{''.join(f'<row>{row}</row>' for row in rows)}</regions>"
    start = '<?xml version="1.0" encoding="utf-16"?>'
    return f'{start}<archive major_version="{major}" minor_version="{minor}">{inside}</archive>'.encode()


def _region(folder: str, size: str) -> str:
    return f"<region><dir>{folder}</dir><size_in_meters>{size}</size_in_meters></region>" if folder else "<region />"


def part(
    name: str = "Object",
    *,
    position: Iterable[object] = (1, 2, 3),
    rotation: Iterable[object] = (0, 0, 0, 1),
    size: Iterable[object] = (1, 1, 1),
    is_root: bool = True,
    shape: str = "",
    entry: bytes = b"",
    params: bytes = b"",
    more: str = "",
) -> str:
    """Return the XML of a part."""
    tag = "GroupPosition" if is_root else "OffsetPosition"
    encoded = base64.b64encode(entry).decode()
    return (
        f"<SceneObjectPart><UUID><UUID>{NULL}</UUID></UUID><Name>{escape(name)}</Name>"
        f"<{tag}>{_axes('XYZ', position)}</{tag}><RotationOffset>{_axes('XYZW', rotation)}</RotationOffset>"
        f"<Shape><TextureEntry>{encoded}</TextureEntry><ExtraParams>{base64.b64encode(params).decode()}</ExtraParams>"
        f"{shape}</Shape><Scale>{_axes('XYZ', size)}</Scale>{more}</SceneObjectPart>"
    )


def _axes(names: str, values: Iterable[object]) -> str:
    return "".join(f"<{name}>{value}</{name}>" for name, value in zip(names, values, strict=True))


def linkset(root: str, *others: str) -> bytes:
    """Return the XML of an object in a region."""
    return f"<SceneObjectGroup>{root}<OtherParts>{''.join(others)}</OtherParts></SceneObjectGroup>".encode()


def item(name: str, asset: str, kind: int = 6) -> bytes:
    """Return the XML of an item in an inventory."""
    return (
        f"<InventoryItem><Name>{escape(name)}</Name><AssetType>{kind}</AssetType><AssetID>{asset}</AssetID>"
        "</InventoryItem>"
    ).encode()


def extra(*params: tuple[int, bytes]) -> bytes:
    """Return extra parameters of these types and contents."""
    return bytes([len(params)]) + b"".join(struct.pack("<HI", kind, len(data)) + data for kind, data in params)


def mask_bytes(mask: int) -> bytes:
    """Return a face mask: groups of 7 bits, the highest first."""
    groups = [mask & 0x7F]
    while mask := mask >> 7:
        groups.append(mask & 0x7F | 0x80)
    return bytes(reversed(groups))


PROPERTY_SIZES = (16, 4, 4, 4, 2, 2, 2, 1, 1, 1, 16)
"""Bytes of the properties of a texture entry."""


def texture_entry(properties: Sequence[tuple[bytes, Sequence[tuple[int, bytes]]]]) -> bytes:
    """Return a texture entry: for each property its default, and masks with values."""
    texts = [default + b"".join(mask_bytes(mask) + value for mask, value in pairs) for default, pairs in properties]
    return b"\0".join(texts)
