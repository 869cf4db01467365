"""The command line with UNIGINE's meshes and animations, without Blender."""

import numpy as np
import pytest
import rigs
from outputs import names_in


def scene_of(path):
    from meshferry.io_formats import api

    return api.read_scene(path)


def clips_of(path):
    return [(clip.name, clip.frame_count) for clip in scene_of(path).clips]


def rise_of(path, name=None):
    """Return how high the last bone of a file goes in its last frame."""
    (clip,) = [clip for clip in scene_of(path).clips if name in (None, clip.name)]
    return float(clip.transforms[-1].translation[-1, 2])


@pytest.fixture
def mesh(tmp_path):
    return rigs.write_mesh(tmp_path / "crane.mesh")


@pytest.fixture
def moving(tmp_path):
    """A mesh with two animations inside."""
    return rigs.write_mesh(tmp_path / "crane.mesh", [rigs.make_clip("lift", 4), rigs.make_clip("swing", 7)])


@pytest.fixture
def idle(tmp_path):
    return rigs.write_animation(tmp_path / "idle.anim")


def test_an_animation_has_no_triangles_to_speak_of(meshferry, idle):
    done = meshferry("inspect", "--verify", idle)
    assert done.out.splitlines() == [
        f"{idle}: UNIGINE Animation an11",
        "  2 bones",
        "  animation unnamed, bone, 5 frames",
        "  identical after decoding and encoding",
    ]
    entry = meshferry("inspect", "--json", idle).entries[0]
    assert (entry["bones"], entry["triangles"]) == (2, 0)


def test_a_mesh_tells_its_version_bones_and_animations(meshferry, moving):
    done = meshferry("inspect", "--verify", moving)
    assert done.out.startswith(f"{moving}: UNIGINE Mesh ms12\n  1 node, 12 triangles, 16 vertices, 2 surfaces\n")
    assert "animation 'lift', bone, 4 frames\n" in done.out
    assert done.out.endswith("identical after decoding and encoding\n")


def test_a_version_that_is_only_read_has_facts_but_no_verification(meshferry, tmp_path):
    written = rigs.write_animation(tmp_path / "idle.anim", version="AN13").read_bytes()
    old = tmp_path / "old.anim"
    # an12 is an13 without the 12 bytes before the second magic (section 8.3 of docs/formats/unigine.md).
    second = written.index(b"an13", 4)
    old.write_bytes((written[: second - 12] + written[second:]).replace(b"an13", b"an12"))
    done = meshferry("inspect", old)
    assert (done.status, done.out.splitlines()[:2]) == (0, [f"{old}: UNIGINE Animation an12", "  2 bones"])
    done = meshferry("inspect", "--verify", old)
    assert done.status == 1
    assert "an13" in done.err
    assert "  2 bones" in done.out
    assert "identical" not in done.out
    done = meshferry("convert", old, tmp_path / "out.svg")
    assert done.status == 2
    assert "Nothing here writes '.svg' files; known are" in done.err
    assert ".world" not in done.err.partition("known are")[2]


@pytest.mark.parametrize("version", ["mr02", "ms10", "ms11", "ms12", "ms13", "ms14", "ms15"])
def test_to_another_version(meshferry, tmp_path, version):
    from meshferry.io_formats import api
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    scene = rigs.make_rig("box")
    scene.skeletons, scene.nodes[0].skeleton = [], None
    scene.nodes[0].mesh.joint_indices = scene.nodes[0].mesh.joint_weights = None
    api.write_scene(scene, tmp_path / "box.mesh", UNIGINE_MESH)
    target = tmp_path / "out" / "box.mesh"
    folder = ["--to", "mesh", "-o", tmp_path / "out"]
    done = meshferry("convert", tmp_path / "box.mesh", *folder, "--mesh-version", version)
    assert done.status == 0, done.err
    assert target.read_bytes()[:4] == version.encode()
    assert scene_of(target).triangle_count == 12


def test_a_version_that_cannot_hold_an_armature_is_refused_and_nothing_written(meshferry, mesh, tmp_path):
    done = meshferry("convert", mesh, tmp_path / "out.mesh", "--mesh-version", "ms15")
    assert done.status == 1
    assert "ms14" in done.err
    assert not (tmp_path / "out.mesh").exists()


