"""What objects cost, against figures worked out by hand and those of every sample."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from meshferry.io_formats.second_life.models import costs
from meshferry.io_formats.second_life.options import LEVELS


def test_every_sample_costs_what_is_expected(samples: Path) -> None:
    expected = json.loads((samples / "secondlife" / "expected.json").read_text("utf-8"))
    compared = 0
    for name, facts in expected.items():
        if "lod_block_sizes" not in facts:
            continue
        sizes = facts["lod_block_sizes"]
        for metres in (1, 10):
            found = costs.download_weight(sizes, (metres,) * 3)
            assert round(found, 4) == facts[f"streaming_cost_at_{metres}m"], (name, metres)
        triangles = sum(costs.animesh_level_triangles(sizes))
        assert round(costs.animesh_triangle_weight(triangles), 4) == facts["animesh_triangle_cost"], name
        compared += 1
    assert compared == 26


def test_bytes_count_as_triangles() -> None:
    sizes = dict(zip(LEVELS, (384 + 1600, 384 + 800, 384, 10), strict=True))
    assert costs.level_triangles(sizes) == (100, 50, 1, 1)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"high_lod": 1984}, (100, 100, 100, 100)),
        ({"high_lod": 1984, "low_lod": 1184}, (100, 100, 50, 50)),
        ({"medium_lod": 1184, "lowest_lod": 0}, (50, 50, 50, 50)),
        ({}, (1, 1, 1, 1)),
    ],
)
def test_missing_levels_count_as_the_next_finer(given: dict[str, int], wanted: tuple[float, ...]) -> None:
    assert costs.level_triangles(given) == wanted


def test_the_least_weight() -> None:
    assert costs.download_weight(dict.fromkeys(LEVELS, 100), (64, 64, 64)) == pytest.approx(0.06)
    assert costs.download_weight({}, (0, 0, 0)) == pytest.approx(0.06)


def test_a_weight_by_hand() -> None:
    # A cube of 4 m: radius 2 sqrt 3, seen in full to r / 0.24, then r / 0.06, then r / 0.03 metres.
    sizes = dict(zip(LEVELS, (384 + 16_000, 384 + 8_000, 384 + 1_600, 384 + 160), strict=True))
    radius = 2 * math.sqrt(3)
    full, middle, low = (math.pi * (radius / share) ** 2 for share in (0.24, 0.06, 0.03))
    rings = (full, middle - full, low - middle, 102_944 - low)
    mean = sum(ring * count for ring, count in zip(rings, (1000, 500, 100, 10), strict=True)) / 102_944
    assert costs.download_weight(sizes, (4, 4, 4)) == pytest.approx(mean * 0.06)
    assert costs.download_weight(sizes, (4, 4, 4)) == pytest.approx(5.4294, abs=1e-3)


def test_larger_objects_are_dearer() -> None:
    sizes = dict(zip(LEVELS, (40_000, 8_000, 2_000, 500), strict=True))
    weights = [costs.download_weight(sizes, (metres, metres, metres)) for metres in (0.1, 1, 4, 16, 64, 256)]
    assert weights == sorted(weights)
    # Beyond some size the finest is seen everywhere; the other rings keep an area of 1 each.
    assert weights[-1] == pytest.approx((40_000 - 384) / 16 * 0.06, rel=1e-3)


@pytest.mark.parametrize(
    ("triangles", "traits", "wanted"), [(1000.9, [], 5000), (1000.9, ["alpha", "rigged"], 24_000), (0.4, [], 20)]
)
def test_complexity_by_hand(triangles: float, traits: list[str], wanted: int) -> None:
    assert costs.complexity(triangles, traits) == wanted


def test_levels_contribute_by_the_area_from_which_they_are_seen() -> None:
    sizes = dict(zip(LEVELS, (384 + 16_000, 384 + 8_000, 384 + 1_600, 384 + 160), strict=True))
    found = costs.weighted_triangles(sizes, (4, 4, 4))
    full = math.pi * (2 * math.sqrt(3) / 0.24) ** 2
    assert found[0] == pytest.approx(1000 * full / 102_944)
    assert sum(found) * 0.06 == pytest.approx(costs.download_weight(sizes, (4, 4, 4)))


def test_coarser_levels_of_animated_objects_are_free_up_to_half() -> None:
    # 1000 + (600 - 500) + (400 - 250) + nothing for 10
    sizes = dict(zip(LEVELS, (384 + 16_000, 384 + 9_600, 384 + 6_400, 384 + 160), strict=True))
    assert sum(costs.animesh_level_triangles(sizes)) == 1250
    # Up to 64 triangles are free whatever the level before has.
    sizes = dict(zip(LEVELS, (384 + 160, 384 + 1_600, 384 + 1_600, 384 + 1_600), strict=True))
    assert sum(costs.animesh_level_triangles(sizes)) == 10 + 3 * 36


@pytest.mark.parametrize(("prims", "wanted"), [(1, 0.5), (4, 2), (0, 0)])
def test_server_weight(prims: int, wanted: float) -> None:
    assert costs.server_weight(prims) == wanted


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        ((0.06, 0.1, 0.5), 1),
        ((1.4, 1.49, 1.0), 1),
        ((1.5, 0, 0), 2),
        ((2.5, 0, 0), 3),
        ((0, 7.6, 3), 8),
        ((0, 0, 0), 1),
    ],
)
def test_land_impact(weights: tuple[float, float, float], wanted: int) -> None:
    assert costs.land_impact(*weights) == wanted


def test_estimated_physics() -> None:
    assert costs.estimated_physics_weight(8) == pytest.approx(0.36)
