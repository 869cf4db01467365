"""Choose the keys of sampled curves so that the rest follows from them within a tolerance (format page, section 10).

Curves are split at their worst sample until no sample is off by more than the tolerance plus the rounding of the keys
around it (Ramer, Douglas and Peucker). All curves and all their segments are processed at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Distance = Callable[[Floats, Floats], Floats]


def angles(one: Floats, other: Floats) -> Floats:
    """Return the angles in radians between unit quaternions (…, 4)."""
    # from the chord, since the arc cosine has no precision near 0
    chord = np.minimum(np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1))
    return np.asarray(4 * np.arcsin(np.clip(chord / 2, 0, 1)))


def distances(one: Floats, other: Floats) -> Floats:
    """Return the distances between points (…, 3)."""
    return np.asarray(np.linalg.norm(one - other, axis=-1))


def chosen_keys(
    exact: Floats, stored: Floats, times: Floats, tolerance: Floats, distance: Distance
) -> npt.NDArray[np.bool_]:
    """Return which samples become keys, (J, F).

    Parameters
    ----------
    exact:
        (J, F, k) samples of J curves: unit quaternions, each nearest to the one before it, or points.
    stored:
        (J, F, k) the samples as a reader decodes them.
    times:
        (F,) times of the samples as a reader decodes them, rising.
    tolerance:
        (J,) largest error of each curve, in the unit of ``distance``.
    distance:
        ``angles`` or ``distances``.
    """
    curves, frames = exact.shape[:2]
    kept = np.zeros((curves, frames), bool)
    if not frames:
        return kept
    kept[:, 0] = True
    rounding = distance(exact, stored)
    moving = (distance(exact, stored[:, :1]) > (tolerance + rounding[:, 0])[:, None]).any(axis=1)
    kept[moving, -1] = True
    open_curves = np.flatnonzero(moving)
    while len(open_curves):
        worst = _worst(
            exact[open_curves],
            stored[open_curves],
            times,
            tolerance[open_curves, None],
            rounding[open_curves],
            kept[open_curves],
            distance,
        )
        kept[open_curves] |= worst
        open_curves = open_curves[worst.any(axis=1)]
    return kept


def _worst(
    exact: Floats,
    stored: Floats,
    times: Floats,
    tolerance: Floats,
    rounding: Floats,
    kept: npt.NDArray[np.bool_],
    distance: Distance,
) -> npt.NDArray[np.bool_]:
    """Return the worst sample of each segment between keys if it is off by more than the tolerance, (J, F)."""
    curves, frames = kept.shape
    place = np.arange(frames)
    before = np.maximum.accumulate(np.where(kept, place, 0), axis=1)
    after = np.minimum.accumulate(np.where(kept, place, frames - 1)[:, ::-1], axis=1)[:, ::-1]
    row = np.arange(curves)[:, None]
    width = times[after] - times[before]
    share = np.where(width > 0, (times - times[before]) / np.where(width > 0, width, 1), 0.0)[..., None]
    between = interpolated(stored[row, before], stored[row, after], share)
    allowed = tolerance + np.maximum(rounding[row, before], rounding[row, after])
    excess = np.where(kept, -1.0, distance(exact, between) - allowed).reshape(-1)
    # A segment extends from a key to the sample before the next one; each row starts with a key.
    starts = np.flatnonzero(kept.reshape(-1))
    most = np.maximum.reduceat(excess, starts)
    of_segment = np.repeat(most, np.diff(np.append(starts, excess.size)))
    candidates = np.flatnonzero((excess > 0) & (excess == of_segment))
    segment = np.searchsorted(starts, candidates, side="right")
    first = candidates[np.unique(segment, return_index=True)[1]]
    found = np.zeros(excess.size, bool)
    found[first] = True
    return found.reshape(kept.shape)


def interpolated(a: Floats, b: Floats, share: Floats) -> Floats:
    """Return values between keys as a viewer computes them: linear; quaternions are normalised."""
    if a.shape[-1] == 4:
        b = np.where((a * b).sum(axis=-1, keepdims=True) < 0, -b, b)
    mixed = a + share * (b - a)
    if a.shape[-1] == 4:
        mixed /= np.linalg.norm(mixed, axis=-1, keepdims=True)
    return mixed
