"""Findings of a format's checks against the rules of the target program."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Severity(Enum):
    """Whether the target program fails (error) or only shows something unexpected (warning)."""

    ERROR = "error"
    WARNING = "warning"


class Fix(Enum):
    """A change in Blender that fixes the cause of a finding and that Undo reverts."""

    STRIP_SUFFIX = "strip_suffix"
    RENAME_MATERIAL = "rename_material"
    LIMIT_WEIGHTS = "limit_weights"
    ADD_UV_MAP = "add_uv_map"
    MARK_NODE = "mark_node"
    APPLY_SCALE = "apply_scale"


@dataclass(frozen=True)
class Elements:
    """Parts of a node's mesh or skeleton that a finding is about."""

    kind: str
    """``triangles`` or ``vertices`` (indices of triangles or points in the node's ``Mesh``), ``bones`` (names), or
    ``milliseconds`` (time of an animation)."""
    node: str
    """Name of the node; for bones and times, of the skeleton, or empty if the format does not know it."""
    members: tuple[int, ...] | tuple[str, ...]


OWN_FORMAT = "own_format"
"""``Finding.allowed_by`` of errors that are warnings if a file is written in its own format again, but always errors
of new files."""


@dataclass(frozen=True)
class Finding:
    """One broken rule: ``item`` names node, mesh, material or animation, ``message`` describes the consequence."""

    severity: Severity
    item: str
    message: str
    elements: Elements | None = None
    """The triangles, vertices or bones concerned, if they can be selected."""
    fix: Fix | None = None
    names: tuple[str, ...] = ()
    """Names in the file of the objects or materials that ``fix`` changes."""
    new_name: str = ""
    """Name that ``fix`` gives a material."""
    allowed_by: str = ""
    """Name of the export option that turns this error into a warning, or ``OWN_FORMAT``."""
    file_name: str = ""
    """Name of a material. If the imported file has it, too, the error becomes a warning."""

    def __str__(self) -> str:
        return f"{self.item}: {self.message}" if self.item else self.message


def error(item: str, message: str, elements: Elements | None = None) -> Finding:
    """Return a finding of severity ERROR: the target program fails."""
    return Finding(Severity.ERROR, item, message, elements)


def warning(item: str, message: str, elements: Elements | None = None) -> Finding:
    """Return a finding of severity WARNING: the target program shows something unexpected."""
    return Finding(Severity.WARNING, item, message, elements)


def with_allowed(
    findings: Iterable[Finding],
    options: Mapping[str, Any],
    *,
    is_same_format: bool,
    file_names: Container[str] = (),
) -> list[Finding]:
    """Return the findings; errors that an export option or the imported file allows become warnings.

    Parameters
    ----------
    options:
        Export options of the format.
    is_same_format:
        Whether the scene came from a file of the same format. All such errors are then allowed: the file had them too.
    file_names:
        Names that materials have in imported files of the same format.
    """
    return [
        replace(finding, severity=Severity.WARNING)
        if finding.allowed_by and (is_same_format or options.get(finding.allowed_by) or finding.file_name in file_names)
        else finding
        for finding in findings
    ]


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the errors among findings."""
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def warnings_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the warnings among findings."""
    return [finding for finding in findings if finding.severity is Severity.WARNING]
