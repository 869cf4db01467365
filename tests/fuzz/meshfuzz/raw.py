"""Changes to bytes of which nothing is known."""

from __future__ import annotations

import random

_NUMBERS = (0, 1, -1, 2, 255, 256, 65535, 65536, 2**24, 2**31 - 1, -(2**31))
_WORDS = (
    *(number.to_bytes(4, "little", signed=True) for number in _NUMBERS),
    *(number.to_bytes(4, "big", signed=True) for number in (1, 255, 2**31 - 1)),
    b"\x00\x00\xc0\x7f",  # not a number, as a float
)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with one to a few changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
        data = rng.choice(_CHANGES)(data, rng)
    return data


def flip(data: bytes, rng: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    # Half of the time near the start, where headers and counts are.
    reach = len(changed) if rng.random() < 0.5 else min(len(changed), 64)
    changed[rng.randrange(reach)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    if len(data) < 4:
        return flip(data, rng)
    at = rng.randrange(len(data) - 3)
    return data[:at] + rng.choice(_WORDS) + data[at + 4 :]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    fresh = rng.choice(
        (rng.randbytes(rng.choice((1, 4, 40))), bytes(rng.choice((1, 4, 5000))), b"\xff" * rng.choice((1, 9, 20)))
    )
    return data[:at] + fresh + data[at:]


def cut(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 4, 16, 500)) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    chunk = data[at : at + rng.choice((1, 4, 64, 1000))]
    return data[:at] + chunk * rng.choice((2, 3, 20)) + data[at + len(chunk) :]


def exchange(data: bytes, rng: random.Random) -> bytes:
    """Exchange two neighbouring chunks."""
    length = rng.choice((1, 4, 16, 200))
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + length : at + 2 * length] + data[at : at + length] + data[at + 2 * length :]


def noise(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    chunk = rng.randbytes(min(len(data) - at, rng.choice((2, 8, 64))))
    return data[:at] + chunk + data[at + len(chunk) :]


_CHANGES = (flip, flip, flip, truncate, overwrite, overwrite, insert, cut, repeat, exchange, noise)
