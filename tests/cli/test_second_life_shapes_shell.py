"""Body shapes of Second Life on the command line: facts, checks, conversions, and other files named .xml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import slow_shape_files
from meshfuzz import second_life_shape_seeds as made

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def tall(tmp_path: Path) -> Path:
    path = tmp_path / "tall.bodypart"
    path.write_bytes(made.BODY_PART)
    return path


def test_inspect_prints_sex_height_and_changed_sliders(meshferry: Any, tall: Path, tmp_path: Path) -> None:
    done = meshferry("inspect", "--verify", tall)
    assert done.status == 0
    assert done.out.splitlines() == [
        f"{tall}: Second Life Shape 22",
        "  female, height 1.840 m",
        "  sliders (0 to 100): Height 83, Body Fat 35, Breast Size 80",
        "  identical after decoding and encoding",
    ]
    (entry,) = meshferry("inspect", "--json", tall).entries
    assert entry["sliders"][0] == {"id": 33, "label": "Height", "value": 1.26, "percent": 82.791}
    for name, line in (("shoes", "  only sliders of shoes, female, height 1."), ("codes", "  female, height 1.")):
        path = tmp_path / f"{name}.bodypart"
        path.write_bytes(made.FILES[name])
        assert meshferry("inspect", path).out.splitlines()[1].startswith(line)


def test_check_names_what_viewers_do_not_read(meshferry: Any, tmp_path: Path) -> None:
    path = tmp_path / "codes.xml"
    path.write_bytes(made.appearance([{"id": "33", "u8": "219"}], version="2.0"))
    done = meshferry("check", "--json", path)
    assert done.status == 0
    assert [message["code"] for message in done.entries[0]["messages"]] == ["shape-version", "shape-codes"]


def test_a_body_part_becomes_an_appearance_export(meshferry: Any, tall: Path, tmp_path: Path) -> None:
    target = tmp_path / "tall.xml"
    done = meshferry("convert", tall, target)
    assert done.status == 0
    assert "1 body shape" in done.out
    wanted = slow_shape_files.values(made.BODY_PART)
    found = slow_shape_files.values(target.read_bytes())
    assert {number: found[number] for number in wanted} == pytest.approx(wanted, abs=1e-6)
    assert meshferry("convert", tall, "--as-others-see", tmp_path / "seen.xml").status == 0
    assert slow_shape_files.values((tmp_path / "seen.xml").read_bytes())[33] < found[33]
    assert "There is nothing in 'tall'" in meshferry("convert", tall, tmp_path / "tall.anim").err


@pytest.mark.needs_bpy
def test_a_shape_goes_onto_the_avatar_of_another_file(meshferry: Any, tall: Path, tmp_path: Path) -> None:
    import bpy
    from meshferry.blender_data.rigging import body_shapes

    target = tmp_path / "dressed.blend"
    assert meshferry("convert", tall, EXAMPLES / "tunic.llmesh", target).status == 0
    bpy.ops.wm.open_mainfile(filepath=str(target))
    (avatar,) = (obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    assert getattr(avatar, body_shapes.property_name(33)) == pytest.approx(82.79, abs=0.01)
    assert avatar.pose.bones["mHipLeft"].scale.y > 1.02
    done = meshferry("convert", tall, tmp_path / "avatar.glb")
    assert (done.status, "1 body shape not carried over: 'Avatar'" in done.err) == (0, True)


def test_other_files_with_the_extension(meshferry: Any, tall: Path, tmp_path: Path) -> None:
    """A search leaves them out; one that is named is explained."""
    (tmp_path / "archive.xml").write_bytes(b"<?xml version='1.0'?><archive/>")
    (tmp_path / "lad.xml").write_bytes(b"<?xml version='1.0'?>\n<linden_avatar version='1.0'/>")
    done = meshferry("inspect", "--json", tmp_path)
    assert (done.status, [Path(entry["file"]).name for entry in done.entries]) == (0, ["tall.bodypart"])
    assert "This is XML" in meshferry("inspect", tmp_path / "archive.xml").err
    assert "the viewer's description of avatars, not a shape" in meshferry("check", tmp_path / "lad.xml").err
