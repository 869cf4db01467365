"""Small pictures of models for the report of a batch, as Blender's own reader of pictures finds them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from meshferry.cli.batch.report_pictures import picture_file, read_picture, render
from meshferry.cli.conversions.blend_files import BlendSession
from meshferry.io_formats.core.errors import ExportError

PROGRAM = Path(__file__).with_name("picture_program.py")
LAMP = Path(__file__).resolve().parents[2] / "examples" / "lamp.mesh"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Draw all pictures, once; skip where Blender cannot draw."""
    pytest.importorskip("bpy", reason="Blender is absent")
    if sys.modules["bpy"].app.binary_path:
        pytest.skip("Blender's own Python has no bpy outside Blender")
    folder = tmp_path_factory.mktemp("drawn")
    done = subprocess.run(
        [sys.executable, PROGRAM, folder],
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=300,
        env=os.environ,
    )
    if "can draw" not in done.stdout:
        pytest.skip(f"Blender cannot draw on this machine: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text("utf-8"))


def drawn(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test of the drawn pictures. A Blender of its own draws them."""
    return pytest.mark.slow(pytest.mark.needs_bpy(test))


def spot(picture: dict[str, Any], x: int, y: int) -> str:
    """Name the colour that is strongest at a place, per cent from the left and from below."""
    red, green, blue, alpha = picture["spots"][f"{x},{y}"]
    assert alpha > 0.9
    strongest = max(red, green, blue)
    assert sorted((red, green, blue))[1] < 0.7 * strongest, (red, green, blue)
    return {red: "red", green: "green", blue: "blue"}[strongest]


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")
def test_a_fifo_in_the_place_of_a_picture_is_no_picture(tmp_path: Path) -> None:
    path = picture_file(tmp_path, "0" * 32)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert read_picture(tmp_path, "0" * 32) is None


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_link_in_the_place_of_a_picture_is_neither_shown_nor_replaced(tmp_path: Path) -> None:
    path, private = picture_file(tmp_path, "0" * 32), tmp_path / "private.png"
    path.parent.mkdir(parents=True)
    private.write_bytes(b"\x89PNG private")
    path.symlink_to(private)
    assert read_picture(tmp_path, "0" * 32) is None
    with pytest.raises(ExportError, match=f"{path} is a link"):
        render(BlendSession(), LAMP, path)
    assert path.is_symlink() and private.read_bytes() == b"\x89PNG private"


FRONT, RIGHT, TOP = (30, 40), (75, 45), (52, 82)


@drawn
def test_a_box_fills_its_picture_and_nothing_else_does(pictures: dict[str, Any]) -> None:
    box = pictures["box"]
    assert box["size"] == [128, 128]
    assert max(box["extent"]) in range(115, 127), "as large as it fits, with a margin"
    assert 0.5 < box["covered"] < 0.8, "the ground is transparent"
    assert spot(box, 50, 50) == "red"
    assert bytes.fromhex(box["content"])[:4] in {b"RIFF", b"\x89PNG"}
    assert len(box["content"]) // 2 < 8000


@drawn
def test_the_same_model_gives_the_same_picture(pictures: dict[str, Any]) -> None:
    assert pictures["again"]["content"] == pictures["box"]["content"]


@drawn
def test_the_front_is_seen_from_the_right_and_above(pictures: dict[str, Any]) -> None:
    """The side towards -Y is red, that towards +X blue, the upper one green."""
    sides = pictures["sides"]
    # The side in the shade is dark, so its colour is not as pure.
    red, green, blue, _ = sides["spots"]["75,45"]
    assert spot(sides, *FRONT) == "red" and blue > 1.5 * max(red, green)
    red, green, blue, _ = sides["spots"]["52,82"]
    assert green > 1.5 * max(red, blue)


@drawn
@pytest.mark.parametrize("size", ["huge", "tiny", "far"])
def test_size_and_place_do_not_matter(pictures: dict[str, Any], size: str) -> None:
    assert pictures[size]["extent"] == pytest.approx(pictures["box"]["extent"], abs=1)
    assert pictures[size]["covered"] == pytest.approx(pictures["box"]["covered"], abs=0.005)
    assert spot(pictures[size], 50, 50) == "red"


@drawn
def test_the_finest_level_alone_is_shown(pictures: dict[str, Any]) -> None:
    assert pictures["finest"]["content"] == pictures["box"]["content"]
    assert spot(pictures["physics"], 50, 50) == "red", "shapes are shown where there is nothing else"


@drawn
def test_colours_of_vertices_and_of_materials_are_both_shown(pictures: dict[str, Any]) -> None:
    assert spot(pictures["painted"], 50, 50) == "green"
    beside = pictures["beside_painted"]
    assert spot(beside, *FRONT) == "red" and spot(beside, *RIGHT) == "green"


@drawn
@pytest.mark.parametrize("name", ["points", "one_point", "line", "bones", "nod"])
def test_what_has_no_surface_is_drawn(pictures: dict[str, Any], name: str) -> None:
    """Points, edges and bones: in a colour of their own, a light blue."""
    red, green, blue = pictures[name]["mean"]
    assert blue > green > red > 10
    assert max(pictures[name]["extent"]) > 70
    assert pictures[name]["covered"] < 0.5


@drawn
def test_an_image_is_shown_in_place_of_its_material(pictures: dict[str, Any]) -> None:
    assert spot(pictures["textured"], 50, 50) == "green"


@drawn
def test_a_flat_model_is_seen(pictures: dict[str, Any]) -> None:
    assert pictures["flat"]["covered"] > 0.1
    assert 0.05 < pictures["flat"]["outline"] < 0.2, "a dark line around it"
    assert spot(pictures["flat"], 50, 50) == "red"


@drawn
def test_models_of_files(pictures: dict[str, Any]) -> None:
    assert pictures["lamp"]["covered"] > 0.1 and pictures["tunic"]["covered"] > 0.2
    assert pictures["lamp"]["extent"][1] > 85, "it stands upright"
    assert pictures["tunic"]["extent"][0] > 85, "its sleeves are spread"
    assert pictures["in_archive"]["content"] == pictures["lamp"]["content"]


@drawn
@pytest.mark.parametrize("extension", ["blend", "glb"])
def test_files_of_blenders_own_kinds(pictures: dict[str, Any], extension: str) -> None:
    """A cone; what a .blend file does not render is not in the picture either."""
    picture = pictures[extension]
    assert spot(picture, *FRONT) == "blue"
    assert max(picture["extent"]) > 85 and picture["covered"] > 0.3


@drawn
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "There is nothing to see in it"),
        ("node", "There is nothing to see in it"),
        ("broken", "The file is cut off"),
        ("missing", "The file cannot be read"),
    ],
)
def test_what_cannot_be_drawn_leaves_nothing_behind(pictures: dict[str, Any], name: str, message: str) -> None:
    assert message in pictures[name]["error"]
    drawn = {key for key, picture in pictures.items() if "content" in picture}
    stems = [path.rpartition(".")[0] for path in pictures["files"]["names"]]
    assert sorted(stems) == sorted(drawn), "no half pictures, and none of what failed"
