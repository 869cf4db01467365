"""The UNIGINE formats, which share bones and frames."""

from __future__ import annotations

from ..core.format import Family, FileFormat, modules_of
from .animation.format import UNIGINE_ANIMATION
from .mesh import options as mesh_options
from .scene.format import UNIGINE_SCENE
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

FAMILY = Family("unigine", "UNIGINE", (UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON, UNIGINE_SCENE), "unigine.md")
