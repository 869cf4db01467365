"""New materials as ``.mat`` files and PNG textures, judged by reading them back as a project."""

from __future__ import annotations

import hashlib
import itertools
import random
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from meshferry.io_formats.core.messages import Kind, Report
from meshferry.io_formats.core.scene import Material
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
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.project.material_shading import shown_material
from meshferry.io_formats.unigine.project.new_assets import NewAsset
from meshferry.io_formats.unigine.project.new_materials import NewMaterials, material_assets
from meshferry.io_formats.unigine.project.project import open_folder
from meshferry.io_formats.unigine.project.project_textures import TextureFinder
from shading_meaning import assert_same, chunk, decoded, picture, png_of
from unigine_projects import write_project

VERSIONS = ["2.9.0.2", "2.16.1.0", "2.20.0.0"]
NAMES = {
    *(("material", name) for name in ("version", "name", "guid", "base_material")),
    *(("material/options", name) for name in ("two_sided", "transparent", "blend_src", "blend_dest")),
    *(("material/blend", name) for name in ("src", "dest")),
    *(("material/state", "name"), ("material/texture", "name"), ("material/texture", "wrap")),
    *(("material/parameter", name) for name in ("name", "expression", "use_expression")),
}
"""Attributes of elements that files of the engine have."""


def guid_of(name: str) -> str:
    return hashlib.sha1(name.encode()).hexdigest()


def written(*shadings: Shading | Material, version: str = "2.20.0.0") -> tuple[NewMaterials, Report]:
    report = Report()
    materials = [one if isinstance(one, Material) else Material(f"m{n}", shading=one) for n, one in enumerate(shadings)]
    return material_assets(materials, version, set(), report), report


def files_of(made: NewMaterials) -> dict[str, bytes]:
    guids = {asset.name: guid_of(asset.name) for asset in made.assets}
    return {asset.name: asset.encode(guids) for asset in made.assets}


def meta_of(asset: NewAsset) -> bytes:
    own = guid_of(asset.name)
    settings = "".join(f'<parameter type="{p.type}" name="{p.name}">{p.value}</parameter>' for p in asset.parameters)
    return (
        f'<asset version="2.20.0.0"><guid>{own}</guid><type>{asset.kind.value}</type><runtimes>'
        f'<runtime id="{own}" name="x" link="0"/></runtimes><parameters>{settings}</parameters></asset>'
    ).encode()


def read_back(made: NewMaterials, folder: Path) -> list[Shading]:
    """Return the shading of all materials of a project with the files."""
    metas = {f"{asset.name}.meta": meta_of(asset) for asset in made.assets}
    project = open_folder(write_project(folder / "data", files_of(made) | metas), Projects())
    textures = TextureFinder(project)
    found = []
    for name in made.names.values():
        material = project.material(guid_of(name))
        assert material is not None and material.name == name.removesuffix(".mat")
        shown = shown_material(material.name, material, textures.find, textures.load)
        assert not shown.not_shown and not shown.missing
        assert shown.material.shading is not None
        found.append(shown.material.shading)
    return found


