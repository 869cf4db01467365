"""The formats that Blender reads and writes itself: .blend, and those of its own importers and exporters.

Tests determine their capabilities: they write a scene with all kinds of data, read it back and compare. This module
does not load Blender.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from ...io_formats.core.capabilities import ANY_NUMBER, Capabilities
from ...io_formats.core.format import Format
from ...io_formats.core.options import Options
from ...io_formats.registry import FORMATS

MOST_UV_LAYERS = 8
"""Maximum number of UV maps of a mesh in Blender."""


@dataclass(frozen=True)
class BlenderFormat:
    """A format of Blender's own importers and exporters."""

    name: str
    label: str
    extensions: tuple[str, ...]
    """Extensions with the dot, in lower case; the first is used for writing."""
    capabilities: Capabilities
    older: Mapping[str, tuple[tuple[int, int], int]] = field(default_factory=dict)
    """Capabilities of older Blender versions, by field: a version, and the value before it."""
    importer: str = ""
    """Import operator, such as ``import_scene.gltf``. If empty, Blender opens the file itself."""
    exporter: str = ""
    """Export operator."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the importer, which gets those that it accepts."""
    writing: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the exporter."""
    animation: str = ""
    """Name of the exporter's argument that switches animations on."""
    every_action: str = ""
    """Name of the exporter's argument for exporting every action instead of the active one."""
    drops_duplicates: bool = False
    """Whether its exporter or importer deletes faces that share all their vertices with another face."""
    left_out: frozenset[str] = frozenset()
    """Types of objects whose surfaces the exporter does not write."""
    is_triangulated: bool = False
    """Whether the exporter cuts faces into triangles."""
    has_pairs: bool = False
    """Whether a file stores an object as two named items: a transform and a mesh."""
    keeps_still_clips: bool = False
    """Whether constant animations in a file are intentional, not added by exporters."""
    has_fixed_decimals: bool = False
    """Whether exporters write coordinates with a fixed number of decimals, too few for small objects."""
    averages_normals: bool = False
    """Whether exporters write one normal for each vertex: the mean of its corner normals."""
    drops_held_poses: bool = False
    """Whether constant animations are lost, since exporters write only the first of equal values."""
    drops_held_objects: bool = False
    """Whether constant animations of objects and shape keys are dropped on import, as exporters add them to all
    objects.

    Constant poses of bones are kept, which also preserves the length of the animation.
    """
    scales_before_rotating: bool = False
    """Whether exporters only write transforms of images that scale before they rotate."""
    holds_times: bool = False
    """Whether files store times in seconds without a frame rate, but can store custom properties of the scene."""
    times_are_frames: bool = False
    """Whether importers use the file's times as frame numbers and ignore frame rates."""
    scaffolding: tuple[str, ...] = ()
    """Names of placeholder objects and bones that importers and exporters create."""
    replaced: str = ""
    """Regular expression of characters in names of objects, bones and materials that become _, or empty."""
    replaced_label: str = ""
    """Description of the characters that ``replaced`` matches, for warnings."""
    is_set: bool = False
    """Whether an export may write several files."""
    moves_rigs_in: str = ""
    """Name of a format whose target program takes these files, too, but shows rigged meshes with its joints elsewhere.
    """

    needs_blender: ClassVar[bool] = True
    is_patched: ClassVar[bool] = False
    is_read: ClassVar[bool] = True
    is_written: ClassVar[bool] = True
    export_options: ClassVar[type[Options]] = Options

    @property
    def written_extensions(self) -> tuple[str, ...]:
        """The extensions with which files are written."""
        return self.extensions

    def capabilities_in(self, version: tuple[int, ...]) -> Capabilities:
        """Return the capabilities of files that a given Blender version writes."""
        held: dict[str, Any] = {name: value for name, (since, value) in self.older.items() if version < since}
        return replace(self.capabilities, **held)

    @property
    def face_label(self) -> str:
        """Name of the faces in a file, in the singular."""
        return "triangle" if self.is_triangulated else "face"

    @property
    def is_blend(self) -> bool:
        """Whether Blender opens and saves the file itself."""
        return not self.importer


