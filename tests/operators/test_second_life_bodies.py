"""Bodies to fit clothes on: the classic avatar from a viewer's folder, meshes of the user's own, and exports."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import avatar_rest
import classic_meshes
import numpy as np
import pytest
import second_life_oracle
import slow_shape

pytestmark = pytest.mark.needs_bpy

PARTS = {
    "Head": "avatar_head.llm",
    "Upper Body": "avatar_upper_body.llm",
    "Lower Body": "avatar_lower_body.llm",
    "Eyelashes": "avatar_eyelashes.llm",
    "Left Eye": "avatar_eye.llm",
    "Right Eye": "avatar_eye.llm",
}
SHAPES = {
    "default": {},
    "fat male": {80: 1.0, 637: 1.0, 678: 0.4, 105: 0.2},
    "tall female": {33: 2.0, 105: 1.0, 682: 0.9, 637: 0.3, 24: -2.0, 647: 0.5},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "viewer" / "character"
    inner.mkdir(parents=True)
    for name, data in classic_meshes.folder_of_viewer().items():
        (inner / name).write_bytes(data)
    return inner


def shaped(bpy: Any, values: dict[int, float]) -> Any:
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders

    avatar = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    body_shapes.set_percents(avatar, armature_sliders.percents_of(values))
    bpy.context.view_layer.update()
    return avatar


def by_hand(part: str, values: dict[int, float]) -> Any:
    """Return the vertices of a part as the page has them, in the avatar's space with mPelvis at its rest."""
    acting = slow_shape.weights(values)
    joints = {name: np.array(six) for name, six in slow_shape.joints(values).items()}
    heads = avatar_rest.heads()
    made = classic_meshes.made_parts()[PARTS[part]]
    points = np.array(made.points, np.float64)
    side = part.split(maxsplit=1)[0]
    mesh = classic_meshes.MESHES[PARTS[part]].replace("Left", side if "Eye" in part.split() else "Left")
    for effect in slow_shape.EFFECTS:
        if effect["kind"] != "morph":
            continue
        of_mesh, name = effect["target"].split(":")
        if of_mesh == mesh:
            for vertex, by in made.morphs[name].items():
                points[vertex] += acting[int(effect["id"])] * np.array(by)
    if not made.joints:
        joint = joints[f"mEye{side}"]
        return points * joint[3:] + joint[:3]
    found = np.empty_like(points)
    for vertex, (point, weight) in enumerate(zip(points, made.weights, strict=True)):
        place = int(weight)
        of_two = [made.counted[place], made.counted[min(place + 1, len(made.counted) - 1)]]
        moved = [(point - heads[name]) * joints[name][3:] + joints[name][:3] for name in of_two]
        found[vertex] = moved[0] + (weight - place) * (moved[1] - moved[0])
    return found


def test_the_classic_avatar_follows_the_sliders(clean_blender: Any, folder: Path) -> None:
    bpy = clean_blender
    assert bpy.ops.object.second_life_load_body(directory=str(folder.parent)) == {"FINISHED"}
    for about, values in SHAPES.items():
        avatar = shaped(bpy, values)
        graph = bpy.context.evaluated_depsgraph_get()
        root = np.array(avatar.pose.bones["mPelvis"].head) - avatar_rest.in_blender(avatar_rest.heads()["mPelvis"])
        for part in PARTS:
            obj = next(one for one in bpy.data.objects if one.meshferry.body_part == part)
            assert obj.meshferry.body == "Classic Avatar" and obj.hide_select
            seen = obj.evaluated_get(graph).data
            found = np.array([vertex.co for vertex in seen.vertices]) - root
            wanted = np.array([avatar_rest.in_blender(point) for point in by_hand(part, values)])
            assert np.abs(found - wanted).max() < 1e-5, (about, part)
    head, kit = bpy.data.objects["Head"], add_bound(bpy, avatar, "Kit")
    head.shape_key_add(name="Own").value = 0.4
    values = [key.value for key in head.data.shape_keys.key_blocks]
    add_bound(bpy, avatar, "Shirt")
    select(bpy, kit, avatar)
    bpy.ops.object.second_life_use_as_body()
    assert bpy.ops.object.second_life_check_fit() == {"FINISHED"}
    assert [key.value for key in head.data.shape_keys.key_blocks] == values
    assert bpy.ops.object.second_life_load_body.poll()
    with pytest.raises(RuntimeError, match="has this body already"):
        bpy.ops.object.second_life_load_body(directory=str(folder))


