"""Real files of every family through Blender and back: what was in them is in them again.

The original bytes and those written are read by the oracles and compared by the judges: our own readers take the files
to Blender, but have no say in what was in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest
import second_life_judge
import second_life_oracle
import timbermesh_judge
import timbermesh_oracle
import unigine_generated as generated
import unigine_judge
import unigine_oracle
from mesh_serializer_ways import corners_of, exported
from meshfuzz import second_life_seeds as seeds
from meshfuzz.mesh_serializer_seeds import pack
from round_trips import exported as exported_to
from round_trips import imported, scene_imported

pytestmark = pytest.mark.needs_bpy


# -- what each family compares --------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A file that was in Blender."""

    name: str
    way: str
    result: Any
    """Of the import."""


def same_timbermesh(before: bytes, after: bytes, case: Case) -> object:
    model = timbermesh_oracle.parse(before)
    is_animated = any(node.vertexAnimations for node in model.nodes)
    is_exact = case.way.startswith("exact") and not is_animated
    return timbermesh_judge.same_model(
        model,
        timbermesh_oracle.parse(after),
        1e-3 if is_exact else 0.015,
        welded=FAMILIES["timbermesh"].ways[case.way]["use_weld"],
    )


def assert_all_dropped_are_named(result: Any, repeated: int) -> None:
    said = [text for text in result.warnings if "without area" in text]
    assert sum(int(text.split(": ")[1].split()[0].replace(",", "")) for text in said) == repeated


def same_unigine_mesh(data: bytes, written: bytes, case: Case) -> object:
    before, after = unigine_oracle.decode(data), unigine_oracle.decode(written)
    verdict = unigine_judge.same_mesh(before, after, is_exact=case.way == "exact")
    assert_all_dropped_are_named(case.result, verdict.repeated)
    return verdict


def same_unigine_animation(before: bytes, after: bytes, case: Case) -> object:
    # Joints of unequal scale shear bones that do not point along their axes; the import names them.
    sheared = any("shear" in text for text in case.result.warnings)
    assert not sheared or (case.way == "children" and case.name in {"an11_cat_289bones", "an11_jump_9frames"})
    return unigine_judge.same_animation(unigine_oracle.decode(before), unigine_oracle.decode(after), sheared=sheared)


def decoded(data: bytes) -> second_life_oracle.Asset:
    """Read an asset, without the names of materials, which only assets within bundles have."""
    asset = second_life_oracle.decode(data)
    asset.header.pop("material_list", None)
    return asset


def same_second_life(data: bytes, written: bytes, case: Case) -> object:
    before, after = decoded(data), decoded(written)
    if case.way == "window":
        return second_life_judge.same_asset(
            before, after, normals=second_life_judge.EDITABLE, except_doubtful=True, welded=True, in_order=False
        )
    is_exact = before.skin is None
    within = second_life_judge.EXACT if is_exact else second_life_judge.EDITABLE
    verdict = second_life_judge.same_asset(before, after, normals=within, except_doubtful=not is_exact)
    assert_all_dropped_are_named(case.result, verdict.repeated)
    return verdict


def same_mesh_serializer(data: bytes, written: bytes, _case: Case) -> object:
    before = made.unpack(data)
    differing = made.assert_same(before, made.unpack(written))
    assert differing == 0
    if len(before.proper) == len(before.triangles):
        assert written == data
    return differing


# -- families -------------------------------------------------------------------------------------


def mesh_version(document: Any) -> dict[str, Any]:
    embeds = document.version in ("ms10", "ms11", "ms12")
    return {"mesh_version": document.version.upper(), "use_embedded_animation": embeds}


