"""Rotated and scaled images: shader nodes, and back from nodes to mappings."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import uv_transforms
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.core.shading import ImageMap, Mapping, Projection, Shading, Texture, Tint

pytestmark = pytest.mark.needs_bpy


def image_of(_texture: Texture, _is_color: bool) -> Any:
    import bpy

    return bpy.data.images.get("Image") or bpy.data.images.new("Image", 4, 4)


def shown(mapping: Mapping) -> Any:
    """Return a new material with an image that is mapped in this way."""
    import bpy
    from meshferry.blender_data.shading import shaders

    material = bpy.data.materials.new("Shown")
    shading = Shading(Tint(image=ImageMap(Texture("a"), is_color=True, mapping=mapping)))
    shaders.show(material, shading, shaders.MeshLayers("", ("UV0", "UV1")), image_of)
    return material


def read(material: Any) -> tuple[Mapping, Report]:
    from meshferry.blender_data.exporting.reading.image_maps import ImageReader, SurfaceLayers
    from meshferry.blender_data.exporting.reading.shading_reading import shading_of

    report = Report()
    shading, left_out = shading_of(material, ImageReader(report), SurfaceLayers(("UV0", "UV1")))
    left_out.report(material.name, report)
    assert shading.base_color.image is not None
    return shading.base_color.image.mapping, report


def mapping_nodes(material: Any) -> list[Any]:
    """Return the Mapping nodes, from the coordinates to the image."""
    return [node for node in material.node_tree.nodes if node.type == "MAPPING"]


def mappings() -> Iterator[Mapping]:
    rng = random.Random(5)
    for rotation in (0.0, 1e-3, -0.75, math.pi / 2, math.pi, -2.0, 6.5):
        for _ in range(6):
            scale = (rng.choice([1.0, -1.0, 2.5, -0.125, 40.0]), rng.choice([1.0, 2.5, -3.0, 0.25]))
            u, v = rng.choice([(0.0, 0.0), (0.25, -0.75), (-1.5, 7.0)])
            offset = (u * scale[0], v * scale[1])
            yield Mapping(uv_layer=rng.randrange(2), scale=scale, offset=offset, rotation=rotation)


def test_one_mapping_node_samples_the_image_where_the_mapping_states() -> None:
    for mapping in mappings():
        material = shown(mapping)
        nodes = mapping_nodes(material)
        is_moved = (mapping.scale, mapping.offset, mapping.rotation) != ((1.0, 1.0), (0.0, 0.0), 0.0)
        assert [node.vector_type for node in nodes] == ["TEXTURE" if mapping.rotation else "POINT"] * is_moved
        expected = uv_transforms.of_mapping(mapping)
        found = uv_transforms.of_node(nodes[0]) if nodes else uv_transforms.POINTS
        np.testing.assert_allclose(
            found, expected, rtol=1e-6, atol=1e-6 * max(map(abs, (*mapping.scale, *mapping.offset)))
        )
        back, report = read(material)
        assert not report.messages and back.uv_layer == mapping.uv_layer
        np.testing.assert_allclose(uv_transforms.of_mapping(back), expected, rtol=1e-5, atol=1e-4)
        assert (*back.scale, back.rotation) == pytest.approx((*mapping.scale, mapping.rotation), rel=1e-6)


@pytest.mark.parametrize("scale", [(0.0, 2.0), (3.0, 0.0), (0.0, 0.0)])
def test_a_scale_of_zero_is_a_node_after_the_rotation(scale: tuple[float, float]) -> None:
    mapping = Mapping(scale=scale, offset=(0.25, -0.5), rotation=0.75)
    points = uv_transforms.POINTS
    for node in mapping_nodes(shown(mapping)):
        points = uv_transforms.of_node(node, points)
    np.testing.assert_allclose(points, uv_transforms.of_mapping(mapping), atol=1e-6)


def test_images_from_above_are_rotated_and_box_projections_are_not() -> None:
    (node,) = mapping_nodes(shown(Mapping(Projection.TOP_OBJECT, scale=(2.0, 3.0), rotation=0.5)))
    assert node.vector_type == "TEXTURE" and node.inputs["Vector"].links[0].from_node.type == "TEX_COORD"
    (node,) = mapping_nodes(shown(Mapping(Projection.BOX_OBJECT, scale=(2.0, 3.0), rotation=0.5)))
    assert node.vector_type == "POINT" and tuple(node.inputs["Scale"].default_value) == (2.0, 2.0, 3.0)


@pytest.mark.parametrize("kind", ["POINT", "TEXTURE", "VECTOR"])
@pytest.mark.parametrize("scale", [(2.0, 2.0), (2.0, -2.0), (-0.5, -0.5), (-3.0, 3.0), (2.0, 3.0)])
def test_rotated_nodes_of_artists_are_read_where_a_mapping_can_store_them(
    kind: str, scale: tuple[float, float]
) -> None:
    material = shown(Mapping(scale=(2.0, 1.0)))
    (node,) = mapping_nodes(material)
    node.vector_type = kind
    node.inputs["Rotation"].default_value[2] = 0.75
    node.inputs["Scale"].default_value[:2] = scale
    if kind != "VECTOR":
        node.inputs["Location"].default_value[:2] = (0.25, -1.5)
    found, report = read(material)
    is_held = kind == "TEXTURE" or abs(scale[0]) == abs(scale[1])
    assert [message.code for message in report.messages] == [] if is_held else ["material-mappings-left-out"]
    if is_held:
        np.testing.assert_allclose(uv_transforms.of_mapping(found), uv_transforms.of_node(node), atol=1e-6)
    node.inputs["Rotation"].default_value[0] = 0.5
    assert "rotation of images" in str(read(material)[1].messages[0])


def test_the_transform_of_a_face_is_a_mapping() -> None:
    """The centre of the transform of a face is the middle of the image, that of a mapping the origin."""
    repeats, offsets, rotation = (3.0, -0.5), (0.25, -0.125), 0.75
    sine, cosine = math.sin(rotation), math.cos(rotation)
    turned = (0.5 * (cosine + sine), 0.5 * (cosine - sine))
    offset = tuple(o + 0.5 - r * part for o, r, part in zip(offsets, repeats, turned, strict=True))
    mapping = Mapping(scale=repeats, offset=offset, rotation=rotation)  # type: ignore[arg-type]
    (node,) = mapping_nodes(shown(mapping))
    np.testing.assert_allclose(
        uv_transforms.of_node(node), uv_transforms.of_face(repeats, offsets, rotation), atol=1e-6
    )


def test_pbr_materials_name_transforms_that_gltf_cannot_store() -> None:
    import bpy
    from meshferry.blender_data.exporting.models.gltf_export import gltf_materials
    from meshferry.io_formats.core.glb_materials import TextureUse

    materials = {"held": shown(Mapping(scale=(2.0, -2.0), rotation=0.75)),
                 "lost": shown(Mapping(scale=(2.0, 3.0), rotation=0.75))}  # fmt: skip
    for name, material in materials.items():
        material.name = name
        next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED").inputs[1].default_value = 1.0
    report = Report()
    made = gltf_materials(bpy.context, materials, report)
    transforms = {name: one.textures[TextureUse.BASE_COLOR].transform for name, one in made.items()}
    assert transforms["held"].rotation == pytest.approx(0.75) and transforms["held"].scale == (2.0, -2.0)
    assert transforms["lost"].rotation == 0.0 and transforms["lost"].scale == pytest.approx((2.0, 3.0))
    (message,) = report.messages
    assert message.code == "glb-texture-transform" and "'lost'" in message and "'held'" not in message
    assert all(mapping_nodes(material)[0].vector_type == "TEXTURE" for material in materials.values())
