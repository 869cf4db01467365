"""Asset <-> Scene, what ``meshferry inspect`` prints, and checks (formats page, sections 2.1, 5.1 and 12)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Message, Report, Text, error, listed, warning
from ...core.scene import Scene
from ..avatar.joint_positions import size_at_rest
from ..models.costs import download_weight
from ..models.faces import MOST_FACES
from ..models.level_block import Face, faces_of
from ..models.llsd import as_integer
from ..models.models import Model, first_equal, models_of
from ..models.physics_block import Hulls, hulls_of
from ..models.skin_block import SkinBlock, skin_of
from ..models.unit_cube import settled, unit_cube_of
from ..options import LEVEL_LABELS, LEVEL_TEXTS, LEVELS, ModelReadOptions, ModelWriteOptions
from . import rules
from .codec import BLOCK_LABELS, LONGEST_HEADER, Asset, block_sizes
from .document_builder import BuiltAsset, build
from .rules import check_models
from .scene_builder import SceneBuilder
from .upload_model import Prepared, prepare, submodel_count

Size = tuple[float, float, float]

PHYSICS_MESH = "physics_mesh"


@dataclass
class DecodedAsset:
    """The content of an asset as arrays."""

    levels: dict[str, list[Face]]
    """The faces of the existing levels, the finest first."""
    physics: list[Face]
    hulls: Hulls
    skin: SkinBlock | None
    sizes: dict[str, int]
    """Compressed size of each block in bytes."""
    warnings: list[Message] = field(default_factory=list)

    @property
    def faces(self) -> list[Face]:
        """The faces of the finest existing level."""
        return next(iter(self.levels.values()), [])

    @property
    def size(self) -> Size | None:
        """Lengths of the object along its axes in metres; for a rigged object estimated from its rig.

        None if the asset does not state them.
        """
        if self.skin is not None:
            return size_at_rest(self.skin)
        return next((face.normalized_scale for face in self.faces if face.normalized_scale is not None), None)

    def download_weight(self, size: Size | None = None) -> float:
        """Return the download weight at the given size, by default that of the asset or one metre."""
        return download_weight(self.sizes, size or self.size or (1.0, 1.0, 1.0))


def decode_blocks(asset: Asset) -> DecodedAsset:
    """Decode all blocks of an asset; ``warnings`` includes those of its reader."""
    warnings = list(asset.warnings)

    report = Report(warnings)

    def faces(block: str) -> list[Face]:
        label = Text(BLOCK_LABELS[block].capitalize())
        return faces_of(asset.blocks[block], report.about(label)) if block in asset.blocks else []

    levels = {level: faces(level) for level in LEVELS if level in asset.blocks}
    physics = faces(PHYSICS_MESH)
    found = hulls_of(asset.blocks.get("physics_convex"), report.about(Text("Physics hulls")))
    skin = skin_of(asset.blocks["skin"], report) if "skin" in asset.blocks else None
    sizes = asset.stored_sizes or block_sizes(asset)
    return DecodedAsset(levels, physics, found, skin, sizes, warnings)


def level_facts(decoded: DecodedAsset) -> dict[str, dict[str, int]]:
    """Return triangles, vertices and compressed bytes of each existing level, the finest first."""
    return {
        level: {
            "triangles": sum(len(face.triangles) for face in faces),
            "vertices": sum(len(face.positions) for face in faces),
            "bytes": decoded.sizes[level],
        }
        for level, faces in decoded.levels.items()
    }


def common_counts(decoded: DecodedAsset) -> dict[str, int]:
    """Return the counts common to all formats, for the finest level; nodes are the objects that an import creates."""
    faces = decoded.faces
    shapes = bool(decoded.physics) + len(decoded.hulls.hulls) + (decoded.hulls.base is not None)
    return {
        "nodes": len(decoded.levels) + shapes,
        "vertices": sum(len(face.positions) for face in faces),
        "triangles": sum(len(face.triangles) for face in faces),
        "surfaces": len(faces),
        "materials": len(faces),
        "uv_layers": int(any(face.uvs is not None for face in faces)),
        "bones": len(decoded.skin.joint_names) if decoded.skin else 0,
    }


def to_scene(document: Asset, name: str, options: ModelReadOptions) -> Scene:
    """Map an asset to Blender's space.

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


def files_of(scene: Scene, options: ModelWriteOptions) -> list[Scene]:
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


def from_scene(scene: Scene, options: ModelWriteOptions) -> Asset:
    """Map a scene with one model to an asset.

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
    models: Sequence[Model], scene: Scene, options: ModelWriteOptions, *, keeps_physics: bool = False
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


def _built(model: Model, scene: Scene, options: ModelWriteOptions, number: int) -> BuiltAsset:
    prepared = prepare(model, scene, options)
    if not 0 <= number < len(prepared.submodels):
        raise ExportError("{}: it has no part {}", model.name, number + 1)
    return build(prepared, number, scene.report.about(model.name))


check_scene = rules.check_native_scene


def check(document: Asset) -> list[Message]:
    """Check the blocks of an asset; for an asset read from a file, also its models.

    The models of an asset that was built from a scene are checked with the scene (``check_scene``).
    """
    findings = list(asset_findings(document))
    if document.stored_sizes:
        scene = to_scene(document, "", ModelReadOptions())
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


def facts(asset: Asset) -> dict[str, Any]:
    """Count the stored data. Vertices and triangles are counted in the finest level, ``lods`` has the counts of all.

    ``hulls`` does not include the base hull. ``download_weight`` (section 11.1) is computed for the size stated by the
    asset, or for one metre. For a rigged asset it is an estimate, since the size follows from its rig.
    """
    decoded = decode_blocks(asset)
    version = as_integer(asset.header.get("version"))
    return {
        "version": "" if version is None else str(version),
        **common_counts(decoded),
        "lods": level_facts(decoded),
        "hulls": len(decoded.hulls.hulls),
        "download_weight": round(decoded.download_weight(), 4),
        "warnings": decoded.warnings,
    }
