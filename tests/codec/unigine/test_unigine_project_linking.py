"""Meshes inside a project get its materials; outside of any project nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import unigine_bytes
from meshferry.io_formats import api
from meshferry.io_formats.disk import rooted_files
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.project import guids, project
from unigine_projects import asset_meta, guid, material, mesh_node, runtime_path, write_project
from unigine_scene_bytes import nodes

MESH, OAK, BIRCH, FBX = guid(1), guid(2), guid(3), guid(4)
FACE = unigine_bytes.ALL["ms12"]
"""A mesh with one surface, ``Face``."""
BASE = "Unigine::mesh_base"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a project with a mesh whose surface has one material in two nodes and another in one."""
    return write_project(
        tmp_path / "data",
        {
            runtime_path(MESH, "mesh"): FACE,
            "oak.mat": material(OAK, base=BASE),
            "birch.mat": material(BIRCH, base=BASE),
            "a.node": nodes(mesh_node(f"guid://{MESH}", Face=BIRCH)),
            "b.node": nodes(mesh_node(f"guid://{MESH}", Face=OAK), mesh_node(MESH, Face=OAK)),
        },
    )


def read(path: Path, **options: Any) -> Any:
    return api.read_scene(path, options, projects=Projects())


def test_the_most_used_material_is_taken_and_an_export_is_unchanged(data: Path) -> None:
    path = data / runtime_path(MESH, "mesh")
    linked, plain = read(path), api.read_scene(path)
    (mesh,) = [node.mesh for node in linked.nodes]
    assert mesh.materials == ["oak"]
    assert [surface.name for surface in mesh.surfaces] == ["Face"]
    (made,) = linked.materials
    assert (made.name, made.identity, made.properties["File"]) == ("oak", OAK, "oak.mat")
    assert linked.warnings == plain.warnings
    assert UNIGINE_MESH.write(UNIGINE_MESH.from_scene(linked)) == UNIGINE_MESH.write(UNIGINE_MESH.from_scene(plain))


def test_a_mesh_is_named_after_its_asset(data: Path) -> None:
    """Files of runtimes are named by GUIDs; metas state what the artist called them."""
    path = data / runtime_path(MESH, "mesh")
    assert read(path).name == MESH
    Path(f"{path}.meta").write_text(f'{{"asset": "{FBX}", "alias": "old chair.mesh", "primary": 0}}', "utf-8")
    scene = read(path, use_lod_objects=True)
    assert scene.name == "old chair" and [node.name for node in scene.nodes] == ["old chair"]
    assert read(path, use_project_materials=False).name == MESH


def test_the_option_and_callers_without_projects_leave_materials_alone(data: Path) -> None:
    path = data / runtime_path(MESH, "mesh")
    for found in (api.read_scene(path), read(path, use_project_materials=False)):
        assert (found.nodes[0].mesh.materials, found.materials) == (["Face"], [])


def test_a_missing_material_is_named_once(data: Path) -> None:
    (data / "b.node").write_bytes(nodes(mesh_node(MESH, Face=guid(9)), mesh_node(MESH, Face=guid(9))))
    found = read(data / runtime_path(MESH, "mesh"))
    assert found.nodes[0].mesh.materials == ["Face"]
    assert found.materials[0].properties == {"Missing Material": guid(9)}
    assert found.warnings[-1] == f"1 material missing in the project: 'Face ({guid(9)})'"


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("oak.mat", "version https://git-lfs.github.com/spec/v1", "run git lfs pull"),
        ("oak.mat", "<material", "There is no material in the file"),
        ("guids.db", "{", "The JSON is not well-formed"),
    ],
    ids=["pointer", "material", "table"],
)
def test_a_broken_file_is_named_if_it_was_needed(tmp_path: Path, name: str, content: str, cause: str) -> None:
    files = {runtime_path(MESH, "mesh"): FACE, "oak.mat": "", "a.node": nodes(mesh_node(MESH, Face=OAK))}
    data = write_project(tmp_path / "data", files, {OAK: "oak.mat"})
    (data / name).write_text(content, "utf-8")
    found = read(data / runtime_path(MESH, "mesh"))
    assert found.warnings[-2:][0] == f"1 material missing in the project: 'Face ({OAK})'"
    assert name in found.warnings[-1]
    assert cause in found.warnings[-1]


