"""Error messages of operators of Blender and of other add-ons."""

from __future__ import annotations


def operator_error(problem: Exception) -> str:
    """Return an operator's error message in one line; of a traceback only the last line, which names the exception."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if any(line.startswith("Traceback ") or line.endswith("Traceback (most recent call last):") for line in lines):
        raised = [line for line in lines if not line.startswith(("Location:", "File ")) and ": " in line]
        lines = raised[-1:] or lines
    text = " ".join(" ".join(line.removeprefix("Error: ") for line in lines).split())
    return text.removesuffix(".") or "no reason given"
