"""Materials of Blender as neutral shading, and on to the files of a project."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.core.shading import (
    Channel,
    Extension,
    Factor,
    ImageMap,
    Mapping,
    NormalMap,
    Opacity,
    Projection,
    Shading,
    Texture,
    Tint,
)
from shading_meaning import assert_same, decoded, picture, png_of

pytestmark = pytest.mark.needs_bpy


def image_of(texture: Texture, is_color: bool) -> Any:
    """Return an image with the pixels of a texture."""
    import bpy

    height, width = texture.height, texture.width
    found = bpy.data.images.new(texture.name, width, height, alpha=True, is_data=not is_color)
    found.alpha_mode = "CHANNEL_PACKED"
    assert texture.pixels is not None
    found.pixels.foreach_set((texture.pixels()[::-1] / np.float32(255)).astype(np.float32).reshape(-1))
    found.pack()
    return found


def stored(name: str) -> Any:
    """Return the pixels of a picture."""
    pixels = picture(name).pixels
    assert pixels is not None
    return pixels()


def read(material: Any, *uvs: str) -> tuple[Shading, Report]:
    from meshferry.blender_data.exporting.reading.image_maps import ImageReader, SurfaceLayers
    from meshferry.blender_data.exporting.reading.shading_reading import shading_of

    report = Report()
    shading, left_out = shading_of(material, ImageReader(report), SurfaceLayers(uvs))
    left_out.report(material.name, report)
    return shading, report


def shadings(number: int) -> Iterator[Shading]:
    """Yield shadings that the import shows in full."""
    rng = random.Random(3)
    mappings = [
        Mapping(), Mapping(uv_layer=1), Mapping(scale=(2.0, 3.0), offset=(0.25, -0.5)),
        Mapping(Projection.BOX_OBJECT, scale=(2.0, 3.0), blend=0.25), Mapping(Projection.TOP_WORLD, scale=(2.0, 2.0)),
        Mapping(scale=(-2.0, 0.5), offset=(0.25, -3.5), rotation=0.75), Mapping(uv_layer=1, rotation=-2.0),
    ]  # fmt: skip

    def value() -> float:
        return rng.choice([0.25, 0.5, 1.0])

    for count in range(number):

        def image(name: str, *, is_color: bool = False, count: int = count) -> ImageMap:
            return ImageMap(picture(f"{name}{count}"), is_color, rng.choice(mappings), rng.choice(list(Extension)))

        packed, albedo = image("sh"), image("alb", is_color=True)

        def channel(image: ImageMap, channel: Channel) -> Factor:
            has_image = rng.random() < 0.6
            return Factor(value(), image if has_image else None, channel, has_image and rng.random() < 0.3)

        mode = rng.choice(list(Opacity))
        alpha = channel(*rng.choice([(packed, Channel.BLUE), (packed, Channel.ALPHA), (albedo, Channel.ALPHA)]))
        is_constant = alpha.image is None and (mode is Opacity.CLIP or alpha.value == 1.0)
        made = Shading(
            Tint(rng.choice([(1.0, 1.0, 1.0), (0.5, 0.25, 1.0)]), albedo if rng.random() < 0.7 else None),
            channel(packed, Channel.RED), channel(packed, Channel.GREEN), channel(packed, Channel.BLUE),
            opacity=Opacity.OPAQUE if is_constant and mode is not Opacity.ADD else mode, alpha=alpha,
            alpha_power=rng.choice([1.0, 2.0]) if alpha.image else 1.0, alpha_threshold=rng.choice([0.5, 0.25]),
            is_two_sided=rng.random() < 0.5,
        )  # fmt: skip
        if made.base_color.image is not None and rng.random() < 0.3:
            made = replace(made, base_color=replace(made.base_color, uses_vertex_color=True))
        if rng.random() < 0.6:
            down, blue, space = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.2
            made = replace(made, normal=NormalMap(image("n"), value(), down and not space, blue or space, space))
        if rng.random() < 0.4:
            made = replace(made, occlusion=Factor(1.0, image("a"), Channel.RED))
        if rng.random() < 0.5:
            emitted = Tint((0.5, 1.0, 0.25), image("e", is_color=True) if rng.random() < 0.5 else None)
            made = replace(made, emission=emitted, emission_strength=value() * 4)
        yield made


def test_materials_of_the_import_are_read_as_they_were() -> None:
    import bpy
    from meshferry.blender_data.shading import shaders

    for shading in shadings(40):
        material = bpy.data.materials.new("Shown")
        shaders.show(material, shading, shaders.MeshLayers("Color", ("UV0", "UV1")), image_of)
        found, report = read(material, "UV0", "UV1")
        assert_same(found, shading)
        assert not report.messages


# -- materials of artists and of Blender's importers --------------------------------------------


class Tree:
    """A new material with a Principled BSDF."""

    def __init__(self) -> None:
        import bpy
        from meshferry.blender_data import compat

        self.material = bpy.data.materials.new("Made")
        compat.enable_nodes(self.material)
        self.tree = self.material.node_tree
        self.tree.nodes.clear()
        self.shader = self.node("ShaderNodeBsdfPrincipled")
        self.output = self.node("ShaderNodeOutputMaterial")
        self.link(self.shader.outputs["BSDF"], self.output.inputs["Surface"])

    def node(self, kind: str, tree: Any = None, **settings: Any) -> Any:
        made = (tree or self.tree).nodes.new(kind)
        for name, value in settings.items():
            setattr(made, name, value)
        return made

    def link(self, source: Any, target: Any) -> None:
        target.id_data.links.new(source, target)

    def set(self, name: str, source: Any) -> None:
        self.link(source, self.shader.inputs[name])

    def image(self, name: str, *, is_color: bool = False) -> Any:
        return self.node("ShaderNodeTexImage", image=image_of(picture(name), is_color))


def artist_node_group(made: Tree) -> None:
    """A group with reroutes, in which a metal-roughness image is separated."""
    import bpy

    group = bpy.data.node_groups.new("Surface", "ShaderNodeTree")
    group.interface.new_socket("Color", in_out="INPUT", socket_type="NodeSocketColor")
    group.interface.new_socket("Roughness", in_out="OUTPUT", socket_type="NodeSocketFloat")
    entry, exit_, separate = (made.node(kind, group) for kind in
                              ("NodeGroupInput", "NodeGroupOutput", "ShaderNodeSeparateColor"))  # fmt: skip
    reroute = made.node("NodeReroute", group)
    made.link(entry.outputs[0], reroute.inputs[0])
    made.link(reroute.outputs[0], separate.inputs[0])
    made.link(separate.outputs[1], exit_.inputs[0])
    node = made.node("ShaderNodeGroup")
    node.node_tree = group
    made.link(made.image("orm").outputs["Color"], node.inputs[0])
    made.set("Roughness", node.outputs[0])


def group_in_a_group(made: Tree) -> None:
    """The image before the outer group goes through the inner one and comes back twice."""
    import bpy

    trees = [bpy.data.node_groups.new(name, "ShaderNodeTree") for name in ("Outer", "Inner")]
    for tree in trees:
        tree.interface.new_socket("In", in_out="INPUT", socket_type="NodeSocketFloat")
        tree.interface.new_socket("Out", in_out="OUTPUT", socket_type="NodeSocketFloat")
    outer, inner = trees
    node, nested = made.node("ShaderNodeGroup", node_tree=outer), made.node("ShaderNodeGroup", outer, node_tree=inner)
    for tree, middle in ((outer, nested), (inner, made.node("ShaderNodeInvert", inner))):
        entry, exit_ = made.node("NodeGroupInput", tree), made.node("NodeGroupOutput", tree)
        made.link(entry.outputs[0], middle.inputs[-1])
        made.link(middle.outputs[0], exit_.inputs[0])
    made.link(made.image("leaf", is_color=True).outputs["Alpha"], node.inputs[0])
    made.set("Roughness", node.outputs[0])


def muted_node(made: Tree) -> None:
    node = made.node("ShaderNodeGamma", mute=True)
    made.link(made.image("wood", is_color=True).outputs["Color"], node.inputs[0])
    made.set("Base Color", node.outputs[0])


def inverted_green(made: Tree) -> None:
    image, separate, combine, invert, normal = (
        made.image("n"), made.node("ShaderNodeSeparateColor"), made.node("ShaderNodeCombineColor"),
        made.node("ShaderNodeMath", operation="SUBTRACT"), made.node("ShaderNodeNormalMap"),
    )  # fmt: skip
    invert.inputs[0].default_value = 1.0
    made.link(image.outputs["Color"], separate.inputs[0])
    made.link(separate.outputs[1], invert.inputs[1])
    for source, target in ((separate.outputs[0], 0), (invert.outputs[0], 1), (separate.outputs[2], 2)):
        made.link(source, combine.inputs[target])
    made.link(combine.outputs[0], normal.inputs["Color"])
    made.set("Normal", normal.outputs[0])


def curves(made: Tree) -> None:
    node, normal = made.node("ShaderNodeRGBCurve"), made.node("ShaderNodeNormalMap")
    for point, height in zip(node.mapping.curves[1].points, (1.0, 0.0), strict=True):
        point.location[1] = height
    made.link(made.image("n").outputs["Color"], node.inputs["Color"])
    made.link(node.outputs["Color"], normal.inputs["Color"])
    made.set("Normal", normal.outputs[0])


def gltf_mask(made: Tree) -> None:
    """The alpha test of Blender's glTF importer."""
    less, invert = (made.node("ShaderNodeMath", operation=one) for one in ("LESS_THAN", "SUBTRACT"))
    invert.inputs[0].default_value, less.inputs[1].default_value = 1.0, 0.25
    made.link(made.image("leaf", is_color=True).outputs["Alpha"], less.inputs[0])
    made.link(less.outputs[0], invert.inputs[1])
    made.set("Alpha", invert.outputs[0])


