"""Shape -> bytes (shape format page, section 5.1)."""

from __future__ import annotations

from . import appearance
from .document import Shape


def write(document: Shape) -> bytes:
    """Encode a shape as an appearance export."""
    return appearance.write(document)
