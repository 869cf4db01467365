"""JSON with locations against Python's own parser: strict text, and the same content in the spellings of mods."""

from __future__ import annotations

import json
import math
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.timbermesh.blueprint import json_text
from meshferry.io_formats.timbermesh.blueprint.json_text import (
    MOST_DEPTH,
    JsonValue,
    line_and_column,
    names_of,
    parse,
    pointer_of,
)

NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
BLANKS = ["", " ", "\n", "\r\n", "\t", "// a , comment }\n", "/* ] \" ' */", "//\r\n", "/**/", "/***/"]


def spelled(value: Any, choose: random.Random) -> str:
    """Return a value as JSON with comments, trailing commas, single quotes and names without quotes."""

    def text(of: str, *, is_name: bool = False) -> str:
        if is_name and of.isascii() and of.isidentifier() and choose.random() < 0.3:
            return of
        quoted = json.dumps(of, ensure_ascii=choose.random() < 0.5)
        if choose.random() < 0.3:
            quoted = "'" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
        return quoted

    def joined(parts: list[str]) -> str:
        comma = "," if parts and choose.random() < 0.3 else ""
        return blank().join(blank().join((part, ",")) for part in parts)[: None if comma else -1 if parts else None]

    def blank() -> str:
        return choose.choice(BLANKS)

    if isinstance(value, dict):
        members = [f"{text(key, is_name=True)}{blank()}:{blank()}{spelled(v, choose)}" for key, v in value.items()]
        return "{" + blank() + joined(members) + blank() + "}"
    if isinstance(value, list):
        return "[" + blank() + joined([spelled(item, choose) for item in value]) + blank() + "]"
    return text(value) if isinstance(value, str) else json.dumps(value)


def floats(value: Any) -> Any:
    """Return a value with all whole numbers as floats."""
    return json.loads(json.dumps(value), parse_int=float)


def assert_located(data: bytes, found: JsonValue) -> None:
    """Check that the bytes of each value, read by themselves, are that value, and those of each key the key."""
    assert parse(data[found.start : found.end]).plain() == found.plain()
    for key, member in found.members.items():
        name = data[member.start : member.end]
        assert (name.decode() if name[:1] not in b"\"'" else parse(name).value) == key
        assert member.end < member.value.start
        assert_located(data, member.value)
    for item in found.items:
        assert_located(data, item)


@settings(max_examples=150)
@given(VALUES, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_strict_text_is_read_as_python_reads_it(value: Any, is_ascii: bool, indent: Any) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
    assert parse(data).plain() == floats(value)


@settings(max_examples=150)
@given(VALUES, st.integers(0, 2**32), st.booleans())
def test_spellings_of_mods_give_the_same_content(value: Any, seed: int, has_bom: bool) -> None:
    choose = random.Random(seed)
    text = choose.choice(BLANKS) + spelled(value, choose) + choose.choice(BLANKS)
    data = b"\xef\xbb\xbf" * has_bom + text.encode()
    found = parse(data)
    assert found.plain() == floats(value)
    assert_located(data, found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[.5, 5., +5, -5.364418E-07, 1e3]", [0.5, 5.0, 5.0, -5.364418e-07, 1000.0]),
        ("[Infinity, -Infinity]", [math.inf, -math.inf]),
        ('{"a": 1, "b": 2, "a": 3}', {"a": 3.0, "b": 2.0}),
        ('"two\nlines"', "two\nlines"),
        (r'"\ud83d\ude00\ud83d"', "\U0001f600\ufffd"),
        ("{#Finished: 1}", None),
        ("{$a: 1, größe: 2}", {"$a": 1.0, "größe": 2.0}),
    ],
)
def test_rare_spellings(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(FormatError):
            parse(text.encode())
    else:
        assert parse(text.encode()).plain() == value


@pytest.mark.parametrize(
    ("data", "where", "what"),
    [
        (b"", (1, 1), "ends too early"),
        (b'{\n  "a": 1\n  "b": 2}', (3, 3), "a comma or } is expected"),
        (b'{"a" 1}', (1, 6), "a colon"),
        (b'\xef\xbb\xbf{"\xc3\xa4": x}', (1, 7), "a value"),
        (b'{"a": 1,\r\n', (2, 1), "ends too early"),
        (b"[1 2]", (1, 4), "a comma or ]"),
        (b"[1,,2]", (1, 4), "a value"),
        (b"[1}", (1, 3), "a comma or ]"),
        (b"[0x10]", (1, 2), "a value"),
        (b"[1_000]", (1, 2), "a value"),
        (b"[1.2.3]", (1, 2), "a value"),
        (b"{1: 2}", (1, 2), "a name"),
        (b'{"a": "b}', (1, 7), "no end"),
        (b"[1, /* 2]", (1, 5), "comment has no end"),
        (b"{} {}", (1, 4), "after the end"),
        (b'["\\q"]', (1, 2), "unknown escape"),
        (b'["\xff"]', (1, 3), "UTF-8"),
        (b"[" + b"1" * 500 + b"]", (1, 2), "more than 400 digits"),
        (b"[" * (MOST_DEPTH + 1), (1, MOST_DEPTH + 1), "more than 100"),
        (b"@", (1, 1), "a value"),
    ],
)
def test_damage_is_located(data: bytes, where: tuple[int, int], what: str) -> None:
    with pytest.raises(FormatError, match=what) as caught:
        parse(data)
    assert str(caught.value).startswith(f"Line {where[0]}, column {where[1]}: ")


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MOST_VALUES", 1000)
    with pytest.raises(FormatError, match="more than 1,000 values"):
        parse(b"[" + b"1," * 1000 + b"]")
    with pytest.raises(FormatError, match="bytes"):
        parse(b" " * ((1 << 24) + 1))
    for hostile in (b"1", b"/*", b'"\\', b"-", b"//", b"1.", b"/**/", b'"a"\n'):
        start = time.process_time()
        with pytest.raises(FormatError):
            parse(hostile * (1 << 17) + b"x")
        assert time.process_time() - start < 0.5


def test_large_files_are_fast() -> None:
    point = {"X": -0.125, "Y": 0.0, "Z": 1.5}
    child = {
        "TransformSpec": {"Position": point, "Rotation": point, "Scale": point},
        "TimbermeshSpec": {"Model": "A/B"},
    }
    data = json.dumps({"Children": {f"Child ({n})": child for n in range(550)}}, indent=4).encode()
    assert len(data) > 300_000
    times = []
    for _ in range(3):
        start = time.process_time()
        found = parse(data)
        times.append(time.process_time() - start)
    assert found.plain() == floats(json.loads(data))
    assert min(times) < 0.2


def test_paths_of_keys() -> None:
    found = parse(b'{"Children": {"a/b~c": {"List": [1, {"X": 7}]}}}')
    pointer = pointer_of(["Children", "a/b~c", "List", "1", "X"])
    assert pointer == "/Children/a~1b~0c/List/1/X"
    value = found.find(*names_of(pointer))
    assert value is not None and value.value == 7.0
    assert found.find("Children", "none") is None and found.find("Children", "a/b~c", "List", "2") is None
    assert names_of("") == [] and pointer_of([]) == ""
    assert line_and_column(b"\xef\xbb\xbfa\n\xc3\xa4b", 7) == (2, 2)
