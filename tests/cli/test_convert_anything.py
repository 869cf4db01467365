"""``meshferry convert`` from and to the formats of Blender's own importers and exporters."""

import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import conversion_measure as measure
import conversion_models as models
import numpy as np
import pytest
from outputs import names_in

pytestmark = pytest.mark.needs_bpy

FOREIGN = ("glb", "gltf", "fbx", "obj", "ply", "usd", "usdz")


@pytest.fixture(autouse=True)
def _this_blender_has_it(request):
    """Skip tests of USD where a Blender is built without."""
    import bpy

    kind = request.node.callspec.params.get("kind", "") if hasattr(request.node, "callspec") else ""
    if (kind.startswith("usd") or request.node.name in USING_ALL) and "usd_export" not in dir(bpy.ops.wm):
        pytest.skip("this Blender is built without USD")


USING_ALL = (
    "test_images_come_along",
    "test_images_of_one_name_do_not_meet",
    "test_what_kinds_of_files_promise_to_hold",
)


@pytest.fixture
def model(tmp_path):
    """Return a tree with a moving object and a deforming one."""
    return write(models.make_timbermesh(), tmp_path / "model.timbermesh")


def write(scene, path, **options):
    from meshferry.io_formats import api, registry

    api.write_scene(scene, path, registry.by_extension(path.suffix), options)
    return path


def make_blend(path, scene):
    """Save a scene as a .blend file."""
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.cli.conversions.blend_files import BlendSession

    with BlendSession() as session:
        session.start_empty()
        options = ImportOptions.of({"use_file_frame_rate": True, "use_weld": False})
        session.import_scene(scene, options, path)
        session.save(path, compress=False)
    return path


# -- contents of files, read by independent readers ---------------------------------------------


def glb_content(path):
    """Return the JSON and the binary part of a .glb file, read by its specification."""
    data = path.read_bytes()
    magic, version, length = struct.unpack_from("<4sII", data)
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    return json.loads(data[20 : 20 + size]), data[28 + size :]


def test_a_glb_says_metres_and_y_up(meshferry, model, tmp_path):
    done = meshferry("convert", model, tmp_path / "model.glb")
    assert done.status == 0
    assert "3 objects, 84 triangles, 2 materials, 1 animation ('Move', 5 frames at 24 fps)" in done.out
    content, _binary = glb_content(tmp_path / "model.glb")
    nodes = {node["name"]: node for node in content["nodes"]}
    assert set(nodes) == {"Stand", "Lid", "Flag"}
    assert nodes["Lid"]["translation"] == pytest.approx([0, 3, -0.5])  # (0, 0.5, 3) with Z up
    assert [animation["name"] for animation in content["animations"]] == ["Move"]
    times = {sampler["input"] for sampler in content["animations"][0]["samplers"]}
    assert all(content["accessors"][at]["min"] == [0] for at in times)
    assert max(content["accessors"][at]["max"][0] for at in times) == pytest.approx(4 / 24)
    mesh = content["meshes"][nodes["Stand"]["mesh"]]
    corners = [content["accessors"][one["attributes"]["POSITION"]] for one in mesh["primitives"]]
    high = np.max([one["max"] for one in corners], axis=0)
    points = models.make_timbermesh().nodes[0].mesh.points
    assert high == pytest.approx([points[:, 0].max(), points[:, 2].max(), -points[:, 1].min()], abs=1e-5)


def test_a_glb_holds_nothing_of_ours_but_the_frame_rate(meshferry, model, tmp_path):
    import bpy

    make_blend(tmp_path / "plain.blend", models.make_timbermesh())
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "plain.blend"))
    bpy.data.objects["Lid"]["height"] = 3.5
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "own.blend"))
    for source in (model, tmp_path / "own.blend"):
        assert meshferry("convert", source, tmp_path / "model.glb").status == 0
        content, _ = glb_content(tmp_path / "model.glb")
        assert content["scenes"][0].pop("extras") == {"meshferry_frames_per_second": 24}
        assert "meshferry" not in json.dumps(content)
    assert [node.get("extras") for node in content["nodes"] if node["name"] == "Lid"] == [{"height": 3.5}]