def shadings(number: int) -> Iterator[Shading]:
    """Yield shadings that the engine's material can hold, with all combinations of few images and settings."""
    rng = random.Random(7)
    pictures = [picture("oak_alb.png"), picture("Elm.png", (4, 8)), picture("ash.png", (2, 2)), picture("elm.PNG")]
    mappings = [
        Mapping(),
        Mapping(uv_layer=1),
        Mapping(scale=(2.0, 3.0), offset=(0.25, -0.5)),
        Mapping(Projection.TOP_WORLD, scale=(2.0, 2.0)),
    ]

    def value() -> float:
        return rng.choice([0.0, 0.25, 0.5, 1.0, round(rng.random(), 3)])

    for _number in range(number):
        extension, mapping = rng.choice(list(Extension)), rng.choice(mappings)

        def image(*, is_color: bool = False, extension: Extension = extension, mapping: Mapping = mapping) -> ImageMap:
            return ImageMap(rng.choice(pictures), is_color, mapping, extension)

        def channel() -> Factor:
            found = image() if rng.random() < 0.6 else None
            return Factor(value(), found, rng.choice(list(Channel)), found is not None and rng.random() < 0.3)

        def color() -> Tint:
            rgb = rng.choice([(1.0, 1.0, 1.0), (value(), value(), value())])
            return Tint(rgb, image(is_color=True) if rng.random() < 0.6 else None)

        is_flat = mapping.projection is Projection.UV
        own = rng.choice(mappings)
        made = Shading(
            replace(color(), uses_vertex_color=rng.random() < 0.2), channel(), channel(), channel(), Tint(),
            opacity=rng.choice([Opacity.OPAQUE, Opacity.CLIP, Opacity.BLEND, Opacity.ADD]),
            alpha=channel(), alpha_power=rng.choice([1.0, 2.0]), is_two_sided=rng.random() < 0.5,
        )  # fmt: skip
        if rng.random() < 0.5 and is_flat:
            strength, down, blue, space = value(), rng.random() < 0.5, rng.random() < 0.7, rng.random() < 0.2
            normal = NormalMap(image(), strength, down and not space, blue or space, space)
            made = replace(made, normal=normal)
        if rng.random() < 0.5:
            occlusion = Factor(1.0, image(mapping=own), rng.choice(list(Channel)), rng.random() < 0.3)
            made = replace(made, occlusion=occlusion)
        if rng.random() < 0.5:
            emission = color()
            if emission.image is not None:
                emission = replace(emission, image=replace(emission.image, mapping=own))
            made = replace(made, emission=emission, emission_strength=value() * 5)
        yield made


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", VERSIONS)
def test_generated_materials_are_read_back_as_they_were(version: str, count: int, tmp_path: Path) -> None:
    given = list(shadings(count))
    made, report = written(*given, version=version)
    assert not [message for message in report.messages if message.is_loss]
    assert len({asset.name.lower() for asset in made.assets}) == len(made.assets)
    for read, shading in zip(read_back(made, tmp_path), given, strict=True):
        assert_same(read, shading)


def attributes_of(element: ET.Element, path: str) -> set[tuple[str, str]]:
    found = {(path, name) for name in element.attrib}
    return found.union(*(attributes_of(child, f"{path}/{child.tag}") for child in element))


@pytest.mark.parametrize("version", VERSIONS)
def test_only_elements_and_attributes_of_real_files_are_written(version: str) -> None:
    made, _report = written(*shadings(60), version=version)
    found: set[tuple[str, str]] = set()
    for name, data in files_of(made).items():
        if name.endswith(".mat"):
            root = ET.fromstring(data)
            assert root.get("guid") == guid_of(name) and root.get("version") == version
            hashed = hashlib.sha1(b"Unigine::mesh_base").hexdigest()
            stated = (name.removesuffix(".mat"), "mesh_base") if version == "2.9.0.2" else (None, hashed)
            assert (root.get("name"), root.get("base_material")) == stated
            assert data.startswith(b'<?xml version="1.0" encoding="utf-8"?>\n<material ') and data.endswith(
                b"</material>\n"
            )
            found |= attributes_of(root, root.tag)
    assert found <= NAMES
    assert (("material/blend", "src") in found) == (version != "2.20.0.0")


def test_the_names_are_those_of_the_samples(samples: Path) -> None:
    real: set[tuple[str, str]] = set()
    for path in samples.glob("unigine_*/**/*.mat"):
        try:
            root = ET.fromstring(path.read_bytes())
        except ET.ParseError:
            continue
        real |= attributes_of(root, root.tag)
    # no sample has the element that materials of SDK 2.16 and before have in place of two options
    assert {name for name in NAMES if name[0] != "material/blend"} <= real


def parameters(made: NewMaterials, name: str) -> dict[str, str]:
    asset = next(asset for asset in made.assets if asset.name == name)
    return {parameter.name: parameter.value for parameter in asset.parameters}


