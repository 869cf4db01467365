"""Materials of UNIGINE projects as neutral shading: which textures, channels, factors and mappings are used."""

from __future__ import annotations

from typing import Any

import pytest
from meshferry.io_formats.core.shading import Channel, Extension, Opacity, Projection, Shading, Texture
from meshferry.io_formats.unigine.project.guids import FoundTexture, Rule
from meshferry.io_formats.unigine.project.material_shading import ShownMaterial, not_shown_warnings, shown_material
from meshferry.io_formats.unigine.project.project_materials import ProjectMaterial, TextureUse


def find(reference: str) -> FoundTexture:
    """Return the file ``reference``; ``core:NAME`` is one of the engine's, ``gone…`` missing, ``gl…`` has green up."""
    if reference.startswith("core:"):
        return FoundTexture(reference, None, None, Rule.ENGINE, engine_name=reference[5:])
    file = None if reference.startswith("gone") else reference
    rule = Rule.ASSET if file else Rule.MISSING
    return FoundTexture(reference, file, file, rule, reference.startswith("gl"), reference)


def stated(textures: dict[str, TextureUse], base: str = "mesh_base", **values: Any) -> ProjectMaterial:
    return ProjectMaterial("brick", "ab" * 20, "walls/brick.mat", base, textures=textures, **values)


def shown(slots: dict[str, str] | None = None, **values: Any) -> ShownMaterial:
    """Return the shading of a material with these references by slot."""
    uses = {slot: TextureUse(reference) for slot, reference in (slots or {}).items()}
    return shown_material("brick", stated(uses, **values), find, lambda found: Texture(found.name))


def shading(slots: dict[str, str] | None = None, **values: Any) -> Shading:
    made = shown(slots, **values).material.shading
    assert made is not None
    return made


def name_of(value: Any) -> str | None:
    """Return the name of the image of a factor, tint or normal map."""
    return None if value is None or value.image is None else value.image.texture.name


ALL = {
    "albedo": "alb.png",
    "shading": "sh.png",
    "normal": "n.png",
    "diffuse": "d.png",
    "specular": "s.png",
    "ambient_occlusion": "a.png",
    "emission": "e.png",
}


def test_the_metalness_workflow_uses_its_own_textures() -> None:
    made = shading(ALL, parameters={"metalness": "0.5", "roughness": "0.25"})
    assert (name_of(made.base_color), made.base_color.image.is_color) == ("alb.png", True)
    assert (name_of(made.metallic), made.metallic.channel, made.metallic.value) == ("sh.png", Channel.RED, 0.5)
    assert (name_of(made.roughness), made.roughness.channel, made.roughness.value) == ("sh.png", Channel.GREEN, 0.25)
    assert made.metallic.image == made.roughness.image and not made.metallic.image.is_color
    assert name_of(made.specular) is None and made.specular.value == 0.5
    assert name_of(made.normal) == "n.png" and made.normal.is_green_down and made.normal.has_blue
    assert made.occlusion is None and made.emission is None, "their states are off"
    assert made.opacity is Opacity.OPAQUE and name_of(made.alpha) is None


def test_a_reference_without_a_guid_is_no_missing_texture() -> None:
    made = shading({"albedo": "guid://", "normal": " "})
    assert name_of(made.base_color) is None and name_of(made.normal) is None


def test_states_switch_textures_on() -> None:
    made = shading(
        ALL, states={"ao_map": "1", "emission": "1", "specular_map": "1"}, parameters={"emission_scale": "3"}
    )
    assert (name_of(made.occlusion), made.occlusion.channel) == ("a.png", Channel.RED)
    assert (name_of(made.emission), made.emission.image.is_color, made.emission_strength) == ("e.png", True, 3.0)
    assert (name_of(made.specular), made.specular.channel) == ("sh.png", Channel.BLUE)


def test_the_specular_workflow_uses_its_own_textures() -> None:
    made = shown(ALL, states={"workflow": "1"}, parameters={"gloss": "0.75", "specular_color": "1 1 1 1"})
    found = made.material.shading
    assert found is not None and name_of(found.base_color) == "d.png"
    assert found.metallic.value == 0.0 and name_of(found.metallic) is None
    assert (name_of(found.roughness), found.roughness.channel) == ("s.png", Channel.ALPHA)
    assert found.roughness.is_inverted and found.roughness.value == 0.75
    assert name_of(found.specular_tint) == "s.png" and not found.specular_tint.image.is_color
    assert made.not_shown == ("exact reflections of the specular workflow",)


