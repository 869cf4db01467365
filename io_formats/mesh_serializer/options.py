"""Options of reading and writing MeshSerializer2 files."""

from __future__ import annotations

from ..core.options import IMPORT_CHOICES, MESH_FILES, Choice, Option

AXES = Option(
    name="axes",
    default="UNITY",
    label="Axes",
    description="How Unity's axes (left-handed, Y up) are mapped to Blender's; the file does not state it. "
    "An export of imported objects uses the choice of their import",
    section="Objects",
    is_remembered=True,
    choices=(
        Choice("UNITY", "Unity", "What faces forward in Unity (+Z) faces Blender's front view (-Y)"),
        Choice("SWAP_YZ", "Swap Y and Z Only", "Rotated by 180° about the vertical axis, as in some other pipelines"),
    ),
)

IMPORT_OPTIONS: tuple[Option, ...] = (AXES,)

LARGE_MESHES = Option(
    name="large_meshes",
    default="REFUSE",
    label="Too Large",
    description="What to do with a mesh of more vertices or triangles than one file holds",
    section="File",
    choices=(
        Choice("REFUSE", "Refuse", "Write up to 65,535 vertices and triangles, with a warning above 64,000"),
        Choice(
            "SPLIT",
            "Split into Numbered Files",
            "A mesh of more than 64,000 vertices or triangles becomes several files: name_1, name_2 and so on",
        ),
    ),
)
NORMALS = Option(
    name="use_stored_normals",
    default=True,
    label="Normals",
    description="Write normals, 8 bits for each axis",
    section="Geometry",
)
UVS = Option(
    name="use_stored_uvs",
    default=True,
    label="UV Map",
    description="Write the first UV map",
    section="Geometry",
)
TANGENTS = Option(
    name="mesh_tangents",
    default="AUTO",
    label="Tangents",
    description="Whether to write tangents for normal maps, computed by MikkTSpace from the first UV map",
    section="Geometry",
    choices=(
        Choice("AUTO", "As in the File", "If the mesh was imported from a file with tangents"),
        Choice("ALWAYS", "Always", "For every mesh with a UV map"),
        Choice("NEVER", "Never", "Unity can compute them"),
    ),
)

EXPORT_OPTIONS: tuple[Option, ...] = (MESH_FILES, LARGE_MESHES, NORMALS, UVS, TANGENTS, IMPORT_CHOICES, AXES)
