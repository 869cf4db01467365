"""Shader nodes for neutral shading: structure, sharing, and what Cycles makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from helpers_render import plane_with, render
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.scene import Material
from meshferry.io_formats.core.shading import (
    Channel,
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

pytestmark = pytest.mark.needs_bpy

SIZE = 64


def image_of(texture: Texture, is_color: bool) -> Any:
    """Return an image whose name states its colour, such as ``0.5,0.25,1,0.5``; None for ``gone``."""
    import bpy

    if texture.name == "gone":
        return None
    name = f"{texture.name} {is_color}"
    found = bpy.data.images.get(name)
    if found is None:
        found = bpy.data.images.new(name, 4, 4, alpha=True, is_data=not is_color)
        found.alpha_mode = "CHANNEL_PACKED"
        found.pixels = [float(part) for part in texture.name.split(",")] * 16
        found.pack()
    return found


def shown(shading: Shading, *, uvs: tuple[str, ...] = ("UV0", "UV1"), **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.shading import shaders

    material = bpy.data.materials.new("Shown")
    shaders.show(material, shading, shaders.MeshLayers("Color", uvs), options.pop("image_of", image_of), **options)
    return material


def shader_of(material: Any) -> Any:
    return next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")


def feeds(socket: Any) -> list[str]:
    """Return the types of the nodes from a socket to the coordinates, along the first links."""
    found = []
    linked = [socket]
    while linked:
        node = linked[0].links[0].from_node
        found.append(node.type)
        linked = [entry for entry in node.inputs if entry.is_linked]
    return found


def of_type(material: Any, kind: str) -> list[Any]:
    return [node for node in material.node_tree.nodes if node.type == kind]


def map_of(name: str, *, is_color: bool = False, mapping: Mapping | None = None) -> ImageMap:
    return ImageMap(Texture(name), is_color, mapping or Mapping())


def whole() -> Shading:
    """Return a shading with an image in every channel."""
    albedo, surface = map_of("0.5,0.25,1,0.5", is_color=True), map_of("0.75,0.5,0.25,1")
    return Shading(
        base_color=Tint((0.5, 1.0, 1.0), albedo),
        metallic=Factor(1.0, surface, Channel.RED),
        roughness=Factor(0.5, surface, Channel.GREEN, is_inverted=True),
        specular=Factor(0.5, surface, Channel.BLUE),
        normal=NormalMap(map_of("0.5,0.5,1,1"), 0.5, is_green_down=True),
        occlusion=Factor(1.0, map_of("0.5,0,0,1"), Channel.RED),
        emission=Tint((1.0, 1.0, 1.0), map_of("1,0.5,0,1", is_color=True)),
        emission_strength=3.0,
        opacity=Opacity.BLEND,
        alpha=Factor(0.5, albedo, Channel.ALPHA),
        alpha_power=2.0,
        is_two_sided=False,
    )


def test_a_whole_material_is_a_small_tree_with_one_node_for_an_image() -> None:
    material = shown(whole())
    shader = shader_of(material)
    assert len(of_type(material, "TEX_IMAGE")) == 5 and len(of_type(material, "SEPARATE_COLOR")) == 2
    assert not of_type(material, "UVMAP") and not of_type(material, "MAPPING")
    assert feeds(shader.inputs["Base Color"]) == ["MIX", "TEX_IMAGE"]
    assert feeds(shader.inputs["Metallic"]) == ["SEPARATE_COLOR", "TEX_IMAGE"]
    turns = [] if hasattr(of_type(material, "NORMAL_MAP")[0], "convention") else ["VECT_MATH"]
    assert feeds(shader.inputs["Normal"]) == ["NORMAL_MAP", *turns, "TEX_IMAGE"]
    assert of_type(material, "NORMAL_MAP")[0].uv_map == "UV0"
    assert material.use_backface_culling and material.surface_render_method == "BLENDED"
    opaque = shown(replace(whole(), opacity=Opacity.OPAQUE, is_two_sided=True, normal=None))
    assert not shader_of(opaque).inputs["Alpha"].is_linked and shader_of(opaque).inputs["Alpha"].default_value == 1.0
    assert not opaque.use_backface_culling and opaque.surface_render_method == "DITHERED"


def test_nodes_stand_in_columns_without_overlap() -> None:
    material = shown(replace(whole(), normal=replace(whole().normal, has_blue=False)))
    nodes = list(material.node_tree.nodes)
    for link in material.node_tree.links:
        assert link.from_node.location.x + link.from_node.width < link.to_node.location.x
    for node in nodes:
        below = [o for o in nodes if o != node and abs(o.location.x - node.location.x) < 100]
        assert all(abs(o.location.y - node.location.y) >= 60 for o in below)
    assert len({node.name for node in nodes}) == len(nodes)


@pytest.mark.parametrize(
    ("mapping", "kinds"),
    [
        (Mapping(uv_layer=1), ["TEX_IMAGE", "UVMAP"]),
        (Mapping(scale=(2.0, 3.0), offset=(0.5, -1.0)), ["TEX_IMAGE", "MAPPING", "UVMAP"]),
        (Mapping(Projection.BOX_WORLD, blend=0.25), ["TEX_IMAGE", "NEW_GEOMETRY"]),
        (Mapping(Projection.TOP_OBJECT, scale=(2.0, 2.0)), ["TEX_IMAGE", "MAPPING", "TEX_COORD"]),
    ],
)
def test_mappings(mapping: Mapping, kinds: list[str]) -> None:
    image = map_of("1,1,1,1", is_color=True, mapping=mapping)
    material = shown(Shading(base_color=Tint(image=image), emission=Tint((0.5, 0.5, 0.5), image)))
    assert feeds(shader_of(material).inputs["Base Color"]) == kinds
    assert len(of_type(material, "TEX_IMAGE")) == 1
    node = of_type(material, "TEX_IMAGE")[0]
    assert node.projection == ("BOX" if mapping.blend else "FLAT") and node.projection_blend == mapping.blend
    if "UVMAP" in kinds:
        assert of_type(material, "UVMAP")[0].uv_map == f"UV{mapping.uv_layer}"
    if "MAPPING" in kinds:
        inputs = of_type(material, "MAPPING")[0].inputs
        assert tuple(inputs["Scale"].default_value)[:2] == mapping.scale
        assert tuple(inputs["Location"].default_value)[:2] == mapping.offset


def test_missing_images_leave_their_values() -> None:
    gone = map_of("gone")
    lost = replace(
        whole(),
        base_color=Tint((0.5, 0.25, 1.0), gone),
        metallic=Factor(0.75, gone),
        roughness=Factor(0.25, gone, is_inverted=True),
        normal=NormalMap(gone),
        alpha=Factor(0.5, gone),
        occlusion=Factor(1.0, gone),
    )
    material = shown(lost, multiply_occlusion=True)
    inputs = shader_of(material).inputs
    linked = {socket.name for socket in inputs if socket.is_linked}
    assert linked == {"Specular IOR Level", "Emission Color"}
    assert tuple(inputs["Base Color"].default_value)[:3] == (0.5, 0.25, 1.0)
    assert (inputs["Metallic"].default_value, inputs["Roughness"].default_value) == (0.75, 0.75)
    assert inputs["Alpha"].default_value == 0.25, "0.5 to the power of 2"
    assert tuple(material.diffuse_color) == (0.5, 0.25, 1.0, 0.5)


@pytest.mark.parametrize(("alpha", "shows"), [(0.5, 1.0), (0.49, 0.0)])
def test_a_constant_alpha_is_tested(alpha: float, shows: float) -> None:
    material = shown(Shading(opacity=Opacity.CLIP, alpha=Factor(alpha)))
    assert shader_of(material).inputs["Alpha"].default_value == shows


def test_building_again_replaces_the_nodes() -> None:
    from meshferry.blender_data.shading import shaders

    material = shown(whole())
    count = len(material.node_tree.nodes)
    shaders.show(material, whole(), shaders.MeshLayers(), image_of)
    assert len(material.node_tree.nodes) == count


@pytest.mark.parametrize("is_green_down", [True, False])
def test_gltf_files_get_normal_maps_with_green_up(tmp_path: Path, is_green_down: bool) -> None:
    import bpy
    from meshferry.blender_data.addon_formats.unsupported_data import turn_green_up

    normal = NormalMap(map_of("0.25,0.75,1,1"), is_green_down=is_green_down)
    material = shown(Shading(normal=normal))
    plane = plane_with(material)
    for _ in range(2):  # the second time changes nothing
        turn_green_up([plane])
    bpy.ops.export_scene.gltf(filepath=str(tmp_path / "plane.gltf"), export_format="GLTF_SEPARATE")
    (written,) = tmp_path.glob("*.png")
    picture = bpy.data.images.load(str(written))
    np.testing.assert_allclose(picture.pixels[:3], (0.25, 0.25 if is_green_down else 0.75, 1.0), atol=3e-3)
    assert feeds(shader_of(material).inputs["Normal"]) == ["NORMAL_MAP", "TEX_IMAGE"]


# -- pictures ------------------------------------------------------------------------------------


def evaluated(material: Any, name: str, folder: Path) -> npt.NDArray[np.float32]:
    """Return the mean of what an input of the shader gets, by a picture in which it is emitted."""
    tree = material.node_tree
    output = next(node for node in tree.nodes if node.type == "OUTPUT_MATERIAL")
    emission = tree.nodes.new("ShaderNodeEmission")
    tree.links.new(shader_of(material).inputs[name].links[0].from_socket, emission.inputs["Color"])
    tree.links.new(emission.outputs["Emission"], output.inputs["Surface"])
    return render(material, folder, 4, 1).mean(axis=(0, 1))


def linear(value: float) -> float:
    return ((value + 0.055) / 1.055) ** 2.4 if value > 0.04045 else value / 12.92


EXPECTED: list[tuple[str, Callable[[], tuple[float, ...]]]] = [
    ("Base Color", lambda: (0.5 * linear(0.5) * 0.5, linear(0.25) * 0.5, 0.5)),  # times colour and occlusion
    ("Metallic", lambda: (0.75,) * 3),
    ("Roughness", lambda: (1 - 0.5 * 0.5,) * 3),
    ("Specular IOR Level", lambda: (0.5 * 0.25,) * 3),
    ("Alpha", lambda: ((0.5 * 0.5) ** 2,) * 3),
    ("Emission Color", lambda: (1.0, linear(0.5), 0.0)),
]


def test_cycles_computes_every_channel_as_stated(tmp_path: Path) -> None:
    for name, expected in EXPECTED:
        found = evaluated(shown(whole(), multiply_occlusion=True), name, tmp_path)
        np.testing.assert_allclose(found, expected(), atol=4e-3, err_msg=name)


def test_additive_materials_add_to_the_background(tmp_path: Path) -> None:
    """A plane that emits 0.5 in red, at half opacity, before a background of 0.25."""
    import bpy

    world = bpy.context.scene.world = bpy.data.worlds.new("World")
    if bpy.app.version < (5, 0, 0):
        world.use_nodes = True
    background = next(node for node in world.node_tree.nodes if node.type == "BACKGROUND")
    background.inputs["Color"].default_value = (0.25, 0.25, 0.25, 1.0)
    black = Tint((0.0, 0.0, 0.0))
    glow = Shading(
        base_color=black,
        specular=Factor(0.0),
        emission=Tint((1.0, 0.0, 0.0)),
        emission_strength=0.5,
        opacity=Opacity.ADD,
        alpha=Factor(0.5),
    )
    picture = render(shown(glow), tmp_path, 4, 16)[1:3, 1:3].mean(axis=(0, 1))  # without the borders
    np.testing.assert_allclose(picture, (0.5, 0.25, 0.25), atol=2e-2)


def bump(*, is_green_down: bool, blue: bool = True) -> Any:
    """Return the normal map of a half ellipsoid on a plane: normals lean away from its centre."""
    import bpy

    across = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    x, y = np.meshgrid(across, across)  # the lowest row first, as in Blender's pixels
    inside = x**2 + y**2 < 0.8
    nx, ny = np.where(inside, 0.7 * x, 0), np.where(inside, 0.7 * y, 0)
    nz = np.sqrt(1 - nx**2 - ny**2)
    green = -ny if is_green_down else ny
    pixels = np.stack((nx * 0.5 + 0.5, green * 0.5 + 0.5, nz * 0.5 + 0.5 if blue else 0 * nz, np.ones_like(nx)), axis=2)
    image = bpy.data.images.new("Bump", SIZE, SIZE, float_buffer=True, is_data=True)
    image.pixels.foreach_set(pixels.astype(np.float32).ravel())
    image.pack()
    return image


@pytest.mark.parametrize(("is_green_down", "blue"), [(True, True), (False, True), (True, False)])
def test_a_bump_is_lit_from_the_side_of_the_light(tmp_path: Path, is_green_down: bool, blue: bool) -> None:
    import bpy

    image = bump(is_green_down=is_green_down, blue=blue)
    normal = NormalMap(map_of("bump"), 1.0, is_green_down, has_blue=blue)
    material = shown(Shading(roughness=Factor(1.0), specular=Factor(0.0), normal=normal), image_of=lambda *_: image)
    sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    bpy.context.scene.collection.objects.link(sun)
    sun.rotation_euler = (-np.pi / 4, 0.0, 0.0)  # from +Y, 45 degrees high
    lit = render(material, tmp_path, SIZE, 8).mean(axis=2)
    across = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    x, y = np.meshgrid(across, across)
    ny = np.where(x**2 + y**2 < 0.8, 0.7 * y, 0)
    nx = np.where(x**2 + y**2 < 0.8, 0.7 * x, 0)
    expected = (ny + np.sqrt(1 - nx**2 - ny**2)) / np.sqrt(2)  # Lambert
    inside = x**2 + y**2 < 0.7
    assert lit[inside & (y > 0.3)].mean() > 1.5 * lit[inside & (y < -0.3)].mean()
    assert np.corrcoef(lit[inside], expected[inside])[0, 1] > 0.98
    left, right = lit[inside & (x < -0.3)].mean(), lit[inside & (x > 0.3)].mean()
    assert left == pytest.approx(right, rel=0.05)


def file_of(name: str, depth: int = 24) -> Texture:
    """Return a texture of a project with one pixel; ``gone`` cannot be read."""

    def read() -> bytes:
        if name == "gone":
            raise FormatError("cut off")
        return bytes((0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, depth, 0)) + bytes(depth // 8)

    return Texture(name, f"//{name}.tga", source=name, read=read)


def cut_out(color: Texture, *, has_alpha: bool | None = None) -> Shading:
    """Return a shading that uses the alpha of its image; ``has_alpha`` is what the texture states of it."""
    color = replace(color, has_alpha=has_alpha)
    alpha = Factor(1.0, ImageMap(color, is_color=True), Channel.ALPHA)
    return shading_of(color, file_of("b"), opacity=Opacity.DITHERED, alpha=alpha)


def shading_of(color: Texture, normal: Texture, **changes: Any) -> Shading:
    surface = ImageMap(color, mapping=Mapping(scale=(2.0, 2.0)))
    changed = {"normal": NormalMap(ImageMap(normal), has_blue=False), **changes}
    return Shading(Tint((0.5, 1.0, 1.0), ImageMap(color, is_color=True)), Factor(1.0, surface), **changed)


def description(material: Any) -> list[Any]:
    """Return all that an import gives a material."""

    def values_of(socket: Any) -> Any:
        value = getattr(socket, "default_value", None)
        return tuple(value) if hasattr(value, "__len__") else value

    tree, kept = material.node_tree, material.meshferry
    found: list[Any] = [material.name, kept.source_name, kept.given_name, kept.identity, material.users]
    found += [(stored.name, stored.value) for stored in kept.file_properties]
    found += [tuple(material.diffuse_color), material.surface_render_method, material.use_backface_culling]
    for node in tree.nodes:
        image = node.image.meshferry.source_path if node.type == "TEX_IMAGE" else None
        inputs = [values_of(socket) for socket in node.inputs]
        found.append((node.bl_idname, node.name, node.label, tuple(node.location), node.select, image, inputs))
    return found + [(link.from_socket.path_from_id(), link.to_socket.path_from_id()) for link in tree.links]


ALIKE = {
    "Oak\0": shading_of(file_of("a"), file_of("b")),
    "Elm": shading_of(file_of("c"), file_of("d")),
    "Ash": shading_of(file_of("a"), file_of("a")),
    "Fir": shading_of(file_of("a"), file_of("gone")),
    "Yew": shading_of(file_of("gone"), file_of("a")),
    "Box": shading_of(file_of("a"), file_of("b"), is_two_sided=False),
    "Fern": cut_out(file_of("e", 32)),
    "Moss": cut_out(file_of("f")),
    "Ivy": cut_out(file_of("h", 32), has_alpha=True),
    "Hop": cut_out(file_of("g", 32), has_alpha=True),
    "Reed": cut_out(file_of("i"), has_alpha=False),
}
"""Materials of which some differ in their textures alone.