def test_defaults_are_those_of_the_base() -> None:
    made = shading()
    assert made.base_color.value == (1.0, 1.0, 1.0)
    assert (made.metallic.value, made.roughness.value, made.specular.value) == (0.0, 1.0, 0.5)
    assert not made.is_two_sided and made.opacity is Opacity.OPAQUE


def test_colours_are_converted_to_linear() -> None:
    made = shading(parameters={"albedo_color": "0.5 0 1 0.25"}, options={"transparent": "2"})
    assert made.base_color.value == pytest.approx((0.21404, 0.0, 1.0), abs=1e-4)
    assert made.alpha.value == 0.25, "alpha is not encoded"


@pytest.mark.parametrize(
    ("options", "opacity"),
    [
        ({}, Opacity.OPAQUE),
        ({"transparent": "1"}, Opacity.CLIP),
        ({"transparent": "2"}, Opacity.BLEND),
        ({"alpha_test": "1"}, Opacity.CLIP),
        ({"transparent": "alpha_test"}, Opacity.CLIP),
        ({"transparent": "2", "blend_src": "5", "blend_dest": "one"}, Opacity.ADD),
    ],
)
def test_options_decide_how_alpha_is_used(options: dict[str, str], opacity: Opacity) -> None:
    made = shading(ALL, options=options, parameters={"transparent": "0.5", "transparent_pow": "2"})
    assert made.opacity is opacity
    if opacity is not Opacity.OPAQUE:
        assert made.alpha.image == made.base_color.image, "one image serves colour and alpha"
        assert (made.alpha.channel, made.alpha.value, made.alpha_power) == (Channel.ALPHA, 0.5, 2.0)


def test_a_source_factor_of_one_ignores_alpha() -> None:
    made = shading(ALL, options={"transparent": "2", "blend_src": "2", "blend_dest": "2"})
    assert made.opacity is Opacity.ADD and made.alpha.image is None and made.alpha.value == 1.0


def test_opacity_in_the_normal_map_leaves_its_third_component_to_be_computed() -> None:
    made = shading(ALL, options={"transparent": "1"}, states={"opacity_map": "1"})
    assert (name_of(made.alpha), made.alpha.channel) == ("n.png", Channel.BLUE)
    assert not made.normal.has_blue


def test_normals_of_sources_with_green_up_and_of_object_space() -> None:
    assert not shading({"normal": "gl_n.png"}).normal.is_green_down
    made = shading({"normal": "n.png"}, states={"normal_map": "1"}, parameters={"normal_scale": "0.5"}).normal
    assert (made.is_object_space, made.is_green_down, made.strength) == (True, False, 0.5)


@pytest.mark.parametrize(
    ("state", "projection", "layer"),
    [
        ("0", Projection.UV, 0),
        ("1", Projection.UV, 1),
        ("2", Projection.BOX_OBJECT, 0),
        ("5", Projection.TOP_WORLD, 0),
        *((text, Projection.UV, 0) for text in ("99", "-1", "x", "\u00b2", "9" * 5000)),
    ],
    ids=lambda value: str(value)[:9],
)
def test_mapping_and_transform(state: str, projection: Projection, layer: int) -> None:
    made = shown(ALL, states={"base_mapping": state}, parameters={"uv_transform": "2 4 0.25 0.5"})
    found = made.material.shading.base_color.image.mapping
    assert (found.projection, found.uv_layer, found.scale) == (projection, layer, (2.0, 4.0))
    if projection is Projection.UV:
        # v runs down in the file: v_file' = (1 - v) * 4 + 0.5, and v' = 1 - v_file'
        v = 0.3
        assert v * found.scale[1] + found.offset[1] == pytest.approx(1 - ((1 - v) * 4 + 0.5))
        assert found.offset[0] == 0.25 and made.material.shading.normal is not None
    else:
        assert made.material.shading.normal is None and "triplanar" in made.not_shown[0]


def test_emission_and_occlusion_may_have_a_mapping_of_their_own() -> None:
    states = {"ao_map": "1", "emission": "1", "ao_mapping": "2", "base_mapping": "0", "emission_mapping": "0"}
    assert shading(ALL, states={**states, "ao_mapping": "\u00b2"}).occlusion.image.mapping.uv_layer == 0
    made = shading(ALL, states=states, parameters={"ao_uv_transform": "3 3 0 0", "uv_transform": "2 2 0 0"})
    assert (made.occlusion.image.mapping.uv_layer, made.occlusion.image.mapping.scale) == (1, (3.0, 3.0))
    assert made.emission.image.mapping == made.base_color.image.mapping


