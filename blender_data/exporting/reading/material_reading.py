"""The materials of an object's slots, and their colour, emission and image, as far as files can store them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.messages import Named, Report, of_kind
from ....io_formats.core.scene import Material
from ....io_formats.core.shading import Pixels, Texture
from ....io_formats.encodings import image_files
from ....io_formats.encodings.image_files import JPEG_2000, extension_of
from ....io_formats.encodings.quantization import linear_to_srgb, to_unorm
from ... import arrays, compat, names
from .shader_nodes import Socket, output_of, sources

_WHITE = (1.0, 1.0, 1.0, 1.0)

COLOR_INPUTS = {"BSDF_PRINCIPLED": "Base Color", "BSDF_DIFFUSE": "Color", "EMISSION": "Color"}
"""Shader types that are read, in order of preference, and their colour inputs."""

OCCLUSION_GROUP = "glTF Material Output"
"""Name of the node group with the input *Occlusion*, by which Blender's exporter recognises it."""

MOST_PIXELS = 1 << 26
"""Largest number of pixels of an image that has to be encoded as PNG."""


def read_material(
    material: bpy.types.Material, report: Report, read: Callable[[bpy.types.Image, Report], Texture] | None = None
) -> Material:
    """Return the properties of a material that files can store: its colour (linear), emission and image.

    They are read from the shader connected to the output, preferably a Principled BSDF. If its base colour is linked,
    the first image upstream is the texture, and the colour is white. A material without nodes has its viewport colour.
    ``read`` returns the texture of an image; the default is :func:`read_texture`.
    """
    name = names.name_in_file(material)
    tree = compat.node_tree(material)
    if tree is None:
        return Material(name, tuple(material.diffuse_color))
    shader = shader_of(tree)
    if shader is None:
        return Material(name, tuple(material.diffuse_color))
    made = Material(name, _plain_color(shader), emission_of(shader), is_transparent=_is_transparent(shader))
    source = shader.inputs[COLOR_INPUTS[shader.type]]
    if source.is_linked:
        image = _color_image(shader)
        fixed = fixed_color_of(source)
        if image is not None:
            made.texture = (read or read_texture)(image, report)
            made.color = (1.0, 1.0, 1.0, made.color[3])
        elif fixed is not None:
            made.color = (*fixed[:3], made.color[3])
        else:
            made.color = tuple(material.diffuse_color)
            report.loss(
                "color-of-nodes",
                "its colour comes from nodes of which no file knows, so its viewport colour was exported; bake the "
                "colour to an image",
                item=Named("material", material.name),
            )
    return made


def materials_by_name(
    wanted: Iterable[str], slots: Iterable[bpy.types.Material | None]
) -> dict[str, bpy.types.Material]:
    """Return materials by their names in the file; ``slots`` are the materials of the objects.

    A modifier can assign materials that are in no slot; these are found by name.
    """
    known: dict[str, bpy.types.Material] = {}
    for material in (*slots, *bpy.data.materials):
        if material is not None:
            known.setdefault(names.name_in_file(material), material)
    return {name: known[name] for name in dict.fromkeys(wanted) if name in known}


def read_materials(materials: Mapping[str, bpy.types.Material], report: Report) -> list[Material]:
    """Return the properties of materials that files can store; the keys are their names in the file."""
    return [replace(read_material(material, report), name=name) for name, material in materials.items()]


# -- shaders ------------------------------------------------------------------------------------


def shader_of(tree: bpy.types.NodeTree) -> bpy.types.Node | None:
    """Return the shader that determines a material's colour: one connected to the output, otherwise any of the tree."""
    output = output_of(tree)
    reached = list(upstream(output.inputs["Surface"])) if output is not None else []
    for nodes in (reached, list(tree.nodes)):
        for kind in COLOR_INPUTS:
            for node in nodes:
                if node.type == kind:
                    return node
    return None


def upstream(socket: bpy.types.NodeSocket) -> Iterator[bpy.types.Node]:
    """Yield the nodes that a socket's value depends on, nearest first, including those in groups."""
    return (found.node for found in sources(Socket(socket)))


def images_of(socket: bpy.types.NodeSocket) -> Iterator[bpy.types.Image | None]:
    """Return the images that a socket's value depends on, nearest first; None for image nodes without image."""
    return (node.image for node in upstream(socket) if node.type in {"TEX_IMAGE", "TEX_ENVIRONMENT"})


def fixed_color_of(socket: bpy.types.NodeSocket) -> tuple[float, ...] | None:
    """Return the colour of the only RGB node that feeds a socket, also through reroutes and groups, or None."""
    nodes = list(upstream(socket))
    if len(nodes) == 1 and nodes[0].type == "RGB":
        return tuple(nodes[0].outputs[0].default_value)
    return None


def occlusion_inputs(tree: bpy.types.NodeTree) -> list[bpy.types.NodeSocket]:
    """Return the input *Occlusion* of the group node that Blender's glTF exporter reads, if there is one."""
    groups = [node for node in tree.nodes if node.type == "GROUP" and node.node_tree is not None]
    found = [node.inputs.get("Occlusion") for node in groups if node.node_tree.name.startswith(OCCLUSION_GROUP)]
    return [socket for socket in found if socket is not None]


