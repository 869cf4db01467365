"""Objects that share their mesh data (Alt D) go into an upload set as instances of one geometry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import collada_oracle
import numpy as np
import numpy.typing as npt
import pytest
import second_life_oracle as oracle
import viewer_matching
from helpers_export import (
    TETRA,
    TETRA_FACES,
    add,
    assert_same_triangles,
    bpy,
    grid,
    materials,
    mesh_of,
    model_collection,
    shown,
)
from helpers_placed import placed
from mathutils import Matrix, Quaternion
from meshferry.blender_data.exporting.models import generated_lods, generated_parts
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

pytestmark = pytest.mark.needs_bpy


def duplicate(obj: Any, name: str, number: int) -> Any:
    """Return a linked duplicate of an object somewhere else, turned about two axes and scaled."""
    made = obj.copy()
    made.name = name
    made.location = (number, -2 * number, 0.5)
    made.rotation_euler = (0.3 * number, 0.0, 0.7 * number)
    made.scale = (1 + 0.1 * number,) * 3
    model_collection().objects.link(made)
    return made


def documents(scene: Any) -> dict[str, collada_oracle.Document]:
    outputs = SECOND_LIFE_UPLOAD.write_files(SECOND_LIFE_UPLOAD.from_scene(scene), "set")
    return {output.name: collada_oracle.parse(output.data) for output in outputs}


def geometries(document: collada_oracle.Document) -> list[str]:
    """Return the name of the geometry of each object."""
    return [instance.geometry.name for instance in document.instances]


def posts(count: int = 5) -> list[Any]:
    first = grid("post", 6)
    materials(first, "Wood")
    found = [first, *(duplicate(first, f"post.{number:03d}", number) for number in range(1, count))]
    bpy.context.view_layer.update()
    return found


def test_linked_duplicates_are_instances_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make_level = generated_lods.make_level
    monkeypatch.setattr(
        generated_parts, "make_level", lambda *args, **options: made.append(1) or make_level(*args, **options)
    )
    objects = posts()
    scene = placed(missing_levels="MAKE", physics_shape="CUBE")
    assert len(made) == 3, "one for each level"
    assert "'post' × 5 (72 →" in next(text for text in scene.warnings if text.startswith("Levels of detail made"))
    assert "'post' × 5 (cube)" in next(text for text in scene.warnings if text.startswith("Physics shapes"))
    levels = [node for node in scene.nodes if node.generated_from and node.lod == 2]
    assert [node.generated_from for node in levels] == [obj.name for obj in objects]
    found = documents(scene)
    assert all(geometries(document) == ["post"] * 5 for document in found.values())
    assert all(len({id(instance.geometry) for instance in document.instances}) == 1 for document in found.values())
    viewer_matching.check_levels([found[f"set{suffix}.dae"] for suffix in ("", "_LOD2", "_LOD1", "_LOD0")])
    for instance, obj in zip(found["set.dae"].instances, objects, strict=True):
        assert np.allclose(instance.world, np.array(obj.matrix_world), atol=1e-6)
    finest = [node for node in scene.nodes if node.lod_of is None and node.shape_of is None]
    assert len({id(node.mesh) for node in finest}) == 1, "equal meshes share memory"


def with_modifier(obj: Any) -> None:
    obj.modifiers.new("Solidify", "SOLIDIFY").thickness = 0.1


def with_material(obj: Any) -> None:
    obj.material_slots[0].link = "OBJECT"
    obj.material_slots[0].material = bpy.data.materials.new("Iron")


def mirrored(obj: Any) -> None:
    obj.scale.x *= -1


def sheared(obj: Any) -> None:
    parent = add("parent")
    parent.scale = (1.0, 3.0, 1.0)
    obj.parent = parent


@pytest.mark.parametrize("change", [with_modifier, with_material, mirrored, sheared])
def test_what_changes_the_evaluated_object_keeps_it_apart(change: Any) -> None:
    objects = posts(3)
    change(objects[1])
    bpy.context.view_layer.update()
    scene = placed(missing_levels="COPY")
    found = documents(scene)["set.dae"]
    names = geometries(found)
    place = [instance.node for instance in found.instances].index(next(n for n in names if n != "post"))
    assert names.count("post") == 2
    assert found.instances[place].node == "post.001"
    assert all(np.linalg.det(instance.world[:3, :3]) > 0 for instance in found.instances)


@pytest.mark.parametrize("slots", [[], [None], ["Wood", None]])
def test_duplicates_without_materials_are_instances(slots: list[str | None]) -> None:
    objects = posts(3)
    data = objects[0].data
    data.materials.clear()
    for name in slots:
        data.materials.append(bpy.data.materials.new(name) if name else None)
    data.polygons.foreach_set("material_index", np.arange(len(data.polygons)) % max(len(slots), 1))
    found = documents(placed(missing_levels="MAKE", physics_shape="CUBE"))
    assert all(geometries(document) == ["post"] * 3 for document in found.values())


def test_levels_of_turned_duplicates_turn_with_them() -> None:
    objects = posts(3)
    low = grid("low", 2)
    materials(low, "Wood")
    for obj in objects:
        obj.meshferry.low_level = low
    objects[0].rotation_euler.z = low.rotation_euler.z = 0.5
    bpy.context.view_layer.update()
    found = documents(placed(missing_levels="COPY"))
    assert geometries(found["set_LOD1.dae"]) == ["post"] * 3
    finest, coarser = (found[name].instances[0].geometry.positions for name in ("set.dae", "set_LOD1.dae"))
    assert len(coarser) < len(finest)
    low.rotation_euler.z = 0.1  # not that of any of them: its own rotation counts
    bpy.context.view_layer.update()
    assert len(set(geometries(documents(placed(missing_levels="COPY"))["set_LOD1.dae"]))) == 3


def test_separate_data_with_the_same_content_is_shared_too() -> None:
    objects = posts(2)
    objects[1].data = objects[1].data.copy()
    assert geometries(documents(placed(missing_levels="COPY"))["set.dae"]) == ["post", "post"]


Placed = list[tuple[object, npt.NDArray[np.float64]]]
"""Of each object of a file: its mesh, and its triangles (T, 3, 3) in the world."""


def in_collada(scene: Any) -> Placed:
    instances = documents(scene)["set.dae"].instances
    assert all(np.linalg.det(instance.world[:3, :3]) > 0 for instance in instances)
    return [
        (found.geometry.id, _moved(corners.reshape(-1, 3, 3), found.world))
        for found in instances
        for corners in [np.concatenate([face[:, :3] for face in found.geometry.faces.values()])]
    ]


def in_bundle(scene: Any) -> Placed:
    bundle = oracle.decode_bundle(SECOND_LIFE_BUNDLE.write(SECOND_LIFE_BUNDLE.from_scene(scene)))
    worlds = [(found.mesh, found.transform.T) for found in bundle.instances]
    return [(mesh, _moved(_triangles(bundle.assets[mesh]), world)) for mesh, world in worlds]


def in_request(scene: Any) -> Placed:
    llsd = pytest.importorskip("llsd")
    body = llsd.parse_xml(SECOND_LIFE_REQUEST.write(SECOND_LIFE_REQUEST.from_scene(scene)))
    assets = [oracle.decode(bytes(data)) for data in body["mesh_list"]]
    found: Placed = []
    for instance in body["instance_list"]:
        assert min(instance["scale"]) > 0
        x, y, z, w = instance["rotation"]
        world = np.array(Matrix.LocRotScale(instance["position"], Quaternion((w, x, y, z)), instance["scale"]))
        found.append((instance["mesh"], _moved(_triangles(assets[instance["mesh"]]), world)))
    return found


def _triangles(asset: oracle.Asset) -> npt.NDArray[np.float64]:
    return np.concatenate([face.positions[face.triangles] for face in asset.levels["high_lod"]]).astype(np.float64)


def _moved(triangles: npt.NDArray[Any], world: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    moved: npt.NDArray[np.float64] = triangles.astype(np.float64) @ world[:3, :3].T + world[:3, 3]
    return moved


@pytest.mark.parametrize("read", [in_collada, in_bundle, in_request])
@pytest.mark.parametrize("parent", [False, True])
def test_mirrored_duplicates_share_one_mirrored_mesh(read: Callable[[Any], Placed], parent: bool) -> None:
    first = add("shoe", mesh_of("shoe", [(x + 0.2, y + 0.3, z + 0.4) for x, y, z in TETRA], TETRA_FACES))
    first.meshferry.physics_object = add("solid", first.data.copy())
    above = add("above", location=(1, 2, 3), rotation_euler=(0.4, -0.3, 1.1), scale=(-1.5, 1.5, 1.5))
    objects = [first]
    for number, signs in enumerate(itertools.product((1, -1), repeat=3)):
        made = duplicate(first, f"shoe.{number + 1:03d}", number)
        made.scale = np.array(signs) * (1.3, 0.6, 2.1 + 0.1 * number)
        made.parent = above if parent else None
        objects.append(made)
    bpy.context.view_layer.update()
    found = read(placed(objects, missing_levels="COPY"))
    assert len({mesh for mesh, _ in found}) == 2
    for (_, triangles), obj in zip(found, objects, strict=True):
        assert_same_triangles(triangles, shown(obj), 3e-4)
