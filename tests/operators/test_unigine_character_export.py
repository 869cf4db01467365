"""Characters for SDK 2.21 as an artist exports them, judged by an independent decoder and by Blender's own poses.

The decoder was written from the format page: it proves agreement with that page, not with the engine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import unigine_meaning as meaning
from unigine_oracle import decode
from unigine_scene_oracle import WrittenScene

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "blender"))
from helpers_export import active, add, materials, mesh_of, model_collection
from helpers_models import rig, skinned

pytestmark = pytest.mark.needs_bpy

COUNTS = (1, 2, 3, 7, 24, 65, 130, 300)
FRAMES = (1, 5, 9)
EXPERIMENTAL = "sk10 and sn10 follow the vendor's description"


def pose(bpy, armature, seed, name, frames=FRAMES):
    """Give an armature an action that turns and moves some of its bones."""
    rng = np.random.default_rng(seed)
    action = bpy.data.actions.new(name)
    armature.animation_data_create().action = action
    for bone in list(armature.pose.bones)[:: max(1, len(armature.pose.bones) // 5)]:
        for frame in frames:
            bone.rotation_quaternion = rng.normal(size=4)
            bone.rotation_quaternion.normalize()
            bone.location = rng.uniform(-0.2, 0.2, 3)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
            bone.keyframe_insert("location", frame=frame)
    return action


def character(bpy, seed):
    """Build an armature and the meshes that it deforms, all in a collection."""
    rng = np.random.default_rng(seed)
    count = COUNTS[seed % len(COUNTS)]
    armature = add(f"Gestell ё{seed}", bpy.data.armatures.new("Gestell"), model_collection())
    with active(armature, mode="EDIT"):
        made = []
        for number in range(count):
            bone = armature.data.edit_bones.new(f"骨 Ж{number}")
            parent = made[rng.integers(number)] if number and rng.random() < 0.95 else None
            bone.head = np.asarray(parent.head if parent else (0, 0, 0)) + rng.uniform(-0.3, 0.3, 3)
            bone.tail = np.asarray(bone.head) + rng.uniform(0.05, 0.3, 3)
            bone.roll, bone.parent = rng.uniform(-3, 3), parent
            made.append(bone)
    if seed % 2:
        size = rng.uniform(0.5, 2)
        armature.location, armature.rotation_euler, armature.scale = (
            rng.uniform(-2, 2, 3),
            rng.uniform(-3, 3, 3),
            [size] * 3,
        )
    for number in range(1 + seed % 3):
        rows, columns = (int(value) for value in rng.integers(3, 7, 2))
        points = [tuple(rng.uniform(-1, 1, 3)) for _ in range(rows * columns)]
        faces = [
            (row * columns + column, row * columns + column + 1, (row + 1) * columns + column)
            for row in range(rows - 1)
            for column in range(columns - 1)
        ]
        obj = add(f"Körper {number}", mesh_of(f"Körper {number}", points, faces), model_collection(), parent=armature)
        surfaces = int(rng.integers(1, 6))
        materials(obj, *(f"Haut {number}.{surface}" for surface in range(surfaces)))
        for place, polygon in enumerate(obj.data.polygons):
            polygon.material_index = place % surfaces
        for point in range(len(points)):
            chosen = rng.permutation(count)[: int(rng.integers(1, 5))]
            for bone, weight in zip(chosen, rng.dirichlet(np.ones(len(chosen))), strict=True):
                name = f"骨 Ж{bone}"
                group = obj.vertex_groups.get(name) or obj.vertex_groups.new(name=name)
                group.add((point,), float(weight), "REPLACE")
        if seed % 4 < 2:
            obj.shape_key_add(name="Basis")
            for key in range(1 + seed % 2):
                shape = obj.shape_key_add(name=f"Lächeln {key}")
                shape.value = 0  # Blender 5.2 shows new keys
                for point in shape.data:
                    point.co = np.asarray(point.co) + rng.uniform(-0.1, 0.1, 3)
        obj.modifiers.new("Armature", "ARMATURE").object = armature
    pose(bpy, armature, seed, f"Лауф {seed}")
    bpy.context.view_layer.update()
    return armature


def export(bpy, path, **options):
    return bpy.ops.export_scene.unigine_scene(
        filepath=str(path), **{"collection": "Model", "sdk_version": "2.21.0.0", **options}
    )


def points_of(bpy, obj):
    """Return the points of an object in the world as Blender shows it."""
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = seen.to_mesh()
    found = np.array([tuple(seen.matrix_world @ vertex.co) for vertex in mesh.vertices])
    seen.to_mesh_clear()
    return found


def moved(points, matrix):
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def assert_character(bpy, armature, written):
    nodes = {node.name: node for node in written.nodes()}
    armature.data.pose_position = "REST"
    bpy.context.view_layer.update()
    objects = [obj for obj in armature.children if obj.type == "MESH"]
    rests = {obj: points_of(bpy, obj) for obj in objects}
    armature.data.pose_position = "POSE"
    for obj in objects:
        node = nodes[obj.name]
        assert node.element.get("type") == "ObjectMeshSkinnedLegacy"
        tags = [child.tag for child in node.element if child.tag != "surface"]
        assert tags == [
            *("mesh_name", "fps_visible_camera", "fps_visible_shadow", "fps_invisible"),
            *("anim_name", "loop", "speed", "playing", "transform"),
        ]
        assert [node.element.findtext(name) for name in ("loop", "speed", "playing")] == ["0", "24", "1"]
        file = written.file(node.element.findtext("mesh_name"))
        mesh, animation = (
            decode(written.file(node.element.findtext(name)).read_bytes()) for name in ("mesh_name", "anim_name")
        )
        skeleton = decode(written.file(mesh.path).read_bytes())
        assert file.suffix == ".mesh_skinned" and mesh.guid == animation.guid
        assert mesh.bones == skeleton.bones == animation.bones
        np.testing.assert_array_equal(mesh.transforms, skeleton.transforms)
        worlds = meaning.rest_matrices(mesh)
        for (name, _), world in zip(mesh.bones, worlds, strict=True):
            np.testing.assert_allclose(world[:3, 3], armature.data.bones[name].head_local, rtol=1e-5, atol=1e-5)
        groups = {group.index: group.name for group in obj.vertex_groups}
        places = []
        for surface in mesh.surfaces:
            shown = moved(surface.targets[0].positions.astype(float), node.world)
            apart = np.linalg.norm(shown[:, None] - rests[obj][None], axis=2)
            places.append(apart.argmin(axis=1))
            assert apart.min(axis=1).max() <= 1e-5 * max(1, np.abs(rests[obj]).max())
            for pairs, vertex in zip(surface.weights, places[-1], strict=True):
                found = {mesh.bones[bone][0]: weight / 65535 for bone, weight in pairs}
                for member in obj.data.vertices[vertex].groups:
                    assert abs(found.get(groups[member.group], 0) - member.weight) <= 1.01 / 65535  # truncated
            for target in surface.targets[1:]:
                key = obj.data.shape_keys.key_blocks[target.name]
                wanted = np.array([tuple(obj.matrix_world @ key.data[vertex].co) for vertex in places[-1]])
                np.testing.assert_allclose(moved(target.positions.astype(float), node.world), wanted, atol=2e-5)
        (_, frames) = animation.animations[0]
        assert animation.fps == 24 and len(frames.translation) == 9 and len(frames.bones) == len(mesh.bones)
        for frame in FRAMES:
            bpy.context.scene.frame_set(frame)
            posed = meaning.posed_matrices(mesh, animation, frames, frame - 1)
            wanted = points_of(bpy, obj)
            for surface, place in zip(mesh.surfaces, places, strict=True):
                shown = moved(meaning.skinned(surface, worlds, posed), node.world)
                assert np.abs(shown - wanted[place]).max() <= 1e-4


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 200))])
def test_generated_characters(clean_blender, tmp_path, capfd, seed):
    bpy = clean_blender
    armature = character(bpy, seed)
    path = tmp_path / "data" / "held.node"
    path.parent.mkdir()
    assert export(bpy, path) == {"FINISHED"}
    assert capfd.readouterr().out.count(EXPERIMENTAL) == 1
    assert_character(bpy, armature, WrittenScene(path))


MESH, LEGACY_CLIP, GRAPH_CLIP = (
    "a27d350b6709653583108f0567436a8e4e76c53d",
    "1e0eecc05caa83e3a5eabbfbe7dd8cbe0b51c080",
    "6c5781e994a509684ad9f7287855bb46e3047f88",
)
"""GUIDs in the node excerpts and in the graph of the samples."""


def meta(path, guid, kind, runtime=""):
    runtime = f'<runtime id="{runtime}" name="g" link="1" type="10"/>' if runtime else ""
    path.with_name(path.name + ".meta").write_text(
        f'<asset version="2.21.0.0"><guid>{guid}</guid><type>{kind}</type><runtimes>'
        f'<runtime id="{guid}" name="{path.name}" link="0"/>{runtime}</runtimes></asset>'
    )


@pytest.fixture
def project(clean_blender, tmp_path):
    """Return the folder of a project with a character, two clips, and the graph of the samples, for two pose nodes."""
    bpy = clean_blender
    data = tmp_path / "data"
    data.mkdir()
    armature = rig()
    skinned(armature)
    for name in ("walk", "idle"):
        pose(bpy, armature, len(name), name)
    export(bpy, data / "made.node")
    found = {path.name: path for path in (data / "made").iterdir()}
    for name, guid, kind in (
        ("Tube.mesh_skinned", MESH, "mesh_skinned"),
        ("Rig_walk.anim", LEGACY_CLIP, "animation"),
        ("Rig_idle.anim", GRAPH_CLIP, "animation"),
    ):
        meta(found[name], guid, kind)
    (data / "made.node").unlink()
    return data


def excerpt(samples, data, name):
    """Put an excerpt of a world into a node file of a project, with the graph that it refers to."""
    folder = samples / "unigine_characters"
    text = (folder / name).read_text()
    graph = data / "idle.agraph"
    graph.write_bytes((folder / "idle.agraph").read_bytes())
    if "anim_script" in text:
        meta(graph, "1" * 40, "animation_graph", text.partition('anim_script guid="')[2][:40])
    body = "".join(f"\t{line}\n" for line in text.splitlines())
    if "controlled_object id" in text:
        identifier = text.partition('controlled_object id="')[2].partition('"')[0]
        body += (
            f'\t<node type="ObjectMeshSkinned" id="{identifier}" name="male">\n\t\t<mesh_name>guid://{MESH}</mesh_name>\n'
            "\t\t<transform>1 0 0 0.0 0 1 0 0.0 0 0 1 0.0 0 0 0 1.0</transform>\n\t</node>\n"
        )
    path = data / "scene.node"
    path.write_text(
        f'<?xml version="1.0" encoding="utf-8"?>\n<nodes version="2.21.0.0">\n{body}</nodes>\n', encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    ("name", "clip", "moving"),
    [
        ("node_legacy_playing_2.21.xml", "Rig_walk", "male"),
        ("node_skeleton_pose_hierarchy_2.21.xml", "Rig_idle", "male_pose"),
        ("node_skeleton_pose_list_2.21.xml", "Rig_idle", "hero"),
    ],
)
def test_real_nodes_come_in_and_go_back(project, samples, capfd, name, clip, moving):
    import bpy

    path = excerpt(samples, project, name)
    before = set(bpy.data.objects)
    capfd.readouterr()
    assert bpy.ops.import_scene.unigine(directory=str(project), files=[{"name": path.name}]) == {"FINISHED"}
    said = capfd.readouterr().out
    assert "imported as empties" not in said and "not found or not readable" not in said
    made = {obj.name: obj for obj in bpy.data.objects if obj not in before}
    (armature,) = (obj for obj in made.values() if obj.type == "ARMATURE")
    (mesh,) = (obj for obj in made.values() if obj.type == "MESH")
    assert mesh.modifiers[0].object == armature
    assert armature.animation_data.action.name == clip
    assert {bone.name for bone in armature.data.bones} == {"Lower", "Upper"}
    data = path.read_bytes()
    (collection,) = (one for one in bpy.data.collections if one.meshferry.from_file)
    assert export(bpy, path, collection=collection.name) == {"FINISHED"}
    assert path.read_bytes() == data
    (moved_object,) = (obj for obj in made.values() if obj.meshferry.source_name == moving)
    moved_object.location.x += 5
    assert export(bpy, path, collection=collection.name) == {"FINISHED"}
    lines = zip(data.splitlines(), path.read_bytes().splitlines(), strict=True)
    assert sum(old != new for old, new in lines) == 1
    assert "edited" not in capfd.readouterr().out
    armature.pose.bones["Upper"].location.x = 7
    armature.pose.bones["Upper"].keyframe_insert("location", frame=2)
    with active(armature, mode="EDIT"):
        armature.data.edit_bones.new("new").tail = (0, 0, 1)
    assert export(bpy, path, collection=collection.name) == {"FINISHED"}
    said = capfd.readouterr().out
    assert f"1 animation edited here, which the file does not hold; export it to an animation file: '{clip}'" in said
    assert f"1 armature with edited bones, which the file does not hold: '{armature.name}'" in said
    with active(armature, mode="EDIT"):
        for name in ("new", "Upper"):
            armature.data.edit_bones.remove(armature.data.edit_bones[name])
    assert export(bpy, path, collection=collection.name) == {"FINISHED"}
    assert capfd.readouterr().out.count(f"edited bones, which the file does not hold: '{armature.name}'") == 1


def test_poses_and_sets_to_be_upgraded(clean_blender, tmp_path, capfd):
    """Meshes of one armature share its pose node and skeleton; sets of 2.20 play the clip in the old form."""
    bpy = clean_blender
    armature = rig(location=(1, 2, 3))
    for name in ("A", "B"):
        skinned(armature, name)
    pose(bpy, armature, 1, "walk").use_fake_user = True
    action = pose(bpy, armature, 2, "idle", (1, 9))
    action.use_frame_range, action.use_cyclic, action.frame_end = True, True, 9
    skinned(rig("Other", {"Lone": ((0, 0, 0), (0, 0, 1), None)}), "C", {"Lone": [1.0] * 12})
    for characters, sdk in (("POSE", "2.22.0.0"), ("UPGRADE", "2.21.0.0")):
        path = tmp_path / characters / "held.node"
        path.parent.mkdir()
        assert export(bpy, path, characters=characters, sdk_version=sdk) == {"FINISHED"}
        said = capfd.readouterr().out
        written = WrittenScene(path)
        nodes = {node.name: node for node in written.nodes()}
        files = sorted(file.name for file in written.files.values())
        if characters == "POSE":
            kinds = [(node.name, node.element.get("type")) for node in written.nodes()]
            assert kinds[1:] == [
                *(("Rig", "NodeSkeletonPose"), ("A", "ObjectMeshSkinned"), ("B", "ObjectMeshSkinned")),
                *(("C", "NodeSkeletonPose"), ("C", "ObjectMeshSkinned")),
            ]
            posed = nodes["Rig"].element
            assert [child.tag for child in posed if child.tag != "node"] == [
                "transform",
                "skeleton",
                "mode",
                "control_type",
            ]
            assert [child.get("name") for child in posed.findall("node")] == ["A", "B"]
            assert written.files[posed.findtext("skeleton")].name == "Rig.skeleton"
            assert files == [
                *("A.mesh_skinned", "B.mesh_skinned", "C.mesh_skinned", "Other.skeleton", "Rig.skeleton"),
                *("Rig_idle.anim", "Rig_walk.anim", "held.node"),
            ]
            assert EXPERIMENTAL in said and "animation graph" in said
            root_version = "2.22.0.0"
        else:
            element = nodes["A"].element
            assert element.get("type") == "ObjectMeshSkinned"
            assert [element.findtext(name) for name in ("loop", "speed", "playing")] == ["1", "24", "1"]
            clip = written.file(element.findtext("anim_name"))
            assert (clip.name, clip.read_bytes()[:4]) == ("Rig_idle.anim", b"an11")
            assert written.file(element.findtext("mesh_name")).read_bytes()[:4] == b"ms14"
            assert EXPERIMENTAL not in said
            root_version = "2.20.0.0"
        texts = [file.read_text("utf-8") for file in path.parent.rglob("*") if file.suffix in {".meta", ".node"}]
        assert all(f'version="{root_version}"' in text for text in texts)


@pytest.mark.parametrize("hides", [False, True])
def test_selected_meshes_share_the_pose_of_their_armature(clean_blender, tmp_path, capfd, hides):
    bpy = clean_blender
    armature = rig()
    meshes = [skinned(armature, name) for name in ("A", "B")]
    add("Other", bpy.data.meshes.new("Other"), model_collection())
    armature.hide_set(hides)
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in meshes)
    export(bpy, tmp_path / "held.node", characters="POSE", collection="")
    names = [(node.name, node.element.get("type")) for node in WrittenScene(tmp_path / "held.node").nodes()]
    assert names == [("Rig", "NodeSkeletonPose"), ("A", "ObjectMeshSkinned"), ("B", "ObjectMeshSkinned")]
    assert "left out" not in capfd.readouterr().out


def test_single_files_of_a_character(clean_blender, tmp_path, capfd):
    """A mesh with its skeleton, then an animation that finds it, and all of them imported again."""
    bpy = clean_blender
    armature = rig()
    tube = skinned(armature)
    pose(bpy, armature, 1, "walk")
    with bpy.context.temp_override(active_object=tube, object=tube, selected_objects=[tube]):
        bpy.context.view_layer.objects.active = tube
        clip = {"filepath": str(tmp_path / "walk.anim"), "animation_version": "AN13", "animated_bones": "ALL"}
        with pytest.raises(RuntimeError, match="Export a mesh of it as sk10"):
            bpy.ops.export_scene.unigine_anim(**clip)
        mesh = {"filepath": str(tmp_path / "tube.mesh"), "collection": "Model", "mesh_version": "SK10"}
        assert bpy.ops.export_scene.unigine_mesh(**mesh) == {"FINISHED"}
        assert bpy.ops.export_scene.unigine_anim(**clip) == {"FINISHED"}
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [*("Rig.skeleton", "Rig.skeleton.meta", "tube.mesh_skinned", "tube.mesh_skinned.meta", "walk.anim")]
    assert capfd.readouterr().out.count(EXPERIMENTAL) == 1
    written, animation = (decode((tmp_path / name).read_bytes()) for name in ("tube.mesh_skinned", "walk.anim"))
    assert written.guid == animation.guid
    files = [{"name": name} for name in ("tube.mesh_skinned", "walk.anim", "Rig.skeleton")]
    before = set(bpy.data.objects)
    assert bpy.ops.import_scene.unigine(directory=str(tmp_path), files=files) == {"FINISHED"}
    (made,) = (obj for obj in bpy.data.objects if obj not in before and obj.type == "ARMATURE")
    assert made.meshferry.skeleton_guid == written.guid
    assert made.animation_data.action.name.startswith("walk")


def test_shape_keys_alone_become_a_skinned_mesh(clean_blender, tmp_path):
    bpy = clean_blender
    obj = add("Face", mesh_of("Face", [(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)]), model_collection())
    obj.shape_key_add(name="Basis")
    obj.shape_key_add(name="smile").data[0].co.z = 1
    assert export(bpy, tmp_path / "face.node") == {"FINISHED"}
    written = WrittenScene(tmp_path / "face.node")
    (node,) = written.nodes()
    assert node.element.get("type") == "ObjectMeshSkinnedLegacy"
    assert [node.element.findtext(name) for name in ("anim_name", "speed", "playing")] == [None, "30", None]
    mesh = decode(written.file(node.element.findtext("mesh_name")).read_bytes())
    assert [target.name for target in mesh.surfaces[0].targets] == ["", "smile"]
    assert mesh.bones == [("root", -1)]


def test_rest_poses_and_masks_come_back(clean_blender, samples, tmp_path, capfd):
    """The fixture of the format page, with a rest pose of its own, through Blender; and again over the files."""
    bpy = clean_blender
    source = tmp_path / "in"
    source.mkdir()
    data = bytearray((samples / "unigine_characters" / "fixtures" / "minimal.mesh_skinned").read_bytes())
    data[251:255] = np.float32(0.25).tobytes()  # the second rest transform, 40 bytes after the first at 207
    (source / "a.mesh_skinned").write_bytes(data)
    skeleton = (samples / "unigine_characters" / "fixtures" / "minimal.skeleton").read_bytes()
    (source / "b.skeleton").write_bytes(skeleton)
    before = decode(bytes(data))
    assert not np.array_equal(before.transforms, before.rest_transforms)
    for names in (["a.mesh_skinned"], ["b.skeleton"], ["a.mesh_skinned", "b.skeleton"]):
        files = {"files": [{"name": name} for name in names], "armature": "AUTO"}
        assert bpy.ops.import_scene.unigine(directory=str(source), **files) == {"FINISHED"}
        (obj,) = (obj for obj in bpy.data.objects if obj.type == "ARMATURE" and obj.meshferry.skeleton_data)
        out = tmp_path / " ".join(names)
        out.mkdir()
        if names == ["b.skeleton"]:
            skinned(obj, weights={"root": [1.0] * 12})
        bpy.context.view_layer.objects.active = obj
        for made in bpy.data.objects:
            made.select_set(True)
        options = {"filepath": str(out / "x.mesh_skinned"), "mesh_version": "SK10", "scope": "SELECTION"}
        assert bpy.ops.export_scene.unigine_mesh(**options) == {"FINISHED"}
        after = decode((out / "x.mesh_skinned").read_bytes())
        (written,) = out.glob("*.skeleton")
        if "a.mesh_skinned" in names:
            np.testing.assert_array_equal(after.rest_transforms, before.rest_transforms)
            np.testing.assert_array_equal(after.transforms, before.transforms)
            assert (
                after.guid == before.guid
                and f"<guid>{before.guid}</guid>" in written.with_name(written.name + ".meta").read_text()
            )
        if "b.skeleton" in names:
            assert written.read_bytes() == skeleton
        for made in list(bpy.data.objects):
            bpy.data.objects.remove(made)
    assert "left out" not in capfd.readouterr().out
    (source / "b.skeleton").write_bytes(skeleton.replace(b"root\0", b"stem\0"))
    assert bpy.ops.import_scene.unigine(directory=str(source), **files) == {"FINISHED"}
    assert "has skeleton data of other bones; that of 'b' was left out" in capfd.readouterr().out


def test_scenes_of_older_versions_are_written_as_before(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    armature = rig()
    skinned(armature)
    pose(bpy, armature, 1, "walk")
    assert export(bpy, tmp_path / "old.node", sdk_version="2.20.0.0") == {"FINISHED"}
    (node,) = WrittenScene(tmp_path / "old.node").nodes()
    assert [child.tag for child in node.element] == ["mesh_name", "surface", "transform"]
    assert "its animation is not in the file; export it with File > Export" in capfd.readouterr().out
    assert not list(tmp_path.rglob("*.anim"))
