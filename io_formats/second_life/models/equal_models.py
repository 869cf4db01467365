"""Models with the same content: an upload stores them as one mesh with several instances (formats page, section 10)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from ...core.messages import Fix, Message
from ...core.scene import Node
from ...geometry.transforms import unmirrored
from ...passes.join_meshes import EqualMeshes
from .models import Model


def first_equal(models: Sequence[Model]) -> list[int]:
    """Return, for each model, the index of the first model with the same content, which may be the model itself.

    The content is the meshes of all levels and shapes, with their materials, and the mirroring, which is applied to
    points. Rigged models are never equal, since the uploader stores one binding for each mesh.
    """
    meshes = EqualMeshes()
    found: dict[Hashable, int] = {}
    return [
        number if model.skeleton is not None else found.setdefault(_content(model, meshes), number)
        for number, model in enumerate(models)
    ]


def mesh_count(models: Sequence[Model]) -> int:
    """Return the number of meshes that an upload stores for these models."""
    return len(set(first_equal(models)))


def findings_once(models: Sequence[Model], check: Callable[[Model], Iterable[Message]]) -> list[Message]:
    """Return the findings of all models; of models with the same content, findings with the same text only once.

    Findings about scale are kept for each object, since fixing the scale changes only that object.
    """
    found: list[Message] = []
    texts: list[set[tuple[str, str]]] = []
    for number, (model, first) in enumerate(zip(models, first_equal(models), strict=True)):
        own = list(check(model))
        texts.append({(finding.code, finding.message) for finding in own})
        known = texts[first] if first < number else ()
        found += [
            finding for finding in own if (finding.code, finding.message) not in known or finding.fix is Fix.APPLY_SCALE
        ]
    return list(dict.fromkeys(found))


def _content(model: Model, meshes: EqualMeshes) -> Hashable:
    def mesh_of(node: Node | None) -> int | None:
        return None if node is None or node.mesh is None else id(meshes.first(node.mesh))

    finest = model.finest
    return (
        *(mesh_of(node) for node in (*model.levels, model.physics, model.base_hull)),
        tuple(mesh_of(hull) for hull in model.hulls),
        unmirrored(finest.rotation, finest.scale)[2],
        finest.submodel,
        repr(finest.pass_through),
    )
