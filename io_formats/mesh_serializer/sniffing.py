"""Recognise a MeshSerializer2 file by its exact length, the only thing that gives it away (formats page, section 4)."""

from __future__ import annotations

from collections.abc import Callable

from ..unknown_files import is_marked
from . import layout
from .document import Variant


def sniff(head: bytes, size: int) -> bool:
    """Tell whether a file that starts with ``head`` and is ``size`` bytes long is one, or a relative."""
    return variant_of(head, size) is not None


def variant_of(head: bytes, size: int) -> Variant | None:
    """Return which of the family a file is; None: none of it, or what has another format's mark at its start.

    What MeshSerializer2's own length fits is that; only then relatives are tried, of which more has to fit.
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
