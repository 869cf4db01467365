"""Check a model bundle against the rules of the uploader (formats page, section 8)."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.messages import Message, Report, Text, error, listed, warning
from ..asset import rules
from ..asset.mapping import asset_findings
from ..asset.rules import check_models
from ..models.llsd import as_integer
from ..models.models import models_of
from ..options import LEVELS
from . import scene_mapping
from .document import Bundle
from .instances import instances_of

check_scene = rules.check_native_scene


def check(document: Bundle) -> list[Message]:
    """Check the meshes of a bundle and their transforms; for a bundle read from a file, also its models.

    The models of a bundle that was built from a scene are checked with the scene (``check_scene``).
    """
    findings = list(_bundle_findings(document))
    if any(asset.stored_sizes for asset in document.meshes):
        scene = scene_mapping.to_scene(document, "")
        findings += check_models(models_of(scene), scene, stored=True)
    return list(dict.fromkeys(findings))


def _bundle_findings(bundle: Bundle) -> Iterator[Message]:
    instances = instances_of(bundle, Report())
    if not instances:
        template = "no object in the bundle has both a mesh and a transform; the uploader shows nothing"
        yield error("no-object", template)
    labels = {instance.mesh: instance.label for instance in reversed(instances)}
    for number, asset in enumerate(bundle.meshes):
        owner = Text("Object '{}'", labels[number]) if number in labels else Text("Mesh {}", number + 1)
        missing = [level for level in LEVELS if not asset.blocks.get(level)]
        if missing:
            template = "it has no {}; in a bundle each mesh needs all four levels of detail"
            yield error("level-missing", template, ", ".join(missing), item=owner)
        yield from asset_findings(asset, owner, with_missing=False)
        if asset.blocks.get("skin") is not None and _is_split(bundle, number, labels):
            template = (
                "it is rigged and was split for its many materials; the uploader takes the rig off all parts but one"
            )
            yield error("split-rigged-mesh", template, item=owner)
    with_physics = [bool(asset.blocks.get("physics_mesh")) for asset in bundle.meshes]
    if any(with_physics) and not all(with_physics):
        lacking = [labels.get(number, f"mesh {number + 1}") for number, has in enumerate(with_physics) if not has]
        template = "{}: no physics mesh, while others have one; the uploader mixes them up unless all or none have"
        yield warning("physics-mesh-missing", template, listed(lacking))


def _is_split(bundle: Bundle, number: int, labels: dict[int, str]) -> bool:
    """Return whether the bundle has further parts of this mesh (``NAME_b``, ``NAME_c`` …, with a ``submodel_id``)."""
    return any(
        (as_integer(asset.header.get("submodel_id")) or 0) >= 1
        and labels.get(other, "").startswith(labels.get(number, "\0"))
        for other, asset in enumerate(bundle.meshes)
        if other != number
    )