Only ``Oak`` and ``Elm`` can have the same nodes, and ``Ivy`` and ``Hop``, whose textures state that they have alpha.
Images whose depth is asked are decoded, so that the Solid view shows their mean.
"""


def test_materials_that_differ_in_their_textures_alone_are_as_if_each_was_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import bpy
    from meshferry.blender_data.importing import materials
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.blender_data.shading import shaders

    built: list[Any] = []
    arrange = shaders.arrange_nodes
    monkeypatch.setattr(shaders, "arrange_nodes", lambda *args: built.append(0) or arrange(*args))
    given = [
        Material(name, shading=shading, identity=name[:3], properties={"from": name[:1]} if name != "Elm" else {})
        for name, shading in ALIKE.items()
    ]

    def descriptions(finders: list[materials.MaterialFinder]) -> list[Any]:
        bpy.data.batch_remove([*bpy.data.materials, *bpy.data.images])
        return [description(finder.find(material.name)) for finder, material in zip(finders, given, strict=True)]

    def finder() -> materials.MaterialFinder:
        return materials.MaterialFinder(ImportOptions.of({"use_existing_materials": False}), given=given)

    alone = descriptions([finder() for _ in given])
    assert len(built) == len(given)
    assert descriptions([finder()] * len(given)) == alone
    assert len(built) == 2 * len(given) - 3, "three of them are copies"


def test_solid_view_and_icons_have_the_colours_of_textures() -> None:
    """They are not exported, since the nodes are; a texture that is missing leaves the colour."""
    import bpy
    from meshferry.blender_data.exporting.reading import image_maps, material_reading, shading_reading
    from meshferry.blender_data.importing import materials
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.blender_data.shading import shaders
    from meshferry.io_formats.core.messages import Report
    from meshferry.io_formats.encodings.image_files import encode_png

    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[0] = 255, 0, 0, 255  # the row below is transparent
    packed = Texture("red.png", data=encode_png(pixels))
    given = {
        "packed": Tint((1.0, 1.0, 0.5), ImageMap(packed, is_color=True)),
        "gone": Tint((0.5, 0.25, 1.0), ImageMap(Texture("gone.png", "gone.png"), is_color=True)),
        "plain": Tint((0.5, 0.25, 1.0), uses_vertex_color=True),
    }
    finder = materials.MaterialFinder(
        ImportOptions.of({"use_existing_materials": False}),
        given=[Material(name, shading=Shading(base_color=tint)) for name, tint in given.items()],
    )
    made = {name: finder.find(name, shaders.MeshLayers("Color")) for name in given}
    assert all(material is not None for material in made.values())
    shown = {name: tuple(material.diffuse_color) for name, material in made.items()}
    assert shown["packed"] == (1.0, 0.0, 0.0, 1.0)
    assert shown["gone"] == shown["plain"] == (0.5, 0.25, 1.0, 1.0)
    previews = {name: material.preview for name, material in made.items()}
    assert [name for name, found in previews.items() if found is not None and found.is_icon_custom] == ["plain"]
    icon = np.array(previews["plain"].icon_pixels_float).reshape(32, 32, 4)
    assert icon[16, 16, 2] > icon[16, 16, 0] > icon[16, 16, 1] > 0.1 and icon[16, 16, 3] == 1.0 and not icon[0, 0].any()
    for name, color in (("packed", (1.0, 1.0, 1.0, 1.0)), ("gone", (1.0, 1.0, 1.0, 1.0))):
        assert material_reading.read_material(made[name], Report()).color == color
    read, _left_out = shading_reading.shading_of(
        made["packed"], image_maps.ImageReader(Report()), image_maps.SurfaceLayers()
    )
    assert read.base_color.value == (1.0, 1.0, 0.5) and read.base_color.image is not None
    finder.fill(made["plain"], Material("plain", shading=Shading(base_color=Tint())), shaders.MeshLayers())
    assert not made["plain"].preview.is_icon_custom
    bpy.data.batch_remove([*made.values()])