def test_textures_have_the_settings_of_their_slots() -> None:
    oak, elm = (ImageMap(picture(name)) for name in ("oak.png", "elm.jpg"))
    made, _report = written(
        Shading(Tint(image=oak), Factor(1.0, elm), normal=NormalMap(oak), occlusion=Factor(1.0, elm)),
        Shading(Tint(image=elm), normal=NormalMap(elm, is_green_down=True), opacity=Opacity.BLEND,
                alpha=Factor(1.0, elm, Channel.ALPHA), emission=Tint(image=oak), emission_strength=1.0),
        Shading(Tint(image=oak), opacity=Opacity.CLIP, alpha=Factor(1.0, oak, Channel.ALPHA)),
    )  # fmt: skip
    found = {
        asset.name: tuple(
            parameters(made, asset.name)[key] for key in ("preset_name", "image_format", "srgb_correction", "invert_g")
        )
        for asset in made.assets
        if asset.parameters
    }
    assert found == {
        "oak_alb.png": ("albedo (rgba)", "Auto (DXT1 or DXT5)", "1", "0"),
        "elm_sh.png": ("shading (rgb)", "DXT1", "1", "0"),
        "oak_n.png": ("normal map (rg)", "ATI2", "0", "1"),
        "elm_a.png": ("ambient occlusion", "ATI1", "0", "0"),
        "elm_alb.png": ("albedo (rgba)", "Auto (DXT1 or DXT5)", "1", "0"),
        "elm_n.png": ("normal map (rg)", "ATI2", "0", "0"),
        "oak_e.png": ("emission", "DXT1", "1", "0"),
    }
    assert list(parameters(made, "oak_n.png")) == sorted(parameters(made, "oak_n.png"))
    old, _report = written(Shading(Tint(image=oak)), version="2.9.0.0")
    assert "blur_radius" in parameters(made, "oak_n.png") and "blur_radius" not in parameters(old, "oak_alb.png")


@pytest.mark.parametrize(
    ("channels", "bits", "more", "is_copied"),
    [(3, 8, b"", True), (4, 8, b"", True), (4, 16, b"", False), (1, 8, b"", False), (3, 8, b"tRNS", False)],
)
def test_plain_png_files_are_copied(channels: int, bits: int, more: bytes, is_copied: bool) -> None:
    texture = picture("oak.png")
    assert texture.pixels is not None
    pixels = texture.pixels()[..., :channels].astype(np.uint16) * (257 if bits == 16 else 1)
    file = png_of(pixels, bits, chunk(more, bytes(6)) if more else b"")
    oak = ImageMap(replace(texture, read=lambda: file))
    shading = Shading(
        Tint(image=oak), Factor(1.0, oak, Channel.RED), Factor(0.5, oak, Channel.GREEN), normal=NormalMap(oak)
    )
    found = files_of(written(shading)[0])
    for name in ("oak_alb.png", "oak_sh.png", "oak_n.png"):
        assert (found[name] == file) == is_copied
        assert (decoded(found[name])[..., :3] == texture.pixels()[..., :3]).all() or channels == 1
    packed = files_of(written(replace(shading, roughness=Factor(1.0, oak, Channel.BLUE)))[0])
    assert packed["oak_sh.png"] != file


def test_images_without_pixels_are_copied_or_named() -> None:
    file = png_of(np.zeros((2, 2, 3), np.uint8))
    there, gone = Texture("a.png", data=file), Texture("b.jpg", path="/somewhere/b.jpg")
    made, report = written(Material("x", texture=there), Material("y", (0.5, 0.5, 0.5, 1.0), texture=gone))
    assert files_of(made)["a_alb.png"] == file
    assert [message.code for message in report.messages] == ["texture-not-written"]
    assert "b.jpg" in report.messages[0] and report.messages[0].item_names() == ["y"]


def test_materials_of_the_project_are_not_written() -> None:
    assert written(Material("x", identity="a" * 40, shading=Shading()))[0] == NewMaterials([], {})


def test_a_colour_alone_becomes_an_opaque_material(tmp_path: Path) -> None:
    made, report = written(Material("Wood", (0.5, 0.25, 0.125, 1.0)), Material("Glass", (1.0, 1.0, 1.0, 0.25)))
    wood, glass = read_back(made, tmp_path)
    assert wood.base_color.value == pytest.approx((0.5, 0.25, 0.125)) and wood.opacity is Opacity.OPAQUE
    assert (glass.opacity, glass.alpha.value) == (Opacity.BLEND, 0.25) and not report.messages


