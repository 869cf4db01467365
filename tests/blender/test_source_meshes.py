"""Missing runtime meshes from their FBX sources, against the editor's own, and what the import leaves alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
import unigine_oracle
from meshferry.blender_data import steps
from meshferry.blender_data.importing import importer
from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
from meshferry.blender_data.importing.placements import addon_models
from meshferry.io_formats import api
from meshferry.io_formats.core.addon_files import SourceFile
from meshferry.io_formats.core.placement import PlacedModel
from meshferry.io_formats.core.scene import Mesh
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

pytestmark = pytest.mark.needs_bpy

PROJECTS = {
    "catch_bomb_2_16": 4,
    "kimchi_2_19": 4,
    "mit_material_ball_2_20": 1,
    "torpedo_2_19": 3,
    "vegetation_2_11": 2,
    "vr_props_2_9": 3,
}
"""Meshes of each sample."""
NEAR = 1e-3
"""Part of the diagonal of a mesh's box."""


def without_runtimes(sample: Path, folder: Path) -> Path:
    """Copy a project without the runtimes of its meshes; return its data folder."""
    data = folder / "data"
    shutil.copytree(sample / "data", data)
    for path in data.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shutil.rmtree(data / ".runtimes")
    return data


def place(data: Path, guids: list[str]) -> Path:
    """Write a scene that places meshes without naming their surfaces."""
    lines = [
        f'<node type="ObjectMeshStatic" id="{number}" name="m{number}"><mesh_name>guid://{guid}</mesh_name></node>'
        for number, guid in enumerate(guids)
    ]
    path = data / "all.node"
    path.write_text(f'<nodes version="2.19.0.3">{"".join(lines)}</nodes>', "utf-8")
    return path


def models(path: Path) -> list[PlacedModel]:
    placement = api.read_scene(path, projects=Projects()).placement
    assert placement is not None
    return placement.models


def read(model: PlacedModel) -> Mesh:
    assert model.source is not None
    steps.finish(addon_models.import_steps(bpy.context, model.source))
    (node,) = model.read().nodes
    assert node.mesh is not None
    return node.mesh


def namesakes(*names: str) -> None:
    """Make objects, meshes and materials of these names, and a setting of the scene that importers change."""
    for name in names:
        mesh = bpy.data.meshes.new(name)
        mesh.materials.append(bpy.data.materials.get(name) or bpy.data.materials.new(name))
        bpy.context.collection.objects.link(bpy.data.objects.new(name, mesh))
    bpy.context.scene.render.fps = 37


def rows(*parts: Any) -> set[bytes]:
    """Return values rounded to steps of NEAR, which no usual number is on the border of."""
    steps_of = np.floor(np.column_stack(parts) / NEAR + 0.3217).astype(np.int32)
    return {row.tobytes() for row in steps_of}


def part_with_normals(places: Any, normals: Any, own_places: Any, own_normals: Any) -> float:
    """Return the part of the corners that have a corner of the other mesh at their place with the same normal."""
    _, ids = np.unique(np.floor(np.concatenate((places, own_places)) / NEAR + 0.3217), axis=0, return_inverse=True)
    wanted, own = np.split(ids.reshape(-1), [len(places)])
    order = np.argsort(own, kind="stable")
    first, count = np.searchsorted(own[order], wanted), np.bincount(own, minlength=ids.max() + 1)[wanted]
    best = np.full(len(wanted), -1.0)
    for number in range(count.max()):
        corner = order[np.minimum(first + number, len(order) - 1)]
        cosine = np.einsum("ij,ij->i", normals, own_normals[corner])
        best = np.maximum(best, np.where(number < count, cosine, -1))
    return float(np.mean(best > np.cos(np.radians(3))))