def test_engine_textures_become_values_and_missing_ones_leave_theirs() -> None:
    slots = {"albedo": "core:black", "shading": "core:red", "normal": "core:normal"}
    made = shown(slots, parameters={"metalness": "0.5", "roughness": "0.75"})
    found = made.material.shading
    assert found.base_color.value == (0.0, 0.0, 0.0) and found.normal is None
    assert (found.metallic.value, found.roughness.value) == (0.5, 0.0) and not made.missing
    made = shown(
        {"albedo": "gone.png", "shading": "gone_sh.png", "specular": "gone_s.png"}, parameters={"metalness": "1"}
    )
    assert made.material.shading.base_color.value == (1.0, 1.0, 1.0) and made.material.shading.metallic.value == 1.0
    assert made.missing == {"gone.png": "albedo", "gone_sh.png": "shading"}
    assert made.material.properties["Missing Texture (albedo)"] == "gone.png"
    assert "Missing Texture (specular)" not in made.material.properties, "its workflow is off"


def test_vertex_colours_need_both_states() -> None:
    assert shading(states={"vertex_color": "1", "vertex_albedo": "1"}).base_color.uses_vertex_color
    assert not shading(states={"vertex_color": "1"}).base_color.uses_vertex_color


def test_wrapping() -> None:
    uses = {"albedo": TextureUse("alb.png", "clamp"), "normal": TextureUse("n.png", "border")}
    made = shown_material("brick", stated(uses), find, lambda found: Texture(found.name)).material.shading
    assert made.base_color.image.extension is Extension.EXTEND and made.normal.image.extension is Extension.CLIP


def test_graphs_by_their_inputs_words_and_postfixes() -> None:
    by_input = {"1" * 40: ("Albedo",), "2" * 40: ("Metalness", "Roughness"), "3" * 40: ("Normal Tangent Space",)}
    slots = dict(zip(by_input, ("x.png", "y.png", "z.png"), strict=True))
    made = shading(slots, base="graph", inputs=by_input)
    assert (name_of(made.base_color), name_of(made.metallic), name_of(made.normal)) == ("x.png", "y.png", "z.png")
    assert (made.metallic.value, made.roughness.value, made.roughness.channel) == (1.0, 1.0, Channel.GREEN)
    made = shading({"albedo": "q.png", "4" * 40: "rock_sh.png", "5" * 40: "rock_n.texture"}, base="graph")
    assert (name_of(made.base_color), name_of(made.roughness)) == ("q.png", "rock_sh.png")
    assert name_of(made.normal) == "rock_n.texture"
    assert shading(base="graph", graph_parent="mesh_transparent").opacity is Opacity.BLEND


PAINT = "0.5 0.25 1 1"
RED = "1 0 0 1"


@pytest.mark.parametrize("base", ["graph", "cd" * 20])
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"albedo_tint": PAINT, "flakes": "0.3", "tint": RED}, PAINT),
        ({"Base Color": PAINT, "tint_b": RED}, PAINT),
        ({"baseColour": "0.5, 0.25, 1"}, PAINT),
        ({"emission_tint": RED, "paint_tint": PAINT, "specular_base": RED, "detail_albedo": RED}, PAINT),
        ({"paint_albedo": PAINT, "base_layer": RED, "second_tint": RED}, PAINT),
        ({"diffuse_1": PAINT, "tint_1": RED, "tint_2": RED}, PAINT),
        ({"base_uv_transform": "2 2 0 0", "base_metalness": "0.5", "car_tint": PAINT}, PAINT),
        ({"albedo_channels": "1 0 0 0", "base_rotation": "0 0 90", "tint_normal": "0 0 1"}, None),
        ({"tint_1": PAINT, "tint_2": RED}, None),
        ({"albedo_1": PAINT, "albedo_2": RED, "base_layer": RED}, None),
        ({"emission_color": RED, "specular_tint": RED, "roughness": "0.5", "albedo": "nan 0 0"}, None),
        ({}, None),
    ],
)
def test_a_colour_of_a_graph_becomes_the_base_colour(
    base: str, parameters: dict[str, str], expected: str | None
) -> None:
    made = shown(base=base, parameters=parameters)
    assert made.material.shading is not None
    linear = {PAINT: (0.21404, 0.05088, 1.0), None: (1.0, 1.0, 1.0)}[expected]
    assert made.material.shading.base_color.value == pytest.approx(linear, abs=1e-5)
    assert ("colours of the graph" in made.not_shown) == (expected is None)
    stated = {f"Parameter ({name})": value for name, value in parameters.items()}
    assert stated.items() <= made.material.properties.items()


