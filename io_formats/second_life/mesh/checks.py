"""Check a mesh asset against the rules of uploader and simulator (formats page, sections 2.1, 5.1 and 12)."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.messages import Message, Text, error, warning
from ..models.faces import MOST_FACES
from ..models.llsd import as_integer
from ..models.models import models_of
from ..models.physics_block import hulls_of
from ..options import LEVEL_LABELS, LEVEL_TEXTS, LEVELS
from ..rules import rules
from ..rules.rules import check_models
from . import scene_mapping
from .document import Asset
from .writer import LONGEST_HEADER

check_scene = rules.check_native_scene


def check(document: Asset) -> list[Message]:
    """Check the blocks of an asset; for an asset read from a file, also its models.

    The models of an asset that was built from a scene are checked with the scene (``check_scene``).
    """
    findings = list(asset_findings(document))
    if document.stored_sizes:
        scene = scene_mapping.to_scene(document, "")
        findings += check_models(models_of(scene), scene, sizes=document.stored_sizes, stored=True)
    return list(dict.fromkeys(findings))


def asset_findings(asset: Asset, owner: str = "", *, with_missing: bool = True) -> Iterator[Message]:
    """Check that header and blocks match and, with ``with_missing``, that all levels exist."""
    if asset.header_size > LONGEST_HEADER:
        template = "the header has {:,} bytes; viewers read {:,}"
        yield error("header-too-long", template, asset.header_size, LONGEST_HEADER, item=owner)
    present = [level for level in LEVELS if asset.blocks.get(level)]
    if with_missing:
        yield from _missing_levels(present, owner)
    counts = {level: len(asset.blocks[level]) for level in (*present, "physics_mesh") if _is_list(asset, level)}
    finest = counts.get(LEVELS[0], 0)
    if finest > MOST_FACES:
        yield error("too-many-faces", "it has {} faces; a mesh has {} at most", finest, MOST_FACES, item=owner)
    for level, count in counts.items():
        if finest and count != finest:
            name = "physics mesh" if level == "physics_mesh" else LEVEL_TEXTS[LEVELS.index(level)]
            template = "the {} has {} faces, the high level {}; faces will not match"
            yield warning("face-counts-differ", template, Text(name), count, finest, item=owner)
    yield from _hull_findings(asset, owner)


def _missing_levels(present: list[str], owner: str) -> Iterator[Message]:
    if LEVELS[0] not in present:
        yield error("level-missing", "the high level of detail is missing, but uploads need it", item=owner)
    for level, label in zip(LEVELS[1:-1], LEVEL_LABELS[1:-1], strict=True):
        if level not in present:
            template = "there is no {} level of detail; the viewer shows another in its place"
            yield warning("level-missing", template, Text(label.lower()), item=owner)
    if LEVELS[-1] not in present:
        template = "there is no lowest level of detail; the viewer cannot compute the download weight"
        yield warning("level-missing", template, item=owner)


def _is_list(asset: Asset, block: str) -> bool:
    return isinstance(asset.blocks.get(block), list)


def _hull_findings(asset: Asset, owner: str) -> Iterator[Message]:
    """Check for the base hull, which uploads need. Only the further parts of a split model may lack it."""
    if (as_integer(asset.header.get("submodel_id")) or 0) >= 1:
        return
    if asset.blocks.get("physics_convex") is None:
        template = "there is no convex physics shape (physics_convex), which uploads need"
        yield error("no-convex-physics", template, item=owner)
    elif hulls_of(asset.blocks["physics_convex"]).base is None:
        template = "its convex physics shape has no base hull (BoundingVerts), which uploads need"
        yield error("no-base-hull", template, item=owner)