def _plain_color(shader: bpy.types.Node) -> tuple[float, float, float, float]:
    color = tuple(shader.inputs[COLOR_INPUTS[shader.type]].default_value)
    alpha = shader.inputs.get("Alpha")
    opacity = float(alpha.default_value) if alpha is not None and not alpha.is_linked else 1.0
    return (color[0], color[1], color[2], opacity)


def _is_transparent(shader: bpy.types.Node) -> bool:
    """Return whether nodes determine the alpha of a shader.

    A comparison does not count, since it only cuts holes.
    """
    alpha = shader.inputs.get("Alpha")
    if alpha is None or not alpha.is_linked:
        return False
    node = next(upstream(alpha), None)
    return node is not None and not (node.type == "MATH" and node.operation in {"GREATER_THAN", "LESS_THAN", "ROUND"})


def emission_of(shader: bpy.types.Node) -> float:
    """Return the mean of the emitted colour times its strength; linked colours count as white, linked strength as 1."""
    socket = shader.inputs.get("Color" if shader.type == "EMISSION" else "Emission Color")
    strength = shader.inputs.get("Strength" if shader.type == "EMISSION" else "Emission Strength")
    if socket is None or strength is None:
        return 0.0
    mean = 1.0 if socket.is_linked else float(np.mean(tuple(socket.default_value)[:3]))
    return mean * (1.0 if strength.is_linked else float(strength.default_value))


# -- images -------------------------------------------------------------------------------------


def read_texture(image: bpy.types.Image, report: Report) -> Texture:
    """Return the texture of an image: its file, or its bytes if it is packed, painted on or never saved."""
    width, height = (int(side) for side in image.size)
    path = image_path(image)
    report_still(report, image)
    texture = Texture(file_name_of(image, path), path, width=width, height=height)
    data = _png(image, report) if _has_own_pixels(image) else packed_content(image, report)
    if data is None:
        return texture
    name = Path(texture.name).stem + extension_of(data, Path(texture.name).suffix)
    return replace(texture, name=name, path="", data=data)


def shown_images(material: bpy.types.Material) -> set[bpy.types.Image]:
    """Return the images that have an effect on a material."""
    tree = compat.node_tree(material)
    output = output_of(tree) if tree is not None else None
    entries = [output.inputs[name] for name in ("Surface", "Displacement")] if output is not None else []
    return {image for entry in entries for image in images_of(entry) if image is not None}


def _color_image(shader: bpy.types.Node) -> bpy.types.Image | None:
    """Return the nearest image before the colour of a shader."""
    found = images_of(shader.inputs[COLOR_INPUTS[shader.type]])
    return next((image for image in found if image is not None), None)


def report_other_images(materials: Iterable[bpy.types.Material], report: Report) -> None:
    """Report the images of materials that are not before their colour, or there behind another one."""
    shaders = ((material, shader_of(tree)) for material in materials if (tree := compat.node_tree(material)))
    found = ((shown_images(material), _color_image(shader) if shader else None) for material, shader in shaders)
    report_lost_images({image.name for shown, color in found for image in shown - {color}}, report)


def report_lost_images(names: Iterable[str], report: Report) -> None:
    """Report the images of materials that are not in a file, or of which only a still is."""
    text = "{} of the materials left out or written as a still: {}"
    report.loss_of("images-left-out", text, of_kind("image", sorted(names)), "image")


def _has_own_pixels(image: bpy.types.Image) -> bool:
    """Return whether an image is a film, or was painted on or never saved, so that no image file has its pixels."""
    return bool(image.is_dirty or image.source == "MOVIE" or (image.source == "GENERATED" and not image.packed_file))


def pack_pixels(image: bpy.types.Image) -> None:
    """Pack an image that was painted on or never saved as PNG, so that it is exported as any other packed image."""
    if image.source not in {"FILE", "GENERATED"} or not _has_own_pixels(image):
        return
    data = _png(image, Report())
    if data is not None:
        if image.is_float and not image.colorspace_settings.is_data:
            image.colorspace_settings.name = "sRGB"  # as which the values are encoded
        image.source = "FILE"
        image.filepath_raw = image.filepath_raw or f"//{image.name}.png"
        image.pack(data=data, data_len=len(data))


def image_path(image: bpy.types.Image) -> str:
    """Return the path of an image's file, of the first tile if it has several; empty if it has none."""
    path: str = bpy.path.abspath(image.filepath, library=image.library) if image.filepath else ""
    return path.replace("<UDIM>", "1001").replace("<UVTILE>", "u1_v1") if image.source == "TILED" else path


def report_still(report: Report, image: bpy.types.Image) -> None:
    """Report that only one image of tiles, a sequence or film is exported."""
    about = report.about(Named("image", image.name))
    if image.source == "TILED":
        about.loss("image-tiles", "it is in tiles, of which only the first was exported")
    elif image.source not in {"FILE", "GENERATED"}:
        about.loss("image-still", "it is a film or a sequence of images, of which at most one was exported")


