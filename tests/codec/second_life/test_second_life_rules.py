"""What the uploader refuses and what surprises, each rule broken alone, with the very elements that break it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats import api
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.messages import Elements, Kind, Message
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.asset.rules import check_models, check_scene, degenerate_triangles
from meshferry.io_formats.second_life.avatar import joints
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.models.models import models_of
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

CORNERS = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], np.float32)
SIDES = np.array(
    (0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5),
    np.int32,
).reshape(-1, 3)


def cube(*materials: str, triangles: int = 12, size: float = 2.0) -> sc.Mesh:
    """Return a cube, or some of its triangles, that are dealt to the materials in turn."""
    names = list(materials or ("paint",))
    points = CORNERS * np.float32(size / 2)
    return sc.Mesh(
        points,
        SIDES[:triangles].reshape(-1),
        np.arange(triangles, dtype=np.int32) % len(names),
        names,
        normal=sc.Layer("normal", points / np.float32(size / 2 * 3**0.5)),
        uvs=[sc.Layer("UV", (points[:, :2] / size + 0.5).astype(np.float32))],
    )


def crate(**changes: Any) -> sc.Scene:
    """Return a scene of one model with all there can be: four levels, physics mesh, base hull; nothing is wrong."""
    finest = sc.Node("crate", mesh=cube("paint", "wood"), **changes)
    nodes = [finest]
    for lod, triangles in ((1, 10), (2, 8), (3, 6)):
        mesh = cube("paint", "wood", triangles=triangles)
        nodes.append(sc.Node(f"crate_LOD{3 - lod}", mesh=mesh, lod=lod, lod_of=0))
    nodes.append(sc.Node("crate_PHYS", mesh=cube("paint", "wood"), role=sc.Role.PHYSICS, shape_of=0))
    nodes.append(sc.Node("crate hull", mesh=cube(), role=sc.Role.HULL, shape_of=0, is_base_hull=True))
    for node in nodes:
        node.translation, node.rotation, node.scale = finest.translation, finest.rotation, finest.scale
    return sc.Scene("crate", nodes)


def rigged(*joints: str) -> sc.Scene:
    """Return a cube whose every other point hangs on each of the joints."""
    names = joints or ("mPelvis", "mTorso")
    mesh = cube()
    mesh.joint_indices = (np.arange(8, dtype=np.int32) % len(names))[:, None]
    mesh.joint_weights = np.ones((8, 1), np.float32)
    skeleton = sc.Skeleton("Rig", [sc.Joint(name, number - 1) for number, name in enumerate(names)])
    return sc.Scene("body", [sc.Node("body", mesh=mesh, skeleton=0)], [skeleton])


def of(scene: sc.Scene, number: int = 0) -> sc.Mesh:
    mesh = scene.nodes[number].mesh
    assert mesh is not None
    return mesh


def only(findings: list[Message]) -> Message:
    assert len(findings) == 1, [str(finding) for finding in findings]
    return findings[0]


def breaks(scene: sc.Scene, severity: str, subject: str, *words: str) -> Elements | None:
    """Return the elements of the scene's one finding, which has this severity and item, and these words."""
    finding = only(check_scene(scene))
    assert (finding.kind.value, finding.item) == (severity, subject), str(finding)
    for word in words:
        assert word in finding.message, finding.message
    return finding.elements


def test_nothing_is_wrong_with_a_sound_model() -> None:
    assert check_scene(crate()) == []
    assert check_scene(rigged()) == []
    assert check_scene(sc.Scene("nothing")) == []


# -- shown meshes -------------------------------------------------------------------------------


def test_a_model_without_triangles() -> None:
    scene = sc.Scene("box", [sc.Node("box", mesh=cube(triangles=0))])
    breaks(scene, "error", "Object 'box'", "no triangles")


