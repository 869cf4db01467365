"""The exact length makes a file one of the family; what merely has such extensions is left alone, or named."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.mesh_serializer import format as mesh_serializer_format
from meshferry.io_formats.mesh_serializer.document import Variant
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER, variant_of
from meshferry.io_formats.registry import HEAD_SIZE
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshfuzz import mesh_serializer_seeds as made

CASES = 150


def sniffed(data: bytes) -> bool:
    try:
        return registry.by_content(data[:HEAD_SIZE], len(data)) is MESH_SERIALIZER
    except UnsupportedFormatError:
        return False


def refusal_of(data: bytes) -> str:
    with pytest.raises(UnsupportedFormatError) as refusal:
        registry.by_content(data[:HEAD_SIZE], len(data))
    return str(refusal.value)


@pytest.mark.parametrize("name", made.family())
def test_one_byte_more_or_less_is_another_file(name: str) -> None:
    data = made.family()[name]
    assert sniffed(data)
    assert not sniffed(data[:-1])
    assert not sniffed(data + b"\0")


def test_other_files_with_such_extensions_are_left_alone(samples: Path) -> None:
    others = [
        path
        for folder in ("unigine", "secondlife", "timbermesh")
        for path in (samples / folder).rglob("*")
        if path.is_file()
    ]
    assert len(others) > 60
    for path in others:
        data = path.read_bytes()
        assert not sniffed(data), path.name


@pytest.mark.parametrize(
    ("magic", "words"),
    [
        (b"glTF", "glTF"),
        (b"PK\x03\x04", "a zip archive"),
        (b"BLENDER", "a .blend file"),
        (b"Kaydara FBX", "FBX"),
        (b"UnityFS", "a Unity asset bundle"),
        (b"\x10\x00[MeshSerializer_v", "an OGRE mesh"),
    ],
)
def test_marks_of_other_programs_win_over_a_length_that_fits(magic: bytes, words: str) -> None:
    vertices, triangles = struct.unpack("<HH", magic[:4])
    size = 5 + 24 + 6 * vertices + 6 * triangles
    head = (magic[:4] + b"\x01" + magic[5:]).ljust(HEAD_SIZE, b"\0")
    if not head.startswith(magic):  # its fifth byte is another format
        head = magic.ljust(HEAD_SIZE, b"\0")
    with pytest.raises(UnsupportedFormatError, match=words):
        registry.by_content(head, size)


def test_a_recognised_file_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explanation takes longer than the recognition, and a batch recognises thousands of files."""
    monkeypatch.setattr(mesh_serializer_format, "explain_near_miss", lambda *_: pytest.fail("the file is recognised"))
    data = struct.pack("<HHB6f", 18, 8, 1, -1, 1, -2, 2, 0, 3) + bytes(6 * (18 + 8))
    assert registry.by_content(data, len(data)) is MESH_SERIALIZER


def test_a_unigine_mesh_is_one_whatever_its_length() -> None:
    head = b"ms13\x01" + bytes(60)
    vertices, triangles = struct.unpack_from("<HH", head)
    size = 5 + 24 + 6 * vertices + 6 * triangles
    assert registry.by_content(head, size) is UNIGINE_MESH


@pytest.mark.parametrize(("vertices", "triangles"), [(18, 8), (8, 18), (8, 26), (26, 5), (0x8012, 0x2101), (0xFF1A, 9)])
def test_the_first_bytes_of_a_protocol_buffer_are_no_mark(vertices: int, triangles: int) -> None:
    """Uncompressed messages of Timbermesh begin with one of three bytes; a length that fits says more."""
    data = struct.pack("<HHB6f", vertices, triangles, 1, -1, 1, -2, 2, 0, 3) + bytes(6 * (vertices + triangles))
    assert registry.by_content(data[:HEAD_SIZE], len(data)) is MESH_SERIALIZER


# -- files of other programs --------------------------------------------------------------------


def numbers(code: str, usual: float) -> Callable[[random.Random, int], bytes]:
    """Return a maker of small whole numbers of one width, as tables and headers hold them."""
    size = struct.calcsize(code)
    most = (1 << (8 * size - 1)) - 1

    def make(rng: random.Random, length: int) -> bytes:
        count = length // size
        return struct.pack(f"<{count}{code}", *[min(int(rng.expovariate(1 / usual)), most) for _ in range(count)])

    return make


