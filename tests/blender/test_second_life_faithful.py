"""Every real mesh asset through Blender and back, kept as imported: what was in it is in it again.

The original bytes and those written are read by ``second_life_oracle`` and compared by ``second_life_judge``: our own
reader takes the files to Blender, but has no say in what was in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_life_bytes as made_bytes
import second_life_judge as judge
import second_life_oracle as oracle

pytestmark = pytest.mark.needs_bpy

ASSETS = (
    *("benthic_rigged22.mesh", "hippolyzer_testslm.mesh"),
    *("elfears_98a6e63e", "franz_175117c0", "franz_66f2a0fb", "franz_6764a3d8", "franz_7fd97e74", "franz_89ce9dc7"),
    *("franz_89e370e6", "franz_8d2c4349", "franz_9b91b744", "franz_a11011e5", "franz_b9724d85", "franz_bd6b15f1"),
    *("franz_d0471994", "franz_d28667ec", "franz_f3c44e40", "franz_f95bf4c8"),
    *("synthetic/synth_8face_nogeo_hulls", "synthetic/synth_box_1face", "synthetic/synth_flat_z"),
    *("synthetic/synth_physics_mesh", "synthetic/synth_prefix", "synthetic/synth_rig_cv"),
    *("synthetic/synth_rig_overrides", "synthetic/synth_server_header"),
)


def path_of(samples: Path, name: str) -> Path:
    return samples / "secondlife" / (name if name.endswith(".mesh") else f"{name}.llmesh")


def decoded(data: bytes) -> oracle.Asset:
    """Read an asset, without the names of materials, which only assets within bundles have."""
    asset = oracle.decode(data)
    asset.header.pop("material_list", None)
    return asset


def imported(path: Path, given: Mapping[str, Any], *, headless: bool = True) -> Any:
    """Import an asset with the options of the shell or of the window; return what was made."""
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.options import resolve

    options = resolve(registry.SECOND_LIFE_MESH.import_options, headless=headless)
    scene = api.read_scene(path, options)
    return importer.import_scene(
        importer.ImportRequest(
            bpy.context,
            scene,
            importer.ImportOptions.of(resolve(import_options.IMPORT_OPTIONS, given, headless=headless)),
            source_path=str(path),
        )
    )


def written(made: Any, **options: Any) -> tuple[bytes, list[str]]:
    """Export imported objects, by default with Keep as Imported; return the bytes and the warnings."""
    import bpy
    from meshferry.blender_data.exporting import export_options, exporter
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.options import resolve

    target = registry.SECOND_LIFE_MESH
    source = exporter.Source("COLLECTION", made.collection)
    values = resolve(export_options.EXPORT_OPTIONS, {"use_as_imported": True, **options})
    scene = exporter.export_scene(
        exporter.ExportRequest(bpy.context, source, exporter.ExportOptions.of(values), "back", target.capabilities)
    )
    (part,) = api.files_of(scene, target)
    return api.encode_scene(part, target, ignore_errors=True)


def is_exact(before: oracle.Asset) -> bool:
    """Tell whether Blender holds the normals as they are: 4.5 and later, of meshes that nothing deforms."""
    from meshferry.blender_data import compat

    return compat.HAS_FREE_NORMALS and before.skin is None


@pytest.mark.parametrize("name", ASSETS)
def test_real_asset_comes_back(name: str, samples: Path, record_property: Any) -> None:
    path = path_of(samples, name)
    before = decoded(path.read_bytes())
    made = imported(path, {"normals": "EXACT"})
    data, _ = written(made)
    exact = is_exact(before)
    verdict = judge.same_asset(
        before,
        decoded(data),
        normals=judge.EXACT if exact else judge.EDITABLE,
        except_doubtful=not exact,
    )
    record_property("verdict", str(verdict))
    print(name, verdict)
    said = [text for text in made.warnings if "without area" in text]
    assert sum(int(text.split(": ")[1].split()[0].replace(",", "")) for text in said) == verdict.repeated


@pytest.mark.parametrize("name", ASSETS)
def test_real_asset_comes_back_from_what_an_artist_gets(name: str, samples: Path, record_property: Any) -> None:
    """The window's options: vertices welded, normals editable."""
    path = path_of(samples, name)
    before = decoded(path.read_bytes())
    data, _ = written(imported(path, {}, headless=False))
    verdict = judge.same_asset(
        before, decoded(data), normals=judge.EDITABLE, except_doubtful=True, welded=True, in_order=False
    )
    record_property("verdict", str(verdict))
    print(name, verdict)


@pytest.mark.parametrize("least", [1000.0, -70000.0, 0.0])
@pytest.mark.parametrize("headless", [True, False])
def test_uvs_with_more_steps_than_floats_come_back(least: float, headless: bool, tmp_path: Path) -> None:
    """Between 1000 and 1001, 65,536 steps are 16,384 floats; vertices that differ by a step stay separate."""
    rng = np.random.default_rng(3)
    row, column = np.mgrid[0:12, 0:12].reshape(2, -1)
    corner = np.array([(0, 0), (0, 1), (1, 1), (0, 0), (1, 1), (1, 0)])
    places = (np.stack((column, row), axis=-1)[:, None] + corner).reshape(-1, 2)
    steps = rng.integers(0, 65535, (13, 13, 2))[tuple(places.T)] + rng.integers(0, 2, places.shape)
    steps[:2] = (0, 0), (65535, 65535)
    face = made_bytes.square(
        Normal=made_bytes.shorts(32767, 32767, 65535) * len(steps),
        Position=np.pad(places * 5461, ((0, 0), (0, 1))).astype("<u2").tobytes(),
        TexCoord0=steps.astype("<u2").tobytes(),
        TexCoord0Domain=made_bytes.domain((least, least), (least + 1, least + 1)),
        TriangleList=np.arange(len(steps), dtype="<u2").tobytes(),
    )
    path = tmp_path / "far.llmesh"
    path.write_bytes(made_bytes.asset({"high_lod": [face, made_bytes.square()], "physics_convex": made_bytes.hulls()}))
    made = imported(path, {}, headless=headless)
    has_steps = any("file_uv" in thing.data.attributes for thing in made.objects if thing.type == "MESH")
    assert has_steps == (least != 0)
    before, after = decoded(path.read_bytes()), decoded(written(made)[0])
    judge.same_asset(before, after, normals=None, welded=not headless, in_order=False)


def test_a_rig_that_was_turned_and_moved_is_the_same_avatar(samples: Path) -> None:
    """Facing is read from the rig: whichever way the armature object looks, the file's avatar looks along X."""
    import bpy

    path = path_of(samples, "synthetic/synth_rig_cv")
    before = decoded(path.read_bytes())
    made = imported(path, {})
    armature = next(thing for thing in made.objects if thing.type == "ARMATURE")
    armature.rotation_mode = "XYZ"
    armature.rotation_euler, armature.location = (0, 0, np.pi / 2), (5, -7, 2)
    bpy.context.view_layer.update()
    data, _ = written(made, use_as_imported=False)
    after = decoded(data)
    for old, new in zip(before.levels["high_lod"], after.levels["high_lod"], strict=True):
        one, other = (
            face.positions[face.triangles] @ asset.skin.bind_shape[:3, :3] + asset.skin.bind_shape[3, :3]
            for face, asset in ((old, before), (new, after))
        )
        assert np.abs(one - other).max() < 1e-4
    for number, name in enumerate(after.skin.joints):
        apart = after.skin.inverse_bind[number] - before.skin.inverse_bind[before.skin.joints.index(name)]
        assert np.abs(apart).max() < 1e-3