@pytest.mark.parametrize("number", [0, 2, 4])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_places_that_are_no_numbers(number: int, value: float) -> None:
    scene = crate()
    of(scene, number).points[5, 1] = value
    found = breaks(scene, "error", f"Object '{scene.nodes[number].name}'", "1 vertex has a position")
    assert found == Elements("vertices", scene.nodes[number].name, (5,))


def test_a_loose_point_that_is_no_number_does_no_harm() -> None:
    scene = crate()
    mesh = of(scene)
    mesh.points = np.concatenate([mesh.points, np.full((1, 3), np.nan, np.float32)])
    for layer in mesh.layers():
        layer.values = np.concatenate([layer.values, np.full((1, layer.values.shape[1]), np.nan, np.float32)])
    assert check_scene(scene) == []


def test_normals_and_uvs_that_are_no_numbers() -> None:
    scene = crate()
    layer = of(scene).normal
    assert layer is not None
    layer.values[3] = np.nan
    found = breaks(scene, "error", "Object 'crate'", "1 vertex has a normal")
    assert found == Elements("vertices", "crate", (3,))
    scene = crate()
    mesh = of(scene)
    uvs = mesh.uvs[0].values[mesh.corner_point]
    uvs[4] = np.inf
    mesh.uvs = [sc.Layer("UV", uvs, per_corner=True)]
    found = breaks(scene, "error", "Object 'crate'", "1 vertex has UVs")
    assert found == Elements("vertices", "crate", (int(mesh.corner_point[4]),))


def test_transforms_and_matrices_that_are_no_numbers() -> None:
    breaks(crate(translation=(0.0, np.nan, 0.0)), "error", "Object 'crate'", "location, rotation or scale")
    scene = rigged()
    scene.nodes[0].skin = sc.Skin(["mPelvis"], np.full((1, 4, 4), np.inf), np.identity(4))
    breaks(scene, "error", "Object 'body'", "matrix of its binding")


@pytest.mark.parametrize("indexed", [False, True])
def test_far_uvs(indexed: bool) -> None:
    scene = crate()
    mesh = of(scene)
    if indexed:
        uvs = mesh.uvs[0].values[mesh.corner_point]
        uvs[7, 1] = -1001
        mesh.uvs = [sc.Layer("UV", uvs[::-1].copy(), np.arange(35, -1, -1, dtype=np.int32))]
        expected = int(mesh.corner_point[7])
    else:
        mesh.uvs[0].values[6, 0] = 1001
        expected = 6
    found = breaks(scene, "warning", "Object 'crate'", "reach 1001")
    assert found == Elements("vertices", "crate", (expected,))


@pytest.mark.parametrize(
    ("size", "severity"),
    [
        (0.0005, "warning"),
        (0.009, "warning"),
        (0.011, ""),
        (63.9, ""),
        (65.0, "warning"),
        (255.0, "warning"),
        (257.0, "error"),
    ],
)
@pytest.mark.parametrize("by_scale", [False, True])
def test_sizes(size: float, severity: str, by_scale: bool) -> None:
    mesh = cube() if by_scale else cube(size=size)
    scale = (size / 2,) * 3 if by_scale else (1.0, 1.0, 1.0)
    scene = sc.Scene("box", [sc.Node("box", mesh=mesh, scale=scale)])
    if not severity:
        assert check_scene(scene) == []
        return
    breaks(scene, severity, "Object 'box'", f"{size:.4g}")


def test_flat_things_have_a_size_of_one_metre_across() -> None:
    mesh = cube()
    mesh.points[:, 2] = 3
    assert check_scene(sc.Scene("sheet", [sc.Node("sheet", mesh=mesh)])) == []


def test_scales_that_were_not_applied() -> None:
    breaks(crate(scale=(1.0, 2.0, 1.0)), "warning", "Object 'crate'", "scale is uneven")
    breaks(crate(scale=(-1.0, 1.0, 1.0)), "warning", "Object 'crate'", "scale is negative")
    assert check_scene(crate(scale=(2.0, 2.0, 2.0))) == []


