"""Materials that need more than a colour and one texture: export as glTF with Blender's own exporter.

Blender's exporter leaves out the transforms of most other nodes.
"""

import contextlib
import io
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.glb_materials import GltfImage, GltfMaterial, GltfTexture, TextureUse, read_materials
from ....io_formats.core.messages import Named, Report, Text, joined, of_kind
from ....io_formats.encodings import image_files
from ... import compat, image_decoding
from ...operator_calls import operator_error
from ..reading.material_reading import (
    emission_of,
    images_of,
    occlusion_inputs,
    report_lost_images,
    report_still,
    shader_of,
    shown_images,
    slot_of_faces,
    upstream,
)
from ..reading.shader_nodes import Socket, output_of, source, sources

_INPUTS = ("Location", "Rotation", "Scale")
_PERPENDICULAR = 1e-5
"""Largest cosine between the columns of a matrix that consists of a scale and then a rotation."""
_MIDDLE = np.full(2, 0.5)


@contextlib.contextmanager
def scaled_before_rotated(materials: Iterable[bpy.types.Material], report: Report) -> Iterator[None]:
    """Let Mapping nodes before images scale before they rotate, within a ``with`` block.

    Where that is not possible, the rotation is left out so that the middle of the image keeps its place, and the
    material is reported.
    """
    before: dict[Any, tuple[str, list[tuple[float, ...]]]] = {}
    is_exact: dict[Any, bool] = {}
    lost: list[str] = []
    for material in materials:
        nodes = _mapping_nodes(material)
        for node in nodes:
            if node not in is_exact:
                before[node] = node.vector_type, [_values(node, name) for name in _INPUTS]
                is_exact[node] = _convert(node)
        if not all(map(is_exact.__getitem__, nodes)):
            lost.append(material.name)
    text = "{} with rotated images that are scaled unevenly; glTF stores them without rotation: {}"
    report.loss_of("glb-texture-transform", text, of_kind("material", lost), "material")
    try:
        yield
    finally:
        for node, (kind, values) in before.items():
            if node.vector_type != kind:
                node.vector_type = kind
                for name, value in zip(_INPUTS, values, strict=True):
                    node.inputs[name].default_value = value


def _mapping_nodes(material: bpy.types.Material) -> list[Any]:
    """Return the Mapping nodes directly before the images of a material."""
    tree = compat.node_tree(material)
    output = output_of(tree) if tree is not None else None
    if tree is None or output is None:
        return []
    found: dict[Any, None] = {}
    for socket in (output.inputs["Surface"], *occlusion_inputs(tree)):
        for reached in sources(Socket(socket)):
            if reached.node.type == "TEX_IMAGE":
                entry = source(reached.input("Vector"))
                if not entry.is_value and entry.node.type == "MAPPING":
                    found[entry.node] = None
    return list(found)


def _values(node: Any, name: str) -> tuple[float, ...]:
    return tuple(node.inputs[name].default_value) if name in node.inputs else ()


def _convert(node: Any) -> bool:
    """Convert a rotated Mapping node of type TEXTURE to one of type POINT; return False if it cannot be exact."""
    ahead = source(Socket(node.inputs["Vector"]))
    if not ahead.is_value and ahead.node.type == "MAPPING":
        return False
    if node.vector_type != "TEXTURE" or any(node.inputs[name].is_linked for name in _INPUTS):
        return True
    location, rotation, scale = (np.array(_values(node, name), np.float64) for name in _INPUTS)
    if not rotation[2] or rotation[:2].any() or node.id_data.library is not None:
        return True
    inverse = np.divide(1.0, scale, out=np.zeros(3), where=scale != 0.0)
    sine, cosine = math.sin(rotation[2]), math.cos(rotation[2])
    matrix = inverse[:2, None] * np.array([(cosine, sine), (-sine, cosine)])
    offset = -matrix @ location[:2]
    lengths = np.linalg.norm(matrix, axis=0)
    is_exact = bool(abs(matrix[:, 0] @ matrix[:, 1]) <= _PERPENDICULAR * lengths.prod())
    if not is_exact:
        offset += (matrix - np.diag(inverse[:2])) @ _MIDDLE
        matrix = np.diag(inverse[:2])
    (x, other_y), (other_x, y) = matrix.T
    angle = math.atan2(other_y, x) if lengths[0] else math.atan2(-other_x, y)
    if math.cos(angle) < 0.0:
        angle -= math.copysign(math.pi, angle)
    sine, cosine = math.sin(angle), math.cos(angle)
    node.vector_type = "POINT"
    node.inputs["Location"].default_value = (*offset, -location[2] * inverse[2])
    node.inputs["Rotation"].default_value = (0.0, 0.0, angle)
    node.inputs["Scale"].default_value = (x * cosine + other_y * sine, y * cosine - other_x * sine, inverse[2])
    return is_exact


