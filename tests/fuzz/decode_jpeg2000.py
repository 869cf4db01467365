"""Hostile JPEG 2000 pictures neither crash Blender nor cost much, if the check of their headers lets them through.

Streams are made from sound ones that Blender writes, those of the sample archive and those of a folder. Accepted ones
are decoded in child processes, each of which reports which stream it is at, so that the cause of a crash is known.

    python tests/fuzz/decode_jpeg2000.py --streams 10000
    python tests/fuzz/decode_jpeg2000.py --streams 10000 --seed 2 --seeds FOLDER
    python tests/fuzz/decode_jpeg2000.py --streams 1000 --without-check
    python tests/fuzz/decode_jpeg2000.py --only 1234 --write FILE

Without the check Blender 4.5 crashes, which shows that this script would see it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from meshfuzz import jpeg2000_cases, memory
from meshfuzz.checkout import SAMPLES, leave, load_package

MOST_SECONDS = 2.0
MOST_MEMORY = 1 << 30
_PATIENCE = 60.0
"""Seconds after which a process without a report is ended; other programs may use the processors."""
_BATCH = 200
_START, _FINISH = "stream-starts", "stream-ends"
"""First words of the lines of a child process; Blender writes others."""
_LENGTH = struct.Struct("<II")
_ARCHIVE = "opensim_archives/region.oar"
_PICTURES = ((64, 64), (200, 48), (33, 130))


@dataclass
class Outcome:
    """What became of the streams."""

    streams: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refused by the check, by reason."""
    decoded: int = 0
    undecodable: int = 0
    """Accepted by the check, but Blender reports an error."""
    slowest: float = 0.0
    """Processor time in seconds."""
    largest: int = 0
    """Largest memory of a process while it decoded, in bytes."""
    bad: list[str] = field(default_factory=list)
    """Crashes, and streams that cost too much."""

    def __str__(self) -> str:
        accepted = self.decoded + self.undecodable
        return (
            f"{self.streams:,} streams: {sum(self.refused.values()):,} refused, {accepted:,} accepted, of which "
            f"{self.undecodable:,} cannot be decoded; slowest {self.slowest:.2f} s, largest "
            f"{self.largest / 2**20:,.0f} MiB, {len(self.bad)} bad"
        )


def run(streams: int, seed: int, seeds: Path | None = None, *, first: int = 0, is_checked: bool = True) -> Outcome:
    """Examine and decode streams; all of them unless ``is_checked``."""
    load_package()
    from meshferry.io_formats.encodings.jpeg2000 import examine

    version, known = _seeds(seeds)
    outcome = Outcome()
    waiting: list[tuple[int, bytes]] = []
    for number in range(first, first + streams):
        stream, _how = jpeg2000_cases.make(known, random.Random(f"{seed}/{number}"))
        found = examine(stream, two_components=version >= (5, 2))
        outcome.streams += 1
        if is_checked and isinstance(found, str):
            outcome.refused[getattr(found, "template", found)] += 1
        else:
            waiting.append((number, stream if isinstance(found, str) else found.stream))
        if len(waiting) == _BATCH:
            _decode(waiting, outcome)
            waiting = []
    _decode(waiting, outcome)
    return outcome


def _seeds(folder: Path | None) -> tuple[tuple[int, ...], list[bytes]]:
    """Return Blender's version and sound streams."""
    with tempfile.TemporaryDirectory(prefix="meshferry-") as made:
        command = [sys.executable, __file__, "--make", made]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = [path.read_bytes() for path in sorted(Path(made).iterdir())]
    if (SAMPLES / _ARCHIVE).is_file():
        with tarfile.open(SAMPLES / _ARCHIVE) as archive:
            members = [member for member in archive if member.name.endswith("_texture.jp2")]
            found += [stream.read() for member in members if (stream := archive.extractfile(member)) is not None]
    if folder is not None:
        found += [path.read_bytes() for path in sorted(folder.iterdir())]
    return tuple(json.loads(done.stdout.splitlines()[-1])), found


def _make(folder: Path) -> None:
    """Write sound streams with Blender: grey, colour, and colour with alpha; exact, good and bad ones."""
    import bpy
    import numpy as np

    scene = bpy.context.scene
    scene.view_settings.view_transform = "Raw"
    settings = scene.render.image_settings
    settings.file_format, settings.jpeg2k_codec = "JPEG2000", "J2K"
    for width, height in _PICTURES:
        image = bpy.data.images.new("Picture", width, height, alpha=True)
        waves = np.sin(np.linspace(0, 7, width * height * 4)) * 0.4 + 0.5
        image.pixels.foreach_set((waves + 0.1 * np.random.default_rng(1).random(len(waves))).astype(np.float32))
        for settings.color_mode in ("BW", "RGB", "RGBA"):
            for settings.quality in (100, 60, 5):
                name = f"{settings.color_mode}_{width}_{settings.quality}.j2c"
                image.save_render(str(folder / name), scene=scene)
    print(json.dumps(bpy.app.version), flush=True)