def test_an_animation_of_another_version(meshferry, idle, tmp_path):
    for version in ("an10", "an13", "an11"):
        target = tmp_path / f"{version}.anim"
        options = ("--animation-version", version, "--skeleton", rigs.SKELETON)
        assert meshferry("convert", idle, target, *options).status == 0
        assert target.read_bytes()[:4] == version.encode()
        assert rise_of(target) == pytest.approx(4, abs=1e-3)


def test_animations_out_of_a_mesh(meshferry, moving, tmp_path):
    done = meshferry("convert", "--strict", moving, "--to", "anim", "-o", tmp_path / "out")
    assert (done.status, done.err) == (0, ""), done.err
    assert names_in(tmp_path / "out") == [f"{moving.stem}.lift.anim", f"{moving.stem}.swing.anim"]
    assert "1 animation ('swing', 7 frames)" in done.out
    assert "triangle" not in done.out
    assert rise_of(tmp_path / "out" / f"{moving.stem}.swing.anim") == 6


def test_several_animations_do_not_become_one_file(meshferry, moving, tmp_path):
    done = meshferry("convert", moving, tmp_path / "out.anim")
    assert done.status == 1
    assert "2 animations ('lift', 'swing') cannot become one file; choose one with --clip-names" in done.err
    assert meshferry("convert", moving, tmp_path / "out.anim", "--clip-names", "sw*").status == 0
    assert rise_of(tmp_path / "out.anim") == 6


def test_one_animation_of_a_file_is_named_after_the_file(meshferry, tmp_path):
    sources = [rigs.write_mesh(tmp_path / f"{name}.mesh", [rigs.make_clip("scene", 3)]) for name in ("one", "two")]
    assert meshferry("convert", *sources, "--to", "anim", "-o", tmp_path / "out").status == 0
    assert names_in(tmp_path / "out") == ["one.anim", "two.anim"]


def test_a_new_name_of_an_animation_is_in_that_of_its_file(meshferry, moving, tmp_path):
    renamed = ["--rename-clip", "lift=Lift up", "--rename-clip", "swing=lift"]
    assert meshferry("convert", moving, "--to", "anim", "-o", tmp_path / "out", *renamed).status == 0
    assert names_in(tmp_path / "out") == [f"{moving.stem}.Lift up.anim", f"{moving.stem}.lift.anim"]
    assert rise_of(tmp_path / "out" / f"{moving.stem}.lift.anim") == 6
    one = ["--clip-names", "swing", "--rename-clip", "swing=turn"]
    assert meshferry("convert", moving, "--to", "anim", "-o", tmp_path / "other", *one).status == 0
    assert names_in(tmp_path / "other") == [f"{moving.stem}.turn.anim"]


CLIP_ARGUMENTS = {
    "crane.lift crane.swing": [],
    "crane": ["--clip-names", "swing"],
    "crane.turn": ["--clip-names", "swing", "--rename-clip", "swing=turn"],
    "crane.lift crane.turn": ["--rename-clip", "swing=turn"],
}
"""By the names of the files that a mesh with the animations ``lift`` and ``swing`` becomes."""


@pytest.mark.parametrize("expected", CLIP_ARGUMENTS)
def test_convert_and_batch_name_animations_alike(meshferry, moving, tmp_path, expected):
    (tmp_path / "in").mkdir()
    moving.rename(tmp_path / "in" / "crane.mesh")
    for command, options in (("convert", []), ("batch", ["--jobs", "1"])):
        out = tmp_path / command
        given = [*CLIP_ARGUMENTS[expected], *options]
        assert meshferry(command, tmp_path / "in" / "crane.mesh", "--to", "anim", "-o", out, *given).status == 0
        assert sorted(path.stem for path in out.glob("*.anim")) == expected.split()


@pytest.mark.parametrize(
    ("renamed", "said"),
    [
        ("wave=turn", "there is no animation 'wave'; there are 'lift', 'swing'"),
        ("lift=swing", "there is another animation 'swing'"),
    ],
)
def test_new_names_that_cannot_be(meshferry, moving, tmp_path, renamed, said):
    target = tmp_path / "out.mesh"
    done = meshferry("convert", moving, target, "--rename-clip", renamed, "--mesh-version", "ms12")
    assert done.status == 1
    assert said in done.err
    assert not target.exists()


