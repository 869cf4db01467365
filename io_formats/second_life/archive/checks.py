"""Check an archive of OpenSim: parts whose shapes or pictures are not in it."""

from __future__ import annotations

from ...core.messages import Message, counted, listed, warning
from . import container
from .asset_store import MESH, PICTURE, asset_of
from .document import NEVER_STORED, Archive

_ASSET_KINDS = {"mesh": MESH, "sculpt": PICTURE}


def check(document: Archive) -> list[Message]:
    """Return findings about parts that name assets that the archive does not have."""
    parts = document.parts
    shapes = [(part.name, (part.sculpt_asset, _ASSET_KINDS[part.kind])) for part in parts if part.kind in _ASSET_KINDS]
    pictures = [
        (part.name, (texture, PICTURE))
        for part in parts
        for texture in {look.texture for look in part.entry.looks} - NEVER_STORED
    ]
    wanted = {asset for _, asset in (*shapes, *pictures)}
    members = container.archive_members(document.open, lambda _name: 0, inflated_limit=document.inflated_limit)
    missing = wanted - {asset_of(name) for name, _ in members if asset_of(name) in wanted}
    findings = []
    if names := list(dict.fromkeys(name for name, asset in shapes if asset in missing)):
        count = counted(len(names), "part has", "parts have")
        template = "{} a mesh or sculpt map that is not in the archive: {}"
        findings.append(warning("shape-asset-missing", template, count, listed(names)))
    if names := list(dict.fromkeys(name for name, asset in pictures if asset in missing)):
        count = counted(len(names), "part has", "parts have")
        findings.append(
            warning("texture-asset-missing", "{} a texture that is not in the archive: {}", count, listed(names))
        )
    return findings
