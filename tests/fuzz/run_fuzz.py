"""Feed broken files to every reader: the only outcomes allowed are success and a FormatError.

Each case goes through recognition and reading; a share of the accepted files goes through writing, both mappings,
checks, facts and conversion to every other format, too. Every operation has 2 seconds and 64 MiB + 20 x (file +
inflated content) of memory; conversions have 512 MiB. The same seed gives the same cases. Failures are saved in
build/fuzz/, and the command that repeats each is printed.

    python tests/fuzz/run_fuzz.py --seconds 120
    python tests/fuzz/run_fuzz.py --cases 1000000 --seed 1 --jobs 2 --resume
    python tests/fuzz/run_fuzz.py --replay build/fuzz/exception-1-4711.bin

A long run is made in pieces; ``--resume`` continues it after an interruption and first repeats pieces with findings.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from meshfuzz import workers
from meshfuzz.cases import CaseMaker
from meshfuzz.checkout import BUILD, ROOT, load_package
from meshfuzz.judge import Finding
from meshfuzz.memory import MEBIBYTE
from meshfuzz.state import State, load_state

FOLDER = BUILD / "fuzz"
_SAVED_A_SIGNATURE = 3


def main(arguments: list[str] | None = None) -> int:
    """Run and return 0 when nothing was found, 1 otherwise."""
    options = _parser().parse_args(arguments)
    load_package()
    if options.replay:
        return _replay([Path(path) for path in options.replay])
    if options.case is not None:
        case = CaseMaker(options.seed, options.format).make(options.case)
        return _replay([_save(Finding("case", "", "", case.number, case.recipe, case.data), options.seed)])
    cases = options.cases or (10**9 if options.seconds else 100_000)
    state = load_state(FOLDER, options.seed, options.format) if options.resume else State(options.seed, options.format)
    ends = time.monotonic() + (options.seconds or 1e9)
    findings: list[tuple[Finding, int, Path]] = []
    for numbers in state.pieces(cases):
        if time.monotonic() >= ends:
            break
        findings += _run_piece(state, numbers, ends, options.jobs)
        rate = state.cases / max(state.seconds, 0.001)
        print(f"  {state.cases:,} cases, {rate:.0f} a second, {len(findings)} findings", file=sys.stderr, flush=True)
    _report(state, findings, as_json=options.json)
    return 1 if findings else 0


def _run_piece(state: State, numbers: range, ends: float, jobs: int) -> list[tuple[Finding, int, Path]]:
    """Run and record one piece; a piece that the end of the time cuts off is not recorded as done."""
    started = time.monotonic()
    totals = workers.run(state.seed, numbers, seconds=ends - started, jobs=jobs, only=state.format)
    seconds = time.monotonic() - started
    findings = _confirmed(totals.findings, state.seed)
    state.finish(numbers, totals, seconds, failed=bool(findings))
    if totals.cases >= len(numbers):
        state.save(FOLDER)
    return findings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so many seconds")
    parser.add_argument("--cases", type=int, default=0, help="number of cases (100,000 where no time is given either)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=workers.default_jobs(), help="worker processes")
    parser.add_argument("--format", default="", help="cases of this format alone")
    parser.add_argument("--resume", action="store_true", help="continue the last run of the seed and format")
    parser.add_argument("--case", type=int, help="run one case of the seed, and show what becomes of it")
    parser.add_argument("--replay", nargs="+", metavar="FILE", help="judge files that were saved")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    return parser


def _save(found: Finding, seed: int) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{found.kind}-{seed}-{found.number}.bin"
    path.write_bytes(found.data)
    return path


def _confirmed(findings: list[Finding], seed: int) -> list[tuple[Finding, int, Path]]:
    """Return one finding a signature, its number of cases and its file; slow and large ones must be so when alone."""
    counts = Counter(found.signature for found in findings)
    confirmed = []
    seen: Counter[str] = Counter()
    for found in sorted(findings, key=lambda f: len(f.data)):
        if seen[found.signature] >= _SAVED_A_SIGNATURE:
            continue
        path = _save(found, seed)
        if found.kind in ("slow", "memory") and workers.alone([str(path)], times=3)[0].finding is None:
            path.unlink()
            continue
        seen[found.signature] += 1
        if seen[found.signature] == 1:
            confirmed.append((found, counts[found.signature], path))
    return confirmed


def _replay(paths: list[Path]) -> int:
    failed = 0
    for path, verdict in zip(paths, workers.alone([str(path) for path in paths]), strict=True):
        steps = ", ".join(f"{step} {seconds * 1000:.0f} ms" for step, seconds in verdict.steps.items())
        print(f"{path.name}: {verdict.outcome}, {verdict.seconds:.2f} s, {verdict.growth / MEBIBYTE:.0f} MiB ({steps})")
        if verdict.finding:
            failed = 1
            print(f"{verdict.finding.kind}: {verdict.finding.signature}\n{verdict.finding.detail}")
    return failed


def _report(state: State, findings: list[tuple[Finding, int, Path]], *, as_json: bool) -> None:
    summary = {
        "seed": state.seed,
        "cases": state.cases,
        "seconds": round(state.seconds, 1),
        "outcomes": dict(state.outcomes),
        "slowest_seconds": round(state.slowest[0], 3),
        "slowest_case": state.slowest[1],
        "largest_mebibytes": round(state.largest[0] / MEBIBYTE, 1),
        "largest_case": state.largest[1],
        "leaked_mebibytes": round(state.leaked / MEBIBYTE, 1),
        "failed_pieces": state.failed,
        "findings": [
            {"kind": f.kind, "signature": f.signature, "cases": n, "recipe": f.recipe, "file": str(p.relative_to(ROOT))}
            for f, n, p in findings
        ],
    }
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in state.outcomes.most_common())
    print(f"{state.cases:,} cases of seed {state.seed} in {state.seconds:.0f} s: {outcomes}")
    slowest, largest = state.slowest, summary["largest_mebibytes"]
    print(f"slowest {slowest[0]:.2f} s (case {slowest[1]}), most memory {largest} MiB (case {state.largest[1]})")
    for found, number, path in findings:
        print(f"\n{found.kind}: {found.signature}  [{number} cases; {found.recipe}]")
        print("  " + found.detail.strip().replace("\n", "\n  "))
        print(f"  repeat: python tests/fuzz/run_fuzz.py --replay {path.relative_to(ROOT)}")
    print("nothing found" if not findings else f"\n{len(findings)} different findings")


if __name__ == "__main__":
    sys.exit(main())
