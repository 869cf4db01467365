"""Check a scene against the rules of the uploader for upload sets (formats page, sections 6, 10 and 12)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.findings import Finding, warning
from ...core.messages import counted, listed
from ...core.scene import Mesh, Scene
from ..models.equal_models import findings_once
from ..models.faces import MOST_FACES
from ..models.levels import LEVEL_LABELS
from ..models.models import Model, models_of
from ..models.unit_cube import is_as_imported, unit_cube_of
from ..rules import rules
from ..rules.degenerates import degenerate_triangles
from .document import UploadSet

_STRETCHED = 0.01
"""Share of an object's size by which a level's box may differ from the finest one's without a warning."""


def check_scene(scene: Scene) -> list[Finding]:
    """Return the findings of the rules of all Second Life formats, and of the rules for upload sets alone."""
    models = models_of(scene)
    own = [
        *findings_once(
            models, lambda model: (*_stretched(model), *_without_material(model), *_thin_hulls(model, scene))
        ),
        *_same_but_case(models),
        *_without_physics(models),
        *_bare(models, scene),
    ]
    return [*rules.check_scene(scene), *own]


def check(_document: UploadSet) -> list[Finding]:
    """Return no findings: :func:`check_scene` covers sets built from a scene."""
    return []


def _stretched(model: Model) -> Iterator[Finding]:
    """Check for levels with another box than the finest: the uploader scales each file to the same box (section 6)."""
    wanted = _box(model.mesh)
    if wanted is None or not np.isfinite(wanted).all():
        return
    size = float(np.ptp(wanted, axis=0).max()) or 1.0
    named = [(f"{label.lower()} level", node) for label, node in zip(LEVEL_LABELS, model.levels, strict=True)]
    found: list[str] = []
    for label, node in [*named[1:], ("physics mesh", model.physics)]:
        box = _box(node.mesh) if node is not None and node.mesh is not None else None
        if box is None or not np.isfinite(box).all():
            continue
        share = float(np.abs(box - wanted).max()) / size
        if share > _STRETCHED:
            found.append(f"{label} (by {share:.0%} of the size)")
    if found:
        ends = "these end" if len(found) > 1 else "this ends"
        text = f"{ends} elsewhere than its highest level: {', '.join(found)}; the uploader stretches all to one box"
        yield warning(f"Object '{model.name}'", text)


def _without_material(model: Model) -> Iterator[Finding]:
    """Warn about levels of the user that lack a material of the finest level (section 10)."""
    wanted = _materials(model.mesh)
    for node in model.levels[1:]:
        if node is None or node.mesh is None or node.generated_from or not node.mesh.triangle_count:
            continue
        missing = [name or "no material" for name in wanted if name not in _materials(node.mesh)]
        if missing:
            text = f"no triangles with {listed(missing)}, so the files get a small one of each: the viewer needs them"
            yield warning(f"Object '{node.name}'", text)


def _materials(mesh: Mesh) -> list[str]:
    """Return the names of the materials that triangles use; without slots, an empty name."""
    slots = mesh.materials or [""]
    used = np.unique(np.clip(mesh.material_index, 0, len(slots) - 1)).tolist()
    return list(dict.fromkeys(slots[number] for number in used))


def _box(mesh: Mesh) -> npt.NDArray[np.float32] | None:
    if not len(mesh.corner_point):
        return None
    points = mesh.points[mesh.corner_point]
    return np.stack((points.min(axis=0), points.max(axis=0)))


def _thin_hulls(model: Model, scene: Scene) -> Iterator[Finding]:
    """Warn about degenerate triangles of hulls, which the files hold as triangles (section 5.2)."""
    box = _box(model.mesh)
    if box is None or not np.isfinite(box).all():
        return  # these are errors of their own
    unit_cube = unit_cube_of(model, as_imported=scene.as_imported and is_as_imported(model))
    meshes = [node.mesh for node in model.hulls if node.mesh is not None]
    count = sum(
        int(degenerate_triangles(unit_cube.normalised(mesh.points), mesh.corner_point).sum()) for mesh in meshes
    )
    if count:
        number = counted(count, "triangle of its hulls is", "triangles of its hulls are")
        text = (
            f"{number} too thin or too small for physics; choose Analyze in the upload window, which makes hulls of "
            "them, or the physics shape Convex Hull"
        )
        yield warning(f"Object '{model.name}'", text)


def _same_but_case(models: list[Model]) -> Iterator[Finding]:
    """Warn about materials that differ in case alone, which the viewer ignores when it sorts faces (section 10)."""
    spellings: dict[str, dict[str, None]] = {}
    for name in dict.fromkeys(name for model in models for name in _materials(model.mesh)):
        spellings.setdefault(name.casefold(), {})[name] = None
    for names in spellings.values():
        if len(names) > 1:
            yield warning(
                "",
                f"Materials whose names differ only in case get numbers in the files: {listed(list(names))}; rename "
                "them, since the viewer ignores case when it sorts faces",
            )


def _without_physics(models: list[Model]) -> Iterator[Finding]:
    """Warn about models of more than 8 materials: the viewer splits them and gives only the first part physics."""
    names = [model.name for model in models if len(_materials(model.mesh)) > MOST_FACES]
    if names:
        yield warning(
            "",
            f"Only the first {MOST_FACES} faces have physics, since the viewer gives further parts none: "
            f"{listed(names)}",
        )


def _bare(models: list[Model], scene: Scene) -> Iterator[Finding]:
    """Warn about materials that the uploader ignores for rigged objects (section 10.1)."""
    textured = {material.name for material in scene.materials if material.texture is not None}
    bare = [
        model.name for model in models if model.skeleton is not None and not textured.isdisjoint(model.mesh.materials)
    ]
    if bare:
        yield warning(
            "",
            f"The uploader takes no textures from rigged objects, only their faces: {listed(bare)}; upload the "
            "textures, then choose them in the viewer",
        )