@dataclass(frozen=True)
class Family:
    """Samples of a format, how they are imported, and how files are compared."""

    folder: str
    pattern: str
    """Of the path below the folder, for a name."""
    names: str
    ways: Mapping[str, Mapping[str, Any]]
    """Options of imports by name."""
    compare: Callable[[bytes, bytes, Case], object]
    in_one_version: tuple[str, ...] = ()
    """Ways that are taken in one version of Blender alone."""
    file_options: Callable[[Any], dict[str, Any]] = lambda _document: {}
    """Of an export, for the document of a file."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of an export."""


FAMILIES = {
    "timbermesh": Family(
        "timbermesh",
        "*__{}.*mesh*",
        """
        BeaverBucks CordialForestStation DeepSeaPump RampSlope TurbineBlades BucketModel BiomeBox
        CompactWaterTurbine10 Crane HangingOverhang SmartConveyorBeltCover RaftRamp ElectricLumberMill
        KeystoneFish1 PipeWaterPump DualDistrictPile ShantySpeaker PaperLantern
        """,
        {
            "exact": {"normals": "EXACT", "use_weld": False},
            "editable": {"normals": "EDITABLE", "use_weld": False},
            "window": {"normals": "AUTO", "use_weld": True},
            "exact-welded": {"normals": "EXACT", "use_weld": True},
        },
        same_timbermesh,
        in_one_version=("editable", "exact-welded"),
    ),
    "unigine_mesh": Family(
        "unigine",
        "{}.mesh",
        """
        mr02_box mr02_lamp ms10_box ms11_agent_54bones_scaled ms11_arms_40bones_anim1 ms11_gun_4bones_anim1
        ms11_leaf_colors ms11_mixed_handed_u8_u16 ms11_plane_no_uv ms11_switch_9bones_anim100
        ms11_track_2surf_2uv ms12_box_lm00 ms12_colors_lownorm ms12_empty ms12_hand_63bones
        ms12_lights_2surf_2uv ms12_pistol_11bones_anim1 ms12_robot_12bones ms12_template_lm14
        ms13_cat_289bones ms13_colors_2uv ms13_cyrillic_name ms13_int32_indices ms13_quad_no_uv
        ms13_sign_3surf ms14_box ms14_capsule_4bones ms14_plane ms14_plane_raw_block ms14_sphere_u8_u16
        ms14_viewcube_26surf ms15_material_ball
        """,
        {
            "exact": {"normals": "EXACT"},
            "editable": {"normals": "EDITABLE"},
            "children": {"normals": "AUTO", "bone_direction": "CHILDREN"},
        },
        same_unigine_mesh,
        in_one_version=("editable", "children"),
        file_options=mesh_version,
    ),
    "unigine_animation": Family(
        "unigine",
        "{}.anim",
        """
        an10_gun_4bones an10_jump_scale an10_robot_idle an10_switch_translation_only an11_cat_289bones
        an11_jump_9frames an11_one_frame an11_zero_frames an13_jump an13_pose
        """,
        {"file": {"bone_direction": "FILE"}, "children": {"bone_direction": "CHILDREN"}},
        same_unigine_animation,
        in_one_version=("children",),
        file_options=lambda document: {"animation_version": document.version.upper()},
    ),
    "second_life": Family(
        "secondlife",
        "{}.*mesh",
        """
        benthic_rigged22 hippolyzer_testslm elfears_98a6e63e franz_175117c0 franz_66f2a0fb franz_6764a3d8
        franz_7fd97e74 franz_89ce9dc7 franz_89e370e6 franz_8d2c4349 franz_9b91b744 franz_a11011e5
        franz_b9724d85 franz_bd6b15f1 franz_d0471994 franz_d28667ec franz_f3c44e40 franz_f95bf4c8
        synthetic/synth_8face_nogeo_hulls synthetic/synth_box_1face synthetic/synth_flat_z
        synthetic/synth_physics_mesh synthetic/synth_prefix synthetic/synth_rig_cv
        synthetic/synth_rig_overrides synthetic/synth_server_header
        """,
        {"exact": {"normals": "EXACT"}, "window": {"headless": False}},
        same_second_life,
        options={"use_as_imported": True},
    ),
    "mesh_serializer": Family(
        "unity_meshserializer",
        "{}",
        """
        3dify__model.bin nickwelp__NameThisTrack_InsideWall.data nickwelp__meshes_Road1.data
        nickwelp__texasLand_OutsideWall.data tedmx__SerializedMesh.data zootyducky__SerializedMesh.data
        """,
        {"exact": {}},
        same_mesh_serializer,
    ),
}
LARGE = ("cat_289bones", "int32_indices", "material_ball", "robot_12bones", "switch_9bones")
"""Ends of the names of files that take long."""