def mixed_with_transparent(made: Tree) -> None:
    mix = made.node("ShaderNodeMixShader")
    made.link(made.image("leaf", is_color=True).outputs["Alpha"], mix.inputs[0])
    made.link(made.node("ShaderNodeBsdfTransparent").outputs[0], mix.inputs[1])
    made.link(made.shader.outputs[0], mix.inputs[2])
    made.link(mix.outputs[0], made.output.inputs["Surface"])
    made.material.surface_render_method = "BLENDED"


def occlusion_on_color(made: Tree) -> None:
    mix = made.node("ShaderNodeMix", data_type="RGBA", blend_type="MULTIPLY")
    sockets = {socket.identifier: socket for socket in mix.inputs}
    sockets["Factor_Float"].default_value = 1.0
    made.link(made.image("ao").outputs["Color"], sockets["A_Color"])
    made.link(made.image("wood", is_color=True).outputs["Color"], sockets["B_Color"])
    made.set("Base Color", next(socket for socket in mix.outputs if socket.identifier == "Result_Color"))


def ordinary(made: Tree) -> None:
    made.shader.inputs["Base Color"].default_value = (0.5, 0.25, 1.0, 1.0)
    made.shader.inputs["Metallic"].default_value = 0.75
    made.shader.inputs["IOR"].default_value = 1.33