def test_the_root_of_a_file_is_the_root_again(meshferry, model, tmp_path):
    for kind in ("glb", "fbx"):
        assert meshferry("convert", model, tmp_path / f"there.{kind}").status == 0
        assert meshferry("convert", tmp_path / f"there.{kind}", tmp_path / f"{kind}.timbermesh").status == 0
        found = measure.measured_file(tmp_path / f"{kind}.timbermesh")
        assert found.links == {("Lid", "Stand"), ("Flag", "Stand")}
        entry = meshferry("inspect", "--json", tmp_path / f"{kind}.timbermesh").entries[0]
        assert entry["nodes"] == 3


def test_an_obj_says_the_same_in_text(meshferry, model, tmp_path):
    assert meshferry("convert", model, tmp_path / "model.obj").status == 0
    lines = (tmp_path / "model.obj").read_text().splitlines()
    assert {line[2:] for line in lines if line.startswith("o ")} == {"Flag", "Lid", "Stand"}
    assert "mtllib model.mtl" in lines
    found = np.array([line.split()[1:4] for line in lines if line.startswith("v ")], float)
    scene = models.make_timbermesh()
    places = [node.mesh.points + np.array(node.translation) for node in scene.nodes]
    wanted = np.concatenate([places[0], places[1], places[2]])[:, [0, 2, 1]] * (1, 1, -1)
    assert sorted(map(tuple, found.round(3))) == sorted(map(tuple, wanted.round(3) + 0.0))


def test_sharp_edges_that_a_ply_makes_smooth_are_reported(meshferry, tmp_path):
    import bpy

    sharp = {}
    for name in ("sharp", "smooth"):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        bpy.ops.mesh.primitive_cube_add()
        if name == "smooth":
            bpy.context.object.data.shade_smooth()
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"{name}.blend"))
        (entry,) = meshferry("convert", "--json", tmp_path / f"{name}.blend", tmp_path / f"{name}.ply").entries
        sharp[name] = [text for text in entry["warnings"] if "sharp" in text]
    text = "1 object's sharp edges not carried over, since the file has one normal a vertex: 'Cube'"
    assert sharp == {"sharp": [text], "smooth": []}


@pytest.mark.parametrize("size", [1.0, 5e-3, 68e-6])
def test_coordinates_of_small_objects_in_an_obj(meshferry, tmp_path, size):
    """Blender writes six decimals, whatever the size."""
    from meshferry.io_formats.core.scene import Node, Scene

    mesh = models.make_blob(5, 24, ("",), 1, 1)
    mesh.points *= np.float32(size / 2)
    source = write(Scene("model", [Node("model", mesh=mesh)]), tmp_path / "model.timbermesh")
    assert meshferry("convert", source, tmp_path / "model.obj").status == 0
    lines = (tmp_path / "model.obj").read_text().splitlines()
    found = np.array([line.split()[1:4] for line in lines if line.startswith("v ")], float)
    assert found == pytest.approx(mesh.points[:, [0, 2, 1]] * (1, 1, -1), abs=size * 2e-6)
    assert meshferry("convert", tmp_path / "model.obj", tmp_path / "back.timbermesh").status == 0
    back = measure.measured_file(tmp_path / "back.timbermesh").points
    assert back == pytest.approx(mesh.points[mesh.corner_point], abs=size * 2e-6)


# -- there and back -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["glb", "fbx", "usd"])
def test_several_animations(meshferry, tmp_path, kind):
    scene = models.make_unigine()
    (first,) = scene.clips
    far = [replace(track, translation=track.translation * 2) for track in first.transforms]
    scene.clips.append(replace(first, name="Far", transforms=far))
    source = write(scene, tmp_path / "model.mesh", mesh_version="MS12", use_embedded_animation=True)
    there = meshferry("convert", source, tmp_path / f"model.{kind}")
    assert there.status == 0
    assert ("1 further animation not carried over: 'Far'" in there.err) == (kind == "usd")
    back = meshferry("convert", "--json", tmp_path / f"model.{kind}", "--to", "anim", "-o", tmp_path / "out")
    assert back.status == 0, back.err
    assert not [text for entry in back.entries for text in entry["warnings"]]
    found = {path.stem: measure.measured_file(path) for path in (tmp_path / "out").iterdir()}
    assert set(found) == ({"model"} if kind == "usd" else {"model.Far", "model.Move"})
    assert found["model" if kind == "usd" else "model.Move"].posed["mPelvis"] == pytest.approx([0.5, 0, 0], abs=1e-4)
    if kind != "usd":
        assert found["model.Far"].posed["mPelvis"] == pytest.approx([1, 0, 0], abs=1e-4)