def marks(family: Family, name: str, way: str) -> list[pytest.MarkDecorator]:
    """The first way of small files is fast."""
    is_slow = way != next(iter(family.ways)) or name.endswith(LARGE)
    return [pytest.mark.slow] * is_slow + [pytest.mark.any_version] * (way in family.in_one_version)


CASES = [
    pytest.param(key, name, way, marks=marks(family, name, way), id=f"{key}-{name}-{way}")
    for key, family in FAMILIES.items()
    for name in family.names.split()
    for way in family.ways
]


def round_trip(family: Family, data: bytes, way: str, name: str = "given") -> tuple[bytes, Any]:
    """Return a file as Blender writes it after its import, and what the import made."""
    found = imported(data, name, **family.ways[way])
    collection = found.made.collection
    file_options = family.file_options(found.document)
    written, _ = exported_to(found.format, collection=collection, file_options=file_options, **family.options)
    return written, found.made


def sample(samples: Path, key: str, name: str) -> Path:
    """Return the path of a real file."""
    family = FAMILIES[key]
    folder = samples / family.folder
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent")
    (path,) = folder.glob(family.pattern.format(name))
    return path


@pytest.mark.parametrize(("key", "name", "way"), CASES)
def test_a_real_file_comes_back(key: str, name: str, way: str, samples: Path, record_property: Any) -> None:
    path, family = sample(samples, key, name), FAMILIES[key]
    data = path.read_bytes()
    written, result = round_trip(family, data, way, path.stem)
    verdict = family.compare(data, written, Case(name, way, result))
    record_property("verdict", str(verdict))
    print(name, way, verdict)


# -- files with values that no real file has ------------------------------------------------------


@pytest.mark.parametrize("version", ["ms10", "ms11", "ms12", "ms13", "ms14"])
@pytest.mark.parametrize("seed", range(2))
def test_made_unigine_meshes_with_everything_come_back(version: str, seed: int) -> None:
    """What no real file has at once: morph targets of single surfaces, bones that are scaled unevenly, four weights."""
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    mesh = generated.mesh(
        seed,
        [(4, 5), (3, 3), (6, 4), (2, 9)],
        joints=9,
        keys=("Lächeln", "blink", "smile", "frown", "smile again"),
        uvs=[(True, True), (True, False), (False, True), (False, False)],
        colors=[True, False, True, False],
    )
    scene = generated.scene(mesh, generated.skeleton(seed, 9))
    data = UNIGINE_MESH.write(UNIGINE_MESH.from_scene(scene, {"mesh_version": version.upper()}))
    written, _ = round_trip(FAMILIES["unigine_mesh"], data, "editable")
    before, after = unigine_oracle.decode(data), unigine_oracle.decode(written)
    assert [len(surface.targets) for surface in before.surfaces] == [3, 2, 2, 2]
    verdict = unigine_judge.same_mesh(before, after, is_exact=False)
    assert verdict.repeated == verdict.excepted == 0


def flat() -> made.Stored:
    """Return one square on the ground as the wiki's writer does: 0.001 thick, and every y in the middle."""
    stored = made.crate()
    top = slice(12, 16)  # the side that looks up
    stored.positions, stored.normals, stored.uvs = stored.positions[top], stored.normals[top], stored.uvs[top]
    stored.positions[:, 1] = 32767
    stored.bounds[1] = (-0.0005, 0.0005)
    stored.triangles = stored.triangles[6:8] - np.uint16(12)
    return stored


