"""What has to be the same in a Second Life mesh asset that went through Blender and back, both read by
``second_life_oracle``.

Stored positions, UV and hulls, the domains they lie in, triangles in their order, and which face has nothing in a level
are compared exactly; normals, weights and matrices within steps. Triangles that use a vertex twice do not survive
Blender: they are counted and left out, and a face that is left without any counts as empty. What servers put into
headers is not asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import second_life_oracle as oracle

Array = npt.NDArray[Any]

EXACT = 1.0
"""Steps of 1/65535 that normals may differ by where Blender holds them as they are."""
EDITABLE = 0.015 * 65535 / 2
"""The same where it keeps them in its tangent space."""
MATRIX_WITHIN = 1e-5
"""Of a matrix's numbers; relative to those above 1."""
KEPT_KEYS = ("submodel_id", "material_list")
"""Of the header; the other keys are block places, and what servers add."""


@dataclass
class Verdict:
    """What was left out of the comparison, and the largest differences in the rest."""

    repeated: int = 0
    """Triangles that use a vertex twice."""
    excepted: int = 0
    """Triangles whose normals were not asked for."""
    triangles: int = 0
    """Triangles compared."""
    reordered: int = 0
    """Faces whose vertices came in another order or number, though each triangle says the same."""
    normal: float = 0.0
    """Steps."""
    weight: float = 0.0
    """Steps."""
    matrix: float = 0.0
    faces: Counter[str] = field(default_factory=Counter)
    """Faces compared, by block."""

    def grow(self, **found: float) -> None:
        for name, value in found.items():
            setattr(self, name, max(getattr(self, name), float(value)))


def same_asset(
    before: oracle.Asset,
    after: oracle.Asset,
    *,
    normals: float | None = EXACT,
    weights: float = 1.0,
    except_doubtful: bool = False,
    welded: bool = False,
    in_order: bool = True,
) -> Verdict:
    """Compare whole assets.

    Parameters
    ----------
    normals:
        Steps that they may differ by; None: they are not asked for.
    weights:
        Steps that they may differ by, of the weight as stored or as a share of its vertex's sum (which is a few steps
        short of 65535 in files of the viewer).
    except_doubtful:
        Ask no normals of triangles (nearly) without area and of twins, which lose them in Blender's tangent space.
    welded:
        Vertices at one place were one in between: triangles that use a place twice are gone, too.
    in_order:
        Require vertices in their order and number; otherwise only that the triangles' corners say the same in order.
    """
    verdict = Verdict()
    for key in KEPT_KEYS:
        assert after.header.get(key) == before.header.get(key), key
    assert list(after.levels) == list(before.levels), "levels"
    assert (after.physics_mesh is None) == (before.physics_mesh is None), "physics mesh"
    assert after.prefix_size == 0, "the old prefix is not written"
    same_skin(before.skin, after.skin, verdict)
    same_hulls(before.hulls, after.hulls)
    blocks = [(level, before.levels[level], after.levels[level]) for level in before.levels]
    if before.physics_mesh is not None and after.physics_mesh is not None:
        blocks.append(("physics_mesh", before.physics_mesh, after.physics_mesh))
    for block, olds, news in blocks:
        assert len(news) == len(olds), f"{block}: faces"
        for number, (old, new) in enumerate(zip(olds, news, strict=True)):
            where = f"{block}, face {number}"
            mine, theirs = Corners(old, before, welded=welded), Corners(new, after)
            verdict.repeated += mine.repeated
            assert theirs.repeated == 0, where
            assert new.no_geometry == (old.no_geometry or not len(mine.triangles)), f"{where}: NoGeometry"
            if not new.no_geometry:
                verdict.faces[block] += 1
                verdict.triangles += len(theirs.triangles)
                same_face(mine, theirs, verdict, where, weights, is_physics=block == "physics_mesh")
                if normals is not None and old.stored_normals is not None:
                    same_normals(mine, theirs, verdict, where, normals, except_doubtful=except_doubtful)
                if not same_order(mine, theirs):
                    verdict.reordered += 1
                    assert not in_order, f"{where}: vertices in another order"
    return verdict


class Corners:
    """What a face says at each corner of its triangles, without those that use a vertex twice."""

    def __init__(self, face: oracle.Face, asset: oracle.Asset, *, welded: bool = False) -> None:
        self.face = face
        triangles = face.triangles.astype(np.int64)
        places = triangles
        if len(face.stored):
            places = np.unique(face.stored, axis=0, return_inverse=True)[1].reshape(-1)[triangles]
        names = places if welded else triangles
        repeated = (names[:, 0] == names[:, 1]) | (names[:, 1] == names[:, 2]) | (names[:, 2] == names[:, 0])
        self.repeated = int(repeated.sum())
        self.triangles = triangles[~repeated]
        self.places = places[~repeated]
        self.positions = face.stored[self.triangles]
        self.normals = None if face.stored_normals is None else face.stored_normals[self.triangles]
        self.uvs = None if face.stored_uvs is None else face.stored_uvs[self.triangles]
        self.weights: Array | None = None
        if face.weights is not None and asset.skin is not None:
            self.weights = asset.weights_of(face)[self.triangles] * 65535

    def doubtful(self) -> npt.NDArray[np.bool_]:
        """Tell which triangles lose their normals in Blender's tangent space: (nearly) without area, and twins.

        Two triangles back to back are twins, too, whose vertices are two at one of their three places.
        """
        corners = self.face.positions[self.triangles].astype(float)
        edges = corners[:, 1:] - corners[:, :1]
        area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
        longest = np.abs(edges).max(axis=(1, 2), initial=0)
        rows = [tuple(sorted(row)) for row in self.places.tolist()]
        seen = Counter(rows)
        return (area <= 2e-4 * longest**2) | np.array([seen[row] > 1 for row in rows], bool)


