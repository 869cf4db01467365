"""Options of this kind of file: those of all."""

from ..options import EXPORT_OPTIONS, IMPORT_OPTIONS

__all__ = ["EXPORT_OPTIONS", "IMPORT_OPTIONS"]
