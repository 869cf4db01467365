"""Options of reading and writing a UNIGINE skeleton."""

from __future__ import annotations

from ...common_options import IMPORT_CHOICES
from ...options import Option
from ..mesh.options import TURN

IMPORT_OPTIONS: tuple[Option, ...] = (TURN,)
EXPORT_OPTIONS: tuple[Option, ...] = (IMPORT_CHOICES, TURN)