def test_another_rate_comes_back(meshferry, tmp_path):
    scene = models.make_timbermesh()
    scene.clips[0].fps = 60.0
    assert meshferry("convert", write(scene, tmp_path / "a.timbermesh"), tmp_path / "a.glb").status == 0
    done = meshferry("convert", "--json", tmp_path / "a.glb", tmp_path / "b.timbermesh")
    assert done.entries[0]["facts"]["clips"] == [{"name": "Move", "kind": "node and vertex", "frames": 5, "fps": 60}]


@pytest.mark.parametrize(
    ("frames", "stated", "expected"), [(1, 25.0, 25), (5, 29.97, 29.97), (5, 7.0, 25), (1, "x", 24)]
)
def test_the_rate_stated_in_gltf_files_is_used_where_keys_agree(meshferry, tmp_path, frames, stated, expected):
    scene = models.make_timbermesh()
    (clip,) = scene.clips
    clip.fps, clip.frame_count, clip.vertices = 29.97 if stated == 29.97 else 25.0, frames, []
    for track in clip.transforms:
        for channel in ("translation", "rotation", "scale"):
            setattr(track, channel, getattr(track, channel)[:frames])
    source = write(scene, tmp_path / "model.timbermesh")
    assert meshferry("convert", source, tmp_path / "model.gltf").status == 0
    content = json.loads((tmp_path / "model.gltf").read_text(encoding="utf-8"))
    extras = content["scenes"][0]["extras"]
    assert extras["meshferry_frames_per_second"] == pytest.approx(clip.fps)
    extras["meshferry_frames_per_second"] = stated
    (tmp_path / "model.gltf").write_text(json.dumps(content), encoding="utf-8")
    done = meshferry("convert", "--json", tmp_path / "model.gltf", tmp_path / "back.timbermesh")
    (back,) = done.entries[0]["facts"]["clips"]
    assert (back["frames"], back["fps"]) == (frames, pytest.approx(expected))


def test_animations_join_the_mesh(meshferry, tmp_path):
    from meshferry.io_formats.core.scene import Scene

    (tmp_path / "in").mkdir()
    mesh = write(models.make_unigine(), tmp_path / "in" / "body.mesh", mesh_version="MS13")
    clip = replace(models.bone_clip(), name="walk")
    walk = write(Scene("walk", [], [models.make_skeleton()], [clip]), tmp_path / "in" / "walk.anim")
    done = meshferry("convert", mesh, walk, tmp_path / "body.glb")
    assert done.status == 0, done.err
    content, _ = glb_content(tmp_path / "body.glb")
    assert [animation["name"] for animation in content["animations"]] == ["walk"]
    assert len(content["skins"]) == 1
    both = meshferry("convert", tmp_path / "in", "--to", "fbx", "-o", tmp_path / "out")
    assert both.status == 0, both.err
    assert names_in(tmp_path / "out") == ["body.fbx", "walk.fbx"]


