"""Rules of blueprints that the samples lack: merging, nesting, search, lenient JSON, damaged values, limits."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest
from meshferry.io_formats import api, registry
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.core.messages import Unresolved
from meshferry.io_formats.core.placement import Marker, ModelUse, PlacedNode, Wire
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.disk import rooted_files
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.timbermesh.blueprint import codec, tree
from meshferry.io_formats.timbermesh.blueprint.codec import Merger
from meshferry.io_formats.timbermesh.blueprint.components import SPEC, Numbers, footprint_of
from meshferry.io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT
from meshferry.io_formats.timbermesh.blueprint.links import usable_path
from meshferry.io_formats.timbermesh.model import codec as model_codec
from meshfuzz import timberborn_blueprint_seeds as seeds
from meshfuzz.timberborn_blueprint_seeds import nested, part

Save = Callable[[str, Any], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Return a function that writes a file of a mod: text, bytes, or an object as JSON."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / "mod" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(data)
        return path

    write("manifest.json", {"Id": "Test"})
    return write


def opened(path: Path, **options: Any) -> tuple[Scene, dict[str, PlacedNode]]:
    """Return the scene of a blueprint and its nodes by key."""
    scene = api.read_scene(path, options, projects=Projects())
    assert scene.placement is not None
    nodes = scene.placement.parts[0].nodes
    assert all(node.parent < number for number, node in enumerate(nodes))
    return scene, {node.key: node for node in nodes if node.key}


def codes(scene: Scene) -> list[str]:
    return [message.code for message in scene.warnings if message.code != "places-nothing"]


def location(node: PlacedNode) -> list[float]:
    assert node.channels is not None
    return list(node.channels.location)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ({"A": {"X": 1, "Y": 2}}, {"A": {"Y": 3}}, {"A": {"X": 1, "Y": 3}}),
        ({"A": [1, 2], "B": 1}, {"A": [3], "B": None}, {"A": [3], "B": 1}),
        ({"A": 1}, {"A": {"X": 1}}, {"A": {"X": 1}}),
        ({"A": [1, 2]}, {"A#append": [2, 3]}, {"A": [1, 2, 3]}),
        ({}, {"A#append": [{"X": 1}]}, {"A": [{"X": 1}]}),
        ({"A": [1, 2, 3]}, {"A#Remove": [2, 9]}, {"A": [1, 3]}),
        ({"A": [1]}, {"A#remove": [1, 2], "A#append": [2, 3]}, {"A": [3]}),
        ({"A": 1, "B": 2}, {"A#DELETE": {"Any": 1}}, {"B": 2}),
        ({"A": {"X": 1}}, {"A": {"Y": 2}, "A#delete": {}}, {}),
        ({"A": {"B": {"C": 1, "D": 2}}}, {"A": {"B": {"C#delete": 0}}}, {"A": {"B": {"D": 2}}}),
        ({"C#nested": {"P": "x", "M": {"A": 1}}}, {"C#nested#delete": {}}, {}),
        (
            {"C#nested": {"M": {"A#delete": {}}}},
            {"C#nested": {"M": {"B#delete": {}}}},
            {"C#nested": {"M": {"A#delete": {}, "B#delete": {}}}},
        ),
    ],
)
def test_merging(lower: dict[str, Any], upper: dict[str, Any], expected: dict[str, Any]) -> None:
    before = json.dumps([lower, upper])
    assert Merger().merged(lower, upper) == expected
    assert json.dumps([lower, upper]) == before


def test_a_partial_modification_keeps_the_other_numbers(save: Save) -> None:
    module = part("", {"Inner": part(position=(1, 1, 1))}, position=(1, 2, 3), rotation=(0, 90, 0), scale=(2, 2, 2))
    save("Mods/Module.blueprint.json", module)
    change = {
        "TransformSpec": {"Position": {"Z": 0.5}, "Scale": {"X": 3}},
        "Children": {"Inner": {"TransformSpec": {"Position": {"Y": 5}}}, "New": part(position=(7, 0, 0))},
    }
    path = save("B/House.blueprint.json", {"Children": {"A#nested": nested("Mods/Module.blueprint", change)}})
    _, nodes = opened(path)
    placed = nodes["/Children/A#nested"]
    assert placed.name == "A"
    assert placed.channels is not None
    assert (placed.channels.location, placed.channels.scale) == ((-1, -0.5, 2), (3, 2, 2))
    assert placed.channels.rotation == pytest.approx((0, 0, -np.pi / 2))
    assert location(nodes["/Children/A#nested/Children/Inner"]) == [-1, -1, 5]
    assert location(nodes["/Children/A#nested/Children/New"]) == [-7, 0, 0]


def test_owners_tell_which_file_holds_a_place(save: Save) -> None:
    collider = {"CollidersSpec": {"SphereColliders": [{"Radius": 1}]}}
    save("Deep.blueprint.json", part("", {"Leaf": part(position=(1, 0, 0)), "Twig": part(position=(1, 0, 0))}))
    save("Module.blueprint.json", {"Children": {"D#nested": nested("Deep.blueprint"), "Inner": part(), "X": collider}})
    moved = {"TransformSpec": {"Position": {"X": 2}}}
    change = {"Children": {"Inner": moved, "D#nested": {"Modification": {**moved, "Children": {"Leaf": moved}}}}}
    path = save("House.blueprint.json", {"Children": {"A#nested": nested("Module.blueprint", change), "Own": collider}})
    _, nodes = opened(path)
    above = "/Children/A#nested"
    owners = {key.removeprefix(above): node.owner for key, node in nodes.items() if key.startswith(above)}
    assert owners == {
        "": "",
        "/Children/Inner": "",
        "/Children/X": "Module.blueprint.json",
        "/Children/X/CollidersSpec/SphereColliders/0": "Module.blueprint.json",
        "/Children/D#nested": "",
        "/Children/D#nested/Children/Leaf": "",
        "/Children/D#nested/Children/Twig": "Deep.blueprint.json",
    }
    assert nodes["/Children/Own"].owner == nodes["/Children/Own/CollidersSpec/SphereColliders/0"].owner == ""
    assert location(nodes[f"{above}/Children/D#nested"]) == [-2, 0, 0]


def test_a_file_nests_itself_if_its_modification_stops_it(save: Save) -> None:
    stop = {"Children": {"Again#nested#delete": {}, "More#nested#delete": {}}}
    path = save(
        "Self.blueprint.json",
        {"Children": {"Kept": part(position=(1, 0, 0)), "Again#nested": nested("Self.blueprint", stop)}},
    )
    scene, nodes = opened(path)
    assert set(nodes) == {"/", "/Children/Kept", "/Children/Again#nested", "/Children/Again#nested/Children/Kept"}
    assert codes(scene) == []


@pytest.mark.parametrize("modification", [None, {}, {"TransformSpec": {}}])
def test_loops_end(save: Save, modification: dict[str, Any] | None) -> None:
    save("B.blueprint.json", {"Children": {"C#nested": nested("A.blueprint", modification)}})
    path = save("A.blueprint.json", {"Children": {"C#nested": nested("B.blueprint", modification)}})
    scene, nodes = opened(path)
    assert codes(scene) == ["blueprint-loop"]
    assert len(nodes) == (17 if modification else 3)


def test_too_many_nodes_are_refused(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST_NODES", 1000)
    again = {"A#nested": nested("A.blueprint", {"GoodSpec": {}})}
    path = save("A.blueprint.json", {"Children": {**again, **{str(number): {} for number in range(100)}}})
    with pytest.raises(FormatError, match="more than 1,000 nodes"):
        opened(path)


def test_too_long_keys_are_refused(save: Save) -> None:
    """The keys of 44,374 nodes of a file of 2 kB had 22 million characters; the fuzzer allows 64 MiB of memory."""
    again = {"A#nested": nested("A.blueprint", {"GoodSpec": {}})}
    names = {f"{number:02}{'x' * 5000}": {} for number in range(99)}
    path = save("A.blueprint.json", {"Children": {**again, "y" * 20_000: {"Children": names}}})
    with pytest.raises(FormatError, match="more than 16,777,216 characters"):
        opened(path)


def test_too_much_to_merge_is_refused(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MOST_STEPS", 50_000)
    save("Big.blueprint.json", {"GoodSpec": {str(number): 0 for number in range(1000)}})
    many = {f"{number}#nested": nested("Big.blueprint", {"GoodSpec": {"0": 1}}) for number in range(100)}
    with pytest.raises(FormatError, match="too many values"):
        opened(save("A.blueprint.json", {"Children": many}))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("Shed/X.Model.timbermesh", "Other/Shed/X.Model.timbermesh"), 0),
        (("Data/SHED/x.model.timbermesh",), 0),
        (("Far/Away/Shed/X.Model.timbermesh", "Data/Near/Shed/X.Model.timbermesh"), 1),
        (("Data/Buildings/Shed/X.Model.timbermesh", "Data/Shed/X.Model.timbermesh"), 0),
        (("Data/NotShed/X.Model.timbermesh", "Data/Shed/X.timbermesh", "Data/Shed/X.Model.prefab"), None),
    ],
)
@pytest.mark.parametrize("has_manifest", [True, False])
def test_search_of_models(save: Save, files: tuple[str, ...], expected: int | None, *, has_manifest: bool) -> None:
    paths = [save(name, b"") for name in files]
    blueprint = save("Data/Buildings/House/House.blueprint.json", {"Children": {"A": part("Shed\\X.Model")}})
    if not has_manifest and expected is not None:  # the folders of other tests would be searched
        os.remove(blueprint.parents[3] / "manifest.json")
    scene, nodes = opened(blueprint)
    assert scene.placement is not None
    content = nodes["/Children/A"].content
    if expected is None:
        assert isinstance(content, Marker)
        assert codes(scene) == ["model-not-found"]
    else:
        assert isinstance(content, ModelUse)
        assert Path(scene.placement.models[content.model].file) == paths[expected].resolve()
        assert codes(scene) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
@pytest.mark.parametrize("name", ["{}/X", "link/X", "file", "inside/X"])
def test_the_search_stays_in_the_folder_of_the_manifest(save: Save, tmp_path: Path, name: str) -> None:
    """A stranger's mod must not read the user's other files, by a path from a folder above or through links."""
    private = tmp_path / "X.timbermesh"
    private.write_bytes(b"")
    own = save("Data/X.timbermesh", b"")
    for link, to in (("link", tmp_path), ("file.timbermesh", private), ("inside", own.parent)):
        (tmp_path / "mod" / link).symlink_to(to)
    scene, _ = opened(save("House.blueprint.json", {"Children": {"A": part(name.format(tmp_path.name))}}))
    assert codes(scene) == ([] if name == "inside/X" else ["model-not-found"])


def test_search_below_the_folder_that_the_user_names(save: Save, tmp_path: Path) -> None:
    model = save("Data/Shed/X.timbermesh", b"")
    lone = tmp_path / "elsewhere" / "House.blueprint.json"
    lone.parent.mkdir()
    lone.write_text(json.dumps({"Children": {"A": part("Shed/X")}}), "utf-8")
    scene, _ = opened(lone, mod=str(tmp_path / "mod"))
    assert scene.placement is not None
    assert [Path(found.file) for found in scene.placement.models] == [model.resolve()]


def test_models_of_other_mods_of_the_user_are_found(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    model = tmp_path / "Documents" / "Timberborn" / "Mods" / "Other" / "Shed" / "X.timbermesh"
    model.parent.mkdir(parents=True)
    model.touch()
    scene, _ = opened(save("House.blueprint.json", {"Children": {"A": part("Shed/X")}}))
    assert scene.placement is not None
    assert [Path(found.file) for found in scene.placement.models] == [model.resolve()]


def test_models_of_the_game_are_a_note(save: Save) -> None:
    children = {"A": part("ConstructionBases/Base.Model"), "B": part("Mine/Base.Model")}
    scene, _ = opened(save("A.blueprint.json", {"Children": children}))
    assert {message.code: message.is_note for message in scene.warnings} == {
        "game-model-not-found": True,
        "model-not-found": False,
    }


def test_blueprints_of_the_game_come_from_its_archive(save: Save, tmp_path: Path) -> None:
    modding = tmp_path / "game" / "Timberborn_Data" / "StreamingAssets" / "Modding"
    modding.mkdir(parents=True)
    base = part("ConstructionBases/Base/Base.Model", {"Inner#nested": nested("Shed/Part.blueprint")})
    with zipfile.ZipFile(modding / "Blueprints.zip", "w") as archive:
        archive.writestr("ConstructionBases/Base/Base.blueprint.json", json.dumps(base))
        archive.writestr("Shed/Part.blueprint.json", json.dumps(part(position=(1, 2, 3))))
        archive.writestr("Wells/Broken.blueprint.json", "{")
    children = {
        "A#nested": nested("constructionbases/Base/Base.blueprint"),
        "B#nested": nested("Wells/Broken.blueprint"),
        "C": part("Wells/Well.Model"),
        "D": part("Mine/Well.Model"),
    }
    path = save("A.blueprint.json", {"Children": children})
    scene, nodes = opened(path, game=str(tmp_path / "game"))
    assert location(nodes["/Children/A#nested/Children/Inner#nested"]) == [-1, -3, 2]
    assert nodes["/Children/A#nested/Children/Inner#nested"].owner == "Base.blueprint.json"
    assert nodes["/Children/A#nested"].properties["Model"] == "ConstructionBases/Base/Base.Model"
    found = {message.code: message.about() for message in scene.warnings}
    assert found["game-model-not-found"] == ["ConstructionBases/Base/Base.Model", "Wells/Well.Model"]
    assert found["model-not-found"] == ["Mine/Well.Model"]
    assert "unreadable-blueprint" in found
    without, _ = opened(path)
    assert set(codes(without)) == {"game-blueprint-not-found", "blueprint-not-found", "model-not-found"}


@pytest.mark.parametrize(
    "path", ["../Shed/X", "Shed/../../X", "/etc/X", "C:/X", "C:\\X", "\\\\server\\share\\X", "Shed\\..\\X", "", "X\0"]
)
def test_paths_that_lead_elsewhere_are_refused(save: Save, path: str) -> None:
    assert usable_path(path) == ""
    save("Shed/X.timbermesh", b"")
    scene, nodes = opened(
        save("Data/A.blueprint.json", {"Children": {"A#nested": nested(path), "B": part(path or "..")}})
    )
    assert codes(scene) == ["refused-path"]
    assert isinstance(nodes["/Children/B"].content, Marker)


def test_two_dots_inside_a_name_are_a_name(save: Save) -> None:
    save("Shed/X.Folktails..Stage1.timbermesh", b"")
    scene, _ = opened(save("A.blueprint.json", {"Children": {"A": part("Shed/X.Folktails..Stage1")}}))
    assert codes(scene) == []


def test_a_mod_is_listed_once_for_all_its_blueprints(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    list_folder = rooted_files._list_folder

    def count(full: str, *rest: Any) -> Any:
        listed.append(full)
        return list_folder(full, *rest)

    monkeypatch.setattr(rooted_files, "_list_folder", count)
    for folder in "abc":
        save(f"Data/{folder}/Shed.timbermesh", b"")
    paths = [save(f"Data/Buildings/{name}.blueprint.json", {"Children": {"A": part("Shed")}}) for name in "xyz"]
    projects = Projects()
    for path in paths:
        api.read_scene(path, projects=projects)
    assert len(listed) == len(set(listed)) == 6


@pytest.mark.parametrize("spelling", [float("nan"), float("inf"), 1e39, "0.5", True, [1]])
def test_values_that_are_not_numbers_are_replaced_and_named(save: Save, spelling: Any) -> None:
    child = {"TransformSpec": {"Position": {"X": spelling, "Y": 2, "Z": 3}, "Scale": {"X": 2, "Y": spelling, "Z": 2}}}
    scene, nodes = opened(save("A.blueprint.json", {"Children": {"A": child}}))
    channels = nodes["/Children/A"].channels
    assert channels is not None
    assert (channels.location, channels.scale) == ((0, -3, 2), (2, 2, 1))
    (message,) = [message for message in scene.warnings if message.code == "invalid-number"]
    assert message.is_loss
    assert message.about() == [f"/Children/A/TransformSpec/{name}" for name in ("Position/X", "Scale/Y")]


def test_rotations_turn_about_z_then_x_then_y(save: Save) -> None:
    """q = qY qX qZ in Unity's left-handed axes; each turn is checked by what it does to a point."""
    _, nodes = opened(save("A.blueprint.json", {"Children": {"A": part(rotation=(30, 50, 70))}}))

    def turn(axis: int, degrees: float) -> Any:
        one, other = (axis + 1) % 3, (axis + 2) % 3
        matrix = np.identity(3)
        cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        matrix[[one, other], [one, other]] = cosine
        matrix[other, one], matrix[one, other] = sine, -sine
        return matrix

    unity = turn(1, 50) @ turn(0, 30) @ turn(2, 70)
    to_blender = np.array([[-1, 0, 0], [0, 0, -1], [0, 1, 0]])
    assert np.allclose(nodes["/Children/A"].matrix[:3, :3], to_blender @ unity @ to_blender.T, atol=1e-6)


