"""What ``meshferry inspect`` prints about an archive of OpenSim."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .document import NEVER_STORED, Archive


def facts(document: Archive) -> dict[str, Any]:
    """Return counts of what the archive places. Its assets are not read.

    ``nodes`` counts the parts, ``materials`` the different looks of faces, and ``surfaces`` the different looks in each
    part, since the number of faces is in the assets.
    """
    parts = document.parts
    entries = [part.entry for part in parts]
    looks = {look for entry in entries for look in entry.looks}
    kinds = Counter(part.kind for part in parts)
    left_out: Counter[str] = Counter()
    for group in document.groups:
        left_out.update(group.left_out)
    places = "items" if document.is_inventory else "regions"
    return {
        "version": document.version,
        "nodes": len(parts),
        "surfaces": sum(len(set(entry.looks)) for entry in entries),
        "materials": len(looks),
        places: sum(bool(group.linksets) or not document.is_inventory for group in document.groups),
        "objects": sum(len(group.linksets) for group in document.groups),
        "types": dict(kinds.most_common()),
        "meshes": len({part.sculpt_asset for part in parts if part.kind == "mesh"}),
        "textures": len({look.texture for look in looks} - NEVER_STORED),
        "parcels": left_out["parcel"],
        "scripts": left_out["script"],
        "warnings": document.warnings,
    }