def test_what_kinds_of_files_promise_to_hold(meshferry, tmp_path):
    """More of everything than games want: 8 UV maps, 2 colour layers, 6 weights a vertex."""
    import bpy
    from meshferry.cli.conversions.blender_formats import BLENDER_FORMATS
    from meshferry.io_formats.core.scene import Joint

    scene = models.make_unigine()
    scene.clips, mesh = [], scene.nodes[0].mesh
    fresh = models.make_blob(9, 30, ("Steel", "Wood"), 8, 2)
    mesh.uvs, mesh.colors, mesh.surfaces = fresh.uvs, fresh.colors, []
    scene.skeletons[0].joints += [Joint(f"Extra{n}", 1, (0.0, 0.0, 0.5)) for n in range(4)]
    mesh.joint_indices = np.tile(np.arange(6, dtype=np.int32), (len(mesh.points), 1))
    mesh.joint_weights = np.tile(np.array([0.3, 0.25, 0.2, 0.1, 0.1, 0.05], np.float32), (len(mesh.points), 1))
    source = make_blend(tmp_path / "rich.blend", scene)
    before = measure.measured_file(source)
    for known in BLENDER_FORMATS[1:]:
        target = tmp_path / f"rich{known.extensions[0]}"
        assert meshferry("convert", source, target).status == 0
        kept = measure.survived(before, measure.measured_file(target))
        can = known.capabilities_in(bpy.app.version)
        colors = min(2, can.color_layers)
        wanted = ["P", *("N" if can.normals else ""), f"U{min(8, can.uv_layers)}"]
        whole = colors - min(colors, can.opaque_colors)
        wanted += [f"C{whole}" if whole else f"c{colors}", *("M" if can.materials else "")]
        wanted += [*("K" if can.shape_keys else ""), *("W" if can.skeletons else "")]
        assert kept == "".join(wanted), known.name


@pytest.mark.parametrize("kind", ["glb", "gltf", "obj", "ply"])
def test_the_same_bytes_again(meshferry, model, tmp_path, kind):
    for folder in ("one", "two"):
        assert meshferry("convert", model, "--to", kind, "-o", tmp_path / folder).status == 0
    assert names_in(tmp_path / "one") == names_in(tmp_path / "two")
    for name in names_in(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def image_beside(kind, owner, image):
    """Return the path of an image beside a file."""
    return f"{'textures/' if kind == 'usd' else ''}{owner}.{image}.png"


def test_images_come_along(meshferry, tmp_path):
    import bpy

    make_blend(tmp_path / "plain.blend", models.make_timbermesh())
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "plain.blend"))
    image = bpy.data.images.new("Bark", 4, 4)
    image.pixels = [0.25, 0.5, 0.75, 1.0] * 16
    image.pack()
    material = bpy.data.materials["Wood"]
    tree = material.node_tree
    node = tree.nodes.new("ShaderNodeTexImage")
    node.image = image
    shader = next(one for one in tree.nodes if one.type == "BSDF_PRINCIPLED")
    tree.links.new(node.outputs["Color"], shader.inputs["Base Color"])
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "painted.blend"))
    beside = {kind: image_beside(kind, "painted", "Bark") for kind in ("gltf", "obj", "usd")}
    beside |= dict.fromkeys(("glb", "fbx", "usdz"), "")
    for kind, name in beside.items():
        folder = tmp_path / kind
        assert meshferry("convert", tmp_path / "painted.blend", "--to", kind, "-o", folder).status == 0
        assert (name in names_in(folder)) == bool(name), names_in(folder)
        assert meshferry("convert", folder / f"painted.{kind}", tmp_path / f"{kind}.blend").status == 0
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / f"{kind}.blend"))
        sizes = [tuple(one.size) for one in bpy.data.images if one.type == "IMAGE"]
        assert (4, 4) in sizes, kind


def test_images_of_one_name_do_not_meet(meshferry, tmp_path):
    """Each model has a picture of its own, and both pictures are called the same."""
    import bpy

    for name, red in (("crate", 1.0), ("lamp", 0.0)):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        bpy.ops.mesh.primitive_cube_add()
        image = bpy.data.images.new("wood.old", 4, 4)
        image.pixels = [red, 0.5, 0.5, 1.0] * 16
        (tmp_path / name).mkdir()
        image.filepath_raw, image.file_format = str(tmp_path / name / "wood.old.png"), "PNG"
        image.save()
        material = bpy.data.materials.new("Wood")
        material.use_nodes = True
        node = material.node_tree.nodes.new("ShaderNodeTexImage")
        node.image = image
        shader = next(one for one in material.node_tree.nodes if one.type == "BSDF_PRINCIPLED")
        material.node_tree.links.new(node.outputs["Color"], shader.inputs["Base Color"])
        bpy.context.object.data.materials.append(material)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / f"{name}.blend"))
    for kind in ("gltf", "obj", "usd"):
        folder = tmp_path / kind
        sources = [tmp_path / "crate.blend", tmp_path / "lamp.blend"]
        assert meshferry("convert", *sources, "--to", kind, "-o", folder).status == 0
        for name in ("crate", "lamp"):
            written = folder / image_beside(kind, name, "wood_old")
            assert written.read_bytes() == (tmp_path / name / "wood.old.png").read_bytes(), kind
            main = folder / f"{name}.{'mtl' if kind == 'obj' else kind}"
            assert written.name.encode() in main.read_bytes() or kind == "usd"


