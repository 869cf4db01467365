"""Meshes shown as their files bind them: what becomes of them when objects are copied, deleted, reloaded, exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from second_life_models import Drawn, panel_context

pytestmark = pytest.mark.needs_bpy

HEAD = "avastar232_head.dae"
EYES = "avastar281_eyes.dae"
VALUES = {33: 0.9, 38: -0.6, 105: 0.8, 682: 0.2, 34: 0.7}


def imported(path: Path, *, active: bool = False) -> list[Any]:
    """Import a file, onto the active avatar if chosen; return its mesh objects."""
    import bpy

    before = set(bpy.data.objects)
    choice = "ACTIVE" if active else "NEW"
    assert bpy.ops.import_scene.second_life(filepath=str(path), armature=choice, use_weld=False) == {"FINISHED"}
    made = [obj for obj in bpy.data.objects if obj not in before and obj.type == "MESH"]
    return sorted(made, key=lambda obj: str(obj.name))


def avatar_added() -> Any:
    import bpy

    assert bpy.ops.object.second_life_avatar_add() == {"FINISHED"}
    return bpy.context.object


def shape(avatar: Any, values: dict[int, float] = VALUES) -> None:
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders

    body_shapes.set_percents(avatar, armature_sliders.percents_of(values))


def points(obj: Any) -> Any:
    import bpy

    bpy.context.view_layer.update()
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    found = np.empty(len(seen.data.vertices) * 3, np.float32)
    seen.data.vertices.foreach_get("co", found)
    place = np.array(seen.matrix_world)
    return found.reshape(-1, 3) @ place[:3, :3].T + place[:3, 3]


def modelled(obj: Any) -> Any:
    found = np.empty(len(obj.data.vertices) * 3, np.float32)
    obj.data.vertices.foreach_get("co", found)
    place = np.array(obj.matrix_world)
    return found.reshape(-1, 3) @ place[:3, :3].T + place[:3, 3]


def armature_of(obj: Any) -> Any:
    from meshferry.blender_data.armature_modifiers import armature_of as found

    return found(obj)


def followed_by(obj: Any) -> Any:
    from meshferry.blender_data.rigging import shown_bindings

    return shown_bindings.followed_by(obj.meshferry.binding)


def select(*objects: Any) -> None:
    import bpy

    bpy.ops.object.select_all(action="DESELECT")
    for obj in objects:
        obj.select_set(True)
    bpy.context.view_layer.objects.active = objects[0]


def test_the_own_armature_answers_and_the_other_is_nowhere(samples: Path) -> None:
    import bpy

    avatar = avatar_added()
    left, right = imported(samples / "collada" / EYES, active=True)
    binding = left.meshferry.binding
    assert binding is not None and right.meshferry.binding == binding
    assert (armature_of(left), left.parent) == (avatar, avatar)
    assert [modifier.object for modifier in left.modifiers] == [binding, avatar]
    assert [modifier.show_viewport for modifier in left.modifiers] == [True, False]
    assert not binding.users_collection and binding not in list(avatar.children)
    assert binding not in list(bpy.context.scene.objects)
    assert len(bpy.data.armatures) == 2
    assert np.abs(points(left) - modelled(left)).max() > 0.01


def test_sliders_do_not_build_armatures(samples: Path, monkeypatch: Any) -> None:
    """That would take Blender through edit mode while the slider is dragged; imports prepare them."""
    from meshferry.blender_data.rigging import body_shapes, shown_bindings

    (head,) = imported(samples / "collada" / HEAD)
    avatar, build = armature_of(head), shown_bindings._build
    assert np.abs(points(head) - modelled(head)).max() < 1e-6 and head.meshferry.binding is not None
    monkeypatch.setattr(shown_bindings, "_build", None)
    setattr(avatar, body_shapes.property_name(33), 70.0)
    wanted = points(head)
    assert [each.show_viewport for each in head.modifiers] == [True, False]
    # As earlier versions imported it.
    shown_bindings.hide(head)
    head.meshferry.skin.is_checked = False
    setattr(avatar, body_shapes.IS_SHAPED, False)
    setattr(avatar, body_shapes.property_name(33), 70.0)
    assert shown_bindings.is_incomplete(avatar) and head.meshferry.binding is None
    monkeypatch.setattr(shown_bindings, "_build", build)
    body_shapes.apply(avatar)
    assert not shown_bindings.is_incomplete(avatar)
    assert np.abs(points(head) - wanted).max() < 1e-6


def test_exports_are_the_same_bytes(samples: Path, tmp_path: Path) -> None:
    import bpy

    (head,) = imported(samples / "collada" / HEAD)

    def written(name: str) -> dict[str, bytes]:
        for kind, suffix in (("upload", ".dae"), ("mesh", ".llmesh"), ("bundle", ".slm")):
            (folder := tmp_path / name / kind).mkdir(parents=True)
            export = getattr(bpy.ops.export_scene, f"second_life_{kind}")
            assert export(filepath=str(folder / f"head{suffix}"), scope="SCENE") == {"FINISHED"}
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        return {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files}

    before = written("before")
    shape(armature_of(head))
    assert head.meshferry.binding is not None
    for bone in armature_of(head).pose.bones:
        bone.rotation_quaternion = (0.9, 0.1, 0.2, 0.3)
    assert written("after") == before
    assert {Path(name).suffix for name in before} >= {".dae", ".llmesh", ".slm"}


def test_copies_with_their_avatar_follow_the_copy(samples: Path) -> None:
    import bpy

    avatar = avatar_added()
    (head,) = imported(samples / "collada" / HEAD, active=True)
    shape(avatar)
    wanted = points(head)
    select(avatar, head)
    bpy.ops.object.duplicate()
    copies = {obj.type: obj for obj in bpy.context.selected_objects}
    copy, other = copies["MESH"], copies["ARMATURE"]
    assert armature_of(copy) == other != avatar
    other.location = (2.0, 0.0, 0.0)
    shape(other, {})
    assert np.abs(points(head) - wanted).max() < 1e-6
    shape(other)
    assert np.abs(points(copy) - wanted - (2.0, 0.0, 0.0)).max() < 1e-5
    assert copy.meshferry.binding not in {None, head.meshferry.binding}


def test_a_mesh_stays_when_its_avatar_is_deleted(samples: Path, tmp_path: Path) -> None:
    import bpy

    avatar = avatar_added()
    (head,) = imported(samples / "collada" / HEAD, active=True)
    at_rest = points(head)
    shape(avatar)
    select(avatar)
    bpy.ops.object.delete()
    assert armature_of(head) is None and head.parent is None
    assert np.abs(points(head) - at_rest).max() < 1e-5  # as on the standard avatar
    avatar = avatar_added()
    select(head, avatar)
    head.parent, head.modifiers[-1].object = avatar, avatar
    shape(avatar)
    assert armature_of(head) == avatar == followed_by(head)


def test_blend_files_hold_what_is_used(samples: Path, tmp_path: Path) -> None:
    import bpy

    avatar = avatar_added()
    (head,) = imported(samples / "collada" / HEAD, active=True)
    shape(avatar)
    wanted, name, file = points(head), head.name, str(tmp_path / "scene.blend")
    bpy.ops.wm.save_as_mainfile(filepath=file)
    bpy.ops.wm.open_mainfile(filepath=file)
    head = bpy.data.objects[name]
    assert np.abs(points(head) - wanted).max() < 1e-6
    assert head.meshferry.binding == head.modifiers[0].object
    bpy.data.objects.remove(head)
    for _ in range(2):  # the data of an object that is not saved are gone with the next save
        bpy.ops.wm.save_as_mainfile(filepath=file)
        bpy.ops.wm.open_mainfile(filepath=file)
    assert len(bpy.data.armatures) == 1


def test_a_reloaded_mesh_is_shown_alike(samples: Path, tmp_path: Path) -> None:
    import bpy

    file = tmp_path / HEAD
    file.write_bytes((samples / "collada" / HEAD).read_bytes())
    (head,) = imported(file)
    avatar = armature_of(head)
    shape(avatar)
    wanted = points(head)
    select(head)
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert armature_of(head) == avatar
    assert np.abs(points(head) - wanted).max() < 1e-5
    assert len([modifier for modifier in head.modifiers if modifier.show_viewport]) == 1


@pytest.mark.parametrize("is_shaped", [False, True])
@pytest.mark.parametrize("tool", ["bind", "clean_weights"])
def test_tools_for_weights_keep_the_form(samples: Path, tool: str, *, is_shaped: bool) -> None:
    """From then on, the mesh is bound to the joints of the avatar."""
    import bpy

    avatar = avatar_added()
    (head,) = imported(samples / "collada" / HEAD, active=True)
    if is_shaped:
        shape(avatar)
    shown = points(head)
    select(head, avatar)
    assert getattr(bpy.ops.object, f"second_life_{tool}")() == {"FINISHED"}
    assert np.abs(points(head) - shown).max() < 1e-4
    assert head.meshferry.binding is None and not head.meshferry.skin.joints
    assert [(each.object, each.show_viewport) for each in head.modifiers] == [(avatar, True)]


def test_bound_again_without_the_form(samples: Path) -> None:
    """The form that the creator modelled is bound to the joints of the avatar."""
    import bpy

    first, second = avatar_added(), avatar_added()
    select(first)
    (head,) = imported(samples / "collada" / HEAD, active=True)
    select(head, second)
    assert bpy.ops.object.second_life_bind(use_as_shown=False) == {"FINISHED"}
    assert armature_of(head) == second and head.meshferry.binding is None
    assert np.abs(points(head) - modelled(head)).max() < 1e-5
    shape(second)
    assert head.meshferry.binding is None and not head.meshferry.skin.joints


def test_levels_made_of_it_are_shown_alike(samples: Path) -> None:
    import bpy

    avatar_added()
    (head,) = imported(samples / "collada" / HEAD, active=True)
    select(head)
    assert bpy.ops.object.second_life_level_make(part="MEDIUM") == {"FINISHED"}
    level = head.meshferry.medium_level
    assert armature_of(level) == armature_of(head)
    assert [each.show_viewport for each in level.modifiers] == [each.show_viewport for each in head.modifiers]
    assert [each.object for each in level.modifiers] == [each.object for each in head.modifiers]


def test_a_matrix_that_cannot_be_inverted_is_named(samples: Path, tmp_path: Path, capfd: Any) -> None:
    import bpy
    from meshferry.operators.families.second_life import body_shape

    text = (samples / "collada" / "synthetic" / "rig_shape_scaled.dae").read_text()
    start = text.index("1.25 0 0")
    broken = text[:start] + "0 0 0" + text[start + len("1.25 0 0") :]
    file = tmp_path / "broken.dae"
    file.write_text(broken)
    avatar = avatar_added()
    (mesh,) = imported(file, active=True)
    assert mesh.meshferry.skin.singular == "mTorso" and armature_of(mesh) == avatar
    body_shape.draw_shape(layout := Drawn(), panel_context(bpy), [])
    assert "to mTorso by a matrix" in " ".join(line for line in layout.lines if isinstance(line, str))
    assert "1 joint has no usable inverse bind matrix" in capfd.readouterr().out


def test_weights_of_a_mesh_with_scales_of_a_shape_are_transferred_with_a_warning(samples: Path, capfd: Any) -> None:
    import bpy

    avatar = avatar_added()
    (head,) = imported(samples / "collada" / HEAD, active=True)
    shape(avatar)
    cloth = bpy.data.objects.new("Cloth", head.data.copy())
    bpy.context.scene.collection.objects.link(cloth)
    cloth.matrix_world = head.matrix_world
    before, shown = points(cloth), points(head)
    select(cloth, avatar)
    assert bpy.ops.object.second_life_transfer_weights(source=head.name) == {"FINISHED"}
    assert f"'{head.name}': its file binds it with bone scales of a shape" in capfd.readouterr().out
    assert np.abs(points(cloth) - before).max() < 1e-5
    select(head, avatar)
    assert bpy.ops.object.second_life_clean_weights(threshold=0.05) == {"FINISHED"}
    assert np.abs(points(head) - shown).max() < 1e-5
    assert head.meshferry.binding is None and not len(head.meshferry.skin.joints)


def test_overrides_of_linked_avatars(samples: Path, tmp_path: Path) -> None:
    import bpy

    (head,) = imported(samples / "collada" / HEAD)
    shape(armature_of(head))
    wanted, name, file = points(head), head.users_collection[0].name, str(tmp_path / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=file)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(file, link=True) as (_there, linked):
        linked.collections = [name]
    shown = bpy.context.scene, bpy.context.view_layer
    bpy.context.scene.collection.children.link(bpy.data.collections[name])
    own = bpy.data.collections[name].override_hierarchy_create(*shown, do_fully_editable=True)
    (head,) = (obj for obj in own.all_objects if obj.type == "MESH")
    avatar = armature_of(head)
    assert avatar.library is None and followed_by(head) == avatar
    assert np.abs(points(head) - wanted).max() < 1e-6
    shape(avatar, {})
    assert np.abs(points(head) - wanted).max() > 0.01
    shape(avatar)
    assert np.abs(points(head) - wanted).max() < 1e-6
