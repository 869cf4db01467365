"""Bundle <-> Scene (formats page, section 8): several models with their transforms and materials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from ...core.errors import ExportError, FormatError
from ...core.messages import counted, listed
from ...core.scene import Material, Scene
from ...core.shading import Texture
from ...encodings.quantization import linear_to_srgb, srgb_to_linear
from ..asset.codec import BLOCKS, Asset
from ..asset.document_builder import BuiltAsset, material_list
from ..asset.mapping import assets_of, submodel_suffix
from ..asset.scene_builder import SceneBuilder
from ..models.models import Model, models_of
from ..options import LEVELS
from .document import Bundle
from .instances import BundleMaterial, Instance, bundle_of, instances_of

FULL_BRIGHT = 0.25
"""Emission above which a material is written as full bright."""
_PHYSICS = "physics_mesh"
_MOST_PLACED = 64 << 20
"""Limit in bytes for the positions and triangles of all instances. For large bundles the limit is twice the size of
these arrays in the meshes themselves."""


def to_scene(document: Bundle, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a bundle to Blender's space with the options of ``options.IMPORT_OPTIONS``.

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
    scene.report.loss_of("materials-differ", template, differing, "material looks", "materials look")
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


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return a list with the whole scene, which becomes one bundle, or an empty list if it has no mesh."""
    return [replace(scene, warnings=[])] if models_of(scene) else []


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Bundle:
    """Map a scene to a bundle of all its models with the options of ``options.EXPORT_OPTIONS``.

    ``scene.warnings`` reports what is left out, repaired or filled in.

    Raises
    ------
    ExportError
        There is no model, or a file cannot hold one; the message says what to do.
    """
    models = models_of(scene)
    if not models:
        raise ExportError("There is no mesh to write; select a mesh object")
    return _BundleBuilder(scene, models, options).bundle


class _BundleBuilder:
    """Map models to a bundle."""

    def __init__(self, scene: Scene, models: Sequence[Model], options: Mapping[str, Any] | None) -> None:
        self.scene = scene
        self.materials_by_name = {material.name: material for material in scene.materials}
        self.packed: list[str] = []
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
        if self.packed:
            number = counted(len(self.packed), "texture is", "textures are")
            scene.report.loss(
                "texture-packed",
                "{} packed or not saved, so the uploader cannot open them; left out: {}; save as files (File > "
                "External Data > Unpack Resources)",
                number,
                listed(self.packed),
            )
        self.bundle = bundle_of(models[0].name, assets, instances)

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