def test_images_have_their_names_again_after_an_export(tmp_path):
    """Collections of one .blend file are exported one after the other."""
    import bpy
    from meshferry.blender_data.addon_formats.image_files import own_image_files

    bark = bpy.data.images.new("Bark", 4, 4)
    bark.pixels = [0.25, 0.5, 0.75, 1.0] * 16
    bark.pack()
    for owner in ("crate", "lamp"):
        folder = tmp_path / owner
        folder.mkdir()
        with own_image_files(folder, owner, [bark]):
            assert bark.name == f"{owner}.Bark.png"
            assert [path.name for path in folder.rglob("*.png")] == [f"{owner}.Bark.png"]
        assert (bark.name, bark.filepath, bark.packed_file is not None) == ("Bark", "", True)


# -- what is left out, said and refused -----------------------------------------------------------


def test_coarser_levels_and_shapes_stay_behind(meshferry, tmp_path):
    done = meshferry("convert", models.ROOT / "examples" / "tunic.llmesh", tmp_path / "tunic.glb")
    assert done.status == 0
    assert "3 lower levels of detail not carried over: 'tunic_LOD2', 'tunic_LOD1', 'tunic_LOD0'" in done.err
    assert "4 physics shapes not carried over" in done.err
    content, _ = glb_content(tmp_path / "tunic.glb")
    assert [mesh["name"] for mesh in content["meshes"]] == ["tunic"]
    blend = make_blend(tmp_path / "all.blend", models.make_everything())
    done = meshferry("convert", "--hidden", blend, tmp_path / "all.glb")  # they come in hidden
    assert "1 lower level of detail not carried over: 'Stand_LOD1'" in done.err
    assert "1 physics shape not carried over: 'Stand_hull'" in done.err
    content, _ = glb_content(tmp_path / "all.glb")
    assert not [node["name"] for node in content["nodes"] if node["name"].startswith("Stand_")]


def test_a_rigged_mesh_of_the_avatar_is_not_for_uploads(meshferry, tmp_path):
    tunic = models.ROOT / "examples" / "tunic.llmesh"
    note = "1 rigged mesh is not for uploads: the avatar does not face +X"
    for target in ("tunic.glb", "tunic.gltf", "tunic.blend"):
        done = meshferry("convert", tunic, tmp_path / target)
        assert (done.err.count(note), done.status) == (0 if target == "tunic.blend" else 1, 0)
    for target in ("again.glb", "again.fbx"):
        done = meshferry("convert", tmp_path / "tunic.blend", tmp_path / target)
        assert done.err.count(note) == (target == "again.glb")
    done = meshferry("convert", write(models.make_everything(), tmp_path / "a.timbermesh"), tmp_path / "a.glb")
    assert "uploads" not in done.err


def test_strict_writes_nothing(meshferry, model, tmp_path):
    done = meshferry("convert", "--strict", "--json", model, "--to", "ply", "-o", tmp_path / "out")
    assert done.status == 1
    assert "Refused in strict mode: " in done.entries[0]["error"]
    blend = make_blend(tmp_path / "model.blend", models.make_timbermesh())
    assert meshferry("convert", "--strict", blend, "--to", "obj", "-o", tmp_path / "out").status == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [*FOREIGN, "blend", "meshy"])
