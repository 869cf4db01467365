"""The option Bake Materials changes the files of the materials that need it, and of no others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy
bpy = pytest.importorskip("bpy", reason="Blender is absent")
sys.path.insert(0, str(Path(__file__).parent))
from meshferry.io_formats import api  # noqa: E402
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD  # noqa: E402
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE  # noqa: E402
from test_material_losses import A, Panel, scene_of  # noqa: E402


@pytest.fixture
def panel(clean_blender: Any) -> Panel:
    made = Panel()
    for layer in made.object.data.uv_layers:
        layer.uv.foreach_set("vector", [0, 0, 1, 0, 1, 1, 0, 1] if layer.name == "First" else [0, 0, 0, 1, 1, 1, 1, 0])
    for number, name in enumerate("abm"):
        image = bpy.data.images.new(name, 4, 4, alpha=True)
        image.pixels.foreach_set(np.random.default_rng(number).random(64, np.float32))
    return made


def noise(p: Panel) -> Any:
    return p.node("TexNoise")


def mixed(p: Panel, *inputs: Any) -> Any:
    return p.node("Mix", *inputs, data_type="RGBA")


def ramp(p: Panel, value: Any) -> Any:
    return p.node("ValToRGB", value)


def shaders(p: Panel, factor: Any, other: str) -> None:
    """Mix another shader with the Principled BSDF."""
    p.set(Base_Color=A)
    p.show(p.node("MixShader", factor, p.node(other), p.shader.outputs[0]))


def group(p: Panel, kind: str) -> Any:
    """Return the output of a group with one node."""
    tree = bpy.data.node_groups.new("Group", "ShaderNodeTree")
    made = tree.nodes.new("ShaderNode" + kind)
    tree.interface.new_socket("Out", in_out="OUTPUT", socket_type=made.outputs[0].bl_idname)
    tree.links.new(made.outputs[0], tree.nodes.new("NodeGroupOutput").inputs[0])
    node = p.tree.nodes.new("ShaderNodeGroup")
    node.node_tree = tree
    return node.outputs[0]


def box(p: Panel) -> Any:
    found = p.image("a", p.tree.nodes.new("ShaderNodeTexCoord").outputs["Object"])
    found.node.projection = "BOX"
    return found


def with_alpha(p: Panel) -> None:
    found = p.image("a")
    p.set(Base_Color=found, Alpha=found.node.outputs["Alpha"])


def shown_on_second(p: Panel) -> None:
    p.object.data.uv_layers["Second"].active_render = True
    p.set(Base_Color=p.image("a"))


ROWS: dict[str, tuple[Any, bool, bool]] = {
    "constants": (lambda p: p.set(Base_Color=A, Roughness=0.2, Metallic=1.0), False, False),
    "image": (lambda p: p.set(Base_Color=p.image("a")), False, False),
    "image and colour": (lambda p: p.set(Base_Color=p.multiplied(p.image("a"), A)), True, False),
    "hue": (lambda p: p.set(Base_Color=p.node("HueSaturation", 0.8, 1.0, 1.0, 1.0, p.image("a"))), True, True),
    "ramp": (lambda p: p.set(Base_Color=ramp(p, p.image("a"))), True, True),
    "ramp of noise": (lambda p: p.set(Base_Color=ramp(p, noise(p))), True, True),
    "checker in a group": (lambda p: p.set(Base_Color=group(p, "TexChecker")), True, True),
    "constant nodes": (lambda p: p.set(Base_Color=p.node("HueSaturation", 0.8, 1, 1, 1, p.node("RGB"))), True, True),
    "noise at roughness": (lambda p: p.set(Roughness=noise(p)), True, True),
    "image at roughness": (lambda p: p.set(Roughness=p.image("r", is_data=True)), False, False),
    "normal map": (lambda p: p.set(Normal=p.node("NormalMap", 1.0, p.image("n", is_data=True))), False, False),
    "bump": (lambda p: p.set(Normal=p.node("Bump", 1.0, 1.0, None, noise(p))), True, True),
    "ramp at metal": (lambda p: p.set(Metallic=ramp(p, p.image("m"))), True, True),
    "mixed shaders": (lambda p: shaders(p, p.image("m"), "BsdfPrincipled"), True, True),
    "mixed images": (lambda p: p.set(Base_Color=mixed(p, p.image("m"), p.image("a"), p.image("b"))), True, True),
    "two UV maps": (
        lambda p: p.set(Base_Color=mixed(p, 0.5, p.image("a", p.uv("First")), p.image("b", p.uv("Second")))),
        *(True, True),
    ),
    "colour attribute": (lambda p: p.set(Base_Color=p.color("Dirt")), True, False),
    "mapping": (lambda p: p.set(Base_Color=p.image("a", p.scaled(2, 3, 1))), False, False),
    "box": (lambda p: p.set(Base_Color=box(p)), True, False),
    "alpha of the image": (with_alpha, False, False),
    "noise at alpha": (lambda p: p.set(Alpha=noise(p)), True, True),
    "transparent": (lambda p: shaders(p, noise(p), "BsdfTransparent"), True, True),
    "emission": (lambda p: p.set(Emission_Color=noise(p), Emission_Strength=1.0), True, True),
    "shader in a group": (lambda p: p.show(group(p, "BsdfPrincipled")), False, False),
    "glossy": (lambda p: p.show(p.node("BsdfGlossy")), True, True),
    "shown UV map": (shown_on_second, False, False),
}
"""Builders of materials, and whether upload sets and UNIGINE scenes need them to be baked."""


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_files_differ_only_where_bakes_are_needed(panel: Panel, row: str, tmp_path: Path) -> None:
    build, *needed = ROWS[row]
    build(panel)
    for file_format, is_needed in zip((SECOND_LIFE_UPLOAD, UNIGINE_SCENE), needed, strict=True):
        found = []
        for is_on in (False, True):
            folder = tmp_path / f"{file_format.name} {is_on}" / "data"
            folder.mkdir(parents=True)
            scene = scene_of(file_format, use_baked_materials=is_on, bake_size=64)
            assert any(text.code == "materials-baked" for text in scene.warnings) == (is_on and is_needed)
            api.write_scene(scene, folder / f"a{file_format.extensions[0]}", file_format)
            paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            found.append({str(path.relative_to(folder)): path.read_bytes() for path in paths})
        assert (found[0] != found[1]) == is_needed, file_format.name