def test_loading_onto_an_avatar_changes_no_bone(clean_blender: Any, folder: Path) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    avatar.pose.bones["mHead"].scale = (1.2, 1.2, 1.2)
    assert bpy.ops.object.second_life_load_body(directory=str(folder)) == {"FINISHED"}
    assert tuple(avatar.pose.bones["mHead"].scale) == pytest.approx((1.2, 1.2, 1.2))
    head = bpy.data.objects["Head"]
    head.hide_viewport = True
    assert bpy.ops.object.second_life_activate_body(body="Classic Avatar") == {"FINISHED"}
    assert head.visible_get()


def test_keys_of_linked_duplicates_follow_their_own_sliders(clean_blender: Any, folder: Path) -> None:
    bpy = clean_blender
    assert bpy.ops.object.second_life_load_body(directory=str(folder)) == {"FINISHED"}
    first = bpy.context.object
    assert first.type == "ARMATURE"

    def upper(avatar: Any) -> Any:
        return next(obj for obj in avatar.children if obj.meshferry.body_part == "Upper Body")

    def value(avatar: Any) -> float:
        return upper(avatar).data.shape_keys.key_blocks["Fat_Torso"].value

    for obj in first.children:
        obj.hide_select = False
    select(bpy, first, *first.children)
    bpy.ops.object.duplicate(linked=True)
    second = bpy.context.object
    assert upper(first).data == upper(second).data
    add_bound(bpy, second, "Shirt")
    select(bpy, second)
    assert bpy.ops.object.second_life_check_fit() == {"FINISHED"}
    assert value(first) == value(second) == 0.0
    second.meshferry_shape_637 = 80.0
    assert (value(first), value(second)) == (0.0, pytest.approx(0.8, abs=1e-6))
    assert upper(second).meshferry.body == "Classic Avatar"


@pytest.mark.parametrize("damage", ["no folder", "missing file", "cut off"])
def test_a_bad_folder_leaves_nothing(clean_blender: Any, folder: Path, damage: str) -> None:
    bpy = clean_blender
    directory, cause = folder, "lacks 'avatar_eye.llm'"
    if damage == "no folder":
        directory, cause = folder / "nowhere", "choose the folder 'character'"
    elif damage == "missing file":
        (folder / "avatar_eye.llm").unlink()
    else:
        (folder / "avatar_head.llm").write_bytes((folder / "avatar_head.llm").read_bytes()[:700])
        cause = "avatar_head.llm: The file is cut off"
    before = len(bpy.data.objects), len(bpy.data.meshes), len(bpy.data.armatures)
    with pytest.raises(RuntimeError, match=cause.replace("(", r"\(")):
        bpy.ops.object.second_life_load_body(directory=str(directory))
    assert (len(bpy.data.objects), len(bpy.data.meshes), len(bpy.data.armatures)) == before


def test_the_mannequin_follows_the_sliders(clean_blender: Any) -> None:
    bpy = clean_blender
    assert bpy.ops.object.second_life_add_mannequin() == {"FINISHED"}
    obj = bpy.data.objects["Mannequin"]
    assert obj.meshferry.body == obj.parent.meshferry.active_body == "Mannequin" and obj.hide_select
    assert {len(face.vertices) for face in obj.data.polygons} == {4}
    points = np.array([vertex.co for vertex in obj.data.vertices])
    points = np.column_stack((-points[:, 1], points[:, 0], points[:, 2]))  # as the avatar has them
    weights = np.zeros((len(points), len(obj.vertex_groups)))
    for vertex in obj.data.vertices:
        for entry in vertex.groups:
            weights[vertex.index, entry.group] = entry.weight
    assert np.abs(weights.sum(axis=1) - 1).max() < 1e-5
    for about, values in SHAPES.items():
        avatar = shaped(bpy, values)
        joints = {name: np.array(six) for name, six in slow_shape.joints(values).items()}
        wanted = np.zeros_like(points)
        for group, weight in zip(obj.vertex_groups, weights.T, strict=True):
            rest, size = avatar_rest.worlds()[group.name], joints[group.name][3:]
            at_rest = (points - rest[3, :3]) @ np.linalg.inv(rest[:3, :3])
            own_size = np.linalg.norm(rest[:3, :3], axis=1)
            moved = at_rest * size @ (rest[:3, :3] / own_size[:, None]) + joints[group.name][:3]
            wanted += weight[:, None] * moved
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
        root = np.array(avatar.pose.bones["mPelvis"].head) - avatar_rest.in_blender(avatar_rest.heads()["mPelvis"])
        found = np.array([vertex.co for vertex in seen.vertices]) - root
        assert np.abs(found - avatar_rest.in_blender(wanted)).max() < 1e-5, about
    with pytest.raises(RuntimeError, match="has this body already"):
        bpy.ops.object.second_life_add_mannequin()


