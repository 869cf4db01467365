"""What ``meshferry inspect`` prints about a mesh asset."""

from __future__ import annotations

from typing import Any

from .. import facts as shared
from ..llsd_binary import as_integer
from .document import Asset


def facts(asset: Asset) -> dict[str, Any]:
    """Count what is stored. Vertices and triangles are those of the finest level; ``lods`` has those of all levels.

    ``hulls`` does not include the base hull; ``download_weight`` is that of section 11.1, at the size stated by the
    asset or at one metre. For a rigged asset it is an estimate, since the size follows from its rig.
    """
    decoded = shared.decode(asset)
    version = as_integer(asset.header.get("version"))
    return {
        "version": "" if version is None else str(version),
        **shared.counts(decoded),
        "lods": shared.level_facts(decoded),
        "hulls": len(decoded.hulls.hulls),
        "download_weight": round(decoded.download_weight(), 4),
        "warnings": decoded.warnings,
    }
