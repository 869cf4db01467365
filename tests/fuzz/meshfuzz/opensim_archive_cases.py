"""Hostile archives of OpenSim: whole ones with other members, texts, numbers, binary values and headers."""

from __future__ import annotations

import base64
import gzip
import random
import re
import struct
from collections.abc import Callable

from . import opensim_archive_seeds as seeds
from . import raw

Files = dict[str, bytes]

_WORDS = (
    *("0", "-0", "1", "-1", "2", "5", "9", "127", "128", "255", "256", "65535", "65536", "-100", "2147483648", "0.5"),
    *("1e9", "1e-9", "100000.1", "1e39", "1e400", "NaN", "-Infinity", "inf", "1_0", "\u0663", "0x10", "1,5", "", " "),
    *("9" * 5000, "true", "false", "Object", "x" * 300, "&#x1;", "&lt;", "<a/>", "256,256", "100000,1", "../x"),
)
_TEXT = re.compile(rb"(?<=>)[^<>]*(?=</)|(?<=\")[^\"<>]*(?=\")")
_TAG = re.compile(rb"</?[A-Za-z]+")
_TAGS = (
    *(b"SceneObjectGroup", b"SceneObjectPart", b"CoalescedObject", b"OtherParts", b"Shape", b"Scale", b"X", b"UUID"),
    *(b"RotationOffset", b"GroupPosition", b"TaskInventory", b"region", b"row", b"map", b"key", b"a"),
)
_BASE64 = re.compile(rb"(?<=>)[A-Za-z0-9+/]{8,}=*(?=</)")
_DOCUMENT_TYPE = b'<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;&b;&b;">]>'
_NAMES = (
    *("archive.xml", "./archive.xml", "objects/../../x.xml", "/objects/x.xml", "C:\\x.xml", "objects/", "objects/a"),
    *(
        "regions/1_1_A/objects/x.xml",
        "regions//objects/x.xml",
        "regions/999999_999999_A/objects/x.xml",
        "settings/b.xml",
    ),
    *("terrains/b.r32", "landdata/x.xml", "inventory/x.xml", "inventory/" + "a/" * 60 + "x.xml", "objects/\udcff.xml"),
    *(f"assets/{seeds.OBJECT}_object.xml", f"assets/{seeds.MESH.upper()}_mesh.llmesh", "assets/x_texture.jp2", ""),
    *("objects/" + "n" * 300 + ".xml", "objects/Object_1-2-3__x.xml", "inventory/&#47;&amp;__x/y.xml"),
)
_KINDS = tuple(bytes([kind]) for kind in b"0000L1256xgSKVD7")
_FILES = (seeds.region_files(), seeds.region_files(), seeds.regions_files(), seeds.inventory_files())


def make(files: Files, rng: random.Random) -> tuple[bytes, str]:
    """Return a file and how it was made."""
    choice = rng.random()
    if files and choice < 0.1:
        name = rng.choice(list(files))
        return raw.mutate(files[name], rng), f"raw changes to {name}"
    members = [[name, data] for name, data in rng.choice(_FILES).items()]
    how = "unchanged"
    if choice < 0.85:
        how = "changed files"
        for _ in range(rng.choice((1, 1, 2, 5))):
            member = rng.choice(members)
            member[1] = rng.choice(_CHANGES)(member[1], rng)
    if rng.random() < 0.25:
        how += ", other files"
        for _ in range(rng.choice((1, 1, 3))):
            rng.choice(_ARRANGEMENTS)(members, rng)
    data = (
        _with_headers(members, rng) if choice > 0.92 else seeds.opensim_tar(*((name, data) for name, data in members))
    )
    if 0.85 <= choice < 0.92:
        data, how = raw.mutate(data, rng), how + ", raw changes"
    return _wrapped(data, rng), how


def _wrapped(data: bytes, rng: random.Random) -> bytes:
    """Return a tar file as it is, packed, packed in pieces, or with damage."""
    choice = rng.random()
    if choice < 0.1:
        return data
    if choice < 0.15:
        length = rng.choice((1000, 5000))
        return b"".join(gzip.compress(data[start : start + length], 1) for start in range(0, len(data), length))
    packed = gzip.compress(data, 1, mtime=0)
    return raw.mutate(packed, rng) if choice < 0.25 else packed


def _text(data: bytes, rng: random.Random) -> bytes:
    """Replace texts of elements and attributes."""
    count = len(_TEXT.findall(data))
    chosen = {rng.randrange(max(count, 1)) for _ in range(rng.choice((1, 1, 3, 20)))}
    numbers = iter(range(count))
    return _TEXT.sub(lambda found: rng.choice(_WORDS).encode() if next(numbers) in chosen else found[0], data)


def _tag(data: bytes, rng: random.Random) -> bytes:
    """Rename tags, so that elements are elsewhere or do not end."""
    old, new = rng.choice(_TAGS), rng.choice(_TAGS)
    if rng.random() < 0.5:
        return data.replace(b"<" + old, b"<" + new).replace(b"</" + old, b"</" + new)
    found = list(_TAG.finditer(data))
    if not found:
        return data
    place = rng.choice(found)
    return data[: place.start() + 1] + new + data[place.end() :]


