"""A few hundred cases of the fuzzer on generated files; ``make fuzz`` runs the many."""

from __future__ import annotations

import random
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from meshfuzz import (
    mesh_serializer_cases,
    second_life_mutations,
    second_life_seeds,
    timbermesh_seeds,
    unigine_mutations,
    unigine_seeds,
)
from meshfuzz.cases import CORPUS, Case, CaseMaker
from meshfuzz.judge import ALL_STEPS, Depth, Judge
from meshfuzz.second_life_seeds import Seed
from meshfuzz.timbermesh_crowds import CROWDS
from meshfuzz.timbermesh_wrappings import BOMBS
from meshfuzz.tokens import encode
from meshfuzz.wire import BYTES, FIXED32, Field
from meshfuzz.wire import number as number_field

pytest.importorskip("google.protobuf")

pytestmark = pytest.mark.any_version

CASES = 60
CONVERTED = 8
"""Each of so many cases is converted to the other formats, too, which takes as long as all other steps."""
MOST_CONVERTED = 260
"""Largest number of parts of a file that is converted, beyond what a byte counts: 40,000 surfaces become 5,000 files
for Second Life."""
SEED = 20


def parts(crowds: Mapping[str, Any], most: int, slow: str) -> pytest.MarkDecorator:
    """Return the mark of a test of each crowd with few and many parts, of which one is slow with few."""
    cases = [
        pytest.param(kind, count, marks=[pytest.mark.slow] * (count > MOST_CONVERTED or kind == slow))
        for kind in sorted(crowds)
        for count in (MOST_CONVERTED, most)
    ]
    return pytest.mark.parametrize(("kind", "count"), cases)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Return a judge; the warning filters that it sets end with the module."""
    with warnings.catch_warnings():
        yield Judge()


def expect_clean(judge: Judge, case: Case, depth: Depth = ALL_STEPS) -> str:
    """Judge a case and return how it ended."""
    verdict = judge.judge(case, depth)
    if verdict.finding and verdict.finding.kind == "slow":
        verdict = judge.judge(case, depth)  # other work on the machine empties its caches
    assert verdict.finding is None, f"case {case.number} of seed {SEED}, {case.recipe}: {verdict.finding.detail}"
    return verdict.outcome


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("timbermesh", CASES),
        ("unigine_mesh", CASES),
        ("unigine_animation", CASES),
        ("unigine_skeleton", CASES),
        ("second_life_mesh", CASES // 4),  # the slowest
        ("second_life_bundle", CASES // 8),
        ("second_life_collada", CASES),
        ("second_life_animation", CASES),
        ("second_life_bvh", CASES),
        ("second_life_shape", CASES),
        ("opensim_archive", CASES),
        ("mesh_serializer", CASES),
        ("unigine_texture", CASES),
        ("unigine_project", CASES),
        ("unigine_scene", CASES),
        ("timberborn_blueprint", CASES),
    ],
)
def test_only_success_or_refusal(judge: Judge, name: str, cases: int) -> None:
    maker = CaseMaker(SEED, name, use_samples=False)
    outcomes = set()
    for number in range(cases):
        outcomes.add(expect_clean(judge, maker.make(number), Depth(convert=number % CONVERTED == 0)))
    assert {"refused", "accepted, whole"} <= outcomes, "the cases exercise one side alone"


@pytest.mark.slow
def test_many_collada_files(judge: Judge) -> None:
    """Their reader tolerates more than others, so that fewer cases are refused early."""
    maker = CaseMaker(SEED, "second_life_collada", use_samples=False)
    for number in range(600):
        expect_clean(judge, maker.make(number), Depth(convert=number % 100 == 0))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.bin")), ids=lambda path: path.stem)
def test_corpus(judge: Judge, path: Path) -> None:
    depth = Depth(convert="-found-" in path.name)
    expect_clean(judge, Case(0, path.read_bytes(), path.name), depth)


def test_corpus_is_small() -> None:
    sizes = [path.stat().st_size for path in CORPUS.iterdir()]
    assert max(sizes) < 3_000 and sum(sizes) < 300_000


@pytest.mark.parametrize("group", [unigine_seeds.meshes, unigine_seeds.animations, unigine_seeds.skeletons])
def test_whole_files_are_read(judge: Judge, group: Callable[[], dict[str, unigine_seeds.Row]]) -> None:
    """The seeds are put together from the format page alone; versions that are only read cannot be written."""
    for name, row in group().items():
        only_read = name.startswith("an12")
        assert expect_clean(judge, Case(0, encode(row), name)) == (
            "accepted, in part" if only_read else "accepted, whole"
        ), name


@pytest.mark.parametrize("group", [second_life_seeds.assets, second_life_seeds.bundles])
def test_whole_second_life_files_are_read(judge: Judge, group: Callable[[], Mapping[str, Seed]]) -> None:
    """The seeds are put together from the format page alone."""
    for name, seed in group().items():
        assert expect_clean(judge, Case(0, seed.pack(), name)) == "accepted, whole", name


@pytest.mark.parametrize("variant", sorted(set(mesh_serializer_cases.VARIANTS)))
def test_whole_mesh_serializer_files_are_read(judge: Judge, variant: str) -> None:
    """The files are built from the format page alone, up to the largest number of triangles."""
    rng = random.Random(SEED)
    for vertices, triangles, bits in ((9, 5, 31), (1, 1, 3), (260, 200, 9), (65_535, 65_535, 31)):
        if vertices > MOST_CONVERTED and variant != "submeshes":
            continue  # the others take as long
        data = mesh_serializer_cases.sound(rng, variant, vertices=vertices, triangles=triangles, bits=bits)
        case = Case(0, data, f"{variant}, {vertices} vertices")
        depth = Depth(convert=vertices <= MOST_CONVERTED)
        # One vertex makes no triangle.
        assert expect_clean(judge, case, depth) == ("accepted, whole" if vertices > 1 else "accepted, in part"), (
            case.recipe
        )


@pytest.mark.slow
def test_second_life_blocks_that_never_end(judge: Judge) -> None:
    rng = random.Random(SEED)
    for _ in range(5):
        data, recipe = second_life_mutations.bomb(rng)
        expect_clean(judge, Case(0, data, recipe))


@parts(unigine_seeds.CROWDS, 40_000, "surfaces")
def test_very_many_parts_of_a_mesh_or_an_animation(judge: Judge, kind: str, count: int) -> None:
    depth = Depth(convert=count <= MOST_CONVERTED)
    expect_clean(judge, Case(0, encode(unigine_seeds.CROWDS[kind](count)), kind), depth)


def test_blocks_that_promise_more_than_they_hold(judge: Judge) -> None:
    rng = random.Random(SEED)
    for _ in range(8):
        data, recipe = unigine_mutations.bomb(rng)
        expect_clean(judge, Case(0, data, recipe))


def test_cases_repeat() -> None:
    one, other = CaseMaker(SEED, use_samples=False), CaseMaker(SEED, use_samples=False)
    assert all(one.make(number) == other.make(number) for number in (0, 17, 333))


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=[pytest.mark.slow] * (shape in ("data", "texts"))) for shape in sorted(BOMBS)]
)
def test_stream_that_inflates_to_much(judge: Judge, shape: str) -> None:
    expect_clean(judge, Case(0, BOMBS[shape](40), shape))


@parts(CROWDS, 20_000, "mesh nodes")
def test_very_many_parts(judge: Judge, kind: str, count: int) -> None:
    depth = Depth(convert=count <= MOST_CONVERTED)
    expect_clean(judge, Case(0, zlib.compress(CROWDS[kind](count), 1), kind), depth)


@pytest.mark.parametrize("name", ["normal", "tangent"])
def test_signalling_nan_is_no_warning(judge: Judge, name: str) -> None:
    # NumPy complains of "invalid value encountered in multiply" for these not-a-numbers, and only for these.
    content = timbermesh_seeds.seeds()["cube"]
    values = content.index(name.encode()) + len(name) + 4 + 16 * 4
    content = content[:values] + struct.pack("<I", 0x7FA00000) * 4 + content[values + 16 :]
    expect_clean(judge, Case(0, zlib.compress(content), "signalling NaN"))


@pytest.mark.parametrize("odd", [Field(2, FIXED32, b"abcd"), Field(1, FIXED32, b"abcd"), Field(9, BYTES, b"later")])
@pytest.mark.parametrize("make", [timbermesh_seeds.packed, timbermesh_seeds.unpacked])
def test_fields_of_another_wire_type_stay(judge: Judge, make: Any, odd: Field) -> None:
    """Protobuf takes them for unknown fields, and unknown fields are written back."""
    mesh = make((0, 1, 2))
    mesh = mesh.with_payload(mesh.payload + odd.encode())
    node = [number_field(1, -1), number_field(6, 3), timbermesh_seeds.vertex_property("position", 3, 3), mesh]
    expect_clean(judge, Case(0, zlib.compress(timbermesh_seeds.model(node)), "another wire type"))


def test_group_behind_single_indices(judge: Judge) -> None:
    group = Field(9, 3, b"\x08\x01" + Field(9, 4, b"").encode())
    mesh = timbermesh_seeds.unpacked((0, 1, 2))
    mesh = mesh.with_payload(mesh.payload + group.encode())
    node = [number_field(1, -1), number_field(6, 3), timbermesh_seeds.vertex_property("position", 3, 3), mesh]
    expect_clean(judge, Case(0, zlib.compress(timbermesh_seeds.model(node)), "a group"))


def test_vertex_frames_beyond_any_rotation(judge: Judge) -> None:
    """Quaternions of damaged files are as long as floats can be; turned by them, a normal would overflow."""
    content = timbermesh_seeds.seeds()["waving"]
    values = content.index(b"rotation") + 8 + 4 + 3
    content = content[:values] + struct.pack("<f", 3e38) * 4 + content[values + 16 :]
    expect_clean(judge, Case(0, zlib.compress(content), "long quaternions"))
