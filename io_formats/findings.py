"""What a format's checks say: the rules of the program that will load the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """Whether the target program fails (error) or only surprises (warning)."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Elements:
    """Parts of a node's mesh or skeleton that a finding is about."""

    kind: str
    """``triangles`` or ``vertices`` (numbers of triangles or points of the node's ``Mesh``), or ``bones`` (names)."""
    node: str
    """Name of the node; for bones, of the skeleton."""
    members: tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """One broken rule: ``item`` names node, mesh, material or animation, ``message`` says what happens."""

    severity: Severity
    item: str
    message: str
    elements: Elements | None = None
    """What exactly, where it can be pointed at."""

    def __str__(self) -> str:
        return f"{self.item}: {self.message}" if self.item else self.message


def error(item: str, message: str, elements: Elements | None = None) -> Finding:
    """Say that the target program fails here."""
    return Finding(Severity.ERROR, item, message, elements)


def warning(item: str, message: str, elements: Elements | None = None) -> Finding:
    """Say that the target program surprises here."""
    return Finding(Severity.WARNING, item, message, elements)


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the errors among findings."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def warnings_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the warnings among findings."""
    return [finding for finding in findings if finding.severity is Severity.WARNING]