def floats(rng: random.Random, length: int) -> bytes:
    return struct.pack(f"<{length // 4}f", *[rng.gauss(0, rng.choice((1, 10, 1e3))) for _ in range(length // 4)])


def header_and_floats(rng: random.Random, length: int) -> bytes:
    counts = [int(rng.expovariate(1 / 50)) for _ in range(rng.choice((1, 2, 3)))]
    return struct.pack(f"<{len(counts)}i", *counts) + floats(rng, length)


def text(rng: random.Random, length: int) -> bytes:
    return bytes(rng.choices(b'abc dEF0123456789.,;!"#$%&()*+-/\n', k=length))


def coded_text(rng: random.Random, length: int) -> bytes:
    """Return the characters that version 1 as text has, too."""
    return bytes(rng.choices(bytes(range(33, 49)), k=length))


FOREIGN: dict[str, Callable[[random.Random, int], bytes]] = {
    "noise": lambda rng, length: rng.randbytes(length),
    "zeros": lambda _, length: bytes(length),
    "ones": lambda _, length: b"\xff" * length,
    "bytes": numbers("B", 20),
    "shorts": numbers("H", 300),
    "small shorts": numbers("H", 20),
    "integers": numbers("I", 300),
    "small integers": numbers("I", 5),
    "floats": floats,
    "header and floats": header_and_floats,
    "text": text,
    "coded text": coded_text,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_left_alone(kind: str) -> None:
    rng = random.Random(kind)
    taken = []
    for _ in range(CASES):
        data = FOREIGN[kind](rng, rng.choice((rng.randrange(300), rng.randrange(HEAD_SIZE))))
        size = len(data)
        if rng.random() < 0.3:  # the head of a larger file
            data = FOREIGN[kind](rng, HEAD_SIZE)[:HEAD_SIZE]
            size = max(len(data), int(10 ** rng.uniform(3.7, 6.5)))
        if variant_of(data[:HEAD_SIZE], size) is not None:
            taken.append((size, data[:40]))
        elif len(data) == size and size:
            assert "looks like a mesh" not in refusal_or_nothing(data)
    assert not taken


def refusal_or_nothing(data: bytes) -> str:
    """Return why a file is refused; it may look like one of another format."""
    try:
        registry.by_content(data[:HEAD_SIZE], len(data))
    except FormatError as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("bits", [1, 11, 15])
def test_every_length_but_the_right_one_is_refused(bits: int) -> None:
    """Around the true length, what a header asks for is that length alone."""
    data = made.current(bits=bits)
    head = data.ljust(HEAD_SIZE, b"\7")
    lengths = range(len(data) - 60, len(data) + 60)
    assert [size for size in lengths if variant_of(head[:size], size) is Variant.CURRENT] == [len(data)]


def test_points_alone_need_sound_bounds() -> None:
    """Small numbers of 32 bits ask for the length of a file with a few points and no triangles."""
    data = struct.pack("<HHB", 2, 0, 1) + struct.pack("<6I", 3, 9, 0, 1, 2, 5) + bytes(12)
    assert not sniffed(data)
    sound = struct.pack("<HHB", 2, 0, 1) + struct.pack("<6f", 3, 9, 0, 1, 2, 5) + bytes(12)
    assert sniffed(sound)


@pytest.mark.parametrize("vertices", [7, 400])
def test_submeshes_have_to_fit_in_all_that_is_seen(vertices: int) -> None:
    """Of 400 vertices the submeshes begin beyond the head; then the length still has to be possible."""
    data = made.submeshes([made.TRIANGLES[:2], made.TRIANGLES[2:]], vertices=vertices)
    assert sniffed(data)
    for more in (1, 2, 3, 4, 5):
        assert not sniffed(data + bytes(more))
    assert not sniffed(data[: -6 * 4])
    if vertices < 300:
        assert not sniffed(made.submeshes([made.TRIANGLES, ((0, 1, vertices),)], vertices=vertices))
        assert not sniffed(data + bytes(6))


# -- words for what nearly fits -----------------------------------------------------------------


def test_wrapped_counts_are_explained() -> None:
    """Section 4: writers kept the lower 16 bits of larger counts."""
    vertices, triangles = 70_000, 140_000
    data = struct.pack("<HHB6f", vertices & 65535, triangles & 65535, 11, -1, 1, -2, 2, 0, 3)
    size = 5 + 24 + vertices * 13 + 16 + 6 * triangles
    said = refusal_of(data.ljust(HEAD_SIZE, b"\5") + bytes(size - HEAD_SIZE))
    assert "70,000 vertices and 140,000 triangles" in said
    assert "the limit of 65,535 of each" in said
    with pytest.raises(FormatError, match="70,000 vertices"):
        MESH_SERIALIZER.read(data.ljust(size, b"\5"))


def test_cut_off_files_are_explained() -> None:
    data = made.current(bits=11)
    said = refusal_of(data[:-20])
    assert "begins like a mesh of Unity's MeshSerializer2 with 7 vertices and 3 triangles" in said
    assert f"need {len(data)} bytes, but it has {len(data) - 20}" in said


@pytest.mark.parametrize(("poses", "with_format"), [(None, False), (2, True), (2, False)])
def test_pcf_meshes_are_named_and_refused(poses: int | None, with_format: bool) -> None:
    """Section 7: what is known of their layout is not enough to read them."""
    vertices, triangles = 9, 5
    head = struct.pack("<HH", vertices, triangles)
    head += b"" if poses is None else struct.pack("<H", poses)
    head += b"\x0f" if with_format else b""
    head += struct.pack("<6f", -1, 1, -2, 2, 0, 3)
    size = len(head) + 17 * vertices + 16 + (0 if poses is None else 64 * poses + 24 * vertices) + 6 * triangles
    assert "a mesh of the PCF asset format, a variant of MeshSerializer2" in refusal_of(head.ljust(size, b"\x40"))