Pixels = npt.NDArray[np.uint8]
"""(H, W, 4) pixels, the lowest row first."""

_LINKED = ("Metallic", "Roughness", "Normal", "Alpha")
"""Inputs of a Principled BSDF; an image at one of them cannot be shown by a diffuse texture."""
_EMISSION = ("Emission Color", "Emission Strength")
_HELD = ("Base Color", *_LINKED, *_EMISSION)
"""Inputs of a Principled BSDF that glTF can store."""
_KNOWN_NODES = frozenset(
    {
        *("TEX_IMAGE", "MAPPING", "TEX_COORD", "UVMAP", "NORMAL_MAP", "SEPARATE_COLOR", "RGB", "VALUE"),
        *("REROUTE", "GROUP", "GROUP_INPUT", "GROUP_OUTPUT", "VERTEX_COLOR"),
    }
)
"""Types of nodes that Blender's glTF exporter converts, besides multiplications and comparisons for a clipped alpha."""
EXTENSIONS = {
    "KHR_materials_emissive_strength": Text("emission above 1"),
    "KHR_materials_clearcoat": Text("coat"),
    "KHR_materials_transmission": Text("transmission"),
    "KHR_materials_volume": Text("volume"),
    "KHR_materials_ior": Text("IOR"),
    "KHR_materials_specular": Text("specular"),
    "KHR_materials_sheen": Text("sheen"),
    "KHR_materials_anisotropy": Text("anisotropy"),
}
_EXPORT = {
    "export_format": "GLB",
    "export_animations": False,
    "export_skins": False,
    "export_morph": False,
    "export_cameras": False,
    "export_lights": False,
    "export_extras": False,
    "export_current_frame": True,  # otherwise the exporter changes the scene's frame
    "export_image_format": "AUTO",
}


def needs_gltf(material: bpy.types.Material) -> bool:
    """Return whether a diffuse colour and texture cannot show a material.

    It has a Principled BSDF that is metallic or emits light, or uses an image for metal, roughness, normals, alpha or
    occlusion.
    """
    tree = compat.node_tree(material)
    shader = shader_of(tree) if tree is not None else None
    if shader is None or shader.type != "BSDF_PRINCIPLED":
        return False
    linked = [shader.inputs[name] for name in _LINKED]
    metallic = shader.inputs["Metallic"]
    return (
        (not metallic.is_linked and metallic.default_value > 0)
        or emission_of(shader) > 0
        or any(image is not None for socket in (*linked, *occlusion_inputs(tree)) for image in images_of(socket))
    )


def materials_for_gltf(objects: Iterable[bpy.types.Object]) -> list[bpy.types.Material]:
    """Return the materials of the faces of objects that need glTF; modifiers are ignored."""
    found: dict[bpy.types.Material, None] = {}
    for obj in objects:
        used = set(range(len(obj.material_slots)))
        if isinstance(obj.data, bpy.types.Mesh) and obj.mode != "EDIT":
            used &= set(np.unique(slot_of_faces(obj.data)).tolist())
        found.update(dict.fromkeys(obj.material_slots[number].material for number in sorted(used)))
    return [material for material in found if material is not None and needs_gltf(material)]


