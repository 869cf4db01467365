"""What Meshferry remembers about data blocks, as registered properties an artist can see and edit.

Found as ``.meshferry`` on objects, collections, actions, materials and meshes. The groups have
neither methods nor update callbacks: Blender 4.2 and 4.3 crash at exit with those.
"""

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from .compat import BLEND_RELATIVE_PATHS
from .export_options import MERGING


class MeshferryObject(bpy.types.PropertyGroup):
    """What an object was in its file, and will be in the next."""

    is_root: BoolProperty(
        name="Root of the File",
        description="Export this object as a root of the file rather than below a root named like the collection",
        default=False,
    )
    source_name: StringProperty(
        name="Name in File",
        description="Name that the object has in the file, where Blender had to give it another. "
        "Used on export while the object keeps the name it got on import",
    )
    given_name: StringProperty(
        name="Name on Import",
        description="Name that Blender gave the object on import; once the object is renamed, its new name is exported",
    )
    has_rest: BoolProperty(
        name="Own Rest Transform",
        description="The file holds a rest transform apart from the animation; it is exported as it stands here",
        default=False,
    )
    rest_location: FloatVectorProperty(
        name="Rest Location", description="Location while no animation plays", size=3, subtype="TRANSLATION"
    )
    rest_rotation: FloatVectorProperty(
        name="Rest Rotation",
        description="Rotation while no animation plays",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )
    rest_scale: FloatVectorProperty(
        name="Rest Scale",
        description="Scale while no animation plays",
        size=3,
        subtype="XYZ",
        default=(1.0, 1.0, 1.0),
    )
    rest_is_basis: BoolProperty(
        name="Rest Shape Is the Basis",
        description="The mesh rests in its Basis shape, without its vertex animation, rather than as it stands "
        "at the first frame",
        default=False,
    )


class MeshferryMaterial(bpy.types.PropertyGroup):
    """What a material is called in its file."""

    source_name: StringProperty(
        name="Name in File",
        description="Name that the material has in the file, where Blender had to give it another. "
        "Used on export while the material keeps the name it got on import",
    )
    given_name: StringProperty(
        name="Name on Import",
        description="Name that Blender gave the material on import; "
        "once the material is renamed, its new name is exported",
    )


class MeshferryAction(bpy.types.PropertyGroup):
    """An action as an animation clip of a file."""

    use_export: BoolProperty(
        name="Export as a Clip",
        description="Include this action when every action is exported as a clip",
        default=True,
    )
    clip_name: StringProperty(
        name="Clip Name",
        description="Name of the clip in the file; empty: the name of the action",
    )
    fps: FloatProperty(
        name="Frame Rate",
        description="Frames a second that the clip has in the file; 0: the frame rate of the scene",
        default=0.0,
        min=0.0,
        max=1000.0,
        precision=2,
    )
    frame_count: IntProperty(
        name="Frames in File",
        description="Number of frames that the clip had in the file it came from; 0: it did not come from a file",
        default=0,
        min=0,
    )


class MeshferryCollection(bpy.types.PropertyGroup):
    """A collection as a file."""

    from_file: BoolProperty(
        name="Came from a File",
        description="The collection was made by importing a file, "
        "so each of its objects stays a node of its own on export",
        default=False,
    )
    source_path: StringProperty(
        name="File",
        description="The file that the collection was imported from",
        subtype="FILE_PATH",
        options={"ANIMATABLE"} | BLEND_RELATIVE_PATHS,
    )
    source_name: StringProperty(
        name="Name in File",
        description="Name that the file gives itself inside, where that is not its file name",
    )
    merging: EnumProperty(
        name=MERGING.label,
        description=f"{MERGING.description} when this collection is exported with the automatic choice",
        items=[(choice.key, choice.label, choice.description) for choice in MERGING.choices],
        default=MERGING.default,
    )


class MeshferryCustomLayer(bpy.types.PropertyGroup):
    """A layer of a mesh that Blender has no place of its own for; kept as an attribute."""

    name: StringProperty(name="Name in File", description="Name that the layer has in the file")
    dtype: StringProperty(
        name="Number Type",
        description="Type of the layer's numbers in the file, as NumPy writes it",
    )
    dimension: IntProperty(
        name="Components",
        description="Numbers per vertex in the file",
        default=1,
        min=1,
    )
    attribute: StringProperty(name="Attribute", description="Attribute of the mesh that holds the layer's values")


class MeshferryMesh(bpy.types.PropertyGroup):
    """What a mesh keeps of its file beside what Blender has a place for."""

    custom_layers: CollectionProperty(
        type=MeshferryCustomLayer,
        name="Custom Layers",
        description="Layers of the file that are kept as attributes of the mesh and written back on export",
    )
    file_vertices: IntProperty(
        name="Vertices on Import",
        description="Number of vertices the mesh had after its import; while it still has as many, "
        "its vertices are taken for those of the file",
        default=0,
        min=0,
    )
    is_welded: BoolProperty(
        name="Welded on Import",
        description="The vertices that the file splits along seams were joined on import",
        default=False,
    )
    file_corners: IntProperty(
        name="Corners on Import", description="Number of face corners the mesh had after its import", default=0, min=0
    )


CLASSES = (
    MeshferryObject,
    MeshferryMaterial,
    MeshferryAction,
    MeshferryCollection,
    MeshferryCustomLayer,
    MeshferryMesh,
)

OWNERS = (
    (bpy.types.Object, MeshferryObject),
    (bpy.types.Material, MeshferryMaterial),
    (bpy.types.Action, MeshferryAction),
    (bpy.types.Collection, MeshferryCollection),
    (bpy.types.Mesh, MeshferryMesh),
)


def register():
    """Register the groups and hang them on the data blocks as ``.meshferry``."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    for owner, group in OWNERS:
        owner.meshferry = PointerProperty(
            type=group, name="Meshferry", description="What Meshferry keeps about this data block"
        )


def unregister():
    """Take everything off again, in reverse."""
    for owner, _group in reversed(OWNERS):
        del owner.meshferry
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
