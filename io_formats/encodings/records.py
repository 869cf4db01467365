"""Find the starts of consecutive records, whose sizes follow from their first bytes, without a Python step for each.

Each record determines the start of the next one, so the chain would have to be followed one by one. Instead, the bytes
are divided into blocks, and all blocks are followed in parallel, each from a guessed first record. If the guess was
wrong, the block is followed again from where the block before it ends. Chains that start at different offsets of a
block soon meet, so this converges within a few rounds. If it does not, every possible start in a block is followed. For
few bytes, every byte is treated as a start, and the number of steps is doubled in each pass.
"""

import numpy as np
import numpy.typing as npt

from ..core.errors import FormatError

_Positions = npt.NDArray[np.intp]
_Bytes = npt.NDArray[np.uint8]

_REGION = 1 << 20
"""Bytes processed at a time: few enough for the processor's cache, and for reading little after the last record."""
_BLOCK = 512
_SMALL = 1 << 13
"""Number of bytes up to which every byte is treated as a start. This takes a few passes, while following a few blocks
would take a hundred steps."""
_RUN = 256
"""Minimum number of equal-sized records in a row that are skipped in one step."""
_ROUNDS, _FEW, _SHRINKING = 48, 8, 0.9
"""Each round follows only the blocks that are still wrong, so it continues while their number decreases. With frames of
records of 13 and 29 bytes a third converges in each round, and twenty cheap rounds take a fifth of the time of
following every possible start."""


def record_starts(
    data: _Bytes, count: int, size_of: npt.NDArray[np.intp], *, what: str = "records"
) -> tuple[_Positions, int]:
    """Find the first byte of each of ``count`` consecutive records.

    Parameters
    ----------
    data:
        (n,) uint8, from the first record on; may continue after the last.
    count:
        Number of records.
    size_of:
        (256,) size of a record with this first byte, including it; 0 if no record starts with it.
    what:
        The name of the records in errors, in the plural.

    Returns
    -------
    starts:
        (count,) intp offsets in ``data``.
    end:
        Offset after the last record.

    Raises
    ------
    FormatError
        The bytes end before the records, or a first byte is invalid; with the offset in ``data``.
    """
    sizes = np.where(size_of > 0, size_of, 1).astype(np.intp)
    if count < 0 or count * int(sizes.min()) > len(data):
        raise FormatError("The file is cut off or damaged: {:,} {} do not fit into {:,} bytes", count, what, len(data))
    starts = np.empty(count, np.intp)
    done = position = 0
    while done < count:
        if position >= len(data):
            raise _cut_off(what, done - (position > len(data)), count, len(data))
        found, end = _run(data, position, sizes, count - done)
        if len(found) < min(_RUN, count - done):
            found, end = _region(data, position, sizes, count - done)
        starts[done : done + len(found)] = found
        refused = np.flatnonzero(size_of[data[found]] <= 0)
        if len(refused):
            place, number = int(found[refused[0]]), done + int(refused[0]) + 1
            template = "The file is damaged: number {:,} of {:,} {} starts with {}"
            raise FormatError(template, number, count, what, data[place], offset=place)
        done += len(found)
        position = end
    if position > len(data):
        raise _cut_off(what, count - 1, count, len(data))
    return starts, position


def _cut_off(what: str, whole: int, count: int, size: int) -> FormatError:
    return FormatError("The file is cut off or damaged: {:,} of {:,} {} are whole", whole, count, what, offset=size)


def _run(data: _Bytes, position: int, sizes: npt.NDArray[np.intp], most: int) -> tuple[_Positions, int]:
    """Return the records from ``position`` on that have the size of the first one, and the end of the last."""
    size = int(sizes[data[position]])
    length, ahead = 0, _RUN
    while length < most:
        first = position + length * size
        heads = data[first : first + min(ahead, most - length) * size : size]
        other = np.flatnonzero(sizes[heads] != size)
        length += int(other[0]) if len(other) else len(heads)
        if len(other) or not len(heads):
            break
        ahead = min(ahead * 4, 1 << 18)
    return position + np.arange(length, dtype=np.intp) * size, position + length * size


