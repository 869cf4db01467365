"""Textures of a project as image files: the source, else the runtime, wrapped."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import courtyard
import pytest
import texture_oracle as oracle
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.shading import Texture
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.project.project import open_project
from meshferry.io_formats.unigine.project.project_textures import texture_of


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return courtyard.make(tmp_path_factory.mktemp("courtyard"))


@pytest.fixture
def data(unchanged: Path, tmp_path: Path) -> Path:
    """Return a project that the test may change."""
    return shutil.copytree(unchanged, tmp_path / "data")


def texture(data: Path, reference: str) -> Texture | None:
    project = open_project(data / "courtyard.world", Projects())
    assert project is not None
    return texture_of(project, project.texture(reference))


def content(data: Path, reference: str) -> bytes:
    found = texture(data, reference)
    assert found is not None and found.read is not None
    return found.read()


def guid(name: str) -> str:
    return "guid://" + Path(courtyard.texture(name)).stem


@pytest.mark.parametrize("name", ["tiles_alb", "wood_alb"])
def test_a_source_is_taken_as_it_is(unchanged: Path, name: str) -> None:
    path = unchanged / f"textures/{name}.png"
    found = texture(unchanged, guid(name))
    assert found is not None and (found.name, found.path, found.source) == (path.name, str(path), str(path))
    assert content(unchanged, guid(name)) == path.read_bytes()


@pytest.mark.parametrize("name", ["brick_alb", "barrel_n", "barrel_ao", "leaves_alb"])
def test_a_runtime_is_wrapped(unchanged: Path, name: str) -> None:
    path = unchanged / courtyard.texture(name)
    found = texture(unchanged, guid(name))
    assert found is not None and (found.name, found.path, found.source) == (f"{name}.texture", "", str(path))
    code, width, height, pixels = oracle.pixels_of_texture(path.read_bytes())
    data = content(unchanged, guid(name))
    assert struct.unpack_from("<2I", data, 12) == (height, width) and data[128:] == pixels
    assert data[84:88] == {21: b"DXT1", 23: b"DXT5", 24: b"ATI1", 25: b"ATI2"}[code]


def test_what_is_missing_or_of_the_engine_is_no_texture(unchanged: Path) -> None:
    assert texture(unchanged, "guid://" + "0" * 40) is None
    assert texture(unchanged, "guid://5219d6ddb5dbd1520e843a369ad2b64326bb24e2") is None
    assert texture(unchanged, "") is None


def test_the_runtime_takes_the_place_of_a_damaged_source(data: Path) -> None:
    (data / "textures/tiles_alb.png").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert content(data, guid("tiles_alb")).startswith(b"DDS ")
    (data / courtyard.texture("tiles_alb")).write_bytes(b"tx11")
    with pytest.raises(FormatError, match=r"tiles_alb.png.*git lfs pull"):
        content(data, guid("tiles_alb"))


def test_normals_of_the_other_direction_do_not_take_the_place(data: Path) -> None:
    (data / "textures/brick_n.png").write_bytes(b"no image")
    with pytest.raises(FormatError, match=r"brick_n.png: It is not an image file"):
        content(data, guid("brick_n"))
