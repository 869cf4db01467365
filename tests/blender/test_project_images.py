"""Images of a project's textures: not decoded, packed or linked, and found again by later imports."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import courtyard
import glb_oracle
import numpy as np
import pytest
import texture_oracle as oracle
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.core.scene import Material
from meshferry.io_formats.core.shading import Channel, Factor, ImageMap, Mapping, Opacity, Shading, Texture, Tint
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.project.project import open_project
from meshferry.io_formats.unigine.project.project_textures import texture_of

bpy = pytest.importorskip("bpy", reason="Blender is absent")
from meshferry.blender_data import image_decoding  # noqa: E402
from meshferry.blender_data.importing.project_images import ProjectImages  # noqa: E402

pytestmark = pytest.mark.needs_bpy


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return courtyard.make(tmp_path_factory.mktemp("courtyard"))


@pytest.fixture
def data(unchanged: Path, tmp_path: Path) -> Path:
    """Return a project that the test may change."""
    return shutil.copytree(unchanged, tmp_path / "data")


class Import:
    """The images of one import of a project."""

    def __init__(self, data: Path, *, is_linked: bool = False) -> None:
        project = open_project(data / "courtyard.world", Projects())
        assert project is not None
        self.project = project
        self.made: list[Any] = []
        self.files: list[Path] = []
        self.messages: list[Any] = []
        self.images = ProjectImages(
            is_linked=is_linked, keep=self.keep, keep_file=self.files.append, report=Report(self.messages)
        )

    @property
    def warnings(self) -> list[Any]:
        return list(dict.fromkeys(self.messages))

    def keep(self, block: Any) -> Any:
        self.made.append(block)
        return block

    def texture(self, path: str) -> Texture:
        texture = texture_of(self.project, self.project.texture(path))
        assert texture is not None
        return texture

    def image(self, path: str, *, is_color: bool = True) -> Any:
        return self.images.image(self.texture(path), is_color=is_color)


def of_runtime(name: str) -> str:
    """Return the reference to a texture by its runtime."""
    return "guid://" + Path(courtyard.texture(name)).stem


def pixels(image: Any) -> np.ndarray[Any, Any]:
    """Return (H, W, 4) in 8-bit steps, rows from the top."""
    values = np.empty(image.size[0] * image.size[1] * 4, np.float32)
    image.pixels.foreach_get(values)
    return values.reshape(image.size[1], image.size[0], 4)[::-1] * 255


@pytest.mark.parametrize(
    ("reference", "name", "size"),
    [
        (of_runtime("tiles_alb"), "tiles_alb.png", 256),  # the source of a runtime
        (of_runtime("wood_alb"), "wood_alb.png", 256),  # the source of a missing runtime
        (of_runtime("brick_alb"), "brick_alb", 256),  # tx11 without a source
        (of_runtime("leaves_alb"), "leaves_alb", 128),  # tx10, BC3
        (of_runtime("barrel_ao"), "barrel_ao", 64),  # BC4
        ("textures/glow.png", "glow.png", 32),
        ("textures/soil_alb.dds", "soil_alb.dds", 64),
    ],
)
def test_each_kind_of_file_is_packed(unchanged: Path, reference: str, name: str, size: int) -> None:
    job = Import(unchanged)
    image = job.image(reference)
    assert image.name == name and image.packed_file is not None
    assert not image.has_data, "it is decoded already"
    assert tuple(image.size) == (size, size)
    assert image.alpha_mode == "CHANNEL_PACKED" and image.colorspace_settings.name == "sRGB"
    assert job.warnings == [] and job.files == []
    known = image_decoding.mean_of_dds(image.packed_file.data)
    assert job.images.means[image] == known, "its content would be copied for the mean"
    assert not Path(bpy.path.abspath(image.filepath)).is_relative_to(unchanged) or name.endswith(".png")


def test_the_path_of_a_file_need_not_be_utf_8(unchanged: Path) -> None:
    job = Import(unchanged)
    texture = Texture("glow.png", source="/\udce4/glow.png", read=(unchanged / "textures/glow.png").read_bytes)
    image = job.images.image(texture, is_color=True)
    assert image is not None and image.meshferry.source_path == "/?/glow.png"


def test_the_picture_is_that_of_the_file(unchanged: Path) -> None:
    decoder = pytest.importorskip("texture2ddecoder", reason="texture2ddecoder is absent")
    job = Import(unchanged)
    found = pixels(job.image(of_runtime("barrel_n"), is_color=False))
    _code, width, height, blocks = oracle.pixels_of_texture((unchanged / courtyard.texture("barrel_n")).read_bytes())
    wanted = np.frombuffer(decoder.decode_bc5(blocks, width, height), np.uint8).reshape(height, width, 4)
    assert np.abs(found[..., :2] - wanted[..., [2, 1]]).max() < 2.01


def test_each_file_is_one_image_for_colors_and_one_for_numbers(unchanged: Path) -> None:
    job = Import(unchanged)
    color, number = job.image(of_runtime("tiles_n")), job.image(of_runtime("tiles_n"), is_color=False)
    assert color != number and number.colorspace_settings.name == "Non-Color"
    assert job.image("textures/tiles_n.png", is_color=False) == number, "by its path"
    again = Import(unchanged)
    assert again.image(of_runtime("tiles_n")) == color
    assert again.image(of_runtime("tiles_n"), is_color=False) == number
    assert again.made == [] and len(bpy.data.images) == 2


@pytest.mark.parametrize("change", ["FILE", "PAINTED"])
def test_a_changed_image_is_not_used_again(data: Path, change: str) -> None:
    before = Import(data).image("textures/glow.png")
    if change == "FILE":
        os.utime(data / "textures/glow.png", (1, 1))
    else:
        before.pixels[0] = 0.5
        assert before.is_dirty
    assert Import(data).image("textures/glow.png") != before


def test_linked_images_are_files(data: Path, tmp_path: Path) -> None:
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    job = Import(data, is_linked=True)
    source, wrapped = job.image(of_runtime("tiles_alb")), job.image(of_runtime("brick_alb"))
    assert source.packed_file is None and Path(source.filepath) == data / "textures" / "tiles_alb.png"
    assert Path(wrapped.filepath) == tmp_path / "textures" / "brick_alb.dds" == job.files[1]
    assert job.files[0] == tmp_path / "textures"
    assert wrapped.packed_file is None and tuple(wrapped.size) == (256, 256)
    content = job.files[1].read_bytes()
    job.files[1].write_bytes(b"of the user")
    bpy.data.images.remove(wrapped)
    again = Import(data, is_linked=True)
    again.image(of_runtime("brick_alb"))
    assert again.files == [tmp_path / "textures" / "brick_alb_2.dds"] and again.files[0].read_bytes() == content
    assert job.files[1].read_bytes() == b"of the user"
    third = Import(data, is_linked=True)
    third.image(of_runtime("brick_alb"), is_color=False)
    assert third.files == [], "the same content is not written again"


def test_before_the_blend_file_is_saved_textures_are_packed(unchanged: Path) -> None:
    job = Import(unchanged, is_linked=True)
    assert job.image(of_runtime("brick_alb")).packed_file is not None
    assert job.image(of_runtime("barrel_n")).packed_file is not None
    assert job.image(of_runtime("tiles_alb")).packed_file is None
    (said,) = job.warnings
    assert "before it is saved" in said


def volume(data: Path) -> None:
    (data / "textures/soil_alb.dds").write_bytes(oracle.dds(4, 4, bytes(64), fourcc=b"DXT1", caps2=0x200000))


def pointer(data: Path) -> None:
    (data / "textures/soil_alb.dds").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")


def no_image(data: Path) -> None:
    (data / "textures/soil_alb.dds").write_bytes(b"no picture")


@pytest.mark.parametrize(
    ("spoil", "reason"), [(volume, "volume"), (pointer, "git lfs pull"), (no_image, "not an image file")]
)
def test_an_unreadable_texture_is_left_out_and_named_once(
    data: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(data)
    job = Import(data)
    assert job.image("textures/soil_alb.dds") is None
    assert job.image("textures/soil_alb.dds", is_color=False) is None
    assert job.made == [] and len(bpy.data.images) == 0
    job.images.report()
    (said,) = job.warnings
    assert said.startswith("1 texture left out: ") and reason in said and said.endswith("'soil_alb.dds'")


def test_a_runtime_takes_the_place_of_an_unreadable_source(data: Path) -> None:
    for name in ("tiles_alb", "brick_n"):
        path = data / f"textures/{name}.png"
        path.write_bytes(path.read_bytes()[:1000])
    for is_linked in (False, True):
        job = Import(data, is_linked=is_linked)
        image = job.image(of_runtime("tiles_alb"))
        assert tuple(image.size) == (256, 256) and image.packed_file is not None
        # its runtime has the green of normals in the other direction
        assert job.image(of_runtime("brick_n"), is_color=False) is None


def test_an_import_that_fails_leaves_neither_images_nor_files(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meshferry.blender_data.importing import importer

    def fail(_job: Any) -> None:
        assert len(bpy.data.images) == 3 and (tmp_path / "textures" / "barrel_alb.dds").is_file()
        raise RuntimeError("broken off")

    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    monkeypatch.setattr(importer, "_link", fail)
    monkeypatch.setenv("MESHFERRY_RAISE", "1")
    with pytest.raises(RuntimeError, match="broken off"):
        bpy.ops.import_scene.unigine(filepath=str(data / courtyard.mesh("bucket")), project_textures="LINK")
    assert len(bpy.data.images) == 0 and len(bpy.data.materials) == 0
    assert not (tmp_path / "textures").exists()


def test_a_wrapped_texture_is_exported_as_png(unchanged: Path, tmp_path: Path) -> None:
    """Viewers and most programs do not read compressed DDS files."""
    from meshferry.blender_data.addon_formats import image_files
    from meshferry.blender_data.exporting.reading import material_reading

    image = Import(unchanged).image(of_runtime("leaves_alb"))
    before = image.packed_file.data[:4]
    report = Report()
    texture = material_reading.read_texture(image, report)
    assert not report.messages
    assert texture.name == "leaves_alb.png" and texture.data is not None
    found = glb_oracle.read_png(texture.data).astype(float)
    assert found.shape == (128, 128, 4) and np.abs(found - pixels(image)).max() < 1
    with image_files.own_image_files(tmp_path, "plant", [image]):
        (path,) = tmp_path.rglob("*.*")
        assert path.name == "plant.leaves_alb.png" == Path(image.filepath).name
        assert path.read_bytes() == texture.data
    assert before == b"DDS " and image.packed_file is not None


# -- JPEG 2000 ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def codestream(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a lossless codestream of JPEG 2000 with 64 by 32 pixels and alpha, made by Blender."""
    path = tmp_path_factory.mktemp("jpeg_2000") / "picture.j2c"
    image = bpy.data.images.new("Picture", 64, 32, alpha=True)
    image.colorspace_settings.name = "Non-Color"
    image.pixels.foreach_set(np.random.default_rng(6).random(64 * 32 * 4).astype(np.float32))
    scene = bpy.context.scene
    scene.view_settings.view_transform = "Raw"
    settings = scene.render.image_settings
    settings.file_format, settings.color_mode, settings.quality = "JPEG2000", "RGBA", 100
    settings.jpeg2k_codec = "J2K"
    image.save_render(str(path), scene=scene)
    data = path.read_bytes()
    assert data.startswith(b"\xff\x4f\xff\x51"), "it has no container"
    return data


