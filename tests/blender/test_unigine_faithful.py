"""Every real UNIGINE file through Blender and back in its own version: what was in it is in it again.

The original bytes and those written are read by ``unigine_oracle`` and compared by ``unigine_judge``, corner by corner
and bone by bone: our own reader takes the files to Blender, but has no say in what was in them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import unigine_generated as generated
import unigine_judge as judge
import unigine_oracle as oracle

pytestmark = pytest.mark.needs_bpy

MESHES = (
    *("mr02_box", "mr02_lamp", "ms10_box", "ms11_agent_54bones_scaled", "ms11_arms_40bones_anim1"),
    *("ms11_gun_4bones_anim1", "ms11_leaf_colors", "ms11_mixed_handed_u8_u16", "ms11_plane_no_uv"),
    *("ms11_switch_9bones_anim100", "ms11_track_2surf_2uv", "ms12_box_lm00", "ms12_colors_lownorm", "ms12_empty"),
    *("ms12_hand_63bones", "ms12_lights_2surf_2uv", "ms12_pistol_11bones_anim1", "ms12_robot_12bones"),
    *("ms12_template_lm14", "ms13_cat_289bones", "ms13_colors_2uv", "ms13_cyrillic_name", "ms13_int32_indices"),
    *("ms13_quad_no_uv", "ms13_sign_3surf", "ms14_box", "ms14_capsule_4bones", "ms14_plane", "ms14_plane_raw_block"),
    *("ms14_sphere_u8_u16", "ms14_viewcube_26surf", "ms15_material_ball"),
)
ANIMATIONS = (
    *("an10_gun_4bones", "an10_jump_scale", "an10_robot_idle", "an10_switch_translation_only"),
    *("an11_cat_289bones", "an11_jump_9frames", "an11_one_frame", "an11_zero_frames", "an13_jump", "an13_pose"),
)
WAYS: dict[str, dict[str, Any]] = {
    "exact": {"normals": "EXACT"},
    "editable": {"normals": "EDITABLE"},
    "children": {"normals": "AUTO", "bone_direction": "CHILDREN"},
}


def imported(path: Path, **options: Any) -> tuple[Any, Any, Any]:
    """Import a file; return its format, its document and what was made."""
    import bpy
    from meshferry.blender_data.importing import importer
    from meshferry.io_formats import registry

    data = path.read_bytes()
    found = registry.by_content(data[: registry.HEAD_SIZE], len(data))
    document = found.read(data)
    scene = found.to_scene(document, path.stem)
    made = importer.import_scene(
        importer.ImportRequest(bpy.context, scene, importer.ImportOptions.of({"use_weld": False, **options}))
    )
    return found, document, made


def exported(found: Any, made: Any, file_options: dict[str, Any], **options: Any) -> oracle.File:
    """Export what an import made to one file; return what its bytes hold."""
    import bpy
    from meshferry.blender_data.exporting import export_options, exporter
    from meshferry.io_formats.core.options import resolve

    source = exporter.Source("COLLECTION", made.collection)
    values = resolve(export_options.EXPORT_OPTIONS, options)
    scene = exporter.export_scene(
        exporter.ExportRequest(bpy.context, source, exporter.ExportOptions.of(values), "back", found.capabilities)
    )
    (part,) = found.files_of(scene, file_options)
    return oracle.decode(found.write(found.from_scene(part, file_options)))


def mesh_back(path: Path, **options: Any) -> tuple[oracle.File, oracle.File, Any]:
    """Return what a mesh file holds, what it holds after it was in Blender, and what it made there."""
    found, document, made = imported(path, **options)
    embeds = document.version in ("ms10", "ms11", "ms12")
    file_options = {"mesh_version": document.version.upper(), "use_embedded_animation": embeds}
    return oracle.decode(path.read_bytes()), exported(found, made, file_options), made


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize(
    "way", ["exact", *(pytest.param(way, marks=pytest.mark.slow) for way in ("editable", "children"))]
)
def test_real_mesh_comes_back(name: str, way: str, samples: Path, record_property: Any) -> None:
    before, after, made = mesh_back(samples / "unigine" / f"{name}.mesh", **WAYS[way])
    exact = is_exact(way, before)
    verdict = judge.same_mesh(before, after, judge.EXACT if exact else judge.EDITABLE, except_doubtful=not exact)
    for what, value in vars(verdict).items():
        record_property(what, value)
    print(name, way, verdict)
    said = [text for text in made.warnings if "without area" in text]
    assert sum(int(text.split(": ")[1].split()[0].replace(",", "")) for text in said) == verdict.repeated


@pytest.mark.parametrize("version", ["ms10", "ms11", "ms12", "ms13", "ms14"])
@pytest.mark.parametrize("seed", range(2))
def test_made_meshes_with_everything_come_back(version: str, seed: int, tmp_path: Path) -> None:
    """What no real file has at once: morph targets of single surfaces, bones that are scaled unevenly, four weights."""
    from meshferry.io_formats.registry import UNIGINE_MESH

    mesh = generated.mesh(
        seed,
        [(4, 5), (3, 3), (6, 4), (2, 9)],
        joints=9,
        keys=("Lächeln", "blink", "smile", "frown", "smile again"),
        uvs=[(True, True), (True, False), (False, True), (False, False)],
        colors=[True, False, True, False],
    )
    scene = generated.scene(mesh, generated.skeleton(seed, 9))
    path = tmp_path / "made.mesh"
    path.write_bytes(UNIGINE_MESH.write(UNIGINE_MESH.from_scene(scene, {"mesh_version": version.upper()})))
    before, after, _ = mesh_back(path, normals="EDITABLE")
    assert [len(surface.targets) for surface in before.surfaces] == [3, 2, 2, 2]
    verdict = judge.same_mesh(before, after, judge.EDITABLE, except_doubtful=True)
    assert verdict.repeated == verdict.excepted == 0


def is_exact(way: str, before: oracle.File) -> bool:
    from meshferry.blender_data import compat

    return way == "exact" and compat.HAS_FREE_NORMALS and not before.bones


@pytest.mark.parametrize("name", ANIMATIONS)
@pytest.mark.parametrize("direction", ["FILE", pytest.param("CHILDREN", marks=pytest.mark.slow)])
def test_real_animation_comes_back(name: str, direction: str, samples: Path, record_property: Any) -> None:
    path = samples / "unigine" / f"{name}.anim"
    found, document, made = imported(path, bone_direction=direction)
    after = exported(found, made, {"animation_version": document.version.upper()})
    # Joints of unequal scale shear bones that do not point along their axes; the import names them.
    sheared = any("shear" in text for text in made.warnings)
    assert not sheared or (direction == "CHILDREN" and name in {"an11_cat_289bones", "an11_jump_9frames"})
    verdict = judge.same_animation(oracle.decode(path.read_bytes()), after, sheared=sheared)
    for what, value in vars(verdict).items():
        record_property(what, value)
    print(name, direction, verdict)


def test_robot_and_its_animation_come_back_from_one_armature(samples: Path) -> None:
    """A mesh and an animation that belong together: the armature of the mesh carries both."""
    import bpy
    from meshferry.blender_data.exporting import export_options, exporter
    from meshferry.blender_data.importing import importer
    from meshferry.io_formats import registry
    from meshferry.io_formats.core.options import resolve

    found, _, made = imported(samples / "unigine" / "ms12_robot_12bones.mesh")
    armature = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    animation = registry.UNIGINE_ANIMATION
    data = (samples / "unigine" / "an10_robot_idle.anim").read_bytes()
    scene = animation.to_scene(animation.read(data), "an10_robot_idle")
    importer.import_scene(importer.ImportRequest(bpy.context, scene, importer.ImportOptions.of(), armature=armature))
    source = exporter.Source("OBJECTS", None, (armature,))
    values = resolve(export_options.EXPORT_OPTIONS, {"clips": "ACTIONS", "clip_names": "robot_idle"})
    back = exporter.export_scene(
        exporter.ExportRequest(bpy.context, source, exporter.ExportOptions.of(values), "back", animation.capabilities)
    )
    (part,) = animation.files_of(back)
    written = animation.write(animation.from_scene(part, {"animation_version": "AN11"}))
    before, after = oracle.decode(data), oracle.decode(written)
    judge.same_bones(before, after)
    judge.same_frames(before.animations[0][1], after.animations[0][1], judge.Verdict())
    assert found and made.objects


@pytest.mark.parametrize("name", ["ms13_sign_3surf", "ms12_robot_12bones"])
def test_levels_of_detail_come_back_from_their_objects(name: str, samples: Path) -> None:
    """Surfaces of three levels become three objects, and one file again, each surface in its place."""
    import bpy
    from meshferry.blender_data.importing import importer
    from meshferry.io_formats import registry

    found = registry.UNIGINE_MESH
    data = (samples / "unigine" / f"{name}.mesh").read_bytes()
    document, before = found.read(data), oracle.decode(data)
    for surface, original, level in zip(document.surfaces, before.surfaces, (2, 0, 1), strict=True):
        surface.name = original.name = f"body_lod_{level}"
    scene = found.to_scene(document, name, {"use_lod_objects": True})
    assert len(scene.nodes) == 3
    options = importer.ImportOptions.of({"use_weld": False, "normals": "EXACT"})
    made = importer.import_scene(importer.ImportRequest(bpy.context, scene, options))
    assert sum(thing.type == "MESH" for thing in made.objects) == 3
    after = exported(found, made, {"mesh_version": document.version.upper()})
    judge.same_bones(before, after)
    judge.same_surfaces(before, after, judge.EDITABLE, judge.Verdict(), except_doubtful=True)
