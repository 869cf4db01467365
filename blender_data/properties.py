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
from .exporting.export_options import MERGING


class MeshferryBone(bpy.types.PropertyGroup):
    """What a bone is in its file: a joint, whose transform may have a scale that Blender's bones lack."""

    source_name: StringProperty(
        name="Name in File",
        description="Name that the bone has in the file, where Blender had to give it another. "
        "Used on export while the bone keeps the name it got on import",
    )
    given_name: StringProperty(
        name="Name on Import",
        description="Name that Blender gave the bone on import; once the bone is renamed, its new name is exported",
    )
    order: IntProperty(
        name="Place in File", description="Place of the bone in the file's table; -1: it was not imported", default=-1
    )
    bind_location: FloatVectorProperty(
        name="Joint Location", description="Location of the joint relative to its parent's", size=3
    )
    bind_rotation: FloatVectorProperty(
        name="Joint Rotation",
        description="Rotation of the joint relative to its parent's",
        size=4,
        default=(1.0, 0.0, 0.0, 0.0),
    )
    bind_scale: FloatVectorProperty(
        name="Joint Scale", description="Scale of the joint relative to its parent's", size=3, default=(1.0, 1.0, 1.0)
    )
    rest_matrix: FloatVectorProperty(
        name="Rest Matrix on Import",
        description="Rest matrix that Blender gave the bone on import, row by row; "
        "while it is the same, the joint is exported as it was in the file",
        size=16,
    )
    bind_matrix: FloatVectorProperty(
        name="Joint's World Matrix",
        description="Bind transform of the joint in the space of its armature, with the scales of all joints above, "
        "row by row",
        size=16,
    )
    parent_order: IntProperty(
        name="Parent on Import",
        description="Place in the file's bone table of the joint that this one hung on; -1: none",
        default=-1,
    )


class MeshferrySurfaceShape(bpy.types.PropertyGroup):
    """A shape key that a surface holds."""

    name: StringProperty(name="Shape Key", description="Name of the shape key")
    source_name: StringProperty(name="Name in File", description="Name that the shape has in the file, maybe empty")


class MeshferrySurface(bpy.types.PropertyGroup):
    """A surface of a file: the triangles of one material slot."""

    name: StringProperty(name="Name", description="Name of the surface in the file; need not be unique")
    material: PointerProperty(
        type=bpy.types.Material,
        name="Material",
        description="Material of the slot that the surface is; a surface follows its material when slots are moved",
    )
    given_name: StringProperty(
        name="Material on Import",
        description="Name of the material on import; once the material is renamed, the surface gets its new name",
    )
    order: IntProperty(
        name="Place in File", description="Place of the surface in the file; -1: after all others", default=-1
    )
    lightmap_channel: IntProperty(
        name="Lightmap UV", description="UV channel of the surface's lightmap", default=1, min=0, max=1
    )
    lightmap_resolution: EnumProperty(
        name="Lightmap Size",
        description="Resolution of the surface's lightmap, in pixels",
        items=[(str(code), str(32 << code), f"{32 << code} × {32 << code} pixels") for code in range(8)],
        default="3",
    )
    has_uv0: BoolProperty(name="UV0", description="The surface holds the first UV map", default=True)
    has_uv1: BoolProperty(name="UV1", description="The surface holds the second UV map", default=True)
    has_colors: BoolProperty(name="Colors", description="The surface holds vertex colours", default=True)
    has_weights: BoolProperty(
        name="Weights",
        description="The surface holds bone weights; it gets them anyway where vertex groups of bones move it",
        default=False,
    )
    shapes: CollectionProperty(
        type=MeshferrySurfaceShape,
        name="Shapes",
        description="Shape keys that the surface holds; it gets others where they move it",
    )
    base_name: StringProperty(
        name="Base Shape in File", description="Name that the surface's base shape has in the file, mostly empty"
    )


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
    surfaces: CollectionProperty(
        type=MeshferrySurface,
        name="Surfaces",
        description="What the file says of the surfaces that its material slots are",
    )
    active_surface: IntProperty(name="Active Surface", description="Surface chosen in the list", default=0, min=0)
    lod: IntProperty(
        name="Level of Detail",
        description="0: the finest; others are exported with the object they stand for",
        default=0,
        min=0,
        max=63,
    )
    lod_of: PointerProperty(
        type=bpy.types.Object,
        name="Coarser Version Of",
        description="The finest object of which this is a coarser level of detail; both are exported to one file",
    )
    skeleton_guid: StringProperty(
        name="Skeleton",
        description="Identity of the skeleton file that an armature's animations refer to in the engine",
    )
    skeleton_path: StringProperty(
        name="Skeleton File", description="Path of the skeleton file inside the engine's project"
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
    root_motion: BoolProperty(
        name="Root Motion",
        description="The movement of the root bone moves the whole character in the engine",
        default=False,
    )


class MeshferryCollection(bpy.types.PropertyGroup):
    """A collection as a file."""

    from_file: BoolProperty(
        name="Came from a File",
        description="The collection was made by importing a file, "
        "so each of its objects stays a node of its own on export",
        default=False,
    )
    file_format: StringProperty(
        name="Format",
        description="Format of the file that the collection was imported from; "
        "the sidebar shows what concerns that format",
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
    MeshferryBone,
    MeshferrySurfaceShape,
    MeshferrySurface,
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
    (bpy.types.Bone, MeshferryBone),
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
