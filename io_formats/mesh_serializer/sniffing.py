"""Recognition of MeshSerializer2 files: the exact length is all that gives them away."""

from __future__ import annotations


def sniff(head: bytes, size: int) -> bool:
    """Tell whether a file that starts with ``head`` and is ``size`` bytes long is one."""
    return False