def assert_like_runtime(mesh: Mesh, path: Path) -> None:
    """Compare surfaces, vertices in both directions, normals, and the UVs of the runtime.

    It lacks triangles without area.
    """
    runtime = unigine_oracle.decode(path.read_bytes())
    surfaces = [surface for surface in runtime.surfaces if len(surface.c_indices)]
    names = [surface.name.casefold() for surface in surfaces]
    found = [surface.name.casefold() for surface in mesh.surfaces]
    assert found == names
    everything = np.concatenate([surface.targets[0].positions for surface in surfaces])
    low, size = everything.min(0), np.linalg.norm(np.ptp(everything, axis=0))
    of_corner = np.repeat(mesh.material_index, 3)
    shown = UNIGINE_MESH.to_scene(UNIGINE_MESH.read(path.read_bytes()), "runtime").nodes[0].mesh
    assert shown is not None and shown.normal is not None and mesh.normal is not None
    places, own_places = ((one.points[one.corner_point] - low) / size for one in (shown, mesh))
    normals, own_normals = (one.normal.at_corners(one.corner_point) for one in (shown, mesh))
    assert part_with_normals(places, normals, own_places, own_normals) > 0.99
    for place_, name in enumerate(found):
        surface = surfaces[names.index(name)]
        corners = np.flatnonzero(of_corner == place_)
        positions = (surface.targets[0].positions[surface.c_indices] - low) / size
        own = (mesh.points[mesh.corner_point[corners]] - low) / size
        assert rows(positions) == rows(own), name
        triangles = np.count_nonzero(mesh.material_index == place_)
        assert triangles == pytest.approx(len(surface.c_indices) // 3, abs=8), name
        for channel, layer in zip((surface.uv0, surface.uv1), mesh.uvs, strict=False):
            if channel is not None:
                uv = np.column_stack((channel[surface.t_indices][:, 0], 1 - channel[surface.t_indices][:, 1]))
                wanted = rows(positions, uv)
                assert len(wanted & rows(own, layer.values[corners])) > 0.99 * len(wanted), (name, layer.name)


SLOW = "mit_material_ball_2_20"
"""Levels of detail by postfix, as in vegetation_2_11; the oracle takes seconds for its 25,177 triangles."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == SLOW)) for name in PROJECTS])
def test_meshes_are_those_that_the_editor_made(name: str, samples: Path, tmp_path: Path) -> None:
    sample = samples / "unigine_writing" / name
    expected = json.loads((sample.parent / "expected.json").read_text("utf-8"))[name]["fbx"]
    stated = {mesh["id"]: mesh for file in expected for mesh in file["meshes"]}
    for mesh in stated.values():  # names that would be taken, so that Blender gave others
        namesakes(Path(mesh["name"]).stem, *mesh["source"], *mesh["expected_names"])
    data = without_runtimes(sample, tmp_path)
    found = {model.identity: model for model in models(place(data, list(stated)))}
    assert len(found) == len(stated) == PROJECTS[name]
    runtimes = [sample / "data", samples / "unigine_scenes" / "mit_lone_mesh_tx11" / "data"]
    for guid, model in found.items():
        path = next(p for folder in runtimes if (p := folder / ".runtimes" / guid[:2] / f"{guid}.mesh").exists())
        mesh = read(model)
        low, high = mesh.points.min(0), mesh.points.max(0)
        assert np.abs(np.stack((low, high)) - stated[guid]["box"]).max() < NEAR * stated[guid]["size"] + 1e-5
        assert_like_runtime(mesh, path)


def test_a_scene_gives_the_order_of_surfaces(samples: Path, tmp_path: Path) -> None:
    data = without_runtimes(samples / "unigine_writing" / "vegetation_2_11", tmp_path)
    (model,) = models(data / "vegetation" / "filbert" / "filber_tree_0.node")
    runtime = (
        samples / "unigine_writing/vegetation_2_11/data/.runtimes/d8/d811751f986e952d5d3ea3b4ae708a6d47d48a91.mesh"
    )
    assert_like_runtime(read(model), runtime)


@pytest.fixture
def level(samples: Path, tmp_path: Path) -> Path:
    """Return a world with 20 places of the meshes of four FBX files, whose runtimes are missing."""
    return without_runtimes(samples / "unigine_writing" / "catch_bomb_2_16", tmp_path) / "unigine_project_2.world"


def request(path: Path, projects: Projects, **options: Any) -> ImportRequest:
    scene = api.read_scene(path, options, projects=projects)
    return ImportRequest(bpy.context, scene, ImportOptions.of(), str(path))


def all_data() -> dict[str, list[tuple[str, int]]]:
    """Return name and address of all data."""
    kinds = [found.identifier for found in bpy.data.bl_rna.properties if found.type == "COLLECTION"]
    return {kind: [(block.name, block.as_pointer()) for block in getattr(bpy.data, kind)] for kind in kinds}


NAMES = ("gun", "barrel", "Цилиндр", "Материал", "Икосфера")
"""Some of the names in the FBX files of the level."""


def from_sources() -> dict[str, Any]:
    return {mesh.meshferry.source_identity: mesh for mesh in bpy.data.meshes if mesh.meshferry.source_file}


def test_a_scene_shows_meshes_of_its_sources_and_leaves_all_else_alone(level: Path) -> None:
    namesakes(*NAMES)
    before = all_data()
    result = importer.import_scene(request(level, Projects()))
    assert "4 meshes missing in the project; made from 4 source files instead" in result.warnings
    meshes = from_sources()
    barrel = meshes["64c12ff101e1689c5bcb6b4b6cd6482e3090f1b5"]
    assert len(meshes) == 4 and Path(barrel.meshferry.source_file).name == "barrel.fbx"
    sizes = [len(face.vertices) for face in barrel.polygons]
    assert (sizes.count(4), len(sizes)) == (108, 110)  # quads stay
    assert barrel.name != "Цилиндр" and barrel.uv_layers[0].name == "UV0"
    assert [entry.name for obj in result.objects if obj.data == barrel for entry in obj.meshferry.surfaces] == [
        "Материал"
    ] * 6
    assert result.triangles == 204 + 6 * 236 + 14 * 20 + 436 + 212
    assert (len(bpy.data.scenes), bpy.context.scene.render.fps) == (1, 37)
    result.undo()
    assert all_data() == before


def test_broken_sources_cost_one_message_each_kind(level: Path) -> None:
    folder = level.parent / "Objects"
    (folder / "gun.fbx").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    (folder / "barrel.fbx").write_bytes((folder / "barrel.fbx").read_bytes()[:9000])
    (folder / "stone.fbx").write_bytes(b"solid stone")
    os.truncate(folder / "basket.fbx", 513 * 2**20)  # sparse
    namesakes(*NAMES)
    before = all_data()
    result = importer.import_scene(request(level, Projects()))
    found = {str(text) for text in result.warnings if text.code == "unreadable-source"}
    assert len(found) == 4 and not from_sources()
    for name, reason in (
        ("gun", "run git lfs pull"),
        ("barrel", "Blender cannot read it"),
        ("stone", "not that of an FBX file"),
        ("basket", "more than 536,870,912 bytes"),
    ):
        (text,) = [text for text in found if f"{name}.fbx" in text]
        assert text.startswith("1 source file cannot be imported; an empty stands for each mesh: ") and reason in text
    assert sum(obj.type == "EMPTY" and obj.name.startswith("Икосфера") for obj in result.objects) == 14
    result.undo()
    assert all_data() == before


def test_the_import_can_be_cancelled_between_files(level: Path) -> None:
    namesakes(*NAMES)
    before = all_data()
    for wanted in range(1, 5):
        working = importer.import_steps(request(level, Projects()))
        imports = 0
        while imports < wanted:
            imports += next(working).label == "Importing source files"
        working.close()
        assert all_data() == before


def test_a_file_is_imported_once_until_it_changes(level: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    original = addon_models._import

    def counting(context: Any, source: SourceFile, names: Any) -> Any:
        imported.append(source.path.name)
        return original(context, source, names)

    monkeypatch.setattr(addon_models, "_import", counting)
    projects = Projects()
    for _ in range(2):
        importer.import_scene(request(level, projects))
    assert sorted(imported) == ["barrel.fbx", "basket.fbx", "gun.fbx", "stone.fbx"]
    os.utime(level.parent / "Objects" / "gun.fbx", (1, 1))
    importer.import_scene(request(level, projects))
    assert imported[4:] == ["gun.fbx"]


def test_without_the_option_empties_are_left(level: Path) -> None:
    result = importer.import_scene(request(level, Projects(), use_source_files=False))
    assert any(
        text.startswith("4 meshes not found, only the source; import that separately") for text in result.warnings
    )
    assert not from_sources()


def test_a_mesh_from_a_source_replaces_no_mesh(level: Path) -> None:
    assert bpy.ops.import_scene.unigine(filepath=str(level)) == {"FINISHED"}
    made = next(obj for obj in bpy.context.view_layer.objects if obj.data and obj.data.name.startswith("barrel"))
    runtime = level.parent / ".runtimes" / "64" / f"{made.data.meshferry.source_identity}.mesh"
    runtime.parent.mkdir(parents=True)
    other, new = level.parent / "other.mesh", level.parent / "new.mesh"
    other.write_bytes(b"other")

    def export(path: Path) -> None:
        bpy.ops.object.select_all(action="DESELECT")
        made.select_set(True)
        bpy.ops.export_scene.unigine_mesh(filepath=str(path), scope="SELECTION")

    for path in (runtime, other):
        with pytest.raises(RuntimeError, match="was made from an FBX file"):
            export(path)
    assert not runtime.exists() and other.read_bytes() == b"other"
    export(new)
    made.data.vertices[0].co.x += 1
    first = new.read_bytes()
    export(new)  # its own file
    assert new.read_bytes() != first