def add_bound(bpy: Any, avatar: Any, name: str) -> Any:
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(
        [(0, 0, 1), (0.1, 0, 1), (0, 0.1, 1), (0, 0, 1.2)], [], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    )
    mesh.materials.append(bpy.data.materials.get("Cloth") or bpy.data.materials.new("Cloth"))
    mesh.uv_layers.new(name="UVMap")
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    obj.parent = avatar
    obj.vertex_groups.new(name="mTorso").add(range(4), 1.0, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = avatar
    bpy.context.view_layer.update()
    return obj


def select(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


def test_bodies_are_left_out_of_exports_in_every_scope(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    shirt, kit, level = (add_bound(bpy, avatar, name) for name in ("Shirt", "Kit", "Coarse"))
    level.meshferry.lod, level.meshferry.lod_of = 1, kit
    select(bpy, kit, avatar)
    assert bpy.ops.object.second_life_use_as_body() == {"FINISHED"}
    assert (kit.meshferry.body, kit.hide_select, avatar.meshferry.active_body) == ("Kit", True, "Kit")
    kit.name = "Renamed"
    second, loose = add_bound(bpy, avatar, "Kit"), bpy.data.objects.new("Loose", shirt.data.copy())
    bpy.context.scene.collection.objects.link(loose)
    select(bpy, second, loose, avatar)
    assert bpy.ops.object.second_life_use_as_body() == {"FINISHED"}
    assert "'Loose': not bound to 'Avatar', left out" in capfd.readouterr().out
    assert (second.meshferry.body, kit.meshferry.body) == ("Kit.001", "Kit")
    bpy.data.objects.remove(second)
    bpy.data.objects.remove(loose)
    kit.hide_select = False  # selected by a script

    def exported(scope: str, *chosen: Any) -> list[str]:
        select(bpy, *chosen)
        path = tmp_path / "out" / f"{scope}.slm"
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        bpy.ops.export_scene.second_life_bundle(filepath=str(path), scope=scope)
        return sorted(one.label for one in second_life_oracle.decode_bundle(path.read_bytes()).instances)

    for scope, chosen in (
        ("SELECTION", (shirt, kit)),
        ("AUTO", (avatar,)),
        ("COLLECTION", (shirt,)),
        ("SCENE", (shirt,)),
    ):
        capfd.readouterr()
        assert exported(scope, *chosen) == ["Shirt"], scope
        assert ("a body to fit clothes on" in capfd.readouterr().out) == (scope == "SELECTION")
    with pytest.raises(RuntimeError, match="a body to fit clothes on"):
        exported("SELECTION", kit)
    outfit = bpy.data.collections.new("Outfit")
    for obj in (avatar, shirt, kit, level):
        outfit.objects.link(obj)
    shown = bpy.data.objects.new("Shown", None)
    shown.instance_type, shown.instance_collection, shown.location.x = "COLLECTION", outfit, 3.0
    bpy.context.scene.collection.objects.link(shown)
    for operator, suffix in (("second_life_bundle", ".slm"), ("unigine_mesh", ".mesh"), ("unigine_scene", ".node")):
        folder = tmp_path / operator
        folder.mkdir()
        capfd.readouterr()
        assert getattr(bpy.ops.export_scene, operator)(filepath=str(folder / f"all{suffix}"), scope="SCENE") == {
            "FINISHED"
        }
        assert re.search(r"\b(8 triangles|2 meshes|1 mesh)\b", said := capfd.readouterr().out), said
        data = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert b"Kit" not in data and b"Renamed" not in data and b"Coarse" not in data, operator
    bpy.data.objects.remove(shown)
    bpy.data.collections.remove(outfit)
    select(bpy, avatar)
    assert bpy.ops.object.second_life_release_body(body="Kit") == {"FINISHED"}
    assert exported("SELECTION", shirt, kit) == ["Renamed", "Shirt"]


def test_linked_meshes_are_refused_as_bodies(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    add_bound(bpy, bpy.context.object, "Kit")
    path = tmp_path / "kit.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(path), link=True) as (_there, wanted):
        wanted.objects = ["Avatar", "Kit"]
    for obj in wanted.objects:
        bpy.context.scene.collection.objects.link(obj)
    avatar, kit = wanted.objects
    bpy.context.view_layer.update()
    select(bpy, kit, avatar)
    with pytest.raises(RuntimeError, match="'Kit': linked from another file"):
        bpy.ops.object.second_life_use_as_body()
    assert not kit.meshferry.body


def test_transfer_takes_the_weights_of_the_whole_active_body(clean_blender: Any, folder: Path) -> None:
    from meshferry.operators.families.second_life.binding_tools import sources

    bpy = clean_blender
    bpy.ops.object.second_life_load_body(directory=str(folder))
    avatar = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    shirt, dense = add_bound(bpy, avatar, "Shirt"), add_bound(bpy, avatar, "Dense")
    dense.data.vertices.add(500)
    for vertex in shirt.data.vertices:
        vertex.co.z -= 0.4  # beside the lower body
    select(bpy, shirt, avatar)
    assert bpy.data.objects[sources(bpy.context)[0]].meshferry.body == "Classic Avatar"
    assert bpy.ops.object.second_life_transfer_weights(source="Head") == {"FINISHED"}
    used = {shirt.vertex_groups[entry.group].name for vertex in shirt.data.vertices for entry in vertex.groups}
    assert used and used <= set(classic_meshes.LISTS["avatar_lower_body.llm"].split())
    upper = bpy.data.objects["Upper Body"]
    upper.hide_select = False
    select(bpy, upper, avatar)
    with pytest.raises(RuntimeError, match="besides the source"):
        bpy.ops.object.second_life_transfer_weights(source="Head")


def test_check_fit_counts_what_is_inside_of_the_body(clean_blender: Any, capfd: Any) -> None:
    """A tube around a tube: half of its rings are closer than the body, at rest and at other shapes alike."""
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object

    def tube(name: str, radii: tuple[float, ...], bone: str) -> Any:
        angles = np.linspace(0, 2 * np.pi, 32, endpoint=False)
        points = [
            (radius * np.cos(a), radius * np.sin(a), 1.1 + 0.05 * ring)
            for ring, radius in enumerate(radii)
            for a in angles
        ]
        faces = [
            (r * 32 + i, r * 32 + (i + 1) % 32, (r + 1) * 32 + (i + 1) % 32, (r + 1) * 32 + i)
            for r in range(len(radii) - 1)
            for i in range(32)
        ]
        mesh = bpy.data.meshes.new(name)
        mesh.from_pydata(points, [], faces)
        obj = bpy.data.objects.new(name, mesh)
        bpy.context.scene.collection.objects.link(obj)
        obj.parent = avatar
        obj.vertex_groups.new(name=bone).add(range(len(points)), 1.0, "REPLACE")
        obj.modifiers.new("Armature", "ARMATURE").object = avatar
        bpy.context.view_layer.update()
        return obj

    body = tube("Body", (0.1,) * 6, "BELLY")
    shirt = tube("Shirt", (0.12, 0.12, 0.08, 0.12, 0.12, 0.12), "BELLY")
    stiff = tube("Stiff", (0.12,) * 6, "mTorso")
    avatar.data.bones["BELLY"].use_deform = True
    select(bpy, body, avatar)
    assert bpy.ops.object.second_life_use_as_body() == {"FINISHED"}
    scales = [tuple(bone.scale) for bone in avatar.pose.bones]
    capfd.readouterr()
    assert bpy.ops.object.second_life_check_fit() == {"FINISHED"}
    said = capfd.readouterr().out
    assert (
        "'Shirt': vertices inside of the body: Present Shape 16.7%, Thin 16.7%, Default 16.7%, Heavy 16.7%" in said
    ), said
    assert "'Stiff': vertices inside of the body: Present Shape 0.0%" in said
    assert "Heavy 0.0%" not in said.partition("Stiff")[2], said  # the belly grows through a shirt that does not follow
    assert [vertex.index for vertex in shirt.data.vertices if vertex.select] == list(range(64, 96))
    assert any(vertex.select for vertex in stiff.data.vertices)
    assert [tuple(bone.scale) for bone in avatar.pose.bones] == scales
    assert bpy.ops.object.second_life_release_body(body="Body") == {"FINISHED"}
    with pytest.raises(RuntimeError, match="has no body"):
        bpy.ops.object.second_life_check_fit()
