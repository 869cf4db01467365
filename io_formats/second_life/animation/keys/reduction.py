"""Choose the keys of sampled curves so that the rest follows from them within a tolerance (format page, section 10).

Curves are split at their worst sample until no sample is off by more than the tolerance plus the rounding of the keys
around it (Ramer, Douglas and Peucker). All segments of several curves are processed at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_CURVES_AT_ONCE = 8
"""Number of curves whose samples, at most 1,801 each at 30 frames per second, fit the processor's cache."""


def distances(one: Floats, other: Floats) -> Floats:
    """Return the angles in radians between unit quaternions (…, 4), or the distances between points (…, 3)."""
    difference = one - other
    if difference.shape[-1] == 3:
        return np.asarray(np.linalg.norm(difference, axis=-1))
    # Computed from the chord, since the arc cosine has no precision near 0. Both signs of a quaternion are the same
    # rotation.
    squared = np.einsum("...i,...i->...", difference, difference)
    return np.asarray(4 * np.arcsin(np.sqrt(np.clip(np.minimum(squared, 4 - squared), 0, 4)) / 2))


def significances(exact: Floats, stored: Floats, times: Floats, finest: Floats) -> Floats:
    """Return for each sample, (J, F), the smallest tolerance at which the sample is not needed as a key.

    For a tolerance t, at least ``finest``, the samples with a value above t are kept; the first sample is always kept.
    The sample at which a segment is split does not depend on the tolerance, so one run serves all tolerances.

    Parameters
    ----------
    exact:
        (J, F, k) samples of J curves: unit quaternions, each nearest to the one before it, or points.
    stored:
        (J, F, k) the samples as a reader decodes them; quaternions with w >= 0, since their signs matter to viewers.
    times:
        (F,) times of the samples as a reader decodes them, rising.
    finest:
        (J,) smallest tolerance of each curve, in the unit of :func:`distances`.
    """
    found = np.full(exact.shape[:2], -np.inf)
    for start in range(0, len(exact), _CURVES_AT_ONCE):
        some = slice(start, start + _CURVES_AT_ONCE)
        _split(found[some], exact[some], stored[some], times, finest[some])
    return found


def _split(found: Floats, exact: Floats, stored: Floats, times: Floats, finest: Floats) -> None:
    """Fill the array ``found`` with the results of :func:`significances` for a few curves."""
    curves, frames = found.shape
    if not frames:
        return
    rounding = distances(exact, stored)
    off = (distances(exact, stored[:, :1]) - rounding[:, :1]).max(axis=1)
    found[:, -1] = off
    found[:, 0] = np.inf
    # A segment is a pair of indices into the concatenated samples of all curves.
    rows = np.flatnonzero(off > finest)
    points = (curves * frames, -1)
    samples = _Samples(exact.reshape(points), stored.reshape(points), rounding.reshape(-1), np.tile(times, curves))
    start, end = rows * frames, rows * frames + frames - 1
    _split_segments(found.reshape(-1), samples, (start, end), off[rows], finest[rows])


def needed_between(exact: Floats, stored: Floats, times: Floats, fixed: Indices, tolerance: float) -> Indices:
    """Return the samples of one curve (F, k) to keep as keys, in order: ``fixed`` ones, and those needed between them.

    Before the first and after the last key the value is held. The other parameters are those of ``significances``.
    """
    last = len(exact) - 1
    rounding = distances(exact, stored)
    ends = []
    for end, held, outside in ((0, fixed[0], slice(0, fixed[0])), (last, fixed[-1], slice(fixed[-1] + 1, None))):
        if (distances(exact[outside], stored[held]) - rounding[held]).max(initial=0.0) > tolerance:
            ends.append(end)
    kept = np.union1d(fixed, np.array(ends, np.intp))
    values = np.full(len(exact), -np.inf)
    values[kept] = np.inf
    count = len(kept) - 1
    above, limit = np.full(count, np.inf), np.full(count, tolerance)
    samples = _Samples(exact, stored, rounding, times)
    _split_segments(values, samples, (kept[:-1], kept[1:]), above, limit)
    return np.flatnonzero(values > tolerance)


def _split_segments(
    values: Floats,
    samples: _Samples,
    segments: tuple[Indices, Indices],
    above: Floats,
    limit: Floats,
) -> None:
    """Split segments recursively; set in ``values`` the significance of each sample at which one is split.

    Parameters
    ----------
    segments:
        First and last sample of each segment.
    above:
        Significance of each segment: an upper limit for the samples in it.
    limit:
        Tolerance of each segment.
    """
    start, end = segments
    while True:
        inner = end - start > 1
        start, end, above, limit = start[inner], end[inner], above[inner], limit[inner]
        if not len(start):
            return
        worst, excess = samples.worst(start, end)
        needed = excess > limit
        start, end, worst, limit = start[needed], end[needed], worst[needed], limit[needed]
        above = np.minimum(above[needed], excess[needed])
        values[worst] = above
        start, end = np.concatenate((start, worst)), np.concatenate((worst, end))
        above, limit = np.tile(above, 2), np.tile(limit, 2)


@dataclass
class _Samples:
    """Concatenated samples of several curves."""

    exact: Floats
    stored: Floats
    rounding: Floats
    """Distance between the exact and the stored value of each sample."""
    times: Floats

    def worst(self, start: Indices, end: Indices) -> tuple[Indices, Floats]:
        """Return the sample of each segment that is farthest from the curve between its keys, and that distance.

        The rounding of the keys is subtracted. ``start`` and ``end`` have a sample between them.
        """
        counts = end - start - 1
        first = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) + np.repeat(start + 1 - first, counts)
        begin = np.repeat(self.times[start], counts)
        share = (self.times[place] - begin) / np.repeat(self.times[end] - self.times[start], counts)
        a, b = self.stored[start], self.stored[end]
        between = interpolate(np.repeat(a, counts, axis=0), np.repeat(b, counts, axis=0), share[:, None])
        off = distances(self.exact[place], between)
        most = np.maximum.reduceat(off, first)
        candidates = np.flatnonzero(off == np.repeat(most, counts))
        segment = np.searchsorted(first, candidates, side="right")
        worst = place[candidates[np.unique(segment, return_index=True)[1]]]
        return worst, most - np.maximum(self.rounding[start], self.rounding[end])


def interpolate(a: Floats, b: Floats, share: Floats) -> Floats:
    """Return values (n, k) between keys as a viewer computes them; ``share`` is (n, 1).

    Values are interpolated linearly, and quaternions are normalised. Quaternions of opposite sign turn the short way at
    a constant speed.
    """
    mixed = a + share * (b - a)
    if a.shape[-1] == 4:
        cosine = (a * b).sum(axis=-1)
        turned = np.flatnonzero(cosine < 0)
        if len(turned):
            angle = np.arccos(np.clip(-cosine[turned], 0, 1))[:, None]
            weights = np.sin((1 - share[turned]) * angle), -np.sin(share[turned] * angle)
            mixed[turned] = np.where(angle > 1e-4, weights[0] * a[turned] + weights[1] * b[turned], a[turned])
        mixed /= np.linalg.norm(mixed, axis=-1, keepdims=True)
    return mixed
