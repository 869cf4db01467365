"""Recognise a MeshSerializer2 file by its exact size, since it has no magic number (formats page, section 4)."""

from __future__ import annotations

from collections.abc import Callable

from ..unknown_files import is_marked
from . import layout
from .document import Variant


def sniff(head: bytes, size: int) -> bool:
    """Return whether a file of ``size`` bytes that starts with ``head`` is a MeshSerializer2 file or a variant."""
    return variant_of(head, size) is not None


def variant_of(head: bytes, size: int) -> Variant | None:
    """Return the variant of a file, or None if it is none of them or starts with the magic number of another format.

    MeshSerializer2 is tried first; for the other variants more than the size must match.
    """
    if is_marked(head):
        return None
    return next((variant for variant, test in _TESTS if test(head, size)), None)


def _is_first_text(head: bytes, size: int) -> bool:
    decoded = layout.decode_text(head[: len(head) // 2 * 2])
    return decoded is not None and not size % 2 and layout.fits_first(decoded, size // 2)


_TESTS: tuple[tuple[Variant, Callable[[bytes, int], bool]], ...] = (
    (Variant.CURRENT, layout.fits),
    (Variant.FIRST, layout.fits_first),
    (Variant.FIRST_TEXT, _is_first_text),
    (Variant.CACHED, layout.fits_cached),
    (Variant.SUBMESHES, layout.fits_submeshes),
)
