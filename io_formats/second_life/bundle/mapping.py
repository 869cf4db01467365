"""Bundle <-> Scene (formats page, section 8): several models with their transforms and materials; facts and checks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError, FormatError
from ...core.messages import Message, Report, Text, error, listed, of_kind, warning
from ...core.scene import Material, Scene
from ...core.shading import Texture
from ...encodings.quantization import linear_to_srgb, srgb_to_linear
from ..asset import mapping as asset_mapping
from ..asset import rules
from ..asset.codec import BLOCKS, Asset, of_mesh
from ..asset.document_builder import BuiltAsset, material_list
from ..asset.mapping import asset_findings, assets_of, submodel_suffix
from ..asset.rules import check_models
from ..asset.scene_builder import SceneBuilder
from ..models.llsd import as_integer, encoded, sorted_map
from ..models.llsd_arrays import as_reals, singles
from ..models.models import Model, models_of
from ..options import LEVELS, ModelReadOptions, ModelWriteOptions
from .codec import VERSION, Bundle
from .format import INSTANCES

_MOST = 512
"""Maximum number of instances that are read, which is also the maximum number of objects in a linkset."""


@dataclass
class BundleMaterial:
    """A material of an instance."""

    binding: str
    """Name of the material in the ``material_list`` of the mesh."""
    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """RGBA as in the viewer, 0 to 1, sRGB-encoded."""
    filename: str = ""
    """Path of the texture that the uploader opens, or empty."""
    label: str = ""
    fullbright: bool = False


@dataclass
class Instance:
    """A mesh with its transform."""

    mesh: int
    """Index of the mesh."""
    label: str
    transform: npt.NDArray[np.float64]
    """(4, 4) for column vectors: from the unit cube to the world, in metres, Z up."""
    materials: list[BundleMaterial] = field(default_factory=list)


def instances_of(bundle: Bundle, report: Report) -> list[Instance]:
    """Decode the instances; invalid ones are left out and reported in ``report``."""
    found: list[Instance] = []
    values = bundle.values.get(INSTANCES)
    for number, value in enumerate(values if isinstance(values, list) else [], 1):
        if len(found) == _MOST:
            report.loss("too-many-objects", "Only the first {:,} objects are read", _MOST)
            break
        if not isinstance(value, dict):
            report.loss("object-left-out", "Object {} is left out: it is not a map", number)
            continue
        label = _text(value.get("label")) or f"object {number}"
        mesh = as_integer(value.get("mesh_id"))
        matrix = as_reals(value.get("transform"), 16)
        if mesh is None or not 0 <= mesh < len(bundle.meshes):
            report.loss("object-left-out", "'{}' is left out: it refers to a mesh that is not in the file", label)
            continue
        if matrix is None or not _is_place(matrix):
            report.loss("object-left-out", "'{}' is left out: its transform is not a matrix of numbers", label)
            continue
        found.append(Instance(mesh, label, matrix.reshape(4, 4).T, _materials(value.get("material"))))
    return found


def _materials(value: Any) -> list[BundleMaterial]:
    return [_bundle_material(inner) for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _is_place(matrix: npt.NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(matrix.astype(np.float32)).all())


def _bundle_material(value: dict[str, Any]) -> BundleMaterial:
    found = BundleMaterial(_text(value.get("binding")), fullbright=value.get("fullbright") is True)
    diffuse = value.get("diffuse")
    if isinstance(diffuse, dict):
        found.filename, found.label = _text(diffuse.get("filename")), _text(diffuse.get("label"))
        color = as_reals(diffuse.get("color"), 4)
        if color is not None:
            found.color = tuple(np.nan_to_num(np.clip(color, 0.0, 1.0), nan=1.0).tolist())
    return found


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def bundle_of(name: str, meshes: list[Any], instances: list[Instance]) -> Bundle:
    """Build a bundle of assets and instances as the viewer saves it: keys sorted, materials by their binding."""
    placed, named = [_value(instance) for instance in instances], {"name": name} if name else {}
    return Bundle({"instance": placed, "mesh": None, **named, "version": VERSION}, meshes)


def _value(instance: Instance) -> dict[str, Any]:
    materials = [
        sorted_map(
            {
                "binding": material.binding,
                "fullbright": material.fullbright,
                "diffuse": sorted_map(
                    {"filename": material.filename, "label": material.label, "color": singles(material.color)}
                ),
            }
        )
        for material in sorted(instance.materials, key=lambda material: encoded(material.binding))
    ]
    transform = np.asarray(instance.transform, np.float64).reshape(4, 4).T.reshape(16)
    return sorted_map(
        {"label": instance.label, "material": materials, "mesh_id": int(instance.mesh), "transform": singles(transform)}
    )


FULL_BRIGHT = 0.25
"""Emission above which a material is written as full bright."""
_PHYSICS = "physics_mesh"
_MOST_PLACED = 64 << 20
"""Limit in bytes for the positions and triangles of all instances. For large bundles the limit is twice the size of
these arrays in the meshes themselves."""


def to_scene(document: Bundle, name: str, options: ModelReadOptions) -> Scene:
    """Map a bundle to Blender's space.

    There is one model for each instance, with its transform (see ``mesh.scene_mapping.to_scene``); the parts of a split
    model are separate models. ``scene.materials`` holds the known properties of materials.

    Raises
    ------
    FormatError
        The bundle has no instance of a mesh.
    """
    builder = SceneBuilder(document.name or name, options)
    scene = builder.scene
    scene.warnings += document.warnings
    instances = instances_of(document, scene.report)
    if not instances:
        raise FormatError("There is no geometry in the file: no object uses a mesh")
    _refuse_crowds(document, instances)
    materials_by_name: dict[str, BundleMaterial] = {}
    differing: list[str] = []
    for instance in instances:
        # The bundle's warnings already include those of each asset's reader.
        asset = replace(document.meshes[instance.mesh], warnings=[])
        builder.add(asset, instance.label, transform=instance.transform)
        for material in instance.materials:
            before = materials_by_name.setdefault(material.binding, material)
            if before != material and material.binding not in differing:
                differing.append(material.binding)
    template = "{} different on different objects; the first one is used: {}"
    names = of_kind("material", differing)
    scene.report.loss_of("materials-differ", template, names, "material looks", "materials look")
    scene.materials = [_scene_material(look) for name, look in materials_by_name.items() if name]
    return scene


def _refuse_crowds(document: Bundle, instances: Sequence[Instance]) -> None:
    """Raise FormatError if the instances of a few meshes are so many that they would exhaust memory."""
    sizes = [_array_bytes(asset) for asset in document.meshes]
    placed = sum(sizes[instance.mesh] for instance in instances)
    if placed > max(_MOST_PLACED, 2 * sum(sizes)):
        raise FormatError(
            "Its {:,} objects would take {:,} MiB of vertices and triangles; use fewer", len(instances), placed >> 20
        )


def _array_bytes(asset: Asset) -> int:
    """Return the size of positions and triangles of an asset in bytes."""
    return sum(
        len(value)
        for level in (*LEVELS, _PHYSICS)
        if isinstance(faces := asset.blocks.get(level), list)
        for face in faces
        if isinstance(face, dict)
        for key in ("Position", "TriangleList")
        if isinstance(value := face.get(key), bytes)
    )


def _scene_material(look: BundleMaterial) -> Material:
    red, green, blue = srgb_to_linear(np.array((look.color[:3],), np.float32))[0].tolist()
    material = Material(look.binding, (red, green, blue, look.color[3]), emission=1.0 if look.fullbright else 0.0)
    if look.filename:
        material.texture = Texture(look.label or PurePath(look.filename).stem, look.filename)
    return material


def files_of(scene: Scene, options: ModelWriteOptions) -> list[Scene]:
    """Return a list with the whole scene, which becomes one bundle, or an empty list if it has no mesh."""
    return [replace(scene, warnings=[])] if models_of(scene) else []


def from_scene(scene: Scene, options: ModelWriteOptions) -> Bundle:
    """Map a scene to a bundle of all its models.

    ``scene.warnings`` reports what is left out, repaired or filled in.

    Raises
    ------
    ExportError
        There is no model, or a file cannot hold one; the message says what to do.
    """
    models = models_of(scene)
    if not models:
        raise ExportError("There is no mesh to write; select a mesh object")
    return _BundleBuilder(scene).build(models, options)


class _BundleBuilder:
    """Map models to a bundle."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.materials_by_name = {material.name: material for material in scene.materials}
        self.packed: list[str] = []
        """Names of textures without a file."""

    def build(self, models: Sequence[Model], options: ModelWriteOptions) -> Bundle:
        """Return the bundle: each asset once, and an instance for each part of each model."""
        scene = self.scene
        assets: list[Asset] = []
        labels: list[str] = []
        """The label of the first instance of each asset."""
        instances: list[Instance] = []
        number_of: dict[int, int] = {}
        for model, parts in zip(models, assets_of(models, scene, options, keeps_physics=True), strict=True):
            for built in parts:
                mesh = number_of.setdefault(id(built.asset), len(assets))
                label = model.name + (submodel_suffix(built.submodel) if built.submodel else "")
                if mesh == len(assets):
                    built.asset.header["material_list"] = material_list(built, model.name)
                    built.asset.blocks = _with_undefined_shape(built)
                    assets.append(built.asset)
                    labels.append(label)
                names = assets[mesh].header["material_list"]
                materials_by_name = [self.look(name) for name in dict.fromkeys(names)]
                instances.append(Instance(mesh, label, built.unit_cube.transform, materials_by_name))
            if len(parts) > 1 and "skin" in parts[0].asset.blocks:
                scene.report.loss(
                    "split-rigged-mesh",
                    "only the first part of a rigged model of more than 8 faces keeps its joints; use the upload set "
                    "for it",
                    item=model.name,
                )
        if not scene.as_imported:
            self.fill_physics(assets, labels)
        template = (
            "{} packed or not saved, so the uploader cannot open them; left out: {}; save as files (File > "
            "External Data > Unpack Resources)"
        )
        scene.report.loss_of("texture-packed", template, of_kind("image", self.packed), "texture is", "textures are")
        return bundle_of(models[0].name, assets, instances)

    def fill_physics(self, assets: Sequence[Asset], labels: Sequence[str]) -> None:
        """Give all meshes a physics mesh if any has one: the uploader matches physics meshes by their order."""
        if not any(_PHYSICS in asset.blocks for asset in assets):
            return
        filled = []
        for asset, label in zip(assets, labels, strict=True):
            if _PHYSICS not in asset.blocks:
                asset.blocks[_PHYSICS] = [_bare(face) for face in asset.blocks["lowest_lod"]]
                filled.append(label)
        template = "{} no physics mesh while others do; their lowest level is used instead: {}"
        self.scene.report.change_of("physics-mesh-missing", template, filled, "object has", "objects have")

    def look(self, name: str) -> BundleMaterial:
        """Return the bundle's record of a material; plain white if the scene has no material of this name."""
        known = self.materials_by_name.get(name)
        if known is None:
            return BundleMaterial(name)
        color = linear_to_srgb(np.array((known.color,), np.float32))[0]
        stored = tuple(np.clip(color, 0, 1).astype(np.float64).round(6).tolist())
        look = BundleMaterial(name, stored, fullbright=known.emission > FULL_BRIGHT)
        if known.texture is not None:
            if known.texture.path:
                look.filename, look.label = known.texture.path, known.texture.name
            elif known.texture.name not in self.packed:
                self.packed.append(known.texture.name)
        return look