def _element(data: bytes, rng: random.Random) -> bytes:
    """Repeat, remove or nest a stretch between two tags."""
    ends = [found.start() for found in _TAG.finditer(data)]
    if len(ends) < 2:
        return data
    start, end = sorted(rng.choices(ends, k=2))
    chunk = data[start:end]
    change = rng.randrange(4)
    if change == 3:
        depth = rng.choice((10, 300, 1200))
        return data[:start] + b"<a>" * depth + b"</a>" * depth + data[start:]
    return data[:start] + chunk * (0, 2, rng.choice((5, 200)) if len(chunk) < 500 else 3)[change] + data[end:]


def _binary(data: bytes, rng: random.Random) -> bytes:
    """Change binary values: texture entries and extra parameters."""
    found = list(_BASE64.finditer(data))
    if not found:
        return _text(data, rng)
    place = rng.choice(found)
    change = rng.random()
    if change < 0.2:
        text = raw.mutate(place[0], rng)
    elif change < 0.6:
        letters = place[0].rstrip(b"=")
        letters = letters[: len(letters) // 4 * 4]
        text = base64.b64encode(raw.mutate(base64.b64decode(letters), rng))
    elif change < 0.8:
        properties = []
        for size in seeds.PROPERTY_SIZES:
            masks = [rng.getrandbits(rng.choice((4, 20, 64, 90))) or 1 for _ in range(rng.choice((0, 1, 3)))]
            properties.append((rng.randbytes(size), [(mask, rng.randbytes(size)) for mask in masks]))
        text = base64.b64encode(seeds.texture_entry(properties))
    else:
        kinds = (0x10, 0x20, 0x30, 0x40, 0x60, 0x70, 0x80, 0x90, 0xFFFF)
        params = [(rng.choice(kinds), rng.randbytes(rng.choice((0, 1, 16, 17, 28)))) for _ in range(rng.randrange(5))]
        text = base64.b64encode(seeds.extra(*params))
    return data[: place.start()] + re.sub(rb"[<>&]", b"A", text) + data[place.end() :]


def _prolog(data: bytes, rng: random.Random) -> bytes:
    start = (
        *(b'<?xml version="1.0" encoding="utf-16"?>', b'<?xml version="1.0" encoding="x"?>', b"\xef\xbb\xbf"),
        *(_DOCUMENT_TYPE, b"<!-- x -->", b"\x00", b"&a;"),
    )
    return rng.choice(start) + data


def _picture(data: bytes, rng: random.Random) -> bytes:
    """Return another picture, mesh or material."""
    numbers = (0, 1, 2, 63, 64, 4096, 4097, 65536, 2**31 - 1, 2**32 - 1)
    made = seeds.picture(rng.choice((8, 64, 4096)), rng.choice((1, 64, 512)), rng.choice((0, 1, 2, 3, 4, 5, 6)))
    if rng.random() < 0.5:
        at = rng.choice((8, 12, 16, 20, 24, 28, 32, 36))
        made = made[:at] + struct.pack(">I", rng.choice(numbers)) + made[at + 4 :]
    return rng.choice((made, raw.mutate(made, rng), seeds.material(rng.randrange(-1, 6), rng.randrange(-1, 300))))


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_text, _text, _text, _tag, _tag, _element, _element, _binary, _binary, _binary, _prolog, _picture),
    *(raw.mutate, raw.mutate, lambda data, rng: b"", lambda data, rng: rng.randbytes(40)),
)


def _rename(members: list[list], rng: random.Random) -> None:
    rng.choice(members)[0] = rng.choice(_NAMES)


def _repeat(members: list[list], rng: random.Random) -> None:
    members += [list(rng.choice(members)) for _ in range(rng.choice((1, 3, 30)))]


def _remove(members: list[list], rng: random.Random) -> None:
    if len(members) > 1:
        del members[rng.randrange(len(members))]


def _reorder(members: list[list], rng: random.Random) -> None:
    rng.shuffle(members)


_ARRANGEMENTS = (_rename, _rename, _repeat, _remove, _reorder)


def _with_headers(members: list[list], rng: random.Random) -> bytes:
    """Return a tar file in which the headers of some members claim something else."""
    chosen = {rng.randrange(len(members)) for _ in range(rng.choice((1, 1, 4)))}
    parts = []
    for number, (name, data) in enumerate(members):
        if number not in chosen:
            parts.append(seeds.opensim_tar((name, data))[:-1024])
            continue
        size = rng.choice(
            (None, b"%011o" % rng.choice((0, 1, 511, 2**20, 2**28, 2**33 - 1)), b"zz", b"\x80" + bytes(10))
        )
        size = rng.choice((size, b"\x80\0\0\x17\x48\x76\xe8\0\0\0\0", b"\xff" * 11))
        parts.append(seeds.v7_entry(name.encode("utf-8", "replace"), data, rng.choice(_KINDS), size))
        if rng.random() < 0.3:
            parts[-1] = seeds.v7_entry(b"x", b"%d path=%b\n" % (rng.randrange(40), b"objects/y.xml"), b"x") + parts[-1]
    return b"".join(parts) + bytes(rng.choice((0, 512, 1024, 5000)))
