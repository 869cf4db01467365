"""A blueprint as it was read; sections refer to docs/formats/timberborn_blueprints.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_NODES = 100_000
"""Largest number of nodes with all nested blueprints."""
MOST_LEVELS = 16
"""Largest depth of blueprints that nest each other."""

Members = Mapping[str, Any]
"""A JSON object: texts, floats, booleans, lists and further objects by name."""


@dataclass
class Blueprint:
    """A ``.blueprint.json`` file."""

    root: Members
    """Its content, with ``#append``, ``#remove`` and ``#delete`` applied (section 3)."""
    digest: str = ""
    """SHA-256 of the file's bytes, of which an export changes only the numbers of edited nodes."""


@dataclass(frozen=True, eq=False)
class BlueprintSource:
    """Content of a blueprint from which nodes are made: the opened file, or a blueprint nested in it."""

    name: str
    """File name."""
    root: Members
    path: Path | None = None
    """Its path on disk; None in an archive, or if it is not known."""
    identity: str = ""
    """Identifier that is equal for equal files."""


def child_of(members: Members | None, name: str) -> Members | None:
    """Return a member that is an object, otherwise None."""
    found = members.get(name) if members is not None else None
    return found if isinstance(found, dict) else None
