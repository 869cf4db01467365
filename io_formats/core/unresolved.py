"""References of a scene that could not be followed, reported once for each kind."""

from __future__ import annotations

from enum import Enum

from .messages import Kind, Message, Report, Text, counted, listed

_NAMED = 5


class Unresolved:
    """Collects the names of unresolved references by their problem.

    The value of a problem is the code of its message, the noun for one reference and for several, a template for their
    number and first names, and the kind of the message if it is not a loss.
    """

    def __init__(self) -> None:
        self.found: dict[Enum, dict[str, None]] = {}
        """Names by problem, in the order in which they were found."""

    def add(self, problem: Enum, name: str) -> None:
        """Record a reference, given as its name or a :class:`Text` that contains it; equal references count once."""
        self.found.setdefault(problem, {})[name] = None

    def report(self, report: Report) -> None:
        """Report each problem once, with the first names."""
        for problem, names in self.found.items():
            code, one, many, template, *kind = problem.value
            text = Text(template, counted(len(names), one, many), listed(list(names), _NAMED))
            report.add(Message(kind[0] if kind else Kind.LOSS, "", text, code=code))