def test_dry_run(meshferry, model, tmp_path, kind):
    before = names_in(tmp_path)
    wet = meshferry("convert", "--json", model, "--to", kind, "-o", tmp_path.parent / f"{tmp_path.name}-wet")
    dry = meshferry("convert", "--json", "--dry-run", model, "--to", kind, "-o", tmp_path / "out")
    assert dry.status == 0
    assert names_in(tmp_path) == before
    assert not (tmp_path / "out").exists()
    (said,), (done,) = dry.entries, wet.entries
    assert said["dry_run"] is True
    assert Path(said["output"]) == tmp_path / "out" / f"model.{kind}"
    for key in ("facts", "warnings"):
        assert said[key] == done[key]
    losing = bool(done["warnings"])
    strict = meshferry("convert", "--dry-run", "--strict", model, "--to", kind, "-o", tmp_path / "out")
    assert strict.status == int(losing)
    told = meshferry("convert", "--dry-run", model, "--to", kind, "-o", tmp_path / "out")
    beside = " and 1 file beside it" if kind in {"gltf", "obj"} else ""
    assert f"{model} would become {tmp_path / 'out' / 'model'}.{kind}{beside}: " in told.out


def test_dry_run_writes_no_cache(meshferry, model, tmp_path):
    arguments = [model, tmp_path / "model.blend", "--vertex-animation", "cache"]
    before = names_in(tmp_path)
    assert meshferry("convert", "--dry-run", *arguments).status == 0
    assert names_in(tmp_path) == before
    assert meshferry("convert", model, tmp_path / "model.glb", "--vertex-animation", "cache").status == 0
    assert names_in(tmp_path) == sorted([*before, "model.glb"])


@pytest.mark.parametrize("kind", FOREIGN)
def test_broken_files_are_one_line(meshferry, tmp_path, kind):
    broken = tmp_path / f"broken.{kind}"
    broken.write_bytes(b"nothing of the kind\n" * 20)
    done = meshferry("convert", broken, tmp_path / f"absent.{kind}", "--to", "timbermesh", "-o", tmp_path / "out")
    assert done.status == 1
    first, second = done.err.splitlines()
    assert first.startswith(f"{broken}: Blender ")
    assert "Traceback" not in done.err
    assert "/cli/" not in done.err
    assert second.startswith(f"{tmp_path / f'absent.{kind}'}: The file cannot be read: No such file")
    assert not (tmp_path / "out").exists()


def test_a_failing_exporter_leaves_the_old_file(meshferry, model, tmp_path, monkeypatch):
    from meshferry.cli.conversions import blender_exchange

    def fail(*arguments):
        raise RuntimeError("Error: Python: Traceback (most recent call last):\n  File \"x\"\nKeyError: 'gone'")

    monkeypatch.setattr(blender_exchange, "_run", fail)
    old = tmp_path / "model.glb"
    old.write_bytes(b"old")
    done = meshferry("convert", model, old)
    assert done.status == 1
    assert done.err == f"{model}: Blender cannot write it: KeyError: 'gone'\n"
    assert old.read_bytes() == b"old"


def test_nothing_to_write(meshferry, tmp_path):
    from meshferry.io_formats.core.scene import Scene

    bones = write(Scene("bones", [], [models.make_skeleton()]), tmp_path / "bones.skeleton")
    done = meshferry("convert", bones, tmp_path / "bones.obj")
    assert done.status == 1
    assert "There is no mesh to write; Wavefront OBJ files hold nothing else" in done.err
    assert names_in(tmp_path) == ["bones.skeleton"]


# -- which files ----------------------------------------------------------------------------------


def test_folders_give_all_that_can_become_the_target(meshferry, model, tmp_path):
    library = tmp_path / "library"
    for kind in ("glb", "obj", "timbermesh"):
        assert meshferry("convert", model, "--to", kind, "-o", library / kind).status == 0
    done = meshferry("convert", library, "--to", "glb", "-o", tmp_path / "out")
    assert done.status == 0
    assert names_in(tmp_path / "out") == ["obj/model.glb", "timbermesh/model.glb"]
    done = meshferry("convert", library, "--to", "timbermesh", "-o", tmp_path / "back")
    assert done.status == 0
    assert names_in(tmp_path / "back") == [f"{kind}/model.timbermesh" for kind in ("glb", "obj", "timbermesh")]


