"""What ``meshferry inspect`` prints about a mesh asset."""

from __future__ import annotations

from typing import Any

from .. import facts as shared
from ..models.llsd import as_integer
from .document import Asset


def facts(asset: Asset) -> dict[str, Any]:
    """Count the stored data. Vertices and triangles are counted in the finest level, ``lods`` has the counts of all.

    ``hulls`` does not include the base hull. ``download_weight`` (section 11.1) is computed for the size stated by the
    asset, or for one metre. For a rigged asset it is an estimate, since the size follows from its rig.
    """
    decoded = shared.decode_blocks(asset)
    version = as_integer(asset.header.get("version"))
    return {
        "version": "" if version is None else str(version),
        **shared.common_counts(decoded),
        "lods": shared.level_facts(decoded),
        "hulls": len(decoded.hulls.hulls),
        "download_weight": round(decoded.download_weight(), 4),
        "warnings": decoded.warnings,
    }