def test_a_mesh_outside_uses_the_chosen_project(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "desk" / f"{MESH}.mesh"
    path.parent.mkdir()
    path.write_bytes(FACE)
    assert read(path).nodes[0].mesh.materials == ["Face"]
    for chosen in (data, data.parent):
        assert read(path, project=str(chosen)).nodes[0].mesh.materials == ["oak"]


@pytest.mark.parametrize(
    ("marks", "is_project"),
    [
        ({}, False),
        ({"lamp.mesh.meta": "fileFormatVersion: 2\nguid: 1\n"}, False),
        ({"lamp.mesh.meta": asset_meta(MESH, "mesh")}, True),
        ({"root_mount.umount": "{}"}, True),
    ],
    ids=["plain folder", "meta of another engine", "meta of an asset", "mount"],
)
def test_only_projects_are_projects(tmp_path: Path, marks: dict[str, str], is_project: bool) -> None:
    files = {"lamp.mesh": FACE, "Face.mat": material(OAK, base=BASE), **marks}
    folder = write_project(tmp_path / "things", files)
    (folder / "guids.db").unlink()
    assert [made.identity for made in read(folder / "lamp.mesh").materials] == ([OAK] if is_project else [])


def test_a_mesh_without_a_meta_is_found_by_the_table(tmp_path: Path) -> None:
    files = {
        "Props/lamp.mesh": FACE,
        "oak.mat": material(OAK, base=BASE),
        "a.node": nodes(mesh_node(f"guid://{MESH}", Face=OAK)),
    }
    data = write_project(tmp_path / "data", files, {MESH: "props/LAMP.mesh"})
    assert read(data / "Props/lamp.mesh").nodes[0].mesh.materials == ["oak"]


@pytest.mark.parametrize(
    "stated",
    [f"other,{BIRCH},face,{OAK}", f"face,{OAK},other,{BIRCH}", f"Fa;x,{BIRCH},Face,{OAK}", f"Face,{OAK},face,{BIRCH}"],
)
def test_materials_of_a_container_hold_for_all_levels(tmp_path: Path, stated: str) -> None:
    meta = asset_meta(FBX, "fbx", {guid(8): "lamp.node", MESH: "lamp.mesh"}, material_guids=stated)
    files = {"lamp.fbx.meta": meta, runtime_path(MESH, "mesh"): FACE, "oak.mat": material(OAK, base=BASE)}
    data = write_project(tmp_path / "data", files)
    from meshferry.io_formats.unigine.project.project import open_project

    path = data / runtime_path(MESH, "mesh")
    project = open_project(path, Projects())
    assert project is not None
    found = project.materials_of_mesh(path, ["Face", "Face_lod_0", "Face_LOD_12", "oak_lod_1", "none"])
    assert found == {"Face": OAK, "Face_lod_0": OAK, "Face_LOD_12": OAK, "oak_lod_1": OAK}


def test_names_of_materials_of_a_container_may_have_commas() -> None:
    """The second name is a GUID, too, and the last pair has no separator after it."""
    stated = f"Старое, дерево; 2,{OAK},{guid(9)},{BIRCH},none,,{OAK}"
    meta = guids.parse_asset_meta(asset_meta(FBX, "fbx", {}, material_guids=stated).encode())
    assert meta.materials == {"Старое, дерево; 2": OAK, guid(9): BIRCH, "none,": OAK}


def test_processes_share_what_they_find_out(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = data / runtime_path(MESH, "mesh")
    store = tmp_path / "store"
    first = api.read_scene(path, projects=Projects(is_fixed=True, store=store))
    monkeypatch.setattr(rooted_files, "_list_folder", lambda *_: pytest.fail("listed again"))
    monkeypatch.setattr(project, "uses_of_meshes", lambda *_: pytest.fail("searched again"))
    second = api.read_scene(path, projects=Projects(is_fixed=True, store=store))
    assert second.nodes[0].mesh is not None
    assert second.nodes[0].mesh.materials == ["oak"]
    assert second.materials == first.materials
    with pytest.raises(pytest.fail.Exception):
        api.read_scene(path, projects=Projects(is_fixed=True))
