"""Options of writing the bodies of an upload request."""

from ..options import EXPORT_OPTIONS

__all__ = ["EXPORT_OPTIONS"]