@pytest.mark.parametrize(
    ("field", "value", "axis"), [("Axis", "Z", 1), ("Direction", "Z", 1), ("Direction", "X", 0), ("", "", 2)]
)
def test_capsules_have_an_axis_or_a_direction(save: Save, field: str, value: str, axis: int) -> None:
    capsule = {"Center": {"X": 1}, "Radius": 0.5, "Height": 3, **({field: value} if field else {})}
    child = {"CollidersSpec": {"CapsuleColliders": [capsule]}}
    _, nodes = opened(save("A.blueprint.json", {"Children": {"A": child}}))
    placed = nodes["/Children/A/CollidersSpec/CapsuleColliders/0"]
    assert isinstance(placed.content, Wire)
    assert placed.channels is not None
    lengths = np.ptp(placed.content.points * placed.channels.scale, axis=0)
    assert lengths == pytest.approx([3 if number == axis else 1 for number in range(3)], abs=1e-5)
    assert location(placed) == [-1, 0, 0]


def test_everything_of_a_building(save: Save) -> None:
    scene, nodes = opened(save("House.blueprint.json", seeds.building()))
    assert scene.placement is not None
    names = [(node.name, type(node.content).__name__) for node in scene.placement.parts[0].nodes]
    assert names == [
        ("House", "NoneType"),
        ("#Finished", "NoneType"),
        ("Roof", "Marker"),
        ("Knob", "NoneType"),
        ("#Unfinished", "NoneType"),
        ("Base", "Marker"),
        ("Stage", "Marker"),
        ("BoxCollider", "Wire"),
        ("SphereCollider", "Wire"),
        ("CapsuleCollider", "Wire"),
        ("Footprint", "Wire"),
        ("Entrance", "Marker"),
        ("Access", "Marker"),
        ("Power", "Marker"),
        ("Water Input", "Marker"),
        ("Smoke", "Marker"),
    ]
    assert np.allclose(nodes["/BuildingAccessibleSpec"].matrix[:3, 3], [-0.5, -0.2, 0])
    assert np.allclose(nodes["/TransputProviderSpec/TransputSpecs/0"].matrix[:3, 3], [-1.5, -0.5, 0.5])
    assert nodes["/TemplateAttachmentsSpec/Attachments/0"].parent == 2