def test_the_scale_of_what_came_from_a_file_is_its_size() -> None:
    scene = sc.Scene("box", [sc.Node("box", mesh=cube(size=1.0), scale=(1.0, 2.0, 3.0))])
    breaks(scene, "warning", "Object 'box'", "scale is uneven")
    domain = (-0.5, -0.5, -0.5, 0.5, 0.5, 0.5)
    of(scene, 0).surfaces = [sc.Surface("", position_domain=domain) for _ in of(scene, 0).materials]
    assert check_scene(scene) == []


# -- levels -------------------------------------------------------------------------------------


def test_a_level_heavier_than_the_finer_one() -> None:
    scene = crate()
    scene.nodes[2].mesh = cube("paint", "wood", triangles=11)
    breaks(scene, "warning", "Object 'crate_LOD1'", "11 triangles", "medium level with 10")


def test_a_level_of_more_bytes_than_the_finer_one() -> None:
    scene = crate()
    sizes = {"high_lod": 1000, "medium_lod": 700, "low_lod": 710, "lowest_lod": 800}
    finding = only(check_models(models_of(scene), scene, sizes=sizes))
    assert finding.item == "Object 'crate_LOD0'"
    assert "800 bytes" in finding.message


def test_a_material_that_the_finest_level_has_not() -> None:
    scene = crate()
    of(scene, 3).materials = ["paint", "gold"]
    (finding,) = check_scene(scene)
    assert finding.kind is Kind.ERROR
    assert finding.elements == Elements("triangles", "crate_LOD0", (1, 3, 5))
    assert "'gold'" in finding.message


def test_materials_are_compared_by_what_is_used() -> None:
    scene = crate()
    mesh = of(scene, 1)
    mesh.materials = ["gold", "wood", "paint"]  # another order, and one more that has no triangles
    mesh.material_index = np.where(mesh.material_index == 0, 2, 1).astype(np.int32)
    assert check_scene(scene) == []


def test_made_parts_are_not_pointed_at() -> None:
    scene = crate()
    scene.nodes[3].generated_from = "crate"
    of(scene, 3).corner_point = np.tile(of(scene, 3).corner_point, 9)
    of(scene, 3).material_index = np.tile(of(scene, 3).material_index, 9)
    finding = next(found for found in check_scene(scene) if "more than the" in found.message)
    assert (finding.item, finding.elements) == ("Object 'crate', lowest level", None)


def test_what_levels_were_made_of_is_blamed_alone() -> None:
    """A made level has the broken numbers and the strange materials of the one that it was made of."""
    scene = crate()
    scene.nodes[2].generated_from = scene.nodes[3].generated_from = "crate"
    for level in (1, 2, 3):
        of(scene, level).materials = ["paint", "gold"]
        of(scene, level).points[0, 0] = np.nan
    of(scene, 0).points[0, 0] = np.nan
    subjects = [finding.item for finding in check_scene(scene) if finding.kind is Kind.ERROR]
    assert subjects == ["Object 'crate'", f"Object '{scene.nodes[1].name}'", f"Object '{scene.nodes[1].name}'"]


def test_physics_may_have_any_materials_until_it_is_in_a_file() -> None:
    """They show nowhere; what is written has those of the highest level."""
    scene = crate()
    scene.nodes[4].mesh = cube("paint")
    assert check_scene(scene) == []
    of(scene, 4).materials = ["rubber"]
    assert check_scene(scene) == []
    found = check_models(models_of(scene), scene, stored=True)
    assert any("'rubber'" in finding.message for finding in found if finding.kind is Kind.ERROR)


def test_many_materials() -> None:
    names = [f"m{number}" for number in range(9)]
    breaks(sc.Scene("box", [sc.Node("box", mesh=cube(*names))]), "warning", "Object 'box'", "9 materials", "2 objects")
    mesh = cube(*names[:8])
    mesh.materials += ["unused"] * 5
    assert check_scene(sc.Scene("box", [sc.Node("box", mesh=mesh)])) == []


