"""Hostile shape files of Second Life: whole ones with other numbers, lines and attributes, and raw changes."""

from __future__ import annotations

import random

from . import raw, second_life_shape_seeds

_IDS = ("1", "33", "34", "80", "105", "196", "198", "503", "678", "757", "796", "11001", "32", "1200", "5555")
_WORDS = (
    *("0", "-0", ".5", "-.25", "1", "2", "255", "256", "-1", "1e9", "1e39", "1e400", "-1e400", "nan", "-inf", "1_0"),
    *("0x10", "\u0663", "1.2.3", "", " ", "high", "9" * 5000, "4294967296", "0." + "3" * 400, "-1.#IND"),
)
_DOCUMENT_TYPE = '<!DOCTYPE a [<!ENTITY a "b">]>'
_ATTRIBUTES = ("id", "name", "display", "value", "u8", "type", "wearable", "group")
_LINES = (
    "",
    "\t",
    "type 0",
    "type 1",
    "parameters 2",
    "parameters -1",
    "textures 0",
    "textures 101",
    "}",
    "\0",
    "33 1",
)
_INSIDE = (
    *(
        "",
        "<!-- x -->",
        "<joint_offset name='mHead'/>",
        "<param/>",
        "<archetype><param id='33' value='1'/></archetype>",
    ),
    *("<param id='33' value='1'>" * 300 + "</param>" * 300, "&a;", "<![CDATA[<param id='33'/>]]>"),
)


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a file and how it was made."""
    choice = rng.random()
    if files and choice < 0.1:
        name = rng.choice(list(files))
        return raw.mutate(files[name], rng), f"raw changes to {name}"
    data = whole_body_part(rng) if rng.random() < 0.5 else whole_appearance(rng)
    if choice < 0.3:
        return raw.mutate(data, rng), "raw changes"
    if choice < 0.45:
        lines = data.split(b"\n")
        lines[rng.randrange(len(lines))] = rng.choice((*_LINES, *_INSIDE)).encode()
        return b"\n".join(lines), "another line"
    return data, "made values"


def whole_body_part(rng: random.Random) -> bytes:
    """Return a body part asset with a sound layout."""
    hostile = rng.random() < 0.4
    rows = [(rng.choice(_IDS), _word(rng, hostile=hostile)) for _ in range(rng.choice((0, 1, 5, 20, 1000)))]
    return rng.choice((b"", b"", b"\xef\xbb\xbf")) + second_life_shape_seeds.body_part(
        rows,
        version=rng.choice(("25", "-1", *_WORDS)) if hostile and rng.random() < 0.2 else rng.choice(("22", "22", "24")),
        kind=rng.choice(("1", "99", *_WORDS)) if hostile and rng.random() < 0.2 else rng.choice(("0", "0", "2", "6")),
        name=rng.choice(("Tall", "", "\u00e9\u4eba", "a\tb", "<&\x01>", "n" * 3000)),
        textures=("0 x",) * rng.choice((0, 0, 3, 100)),
        blank_lines=rng.choice((0, 0, 1, 500)),
        line_end=rng.choice(("\n", "\n", "\r\n", "\r" if hostile else "\n")),
        stated=rng.choice((None, None, None, 0, 10**9, -1)) if hostile else None,
    )


def whole_appearance(rng: random.Random) -> bytes:
    """Return an appearance export that is well-formed, unless something hostile is inside."""
    hostile = rng.random() < 0.4
    archetypes = []
    for _ in range(rng.choice((0, *(1,) * 10, 2, 3))):
        listed = []
        for _ in range(rng.choice((1, 5, 5, 20))):
            attributes = {name: _word(rng, hostile=hostile) for name in _ATTRIBUTES if rng.random() < 0.7}
            attributes |= {"u8": str(rng.randrange(256))} if rng.random() < 0.95 else {}
            attributes |= {"id": rng.choice(_IDS)} if not hostile or rng.random() < 0.95 else {}
            listed.append(attributes)
        archetypes.append(listed)
    start = '<?xml version="1.0" encoding="US-ASCII" standalone="yes"?>'
    data = second_life_shape_seeds.appearance(
        *archetypes,
        version=rng.choice(("1.0", "1.0", "2", "")),
        root=rng.choice(("", "", "", 'metaversion="1.0"', 'xmlns="x"' if hostile else "")),
        inside=rng.choice(_INSIDE) if hostile else "",
        start=rng.choice((start, start, "", "<?xml version='1.0'?>", _DOCUMENT_TYPE if hostile else "")),
    )
    if rng.random() < 0.1:
        return data.decode().replace("US-ASCII", "UTF-16").encode("utf-16")
    return data


def _word(rng: random.Random, *, hostile: bool) -> str:
    return rng.choice(_WORDS) if hostile and rng.random() < 0.1 else f"{rng.uniform(-1, 2):.{rng.randint(0, 3)}f}"