_MODELS = Capabilities(
    uv_layers=MOST_UV_LAYERS,
    color_layers=ANY_NUMBER,
    normals=True,
    materials=True,
    node_hierarchy=True,
    shape_keys=True,
    skeletons=True,
    influences=ANY_NUMBER,
    node_clips=True,
    joint_clips=True,
    vertex_clips=True,
)
"""Capabilities of .fbx files; most other formats can hold more."""
_READ_GLTF = {
    "merge_vertices": False,
    "import_pack_images": True,
    "disable_bone_shape": True,
    "import_scene_as_collection": False,
    "import_merge_material_slots": False,
}
_WRITE_GLTF = {
    "use_selection": True,
    "export_yup": True,
    "export_all_influences": True,
    "export_vertex_color": "ACTIVE",
    "export_all_vertex_colors": True,
    "export_extras": True,
    "export_cameras": True,
    "export_lights": True,
    "export_animation_mode": "ACTIONS",
    # Tracks with the same name belong to one animation.
    "export_merge_animation": "NLA_TRACK",
    # A scene's animation begins at frame 1, but a file's at its beginning.
    "export_anim_slide_to_zero": True,
}
_READ_USD = {
    "create_collection": False,
    "create_world_material": False,
    "import_visible_only": True,
    "import_textures_mode": "IMPORT_PACK",
    "relative_path": False,
    "set_frame_range": True,
    "attr_import_mode": "ALL",
    "property_import_mode": "ALL",
    "validate_meshes": False,
}
_WRITE_USD = {
    "selected_objects_only": True,
    "visible_objects_only": False,
    "evaluation_mode": "VIEWPORT",
    "export_textures": True,
    "export_textures_mode": "NEW",
    "overwrite_textures": True,
    "relative_paths": True,
    "convert_world_material": False,
    "allow_unicode": True,
}

BLEND_FILE = BlenderFormat(
    name="blend",
    label="Blender",
    extensions=(".blend",),
    capabilities=replace(_MODELS, custom_layers=True, levels_of_detail=True, surfaces=True, physics=True, sliders=True),
)