def test_files_that_would_be_one_are_refused(meshferry, model, tmp_path):
    library = tmp_path / "library"
    for kind in ("glb", "obj"):
        assert meshferry("convert", model, "--to", kind, "-o", library).status == 0
    done = meshferry("convert", library, "--to", "timbermesh", "-o", tmp_path / "out")
    assert done.status == 2
    assert "model.glb and " in done.err
    assert "would both become" in done.err
    assert not (tmp_path / "out").exists()
    same = meshferry("convert", library / "model.glb", tmp_path / "other.glb")
    assert same.status == 2
    assert "is a .glb file already" in same.err


def test_what_comes_along_overwrites_no_input(meshferry, model, tmp_path):
    assert meshferry("convert", model, tmp_path / "model.gltf").status == 0
    (tmp_path / "model.bin").rename(tmp_path / "kept.bin")
    source = write(models.make_still(), tmp_path / "model.data")
    source = source.rename(tmp_path / "model.bin")
    before = source.read_bytes()
    done = meshferry("convert", source, tmp_path / "model.gltf")
    assert done.status == 1
    assert "would also write model.bin" in done.err
    assert source.read_bytes() == before


def test_collections_of_a_blend_file_become_files(meshferry, tmp_path):
    first = write(models.make_timbermesh(), tmp_path / "first.timbermesh")
    second = write(models.make_timbermesh(), tmp_path / "second.timbermesh")
    assert meshferry("convert", first, second, tmp_path / "both.blend").status == 0
    done = meshferry("convert", tmp_path / "both.blend", "--to", "glb", "-o", tmp_path / "out", "--json")
    assert done.status == 0
    assert names_in(tmp_path / "out") == ["both.first.glb", "both.second.glb"]
    assert [
        len(glb_content(tmp_path / "out" / f"{name}.glb")[0]["nodes"]) for name in ("both.first", "both.second")
    ] == [3, 3]
    assert meshferry("convert", first, second, tmp_path / "both.glb").status == 0
    assert len(glb_content(tmp_path / "both.glb")[0]["nodes"]) == 6


def test_modifiers_are_applied_or_named(meshferry, tmp_path):
    import bpy

    make_blend(tmp_path / "plain.blend", models.make_everything())
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "plain.blend"))
    for name in ("Lid", "Body"):
        bpy.data.objects[name].modifiers.new("Twice", "ARRAY")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "twice.blend"))
    done = meshferry("convert", tmp_path / "twice.blend", tmp_path / "twice.glb")
    assert done.status == 0
    assert "Body: modifiers left out, since the mesh has shape keys: Twice" in done.err
    content, _ = glb_content(tmp_path / "twice.glb")
    counts = {
        mesh["name"]: sum(content["accessors"][one["indices"]]["count"] for one in mesh["primitives"])
        for mesh in content["meshes"]
    }
    assert counts == {"Body": 3 * 48, "Flag": 3 * 24, "Lid": 2 * 3 * 24, "Stand": 3 * 36}


@pytest.mark.parametrize("stretched", [100, 200])
def test_blenders_exporters_follow_time_stretching(meshferry, tmp_path, stretched):
    import bpy

    make_blend(tmp_path / "plain.blend", models.make_timbermesh())
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "plain.blend"))
    for action in bpy.data.actions:
        bpy.data.actions.remove(action)
    lid, bpy.context.scene.render.frame_map_new = bpy.data.objects["Lid"], stretched
    for frame, lid.location.x in ((1, 0.0), (25, 6.0)):
        lid.keyframe_insert("location", frame=frame)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "stretched.blend"))
    assert meshferry("convert", tmp_path / "stretched.blend", tmp_path / "stretched.glb").status == 0
    content, _ = glb_content(tmp_path / "stretched.glb")
    (animation,) = content["animations"]
    ends = {content["accessors"][sampler["input"]]["max"][0] for sampler in animation["samplers"]}
    assert max(ends) == pytest.approx(stretched / 100, abs=1e-3)


def test_hidden_objects(meshferry, tmp_path):
    import bpy

    make_blend(tmp_path / "plain.blend", models.make_timbermesh())
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "plain.blend"))
    bpy.data.objects["Lid"].hide_set(True)
    bpy.data.objects["Stand"].hide_select = True
    bpy.data.collections["model"].hide_select = True
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "hidden.blend"))
    done = meshferry("convert", tmp_path / "hidden.blend", tmp_path / "shown.glb")
    assert "'Lid': hidden, left out" in done.err
    done = meshferry("convert", tmp_path / "hidden.blend", tmp_path / "all.glb", "--hidden")
    assert "left out" not in done.err
    assert "no effect" not in done.err
    found = [{node["name"] for node in glb_content(tmp_path / name)[0]["nodes"]} for name in ("shown.glb", "all.glb")]
    assert found == [{"Stand", "Flag"}, {"Stand", "Flag", "Lid"}]


