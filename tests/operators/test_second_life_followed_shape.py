"""Check names the shape sliders that have no effect on a mesh, and is quiet about all other meshes."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy

BODY = {"mTorso": 0.3, "BELLY": 0.3, "mChest": 0.2, "CHEST": 0.1, "LEFT_PEC": 0.1, "mHead": 0.2, "HEAD": 0.1}


def ring(bpy: Any, avatar: Any, name: str, weights: dict[str, float], others: dict[str, float] | None = None) -> Any:
    """Add a bound mesh, whose second half of vertices has the other weights."""
    bpy.ops.mesh.primitive_uv_sphere_add(segments=12, ring_count=8, radius=0.2, location=(0, 0, 1.2))
    obj = bpy.context.object
    obj.name = name
    count = len(obj.data.vertices)
    halves = (range(count // 2), weights), (range(count // 2, count), others or weights)
    for vertices, shares in halves:
        for joint, share in shares.items():
            group = obj.vertex_groups.get(joint) or obj.vertex_groups.new(name=joint)
            group.add(vertices, share, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = avatar
    obj.parent = avatar
    return obj


def found(bpy: Any, obj: Any, code_text: str) -> list[str]:
    """Return the findings of Check that contain a text."""
    bpy.context.view_layer.objects.active = obj
    for other in bpy.context.view_layer.objects:
        other.select_set(other == obj)
    assert bpy.ops.export_scene.second_life_check() == {"FINISHED"}
    findings = bpy.context.window_manager.meshferry_check.findings
    return [finding.message for finding in findings if code_text in finding.message]


@pytest.fixture
def avatar(clean_blender: Any) -> Any:
    clean_blender.ops.object.second_life_avatar_add()
    return clean_blender.context.object


@pytest.mark.parametrize(
    ("weights", "others", "volumes"),
    [
        ({"mTorso": 0.6, "mChest": 0.4}, None, "'BELLY', 'CHEST', 'LEFT_PEC'"),
        ({"mTorso": 0.6, "mChest": 0.3, "BELLY": 0.1}, None, "'CHEST', 'LEFT_PEC'"),
        ({"mTorso": 0.6, "BELLY": 0.1, "CHEST": 0.1, "mChest": 0.2}, None, ""),
        ({"mTorso": 0.95, "mChest": 0.05}, None, "'BELLY'"),
        ({"mTorso": 1.0}, None, ""),  # a rigid belt buckle
        ({"mHead": 1.0}, {"mNeck": 1.0}, ""),  # hair
        ({"mHipLeft": 1.0}, {"mKneeLeft": 1.0}, ""),  # where the body has no volumes
    ],
)
def test_meshes_without_the_volumes_of_the_body(
    clean_blender: Any, avatar: Any, weights: dict[str, float], others: dict[str, float] | None, volumes: str
) -> None:
    bpy = clean_blender
    body, cloth = ring(bpy, avatar, "body", BODY), ring(bpy, avatar, "cloth", weights, others)
    assert found(bpy, cloth, "no effect on it") == []
    body.meshferry.body = "body"
    messages = found(bpy, cloth, "no effect on it")
    assert len(messages) == bool(volumes)
    if volumes:
        assert f"it has no weights for {volumes}, which the body has" in messages[0]
        assert ("'Belly Size'" in messages[0]) == ("BELLY" in volumes)
    assert found(bpy, body, "no effect on it") == []


def test_meshes_that_lock_scales(clean_blender: Any, avatar: Any) -> None:
    bpy = clean_blender
    cloth = ring(bpy, avatar, "cloth", {"mFaceChin": 0.5, "mFaceJaw": 0.5})
    kept = cloth.meshferry.skin
    kept.has_positions = True
    for name in ("mFaceChin", "mFaceJaw", "mHead"):
        joint = kept.joints.add()
        joint.name, joint.position = name, (0.5, 0.0, 0.0)
    assert found(bpy, cloth, "locks the scale") == []
    kept.lock_scale = True
    (message,) = found(bpy, cloth, "locks the scale")
    assert "locks the scale of 3 joints" in message and "no effect" in message


def test_joints_where_the_avatar_has_them_are_not_locked(clean_blender: Any, avatar: Any) -> None:
    """Stored positions are in Blender's space, where the avatar's left side is another axis than in its own."""
    bpy = clean_blender
    cloth = ring(bpy, avatar, "cloth", {"mShoulderLeft": 1.0})
    kept = cloth.meshferry.skin
    kept.has_positions = kept.lock_scale = True
    bones = avatar.data.bones
    joint = kept.joints.add()
    joint.name = "mShoulderLeft"
    at_rest = bones["mShoulderLeft"].head_local - bones["mCollarLeft"].head_local
    joint.position = at_rest
    assert found(bpy, cloth, "locks the scale") == []
    joint.position = at_rest * 1.1
    (message,) = found(bpy, cloth, "locks the scale")
    assert "locks the scale of 1 joint," in message
