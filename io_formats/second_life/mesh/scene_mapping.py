"""Asset <-> Scene: the interface of ``scene_builder`` (import), ``prepared`` and ``asset_builder`` (export)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Report, listed
from ...core.scene import Scene
from ..models.models import Model, first_equal, models_of
from ..models.prepared import Prepared, prepare, submodel_count
from ..models.unit_cube import settled, unit_cube_of
from .asset_builder import BuiltAsset, build
from .document import Asset
from .scene_builder import SceneBuilder


def to_scene(document: Asset, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map an asset to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    The scene has one model: the finest level, coarser ones, physics mesh, hulls and base hull, all with one transform.
    Points are those of the file (±0.5), in its order, and each face is a material slot. Repairs are reported in
    ``scene.warnings``.

    Raises
    ------
    FormatError
        No level has a triangle.
    """
    builder = SceneBuilder(name, options)
    builder.add(document, name)
    return builder.scene


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scenes that each become an asset: one for each model, or for each part of a model of over 8 materials.

    Parts are named ``_b``, ``_c`` … after the first, as in the viewer.

    Raises
    ------
    ExportError
        A model has over 8 materials, and the option rejects that.
    """
    files: list[Scene] = []
    for model in models_of(scene):
        whole = scene_of(model, scene)
        files.append(whole)
        for number in range(1, submodel_count(model, scene, options)):
            finest, *others = whole.nodes
            part = replace(finest, submodel=number)
            name = f"{whole.name}_{submodel_suffix(number)}"
            files.append(replace(whole, name=name, nodes=[part, *others], warnings=[]))
    return files


def submodel_suffix(number: int) -> str:
    """Return the viewer's suffix for the further parts of a model: ``b`` for 1, ``c`` for 2 and so on."""
    return chr(ord("a") + number) if number < 26 else str(number + 1)


def scene_of(model: Model, scene: Scene) -> Scene:
    """Return a model as a separate scene, without the warnings of the whole scene.

    Levels and shapes that the model cannot hold are appended, so that the checks can name them.
    """
    number = next((place for place, node in enumerate(scene.nodes) if node is model.finest), -1)
    own = {id(node) for node in model.nodes}
    further = [node for node in scene.nodes if id(node) not in own and node.model == number]
    nodes = [
        replace(
            node,
            lod_of=None if node.lod_of is None else 0,
            shape_of=None if node.shape_of is None else 0,
            skeleton=None if node.skeleton is None else 0,
        )
        for node in (*model.nodes, *further)
    ]
    used = {name for node in nodes if node.mesh is not None for name in node.mesh.materials}
    return scene.part(
        model.name,
        nodes,
        [model.skeleton] if model.skeleton is not None else [],
        materials=[material for material in scene.materials if material.name in used],
    )


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Asset:
    """Map a scene with one model to an asset with the options of ``options.EXPORT_OPTIONS``.

    ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        No model or several, or data that no asset can hold; the message says what to do.
    """
    models = models_of(scene)
    if not models:
        raise ExportError("There is no mesh to write; select a mesh object")
    if len(models) > 1:
        names = listed([model.name for model in models])
        raise ExportError(
            "A Second Life mesh file holds one object, not {} ({}); write several files, or join them",
            len(models),
            names,
        )
    return _built(models[0], scene, options, models[0].finest.submodel).asset


def assets_of(
    models: Sequence[Model], scene: Scene, options: Mapping[str, Any] | None = None, *, keeps_physics: bool = False
) -> list[list[BuiltAsset]]:
    """Return all assets of each model; further parts of a model with more than 8 faces follow the first.

    Models with the same content share their assets, with placements of their own. ``scene.warnings`` reports what is
    left out or repaired, for shared assets once.

    Parameters
    ----------
    keeps_physics:
        Write physics meshes also if there are hulls.

    Raises
    ------
    ExportError
        Data that no asset can hold; the message says what to do.
    """
    found: list[list[BuiltAsset]] = []
    prepared: dict[int, Prepared] = {}
    for number, (model, first) in enumerate(zip(models, first_equal(models), strict=True)):
        shared = _placed(found[first], prepared[first], model) if first < number else None
        if shared is None:
            prepared[number] = prepare(model, scene, options)
            report, parts = scene.report.about(model.name), range(len(prepared[number].submodels))
            shared = [build(prepared[number], part, report, keeps_physics=keeps_physics) for part in parts]
        found.append(shared)
    return found


def _placed(built: Sequence[BuiltAsset], prepared: Prepared, model: Model) -> list[BuiltAsset] | None:
    """Return the assets of an equal model with the placement of ``model``, or None if the unit cubes differ."""
    unit_cube = unit_cube_of(settled(model), Report(), as_imported=prepared.as_imported)
    known = prepared.unit_cube
    if not (np.array_equal(unit_cube.centre, known.centre) and np.array_equal(unit_cube.size, known.size)):
        return None  # the size of a flat axis depends on the scale, so the unit cubes can differ
    return [replace(part, unit_cube=unit_cube) for part in built]


def _built(model: Model, scene: Scene, options: Mapping[str, Any] | None, number: int) -> BuiltAsset:
    prepared = prepare(model, scene, options)
    if not 0 <= number < len(prepared.submodels):
        raise ExportError("{}: it has no part {}", model.name, number + 1)
    return build(prepared, number, scene.report.about(model.name))
