"""Parts of node-built materials that the files of a target cannot hold: each is named, and nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.second_life.upload_set.document import shown_mapping

pytestmark = pytest.mark.needs_bpy
bpy = pytest.importorskip("bpy", reason="Blender is absent")
sys.path.insert(0, str(Path(__file__).parent))
from meshferry.blender_data import compat, export_options  # noqa: E402
from meshferry.blender_data.export_options import ExportOptions  # noqa: E402
from meshferry.blender_data.exporting import exporter, object_selection  # noqa: E402
from meshferry.io_formats import api  # noqa: E402
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD  # noqa: E402
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE  # noqa: E402


class Panel:
    """A plane with two UV maps, two colour attributes and a material, in an empty scene."""

    def __init__(self) -> None:
        mesh = bpy.data.meshes.new("Panel")
        mesh.from_pydata([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [], [(0, 1, 2, 3)])
        for name in ("First", "Second"):
            mesh.uv_layers.new(name=name)
        for name, colors in (("White", np.ones((4, 4))), ("Dirt", np.eye(4)), ("Grey", np.full((4, 4), 0.5))):
            mesh.color_attributes.new(name, "FLOAT_COLOR", "POINT").data.foreach_set("color", colors.ravel())
        self.object = bpy.data.objects.new("Panel", mesh)
        bpy.context.scene.collection.objects.link(self.object)
        self.material = bpy.data.materials.new("Paint")
        mesh.materials.append(self.material)
        compat.enable_nodes(self.material)
        self.tree = self.material.node_tree
        self.shader = next(node for node in self.tree.nodes if node.type == "BSDF_PRINCIPLED")
        self.output = next(node for node in self.tree.nodes if node.type == "OUTPUT_MATERIAL")

    def node(self, kind: str, *inputs: Any, **settings: Any) -> Any:
        """Add a node with these values or links at its first inputs; return its first output."""
        made = self.tree.nodes.new("ShaderNode" + kind)
        for name, value in settings.items():
            setattr(made, name, value)
        sockets = [socket for socket in made.inputs if socket.enabled]
        for socket, value in zip(sockets, inputs, strict=False):
            self.put(value, socket)
        return next(socket for socket in made.outputs if socket.enabled)

    def put(self, value: Any, socket: Any) -> None:
        if isinstance(value, bpy.types.NodeSocket):
            self.tree.links.new(value, socket)
        elif value is not None:
            socket.default_value = value

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            self.put(value, self.shader.inputs[name.replace("_", " ")])

    def image(self, name: str, vector: Any = None, *, is_data: bool = False) -> Any:
        found = bpy.data.images.get(name) or bpy.data.images.new(name, 4, 4, is_data=is_data)
        if not found.packed_file:
            found.pack()
        return self.node("TexImage", vector, image=found)

    def multiplied(self, first: Any, second: Any) -> Any:
        return self.node("Mix", 1.0, first, second, data_type="RGBA", blend_type="MULTIPLY")

    def show(self, shader: Any) -> None:
        self.tree.links.new(shader, self.output.inputs["Surface"])

    def uv(self, name: str) -> Any:
        return self.node("UVMap", uv_map=name)

    def scaled(self, *scale: float, vector: Any = None) -> Any:
        return self.node("Mapping", vector or self.uv("First"), None, None, scale)

    def color(self, name: str) -> Any:
        return self.node("VertexColor", layer_name=name)


def scene_of(file_format: Any, **options: Any) -> Any:
    defaults = {"missing_levels": "COPY"} if file_format is SECOND_LIFE_UPLOAD else {}
    options = {"use_baked_materials": False, **defaults, **options}
    given = ExportOptions.of(options)
    source = object_selection.Source("SCENE")
    request = export_options.ExportRequest(bpy.context, source, given, "set", file_format.capabilities)
    return exporter.export_scene(request)


def messages_of(file_format: Any) -> list[str]:
    """Return what the export says about materials."""
    said = [str(message) for message in scene_of(file_format).warnings if message.code.startswith("material-")]
    texts = [text.removeprefix("Material 'Paint': ").partition(";")[0] for text in said]
    return [text.removeprefix("files hold images and values, ") for text in texts]


OTHER = "not part of the exported material: "
NOISE = "not the nodes Noise Texture"
A = (0.5, 0.25, 0.1, 1.0)


@pytest.fixture
def panel(clean_blender: Any) -> Panel:
    return Panel()


@pytest.mark.parametrize(
    ("build", "in_set", "in_scene"),
    [
        (lambda p: p.set(Base_Color=p.image("a")), "", ""),
        (lambda p: p.set(Base_Color=p.image("a", p.scaled(2, 3, 1))), "", ""),
        (lambda p: p.set(Base_Color=A, Alpha=0.5), "", ""),
        (lambda p: p.set(Base_Color=p.multiplied(p.image("a"), p.color("White"))), "", ""),
        (lambda p: p.set(Base_Color=p.color("Grey")), "", ""),
        (lambda p: p.set(Emission_Color=p.node("TexNoise"), Emission_Strength=0.0), "", ""),
        (lambda p: p.set(Emission_Color=(0.0, 0.0, 0.0, 1.0), Emission_Strength=p.node("TexNoise")), "", ""),
        (
            lambda p: p.set(Base_Color=p.multiplied(p.image("a"), A)),
            OTHER + "the colour that multiplies the image 'a'", "",
        ),
        (
            lambda p: p.set(Base_Color=p.multiplied(p.image("a"), p.color("Grey"))),
            OTHER + "the colour that multiplies the image 'a'", "",
        ),
        (lambda p: p.set(Base_Color=p.multiplied(p.image("a"), p.color("Dirt"))), OTHER + "a colour attribute", ""),
        (
            lambda p: p.set(Base_Color=p.multiplied(p.image("a"), p.image("ao", is_data=True))),
            OTHER + "a product with ambient occlusion", "",
        ),
        (lambda p: p.set(Base_Color=p.image("a", p.uv("Second"))), OTHER + "the UV map 'Second'", ""),
        (
            lambda p: p.set(Base_Color=p.image("a", p.node("NewGeometry"))),
            OTHER + "projected images", "",
        ),
        (
            lambda p: p.set(Base_Color=p.image("a"), Alpha=p.image("b", is_data=True)), OTHER + "its transparency", "",
        ),
        (lambda p: p.set(Base_Color=p.image("a"), Alpha=0.5), OTHER + "its transparency", ""),
        (
            lambda p: p.show(p.node("MixShader", 0.25, p.node("BsdfTransparent"), p.shader.outputs[0])),
            OTHER + "its transparency", "",
        ),
        (lambda p: p.show(p.node("MixShader", 0.0, p.shader.outputs[0], p.node("BsdfGlossy"))), "", ""),
        (lambda p: p.set(Roughness=p.node("TexNoise")), NOISE, NOISE),
        (lambda p: p.set(Alpha=p.node("TexNoise")), NOISE, NOISE),
        (lambda p: p.set(Normal=p.node("Bump", 0.0, 1.0)), "", ""),
        (lambda p: p.set(Normal=p.node("Bump", 1.0, 1.0)), "not the nodes Bump", "not the nodes Bump"),
        (lambda p: p.show(p.node("BsdfGlossy")), "not the nodes Glossy BSDF", "not the nodes Glossy BSDF"),
        (lambda p: p.set(IOR=p.node("TexNoise")), OTHER + "IOR of nodes", OTHER + "IOR of nodes"),
        (lambda p: p.set(IOR=p.node("Value")), "", ""),
        (lambda p: p.set(Coat_Weight=1.0), OTHER + "coat", OTHER + "coat"),
        (lambda p: p.set(Coat_Weight=1.0, Metallic=1.0), "", OTHER + "coat"),
        (lambda p: p.set(Specular_IOR_Level=p.image("s", is_data=True)), OTHER + "specular", ""),
    ],
)  # fmt: skip
def test_losses_are_named(panel: Panel, build: Any, in_set: str, in_scene: str) -> None:
    build(panel)
    assert messages_of(SECOND_LIFE_UPLOAD) == ([in_set] if in_set else [])
    assert messages_of(UNIGINE_SCENE) == ([in_scene] if in_scene else [])


def test_repeats_of_a_diffuse_picture_are_named_once(panel: Panel) -> None:
    """The viewer repeats a texture about its centre; a glTF material has a note of its own."""
    panel.set(Base_Color=panel.image("a", panel.scaled(2, 3, 1)))
    repeats = "material 'Paint' needs repeats 2 × 3, offset 0.5, 0 in the Texture tab, since Collada files have none"
    for metal, notes in ((0.0, [repeats]), (1.0, ["face 0 'Paint' → set_Paint.glb; repeats 2 × 3"])):
        panel.set(Metallic=metal)
        encoded = api.encode_part(scene_of(SECOND_LIFE_UPLOAD), SECOND_LIFE_UPLOAD, path="set.dae")
        assert [text for text in encoded.messages if text.is_note] == notes


def test_repeats_are_those_of_the_viewer() -> None:
    """An independent formula of the viewer: rotate about the centre, repeat, move."""
    from meshferry.io_formats.core.shading import Mapping

    mapping = Mapping(scale=(2.0, -3.0), offset=(0.3, 0.6), rotation=np.pi / 6)
    assert shown_mapping(mapping) == "repeats 2 × -3, offset 0.166, 0.551, rotation 30°"
    u, v = 0.2, 0.9
    turned = (u - 0.5) * np.cos(np.pi / 6) + (v - 0.5) * np.sin(np.pi / 6)
    blender = 2.0 * (u * np.cos(np.pi / 6) + v * np.sin(np.pi / 6)) + 0.3
    apart = turned * 2.0 + 0.166 + 0.5 - blender
    assert apart == pytest.approx(round(apart), abs=1e-3)


def test_images_without_coordinates_lie_on_the_map_for_rendering(panel: Panel) -> None:
    panel.set(Base_Color=panel.image("a"), Roughness=panel.image("r", panel.uv("First"), is_data=True))
    panel.object.data.uv_layers["Second"].active_render = True
    shading = scene_of(UNIGINE_SCENE).materials[0].shading
    assert shading.base_color.image.mapping.uv_layer == 1 and shading.roughness.image.mapping.uv_layer == 0
    assert scene_of(SECOND_LIFE_UPLOAD).nodes[0].mesh.uvs[0].name == "Second"
