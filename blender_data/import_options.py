"""Options of every import, whatever the format."""

from __future__ import annotations

from ..io_formats.options import Choice, Option

AUTOMATIC_NORMALS_LIMIT = 200_000
"""Corners up to which automatic normals are editable; setting those takes Blender long on large meshes."""

NORMALS = Option(
    name="normals",
    default="AUTO",
    headless_default="EXACT",
    label="Normals",
    description="How the file's normals become Blender's custom normals",
    section="Geometry",
    choices=(
        Choice("AUTO", "Automatic", "Editable for objects up to 200,000 corners, exact for larger ones"),
        Choice(
            "EDITABLE", "Editable", "Follow editing, mirroring and deformation; differ from the file's by up to 0.015"
        ),
        Choice(
            "EXACT",
            "Exact",
            "Exactly the file's, and much faster on large meshes, but they stay put when the mesh is edited or "
            "deformed. Needs Blender 4.5; animated meshes get editable ones",
        ),
        Choice("NONE", "None", "Leave the file's normals out and let Blender shade smoothly"),
    ),
)
WELD = Option(
    name="use_weld",
    default=True,
    headless_default=False,
    label="Weld Vertices",
    description="Join vertices that the file splits along UV seams and sharp edges, so that the mesh can be edited "
    "as one; normals, UVs and colours stay on the corners",
    section="Geometry",
)
VERTEX_ANIMATION = Option(
    name="vertex_animation",
    default="SHAPE_KEYS",
    label="Vertices",
    description="What a vertex animation becomes",
    section="Animation",
    choices=(
        Choice("SHAPE_KEYS", "Shape Keys", "One shape key a frame, played by an action; can be edited"),
        Choice(
            "CACHE",
            "Mesh Cache",
            "A .pc2 file beside the imported one, played by a Mesh Cache modifier; for long animations",
        ),
        Choice("NONE", "None", "Leave vertex animations out"),
    ),
)
NODE_ANIMATION = Option(
    name="use_node_animation",
    default=True,
    label="Objects",
    description="Make actions of the animations of objects",
    section="Animation",
)
FRAME_START = Option(
    name="frame_start",
    default=1,
    label="First Frame",
    description="Frame of the scene at which animations begin",
    section="Animation",
    minimum=-1_000_000,
    maximum=1_000_000,
)
SET_FRAME_RATE = Option(
    name="use_file_frame_rate",
    default=False,
    label="Set Frame Rate",
    description="Set the frame rate and the frame range of the scene to those of the first animation. Otherwise keys "
    "are placed so that the animation keeps its speed at the scene's own rate",
    section="Animation",
)
MATERIAL_LIBRARY = Option(
    name="material_library",
    default="",
    label="Library",
    description="A .blend file from which materials of the same names are linked; the rest are made new",
    section="Materials",
    is_path=True,
)
REUSE_MATERIALS = Option(
    name="use_existing_materials",
    default=True,
    label="Use Existing",
    description="Use a material of this .blend that already has the right name instead of making another",
    section="Materials",
)

IMPORT_OPTIONS: tuple[Option, ...] = (
    NORMALS,
    WELD,
    NODE_ANIMATION,
    VERTEX_ANIMATION,
    FRAME_START,
    SET_FRAME_RATE,
    REUSE_MATERIALS,
    MATERIAL_LIBRARY,
)
