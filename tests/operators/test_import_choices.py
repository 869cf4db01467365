"""Choices of an import that its export has to use again, whatever the way between the two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest
from meshfuzz.mesh_serializer_seeds import pack
from unigine_oracle import decode

pytestmark = pytest.mark.needs_bpy

AXES = {"axes": "SWAP_YZ"}
TURN = {"use_turn": True}


class Way:
    """A format with a choice that rotates by 180°: operators, a file, and whether a file has the same orientation."""

    def __init__(self, bpy: Any, choice: dict[str, Any], original: Path) -> None:
        self.bpy = bpy
        self.choice = choice
        self.original = original
        self.importer = bpy.ops.import_scene.unigine if choice == TURN else bpy.ops.import_scene.mesh_serializer
        self.exporter = bpy.ops.export_scene.unigine_mesh if choice == TURN else bpy.ops.export_scene.mesh_serializer
        self.opposite = {"use_turn": False} if choice == TURN else {"axes": "UNITY"}

    def read(self) -> Any:
        """Import the original with the choice; return the object."""
        self.importer(filepath=str(self.original), **self.choice)
        return self.bpy.context.object

    def exported(self, name: str = "again", **options: Any) -> Path:
        path = self.original.with_name(f"{name}{self.original.suffix}")
        self.exporter(filepath=str(path), **options)
        return path

    def points(self, path: Path) -> Any:
        data = path.read_bytes()
        if self.choice == TURN:
            return np.concatenate([surface.targets[0].positions for surface in decode(data).surfaces])
        return made.unpack(data).points

    def is_turned(self, path: Path) -> bool:
        """Return whether a file is rotated by 180° about the vertical axis, compared with the original."""
        before, after = self.points(self.original), self.points(path)
        up = 2 if self.choice == TURN else 1
        turned = before * [1 if axis == up else -1 for axis in range(3)]
        same, other = (np.allclose(ends(some), ends(after), rtol=0, atol=1e-3) for some in (before, turned))
        assert same != other
        return bool(other)


def ends(points: Any) -> Any:
    """Return the least and most coordinates."""
    return np.array((points.min(axis=0), points.max(axis=0)), np.float64)


@pytest.fixture(params=[TURN, AXES], ids=["unigine", "mesh_serializer"])
def way(request: Any, clean_blender: Any, tmp_path: Path, make_unigine: Callable[..., Path]) -> Way:
    if request.param == TURN:
        return Way(clean_blender, TURN, make_unigine("flag.mesh", bones=False))
    stored = made.crate()
    stored.bounds = np.array([[0, 1], [0, 2], [0, 3]], np.float32)
    original = tmp_path / "flag.data"
    original.write_bytes(pack(stored))
    return Way(clean_blender, AXES, original)


def test_the_export_uses_the_choice_of_the_import(way: Way) -> None:
    way.read()
    assert not way.is_turned(way.exported())
    assert not way.is_turned(way.exported("collection", collection="flag"))


def test_an_explicit_choice_wins_over_the_import(way: Way) -> None:
    way.read()
    assert way.is_turned(way.exported(**way.opposite))
    assert way.is_turned(way.exported("off", use_import_choices=False))


def test_the_import_wins_over_a_preset(way: Way) -> None:
    """A preset sets options after the dialog has opened."""
    way.read()
    assert not way.is_turned(way.exported(given_options="", **way.opposite))


def test_objects_without_choices_use_the_default(way: Way) -> None:
    way.read().meshferry.import_choices.clear()
    assert way.is_turned(way.exported())
    assert not way.is_turned(way.exported("preset", given_options="", **way.choice))


def test_different_choices_in_one_file_are_refused(way: Way) -> None:
    first = way.read()
    way.importer(filepath=str(way.original), **way.opposite)
    second = way.bpy.context.object
    first.select_set(True)
    with pytest.raises(RuntimeError, match=r"'flag' was imported with .*, 'flag.001' with .*As Imported off"):
        way.exported(mesh_files="JOINED")
    second.meshferry.import_choices.clear()
    way.exported(mesh_files="JOINED")


def test_a_blend_file_keeps_the_choice(way: Way) -> None:
    from meshferry.cli.main import main

    blend, again = way.original.with_suffix(".blend"), way.original.with_stem("again")
    flags = ["--turn"] if way.choice == TURN else ["--axes", "swap_yz"]
    assert main(["convert", str(way.original), str(blend), *flags]) == 0
    assert main(["convert", str(blend), str(again)]) == 0
    assert not way.is_turned(again)
    opposite = ["--no-turn"] if way.choice == TURN else ["--axes", "unity"]
    assert main(["convert", str(blend), str(again), *opposite]) == 0
    assert way.is_turned(again)


def test_an_animation_takes_the_choice_of_its_armature(
    clean_blender: Any, make_unigine: Callable[..., Path], tmp_path: Path
) -> None:
    from meshferry.io_formats.core import scene as sc
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    bpy = clean_blender
    moved = np.tile(np.array([[0, 2, 0]], np.float32), (3, 1))
    still = np.tile(np.array([[1, 0, 0, 0]], np.float32), (3, 1))
    track = sc.TransformTrack(0, moved, still, np.ones((3, 3), np.float32), skeleton=0)
    walk = sc.Scene("walk", skeletons=[sc.Skeleton("walk", [sc.Joint("Root"), sc.Joint("Tip", 0, (0, 0, 1))])])
    walk.clips = [sc.Clip("walk", 0.0, 3, [track])]
    path, again = tmp_path / "walk.anim", tmp_path / "again.anim"
    path.write_bytes(UNIGINE_ANIMATION.write(UNIGINE_ANIMATION.from_scene(walk)))
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh")), use_turn=True)
    bpy.ops.import_scene.unigine(filepath=str(path))
    (armature,) = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
    bpy.context.scene.frame_set(2)
    assert armature.pose.bones["Root"].matrix.translation.y == pytest.approx(-2)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.export_scene.unigine_anim(filepath=str(again))
    ((_, frames),) = decode(again.read_bytes()).animations
    assert frames.translation[:, 0] == pytest.approx(moved)


def test_the_dialog_shows_the_choice_of_the_import(way: Way) -> None:
    from meshferry.blender_data import file_records
    from meshferry.io_formats.core.import_choices import imported_texts

    (option,) = (
        option for option in table_of(way.bpy, way.exporter) if option.name in way.choice and option.is_remembered
    )
    imported, other = file_records.read_choices(way.read()), ()
    label = "on" if way.choice == TURN else "Swap Y and Z Only"
    assert imported_texts([option], [imported]) == {option.name: f"{option.label} as imported: {label}"}
    assert imported_texts([option], [imported, other]) == {option.name: ""}
    assert imported_texts([option], [other]) == imported_texts([option], []) == {}


def table_of(bpy: Any, operator: Any) -> Any:
    return getattr(bpy.types, operator.idname()).option_table
