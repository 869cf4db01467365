"""Options of reading and writing a UNIGINE skeleton."""

from __future__ import annotations

from ...core.options import IMPORT_CHOICES, Option
from ..options import TURN

IMPORT_OPTIONS: tuple[Option, ...] = (TURN,)
EXPORT_OPTIONS: tuple[Option, ...] = (IMPORT_CHOICES, TURN)