def test_crowded_faces() -> None:
    count = 65_502
    rng = np.random.default_rng(1)
    mesh = sc.Mesh(
        rng.random((count, 3), np.float32), np.arange(count, dtype=np.int32), np.zeros(count // 3, np.int32), ["fur"]
    )
    mesh.uvs = [sc.Layer("UVMap", np.zeros((count, 2), np.float32))]
    breaks(sc.Scene("cat", [sc.Node("cat", mesh=mesh)]), "warning", "Object 'cat'", "'fur' has 65,502 vertices")
    mesh.material_index[: count // 6] = 1
    mesh.materials.append("more")
    assert check_scene(sc.Scene("cat", [sc.Node("cat", mesh=mesh)])) == []


def test_objects_without_uvs_are_named_with_a_fix() -> None:
    scene = crate()
    of(scene).uvs = []
    (found,) = check_scene(scene)
    assert (found.item, found.is_fixable, found.names) == ("Object 'crate'", True, ("crate",))


def test_levels_and_shapes_without_a_model() -> None:
    scene = crate()
    scene.nodes.append(sc.Node("more", mesh=cube(), lod=4, lod_of=0))
    breaks(scene, "warning", "Object 'more'", "level 4 of 'crate'")
    scene = crate()
    scene.nodes.append(sc.Node("shape", mesh=cube(), role=sc.Role.PHYSICS))
    breaks(scene, "warning", "Object 'shape'", "the object that it belongs to")


# -- physics ------------------------------------------------------------------------------------


def judged(a: Any, b: Any, c: Any) -> bool:
    """Apply the words of the formats page, section 5.2, to one triangle, in numbers of single precision."""

    def single(value: float) -> float:
        try:
            return struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return float("inf")

    def minus(one: Any, other: Any) -> list[float]:
        return [single(x - y) for x, y in zip(one, other, strict=True)]

    def dot(one: Any, other: Any) -> float:
        x, y, z = (single(p * q) for p, q in zip(one, other, strict=True))
        return single(single(x + y) + z)

    def cross(one: Any, other: Any) -> list[float]:
        (a, b, c), (d, e, f) = one, other
        pairs = ((b, f, c, e), (c, d, a, f), (a, e, b, d))
        return [single(single(p * q) - single(r * s)) for p, q, r, s in pairs]

    a, b, c = ([single(0.5 * float(x)) for x in corner] for corner in (a, b, c))
    least = 1e-7
    first, second, third = dot(minus(a, b), minus(a, b)), dot(minus(a, c), minus(a, c)), dot(minus(c, b), minus(c, b))
    even = (first <= 100 * second and first <= 100 * third) and (second <= 100 * first and third <= 100 * first)
    if even:
        least = 1e-11
    for one, other in ((minus(a, b), minus(a, c)), (minus(b, a), minus(b, c))):
        area = cross(one, other)
        if dot(area, area) < single(least):
            return True
    q, r = minus(a, b), minus(c, b)
    return single(single(dot(q, q) * dot(r, r)) - single(dot(q, r) * dot(q, r))) == 0


def test_degenerate_triangles_are_those_of_the_page() -> None:
    rng = np.random.default_rng(7)
    count = 3000
    middle = rng.uniform(-0.4, 0.4, (count, 1, 3))
    reach = 10 ** rng.uniform(-4.5, -0.5, (count, 3, 1))
    points = (middle + reach * rng.uniform(-1, 1, (count, 3, 3))).astype(np.float32)
    # Long ones with a corner just beside the middle of an edge: only the third test, about rounding, sees these.
    beside = 10 ** rng.uniform(-6, -3, (count // 3, 1)) * rng.uniform(-1, 1, (count // 3, 3))
    points[: count // 3, 2] = points[: count // 3, :2].mean(axis=1) + beside
    points = points.reshape(-1, 3)
    found = degenerate_triangles(points, np.arange(3 * count, dtype=np.int32))
    expected = [judged(*triangle) for triangle in points.reshape(-1, 3, 3).tolist()]
    assert 300 < sum(expected) < 2700
    differing = int(np.count_nonzero(found != np.array(expected)))
    assert differing == 0


def test_the_placeholder_of_an_empty_face_is_not_degenerate() -> None:
    points = np.zeros((3, 3), np.float32)
    assert degenerate_triangles(points, np.int32([0, 0, 0, 0, 1, 2])).tolist() == [False, True]


def test_degenerate_physics() -> None:
    scene = crate()
    mesh = of(scene, 4)
    mesh.points = np.concatenate([mesh.points, [[0, 0, 0], [0.5, 0, 0], [0.5, 1e-4, 0]]]).astype(np.float32)
    mesh.corner_point = np.concatenate([mesh.corner_point, [8, 9, 10]]).astype(np.int32)
    mesh.material_index = np.append(mesh.material_index, 0).astype(np.int32)
    mesh.uvs, mesh.normal = [], None
    found = breaks(scene, "error", "Object 'crate_PHYS'", "1 triangle is too thin")
    assert found == Elements("triangles", "crate_PHYS", (12,))
    scene.nodes.append(sc.Node("hull", mesh=cube(), role=sc.Role.HULL, shape_of=0))
    assert check_scene(scene) == [], "with hulls the physics mesh is not used"


def test_degenerate_is_judged_in_the_box_of_the_model() -> None:
    """A sliver on a small thing is one on a large thing, too, and the size of the box counts, not metres."""
    for size in (0.1, 50.0):
        scene = crate(scale=(size / 2,) * 3)
        mesh = of(scene, 4)
        mesh.points[3] = mesh.points[1] + np.float32([0, 2e-5, 0])
        found = check_scene(scene)
        assert [finding.kind for finding in found] == [Kind.ERROR], size


def test_hulls() -> None:
    def with_hulls(*meshes: sc.Mesh) -> sc.Scene:
        scene = crate()
        for number, mesh in enumerate(meshes):
            scene.nodes.append(sc.Node(f"hull {number}", mesh=mesh, role=sc.Role.HULL, shape_of=0))
        return scene

    flat = cube()
    flat.points = flat.points * np.float32([1, 1, 0])
    assert breaks(with_hulls(cube(), flat), "warning", "Object 'hull 1'", "flat") == Elements(
        "vertices", "hull 1", tuple(range(8))
    )
    many = cube()
    many.points = np.random.default_rng(2).random((257, 3)).astype(np.float32)
    breaks(with_hulls(many), "error", "Object 'hull 0'", "257 vertices")
    breaks(with_hulls(*[cube()] * 257), "error", "Object 'crate'", "257 hulls")
    assert check_scene(with_hulls(*[cube()] * 256)) == []


# -- rigs ---------------------------------------------------------------------------------------


def test_bones_that_the_avatar_does_not_have() -> None:
    found = breaks(rigged("mPelvis", "Tail", "Ear"), "error", "Object 'body'", "'Tail', 'Ear'", "2 bones")
    assert found == Elements("bones", "Rig", ("Tail", "Ear"))
    assert check_scene(rigged("mPelvis", "hip", "avatar_mTorso", "BELLY", "Skull", "Left_Hand")) == []
    scene = rigged("mPelvis", "mTorso", "IK Target")
    mesh = of(scene)
    assert mesh.joint_indices is not None
    mesh.joint_indices[mesh.joint_indices == 2] = 0
    assert check_scene(scene) == [], "it moves nothing"


def test_too_many_bones() -> None:
    names = [joint.name for joint in joints.table().values() if joint.is_bone][:112]
    scene = rigged(*names)
    mesh = of(scene)
    mesh.joint_indices = np.arange(112, dtype=np.int32).reshape(8, 14)
    mesh.joint_weights = np.full((8, 14), 1 / 14, np.float32)
    finding, stray = check_scene(scene)
    assert (finding.kind, finding.item) == (Kind.ERROR, "Object 'body'")
    assert "112 bones move it; a mesh may have 110" in finding.message
    mesh.joint_weights[3] *= np.linspace(0.1, 0.5, 14)
    finding = check_scene(scene)[0]
    assert finding.message.endswith("least weight: " + ", ".join(f"'{name}'" for name in names[42:52]))
    assert finding.elements == Elements("vertices", "body", (3,))
    mesh.joint_weights[7, 12:] = 0
    assert [found.message[-80:] for found in check_scene(scene)] == [stray.message[-80:]]


def test_vertices_without_weights() -> None:
    scene = rigged()
    mesh = of(scene)
    assert mesh.joint_weights is not None
    mesh.joint_weights[[2, 6]] = 0
    assert breaks(scene, "warning", "Object 'body'", "2 vertices have no weights") == Elements(
        "vertices", "body", (2, 6)
    )
    mesh.joint_weights = mesh.joint_indices = None
    breaks(scene, "warning", "Object 'body'", "no vertex has weights")


@pytest.mark.parametrize(
    ("joint", "share", "points", "part"),
    [
        ("mTail1", 0.3, 4, "the tail"),
        ("mTail6", 0.9, 2, ""),
        ("mWing1Left", 0.4, 1, "the wings"),
        ("mWing1Left", 0.4, 8, ""),
        ("mHindLimbsRoot", 0.1, 8, "the hind limbs"),
        ("BELLY", 0.05, 1, "collision volumes"),
        ("BELLY", 0.2, 5, ""),
    ],
)
def test_weights_for_joints_that_few_meshes_mean(joint: str, share: float, points: int, part: str) -> None:
    scene = rigged("mPelvis", joint)
    mesh = of(scene)
    mesh.joint_indices = np.tile(np.int32([[0, 1]]), (8, 1))
    mesh.joint_weights = np.tile(np.float32([[1, 0]]), (8, 1))
    mesh.joint_weights[:points] = [1 - share, share]
    if not part:
        assert check_scene(scene) == []
        return
    elements = breaks(scene, "warning", "Object 'body'", part, f"{share * points / 8:.1%} of its weights", joint)
    assert elements == Elements("vertices", "body", tuple(range(points)))
    assert check_models(models_of(scene), scene, stored=True) == []


def test_places_with_two_answers() -> None:
    scene = rigged("mPelvis", "mTorso", "mChest", "mNeck")
    mesh = of(scene)
    assert mesh.joint_weights is not None
    mesh.points = np.concatenate([mesh.points, mesh.points])
    mesh.corner_point = np.concatenate([mesh.corner_point, mesh.corner_point + 8]).astype(np.int32)
    mesh.material_index = np.zeros(24, np.int32)
    mesh.uvs, mesh.normal = [sc.Layer("UVMap", np.zeros((16, 2), np.float32))], None
    mesh.joint_indices = np.tile(np.int32([[0, 1, 2, 3]]), (16, 1))
    mesh.joint_weights = np.tile(np.float32([[0.4, 0.6, 0, 0]]), (16, 1))
    mesh.joint_indices[8:] = [1, 0, 3, 3]  # the same in another order, with other empty places
    mesh.joint_weights[8:] = [0.6, 0.4, 0, 0]
    assert check_scene(scene) == []
    mesh.joint_weights[11] = [0.5, 0.5, 0, 0]
    mesh.joint_indices[13] = [1, 2, 3, 3]
    found = breaks(scene, "warning", "Object 'body'", "4 vertices are")
    assert found == Elements("vertices", "body", (3, 5, 11, 13))


# -- on the way into a file, and in one ----------------------------------------------------------


def test_errors_stop_an_export_unless_it_is_kept_as_imported() -> None:
    scene = crate()
    of(scene, 4).points[:] *= np.float32(0)
    part = SECOND_LIFE_UPLOAD.files_of(scene)[0]
    with pytest.raises(ExportError, match="too thin or too small"):
        api.encode_part(part, SECOND_LIFE_UPLOAD)
    part.as_imported = True
    encoded = api.encode_part(part, SECOND_LIFE_UPLOAD)
    assert any("too thin or too small" in text for text in encoded.messages)
    assert encoded.outputs[-1].data


def test_a_refusal_holds_what_the_rest_of_the_export_would_report() -> None:
    scene = crate()
    of(scene, 4).points[:] *= np.float32(0)
    for node in scene.nodes:
        node.name = node.name.replace("crate", "crate_LOD1")
    part = SECOND_LIFE_UPLOAD.files_of(scene)[0]
    with pytest.raises(ExportError, match="too thin or too small") as caught:
        api.encode_part(part, SECOND_LIFE_UPLOAD)
    assert [str(finding) for finding in caught.value.findings if "called 'crate' in the files" in str(finding)]


def test_thin_hulls_are_triangles_in_an_upload_set_unless_analysed() -> None:
    scene = crate()
    hull = cube()
    hull.points = np.concatenate([hull.points, [[0, 0, 0], [0.5, 0, 0], [0.5, 1e-4, 0]]]).astype(np.float32)
    hull.corner_point = np.concatenate([hull.corner_point, [8, 9, 10]]).astype(np.int32)
    scene.nodes.append(sc.Node("hull", mesh=hull, role=sc.Role.HULL, shape_of=0))
    finding = only(SECOND_LIFE_UPLOAD.check_scene(scene))
    assert (finding.kind, finding.item) == (Kind.WARNING, "Object 'crate'")
    assert finding.message.startswith("1 triangle of its hulls is too thin or too small for physics; use")
    assert "set Num Hulls to 1 or more" in finding.message
    assert SECOND_LIFE_REQUEST.check_scene(scene) == [], "a request holds hulls as such"


def test_thin_physics_of_a_real_file_stop_only_an_upload(samples: Path) -> None:
    path = samples / "secondlife" / "franz_66f2a0fb.llmesh"
    for target in (SECOND_LIFE_MESH, SECOND_LIFE_BUNDLE):
        encoded = api.encode_part(target.files_of(api.read_scene(path))[0], target)
        assert [text for text in encoded.messages if "2 triangles are too thin or too small" in text]
    for target in (SECOND_LIFE_UPLOAD, SECOND_LIFE_REQUEST):
        with pytest.raises(ExportError, match=r"2 triangles are too thin .* Keep as Imported writes it as it is"):
            api.encode_part(api.read_scene(path), target)


def test_each_finding_is_told_once_on_the_way_into_a_file() -> None:
    part = SECOND_LIFE_MESH.files_of(crate(scale=(1.0, 2.0, 1.0)))[0]
    messages = api.encode_part(part, SECOND_LIFE_MESH).messages
    assert sum("scale is uneven" in text for text in messages) == 1


def through_file(scene: sc.Scene, change: Callable[[Any], None] | None = None) -> list[Message]:
    """Return what is found in a scene's asset once it is a file."""
    document = SECOND_LIFE_MESH.from_scene(SECOND_LIFE_MESH.files_of(scene)[0])
    if change is not None:
        change(document)
    return SECOND_LIFE_MESH.check(SECOND_LIFE_MESH.read(SECOND_LIFE_MESH.write(document)))


def test_a_file_is_checked_whole() -> None:
    assert through_file(crate()) == []
    scene = crate()
    of(scene, 4).points[:] *= np.float32([1, 1, 0])
    broken = through_file(scene)
    assert [(finding.kind.value, finding.item) for finding in broken] == [("error", "Physics mesh")]
    assert broken[0].elements is not None


@pytest.mark.parametrize(
    ("block", "severity", "words"),
    [
        ("medium_lod", "warning", "no medium level"),
        ("lowest_lod", "warning", "no lowest level"),
        ("physics_convex", "error", "no convex physics shape"),
    ],
)
def test_blocks_that_a_file_lacks(block: str, severity: str, words: str) -> None:
    finding = only(through_file(crate(), lambda document: document.blocks.pop(block)))
    assert finding.kind.value == severity
    assert words in finding.message


def test_a_file_without_a_hull_around_everything() -> None:
    finding = only(through_file(crate(), lambda document: document.blocks["physics_convex"].pop("BoundingVerts")))
    assert finding.kind is Kind.ERROR
    assert "BoundingVerts" in finding.message


def test_levels_of_different_faces() -> None:
    found = through_file(crate(), lambda document: document.blocks["low_lod"].append({"NoGeometry": True}))
    assert "the low level has 3 faces, the high level 2" in only(found).message


def test_a_long_header() -> None:
    document = SECOND_LIFE_MESH.from_scene(SECOND_LIFE_MESH.files_of(crate())[0])
    document.header_size = 5000
    assert "5,000 bytes" in only(SECOND_LIFE_MESH.check(document)).message


def test_bundles_need_all_levels_and_physics_for_all_or_none() -> None:
    two = crate()
    other = crate()
    of(other, 0).uvs[0].values *= np.float32(0.5)  # otherwise both would share a mesh
    for node in other.nodes:
        node.name = node.name.replace("crate", "chest")
        for key in ("lod_of", "shape_of"):
            if getattr(node, key) is not None:
                setattr(node, key, getattr(node, key) + len(two.nodes))
    two.nodes += other.nodes
    bundle = SECOND_LIFE_BUNDLE.from_scene(SECOND_LIFE_BUNDLE.files_of(two)[0])
    assert SECOND_LIFE_BUNDLE.check(bundle) == []
    assert SECOND_LIFE_BUNDLE.check(SECOND_LIFE_BUNDLE.read(SECOND_LIFE_BUNDLE.write(bundle))) == []
    del bundle.meshes[1].blocks["physics_mesh"]
    assert "'chest': no physics mesh" in only(SECOND_LIFE_BUNDLE.check(bundle)).message
    bundle.meshes[0].blocks.pop("physics_mesh")
    bundle.meshes[0].blocks.pop("low_lod")
    finding = only(SECOND_LIFE_BUNDLE.check(bundle))
    assert (finding.item, finding.kind) == ("Object 'crate'", Kind.ERROR)
    assert "low_lod" in finding.message


REAL = {
    "franz_6764a3d8.llmesh": ["warning: it has 28 triangles, more than the low level with 4"],
    "franz_66f2a0fb.llmesh": ["error: 2 triangles are too thin"],
    "franz_89ce9dc7.llmesh": [],
    "elfears_98a6e63e.llmesh": ["warning: the hull is flat"] * 2,
    "synthetic/synth_flat_z.llmesh": [
        "warning: there is no medium",
        "warning: there is no low ",
        "warning: there is no lowest",
    ],
    "benthic_rigged22.mesh": [],
    "synthetic/synth_rig_cv.llmesh": [],
    "synthetic/synth_scene.slm": ["warning: 'many', 'manyb': no physics mesh"],
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(samples: Path, name: str) -> None:
    path = samples / "secondlife" / name
    if not path.is_file():
        pytest.skip(f"no {path}")
    loaded = api.load(path)
    found = loaded.format.check(loaded.document)
    texts = [f"{finding.kind.value}: {finding.message}" for finding in found]
    assert [text[: len(start)] for text, start in zip(texts, REAL[name], strict=False)] == REAL[name], texts
    assert len(texts) == len(REAL[name]), texts


def test_real_rigs_mean_their_weights(samples: Path) -> None:
    rigs = 0
    for path in sorted((samples / "secondlife").rglob("*mesh")):
        if path.name not in {"benthic_rigged22.mesh", "hippolyzer_testslm.mesh"} and "rig" not in path.name:
            continue
        scene = api.read_scene(str(path), {})
        rigs += len(scene.skeletons)
        found = [finding.message for finding in check_models(models_of(scene), scene)]
        assert not any(" a little, with " in text for text in found), path.name
    assert rigs >= 4