def test_graphs_without_their_colours_are_named() -> None:
    made = [shown(slots, base="graph") for slots in ({}, {"albedo": "a.png"}, {"albedo": "a.png"}, {})]
    sentences = not_shown_warnings(made)
    assert sentences[0] == "2 materials without the colours of their graph: 'brick', 'brick'"
    assert sentences[1].startswith("4 materials shown without nodes of the material graph: ")
    assert "colours" not in "".join(not_shown_warnings([shown(parameters={"tint_1": RED, "tint_2": RED})]))


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, 0.3),
        ({"roughness": "0.1", "emission_opacity": "0.9", "opacity_power": "2", "alpha_test": "0.9"}, 0.3),
        ({"opacity": "0.6", "Opacity 2": "0.1"}, 0.6),
        ({"Glass Opacity": "0.75", "transparency": "0.5"}, 0.75),
        ({"transparency": "0.8"}, 0.2),
        ({"opacity_1": "0.6", "opacity_2": "0.7"}, 0.3),
        ({"albedo_tint": "1 1 1 0.5"}, 0.5),
        ({"transparent": "0.4"}, 0.4),
    ],
)
def test_blended_graphs_are_transparent(parameters: dict[str, str], expected: float) -> None:
    """Their alpha is often computed, for example from the angle of view."""
    made = shading(base="graph", graph_parent="mesh_transparent", parameters=parameters)
    assert made.opacity is Opacity.BLEND and made.alpha.value == pytest.approx(expected)
    missing = shading(base="cd" * 20, options={"transparent": "2"}, parameters=parameters)
    assert missing.opacity is Opacity.BLEND and missing.alpha.value == pytest.approx(expected)
    opaque = shading(base="graph", parameters=parameters)
    assert opaque.opacity is Opacity.OPAQUE and opaque.alpha.value == 1.0
    clipped = shading({"albedo": "a.png"}, base="graph", options={"alpha_test": "1"})
    assert (clipped.alpha.value, name_of(clipped.alpha)) == (1.0, "a.png")


def test_textures_of_blended_graphs_are_their_opacity_where_they_feed_it() -> None:
    blended: dict[str, Any] = {"base": "graph", "graph_parent": "mesh_transparent"}
    made = shading({"albedo": "a.png", "opacity": "o.png"}, **blended)
    assert (name_of(made.alpha), made.alpha.channel, made.alpha.value) == ("o.png", Channel.RED, 1.0)
    made = shading({"x": "a.png"}, inputs={"x": ("Albedo", "Opacity")}, **blended)
    assert (name_of(made.alpha), made.alpha.channel, made.alpha.value) == ("a.png", Channel.ALPHA, 1.0)
    made = shading({"x": "a.png"}, inputs={"x": ("Albedo",)}, **blended)
    assert (name_of(made.alpha), made.alpha.value) == (None, 0.3)


def test_other_bases_show_their_colour() -> None:
    made = shown(ALL, base="decal_base", parameters={"albedo_color": "1 0 0 1"})
    assert name_of(made.material.shading.base_color) == "alb.png" and name_of(made.material.shading.normal) is None
    assert made.not_shown == ("base material 'decal_base'",)


def test_settings_without_a_counterpart_are_named_once_for_all_materials() -> None:
    made = shown(states={"detail": "1", "parallax": "1"})
    assert made.not_shown == ("detail maps", "parallax")
    assert made.material.properties["Not Shown"] == "detail maps, parallax"
    assert made.material.properties["File"] == "walls/brick.mat" and made.material.identity == "ab" * 20
    first, second = not_shown_warnings([made] * 7)
    assert first.startswith("7 materials shown without detail maps: ") and first.endswith("'brick' and 2 more")
    assert "parallax" in second


@pytest.mark.parametrize("text", ["", "nan", "red green", "1e999 1 1 1", "1"])
def test_bad_numbers_leave_the_default(text: str) -> None:
    made = shading(parameters={"albedo_color": text, "uv_transform": text, "roughness": text})
    assert made.base_color.value == pytest.approx((1.0, 1.0, 1.0)) and made.roughness.value == 1.0