@pytest.mark.parametrize("text", ["lift", "=turn", "lift="])
def test_a_renaming_has_two_names(meshferry, moving, text):
    done = meshferry("convert", moving, "out.mesh", "--rename-clip", text)
    assert done.status == 2
    assert "is not OLD=NEW" in done.err


def test_a_name_need_not_be_in_every_file_of_a_run_but_in_one(meshferry, tmp_path):
    rigs.write_mesh(tmp_path / "in" / "one.mesh", [rigs.make_clip("lift", 3)])
    rigs.write_mesh(tmp_path / "in" / "two.mesh", [rigs.make_clip("swing", 3)])
    folder = ["--to", "mesh", "-o", tmp_path / "out", "--mesh-version", "ms12", "--embedded-animation"]
    done = meshferry("convert", tmp_path / "in", *folder, "--rename-clip", "swing=turn")
    assert (done.status, done.err) == (0, "")
    assert clips_of(tmp_path / "out" / "two.mesh") == [("turn", 3)]
    done = meshferry("convert", tmp_path / "in", *folder, "--rename-clip", "wave=turn")
    assert done.status == 1
    assert "convert: --rename-clip: there is no animation 'wave'; there are 'lift', 'swing'" in done.err


def test_animations_that_stay_out_are_said_and_not_counted(meshferry, moving, tmp_path):
    done = meshferry("convert", moving, tmp_path / "out.mesh")
    assert done.out == f"{moving} -> {tmp_path / 'out.mesh'}: 1 object, 12 triangles, 2 materials, 2 bones\n"
    assert "'lift', 'swing'" in done.err
    assert clips_of(tmp_path / "out.mesh") == []


def test_animations_into_a_mesh(meshferry, mesh, idle, tmp_path):
    other = rigs.write_animation(tmp_path / "walk.anim", 9, version="AN10")
    target = tmp_path / "out.mesh"
    into = ["--mesh-version", "ms12", "--embedded-animation", "--rename-clip", "walk=run"]
    done = meshferry("convert", idle, mesh, other, target, *into)
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == "Converted 3 of 3 files"
    assert f"{mesh} -> {target}: 1 object, 12 triangles, 2 materials, 2 bones, 2 animations" in done.out
    assert clips_of(target) == [("idle", 5), ("run", 9)]
    assert (rise_of(target, "idle"), round(rise_of(target, "run"), 3)) == (4, 8)


def test_bones_meet_by_name_and_missing_ones_are_said(meshferry, mesh, tmp_path):
    other = rigs.write_animation(tmp_path / "walk.anim", 5, ("Root", "Tail", "Fin", "Arm"))
    target = tmp_path / "out.mesh"
    into = [target, "--mesh-version", "ms11", "--embedded-animation"]
    done = meshferry("convert", mesh, other, *into)
    assert done.status == 0
    assert f"{other}: warning: walk: 2 bones not in 'crane' left out: 'Tail', 'Fin'" in done.err
    assert rise_of(target) == 4
    assert [track.target for track in scene_of(target).clips[0].transforms] == [0, 1]
    stranger = rigs.write_animation(tmp_path / "swim.anim", 5, ("Fin", "Tail"))
    done = meshferry("convert", mesh, stranger, *into)
    assert done.status == 1
    assert "'crane' has no bone of 'swim'" in done.err
    assert meshferry("convert", "--strict", mesh, other, *into).status == 1


def test_animations_into_a_mesh_are_asked_for(meshferry, mesh, idle, tmp_path):
    target = tmp_path / "out.mesh"
    done = meshferry("convert", mesh, idle, target)
    assert done.status == 2
    assert "--embedded-animation" in done.err
    done = meshferry("convert", mesh, idle, target, "--embedded-animation", "--mesh-version", "ms13")
    assert done.status == 1
    assert "ms12" in done.err
    assert meshferry("convert", idle, rigs.write_animation(tmp_path / "b.anim"), target).status == 2
    assert not target.exists()


