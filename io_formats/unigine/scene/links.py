"""Files and materials that a scene refers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...core.scene import Material


@dataclass(frozen=True)
class LinkedFile:
    """A file that a reference stands for."""

    path: str
    """Its path, which is also its key."""
    read: Callable[[], bytes]
    """Return its content. It raises ``FormatError``."""
    is_source: bool = False
    """Whether it is not the file itself, which is missing, but the source that it was made from."""


class Links(Protocol):
    """Resolves references of scene files."""

    def find(self, reference: str) -> LinkedFile | None:
        """Return the file of a reference, or None if it is missing."""
        ...

    def material(self, reference: str, surface: str) -> str | None:
        """Return the name of the material of a reference; None for that of the mesh file."""
        ...

    def use_libraries(self, references: list[str]) -> None:
        """Search material libraries, too."""
        ...

    @property
    def materials(self) -> list[Material]:
        """The materials that were named so far."""
        ...

    def warnings(self) -> list[str]:
        """Return texts about missing materials and libraries."""
        ...
