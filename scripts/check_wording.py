"""Check the wording of comments, docstrings, messages and documentation pages: `check_wording.py [FILE…]`.

The rules are in CONTRIBUTING.md. Python files are split by `tokenize`, so that code is never taken for text.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

RULES = {
    re.compile(r"\b(whoever|nobody|somebody|told)\b", re.IGNORECASE): "name the component or the user",
    re.compile(r"(?<!there )\b(is|are) no\b(?! longer| more)", re.IGNORECASE): "write 'is not a' or 'has no'",
    re.compile(r"\blies\b", re.IGNORECASE): "write 'is'",
}

# Lines that may break a rule: path, part of the line, reason. At most ten.
ALLOWED = (("scripts/check_wording.py", "re.compile(", "the rules themselves"),)

# The f-string tokens exist since Python 3.12; before, an f-string is one STRING token.
TEXT_TOKENS = {
    tokenize.COMMENT,
    tokenize.STRING,
    *(getattr(tokenize, name) for name in ("FSTRING_MIDDLE", "TSTRING_MIDDLE") if hasattr(tokenize, name)),
}


def list_files(arguments: list[str]) -> list[Path]:
    """Return the given files, or all Python and Markdown files of the repository."""
    if arguments:
        return [Path(argument).resolve() for argument in arguments]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [
        ROOT / line for line in listed.splitlines() if line.endswith((".py", ".md")) and not line.endswith("_pb2.py")
    ]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each comment and string of a Python file, or of each line of another file."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(content.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type in TEXT_TOKENS:
            yield from enumerate(token.string.splitlines(), token.start[0])


def is_allowed(path: Path, line: str) -> bool:
    """Return whether an entry of ALLOWED covers this line."""
    return any(path == ROOT / allowed and part in line for allowed, part, _reason in ALLOWED)


def main() -> int:
    """Print each line that breaks a rule; return 1 if there is one."""
    failures = 0
    for path in list_files(sys.argv[1:]):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, text in texts_of(path):
            for rule, advice in RULES.items():
                if (found := rule.search(text)) and not is_allowed(path, lines[number - 1]):
                    failures += 1
                    print(f"{path.relative_to(ROOT)}:{number}: '{found[0]}': {advice}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