def triangle() -> made.Stored:
    """Return a single triangle without UVs, of odd numbers that no writer would choose for bounds."""
    stored = flat()
    stored.positions, stored.normals, stored.triangles = stored.positions[:3], stored.normals[:3], stored.triangles[:1]
    stored.positions = np.array([[17, 40000, 3], [65535, 12, 65000], [9, 8, 64999]], np.uint16)
    stored.bounds = np.array([[-1e-3, 4e-3], [100, 100.5], [-7, 1e3]], np.float32)
    stored.uvs = stored.uv_bounds = None
    return stored


def without_directions() -> made.Stored:
    """Return a crate of which some normals are zero, as in three real files."""
    stored = made.crate()
    stored.normals[[0, 5, 23]] = 128
    return stored


def with_doubtful_triangles() -> made.Stored:
    """Return a crate with a triangle twice, one turned over, and one that uses a vertex twice."""
    stored = made.crate()
    more = np.array([stored.triangles[0], stored.triangles[1][::-1], [4, 4, 5]], np.uint16)
    stored.triangles = np.concatenate((stored.triangles[:5], more, stored.triangles[5:]))
    return stored


def with_far_uvs() -> made.Stored:
    """Return a crate whose UVs lie where four steps share a float."""
    stored = made.crate()
    stored.uvs = np.random.default_rng(4).integers(0, 65536, stored.uvs.shape).astype(np.uint16)
    stored.uvs[:2] = ((0, 0), (65535, 65535))
    stored.uv_bounds = np.array([[1000, 1001], [1000, 1001]], np.float32)
    return stored


@pytest.mark.parametrize(
    "make",
    [
        flat,
        triangle,
        without_directions,
        with_doubtful_triangles,
        made.crate,
        lambda: made.crate(tangents=True),
        lambda: made.crate((1e-3, 2e3, 5.0)),
        with_far_uvs,
    ],
    ids=["flat", "one triangle", "zero normals", "twins", "crate", "tangents", "thin", "far UVs"],
)
def test_made_mesh_serializer_files_come_back(make: Any) -> None:
    before = make()
    (obj,) = imported(pack(before)).made.objects
    assert made.assert_same(before, exported(obj).stored) == 0


@pytest.mark.parametrize("least", [1000.0, -70000.0, 0.0])
@pytest.mark.parametrize("headless", [True, False])
def test_second_life_uvs_with_more_steps_than_floats_come_back(least: float, headless: bool) -> None:
    """Between 1000 and 1001, 65,536 steps are 16,384 floats; vertices that differ by a step stay separate."""
    rng = np.random.default_rng(3)
    row, column = np.mgrid[0:12, 0:12].reshape(2, -1)
    corner = np.array([(0, 0), (0, 1), (1, 1), (0, 0), (1, 1), (1, 0)])
    places = (np.stack((column, row), axis=-1)[:, None] + corner).reshape(-1, 2)
    steps = rng.integers(0, 65535, (13, 13, 2))[tuple(places.T)] + rng.integers(0, 2, places.shape)
    steps[:2] = (0, 0), (65535, 65535)
    face = seeds.square(
        Normal=seeds.shorts(32767, 32767, 65535) * len(steps),
        Position=np.pad(places * 5461, ((0, 0), (0, 1))).astype("<u2").tobytes(),
        TexCoord0=steps.astype("<u2").tobytes(),
        TexCoord0Domain=seeds.domain((least, least), (least + 1, least + 1)),
        TriangleList=np.arange(len(steps), dtype="<u2").tobytes(),
    )
    data = seeds.asset({"high_lod": [face, seeds.square()], "physics_convex": seeds.hulls()})
    found = imported(data, headless=headless)
    has_steps = any("file_uv" in obj.data.attributes for obj in found.made.objects if obj.type == "MESH")
    assert has_steps == (least != 0)
    written, _ = exported_to(found.format, collection=found.made.collection, use_as_imported=True)
    second_life_judge.same_asset(decoded(data), decoded(written), normals=None, welded=not headless, in_order=False)