def gltf_materials(
    context: bpy.types.Context, materials: Mapping[str, bpy.types.Material], report: Report
) -> dict[str, GltfMaterial]:
    """Return the materials that need glTF, by their names in ``materials``.

    Occlusion, roughness and metal are packed into the red, green and blue channel of one image. Settings that glTF
    cannot store are reported.
    """
    wanted = {name: material for name, material in materials.items() if needs_gltf(material)}
    if not wanted:
        return {}
    if not _is_exporter_enabled():
        text = "PBR materials are left out: enable Blender's add-on 'glTF 2.0 format' in the preferences"
        report.loss("pbr-materials-left-out", text)
        return {}
    try:
        with scaled_before_rotated(wanted.values(), report):
            exported = _exported(context, list(wanted.values()))
    except (RuntimeError, OSError, ValueError, KeyError) as problem:
        text = "PBR materials are left out, since Blender's glTF exporter failed: {}"
        report.loss("pbr-materials-left-out", text, operator_error(problem))
        return {}
    made = dict(zip(wanted, exported, strict=True))
    for name, gltf in made.items():
        _report_left_out(name, wanted[name], gltf, report)
        gltf.name = gltf.values["name"] = name
        _pack(gltf)
    return made


# -- Blender's exporter -------------------------------------------------------------------------


def _is_exporter_enabled() -> bool:
    operator: Any = bpy.ops.export_scene.gltf
    try:
        operator.get_rna_type()
    except KeyError:
        return False
    return True


def _exported(context: bpy.types.Context, materials: Sequence[bpy.types.Material]) -> list[GltfMaterial]:
    """Export a triangle with each material by Blender's glTF exporter; return the materials from the file.

    Raises
    ------
    RuntimeError, OSError, ValueError, KeyError
        The exporter failed.
    """
    operator: Any = bpy.ops.export_scene.gltf
    known = operator.get_rna_type().properties
    with (
        tempfile.TemporaryDirectory(prefix="meshferry-") as folder,
        _triangles(context, materials) as (collection, meshes),
        _without_marks(materials),
        contextlib.redirect_stdout(io.StringIO()),
        # Otherwise the exporter would end the edit mode of the active object.
        context.temp_override(active_object=None, object=None),
    ):
        path = Path(folder, "materials.glb")
        given = {key: value for key, value in _EXPORT.items() if key in known}
        operator(filepath=str(path), collection=collection.name, use_active_scene=True, **given)
        found = read_materials(path.read_bytes())
        return [found[mesh.name] for mesh in meshes]


@contextlib.contextmanager
def _triangles(
    context: bpy.types.Context, materials: Sequence[bpy.types.Material]
) -> Iterator[tuple[bpy.types.Collection, list[bpy.types.Mesh]]]:
    """Temporarily add a collection with a triangle of each material; yield it and the meshes.

    Each material gets its own mesh, since the exporter splits meshes by the tiles of their images.
    """
    meshes: list[bpy.types.Mesh] = []
    collection = bpy.data.collections.new("meshferry")
    try:
        for material in materials:
            mesh = bpy.data.meshes.new("meshferry")
            meshes.append(mesh)
            mesh.from_pydata([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)], [], [(0, 1, 2)])
            mesh.uv_layers.new()
            mesh.materials.append(material)
            collection.objects.link(bpy.data.objects.new("meshferry", mesh))
        context.scene.collection.children.link(collection)
        context.view_layer.update()
        yield collection, meshes
    finally:
        for obj in list(collection.objects):
            bpy.data.objects.remove(obj)
        bpy.data.collections.remove(collection)
        for mesh in meshes:
            bpy.data.meshes.remove(mesh)
        context.view_layer.update()


@contextlib.contextmanager
def _without_marks(materials: Sequence[bpy.types.Material]) -> Iterator[None]:
    """Remove the custom property that the glTF exporter adds to image nodes, after a ``with`` block."""
    trees = {tree for material in materials if (tree := compat.node_tree(material)) is not None}
    waiting = list(trees)
    while waiting:
        inner = {node.node_tree for node in waiting.pop().nodes if node.type == "GROUP" and node.node_tree is not None}
        waiting += inner - trees
        trees |= inner
    images = [node for tree in trees for node in tree.nodes if node.type == "TEX_IMAGE"]
    clean = [node for node in images if node.get("used") is None]
    try:
        yield
    finally:
        for node in clean:
            node.pop("used", None)