GLB = BlenderFormat(
    name="glb",
    label="glTF Binary",
    extensions=(".glb",),
    capabilities=replace(_MODELS, splits_vertices=True),
    older={"opaque_colors": ((5, 2), 1)},
    importer="import_scene.gltf",
    exporter="export_scene.gltf",
    reading=_READ_GLTF,
    writing={**_WRITE_GLTF, "export_format": "GLB"},
    animation="export_animations",
    drops_duplicates=True,
    left_out=frozenset({"META"}),
    is_triangulated=True,
    keeps_still_clips=True,
    scales_before_rotating=True,
    holds_times=True,
    moves_rigs_in="second_life_upload",
)
GLTF = replace(
    GLB,
    name="gltf",
    label="glTF",
    extensions=(".gltf",),
    writing={**_WRITE_GLTF, "export_format": "GLTF_SEPARATE"},
    is_set=True,
)
FBX = BlenderFormat(
    name="fbx",
    label="FBX",
    extensions=(".fbx",),
    capabilities=_MODELS,
    importer="wm.fbx_import",
    exporter="export_scene.fbx",
    reading={"use_anim": True, "use_custom_normals": True, "validate_meshes": False, "anim_offset": 1.0},
    drops_held_objects=True,
    writing={
        "use_selection": True,
        "object_types": {"EMPTY", "CAMERA", "LIGHT", "ARMATURE", "MESH", "OTHER"},
        "axis_forward": "-Z",
        "axis_up": "Y",
        # Write metres as the file's unit, so that objects have scale 1 in programs that respect it.
        "apply_scale_options": "FBX_SCALE_UNITS",
        "use_mesh_modifiers": False,
        "colors_type": "SRGB",
        "use_custom_props": True,
        "add_leaf_bones": False,
        "bake_anim_use_nla_strips": False,
        "bake_anim_simplify_factor": 0.0,
        "path_mode": "COPY",
        "embed_textures": True,
    },
    drops_duplicates=True,
    left_out=frozenset({"META"}),
    animation="bake_anim",
    every_action="bake_anim_use_all_actions",
)
OBJ = BlenderFormat(
    name="obj",
    label="Wavefront OBJ",
    extensions=(".obj",),
    capabilities=Capabilities(uv_layers=1, color_layers=1, opaque_colors=1, normals=True, materials=True),
    importer="wm.obj_import",
    exporter="wm.obj_export",
    reading={"forward_axis": "NEGATIVE_Z", "up_axis": "Y", "validate_meshes": False},
    writing={
        "export_selected_objects": True,
        "forward_axis": "NEGATIVE_Z",
        "up_axis": "Y",
        "export_colors": True,
        "export_pbr_extensions": True,
        "path_mode": "COPY",
    },
    has_fixed_decimals=True,
    replaced=" ",
    replaced_label="spaces",
    is_set=True,
)
PLY = BlenderFormat(
    name="ply",
    label="PLY",
    extensions=(".ply",),
    capabilities=Capabilities(uv_layers=1, color_layers=1, normals=True, joins_objects=True),
    importer="wm.ply_import",
    exporter="wm.ply_export",
    reading={"forward_axis": "Y", "up_axis": "Z", "merge_verts": False},
    writing={"export_selected_objects": True, "forward_axis": "Y", "up_axis": "Z", "export_normals": True},
    drops_duplicates=True,
    averages_normals=True,
)
USD = BlenderFormat(
    name="usd",
    label="USD",
    extensions=(".usd", ".usdc", ".usda"),
    capabilities=replace(_MODELS, custom_layers=True, joins_clips=True),
    importer="wm.usd_import",
    exporter="wm.usd_export",
    reading=_READ_USD,
    writing=_WRITE_USD,
    animation="export_animation",
    left_out=frozenset({"CURVE", "SURFACE"}),  # written as curves and NURBS patches
    has_pairs=True,
    times_are_frames=True,
    drops_held_poses=True,
    scaffolding=("_materials", "joint1"),
    replaced=r"\W|^(?=\d)",
    replaced_label="characters other than letters and digits",
    is_set=True,
)
USDZ = replace(USD, name="usdz", label="USD Archive", extensions=(".usdz",), is_set=False)

BLENDER_FORMATS: tuple[BlenderFormat, ...] = (BLEND_FILE, GLB, GLTF, FBX, OBJ, PLY, USD, USDZ)


AnyFormat: TypeAlias = Format | BlenderFormat
"""A format of Meshferry or one of Blender's own. Both have names, capabilities, ``is_set`` and ``needs_blender``."""


def all_formats() -> tuple[AnyFormat, ...]:
    """Return Meshferry's formats and those of Blender."""
    return (*FORMATS, *BLENDER_FORMATS)


def by_extension(extension: str) -> BlenderFormat | None:
    """Return the format with an extension (with its dot, in any case), or None."""
    return next((known for known in BLENDER_FORMATS if extension.lower() in known.extensions), None)


def format_named(name: str) -> AnyFormat:
    """Return a format by its name."""
    return next(known for known in all_formats() if known.name == name)


def by_path(path: Path) -> BlenderFormat | None:
    """Return the format of a path according to its extension, or None."""
    return by_extension(path.suffix)


def extensions() -> tuple[str, ...]:
    """Return the extensions of all these formats, each with its dot."""
    return tuple(extension for known in BLENDER_FORMATS for extension in known.extensions)


@contextlib.contextmanager
def on_disk(path: Path, content: bytes | None) -> Iterator[Path]:
    """Yield a file's path, or that of a temporary file with ``content`` if this is given."""
    if content is None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="meshferry-") as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(content)
        yield copy