# -- changed ------------------------------------------------------------------------------------------------------


def test_a_second_life_rig_that_was_turned_and_moved_is_the_same_avatar(samples: Path) -> None:
    """Facing is read from the rig: whichever way the armature object looks, the file's avatar looks along X."""
    data = sample(samples, "second_life", "synthetic/synth_rig_cv").read_bytes()
    before = decoded(data)
    found = imported(data)
    armature = next(obj for obj in found.made.objects if obj.type == "ARMATURE")
    armature.rotation_mode = "XYZ"
    armature.rotation_euler, armature.location = (0, 0, np.pi / 2), (5, -7, 2)
    after = decoded(exported_to(found.format, collection=found.made.collection)[0])
    for old, new in zip(before.levels["high_lod"], after.levels["high_lod"], strict=True):
        one, other = (
            face.positions[face.triangles] @ asset.skin.bind_shape[:3, :3] + asset.skin.bind_shape[3, :3]
            for face, asset in ((old, before), (new, after))
        )
        assert np.abs(one - other).max() < 1e-4
    for number, name in enumerate(after.skin.joints):
        apart = after.skin.inverse_bind[number] - before.skin.inverse_bind[before.skin.joints.index(name)]
        assert np.abs(apart).max() < 1e-3


def test_robot_and_its_animation_come_back_from_one_armature(samples: Path) -> None:
    """A mesh and an animation that belong together: the armature of the mesh carries both."""
    import bpy
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    imported(sample(samples, "unigine_mesh", "ms12_robot_12bones").read_bytes())
    armature = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    data = sample(samples, "unigine_animation", "an10_robot_idle").read_bytes()
    scene = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(data), "an10_robot_idle")
    scene_imported(scene, armature=armature)
    file_options = {"animation_version": "AN11"}
    clips = {"clips": "ACTIONS", "clip_names": "robot_idle"}
    written, _ = exported_to(UNIGINE_ANIMATION, armature, file_options=file_options, **clips)
    before, after = unigine_oracle.decode(data), unigine_oracle.decode(written)
    unigine_judge.same_bones(before, after)
    unigine_judge.same_frames(before.animations[0][1], after.animations[0][1], unigine_judge.Verdict())


@pytest.mark.parametrize("name", ["ms13_sign_3surf", "ms12_robot_12bones"])
def test_levels_of_detail_come_back_from_their_objects(name: str, samples: Path) -> None:
    """Surfaces of three levels become three objects, and one file again, each surface in its place."""
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    data = sample(samples, "unigine_mesh", name).read_bytes()
    document, before = UNIGINE_MESH.read(data), unigine_oracle.decode(data)
    for surface, original, level in zip(document.surfaces, before.surfaces, (2, 0, 1), strict=True):
        surface.name = original.name = f"body_lod_{level}"
    scene = UNIGINE_MESH.to_scene(document, name, {"use_lod_objects": True})
    assert len(scene.nodes) == 3
    result = scene_imported(scene)
    assert sum(obj.type == "MESH" for obj in result.objects) == 3
    file_options = {"mesh_version": document.version.upper()}
    written, _ = exported_to(UNIGINE_MESH, collection=result.collection, file_options=file_options)
    after = unigine_oracle.decode(written)
    unigine_judge.same_bones(before, after)
    unigine_judge.same_surfaces(before, after, unigine_judge.Verdict(), is_exact=False)