def test_options_without_effect(meshferry, model, tmp_path):
    done = meshferry("convert", model, tmp_path / "model.glb", "--compressed-blend")
    text = "'--compressed-blend' has no effect when writing glTF Binary files; leave it out\n"
    assert (done.status, done.err, (tmp_path / "model.glb").exists()) == (2, text, False)
    assert meshferry("convert", model, tmp_path / "model.glb").status == 0
    done = meshferry("convert", tmp_path / "model.glb", tmp_path / "back.timbermesh", "--clips", "none")
    assert "no effect" not in done.err
    assert "0 animations" not in done.out
    assert "animation" not in done.out


def test_the_list_of_formats(meshferry):
    done = meshferry("formats", "--json")
    known = {entry["name"]: entry for entry in done.entries}
    assert known["glb"]["needs_blender"] and not known["timbermesh"]["needs_blender"]
    assert known["usd"]["extensions"] == [".usd", ".usdc", ".usda"]
    assert "all objects as one mesh" in meshferry("formats").out


def test_names_that_change_are_said(meshferry, tmp_path):
    scene = models.make_still()
    scene.nodes[0].name = "old oak"
    scene.nodes[0].mesh.materials = ["dry bark"]
    source = make_blend(tmp_path / "tree.blend", scene)
    done = meshferry("convert", source, tmp_path / "tree.obj")
    assert "2 names get _ for spaces: 'old oak', 'dry bark'" in done.err
    lines = (tmp_path / "tree.obj").read_text().splitlines()
    assert "o old_oak" in lines and "usemtl dry_bark" in lines


@pytest.mark.parametrize("kind", ["glb", "fbx"])
def test_sizes_do_not_hang_on_the_kind_of_file(meshferry, tmp_path, kind):
    import bpy
    from meshferry.cli.conversions.blend_files import BlendSession

    with BlendSession() as session:
        session.start_empty()
        scene = bpy.context.scene
        scene.unit_settings.scale_length = 0.01
        mesh = bpy.data.meshes.new("Door")
        mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
        door = bpy.data.objects.new("Door", mesh)
        scene.collection.objects.link(door)
        for frame, place in ((1, 0), (31, 3)):
            door.location.x = place
            door.keyframe_insert("location", frame=frame)
        session.save(tmp_path / "door.blend", compress=False)
    assert meshferry("convert", tmp_path / "door.blend", tmp_path / f"door.{kind}").status == 0
    done = meshferry("convert", "--json", tmp_path / f"door.{kind}", tmp_path / "back.blend")
    assert done.status == 0, done.err
    with BlendSession() as session:
        session.open(tmp_path / "back.blend")
        door = bpy.data.objects["Door"]
        bpy.context.scene.frame_set(round(door.animation_data.action.frame_range[1]))
        places = [door.matrix_world @ vertex.co for vertex in door.data.vertices]
        assert max(place.x for place in places) == pytest.approx(4, abs=1e-3)
        assert min(place.x for place in places) == pytest.approx(3, abs=1e-3)


def test_no_importer_chooses_the_first_object(meshferry, tmp_path):
    """Blender's importers activate objects, that of FBX files another one in each run; exports put these first."""
    faces = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nvt 0 0\nf -3/-1/-1 -2/-1/-1 -1/-1/-1\n"
    for name, objects in (("one", ("apple", "pear")), ("other", ("pear", "apple"))):
        (tmp_path / f"{name}.obj").write_text("".join(f"o {obj}\n{faces}" for obj in objects))
        meshferry("convert", str(tmp_path / f"{name}.obj"), str(tmp_path / f"{name}.dae"))
        assert re.findall('<node id="([^"]*)-node"', (tmp_path / f"{name}.dae").read_text()) == ["apple", "pear"]