def _report_left_out(name: str, material: bpy.types.Material, gltf: GltfMaterial, report: Report) -> None:
    """Report settings of a material that its glTF file cannot store."""
    about = report.about(Named("material", name))
    reached = _reached(material)
    images = {node.image: None for node in reached if node.type == "TEX_IMAGE" and node.image is not None}
    for image in images:
        report_still(report, image)
        if not any(image.size) and image.source not in {"TILED", "SEQUENCE"}:
            text = "the image '{}' of its PBR material is missing or cannot be read"
            about.loss("unreadable-image", text, Named("image", image.name))
    report_lost_images({image.name for image in shown_images(material) - images.keys()}, report)
    lost = [label for extension, label in EXTENSIONS.items() if extension in gltf.extensions]
    normal = gltf.textures.get(TextureUse.NORMAL)
    if normal is not None and normal.values.get("scale", 1.0) != 1.0:
        lost.append(Text("normal map strength"))
    if lost:
        text = "not part of the PBR materials that the target shows: {}"
        about.loss("gltf-extensions-left-out", text, joined(lost))


def _reached(material: bpy.types.Material) -> list[bpy.types.Node]:
    """Return the nodes before the inputs of a material's shader that glTF can store."""
    tree = compat.node_tree(material)
    shader = shader_of(tree)
    names = _HELD if emission_of(shader) > 0.0 else _HELD[: -len(_EMISSION)]
    sockets = [shader.inputs[name] for name in names if name in shader.inputs]
    return [node for socket in (*sockets, *occlusion_inputs(tree)) for node in upstream(socket)]


def nodes_left_out(material: bpy.types.Material) -> dict[str, None]:
    """Return the labels of nodes that Blender's glTF exporter leaves out of a material that needs glTF.

    Colour attributes are excluded, since :mod:`.material_losses` reads their values.
    """
    return dict.fromkeys(node.bl_label for node in _reached(material) if not _is_carried_over(node))


def _is_carried_over(node: bpy.types.Node) -> bool:
    if node.type in {"MIX", "MIX_RGB"}:
        return node.blend_type == "MULTIPLY"
    if node.type == "MATH":
        return node.operation in {"MULTIPLY", "GREATER_THAN", "LESS_THAN", "SUBTRACT", "ROUND"}
    return node.type in _KNOWN_NODES


# -- images -------------------------------------------------------------------------------------


def _pack(gltf: GltfMaterial) -> None:
    """Convert the images of a material: 8 bits, PNG or JPEG, and occlusion, roughness and metal in one image."""
    for use, texture in gltf.textures.items():
        if not _is_plain(texture.image.data):
            pixels = _pixels(texture.image)
            is_opaque = use is not TextureUse.BASE_COLOR
            gltf.textures[use] = replace(texture, image=_image(texture.image.name, pixels, is_opaque=is_opaque))
    surface = gltf.textures.get(TextureUse.METALLIC_ROUGHNESS)
    occlusion = gltf.textures.get(TextureUse.OCCLUSION)
    strength = occlusion.values.get("strength", 1.0) if occlusion is not None else 1.0
    if occlusion is None and surface is None:
        return
    if occlusion is not None and surface is not None and occlusion.image == surface.image and strength == 1.0:
        return
    main = surface or occlusion
    packed = np.full_like(_pixels(main.image), 255)
    if surface is not None:
        packed[..., 1:3] = _pixels(surface.image)[..., 1:3]
    if occlusion is not None:
        red = _pixels(occlusion.image, size=packed.shape[1::-1])[..., 0]
        packed[..., 0] = np.rint(255 - strength * (255.0 - red))
    image = _image(main.image.name if surface is None else surface.image.name, packed, is_opaque=True)
    gltf.textures[TextureUse.METALLIC_ROUGHNESS] = GltfTexture(image, main.transform)
    if occlusion is not None:
        gltf.textures[TextureUse.OCCLUSION] = GltfTexture(image, occlusion.transform)


def _is_plain(data: bytes) -> bool:
    """Return whether an image is a JPEG file, or a PNG file with 8 bits per channel or less."""
    return data.startswith(b"\xff\xd8\xff") or (data.startswith(b"\x89PNG") and data[24] <= 8)


def _image(name: str, pixels: Pixels, *, is_opaque: bool) -> GltfImage:
    return GltfImage(name, image_files.encode_png(pixels[::-1, :, :3] if is_opaque else pixels[::-1]))


def _pixels(image: GltfImage, size: tuple[int, int] | None = None) -> Pixels:
    """Decode an image with 8 bits per channel without colour conversion, scaled to ``size`` if given."""
    with image_decoding.packed_image(image.data) as block:
        if size is not None and tuple(block.size) != size:
            block.scale(*size)
        return image_decoding.as_bytes(block)