def dim(name: str, *, is_color: bool = False) -> ImageMap:
    return ImageMap(picture(name), is_color)


GREY = Shading(Tint((0.8, 0.8, 0.8)))
LEAF = dim("leaf", is_color=True)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (artist_node_group, replace(GREY, roughness=Factor(1.0, dim("orm"), Channel.GREEN))),
        (group_in_a_group, replace(GREY, roughness=Factor(1.0, LEAF, Channel.ALPHA, is_inverted=True))),
        (muted_node, replace(GREY, base_color=Tint(image=dim("wood", is_color=True)))),
        (inverted_green, replace(GREY, normal=NormalMap(dim("n"), is_green_down=True))),
        (curves, replace(GREY, normal=NormalMap(dim("n"), is_green_down=True))),
        (gltf_mask, replace(GREY, opacity=Opacity.CLIP, alpha=Factor(1.0, LEAF, Channel.ALPHA), alpha_threshold=0.25)),
        (mixed_with_transparent, replace(GREY, opacity=Opacity.BLEND, alpha=Factor(1.0, LEAF, Channel.ALPHA))),
        (
            occlusion_on_color,
            replace(GREY, base_color=Tint(image=dim("wood", is_color=True)), occlusion=Factor(1.0, dim("ao"))),
        ),
        (ordinary, replace(GREY, base_color=Tint((0.5, 0.25, 1.0)), metallic=Factor(0.75), specular=Factor(0.2507))),
    ],
)
def test_trees_of_artists(build: Callable[[Tree], None], expected: Shading) -> None:
    made = Tree()
    build(made)
    found, report = read(made.material)
    assert_same(replace(found, roughness=expected.roughness) if build is ordinary else found, expected)
    assert not report.messages