def _with_undefined_shape(built: BuiltAsset) -> dict[str, Any]:
    """Return the blocks of an asset; the viewer saves further parts with an undefined physics shape."""
    blocks = built.asset.blocks
    if not built.submodel and ("submodel_id" not in built.asset.header or "physics_convex" in blocks):
        return blocks
    return {
        name: None if name == "physics_convex" else blocks[name]
        for name in BLOCKS
        if name in blocks or name == "physics_convex"
    }


def _bare(face: dict[str, Any]) -> dict[str, Any]:
    """Copy a face of a level of detail, as an LLSD map, without normals, UVs and weights: a physics mesh has none."""
    return {
        key: value for key, value in face.items() if key not in {"Normal", "TexCoord0", "TexCoord0Domain", "Weights"}
    }


check_scene = rules.check_native_scene


def check(document: Bundle) -> list[Message]:
    """Check the meshes of a bundle and their transforms; for a bundle read from a file, also its models.

    The models of a bundle that was built from a scene are checked with the scene (``check_scene``).
    """
    findings = list(_bundle_findings(document))
    if any(asset.stored_sizes for asset in document.meshes):
        scene = to_scene(document, "", ModelReadOptions())
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


def facts(bundle: Bundle) -> dict[str, Any]:
    """Return counts and weights as sums over all instances: a mesh with three instances counts three times."""
    warnings = list(bundle.warnings)
    instances = instances_of(bundle, Report(warnings))
    decoded = [asset_mapping.decode_blocks(asset) for asset in bundle.meshes]
    for number, mesh in enumerate(decoded, 1):
        # Skip the warnings of the asset's reader, which come first; the bundle's own warnings already include them.
        said = mesh.warnings[len(bundle.meshes[number - 1].warnings) :]
        warnings += [of_mesh(number, message) for message in said]
    total: dict[str, int] = {}
    lods: dict[str, dict[str, int]] = {}
    weight = 0.0
    for instance in instances:
        mesh = decoded[instance.mesh]
        for key, count in asset_mapping.common_counts(mesh).items():
            total[key] = max(total.get(key, 0), count) if key == "uv_layers" else total.get(key, 0) + count
        for level, counts in asset_mapping.level_facts(mesh).items():
            sums = lods.setdefault(level, dict.fromkeys(counts, 0))
            for key, count in counts.items():
                sums[key] += count
        axes = np.linalg.norm(instance.transform[:3, :3], axis=0)
        weight += mesh.download_weight((float(axes[0]), float(axes[1]), float(axes[2])))
    return {
        "version": str(VERSION),
        **total,
        "materials": len({material.binding for instance in instances for material in instance.materials}),
        "lods": lods,
        "hulls": sum(len(decoded[instance.mesh].hulls.hulls) for instance in instances),
        "download_weight": round(weight, 4),
        "warnings": warnings,
    }
