"""Real skinned meshes in Blender, at rest and posed by their animations.

The truth is the robot's FBX (``ms12_robot_truth.json``), and for the others sums of the files' own matrices as
``unigine_meaning`` makes them of the files' bytes: without our reader, the scene, the pose formula or Blender.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unigine_meaning as meaning
import unigine_oracle as oracle

pytestmark = pytest.mark.needs_bpy

FOLDER = "unigine"
SUFFIXES = (".mesh", ".anim")
ROBOT, IDLE = "ms12_robot_12bones.mesh", "an10_robot_idle.anim"


def load(path: Path, armature: Any = None, **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.api import read_scene

    resolved = import_options.ImportOptions.of({"frame_start": 0, "use_weld": False, **options})
    return importer.import_scene(
        import_options.ImportRequest(bpy.context, read_scene(path), resolved, str(path), armature=armature)
    )


def robot_heads(armature: Any, heads: dict[str, Any], kind: str) -> float:
    bones = armature.pose.bones if kind == "head" else armature.data.bones
    return max(float(np.abs(np.array(getattr(bones[name], kind)) - place).max()) for name, place in heads.items())


@pytest.mark.parametrize("direction", ["FILE", "CHILDREN"])
@pytest.mark.parametrize("alone", [False, True])
def test_the_robot_stands_as_its_fbx_does(samples: Path, direction: str, alone: bool) -> None:
    import bpy

    folder = samples / FOLDER
    truth = json.loads((folder / "ms12_robot_truth.json").read_text())
    made = load(folder / (IDLE if alone else ROBOT), bone_direction=direction)
    (armature,) = made.armatures
    if not alone:
        again = load(folder / IDLE, armature)
        assert again.armatures == [armature] and not again.objects
    assert armature.animation_data.action.meshferry.clip_name == "robot_idle"
    assert set(truth["rest_heads"]) == {bone.name for bone in armature.data.bones}
    assert robot_heads(armature, truth["rest_heads"], "head_local") < truth["tolerance"]["rest"]
    for frame, heads in truth["pose_heads"].items():
        bpy.context.scene.frame_set(int(frame))
        assert robot_heads(armature, heads, "head") < 2e-4 < truth["tolerance"]["pose"]


def evaluated(obj: Any) -> np.ndarray:
    import bpy

    mesh = obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    found = np.empty(len(mesh.vertices) * 3, np.float32)
    mesh.vertices.foreach_get("co", found)
    return found.reshape(-1, 3).astype(np.float64)


EMBEDDED = ""
POSED = [
    (ROBOT, IDLE),
    (ROBOT, EMBEDDED),
    ("ms11_gun_4bones_anim1.mesh", "an10_gun_4bones.anim"),
    ("ms11_gun_4bones_anim1.mesh", EMBEDDED),
    ("ms11_switch_9bones_anim100.mesh", EMBEDDED),
    ("ms11_arms_40bones_anim1.mesh", EMBEDDED),
    ("ms11_agent_54bones_scaled.mesh", "an10_jump_scale.anim"),
    ("ms12_hand_63bones.mesh", EMBEDDED),
    ("ms12_pistol_11bones_anim1.mesh", EMBEDDED),
    ("ms13_cat_289bones.mesh", "an11_cat_289bones.anim"),
]
CAT = "ms13_cat_289bones.mesh"
WITHIN = 1e-5
"""Of the size; asked for is 1e-4."""
CATS_WITHIN = 8e-3
"""Chains of 18 bones are scaled by 1e-4 to 1e4 and back; the pose is exact in double precision, but Blender holds
each step of it in single. See the last test."""


def test_no_pair_is_forgotten(samples: Path) -> None:
    """Every rigged mesh is posed by what is inside it and by every animation that moves most of its bones."""
    files = {
        path.name: oracle.decode(path.read_bytes()) for path in (samples / FOLDER).iterdir() if path.suffix in SUFFIXES
    }
    found = set()
    for name, mesh in files.items():
        weighted = any(surface.weights is not None for surface in mesh.surfaces)
        if weighted and mesh.animations:
            found.add((name, EMBEDDED))
        bones = {bone for bone, _ in mesh.bones}
        for other, animation in files.items():
            moved = {bone for bone, _ in animation.bones}
            if weighted and animation.magic.startswith("an") and len(bones & moved) > len(bones) / 2:
                found.add((name, other))
    assert found == set(POSED)


@pytest.mark.parametrize(
    ("mesh_name", "clip_name"), [pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] == CAT)) for pair in POSED]
)
@pytest.mark.parametrize(
    "direction", ["FILE", pytest.param("CHILDREN", marks=[pytest.mark.slow, pytest.mark.any_version])]
)
def test_skins_follow_the_files_matrices(
    samples: Path, mesh_name: str, clip_name: str, direction: str, record_property: Any
) -> None:
    import bpy

    mesh = oracle.decode((samples / FOLDER / mesh_name).read_bytes())
    made = load(samples / FOLDER / mesh_name, bone_direction=direction)
    obj = next(obj for obj in made.objects if obj.type == "MESH")
    clip = mesh
    if clip_name:
        clip = oracle.decode((samples / FOLDER / clip_name).read_bytes())
        load(samples / FOLDER / clip_name, made.armatures[0])
    ((_, frames),) = clip.animations
    rest = meaning.rest_matrices(mesh)
    still = np.concatenate([surface.targets[0].positions for surface in mesh.surfaces])
    worst, moved = 0.0, 0.0
    for at in sorted({0, frames.count // 3, frames.count // 2, 2 * frames.count // 3, frames.count - 1}):
        bpy.context.scene.frame_set(at)
        posed = meaning.posed_matrices(mesh, clip, frames, at)
        wanted = np.concatenate([meaning.skinned(surface, rest, posed) for surface in mesh.surfaces])
        size = max(float(np.ptp(wanted, axis=0).max()), float(np.ptp(still, axis=0).max()))
        worst = max(worst, float(np.abs(evaluated(obj) - wanted).max() / size))
        moved = max(moved, float(np.abs(wanted - still).max() / size))
    record_property("worst", worst)
    print(f"{mesh_name} {clip_name or 'inside'} {direction}: {worst:.2g} of the size, moved by {moved:.2g}")
    assert worst < (CATS_WITHIN if mesh_name == CAT else WITHIN)


def test_the_cats_error_is_that_of_single_precision(samples: Path) -> None:
    """Its pose is right: kept in double precision it stands 1e-5 off, rounded once to single precision far more."""
    cat = oracle.decode((samples / FOLDER / CAT).read_bytes())
    walk = oracle.decode((samples / FOLDER / "an11_cat_289bones.anim").read_bytes())
    (armature,) = load(samples / FOLDER / CAT).armatures
    bones = [np.array(armature.data.bones[name].matrix_local, np.float64) for name, _ in cat.bones]
    ((_, frames),) = walk.animations
    rest, posed = meaning.rest_matrices(cat), meaning.posed_matrices(cat, walk, frames, 20)
    parents = [parent for _, parent in cat.bones]

    def of_parent(matrices: list[np.ndarray], bone: int) -> np.ndarray:
        return matrices[parents[bone]] if parents[bone] >= 0 else np.eye(4)

    def basis(bone: int) -> np.ndarray:
        local = [np.linalg.inv(of_parent(matrices, bone)) @ matrices[bone] for matrices in (posed, rest)]
        above = of_parent(rest, bone)
        inverse = np.linalg.inv
        return inverse(bones[bone]) @ above @ local[0] @ inverse(local[1]) @ inverse(above) @ bones[bone]

    used = {bone for surface in cat.surfaces for pairs in surface.weights or [] for bone, _ in pairs}
    size = max(float(np.ptp(surface.targets[0].positions, axis=0).max()) for surface in cat.surfaces)

    def worst(kind: type[np.floating]) -> float:
        local = [
            np.linalg.inv(of_parent(bones, bone)) @ bones[bone] @ basis(bone).astype(kind).astype(np.float64)
            for bone in range(len(bones))
        ]
        chained = meaning.world(cat, local)
        heads = (chained[bone] @ np.linalg.inv(bones[bone]) @ rest[bone][:, 3] for bone in used)
        return max(float(np.abs(head - posed[bone][:, 3]).max()) for head, bone in zip(heads, used, strict=True)) / size

    assert worst(np.float64) < 2e-5
    assert worst(np.float32) > 5e-4