def same_face(old: Corners, new: Corners, verdict: Verdict, where: str, weights: float, *, is_physics: bool) -> None:
    """Compare all but normals; a physics mesh need keep neither UV nor weights (sections 4.1 and 5.2)."""
    np.testing.assert_array_equal(new.face.domain, old.face.domain, f"{where}: domain of positions")
    # The same triangles in the same order, first corner first.
    np.testing.assert_array_equal(new.positions, old.positions, f"{where}: positions")
    if is_physics:
        return
    assert (new.uvs is None) == (old.uvs is None), f"{where}: UV"
    if old.uvs is not None:
        np.testing.assert_array_equal(new.face.uv_domain, old.face.uv_domain, f"{where}: domain of UV")
        np.testing.assert_array_equal(new.uvs, old.uvs, f"{where}: UV")
    assert (new.face.stored_normals is None) <= (old.face.stored_normals is None), f"{where}: normals"
    assert (new.weights is None) == (old.weights is None), f"{where}: weights"
    if old.weights is not None and new.weights is not None:
        sums = old.weights.sum(axis=2, keepdims=True)
        shares = old.weights / np.where(sums > 0, sums, 1) * 65535
        asked = (sums > 0)[..., 0]  # a vertex without weights follows the first joint
        apart = np.minimum(np.abs(new.weights - old.weights), np.abs(new.weights - shares))[asked]
        verdict.grow(weight=apart.max(initial=0))
        assert apart.max(initial=0) <= weights + 1e-6, f"{where}: weights {apart.max()} steps apart"


def same_normals(
    old: Corners, new: Corners, verdict: Verdict, where: str, within: float, *, except_doubtful: bool
) -> None:
    """Compare normals in steps, of what is stored or of what is stored made unit, whichever is nearer."""
    assert old.normals is not None and new.normals is not None
    asked = ~old.doubtful() if except_doubtful else np.ones(len(old.triangles), bool)
    verdict.excepted += int(np.count_nonzero(~asked))
    stored = old.normals.astype(float)
    vectors = stored / 65535 * 2 - 1
    lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
    unit = (vectors / np.where(lengths > 0, lengths, 1) + 1) / 2 * 65535
    apart = np.minimum(np.abs(new.normals - stored), np.abs(new.normals - unit)).max(axis=2, initial=0)[asked]
    verdict.grow(normal=apart.max(initial=0))
    assert (apart <= within + 1e-6).all(), f"{where}: normals {apart.max()} steps apart"


def same_order(old: Corners, new: Corners) -> bool:
    """Tell whether vertices have kept their order and number, but for those that no triangle uses any more."""
    used = np.unique(old.triangles)
    places = np.zeros(len(old.face.stored), np.int64)
    places[used] = np.arange(len(used))
    for count, triangles in ((len(old.face.stored), old.triangles), (len(used), places[old.triangles])):
        if len(new.face.stored) == count and np.array_equal(new.triangles, triangles):
            return True
    return False


def same_skin(old: oracle.Skin | None, new: oracle.Skin | None, verdict: Verdict) -> None:
    assert (new is None) == (old is None), "skin"
    if old is None or new is None:
        return
    assert new.joints == old.joints, "joints"
    assert new.lock_scale == old.lock_scale
    assert (new.overrides is None) == (old.overrides is None), "joint positions"
    assert (new.pelvis_offset is None) == (old.pelvis_offset is None), "pelvis offset"
    pairs = [(old.bind_shape, new.bind_shape), (old.inverse_bind, new.inverse_bind)]
    if old.overrides is not None and new.overrides is not None:
        pairs.append((old.overrides[:, 3], new.overrides[:, 3]))  # nothing but the place counts: section 4.5
    if old.pelvis_offset is not None and new.pelvis_offset is not None:
        pairs.append((np.array(old.pelvis_offset), np.array(new.pelvis_offset)))
    for mine, theirs in pairs:
        apart = np.abs(theirs - mine) / np.maximum(1, np.abs(mine))
        verdict.grow(matrix=apart.max(initial=0))
        assert apart.max(initial=0) <= MATRIX_WITHIN, f"matrices {apart.max()} apart"


def same_hulls(old: oracle.Hulls | None, new: oracle.Hulls | None) -> None:
    """Compare hulls as sets of points; where the old file has none, a new one may have been given its base hull."""
    if old is None:
        assert new is None or not new.hulls
        return
    assert new is not None, "hulls"
    np.testing.assert_array_equal(new.domain, old.domain, "domain of hulls")
    assert len(new.hulls) == len(old.hulls), "hulls"
    for number, (mine, theirs) in enumerate(zip(old.hulls, new.hulls, strict=True)):
        np.testing.assert_array_equal(ordered(theirs), ordered(mine), f"hull {number}")
    assert old.base is None or new.base is not None, "base hull"
    if old.base is not None and new.base is not None:
        np.testing.assert_array_equal(ordered(new.base), ordered(old.base), "base hull")


def ordered(points: oracle.Ints) -> oracle.Ints:
    return points[np.lexsort(points.T)]
