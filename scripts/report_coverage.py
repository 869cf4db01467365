"""Print the modules of ``io_formats/`` below the required coverage, and the error branches that no test reaches.

Usage: report_coverage.py DATA_FILE, after ``coverage run`` (see ``make coverage``). The exit status is 1 if the total
is below ``fail_under`` of pyproject.toml or an error branch of recognition or reading is not reached.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent
OTHER_ERRORS = ("ExportError", "AssertionError")
"""Names of error classes that do not concern reading a file."""


def main(data_file: str) -> int:
    """Print the report and return the exit status."""
    bar = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]["report"]["fail_under"]
    measured = coverage.Coverage(data_file=data_file)
    measured.load()
    open_branches = []
    reached = total = 0
    print(f"Modules below {bar}%:")
    for path in sorted((ROOT / "io_formats").rglob("*.py")):
        numbers = measured._analyze(str(path)).numbers
        reached += numbers.n_executed + numbers.n_executed_branches
        total += numbers.n_statements + numbers.n_branches
        if numbers.n_statements and numbers.pc_covered < bar:
            print(f"  {numbers.pc_covered:5.1f}%  {path.relative_to(ROOT)}")
        missing = set(measured.analysis2(str(path))[3])
        open_branches += [f"{path.relative_to(ROOT)}:{line}" for line in error_lines(path) if line in missing]
    share = 100 * reached / total
    print(f"Branch coverage of io_formats: {share:.1f}% (at least {bar}% is required)")
    if open_branches:
        print("Error branches that no test reaches:", *open_branches, sep="\n  ")
    return 1 if open_branches or share < bar else 0


def error_lines(path: Path) -> Iterator[int]:
    """Yield the line of each statement that raises or returns an error about a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Raise):
            name = called(node.exc)
            if name and name not in OTHER_ERRORS:
                yield node.lineno
        elif isinstance(node, ast.Return):
            name = called(node.value)
            if name.endswith(("Error", "error")) and name not in OTHER_ERRORS:
                yield node.lineno


def called(value: ast.expr | None) -> str:
    """Return the name of the function or class that an expression calls, or an empty string."""
    if not isinstance(value, ast.Call):
        return ""
    return value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
