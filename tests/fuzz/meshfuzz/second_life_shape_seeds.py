"""Shape files of Second Life written line by line, without the code under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import quoteattr

Rows = Sequence[tuple[str, str]]
"""Id and value of each parameter as text."""

_PERMISSIONS = """\tpermissions 0
\t{
\t\tbase_mask\t7fffffff
\t\towner_mask\t7fffffff
\t\tcreator_id\t00000000-0000-0000-0000-000000000000
\t}
\tsale_info\t0
\t{
\t\tsale_type\tnot
\t\tsale_price\t10
\t}"""


def body_part(
    rows: Rows,
    *,
    version: str = "22",
    kind: str = "0",
    name: str = "Tall",
    description: str = "",
    textures: Sequence[str] = (),
    blank_lines: int = 0,
    line_end: str = "\n",
    stated: int | None = None,
) -> bytes:
    """Return a body part asset; ``stated`` is written instead of the number of parameters."""
    lines = [f"LLWearable version {version}", name, description, *_PERMISSIONS.split("\n")]
    for heading, listed in (
        (f"type {kind}", []),
        (f"parameters {len(rows) if stated is None else stated}", [" ".join(row) for row in rows]),
        (f"textures {len(textures)}", textures),
    ):
        lines += [""] * blank_lines
        lines += [heading, *listed]
    return (line_end.join(lines) + line_end).encode()


def parameter(attributes: Mapping[str, str]) -> str:
    return f"<param {' '.join(f'{name}={quoteattr(value)}' for name, value in attributes.items())}/>"


def appearance(
    *archetypes: Sequence[Mapping[str, str]],
    names: Sequence[str] = ("???", "Second", "Third"),
    version: str = "1.0",
    root: str = "",
    inside: str = "",
    line_end: str = "\n",
    start: str = '<?xml version="1.0" encoding="US-ASCII" standalone="yes"?>',
) -> bytes:
    """Return an appearance export; ``root`` are further attributes of the root, ``inside`` more of each archetype."""
    lines = [start, f'<linden_genepool version="{version}" {root}>']
    for name, listed in zip(names, archetypes, strict=False):
        lines += [f"\t<archetype name={quoteattr(name)}>", *map(parameter, listed), inside, "\t</archetype>"]
    return (line_end.join([*lines, "</linden_genepool>"]) + line_end).encode()


TALL: Rows = (("33", "1.26"), ("36", "-.5"), ("80", "0"), ("105", ".8"), ("637", ".35"), ("693", ".6"))
BODY_PART = body_part(TALL)
APPEARANCE = appearance(
    [{"id": number, "name": "x", "value": value, "u8": "0", "group": "0"} for number, value in TALL],
    inside='<bone name="mChest" position="0 0 0" scale="1 1 1"/>',
)
FILES = {
    "body part": BODY_PART,
    "appearance": APPEARANCE,
    "codes": appearance([{"id": "33", "u8": "219"}, {"id": "796", "u8": "29"}]),
    "shoes": body_part((("198", ".5"), ("503", "1")), kind="6"),
}
