"""Hostile animations of Second Life, binary and BVH: whole files with values that are hostile in themselves."""

from __future__ import annotations

import random

from . import raw
from .second_life_animation_seeds import constraint, ending, header, joint, keys

_FLOATS = (0.0, -0.0, 1e-45, 1e-9, 0.001, 0.5, 1.0, 2.0, 59.99, 60.0, 60.5, 1e9, 3e38, -1.0, -46.0)
_NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
_INTEGERS = (-(2**31), -2, -1, 0, 1, 2, 3, 4, 6, 7, 100, 2**31 - 1)
_NAMES = (
    *(b"mPelvis", b"mTorso", b"mChest", b"mNeck", b"mHead", b"mShoulderLeft", b"mElbowLeft", b"mWristLeft"),
    *(b"hip", b"lShldr", b"avatar_mPelvis", b"Left Hand", b"Left_Hand", b"Chest", b"Skull", b"L_HAND", b"PELVIS"),
    *(b"Center 2", b"mRoot", b"mScreen", b"lFoot_End", b"", b"x" * 300, b"\xff\xfe", b"m\xc3\xa9"),
)
_EMOTES = (b"", b"express_smile", b"Closed_Mouth", b"\xff", b"e" * 255)


def make_animation(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return an animation and how it was made."""
    return _changed(whole_animation(rng, hostile=rng.random() < 0.7), files, rng)


def make_bvh(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a BVH file and how it was made."""
    data = whole_bvh(rng)
    if rng.random() < 0.6:
        lines = data.split(b"\n")
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(lines))
            choice = rng.random()
            if choice < 0.3:
                lines[place] = rng.choice(lines)
            elif choice < 0.5:
                del lines[place:][:1]
            else:
                words = lines[place].split(b" ")
                words[rng.randrange(len(words))] = rng.choice(
                    (b"", b"nan", b"1e999", b"-1", b"1e9", b"0", b"3", b"6", b"}", b"{", b"Xrotation", b"\xff", b"1_0")
                )
                lines[place] = b" ".join(words)
        data = b"\n".join(lines)
        return data, "changed words"
    return _changed(data, files, rng)


def _changed(data: bytes, files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    choice = rng.random()
    if files and choice < 0.1:
        name = rng.choice(list(files))
        return raw.mutate(files[name], rng), f"raw changes to {name}"
    return (raw.mutate(data, rng), "raw changes") if choice < 0.35 else (data, "made values")


def whole_animation(rng: random.Random, *, hostile: bool) -> bytes:
    """Return an animation with a sound layout; hostile ones have values and counts that viewers refuse."""
    is_old = rng.random() < 0.2
    count = rng.choice((1, 1, 2, 3, 5, 12, 0 if hostile else 4, 216 if hostile and rng.random() < 0.05 else 2))
    times = [_float(rng, hostile) if hostile else rng.choice((0.0, 0.5, 1.0, 2.0)) for _ in range(4)]
    data = header(
        version=(0, 1) if is_old else (1, 0),
        priority=_integer(rng, hostile),
        duration=_float(rng, hostile) if hostile else rng.choice((0.0, 1.0, 2.0, 59.0)),
        emote=rng.choice(_EMOTES) if hostile else b"",
        loop=(times[0], times[1], rng.choice((0, 1, 2, -1))),
        ease=(times[2], times[3]),
        hand=rng.choice((0, 1, 13, 14, 2**32 - 1)) if hostile else 1,
        joints=count,
    )
    names = list(_NAMES if hostile else _NAMES[:8])
    for number in range(count):
        name = rng.choice(names) if hostile else names[number % len(names)]
        curves = [_keys(rng, is_old=is_old, hostile=hostile) for _ in range(2)]
        data += joint(name, rotation=curves[0], position=curves[1], priority=_integer(rng, hostile))
    constraints = [
        constraint(
            chain=rng.choice((0, 1, 4, 255)),
            kind=rng.choice((0, 1, 2)),
            source=rng.choice((b"L_HAND", b"PELVIS", b"x" * 16, rng.randbytes(16))),
            target=rng.choice((b"GROUND", b"CHEST", b"")),
            values=[_float(rng, hostile) for _ in range(13)],
        )
        for _ in range(rng.choice((0, 0, 0, 1, 11)) if hostile else 0)
    ]
    data += ending(*constraints, stated=None if rng.random() < 0.95 else -1)
    return data + (rng.randbytes(rng.choice((0, 0, 1, 9))) if hostile else b"")


def of_one_joint(count: int) -> bytes:
    """Return an animation of one joint with so many rotation keys."""
    rows = ((number * 65535 // count, 30000, 32768, 32768) for number in range(count))
    return header(duration=60.0, loop=(0.0, 60.0, 1)) + joint(b"mHead", rotation=keys(*rows)) + ending()


def _keys(rng: random.Random, *, is_old: bool, hostile: bool) -> bytes:
    count = rng.choice((0, 1, 2, 3, 7, 40))
    stated = rng.choice((-1, 2**31 - 1, count + 1)) if hostile and rng.random() < 0.03 else count
    if is_old:
        rows = [tuple(_float(rng, hostile) for _ in range(4)) for _ in range(count)]
        return keys(*rows, kind="4f", stated=stated)
    codes = (0, 1, 16384, 32767, 32768, 50000, 65535)
    return keys(*(tuple(rng.choices(codes, k=4)) for _ in range(count)), stated=stated)


def _float(rng: random.Random, hostile: bool) -> float:
    return rng.choice(_NOT_FINITE if hostile and rng.random() < 0.01 else _FLOATS)


def _integer(rng: random.Random, hostile: bool) -> int:
    return rng.choice(_INTEGERS) if hostile and rng.random() < 0.3 else rng.randint(-1, 6)


def whole_bvh(rng: random.Random) -> bytes:
    """Return a BVH file of the avatar or of another figure."""
    names = ["hip", "abdomen", "chest", "neck", "head", "figureHair", "lCollar", "lShldr", "neckDummy"]
    if rng.random() < 0.3:
        names[rng.randrange(len(names))] = rng.choice(("Hips", "mChest", "L_HAND", "hip", "", "a b", "é"))
    count = rng.randint(1, len(names))
    lines, width, depth = ["HIERARCHY"], 0, 0
    for number, name in enumerate(names[:count]):
        channels = 6 if number == 0 or rng.random() < 0.2 else 3
        order = rng.sample("XYZ", 3)
        width += channels
        lines += [f"{'JOINT' if depth else 'ROOT'} {name}", "{", "OFFSET 0 1 0"]
        position = "Xposition Yposition Zposition " if channels == 6 else ""
        lines.append(f"CHANNELS {channels} {position}" + " ".join(f"{axis}rotation" for axis in order))
        depth += 1
        if 0 < number < count - 1 and rng.random() < 0.3:
            lines += ["End Site", "{", "OFFSET 0 0 0", "}", "}"]
            depth -= 1
    lines += ["End Site", "{", "OFFSET 0 0 0", "}"] + ["}"] * depth
    frames = rng.choice((1, 2, 3, 10))
    lines += ["MOTION", f"Frames: {frames}", f"Frame Time: {rng.choice(('0.033333', '0.1', '60', '1e-9', '1e30'))}"]
    values = ("0", "0.0", "1.5", "-90", "180", "720", "1e-7", "1e6")
    lines += [" ".join(rng.choice(values) for _ in range(width)) for _ in range(frames)]
    return ("\n".join(lines) + "\n").encode()
