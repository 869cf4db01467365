"""Choose the files of ``tests/fuzz/corpus``: cases that reach branches of ``io_formats`` which no smaller one does.

Only generated files and the project's own examples are used, never sample files. The files that are there stay
candidates, so that a case which once failed stays as long as it is named ``FORMAT-found-…``.

    python tests/fuzz/make_corpus.py --cases 10000 --seed 5
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from meshfuzz.cases import CORPUS, Case, CaseMaker
from meshfuzz.checkout import ROOT, load_package
from meshfuzz.judge import Depth, Judge

LARGEST = 2_600
MOST_BYTES = 280_000
ATTEMPTS = 40
"""Trials to shorten one file."""
READING = Depth(rewrite=False, export=False, convert=False)

Branch = tuple[str, int, int]


def main() -> int:
    """Write the corpus anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    load_package()
    judge = Judge()
    kept: dict[str, bytes] = {}
    reached: set[Branch] = set()
    for candidate, content in sorted(candidates(options.seed, options.cases), key=lambda pair: len(pair[1])):
        name, data = candidate, content
        if "-found-" not in candidate:
            fresh = branches(judge, content) - reached
            if not fresh:
                continue
            data = shortened(judge, content, fresh)
            name = f"{candidate.partition('-')[0]}-{hashlib.sha256(data).hexdigest()[:8]}"
        if sum(map(len, kept.values())) + len(data) > MOST_BYTES:
            break
        kept[name] = data
        reached |= branches(judge, data)
    CORPUS.mkdir(exist_ok=True)
    for path in CORPUS.glob("*.bin"):
        path.unlink()
    for name, data in kept.items():
        (CORPUS / f"{name}.bin").write_bytes(data)
    print(f"{len(kept)} files of {sum(map(len, kept.values())):,} bytes reach {len(reached):,} branches")
    return 0


def candidates(seed: int, cases: int) -> Iterator[tuple[str, bytes]]:
    """Yield small cases after the name of their format: the corpus itself, then generated ones."""
    for path in sorted(CORPUS.glob("*.bin")):
        yield path.stem, path.read_bytes()
    maker = CaseMaker(seed, use_samples=False)
    for number in range(cases):
        case = maker.make(number)
        if len(case.data) <= LARGEST:
            yield f"{case.recipe.partition(':')[0]}-{number}", case.data


def branches(judge: Judge, data: bytes) -> set[Branch]:
    """Return the steps from line to line that reading, checking and mapping of a file take in ``io_formats``."""
    folder = str(ROOT / "io_formats")
    found: set[Branch] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(folder):
            return None
        before = frame.f_lineno

        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal before
            found.add((file, before, frame.f_lineno))
            before = frame.f_lineno
            return line

        return line

    sys.settrace(trace)
    try:
        judge.judge(Case(0, data, "corpus"), READING)
    finally:
        sys.settrace(None)
    return found


def shortened(judge: Judge, data: bytes, wanted: set[Branch]) -> bytes:
    """Return the bytes without pieces that the wanted branches do not need."""
    attempts = ATTEMPTS
    size = len(data) // 2
    while size >= 4 and attempts:
        at = 0
        while at < len(data) and attempts:
            attempts -= 1
            shorter = data[:at] + data[at + size :]
            if wanted <= branches(judge, shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