def test_points_alone_come_with_a_warning_and_are_refused() -> None:
    from meshferry.io_formats.core.errors import ExportError

    before = made.crate()
    before.triangles = before.triangles[:0]
    result = imported(pack(before), "cloud").made
    (obj,) = result.objects
    assert (len(obj.data.vertices), len(obj.data.polygons)) == (24, 0)
    assert [text for text in result.warnings if text.startswith("cloud: ") and "only points" in text]
    with pytest.raises(ExportError, match="'cloud' has no faces"):
        exported(obj)


# -- changed ------------------------------------------------------------------------------------------------------


def assert_placed(stored: made.Stored, wanted: Any) -> None:
    """See that a file's corners lie, one by one, within half a step of where they are wanted, (T, 3, 3)."""
    away = np.abs(corners_of(stored) - wanted) / stored.step
    assert away.max() <= 0.505
    given = np.cross(*(wanted[:, k] - wanted[:, 0] for k in (1, 2)))
    ours = np.cross(*(corners_of(stored)[:, k] - corners_of(stored)[:, 0] for k in (1, 2)))
    assert (np.einsum("ij,ij->i", given, ours) > 0).all(), "wound as before"


@pytest.mark.parametrize("name", ["zootyducky__SerializedMesh.data", "nickwelp__NameThisTrack_InsideWall.data"])
def test_a_moved_object_is_stored_as_before(name: str, samples: Path) -> None:
    data = sample(samples, "mesh_serializer", name).read_bytes()
    (obj,) = imported(data).made.objects
    obj.location = (3, -4, 5)
    assert made.assert_same(made.unpack(data), exported(obj).stored) == 0


@pytest.mark.parametrize(
    ("change", "matrix"),
    [
        ({"scale": (2.0, 2.0, 2.0)}, np.diag([2, 2, 2])),
        ({"scale": (0.5, 3.0, 1.0)}, np.diag([0.5, 3, 1])),
        ({"rotation_euler": (0, 0, np.pi / 2)}, [[0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    ],
)
def test_a_changed_object_is_right_to_half_a_step(change: dict[str, Any], matrix: Any, samples: Path) -> None:
    data = sample(samples, "mesh_serializer", "zootyducky__SerializedMesh.data").read_bytes()
    before = made.unpack(data)
    (obj,) = imported(data).made.objects
    obj.rotation_mode = "XYZ"
    for name, value in change.items():
        setattr(obj, name, value)
    after = exported(obj).stored
    x, y, z = np.moveaxis(corners_of(before), -1, 0)
    turned = np.stack((-x, -z, y), axis=-1) @ np.array(matrix, np.float64).T
    assert_placed(after, np.stack((-turned[..., 0], turned[..., 2], -turned[..., 1]), axis=-1))
    np.testing.assert_array_equal(after.uvs[after.triangles], before.uvs[before.triangles])


def test_one_moved_vertex_leaves_the_others_where_they_are(samples: Path) -> None:
    data = sample(samples, "mesh_serializer", "tedmx__SerializedMesh.data").read_bytes()
    before = made.unpack(data)
    (obj,) = imported(data).made.objects
    obj.data.vertices[3].co.x += 0.01
    wanted = before.points
    wanted[3, 0] -= 0.01
    after = exported(obj).stored
    assert_placed(after, wanted[before.triangles])
    np.testing.assert_array_equal(after.uvs, before.uvs)


def test_normals_that_were_turned_round_are_mentioned_and_those_of_the_file_are_not() -> None:
    before = made.crate()
    before.normals[:12] = 256 - before.normals[:12].astype(int)  # half of them point inwards, as in some real files
    (obj,) = imported(pack(before)).made.objects
    assert not exported(obj).said
    normals = obj.data.attributes["custom_normal"].data
    values = np.empty(72, np.float32)
    normals.foreach_get("vector", values)
    normals.foreach_set("vector", np.concatenate((values[:36], -values[36:])))
    obj.data.update()
    (said,) = exported(obj).said
    assert "100% of its normals point backwards" in said
