"""Skinned meshes, skeletons and animations of SDK 2.21: fixtures made from the format page alone, and their scenes.

They prove agreement with the page, not with the engine: no real sk10 or sn10 is known.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unigine_generated as generated
from meshferry.io_formats import api, registry
from meshferry.io_formats.core.errors import ExportError, FormatError, UnsupportedFormatError
from meshferry.io_formats.core.format import OutputFile
from meshferry.io_formats.core.messages import errors_of
from meshferry.io_formats.core.scene import Joint, Scene, Skeleton
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.registry import by_content
from meshferry.io_formats.unigine.animation.codec import AnimationFile, encode_animation
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.project.guids import parse_asset_meta
from meshferry.io_formats.unigine.skeleton.codec import Profile
from meshferry.io_formats.unigine.skeleton.format import UNIGINE_SKELETON
from numpy.testing import assert_array_equal
from unigine_oracle import decode
from unigine_scene_oracle import WrittenScene

GUID = "00112233445566778899aabbccddeeff00112233"


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "unigine_characters"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("minimal.mesh_skinned", {"mesh_version": "SK10"}),
        ("minimal.skeleton", {}),
        ("minimal_no_retarget.skeleton", {}),
        ("minimal.anim", {"animation_version": "AN13"}),
        ("minimal_an12.anim", None),
    ],
)
def test_fixtures_are_written_from_the_same_input(folder: Path, name: str, options: dict[str, Any] | None) -> None:
    data = (folder / "fixtures" / name).read_bytes()
    found = by_content(data, len(data))
    document = found.read(data)
    assert document.warnings == []
    if options is None:
        assert encode_animation(document) == data
        return
    assert found.write(document) == data
    scene = found.to_scene(document, "minimal")
    assert scene.warnings == []
    assert not any(surface.has_lightmap for node in scene.nodes for surface in node.mesh.surfaces)
    assert found.write(found.from_scene(scene, options)) == data


@pytest.mark.parametrize("name", ["pose.anim"])
def test_real_animations_are_written_from_the_same_input(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    found = by_content(data, len(data))
    assert found.write(found.read(data)) == data


def rigged(samples: Path) -> Scene:
    """Return a scene of a real mesh of ms14 with four bones."""
    data = (samples / "unigine" / "ms14_capsule_4bones.mesh").read_bytes()
    return UNIGINE_MESH.to_scene(UNIGINE_MESH.read(data), "capsule")


def put(outputs: list[OutputFile], folder: Path) -> list[str]:
    for output in outputs:
        place = folder / output.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(output.data)
    return [output.name for output in outputs]


def write_mesh(scene: Scene, path: Path, **options: Any) -> list[str]:
    document = UNIGINE_MESH.from_scene(scene, options, path)
    assert not errors_of(UNIGINE_MESH.check(document))
    return put(UNIGINE_MESH.write_files(document, path.stem), path.parent)


def write_clip(scene: Scene, path: Path, **options: Any) -> AnimationFile:
    document = UNIGINE_ANIMATION.from_scene(scene, {"animation_version": "AN13", **options}, path)
    path.write_bytes(UNIGINE_ANIMATION.write(document))
    return document


def with_clip(scene: Scene, frames: int = 5) -> Scene:
    return replace(scene, clips=[generated.clip(1, "walk", [0, 1, 2, 3], frames, scaled=False)])


def test_a_mesh_and_its_skeleton_are_one_set(samples: Path, tmp_path: Path) -> None:
    scene = rigged(samples)
    names = write_mesh(scene, tmp_path / "hero.mesh_skinned")
    assert names == ["capsule.skeleton.meta", "capsule.skeleton", "hero.mesh_skinned.meta", "hero.mesh_skinned"]
    metas = [parse_asset_meta((tmp_path / name).read_bytes()) for name in (names[0], names[2])]
    assert [meta.kind for meta in metas] == ["skeleton", "mesh_skinned"]
    found, bones = (decode((tmp_path / name).read_bytes()) for name in (names[3], names[1]))
    assert (found.guid, found.path) == (metas[0].guid, f"guid://{metas[0].guid}")
    assert metas[1].parameters == {"skeleton_path": found.path, "unchanged": "1"}
    assert metas[0].version == metas[1].version == "2.21.0.0"
    assert found.bones == bones.bones == [(joint.name, joint.parent) for joint in scene.skeletons[0].joints]
    assert_array_equal(found.transforms, bones.transforms)
    assert_array_equal(found.transforms, found.rest_transforms)
    assert bones.retargets == [(0, -1.0)] * 4
    assert [message.code for message in scene.warnings] == ["unproven-characters", "lightmap-left-out"]
    # A second mesh shares the skeleton, with the masks that the editor gave it; other joints are refused.
    document = UNIGINE_SKELETON.read((tmp_path / names[1]).read_bytes())
    document.blend_masks = [Profile("upper", np.array([0, 0, 1, 1], np.float32))]
    (tmp_path / names[1]).write_bytes(UNIGINE_SKELETON.write(document))
    assert write_mesh(rigged(samples), tmp_path / "other.mesh_skinned")[0] == "capsule.skeleton"
    assert decode((tmp_path / "other.mesh_skinned").read_bytes()).guid == metas[0].guid
    assert decode((tmp_path / names[1]).read_bytes()).profiles[0] == [("upper", [0, 0, 1, 1])]
    fewer = rigged(samples)
    fewer.skeletons[0].joints.pop()
    fewer.nodes[0].mesh.joint_indices = np.zeros_like(fewer.nodes[0].mesh.joint_indices)
    assert write_mesh(fewer, tmp_path / "fewer.mesh_skinned")[-1] == "fewer.mesh_skinned"
    assert len(decode((tmp_path / names[1]).read_bytes()).bones) == 4
    scene.skeletons[0].joints[1].name = "Кость"
    with pytest.raises(ExportError, match=r"capsule\.skeleton exists with other joints.*Кость"):
        write_mesh(scene, tmp_path / "hero.mesh_skinned")
    other = rigged(samples)  # the name is that of the same file on systems that ignore case
    other.skeletons[0].name = "CAPSULE"
    assert write_mesh(other, tmp_path / "again.mesh_skinned")[0] == "capsule.skeleton"


def test_parents_come_before_their_children(samples: Path, tmp_path: Path) -> None:
    scene = with_clip(rigged(samples))
    turned = replace(scene, skeletons=[replace(scene.skeletons[0])], nodes=[replace(scene.nodes[0])])
    joints, mesh = scene.skeletons[0].joints, scene.nodes[0].mesh
    turned.skeletons[0].joints = [
        replace(one, parent=3 - one.parent if one.parent >= 0 else -1) for one in joints[::-1]
    ]
    turned.nodes[0].mesh = replace(mesh, joint_indices=3 - mesh.joint_indices)
    turned.clips = [
        replace(scene.clips[0], transforms=[replace(one, target=3 - one.target) for one in scene.clips[0].transforms])
    ]
    files = []
    for one, folder in ((scene, tmp_path / "a"), (turned, tmp_path / "b")):
        folder.mkdir()
        write_mesh(one, folder / "hero.mesh_skinned")
        write_clip(one, folder / "walk.anim", skeleton=GUID)
        (folder / "own.skeleton").write_bytes(UNIGINE_SKELETON.write(UNIGINE_SKELETON.from_scene(one)))
        files.append([(folder / name).read_bytes() for name in ("hero.mesh_skinned", "walk.anim", "own.skeleton")])
    assert files[0] == files[1]


def test_errors_name_the_place_once(folder: Path, samples: Path, tmp_path: Path) -> None:
    data = (folder / "fixtures" / "minimal.mesh_skinned").read_bytes()
    with pytest.raises(FormatError, match="ends within the rest transforms"):
        UNIGINE_MESH.read(data[:300])
    with pytest.raises(FormatError, match="The rest transform of bone 'bone_01' holds"):
        UNIGINE_MESH.read(data[:251] + np.float32(np.nan).tobytes() + data[255:])
    (tmp_path / "capsule.skeleton").mkdir()
    with pytest.raises(ExportError, match=r"capsule\.skeleton: the skeleton cannot be read: The file") as caught:
        write_mesh(rigged(samples), tmp_path / "hero.mesh_skinned")
    assert str(caught.value).count("capsule.skeleton") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on Windows")
@pytest.mark.parametrize("name", ["capsule.skeleton", "capsule.skeleton.meta"])
def test_fifos_in_place_of_files_are_refused_at_once(samples: Path, tmp_path: Path, name: str) -> None:
    write_mesh(rigged(samples), tmp_path / "hero.mesh_skinned")
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ExportError, match="This is a FIFO, not a regular file"):
        write_mesh(rigged(samples), tmp_path / "hero.mesh_skinned")


def test_names_and_versions_agree(samples: Path, tmp_path: Path) -> None:
    scene = rigged(samples)
    for name, version in (("a.mesh", "SK10"), ("a.mesh_skinned", "MS14")):
        with pytest.raises(ExportError, match=r"extension \.mesh_skinned, all others .mesh"):
            write_mesh(scene, tmp_path / name, mesh_version=version)
    data = tmp_path / "data"
    data.mkdir()
    for path, options in (("a.mesh", {"mesh_version": "MS14"}), ("b.mesh_skinned", {})):
        write_mesh(rigged(samples), data / path, **options)  # a project whose version is not known
    for sdk, path, choice in (("2.21.0.0", "a.mesh", "sk10"), ("2.20.0.0", "a.mesh_skinned", "ms14")):
        data.mkdir(exist_ok=True)
        (data / "a.world").write_text(f'<world version="{sdk}"></world>')
        options = {"mesh_version": "MS14"} if path == "a.mesh" else {}
        with pytest.raises(ExportError, match=f"armature or shape keys.*{sdk}.*choose {choice}"):
            write_mesh(rigged(samples), data / path, **options)


def test_shape_keys_without_an_armature_get_one_bone(tmp_path: Path) -> None:
    scene = generated.scene(generated.mesh(3, [(3, 4), (4, 5)], keys=("a", "b")))
    write_mesh(scene, tmp_path / "a.mesh_skinned")
    found = decode((tmp_path / "a.mesh_skinned").read_bytes())
    assert found.bones == [("root", -1)]
    assert all(pairs == [(0, 65535)] for surface in found.surfaces for pairs in surface.weights or [[]])
    assert "no armature" in str(scene.warnings)


def test_the_skeleton_of_an_animation(samples: Path, tmp_path: Path) -> None:
    scene = with_clip(rigged(samples))
    with pytest.raises(ExportError, match=r"no skeleton file.*Export a mesh of it as sk10"):
        write_clip(scene, tmp_path / "walk.anim")
    names = write_mesh(rigged(samples), tmp_path / "hero.mesh_skinned")
    guid = parse_asset_meta((tmp_path / names[0]).read_bytes()).guid
    document = write_clip(scene, tmp_path / "walk.anim")
    assert (document.skeleton_guid, document.skeleton_path) == (guid, f"guid://{guid}")
    assert UNIGINE_ANIMATION.check(document) == []
    (tmp_path / "b.skeleton").write_bytes((tmp_path / "capsule.skeleton").read_bytes())
    with pytest.raises(ExportError, match=r"several skeleton files.*'b.skeleton', 'capsule.skeleton'"):
        write_clip(scene, tmp_path / "walk.anim")
    assert write_clip(scene, tmp_path / "walk.anim", skeleton="capsule.skeleton").skeleton_guid == guid
    assert write_clip(scene, tmp_path / "walk.anim", skeleton=f"guid://{GUID}").skeleton_guid == GUID
    with pytest.raises(ExportError, match=r"b\.skeleton has no \.meta"):
        write_clip(scene, tmp_path / "walk.anim", skeleton="b.skeleton")
    with pytest.raises(ExportError, match=r"c\.skeleton"):
        write_clip(scene, tmp_path / "walk.anim", skeleton="c.skeleton")
    scene.skeletons[0].guid = guid  # remembered by the armature
    scene.skeletons[0].joints[3].name = "other"
    (warning,) = UNIGINE_ANIMATION.check(write_clip(scene, tmp_path / "walk.anim"))
    assert (warning.code, "other" in str(warning)) == ("joints-not-in-skeleton", True)


def test_clips_are_resampled_to_whole_rates(samples: Path, tmp_path: Path) -> None:
    scene = with_clip(rigged(samples), frames=25)
    scene.clips[0].fps = 23.976
    before = scene.clips[0].transforms[0]
    document = write_clip(scene, tmp_path / "walk.anim", skeleton=GUID)
    assert (document.fps, document.frames.frame_count) == (24, 25)
    assert "resampled to 24" in str(scene.warnings)
    at = 12 / 24 * 23.976
    wanted = before.translation[11] + (at - 11) * (before.translation[12] - before.translation[11])
    np.testing.assert_allclose(document.frames.translation[12, 0], wanted, atol=1e-5)


def test_stored_data_follows_its_bones(folder: Path) -> None:
    document = UNIGINE_SKELETON.read((folder / "fixtures" / "minimal.skeleton").read_bytes())
    skeleton = UNIGINE_SKELETON.to_scene(document, "x").skeletons[0]
    assert skeleton.file_data
    skeleton.joints = [skeleton.joints[0], replace(skeleton.joints[2], parent=0), Joint("new", 0)]
    found = UNIGINE_SKELETON.from_scene(Scene("x", [], [skeleton]))
    assert found.blend_masks[0].values.tolist() == [0, 1, 1]
    assert found.retargeting == [(0, -1.0)] * 3
    mesh = UNIGINE_MESH.read((folder / "fixtures" / "minimal.mesh_skinned").read_bytes())
    mesh.rest_transforms = mesh.rest_transforms + np.float32(0.25)
    scene = UNIGINE_MESH.to_scene(mesh, "x", {"use_turn": True})
    moved = scene.skeletons[0].joints[1]
    moved.translation = (*moved.translation[:2], 5.0)
    again = UNIGINE_MESH.from_scene(scene, {"mesh_version": "SK10", "use_turn": True})
    assert_array_equal(again.rest_transforms[[0, 2]], mesh.rest_transforms[[0, 2]])
    assert_array_equal(again.rest_transforms[1], again.transforms[1])


@pytest.mark.parametrize("text", ["{", "[]", '{"joints": 1}', '{"joints": ["root"], "retargeting": [[7, 0]]}'])
def test_damaged_stored_data_is_refused(text: str) -> None:
    scene = Scene("x", [], [Skeleton("rig", [Joint("root")], file_data=text)])
    with pytest.raises(ExportError, match="'rig': its stored skeleton data is damaged"):
        UNIGINE_SKELETON.from_scene(scene)


@pytest.mark.parametrize("magic", ["sk11", "sn11", "an14"])
def test_newer_versions_are_refused_by_name(magic: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=f"version {magic}.*newer than all known files. Please send us"):
        by_content(magic.encode() + bytes(60), 64)


def test_files_are_checked_against_their_skeleton(samples: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.world").write_text('<world version="2.21.0.0"></world>')
    write_mesh(rigged(samples), data / "hero.mesh_skinned")
    write_clip(with_clip(rigged(samples)), data / "walk.anim")
    loaded = [
        (found, found.read((data / name).read_bytes()), data / name)
        for found, name in ((UNIGINE_MESH, "hero.mesh_skinned"), (UNIGINE_ANIMATION, "walk.anim"))
    ]
    for found, document, path in loaded:
        assert found.check_links(document, path, Projects()) == []
        document.bones[2].name = "Ж"
        (warning,) = found.check_links(document, path, Projects())
        assert (warning.code, "'Ж'" in str(warning)) == ("joints-not-in-skeleton", True)
        document.skeleton_guid = GUID
        (warning,) = found.check_links(document, path, Projects())
        assert warning.code == "skeleton-not-found"
        assert found.check_links(document, data / ".runtimes" / "a" / path.name, Projects()) == []


def test_many_bones_of_a_surface_are_reported() -> None:
    scene = generated.scene(generated.mesh(1, [(20, 20)], joints=200), generated.skeleton(1, 200))
    document = UNIGINE_MESH.from_scene(scene, {"mesh_version": "SK10"})
    assert "the importer of SDK 2.21 warns above 128 for each surface" in str(UNIGINE_MESH.check(document))


def test_mutated_stored_data_is_written_or_refused(folder: Path) -> None:
    document = UNIGINE_SKELETON.read((folder / "fixtures" / "minimal.skeleton").read_bytes())
    scene = UNIGINE_SKELETON.to_scene(document, "x")
    text, rng = scene.skeletons[0].file_data, random.Random(1)
    refused = 0
    for _ in range(500):
        place = rng.randrange(len(text))
        scene.skeletons[0].file_data = text[:place] + rng.choice('{}[]",:0-9eN') + text[place + rng.randrange(3) :]
        try:
            written = UNIGINE_SKELETON.write(UNIGINE_SKELETON.from_scene(scene))
        except ExportError:
            refused += 1
        else:
            UNIGINE_SKELETON.read(written)
    assert 100 < refused < 500


def test_conversions_write_characters(samples: Path, tmp_path: Path) -> None:
    """Scenes of other formats become characters, too, and a second export changes nothing."""
    states = []
    for _ in range(2):
        scene = with_clip(rigged(samples))
        api.write_scene(scene, tmp_path / "hero.node", registry.by_name("unigine_scene"), {"sdk_version": "2.21.0.0"})
        states.append({path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()})
        (node,) = WrittenScene(tmp_path / "hero.node").nodes()
        written = WrittenScene(tmp_path / "hero.node")
        mesh, clip = (
            decode(written.file(node.element.findtext(name)).read_bytes()) for name in ("mesh_name", "anim_name")
        )
        assert mesh.guid == clip.guid and written.files[mesh.guid].name == "capsule.skeleton"
        np.testing.assert_allclose(clip.animations[0][1].translation[:, 0], scene.clips[0].transforms[0].translation)
    assert states[0] == states[1]