def test_a_mesh_for_a_format_without_bones(meshferry, moving, tmp_path):
    pytest.importorskip("google.protobuf")
    done = meshferry("convert", moving, tmp_path / "crane.timbermesh")
    assert done.status == 0
    assert done.out == f"{moving} -> {tmp_path / 'crane.timbermesh'}: 1 object, 12 triangles, 2 materials\n"
    assert "2 bones" in done.err
    assert "4 animated bones not carried over: 'lift', 'swing'" in done.err


def test_nodes_of_a_tree_stand_where_they_stood(meshferry, windmill, tmp_path):
    done = meshferry("convert", windmill, tmp_path / "out.mesh")
    assert done.status == 1
    assert "2 objects ('windmill', '#Sails') cannot become one file; use --mesh-files joined" in done.err
    assert meshferry("convert", windmill, tmp_path / "out.mesh", "--mesh-files", "joined").status == 0
    points = scene_of(tmp_path / "out.mesh").nodes[0].mesh.points
    assert np.array_equal(points.max(0), [1, 1, 4])  # the sails stand 3 m up, 1 m in front
    assert np.array_equal(points.min(0), [-1, -2, -1])
    assert meshferry("convert", windmill, "--to", "unigine_mesh", "-o", tmp_path / "out").status == 0
    assert names_in(tmp_path / "out") == ["windmill.#Sails.mesh", "windmill.windmill.mesh"]


def test_what_holds_nothing_of_the_kind(meshferry, mesh, idle, tmp_path):
    done = meshferry("convert", mesh, tmp_path / "out.anim")
    assert done.status == 1
    assert "There is nothing in 'crane' that a UNIGINE Animation file can hold" in done.err
    assert meshferry("convert", idle, tmp_path / "out.mesh").status == 1


def test_a_folder_gives_meshes_or_animations(meshferry, tmp_path):
    rigs.write_mesh(tmp_path / "in" / "crane.mesh", [rigs.make_clip("lift", 3)])
    rigs.write_animation(tmp_path / "in" / "crane.anim")
    done = meshferry("convert", "--json", tmp_path / "in", "--to", "anim", "-o", tmp_path / "a")
    assert [entry["input"] for entry in done.entries] == [str(tmp_path / "in" / "crane.anim")]
    done = meshferry("convert", "--json", tmp_path / "in", "--to", "mesh", "-o", tmp_path / "m")
    assert [entry["input"] for entry in done.entries] == [str(tmp_path / "in" / "crane.mesh")]


def test_turned_when_read_and_turned_back_when_written(meshferry, mesh, tmp_path):
    pytest.importorskip("google.protobuf")
    assert meshferry("convert", "--turn", mesh, tmp_path / "turned.mesh").status == 0
    assert (tmp_path / "turned.mesh").read_bytes()[4:] == mesh.read_bytes()[4:]
    # Toward a format that knows no such turn it counts once.
    for flag, sign in (("--turn", -1), ("--no-turn", 1)):
        assert meshferry("convert", flag, mesh, tmp_path / "out.timbermesh").status == 0
        first = scene_of(tmp_path / "out.timbermesh").nodes[0].mesh.points[0]
        assert np.allclose(first, sign * np.array([-1, -1, -sign]))


def test_options_count_for_the_formats_that_have_them(meshferry, idle, tmp_path):
    done = meshferry("convert", idle, tmp_path / "out.anim", "--turn", "--surface-name")
    assert (done.status, done.err) == (0, "convert: warning: --surface-name has no effect in this conversion\n")
    done = meshferry("convert", idle, tmp_path / "out.anim", "--mesh-version", "ms12")
    text = "'--mesh-version' has no effect when writing UNIGINE Animation files; leave it out\n"
    assert (done.status, done.err) == (2, text)


def test_every_real_file_is_the_same_after_decoding_and_encoding(meshferry, samples):
    done = meshferry("inspect", "--verify", "--json", samples / "unigine")
    assert done.status == 0, done.err
    assert len(done.entries) == 42
    assert all(entry["identical"] for entry in done.entries)
    assert meshferry("check", samples / "unigine").status == 0
