"""Materials of real UNIGINE projects in Blender: every texture that a material uses, and nothing pink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy

IMAGES = {
    "mit_action_2_20": 13,
    "mit_template_tx10": 3,
    "mit_lone_mesh_tx11": 2,
    "vr_props_dds_2_8": 8,
    "library_2_0": 0,
}
"""Number of textures that the materials of each project use, and that have files."""


def used_files(material: dict[str, Any]) -> set[str]:
    """Return the files that a material must show, by its states (docs/formats/unigine_projects.md)."""
    states, textures = material["states"], material["textures"]
    slots = {"albedo", "shading"} if states.get("workflow") != "1" else {"diffuse", "specular"}
    slots |= {"normal"} if states.get("base_mapping", "0") in "01" else set()
    slots |= {"ambient_occlusion"} if states.get("ao_map") == "1" else set()
    slots |= {"emission"} if states.get("emission") == "1" else set()
    return {textures[slot]["file"] for slot in slots & set(textures) if textures[slot]["file"]}


@pytest.mark.parametrize("name", IMAGES)
def test_every_used_texture_is_shown(samples: Path, name: str) -> None:
    import bpy
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.blender_data.importing.materials import MaterialFinder
    from meshferry.io_formats.core.messages import Report
    from meshferry.io_formats.projects import Projects
    from meshferry.io_formats.unigine.project.project import open_project
    from meshferry.io_formats.unigine.project.scene_materials import ProjectMaterials

    folder = samples / "unigine_scenes" / name
    content = json.loads((folder / "expected.json").read_text("utf-8"))
    wanted = {key: value for scene in content["scenes"].values() for key, value in scene["materials"].items() if value}
    project = open_project(folder / "data" / next(iter(content["scenes"])), Projects(), is_scene=True)
    assert project is not None
    materials = ProjectMaterials(project)
    names = {key: materials.name_of(key, "") for key in wanted}
    warnings: list[str] = []
    finder = MaterialFinder(ImportOptions.of(), given=materials.materials, report=Report(warnings))
    count = 0
    for key, stated in wanted.items():
        made = finder.find(names[key])
        assert made is not None
        nodes = [node for node in made.node_tree.nodes if node.type == "TEX_IMAGE"]
        assert all(node.image is not None and all(node.image.size) for node in nodes), f"{key} is pink"
        shown = {Path(node.image.meshferry.source_path).resolve() for node in nodes}
        assert shown == {(folder / "data" / file).resolve() for file in used_files(stated)}, names[key]
        count += len(shown)
    assert count == IMAGES[name] and not warnings
    kinds = {(image.meshferry.source_path, image.colorspace_settings.name) for image in bpy.data.images}
    assert len(kinds) == len(bpy.data.images)