def test_the_root_moves_children_but_not_the_grid(save: Save) -> None:
    building = seeds.building() | {
        "TransformSpec": seeds.transform(position=(1, 2, 3), rotation=(0, 90, 0), scale=(1, 2, 1))
    }
    _, nodes = opened(save("House.blueprint.json", building))
    root = nodes["/"].matrix
    assert np.allclose(root[:3, 3], [-1, -3, 2])
    door = nodes["/BlockObjectSpec/Entrance"]
    assert np.allclose((root @ door.matrix)[:3, 3], [-0.5, 0.5, 0])
    wire = nodes["/BlockObjectSpec"].content
    assert isinstance(wire, Wire)
    points = (root @ np.c_[wire.points, np.ones(len(wire.points))].T)[:3]
    assert np.allclose([points.min(axis=1), points.max(axis=1)], [[-1, -1, 0], [0, 0, 1]], atol=1e-6)


@pytest.mark.parametrize("change", ["cells", "state", "attachment"])
def test_wrong_references_inside_a_file_are_named(save: Save, change: str) -> None:
    building = seeds.building()
    if change == "cells":
        building["BlockObjectSpec"]["Blocks"].append({})
    elif change == "state":
        building["BuildingModelSpec"]["FinishedUncoveredModelName"] = "#Nowhere"
    else:
        building["TemplateAttachmentsSpec"]["Attachments"][0]["Parent"] = "Missing"
    scene, _ = opened(save("House.blueprint.json", building))
    expected = {"cells": "cells-and-size", "state": "state-without-node", "attachment": "attachment-parent-not-found"}
    assert expected[change] in codes(scene)


