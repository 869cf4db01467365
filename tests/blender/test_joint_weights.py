"""Writing of joint weights: only the weights for joints change, whatever else a mesh has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy


def values(items: Any, name: str, width: int) -> Any:
    found = np.empty(len(items) * width, np.float32)
    items.foreach_get(name, found)
    return found.reshape(-1, width)


def make_object(bpy: Any, rng: Any) -> Any:
    """Return a grid with groups, keys, one relative to another, custom normals, and points that are not the Basis."""
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=5, y_subdivisions=5)
    obj = bpy.context.object
    for name in ("Mask", "mTorso", "mChest", "mNeck"):
        obj.vertex_groups.new(name=name).add(range(20), 0.25, "REPLACE")
    mesh = obj.data
    mesh.normals_split_custom_set(rng.normal((0, 0, 5), size=(len(mesh.loops), 3)).tolist())
    for name in ("Basis", "First", "Second"):
        key = obj.shape_key_add(name=name)
        key.data.foreach_set("co", rng.normal(size=3 * len(mesh.vertices)).astype(np.float32))
    mesh.shape_keys.key_blocks["Second"].relative_key = mesh.shape_keys.key_blocks["First"]
    obj.active_shape_key_index = 2
    mesh.vertices.foreach_set("co", rng.normal(size=3 * len(mesh.vertices)).astype(np.float32))
    mesh.update()
    return obj


def test_only_the_weights_for_joints_change(clean_blender: Any) -> None:
    from meshferry.blender_data.rigging import joint_weights

    bpy, rng = clean_blender, np.random.default_rng(1)
    obj = make_object(bpy, rng)
    mesh = obj.data

    def others() -> list[Any]:
        found = [values(mesh.vertices, "co", 3), values(mesh.uv_layers[0].data, "uv", 2)]
        found += [values(key.data, "co", 3) for key in mesh.shape_keys.key_blocks]
        return [*found, values(mesh.loops, "vertex_index", 1), values(mesh.corner_normals, "vector", 3)]

    before = others()
    wanted = np.where(rng.random((len(mesh.vertices), 3)) < 0.4, 0, rng.random((len(mesh.vertices), 3)))
    wanted[:, 2] = 0
    joints = {"mTorso", "mChest", "mNeck", "mHead"}
    made = joint_weights.JointWeights(["mTorso", "mHead", "mChest"], wanted.astype(np.float32))
    joint_weights.write(obj, made, joints)
    assert [group.name for group in obj.vertex_groups] == ["Mask", "mTorso", "mHead"]
    for old, new in zip(before, others(), strict=True):
        np.testing.assert_array_equal(new, old)
    for vertex in mesh.vertices:
        row = dict(zip(("mTorso", "mHead"), made.values[vertex.index].tolist(), strict=False))
        row["Mask"] = 0.25 if vertex.index < 20 else 0.0
        found = {obj.vertex_groups[entry.group].name: entry.weight for entry in vertex.groups}
        assert found == {name: value for name, value in row.items() if value > 0}


def test_empty_groups_stay_for_a_mirror_modifier(clean_blender: Any) -> None:
    from meshferry.blender_data.rigging import joint_weights

    bpy = clean_blender
    obj = make_object(bpy, np.random.default_rng(2))
    obj.modifiers.new("Mirror", "MIRROR").use_mirror_vertex_groups = True
    joints = {"mTorso", "mChest", "mNeck", "mHipLeft", "mHipRight"}
    ones = np.ones((len(obj.data.vertices), 1), np.float32)
    obj.vertex_groups.new(name="mHipRight").add(range(5), 1.0, "REPLACE")
    joint_weights.write(obj, joint_weights.JointWeights(["mHipLeft"], ones), joints)
    assert sorted(group.name for group in obj.vertex_groups) == ["Mask", "mHipLeft", "mHipRight"]
    right = obj.vertex_groups["mHipRight"].index
    assert not any(entry.group == right for vertex in obj.data.vertices for entry in vertex.groups)
