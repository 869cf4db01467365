"""PBR materials of an upload set, judged by an independent reader of GLB and PNG files and the Khronos validator."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import glb_oracle
import numpy as np
import pytest
from meshferry.io_formats import api
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

bpy = pytest.importorskip("bpy", reason="Blender is absent")
from meshferry.blender_data import export_options  # noqa: E402
from meshferry.blender_data.export_options import ExportOptions  # noqa: E402
from meshferry.blender_data.exporting import exporter, object_selection  # noqa: E402

pytestmark = pytest.mark.needs_bpy
VALIDATOR = Path(__file__).resolve().parents[2] / "build" / "gltf-validator" / "node_modules" / "gltf-validator"


@pytest.fixture(autouse=True)
def box(clean_blender: Any) -> Any:
    """Return a box with UVs in an empty scene."""
    mesh = bpy.data.meshes.new("Box")
    points = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (0, 1), (1, 1), (1, 0))]
    sides = [(0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (1, 5, 6, 2), (2, 6, 7, 3), (3, 7, 4, 0)]
    mesh.from_pydata(points, [], sides)
    mesh.uv_layers.new(name="UVMap")
    made = bpy.data.objects.new("Box", mesh)
    bpy.context.scene.collection.objects.link(made)
    bpy.context.view_layer.update()
    return made


def png(values: np.ndarray[Any, Any], depth: int = 8) -> bytes:
    """Encode (H, W, 3) as a PNG file with 8 or 16 bits per channel."""
    rows = b"".join(b"\0" + row.astype(">u2" if depth == 16 else np.uint8).tobytes() for row in values)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], depth, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def noise(seed: int, *, is_grey: bool = False) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(seed).integers(0, 256, (4, 4, 1 if is_grey else 3))
    return np.repeat(values, 3, axis=2) if is_grey else values


class Painter:
    """A material with a Principled BSDF and images that tests add."""

    def __init__(self, name: str, box: Any) -> None:
        self.material = bpy.data.materials.new(name)
        if bpy.app.version < (5, 0, 0):
            self.material.use_nodes = True
        self.tree = self.material.node_tree
        self.shader = next(node for node in self.tree.nodes if node.type == "BSDF_PRINCIPLED")
        box.data.materials.append(self.material)
        box.data.polygons[len(box.data.materials) - 1].material_index = len(box.data.materials) - 1

    def link(self, source: Any, target: Any) -> None:
        self.tree.links.new(source, target)

    def image(self, data: bytes, *, is_color: bool = False) -> Any:
        """Return an image node with a packed file."""
        image = bpy.data.images.new("image", 1, 1)
        image.source = "FILE"
        image.pack(data=data, data_len=len(data))
        if not is_color:
            image.colorspace_settings.name = "Non-Color"
        node = self.tree.nodes.new("ShaderNodeTexImage")
        node.image = image
        return node

    def occlusion(self, source: Any) -> None:
        """Link a socket to the node group that Blender's exporter recognises."""
        group = bpy.data.node_groups.new("glTF Material Output", "ShaderNodeTree")
        group.interface.new_socket("Occlusion", in_out="INPUT", socket_type="NodeSocketFloat")
        node = self.tree.nodes.new("ShaderNodeGroup")
        node.node_tree = group
        self.link(source, node.inputs["Occlusion"])

    def repeat(self, node: Any, *scale: float, up: float = 0.0) -> None:
        mapping = self.tree.nodes.new("ShaderNodeMapping")
        mapping.inputs["Location"].default_value = (0, up, 0)
        mapping.inputs["Scale"].default_value = (*scale, 1)
        coordinates = self.tree.nodes.new("ShaderNodeTexCoord")
        self.link(coordinates.outputs["UV"], mapping.inputs["Vector"])
        self.link(mapping.outputs["Vector"], node.inputs["Vector"])


