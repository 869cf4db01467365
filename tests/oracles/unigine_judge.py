"""What has to be the same in a UNIGINE file that went through Blender and back, both read by ``unigine_oracle``.

Positions, colours, bind transforms, names, lightmap bytes and which surface holds what are compared exactly, corner by
corner and bone by bone; the rest within tolerances. Triangles that use a position twice do not survive Blender. In
Blender's tangent space (normals that stay editable) some more lose their normals; both are counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import unigine_meaning as meaning
import unigine_oracle as oracle
import unigine_rules as rules

Array = npt.NDArray[Any]

UV_WITHIN = 6e-8
"""v = 1 - (1 - v) is not exact in 32 bits."""
WEIGHT_WITHIN = 2 / 65535
EXACT, EDITABLE = 1e-3, 0.015
"""Normals."""
BENT = 2.2e-3
"""A w below 0.001 is stored as that, which bends a normal that points straight down by up to 0.002."""
TINY = 1e-3
"""More for triangles of hundredths of a millimetre, whose editable normals Blender knows no better."""
FRAMES_WITHIN = 1e-4


@dataclass
class Verdict:
    """What was left out of the comparison, and the largest differences in the rest."""

    repeated: int = 0
    excepted: int = 0
    agreed: int = 0
    """Corners whose handedness was that of their triangle in UV0, and is still."""
    uv: float = 0.0
    normal: float = 0.0
    weight: float = 0.0
    translation: float = 0.0
    rotation: float = 0.0
    scale: float = 0.0

    def grow(self, **found: float) -> None:
        for name, value in found.items():
            setattr(self, name, max(getattr(self, name), float(value)))


class Corners:
    """What a surface says at each corner of its triangles, without those that use a position twice."""

    def __init__(self, surface: oracle.Surface, found: oracle.File) -> None:
        c, t = surface.c_indices.reshape(-1, 3), surface.t_indices.reshape(-1, 3)
        repeated = (c[:, 0] == c[:, 1]) | (c[:, 1] == c[:, 2]) | (c[:, 2] == c[:, 0])
        self.repeated = int(repeated.sum())
        c, t = c[~repeated], t[~repeated]
        self.triangles = c
        base = surface.targets[0]
        self.positions = base.positions[c]
        normals, _, handed = meaning.tangent_frames(base.tangents, found.magic)
        self.normals, self.handed = normals[t], handed[t]
        self.targets = [(target.name, target.positions[c]) for target in surface.targets]
        self.uvs = [None if uv is None else uv[t] for uv in (surface.uv0, surface.uv1)]
        self.colors = None if surface.colors is None else surface.colors[t]
        self.weights = None
        if surface.weights is not None:
            dense = np.zeros((len(surface.weights), len(found.bones)))
            for vertex, pairs in enumerate(surface.weights):
                for bone, weight in pairs:
                    dense[vertex, bone] += weight / 65535
            self.weights = dense[c]

    def doubtful(self) -> npt.NDArray[np.bool_]:
        """Tell which triangles lose their normals in Blender's tangent space: (nearly) without area, and twins."""
        edges = (self.positions[:, 1:] - self.positions[:, :1]).astype(float)
        area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
        rows = [tuple(sorted(row)) for row in self.triangles.tolist()]
        seen = Counter(rows)
        return (area <= 2e-4 * self.longest**2) | np.array([seen[row] > 1 for row in rows], bool)

    def mirrored(self) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the handedness (T,) that UV0 gives each triangle, and which triangles it gives one."""
        uv = self.uvs[0]
        if uv is None:
            return np.zeros(len(self.triangles)), np.zeros(len(self.triangles), bool)
        sides = (uv[:, 1:] - uv[:, :1]).astype(float)
        area = sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]
        return np.sign(area), np.abs(area) > 1e-4 * np.abs(sides).max(axis=(1, 2), initial=0) ** 2

    @property
    def longest(self) -> Array:
        """(T,) the longest step from a triangle's first corner along an axis."""
        edges = (self.positions[:, 1:] - self.positions[:, :1]).astype(float)
        return np.asarray(np.abs(edges).max(axis=(1, 2), initial=0))


def same_mesh(before: oracle.File, after: oracle.File, *, is_exact: bool) -> Verdict:
    """Compare whole mesh files of one version; ``is_exact`` says whether Blender held the normals of rigid meshes."""
    is_exact = is_exact and not before.bones
    verdict = Verdict()
    assert after.magic == before.magic
    if before.magic == "mr02":
        same_soup(before, after, EXACT if is_exact else EDITABLE, verdict)
        return verdict
    same_bones(before, after)
    same_surfaces(before, after, verdict, is_exact=is_exact)
    assert [name for name, _ in after.animations] == [name for name, _ in before.animations]
    for (_, old), (_, new) in zip(before.animations, after.animations, strict=True):
        same_frames(old, new, verdict)
    return verdict


