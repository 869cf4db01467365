"""What ``meshferry inspect`` prints about a blueprint."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...core.messages import Unresolved
from .colliders import colliders_of
from .document import Blueprint, BlueprintSource
from .footprint import footprint_of
from .numbers import Numbers
from .tree import TreeBuilder


def facts(document: Blueprint) -> dict[str, Any]:
    """Count the elements of the file itself. Nested blueprints are not read."""
    unresolved = Unresolved()
    numbers = Numbers(unresolved)
    nodes = TreeBuilder(None, unresolved).build(BlueprintSource("", document.root), "")
    models = [node for node in nodes if node.model]
    footprint = footprint_of(document.root, numbers)
    return {
        "nodes": len(nodes) - 1,
        "placed_models": len(models),
        "models": sorted({node.model for node in models}),
        "states": dict(Counter(node.state.value for node in models).most_common()),
        "blueprints": sorted({node.nested for node in nodes if node.nested}),
        "colliders": sum(1 for node in nodes for _ in colliders_of(node.value, numbers, node.pointer)),
        "size": list(footprint.size) if footprint is not None else None,
    }
