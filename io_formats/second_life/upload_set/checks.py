"""Check a scene against the rules of the uploader for upload sets (formats page, sections 6, 10 and 12)."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.messages import Message, Report, Text, counted, listed, of_kind, warning
from ...core.scene import Mesh, Scene
from ..asset import rules
from ..asset.rules import degenerate_triangles
from ..models.faces import MOST_FACES
from ..models.models import Model, findings_once, models_of
from ..models.unit_cube import box_of, is_as_imported, unit_cube_of
from ..options import LEVEL_TEXTS
from .document import SUFFIXES, Instance, UploadSet
from .levels import box_of_triangles, flat_axes, short_sides

_STRETCHED = 0.01
"""Share of an object's size by which a level's box may differ from the finest one's without a warning."""


def check_scene(scene: Scene) -> list[Message]:
    """Return the findings of the rules of all Second Life formats, and of the rules for upload sets alone."""
    models = models_of(scene)
    own = [
        *findings_once(models, lambda model: (*_without_material(model), *_thin_hulls(model, scene))),
        *_same_but_case(models),
        *_without_physics(models),
        *_bare(models, scene),
    ]
    return [*rules.check_scene(scene), *own]


def check(document: UploadSet) -> list[Message]:
    """Return a finding for each level and physics mesh whose box differs from that of the highest level.

    The uploader scales each file to the box of the highest level (section 6). :func:`check_scene` covers the rest.
    """
    finest = {instance.geometry.name: instance for instance in document.files[0].instances} if document.files else {}
    labels = dict(zip(SUFFIXES, (*LEVEL_TEXTS, "physics"), strict=True))
    found: dict[int, Message] = {}
    for file in document.files[1:]:
        for instance in file.instances:
            highest = finest.get(instance.geometry.name)
            if highest is not None and id(instance.geometry) not in found:
                found.update(
                    (id(instance.geometry), message) for message in _stretched(instance, highest, labels[file.suffix])
                )
    return list(found.values())


def _stretched(instance: Instance, highest: Instance, label: str) -> Iterator[Message]:
    """Warn about a level or physics mesh that the uploader stretches or shrinks."""
    box, wanted = box_of_triangles(instance.geometry), box_of_triangles(highest.geometry)
    item = Text("Object '{}'", instance.object_name)
    if (flat_axes(wanted) & ~flat_axes(box)).any():
        template = "its {} is not flat as its highest level is, so the viewer stretches it to about 1 m; flatten it"
        yield warning("level-not-flat", template, Text(label), item=item)
    extent = np.ptp(wanted, axis=0)
    inside = short_sides(box, wanted) * np.tile(extent / (extent.max() or 1.0), 2)
    share = float(np.abs(inside).max())
    if share > _STRETCHED:
        is_short = inside.max() >= share
        template = "its {} ends {:.0%} of the size {} the box of its highest level; the viewer {} it to this box{}"
        yield warning(
            "level-stretched",
            template,
            Text(label),
            share,
            Text("inside" if is_short else "outside"),
            Text("stretches" if is_short else "shrinks"),
            Text("" if label in LEVEL_TEXTS else ", so that avatars collide elsewhere than they see"),
            item=item,
        )


def _without_material(model: Model) -> Iterator[Message]:
    """Warn about levels that the user made and that lack a material of the finest level (section 10)."""
    wanted = _materials(model.mesh)
    for node in model.levels[1:]:
        if node is None or node.mesh is None or node.generated_from or not node.mesh.triangle_count:
            continue
        missing = [name or "no material" for name in wanted if name not in _materials(node.mesh)]
        if missing:
            template = "no triangles with {}, so the files get a small one of each: the viewer needs them"
            yield warning(
                "level-lacks-material",
                template,
                listed(of_kind("material", missing)),
                item=Text("Object '{}'", node.name),
            )


def _materials(mesh: Mesh) -> list[str]:
    """Return the names of the materials that triangles use; without slots, an empty name."""
    slots = mesh.materials or [""]
    used = np.unique(np.clip(mesh.material_index, 0, len(slots) - 1)).tolist()
    return list(dict.fromkeys(slots[number] for number in used))


def _box(mesh: Mesh) -> npt.NDArray[np.float64] | None:
    """Return the box of the triangles, (2, 3); None without triangles, or if values are not finite."""
    box = box_of(mesh)
    return box if len(mesh.corner_point) and np.isfinite(box).all() else None


def _thin_hulls(model: Model, scene: Scene) -> Iterator[Message]:
    """Warn about degenerate triangles of hulls, which the files hold as triangles (section 5.2)."""
    if _box(model.mesh) is None:
        return
    unit_cube = unit_cube_of(model, Report(), as_imported=scene.as_imported and is_as_imported(model))
    meshes = [node.mesh for node in model.hulls if node.mesh is not None]
    count = sum(
        int(degenerate_triangles(unit_cube.normalised(mesh.points), mesh.corner_point).sum()) for mesh in meshes
    )
    if count:
        yield warning(
            "degenerate-physics-triangles",
            "{} too thin or too small for physics; use the physics shape Convex Hull, or choose Analyze in the upload "
            "window, which makes other hulls: set Num Hulls to {} or more, and look at the result",
            counted(count, "triangle of its hulls is", "triangles of its hulls are"),
            len(meshes),
            item=Text("Object '{}'", model.name),
        )


def _same_but_case(models: list[Model]) -> Iterator[Message]:
    """Warn about materials that differ in case alone, which the viewer ignores when it sorts faces (section 10)."""
    spellings: dict[str, dict[str, None]] = {}
    for name in dict.fromkeys(name for model in models for name in _materials(model.mesh)):
        spellings.setdefault(name.casefold(), {})[name] = None
    for names in spellings.values():
        if len(names) > 1:
            yield warning(
                "material-names-differ-in-case",
                "Materials whose names differ only in case get numbers in the files: {}; rename them, since the viewer "
                "ignores case when it sorts faces",
                listed(of_kind("material", list(names))),
            )


def _without_physics(models: list[Model]) -> Iterator[Message]:
    """Warn about models of more than 8 materials: the viewer splits them and gives only the first part physics."""
    names = [model.name for model in models if len(_materials(model.mesh)) > MOST_FACES]
    if names:
        yield warning(
            "faces-without-physics",
            "Only the first {} faces have physics, since the viewer gives further parts none: {}",
            MOST_FACES,
            listed(names),
        )


def _bare(models: list[Model], scene: Scene) -> Iterator[Message]:
    """Warn about properties of materials that the uploader ignores for rigged objects (section 10.1)."""
    textured = {material.name for material in scene.materials if material.texture is not None}
    bare = [
        model.name for model in models if model.skeleton is not None and not textured.isdisjoint(model.mesh.materials)
    ]
    if bare:
        yield warning(
            "textures-of-rigged-objects",
            "The uploader takes no textures from rigged objects, only their faces: {}; upload the textures, then "
            "choose them in the viewer",
            listed(of_kind("object", bare)),
        )
