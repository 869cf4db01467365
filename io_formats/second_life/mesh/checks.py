"""Check a mesh asset against the rules of uploader and simulator (formats page, sections 2.1, 5.1 and 12)."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.findings import Finding, error, warning
from ..llsd_binary import as_integer
from ..models.faces import MOST_FACES
from ..models.levels import LEVEL_LABELS, LEVELS
from ..models.models import models_of
from ..rules.rules import check_models
from ..rules.rules import check_native_scene as check_scene
from . import scene_mapping
from .document import Asset
from .physics_block import hulls_of

__all__ = ["asset_findings", "check", "check_scene"]

MOST_HEADER = 4096
"""Maximum header size: the viewer downloads this many bytes first."""


def check(document: Asset) -> list[Finding]:
    """Check the blocks of an asset; for an asset read from a file, also its models.

    The models of an asset that was built from a scene are checked with the scene (``check_scene``).
    """
    findings = list(asset_findings(document))
    if document.stored_sizes:
        scene = scene_mapping.to_scene(document, "")
        findings += check_models(models_of(scene), scene, sizes={"": document.stored_sizes}, stored=True)
    return list(dict.fromkeys(findings))


def asset_findings(asset: Asset, item: str = "", *, with_missing: bool = True) -> Iterator[Finding]:
    """Check that header and blocks match and, with ``with_missing``, that all levels exist."""
    if asset.header_size > MOST_HEADER:
        text = f"the header has {asset.header_size:,} bytes; viewers read {MOST_HEADER:,}"
        yield error(item, text)
    present = [level for level in LEVELS if asset.blocks.get(level)]
    if with_missing:
        yield from _missing_levels(present, item)
    counts = {level: len(asset.blocks[level]) for level in (*present, "physics_mesh") if _is_list(asset, level)}
    finest = counts.get(LEVELS[0], 0)
    if finest > MOST_FACES:
        yield error(item, f"it has {finest} faces; a mesh has {MOST_FACES} at most")
    for level, count in counts.items():
        if finest and count != finest:
            label = "the physics mesh" if level == "physics_mesh" else f"the {LEVEL_LABELS[LEVELS.index(level)]} level"
            yield warning(item, f"{label.lower()} has {count} faces, the high level {finest}; faces will not match")
    yield from _hull_findings(asset, item)


def _missing_levels(present: list[str], item: str) -> Iterator[Finding]:
    if LEVELS[0] not in present:
        yield error(item, "the high level of detail is missing, but uploads need it")
    for level, label in zip(LEVELS[1:-1], LEVEL_LABELS[1:-1], strict=True):
        if level not in present:
            yield warning(item, f"there is no {label.lower()} level of detail; the viewer shows another in its place")
    if LEVELS[-1] not in present:
        yield warning(item, "there is no lowest level of detail; the viewer cannot compute the download weight")


def _is_list(asset: Asset, block: str) -> bool:
    return isinstance(asset.blocks.get(block), list)


def _hull_findings(asset: Asset, item: str) -> Iterator[Finding]:
    """Check for the base hull, which uploads need; only further parts of a split model may lack it."""
    if (as_integer(asset.header.get("submodel_id")) or 0) >= 1:
        return
    if asset.blocks.get("physics_convex") is None:
        yield error(item, "there is no convex physics shape (physics_convex), which uploads need")
    elif hulls_of(asset.blocks["physics_convex"]).base is None:
        yield error(item, "its convex physics shape has no base hull (BoundingVerts), which uploads need")
