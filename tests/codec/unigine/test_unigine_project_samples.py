"""Real UNIGINE projects: references, materials and textures as an independent resolver found them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.project.guids import FoundTexture, Rule
from meshferry.io_formats.unigine.project.project import Project, open_project
from meshferry.io_formats.unigine.project.project_materials import MaterialRule

PROJECTS = {
    "mit_action_2_20": (46, 33),
    "mit_template_tx10": (9, 13),
    "mit_lone_mesh_tx11": (2, 4),
    "vr_props_dds_2_8": (10, 11),
    "library_2_0": (2, 0),
}
"""Number of materials and texture slots in all scenes of each project."""


@pytest.fixture(scope="module", params=PROJECTS)
def expected(request: pytest.FixtureRequest, samples: Path) -> tuple[str, Path, dict[str, Any]]:
    folder = samples / "unigine_scenes" / request.param
    return request.param, folder / "data", json.loads((folder / "expected.json").read_text("utf-8"))


def project_of(data: Path, scene: str) -> Project:
    """Return the project of a scene; worlds of SDK 2.0 name their libraries."""
    project = open_project(data / scene, Projects(), is_scene=True)
    assert project is not None
    assert project.root == data.resolve()
    if data.parent.name == "library_2_0":
        for library in ("FPS_Demo1/materials/FPS_Demo1.mat", "../source/material/qbz95.mat"):
            assert project.add_library(library) is None
    return project


def how(texture: FoundTexture) -> str:
    """Return the rule in the words of the expected values."""
    if texture.rule is Rule.ENGINE:
        return f"core:{texture.engine_name}"
    if texture.rule is Rule.RUNTIME and texture.file != texture.runtime:
        return "source of runtime"
    return texture.rule.value


def scenes_of(found: tuple[str, Path, dict[str, Any]]) -> Iterator[tuple[Project, dict[str, Any]]]:
    _, data, content = found
    for name, scene in content["scenes"].items():
        yield project_of(data, name), scene


def test_materials_and_textures_are_those_of_the_resolver(expected: tuple[str, Path, dict[str, Any]]) -> None:
    materials = slots = 0
    for project, scene in scenes_of(expected):
        for reference, wanted in scene["materials"].items():
            material = project.material(reference)
            assert (material is None) == (wanted is None), reference
            if material is None:
                continue
            materials += 1
            if material.rule is MaterialRule.GRAPH:
                for values, name in ((material.states, "emission"), (material.options, "blend_src")):
                    values.pop(name, None)  # which the resolver does not read
                material.options.pop("blend_dest", None)
            for field in ("name", "file", "base", "parameters", "states", "options"):
                assert getattr(material, field) == wanted[field], (reference, field)
            assert material.rule.value == wanted["rule"]
            textures = {
                slot: project.texture(use.reference) for slot, use in material.textures.items() if use.reference
            }
            assert {
                slot: {"file": found.file, "how": how(found), "ref": found.reference}
                for slot, found in textures.items()
            } == {
                slot: {key: found[key] for key in ("file", "how", "ref")} for slot, found in wanted["textures"].items()
            }
            for slot, found in wanted["textures"].items():
                slots += 1
                assert textures[slot].is_green_up == (found.get("green") == "opengl")
                if "engine" in found:
                    assert textures[slot].runtime == found["engine"]
                if "inputs" in found:
                    assert list(material.inputs[slot]) == found["inputs"]
    assert (materials, slots) == PROJECTS[expected[0]]


def test_references_to_meshes_are_found(expected: tuple[str, Path, dict[str, Any]]) -> None:
    for project, scene in scenes_of(expected):
        for placed in scene["objects"]:
            if placed.get("mesh") and placed["type"] != "mesh":
                data = (project.root / placed["mesh"]).resolve()
                assert project.files.location(placed["mesh"]).resolve() == data
                assert data.is_file()


def test_broken_files_are_those_of_the_resolver(expected: tuple[str, Path, dict[str, Any]]) -> None:
    for project, scene in scenes_of(expected):
        for reference in scene["materials"]:
            project.material(reference)
        project.find("guid://" + "0" * 40)  # reads all metas
        assert list(project.unreadable) == expected[2]["unreadable files"]


def test_a_lone_mesh_gets_the_materials_of_its_fbx(samples: Path) -> None:
    folder = samples / "unigine_scenes" / "mit_lone_mesh_tx11"
    content = json.loads((folder / "expected.json").read_text("utf-8"))
    ((name, scene),) = [(name, scene) for name, scene in content["scenes"].items() if name.endswith(".mesh")]
    (mesh,) = scene["objects"]
    project = open_project(folder / "data" / name, Projects())
    assert project is not None
    surfaces = [f"{surface}_lod_{level}" for surface in mesh["materials by name"] for level in range(3)]
    wanted = {surface: mesh["materials by name"][surface[: -len("_lod_0")]] for surface in surfaces}
    assert project.materials_of_mesh(folder / "data" / name, [*surfaces, "other"]) == wanted
