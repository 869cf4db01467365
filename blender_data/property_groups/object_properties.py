"""Properties of files, bones and objects."""

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

from ..export_options import PHYSICS_SHAPE


class NamedInFile:
    """The name of a data block in its file, for data blocks that Blender may have to rename."""

    source_name: StringProperty(
        name="Name in File",
        description="Name that this has in the file, where Blender had to give it another. "
        "Used on export while it keeps the name it got on import",
    )
    given_name: StringProperty(
        name="Name on Import",
        description="Name that Blender gave this on import; once it is renamed, its new name is exported",
    )


class MeshferryFile(bpy.types.PropertyGroup):
    """The file that a data block was last imported from or exported to."""

    path: StringProperty(
        name="File",
        description="The file that it last went to or came from",
        subtype="FILE_PATH",  # text properties of other subtypes reject paths that are not UTF-8
    )
    format: StringProperty(name="Format", description="Format of the file")
    digest: StringProperty(name="Digest", description="SHA-256 of the file's content when it was read or written")
    options: StringProperty(name="Options", description="Options of the export as JSON; empty: the file was imported")
    given: StringProperty(
        name="Given Options", description="Names of options that override choices of the import, as JSON"
    )
    clip_files: StringProperty(
        name="Files of Animations", description="Files that the exported animations were imported from, as JSON"
    )
    owner: StringProperty(name="Owner", description="Name of the data block that the file belongs to, not to a copy")


class MeshferryBone(NamedInFile, bpy.types.PropertyGroup):
    """The joint of a bone in its file. Its transform may have a scale, unlike a bone in Blender."""

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
    joint_name: StringProperty(
        name="Joint", description="Name of the joint in the file, by which a reload finds the bone"
    )
    parent_order: IntProperty(
        name="Parent on Import",
        description="Place in the file's bone table of the joint that this one hung on; -1: none",
        default=-1,
    )
    target_joint: StringProperty(
        name="Joint",
        description="Joint of the target skeleton that replaces the bone. If empty, the joint of its nearest parent",
    )
    is_control: BoolProperty(
        name="Control", description="The bone only moves other bones. Exports leave it out", default=False
    )


class MeshferryArmature(bpy.types.PropertyGroup):
    """The bones of an armature as a whole."""

    bone_axes: StringProperty(
        name="Bone Axes",
        description="Rule by which the import or Meshferry laid out the bones, if actions depend on it. An action that "
        "was keyed for other axes poses the bones otherwise",
    )


class MeshferrySurfaceShape(bpy.types.PropertyGroup):
    """A shape key that a surface of the file contains."""

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
    )
    shapes: CollectionProperty(
        type=MeshferrySurfaceShape,
        name="Shapes",
        description="Shape keys that the surface holds; it gets others where they move it",
    )
    base_name: StringProperty(
        name="Base Shape in File", description="Name that the surface's base shape has in the file, mostly empty"
    )
    has_domains: BoolProperty(name="Has Ranges", description="The ranges below are those of the file")
    position_domain: FloatVectorProperty(
        name="Position Range",
        description="Least and most coordinates that the file stores the surface's points between",
        size=6,
    )
    uv_domain: FloatVectorProperty(
        name="UV Range", description="Least and most UVs that the file stores the surface's UVs between", size=4
    )


class MeshferrySkinJoint(bpy.types.PropertyGroup):
    """A joint to which the file binds a mesh."""

    name: StringProperty(name="Name", description="Name of the joint in the file")
    inverse_bind: FloatVectorProperty(
        name="Inverse Bind Matrix", description="From the space of the armature to the joint's, row by row", size=16
    )
    alt_inverse_bind: FloatVectorProperty(
        name="Alternative Inverse Bind Matrix", description="Second matrix that the file has, row by row", size=16
    )
    position: FloatVectorProperty(
        name="Joint Position", description="Wanted position relative to the joint's parent, in metres", size=3
    )


