"""Archives of OpenSim put together as its own writers do, without the code under test."""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from . import second_life_seeds

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
    return gzip.compress(opensim_tar(*entries), level, mtime=0)


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


def entry(pairs: Sequence[tuple[int, bytes]] = ()) -> bytes:
    """Return a texture entry of white faces, with further textures for the faces of masks."""
    defaults = (bytes(16), bytes(4), struct.pack("<f", 1), struct.pack("<f", 1))
    rest = [bytes(size) for size in PROPERTY_SIZES[len(defaults) :]]
    return texture_entry([(value, pairs if not index else ()) for index, value in enumerate((*defaults, *rest))])


def picture(width: int = 64, height: int = 64, components: int = 3) -> bytes:
    """Return a JPEG 2000 stream of sound lengths, the coded data of which is empty."""
    size = struct.pack(">HHIIIIIIIIH", 38 + 3 * components, 0, width, height, 0, 0, width, height, 0, 0, components)
    tile = b"\xff\x90" + struct.pack(">HHIBB", 10, 0, 14, 0, 1) + b"\xff\x93"
    return b"\xff\x4f\xff\x51" + size + b"\7\1\1" * components + tile + b"\xff\xd9"


def material(mode: int = 2, cutoff: int = 128) -> bytes:
    """Return an older material."""
    values = (
        f"<key>DiffuseAlphaMode</key><integer>{mode}</integer><key>AlphaMaskCutoff</key><integer>{cutoff}</integer>"
    )
    return f"<llsd><map>{values}<key>NormMap</key><uuid>{NULL}</uuid></map></llsd>".encode()


def sculpt(kind: int, asset: str) -> str:
    """Return the elements of a shape that is a sculpt or mesh."""
    return f"<SculptType>{kind}</SculptType><SculptTexture><UUID>{asset}</UUID></SculptTexture>"


def identity(number: int) -> str:
    """Return a UUID."""
    return f"0b0c0e6a-5f3e-4a0e-9d57-{number:012x}"


SETTINGS = (
    b"<RegionSettings><GroundTextures><Texture1>0b0c0e6a-5f3e-4a0e-9d57-000000000002</Texture1><ElevationLowSW>18"
    b"</ElevationLowSW></GroundTextures><Terrain><WaterHeight>20.5</WaterHeight></Terrain></RegionSettings>"
)
MESH, PICTURE, MATERIAL, OBJECT, COALESCED = map(identity, range(1, 6))


def assets() -> dict[str, bytes]:
    """Return the assets that the archives share, by name."""
    faces = [second_life_seeds.square(), second_life_seeds.ring(5)]
    levels = {level: faces for level in second_life_seeds.LEVELS}  # noqa: C420  (not changed)
    return {
        f"assets/{MESH}_mesh.llmesh": second_life_seeds.asset(levels),
        f"assets/{PICTURE}_texture.jp2": picture(),
        f"assets/{MATERIAL}_material.xml": material(),
    }


def objects() -> dict[str, bytes]:
    """Return objects by name: meshes, sculpts, prims and a tree."""
    script = "<TaskInventory><TaskInventoryItem><Type>10</Type></TaskInventoryItem></TaskInventory>"
    look = entry([(0b101, bytes.fromhex(PICTURE.replace("-", "")))])
    light = extra((0x20, bytes((255, 255, 0, 128)) + struct.pack("<3f", 10, 0, 0.75)), (0x10, bytes(16)))
    tree = "<PCode>255</PCode><State>3</State>"
    prim = "<ProfileCurve>1</ProfileCurve><PathCurve>16</PathCurve><ProfileHollow>27500</ProfileHollow>"
    return {
        "Shed_001-002-003__" + identity(20): linkset(
            part("Shed", shape=sculpt(5, MESH), entry=look, more=script),
            part("Door", is_root=False, shape=sculpt(0x41, PICTURE), entry=entry(), rotation=(0, 0, 0.6, 0.8)),
            part("Lamp", is_root=False, shape=prim, params=light, entry=look, size=(0.5, 2, 0.1)),
        ),
        "Tree/Old_001-002-003__" + identity(21): linkset(part("Tree", shape=tree)),
    }


def region_files() -> dict[str, bytes]:
    """Return the files of an archive with one region."""
    found = {"archive.xml": control(size="16,16")}
    found |= {f"objects/{name}.xml": data for name, data in objects().items()}
    found |= {"settings/Land.xml": SETTINGS, "terrains/Land.r32": struct.pack("<f", 21.5) * 256}
    return {**found, "landdata/parcel.xml": b"<LandData/>", **assets()}


def regions_files() -> dict[str, bytes]:
    """Return the files of an archive with two regions and a hole."""
    found = {"archive.xml": control("1.0", [["1_1_West", ""], [], ["", "2_3_East"]], size="16,16")}
    for folder in ("1_1_West", "2_3_East"):
        found |= {f"regions/{folder}/objects/{name}.xml": data for name, data in objects().items()}
    return {**found, "regions/2_3_East/settings/East.xml": SETTINGS, **assets()}


def inventory_files() -> dict[str, bytes]:
    """Return the files of an inventory: an object, two of them together, and another item."""
    shed, tree = (data.decode() for data in objects().values())
    offset = 'offsetx="1" offsety="2.5" offsetz="0"'
    together = f"<CoalescedObject><SceneObjectGroup {offset}>{shed}</SceneObjectGroup>"
    together += f"<SceneObjectGroup>{tree}</SceneObjectGroup></CoalescedObject>"
    folder = f"inventory/A &amp; B__{identity(30)}/"
    return {
        "archive.xml": control("0.3"),
        f"{folder}shed__{identity(31)}.xml": item("shed", OBJECT),
        f"{folder}C&#47;D__{identity(32)}/two__{identity(33)}.xml": item("two", COALESCED),
        f"inventory/shirt__{identity(34)}.xml": item("shirt", PICTURE, 5),
        f"assets/{OBJECT}_object.xml": shed.encode(),
        f"assets/{COALESCED}_object.xml": together.encode(),
        **assets(),
    }


FILES = {
    "region": packed(*region_files().items()),
    "regions": packed(*regions_files().items()),
    "inventory": packed(*inventory_files().items()),
}
"""Whole archives by name."""