# -- child processes ----------------------------------------------------------------------------


def _decode(streams: Sequence[tuple[int, bytes]], outcome: Outcome) -> None:
    """Decode streams in child processes; after a crash, another process goes on with the next stream."""
    left = list(streams)
    while left:
        at = -1
        with subprocess.Popen(
            [sys.executable, __file__, "--child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as child:
            feeder = threading.Thread(target=_feed, args=(child, left), daemon=True)
            feeder.start()
            guard = _Guard(child)
            for line in child.stdout or ():
                guard.seen = time.monotonic()
                word, *values = line.decode(errors="replace").split() or [""]
                if word == _START:
                    at = int(values[0])
                elif word == _FINISH:
                    _count(int(values[0]), values[1] == "decoded", float(values[2]), int(values[3]), outcome)
            status = child.wait()
            guard.is_over = True
            feeder.join()
        if not status:
            return
        outcome.bad.append(f"stream {at}: {'no end' if guard.has_killed else 'process ended with'} {status}")
        left = [(number, stream) for number, stream in left if number > at]


class _Guard(threading.Thread):
    """Ends a process that reports nothing for a long time."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self.child = child
        self.seen = time.monotonic()
        self.is_over = self.has_killed = False
        self.start()

    def run(self) -> None:
        while not self.is_over:
            time.sleep(0.2)
            if time.monotonic() - self.seen > _PATIENCE:
                self.has_killed = True
                self.child.kill()
                return


def _feed(child: subprocess.Popen[bytes], streams: Sequence[tuple[int, bytes]]) -> None:
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # the process crashed
        for number, stream in streams:
            child.stdin.write(_LENGTH.pack(number, len(stream)) + stream)
    with contextlib.suppress(BrokenPipeError):
        child.stdin.close()


def _count(number: int, is_decoded: bool, seconds: float, peak: int, outcome: Outcome) -> None:
    outcome.decoded += is_decoded
    outcome.undecodable += not is_decoded
    outcome.slowest, outcome.largest = max(outcome.slowest, seconds), max(outcome.largest, peak)
    if seconds > MOST_SECONDS:
        outcome.bad.append(f"stream {number}: {seconds:.2f} s")
    if peak > MOST_MEMORY:
        outcome.bad.append(f"stream {number}: {peak / 2**20:,.0f} MiB")


def _child() -> None:
    """Decode the streams at standard input as the import does, and report each."""
    load_package()
    import bpy
    from meshferry.blender_data.image_decoding import decode
    from meshferry.io_formats.core.errors import FormatError

    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    give_back = memory.trimmer()
    memory.limit_address_space(4 * MOST_MEMORY)
    for number, stream in _received():
        print(_START, number, flush=True)
        give_back()
        memory.reset_peak()
        start = time.process_time()
        try:
            decode(stream, "picture")
            word = "decoded"
        except FormatError:
            word = "failed"
        print(_FINISH, number, word, f"{time.process_time() - start:.3f}", memory.peak(), flush=True)


def _received() -> Iterator[tuple[int, bytes]]:
    while head := sys.stdin.buffer.read(_LENGTH.size):
        number, length = _LENGTH.unpack(head)
        yield number, sys.stdin.buffer.read(length)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=Path, help="folder of sound streams")
    parser.add_argument("--without-check", action="store_true", help="decode what the check refuses, too")
    parser.add_argument("--only", type=int, help="number of a single stream")
    parser.add_argument("--write", type=Path, help="file for the single stream, which is not decoded then")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child()
        leave(0)
    if given.make:
        _make(given.make)
        leave(0)
    if given.write:
        stream, how = jpeg2000_cases.make(_seeds(given.seeds)[1], random.Random(f"{given.seed}/{given.only}"))
        given.write.write_bytes(stream)
        print(how)
        return 0
    single = given.only is not None
    number, first = (1, given.only) if single else (given.streams, 0)
    outcome = run(number, given.seed, given.seeds, first=first, is_checked=not given.without_check)
    print(outcome)
    for reason, count in outcome.refused.most_common():
        print(f"  {count:,} refused: {reason}")
    for line in outcome.bad:
        print(f"  {line}")
    return 1 if outcome.bad else 0


if __name__ == "__main__":
    sys.exit(main())
