"""Files put in place whole or not at all, options with their limits, and what a format cannot hold."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import models
import numpy as np
import oracle
import pytest
from encoding import encode_scene
from meshferry.io_formats import api
from meshferry.io_formats.core import capabilities, options
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.capabilities import Capabilities, losses
from meshferry.io_formats.core.errors import ExportError, FormatError, MeshferryError, UnsupportedFormatError
from meshferry.io_formats.core.messages import Kind, Message
from meshferry.io_formats.core.options import Choice, Option, resolve
from meshferry.io_formats.disk.atomic_write import replace_file
from meshferry.io_formats.disk.special_files import read_bytes
from meshferry.io_formats.timbermesh.model import codec
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
POSIX = os.name == "posix"
ROOT = Path(__file__).resolve().parents[2]


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# -- replacing a file ---------------------------------------------------------------------------


def test_new_and_replaced_files(tmp_path: Path) -> None:
    path = tmp_path / "a.timbermesh"
    replace_file(path, b"one")
    assert path.read_bytes() == b"one"
    replace_file(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert leftovers(tmp_path) == ["a.timbermesh"]


@pytest.mark.parametrize("function", ["replace", "fsync", "chmod"])
def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    path = tmp_path / "a.timbermesh"
    path.write_bytes(b"old")

    def fails(*_arguments: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fails)
    if function == "chmod":  # failing to set permissions is not an error
        replace_file(path, b"new")
        assert path.read_bytes() == b"new"
    else:
        with pytest.raises(ExportError, match="No space left on device") as caught:
            replace_file(path, b"new")
        assert str(path) in str(caught.value)
        assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == ["a.timbermesh"]


def test_an_interruption_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.timbermesh"
    path.write_bytes(b"old")

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == ["a.timbermesh"]


@pytest.mark.skipif(not POSIX, reason="rights of POSIX systems")
def test_rights_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.timbermesh"
    mask = os.umask(0o027)
    try:
        replace_file(path, b"one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027  # asking for the mask did not change it
    finally:
        os.umask(mask)
    for mode in (0o600, 0o644, 0o664, 0o444):
        path.chmod(mode)
        replace_file(path, b"two")
        assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(not POSIX, reason="symbolic links need rights on Windows")
def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    real = tmp_path / "models" / "real.timbermesh"
    real.write_bytes(b"old")
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to(Path("models") / "real.timbermesh")
    second.symlink_to(link)
    replace_file(second, b"new")
    assert second.is_symlink()
    assert link.is_symlink()
    assert not real.is_symlink()
    assert real.read_bytes() == b"new"
    assert leftovers(tmp_path / "models") == ["real.timbermesh"]
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "models" / "later")
    replace_file(dangling, b"x")
    assert (tmp_path / "models" / "later").read_bytes() == b"x"


@pytest.mark.skipif(not POSIX, reason="symbolic links need rights on Windows")
def test_links_in_a_circle_end(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(FormatError, match="cannot be read"):
        read_bytes(link)
    with contextlib.suppress(ExportError):  # to replace the link is as right as to refuse
        replace_file(link, b"x")
    assert leftovers(tmp_path) == ["link"]


def test_a_missing_folder(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "a.timbermesh"
    with pytest.raises(ExportError, match=r"the folder does not exist: .*nowhere$") as caught:
        replace_file(path, b"")
    assert str(caught.value).startswith(str(path))


@pytest.mark.skipif(not POSIX or IS_ROOT, reason="nothing is read-only to the superuser")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(ExportError, match="the file cannot be written: Permission denied"):
            replace_file(tmp_path / "a.timbermesh", b"")
    finally:
        tmp_path.chmod(0o755)


def test_refusals_of_the_system_become_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_arguments: object, **_more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuses)
    with pytest.raises(ExportError, match="the file cannot be written: Permission denied"):
        replace_file(tmp_path / "a.timbermesh", b"")


@pytest.mark.parametrize(
    "name",
    [
        "a\0b",
        "x" * 300,
        pytest.param(
            "模" * 100, marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows counts characters, not bytes")
        ),
    ],
)
def test_names_that_no_system_takes(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match="cannot be written"):
        replace_file(tmp_path / name, b"")
    with pytest.raises(FormatError, match="cannot be read"):
        read_bytes(tmp_path / name)
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(not POSIX, reason="Windows counts characters, not bytes")
def test_the_longest_names(tmp_path: Path) -> None:
    for name in ("x" * 255, "模" * 85, "🦫" * 63):
        replace_file(tmp_path / name, b"data")
        assert (tmp_path / name).read_bytes() == b"data"
        (tmp_path / name).unlink()
    assert leftovers(tmp_path) == []


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot be written"):
        replace_file(tmp_path, b"")
    with pytest.raises(FormatError, match="cannot be read"):
        read_bytes(tmp_path)


# -- reading and writing by path ----------------------------------------------------------------


def test_scenes_by_path(tmp_path: Path) -> None:
    path = tmp_path / "Lodge.Folktails.Model.timbermesh"
    scene = sc.Scene("Lodge", [sc.Node("Lodge", mesh=models.grid_mesh())])
    assert api.write_scene(scene, path, TIMBERMESH) == []
    loaded = api.load(path)
    assert (loaded.path, loaded.format, loaded.data) == (path, TIMBERMESH, path.read_bytes())
    again = api.read_scene(path)
    assert again.name == "Lodge.Folktails.Model"
    assert again.triangle_count == scene.triangle_count


def test_errors_carry_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.timbermesh"
    for content, kind in (
        (b"", UnsupportedFormatError),
        (b"glTF", UnsupportedFormatError),
        (oracle.deflate(b"\x1a\x05"), FormatError),
        (oracle.deflate(b"")[:-6], FormatError),
    ):
        path.write_bytes(content)
        for read in (api.load, api.read_scene):
            with pytest.raises(kind) as caught:
                read(path)
            assert str(caught.value).startswith(f"{path}: ")
            assert str(caught.value).count(str(path)) == 1
    with pytest.raises(FormatError, match="No such file or directory") as caught:
        api.load(tmp_path / "none")
    assert str(tmp_path / "none") in str(caught.value)


def test_the_limit_of_inflation_reaches_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.timbermesh"
    path.write_bytes(TIMBERMESH.write(models.model()))
    for read in (api.load, api.read_scene):
        read(path, inflated_limit=10_000)
        with pytest.raises(FormatError, match="inflates to more than 100 bytes"):
            read(path, inflated_limit=100)


def test_a_refused_scene_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.timbermesh"
    path.write_bytes(b"old")
    for scene in (
        sc.Scene("x"),
        sc.Scene("x", [sc.Node("n", scale=(0.0, 0.0, 0.0))]),
        sc.Scene("x", [sc.Node("n")], clips=[sc.Clip("", 24.0, 1)]),
    ):
        with pytest.raises(ExportError):
            api.write_scene(scene, path, TIMBERMESH)
        assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == ["a.timbermesh"]


def test_what_is_told_is_told_once() -> None:
    mesh = models.grid_mesh()
    mesh.materials = ["Dir", "Dir"]
    odd = Message(Kind.LOSS, "", "odd", code="any-loss")
    scene = sc.Scene("x", [sc.Node("x", mesh=mesh)], warnings=[odd, odd])
    _, said = encode_scene(scene, TIMBERMESH)
    assert said.count("odd") == 1
    assert len(said) == len(set(said)) == 2


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Lodge.timbermesh", "Lodge"),
        ("Lodge.Folktails.Model.TimberMesh", "Lodge.Folktails.Model"),
        ("Old.meshy", "Old"),
        ("data.bin", "data"),
        ("plain", "plain"),
        (".timbermesh", ".timbermesh"),
        ("a.b.c", "a.b"),
    ],
)
def test_names_of_scenes(file: str, name: str) -> None:
    assert api.scene_name(Path("folder.x") / file) == name


def test_format_errors_put_themselves_together() -> None:
    problem = FormatError("It is cut off", offset=12345, item="node 'Roof'")
    assert str(problem) == "node 'Roof': It is cut off (at byte 12,345)"
    assert problem.in_file("a") is problem
    assert str(problem.in_file("b")) == "a: node 'Roof': It is cut off (at byte 12,345)"
    assert str(FormatError("No")) == "No"
    assert issubclass(FormatError, MeshferryError)
    assert issubclass(ExportError, MeshferryError)


# -- options ------------------------------------------------------------------------------------

TABLE = (
    Option("level", 3, "Level", "How much", minimum=0, maximum=9),
    Option("use_it", True, "Use", "Whether", headless_default=False),
    Option("kind", "A", "Kind", "Which", choices=(Choice("A", "a", ""), Choice("B", "b", ""))),
)


def test_defaults_in_the_window_and_without() -> None:
    assert resolve(TABLE) == {"level": 3, "use_it": False, "kind": "A"}
    assert resolve(TABLE, headless=False) == {"level": 3, "use_it": True, "kind": "A"}
    assert resolve(TABLE, {}) == resolve(TABLE, None)


def test_given_values_win() -> None:
    given = {"kind": "B", "use_it": True}
    assert resolve(TABLE, given) == {"level": 3, "use_it": True, "kind": "B"}
    assert given == {"kind": "B", "use_it": True}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"speed": 1}, "There is no option 'speed'; the options are kind, level, use_it"),
        ({"kind": "C"}, "Option 'kind' cannot be 'C'; it is one of A, B"),
        ({"kind": None}, "Option 'kind' cannot be 'None'"),
        ({"kind": ["A"]}, "Option 'kind' cannot be"),
        ({"level": 10}, "Option 'level' cannot be 10; it goes from 0 to 9"),
    ],
)
def test_wrong_options(given: dict[str, Any], said: str) -> None:
    with pytest.raises(MeshferryError) as caught:
        resolve(TABLE, given)
    assert said in str(caught.value)


def test_every_option_is_whole() -> None:
    for option in TIMBERMESH.export_options.table():
        assert option.label
        assert option.description
        assert not option.description.endswith(".")
        if option.choices:
            assert option.default in [choice.key for choice in option.choices]
    assert isinstance(options.Value, object)


# -- losses -------------------------------------------------------------------------------------


def rich_scene() -> sc.Scene:
    mesh = models.grid_mesh()
    mesh.uvs = mesh.uvs * 2
    mesh.custom = [sc.Layer("custom", np.zeros((len(mesh.points), 1), np.int32))]
    mesh.shape_keys = [sc.ShapeKey(name, mesh.points) for name in ("Up", "Down")]
    mesh.joint_indices = np.zeros((len(mesh.points), 5), np.int32)
    mesh.joint_weights = np.zeros((len(mesh.points), 5), np.float32)
    mesh.joint_weights[:7] = 0.2
    mesh.joint_weights[7:, :4] = 0.25
    mesh.surfaces = [sc.Surface("Bark", lightmap_resolution=3), sc.Surface("Bark")]
    track = sc.TransformTrack(0, *(np.zeros((1, k), np.float32) for k in (3, 4, 3)))
    bone_track = sc.TransformTrack(0, *(np.zeros((1, k), np.float32) for k in (3, 4, 3)), skeleton=0)
    return sc.Scene(
        "x",
        [
            sc.Node("Body", mesh=mesh, skeleton=0),
            sc.Node("Far", 0, mesh=models.grid_mesh(), lod=1),
            sc.Node("Farther", 0, lod=2),
            sc.Node("Hull", 0, role=sc.Role.HULL),
        ],
        skeletons=[sc.Skeleton("Rig", [sc.Joint("a"), sc.Joint("b", 0)])],
        clips=[
            sc.Clip("Walk", 24.0, 1, [track, bone_track, bone_track], [sc.VertexTrack(0, np.zeros((1, 25, 3), "f4"))])
        ],
    )


def test_a_format_that_holds_nothing_loses_everything() -> None:
    assert losses(rich_scene(), Capabilities()) == [
        "3 UV layers not carried over: 'UVMap', 'UVMap' of 'Body', 'UVMap' of 'Far'",
        "2 colour layers not carried over: 'Color' of 'Body', 'Color' of 'Far'",
        "custom layer 'custom' of object 'Body' not carried over",
        "2 materials not carried over: 'Material0.Folktails', 'Material1.Folktails' of 'Body'",
        "2 shape keys not carried over: 'Up', 'Down' of 'Body'",
        "2 custom normal layers not carried over: 'Body', 'Far'",
        "1 weighted mesh not carried over: 'Body'",
        "1 separate surface of the same name not carried over: 'Body'",
        "1 lightmap setting not carried over: 'Body'",
        "3 parent relations not carried over: 'Far', 'Farther', 'Hull'",
        "2 lower levels of detail not carried over: 'Far', 'Farther'",
        "1 physics shape not carried over: 'Hull'",
        "2 bones not carried over: 'Rig'",
        "1 animated node not carried over: 'Walk'",
        "2 animated bones not carried over: 'Walk'",
        "1 vertex animation not carried over: 'Walk'",
    ]


def test_a_format_that_holds_everything_loses_nothing() -> None:
    everything = Capabilities(
        uv_layers=8,
        color_layers=8,
        custom_layers=True,
        normals=True,
        materials=True,
        node_hierarchy=True,
        shape_keys=True,
        skeletons=True,
        influences=8,
        node_clips=True,
        joint_clips=True,
        vertex_clips=True,
        levels_of_detail=True,
        surfaces=True,
        physics=True,
    )
    assert losses(rich_scene(), everything) == []
    assert losses(sc.Scene("x"), Capabilities()) == []


def test_weights_beyond_the_most() -> None:
    found = [text for text in losses(rich_scene(), Capabilities(influences=4)) if "weight" in text]
    assert found == ["7 vertices with too many weights not carried over: 'Body'"]


def test_what_files_join() -> None:
    scene = sc.Scene("x", clips=[sc.Clip(name, 24.0, 1) for name in ("Idle", "Walk", "Run")])
    scene.nodes = [sc.Node(name, mesh=rich_scene().nodes[0].mesh) for name in ("Body", "Hat")]
    found = losses(scene, Capabilities(joins_objects=True, joins_clips=True))
    assert "2 separate objects not carried over: 'Body', 'Hat'" in found
    assert "2 further animations not carried over: 'Walk', 'Run'" in found
    del scene.nodes[1], scene.clips[1:]
    alone = losses(scene, Capabilities(joins_objects=True, joins_clips=True))
    assert not [text for text in alone if "separate object" in text or "further" in text]


def test_a_shared_material_is_one_loss_with_the_number_of_its_objects() -> None:
    meshes = [models.grid_mesh(materials=1) for _ in range(3)]
    for mesh in meshes:
        mesh.materials = ["Steel"]
    scene = sc.Scene("x", [sc.Node(f"n{number}", mesh=mesh) for number, mesh in enumerate(meshes)])
    found = [text for text in losses(scene, Capabilities()) if "material" in text]
    assert found == ["material 'Steel' of object 'n0' and 2 more not carried over"]


def test_many_names_are_cut_short() -> None:
    keyed = models.grid_mesh()
    keyed.shape_keys = [sc.ShapeKey(f"k{i}", keyed.points) for i in range(7)]
    (said,) = (text for text in losses(sc.Scene("x", [sc.Node("n", mesh=keyed)]), Capabilities()) if "key" in text)
    assert said == "7 shape keys not carried over: 'k0', 'k1', 'k2', 'k3', 'k4' of 'n' and 2 more"
    scene = sc.Scene("x", [sc.Node("Root"), *(sc.Node(f"n{i}", 0) for i in range(8)), sc.Node("n0", 0)])
    assert losses(scene, Capabilities()) == [
        "9 parent relations not carried over: 'n0', 'n1', 'n2', 'n3', 'n4' and 3 more"
    ]


def test_plurals_name_kinds_that_exist() -> None:
    crowded = rich_scene()
    if crowded.nodes[0].mesh:
        crowded.nodes[0].mesh.surfaces *= 2
        crowded.nodes[0].mesh.colors[0].values[:, 3] = 0
    crowded.nodes += [sc.Node("Hat", mesh=models.grid_mesh())]
    crowded.clips[0].playback = sc.Playback()
    joined = Capabilities(color_layers=1, opaque_colors=1, joins_objects=True)
    some = (Capabilities(), Capabilities(influences=1), joined)
    known = " ".join(text for can in some for text in losses(crowded, can))
    for kind, plural in capabilities._PLURALS.items():
        assert kind in known or plural in known


def test_what_timbermesh_cannot_hold() -> None:
    assert losses(rich_scene(), TIMBERMESH.capabilities) == [
        "2 shape keys not carried over: 'Up', 'Down' of 'Body'",
        "1 weighted mesh not carried over: 'Body'",
        "1 separate surface of the same name not carried over: 'Body'",
        "1 lightmap setting not carried over: 'Body'",
        "2 lower levels of detail not carried over: 'Far', 'Farther'",
        "1 physics shape not carried over: 'Hull'",
        "2 bones not carried over: 'Rig'",
        "2 animated bones not carried over: 'Walk'",
    ]


def test_documents_compare_by_content() -> None:
    one, other = models.model(), models.model()
    assert one == other
    other.nodes[0].meshes[0].indices[0] = 3
    assert one != other
    assert codec.Mesh(np.zeros(3, np.int32)) != codec.Mesh(np.zeros(3, np.int64))  # type: ignore[arg-type]
    assert codec.Mesh(np.zeros(3, np.int32)) != "mesh"
    assert models.node_animation() == models.node_animation()
    assert models.node_animation() != models.node_animation(4)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such names")
def test_a_file_name_that_is_no_utf8_names_nothing_that_cannot_be_written(tmp_path):
    path = tmp_path / b"n\xff.data".decode("utf-8", "surrogateescape")
    path.write_bytes((ROOT / "examples" / "vase.data").read_bytes())
    scene = api.read_scene(path)
    assert scene.name == "n?"
    assert [node.name for node in scene.nodes] == ["n?"]