def packed_content(image: bpy.types.Image, report: Report) -> bytes | None:
    """Return the content of a packed image, or None if it is not packed.

    Textures that an import packed as DDS or JPEG 2000 become PNG, since few programs read these files.
    """
    if image.packed_file is None:
        return None
    data = bytes(image.packed_file.data)
    is_rare = extension_of(data, "") in (".dds", *JPEG_2000)
    return (_png(image, report) if is_rare and image.meshferry.source_path and all(image.size) else None) or data


def file_name_of(image: bpy.types.Image, path: str) -> str:
    """Return the file name in an image's path, which may be a Windows path with backslashes."""
    return path.replace("\\", "/").rpartition("/")[2] or image.name


def _png(image: bpy.types.Image, report: Report) -> bytes | None:
    """Encode the current pixels of an image with 8 bits per channel; return None if it has none."""
    width, height = (int(side) for side in image.size)
    if not 0 < width * height <= MOST_PIXELS or not image.has_data:
        text = "the image is empty or too large to be exported; save it to a file"
        report.loss("image-not-exported", text, item=Named("image", image.name))
        return None
    return image_files.encode_png(stored_pixels(image))


def stored_pixels(image: bpy.types.Image) -> Pixels:
    """Return the pixels of an image as 8-bit values as in a file, the topmost row first.

    Float images of colours are linear, and Blender multiplies the colours of image files by alpha; both are reverted.
    """
    values = pixels_of(image)[::-1]
    if image.is_float and not image.colorspace_settings.is_data:
        values = values.reshape(-1, 4).copy()
        if image.source != "GENERATED" and image.alpha_mode in {"STRAIGHT", "PREMUL"}:
            alpha = values[:, 3:]
            np.divide(values[:, :3], alpha, out=values[:, :3], where=alpha > 0)
        values = linear_to_srgb(values)
    width, height = (int(side) for side in image.size)
    return to_unorm(values.reshape(-1, 4)).reshape(height, width, 4)


def pixels_of(image: bpy.types.Image) -> npt.NDArray[np.float32]:
    """Return the pixels of an image as RGBA, (H, W, 4), the lowest row first."""
    width, height = (int(side) for side in image.size)
    values = np.empty((height, width, image.channels), np.float32)
    image.pixels.foreach_get(values.reshape(-1))
    if values.shape[2] == 4:
        return values
    grey_or_color = values[..., :3] if values.shape[2] == 3 else np.repeat(values[..., :1], 3, axis=2)
    return np.concatenate([grey_or_color, np.ones((height, width, 1), np.float32)], axis=2)


def materials_of(seen: bpy.types.Object, data: bpy.types.Mesh) -> list[bpy.types.Material | None]:
    """Return the material of each slot of an evaluated object and its mesh, to which modifiers may have added some.

    Materials linked to the object take precedence.
    """
    found: list[bpy.types.Material | None] = list(data.materials)
    for number, slot in enumerate(seen.material_slots):
        if number >= len(found):
            found.append(slot.material)
        elif slot.link == "OBJECT":
            found[number] = slot.material
    return found


def slot_of_faces(data: bpy.types.Mesh) -> npt.NDArray[np.int32]:
    """Return the slot of each face as stored, which may be beyond the last slot."""
    attribute = data.attributes.get("material_index")
    if attribute is not None and attribute.domain == "FACE" and attribute.data_type == "INT":
        return arrays.read(attribute.data, "value", dtype=np.int32)
    return np.zeros(len(data.polygons), np.int32)


def material_names(
    found: list[bpy.types.Material | None], name_of: Callable[[bpy.types.Material], str] = names.name_in_file
) -> list[str]:
    """Return the names of materials in the file, empty for slots without a material.

    An object without slots gives one empty name.
    """
    return [name_of(material.original) if material else "" for material in found] or [""]


def names_in_files(objects: Iterable[bpy.types.Object]) -> dict[str, set[str]]:
    """Return the names that materials of imported meshes have in their files, by name of the format."""
    formats = {made.meshferry.import_id: made.meshferry.file_format for made in bpy.data.collections}
    found: dict[str, set[str]] = {}
    for obj in objects:
        if isinstance(obj.data, bpy.types.Mesh) and obj.meshferry.import_id:
            stored = json.loads(obj.data.meshferry.slot_names or "[]")
            found.setdefault(formats.get(obj.meshferry.import_id, ""), set()).update(filter(None, stored))
    return found


def used_materials(context: bpy.types.Context, obj: bpy.types.Object, *, use_modifiers: bool) -> list[str]:
    """Return the names of the materials of a mesh object's faces in the order of its slots; all slots in edit mode."""
    seen = obj.evaluated_get(context.evaluated_depsgraph_get()) if use_modifiers else obj
    if obj.type != "MESH" or obj.mode == "EDIT":
        return material_names([slot.material for slot in obj.material_slots])
    slots = material_names(materials_of(seen, seen.data))
    counts = np.bincount(np.clip(slot_of_faces(seen.data), 0, len(slots) - 1), minlength=len(slots))
    return [name for name, count in zip(slots, counts.tolist(), strict=True) if count]