def test_names_are_distinct_and_valid_on_every_system() -> None:
    oak, other = (ImageMap(picture(name)) for name in ("a/Oak.png", "b\\oak.png"))
    taken = {"wood.mat"}
    shading = Shading(Tint(image=oak), normal=NormalMap(other))
    names = ["Wood", "WOOD", "a/b:c", "CON"]
    materials = [Material(name, shading=replace(shading, base_color=Tint(image=one)))
                 for name, one in zip(names, itertools.cycle((oak, other)))]  # fmt: skip
    made = material_assets(materials, "2.20.0.0", taken, Report())
    assert made.names == {"Wood": "Wood_2.mat", "WOOD": "WOOD_3.mat", "a/b:c": "a_b_c.mat", "CON": "CON_.mat"}
    assert [asset.name for asset in made.assets][:3] == ["Oak_alb.png", "oak_n.png", "oak_2_alb.png"]
    assert {asset.name.lower() for asset in made.assets} <= taken


def test_what_the_engine_has_no_place_for_is_named() -> None:
    oak, far = picture("oak.png", (6, 8)), Mapping(scale=(2.0, 2.0))
    image, other = ImageMap(oak), ImageMap(picture("far.png"), mapping=far)
    shading = Shading(
        Tint(image=image), roughness=Factor(1.0, other, Channel.GREEN), normal=NormalMap(other),
        specular_tint=Tint((1.0, 0.0, 0.0)),
        opacity=Opacity.DITHERED, alpha=Factor(1.0, image, Channel.ALPHA),
    )  # fmt: skip
    third = Shading(Tint(image=replace(image, mapping=Mapping(uv_layer=2))))
    turned = [Tint(image=replace(image, mapping=Mapping(rotation=angle))) for angle in (0.5, 1.0)]
    rotated = Shading(turned[0], emission=turned[1], emission_strength=1.0)
    _made, report = written(shading, third, rotated)
    assert {(message.code, message.kind) for message in report.messages} == {
        ("dithered-becomes-alpha-test", Kind.CHANGE),
        ("specular-tint-left-out", Kind.LOSS),
        ("image-mapping-left-out", Kind.LOSS),
        ("uv-map-left-out", Kind.LOSS),
        ("image-rotation-left-out", Kind.LOSS),
        ("texture-size", Kind.NOTE),
    }
    assert [message.code for message in report.messages].count("image-rotation-left-out") == 1
    assert sum("far.png" in message for message in report.messages) == 1


def test_numbers_that_are_not_finite_are_left_out() -> None:
    shading = Shading(Tint((float("inf"), 0.0, 0.0)), roughness=Factor(float("nan")), metallic=Factor(0.25))
    made, report = written(shading)
    (text,) = [data.decode() for name, data in files_of(made).items() if name.endswith(".mat")]
    assert "nan" not in text and "inf" not in text and ">0.25<" in text
    assert [message.code for message in report.messages] == ["not-finite-parameter"] * 2


def test_an_alpha_test_at_another_value_becomes_part_of_the_image(tmp_path: Path) -> None:
    image = ImageMap(picture("leaf.png"), is_color=True)
    clip = Shading(
        Tint(image=image), opacity=Opacity.CLIP, alpha=Factor(0.5, image, Channel.ALPHA), alpha_threshold=0.2
    )
    inverted = replace(clip, alpha=replace(clip.alpha, is_inverted=True), alpha_power=2.0)
    constant = replace(clip, alpha=Factor(0.3))
    given = [clip, inverted, constant, replace(constant, alpha=Factor(0.1))]
    made, _report = written(*given)
    for read, shading in zip(read_back(made, tmp_path), given, strict=True):
        assert_same(read, shading)


def test_a_constant_opacity_leaves_out_the_alpha_of_an_image(tmp_path: Path) -> None:
    texture = picture("leaf.png")
    assert texture.pixels is not None
    file = png_of(texture.pixels())
    image = ImageMap(replace(texture, read=lambda: file), is_color=True)
    blended = Shading(Tint(image=image), opacity=Opacity.BLEND, alpha=Factor(0.5))
    given = [blended, replace(blended, alpha=Factor(1.0, image, Channel.ALPHA))]
    for read, shading in zip(read_back(written(*given)[0], tmp_path), given, strict=True):
        assert_same(read, shading)