@pytest.mark.parametrize(
    ("build", "name", "images"),
    [
        (artist_node_group, "Roughness", ["orm"]),
        (group_in_a_group, "Roughness", ["leaf"]),
        (muted_node, "Base Color", ["wood"]),
        (occlusion_on_color, "Base Color", ["ao", "wood"]),
    ],
)
def test_images_upstream(build: Callable[[Tree], None], name: str, images: list[str]) -> None:
    from meshferry.blender_data.exporting.reading.material_reading import images_of, read_material

    made = Tree()
    build(made)
    assert [image.name for image in images_of(made.shader.inputs[name]) if image is not None] == images
    report = Report()
    texture = read_material(made.material, report).texture
    assert (None if texture is None else texture.name.partition(".")[0]) == (
        images[0] if name == "Base Color" else None
    )
    assert not report.messages


def test_everything_without_a_counterpart_is_named_once() -> None:
    made = Tree()
    noise, ramp = made.node("ShaderNodeTexNoise"), made.node("ShaderNodeValToRGB")
    made.link(noise.outputs[0], ramp.inputs[0])
    made.set("Base Color", ramp.outputs[0])
    made.material.diffuse_color = (0.1, 0.2, 0.3, 1.0)
    made.shader.inputs["Coat Weight"].default_value = 1.0
    mapping, image = made.node("ShaderNodeMapping"), made.image("orm")
    mapping.inputs["Rotation"].default_value[2] = 1.0
    mapping.inputs["Scale"].default_value = (2.0, 3.0, 1.0)
    made.link(made.node("ShaderNodeTexCoord").outputs["UV"], mapping.inputs[0])
    made.link(mapping.outputs[0], image.inputs["Vector"])
    made.set("Roughness", image.outputs["Color"])
    made.set("Metallic", image.outputs["Color"])
    found, report = read(made.material)
    assert found.base_color.value == pytest.approx((0.1, 0.2, 0.3))
    assert found.roughness.image is not None and found.roughness.image.mapping.scale == (2.0, 3.0)
    assert {message.code: str(message) for message in report.messages} == {
        "material-nodes-left-out": "Material 'Made': files hold images and values, not the nodes Color Ramp; "
        "bake the material to images",
        "material-mappings-left-out": "Material 'Made': not part of the exported material: rotation of images; bake "
        "the material to images",
        "material-settings-left-out": "Material 'Made': not part of the exported material: coat",
    }


def test_materials_without_a_principled_shader() -> None:
    import bpy

    made = Tree()
    emission = made.node("ShaderNodeEmission")
    emission.inputs["Color"].default_value, emission.inputs["Strength"].default_value = (1.0, 0.5, 0.25, 1.0), 3.0
    made.link(emission.outputs[0], made.output.inputs["Surface"])
    found, _report = read(made.material)
    assert found.emission == Tint((1.0, 0.5, 0.25)) and found.emission_strength == 3.0
    assert found.base_color.value == (0.0, 0.0, 0.0) and found.specular.value == 0.0
    plain = bpy.data.materials.new("Plain")
    plain.diffuse_color, plain.metallic = (0.5, 0.25, 0.125, 1.0), 0.5
    if bpy.app.version < (5, 0, 0):
        found, _report = read(plain)
        assert found.base_color.value == (0.5, 0.25, 0.125) and found.metallic.value == 0.5


