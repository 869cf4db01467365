"""The UNIGINE formats, which share bones and frames."""

from __future__ import annotations

from dataclasses import replace

from ..core.format import Family, FileFormat, modules_of
from .animation.format import UNIGINE_ANIMATION
from .mesh import options as mesh_options
from .scene import options as scene_options
from .skeleton.format import UNIGINE_SKELETON

UNIGINE_MESH = FileFormat(
    name="unigine_mesh",
    label="UNIGINE Mesh",
    extensions=(".mesh", ".mesh_skinned"),
    capabilities=mesh_options.CAPABILITIES,
    modules=modules_of(f"{__package__}.mesh"),
    is_linked=True,
    only_read=(".mesh_skinned",),
    import_options=mesh_options.IMPORT_OPTIONS,
    export_options=mesh_options.EXPORT_OPTIONS,
)

UNIGINE_SCENE = FileFormat(
    name="unigine_scene",
    label="UNIGINE Scene",
    extensions=(".node", ".world"),
    capabilities=replace(mesh_options.CAPABILITIES, joint_clips=False, node_hierarchy=True, placement=True),
    modules=modules_of(f"{__package__}.scene"),
    is_linked=True,
    is_patched=True,
    only_read=(".world",),
    is_set=True,
    import_options=scene_options.IMPORT_OPTIONS,
    export_options=scene_options.EXPORT_OPTIONS,
    ambiguous=(".node", ".world"),
)

FAMILY = Family("unigine", "UNIGINE", (UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON, UNIGINE_SCENE), "unigine.md")