class MeshferrySkin(bpy.types.PropertyGroup):
    """The binding of a mesh to an armature in the file; exported unchanged with Keep as Imported."""

    joints: CollectionProperty(type=MeshferrySkinJoint, name="Joints", description="Joints in the order of the file")
    bind_shape: FloatVectorProperty(
        name="Bind Shape Matrix", description="From the mesh's own space to the armature's, row by row", size=16
    )
    given_matrix: FloatVectorProperty(
        name="Matrix on Import",
        description="Matrix relative to the armature that Blender gave the object on import, row by row; "
        "while it is the same, the bind shape matrix holds",
        size=16,
    )
    has_positions: BoolProperty(name="Joint Positions", description="The file moves joints")
    has_pelvis_offset: BoolProperty(name="Has Pelvis Offset", description="The file gives one")
    pelvis_offset: FloatProperty(name="Pelvis Offset", description="Metres by which the whole avatar is lifted")
    lock_scale: BoolProperty(
        name="Lock Scale", description="Body shape sliders do not scale joints whose positions are overridden"
    )
    singular: StringProperty(
        name="Singular Joints",
        description="Bones with weights to which the file binds the mesh by matrices that cannot be inverted",
    )
    is_replaced: BoolProperty(
        name="Bound Anew",
        description="The mesh was bound in Blender since, so the binding of the file is not shown",
    )
    is_checked: BoolProperty(
        name="Compared",
        description="The binding of the file was compared with the bones, and an armature that shows it exists if it "
        "is another one",
    )
    is_aligned: BoolProperty(
        name="Aligned", description="The joints rest exactly where the matrices bind them, in the space of the armature"
    )


class MeshferryImportChoice(bpy.types.PropertyGroup):
    """The value that an option had when an object was imported."""

    name: StringProperty(name="Option", description="Name of the import option")
    value: StringProperty(name="Value", description="True, False or the name of a choice")