def member(archive: Path, content: bytes, name: str = "leaf", *, has_alpha: bool | None = True) -> Texture:
    """Return the texture of a picture in an archive."""
    return Texture(name, source=f"{archive}/{name}", read=lambda: content, has_alpha=has_alpha)


def test_materials_of_jpeg_2000_pictures_are_made_without_decoding_them(codestream: bytes, tmp_path: Path) -> None:
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.blender_data.importing.materials import MaterialFinder

    archive = tmp_path / "region.oar"
    archive.write_bytes(b"archive")
    given = []
    for number in range(3):
        texture = member(archive, codestream, f"leaf{number // 2}")
        image = ImageMap(texture, is_color=True, mapping=Mapping(rotation=0.5))
        tint = Tint((0.5, 1.0, 1.0), image)
        alpha = Factor(0.5, image, Channel.ALPHA)
        shading = Shading(Tint(image=image), emission=tint, opacity=Opacity.DITHERED, alpha=alpha)
        given.append(Material(f"m{number}", shading=shading))
    finder = MaterialFinder(ImportOptions.of(), given=given)
    for material in given:
        made = finder.find(material.name)
        assert made is not None
        (shader,) = (node for node in made.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
        assert shader.inputs["Alpha"].is_linked
    finder.report_textures()
    images = list(bpy.data.images)
    assert [image.name for image in images] == ["leaf0", "leaf1"], "one image for equal pictures"
    for image in images:
        assert not image.has_data, "it is decoded already"
        assert image.packed_file.data == codestream and image.filepath == f"//textures/{image.name}.j2c"
        assert image.alpha_mode == "CHANNEL_PACKED" and image.colorspace_settings.name == "sRGB"
    again = MaterialFinder(ImportOptions.of({"use_existing_materials": False}), given=given)
    assert again.find("m0") is not None and len(bpy.data.images) == 2, "while the archive is unchanged"
    archive.write_bytes(b"changed archive")
    last = MaterialFinder(ImportOptions.of({"use_existing_materials": False}), given=given)
    assert last.find("m0") is not None and len(bpy.data.images) == 3


@pytest.mark.parametrize("has_alpha", [True, False])
def test_linked_jpeg_2000_pictures_are_written_as_png(codestream: bytes, tmp_path: Path, has_alpha: bool) -> None:
    from meshferry.blender_data.image_decoding import decode

    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    files: list[Path] = []
    messages: list[Any] = []
    job = ProjectImages(is_linked=True, keep=lambda block: block, keep_file=files.append, report=Report(messages))
    image = job.image(member(tmp_path / "region.oar", codestream, has_alpha=has_alpha), is_color=True)
    assert files == [tmp_path / "textures", tmp_path / "textures" / "leaf.png"]
    assert Path(image.filepath) == files[1] and image.packed_file is None
    found = glb_oracle.read_png(files[1].read_bytes())
    expected = decode(codestream, "leaf")[::-1]
    np.testing.assert_array_equal(found, expected if has_alpha else expected[..., :3])
    assert job.image(member(tmp_path / "region.oar", b"\xff\x4f\xff\x51 cut", "bad"), is_color=True) is None
    job.report()
    assert "1 texture left out: Blender cannot decode the image 'bad': 'bad'" in str(messages[0])


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_linked_pictures_are_not_written_through_a_planted_link(codestream: bytes, tmp_path: Path) -> None:
    (tmp_path / "in" / "textures").mkdir(parents=True)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "in" / "scene.blend"))
    (tmp_path / "in" / "textures" / "leaf.png").symlink_to(tmp_path / "victim")
    job = ProjectImages(is_linked=True, keep=lambda block: block, keep_file=lambda _: None, report=Report())
    assert job.image(member(tmp_path / "region.oar", codestream), is_color=True) is None
    assert not (tmp_path / "victim").exists()


def test_a_packed_jpeg_2000_picture_is_exported_as_png(codestream: bytes, tmp_path: Path) -> None:
    from meshferry.blender_data.addon_formats import image_files
    from meshferry.blender_data.exporting.reading import material_reading

    job = ProjectImages(is_linked=False, keep=lambda block: block, keep_file=lambda _path: None, report=Report())
    image = job.image(member(tmp_path / "region.oar", codestream), is_color=True)
    texture = material_reading.read_texture(image, Report())
    assert texture.name == "leaf.png" and texture.data is not None
    assert np.abs(glb_oracle.read_png(texture.data) - pixels(image)).max() < 1
    with image_files.own_image_files(tmp_path, "plant", [image]):
        assert [path.name for path in tmp_path.rglob("*.*")] == ["plant.leaf.png"]
