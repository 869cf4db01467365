"""Rotated and scaled images in glTF files that ``meshferry convert`` writes."""

import math
from pathlib import Path

import glb_oracle
import numpy as np
import pytest
import uv_transforms
from meshferry.io_formats.core.shading import Factor, ImageMap, Mapping, Shading, Texture, Tint

pytestmark = pytest.mark.needs_bpy

HELD = {
    "plain": Mapping(),
    "moved": Mapping(scale=(2.0, 3.0), offset=(0.25, -0.5)),
    "mirrored": Mapping(scale=(-2.0, 3.0), offset=(0.25, -0.5)),
    "rotated": Mapping(rotation=0.75),
    "even": Mapping(scale=(2.5, 2.5), offset=(1.5, -0.5), rotation=-2.0),
    "even, mirrored": Mapping(scale=(2.5, -2.5), offset=(1.5, -0.5), rotation=0.75),
    "quarter": Mapping(scale=(2.0, -3.0), offset=(0.25, 0.5), rotation=math.pi / 2),
    "half": Mapping(scale=(2.0, 3.0), offset=(0.25, 0.5), rotation=math.pi),
    "dense": Mapping(scale=(40.0, 40.0), offset=(-3.0, 17.5), rotation=0.001),
}
LOST = {
    "uneven": Mapping(scale=(2.0, 3.0), offset=(0.25, -0.5), rotation=0.75),
    "uneven, mirrored": Mapping(scale=(-0.5, 4.0), rotation=-1.0),
    "flat": Mapping(scale=(0.0, 2.0), offset=(0.25, 0.0), rotation=0.5),
}


def save(path: Path) -> None:
    """Write a .blend file with a plane for each mapping; its material has its name."""
    import bpy
    from meshferry.blender_data.shading import shaders

    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    image = bpy.data.images.new("Image", 4, 4)
    image.pack()
    for name, mapping in {**HELD, **LOST}.items():
        material = bpy.data.materials.new(name)
        found = ImageMap(Texture("a"), is_color=True, mapping=mapping)
        shading = Shading(Tint(image=found), roughness=Factor(1.0), emission=Tint(image=found), emission_strength=1.0)
        shaders.show(material, shading, shaders.MeshLayers(), lambda *_: image)
        mesh = bpy.data.meshes.new(name)
        mesh.from_pydata([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], [], [(0, 1, 2, 3)])
        mesh.uv_layers.new(name="UV0")
        mesh.materials.append(material)
        bpy.context.scene.collection.objects.link(bpy.data.objects.new(name, mesh))
    bpy.ops.wm.save_as_mainfile(filepath=str(path), check_existing=False)


def test_transforms_that_gltf_holds_are_exact_and_the_others_are_named_once(meshferry, tmp_path):
    save(tmp_path / "planes.blend")
    done = meshferry("convert", tmp_path / "planes.blend", tmp_path / "planes.glb")
    assert done.status == 0
    said = [line for line in done.err.splitlines() if "rotated images" in line]
    assert len(said) == 1 and said[0].count("'") == 2 * len(LOST) and "3 materials" in said[0]
    assert all(f"'{name}'" in said[0] for name in LOST)
    content, _buffer = glb_oracle.read_glb((tmp_path / "planes.glb").read_bytes())
    materials = {material["name"]: material for material in content["materials"]}
    assert set(materials) == {*HELD, *LOST}
    middle = np.array([(0.5, 0.5)])
    for name, mapping in {**HELD, **LOST}.items():
        for info in (materials[name]["pbrMetallicRoughness"]["baseColorTexture"], materials[name]["emissiveTexture"]):
            if name in LOST:
                expected, found = uv_transforms.of_mapping(mapping, middle), uv_transforms.of_gltf(info, middle)
                transform = info["extensions"]["KHR_texture_transform"]
                assert "rotation" not in transform and transform["scale"] == pytest.approx(mapping.scale)
                assert name == "flat" or found == pytest.approx(expected, abs=1e-6)
                continue
            expected, found = uv_transforms.of_mapping(mapping), uv_transforms.of_gltf(info)
            scale = max(1.0, *map(abs, mapping.scale))
            np.testing.assert_allclose(found, expected, atol=1e-6 * scale, err_msg=name)


def test_the_open_file_keeps_its_nodes(tmp_path):
    import bpy
    from meshferry.blender_data.exporting.models.gltf_export import scaled_before_rotated
    from meshferry.io_formats.core.messages import Report

    def values():
        nodes = [node for material in bpy.data.materials for node in material.node_tree.nodes if node.type == "MAPPING"]
        return [(node.vector_type, *(tuple(socket.default_value) for socket in node.inputs)) for node in nodes]

    save(tmp_path / "planes.blend")
    before, report = values(), Report()
    with scaled_before_rotated(bpy.data.materials, report):
        assert values() != before
    assert values() == before
    assert [message.code for message in report.messages] == ["glb-texture-transform"]