def _region(data: _Bytes, position: int, sizes: npt.NDArray[np.intp], most: int) -> tuple[_Positions, int]:
    """Return at most ``most`` records that start within a region from ``position`` on, and the end of the last."""
    block = max(_BLOCK, 8 * int(sizes.max()))
    # A region may extend to the end of the data, or end with a part of a block.
    stop = min(position + min(_REGION, most * int(sizes.max())), len(data))
    if stop - position <= _SMALL:
        return _doubled(data[position:stop], position, sizes, most)
    bounds = np.append(np.arange(position, stop, block, dtype=np.intp), stop)
    entries, ends = bounds[:-1].copy(), bounds[1:]
    exits, counts = _follow(data, entries, ends, sizes)
    wrong = np.flatnonzero(entries[1:] != exits[:-1]) + 1
    for _ in range(_ROUNDS):
        if not len(wrong):
            break
        before = len(wrong)
        entries[wrong] = exits[wrong - 1]
        exits[wrong], counts[wrong] = _follow(data, entries[wrong], ends[wrong], sizes)
        wrong = np.flatnonzero(entries[1:] != exits[:-1]) + 1
        if len(wrong) > max(_FEW, before * _SHRINKING):
            break
    if len(wrong):
        _settle(data, entries, ends, exits, counts, sizes)
    first = np.cumsum(counts) - counts
    starts = np.empty(int(counts.sum()), np.intp)
    _follow(data, entries, ends, sizes, into=(starts, first))
    if len(starts) > most:
        return starts[:most], int(starts[most])
    return starts, int(exits[-1])


def _doubled(data: _Bytes, position: int, sizes: npt.NDArray[np.intp], most: int) -> tuple[_Positions, int]:
    """Return at most ``most`` records from ``position`` on, and the end of the last; fast for few bytes.

    An array holds, for a record at each byte, the start of the n-th record after it. Indexing this array by itself
    doubles n.
    """
    here = np.arange(len(data), dtype=np.intp)
    after = here + sizes[data]
    beyond = len(data)
    # the last entry stands for every position after the end of the bytes
    later = np.append(np.minimum(after, beyond), beyond)
    starts = np.zeros(1, np.intp)
    while len(starts) <= most and starts[-1] < beyond:
        starts = np.concatenate([starts, later[starts]])
        later = later[later]
    starts = starts[: np.searchsorted(starts, beyond)]
    if len(starts) > most:
        return position + starts[:most], position + int(starts[most])
    return position + starts, position + int(after[starts[-1]])


def _follow(
    data: _Bytes,
    entries: _Positions,
    ends: _Positions,
    sizes: npt.NDArray[np.intp],
    into: tuple[_Positions, _Positions] | None = None,
) -> tuple[_Positions, _Positions]:
    """Follow the chains of records from ``entries`` in parallel, each until it leaves its block at ``ends``.

    Return the first position after the block and the number of records of each chain. ``into``, if given, receives the
    positions of the records: an array, and the index in it of the first record of each chain.
    """
    exits, counts = entries.copy(), np.zeros(len(entries), np.intp)
    lanes = np.flatnonzero(entries < ends)
    places, limits = entries[lanes], ends[lanes]
    step = 0
    while len(lanes):
        if into is not None:
            into[0][into[1][lanes] + step] = places
        places = places + sizes[data[places]]
        step += 1
        left = places >= limits
        if left.any():
            exits[lanes[left]] = places[left]
            counts[lanes[left]] = step
            lanes, places, limits = lanes[~left], places[~left], limits[~left]
    return exits, counts


def _settle(
    data: _Bytes,
    entries: _Positions,
    ends: _Positions,
    exits: _Positions,
    counts: _Positions,
    sizes: npt.NDArray[np.intp],
) -> None:
    """Correct entries, exits and counts of all blocks in place, by following a chain from every possible start.

    This is for records whose chains from different starts never meet.
    """
    ways = int(sizes.max())
    starts = np.append(entries[:1], ends[:-1])
    all_entries = starts[:, None] + np.arange(ways)
    all_exits, all_counts = _follow(data, all_entries.ravel(), np.repeat(ends, ways), sizes)
    all_exits, all_counts = all_exits.reshape(-1, ways), all_counts.reshape(-1, ways)
    entry = int(entries[0])
    for number, start in enumerate(starts.tolist()):
        way = entry - start
        entries[number] = entry
        counts[number] = all_counts[number, way]
        entry = exits[number] = int(all_exits[number, way])