def test_missing_and_tiled_images_are_named(tmp_path: Path) -> None:
    import bpy

    made = Tree()
    gone = bpy.data.images.new("gone", 1, 1)
    gone.source, gone.filepath_raw = "FILE", str(tmp_path / "gone.png")
    made.set("Base Color", made.node("ShaderNodeTexImage", image=gone).outputs["Color"])
    made.set("Roughness", made.node("ShaderNodeTexImage", image=gone).outputs["Color"])
    found, report = read(made.material)
    assert found.base_color == Tint() and found.roughness == Factor(1.0)
    assert [(message.code, message.item) for message in report.messages] == [("unreadable-image", "gone")]
    tiles = Tree()
    image = bpy.data.images.new("tiles", 4, 4, tiled=True)
    tiles.set("Base Color", tiles.node("ShaderNodeTexImage", image=image).outputs["Color"])
    found, report = read(tiles.material)
    assert found.base_color.image is not None
    assert [(message.code, message.item) for message in report.messages] == [("image-tiles", "tiles")]


@pytest.mark.parametrize("is_color", [False, True])
@pytest.mark.parametrize("kind", ["png", "png16", "exr", "jpg", "packed", "painted"])
def test_pixels_are_those_of_the_file(kind: str, is_color: bool, tmp_path: Path) -> None:
    import bpy
    from meshferry.blender_data.exporting.reading.image_maps import ImageReader

    pixels = stored("wood")
    pixels[..., 3] = np.maximum(pixels[..., 3], 64)
    path = tmp_path / f"wood.{kind[:3]}"
    if kind in ("png", "png16", "packed"):
        path = path.with_suffix(".png")
        bits, factor = (16, 257) if kind == "png16" else (8, 1)
        path.write_bytes(png_of(pixels.astype(np.uint16) * factor, bits))
    else:
        pixels[..., 3] = 255
        pixels[:] = (200, 100, 50, 255) if kind == "jpg" else pixels  # loses details
        image = bpy.data.images.new("wood", 8, 8, alpha=True, float_buffer=kind == "exr", is_data=kind == "exr")
        image.pixels.foreach_set((pixels[::-1] / np.float32(255)).astype(np.float32).reshape(-1))
    if kind in ("exr", "jpg"):
        image.filepath_raw, image.file_format = str(path), "OPEN_EXR" if kind == "exr" else "JPEG"
        image.save()
    if kind != "painted":
        image = bpy.data.images.load(str(path))
        image.colorspace_settings.is_data = not is_color
    if kind == "packed":
        image.pack()
    report = Report()
    found = ImageReader(report).texture(image)
    assert found is not None and found.pixels is not None
    if not (kind == "exr" and is_color):  # whose linear colours the file does not have as they are
        assert np.abs(found.pixels().astype(int) - pixels).max() <= (3 if kind == "jpg" else 0)
    is_deep = kind in ("png16", "exr")
    assert [message.code for message in report.messages] == (["image-depth-changed"] if is_deep else [])
    content = found.read() if found.read is not None else b""
    assert content == (path.read_bytes() if kind in ("png", "png16", "packed") else b"")