class MeshferryObject(NamedInFile, bpy.types.PropertyGroup):
    """Properties of an object in its file, which exports use."""

    file: PointerProperty(type=MeshferryFile, name="File", description="The file that the object last went to")
    is_root: BoolProperty(
        name="Top-Level Node",
        description="Export this object as a root of the file rather than below a root named like the collection",
    )
    is_linkset_root: BoolProperty(
        name="Root of Linkset",
        description="The object to which the others of its linkset are linked; uploads to OpenSim put it first",
    )
    body: StringProperty(
        name="Body",
        description="Name of the body that the mesh belongs to. Clothes are fitted on bodies; exports leave them out",
    )
    body_part: StringProperty(
        name="Part of the Figure",
        description="Part of the target's own figure, of which shape keys follow the body shape",
    )
    active_body: StringProperty(
        name="Active Body",
        description="Of an armature: name of the body on which clothes are fitted now",
    )
    import_id: StringProperty(
        name="Import", description="The import that made the object; its collection has the same identifier"
    )
    node_path: StringProperty(
        name="Node in File", description="Name of the object's node in the file and of its parent, for a reload"
    )
    node_key: StringProperty(
        name="Key in File",
        description="Identifies the object's node in a file that places models; an export finds the node by it",
    )
    is_model_part: BoolProperty(
        name="Part of a Model",
        description="The object is a part of the model that stands at a node of its file, and no node itself",
    )
    model_parts: IntProperty(
        name="Parts of the Model", description="Number of objects of the model that stands at the object's node"
    )
    given_parent_key: StringProperty(
        name="Node of Parent on Import",
        description="Node of the parent that the object had when it was last in agreement with the file",
    )
    node_slots: StringProperty(
        name="Surfaces of Slots",
        description="Place of the surface of each material slot in the list of the node, as JSON; -1: not in the list",
    )
    given_materials: StringProperty(
        name="Materials on Import",
        description="Identity of the material of each slot when the object was last in agreement with the file",
    )
    given_mesh: StringProperty(
        name="Mesh on Import", description="Identifies the mesh of the object's node in a file that places models"
    )
    given_properties: StringProperty(
        name="Properties on Import",
        description="The custom properties that the file gives the object, as JSON. A reload changes them while they "
        "are the same",
    )
    shear: FloatVectorProperty(
        name="Shear",
        description="Matrix, row by row, that leads from the transform of the object to the one in the file, which "
        "Blender's objects cannot hold; zeros if none does",
        size=16,
    )
    given_hidden: BoolProperty(
        name="Hidden on Import",
        description="The object was disabled in viewports when it was last in agreement with the file",
    )
    has_hidden_surfaces: BoolProperty(
        name="Hidden Surfaces",
        description="The object is hidden since all surfaces of its node are, not the node itself",
    )
    given_transform: FloatVectorProperty(
        name="Transform on Import",
        description="Location, rotation and scale that the file gives the object. "
        "A reload places the object as in the file while it has not been moved",
        size=10,
    )
    file_matrix: StringProperty(
        name="Matrix on Import",
        description="The 16 numbers of the matrix that the file gives the object, in double precision",
    )
    has_rest: BoolProperty(
        name="Own Rest Transform",
        description="The file holds a rest transform apart from the animation; it is exported as it stands here",
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
    import_choices: CollectionProperty(
        type=MeshferryImportChoice,
        name="Import Choices",
        description="Options of the import that an export has to use again. Remove one to export like an object that "
        "was not imported",
    )
    surfaces: CollectionProperty(
        type=MeshferrySurface,
        name="Surfaces",
        description="What the file says of the surfaces that its material slots are",
    )
    active_surface: IntProperty(
        name="Active Surface", description="Not used since 0.2: the active material slot is", min=0
    )
    lod: IntProperty(
        name="Level of Detail",
        description="0: the finest; others are exported with the object they stand for",
        min=0,
        max=63,
    )
    lod_of: PointerProperty(
        type=bpy.types.Object,
        name="LOD of",
        description="The finest object of which this is a coarser level of detail; both are exported to one file",
    )
    medium_level: PointerProperty(
        type=bpy.types.Object, name="Medium LOD", description="Object that is the medium level of detail of this one"
    )
    low_level: PointerProperty(
        type=bpy.types.Object, name="Low LOD", description="Object that is the low level of detail of this one"
    )
    lowest_level: PointerProperty(
        type=bpy.types.Object, name="Lowest LOD", description="Object that is the lowest level of detail of this one"
    )
    physics_object: PointerProperty(
        type=bpy.types.Object, name="Physics", description="Object that others collide with in place of this one"
    )
    physics_shape: EnumProperty(
        name="Physics Shape",
        description="What others collide with in place of this object",
        items=[
            ("DEFAULT", "As in Export Options", "The shape that the export options set for all objects"),
            *((choice.key, choice.label, choice.description) for choice in PHYSICS_SHAPE.choices),
        ],
        default="DEFAULT",
    )
    usage: EnumProperty(
        name="Use",
        description="How the object is used in world, which determines what its cost is",
        items=[
            ("AUTO", "Automatic", "Worn if an armature deforms it, otherwise rezzed"),
            ("WORN", "Worn", "Attached to an avatar: its complexity counts, not its land impact"),
            ("REZZED", "Rezzed", "Placed on land: its land impact counts"),
            ("ANIMESH", "Animesh", "Placed on land with a skeleton of its own that animates it"),
        ],
        default="AUTO",
    )
    role: EnumProperty(
        name="Role",
        description="What the object is for in its file",
        items=[
            ("RENDER", "Shown", "A model, or a level of detail of one"),
            ("PHYSICS", "Physics", "What others collide with in place of the object it belongs to"),
            ("HULL", "Hull", "One of the convex hulls that others collide with"),
            ("BASE_HULL", "Base Hull", "The one convex hull around everything"),
        ],
        default="RENDER",
    )
    shape_of: PointerProperty(
        type=bpy.types.Object, name="Shape Of", description="The object of which this is the physics shape or a hull"
    )
    skin: PointerProperty(type=MeshferrySkin, name="Binding", description="How the file binds the mesh to its armature")
    binding: PointerProperty(
        type=bpy.types.Object,
        name="Shown Binding",
        description="Armature that deforms the mesh as its file binds it, in place of its own",
    )
    is_binding: BoolProperty(
        name="Shows a Binding",
        description="The armature only shows meshes as their files bind them to another one, whose bones it follows",
    )
    skeleton_guid: StringProperty(
        name="Skeleton",
        description="Identity of the skeleton file that an armature's animations refer to in the engine",
    )
    skeleton_path: StringProperty(
        name="Skeleton File", description="Path of the skeleton file inside the engine's project"
    )
    use_bone_table: BoolProperty(
        name="Own Bone Table",
        description="Use the joints that were chosen for the bones of this armature, not those of the bundled tables",
    )
    active_bone: IntProperty(name="Bone", description="Selected bone of the bone table", min=0)
    bone_palettes: StringProperty(
        name="Bone Colors", description="Colour sets of bones while they show priorities, as JSON by bone name"
    )
    rest_is_basis: BoolProperty(
        name="Rest Shape Is the Basis",
        description="The mesh rests in its Basis shape, without its vertex animation, rather than as it stands "
        "at the first frame",
    )