def same_surfaces(before: oracle.File, after: oracle.File, verdict: Verdict, *, is_exact: bool) -> None:
    """Compare surfaces; editable normals are not asked of triangles without area and of twins."""
    within = EXACT if is_exact else EDITABLE
    assert [surface.name for surface in after.surfaces] == [surface.name for surface in before.surfaces]
    for old, new in zip(before.surfaces, after.surfaces, strict=True):
        assert new.lightmap == old.lightmap
        olds, news = Corners(old, before), Corners(new, after)
        verdict.repeated += olds.repeated
        assert news.repeated == 0
        np.testing.assert_array_equal(news.positions, olds.positions)  # the same triangles, first corner first
        assert [name for name, _ in news.targets] == [name for name, _ in olds.targets]
        for (_, mine), (_, theirs) in zip(olds.targets, news.targets, strict=True):
            np.testing.assert_array_equal(theirs, mine)
        for mine, theirs in zip(olds.uvs, news.uvs, strict=True):
            assert (mine is None) == (theirs is None), old.name
            if mine is not None:
                np.testing.assert_allclose(theirs, mine, rtol=0, atol=UV_WITHIN)
                verdict.grow(uv=np.abs(theirs.astype(float) - mine).max(initial=0))
        assert (olds.colors is None) == (news.colors is None)
        if olds.colors is not None:
            np.testing.assert_array_equal(news.colors, olds.colors)
        assert (olds.weights is None) == (news.weights is None)
        if olds.weights is not None:
            np.testing.assert_allclose(news.weights, olds.weights, rtol=0, atol=WEIGHT_WITHIN)
            verdict.grow(weight=np.abs(news.weights - olds.weights).max(initial=0))
        asked = np.ones(len(olds.triangles), bool) if is_exact else ~olds.doubtful()
        verdict.excepted += int(np.count_nonzero(~asked))
        # ms10 has no w: what truncation takes off x, y and z becomes up to 0.0078 of it.
        bent = (olds.normals[..., 2] < -0.999) | (before.magic == "ms10")
        allowed = np.where(bent, max(within, BENT), within)
        if not is_exact:
            allowed[olds.longest <= 2e-5] += TINY
        apart = np.abs(news.normals - olds.normals).max(axis=2, initial=0)[asked]
        verdict.grow(normal=apart.max(initial=0))
        assert (apart <= allowed[asked]).all(), f"{old.name}: normals {apart.max()}"
        mirror, known = olds.mirrored()
        agreed = (olds.handed == mirror[:, None]) & (known & ~olds.doubtful())[:, None]
        verdict.agreed += int(agreed.sum())
        assert (news.handed == olds.handed)[agreed].all(), f"{old.name}: handedness"
        if new.collision is not None and len(new.c_indices) < 15000:  # a second for each 5,000 triangles
            rules.check_collision(new)


def same_soup(before: oracle.File, after: oracle.File, within: float, verdict: Verdict) -> None:
    assert [soup.name for soup in after.soup] == [soup.name for soup in before.soup]
    for old, new in zip(before.soup, after.soup, strict=True):
        places = old.positions.reshape(-1, 3, 3)
        repeated = np.zeros(len(places), bool)
        for one, other in ((0, 1), (1, 2), (2, 0)):
            repeated |= (places[:, one] == places[:, other]).all(axis=1)
        verdict.repeated += int(repeated.sum())
        kept = np.repeat(~repeated, 3)
        np.testing.assert_array_equal(new.positions, old.positions[kept])
        np.testing.assert_allclose(new.uvs, old.uvs[kept], rtol=0, atol=UV_WITHIN)
        unit = old.normals[kept] / np.linalg.norm(old.normals[kept], axis=1, keepdims=True)
        np.testing.assert_allclose(new.normals, unit, rtol=0, atol=within)
        verdict.grow(
            uv=np.abs(new.uvs - old.uvs[kept]).max(initial=0), normal=np.abs(new.normals - unit).max(initial=0)
        )


def same_bones(before: oracle.File, after: oracle.File) -> None:
    """Require the same table, and bind transforms equal to the bit."""
    assert after.bones == before.bones
    assert after.transforms.tobytes() == before.transforms.tobytes()


def same_animation(before: oracle.File, after: oracle.File, *, sheared: bool = False) -> Verdict:
    """Compare whole animation files of one version; ``sheared``: Blender cannot hold the frames themselves."""
    verdict = Verdict()
    assert after.magic == before.magic
    same_bones(before, after)
    assert (after.guid, after.path) == (before.guid, before.path)
    assert (after.fps, after.root_motion) == (before.fps, before.root_motion)
    ((old_name, old),), ((new_name, new),) = before.animations, after.animations
    assert new_name == old_name
    if not sheared:
        same_frames(old, new, verdict)
    return verdict


def same_frames(before: oracle.Frames, after: oracle.Frames, verdict: Verdict) -> None:
    """Compare frames; translation is relative to the largest where that is above 1.

    Ranges of an10 are a metre longer than what they hold; two of their steps are added to what is allowed.
    """
    assert after.count == before.count
    assert after.bones == before.bones
    rules.check_flags(after)
    if not before.count:
        return
    step = [0.0, 0.0]
    if before.ranges and after.ranges:
        ranges = np.reshape(before.ranges, (4, 3))
        step = [2 * max(0.0, float(ranges[row].max())) / 65535 for row in (1, 3)]
    size = max(1.0, float(np.abs(before.translation).max(initial=0)))
    apart = np.abs(after.translation - before.translation) / size
    verdict.grow(translation=apart.max(initial=0))
    assert apart.max(initial=0) <= FRAMES_WITHIN + step[0]
    old, new = (frames.rotation / np.linalg.norm(frames.rotation, axis=2, keepdims=True) for frames in (before, after))
    sign = np.where(np.einsum("fnk,fnk->fn", old, new) < 0, -1.0, 1.0)[..., None]  # q and -q turn alike
    verdict.grow(rotation=np.abs(new * sign - old).max(initial=0))
    np.testing.assert_allclose(new * sign, old, rtol=0, atol=FRAMES_WITHIN)
    np.testing.assert_allclose(after.scale, before.scale, rtol=FRAMES_WITHIN, atol=FRAMES_WITHIN + step[1])
    apart = np.abs(after.scale - before.scale) / np.maximum(1, np.abs(before.scale))
    verdict.grow(scale=apart.max(initial=0))