def test_lenient_json_is_read_like_strict_json() -> None:
    files = seeds.files()
    with pytest.raises(ValueError, match="BOM"):
        json.loads(files["lenient"].decode())
    assert TIMBERBORN_BLUEPRINT.read(files["lenient"]).root == json.loads(files["building"])
    odd = b"{Children: {'A': {TransformSpec: {Position: {X: .5, Y: +2, Z: 3.,},},},}, /* end */}"
    assert TIMBERBORN_BLUEPRINT.read(odd).root["Children"]["A"]["TransformSpec"]["Position"] == {
        "X": 0.5,
        "Y": 2,
        "Z": 3,
    }
    assert TIMBERBORN_BLUEPRINT.sniff(odd, len(odd))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"GoodSpec": {"Id": }}', "Line 1, column 21"),
        (b'{"GoodSpec": {},\n "A" 1}', "Line 2, column 6"),
        (b'{"Children": ' + b'{"A":' * 200 + b"}" * 201, "more than 100 objects and arrays"),
        (b'{"GoodSpec": "\xff"}', "not UTF-8"),
    ],
)
def test_damaged_files_give_one_line(save: Save, data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        api.read_scene(save("A.blueprint.json", data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"asset": {"version": "2.0"}}', "JSON, but not a blueprint"),
        (b"{}", "JSON, but not a blueprint"),
        (b'// x\n{"Inner": {"GoodSpec": {}}}', "JSON, but not a blueprint"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    ],
)
def test_other_files_are_named(data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=message):
        registry.by_content(data, len(data))


def test_damaged_nested_files_are_named_and_the_rest_is_read(save: Save) -> None:
    save("Lfs.blueprint.json", b"version https://git-lfs.github.com/spec/v1\n")
    save("Broken.blueprint.json", b'{"GoodSpec": ')
    children = {
        "A#nested": nested("Lfs.blueprint"),
        "B#nested": nested("Broken.blueprint"),
        "C": part(position=(1, 0, 0)),
    }
    scene, nodes = opened(save("A.blueprint.json", {"Children": children}))
    assert codes(scene) == ["unreadable-blueprint"]
    assert "pointer" in str(scene.warnings[0])
    assert "/Children/C" in nodes


def test_a_blueprint_that_places_nothing_is_read_and_said(save: Save) -> None:
    scene, nodes = opened(save("Good.Log.blueprint.json", {"GoodSpec": {"Id": "Log"}}))
    assert list(nodes) == ["/"]
    assert [message.code for message in scene.warnings] == ["places-nothing"]
    assert scene.warnings[0].is_note


def square(low: float, high: float) -> bytes:
    """Return a model with a square that reaches from ``low`` to ``high`` in X and Z of the game."""
    corners = np.array([[low, 0, low], [high, 0, low], [high, 0, high], [low, 0, high]], np.float32)
    return model_codec.write(models.model(models.with_values(models.mesh_node(), "position", corners)))


def findings(path: Path) -> dict[str, str]:
    document = TIMBERBORN_BLUEPRINT.read(path.read_bytes())
    found = TIMBERBORN_BLUEPRINT.check_links(document, path, Projects())
    return {message.code: message.kind.value for message in found}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"high": 1.5}, {}),
        ({"high": 1.6}, {"model-outside-cells": "warning"}),
        ({"high": 1.6, "state": "#Unfinished"}, {}),
        ({"entrance": (0, -2, 0)}, {"unusual-entrance": "warning"}),
        ({"entrance": (0, 0, 0)}, {}),
        ({"entrance": (0, -1, 1)}, {"unusual-entrance": "warning"}),
        ({"thresholds": [0.1, 0.2]}, {"stage-count": "error"}),
        ({"radius": 0}, {"collider-without-volume": "warning"}),
    ],
)
def test_checks(save: Save, change: dict[str, Any], expected: dict[str, str]) -> None:
    building = seeds.building()
    save("Shed/Box.timbermesh", square(0.0, change.get("high", 1.0)))
    finished = building["Children"][change.get("state", "#Finished")]["Children"]
    stages = building["Children"]["#Unfinished"]["Children"]
    if "state" in change:
        stages["Stage"] = part("Shed/Box")
    else:
        finished["Box"] = part("Shed/Box")
    entrance = change.get("entrance", (0, -1, 0))
    building["BlockObjectSpec"]["Entrance"]["Coordinates"] = seeds.vector(*entrance)
    building["ConstructionSiteProgressVisualizerSpec"]["ProgressThresholds"] = change.get("thresholds", [0.5])
    roof = building["Children"]["#Finished"]["Children"]["Roof"]
    roof["CollidersSpec"]["SphereColliders"][0]["Radius"] = change.get("radius", 0.5)
    assert findings(save("House.blueprint.json", building)) == expected


def test_cells_are_listed_by_layers_rows_and_columns() -> None:
    """The footprint is not square, and only the last cell of its first row is occupied."""
    blocks = [{"Occupations": "Floor" if number == 2 else "None"} for number in range(12)]
    spec = {"Size": {"X": 3.0, "Y": 2.0, "Z": 2.0}, "Blocks": blocks}
    found = footprint_of({SPEC: spec}, Numbers(Unresolved()))
    assert found is not None and found.fits
    assert found.cells.tolist() == [[2, 0, 0]]
