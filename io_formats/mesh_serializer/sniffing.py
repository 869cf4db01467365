"""Recognise a MeshSerializer2 file by its exact size, since it has no magic number (formats page, section 4)."""

from __future__ import annotations

from collections.abc import Callable

from ..core.recognition import Match, NearMiss
from . import layout, near_misses
from .document import Variant


def sniff(head: bytes, size: int) -> Match | NearMiss:
    """Return the evidence for this format, or a related one, or explain a damaged file."""
    variant = variant_of(head, size)
    if variant is None:
        text = near_misses.explain_near_miss(head, size)
        return NearMiss(text) if text else Match.NONE
    return Match.PLAUSIBLE if variant in _WEAK else Match.LENGTH


def variant_of(head: bytes, size: int) -> Variant | None:
    """Return the variant of a file, or None.

    The length alone identifies ``Variant.CURRENT``. The other variants need more evidence and are tried after it.
    """
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

_WEAK = (Variant.FIRST_TEXT, Variant.SUBMESHES)
"""Variants that other formats may resemble by chance; such a format is preferred if it recognises the file."""