def test_written_textures_are_what_blender_reads(tmp_path: Path) -> None:
    """Blender's own PNG reader judges packed textures."""
    import bpy
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.unigine.project.new_materials import material_assets

    made = Tree()
    metal, rough = made.image("metal"), made.image("rough")
    made.set("Metallic", metal.outputs["Color"])
    made.set("Roughness", rough.outputs["Alpha"])
    shading, _report = read(made.material)
    files = material_assets([Material("m", shading=shading)], "2.20.0.0", set(), Report())
    guids = {asset.name: "0" * 40 for asset in files.assets}
    data = next(asset for asset in files.assets if asset.name == "metal_sh.png").encode(guids)
    (tmp_path / "x.png").write_bytes(data)
    image = bpy.data.images.load(str(tmp_path / "x.png"))
    found = np.empty(8 * 8 * 4, np.float32)
    image.pixels.foreach_get(found)
    steps = np.rint(found.reshape(8, 8, 4)[::-1] * 255).astype(np.uint8)
    expected = [stored("metal")[..., 0], stored("rough")[..., 3], np.full((8, 8), 127)]
    assert (steps[..., :3] == np.stack(expected, axis=2)).all() and (decoded(data) == steps).all()


def test_materials_of_gltf_files_are_read(tmp_path: Path) -> None:
    """Blender's own exporter and importer make the nodes and images."""
    import bpy

    made = Tree()
    separate, orm = made.node("ShaderNodeSeparateColor"), made.image("orm")
    wood, normal = made.image("wood", is_color=True), made.node("ShaderNodeNormalMap")
    made.link(orm.outputs["Color"], separate.inputs[0])
    made.set("Roughness", separate.outputs[1])
    made.set("Metallic", separate.outputs[2])
    made.set("Base Color", wood.outputs["Color"])
    made.set("Alpha", wood.outputs["Alpha"])
    normal.inputs["Strength"].default_value = 0.5
    made.link(made.image("n").outputs["Color"], normal.inputs["Color"])
    made.set("Normal", normal.outputs[0])
    made.shader.inputs["Emission Color"].default_value = (1.0, 0.5, 0.25, 1.0)
    made.shader.inputs["Emission Strength"].default_value = 3.0
    made.material.surface_render_method = "BLENDED"
    made.material.use_backface_culling = True
    bpy.ops.mesh.primitive_plane_add()
    bpy.context.object.data.materials.append(made.material)
    bpy.ops.export_scene.gltf(filepath=str(tmp_path / "m.glb"))
    bpy.ops.import_scene.gltf(filepath=str(tmp_path / "m.glb"))
    material = bpy.context.object.data.materials[0]
    assert material != made.material
    given, _report = read(made.material)
    found, report = read(material)
    packed = ImageMap(replace(given.roughness.image.texture))  # type: ignore[union-attr]
    expected = replace(
        given,
        metallic=Factor(1.0, packed, Channel.BLUE),
        roughness=Factor(1.0, packed, Channel.GREEN),
        opacity=found.opacity,
    )
    assert found.opacity in (Opacity.BLEND, Opacity.DITHERED)
    assert_same(found, expected)
    assert not report.messages
    texture = found.normal.image.texture if found.normal is not None else None
    assert texture is not None and texture.read is not None and texture.read().startswith(b"\x89PNG")


def test_images_in_the_wrong_colour_space_are_named() -> None:
    made = Tree()
    normal = made.node("ShaderNodeNormalMap")
    made.set("Base Color", made.image("wood").outputs["Color"])
    made.set("Roughness", made.image("rough", is_color=True).outputs["Color"])
    made.set("Metallic", made.image("metal", is_color=True).outputs["Alpha"])
    made.link(made.image("n", is_color=True).outputs["Color"], normal.inputs["Color"])
    made.set("Normal", normal.outputs[0])
    (message,) = read(made.material)[1].messages
    assert message.code == "image-color-space" and sorted(message.about()) == ["Made", "n", "rough", "wood"]


def test_nodes_in_a_circle_end() -> None:
    made = Tree()
    first, second = (made.node("ShaderNodeMath", operation="MULTIPLY") for _number in range(2))
    made.link(first.outputs[0], second.inputs[0])
    made.link(second.outputs[0], first.inputs[0])
    made.set("Roughness", second.outputs[0])
    made.set("Base Color", first.outputs[0])
    assert read(made.material)[0].roughness.image is None