def full_material(box: Any, larger: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    """Add a material with every texture; return their pixels. The file of the occlusion is so many times larger."""
    leather = Painter("Leather", box)
    pixels = {name: noise(seed) for seed, name in enumerate(("base", "normal", "emission"))}
    pixels |= {name: noise(seed, is_grey=True) for seed, name in enumerate(("rough", "metal", "occlusion"), 3)}
    files = {**pixels, "occlusion": pixels["occlusion"].repeat(larger, axis=0).repeat(larger, axis=1)}
    nodes = {name: leather.image(png(values), is_color=name == "base") for name, values in files.items()}
    for node in nodes.values():
        leather.repeat(node, 2, 2)
    leather.link(nodes["base"].outputs["Color"], leather.shader.inputs["Base Color"])
    leather.link(nodes["rough"].outputs["Color"], leather.shader.inputs["Roughness"])
    leather.link(nodes["metal"].outputs["Color"], leather.shader.inputs["Metallic"])
    leather.link(nodes["emission"].outputs["Color"], leather.shader.inputs["Emission Color"])
    leather.shader.inputs["Emission Strength"].default_value = 1
    normal = leather.tree.nodes.new("ShaderNodeNormalMap")
    leather.link(nodes["normal"].outputs["Color"], normal.inputs["Color"])
    leather.link(normal.outputs["Normal"], leather.shader.inputs["Normal"])
    leather.occlusion(nodes["occlusion"].outputs["Color"])
    leather.material.use_backface_culling = True
    return pixels


def exported(**options: Any) -> tuple[dict[str, bytes], list[str], list[str]]:
    """Return the .glb files of the scene's upload set, the notes about them and the warnings."""
    given = ExportOptions.of({"missing_levels": "COPY", "use_baked_materials": False, **options})
    capabilities = SECOND_LIFE_UPLOAD.capabilities
    request = export_options.ExportRequest(bpy.context, object_selection.Source("SCENE"), given, "tunic", capabilities)
    scene = exporter.export_scene(request)
    encoded = api.encode_part(scene, SECOND_LIFE_UPLOAD, path="tunic.dae")
    files = {output.name: output.data for output in encoded.outputs if output.name.endswith(".glb")}
    return files, [text for text in encoded.messages if text.is_note], scene.warnings


def texture_index(material: Any, name: str) -> int:
    return {**material, **material["pbrMetallicRoughness"]}[name]["index"]


@pytest.mark.parametrize("larger", [1, 2])
def test_every_texture_of_a_material_is_in_its_file(box: Any, larger: int) -> None:
    """Occlusion, roughness and metal are the red, green and blue channel of one image; the others are unchanged."""
    pixels = full_material(box, larger)
    files, notes, warnings = exported()
    assert list(files) == ["tunic_Leather.glb"]
    content, _ = glb_oracle.read_glb(files["tunic_Leather.glb"])
    images = [glb_oracle.read_png(data)[..., :3] for data in glb_oracle.images_of(files["tunic_Leather.glb"])]
    (material,) = content["materials"]
    assert material["name"] == "Leather" and "doubleSided" not in material and "alphaMode" not in material
    assert material["emissiveFactor"] == [1, 1, 1]
    for name, key in (("base", "baseColorTexture"), ("normal", "normalTexture"), ("emission", "emissiveTexture")):
        np.testing.assert_array_equal(images[texture_index(material, key)], pixels[name], name)
    packed = images[texture_index(material, "metallicRoughnessTexture")]
    assert texture_index(material, "occlusionTexture") == texture_index(material, "metallicRoughnessTexture")
    for channel, name in enumerate(("occlusion", "rough", "metal")):
        rounding = 2 if name == "occlusion" and larger > 1 else 0  # of Blender, which scales the larger image
        np.testing.assert_allclose(
            packed[..., channel], pixels[name][..., 0].astype(float), atol=rounding, err_msg=name
        )
    assert notes == ["face 0 'Leather' → tunic_Leather.glb; repeats 2 × 2"]
    assert not any("Leather" in text for text in warnings)


@pytest.mark.parametrize(
    ("inputs", "is_written"),
    [
        ({"Base Color": (0.1, 0.2, 0.3, 1), "Roughness": 0.9, "Alpha": 0.5}, False),
        ({"Emission Color": (1, 1, 1, 1), "Emission Strength": 0}, False),
        ({"Metallic": 1.0}, True),
        ({"Emission Color": (1, 0.5, 0, 1), "Emission Strength": 0.5}, True),
    ],
)
def test_files_are_for_what_a_diffuse_colour_cannot_show(box: Any, inputs: dict[str, Any], is_written: bool) -> None:
    paint = Painter("Paint", box)
    for name, value in inputs.items():
        paint.shader.inputs[name].default_value = value
    files, notes, _ = exported()
    assert bool(files) == bool(notes) == is_written
    if is_written:
        content, buffer = glb_oracle.read_glb(files["tunic_Paint.glb"])
        assert content["materials"][0]["doubleSided"] is True and not buffer
        assert content["materials"][0]["pbrMetallicRoughness"].get("metallicFactor", 1) == inputs.get("Metallic", 0)
    assert exported(use_pbr_materials=False)[:2] == ({}, [])


@pytest.mark.parametrize(("cutoff", "mode"), [(None, "BLEND"), (0.25, "MASK")])
def test_alpha(box: Any, cutoff: float | None, mode: str) -> None:
    glass = Painter("Glass", box)
    image = glass.image(png(noise(1)), is_color=True)
    glass.link(image.outputs["Color"], glass.shader.inputs["Base Color"])
    source = image.outputs["Alpha"]
    if cutoff is not None:
        clip = glass.tree.nodes.new("ShaderNodeMath")
        clip.operation = "GREATER_THAN"
        clip.inputs[1].default_value = cutoff
        glass.link(source, clip.inputs[0])
        source = clip.outputs[0]
    glass.link(source, glass.shader.inputs["Alpha"])
    files, _, warnings = exported()
    (material,) = glb_oracle.read_glb(files["tunic_Glass.glb"])[0]["materials"]
    assert (material["alphaMode"], material.get("alphaCutoff")) == (mode, cutoff)
    assert not warnings


def test_images_become_8_bits_since_the_viewer_drops_others(box: Any) -> None:
    deep = Painter("Deep", box)
    values = np.random.default_rng(0).integers(0, 65536, (4, 4, 3))
    normal = deep.tree.nodes.new("ShaderNodeNormalMap")
    deep.link(deep.image(png(values, depth=16)).outputs["Color"], normal.inputs["Color"])
    deep.link(normal.outputs["Normal"], deep.shader.inputs["Normal"])
    (data,) = exported()[0].values()
    found = glb_oracle.read_png(glb_oracle.images_of(data)[0]).astype(float)
    assert np.abs(found - values / 257).max() < 1


def test_red_channel_without_occlusion_is_white(box: Any) -> None:
    """An image with metal and roughness is often black in its red channel, which would be full occlusion."""
    steel = Painter("Steel", box)
    values = noise(2)
    parts = steel.tree.nodes.new("ShaderNodeSeparateColor")
    steel.link(steel.image(png(values)).outputs["Color"], parts.inputs["Color"])
    steel.link(parts.outputs["Green"], steel.shader.inputs["Roughness"])
    steel.link(parts.outputs["Blue"], steel.shader.inputs["Metallic"])
    (data,) = exported()[0].values()
    packed = glb_oracle.read_png(glb_oracle.images_of(data)[0])
    assert (packed[..., 0] == 255).all()
    np.testing.assert_array_equal(packed[..., 1:3], values[..., 1:])


def test_occlusion_alone_leaves_roughness_and_metal_to_their_values(box: Any) -> None:
    stone = Painter("Stone", box)
    values = noise(3, is_grey=True)
    stone.occlusion(stone.image(png(values)).outputs["Color"])
    (data,) = exported()[0].values()
    packed = glb_oracle.read_png(glb_oracle.images_of(data)[0])
    np.testing.assert_array_equal(packed[..., 0], values[..., 0])
    assert (packed[..., 1:] == 255).all()
    assert glb_oracle.read_glb(data)[0]["materials"][0]["pbrMetallicRoughness"]["roughnessFactor"] == 0.5


def test_properties_without_a_place_in_gltf_are_named_once(box: Any) -> None:
    rock = Painter("Rock", box)
    rock.shader.inputs["Metallic"].default_value = 1
    rock.shader.inputs["Coat Weight"].default_value = 1
    rock.shader.inputs["Emission Color"].default_value = (1, 1, 1, 1)
    rock.shader.inputs["Emission Strength"].default_value = 3
    texture = rock.tree.nodes.new("ShaderNodeTexNoise")
    rock.link(texture.outputs[0], rock.shader.inputs["Roughness"])
    files, _, warnings = exported()
    assert "extensions" not in glb_oracle.read_glb(files["tunic_Rock.glb"])[0]["materials"][0]
    assert warnings == [
        "Material 'Rock': files hold images and values, not the nodes Noise Texture; switch on Bake Materials",
        "Rock: not part of the PBR materials that the target shows: emission above 1, coat",
    ]


def test_different_transforms_are_listed_for_each_texture(box: Any) -> None:
    brick = Painter("Brick", box)
    base, rough = brick.image(png(noise(1)), is_color=True), brick.image(png(noise(2)))
    brick.link(base.outputs["Color"], brick.shader.inputs["Base Color"])
    brick.link(rough.outputs["Color"], brick.shader.inputs["Roughness"])
    brick.repeat(rough, 0.5, 3, up=0.25)
    data, notes, _ = exported()
    assert b"KHR_texture_transform" not in data["tunic_Brick.glb"]
    # v of glTF and of the viewer's texture panel runs downwards: 1 - (3 (1 - v) + 0.25) = 3 v - 2.25
    texts = ("base colour repeats 1 × 1", "metallic-roughness repeats 0.5 × 3, offset 0, 0.75")
    assert notes == ["; ".join(("face 0 'Brick' → tunic_Brick.glb", *texts))]


def test_images_that_blender_cannot_read_or_that_are_in_tiles(box: Any, tmp_path: Path) -> None:
    """Each material keeps its own file, although the exporter makes a material of each tile."""
    for tile in (1001, 1002):
        (tmp_path / f"tile.{tile}.png").write_bytes(png(noise(tile)))
    tiled = bpy.data.images.load(str(tmp_path / "tile.1001.png"))
    tiled.source, tiled.filepath = "TILED", str(tmp_path / "tile.<UDIM>.png")
    tiled.tiles.new(1002)
    tiled.colorspace_settings.name = "Non-Color"
    gone = bpy.data.images.new("gone", 1, 1)
    gone.source, gone.filepath = "FILE", str(tmp_path / "gone.png")
    for name, image in (("Tiled", tiled), ("Gone", gone), ("Gold", None)):
        paint = Painter(name, box)
        paint.shader.inputs["Metallic"].default_value = 1
        node = paint.tree.nodes.new("ShaderNodeTexImage")
        node.image = image
        paint.link(node.outputs["Color"], paint.shader.inputs["Roughness"])
    files, _, warnings = exported()
    found = {name: glb_oracle.read_glb(data)[0]["materials"] for name, data in files.items()}
    assert [[material["name"] for material in materials] for materials in found.values()] == [
        ["Tiled"],
        ["Gone"],
        ["Gold"],
    ]
    np.testing.assert_array_equal(
        glb_oracle.read_png(glb_oracle.images_of(files["tunic_Tiled.glb"])[0])[..., 1], noise(1001)[..., 1]
    )
    assert warnings == [
        "Material 'Gold': not part of the exported material: an image node without an image",
        "tile.1001.png: it is in tiles, of which only the first was exported",
        "Gone: the image 'gone' of its PBR material is missing or cannot be read",
    ]


def test_an_exporter_that_is_disabled_or_fails_leaves_the_set_without_pbr_materials(
    box: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import addon_utils

    Painter("Gold", box).shader.inputs["Metallic"].default_value = 1
    exported()  # imports the exporter
    (module,) = {
        module
        for name, module in sys.modules.items()
        if name.startswith("io_scene_gltf2.blender.exp") and hasattr(module, "save") and name.endswith("export")
    }

    def fail(*_: Any) -> None:
        raise IndexError("out of range")

    with monkeypatch.context() as patch:
        patch.setattr(module, "save", fail)
        files, _, warnings = exported()
    assert not files
    assert warnings == ["PBR materials are left out, since Blender's glTF exporter failed: IndexError: out of range"]
    addon_utils.disable("io_scene_gltf2")
    try:
        files, _, warnings = exported()
    finally:
        addon_utils.enable("io_scene_gltf2")
    assert not files
    assert warnings == ["PBR materials are left out: enable Blender's add-on 'glTF 2.0 format' in the preferences"]
    assert list(exported()[0]) == ["tunic_Gold.glb"]


def test_scene_mode_and_console_are_as_before(box: Any, capfd: pytest.CaptureFixture[str]) -> None:
    full_material(box)
    bpy.context.view_layer.objects.active = box
    bpy.ops.object.mode_set(mode="EDIT")
    before = {
        name: len(getattr(bpy.data, name)) for name in ("objects", "meshes", "images", "collections", "materials")
    }
    frame = bpy.context.scene.frame_current = 7
    capfd.readouterr()
    exported()
    assert box.mode == "EDIT" and bpy.context.scene.frame_current == frame
    assert {name: len(getattr(bpy.data, name)) for name in before} == before
    assert not any(node.keys() for node in bpy.data.materials["Leather"].node_tree.nodes)
    assert capfd.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.skipif(
    not (VALIDATOR.is_dir() and shutil.which("node")),
    reason="the glTF validator is NOT installed: scripts/install_gltf_validator",
)
def test_khronos_validator_has_nothing_to_report(box: Any, tmp_path: Path) -> None:
    full_material(box)
    Painter("Gold", box).shader.inputs["Metallic"].default_value = 1
    program = (
        "const fs = require('fs'); require(process.argv[1]).validateBytes(new Uint8Array(fs.readFileSync("
        "process.argv[2]))).then(report => console.log(JSON.stringify(report)))"
    )
    files = exported()[0]
    assert sorted(files) == ["tunic_Gold.glb", "tunic_Leather.glb"]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        command = ["node", "-e", program, str(VALIDATOR), str(tmp_path / name)]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
        # Without a mesh, nothing in the file uses the material.
        assert {message["code"] for message in report["issues"]["messages"]} == {"UNUSED_OBJECT"}
