"""Options of MeshSerializer2 files."""

from __future__ import annotations

from ..options import Option

IMPORT_OPTIONS: tuple[Option, ...] = ()
EXPORT_OPTIONS: tuple[Option, ...] = ()
